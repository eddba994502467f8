"""Maximisers that know only utilities and costs: the k best of an array, ties decided exactly.

Floating-point utilities only make a shortlist. Every position that rounding could have moved past
the k-th best is scored again by a function that the caller gives, whose answers are exact enough
to tell ties; among equals the lowest position wins.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array

__all__ = ["Picks", "best_k", "best_per_cost", "merge_ties", "per_cost"]


@dataclass(frozen=True)
class Picks:
    """The best positions and what decided them.

    Attributes
    ----------
    positions : intp array of shape (n_picks,)
        Best first; equals in ascending order.
    shortlist : intp array of shape (n_shortlist,)
        Every position that could be among the best, ascending.
    scores : array of shape (n_shortlist,)
        Exact scores of the shortlist, in whatever sortable type the caller's function returned;
        per cost, in float64, where there are costs.
    all_equal : bool
        Whether more positions were allowed than picked and all had the same exact score.
    left : float64 array of shape (n_picks,)
        What was left of the budget before each pick; empty where there are no costs.
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
        How many to pick.
    tolerance : float, default=0.0
        Positions within so much of the k-th best are scored again. Four times the error bound of
        one utility is safe: two utilities compared, twice over.
    exact : callable, default=None
        ``exact(positions)`` returns the exact scores of ascending host positions as a host array;
        None takes the utilities themselves.

    Returns
    -------
    picks : Picks
        On the host. Cost O(n) and a sort of the shortlist.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.selection import best_k
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
    # The shortlist ascends, so a stable sort leaves the lowest position first among equals.
    order = np.argsort(-scores, kind="stable")[:k]
    all_equal = False
    if len(shortlist) > k and scores.min() == scores.max():
        all_equal = len(shortlist) == int(xp.sum(xp.astype(utilities > -np.inf, xp.int64)))
    return Picks(shortlist[order].astype(np.intp), shortlist, scores, all_equal)


def merge_ties(values: np.ndarray, errors: np.ndarray | float) -> np.ndarray:
    """Make values equal that rounding alone may have told apart.

    What is equal in exact arithmetic then ties, whatever the rows, chunks and machine.

    Parameters
    ----------
    values : float64 array of shape (n,)
        On the host. Not modified.
    errors : float or float64 array of shape (n,)
        Bound on the rounding error of each value.

    Returns
    -------
    merged : float64 array of shape (n,)
        Neighbors in order that differ by no more than the sum of their errors become the largest
        of their run.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.selection import merge_ties
    >>> merge_ties(np.array([0.3, 0.1 + 0.2, 0.5]), 1e-15)
    array([0.3, 0.3, 0.5])
    """
    order = np.argsort(-values, kind="stable")
    ordered, bounds = values[order], np.broadcast_to(errors, values.shape)[order]
    starts = np.concatenate([[True], ordered[:-1] - ordered[1:] > bounds[:-1] + bounds[1:]])
    merged = np.empty_like(values)
    merged[order] = ordered[starts][np.cumsum(starts) - 1]
    return merged


def per_cost(utilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return utilities per cost: u / c where u > 0, and u * c elsewhere.

    It ascends in the utility and a dearer row is never better, for losses too, which a plain
    quotient would shrink.

    Parameters
    ----------
    utilities : array of shape (n,)
        On the host: floats, or an object array of fractions.
    costs : array of shape (n,)
        Likewise, > 0.

    Returns
    -------
    worth : array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.selection import per_cost
    >>> per_cost(np.array([3.0, 3.0, 0.0, -1.0]), np.array([1.0, 2.0, 2.0, 2.0]))
    array([ 3. ,  1.5,  0. , -2. ])
    """
    with np.errstate(over="ignore"):  # also in the form that is not taken
        return np.where(utilities > 0, utilities / costs, utilities * costs)


def best_per_cost(
    utilities: Array,
    k: int,
    costs: np.ndarray,
    *,
    budget: float = np.inf,
    tolerance: float = 0.0,
    exact: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Picks:
    """Pick by utility per cost what still fits in the budget, until nothing does or k are picked.

    Parameters
    ----------
    utilities, tolerance, exact
        As in :func:`best_k`, before they are put in relation to costs.
    k : int
        How many to pick at most.
    costs : float64 array of shape (n,)
        On the host, > 0.
    budget : float, default=inf
        What all picks may cost together.

    Returns
    -------
    picks : Picks
        On the host. Cost O(n log n), and a sort of the shortlist.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.selection import best_per_cost
    >>> best_per_cost(np.array([4.0, 3.0, 1.0]), 2, np.array([4.0, 1.0, 1.0]), budget=3).positions
    array([1, 2])
    """
    values = np.asarray(_array.to_host(utilities), dtype=np.float64)
    lower = per_cost(values - tolerance / 2, costs)
    upper = per_cost(values + tolerance / 2, costs)
    allowed = values > -np.inf
    fits = allowed & (costs <= budget)
    picked: list[int] = []
    left: list[float] = []
    shortlists, scores = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    n_sure = k
    while len(picked) < k and fits.any():
        places = np.flatnonzero(fits)
        threshold = _array.kth_largest(lower[places], min(n_sure, len(places)))
        shortlist = places[upper[places] >= threshold]
        found = values[shortlist] if exact is None else exact(shortlist)
        order, worth = _order_per_cost(found, costs[shortlist])
        # All down to the last that is above the threshold for sure are above all that is left out.
        last = np.flatnonzero(lower[shortlist[order]] >= threshold)[-1]
        seen = shortlist[order[: last + 1]]
        for place in seen.tolist():
            if len(picked) < k and costs[place] <= budget:
                picked.append(place)
                left.append(budget)
                budget -= float(costs[place])
        fits[seen] = False
        fits &= costs <= budget
        shortlists.append(shortlist)
        scores.append(worth)
        n_sure *= 2  # so that a budget that skips many rows takes few rounds
    shortlist, first = np.unique(np.concatenate(shortlists), return_index=True)
    worth = np.concatenate(scores)[first]
    n_equal = len(shortlist) if len(worth) and worth.min() == worth.max() else 0
    return Picks(
        np.array(picked, dtype=np.intp),
        shortlist,
        worth,
        all_equal=n_equal == int(allowed.sum()) > len(picked),
        left=np.array(left),
    )


def _order_per_cost(scores: np.ndarray, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort by exact score per cost, best first, equals as they come; also return it in float64.

    Quotients of floats are rounded correctly, so equals stay equal and order is never reversed;
    where unequal ones are merged, fractions decide.
    """
    if scores.dtype == object or (scores.dtype.kind in "iu" and np.abs(scores).max() > 2**53):
        worth = per_cost(_fractions(scores), _fractions(costs)).astype(np.float64)
    else:
        worth = per_cost(scores.astype(np.float64), costs)
    order = np.argsort(-worth, kind="stable")
    prices = np.where(scores == 0, 1.0, costs)[order]  # nothing is nothing at any price
    equal = worth[order][1:] == worth[order][:-1]
    mixed = equal & ((scores[order][1:] != scores[order][:-1]) | (prices[1:] != prices[:-1]))
    starts = np.flatnonzero(np.concatenate([[True], ~equal]))
    ends = np.append(starts[1:], len(order))
    for run in np.unique(np.searchsorted(starts, np.flatnonzero(mixed), side="right") - 1):
        part = order[starts[run] : ends[run]]
        fractions = per_cost(_fractions(scores[part]), _fractions(costs[part]))
        order[starts[run] : ends[run]] = part[np.argsort(-fractions, kind="stable")]
    return order, worth


def _fractions(values: np.ndarray) -> np.ndarray:
    """Return the same numbers as fractions, in an object array."""
    return np.array([Fraction(value) for value in values.tolist()], dtype=object)
