"""What holds for every strategy: properties, each a function of a problem.

A property returns None where it does not apply, and otherwise what is wrong, "" if nothing is.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sklearn_ical import PredictionSamples
from tests.sweep.exceptions import reason
from tests.sweep.oracles import exact_picks
from tests.sweep.problems import Problem

Answer = tuple[np.ndarray, np.ndarray]
# The sum of the draw weights in units of the smallest: weights are then exact.
WEIGHT_UNITS = 8
# 2^332 is about 1e100.
EXPONENTS = (-332, 332)


def check_repeated_draws(problem: Problem, answer: Answer) -> str | None:
    """Draw weights count as repeated draws do; draws of weight 0 do not count."""
    n_draws = problem.samples.n_draws
    rng = np.random.default_rng(problem.seed)
    least = problem.strategy().query_tags().min_draws
    counts = np.zeros(n_draws, dtype=np.int64)
    counts[rng.permutation(n_draws)[:least]] = 1
    counts += rng.multinomial(max(0, WEIGHT_UNITS - least), np.full(n_draws, 1 / n_draws))
    try:
        weighted = problem.with_samples(partial(_weighted, counts=counts)).answer()
    except ValueError as err:
        return None if "weight" in str(err) else f"{type(err).__name__}: {err}"
    repeated = problem.with_samples(partial(_repeated, counts=counts)).answer()
    return _different(weighted, repeated, f"draws weighted {counts.tolist()}", "repeated draws")


def _weighted(samples: PredictionSamples, counts: np.ndarray) -> PredictionSamples:
    weights = counts / counts.sum()
    noise = samples.noise_variance
    return PredictionSamples(samples.values, samples.kind, weights=weights, noise_variance=noise)


def _repeated(samples: PredictionSamples, counts: np.ndarray) -> PredictionSamples:
    noise: Any = samples.noise_variance
    noise = np.repeat(noise, counts, axis=1) if np.ndim(noise) == 2 else noise
    values = np.repeat(samples.values, counts, axis=1)
    return PredictionSamples(values, samples.kind, noise_variance=noise)


def check_copies(problem: Problem, answer: Answer) -> str | None:
    """Among copies of a row the lowest free position is picked first."""
    if "costs" in problem.options:
        return None
    picks, _ = answer
    allowed = problem.options.get("candidates", np.arange(len(problem.content)))
    for row in np.unique(problem.content[picks]):
        picked = picks[problem.content[picks] == row].tolist()
        copies = allowed[problem.content[allowed] == row][: len(picked)].tolist()
        if picked != copies:
            return f"picks {picks.tolist()}: {picked} of the copies {copies}"
    return ""


def check_permuted_rows(problem: Problem, answer: Answer) -> str | None:
    """A pool in another order gives the same best rows in each step, copies in order."""
    strategy, options = problem.strategy(), problem.options
    tags = strategy.query_tags()
    if "reference" in tags.uses and "reference" not in options:
        return None
    if not tags.deterministic and not _same(problem.answer(problem.seed + 1), answer):
        return None  # something is random, and keyed by position
    rng = np.random.default_rng(problem.seed)
    order = rng.permutation(len(problem.content))
    for row in np.unique(problem.content):
        order[problem.content[order] == row] = np.flatnonzero(problem.content == row)
    moved, rows = problem.permuted(order).answer()
    there = order[moved], rows[:, np.argsort(order)]
    return _same_best(answer, there, problem.content, tags.utilities == "gain")


def _same_best(first: Answer, second: Answer, content: np.ndarray, gains: bool) -> str | None:
    """Compare which rows are best, up to the first step in which distinct rows are."""
    for t, (row, other) in enumerate(zip(first[1], second[1], strict=True)):
        best, others = (np.flatnonzero(each == np.nanmax(each)).tolist() for each in (row, other))
        if gains and best != others:
            return f"step {t}: rows {best} are best, in a permuted pool {others}"
        if len(np.unique(content[best])) > 1:
            return ""
        if first[0][t] != second[0][t]:
            return f"picks {first[0].tolist()}, in a permuted pool {second[0].tolist()}"
    return ""


def check_exact_picks(problem: Problem, answer: Answer) -> str | None:
    """Picks are those of exact arithmetic, ties to the lowest position."""
    if not problem.exact or "costs" in problem.options:
        return None
    expected = exact_picks(problem)
    if expected is None:
        return None
    picks = answer[0].tolist()
    wrong = picks[: len(expected)] != expected
    return f"picks {picks}, in exact arithmetic {expected}" if wrong else ""


def check_gains(problem: Problem, answer: Answer) -> str | None:
    """Each pick is the first of the largest gains, and ties are ties of rows taken alone."""
    if problem.strategy().query_tags().utilities != "gain":
        return None
    picks, rows = answer
    for t, pick in enumerate(picks):
        if np.nanargmax(rows[t]) != pick:
            return f"step {t}: pick {pick}, but {np.nanargmax(rows[t])} has the largest utility"
    if "costs" in problem.options:
        return ""
    for t in range(len(picks)):
        tied = np.flatnonzero(rows[t] == np.nanmax(rows[t]))
        if len(np.unique(problem.content[tied])) > 1:
            return _tie_of_distinct(problem, answer, t, tied)
    return ""


def _tie_of_distinct(problem: Problem, answer: Answer, t: int, tied: np.ndarray) -> str:
    """Evaluate tied rows without each other, where no tie can make them equal."""
    picks, rows = answer
    alone = {}
    _, first = np.unique(problem.content[tied], return_index=True)
    for x in tied[first].tolist():
        candidates = np.sort([*picks[:t].tolist(), x])
        one = problem.with_options(candidates=candidates, batch_size=t + 1)
        same, values = one.answer()
        if same.tolist() == [*picks[:t].tolist(), x]:
            alone[x] = float(values[t, x])
    if alone and max(alone.values()) - min(alone.values()) > 1e-9 * np.nanmax(np.abs(rows)):
        return f"step {t}: tied rows have the utilities {alone} when evaluated alone"
    return ""


def check_torch(problem: Problem, answer: Answer) -> str | None:
    """Samples in torch tensors give the picks of those in numpy arrays."""
    import torch

    def as_tensors(samples: PredictionSamples) -> PredictionSamples:
        return PredictionSamples(
            torch.tensor(np.array(samples.values)),
            samples.kind,
            noise_variance=samples.noise_variance,
        )

    return _different(problem.with_samples(as_tensors).answer(), answer, "torch", "numpy")


def check_units(problem: Problem, answer: Answer) -> str | None:
    """Values and features in units of 1e-100 or 1e100 give the same picks."""
    reads_features = "X_pool" in problem.options
    if problem.samples.kind != "value" and not reads_features:
        return None
    for exponent in EXPONENTS:
        scaled = problem.with_features(lambda X, by=2.0**exponent: X * by)
        if problem.samples.kind == "value":
            scaled = scaled.with_samples(partial(_scaled, exponent=exponent))
        try:
            picks, _ = scaled.answer()
        except Exception as err:
            return f"2^{exponent}: {type(err).__name__}: {err}"
        if picks.tolist() != answer[0].tolist():
            return f"picks {answer[0].tolist()}, in units of 2^{exponent} {picks.tolist()}"
    return ""


def _scaled(samples: PredictionSamples, exponent: int) -> PredictionSamples:
    noise: Any = samples.noise_variance
    noise = None if noise is None else noise * 2.0 ** (2 * exponent)
    return PredictionSamples(
        samples.values * 2.0**exponent, samples.kind, weights=samples.weights, noise_variance=noise
    )


def _same(answer: Answer, other: Answer) -> bool:
    return np.array_equal(answer[0], other[0]) and np.array_equal(
        answer[1], other[1], equal_nan=True
    )


def _different(answer: Answer, expected: Answer, what: str, other: str) -> str:
    """Return how picks or utilities differ, utilities by more than rounding."""
    if answer[0].tolist() != expected[0].tolist():
        return f"picks {answer[0].tolist()} from {what}, {expected[0].tolist()} from {other}"
    largest = np.nanmax(np.abs(expected[1]), initial=0.0)
    for t, (row, wanted) in enumerate(zip(answer[1], expected[1], strict=True)):
        if not np.allclose(row, wanted, rtol=1e-8, atol=1e-9 * largest, equal_nan=True):
            return f"step {t}: utilities {row} from {what}, {wanted} from {other}"
    return ""


Property = Callable[[Problem, Answer], "str | None"]
# Those that take little time, and those that take more.
AT_ONCE: dict[str, Property] = {
    "copies": check_copies,
    "gains": check_gains,
}
FURTHER: dict[str, Property] = {
    "exact": check_exact_picks,
    "draws": check_repeated_draws,
    "order": check_permuted_rows,
    "torch": check_torch,
    "units": check_units,
}
PROPERTIES = AT_ONCE | FURTHER


def mismatch(name: str, problem: Problem, answer: Answer) -> str | None:
    """Return what is wrong with one property of a problem; None where it does not apply."""
    if reason(name, problem) is not None:
        return None
    return PROPERTIES[name](problem, answer)
