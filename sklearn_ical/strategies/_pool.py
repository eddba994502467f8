"""What a strategy sees of one call (Pool, Predictions) and how it picks (Batch, Selection).

Batch is the one place that knows what costs and a budget do to a choice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import Kind
from sklearn_ical._validation import n_rows, sliceable, take_rows, warn_equal_utilities
from sklearn_ical.samplers import (
    Draws,
    evaluate_in_chunks,
    evaluate_together,
    get_sampler,
    net_in,
    net_mean,
    prepare,
    untouched,
    with_labeled,
)
from sklearn_ical.samples import PredictionSamples, concatenate
from sklearn_ical.selection import Picks, best_k, best_per_cost, merge_ties, per_cost

# Rows handed to the model at once, so that its own start-up costs do not count.
MODEL_BLOCK_ROWS = 20_000
# Candidates that lazy greedy evaluates first in each step.
FIRST_BLOCK = 64


class Predictions:
    """Posterior predictions of a set of rows, evaluated only where and when they are read.

    Holds either samples at hand, or draws and the rows `X` that they are to be evaluated on.
    """

    def __init__(
        self, *, samples: PredictionSamples | None = None, draws: Any = None, X: Any = None
    ) -> None:
        self._samples = samples
        self._draws = draws
        self._X = None if samples is not None else sliceable(X)
        source = samples if samples is not None else draws
        self.n_points = samples.n_points if samples is not None else n_rows(X)
        self.n_draws: int = source.n_draws
        self.kind: Kind = source.kind
        self.weights = source.weights

    @property
    def classes(self) -> Any:
        """Labels of the columns, None for values."""
        return self._draws.classes if self._samples is None else self._samples.classes

    @classmethod
    def of_draws(
        cls, draws: Draws, X: Any, X_reference: Any = None, X_labeled: Any = None
    ) -> tuple["Predictions", "Predictions | None", "Predictions | None"]:
        """Return the predictions of draws for the rows of `X`, and for the others where given.

        Joint draws see all rows at once.
        """
        if X_labeled is not None and n_rows(X_labeled, "X_labeled") == 0:  # a cold start
            X_labeled = None
        others = {"X_reference": X_reference, "X_labeled": X_labeled}
        given = {name: rows for name, rows in others.items() if rows is not None}
        if not getattr(draws, "joint", False):
            prepare(draws, X)
            read = {name: cls(draws=draws, X=rows) for name, rows in given.items()}
            pool = cls(draws=draws, X=X)
        elif not given:
            read, pool = {}, cls(samples=draws(X))
        else:
            (name, rows), *more = given.items()
            if more or (name == "X_labeled" and not hasattr(draws, "together")):
                raise ValueError(
                    "X_labeled needs draws that can predict it beside the pool. Got predictions at "
                    "hand, or joint draws and X_reference too; use select with labeled_samples, or "
                    "a strategy that leaves the labeled rows out."
                )
            samples, other = evaluate_together(draws, X, rows)
            read, pool = {name: cls(samples=other)}, cls(samples=samples)
        return pool, read.get("X_reference"), read.get("X_labeled")

    def collect(self) -> "Predictions":
        """Return predictions evaluated once and held, if a quarter of `working_memory` has room."""
        room = _array.working_bytes() // 4
        if self._samples is not None or self.n_points * self._row_bytes() > room:
            return self
        return Predictions(samples=self.take(np.arange(self.n_points)))

    def take(self, positions: np.ndarray) -> PredictionSamples:
        """Return the samples of some rows."""
        return concatenate([part for _, part in self.chunks(positions)])

    def chunks(
        self, positions: np.ndarray, row_bytes: int = 0
    ) -> Iterator[tuple[slice, PredictionSamples]]:
        """Yield slices of `positions` and the samples of those rows, in working chunks.

        `row_bytes` is the largest temporary that the reader needs per row.
        """
        chunk = _array.chunk_rows(max(row_bytes, self._row_bytes()))
        block = chunk if self._samples is not None else max(chunk, MODEL_BLOCK_ROWS)
        for start in range(0, len(positions), block):
            rows = positions[start : start + block]
            for part in self._read(rows, chunk):
                yield slice(start, start + part.n_points), part
                start += part.n_points

    def _read(self, rows: np.ndarray, chunk: int) -> Iterator[PredictionSamples]:
        """Yield the samples of ascending or arbitrary `rows`, at most `chunk` of them at once."""
        first, last = int(rows[0]), int(rows[-1]) + 1
        run = last - first == len(rows) and bool((np.diff(rows) == 1).all())
        where: Any = slice(first, last) if run else rows
        if self._samples is not None:
            yield self._samples[where]
        else:
            whole = run and len(rows) == self.n_points
            X = self._X if whole else take_rows(self._X, where)
            yield from evaluate_in_chunks(self._draws, X, chunk)

    def _row_bytes(self) -> int:
        """Return the bytes of one row of predictions in float64."""
        if self._samples is not None:
            per_draw = int(np.prod(self._samples.values.shape[2:]))
        else:
            per_draw = 1 if self.classes is None else len(self.classes)
        return 8 * self.n_draws * per_draw


@dataclass(frozen=True)
class Pool:
    """One call, checked: what a strategy's `_select` may look at.

    Attributes
    ----------
    owner : str
        Name of the call for messages, such as "ICALQuery.query".
    n_points : int
        Number of pool rows.
    candidates : intp array of shape (n_candidates,)
        Allowed positions, ascending.
    requested, batch_size : int
        Picks asked for, and picks to make: no more than there are candidates.
    root : int
        The root seed of this call.
    predictions, reference, labeled : Predictions or None
        Of the pool, of the rows to compare with and of the labeled rows, where those are given and
        the strategy reads them.
    model, X_pool, X_labeled, y_labeled : object
        As the caller gave them, or None.
    want_utilities : bool
        Whether the rows of utilities are asked for.
    costs : float64 array of shape (n_candidates,) or None
        What each candidate costs. A strategy chooses through :class:`Batch`, which minds them.
    budget : float
        What all picks may cost together; infinite where there is no limit.
    options : dict
        Keyword arguments of the strategy's own.
    """

    owner: str
    n_points: int
    candidates: np.ndarray
    requested: int
    batch_size: int
    root: int
    predictions: Any = None
    reference: Predictions | None = None
    labeled: Predictions | None = None
    model: Any = None
    X_pool: Any = None
    X_labeled: Any = None
    y_labeled: Any = None
    want_utilities: bool = False
    costs: np.ndarray | None = None
    budget: float = np.inf
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def compared(self) -> Any:
        """The predictions of the rows to compare with: of the reference rows, else of the pool."""
        return self.predictions if self.reference is None else self.reference


@dataclass(frozen=True)
class Selection:
    """What a strategy chose.

    Attributes
    ----------
    positions : intp array of shape (n_picks,)
        In pick order.
    utilities : float64 array of shape (n_picks,)
        The utility of each pick at its step, per cost where the pool has costs.
    rows : float64 array of shape (n_picks, n_points) or None
        What each step chose from, NaN where not allowed.
    minds_costs : bool
        Whether costs and budget of the pool were minded; :class:`Batch` does. A call with costs
        refuses a choice without.
    """

    positions: np.ndarray
    utilities: np.ndarray
    rows: np.ndarray | None = None
    minds_costs: bool = False


class Batch:
    """The picks of one call as a strategy makes them, greedily, within costs and budget.

    A strategy takes one step after the other, with gains that may depend on `chosen`, until the
    batch is `full`. Where the pool has costs, each pick is the free candidate with the largest
    utility per cost among those that what is left of the budget can pay: see
    :func:`~sklearn_ical.selection.per_cost`.

    Parameters
    ----------
    pool : Pool
        The call.

    Attributes
    ----------
    chosen, places : list of int
        Positions in the pool and places among the candidates, in pick order.
    full : bool
        Whether there is nothing left to pick: the batch has its size, or nothing fits any more.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.strategies import Batch, Pool
    >>> pool = Pool(
    ...     owner="MyQuery.query", n_points=5, candidates=np.array([0, 2, 3, 4]), requested=3,
    ...     batch_size=3, root=0, costs=np.array([1.0, 4.0, 1.0, 2.0]), budget=3.0,
    ... )
    >>> batch = Batch(pool)
    >>> while not batch.full:
    ...     batch.take(np.array([2.0, 9.0, 1.0, 3.0]))
    >>> batch.selection().positions
    array([0, 4])
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.chosen: list[int] = []
        self.places: list[int] = []
        self.full = False
        self._utilities: list[float] = []
        self._some_equal = False
        self._left = pool.budget
        self._free: Any = None
        shape = (pool.batch_size, pool.n_points)
        self._rows = np.empty(shape) if pool.want_utilities else None

    def take(
        self,
        utilities: Array,
        size: int = 1,
        *,
        tolerance: float = 0.0,
        exact: Callable[[np.ndarray], np.ndarray] | None = None,
        values: Callable[[np.ndarray], np.ndarray] = np.asarray,
    ) -> None:
        """Take the best `size` candidates of one step, or as many as there is room for.

        Parameters
        ----------
        utilities : array of shape (n_candidates,)
            Of any namespace and device; those of candidates already chosen do not count. Without
            costs and rows of utilities only their order counts.
        size : int, default=1
            How many to take.
        tolerance, exact
            As in :func:`~sklearn_ical.selection.best_k`, with places among the candidates.
        values : callable
            Turns exact scores into utilities by a positive factor; needed where they are not.
        """
        masked = utilities
        if self._free is not None:
            xp = _array.namespace(utilities)
            masked = xp.where(self._free, utilities, xp.full_like(utilities, -float("inf")))
        size = min(size, self.pool.batch_size - len(self.chosen))
        picks = self._best(masked, size, tolerance, exact)
        self._some_equal |= picks.all_equal
        worth = values(picks.scores)
        self._utilities.extend(worth[np.searchsorted(picks.shortlist, picks.positions)])
        if self._rows is not None:
            self._record(_array.to_host(masked), picks, worth)
        self.chosen.extend(self.pool.candidates[picks.positions].tolist())
        self.places.extend(picks.positions.tolist())
        self.full = len(self.chosen) == self.pool.batch_size
        if not self.full:
            self._take_out(picks.positions, utilities)

    def renew(
        self,
        bounds: np.ndarray,
        gains: Callable[[np.ndarray], np.ndarray],
        *,
        tolerance: float = 0.0,
    ) -> float:
        """Replace upper bounds by this step's gains, as far as the best candidate needs it.

        Lazy greedy [1]_: where gains never grow from step to step, those of earlier steps are
        upper bounds. The free candidates are evaluated from the largest bound on, in blocks of
        doubling size, until no bound left reaches the best gain found. :meth:`take` then picks
        from the bounds what it would pick from the gains of all. Where rows of utilities are
        asked for, all are evaluated.

        Parameters
        ----------
        bounds : float64 array of shape (n_candidates,)
            On the host; infinite for candidates never evaluated. Changed in place.
        gains : callable
            ``gains(places)`` returns this step's gains of ascending places among the candidates.
        tolerance : float, default=0.0
            What :meth:`take` will be given.

        Returns
        -------
        best : float
            The largest gain of what may be picked, minus infinity where nothing may.

        References
        ----------
        .. [1] Minoux, "Accelerated greedy algorithms for maximizing submodular set functions",
           Optimization Techniques, 1978.
        """
        costs = self.pool.costs
        waiting = np.ones(len(bounds), dtype=bool)
        if self._free is not None:
            waiting &= _array.to_host(self._free)
        if costs is not None:
            waiting &= costs <= self._left
        ready = np.zeros_like(waiting)
        size = len(bounds) if self._rows is not None else FIRST_BLOCK
        while waiting.any():
            places = np.flatnonzero(waiting)
            if ready.any():
                best = self._worth(bounds - tolerance / 2, ready).max()
                reach = self._worth(bounds + tolerance / 2, waiting)
                places = places[reach >= best]
            if len(places) == 0:
                break
            if len(places) > size:
                worth = self._worth(bounds, places)
                places = np.sort(places[np.argpartition(-worth, size)[:size]])
            bounds[places] = gains(places)
            ready[places], waiting[places] = True, False
            size *= 2
        return float(bounds[ready].max()) if ready.any() else -np.inf

    def selection(self) -> Selection:
        """Return what was chosen, with a warning if nothing distinguished the candidates."""
        if self._some_equal:
            warn_equal_utilities(self.pool.owner)
        n_picks = len(self.chosen)
        return Selection(
            np.array(self.chosen, dtype=np.intp),
            np.array(self._utilities),
            None if self._rows is None else self._rows[:n_picks],
            minds_costs=True,
        )

    def _worth(self, gains: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Return gains of some candidates, per cost where the pool has costs."""
        costs = self.pool.costs
        return gains[where] if costs is None else per_cost(gains[where], costs[where])

    def _best(
        self,
        masked: Array,
        size: int,
        tolerance: float,
        exact: Callable[[np.ndarray], np.ndarray] | None,
    ) -> Picks:
        """Pick among the free candidates, and pay."""
        costs = self.pool.costs
        if costs is None:
            return best_k(masked, size, tolerance=tolerance, exact=exact)
        picks = best_per_cost(
            masked, size, costs, budget=self._left, tolerance=tolerance, exact=exact
        )
        for place in picks.positions.tolist():
            self._left -= float(costs[place])
        return picks

    def _record(self, masked: np.ndarray, picks: Picks, worth: np.ndarray) -> None:
        """Write the row of utilities that each of these picks was chosen from."""
        pool, rows = self.pool, cast(np.ndarray, self._rows)
        values = masked.astype(np.float64)
        if pool.costs is not None:
            values = per_cost(values, pool.costs)
        values[values == -np.inf] = np.nan
        values[picks.shortlist] = worth
        for i, place in enumerate(picks.positions.tolist()):
            if pool.costs is not None:
                values[pool.costs > picks.left[i]] = np.nan
            row = rows[len(self.chosen) + i]
            row[:] = np.nan
            row[pool.candidates] = values
            values[place] = np.nan

    def _take_out(self, places: np.ndarray, utilities: Array) -> None:
        """Mark places as no longer free, where the utilities are, and see what still fits."""
        if self._free is None:
            xp, device = _array.namespace(utilities), _array.device(utilities)
            self._free = xp.ones((len(self.pool.candidates),), dtype=xp.bool, device=device)
        for place in places.tolist():
            self._free[place] = False
        costs = self.pool.costs
        if costs is not None:
            self.full = not (costs[_array.to_host(self._free)] <= self._left).any()


def ties(values: np.ndarray, errors: np.ndarray | float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that tells ties among values, for the `exact` of :meth:`Batch.take`."""
    bounds = np.broadcast_to(errors, values.shape)
    return lambda places: merge_ties(values[places], bounds[places])


class _ModelMean:
    """A model's own `predict_proba`, as one draw: all that a mean-based strategy needs."""

    n_draws = 1
    kind = "proba"
    weights = None
    joint = False

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classes: Any = getattr(model, "classes_", None)

    def __call__(self, X: Any) -> PredictionSamples:
        with untouched(self.model):
            proba = self.model.predict_proba(X)
        if not isinstance(proba, list) and getattr(proba, "ndim", None) == 2:
            # A net may have more outputs than labels were seen.
            known = net_in(self.model) is None or len(self.classes) == proba.shape[1]
            return PredictionSamples(proba[:, None, :], classes=self.classes if known else None)
        got = f"a list of {len(proba)} arrays" if isinstance(proba, list) else repr(proba)
        raise ValueError(
            f"predict_proba of {type(self.model).__name__} must return one (n_points, n_classes) "
            f"array. Got {got}, as multi-output models give; fit one model per output."
        )


def _mean_draws(model: Any) -> Any:
    """Return the model's mean as draws, or None where it does not predict probabilities itself."""
    sampler = net_mean(model)
    if sampler is not None:
        draws = sampler.draw()
        return draws if draws.kind == "proba" else None
    if isinstance(model, type) or not callable(getattr(model, "predict_proba", None)):
        return None
    return _ModelMean(model)


def source_of(model: Any, *, mean_only: bool, X_labeled: Any = None, y_labeled: Any = None) -> Any:
    """Return the draws that were given as model, its mean where that will do, or its sampler.

    The labeled rows are for models without draws of their own, which are refitted on them.
    """
    mean = _mean_draws(model) if mean_only else None
    if mean is not None:
        return mean
    if _is_draws(model):
        return model
    return with_labeled(get_sampler(model), X_labeled, y_labeled)


def drawn(source: Any, seed: int) -> Draws:
    """Return draws as they are, or those of a sampler, checked to be what they should be."""
    if _is_draws(source):
        return source
    draws = source.draw(n_draws=None, random_state=seed)
    if not _is_draws(draws):
        raise TypeError(
            f"draw of {type(source).__name__} must return draws: a callable that gives "
            "PredictionSamples of rows, with n_draws, kind, classes, weights and joint. Got "
            f"{type(draws).__name__}."
        )
    return draws


def _is_draws(model: Any) -> bool:
    """Tell whether `model` is draws already: callable, with a number and a kind of draws."""
    return callable(model) and hasattr(model, "n_draws") and hasattr(model, "kind")
