"""Dependence of candidates on reference sets, or on single rows: one matrix product for many.

A dependence holds the predictions of the candidates and of the rows they are compared with. For a
block of reference sets it sums the reference kernels, centers the sums once (HSIC is linear
in each kernel) and multiplies the candidates' kernel features with them. Label samples are scored
again in integers, other predictions in float64, where rounding could decide.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import HSICEstimator
from sklearn_ical.dependence import hsic_dual
from sklearn_ical.dependence._features import pair_weights, unfold_pairs
from sklearn_ical.selection._batch import merge_ties


@dataclass(frozen=True)
class StepScores:
    """Scores of all candidates against a block of reference sets.

    Attributes
    ----------
    values : floating array of shape (n_steps, n_atoms + 1)
        Scores less `offset`; an atom is a distinct prediction, the last column is that of
        candidates whose draws all agree.
    offset : float64 host array of shape (n_steps,)
        What a constant kernel diagonal adds to every score.
    error : float64 host array of shape (n_steps,)
        Bound of the rounding error of a value.
    duals : float64 array of shape (n_steps, n_draws, n_draws)
        What the candidates' kernels are summed against.
    references : ReferenceKernels
        The reference sets.
    """

    values: Array
    offset: np.ndarray
    error: np.ndarray
    duals: Array
    references: "ReferenceKernels"


@dataclass(frozen=True)
class ReferenceKernels:
    """Kernels of the rows of reference sets, summed.

    Attributes
    ----------
    sums : float64 array of shape (n_sets, n_draws, n_draws)
        Sums of the reference kernels, constant ones left out.
    sizes : int host array of shape (n_sets,)
        Numbers of reference rows, at least 1.
    duals : float64 array of shape (n_sets, n_draws, n_draws)
        Of the mean reference kernels: see `hsic_dual`.
    dual_errors : float64 host array of shape (n_sets,)
        Bounds of the rounding errors of the entries of a dual, summed over the entries.
    """

    sums: Array
    sizes: np.ndarray
    duals: Array
    dual_errors: np.ndarray


@dataclass(frozen=True)
class PairwiseDependence:
    """Scores of all candidates against single reference rows.

    Attributes
    ----------
    values : float64 array of shape (n_atoms + 1, n_reference)
        An atom is a distinct prediction; the last row is that of candidates whose draws all agree.
    error : float64 host array of shape (n_reference,)
        Bound of the rounding error of a value, for a prediction of extent 1.
    extent : float64 host array of shape (n_atoms + 1,)
        Factors of `error`: the largest entry of each distinct prediction's kernel.
    own : float64 host array of shape (n_reference,)
        The dependence of each reference row on itself.
    """

    values: Array
    error: np.ndarray
    extent: np.ndarray
    own: np.ndarray


class Dependence(ABC):
    """Scores candidates by their dependence on reference rows.

    Parameters
    ----------
    n_candidates, n_draws : int
    estimator : {"biased", "unbiased"}
    weights : array of shape (n_draws,) or None
    diagonal : bool
        Whether the kernels have a diagonal that is not constant, and so is part of the features.
    """

    # Value of each kernel for a draw with itself, where that is constant.
    diagonal_value = 1.0

    def __init__(
        self,
        n_candidates: int,
        n_draws: int,
        estimator: HSICEstimator,
        weights: Any,
        *,
        diagonal: bool,
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.n_draws = n_draws
        self.diagonal = diagonal
        self.n_candidates = n_candidates
        self.atom_of: np.ndarray | None = None  # (n_candidates,), None where each is its own
        self.counts: np.ndarray | None = None  # candidates per atom, None for one each
        self._kept: list[tuple[slice, Array]] | None = None

    n_atoms: int

    @abstractmethod
    def pair_sums(self, references: list[np.ndarray]) -> tuple[Array, np.ndarray]:
        """Sum the reference features per step; constant rows add nothing.

        Returns float64 (n_steps, n_pairs), and the host number of rows that did add.
        """

    @abstractmethod
    def feature_chunks(self, *, double: bool) -> Iterator[tuple[slice, Array]]:
        """Yield slices of atoms and their features, (n_pairs, n_atoms_of_chunk)."""

    @abstractmethod
    def kernels(self, candidates: np.ndarray) -> Array:
        """Return the kernels of some candidates, up to an added constant, (n, m, m), float64."""

    @abstractmethod
    def exact(
        self, step_scores: StepScores, step: int, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return scores of slots among the candidates, and bounds of their rounding errors.

        Scores are float64, or integers without errors; `values` gives their unit.
        """

    @abstractmethod
    def exact_self(
        self, candidates: np.ndarray, adjust: Callable[[Array], Array] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the dependence of candidates on themselves, as `exact` does.

        `adjust` is as in :meth:`pairwise`.
        """

    def values(self, scores: np.ndarray, size: int) -> np.ndarray:
        """Turn exact scores against `size` reference rows into estimates of HSIC, float64."""
        return scores

    def exact_values(
        self, step_scores: StepScores, step: int, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return `exact` as estimates of HSIC: float64, or fractions without errors."""
        return self.exact(step_scores, step, candidates)

    def without_self(
        self,
        scores: tuple[np.ndarray, np.ndarray],
        self_scores: tuple[np.ndarray, np.ndarray],
        counts: np.ndarray,
        size: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean scores over the reference rows that are not the candidate itself.

        Scores come with bounds of their errors; `counts` is how many of `size` rows are left out.
        """
        left = size - counts
        parts = size * scores[0], counts * self_scores[0]
        rounding = 4 * sys.float_info.epsilon * (np.abs(parts[0]) + np.abs(parts[1]))
        errors = size * scores[1] + counts * self_scores[1] + rounding
        less, errors = (parts[0] - parts[1], errors) / np.maximum(left, 1)
        return np.where(left > 0, less, 0.0), np.where(left > 0, errors, 0.0)

    @property
    def n_pairs(self) -> int:
        """Number of features of a kernel."""
        return self.n_draws * (self.n_draws + (1 if self.diagonal else -1)) // 2

    def scores(self, references: list[np.ndarray], *, double: bool) -> StepScores:
        """Score every candidate against every reference set: one matrix product.

        Parameters
        ----------
        references : list of int arrays
            Reference rows of each step.
        double : bool
            Whether to multiply in float64.
        """
        summary = self.reference_kernels(references)
        return self.scores_of(summary, summary.duals, double=double)

    def scores_of(
        self,
        references: ReferenceKernels,
        duals: Array,
        *,
        double: bool,
        extent: Array | None = None,
    ) -> StepScores:
        """Score every candidate by the sum of its kernel against each of `duals`.

        Where duals are sums, `extent` is that of the magnitudes, for the bound of the errors.
        """
        xp = _array.namespace(duals)
        weights, offset = self._folded(duals)
        highest = _array.to_host(xp.max(xp.abs(weights), axis=1))
        tame = (highest == 0) | ((highest > 1e-18) & (highest < 1e18))  # no over- or underflow
        dtype = xp.float64 if double or not tame.all() else xp.float32
        values, largest = self._product(xp.astype(weights, dtype), offset)
        summed = (weights, offset) if extent is None else self._folded(extent)
        error = largest * (self._error(*summed, dtype) + references.dual_errors)
        values, offset, error = self.settle_steps(values, offset, error, references.sizes)
        return StepScores(values, offset, error, duals, references)

    def keep_features(self, *, double: bool) -> None:
        """Hold all features for later calls if they fit in a quarter of `working_memory`."""
        item = 8 if double else 4
        if item * self.n_atoms * self.n_pairs <= _array.working_bytes() // 4:
            self._kept = list(self.feature_chunks(double=double))

    def pairwise(
        self, reference: np.ndarray, adjust: Callable[[Array], Array] | None = None
    ) -> PairwiseDependence:
        """Score every candidate against every single reference row, in float64.

        Parameters
        ----------
        reference : int array of shape (n_reference,)
            Reference rows.
        adjust : callable, default=None
            Makes the duals to score against of those of reference rows, (n_rows, m, m).
        """
        size = max(1, _array.working_bytes() // 4 // (40 * self.n_draws**2))
        values: Any = None
        error, self_scores, extent = [], [], np.zeros(self.n_atoms + 1)
        for start in range(0, len(reference), size):
            columns = slice(start, min(start + size, len(reference)))
            summary = self.reference_kernels(
                [reference[i : i + 1] for i in range(start, columns.stop)]
            )
            duals = summary.duals
            xp = _array.namespace(duals)
            self_scores.append(_array.to_host(xp.sum(summary.sums * duals, axis=(1, 2))))
            weights, offset = self._folded(duals if adjust is None else adjust(duals))
            if values is None:
                shape = (self.n_atoms + 1, len(reference))
                values = xp.zeros(shape, dtype=xp.float64, device=_array.device(duals))
            shift = _array.like(offset, duals)
            for atoms, features in self.feature_chunks(double=True):
                _array.matmul_into(values, (atoms, columns), features.T, weights.T)
                values[atoms, columns] += shift
                extent[atoms] = self.extents(atoms, features)
            error.append(self._error(weights, offset, xp.float64) + summary.dual_errors)
        values, bounds = self.settle(values, np.concatenate(error))
        return PairwiseDependence(values, bounds, extent, np.concatenate(self_scores))

    def settle(self, values: Array, error: np.ndarray) -> tuple[Array, np.ndarray]:
        """Return scores and the bound of their errors, without rounding where it can be removed."""
        return values, error

    def settle_steps(
        self, values: Array, offset: np.ndarray, error: np.ndarray, sizes: np.ndarray
    ) -> tuple[Array, np.ndarray, np.ndarray]:
        """Return the values, offsets and errors of `StepScores` likewise."""
        return values, offset, error

    def reference_kernels(self, references: list[np.ndarray]) -> ReferenceKernels:
        """Sum the kernels of each reference set, and center their means."""
        pairs, n_added = self.pair_sums(references)
        sizes = np.array([max(len(rows), 1) for rows in references])
        ends = None if self.diagonal else _array.like(n_added * self.diagonal_value, pairs)
        return self.summed(unfold_pairs(pairs, ends, self.n_draws), sizes)

    def summed(self, sums: Array, sizes: np.ndarray) -> ReferenceKernels:
        """Center the means of sums of so many kernels, (n_sets, m, m) and (n_sets,)."""
        xp = _array.namespace(sums)
        duals = self._duals(sums, _array.like(sizes.astype(np.float64), sums))
        largest = _array.to_host(xp.max(xp.abs(sums), axis=(1, 2))) / sizes
        return ReferenceKernels(sums, sizes, duals, self.dual_error(largest))

    def mean_kernel(self) -> np.ndarray:
        """Return the mean kernel of the candidates on the host, up to an added constant."""
        pairs, n_varied = np.zeros(self.n_pairs), 0
        for atoms, features in self.feature_chunks(double=True):
            counts = np.ones(features.shape[1]) if self.counts is None else self.counts[atoms]
            pairs += _array.to_host(features @ _array.like(counts.astype(np.float64), features))
            n_varied += int(counts.sum())
        ends = None if self.diagonal else np.array([n_varied * self.diagonal_value])
        return unfold_pairs(pairs[None, :], ends, self.n_draws)[0] / self.n_candidates

    def _folded(self, duals: Array) -> tuple[Array, np.ndarray]:
        """Return duals as weights of features, and what a constant diagonal adds, on the host."""
        xp = _array.namespace(duals)
        offset = np.zeros(duals.shape[0])
        if not self.diagonal:
            trace = xp.sum(xp.linalg.diagonal(duals), axis=-1)
            offset = _array.to_host(trace) * self.diagonal_value
        return pair_weights(duals, diagonal=self.diagonal), offset

    def dual_error(self, largest: np.ndarray) -> np.ndarray:
        """Bound the rounding errors of duals of kernels up to `largest`, summed over entries.

        Centering adds up to five means of m entries, and weights of pairs have a sum of at most 3.
        """
        return 16 * (self.n_draws + 8) * sys.float_info.epsilon * largest

    def _error(self, weights: Array, offset: np.ndarray, dtype: Any) -> np.ndarray:
        """Bound the rounding of products of weights with kernels of extent 1.

        An inner product of n terms is off by at most n roundings of the sum of magnitudes; the
        terms themselves and the last column add a few more.
        """
        xp = _array.namespace(weights)
        magnitude = _array.to_host(xp.sum(xp.abs(weights), axis=1))
        if self.diagonal_value != 0:
            magnitude = magnitude + np.abs(offset / self.diagonal_value)
        return (self.n_pairs + 8) * float(xp.finfo(dtype).eps) * magnitude

    def _duals(self, sums: Array, sizes: Array) -> Array:
        """Center mean reference kernels, a working chunk of steps at a time."""
        xp = _array.namespace(sums)
        parts = []
        for steps in _array.row_slices(sums.shape[0], 32 * self.n_draws**2):
            means = sums[steps, ...] / sizes[steps, None, None]
            parts.append(hsic_dual(means, estimator=self.estimator, weights=self.weights))
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)

    def _product(self, weights: Array, offset: np.ndarray) -> tuple[Array, float]:
        """Multiply weights and features chunk by chunk; also return the largest feature."""
        xp = _array.namespace(weights)
        shape = (weights.shape[0], self.n_atoms + 1)
        values = xp.empty(shape, dtype=weights.dtype, device=_array.device(weights))
        values[:, self.n_atoms] = xp.astype(_array.like(-offset, weights), weights.dtype)
        largest, double = 0.0, weights.dtype == xp.float64
        for atoms, features in self._kept or self.feature_chunks(double=double):
            _array.matmul_into(values, (slice(0, values.shape[0]), atoms), weights, features)
            largest = max(largest, float(self.extents(atoms, features).max()))
        return values, largest

    def extents(self, atoms: slice, features: Array) -> np.ndarray:
        """Bound the kernels of atoms with features (n_pairs, n), and their diagonal, (n,)."""
        xp = _array.namespace(features)
        largest = _array.to_host(xp.max(xp.abs(features), axis=0))
        return largest if self.diagonal else np.maximum(largest, abs(self.diagonal_value))

    def _weighed(
        self, kernels: np.ndarray, duals: np.ndarray, dual_error: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sum products of host kernels and duals, (n, m, m), and bound the rounding errors."""
        products = (kernels * duals).reshape(len(kernels), -1)
        extent = np.abs(products).sum(axis=1)
        errors = (products.shape[1] + 8) * sys.float_info.epsilon * extent
        return np.sum(products, axis=1), errors + dual_error * _largest(kernels)

    def row(self, step_scores: StepScores, step: int) -> Array:
        """Return one step's values of all candidates, `offset` left out."""
        row = step_scores.values[step, :]
        if self.atom_of is None:
            return row[: self.n_atoms]
        return _array.namespace(row).take(row, _array.like(self.atom_of, row), axis=0)

    def atoms(self, candidates: np.ndarray) -> np.ndarray:
        """Return which atom each of some slots among the candidates is."""
        return candidates if self.atom_of is None else self.atom_of[candidates]


def decided(scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return sortable scores: 0 or equal where they may be, up to their errors."""
    if scores.dtype.kind != "f":  # integers or fractions
        return scores
    return merge_ties(np.where(np.abs(scores) > errors, scores, 0.0), errors)


def _largest(kernels: np.ndarray) -> np.ndarray:
    """Return the largest magnitude in each kernel, (n, m, m) -> (n,)."""
    largest: np.ndarray = np.abs(kernels).max(axis=(1, 2))
    return largest


def multiplicities(references: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Count how often each of the ascending `rows` is in each reference set, (n_steps, n_rows)."""
    counts = np.zeros((len(references), len(rows)), dtype=np.int64)
    for t, reference in enumerate(references):
        where = np.searchsorted(rows, reference)
        where = where[(where < len(rows)) & (rows[np.minimum(where, len(rows) - 1)] == reference)]
        np.add.at(counts[t], where, 1)
    return counts
