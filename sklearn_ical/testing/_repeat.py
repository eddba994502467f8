"""Checks that results are repeatable: seeds, processes, chunks, permutations."""

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
    kinds,
    model_problem,
    reads_predictions,
    samples_problem,
    seeded,
)
from sklearn_ical.testing._require import require, require_same

CHUNK = 7


def check_equal_seeds(strategy: Any) -> None:
    """Check that equal integer seeds give equal results, from the same object and from another."""
    tags = strategy.query_tags()
    names = strategy.get_params(deep=True)
    require(
        tags.deterministic or any(name.split("__")[-1] == "random_state" for name in names),
        f"Expected a parameter random_state without the tag deterministic. Got {sorted(names)}. "
        "An experiment that cannot be seeded cannot be repeated.",
    )
    problems = [(ask, model_problem(strategy))]
    problems += [(choose, samples_problem(strategy, kind)) for kind in kinds(strategy)]
    for call, problem in problems:
        first = seeded(strategy, 3)
        expected = call(first, problem)
        why = "Experiments are repeated by equal seeds."
        require_same(call(first, problem), expected, "from the same object in a second call", why)
        require_same(call(seeded(strategy, 3), problem), expected, "from a fresh object", why)


def check_equal_generators(strategy: Any) -> None:
    """Check that generators in equal state give equal results, and are advanced by a call."""
    problem = model_problem(strategy)
    for make in (np.random.default_rng, np.random.RandomState):
        generators = [make(5), make(5)]
        before = joblib.hash(generators[0])
        first, second = (ask(seeded(strategy, generator), problem) for generator in generators)
        case = f"from two {type(generators[0]).__name__}s in equal state"
        require_same(second, first, case, "Only the state of the generator must matter.")
        require(
            strategy.query_tags().deterministic or joblib.hash(generators[0]) != before,
            "Expected a draw from the generator given as random_state. Got an unchanged "
            "generator. Two calls with one generator must be free to differ, as everywhere in "
            "scikit-learn.",
        )


def check_deterministic_tag(strategy: Any) -> None:
    """Check that with the tag `deterministic` no random state changes the picks."""
    if not strategy.query_tags().deterministic:
        return
    for kind in kinds(strategy):
        problem = samples_problem(strategy, kind)
        expected = choose(seeded(strategy, 0), problem)
        for seed in range(1, 4):
            picks = choose(seeded(strategy, seed), problem)
            why = "Tools repeat random strategies over seeds, but not deterministic ones."
            what = f"for random_state={seed} as for 0, by the tag deterministic ({kind} samples)"
            require_same(picks, expected, what, why)


def check_processes(strategy: Any) -> None:
    """Check that another process gives the same result as this one."""
    problem = model_problem(strategy)
    expected = ask(seeded(strategy), problem)
    # Two workers, as a single one would be this process.
    workers = joblib.Parallel(n_jobs=2, backend="loky")
    answers = workers(
        joblib.delayed(_answer_and_process)(seeded(strategy), problem) for _ in range(2)
    )
    for picks, process in answers:
        what = f"from process {process} as from process {os.getpid()}"
        why = "Picks must not depend on hash order, addresses or counters."
        require_same(picks, expected, what, why)


def _answer_and_process(strategy: Any, problem: Problem) -> tuple[np.ndarray, int]:
    return ask(strategy, problem), os.getpid()


def check_chunks(strategy: Any) -> None:
    """Check that predictions read in chunks of 7 rows, or row by row, give the same picks."""
    problems = [(ask, model_problem(strategy))]
    problems += [(choose, samples_problem(strategy, kind)) for kind in kinds(strategy)]
    why = "Picks must not depend on the memory available."
    for k, (call, problem) in enumerate(problems):
        expected = call(seeded(strategy), problem)
        with patch("sklearn_ical._array.chunk_rows", lambda row_bytes: CHUNK):
            picks = call(seeded(strategy), problem)
        require_same(picks, expected, f"in chunks of {CHUNK} rows", why)
        if k < 2:  # a model and one kind of samples: memory is used in the same way for others
            with sklearn.config_context(working_memory=1e-6):
                picks = call(seeded(strategy), problem)
            require_same(picks, expected, "with a working_memory of one byte", why)


def check_permuted_rows(strategy: Any) -> None:
    """Check that the order of the rows does not matter where only what is read decides."""
    for problem, options in _decided(strategy):
        order = np.random.default_rng(10).permutation(problem.source.n_points)
        # Positions follow their rows to their new places.
        moved = {name: np.argsort(order)[positions] for name, positions in options.items()}
        picks = choose(seeded(strategy), problem.take(order), **moved)
        expected = choose(seeded(strategy), problem, **options)
        what = f"for permuted rows ({problem.source.kind} samples)"
        require_same(order[picks], expected, what, "The order of the pool has no meaning.")


def check_permuted_draws(strategy: Any) -> None:
    """Check that the order of the draws does not matter where only what is read decides."""
    for problem, options in _decided(strategy) if reads_predictions(strategy) else ():
        order = np.random.default_rng(11).permutation(problem.source.n_draws)
        permuted = problem.with_source(problem.source.take_draws(order))
        what = f"for permuted draws ({problem.source.kind} samples)"
        require_same(
            choose(seeded(strategy), permuted, **options),
            choose(seeded(strategy), problem, **options),
            what,
            "Posterior draws have no order.",
        )


def check_permuted_classes(strategy: Any) -> None:
    """Check that the order of the classes does not matter where only what is read decides."""
    for problem, options in _decided(strategy) if reads_predictions(strategy) else ():
        values, kind = problem.source.values, problem.source.kind
        if kind == "value":
            continue
        order = np.array([2, 0, 1])
        values = values[:, :, order] if kind == "proba" else order[values]
        permuted = problem.with_source(PredictionSamples(values, kind))
        require_same(
            choose(seeded(strategy), permuted, **options),
            choose(seeded(strategy), problem, **options),
            f"for permuted classes ({kind} samples)",
            "Class labels are names, not numbers.",
        )


def _decided(strategy: Any) -> list[tuple[Problem, dict[str, Any]]]:
    """Return problems without ties, and options under which only what is read decides them."""
    decided = []
    for kind in kinds(strategy):
        problem = samples_problem(strategy, kind)
        options = fixed_options(strategy, problem)
        if options is not None and not has_ties(seeded(strategy), problem, **options):
            decided.append((problem, options))
    return decided
