"""ICALSequentialQuery: the expected reduction of the Brier risk, given the labels before."""

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
from sklearn_ical.objectives._covariance_rows import count_outputs
from sklearn_ical.objectives._observations import inverse, inverse_root
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.pool._references import reference_rows
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection._batch import Selection
from sklearn_ical.selection._maximize import maximize
from sklearn_ical.strategies._base import BaseQuery, QueryTags

# The chosen labels are dropped if no label removes a larger share of all variance any more.
LEAST_REDUCTION = 1e-9
# Larger variances lose precision, also in sums of products.
LARGEST = 1e303


class ICALSequentialQuery(BaseQuery):
    """Choose rows whose labels most reduce the expected Brier risk on reference rows.

    The first pick has the largest expected reduction of the Brier risk (Gini impurity) of the
    reference rows, exactly as Bayes' rule over the draws gives it. The information of its label is
    then removed from the draws as if all were Gaussian, and the next pick has the largest reduction
    of the remaining risk, so that redundant rows are not chosen. For regression it is the expected
    reduction of the variance, known as ALC [1]_.

    Read more in the :ref:`User Guide <ical_sequential>`.

    Parameters
    ----------
    n_reference : int or None, default=None
        Number of reference rows: a uniform sample of `X_reference`, or of the pool if that is not
        given. None, or a larger number than there are, uses all.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the sample of reference rows and the draws if the posterior has infinitely many. See
        :term:`random_state`.

    Notes
    -----
    With A the deviations of a row's class probabilities from their mean, times the root of the
    draw weights, (n_classes, n_draws), N the covariance of its label given the draw, averaged
    over the draws, T the mean of A'A over the reference rows, and Q at first the identity, the
    utility is

        tr[(A Q A' + N)^+ A Q T Q A'],

    and a pick turns Q into Q - Q A' (A Q A' + N)^+ A Q, as in linear regression. Utilities are
    squared probabilities (for regression: squared units of the target, summed over targets), >= 0,
    and exactly 0 for rows on which all draws agree. Label samples count as certain votes, with N =
    0: a second row with the votes of a chosen one has utility 0. For regression N is the
    `noise_variance` of the samples, averaged over the draws; without one observations count as free
    of noise.

    Draws without noise are identified by about n_draws / (n_classes - 1) labels. Once no label
    removes more than a billionth of the variance of the reference rows, Q starts again from the
    identity, for the rows not yet chosen.

    Model requirements: at least 2 posterior draws, the same functions for every row. Cost O(n_pool
    n_classes (n_draws^2 + n_classes^2)) per pick, for at most n_draws classes in label samples,
    beyond the predictions. They are kept if they fit in a quarter of scikit-learn's
    `working_memory`, and recomputed for every pick otherwise.

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
        return QueryTags(deterministic=self.n_reference is None, uses=("reference",), min_draws=2)

    def _unit_power(self) -> int:
        return 2

    def _select(self, pool: Pool) -> Selection:
        reference = np.sort(reference_rows(pool, self.n_reference))
        rows = pool.rows.hold()
        compared = rows if pool.reference is None else pool.reference
        return maximize(pool, _Knowledge(rows, pool.candidates, compared, reference, pool.caller))


class _Knowledge:
    """The remaining uncertainty of the reference rows, given the labels of the observed rows.

    Everything is written in standard units of a label: outputs are divided by the root of their
    mean probability p, or of their variance. The covariance of a label, A A' + N, is diag(p) - p p'
    for classes, so it becomes the identity but for the direction of root p. That is the direction
    of the sum of the probabilities, in which nothing varies, and it may be counted as noise: then A
    Q A' + N is I - A (I - Q) A', without small probabilities, and without null directions except
    those due to the observed labels.

    Parameters
    ----------
    rows : RowSet
        The pool.
    candidates : intp array of shape (n_candidates,)
    compared : RowSet
        The rows that `reference` refers to.
    reference : intp array of shape (r,)
    caller : str
        Name of the call for messages.

    Attributes
    ----------
    variance : float
        Mean over the reference rows of the variance over the draws, summed over outputs.
    negligible : float
        Largest part of it that counts as 0.
    """

    submodular = False

    def __init__(
        self,
        rows: RowSet,
        candidates: np.ndarray,
        compared: RowSet,
        reference: np.ndarray,
        caller: str,
    ) -> None:
        n_outputs, n_draws = count_outputs(rows), rows.n_draws
        if rows.kind == "label":
            n_outputs = min(n_outputs, n_draws)
        self.rows = rows
        self.candidates = candidates
        self.caller = caller
        self.row_bytes = 8 * n_outputs * (7 * n_draws + 9 * n_outputs)
        self.rounding = sys.float_info.epsilon * (n_draws + math.sqrt(len(reference)) + 16)

        def outer(samples: PredictionSamples) -> Array:
            features = covariance_features(samples.as_outputs(), weights=samples.weights)
            stacked = _array.namespace(features).reshape(features, (-1, n_draws))
            return stacked.T @ stacked

        with np.errstate(over="ignore", invalid="ignore"):  # raises below
            total = compared.reduce(outer, reference, row_bytes=self.row_bytes)
        self.shared = total / len(reference)  # T, (n_draws, n_draws)
        xp = _array.namespace(self.shared)
        self.variance = float(xp.linalg.trace(self.shared))
        self._refuse_overflow(self.variance)
        self.negligible = LEAST_REDUCTION * self.variance
        device = _array.device(self.shared)
        self._identity = xp.eye(n_draws, dtype=xp.float64, device=device)
        self.restart()

    def restart(self) -> None:
        """Start again, as if no label were known."""
        self.left: Any = self._identity  # Q, (n_draws, n_draws)

    def add(self, slot: int) -> None:
        """Condition on the label of a candidate."""
        rows, noise = self._standard(self.rows.take(self.candidates[[slot]]))
        inverted = inverse(rows @ self._label_part @ rows[0, ...].T + noise)[0, ...]
        seen = self.left @ rows[0, ...].T  # (n_draws, n_outputs)
        left = self.left - seen @ inverted @ seen.T
        self.left = (left + left.T) / 2

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the variance that the label of each candidate would remove, and error bounds."""
        removable = self.left @ self.shared @ self.left
        xp, n_draws = _array.namespace(removable), removable.shape[0]
        both = xp.concat([self._label_part, removable])  # (2 n_draws, n_draws)

        def gain(samples: PredictionSamples) -> tuple[np.ndarray, np.ndarray]:
            rows, noise = self._standard(samples)
            n_points, n_outputs = rows.shape[:2]
            sides = xp.matmul(both, xp.permute_dims(rows, (0, 2, 1)))
            sides = xp.reshape(sides, (n_points, 2, n_draws, n_outputs))
            products = xp.matmul(rows[:, None, :, :], sides)  # (n_points, 2, n_outputs, n_outputs)
            inverses = inverse(products[:, 0, :, :] + noise)
            removed = xp.sum(inverses * products[:, 1, :, :], axis=(1, 2))
            # The rounding of the last products, and that of what is inverted.
            size = xp.sum(rows**2, axis=(1, 2)) * self.variance + xp.abs(removed)
            errors = size * xp.sqrt(xp.sum(inverses**2, axis=(1, 2)))
            return np.maximum(_array.to_host(removed), 0.0), _array.to_host(errors)

        gains, errors = self.rows.map(gain, self.candidates[slots], row_bytes=self.row_bytes)
        return gains, self.rounding * errors

    @property
    def _label_part(self) -> Array:
        """The matrix B for which A B A' and the noise of `_standard` are a label's covariance."""
        return self.left if self.rows.kind == "value" else self.left - self._identity

    def _standard(self, samples: PredictionSamples) -> tuple[Array, Array]:
        """Return deviations in standard units (n, n_outputs, n_draws), and the noise for them.

        That is the noise of targets, and for classes the identity, both (..., n_outputs,
        n_outputs).
        """
        values = samples.as_outputs()
        features = covariance_features(values, weights=samples.weights)
        xp, device = _array.namespace(features), _array.device(features)
        identity = xp.eye(features.shape[1], dtype=xp.float64, device=device)
        if samples.kind != "value":
            mean = PredictionSamples.trusted(values, "proba", weights=samples.weights).mean()
            return features * inverse_root(mean)[:, :, None], identity
        with np.errstate(over="ignore"):  # raises below
            variance = xp.sum(features**2, axis=2)
        if samples.noise_variance is None:
            noise = xp.zeros_like(variance)
        else:
            noise = xp.zeros_like(variance) + _array.like(samples.mean_noise(), features)[:, None]
        self._refuse_overflow(float(xp.max(variance + noise)))
        factors = inverse_root(variance + noise)
        return features * factors[:, :, None], identity * (noise * factors**2)[:, None, :]

    def _refuse_overflow(self, variance: float) -> None:
        if not variance < LARGEST:
            raise ValueError(
                f"Variances of predictions must be below {LARGEST:g}. Got {variance} in "
                f"{self.caller}; rescale predictions that overflow float64 when squared."
            )
