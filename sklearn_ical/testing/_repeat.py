"""Checks that the same question gets the same answer: seeds, processes, chunks, permutations."""

import os
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
import sklearn

from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._data import (
    Problem,
    ask,
    choose,
    fixed_options,
    has_ties,
    model_problem,
    samples_problem,
    seeded,
)
from sklearn_ical.testing._demand import demand, demand_same


def check_equal_seeds(strategy: Any) -> None:
    """An equal integer gives an equal answer, twice in one object and in fresh ones."""
    tags = strategy.query_tags()
    names = strategy.get_params(deep=True)
    demand(
        tags.deterministic or any(name.split("__")[-1] == "random_state" for name in names),
        f"Expected a parameter random_state without the tag deterministic. Got {sorted(names)}. "
        "An experiment that cannot be seeded cannot be repeated.",
    )
    problems = [(ask, model_problem(strategy))]
    problems += [(choose, samples_problem(strategy, kind)) for kind in tags.kinds]
    for call, problem in problems:
        first = seeded(strategy, 3)
        expected = call(first, problem)
        why = "Equal seeds are how an experiment is repeated."
        demand_same(call(first, problem), expected, "from the same object asked again", why)
        demand_same(call(seeded(strategy, 3), problem), expected, "from a fresh object", why)


def check_equal_generators(strategy: Any) -> None:
    """Generators in equal state give equal answers, and one that is used has moved on."""
    problem = model_problem(strategy)
    for make in (np.random.default_rng, np.random.RandomState):
        generators = [make(5), make(5)]
        before = joblib.hash(generators[0])
        first, second = (ask(seeded(strategy, generator), problem) for generator in generators)
        case = f"from two {type(generators[0]).__name__}s in equal state"
        demand_same(second, first, case, "A generator is a seed with a memory.")
        demand(
            strategy.query_tags().deterministic or joblib.hash(generators[0]) != before,
            "Expected a draw from the generator given as random_state. Got it back untouched. Two "
            "calls with one generator must be free to differ, as everywhere in scikit-learn.",
        )


def check_deterministic_tag(strategy: Any) -> None:
    """The tag `deterministic` is true to its word: no random state changes the picks."""
    if not strategy.query_tags().deterministic:
        return
    for kind in strategy.query_tags().kinds:
        problem = samples_problem(strategy, kind)
        expected = choose(seeded(strategy, 0), problem)
        for seed in range(1, 4):
            picks = choose(seeded(strategy, seed), problem)
            why = "Tools repeat random strategies over seeds, and deterministic ones not."
            what = f"for random_state={seed} as for 0, by the tag deterministic ({kind} samples)"
            demand_same(picks, expected, what, why)


def check_processes(strategy: Any) -> None:
    """Another process gives the answer of this one."""
    problem = model_problem(strategy)
    expected = ask(seeded(strategy), problem)
    # Two workers, as a single one would be this process.
    workers = joblib.Parallel(n_jobs=2, backend="loky")
    answers = workers(
        joblib.delayed(_answer_and_process)(seeded(strategy), problem) for _ in range(2)
    )
    for picks, process in answers:
        what = f"from process {process} as from process {os.getpid()}"
        why = "Hash order, addresses and counters must not decide what is labeled."
        demand_same(picks, expected, what, why)


def _answer_and_process(strategy: Any, problem: Problem) -> tuple[np.ndarray, int]:
    return ask(strategy, problem), os.getpid()


def check_chunks(strategy: Any) -> None:
    """Predictions read in chunks of 1, 7 or all rows give the same picks."""
    problems = [(ask, model_problem(strategy))]
    problems += [(choose, samples_problem(strategy, kind)) for kind in strategy.query_tags().kinds]
    why = "Memory at hand must not decide what is labeled."
    for call, problem in problems:
        expected = call(seeded(strategy), problem)
        for rows in (1, 7, 10**9):
            with patch("sklearn_ical._array.chunk_rows", lambda row_bytes, rows=rows: rows):
                picks = call(seeded(strategy), problem)
            demand_same(picks, expected, f"in chunks of {rows} rows", why)
        with sklearn.config_context(working_memory=1e-6):
            picks = call(seeded(strategy), problem)
        demand_same(picks, expected, "with a working_memory of one byte", why)


def check_permuted_rows(strategy: Any) -> None:
    """Rows in another order are picked just so, wherever predictions alone decide."""
    for problem, options in _decided(strategy):
        order = np.random.default_rng(10).permutation(problem.source.n_points)
        # Positions follow their rows to their new places.
        moved = {name: np.argsort(order)[positions] for name, positions in options.items()}
        picks = choose(seeded(strategy), problem.take(order), **moved)
        expected = choose(seeded(strategy), problem, **options)
        what = f"for permuted rows ({problem.source.kind} samples)"
        demand_same(order[picks], expected, what, "The order of the pool is an accident.")


def check_permuted_draws(strategy: Any) -> None:
    """Draws in another order change nothing, wherever predictions alone decide."""
    for problem, options in _decided(strategy):
        order = np.random.default_rng(11).permutation(problem.source.n_draws)
        permuted = problem.of_samples(problem.source.take_draws(order))
        what = f"for permuted draws ({problem.source.kind} samples)"
        demand_same(
            choose(seeded(strategy), permuted, **options),
            choose(seeded(strategy), problem, **options),
            what,
            "Posterior draws are a set.",
        )


def check_permuted_classes(strategy: Any) -> None:
    """Classes in another order change nothing, wherever predictions alone decide."""
    for problem, options in _decided(strategy):
        values, kind = problem.source.values, problem.source.kind
        if kind == "value":
            continue
        order = np.array([2, 0, 1])
        values = values[:, :, order] if kind == "proba" else order[values]
        permuted = problem.of_samples(PredictionSamples(values, kind))
        demand_same(
            choose(seeded(strategy), permuted, **options),
            choose(seeded(strategy), problem, **options),
            f"for permuted classes ({kind} samples)",
            "Class labels are names, not numbers.",
        )


def _decided(strategy: Any) -> list[tuple[Problem, dict[str, Any]]]:
    """Return problems without ties, and options under which predictions alone decide them."""
    decided = []
    for kind in strategy.query_tags().kinds:
        problem = samples_problem(strategy, kind)
        options = fixed_options(strategy, problem)
        if options is not None and not has_ties(seeded(strategy), problem, **options):
            decided.append((problem, options))
    return decided
