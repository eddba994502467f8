"""Prediction covariance as features of rows, read by chunks, and the noise of labels.

The kernel of two rows is the covariance of their predictions over the draws, of each output or
summed over them. It is never formed: rows have features, and kernels are their inner products. The
effect of chosen rows on others is in `_posterior.py`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import Real
from sklearn_ical.dependence import covariance_features, ledoit_wolf_shrinkage
from sklearn_ical.pool._pool import RowSet, add_up, collect
from sklearn_ical.samples import PredictionSamples

# Shrinkage stays inside these limits: 0 would leave no noise for few draws, 1 nothing but noise.
SHRINKAGE_LIMITS = (1e-3, 1 - 1e-3)


class CovarianceRows:
    """Features of rows, in blocks: the kernel of a block is an inner product within it.

    Parameters
    ----------
    rows : RowSet
        The rows. Their features are kept in memory if they fit in a quarter of `working_memory`,
        and recomputed for each reading otherwise.
    n_outputs : int
        Number of classes or targets, as returned by :func:`count_outputs`.
    trace : bool
        Whether all outputs are one block, whose kernel is then their sum.
    caller : str
        Name of the call for messages.

    Attributes
    ----------
    n_points, n_outputs, n_blocks, size : int
        `size` is the number of features in a block.
    variance : float64 array of shape (n_points, n_outputs)
        Of the predictions over the draws, on the host.
    noise_variance : float64 array of shape (n_points,) or None
        Of each target, averaged over the draws; None where the samples have none.
    """

    variance: np.ndarray
    noise_variance: np.ndarray | None

    def __init__(self, rows: RowSet, n_outputs: int, *, trace: bool, caller: str) -> None:
        self.rows = rows
        self.n_points = rows.n_points
        self.n_outputs = n_outputs
        n_draws = rows.n_draws
        self.n_blocks, self.size = (1, n_outputs * n_draws) if trace else (n_outputs, n_draws)
        self._scales: Any = None
        self._held: Any = None
        self._survey(caller)

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

    def map(
        self,
        function: Callable[..., Any],
        positions: np.ndarray,
        *arrays: np.ndarray,
        n_columns: int = 0,
    ) -> Any:
        """Compute an array with an entry for each of some rows, as :meth:`RowSet.map` does.

        `function` gets the features of rows, (n, n_blocks, size). Chunks leave room for
        `n_columns` products per row and block.
        """
        return collect(
            function(features, *(array[where] for array in arrays))
            for where, features in self._chunks(positions, n_columns)
        )

    def reduce(self, function: Callable[[Array], Any], *, n_columns: int = 0) -> Any:
        """Compute a sum over all rows, as :meth:`RowSet.reduce` does."""
        positions = np.arange(self.n_points)
        return add_up(function(features) for _, features in self._chunks(positions, n_columns))

    def _chunks(self, positions: np.ndarray, n_columns: int) -> Iterator[tuple[slice, Array]]:
        """Yield slices of `positions` and the features of those rows."""
        row_bytes = 8 * self.n_blocks * (4 * self.size + 3 * n_columns)
        if self._held is None:
            for where, samples in self.rows.chunks(positions, row_bytes):
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
        return self.map(lambda features: features, positions)

    def gram(self) -> np.ndarray:
        """Return inner products of the draws, float64 (n_outputs, n_draws, n_draws), on the host.

        As in :func:`ledoit_wolf_shrinkage`.
        """

        def products(features: Array) -> np.ndarray:
            xp = _array.namespace(features)
            shape = (features.shape[0], self.n_outputs, self.rows.n_draws)
            by_output = xp.permute_dims(xp.reshape(features, shape), (1, 0, 2))
            return _array.to_host(xp.matmul(xp.permute_dims(by_output, (0, 2, 1)), by_output))

        return self.reduce(products)

    def _survey(self, caller: str) -> None:
        """Read all rows once: variances, noise, and features where there is room to hold them."""
        row_bytes = 8 * self.n_blocks * self.size
        hold = self.n_points * row_bytes <= _array.working_bytes() // 4

        def read(samples: PredictionSamples) -> tuple[Any, ...]:
            features = self._features(samples)
            if features.shape[1] != self.n_outputs:
                raise ValueError(
                    f"All predictions must have the {self.n_outputs} classes or targets of the "
                    f"pool's. Got {features.shape[1]} in {caller}."
                )
            with np.errstate(over="ignore", invalid="ignore"):  # raises below
                squares = _array.namespace(features).sum(features**2, axis=2)
            noisy = samples.noise_variance is not None
            noise = samples.mean_noise() if noisy else np.full(samples.n_points, np.nan)
            return (_array.to_host(squares), noise, *[features] * hold)

        self.variance, noise, *held = self.rows.map(read, row_bytes=4 * row_bytes)
        self._held = held[0] if hold else None
        self.noise_variance = None if np.isnan(noise).all() else noise
        if not np.isfinite(self.variance).all():
            raise ValueError(
                f"Variances of predictions must be finite. Got infinity in {caller}; rescale "
                "predictions that overflow float64 when squared."
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


def count_outputs(rows: RowSet, *others: RowSet | None) -> int:
    """Return the number of classes or targets of predictions of the same draws.

    Label samples without classes are read for their codes.
    """
    if rows.classes is not None:
        return len(rows.classes)
    if rows.kind == "label":
        given = [each for each in (rows, *others) if each is not None]
        return max(int(each.map(_n_codes).max()) for each in given)
    values = rows.take(np.arange(1)).values
    return 1 if values.ndim == 2 else int(values.shape[2])


def _n_codes(samples: PredictionSamples) -> np.ndarray:
    """Return a number of codes for each row, that of its chunk."""
    return np.full(samples.n_points, samples.n_classes or 0)


def set_noise(rows: CovarianceRows, noise: Real | str) -> np.ndarray:
    """Return the noise variance that a label has in each block, (n_blocks,), > 0.

    A number is in units of the mean variance of the pool: that of all classes, or for targets,
    which may have units of their own, of each block. "ledoit-wolf" shrinks the covariances, and
    what is added to their diagonals is the noise.
    """
    trace = rows.n_blocks < rows.n_outputs
    mean = rows.variance.mean(axis=0)  # (n_outputs,)
    if isinstance(noise, str):
        shrinkage = ledoit_wolf_shrinkage(rows.gram(), rows.n_points)
        shrinkage = np.clip(shrinkage, *SHRINKAGE_LIMITS)
        rows.scale(1 - shrinkage)
        each = shrinkage * mean
    elif trace or rows.rows.kind == "value":
        each = noise * mean
    else:
        each = np.full(rows.n_outputs, noise * mean.mean())
    blocks = each.sum(keepdims=True) if trace else each
    return np.where(blocks > 0, blocks, 1.0)


def noise_of_rows(rows: CovarianceRows, blocks: np.ndarray, name: str, caller: str) -> np.ndarray:
    """Return the noise of each row, (n_points, n_blocks): its own, or that of each block."""
    shape = (rows.n_points, rows.n_blocks)
    noise = rows.noise_variance
    if noise is None:
        return np.broadcast_to(blocks, shape)
    if not (noise > 0).all():
        raise ValueError(
            f"noise_variance of {name} must be > 0. Got {float(noise.min())!r} in {caller}; leave "
            "it out to use the parameter noise."
        )
    per_block = rows.n_outputs // rows.n_blocks
    return np.broadcast_to(per_block * noise[:, None], shape)
