"""Checks of how draws are made: how many, from which random state, copied, in other processes."""

import os
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import joblib
import numpy as np

from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._answers import close, require_same_answers, same_answers, tolerance
from sklearn_ical.testing._require import require, require_error, require_global_generators
from sklearn_ical.testing._sampler_case import SamplerCase

# Number of draws of which some differ, if any draws of the posterior do.
TRIES = 20
# Other processes have other numbers of threads, and so other rounding inside a model.
PROCESS_TOLERANCE = 1e-6


def check_fewer_draws(case: SamplerCase) -> None:
    """Check that fewer draws are a subset of a finite ensemble in order, else the first of many."""
    few, n_draws = case.few, case.draws.n_draws
    require(
        case.few_draws.n_draws == case.few_samples.n_draws == few,
        f"Expected {few} draws for n_draws={few}. Got {case.few_draws.n_draws}, with samples of "
        f"{case.few_samples.n_draws}. The cost is the number of draws times the number of rows.",
    )
    explicit = case.sampler.draw(np.int64(n_draws), random_state=0)(case.X)
    why = "None must only set the number of draws."
    require_same_answers(explicit, case.samples, f"from n_draws={n_draws} as from None", why)
    if case.finite:
        _require_kind(case)
        _require_subset(case)
        return
    first = np.asarray(case.samples.values)[:, :few]
    require(
        close(case.few_samples.values, first, tolerance(first, joint=case.draws.joint)),
        f"Expected the first {few} of {n_draws} draws for n_draws={few} and the same random_state. "
        "Got others. More draws should refine an estimate instead of starting again.",
    )


def _require_kind(case: SamplerCase) -> None:
    """Raise if a member alone has another kind or other classes than the ensemble."""
    draws = case.draws
    if draws.weights is not None and not np.all(draws.weights):
        return  # members of weight 0 may refuse to be drawn alone
    for seed in range(TRIES):
        single = case.sampler.draw(1, random_state=seed)
        require(
            single.kind == draws.kind and np.array_equal(single.classes, draws.classes),
            f"Expected a draw of kind {draws.kind!r} and classes {draws.classes}, as all draws. "
            f"Got {single.kind!r} and {single.classes} for n_draws=1 and random_state={seed}. The "
            "meaning of a column must not depend on the members drawn.",
        )


def _require_subset(case: SamplerCase) -> None:
    """Raise if draws are not members in their order, with their share of the weights."""
    full, part = np.asarray(case.samples.values), np.asarray(case.few_samples.values)
    rtol = tolerance(full)
    taken: list[int] = []
    for k in range(case.few):
        start = taken[-1] + 1 if taken else 0
        equal = (j for j in range(start, full.shape[1]) if close(part[:, k], full[:, j], rtol))
        member = next(equal, None)
        require(
            member is not None,
            f"Expected {case.few} of the {full.shape[1]} draws in their order. Got draw {k}, which "
            f"is none of those after {taken}. A subset of an ensemble has no member twice.",
        )
        taken.append(int(member or 0))
    functions = full.swapaxes(0, 1).reshape(full.shape[1], -1)
    if case.draws.weights is None or len(np.unique(functions, axis=0)) < len(functions):
        return  # which of two equal members was taken does not show
    share = np.asarray(case.draws.weights)[taken]
    require(
        np.allclose(case.few_draws.weights, share / share.sum(), rtol=1e-9, atol=0),
        f"Expected the weights {share / share.sum()} for the members {taken} of weights "
        f"{case.draws.weights}. Got {case.few_draws.weights}. Weights belong to members.",
    )


def check_more_draws(case: SamplerCase) -> None:
    """Check that only a finite ensemble raises for more draws than it has members."""
    more = case.draws.n_draws + 1
    if case.seeds_agree and (case.draws.n_draws > 1 or case.finite):
        require_error(
            partial(case.sampler.draw, more, random_state=0),
            "n_draws",
            f"for {more} draws, where all seeds give the same {case.draws.n_draws}",
            "A member drawn twice reduces the apparent uncertainty.",
        )
        return
    got = case.sampler.draw(more, random_state=0).n_draws
    require(got == more, f"Expected {more} draws of a posterior for n_draws={more}. Got {got}.")


def check_bad_n_draws(case: SamplerCase) -> None:
    """Check that numbers of draws that are not integers >= 1 raise, by name."""
    for bad in (0, -1, True, 2.0, "3"):
        require_error(
            partial(case.sampler.draw, bad, random_state=0),
            "n_draws",
            f"for n_draws={bad!r}",
            "A wrong number would only be noticed after the draws are made.",
        )


def check_equal_random_states(case: SamplerCase) -> None:
    """Check that equal integers, and generators in equal state, give equal draws."""
    why = "Experiments are repeated by equal seeds."
    for make in (int, np.int64, np.random.default_rng, np.random.RandomState):
        first, second = (case.sampler.draw(case.few, random_state=make(7)) for _ in range(2))
        what = f"for two equal {make.__name__} seeds"
        require_same_answers(second(case.X), first(case.X), what, why)


def check_used_generators(case: SamplerCase) -> None:
    """Check that a generator that was used gives other draws the next time."""
    if case.draws.n_draws == 1:
        return
    for make in (np.random.default_rng, np.random.RandomState):
        generator = make(5)
        answers = _answers(case, generator)
        first = next(answers)
        require(
            any(not same_answers(other, first) for other in answers),
            f"Expected a {type(generator).__name__} to give other draws the second time. Got the "
            f"same {TRIES} times. Two calls with one generator must be free to differ, as "
            "everywhere in scikit-learn.",
        )


def _answers(case: SamplerCase, generator: Any) -> Iterator[PredictionSamples]:
    """Yield the predictions of few draws, repeatedly from one generator."""
    for _ in range(TRIES):
        yield case.sampler.draw(case.few, random_state=generator)(case.X)


def check_bad_random_states(case: SamplerCase) -> None:
    """Check that an invalid random_state raises, by name."""
    for bad in (1.5, "seed", -1):
        require_error(
            partial(case.sampler.draw, case.few, random_state=bad),
            "random_state",
            f"for random_state={bad!r}",
            "A seed treated as None gives an experiment that cannot be repeated.",
        )


def check_drawing_generators(case: SamplerCase) -> None:
    """Check that drawing and evaluating leave the global generators unchanged."""
    require_global_generators(lambda: case.sampler.draw(case.few, random_state=0)(case.X), "a draw")
    require_global_generators(lambda: case.sampler.draw(case.few)(case.X), "a draw")


def check_pickled_sampler(case: SamplerCase) -> None:
    """Check that a pickled sampler gives the same draws."""
    again = pickle.loads(pickle.dumps(case.sampler)).draw(case.few, random_state=0)
    why = "Samplers are sent to other machines, and experiments are resumed."
    require_same_answers(again(case.X), case.few_samples, "from a pickled sampler", why)


def check_pickled_draws(case: SamplerCase) -> None:
    """Check that pickled draws give the same predictions."""
    again = pickle.loads(pickle.dumps(case.few_draws))
    why = "Draws fixed today must be the functions that are evaluated tomorrow."
    require_same_answers(again(case.X), case.few_samples, "from pickled draws", why)


def check_other_processes(case: SamplerCase) -> None:
    """Check that another process draws the same functions, and evaluates them equally."""
    # Two workers, as a single one would be this process.
    workers = joblib.Parallel(n_jobs=2, backend="loky")
    answers = workers(
        joblib.delayed(_answers_and_process)(case.sampler, case.few_draws, case.few, case.X)
        for _ in range(2)
    )
    why = "Draws must not depend on hash order, addresses or counters."
    for drawn, evaluated, process in answers:
        here = f"in process {process} as in process {os.getpid()}"
        rtol = max(PROCESS_TOLERANCE, tolerance(case.samples.values))
        require_same_answers(drawn, case.few_samples, f"of draws made {here}", why, rtol=rtol)
        require_same_answers(evaluated, case.few_samples, f"of draws sent {here}", why, rtol=rtol)


def _answers_and_process(
    sampler: Any, draws: Any, n_draws: int, X: Any
) -> tuple[PredictionSamples, PredictionSamples, int]:
    return sampler.draw(n_draws, random_state=0)(X), draws(X), os.getpid()
