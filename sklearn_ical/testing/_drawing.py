"""Checks of how draws are made: how many, from which random state, copied, in other processes."""

import os
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import joblib
import numpy as np

from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._answers import close, demand_same_answers, same_answers, tolerance
from sklearn_ical.testing._demand import demand, demand_global_generators, demand_refusal
from sklearn_ical.testing._sampler_case import SamplerCase

# Draws among which some differ, in a posterior where any do.
TRIES = 20
# Other processes have other numbers of threads, and so other roundings inside a model.
PROCESS_TOLERANCE = 1e-6


def check_fewer_draws(case: SamplerCase) -> None:
    """Fewer draws are a subset of a finite ensemble in its order, else the first of many."""
    few, n_draws = case.few, case.draws.n_draws
    demand(
        case.few_draws.n_draws == case.few_samples.n_draws == few,
        f"Expected {few} draws for n_draws={few}. Got {case.few_draws.n_draws}, with samples of "
        f"{case.few_samples.n_draws}. Cost is the number of draws times the number of rows.",
    )
    explicit = case.sampler.draw(np.int64(n_draws), random_state=0)(case.X)
    why = "None is a default, not a method."
    demand_same_answers(explicit, case.samples, f"from n_draws={n_draws} as from None", why)
    if case.finite:
        _demand_kind(case)
        _demand_subset(case)
        return
    first = np.asarray(case.samples.values)[:, :few]
    demand(
        close(case.few_samples.values, first, tolerance(first, joint=case.draws.joint)),
        f"Expected the first {few} of {n_draws} draws for n_draws={few} and the same random_state. "
        "Got others. More draws then refine an estimate instead of starting anew.",
    )


def _demand_kind(case: SamplerCase) -> None:
    """Demand that any member alone has the kind and the classes of the ensemble."""
    draws = case.draws
    if draws.weights is not None and not np.all(draws.weights):
        return  # members of weight 0 may refuse to be drawn alone
    for seed in range(TRIES):
        single = case.sampler.draw(1, random_state=seed)
        demand(
            single.kind == draws.kind and np.array_equal(single.classes, draws.classes),
            f"Expected a draw of kind {draws.kind!r} and classes {draws.classes}, as all draws. "
            f"Got {single.kind!r} and {single.classes} for n_draws=1 and random_state={seed}. "
            "Which members are drawn must not decide what a column means.",
        )


def _demand_subset(case: SamplerCase) -> None:
    """Demand members of the full ensemble in member order, with their part of the weights."""
    full, part = np.asarray(case.samples.values), np.asarray(case.few_samples.values)
    rtol = tolerance(full)
    taken: list[int] = []
    for k in range(case.few):
        start = taken[-1] + 1 if taken else 0
        equal = (j for j in range(start, full.shape[1]) if close(part[:, k], full[:, j], rtol))
        found = next(equal, None)
        demand(
            found is not None,
            f"Expected {case.few} of the {full.shape[1]} draws in their order. Got draw {k}, which "
            f"is none of those after {taken}. A subset of an ensemble has no member twice.",
        )
        taken.append(int(found or 0))
    functions = full.swapaxes(0, 1).reshape(full.shape[1], -1)
    if case.draws.weights is None or len(np.unique(functions, axis=0)) < len(functions):
        return  # which of two equal members was taken does not show
    share = np.asarray(case.draws.weights)[taken]
    demand(
        np.allclose(case.few_draws.weights, share / share.sum(), rtol=1e-9, atol=0),
        f"Expected the weights {share / share.sum()} for the members {taken} of weights "
        f"{case.draws.weights}. Got {case.few_draws.weights}. Weights belong to members.",
    )


def check_more_draws(case: SamplerCase) -> None:
    """A finite ensemble has no more draws than members; a posterior has as many as one wants."""
    more = case.draws.n_draws + 1
    if case.seeds_agree and (case.draws.n_draws > 1 or case.finite):
        demand_refusal(
            partial(case.sampler.draw, more, random_state=0),
            "n_draws",
            f"for {more} draws, where all seeds give the same {case.draws.n_draws}",
            "A member drawn twice looks like certainty.",
        )
        return
    got = case.sampler.draw(more, random_state=0).n_draws
    demand(got == more, f"Expected {more} draws of a posterior for n_draws={more}. Got {got}.")


def check_bad_n_draws(case: SamplerCase) -> None:
    """Numbers of draws that are no integers >= 1 are refused by name."""
    for bad in (0, -1, True, 2.0, "3"):
        demand_refusal(
            partial(case.sampler.draw, bad, random_state=0),
            "n_draws",
            f"for n_draws={bad!r}",
            "A wrong number is noticed when the draws are paid for.",
        )


def check_equal_random_states(case: SamplerCase) -> None:
    """An equal random state gives equal draws: integers, and generators in equal state."""
    why = "Equal seeds are how an experiment is repeated."
    for make in (int, np.int64, np.random.default_rng, np.random.RandomState):
        first, second = (case.sampler.draw(case.few, random_state=make(7)) for _ in range(2))
        what = f"for two equal {make.__name__} seeds"
        demand_same_answers(second(case.X), first(case.X), what, why)


def check_used_generators(case: SamplerCase) -> None:
    """A generator that was used has moved on, and gives other draws."""
    if case.draws.n_draws == 1:
        return
    for make in (np.random.default_rng, np.random.RandomState):
        generator = make(5)
        answers = _answers(case, generator)
        first = next(answers)
        demand(
            any(not same_answers(other, first) for other in answers),
            f"Expected a {type(generator).__name__} to give other draws the second time. Got the "
            f"same {TRIES} times. Two calls with one generator must be free to differ, as "
            "everywhere in scikit-learn.",
        )


def _answers(case: SamplerCase, generator: Any) -> Iterator[PredictionSamples]:
    """Yield the answers of few draws, again and again from one generator."""
    for _ in range(TRIES):
        yield case.sampler.draw(case.few, random_state=generator)(case.X)


def check_bad_random_states(case: SamplerCase) -> None:
    """What is no random state is refused by name."""
    for bad in (1.5, "seed", -1):
        demand_refusal(
            partial(case.sampler.draw, case.few, random_state=bad),
            "random_state",
            f"for random_state={bad!r}",
            "A seed taken for None gives an experiment that cannot be repeated.",
        )


def check_drawing_generators(case: SamplerCase) -> None:
    """Neither drawing nor evaluating touches the global generators."""
    demand_global_generators(lambda: case.sampler.draw(case.few, random_state=0)(case.X), "a draw")
    demand_global_generators(lambda: case.sampler.draw(case.few)(case.X), "a draw")


def check_pickled_sampler(case: SamplerCase) -> None:
    """A pickled sampler comes back and gives the same draws."""
    again = pickle.loads(pickle.dumps(case.sampler)).draw(case.few, random_state=0)
    why = "Experiments are sent to other machines, and resumed."
    demand_same_answers(again(case.X), case.few_samples, "from a pickled sampler", why)


def check_pickled_draws(case: SamplerCase) -> None:
    """Pickled draws come back and give the same answers."""
    again = pickle.loads(pickle.dumps(case.few_draws))
    why = "Draws fixed today must be the functions that are evaluated tomorrow."
    demand_same_answers(again(case.X), case.few_samples, "from pickled draws", why)


def check_other_processes(case: SamplerCase) -> None:
    """Another process draws the same functions, and answers the same for draws of this one."""
    # Two workers, as a single one would be this process.
    workers = joblib.Parallel(n_jobs=2, backend="loky")
    answers = workers(
        joblib.delayed(_answers_and_process)(case.sampler, case.few_draws, case.few, case.X)
        for _ in range(2)
    )
    why = "Hash order, addresses and counters must not decide what is drawn."
    for drawn, evaluated, process in answers:
        here = f"in process {process} as in process {os.getpid()}"
        rtol = max(PROCESS_TOLERANCE, tolerance(case.samples.values))
        demand_same_answers(drawn, case.few_samples, f"of draws made {here}", why, rtol=rtol)
        demand_same_answers(evaluated, case.few_samples, f"of draws sent {here}", why, rtol=rtol)


def _answers_and_process(
    sampler: Any, draws: Any, n_draws: int, X: Any
) -> tuple[PredictionSamples, PredictionSamples, int]:
    return sampler.draw(n_draws, random_state=0)(X), draws(X), os.getpid()
