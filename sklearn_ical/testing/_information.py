"""Checks of what is passed with a pool: models, labeled rows, reference rows; large pools."""

from functools import partial
from typing import Any

import numpy as np

from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._data import (
    BATCH,
    N_POOL,
    ask,
    choose,
    kinds,
    labeled_rows,
    model_problem,
    precomputed_features,
    reads,
    reads_model,
    reads_predictions,
    reference_positions,
    samples_problem,
    seeded,
    uses,
    with_features,
)
from sklearn_ical.testing._require import require, require_error, require_same, require_valid

REFERENCES = 5


def check_information(strategy: Any) -> None:
    """Check that information in the tags is used, and that any other changes nothing."""
    problem = model_problem(strategy)
    features, labeled = precomputed_features()
    of_features = {"features": features, "labeled_features": labeled}
    information = {
        "labeled": {"X_labeled": problem.X_labeled, "y_labeled": problem.y_labeled},
        "reference": {"X_reference": problem.X_labeled},
        "positions": {"reference": reference_positions(strategy, N_POOL)},
        "features": {**of_features, "reference_features": labeled},
    }
    expected = ask(seeded(strategy), problem)
    for name, options in information.items():
        picks = ask(seeded(strategy), problem, **options)
        _require_used(strategy, picks, expected, name, f"query with {' and '.join(options)}")
    if uses(strategy, "reference"):
        _require_reference_counts(strategy)
    for kind in kinds(strategy):
        samples = samples_problem(strategy, kind)
        n_points = len(samples.X_pool)
        others = samples.source[np.arange(7)]
        features, labeled = precomputed_features(n_points)
        information = {
            "labeled": {"labeled_samples": others},
            "reference": {"reference_samples": others},
            "positions": {"reference": reference_positions(strategy, n_points)},
            "features": {"features": features, "labeled_features": labeled},
        }
        expected = choose(seeded(strategy), samples)
        for name, options in information.items():
            if name in ("labeled", "reference") and not reads_predictions(strategy):
                continue
            picks = choose(seeded(strategy), samples, **options)
            case = f"select with {kind} samples and {' and '.join(options)}"
            _require_used(strategy, picks, expected, name, case)


def _require_used(strategy: Any, picks: Any, expected: Any, name: str, case: str) -> None:
    """Raise if picks are not valid, or not the same as without information that is not used."""
    used = uses(strategy, "reference" if name == "positions" else name)
    if used:
        require_valid(picks, BATCH, np.arange(N_POOL), f"from {case}")
        return
    why = "Strategies are interchangeable in a loop, which passes the same to all of them."
    require_same(picks, expected, f"from {case}, which the tags leave out, as without", why)


def _require_reference_counts(strategy: Any) -> None:
    """Raise if reference positions have no influence on the picks."""
    problem = samples_problem(strategy, kinds(strategy)[0])
    sets = [reference_positions(strategy, len(problem.X_pool), seed) for seed in range(REFERENCES)]
    batches = [choose(seeded(strategy), problem, reference=positions) for positions in sets]
    require(
        any(not np.array_equal(picks, batches[0]) for picks in batches),
        f"Expected other picks for some of {REFERENCES} sets of reference positions. Got "
        f"{batches[0].tolist()} for all. By the tags, reference rows are used.",
    )


def check_missing_labels(strategy: Any) -> None:
    """Check that labeled rows are required where they are read, and may be missing elsewhere."""
    if not uses(strategy, "labeled"):
        return
    problem = model_problem(strategy)
    call = partial(seeded(strategy).query, problem.source, problem.X_pool, BATCH)
    if reads(strategy, "labeled"):
        why = "A strategy must not treat missing labels as an empty set of them."
        require_error(call, "X_labeled", "from query without labeled rows, which are read", why)
        return
    expected = call()
    require_valid(expected, BATCH, np.arange(N_POOL), "from query without labeled rows")
    picks = call(X_labeled=problem.X_labeled[:0], y_labeled=problem.y_labeled[:0])
    why = "The first round of a loop has no labels yet."
    require_same(picks, expected, "from no labeled rows as without X_labeled", why)


def check_without_model(strategy: Any) -> None:
    """Check that a strategy that reads no model works without one, and ignores a given one."""
    if reads_model(strategy):
        return
    problem = model_problem(strategy)
    expected = ask(seeded(strategy), problem.with_source(None))
    require_valid(expected, BATCH, np.arange(N_POOL), "from query with None as the model")
    why = "The first round of a loop has no model yet."
    picks = choose(seeded(strategy), problem)
    require_same(picks, expected, "from select(X_pool=...) as from query without a model", why)
    untouchable = problem.with_source(_Untouchable())
    if not uses(strategy, "model"):
        for model in (problem, untouchable):
            picks = ask(seeded(strategy), model)
            require_same(picks, expected, "with a model as without", why)
    features = with_features(strategy, *precomputed_features())
    expected = ask(seeded(strategy), untouchable, **features)
    rows = labeled_rows(strategy, problem)
    picks = seeded(strategy).select(None, BATCH, **rows, **features)
    require_same(picks, expected, "from select(features=...) as from query", why)


class _Untouchable:
    """A model whose attributes must not be used."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(
            f"Expected no use of the model. Got an access to its {name!r}. A model that is not in "
            "the tags may not be fitted yet, and predictions may take hours."
        )


def check_max_pool(strategy: Any) -> None:
    """Check that a pool of more rows than the tag allows raises before any work."""
    most = strategy.query_tags().max_pool
    if most is None:
        return
    X_pool = np.zeros((most + 1, 4))
    problem = model_problem(strategy)
    rows = labeled_rows(strategy, problem)
    why = "Hours of work should be avoided by an early error with a way out."
    query = partial(seeded(strategy).query, _Untouchable(), X_pool, BATCH, **rows)
    require_error(query, "FilteredQuery", f"from query for {most + 1} rows, by max_pool", why)
    kind = kinds(strategy)[0]
    n_draws = strategy.query_tags().min_draws
    shape = (most + 1, n_draws, 1) if kind == "proba" else (most + 1, n_draws)
    samples = PredictionSamples(np.ones(shape, dtype=int if kind == "label" else float), kind)
    given = samples if reads_predictions(strategy) else None
    select = partial(seeded(strategy).select, given, BATCH, X_pool=X_pool, **rows)
    require_error(select, "FilteredQuery", f"from select for {most + 1} rows, by max_pool", why)
