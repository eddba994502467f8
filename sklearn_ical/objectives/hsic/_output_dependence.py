"""Scores of probability vectors and real predictions: any kernel, decided in float64."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import HSICEstimator
from sklearn_ical.dependence import covariance_features, hsic_dual
from sklearn_ical.dependence._features import output_features, unfold_pairs
from sklearn_ical.objectives._covariance_rows import count_outputs
from sklearn_ical.objectives._observations import inverse_root, whitening
from sklearn_ical.objectives.hsic._dependence import Dependence, StepScores, multiplicities
from sklearn_ical.pool._pool import RowSet
from sklearn_ical.samples import PredictionSamples


class OutputDependence(Dependence):
    """Scores probability vectors or real predictions by a kernel of the outputs.

    Parameters
    ----------
    predictions : RowSet
        Of the pool; read again for each block of steps.
    candidates : int array of shape (n_candidates,)
    reference : RowSet
        Of the rows to compare with; may be `predictions`.
    kernel : callable or None
        Function of squared distances; None for inner products.
    scale : float64 array of shape (n_targets,) or None
        Outputs are divided by it.
    expected : bool
        Whether the kernel is the mean delta kernel of labels drawn from the probabilities: inner
        products with a diagonal of 1.
    tau : bool
        Whether the candidates' kernels are those of outputs in units of a label's covariance: then
        scores are expected reductions of the Gini impurity of reference rows, or of their variance.
    estimator
        As in :class:`Dependence`.
    """

    def __init__(
        self,
        predictions: RowSet,
        candidates: np.ndarray,
        reference: RowSet,
        *,
        kernel: Callable[[Array], Array] | None,
        scale: np.ndarray | None,
        expected: bool,
        tau: bool,
        estimator: HSICEstimator,
    ) -> None:
        super().__init__(
            len(candidates),
            predictions.n_draws,
            estimator,
            predictions.weights,
            diagonal=kernel is None and not expected,
        )
        self.tau = tau
        self.predictions = predictions
        self.candidates = candidates
        self.reference = reference
        self.kernel = kernel
        self.scale = scale
        self.expected = expected
        self.n_atoms = len(candidates)
        self.row_bytes = 8 * self.n_draws**2
        if tau and predictions.kind == "value":
            n_targets = count_outputs(predictions)
            self.row_bytes += 8 * n_targets * (3 * self.n_draws + 6 * n_targets)
        self._magnified = np.ones(len(candidates))  # factors of the rounding errors of the atoms
        if kernel is not None:
            self.diagonal_value = float(kernel(np.zeros(1))[0])

    def pair_sums(self, references: list[np.ndarray]) -> tuple[Array, np.ndarray]:
        rows = np.unique(np.concatenate(references))

        def sums(samples: PredictionSamples, rows: np.ndarray) -> tuple[Array, np.ndarray]:
            features, constant = self._features(samples)
            counts = multiplicities(references, rows) * ~constant
            return _array.like(counts.astype(np.float64), features) @ features, counts.sum(axis=1)

        return self.reference.reduce(sums, rows, rows, row_bytes=self.row_bytes)

    def feature_chunks(self, *, double: bool) -> Iterator[tuple[slice, Array]]:
        atom_of = np.full(len(self.candidates), self.n_atoms)
        start = 0
        for where, samples in self.predictions.chunks(self.candidates, self.row_bytes):
            features, constant = self._features(samples, tau=self.tau)
            xp = _array.namespace(features)
            if constant.any():
                features = xp.take(
                    features, _array.like(np.flatnonzero(~constant), features), axis=0
                )
            stop = start + features.shape[0]
            self._magnified[start:stop] = self._factors[~constant]
            atom_of[where][~constant] = np.arange(start, stop)
            if stop > start:
                dtype = xp.float64 if double else xp.float32
                yield slice(start, stop), xp.astype(features, dtype, copy=False).T
            start = stop
        self.atom_of = None if start == self.n_atoms else atom_of

    def kernels(self, candidates: np.ndarray) -> Array:
        samples = self.predictions.take(self.candidates[candidates])
        features, _ = self._features(samples, tau=self.tau)
        ends = None
        if not self.diagonal:
            ends = _array.like(np.full(len(candidates), self.diagonal_value), features)
        return unfold_pairs(features, ends, self.n_draws)

    def exact(
        self, step_scores: StepScores, step: int, candidates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        dual = _array.to_host(step_scores.duals[step, ...])[None]
        error = step_scores.references.dual_errors[step]
        return self._host_scores(candidates, lambda kernels: (dual, error))

    def exact_self(
        self, candidates: np.ndarray, adjust: Callable[[Array], Array] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        def own_dual(kernels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            duals = hsic_dual(kernels, estimator=self.estimator, weights=self.weights)
            errors = self.dual_error(np.abs(kernels).max(axis=(1, 2)))
            return duals if adjust is None else adjust(duals), errors

        return self._host_scores(candidates, own_dual)

    def _features(
        self, samples: PredictionSamples, *, tau: bool = False
    ) -> tuple[Array, np.ndarray]:
        """Return float64 features (n_points, n_pairs), and on the host which are constant."""
        y = samples.as_outputs()
        xp = _array.namespace(y)
        y = xp.astype(y, xp.float64)
        if y.ndim == 2:
            y = y[:, :, None]
        agree = xp.all(y == y[:, :1, :], axis=(1, 2))
        if self.expected:  # labels drawn from equal probabilities agree only if these are certain
            agree = agree & (xp.max(y[:, 0, :], axis=1) == 1)
        self._factors = np.ones(samples.n_points)
        if tau:
            y = self._in_label_units(y, samples)
        elif self.scale is not None:
            y = y / _array.like(self.scale, y)
        if self.diagonal:  # centering removes any shift; without one, less is lost to rounding
            y = y - y[:, :1, :]
        features = output_features(y, self.kernel, diagonal=self.diagonal)
        return features, _array.to_host(agree)

    def _in_label_units(self, y: Array, samples: PredictionSamples) -> Array:
        """Return outputs (n, m, n_outputs) in units in which a label's covariance is the identity.

        That of class labels has the inverse diag(1 / p) in the directions in which p varies.
        """
        xp, weights = _array.namespace(y), self.weights
        if samples.kind != "value":
            mean = PredictionSamples.trusted(y, "proba", weights=weights).mean()
            return y * inverse_root(mean)[:, None, :]
        deviations = covariance_features(y, weights=weights)
        covariance = xp.matmul(deviations, xp.permute_dims(deviations, (0, 2, 1)))
        if samples.noise_variance is not None:
            identity = xp.eye(y.shape[2], dtype=xp.float64, device=_array.device(y))
            covariance = covariance + identity * _array.like(samples.mean_noise(), y)[:, None, None]
        roots, magnified = whitening(covariance)
        self._factors = np.maximum(_array.to_host(magnified), 1.0)
        return xp.matmul(y, roots)

    def extents(self, atoms: slice, features: Array) -> np.ndarray:
        extents = super().extents(atoms, features)
        return extents * self._magnified[atoms] if self.tau else extents

    def _host_scores(
        self, candidates: np.ndarray, dual: Callable[[np.ndarray], tuple[np.ndarray, Any]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sum kernels against their duals in float64 on the host, and bound the errors.

        `dual` returns the duals of kernels with bounds of their errors. Equal rows are scored once,
        so they tie; constant kernels score exactly 0.
        """

        def score(samples: PredictionSamples) -> tuple[np.ndarray, np.ndarray]:
            values = np.ascontiguousarray(_array.to_host(samples.values)) + 0  # no negative zero
            packed = values.reshape(len(values), -1)
            packed = packed.view(np.dtype((np.void, packed.dtype.itemsize * packed.shape[1])))
            _, first, inverse = np.unique(packed[:, 0], return_index=True, return_inverse=True)
            features, constant = self._features(
                PredictionSamples.trusted(values[first], samples.kind)
            )
            ends = None if self.diagonal else np.full(len(first), self.diagonal_value)
            kernels = unfold_pairs(features, ends, self.n_draws)
            scores, errors = self._weighed(kernels, *dual(kernels))
            scores, errors = np.where(constant, 0.0, scores), np.where(constant, 0.0, errors)
            return scores[inverse], errors[inverse]

        positions = self.candidates[candidates]
        return self.predictions.map(score, positions, row_bytes=3 * self.row_bytes)
