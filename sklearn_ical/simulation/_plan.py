"""Plan: the arguments of one simulation, checked before any work."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from sklearn_ical._fit_params import FitParams, check_fit_params
from sklearn_ical._labels import label_array, missing_labels, plain_label
from sklearn_ical._validation import (
    SLACK,
    check_costs,
    check_integer,
    n_rows,
    sliceable,
    take_rows,
    without_data_set,
)
from sklearn_ical.samplers._models import keeps_columns
from sklearn_ical.samplers._routing import check_accepted
from sklearn_ical.simulation._identity import describe, describe_data, versions
from sklearn_ical.simulation._scoring import Evaluation
from sklearn_ical.simulation._start import check_initial, check_n_initial, initial_rows
from sklearn_ical.simulation._stopping import StoppingRule, check_number
from sklearn_ical.strategies._resolve import resolve_strategy, takes_fit_params, takes_labeled


@dataclass(frozen=True)
class Plan:
    """The arguments of `simulate`; `y` and `costs` as arrays, `n_rounds` and `budget` may be inf.

    `initial` is "balanced", "random", a strategy or the positions themselves.
    """

    caller: str
    estimator: Any
    X: Any
    y: np.ndarray | None
    strategy: Any
    n_points: int
    initial: Any
    n_initial: int
    batch_size: int
    n_rounds: float
    budget: float
    costs: np.ndarray | None
    features: Any
    fit_params: FitParams
    scoring: Evaluation
    oracle: Callable[[int], Any] | None
    rules: tuple[StoppingRule, ...]
    callbacks: tuple[Callable[..., Any], ...]

    @classmethod
    def from_arguments(
        cls,
        caller: str,
        estimator: Any,
        X: Any,
        y: Any,
        strategy: Any,
        *,
        n_initial: Any,
        batch_size: Any,
        n_rounds: Any,
        budget: Any,
        scoring: Any,
        X_test: Any,
        y_test: Any,
        cv: Any,
        initial: Any,
        oracle: Any,
        cost: Any,
        features: Any,
        fit_params: Any,
        stopping: Any,
        callbacks: Any,
    ) -> "Plan":
        """Check the arguments of `simulate`; `caller` is the name of the function called."""
        strategy = resolve_strategy(strategy, "strategy", caller)
        _check_objects(estimator, strategy, oracle, caller)
        X, X_test = without_data_set(X, "X"), without_data_set(X_test, "X_test")
        n_points = n_rows(X, "X")
        labels = _check_y(y, n_points, estimator, oracle, caller)
        X_test = _check_test(X, labels, X_test, y_test, caller)
        scorer = Evaluation(estimator, scoring, X_test, y_test, cv)
        rules = _check_rules(stopping, estimator, scorer.names, caller)
        rounds, limit = _check_limits(n_rounds, budget, rules, caller)
        costs = None if cost is None else check_costs(cost, n_points, caller, name="cost", what="X")
        features = _check_features(features, n_points, caller)
        params = check_fit_params(fit_params, X, caller)
        check_accepted(estimator, params, caller)
        initial = check_initial(initial, estimator, labels, n_points, caller)
        n_initial = check_n_initial(n_initial, initial, labels, n_points, caller)
        _check_start(costs, n_initial, limit, caller)
        return cls(
            caller=caller,
            estimator=estimator,
            X=sliceable(X),
            y=labels,
            strategy=strategy,
            n_points=n_points,
            initial=initial,
            n_initial=n_initial,
            batch_size=check_integer(batch_size, "batch_size", caller),
            n_rounds=rounds,
            budget=limit,
            costs=costs,
            features=features,
            fit_params=params,
            scoring=scorer,
            oracle=oracle,
            rules=rules,
            callbacks=_check_callbacks(callbacks, caller),
        )

    @cached_property  # data are hashed once, not by each worker
    def header(self) -> dict[str, Any]:
        """What determines the result, except for `n_rounds`, `budget` and the seed."""
        rules = [{"class": type(rule).__name__, **describe(vars(rule))} for rule in self.rules]
        return {
            **versions(),
            "X": describe_data(self.X),
            "y": describe_data(self.y),
            "estimator": describe(self.estimator),
            "strategy": describe(self.strategy),
            "X_test": describe_data(self.scoring.X_test),
            "y_test": describe_data(self.scoring.y_test),
            "scoring": describe(self.scoring.scoring),
            "cv": describe(self.scoring.cv),
            "initial": describe(self.initial),
            "n_initial": self.n_initial,
            "batch_size": self.batch_size,
            "cost": describe_data(self.costs),
            "features": describe_data(self.features),
            "fit_params": {
                name: (describe_data if name in self.fit_params.aligned else describe)(value)
                for name, value in self.fit_params.items()
            },
            "stopping": rules,
            "oracle": self.oracle is not None,
        }

    def initial_rows(self, root: int) -> np.ndarray:
        """Return the rows that are labeled from the start; raise if they exceed the budget."""
        rows = initial_rows(self.initial, self.X, self.y, self.n_initial, root, self.features)
        if self.costs is not None and math.fsum(self.costs[rows]) > self.budget * (1 + SLACK):
            raise ValueError(
                f"budget must cover the {len(rows)} initial labels, which cost "
                f"{math.fsum(self.costs[rows]):g}. Got {self.budget:g} in {self.caller}; raise "
                "budget or lower n_initial."
            )
        return rows

    def rows_of_query(
        self, strategy: Any, pool: np.ndarray, labeled: list[int], labels: list[Any]
    ) -> dict[str, Any]:
        """Return the labeled rows, and the features that a strategy reads, as arguments."""
        given: dict[str, Any] = {}
        if labeled and takes_labeled(strategy):
            y_labeled = self.label_array(labeled, labels)
            given = {"X_labeled": take_rows(self.X, labeled), "y_labeled": y_labeled}
            if self.fit_params and takes_fit_params(strategy):
                given["fit_params"] = self.fit_params.take(labeled)
        if self.features is not None and "features" in strategy.query_tags().reads:
            given["features"] = take_rows(self.features, pool)
            if "X_labeled" in given:
                given["labeled_features"] = take_rows(self.features, labeled)
        return given

    def answer(self, row: int, *, initial: bool) -> Any:
        """Return the label of a row as a plain Python value, None if it is refused."""
        if self.y is not None and (initial or self.oracle is None):
            label = self.y[row]
        else:
            label = self.oracle(row)  # type: ignore[misc]
        label = plain_label(label, classes=is_classifier(self.estimator))
        one = isinstance(label, list) and len(label) == 1 and not keeps_columns(self.estimator)
        return label[0] if one else label

    def label_array(self, rows: list[int], labels: list[Any]) -> np.ndarray:
        """Return bought labels in the form that the estimator gets."""
        if self.y is not None and self.oracle is None and self.y.dtype != object:
            return self.y[rows]
        ravel = not keeps_columns(self.estimator)
        return label_array(labels, "labels", self.caller, ravel=ravel)


def _check_objects(estimator: Any, strategy: Any, oracle: Any, caller: str) -> None:
    for name, value, methods in (
        ("estimator", estimator, ("fit", "predict", "get_params")),
        ("strategy", strategy, ("query", "get_params")),
    ):
        if isinstance(value, type):
            raise TypeError(
                f"{name} must be an object, not a class. Got {value.__name__} in {caller}; write "
                f"{value.__name__}()."
            )
        lacking = [method for method in methods if not hasattr(value, method)]
        if lacking:
            raise TypeError(
                f"{name} must have the methods {', '.join(methods)}. Got "
                f"{type(value).__name__} without {', '.join(lacking)} in {caller}."
            )
    if oracle is not None and not callable(oracle):
        raise TypeError(
            "oracle must be a function that takes a position in X and returns its label. Got "
            f"{oracle!r} in {caller}."
        )


def _check_y(y: Any, n_points: int, estimator: Any, oracle: Any, caller: str) -> np.ndarray | None:
    """Return the labels as an array, or None where an oracle gives all of them."""
    if y is None:
        if oracle is None:
            raise ValueError(
                "y must hold the labels of X, unless an oracle gives them. Got neither in "
                f"{caller}."
            )
        return None
    labels = label_array(y, "y", caller, ravel=not keeps_columns(estimator))
    if labels.ndim == 0 or len(labels) != n_points:
        got = "no array" if labels.ndim == 0 else f"{len(labels)}"
        raise ValueError(
            f"y must have one label for each of the {n_points} rows of X. Got {got} in {caller}."
        )
    return labels


def _check_test(X: Any, y: np.ndarray | None, X_test: Any, y_test: Any, caller: str) -> Any:
    """Return the rows to score on, with their columns in the order of `X`."""
    if y_test is not None:
        labels = label_array(y_test, "y_test", caller)
        if missing_labels(labels).any():
            raise ValueError(f"y_test must have no missing labels. Got some in {caller}.")
        text = [array.dtype.kind in "US" for array in (labels, y) if array is not None]
        if len(set(text)) > 1 and "O" not in (labels.dtype.kind, y.dtype.kind):  # type: ignore[union-attr]
            raise TypeError(
                "y_test must hold labels of the kind in y, texts or numbers. Got dtype "
                f"{labels.dtype} where y has {y.dtype} in {caller}."  # type: ignore[union-attr]
            )
    if X_test is None or not (hasattr(X, "columns") and hasattr(X_test, "columns")):
        return X_test
    names, test_names = list(X.columns), list(X_test.columns)
    if sorted(map(str, names)) != sorted(map(str, test_names)):
        odd = set(map(str, names)) ^ set(map(str, test_names))
        raise ValueError(
            f"X_test must have the columns of X. Got {sorted(odd)} in only one of them in {caller}."
        )
    return X_test if names == test_names else X_test[names]


def _check_features(features: Any, n_points: int, caller: str) -> Any:
    """Return the features of all rows, sliceable; None for none."""
    if features is None:
        return None
    if n_rows(features, "features") != n_points:
        raise ValueError(
            f"features must have one row for each of the {n_points} rows of X. Got "
            f"{n_rows(features)} in {caller}."
        )
    return sliceable(features)


def _check_limits(
    n_rounds: Any, budget: Any, rules: tuple[StoppingRule, ...], caller: str
) -> tuple[float, float]:
    """Return the number of rounds and the budget, inf where there is no limit."""
    if n_rounds is None and budget is None and not rules:
        raise ValueError(
            f"{caller} needs to know when to stop: pass n_rounds, budget or stopping. Got None "
            "for all of them."
        )
    if n_rounds is not None:
        n_rounds = check_integer(n_rounds, "n_rounds", caller, minimum=0)
    if budget is not None:
        check_number(budget, "budget", caller, above=0)
    rounds, limit = (math.inf if value is None else value for value in (n_rounds, budget))
    return rounds, limit


def _check_start(costs: Any, n_initial: int, limit: float, caller: str) -> None:
    """Raise if the budget does not cover the initial labels, where each costs 1."""
    if costs is None and n_initial > limit:
        raise ValueError(
            f"budget must cover the {n_initial} initial labels. Got {limit:g} in {caller}; raise "
            "budget or lower n_initial."
        )


def _check_rules(
    stopping: Any, estimator: Any, metrics: tuple[str, ...] | None, caller: str
) -> tuple[StoppingRule, ...]:
    if stopping is None:
        return ()
    rules = tuple(stopping) if isinstance(stopping, list | tuple) else (stopping,)
    for rule in rules:
        if not isinstance(rule, StoppingRule):
            raise TypeError(
                "stopping must be a rule or a list of rules, such as Patience(5) of "
                f"sklearn_ical.simulation. Got {rule!r} in {caller}."
            )
        rule.check(estimator, metrics)
    names = [type(rule).__name__ for rule in rules if rule.watches_models]
    if len(set(names)) < len(names):
        raise ValueError(
            f"stopping must not hold two rules of one class that measure models. Got {names} "
            f"in {caller}."
        )
    return rules


def _check_callbacks(callbacks: Any, caller: str) -> tuple[Callable[..., Any], ...]:
    if callbacks is None:
        return ()
    functions = tuple(callbacks) if isinstance(callbacks, list | tuple) else (callbacks,)
    for function in functions:
        if not callable(function):
            raise TypeError(
                "callbacks must be a function of a RoundState, or a list of them. Got "
                f"{function!r} in {caller}."
            )
    return functions
