"""Facility location: its greedy maximizer, and the array function for an explicit similarity.

The maximizer knows bounds, gains and ties; what is covered, and how, an objective alone knows.
"""

import math
import sys
from typing import Any, Protocol

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import Integer, Real
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


def facility_location(similarity: Array, batch_size: Integer = 1) -> tuple[np.ndarray, np.ndarray]:
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

    A subclass says what is added, for columns (n_places, n_reference) and for one column as a list
    of summands, and what rounding may do to that.

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
    error : float64 array of shape (n_reference,) or None
        Bounds of the rounding errors of entries, before `scale`; None where they have none.
    """

    def __init__(
        self,
        columns: Array,
        *,
        column_of: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        share: float = 1.0,
        error: np.ndarray | None = None,
    ) -> None:
        n_candidates = columns.shape[0] if column_of is None else len(column_of)
        self._columns = columns
        self._column_of = column_of
        self._scale = np.ones(n_candidates) if scale is None else scale
        self._share = share
        self._entry_error = np.zeros(columns.shape[1]) if error is None else error
        self._left = np.ones(n_candidates, dtype=bool)
        self.n_reference = int(columns.shape[1])
        self.restart()
        self._first = self.gains(np.arange(n_candidates))

    @property
    def tolerance(self) -> float:
        """Four error bounds of the gain of any candidate that is left."""
        first = float(np.max(self._first, where=self._left, initial=0.0))
        scale = float(np.max(self._scale, where=self._left, initial=0.0))
        return 4 * (self._rounding(first) + self._doubt(scale))

    def restart(self) -> None:
        """Forget what the batch adds."""
        self._n_added = 0
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
        out, errors = np.empty(len(places)), np.zeros(len(places))
        for part in self._chunks(len(places)):
            columns = _array.to_host(self._take(places[part]))
            distinct, which = _array.unique_rows(columns)
            out[part] = np.array([math.fsum(self._terms(one, state)) for one in distinct])[which]
            if self._entry_error.any():
                errors[part] = self._doubts(columns, state) * self._scale[places[part]]
        out *= self._share
        if not self._entry_error.any():
            return out
        return merge_ties(out, self._share * errors + sys.float_info.epsilon * out)

    def add(self, place: int) -> float:
        """Put a candidate into the batch."""
        gain = float(self.gains(np.array([place]))[0])
        self._state = self._joined(self._take(np.array([place]))[0, :])
        self._left[place] = False
        self._n_added += 1
        return gain

    def _rounding(self, first: float) -> float:
        """Bound the rounding of sums, where no first gain is above `first`."""
        raise NotImplementedError

    def _doubt(self, scale: float) -> float:
        """Bound what errors of entries do to a gain, where no candidate has a larger scale."""
        raise NotImplementedError

    def _doubts(self, columns: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Do so for some columns, per share and scale: (n, n_reference) -> (n,)."""
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
        scale = self._scale[places]
        return columns if (scale == 1).all() else columns * _array.like(scale, columns)[:, None]

    def _chunks(self, n_places: int) -> list[slice]:
        """Return slices of places whose columns fit in the working chunk."""
        return _array.row_slices(n_places, 8 * self.n_reference)


class MatrixCoverage(_Columns):
    """Facility location: the sum over the reference rows of the largest similarity in the batch.

    A gain is one sum of n_reference differences >= 0, so its error is relative to the gain, and
    no gain is above the largest of the first ones.
    """

    def _rounding(self, first: float) -> float:
        return (self.n_reference + 2) * sys.float_info.epsilon * first

    def _doubt(self, scale: float) -> float:
        return self._share * scale * float(self._entry_error.sum())

    def _doubts(self, columns: np.ndarray, state: np.ndarray) -> np.ndarray:
        return np.full(len(columns), self._entry_error.sum())

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

    def __init__(self, columns: Array, gamma: Real, **options: Any) -> None:
        self._gamma = gamma
        super().__init__(columns, **options)

    def _rounding(self, first: float) -> float:
        value = float(_array.namespace(self._state).sum(self._state**self._gamma))
        largest = self._share * value + first
        return (self.n_reference + 8) * sys.float_info.epsilon * largest

    def _doubt(self, scale: float) -> float:
        errors, state = scale * self._entry_error, _array.to_host(self._state)
        # What an error does to a power is at most the power of the error, at 0.
        powers, shifts = errors**self._gamma, self._slopes(state) * errors
        return self._share * float(np.where(state > 0, np.minimum(powers, shifts), powers).sum())

    def _doubts(self, columns: np.ndarray, state: np.ndarray) -> np.ndarray:
        return self._slopes(np.where(state > 0, state, columns)) @ self._entry_error

    def _slopes(self, sums: np.ndarray) -> np.ndarray:
        """Return how errors of entries count in powers of sums that hold the batch's; 0 for 0."""
        n_entries = 1 + self._n_added
        powers = np.where(sums > 0, sums, 1.0) ** (self._gamma - 1)
        return np.where(sums > 0, n_entries * self._gamma * powers, 0.0)

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
