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
        Bounds of the rounding errors of entries above 0, before `scale`; None where they have none.
        Entries that are 0 have none.
    extent : float64 array of shape (n_candidates,) or None
        Factor of `error` for each candidate, None for 1.
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
        extent: np.ndarray | None = None,
        on_saturated: Callable[[int], None] | None = None,
    ) -> None:
        n_candidates = columns.shape[0] if column_of is None else len(column_of)
        self._columns = columns
        self._column_of = column_of
        self._scale = np.ones(n_candidates) if scale is None else scale
        self._share = share
        self._entry_error = np.zeros(columns.shape[1]) if error is None else error
        self._extent = self._scale if extent is None else self._scale * extent
        self._left = np.ones(n_candidates, dtype=bool)
        self._on_saturated = on_saturated
        self.restart = None if on_saturated is None else self._restart
        self._n_reference = int(columns.shape[1])
        self._clear()
        self._first = self._first_sums(np.arange(n_candidates))

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
        self._state_error = np.zeros(self._n_reference)

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what candidates would add, and bounds of the errors.

        Where nothing left to add is an event, gains that may be 0 are 0.
        """
        gains = self._first[slots] if self._n_added == 0 else self._sums(slots)
        errors = self._rounding() + self._share * self._entry_error_bounds(slots)
        return gains if self.restart is None else np.where(gains > 4 * errors, gains, 0.0), errors

    def _first_sums(self, slots: np.ndarray) -> np.ndarray:
        """Return the sums of all candidates while the state is 0."""
        return self._sums(slots)

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
            terms = [self._terms(one, state) for one in distinct]
            out[part] = np.array([math.fsum(each) for each in terms])[which]
            extents = np.array([math.fsum(map(abs, each)) for each in terms])[which]
            entries = self._extent[slots[part], None] * self._entry_error
            errors[part] = self._entry_errors(columns, entries, state) + self._of_term * extents
        out *= self._share
        if not errors.any():
            return out
        errors = self._share * errors + sys.float_info.epsilon * out
        return merge_ties(np.where(out > errors, out, 0.0), errors)

    def add(self, slot: int) -> None:
        """Add a candidate to the batch."""
        column = self._take(np.array([slot]))[0, :]
        errors = np.where(_array.to_host(column) > 0, self._extent[slot] * self._entry_error, 0.0)
        self._state, self._state_error = self._joined(column, errors)
        self._left[slot] = False
        self._n_added += 1

    # Factor of the magnitude of terms for the rounding of each.
    _of_term = 0.0

    def _rounding(self) -> float:
        """Bound the rounding of sums of candidates that are left."""
        raise NotImplementedError

    def _entry_error_bounds(self, slots: np.ndarray) -> np.ndarray:
        """Bound the effect of errors of entries on gains, per share."""
        raise NotImplementedError

    def _entry_errors(
        self, columns: np.ndarray, entries: np.ndarray, state: np.ndarray
    ) -> np.ndarray:
        """Bound it for some columns and errors of their entries, (n, n_reference) -> (n,)."""
        raise NotImplementedError

    def _added(self, columns: Array) -> Array:
        raise NotImplementedError

    def _terms(self, column: np.ndarray, state: np.ndarray) -> list[float]:
        raise NotImplementedError

    def _joined(self, column: Array, errors: np.ndarray) -> tuple[Array, np.ndarray]:
        """Return the state with a column, and bounds of the errors of its entries."""
        raise NotImplementedError

    def _highest_first(self) -> float:
        """Return the largest first gain of the candidates that are left."""
        return float(np.max(self._first, where=self._left, initial=0.0))

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

    def _rounding(self) -> float:
        return (self._n_reference + 2) * sys.float_info.epsilon * self._highest_first()

    def _entry_error_bounds(self, slots: np.ndarray) -> np.ndarray:
        return self._extent[slots] * self._entry_error.sum() + self._state_error.sum()

    def _entry_errors(
        self, columns: np.ndarray, entries: np.ndarray, state: np.ndarray
    ) -> np.ndarray:
        errors = entries + self._state_error
        return np.sum(errors, axis=1, where=columns + errors > state)

    def _added(self, columns: Array) -> Array:
        return _array.namespace(columns).clip(columns - self._state, 0.0, None)

    def _terms(self, column: np.ndarray, state: np.ndarray) -> list[float]:
        higher = column > state
        return [*column[higher].tolist(), *(-state[higher]).tolist()]

    def _joined(self, column: Array, errors: np.ndarray) -> tuple[Array, np.ndarray]:
        state = _array.namespace(column).where(column > self._state, column, self._state)
        near = _array.to_host(column) + errors + self._state_error >= _array.to_host(self._state)
        return state, np.where(near, np.maximum(errors, self._state_error), self._state_error)


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

    _of_term = 3 * sys.float_info.epsilon

    def __init__(self, columns: Array, gamma: Real, **options: Any) -> None:
        self._gamma = gamma
        super().__init__(columns, **options)

    def _rounding(self) -> float:
        value = float(_array.namespace(self._state).sum(self._state**self._gamma))
        largest = self._share * value + self._highest_first()
        return (self._n_reference + 8) * sys.float_info.epsilon * largest

    def _entry_error_bounds(self, slots: np.ndarray) -> np.ndarray:
        state = _array.to_host(self._state)
        return self._first_errors[slots] + 2 * float(self._slopes(state) @ self._state_error)

    def _entry_errors(
        self, columns: np.ndarray, entries: np.ndarray, state: np.ndarray
    ) -> np.ndarray:
        after = self._slopes(state + columns) * (entries + self._state_error)
        before = self._slopes(state) * self._state_error
        return np.sum(after + before, axis=1, where=columns > 0)

    def _first_sums(self, slots: np.ndarray) -> np.ndarray:
        """Also bound the effect of errors of entries on these sums, per share."""
        self._first_errors = np.zeros(len(slots))
        if not self._entry_error.any():
            return self._sums(slots)
        out, error = np.empty(len(slots)), _array.like(self._entry_error, self._state)
        xp = _array.namespace(self._state)
        for part in self._chunks(len(slots)):
            columns = self._take(slots[part])
            powers = columns**self._gamma
            slopes = powers / xp.where(columns > 0, columns, xp.ones_like(columns))
            out[part] = _array.to_host(xp.sum(powers, axis=1))
            self._first_errors[part] = self._extent[part] * _array.to_host(slopes @ error)
        return self._share * out

    def _slopes(self, sums: np.ndarray) -> np.ndarray:
        """Return factors of errors of sums, in powers of the sums; 0 for 0.

        A power with an exponent of at most 1 changes by no larger a share than its base.
        """
        powers = np.where(sums > 0, sums, 1.0) ** (self._gamma - 1)
        return np.where(sums > 0, powers, 0.0)

    def _added(self, columns: Array) -> Array:
        return (self._state + columns) ** self._gamma - self._state**self._gamma

    def _terms(self, column: np.ndarray, state: np.ndarray) -> list[float]:
        added = column > 0
        after, before = (state + column)[added] ** self._gamma, state[added] ** self._gamma
        return [*after.tolist(), *(-before).tolist()]

    def _joined(self, column: Array, errors: np.ndarray) -> tuple[Array, np.ndarray]:
        return self._state + column, self._state_error + errors
