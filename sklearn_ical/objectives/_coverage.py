"""Coverage of reference rows by the columns of a similarity matrix."""

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import Real
from sklearn_ical.selection._batch import merge_ties


class _Columns:
    """Similarities of candidates to reference rows, and sums of what they add to a state.

    A subclass defines what is added, for columns (n_places, n_reference) and for one column as a
    list of summands, and bounds its rounding.

    Parameters
    ----------
    columns : array of shape (n_columns, n_reference)
        On any backend.
    column_of : int array of shape (n_candidates,) or None
        The column of each candidate, None where each has its own.
    scale : float64 array of shape (n_candidates,) or None
        Factor of each candidate's column.
    share : float
        Factor of the sums over the reference rows.
    error : float64 array of shape (n_reference,) or None
        Bounds of the rounding errors of entries, before `scale`; None where they have none.
    on_saturated : callable or None
        Called with the number of picks the first time that no candidate adds anything; the rest
        of the batch then starts again. None leaves the rest in any order.
    """

    submodular = True

    def __init__(
        self,
        columns: Array,
        *,
        column_of: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        share: float = 1.0,
        error: np.ndarray | None = None,
        on_saturated: Callable[[int], None] | None = None,
    ) -> None:
        n_candidates = columns.shape[0] if column_of is None else len(column_of)
        self._columns = columns
        self._column_of = column_of
        self._scale = np.ones(n_candidates) if scale is None else scale
        self._share = share
        self._entry_error = np.zeros(columns.shape[1]) if error is None else error
        self._left = np.ones(n_candidates, dtype=bool)
        self._on_saturated = on_saturated
        self.restart = None if on_saturated is None else self._restart
        self._n_reference = int(columns.shape[1])
        self._clear()
        self._first = self._sums(np.arange(n_candidates))

    @property
    def error(self) -> float:
        """Bound of the error of the gain of any candidate that is left."""
        first = float(np.max(self._first, where=self._left, initial=0.0))
        scale = float(np.max(self._scale, where=self._left, initial=0.0))
        return self._rounding(first) + self._entry_error_bound(scale)

    @property
    def negligible(self) -> float:
        """Largest gain that counts as 0."""
        return 0.0 if self.restart is None else 4 * self.error

    def _restart(self) -> None:
        """Forget the picks so far, as no candidate that is left adds to them."""
        if self._on_saturated is not None:
            self._on_saturated(int((~self._left).sum()))
            self._on_saturated = None
        self._clear()

    def _clear(self) -> None:
        self._n_added = 0
        xp, device = _array.namespace(self._columns), _array.device(self._columns)
        self._state = xp.zeros((self._n_reference,), dtype=xp.float64, device=device)

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, float]:
        """Return what candidates would add, and a bound of the errors."""
        return self._first[slots] if self._n_added == 0 else self._sums(slots), self.error

    def _sums(self, slots: np.ndarray) -> np.ndarray:
        """Return the sums over the rows of what columns add to the state."""
        xp = _array.namespace(self._state)
        out = np.empty(len(slots))
        for part in self._chunks(len(slots)):
            out[part] = _array.to_host(xp.sum(self._added(self._take(slots[part])), axis=1))
        return self._share * out

    def exact(self, slots: np.ndarray) -> np.ndarray:
        """Return sums that are rounded once, equal for columns that add the same in any way."""
        state = _array.to_host(self._state)
        out, errors = np.empty(len(slots)), np.zeros(len(slots))
        for part in self._chunks(len(slots)):
            columns = _array.to_host(self._take(slots[part]))
            distinct, which = _array.unique_rows(columns)
            out[part] = np.array([math.fsum(self._terms(one, state)) for one in distinct])[which]
            if self._entry_error.any():
                errors[part] = self._entry_errors(columns, state) * self._scale[slots[part]]
        out *= self._share
        if not self._entry_error.any():
            return out
        return merge_ties(out, self._share * errors + sys.float_info.epsilon * out)

    def add(self, slot: int) -> None:
        """Add a candidate to the batch."""
        self._state = self._joined(self._take(np.array([slot]))[0, :])
        self._left[slot] = False
        self._n_added += 1

    def _rounding(self, first: float) -> float:
        """Bound the rounding of sums, where no first gain is above `first`."""
        raise NotImplementedError

    def _entry_error_bound(self, scale: float) -> float:
        """Bound the effect of errors of entries on gains of candidates up to this scale."""
        raise NotImplementedError

    def _entry_errors(self, columns: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Bound it for some columns, per share and scale: (n, n_reference) -> (n,)."""
        raise NotImplementedError

    def _added(self, columns: Array) -> Array:
        raise NotImplementedError

    def _terms(self, column: np.ndarray, state: np.ndarray) -> list[float]:
        raise NotImplementedError

    def _joined(self, column: Array) -> Array:
        raise NotImplementedError

    def _take(self, slots: np.ndarray) -> Array:
        """Return some candidates' columns as float64, (n_places, n_reference)."""
        xp = _array.namespace(self._columns)
        where = slots if self._column_of is None else self._column_of[slots]
        columns = xp.take(self._columns, _array.like(where, self._columns), axis=0)
        columns = xp.astype(columns, xp.float64, copy=False)
        scale = self._scale[slots]
        return columns if (scale == 1).all() else columns * _array.like(scale, columns)[:, None]

    def _chunks(self, n_places: int) -> list[slice]:
        """Return slices of slots whose columns fit in the working chunk."""
        return _array.row_slices(n_places, 8 * self._n_reference)


class MatrixCoverage(_Columns):
    """Facility location: the sum over the reference rows of the largest similarity in the batch.

    A gain is one sum of n_reference differences >= 0, so its error is relative to the gain, and
    no gain is above the largest of the first ones.
    """

    def _rounding(self, first: float) -> float:
        return (self._n_reference + 2) * sys.float_info.epsilon * first

    def _entry_error_bound(self, scale: float) -> float:
        return self._share * scale * float(self._entry_error.sum())

    def _entry_errors(self, columns: np.ndarray, state: np.ndarray) -> np.ndarray:
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
        The exponent, 0 < gamma <= 1. With 1 the gain of a candidate does not depend on the batch.
    **options
        As for :class:`MatrixCoverage`.
    """

    def __init__(self, columns: Array, gamma: Real, **options: Any) -> None:
        self._gamma = gamma
        super().__init__(columns, **options)

    def _rounding(self, first: float) -> float:
        value = float(_array.namespace(self._state).sum(self._state**self._gamma))
        largest = self._share * value + first
        return (self._n_reference + 8) * sys.float_info.epsilon * largest

    def _entry_error_bound(self, scale: float) -> float:
        errors, state = scale * self._entry_error, _array.to_host(self._state)
        # The error of a power is at most the power of the error, which it is at 0.
        powers, shifts = errors**self._gamma, self._slopes(state) * errors
        return self._share * float(np.where(state > 0, np.minimum(powers, shifts), powers).sum())

    def _entry_errors(self, columns: np.ndarray, state: np.ndarray) -> np.ndarray:
        return self._slopes(np.where(state > 0, state, columns)) @ self._entry_error

    def _slopes(self, sums: np.ndarray) -> np.ndarray:
        """Return the factors of errors of entries in powers of sums with the batch's; 0 for 0."""
        n_entries = 1 + self._n_added
        powers = np.where(sums > 0, sums, 1.0) ** (self._gamma - 1)
        return np.where(sums > 0, n_entries * self._gamma * powers, 0.0)

    def _added(self, columns: Array) -> Array:
        return (self._state + columns) ** self._gamma - self._state**self._gamma

    def _terms(self, column: np.ndarray, state: np.ndarray) -> list[float]:
        added = column > 0
        after, before = (state + column)[added] ** self._gamma, state[added] ** self._gamma
        return [*after.tolist(), *(-before).tolist()]

    def _joined(self, column: Array) -> Array:
        return self._state + column
