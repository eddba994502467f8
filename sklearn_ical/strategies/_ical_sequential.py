"""ICALSequentialQuery: the expected Brier reduction, given the labels chosen before."""

import math
import numbers
import sys
from typing import Any, ClassVar

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import Integer, Seed
from sklearn_ical._validation import Interval
from sklearn_ical.dependence import covariance_features
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._base import QueryTags
from sklearn_ical.strategies._covariance import count_outputs, mean_noise
from sklearn_ical.strategies._pool import Batch, Pool, Predictions, Selection, ties
from sklearn_ical.strategies._reference_query import ReferenceQuery
from sklearn_ical.strategies._votes import outputs

# Where no label tells a larger part of all variance any more, the chosen labels are forgotten.
LEAST_TOLD = 1e-9
# Directions of less variance, in units of a label's own, are rounding and count as known.
DAMPING = 1e-9
# Variances outside of these lose their digits, or the sums of products with them do.
SMALLEST, LARGEST = 1e-305, 1e303


class ICALSequentialQuery(ReferenceQuery):
    """Choose rows whose labels leave least Brier risk on reference rows, one after the other.

    The first pick has the largest expected reduction of the Brier risk (Gini impurity) of the
    reference rows, exactly as Bayes' rule over the draws gives it. What its label will tell is
    then taken out of the draws as if all were Gaussian, and the next pick has the largest
    reduction of what is left: rows that tell the same are not chosen twice. For regression it is
    the expected reduction of the variance, known as ALC [1]_.

    Parameters
    ----------
    n_reference : int or None, default=None
        How many reference rows there are: a uniform sample of `X_reference`, or of the pool where
        that is not given. None, or a number beyond them, takes all.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the sample of reference rows and the draws of posteriors that have more than
        finitely many. See :term:`random_state`.

    Notes
    -----
    With A the deviations of a row's class probabilities from their mean, times the root of the
    draw weights, (n_classes, n_draws), N the covariance of its label given the draw, averaged
    over the draws, T the mean of A'A over the reference rows, and Q at first the identity, the
    utility is

        tr[(A Q A' + N)^+ A Q T Q A'],

    and a pick turns Q into Q - Q A' (A Q A' + N)^+ A Q, as in linear regression. Utilities are
    squared probabilities (for regression: squared units of the target, summed over targets),
    >= 0, and exactly 0 for rows on which all draws agree. Label samples count as certain votes,
    with N = 0: a second row with the votes of a chosen one tells nothing. For regression N is the
    `noise_variance` of the samples, averaged over the draws; without one observations count as
    free of noise.

    Draws without noise are told apart by about n_draws / (n_classes - 1) labels. Where no label
    tells more than a billionth of the variance of the reference rows any more, Q starts again
    from the identity, for the rows not yet chosen.

    Model requirements: at least 2 posterior draws, the same functions for every row. Cost
    O(n_pool n_classes (n_draws^2 + n_classes^2)) per pick, for at most n_draws classes in label
    samples, beyond the predictions. They are held where a quarter of scikit-learn's
    `working_memory` has room, and else made anew for every pick.

    References
    ----------
    .. [1] Cohn, Ghahramani and Jordan, "Active learning with statistical models", Journal of
       Artificial Intelligence Research, 1996, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import ICALSequentialQuery, PredictionSamples
    >>> votes = np.array([[0, 0, 1, 1, 2], [0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [1, 1, 1, 1, 1]])
    >>> ICALSequentialQuery().select(PredictionSamples(votes, kind="label"), batch_size=2)
    array([0, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_reference": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(self, n_reference: Integer | None = None, random_state: Seed = None) -> None:
        self.n_reference = n_reference
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: at least two draws of any kind; random where references are drawn."""
        return QueryTags(deterministic=self.n_reference is None, min_draws=2)

    def _select(self, pool: Pool) -> Selection:
        reference = np.sort(self._reference(pool))
        predictions = pool.predictions.collect()
        source = predictions if pool.reference is None else pool.reference
        known = _Knowledge(predictions, source, reference, pool.owner)
        batch = Batch(pool)
        while not batch.full:
            gains, errors = known.gains(pool.candidates)
            free = np.ones(len(gains), dtype=bool)
            free[batch.places] = False
            if known.observed and gains[free].max() <= LEAST_TOLD * known.variance:
                known.forget()
                continue
            batch.take(gains, tolerance=4 * float(errors.max()), exact=ties(gains, errors))
            if not batch.full:
                known.observe(batch.chosen[-1])
        return batch.selection()


class _Knowledge:
    """What the labels of the rows observed so far leave to be told about the reference rows.

    Everything is written in standard units of a label: outputs are divided by the root of their
    mean probability p, or of their variance. The covariance of a label, A A' + N, is
    diag(p) - p p' for classes, so it becomes the identity but for the direction of root p. That
    stands for the sum of the probabilities, in which nothing varies, and may as well count as
    noise: then A Q A' + N is I - A (I - Q) A', which knows neither tails of probability nor null
    directions except those that the labels observed leave.

    Parameters
    ----------
    predictions, source : Predictions
        Of the pool and of the rows that `reference` counts.
    reference : intp array of shape (r,)
    owner : str
        Name of the call for messages.

    Attributes
    ----------
    variance : float
        Mean over the reference rows of the variance over the draws, summed over outputs.
    observed : bool
        Whether a row has been observed.
    """

    def __init__(
        self, predictions: Predictions, source: Predictions, reference: np.ndarray, owner: str
    ) -> None:
        n_outputs, n_draws = count_outputs(predictions), predictions.n_draws
        if predictions.kind == "label":
            n_outputs = min(n_outputs, n_draws)
        self.predictions = predictions
        self.owner = owner
        self.row_bytes = 8 * n_outputs * (7 * n_draws + 9 * n_outputs)
        self.rounding = sys.float_info.epsilon * (n_draws + math.sqrt(len(reference)) + 16)
        self.shared: Any = 0.0  # T, (n_draws, n_draws)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            for _, samples in source.chunks(reference, self.row_bytes):
                features = covariance_features(outputs(samples), weights=samples.weights)
                xp = _array.namespace(features)
                stacked = xp.reshape(features, (-1, n_draws))
                self.shared = self.shared + stacked.T @ stacked
        self.shared = self.shared / len(reference)
        self.variance = float(xp.linalg.trace(self.shared))
        self._refuse_overflow(self.variance)
        device = _array.device(self.shared)
        self._identity = xp.eye(n_draws, dtype=xp.float64, device=device)
        self.forget()

    def forget(self) -> None:
        """Start again, as if no row had been observed."""
        self.left: Any = self._identity  # Q, (n_draws, n_draws)
        self.observed = False

    def observe(self, position: int) -> None:
        """Take what the label of a row will tell out of what is left."""
        rows, noise = self._standard(self.predictions.take(np.array([position])))
        xp = _array.namespace(rows)
        inverse = _inverse(rows @ self._label_part @ rows[0, ...].T + noise)[0, ...]
        seen = self.left @ rows[0, ...].T  # (n_draws, n_outputs)
        left = self.left - seen @ inverse @ seen.T
        self.left = (left + left.T) / 2
        self.observed = bool(xp.any(rows != 0)) or self.observed

    def gains(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what the label of each row would tell, and bounds on the rounding of that."""
        gains, errors = np.empty(len(positions)), np.empty(len(positions))
        told = self.left @ self.shared @ self.left
        xp, n_draws = _array.namespace(told), told.shape[0]
        both = xp.concat([self._label_part, told])  # (2 n_draws, n_draws)
        for where, samples in self.predictions.chunks(positions, self.row_bytes):
            rows, noise = self._standard(samples)
            n_points, n_outputs = rows.shape[:2]
            sides = xp.matmul(both, xp.permute_dims(rows, (0, 2, 1)))
            sides = xp.reshape(sides, (n_points, 2, n_draws, n_outputs))
            products = xp.matmul(rows[:, None, :, :], sides)  # (n_points, 2, n_outputs, n_outputs)
            inverse = _inverse(products[:, 0, :, :] + noise)
            found = xp.sum(inverse * products[:, 1, :, :], axis=(1, 2))
            gains[where] = _array.to_host(found)
            # The rounding of the last products, and that of what is inverted.
            size = xp.sum(rows**2, axis=(1, 2)) * self.variance + xp.abs(found)
            errors[where] = _array.to_host(size * xp.sqrt(xp.sum(inverse**2, axis=(1, 2))))
        return np.maximum(gains, 0.0), self.rounding * errors

    @property
    def _label_part(self) -> Array:
        """The matrix B for which A B A' and the noise of `_standard` are a label's covariance."""
        return self.left if self.predictions.kind == "value" else self.left - self._identity

    def _standard(self, samples: PredictionSamples) -> tuple[Array, Array]:
        """Return deviations in standard units (n, n_outputs, n_draws), and what goes with them.

        That is the noise of targets, and for classes the identity, both (..., n_outputs,
        n_outputs).
        """
        values = outputs(samples)
        features = covariance_features(values, weights=samples.weights)
        xp, device = _array.namespace(features), _array.device(features)
        identity = xp.eye(features.shape[1], dtype=xp.float64, device=device)
        if samples.kind != "value":
            mean = PredictionSamples.trusted(values, "proba", weights=samples.weights).mean()
            return features * _inverse_root(mean)[:, :, None], identity
        with np.errstate(over="ignore"):  # refused below
            variance = xp.sum(features**2, axis=2)
        if samples.noise_variance is None:
            noise = xp.zeros_like(variance)
        else:
            noise = xp.zeros_like(variance) + _array.like(mean_noise(samples), features)[:, None]
        self._refuse_overflow(float(xp.max(variance + noise)))
        factors = _inverse_root(variance + noise)
        return features * factors[:, :, None], identity * (noise * factors**2)[:, None, :]

    def _refuse_overflow(self, variance: float) -> None:
        if not variance < LARGEST:
            raise ValueError(
                f"Variances of predictions must be below {LARGEST:g}. Got {variance} in "
                f"{self.owner}; predictions that overflow float64 when squared have to be rescaled."
            )


def _inverse(matrices: Array) -> Array:
    """Return pseudo-inverses of (n, size, size) covariances whose entries are about 1.

    An eigenvalue v becomes v / (v^2 + DAMPING^2), the real part of 1 / (v + i DAMPING): 1 / v up
    to a relative (DAMPING / v)^2, and for rounding in place of 0 as good as 0. So no rank has to
    be decided, and neighbors of a singular matrix have about the same inverse.
    """
    xp, device = _array.namespace(matrices), _array.device(matrices)
    identity = xp.eye(matrices.shape[1], dtype=xp.complex128, device=device)
    shifted = xp.astype(matrices, xp.complex128) + identity * (1j * DAMPING)
    return xp.real(xp.linalg.inv(shifted))


def _inverse_root(x: Array) -> Array:
    """Return 1 / sqrt(x), and 0 where x is nothing: what never varies has no unit."""
    xp = _array.namespace(x)
    some = x > SMALLEST
    return xp.where(some, 1 / xp.sqrt(xp.where(some, x, xp.ones_like(x))), xp.zeros_like(x))
