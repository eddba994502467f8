"""Scores of probability vectors and real predictions: any kernel, decided in float64."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.dependence import hsic_dual, output_features, unfold_pairs
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._pool import Predictions
from sklearn_ical.strategies._scorer import Panel, Scorer, multiplicities


class OutputScorer(Scorer):
    """Scores probability vectors or real predictions by a kernel of the outputs.

    Parameters
    ----------
    predictions : Predictions
        Of the pool; read again for each block of steps.
    candidates : int array of shape (n_candidates,)
    reference : Predictions
        Of the rows to compare with; may be `predictions`.
    kernel : callable or None
        Function of squared distances; None for inner products.
    scale : float64 array of shape (n_targets,) or None
        Outputs are divided by it.
    expected : bool
        Whether the kernel is the mean delta kernel of labels drawn from the probabilities: inner
        products with a diagonal of 1.
    estimator
        As in :class:`Scorer`.
    """

    def __init__(
        self,
        predictions: Predictions,
        candidates: np.ndarray,
        reference: Predictions,
        *,
        kernel: Callable[[Array], Array] | None,
        scale: np.ndarray | None,
        expected: bool,
        estimator: str,
    ) -> None:
        inner = kernel is None and not expected
        super().__init__(estimator, predictions.weights, predictions.n_draws, diagonal=inner)
        self.predictions = predictions
        self.candidates = candidates
        self.reference = reference
        self.kernel = kernel
        self.scale = scale
        self.expected = expected
        self.n_atoms = len(candidates)
        self.row_bytes = 8 * self.n_draws**2
        if kernel is not None:
            self.diagonal_value = float(kernel(np.zeros(1))[0])

    def pair_sums(self, references: list[np.ndarray]) -> tuple[Array, np.ndarray]:
        rows = np.unique(np.concatenate([[0], *references]))  # row 0: the sets may be empty
        parts: list[Array] = []
        n_added = np.zeros(len(references))
        for where, samples in self.reference.chunks(rows, self.row_bytes):
            features, constant = self._features(samples)
            counts = multiplicities(references, rows[where]) * ~constant
            n_added += counts.sum(axis=1)
            product = _array.like(counts.astype(np.float64), features) @ features
            parts = [parts[0] + product] if parts else [product]
        return parts[0], n_added

    def feature_chunks(self, dtype: Any) -> Iterator[tuple[slice, Array]]:
        atom_of = np.full(len(self.candidates), self.n_atoms)
        start = 0
        for where, samples in self.predictions.chunks(self.candidates, self.row_bytes):
            features, constant = self._features(samples)
            xp = _array.namespace(features)
            if constant.any():
                features = xp.take(
                    features, _array.like(np.flatnonzero(~constant), features), axis=0
                )
            stop = start + features.shape[0]
            atom_of[where][~constant] = np.arange(start, stop)
            if stop > start:
                yield slice(start, stop), xp.astype(features, dtype).T
            start = stop
        self.atom_of = None if start == self.n_atoms else atom_of

    def exact(self, panel: Panel, step: int, candidates: np.ndarray) -> np.ndarray:
        dual = _array.to_host(panel.duals[step, ...])[None]
        return self._host_scores(candidates, lambda kernels: dual)

    def exact_self(self, candidates: np.ndarray) -> np.ndarray:
        return self._host_scores(
            candidates,
            lambda kernels: hsic_dual(kernels, estimator=self.estimator, weights=self.weights),
        )

    def _features(self, samples: PredictionSamples) -> tuple[Array, np.ndarray]:
        """Return float64 features (n_points, n_pairs), and on the host which are constant."""
        outputs = samples.values
        xp = _array.namespace(outputs)
        outputs = xp.astype(outputs, xp.float64)
        if outputs.ndim == 2:
            outputs = outputs[:, :, None]
        agree = xp.all(outputs == outputs[:, :1, :], axis=(1, 2))
        if self.expected:  # labels drawn from the same probabilities agree if these are certain
            agree = agree & (xp.max(outputs[:, 0, :], axis=1) == 1)
        if self.scale is not None:
            outputs = outputs / _array.like(self.scale, outputs)
        if self.diagonal:  # centering removes any shift; without one, less is lost to rounding
            outputs = outputs - outputs[:, :1, :]
        features = output_features(outputs, self.kernel, diagonal=self.diagonal)
        return features, _array.to_host(agree)

    def _host_scores(
        self, candidates: np.ndarray, dual: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Sum kernels against their duals in float64 on the host, each row in the same order.

        Equal rows are scored once, so they tie; constant kernels score exactly 0.
        """
        parts = []
        for _, samples in self.predictions.chunks(self.candidates[candidates], 3 * self.row_bytes):
            values = np.ascontiguousarray(_array.to_host(samples.values)) + 0  # no negative zero
            packed = values.reshape(len(values), -1)
            packed = packed.view(np.dtype((np.void, packed.dtype.itemsize * packed.shape[1])))
            _, first, inverse = np.unique(packed[:, 0], return_index=True, return_inverse=True)
            features, constant = self._features(
                PredictionSamples.trusted(values[first], samples.kind)
            )
            ends = None if self.diagonal else np.full(len(first), self.diagonal_value)
            kernels = unfold_pairs(features, ends, self.n_draws)
            scores = np.sum((kernels * dual(kernels)).reshape(len(first), -1), axis=1)
            parts.append(np.where(constant, 0.0, scores)[inverse])
        return np.concatenate(parts)
