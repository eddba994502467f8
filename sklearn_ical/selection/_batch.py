"""How a batch is picked: the k best with exact ties, within costs and a budget.

Floating-point values only make a shortlist. Every candidate that rounding could have moved past the
k-th best is scored again by a function of the strategy that is exact enough to detect ties; among
equals the lowest position is picked.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._validation import warn_equal_utilities
from sklearn_ical.pool._pool import Pool

# Candidates that lazy greedy evaluates first in each step.
FIRST_BLOCK = 64
# Error bound of values without stated errors, in roundings of the largest value.
DEFAULT_ROUNDINGS = 64


@dataclass(frozen=True)
class Picks:
    """The best positions and the scores that decided.

    Attributes
    ----------
    positions : intp array of shape (n_picks,)
        Best first; equals in ascending order.
    shortlist : intp array of shape (n_shortlist,)
        Every position that could be among the best, ascending.
    scores : array of shape (n_shortlist,)
        Exact scores of the shortlist, in the sortable type returned by the caller's function; per
        cost, in float64, if there are costs.
    all_equal : bool
        Whether more positions were allowed than picked and all had the same exact score.
    left : float64 array of shape (n_picks,)
        Remaining budget before each pick; empty if there are no costs.
    """

    positions: np.ndarray
    shortlist: np.ndarray
    scores: np.ndarray
    all_equal: bool
    left: np.ndarray = field(default_factory=lambda: np.empty(0))


def best_k(
    utilities: Array,
    k: int,
    *,
    tolerance: float = 0.0,
    exact: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Picks:
    """Find the k largest utilities, ties to the lowest position.

    Parameters
    ----------
    utilities : array of shape (n,)
        Of any namespace and device; ``-inf`` marks positions that are not allowed, and at least
        k are allowed.
    k : int
        Number of picks.
    tolerance : float, default=0.0
        Positions within this distance of the k-th best are scored again. Four times the error bound
        of one utility is safe: two utilities compared, twice over.
    exact : callable, default=None
        ``exact(positions)`` returns the exact scores of ascending host positions as a host array;
        None uses the utilities themselves.

    Returns
    -------
    picks : Picks
        On the host. Cost O(n) and a sort of the shortlist.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.selection._batch import best_k
    >>> best_k(np.array([1.0, 3.0, 2.0, 3.0]), 2).positions
    array([1, 3])
    """
    xp = _array.namespace(utilities)
    threshold = float(_array.kth_largest(utilities, k) - tolerance)
    shortlist = _array.to_host(xp.nonzero(utilities >= threshold)[0])
    if exact is None:
        scores = _array.to_host(xp.take(utilities, _array.like(shortlist, utilities), axis=0))
    else:
        scores = exact(shortlist)
    # The shortlist is ascending, so a stable sort keeps the lowest position first among equals.
    order = np.argsort(-scores, kind="stable")[:k]
    all_equal = False
    if len(shortlist) > k and scores.min() == scores.max():
        all_equal = len(shortlist) == int(xp.sum(xp.astype(utilities > -np.inf, xp.int64)))
    return Picks(shortlist[order].astype(np.intp), shortlist, scores, all_equal)


def merge_ties(values: np.ndarray, errors: np.ndarray | float) -> np.ndarray:
    """Make values equal that may differ by rounding alone.

    Values that are equal in exact arithmetic then tie, for any rows, chunks and machine.

    Parameters
    ----------
    values : float64 array of shape (n,)
        On the host. Not modified.
    errors : float or float64 array of shape (n,)
        Bound of the rounding error of each value.

    Returns
    -------
    merged : float64 array of shape (n,)
        In descending order, values become the largest of their run. A value belongs to the run
        before it if it differs from its neighbor by no more than the sum of their bounds, and
        from the largest of the run by no more than twice the largest bound.
    """
    if len(values) == 0:
        return values.copy()
    order = np.argsort(-values, kind="stable")
    ordered, bounds = values[order], np.broadcast_to(errors, values.shape)[order]
    starts = np.concatenate([[True], ordered[:-1] - ordered[1:] > bounds[:-1] + bounds[1:]])
    reach = 2 * float(bounds.max())
    heads = ordered[starts][np.cumsum(starts) - 1]
    while (heads - ordered > reach).any():  # a chain of neighbors, longer than any error
        first = int(np.argmax(heads - ordered > reach))
        starts[first] = True
        heads = ordered[starts][np.cumsum(starts) - 1]
    merged = np.empty_like(values)
    merged[order] = heads
    return merged


def per_cost(utilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return utilities per cost: u / c where u > 0, and u * c elsewhere, all (n,) on the host.

    It increases with the utility, and a more expensive row is never better, also for negative
    utilities, which a plain quotient would shrink.
    """
    with np.errstate(over="ignore"):  # also in the form that is not used
        return np.where(utilities > 0, utilities / costs, utilities * costs)


def best_per_cost(
    utilities: Array,
    k: int,
    costs: np.ndarray,
    *,
    budget: float = np.inf,
    tolerance: float = 0.0,
    exact: Callable[[np.ndarray], np.ndarray] | None = None,
    errors: np.ndarray | float = 0.0,
) -> Picks:
    """Pick by utility per cost among those that fit the budget, until k are picked or none fits.

    Parameters
    ----------
    utilities, tolerance, exact
        As in :func:`best_k`, before they are divided by costs.
    k : int
        Largest number of picks.
    costs : float64 array of shape (n,)
        On the host, > 0.
    budget : float, default=inf
        Largest total cost of the picks.
    errors : float or float64 array of shape (n,), default=0.0
        Bounds of the rounding errors of utilities without `exact`; quotients within theirs tie.

    Returns
    -------
    picks : Picks
        On the host. Cost O(n log n), and a sort of the shortlist.
    """
    values = np.asarray(_array.to_host(utilities), dtype=np.float64)
    lower = per_cost(values - tolerance / 2, costs)
    upper = per_cost(values + tolerance / 2, costs)
    allowed = values > -np.inf
    fits, errors = allowed & (costs <= budget), np.broadcast_to(errors, values.shape)
    picked: list[int] = []
    left: list[float] = []
    shortlists, scores = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    n_sure = k
    while len(picked) < k and fits.any():
        slots = np.flatnonzero(fits)
        threshold = _array.kth_largest(lower[slots], min(n_sure, len(slots)))
        shortlist = slots[upper[slots] >= threshold]
        exact_scores = values[shortlist] if exact is None else exact(shortlist)
        few = DEFAULT_ROUNDINGS * sys.float_info.epsilon if exact_scores.dtype.kind == "f" else 0.0
        bounds = errors[shortlist] if exact is None else few * np.abs(exact_scores)
        order, quotients = _order_per_cost(exact_scores, costs[shortlist], bounds)
        # All down to the last one surely above the threshold are above all that are left out.
        last = np.flatnonzero(lower[shortlist[order]] >= threshold)[-1]
        seen = shortlist[order[: last + 1]]
        for slot in seen.tolist():
            if len(picked) < k and costs[slot] <= budget:
                picked.append(slot)
                left.append(budget)
                budget -= float(costs[slot])
        fits[seen] = False
        fits &= costs <= budget
        shortlists.append(shortlist)
        scores.append(quotients)
        n_sure *= 2  # so that a budget that skips many rows needs few rounds
    shortlist, first = np.unique(np.concatenate(shortlists), return_index=True)
    quotients = np.concatenate(scores)[first]
    equal = len(quotients) > 0 and quotients.min() == quotients.max()
    n_equal = len(shortlist) if equal else 0
    return Picks(
        np.array(picked, dtype=np.intp),
        shortlist,
        quotients,
        all_equal=n_equal == int(allowed.sum()) > len(picked),
        left=np.array(left),
    )


def _order_per_cost(
    scores: np.ndarray, costs: np.ndarray, errors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sort by score per cost, best first, equals in order; also return the quotients.

    Quotients of floats are rounded correctly, so those of exact scores need no bounds.
    """
    quotients = per_cost(scores.astype(np.float64), costs)
    if errors.any():
        bounds = np.where(scores > 0, errors / costs, errors * costs)
        quotients = merge_ties(quotients, bounds + sys.float_info.epsilon * np.abs(quotients))
    return np.argsort(-quotients, kind="stable"), quotients


@dataclass(frozen=True)
class Selection:
    """The result of a strategy.

    Attributes
    ----------
    positions : intp array of shape (n_picks,)
        In pick order.
    utilities : float64 array of shape (n_picks,)
        The utility of each pick at its step, per cost where the pool has costs.
    rows : float64 array of shape (n_picks, n_points) or None
        Utilities of each step, NaN where not allowed.
    handles_costs : bool
        Whether costs and budget of the pool were taken into account, as by :class:`Batch`. A call
        with costs raises otherwise.
    """

    positions: np.ndarray
    utilities: np.ndarray
    rows: np.ndarray | None = None
    handles_costs: bool = False

    @property
    def known_rows(self) -> np.ndarray:
        """The rows, for a call that requested them."""
        return cast(np.ndarray, self.rows)


class Batch:
    """The picks of one call as a strategy makes them, greedily, within costs and budget.

    A strategy takes one step after the other, with gains that may depend on `chosen`, until the
    batch is `full`. If the pool has costs, each pick is the free candidate with the largest utility
    per cost of those that still fit the budget: see :func:`per_cost`.

    Parameters
    ----------
    pool : Pool
        The call.

    Attributes
    ----------
    chosen, slots : list of int
        Positions in the pool and slots among the candidates, in pick order.
    utilities : list of float
        The utility of each pick at its step, per cost where the pool has costs.
    some_equal : bool
        Whether nothing distinguished the candidates in some step, which gives a warning.
    full : bool
        Whether the batch has its size, or no candidate fits the budget any more.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.pool import Pool
    >>> from sklearn_ical.selection import Batch
    >>> pool = Pool(
    ...     caller="MyQuery.query", n_points=5, candidates=np.array([0, 2, 3, 4]), requested=3,
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
        self.slots: list[int] = []
        self.full = False
        self.utilities: list[float] = []
        self.some_equal = False
        self._left = pool.budget
        self._free: Any = None
        shape = (pool.batch_size, pool.n_points)
        self._rows = np.empty(shape) if pool.want_utilities else None

    def take(
        self,
        values: Array,
        size: int = 1,
        *,
        errors: np.ndarray | float | None = None,
        exact: Callable[[np.ndarray], np.ndarray] | None = None,
        utilities_of: Callable[[np.ndarray], np.ndarray] = np.asarray,
    ) -> None:
        """Take the best `size` candidates of one step, or as many as are left to pick.

        Parameters
        ----------
        values : array of shape (n_candidates,)
            Of any namespace and device; those of candidates already chosen are ignored. Without
            costs and rows of utilities only their order counts.
        size : int, default=1
            Number of candidates to take.
        errors : float or float64 array of shape (n_candidates,), default=None
            Bounds of the rounding errors of the values, 0 where they are exact. None is for a few
            roundings of the largest value.
        exact : callable, default=None
            ``exact(slots)`` returns sortable scores of ascending slots, free of rounding, which
            decide between values within their errors. Required if errors are as large as the
            differences that matter; None makes values equal that differ by no more than their
            errors.
        utilities_of : callable
            Turns exact scores into utilities by a positive factor; needed if they are not
            utilities.
        """
        masked = values
        if self._free is not None:
            xp = _array.namespace(values)
            masked = xp.where(self._free, values, xp.full_like(values, -float("inf")))
        if errors is None:
            errors = default_error(values)
        size = min(size, self.pool.batch_size - len(self.chosen))
        picks = self._best(masked, size, errors, exact)
        self.some_equal |= picks.all_equal
        utilities = utilities_of(picks.scores).astype(np.float64)
        self.utilities.extend(utilities[np.searchsorted(picks.shortlist, picks.positions)])
        if self._rows is not None:
            self._record(_array.to_host(masked), picks, utilities)
        self.chosen.extend(self.pool.candidates[picks.positions].tolist())
        self.slots.extend(picks.positions.tolist())
        self.full = len(self.chosen) == self.pool.batch_size
        if not self.full:
            self._take_out(picks.positions, values)

    def refresh_bounds(
        self,
        bounds: np.ndarray,
        gains: Callable[[np.ndarray], np.ndarray],
        errors: np.ndarray | float = 0.0,
    ) -> float:
        """Replace upper bounds by this step's gains, as far as is needed for the best candidate.

        Lazy greedy [1]_: where gains never grow from step to step, those of earlier steps are upper
        bounds. The free candidates are evaluated from the largest bound on, in blocks of doubling
        size, until no bound left reaches the best gain. :meth:`take` then picks from the bounds
        what it would pick from the gains of all. If rows of utilities are requested, all are
        evaluated.

        Parameters
        ----------
        bounds : float64 array of shape (n_candidates,)
            On the host; infinite for candidates never evaluated. Changed in place.
        gains : callable
            ``gains(slots)`` returns this step's gains of ascending slots.
        errors : float or float64 array of shape (n_candidates,), default=0.0
            Bounds of the rounding errors of `bounds` and gains; `gains` may update the array.

        Returns
        -------
        best : float
            The largest gain of candidates that may be picked, minus infinity if there are none.

        References
        ----------
        .. [1] Minoux, "Accelerated greedy algorithms for maximizing submodular set functions",
           Optimization Techniques, 1978.
        """
        waiting = self.may_pick()
        evaluated = np.zeros_like(waiting)
        size = len(bounds) if self._rows is not None else FIRST_BLOCK
        while waiting.any():
            slots = np.flatnonzero(waiting)
            if evaluated.any():
                margin = 2 * np.max(errors)
                best = self._per_cost(bounds - margin, evaluated).max()
                slots = slots[self._per_cost(bounds + margin, waiting) >= best]
            if len(slots) == 0:
                break
            if len(slots) > size:
                utilities = self._per_cost(bounds, slots)
                slots = np.sort(slots[np.argpartition(-utilities, size)[:size]])
            bounds[slots] = gains(slots)
            evaluated[slots], waiting[slots] = True, False
            size *= 2
        return float(bounds[evaluated].max()) if evaluated.any() else -np.inf

    def may_pick(self) -> np.ndarray:
        """Return whether each candidate is free and fits the budget, on the host."""
        costs = self.pool.costs
        free = np.ones(len(self.pool.candidates), dtype=bool)
        if self._free is not None:
            free &= _array.to_host(self._free)
        return free if costs is None else free & (costs <= self._left)

    def selection(self) -> Selection:
        """Return the batch, with a warning if nothing distinguished the candidates."""
        if self.some_equal:
            warn_equal_utilities(self.pool.caller)
        n_picks = len(self.chosen)
        return Selection(
            np.array(self.chosen, dtype=np.intp),
            np.array(self.utilities),
            None if self._rows is None else self._rows[:n_picks],
            handles_costs=True,
        )

    def _per_cost(self, gains: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Return gains of some candidates, per cost if the pool has costs."""
        costs = self.pool.costs
        return gains[where] if costs is None else per_cost(gains[where], costs[where])

    def _best(
        self,
        masked: Array,
        size: int,
        errors: np.ndarray | float,
        exact: Callable[[np.ndarray], np.ndarray] | None,
    ) -> Picks:
        """Pick among the free candidates, and reduce the budget."""
        costs, tolerance = self.pool.costs, 4 * float(np.max(errors))
        if costs is None:
            if exact is None and tolerance > 0:
                exact = _ties(_array.to_host(masked), errors)
            return best_k(masked, size, tolerance=tolerance, exact=exact)
        inexact = errors if exact is None else 0.0
        picks = best_per_cost(
            masked, size, costs, budget=self._left, tolerance=tolerance, exact=exact, errors=inexact
        )
        for slot in picks.positions.tolist():
            self._left -= float(costs[slot])
        return picks

    def _record(self, masked: np.ndarray, picks: Picks, utilities: np.ndarray) -> None:
        """Record the row of utilities that each of these picks was chosen from."""
        pool, rows = self.pool, cast(np.ndarray, self._rows)
        values = masked.astype(np.float64)
        if pool.costs is not None:
            values = per_cost(values, pool.costs)
        values[values == -np.inf] = np.nan
        values[picks.shortlist] = utilities
        for i, slot in enumerate(picks.positions.tolist()):
            if pool.costs is not None:
                values[pool.costs > picks.left[i]] = np.nan
            row = rows[len(self.chosen) + i]
            row[:] = np.nan
            row[pool.candidates] = values
            values[slot] = np.nan

    def _take_out(self, slots: np.ndarray, values: Array) -> None:
        """Mark slots as no longer free, on the device of the utilities, and update what fits."""
        if self._free is None:
            xp, device = _array.namespace(values), _array.device(values)
            self._free = xp.ones((len(self.pool.candidates),), dtype=xp.bool, device=device)
        for slot in slots.tolist():
            self._free[slot] = False
        costs = self.pool.costs
        if costs is not None:
            self.full = not (costs[_array.to_host(self._free)] <= self._left).any()


def _ties(values: np.ndarray, errors: np.ndarray | float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of slots that returns their values, equal where they may be."""
    bounds = np.broadcast_to(errors, values.shape)
    return lambda slots: merge_ties(values[slots].astype(np.float64), bounds[slots])


def default_error(values: Array) -> float:
    """Return the bound of rounding errors of values without one: a few roundings of the largest."""
    host = np.abs(_array.to_host(values))
    largest = float(np.max(host, where=np.isfinite(host), initial=0.0))
    return DEFAULT_ROUNDINGS * sys.float_info.epsilon * largest
