"""The arguments of a call: rows, predictions and limits, checked against each other."""

import copy
from typing import Any, TypedDict

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import Numbers, Positions, PositionSets, QueryTags, Real
from sklearn_ical._validation import (
    check_budget,
    check_candidates,
    check_costs,
    clip_batch_size,
    is_data_set,
    without_data_set,
)
from sklearn_ical.pool._pool import RowSet, features_name
from sklearn_ical.samplers._base import evaluate_together, prepare
from sklearn_ical.samplers._models import labeled_rows_of, reads_arrays_only
from sklearn_ical.samples import PredictionSamples


class SelectOptions(TypedDict, total=False):
    """Keyword arguments of `select`, for type checkers."""

    candidates: Positions | None
    X_pool: Any
    X_labeled: Any
    y_labeled: Any
    features: Any
    labeled_features: Any
    reference_features: Any
    labeled_samples: PredictionSamples | Array | None
    reference_samples: PredictionSamples | Array | None
    reference: PositionSets | None
    costs: Numbers | None
    budget: Real | None


def row_set(
    name: str, given: dict[str, Any], caller: str, model: Any, like: RowSet | None = None
) -> RowSet | None:
    """Return rows with what was given for them: X, y, features and samples; None for nothing."""
    X, features, samples = (given.get(what) for what in ("X", "features", "samples"))
    if X is None and features is None and samples is None:
        return None
    if is_data_set(X) and reads_arrays_only(model):
        X = without_data_set(X, name)
    if samples is not None and not isinstance(samples, PredictionSamples):
        if not _array.is_array(samples):
            raise TypeError(
                f"{_samples_name(name)} must be PredictionSamples or an (n_points, n_draws, "
                f"n_classes) array of probabilities. Got {type(samples).__name__} in {caller}."
            )
        samples = PredictionSamples(samples)
    if samples is not None and like is not None:
        samples = _with_weights_of(like, samples)
    return RowSet(
        X,
        given.get("y"),
        name=name,
        caller=caller,
        model=model,
        samples=samples,
        features=features,
        like=like,
    )


def with_rows_of_learner(sets: dict[str, dict[str, Any]], model: Any) -> dict[str, dict[str, Any]]:
    """Return the rows of a call, with the labeled rows of a learner where none were given."""
    labeled = sets.get("labeled", {})
    X, y = labeled_rows_of(model)
    if X is None or labeled.get("X") is not None or labeled.get("y") is not None:
        return sets
    features = labeled.get("features")
    if features is None and sets["pool"].get("features") is not None:
        features = getattr(model, "labeled_features_", None)
    params = getattr(model, "fit_params_", None)
    return sets | {"labeled": {"X": X, "y": y, "features": features, "fit_params": params}}


def _with_weights_of(pool: RowSet, samples: PredictionSamples) -> PredictionSamples:
    """Return samples of the same draws, with the weights of the pool's if they have none."""
    weights = pool.given_weights
    if weights is None or samples.weights is not None or samples.n_draws != len(weights):
        return samples
    weighted = copy.copy(samples)
    weighted.weights = weights
    return weighted


def check_other_rows(rows: RowSet, pool: RowSet, *, with_features: bool) -> None:
    """Raise if labeled or reference rows do not go with the pool."""
    samples = _samples_name(rows.name)
    for what in ("kind", "n_draws") if hasattr(rows, "kind") else ():
        expected, got = getattr(pool, what), getattr(rows, what)
        if expected != got:
            raise ValueError(
                f"{samples} must come from the same draws as samples, with {what}={expected!r}. "
                f"Got {what}={got!r} in {pool.caller}."
            )
    if hasattr(rows, "kind") and not _equal_weights(rows.given_weights, pool.given_weights):
        raise ValueError(
            f"{samples} must come from the same draws as samples, with the weights of those, "
            f"{pool.given_weights}. Got weights {rows.given_weights} in {pool.caller}."
        )
    if rows.n_points == 0 and rows.name == "X_reference":
        raise ValueError(
            f"{samples if rows.X is None else rows.name} must have at least one row. Got 0 rows in "
            f"{pool.caller}; leave it out to compare with the pool."
        )
    if with_features and pool.has_features and not rows.has_features and rows.n_points:
        raise ValueError(
            f"{features_name(rows.name)} must be given with features, as {pool.caller} reads the "
            f"features of {rows.name} too. Got None; pass those of {rows.name}."
        )


def _equal_weights(weights: Any, others: Any) -> bool:
    """Return whether the weights of two sets of draws are equal up to rounding."""
    if weights is None or others is None:
        return weights is others
    return bool(np.allclose(weights, others, rtol=1e-9, atol=1e-12))


def with_draws(
    draws: Any, pool: RowSet, others: dict[str, RowSet]
) -> tuple[RowSet, dict[str, RowSet]]:
    """Return rows with the predictions of draws; joint draws are evaluated, on all rows at once.

    `others` are the labeled and the reference rows, where there are some.
    """
    if not getattr(draws, "joint", False):
        prepare(draws, pool.X)
        return pool.with_predictions(draws), {
            which: rows.with_predictions(draws) for which, rows in others.items()
        }
    if not others:
        return pool.with_predictions(draws(pool.X)), others
    (which, rows), *more = others.items()
    if more or (which == "labeled" and not hasattr(draws, "together")):
        raise ValueError(
            "X_labeled needs draws that can predict it beside the pool. Got precomputed "
            f"predictions, or joint draws and X_reference too, in {pool.caller}; use select with "
            "labeled_samples, or a strategy that does not use the labeled rows."
        )
    samples, other = evaluate_together(draws, pool.X, rows.X)
    return pool.with_predictions(samples), {which: rows.with_predictions(other)}


def _samples_name(name: str) -> str:
    """Return the name of the argument for the predictions of "X_pool", "X_labeled", ..."""
    return "samples" if name == "X_pool" else f"{name.removeprefix('X_')}_samples"


def check_limits(
    name: str,
    tags: QueryTags,
    rows: RowSet,
    batch_size: Any,
    candidates: Any,
    costs: Any,
    budget: Any,
) -> dict[str, Any]:
    """Check what limits the picks of a strategy, and return it as fields of a Pool."""
    caller = rows.caller
    if tags.max_pool is not None and rows.n_points > tags.max_pool:
        raise ValueError(
            f"X_pool must have at most {tags.max_pool} rows for {name}. Got {rows.n_points} in "
            f"{caller}; filter it first, as in FilteredQuery(MarginQuery(), {name}())."
        )
    allowed = check_candidates(candidates, rows.n_points, caller)
    if costs is not None:
        _check_gains(name, tags.utilities, caller)
        costs = check_costs(costs, rows.n_points, caller)[allowed]
    limit = check_budget(budget, costs, caller)
    return {
        "caller": caller,
        "n_points": rows.n_points,
        "candidates": allowed,
        "batch_size": clip_batch_size(batch_size, len(allowed), caller),
        "requested": int(batch_size),
        "costs": costs,
        "budget": limit,
    }


def _check_gains(name: str, utilities: str, caller: str) -> None:
    """Raise if utilities are not gains, which costs could divide."""
    if utilities != "gain":
        raise ValueError(
            "costs needs a strategy whose utilities are gains, with the tag utilities='gain'. "
            f"Got utilities={utilities!r} of {name} in {caller}; leave costs out or choose another "
            "strategy."
        )
