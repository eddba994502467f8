"""Scores of label samples: delta kernels of distinct label patterns, decided in integers."""

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import HSICEstimator
from sklearn_ical.dependence import delta_kernel, hsic_dual
from sklearn_ical.dependence._features import label_features
from sklearn_ical.dependence._hsic import integer_hsic, integer_self_hsic
from sklearn_ical.objectives.hsic._dependence import Dependence, StepScores


class LabelDependence(Dependence):
    """Scores label samples by the delta kernel; equal patterns of labels are multiplied once.

    Parameters
    ----------
    labels : integer array of shape (n_candidates, n_draws)
    reference_labels : integer array of shape (n_reference_rows, n_draws)
    reference_rows : int array of shape (n_reference_rows,)
        Ascending positions that the reference labels belong to.
    estimator, weights
        As in :class:`Dependence`.
    integers : bool
        Whether scores are sums of HSIC of equal weights, which are multiples of a unit.
    """

    def __init__(
        self,
        labels: Array,
        reference_labels: Array,
        reference_rows: np.ndarray,
        estimator: HSICEstimator,
        weights: Any,
        *,
        integers: bool,
    ) -> None:
        super().__init__(labels.shape[0], labels.shape[1], estimator, weights, diagonal=False)
        self.integers = integers
        self.labels = labels
        self.reference_labels = reference_labels
        self.reference_rows = reference_rows
        constant = _agreeing_labels(labels)
        kept = _array.like(np.flatnonzero(~constant), labels)
        varied = _array.namespace(labels).take(labels, kept, axis=0)
        patterns, inverse = _array.unique_rows(varied)
        self.patterns = patterns
        self.n_atoms = int(patterns.shape[0])
        if self.n_atoms == labels.shape[0]:
            self.patterns = labels
        else:
            self.atom_of = np.full(labels.shape[0], self.n_atoms)
            self.atom_of[~constant] = _array.to_host(inverse)
            self.counts = np.bincount(self.atom_of, minlength=self.n_atoms)
        self._reference_constant = _agreeing_labels(reference_labels)

    def pair_sums(self, references: list[np.ndarray]) -> tuple[Array, np.ndarray]:
        xp = _array.namespace(self.labels)
        step = _array.chunk_rows(4 * self.n_pairs)
        sums, n_added = [], []
        start = 0
        while start < len(references):
            # As many steps at once as have equally many rows and fit in the working chunk.
            size = len(references[start])
            stop = start + 1
            while (
                stop < len(references)
                and len(references[stop]) == size
                and (stop + 1 - start) * size <= step
            ):
                stop += 1
            rows = np.stack(references[start:stop])
            if self.reference_rows[-1] >= len(self.reference_rows):  # not simply all rows
                rows = np.searchsorted(self.reference_rows, rows)
            agreeing = self._reference_constant[rows].sum(axis=1)
            sums.append(self._count(rows, step) - _array.like(agreeing, self.labels)[:, None])
            n_added.append(size - agreeing)
            start = stop
        return xp.astype(xp.concat(sums, axis=0), xp.float64), np.concatenate(n_added)

    def _count(self, rows: np.ndarray, step: int) -> Array:
        """Count agreeing labels per pair of draws: rows (n_steps, size) -> (n_steps, n_pairs)."""
        xp = _array.namespace(self.labels)
        n_steps, size = rows.shape
        shape = (n_steps, self.n_pairs)
        counts = xp.zeros(shape, dtype=xp.int64, device=_array.device(self.labels))
        width = max(1, step // n_steps)
        for a in range(0, size, width):
            part = rows[:, a : a + width]
            labels = xp.take(self.reference_labels, _array.like(part.reshape(-1), counts), axis=0)
            agree = label_features(labels, xp.bool)  # (n_pairs, n_steps * width)
            agree = xp.reshape(agree, (self.n_pairs, n_steps, part.shape[1]))
            counts = counts + _array.count_true(agree).T
        return counts

    def feature_chunks(self, *, double: bool) -> Iterator[tuple[slice, Array]]:
        xp = _array.namespace(self.patterns)
        dtype = xp.float64 if double else xp.float32
        for where in _array.row_slices(self.n_atoms, 8 * self.n_pairs):
            yield where, label_features(self.patterns[where, :], dtype)

    def extents(self, atoms: slice, features: Array) -> np.ndarray:
        return np.ones(features.shape[1])

    def kernels(self, candidates: np.ndarray) -> Array:
        rows = _array.like(candidates, self.labels)
        return delta_kernel(_array.namespace(self.labels).take(self.labels, rows, axis=0))

    def exact(
        self, step_scores: StepScores, step: int, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.integers:
            sums = np.rint(_array.to_host(step_scores.references.sums[step, ...])).astype(np.int64)
            scores = self._by_pattern(
                candidates, lambda labels: integer_hsic(labels, sums, self.estimator)
            )
            return scores, np.zeros(len(candidates))
        duals = _array.to_host(step_scores.duals[step, ...])[None]
        dual_error = step_scores.references.dual_errors[step]
        return self._by_pattern(candidates, lambda labels: self._agree(labels, duals, dual_error))

    def exact_self(
        self, candidates: np.ndarray, adjust: Callable[[Array], Array] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.integers:
            scores = self._by_pattern(
                candidates, lambda labels: integer_self_hsic(labels, self.estimator)
            )
            return scores, np.zeros(len(candidates))

        def score(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            agree = (labels[:, :, None] == labels[:, None, :]).astype(np.float64)
            duals = hsic_dual(agree, estimator=self.estimator, weights=self.weights)
            duals = duals if adjust is None else adjust(duals)
            return self._agree(labels, duals, self.dual_error(np.ones(1)))

        return self._by_pattern(candidates, score)

    def exact_values(
        self, step_scores: StepScores, step: int, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        scores, errors = self.exact(step_scores, step, candidates)
        if not self.integers:
            return scores, errors
        unit = int(step_scores.references.sizes[step]) * self._integer_unit()
        return np.array([Fraction(int(score), unit) for score in scores], dtype=object), errors

    def without_self(
        self,
        scores: tuple[np.ndarray, np.ndarray],
        self_scores: tuple[np.ndarray, np.ndarray],
        counts: np.ndarray,
        size: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        if not self.integers:
            return super().without_self(scores, self_scores, counts, size)
        # Scores are sums over the reference rows; what is left is scaled to stand for all of them.
        fractions = [
            Fraction(size * (int(s) - int(c) * int(h)), max(size - int(c), 1))
            for s, h, c in zip(scores[0], self_scores[0], counts, strict=True)
        ]
        return np.array(fractions, dtype=object), scores[1]

    def _agree(
        self, labels: np.ndarray, duals: np.ndarray, dual_error: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sum duals over the draws that agree, constants exactly 0, and bound the errors."""
        agree = labels[:, :, None] == labels[:, None, :]
        varied = ~agree.all(axis=(1, 2))
        scores, errors = self._weighed(agree, duals, dual_error)
        return np.where(varied, scores, 0.0), np.where(varied, errors, 0.0)

    def _by_pattern(self, candidates: np.ndarray, score: Callable[[np.ndarray], Any]) -> Any:
        """Score each pattern of labels once, in working chunks on the host."""
        if self.atom_of is None or len(candidates) == 1:
            patterns, inverse = candidates, np.arange(len(candidates))
        else:
            _, first, inverse = np.unique(
                self.atom_of[candidates], return_index=True, return_inverse=True
            )
            patterns = candidates[first]
        parts = []
        for part in _array.row_slices(len(patterns), 16 * self.n_draws**2):
            rows = _array.like(patterns[part], self.labels)
            labels = _array.namespace(rows).take(self.labels, rows, axis=0)
            parts.append(score(_array.to_host(labels)))
        if isinstance(parts[0], tuple):
            return tuple(np.concatenate(each)[inverse] for each in zip(*parts, strict=True))
        return np.concatenate(parts)[inverse]

    def values(self, scores: np.ndarray, size: int) -> np.ndarray:
        if not self.integers:
            return scores
        return (scores / (size * self._integer_unit())).astype(np.float64)

    def settle(self, values: Array, error: np.ndarray) -> tuple[Array, np.ndarray]:
        xp, unit = _array.namespace(values), self._integer_unit()
        if not self.integers or error.max() * unit > 0.25:
            return values, error
        for rows in _array.row_slices(values.shape[0], 8 * values.shape[1]):
            values[rows, :] = xp.round(values[rows, :] * unit) / unit
        largest = xp.maximum(xp.max(values, axis=0), -xp.min(values, axis=0))
        return values, float(xp.finfo(values.dtype).eps) * _array.to_host(largest)

    def settle_steps(
        self, values: Array, offset: np.ndarray, error: np.ndarray, sizes: np.ndarray
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        xp, units = _array.namespace(values), sizes * float(self._integer_unit())
        if not self.integers or values.dtype != xp.float64 or (error * units).max() > 0.25:
            return values, offset, error
        scale = _array.like(units, values)[:, None]
        values = xp.round((values + _array.like(offset, values)[:, None]) * scale) / scale
        largest = _array.to_host(xp.max(xp.abs(values), axis=1))
        return values, np.zeros_like(offset), sys.float_info.epsilon * largest

    def _integer_unit(self) -> int:
        """Return what the integers are multiples of: 1 over this in HSIC."""
        m = self.n_draws
        return m**4 if self.estimator == "biased" else (m - 1) * (m - 2) * m * (m - 3)


def _agreeing_labels(labels: Array) -> np.ndarray:
    """Return on the host which points have the same label in all draws."""
    xp = _array.namespace(labels)
    return _array.to_host(xp.all(labels == labels[:, :1], axis=1))
