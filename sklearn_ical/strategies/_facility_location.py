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
from sklearn_ical.selection import merge_ties
from sklearn_ical.strategies._pool import Batch, Pool


class Objective(Protocol):
    """A monotone submodular function of the batch; places count the batch's candidates."""

    @property
    def tolerance(self) -> float:
        """Four error bounds of one gain."""

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
    columns = _array.namespace(similarity).matrix_transpose(similarity)
    columns = np.ascontiguousarray(columns) if _array.is_numpy(columns) else columns
    batch = Batch(pool)
    maximize(batch, MatrixCoverage(columns))
    chosen = batch.selection()
    return chosen.positions, chosen.utilities


class _Columns:
    """Similarities of candidates to reference rows, and sums of what they add to a state.

    A subclass says what: `_added` maps columns (n_places, n_reference) to the terms of their gains,
    all >= 0, and `_terms` does so for one column, as a list of summands.

    Parameters
    ----------
    columns : array of shape (n_columns, n_reference)
        On any backend.
    column_of : int array of shape (n_candidates,) or None
        The column of each candidate, None where each has its own.
    scale : float64 array of shape (n_candidates,) or None
        What each candidate's column is multiplied by.
    share : float
        What sums over the reference rows are multiplied by.
    error : float
        Bound of the rounding errors of the entries of one column, summed.
    """

    def __init__(
        self,
        columns: Array,
        *,
        column_of: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        share: float = 1.0,
        error: float = 0.0,
    ) -> None:
        self._columns = columns
        self._column_of = column_of
        self._scale = scale
        self._share = share
        self._n_candidates = columns.shape[0] if column_of is None else len(column_of)
        self.n_reference = int(columns.shape[1])
        self._column_error = error * share * (1.0 if scale is None else float(np.max(scale)))
        self.restart()
        self._first = self.gains(np.arange(self._n_candidates))

    @property
    def tolerance(self) -> float:
        """Four error bounds of one gain."""
        return 4 * self._error()

    def restart(self) -> None:
        """Forget the batch."""
        xp, device = _array.namespace(self._columns), _array.device(self._columns)
        self._state = xp.zeros((self.n_reference,), dtype=xp.float64, device=device)

    def bounds(self) -> np.ndarray:
        """Return the first gains themselves."""
        return self._first.copy()

    def gains(self, places: np.ndarray) -> np.ndarray:
        """Return the sums over the rows of what columns add to the state."""
        xp = _array.namespace(self._state)
        out = np.empty(len(places))
        for part in self._chunks(len(places)):
            out[part] = _array.to_host(xp.sum(self._added(self._take(places[part])), axis=1))
        return self._share * out

    def exact(self, places: np.ndarray) -> np.ndarray:
        """Return sums that are rounded once, equal for columns that add the same in any way."""
        state = _array.to_host(self._state)
        out = np.empty(len(places))
        for part in self._chunks(len(places)):
            distinct, which = _array.unique_rows(_array.to_host(self._take(places[part])))
            sums = [math.fsum(self._terms(column, state)) for column in distinct]
            out[part] = self._share * np.array(sums)[which]
        return merge_ties(out, self._error()) if self._column_error > 0 else out

    def add(self, place: int) -> float:
        """Put a candidate into the batch."""
        gain = float(self.gains(np.array([place]))[0])
        self._state = self._joined(self._take(np.array([place]))[0, :])
        return gain

    def _error(self) -> float:
        """Bound the rounding error of a gain."""
        raise NotImplementedError

    def _added(self, columns: Array) -> Array:
        raise NotImplementedError

    def _terms(self, column: np.ndarray, state: np.ndarray) -> list[float]:
        raise NotImplementedError

    def _joined(self, column: Array) -> Array:
        raise NotImplementedError

    def _take(self, places: np.ndarray) -> Array:
        """Return some candidates' columns as float64, (n_places, n_reference)."""
        xp = _array.namespace(self._columns)
        where = places if self._column_of is None else self._column_of[places]
        columns = xp.take(self._columns, _array.like(where, self._columns), axis=0)
        columns = xp.astype(columns, xp.float64, copy=False)
        return (
            columns
            if self._scale is None
            else columns * _array.like(self._scale[places], columns)[:, None]
        )

    def _chunks(self, n_places: int) -> list[slice]:
        """Return slices of places whose columns fit in the working chunk."""
        return _array.row_slices(n_places, 8 * self.n_reference)


class MatrixCoverage(_Columns):
    """Facility location: the sum over the reference rows of the largest similarity in the batch.

    A gain is one sum of n_reference differences >= 0, so its error is relative to the gain, and
    no gain is above the largest of the first ones.
    """

    def _error(self) -> float:
        rounding = (self.n_reference + 2) * sys.float_info.epsilon * float(self._first.max())
        return rounding + self._column_error

    def _added(self, columns: Array) -> Array:
        return _array.namespace(columns).clip(columns - self._state, 0.0, None)

    def _terms(self, column: np.ndarray, state: np.ndarray) -> list[float]:
        higher = column > state
        return [*column[higher].tolist(), *(-state[higher]).tolist()]

    def _joined(self, column: Array) -> Array:
        return _array.namespace(column).where(column > self._state, column, self._state)


class ConcaveCoverage(_Columns):
    """The sum over the reference rows of a power of the summed similarities in the batch.

    Parameters
    ----------
    columns : array of shape (n_columns, n_reference)
        As for :class:`MatrixCoverage`.
    gamma : float
        The exponent, 0 < gamma <= 1. With 1 the batch has no say in what a candidate adds.
    **options
        As for :class:`MatrixCoverage`.
    """

    def __init__(self, columns: Array, gamma: float, **options: Any) -> None:
        self._gamma = gamma
        super().__init__(columns, **options)
        # A power is steepest at the smallest number that it is taken of.
        places = np.arange(self._n_candidates)
        least = min(self._least(places[part]) for part in self._chunks(len(places)))
        self._slope = gamma * least ** (gamma - 1)

    def _least(self, places: np.ndarray) -> float:
        """Return the smallest positive entry of some columns, 1 at most."""
        xp, columns = _array.namespace(self._columns), self._take(places)
        return float(xp.min(xp.where(columns > 0, columns, 1.0)))

    def _error(self) -> float:
        value = float(_array.namespace(self._state).sum(self._state**self._gamma))
        largest = self._share * value + float(self._first.max())
        rounding = (self.n_reference + 8) * sys.float_info.epsilon * largest
        return rounding + self._slope * self._column_error

    def _added(self, columns: Array) -> Array:
        return (self._state + columns) ** self._gamma - self._state**self._gamma

    def _terms(self, column: np.ndarray, state: np.ndarray) -> list[float]:
        some = column > 0
        after, before = (state + column)[some] ** self._gamma, state[some] ** self._gamma
        return [*after.tolist(), *(-before).tolist()]

    def _joined(self, column: Array) -> Array:
        return self._state + column


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
