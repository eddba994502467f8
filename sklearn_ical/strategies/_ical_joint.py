"""Dependence of reference rows on the joint predictions of a whole batch."""

import numbers
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from sklearn_ical import _array, _random
from sklearn_ical._array import Array
from sklearn_ical._typing import Integer, Kernel, Real, Seed
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.dependence import hsic_dual, linear_kernel, squared_distances
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._base import QueryTags
from sklearn_ical.strategies._make_scorer import (
    KERNELS,
    LABELS_OF,
    labels_of,
    output_kernel,
    spread_over_draws,
)
from sklearn_ical.strategies._pool import Batch, Pool, Predictions, Selection, ties
from sklearn_ical.strategies._reference_query import ReferenceQuery
from sklearn_ical.strategies._votes import outputs


class ICALJointQuery(ReferenceQuery):
    """Choose the batch on whose joint prediction the reference rows depend most.

    ICAL sees a batch as the mean of its kernels, and so only what single rows tell. Here the
    predictions of a batch are one vector: what two rows tell together, and neither alone, counts.
    Each pick has the largest dependence

        HSIC(mean kernel of the reference rows, kernel L of the batch and the candidate).

    A means of research: where the posterior is exact, :class:`ICALCoverageQuery` does better.

    Parameters
    ----------
    form : {"scaled", "grouped"}, default="scaled"
        The kernel L of a batch S. "scaled": exp(-rate * mean over x in S of D(x)), where D(x) is
        half the squared distance of two draws' predictions for x, 1 for labels that differ; its
        width grows with the batch, and for a small rate the choice is that of the mean kernel.
        "grouped": the product of the kernels of the rows, which soon leaves nothing but the
        diagonal.
    rate : float, default=1.0
        Rate of the scaled form, > 0.
    normalize : bool, default=True
        Whether HSIC is divided by the root of the HSIC of each argument with itself: centered
        kernel alignment, from 0 to 1. Without it, kernels of large amplitude win.
    n_reference : int or None, default=None
        How many reference rows are drawn from the pool, or from the reference rows given; None
        takes all of them.
    prediction : {"sampled", "proba", "argmax"}, default="sampled"
        As for :class:`ICALQuery`. Probabilities of different rows hardly ever agree, and
        without labels that do there is little to see in the joint prediction of many.
    kernel : {"auto", "rq", "rbf", "linear", "delta", "distance"} or callable, default="auto"
        Kernel of the reference rows, and of each row of the grouped form, as for
        :class:`ICALQuery`.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the reference rows where `n_reference` is a number, the labels of
        ``prediction="sampled"`` and the draws of posteriors that have more than finitely many. See
        :term:`random_state`.

    Notes
    -----
    The dHSIC of all rows one by one would not do: it grows with dependence between any of them, so
    that copies look best. The V-statistic is used throughout.

    Utilities are the dependence, dimensionless. Cost O(n_pool n_draws^2 n_outputs) per pick, over
    predictions that are kept where a quarter of scikit-learn's `working_memory` has room. Model
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
            deterministic=self.n_reference is None and self.prediction != "sampled", min_draws=2
        )

    def _select(self, pool: Pool) -> Selection:
        reference = self._reference(pool)
        pool = self._labeled(pool)
        kind, weights = pool.predictions.kind, pool.predictions.weights
        kernel = output_kernel(self.kernel, kind, pool.owner)
        scale = spread_over_draws(pool.predictions) if kind == "value" else None
        total: Any = 0.0
        for y in _outputs(pool.compared, reference, scale):
            total = total + _array.namespace(y).sum(_kernel_of(y, kernel), axis=0)
        summary = total / len(reference)
        joint = _Joint(self, kernel, weights, summary)
        batch = Batch(pool)
        while not batch.full:
            rows = _outputs(pool.predictions, pool.candidates, scale)
            parts = [joint.dependence(y) for y in rows]
            values, errors = (np.concatenate(part) for part in zip(*parts, strict=True))
            batch.take(values, tolerance=4 * float(errors.max()), exact=ties(values, errors))
            [y] = _outputs(pool.predictions, np.array(batch.chosen[-1:]), scale)
            joint.add(y)
        return batch.selection()

    def _labeled(self, pool: Pool) -> Pool:
        """Return the call with labels in place of probabilities, where the query asks for them."""
        if pool.predictions.kind != "proba" or self.prediction not in LABELS_OF:
            reference = None if pool.reference is None else pool.reference.collect()
            return replace(pool, predictions=pool.predictions.collect(), reference=reference)

        def label(predictions: Predictions, key: int) -> Predictions:
            rows = np.arange(predictions.n_points)
            labels = labels_of(predictions, rows, self.prediction, pool.root, key)
            samples = PredictionSamples(labels, "label", weights=predictions.weights)
            return Predictions(samples=samples)

        reference = None
        if pool.reference is not None:
            reference = label(pool.reference, _random.REFERENCE_LABELS)
        return replace(
            pool, predictions=label(pool.predictions, _random.LABELS), reference=reference
        )


class _Joint:
    """The kernel of the joint prediction of a batch, and what candidates make of it."""

    def __init__(
        self,
        query: ICALJointQuery,
        kernel: Callable[[Array], Array] | None,
        weights: np.ndarray | None,
        summary: Array,
    ) -> None:
        xp = _array.namespace(summary)
        self.query = query
        self.kernel = kernel
        self.weights = weights
        self.relevant = hsic_dual(summary, weights=weights)
        self.own = float(xp.sum((summary - summary[0, 0]) * self.relevant))
        grouped = query.form == "grouped"
        self.batch = xp.ones_like(summary) if grouped else xp.zeros_like(summary)
        self.size = 0

    def dependence(self, y: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return what the batch with each candidate would score, and bounds of the errors."""
        xp = _array.namespace(y)
        joint = self._with(y)
        rounding = (y.shape[1] ** 2 + 8) * sys.float_info.epsilon
        rounding = rounding * xp.max(xp.abs(joint), axis=(1, 2))
        joint = joint - joint[:, :1, :1]  # constants tell nothing, exactly
        value = xp.sum(joint * self.relevant, axis=(1, 2))
        error = rounding * float(xp.sum(xp.abs(self.relevant)))
        if self.query.normalize:
            dual = hsic_dual(joint, weights=self.weights)
            own = xp.sum(joint * dual, axis=(1, 2))
            some = (own > 0) & (self.own > 0)
            own = xp.where(some, own, xp.ones_like(own))
            root = xp.where(some, (own * self.own) ** 0.5, xp.ones_like(own))
            value = xp.where(some, value / root, xp.zeros_like(value))
            doubt = rounding * xp.sum(xp.abs(dual), axis=(1, 2)) / own
            error = xp.where(some, error / root + xp.abs(value) * doubt, xp.zeros_like(error))
        return _array.to_host(value), _array.to_host(error)

    def add(self, y: Array) -> None:
        """Put one row into the batch: (1, n_draws, n_outputs)."""
        if self.query.form == "grouped":
            self.batch = self.batch * _kernel_of(y, self.kernel)[0, ...]
        else:
            self.batch = self.batch + squared_distances(y)[0, ...] / 2
        self.size += 1

    def _with(self, y: Array) -> Array:
        """Return the kernel of the batch with each of some rows, less a constant, (n, m, m)."""
        if self.query.form == "grouped":
            return self.batch * _kernel_of(y, self.kernel)
        mean = (self.batch + squared_distances(y) / 2) / (self.size + 1)
        return _array.namespace(y).expm1(-self.query.rate * mean)


def _kernel_of(y: Array, kernel: Callable[[Array], Array] | None) -> Array:
    return linear_kernel(y) if kernel is None else kernel(squared_distances(y))


def _outputs(
    predictions: Predictions, positions: np.ndarray, scale: np.ndarray | None
) -> Iterator[Array]:
    """Yield the outputs of some rows, float64 (n_rows, n_draws, n_outputs), in chunks."""
    for _, samples in predictions.chunks(positions, 32 * predictions.n_draws**2):
        y = outputs(samples)
        xp = _array.namespace(y)
        y = xp.astype(y, xp.float64)
        y = y[:, :, None] if y.ndim == 2 else y
        yield y if scale is None else y / _array.like(scale, y)
