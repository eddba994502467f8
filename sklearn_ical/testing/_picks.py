"""Checks of what is picked: positions, candidates, batch sizes, utilities."""

from functools import partial
from typing import Any

import numpy as np

from sklearn_ical.exceptions import BatchClippedWarning
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._data import (
    BATCH,
    N_POOL,
    Problem,
    ask,
    choose,
    kinds,
    model_problem,
    samples_problem,
    seeded,
)
from sklearn_ical.testing._require import (
    recorded,
    require,
    require_error,
    require_rows,
    require_same,
    require_valid,
)

REPEATS = 10
ALLOWED = (3, 4, 8, 9, 11, 17, 20, 21, 30, 38)


def check_picks(strategy: Any) -> None:
    """Check that picks are distinct candidates in a host array of intp."""
    problem = model_problem(strategy)
    for size in (1, BATCH, N_POOL - 1):
        picks = ask(seeded(strategy), problem, size)
        require_valid(picks, size, np.arange(N_POOL), f"from query with batch_size={size}")
    allowed = np.array(ALLOWED)
    picks = ask(seeded(strategy), problem, candidates=allowed)
    require_valid(picks, BATCH, allowed, "from query with candidates")
    for kind in kinds(strategy):
        samples = samples_problem(strategy, kind)
        picks = choose(seeded(strategy), samples)
        everything = np.arange(samples.source.n_points)
        require_valid(picks, BATCH, everything, f"from select with {kind} samples")


def check_candidate_forms(strategy: Any) -> None:
    """Check that candidates may be positions in any order, a list or a boolean mask."""
    problem = model_problem(strategy)
    expected = ask(seeded(strategy), problem, candidates=np.array(ALLOWED))
    mask = np.isin(np.arange(N_POOL), ALLOWED)
    forms = {
        "a boolean mask": mask,
        "positions in descending order": np.array(ALLOWED[::-1]),
        "positions of dtype int32": np.array(ALLOWED, dtype=np.int32),
        "a list": list(ALLOWED),
    }
    for name, candidates in forms.items():
        picks = ask(seeded(strategy), problem, candidates=candidates)
        why = "The form of the candidates must not matter."
        require_same(picks, expected, f"from candidates as {name}", why)


def check_candidates_limit_picks_only(strategy: Any) -> None:
    """Check that rows that may not be picked still count in references, filters and scales."""
    if strategy.query_tags().utilities != "gain":
        return
    problem = model_problem(strategy)
    _, everywhere = ask(seeded(strategy), problem, return_utilities=True)
    allowed = np.array(ALLOWED)
    _, somewhere = ask(seeded(strategy), problem, candidates=allowed, return_utilities=True)
    ours, theirs = somewhere[0, allowed], everywhere[0, allowed]
    require(
        np.allclose(ours, theirs, rtol=1e-6, atol=1e-9),
        f"Expected utilities {theirs} of the first step for the candidates, as without the limit. "
        f"Got {ours}. candidates must only limit what may be picked.",
    )


def check_bad_candidates(strategy: Any) -> None:
    """Check that invalid candidates raise, by name."""
    problem = model_problem(strategy)
    bad = {
        "that repeat a position": [3, 4, 4],
        "that are negative": [-1, 2],
        "beyond the pool": [0, N_POOL],
        "as a mask of another length": np.ones(N_POOL + 1, dtype=bool),
        "as real numbers": np.array([0.5, 2.0]),
        "of two dimensions": np.array([[0, 1], [2, 3]]),
        "that are none at all": [],
        "as a mask without a True": np.zeros(N_POOL, dtype=bool),
    }
    for name, candidates in bad.items():
        require_error(
            partial(ask, seeded(strategy), problem, 1, candidates=candidates),
            "candidates",
            f"for candidates {name}",
            "Guessing what was meant selects the wrong rows.",
        )


def check_empty_pool(strategy: Any) -> None:
    """Check that a pool without rows raises before the model predicts."""
    full = model_problem(strategy)
    empty = full.with_rows(full.X_pool[:0], full.X_labeled)
    why = "A loop that has labeled everything needs a clear message."
    require_error(
        partial(ask, seeded(strategy), empty, 1), "candidates", "from query for an empty pool", why
    )
    nothing = samples_problem(strategy, kinds(strategy)[0])
    nothing = nothing.take(np.arange(0))
    require_error(
        partial(choose, seeded(strategy), nothing, 1),
        "candidates",
        "from select for no samples",
        why,
    )


def check_batch_sizes(strategy: Any) -> None:
    """Check that a batch of all candidates is possible, and that a larger one warns."""
    problem = model_problem(strategy)
    for candidates in (None, np.array(ALLOWED)):
        allowed = np.arange(N_POOL) if candidates is None else candidates
        n_allowed = len(allowed)
        for size in (n_allowed, n_allowed + 1):
            picks, warned = recorded(
                partial(ask, seeded(strategy), problem, size, candidates=candidates)
            )
            case = f"with batch_size={size} of {n_allowed} candidates"
            require_valid(picks, n_allowed, allowed, case)
            clipped = any(issubclass(category, BatchClippedWarning) for category in warned)
            require(
                clipped == (size > n_allowed),
                f"Expected {'a' if size > n_allowed else 'no'} BatchClippedWarning {case}. Got "
                f"{warned}. Users must notice that they get fewer rows than requested.",
            )
    picks = ask(seeded(strategy), problem, np.int64(2))
    why = "Sizes are often results of numpy."
    require_same(
        picks, ask(seeded(strategy), problem, 2), "for batch_size=np.int64(2) as for 2", why
    )


def check_bad_batch_sizes(strategy: Any) -> None:
    """Check that batch sizes that are not integers >= 1 raise, by name."""
    problem = model_problem(strategy)
    for size in (0, -1, True, 2.0, "2", None):
        require_error(
            partial(ask, seeded(strategy), problem, size),
            "batch_size",
            f"for batch_size={size!r}",
            "A batch of an unintended size wastes labels.",
        )


def check_repeated_rows(strategy: Any) -> None:
    """Check that repeated rows are treated as different rows."""
    problem = model_problem(strategy, n_pool=2)
    pool = np.repeat(problem.X_pool, 5, axis=0)
    repeated = problem.with_rows(pool, problem.X_labeled)
    for seed in range(1 if strategy.query_tags().deterministic else REPEATS):
        picks = ask(seeded(strategy, seed), repeated, 6)
        case = f"from 5 copies each of two rows (random_state={seed})"
        require_valid(picks, 6, np.arange(10), case)


def check_utilities(strategy: Any) -> None:
    """Check that row t of the utilities is the one that pick t was chosen from."""
    problem = model_problem(strategy)
    samples = samples_problem(strategy, kinds(strategy)[0])
    for candidates in (None, np.array([1, 2, 5, 8, 11, 14, 15])):
        options = {"candidates": candidates}
        for name, call, source in (("query", ask, problem), ("select", choose, samples)):
            expected = call(seeded(strategy), source, **options)
            answer = call(seeded(strategy), source, return_utilities=True, **options)
            require(
                isinstance(answer, tuple) and len(answer) == 2,
                f"Expected (picks, utilities) from {name} with return_utilities. Got {answer!r}.",
            )
            picks, rows = answer
            why = "Returning utilities must not change the batch."
            require_same(picks, expected, f"from {name} with and without utilities", why)
            n_pool = len(source.X_pool)
            allowed = np.isin(
                np.arange(n_pool), np.arange(n_pool) if candidates is None else candidates
            )
            require_rows(rows, picks, allowed, strategy.query_tags().utilities == "gain", name)


def check_gains(strategy: Any) -> None:
    """Check that only equal gains tie, so that no gain of 0 precedes a positive one."""
    if strategy.query_tags().utilities != "gain":
        return
    for kind in kinds(strategy):
        problem = _half_certain(samples_problem(strategy, kind))
        picks, rows = choose(seeded(strategy), problem, return_utilities=True)
        for t, row in enumerate(rows):
            tied = np.flatnonzero(row == np.nanmax(row))
            alone = [_alone(strategy, problem, picks[:t], x) for x in tied.tolist()]
            gains = np.array([gain for gain in alone if gain is not None])
            require(
                np.ptp(gains) <= 1e-9 * np.nanmax(np.abs(rows)) if len(gains) else True,
                f"Expected equal gains of the rows {tied.tolist()}, which tie at pick {t} ({kind} "
                f"samples). Got {gains.tolist()} for each of them alone. Ties are broken by "
                "position, so that rows without any gain may precede others.",
            )


def _half_certain(problem: Problem) -> Problem:
    """Return a problem whose first rows, half of them, have draws that all agree."""
    values = np.array(problem.source.values)
    half = len(values) // 2
    values[:half] = values[:half, :1]
    return problem.with_source(PredictionSamples(values, problem.source.kind))


def _alone(strategy: Any, problem: Problem, before: np.ndarray, row: int) -> float | None:
    """Return the gain of a row after these picks if no other may be picked; None if unknown."""
    picks, rows = choose(
        seeded(strategy),
        problem,
        len(before) + 1,
        candidates=np.append(before, row),
        return_utilities=True,
    )
    return float(rows[-1, row]) if np.array_equal(picks, np.append(before, row)) else None
