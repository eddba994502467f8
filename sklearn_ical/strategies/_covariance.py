"""Prediction covariance as features of rows, read by chunks, and the noise of labels.

The kernel of two rows is the covariance of their predictions over the draws, of each output or
summed over them. It is never formed: rows have features, and kernels are their inner products.
What chosen rows do to others is in `_posterior.py`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import Real
from sklearn_ical.dependence import covariance_features, ledoit_wolf_shrinkage
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._pool import Predictions

# Shrinkage stays inside: with 0, few draws would leave no noise, with 1 nothing but noise.
SHRINKAGE_LIMITS = (1e-3, 1 - 1e-3)


class CovarianceRows:
    """Features of rows, in blocks: the kernel of a block is an inner product within it.

    Parameters
    ----------
    predictions : Predictions
        Of the rows. Their features are held where a quarter of `working_memory` has room, else
        made anew for each reading.
    n_outputs : int
        Number of classes or targets, as :func:`count_outputs` tells.
    trace : bool
        Whether all outputs are one block, whose kernel is then their sum.
    owner : str
        Name of the call for messages.

    Attributes
    ----------
    n_points, n_outputs, n_blocks, size : int
        `size` is the number of features in a block.
    variance : float64 array of shape (n_points, n_outputs)
        Of the predictions over the draws, on the host.
    gram : float64 array of shape (n_outputs, n_draws, n_draws)
        As in :func:`ledoit_wolf_shrinkage`.
    noise_variance : float64 array of shape (n_points,) or None
        Of each target, averaged over the draws; None where the samples have none.
    """

    def __init__(
        self, predictions: Predictions, n_outputs: int, *, trace: bool, owner: str
    ) -> None:
        self.predictions = predictions
        self.n_points = predictions.n_points
        self.n_outputs = n_outputs
        n_draws = predictions.n_draws
        self.n_blocks, self.size = (1, n_outputs * n_draws) if trace else (n_outputs, n_draws)
        self._scales: Any = None
        self._held: Any = None
        self.variance = np.empty((self.n_points, n_outputs))
        self.gram: Any = 0.0
        self.noise_variance: np.ndarray | None = None
        self._survey(owner)

    @property
    def diagonal(self) -> np.ndarray:
        """The kernel of each row with itself, (n_points, n_blocks)."""
        trace = self.n_blocks < self.n_outputs
        return self.variance.sum(axis=1, keepdims=True) if trace else self.variance

    def scale(self, factors: np.ndarray) -> None:
        """Multiply the covariance of each output by a factor, (n_outputs,)."""
        self._scales = np.sqrt(factors)
        self.variance = self.variance * factors
        if self._held is not None:
            self._held = self._scaled(self._held)

    def chunks(self, positions: np.ndarray, n_columns: int = 0) -> Iterator[tuple[slice, Array]]:
        """Yield slices of `positions` and the features of those rows, (n, n_blocks, size).

        The chunks leave room for `n_columns` products per row and block.
        """
        row_bytes = 8 * self.n_blocks * (4 * self.size + 3 * n_columns)
        if self._held is None:
            for where, samples in self.predictions.chunks(positions, row_bytes):
                features = self._scaled(self._features(samples))
                yield where, self._in_blocks(features)
            return
        xp = _array.namespace(self._held)
        whole = len(positions) == self.n_points and bool((np.diff(positions) == 1).all())
        for where in _array.row_slices(len(positions), row_bytes):
            if whole:
                features = self._held[where, ...]
            else:
                rows = _array.like(positions[where], self._held)
                features = xp.take(self._held, rows, axis=0)
            yield where, self._in_blocks(features)

    def take(self, positions: np.ndarray) -> Array:
        """Return the features of some rows, (n, n_blocks, size)."""
        parts = [features for _, features in self.chunks(positions)]
        return parts[0] if len(parts) == 1 else _array.namespace(parts[0]).concat(parts)

    def products(self, positions: np.ndarray, columns: Array) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield inner products of rows with columns (n_blocks, n_columns, size), on the host.

        Of shape (n_blocks, n, n_columns), with the slice of `positions` that they belong to.
        """
        xp = _array.namespace(columns)
        turned = xp.permute_dims(columns, (0, 2, 1))
        for where, features in self.chunks(positions, columns.shape[1]):
            by_block = xp.permute_dims(features, (1, 0, 2))
            yield where, _array.to_host(xp.matmul(by_block, turned))

    def _survey(self, owner: str) -> None:
        """Read all rows once: variances, inner products of the draws, noise, features to hold."""
        row_bytes = 8 * self.n_blocks * self.size
        hold = self.n_points * row_bytes <= _array.working_bytes() // 4
        noise: list[np.ndarray] = []
        for where, samples in self.predictions.chunks(np.arange(self.n_points), 4 * row_bytes):
            features = self._features(samples)
            if features.shape[1] != self.n_outputs:
                raise ValueError(
                    f"All predictions must have the {self.n_outputs} classes or targets of the "
                    f"pool's. Got {features.shape[1]} in {owner}."
                )
            xp = _array.namespace(features)
            by_output = xp.permute_dims(features, (1, 0, 2))
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                self.variance[where] = _array.to_host(xp.sum(features**2, axis=2))
                gram = xp.matmul(xp.permute_dims(by_output, (0, 2, 1)), by_output)
                self.gram = self.gram + _array.to_host(gram)
            if samples.noise_variance is not None:
                noise.append(mean_noise(samples))
            if hold:
                if self._held is None:
                    shape = (self.n_points, *features.shape[1:])
                    device = _array.device(features)
                    self._held = xp.empty(shape, dtype=xp.float64, device=device)
                self._held[where, ...] = features
        self.noise_variance = np.concatenate(noise) if noise else None
        if not np.isfinite(self.variance).all():
            raise ValueError(
                f"Variances of predictions must be finite. Got infinity in {owner}; predictions "
                "that overflow float64 when squared have to be rescaled."
            )

    def _features(self, samples: PredictionSamples) -> Array:
        """Return features (n, n_outputs, n_draws); label samples are one-hot votes."""
        values = samples.values
        if samples.kind == "label":
            values = samples.votes(self.n_outputs)
        return covariance_features(values, weights=samples.weights)

    def _scaled(self, features: Array) -> Array:
        if self._scales is None:
            return features
        return features * _array.like(self._scales[:, None], features)

    def _in_blocks(self, features: Array) -> Array:
        shape = (features.shape[0], self.n_blocks, self.size)
        return _array.namespace(features).reshape(features, shape)


def count_outputs(predictions: Predictions, *others: Predictions | None) -> int:
    """Return the number of classes or targets of predictions of the same draws.

    Label samples without classes are read for their codes.
    """
    if predictions.classes is not None:
        return len(predictions.classes)
    if predictions.kind == "label":
        given = [rows for rows in (predictions, *others) if rows is not None]
        parts = (part for rows in given for _, part in rows.chunks(np.arange(rows.n_points)))
        return max(int(part.n_classes or 0) for part in parts)
    values = predictions.take(np.arange(1)).values
    return 1 if values.ndim == 2 else int(values.shape[2])


def set_noise(rows: CovarianceRows, noise: Real | str) -> np.ndarray:
    """Return the noise variance that a label has in each block, (n_blocks,), > 0.

    A number is in units of the mean variance of the pool: that of all classes, or for targets,
    which may have units of their own, of each block. "ledoit-wolf" shrinks the covariances, and
    what is added to their diagonals is the noise.
    """
    trace = rows.n_blocks < rows.n_outputs
    mean = rows.variance.mean(axis=0)  # (n_outputs,)
    if isinstance(noise, str):
        shrinkage = ledoit_wolf_shrinkage(rows.gram, rows.n_points)
        shrinkage = np.clip(shrinkage, *SHRINKAGE_LIMITS)
        rows.scale(1 - shrinkage)
        each = shrinkage * mean
    elif trace or rows.predictions.kind == "value":
        each = noise * mean
    else:
        each = np.full(rows.n_outputs, noise * mean.mean())
    blocks = each.sum(keepdims=True) if trace else each
    return np.where(blocks > 0, blocks, 1.0)


def noise_of_rows(rows: CovarianceRows, blocks: np.ndarray, name: str, owner: str) -> np.ndarray:
    """Return the noise of each row, (n_points, n_blocks): its own, or what each block has."""
    shape = (rows.n_points, rows.n_blocks)
    own = rows.noise_variance
    if own is None:
        return np.broadcast_to(blocks, shape)
    if not (own > 0).all():
        raise ValueError(
            f"noise_variance of {name} must be > 0. Got {float(own.min())!r} in {owner}; leave it "
            "out, and the parameter noise counts."
        )
    per_block = rows.n_outputs // rows.n_blocks
    return np.broadcast_to(per_block * own[:, None], shape)


def mean_noise(samples: PredictionSamples) -> np.ndarray:
    """Return the noise variance of each point, averaged over the draws."""
    noise: Any = samples.noise_variance
    if np.ndim(noise) < 2:
        return np.broadcast_to(np.asarray(noise, dtype=np.float64), (samples.n_points,))
    if samples.weights is None:
        return np.mean(noise, axis=1)
    return np.asarray(noise @ samples.weights)
