"""Plan: the arguments of one simulation, checked before any work."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from sklearn_ical._validation import (
    SLACK,
    check_costs,
    check_integer,
    check_positions,
    is_missing,
    missing_rows,
    n_rows,
    sliceable,
)
from sklearn_ical.simulation._identity import describe, describe_data, versions
from sklearn_ical.simulation._scoring import Scoring
from sklearn_ical.simulation._start import balanced_rows
from sklearn_ical.simulation._stopping import Budget, StoppingRule
from sklearn_ical.strategies._resolve import resolve_strategy


@dataclass(frozen=True)
class Plan:
    """What `simulate` was asked for; `y` and `costs` as arrays, `n_rounds` and `budget` may be inf.

    `initial` is "balanced", "random" or the positions themselves.
    """

    owner: str
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
    scoring: Scoring
    oracle: Callable[[int], Any] | None
    rules: tuple[StoppingRule, ...]
    callbacks: tuple[Callable[..., Any], ...]

    @classmethod
    def of(
        cls,
        owner: str,
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
        stopping: Any,
        callbacks: Any,
    ) -> "Plan":
        """Check the arguments of `simulate`; `owner` is the name of the function called."""
        strategy = resolve_strategy(strategy, "strategy", owner)
        _check_objects(estimator, strategy, oracle, owner)
        n_points = n_rows(X, "X")
        labels = _check_y(y, n_points, oracle, owner)
        X_test = _check_test(X, labels, X_test, y_test, owner)
        scorer = Scoring(estimator, scoring, X_test, y_test, cv)
        rules = _check_rules(stopping, estimator, scorer.names, owner)
        rounds, limit = _check_limits(n_rounds, budget, rules, owner)
        costs = None if cost is None else check_costs(cost, n_points, owner, name="cost", what="X")
        initial = _check_initial(initial, estimator, labels, n_points, owner)
        n_initial = _check_n_initial(n_initial, initial, labels, n_points, owner)
        if costs is None and n_initial > limit:
            raise ValueError(
                f"budget must cover the {n_initial} initial labels. Got {limit:g} in {owner}; "
                "raise budget or lower n_initial."
            )
        return cls(
            owner=owner,
            estimator=estimator,
            X=sliceable(X),
            y=labels,
            strategy=strategy,
            n_points=n_points,
            initial=initial,
            n_initial=n_initial,
            batch_size=check_integer(batch_size, "batch_size", owner),
            n_rounds=rounds,
            budget=limit,
            costs=costs,
            scoring=scorer,
            oracle=oracle,
            rules=tuple(rule for rule in rules if not isinstance(rule, Budget)),
            callbacks=_check_callbacks(callbacks, owner),
        )

    @cached_property  # data are hashed once, not by each worker
    def header(self) -> dict[str, Any]:
        """What the result follows from, `n_rounds`, `budget` and the seed apart."""
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
            "stopping": rules,
            "oracle": self.oracle is not None,
        }

    def initial_rows(self, root: int) -> np.ndarray:
        """Return the rows that are labeled from the start, refused if the budget is too small."""
        if isinstance(self.initial, str):
            rows = (
                np.arange(self.n_points)
                if self.y is None
                else np.flatnonzero(~missing_rows(self.y))
            )
            if self.initial == "balanced":
                rows = rows[balanced_rows(self.y[rows], self.n_initial, root)]  # type: ignore[index]
            else:
                rows = np.random.default_rng(root).permutation(rows)[: self.n_initial]
        else:
            rows = self.initial
        if self.costs is not None and math.fsum(self.costs[rows]) > self.budget * (1 + SLACK):
            raise ValueError(
                f"budget must cover the {len(rows)} initial labels, which cost "
                f"{math.fsum(self.costs[rows]):g}. Got {self.budget:g} in {self.owner}; raise "
                "budget or lower n_initial."
            )
        return rows

    def answer(self, row: int, *, initial: bool) -> Any:
        """Return the label of a row as a plain Python value, None if it is refused."""
        if self.y is not None and (initial or self.oracle is None):
            label = self.y[row]
        else:
            label = self.oracle(row)  # type: ignore[misc]
        return (
            None
            if is_missing(label)
            else _plain_label(label, classes=is_classifier(self.estimator))
        )

    def label_array(self, rows: list[int], labels: list[Any]) -> np.ndarray:
        """Return labels that were bought as the estimator gets them."""
        if self.y is not None and self.oracle is None and self.y.dtype != object:
            return self.y[rows]
        return np.array(labels)


def _plain_label(label: Any, *, classes: bool) -> Any:
    """Return a label as a value that JSON keeps; an array of outputs as a list."""
    if isinstance(label, np.generic | np.ndarray):
        label = label.tolist()
    for value in label if isinstance(label, list | tuple) and label else [label]:
        number = isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**63
        if not (number or isinstance(value, str)):
            raise TypeError(
                "A label must be text, a finite number of 64 bits, or a list of these for several "
                f"outputs; None or NaN refuses. Got {label!r} of type {type(label).__name__}."
            )
    if classes and isinstance(label, float) and label != round(label):
        raise TypeError(
            f"A label for a classifier must be text or a whole number; None or NaN refuses. Got "
            f"{label!r}."
        )
    return list(label) if isinstance(label, tuple) else label


def _check_objects(estimator: Any, strategy: Any, oracle: Any, owner: str) -> None:
    for name, value, methods in (
        ("estimator", estimator, ("fit", "predict", "get_params")),
        ("strategy", strategy, ("query", "get_params")),
    ):
        if isinstance(value, type):
            raise TypeError(
                f"{name} must be an object, not a class. Got {value.__name__} in {owner}; write "
                f"{value.__name__}()."
            )
        lacking = [method for method in methods if not hasattr(value, method)]
        if lacking:
            raise TypeError(
                f"{name} must have the methods {', '.join(methods)}. Got "
                f"{type(value).__name__} without {', '.join(lacking)} in {owner}."
            )
    if oracle is not None and not callable(oracle):
        raise TypeError(
            "oracle must be a function that takes a position in X and returns its label. Got "
            f"{oracle!r} in {owner}."
        )


def _check_y(y: Any, n_points: int, oracle: Any, owner: str) -> np.ndarray | None:
    """Return the labels as an array, or None where an oracle gives all of them."""
    if y is None:
        if oracle is None:
            raise ValueError(
                f"y must hold the labels of X, unless an oracle gives them. Got neither in {owner}."
            )
        return None
    labels = np.asarray(y)
    if labels.ndim == 0 or len(labels) != n_points:
        got = "no array" if labels.ndim == 0 else f"{len(labels)}"
        raise ValueError(
            f"y must have one label for each of the {n_points} rows of X. Got {got} in {owner}."
        )
    return labels


def _check_test(X: Any, y: np.ndarray | None, X_test: Any, y_test: Any, owner: str) -> Any:
    """Return the rows to score on, with their columns in the order of `X`."""
    if y_test is not None:
        labels = np.asarray(y_test)
        if missing_rows(labels).any():
            raise ValueError(f"y_test must have no missing labels. Got some in {owner}.")
        text = [array.dtype.kind in "US" for array in (labels, y) if array is not None]
        if len(set(text)) > 1 and "O" not in (labels.dtype.kind, y.dtype.kind):  # type: ignore[union-attr]
            raise TypeError(
                "y_test must hold labels of the kind in y, texts or numbers. Got dtype "
                f"{labels.dtype} where y has {y.dtype} in {owner}."  # type: ignore[union-attr]
            )
    if X_test is None or not (hasattr(X, "columns") and hasattr(X_test, "columns")):
        return X_test
    names, found = list(X.columns), list(X_test.columns)
    if sorted(map(str, names)) != sorted(map(str, found)):
        odd = set(map(str, names)) ^ set(map(str, found))
        raise ValueError(
            f"X_test must have the columns of X. Got {sorted(odd)} in only one of them in {owner}."
        )
    return X_test if names == found else X_test[names]


def _check_initial(
    initial: Any, estimator: Any, y: np.ndarray | None, n_points: int, owner: str
) -> Any:
    """Return "balanced", "random" or an array of distinct positions."""
    classes = y is not None and y.ndim == 1 and is_classifier(estimator)
    if initial is None:
        return "balanced" if classes else "random"
    if isinstance(initial, str):
        if initial not in ("balanced", "random"):
            raise ValueError(
                "initial must be 'balanced', 'random' or positions in X. Got "
                f"{initial!r} in {owner}."
            )
        if initial == "balanced" and not classes:
            raise ValueError(
                "initial='balanced' needs a classifier and labels in y to balance. Got "
                f"{type(estimator).__name__} {'without' if y is None else 'with'} y in {owner}; "
                "use 'random' or positions."
            )
        return initial
    rows = check_positions(initial, n_points, "initial", owner, "X")
    if rows.ndim != 1 or not len(rows) or len(np.unique(rows)) < len(rows):
        raise ValueError(
            f"initial must hold distinct positions in X, at least one. Got {initial!r} in {owner}."
        )
    return rows


def _check_n_initial(
    n_initial: Any, initial: Any, y: np.ndarray | None, n_points: int, owner: str
) -> int:
    """Return the number of initial rows; positions say it themselves."""
    if not isinstance(initial, str):
        return len(initial)
    n_initial = check_integer(n_initial, "n_initial", owner)
    known = n_points if y is None else int((~missing_rows(y)).sum())
    if n_initial > known:
        raise ValueError(
            f"n_initial must not exceed the number of rows with a label, {known}. Got "
            f"{n_initial} in {owner}."
        )
    return n_initial


def _check_limits(
    n_rounds: Any, budget: Any, rules: tuple[StoppingRule, ...], owner: str
) -> tuple[float, float]:
    """Return the number of rounds and the budget, inf where there is no limit."""
    if n_rounds is None and budget is None and not rules:
        raise ValueError(
            f"{owner} needs to know when to stop: pass n_rounds, budget or stopping. Got None "
            "for all of them."
        )
    if n_rounds is not None:
        n_rounds = check_integer(n_rounds, "n_rounds", owner, minimum=0)
    budgets = [rule.budget for rule in rules if isinstance(rule, Budget)]
    budgets += [] if budget is None else [Budget(budget).budget]
    return math.inf if n_rounds is None else n_rounds, min(budgets, default=math.inf)


def _check_rules(
    stopping: Any, estimator: Any, metrics: tuple[str, ...] | None, owner: str
) -> tuple[StoppingRule, ...]:
    if stopping is None:
        return ()
    rules = tuple(stopping) if isinstance(stopping, list | tuple) else (stopping,)
    for rule in rules:
        if not isinstance(rule, StoppingRule):
            raise TypeError(
                "stopping must be a rule or a list of rules, such as Patience(5) of "
                f"sklearn_ical.simulation. Got {rule!r} in {owner}."
            )
        rule.check(estimator, metrics)
    names = [type(rule).__name__ for rule in rules if rule.watches_models]
    if len(set(names)) < len(names):
        raise ValueError(
            f"stopping must not hold two rules of one class that measure models. Got {names} "
            f"in {owner}."
        )
    return rules


def _check_callbacks(callbacks: Any, owner: str) -> tuple[Callable[..., Any], ...]:
    if callbacks is None:
        return ()
    functions = tuple(callbacks) if isinstance(callbacks, list | tuple) else (callbacks,)
    for function in functions:
        if not callable(function):
            raise TypeError(
                "callbacks must be a function of a RoundState, or a list of them. Got "
                f"{function!r} in {owner}."
            )
    return functions
