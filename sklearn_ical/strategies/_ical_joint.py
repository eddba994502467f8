"""Dependence of reference rows on the joint predictions of a whole batch."""

import numbers
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from sklearn_ical import _array, _random
from sklearn_ical._array import Array
from sklearn_ical._typing import Integer, Kernel, Real, Seed
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.dependence import hsic_dual, linear_kernel, squared_distances
from sklearn_ical.objectives.hsic._make_dependence import (
    KERNELS,
    LABELS_OF,
    labels_of,
    output_kernel,
    spread_over_draws,
)
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.pool._references import reference_rows
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection._batch import Selection
from sklearn_ical.selection._maximize import maximize
from sklearn_ical.strategies._base import BaseQuery, QueryTags


class ICALJointQuery(BaseQuery):
    """Choose the batch on whose joint prediction the reference rows depend most.

    ICAL treats a batch as the mean of its kernels, and so only uses information of single rows.
    Here the predictions of a batch are one vector, so information that only two rows have together
    counts. Each pick has the largest dependence

        HSIC(mean kernel of the reference rows, kernel L of the batch and the candidate).

    For research: where the posterior is exact, :class:`ICALCoverageQuery` performs better.

    Read more in the :ref:`User Guide <ical_joint>`.

    Parameters
    ----------
    form : {"scaled", "grouped"}, default="scaled"
        The kernel L of a batch S. "scaled": exp(-rate * mean over x in S of D(x)), where D(x) is
        half the squared distance of two draws' predictions for x, 1 for labels that differ; its
        width grows with the batch, and for a small rate the choice is that of the mean kernel.
        "grouped": the product of the kernels of the rows, which soon is 0 outside of the diagonal.
    rate : float, default=1.0
        Rate of the scaled form, > 0.
    normalize : bool, default=True
        Whether HSIC is divided by the root of the HSIC of each argument with itself: centered
        kernel alignment, from 0 to 1. Without it, kernels of large amplitude win.
    n_reference : int or None, default=None
        Number of reference rows drawn from the pool, or from the reference rows given; None uses
        all of them.
    prediction : {"sampled", "proba", "argmax"}, default="sampled"
        As for :class:`ICALQuery`. Probabilities of different draws hardly ever agree, and without
        agreeing labels the joint prediction of many rows has little information.
    kernel : {"auto", "rq", "rbf", "linear", "delta", "distance"} or callable, default="auto"
        Kernel of the reference rows, and of each row of the grouped form, as for
        :class:`ICALQuery`.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the reference rows where `n_reference` is a number, the labels of
        ``prediction="sampled"`` and the draws if the posterior has infinitely many. See
        :term:`random_state`.

    Notes
    -----
    The dHSIC of all rows would not be suitable: it grows with dependence between any of them, so
    that copies would be best. The V-statistic is used throughout.

    Utilities are the dependence, dimensionless. Cost O(n_pool n_draws^2 n_outputs) per pick, over
    predictions that are kept if they fit in a quarter of scikit-learn's `working_memory`. Model
    requirements: at least 2 posterior draws, the same functions for every row.

    References
    ----------
    .. [1] Jain, Liu and Gifford, "Information condensing active learning", arXiv:2002.07916, 2020,
       section 4.
    .. [2] Cortes, Mohri and Rostamizadeh, "Algorithms for learning kernels based on centered
       alignment", JMLR, 2012, definition 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import ICALJointQuery
    >>> votes = np.eye(2)[[[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]]]
    >>> ICALJointQuery().select(votes, batch_size=2)
    array([0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "form": [StrOptions({"scaled", "grouped"})],
        "rate": [Interval(numbers.Real, 0, None, closed="neither")],
        "normalize": ["boolean"],
        "n_reference": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "prediction": [StrOptions({"sampled", "proba", "argmax"})],
        "kernel": [StrOptions(KERNELS), callable],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        form: Literal["scaled", "grouped"] = "scaled",
        rate: Real = 1.0,
        normalize: bool = True,
        n_reference: Integer | None = None,
        prediction: Literal["sampled", "proba", "argmax"] = "sampled",
        kernel: Kernel = "auto",
        random_state: Seed = None,
    ) -> None:
        self.form = form
        self.rate = rate
        self.normalize = normalize
        self.n_reference = n_reference
        self.prediction = prediction
        self.kernel = kernel
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: draws of any kind; random where rows or labels are drawn."""
        return QueryTags(
            deterministic=self.n_reference is None and self.prediction != "sampled",
            uses=("reference",),
            min_draws=2,
        )

    def _unit_power(self) -> int:
        return 0

    def _select(self, pool: Pool) -> Selection:
        reference = reference_rows(pool, self.n_reference)
        pool = self._labeled(pool)
        kind = pool.rows.kind
        kernel = output_kernel(self.kernel, kind, pool.caller)
        scale = spread_over_draws(pool.rows) if kind == "value" else None

        def kernel_sum(samples: PredictionSamples) -> Array:
            y = _outputs(samples, scale)
            return _array.namespace(y).sum(_kernel_of(y, kernel), axis=0)

        row_bytes = 32 * pool.rows.n_draws**2
        total = pool.compared.reduce(kernel_sum, reference, row_bytes=row_bytes)
        return maximize(pool, _Joint(self, pool, kernel, scale, total / len(reference)))

    def _labeled(self, pool: Pool) -> Pool:
        """Return the call with labels in place of probabilities, if requested by `prediction`."""
        if pool.rows.kind != "proba" or self.prediction not in LABELS_OF:
            reference = None if pool.reference is None else pool.reference.hold()
            return replace(pool, rows=pool.rows.hold(), reference=reference)

        def label(rows: RowSet, key: int) -> RowSet:
            positions = np.arange(rows.n_points)
            labels = labels_of(rows, positions, self.prediction, pool.root, key)
            return rows.with_predictions(PredictionSamples(labels, "label", weights=rows.weights))

        reference = None
        if pool.reference is not None:
            reference = label(pool.reference, _random.REFERENCE_LABELS)
        return replace(pool, rows=label(pool.rows, _random.LABELS), reference=reference)


class _Joint:
    """The kernel of the joint prediction of a batch, and its dependence with each candidate."""

    submodular = False

    def __init__(
        self,
        query: ICALJointQuery,
        pool: Pool,
        kernel: Callable[[Array], Array] | None,
        scale: np.ndarray | None,
        reference_kernel: Array,
    ) -> None:
        xp = _array.namespace(reference_kernel)
        self.query = query
        self.pool = pool
        self.kernel = kernel
        self.scale = scale
        self.weights = pool.rows.weights
        self.relevant = hsic_dual(reference_kernel, weights=self.weights)
        self.own = float(xp.sum((reference_kernel - reference_kernel[0, 0]) * self.relevant))
        start = xp.ones_like if query.form == "grouped" else xp.zeros_like
        self.batch = start(reference_kernel)
        self.size = 0

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the dependence of the batch with each candidate."""
        rows, positions = self.pool.rows, self.pool.candidates[slots]
        return rows.map(self._dependence, positions, row_bytes=32 * rows.n_draws**2)

    def add(self, slot: int) -> None:
        """Add a row to the batch."""
        y = _outputs(self.pool.rows.take(self.pool.candidates[[slot]]), self.scale)
        if self.query.form == "grouped":
            self.batch = self.batch * _kernel_of(y, self.kernel)[0, ...]
        else:
            self.batch = self.batch + squared_distances(y)[0, ...] / 2
        self.size += 1

    def _dependence(self, samples: PredictionSamples) -> tuple[np.ndarray, np.ndarray]:
        """Return the dependence of the batch with each of some rows, and bounds of the errors."""
        y = _outputs(samples, self.scale)
        xp = _array.namespace(y)
        joint = self._with(y)
        rounding = (y.shape[1] ** 2 + 8) * sys.float_info.epsilon
        rounding = rounding * xp.max(xp.abs(joint), axis=(1, 2))
        joint = joint - joint[:, :1, :1]  # constants have exactly no information
        value = xp.sum(joint * self.relevant, axis=(1, 2))
        error = rounding * float(xp.sum(xp.abs(self.relevant)))
        if self.query.normalize:
            dual = hsic_dual(joint, weights=self.weights)
            self_dependence = xp.sum(joint * dual, axis=(1, 2))
            varies = (self_dependence > 0) & (self_dependence * self.own > 0)
            self_dependence = xp.where(varies, self_dependence, xp.ones_like(self_dependence))
            root = xp.where(
                varies, (self_dependence * self.own) ** 0.5, xp.ones_like(self_dependence)
            )
            value = xp.where(varies, value / root, xp.zeros_like(value))
            relative_error = rounding * xp.sum(xp.abs(dual), axis=(1, 2)) / self_dependence
            error = xp.where(
                varies, error / root + xp.abs(value) * relative_error, xp.zeros_like(error)
            )
        return _array.to_host(value), _array.to_host(error)

    def _with(self, y: Array) -> Array:
        """Return the kernel of the batch with each of some rows, less a constant, (n, m, m)."""
        if self.query.form == "grouped":
            return self.batch * _kernel_of(y, self.kernel)
        mean = (self.batch + squared_distances(y) / 2) / (self.size + 1)
        return _array.namespace(y).expm1(-self.query.rate * mean)


def _kernel_of(y: Array, kernel: Callable[[Array], Array] | None) -> Array:
    return linear_kernel(y) if kernel is None else kernel(squared_distances(y))


def _outputs(samples: PredictionSamples, scale: np.ndarray | None) -> Array:
    """Return the outputs of some rows, float64 (n_rows, n_draws, n_outputs)."""
    y = samples.as_outputs()
    xp = _array.namespace(y)
    y = xp.astype(y, xp.float64)
    y = y[:, :, None] if y.ndim == 2 else y
    return y if scale is None else y / _array.like(scale, y)
