"""Facility location: its greedy maximizer, and the array function for an explicit similarity.

The maximizer knows bounds, gains and ties; what is covered, and how, an objective alone knows.
"""

import math
import sys
from typing import Any, Protocol

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._validation import clip_batch_size
from sklearn_ical.strategies._pool import Batch, Pool


class Objective(Protocol):
    """A monotone submodular function of the batch; places count the batch's candidates.

    `tolerance` is four error bounds of one gain.
    """

    tolerance: float

    def bounds(self) -> np.ndarray:
        """Return upper bounds of the first gains, float64 (n_candidates,)."""

    def gains(self, places: np.ndarray) -> np.ndarray:
        """Return what each of some ascending places would add to the batch as it is."""

    def exact(self, places: np.ndarray) -> np.ndarray:
        """Return the same, precise enough to tell ties."""

    def add(self, place: int) -> float:
        """Put a place into the batch, and return what it added, 0.0 only if it is nothing."""


def maximize(batch: Batch, objective: Objective) -> None:
    """Fill a batch by lazy greedy, which picks what plain greedy picks."""
    bounds = objective.bounds()
    gain = np.inf
    while not batch.full and gain > 0:
        batch.renew(bounds, objective.gains, tolerance=objective.tolerance)
        batch.take(bounds, tolerance=objective.tolerance, exact=objective.exact)
        gain = objective.add(batch.places[-1])
    if not batch.full:  # the best added nothing, so none will
        batch.take(np.zeros_like(bounds), len(bounds))


def facility_location(similarity: Array, batch_size: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Choose columns that together are similar to all rows, greedily.

    The objective is f(S) = sum over rows i of max over s in S of similarity[i, s], 0 for no
    column at all: monotone and submodular, so the greedy batch reaches at least 1 - 1/e of the
    best one's value [1]_.

    Parameters
    ----------
    similarity : array of shape (n_reference, n_candidates)
        How well each candidate stands for each reference row, finite and >= 0. Not modified.
    batch_size : int, default=1
        How many candidates to choose; all, with a warning, if there are fewer.

    Returns
    -------
    indices : intp array of shape (n_picks,)
        Distinct columns, in pick order, on the host. Ties go to the lowest.
    gains : float64 array of shape (n_picks,)
        What each pick added to f, in the unit of `similarity`; never growing. Their running sum
        is f of the batch so far.

    Raises
    ------
    TypeError
        If `similarity` is no real array, or `batch_size` no integer.
    ValueError
        If `similarity` has no two axes with entries, or some that are negative or not finite.

    See Also
    --------
    FASSQuery : Facility location on the features of uncertain rows.

    Notes
    -----
    Lazy greedy [2]_: gains never grow, so those of earlier steps bound those of later ones and
    few have to be computed anew. Cost O(n_reference n_candidates), and n_reference for each gain
    that is renewed. Sums are in float64, of columns in chunks; numpy arrays are copied once unless
    their columns are contiguous (``order="F"``).

    References
    ----------
    .. [1] Nemhauser, Wolsey and Fisher, "An analysis of approximations for maximizing submodular
       set functions", Mathematical Programming, 1978.
    .. [2] Minoux, "Accelerated greedy algorithms for maximizing submodular set functions",
       Optimization Techniques, 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.strategies import facility_location
    >>> x = np.array([0.0, 1.0, 2.0, 10.0])
    >>> facility_location(100 - (x[:, None] - x) ** 2, batch_size=2)
    (array([2, 3]), array([331.,  64.]))
    """
    owner = "facility_location"
    _check_similarity(similarity, owner)
    n_candidates = similarity.shape[1]
    n_picks = clip_batch_size(batch_size, n_candidates, owner)
    pool = Pool(
        owner=owner,
        n_points=n_candidates,
        candidates=np.arange(n_candidates),
        requested=int(batch_size),
        batch_size=n_picks,
        root=0,
    )
    batch = Batch(pool)
    maximize(batch, MatrixCoverage(similarity))
    chosen = batch.selection()
    return chosen.positions, chosen.utilities


class MatrixCoverage:
    """Coverage of the rows of a similarity matrix, (n_reference, n_candidates), on any backend.

    A gain is one sum of n_reference differences >= 0, so its error is relative to the gain, and
    no gain is above the largest of the first ones.
    """

    def __init__(self, similarity: Array) -> None:
        xp = _array.namespace(similarity)
        n_reference, n_candidates = similarity.shape
        columns = xp.matrix_transpose(similarity)  # (n_candidates, n_reference)
        self._columns = np.ascontiguousarray(columns) if _array.is_numpy(columns) else columns
        self._cover = xp.zeros((n_reference,), dtype=xp.float64, device=_array.device(similarity))
        self._first = self.gains(np.arange(n_candidates))
        largest = float(self._first.max())
        self.tolerance = 4 * (n_reference + 2) * sys.float_info.epsilon * largest

    def bounds(self) -> np.ndarray:
        """Return the first gains themselves."""
        return self._first.copy()

    def gains(self, places: np.ndarray) -> np.ndarray:
        """Return the sums over the rows of what columns add to the cover."""
        xp = _array.namespace(self._cover)
        out = np.empty(len(places))
        for part in self._chunks(len(places)):
            added = xp.clip(self._take(places[part]) - self._cover, 0.0, None)
            out[part] = _array.to_host(xp.sum(added, axis=1))
        return out

    def exact(self, places: np.ndarray) -> np.ndarray:
        """Return sums that are rounded once, equal for columns that add the same in any way."""
        cover = _array.to_host(self._cover)
        out = np.empty(len(places))
        for part in self._chunks(len(places)):
            distinct, which = _array.unique_rows(_array.to_host(self._take(places[part])))
            sums = []
            for column in distinct:
                higher = column > cover
                sums.append(math.fsum([*column[higher].tolist(), *(-cover[higher]).tolist()]))
            out[part] = np.array(sums)[which]
        return out

    def add(self, place: int) -> float:
        """Raise the cover to one column where that is higher."""
        xp = _array.namespace(self._cover)
        gain = float(self.gains(np.array([place]))[0])
        column = self._take(np.array([place]))[0, :]
        self._cover = xp.where(column > self._cover, column, self._cover)
        return gain

    def _take(self, places: np.ndarray) -> Array:
        """Return some columns as float64, (n_places, n_reference)."""
        xp = _array.namespace(self._columns)
        columns = xp.take(self._columns, _array.like(places, self._columns), axis=0)
        return xp.astype(columns, xp.float64, copy=False)

    def _chunks(self, n_places: int) -> list[slice]:
        """Return slices of places whose columns fit in the working chunk."""
        size = _array.chunk_rows(8 * self._columns.shape[1])
        return [slice(start, start + size) for start in range(0, n_places, size)]


def _check_similarity(similarity: Any, owner: str) -> None:
    """Refuse what is no finite and non-negative matrix."""
    rule = "similarity must be an array of shape (n_reference, n_candidates)"
    if not _array.is_array(similarity):
        raise TypeError(f"{rule}. Got {type(similarity).__name__} in {owner}.")
    xp = _array.namespace(similarity)
    if not xp.isdtype(similarity.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"{rule} of real numbers. Got dtype {similarity.dtype} in {owner}.")
    if similarity.ndim != 2 or 0 in similarity.shape:
        raise ValueError(
            f"{rule}, at least one of each. Got shape {tuple(similarity.shape)} in {owner}."
        )
    if not xp.isdtype(similarity.dtype, "real floating"):
        lowest, finite = float(xp.min(xp.astype(similarity, xp.float64))), True
    else:
        lowest, finite = float(xp.min(similarity)), bool(xp.all(xp.isfinite(similarity)))
    if finite and not float(xp.max(similarity)) < sys.float_info.max / 2 / similarity.shape[0]:
        raise ValueError(
            f"similarity must not overflow float64 when added up. Got {float(xp.max(similarity))} "
            f"in {owner}; divide it by its largest entry."
        )
    if not finite or lowest < 0:
        raise ValueError(
            f"similarity must be finite and >= 0. Got {lowest if finite else 'NaN or infinity'} in "
            f"{owner}; shift similarities so that the least is 0."
        )
