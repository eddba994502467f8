"""Dependence of candidates on reference sets: all steps of a block in one matrix product.

A scorer holds the predictions of the candidates and of the rows they are compared with. For a
block of reference sets it sums the reference kernels, centers the sums once (HSIC is linear
in each kernel) and multiplies the candidates' kernel features with them. Label samples are scored
again in integers, other predictions in float64, where rounding could decide.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.dependence import (
    hsic_dual,
    pair_weights,
    unfold_pairs,
)


@dataclass(frozen=True)
class Panel:
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
    sums : float64 array of shape (n_steps, n_draws, n_draws)
        Sums of the reference kernels, constant ones left out.
    duals : float64 array of shape (n_steps, n_draws, n_draws)
        Of the mean reference kernel: see `hsic_dual`.
    sizes : int host array of shape (n_steps,)
        Numbers of reference rows.
    """

    values: Array
    offset: np.ndarray
    error: np.ndarray
    sums: Array
    duals: Array
    sizes: np.ndarray


class Scorer(ABC):
    """Scores candidates by their dependence on reference rows.

    Parameters
    ----------
    estimator : {"biased", "unbiased"}
    weights : array of shape (n_draws,) or None
    n_draws : int
    diagonal : bool
        Whether the kernels have a diagonal that is not constant, and so is part of the features.
    """

    # Value of each kernel for a draw with itself, where that is constant.
    diagonal_value = 1.0

    def __init__(self, estimator: str, weights: Any, n_draws: int, *, diagonal: bool) -> None:
        self.estimator = estimator
        self.weights = weights
        self.n_draws = n_draws
        self.diagonal = diagonal
        self.atom_of: np.ndarray | None = None  # (n_candidates,), None where each is its own

    n_atoms: int

    @abstractmethod
    def pair_sums(self, references: list[np.ndarray]) -> tuple[Array, np.ndarray]:
        """Sum the reference features per step; constant rows add nothing.

        Returns float64 (n_steps, n_pairs), and the host number of rows that did add.
        """

    @abstractmethod
    def feature_chunks(self, dtype: Any) -> Iterator[tuple[slice, Array]]:
        """Yield slices of atoms and their features, (n_pairs, n_atoms_of_chunk)."""

    @abstractmethod
    def exact(self, panel: Panel, step: int, candidates: np.ndarray) -> np.ndarray:
        """Return sortable scores of places among the candidates; `values` gives their unit."""

    @abstractmethod
    def exact_self(self, candidates: np.ndarray) -> np.ndarray:
        """Return the dependence of candidates on themselves, in the unit of `exact`."""

    def values(self, scores: np.ndarray, size: int) -> np.ndarray:
        """Turn exact scores against `size` reference rows into estimates of HSIC, float64."""
        return scores

    def without_self(
        self, scores: np.ndarray, self_scores: np.ndarray, counts: np.ndarray, size: int
    ) -> np.ndarray:
        """Return mean scores over the reference rows that are not the candidate itself."""
        left = size - counts
        return np.where(left > 0, (size * scores - counts * self_scores) / np.maximum(left, 1), 0.0)

    @property
    def n_pairs(self) -> int:
        """Number of features of a kernel."""
        return self.n_draws * (self.n_draws + (1 if self.diagonal else -1)) // 2

    def panel(self, references: list[np.ndarray], *, double: bool) -> Panel:
        """Score every candidate against every reference set: one matrix product.

        Parameters
        ----------
        references : list of int arrays
            Reference rows of each step.
        double : bool
            Whether to multiply in float64.
        """
        pairs, n_added = self.pair_sums(references)
        xp = _array.namespace(pairs)
        sizes = np.array([max(len(rows), 1) for rows in references])
        ends = None if self.diagonal else _array.like(n_added * self.diagonal_value, pairs)
        sums = unfold_pairs(pairs, ends, self.n_draws)
        duals = self._duals(sums, _array.like(sizes.astype(np.float64), pairs))
        offset = np.zeros(len(references))
        if not self.diagonal:
            trace = xp.sum(xp.linalg.diagonal(duals), axis=-1)
            offset = _array.to_host(trace) * self.diagonal_value
        weights = pair_weights(duals, diagonal=self.diagonal)
        extent = _array.to_host(xp.max(xp.abs(weights), axis=1))
        tame = (extent == 0) | ((extent > 1e-18) & (extent < 1e18))  # no over- or underflow
        dtype = xp.float64 if double or not tame.all() else xp.float32
        values, largest = self._product(xp.astype(weights, dtype), offset)
        # An inner product of n terms is off by at most n roundings of the sum of magnitudes; the
        # terms themselves and the last column add a few more.
        magnitude = _array.to_host(xp.sum(xp.abs(weights), axis=1)) * largest + np.abs(offset)
        error = (self.n_pairs + 8) * float(xp.finfo(dtype).eps) * magnitude
        return Panel(values, offset, error, sums, duals, sizes)

    def _duals(self, sums: Array, sizes: Array) -> Array:
        """Center mean reference kernels, a working chunk of steps at a time."""
        xp = _array.namespace(sums)
        step = _array.chunk_rows(32 * self.n_draws**2)
        parts = []
        for start in range(0, sums.shape[0], step):
            steps = slice(start, min(start + step, sums.shape[0]))
            means = sums[steps, ...] / sizes[steps, None, None]
            parts.append(hsic_dual(means, estimator=self.estimator, weights=self.weights))
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)

    def _product(self, weights: Array, offset: np.ndarray) -> tuple[Array, float]:
        """Multiply weights and features chunk by chunk; also return the largest feature."""
        xp = _array.namespace(weights)
        shape = (weights.shape[0], self.n_atoms + 1)
        values = xp.empty(shape, dtype=weights.dtype, device=_array.device(weights))
        values[:, self.n_atoms] = xp.astype(_array.like(-offset, weights), weights.dtype)
        largest = 1.0
        for atoms, features in self.feature_chunks(weights.dtype):
            _array.matmul_into(values, atoms, weights, features)
            largest = max(largest, self.largest_feature(features))
        return values, largest

    def largest_feature(self, features: Array) -> float:
        """Return a bound of the magnitude of the features."""
        xp = _array.namespace(features)
        return float(xp.max(xp.abs(features)))

    def row(self, panel: Panel, step: int) -> Array:
        """Return one step's values of all candidates, `offset` left out."""
        row = panel.values[step, :]
        if self.atom_of is None:
            return row[: self.n_atoms]
        return _array.namespace(row).take(row, _array.like(self.atom_of, row), axis=0)


def multiplicities(references: list[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Count how often each of the ascending `rows` is in each reference set, (n_steps, n_rows)."""
    counts = np.zeros((len(references), len(rows)), dtype=np.int64)
    for t, reference in enumerate(references):
        where = np.searchsorted(rows, reference)
        where = where[(where < len(rows)) & (rows[np.minimum(where, len(rows) - 1)] == reference)]
        np.add.at(counts[t], where, 1)
    return counts
