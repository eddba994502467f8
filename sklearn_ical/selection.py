"""Maximisers that know only utilities: the k best of an array, with ties decided exactly.

Floating-point utilities only make a shortlist. Every position that rounding could have moved past
the k-th best is scored again by a function that the caller gives, whose answers are exact enough
to tell ties; among equals the lowest position wins.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array

__all__ = ["Picks", "best_k"]


@dataclass(frozen=True)
class Picks:
    """The k best positions and what decided them.

    Attributes
    ----------
    positions : intp array of shape (k,)
        Best first; equals in ascending order.
    shortlist : intp array of shape (n_shortlist,)
        Every position that could be among the k best, ascending.
    scores : array of shape (n_shortlist,)
        Exact scores of the shortlist, in whatever sortable type the caller's function returned.
    all_equal : bool
        Whether more than k positions were allowed and all had the same exact score.
    """

    positions: np.ndarray
    shortlist: np.ndarray
    scores: np.ndarray
    all_equal: bool


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
