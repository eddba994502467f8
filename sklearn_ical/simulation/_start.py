"""The initial rows, which are labeled from the start: checked, and drawn."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from sklearn_ical._labels import missing_labels
from sklearn_ical._names import STRATEGIES
from sklearn_ical._random import seeded, stream_seed
from sklearn_ical._validation import check_integer, check_positions, n_rows, take_rows
from sklearn_ical.strategies._resolve import resolve_strategy


def initial_rows(
    initial: Any, X: Any, y: np.ndarray | None, n_initial: int, seed: int, features: Any = None
) -> np.ndarray:
    """Return positions in `X` of the rows that are labeled from the start.

    `initial` is "balanced", "random", a strategy or the positions, as `check_initial` returns it;
    `y` is None if no label is known, so that any row may be chosen. `features` are those of the
    rows of `X`, for strategies.
    """
    if isinstance(initial, np.ndarray):
        return initial
    rows = np.arange(n_rows(X, "X")) if y is None else np.flatnonzero(~missing_labels(y))
    if initial == "balanced":
        return rows[balanced_rows(np.asarray(y)[rows], n_initial, seed)]
    if not isinstance(initial, str):
        strategy = seeded(initial, stream_seed(seed, 0))
        given = {} if features is None else {"features": take_rows(features, rows)}
        return rows[strategy.query(None, take_rows(X, rows), n_initial, **given)]
    return np.random.default_rng(seed).permutation(rows)[:n_initial]


def balanced_rows(y: Any, n: int, random_state: int) -> np.ndarray:
    """Draw `n` rows at random, as equally from every class as possible.

    Parameters
    ----------
    y : array-like of shape (n_points,)
        Labels.
    n : int
        Rows to draw, at most n_points. All rows of a class are drawn if it has fewer than its
        share.
    random_state : int
        Seed of the draw.

    Returns
    -------
    rows : intp array of shape (n,)
        Distinct positions in `y`; class counts differ by at most 1 where the classes allow it.
    """
    rng = np.random.default_rng(random_state)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    order = rng.permutation(len(codes))
    codes = rng.permutation(len(classes))[codes[order]]  # the order of the classes is random, too
    # Number of earlier rows of the same class, for each row.
    by_class = np.argsort(codes, kind="stable")
    ordered = codes[by_class]
    turn = np.empty(len(codes), dtype=np.intp)
    turn[by_class] = np.arange(len(codes)) - np.searchsorted(ordered, ordered)
    return order[np.lexsort((codes, turn))[:n]]


def check_initial(
    initial: Any, estimator: Any, y: np.ndarray | None, n_points: int, caller: str
) -> Any:
    """Return "balanced", "random", a strategy or an array of distinct positions."""
    classes = y is not None and y.ndim == 1 and is_classifier(estimator)
    if initial is None:
        return "balanced" if classes else "random"
    if isinstance(initial, str) and initial not in ("balanced", "random"):
        if initial not in STRATEGIES:
            raise ValueError(
                "initial must be 'balanced', 'random' or a strategy that reads at most features, "
                f"such as 'typiclust', or positions in X. Got {initial!r} in {caller}."
            )
        initial = resolve_strategy(initial, "initial", caller)
    if hasattr(initial, "query"):
        return _check_start(initial, caller)
    if isinstance(initial, str):
        if initial == "balanced" and not classes:
            raise ValueError(
                "initial='balanced' needs a classifier and labels in y to balance. Got "
                f"{type(estimator).__name__} {'without' if y is None else 'with'} y in {caller}; "
                "use 'random' or positions."
            )
        return initial
    rows = check_positions(initial, n_points, "initial", caller, "X")
    if rows.ndim != 1 or not len(rows) or len(np.unique(rows)) < len(rows):
        raise ValueError(
            f"initial must hold distinct positions in X, at least one. Got {initial!r} in {caller}."
        )
    return rows


def _check_start(strategy: Any, caller: str) -> Any:
    """Return a strategy that can choose without a model and labels; raise for others."""
    is_class = isinstance(strategy, type)
    tags = None if is_class or not hasattr(strategy, "query_tags") else strategy.query_tags()
    if tags is None or not set(tags.reads) <= {"features"}:
        got = f"the class {strategy.__name__}" if is_class else type(strategy).__name__
        raise ValueError(
            "initial must be a strategy that reads at most features, as there is neither a model "
            f"nor a label yet. Got {got} in {caller}; use one such as TypiClustQuery()."
        )
    return strategy


def check_n_initial(
    n_initial: Any, initial: Any, y: np.ndarray | None, n_points: int, caller: str
) -> int:
    """Return the number of initial rows, which positions determine themselves."""
    if isinstance(initial, np.ndarray):
        return len(initial)
    n_initial = check_integer(n_initial, "n_initial", caller)
    known = n_points if y is None else int((~missing_labels(y)).sum())
    if n_initial > known:
        raise ValueError(
            f"n_initial must not exceed the number of rows with a label, {known}. Got "
            f"{n_initial} in {caller}."
        )
    return n_initial
