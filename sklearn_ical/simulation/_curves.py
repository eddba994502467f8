"""The active-learning loop as plain data: learning curves, many of them paired, and their summary.

Nothing here draws, prints or writes files.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.metrics import log_loss

from sklearn_ical._random import stream_seed
from sklearn_ical._validation import n_rows, take_rows

METRICS = ("accuracy", "nll")


@dataclass(frozen=True)
class Round:
    """One round of active learning: the labels bought and what the model fitted on them is worth.

    Attributes
    ----------
    n_labeled : int
        Labels known to the model of this round.
    bought : tuple of int
        Rows of `X` whose labels were bought for this round, in pick order; the initial rows in
        the first round. Over all rounds they are distinct.
    accuracy : float
        Fraction of the test rows that are classified correctly.
    nll : float
        Mean negative log-likelihood of the test labels, in nats.
    fit_seconds, query_seconds : float
        Wall time of fitting the model and of choosing the rows (0 for the initial rows).
    """

    n_labeled: int
    bought: tuple[int, ...]
    accuracy: float
    nll: float
    fit_seconds: float
    query_seconds: float


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its standard error, NaN where there is one seed only."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Estimate":
        """Summarize an array of shape (n_seeds,)."""
        n = len(values)
        error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        return cls(float(np.mean(values)), error)


@dataclass(frozen=True)
class Summary:
    """What the learning curves of one strategy come to, in one metric.

    Attributes
    ----------
    strategy, metric : str
        Name of the strategy and one of `METRICS`.
    final : Estimate
        The metric after the last round.
    area : Estimate
        Area under the learning curve over the range of labels, that is its mean height.
    difference : Estimate or None
        Area minus the baseline's area of the same seed; None for the baseline itself, and where
        no curve of the baseline is there.
    """

    strategy: str
    metric: str
    final: Estimate
    area: Estimate
    difference: Estimate | None


Curve = tuple[Round, ...]
Curves = Mapping[str, Mapping[int, Curve]]  # curves[strategy name][seed]


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    strategy: Any,
    *,
    initial: Sequence[int] | np.ndarray,
    batch_size: int,
    n_rounds: int,
    random_state: int,
) -> Iterator[Round]:
    """Run one active-learning loop and yield its rounds as they are finished.

    Each round buys the labels of the rows that the strategy picks from the unlabeled ones, and
    fits a fresh clone of the estimator on all labels bought so far. Neither the estimator nor
    the strategy is changed.

    Parameters
    ----------
    estimator : classifier
        With `predict` and `predict_proba`.
    X : array-like, sparse matrix or frame of shape (n_points, n_features)
        Rows whose labels may be bought.
    y : array-like of shape (n_points,)
        Their labels, each looked at only once bought.
    X_test, y_test : array-like of shape (n_test, n_features) and (n_test,)
        Rows that the models are scored on.
    strategy : BaseQuery
        Chooses the rows; with a `random_state` parameter.
    initial : array-like of shape (n_initial,)
        Distinct rows of `X` labeled from the start.
    batch_size : int
        Labels to buy in each round.
    n_rounds : int
        Rounds after the first, which fits on the initial rows alone.
    random_state : int
        Round r gives the same root seed to the estimator and to the strategy, whatever these
        are, so two strategies run with the same int are paired.

    Yields
    ------
    round : Round
        ``n_rounds + 1`` of them.

    Raises
    ------
    ValueError
        If `X` has fewer rows than the labels to buy.
    """
    n_points, n_wanted = n_rows(X, "X"), len(initial) + n_rounds * batch_size
    if n_wanted > n_points:
        raise ValueError(
            f"X must have a row for every label to buy, {n_wanted} = {len(initial)} initial rows "
            f"+ {n_rounds} rounds x batch_size={batch_size}. Got {n_points} rows in "
            "learning_curve. Lower n_rounds or batch_size."
        )
    y, y_test = np.asarray(y), np.asarray(y_test)
    classes = np.union1d(y, y_test)
    bought = labeled = np.asarray(initial, dtype=np.intp)
    model, query_seconds = None, 0.0
    for r in range(n_rounds + 1):
        root = stream_seed(random_state, r)
        if r > 0:
            pool = np.setdiff1d(np.arange(n_points), labeled)
            start = time.perf_counter()
            picks = _seeded(strategy, root).query(model, take_rows(X, pool), batch_size)
            query_seconds = time.perf_counter() - start
            bought = pool[picks]
            labeled = np.concatenate([labeled, bought])
        start = time.perf_counter()
        model = _seeded(estimator, root).fit(take_rows(X, labeled), y[labeled])
        fit_seconds = time.perf_counter() - start
        yield Round(
            n_labeled=len(labeled),
            bought=tuple(bought.tolist()),
            accuracy=float(np.mean(model.predict(X_test) == y_test)),
            nll=_nll(model, X_test, y_test, classes),
            fit_seconds=fit_seconds,
            query_seconds=query_seconds,
        )


def balanced_rows(y: Any, n: int, random_state: int) -> np.ndarray:
    """Draw `n` rows at random, as equally from every class as possible.

    Parameters
    ----------
    y : array-like of shape (n_points,)
        Labels.
    n : int
        Rows to draw, at most n_points. A class with fewer rows than its share gives all it has.
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
    codes = rng.permutation(len(classes))[codes[order]]  # the class served first is random, too
    turn = np.empty(len(codes), dtype=np.intp)  # how many rows of its own class come before a row
    for code in range(len(classes)):
        members = np.flatnonzero(codes == code)
        turn[members] = np.arange(len(members))
    return order[np.lexsort((codes, turn))[:n]]


def learning_curves(
    estimator: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    strategies: Mapping[str, Any],
    *,
    seeds: Iterable[int],
    n_initial: int,
    batch_size: int,
    n_rounds: int,
    n_jobs: int | None = None,
    callback: Callable[[str, int], None] | None = None,
) -> dict[str, dict[int, Curve]]:
    """Run every strategy with every seed, paired and in parallel.

    With the same seed all strategies start from the same balanced initial rows, and their models
    get the same random state in each round.

    Parameters
    ----------
    estimator, X, y, X_test, y_test, batch_size, n_rounds
        As in `learning_curve`.
    strategies : dict of str to BaseQuery
        The strategies by the names that they go by in the result.
    seeds : iterable of int
        One run of each strategy for each seed.
    n_initial : int
        Rows labeled from the start.
    n_jobs : int, default=None
        Processes of joblib. The result is the same for any number, wall times apart.
    callback : callable, default=None
        Called in this process as ``callback(name, seed)`` when a run has ended, in any order.

    Returns
    -------
    curves : dict of str to dict of int to tuple of Round
        ``curves[name][seed]``, in the order of `strategies` and `seeds`.
    """
    seeds = list(seeds)
    initial = {seed: balanced_rows(y, n_initial, seed) for seed in seeds}
    runs = (
        joblib.delayed(_run)(
            name,
            seed,
            (estimator, X, y, X_test, y_test, strategy),
            initial=initial[seed],
            batch_size=batch_size,
            n_rounds=n_rounds,
        )
        for seed in seeds
        for name, strategy in strategies.items()
    )
    curves: dict[str, dict[int, Any]] = {name: dict.fromkeys(seeds) for name in strategies}
    for name, seed, curve in joblib.Parallel(n_jobs, return_as="generator_unordered")(runs):
        curves[name][seed] = curve
        if callback is not None:
            callback(name, seed)
    return curves


def _run(name: str, seed: int, data: tuple[Any, ...], **sizes: Any) -> tuple[str, int, Curve]:
    """Run one curve to its end in a worker and say which one it is."""
    return name, seed, tuple(learning_curve(*data, **sizes, random_state=seed))


def summarize(curves: Curves, baseline: str) -> list[Summary]:
    """Condense learning curves to means over seeds, compared seed by seed with a baseline.

    Parameters
    ----------
    curves : dict of str to dict of int to tuple of Round
        As `learning_curves` returns them.
    baseline : str
        Name of the strategy that the others are compared with; it need not be in `curves`.

    Returns
    -------
    summaries : list of Summary
        All strategies in the order of `curves`, first in accuracy, then in NLL.
    """
    summaries = []
    for metric in METRICS:
        areas = {name: _areas(curves[name], metric) for name in curves}
        for name, of_seed in curves.items():
            compared = baseline in areas and name != baseline
            summaries.append(
                Summary(
                    strategy=name,
                    metric=metric,
                    final=Estimate.of(scores(of_seed, metric)[:, -1]),
                    area=Estimate.of(areas[name]),
                    difference=Estimate.of(areas[name] - areas[baseline]) if compared else None,
                )
            )
    return summaries


def scores(of_seed: Mapping[int, Curve], metric: str) -> np.ndarray:
    """Return one metric of one strategy's curves, (n_seeds, n_rounds + 1)."""
    return np.array([[getattr(r, metric) for r in curve] for curve in of_seed.values()])


def _areas(of_seed: Mapping[int, Curve], metric: str) -> np.ndarray:
    """Return the mean heights of one strategy's curves, (n_seeds,)."""
    n_labeled = scores(of_seed, "n_labeled")
    span = n_labeled[:, -1] - n_labeled[:, 0]
    return np.trapezoid(scores(of_seed, metric), n_labeled, axis=1) / span


def _seeded(estimator: Any, root: int) -> Any:
    """Return an unfitted clone with `root` in every `random_state`, also of nested steps."""
    names = [
        name
        for name in estimator.get_params()
        if name == "random_state" or name.endswith("__random_state")
    ]
    return clone(estimator).set_params(**dict.fromkeys(names, root))


def _nll(model: Any, X_test: Any, y_test: np.ndarray, classes: np.ndarray) -> float:
    """Return the log loss, with probability 0 for classes that the model has never seen."""
    proba = np.zeros((len(y_test), len(classes)))
    proba[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X_test)
    return float(log_loss(y_test, proba, labels=classes))
