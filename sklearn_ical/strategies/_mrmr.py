"""Maximum relevance, minimum redundancy (mRMR) on dependence between predictions."""

import numbers
import sys
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sklearn_ical import _array
from sklearn_ical._typing import HSICEstimator, Integer, Kernel, Prediction, Real, Seed
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.objectives.hsic._dependence import Dependence, StepScores, decided
from sklearn_ical.objectives.hsic._make_dependence import (
    KERNELS,
    check_kernel,
    make_dependence,
    understood_kinds,
)
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.pool._references import reference_rows
from sklearn_ical.samplers._base import Draws
from sklearn_ical.selection._batch import Selection
from sklearn_ical.selection._maximize import maximize
from sklearn_ical.strategies._base import BaseQuery, QueryTags

# Of a difference of two products, relative to their magnitudes.
ROUNDING = 4 * sys.float_info.epsilon


class MRMRQuery(BaseQuery):
    """Choose rows that depend much on the reference rows and little on each other.

    Maximum relevance and minimum redundancy [1]_, in the standard form of a difference: each pick
    has the largest

        mean over i of HSIC(x, i)  -  redundancy_weight * mean over chosen b of HSIC(x, b)

    with HSIC of the predictions of candidate x, reference row i and chosen row b.

    Read more in the :ref:`User Guide <mrmr>`.

    Parameters
    ----------
    redundancy_weight : float, default=1.0
        Weight of redundancy relative to relevance, >= 0. With 0 the choice is that of
        :class:`ICALQuery` with one fixed reference set.
    n_reference : int or None, default=None
        Number of reference rows drawn from the pool, or from the reference rows given; None uses
        all of them.
    prediction, kernel, estimator
        As for :class:`ICALQuery`; here with ``prediction="proba"`` by default.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the reference rows where `n_reference` is a number, the labels of
        ``prediction="sampled"`` and the draws if the posterior has infinitely many. See
        :term:`random_state`.

    Notes
    -----
    HSIC is linear in each kernel, so both means are one HSIC, with the summary kernel of the
    reference rows less `redundancy_weight` times that of the batch. The paper on ICAL tried another
    form, in which the relevance of a candidate shrinks as the batch grows [2]_, and found it
    worse than ICAL.

    Utilities are the difference, dimensionless, and may be negative. Cost O(n_pool n_draws^2) per
    pick, over predictions that are kept if they fit in a quarter of scikit-learn's
    `working_memory`. Model requirements: at least 2 posterior draws, the same functions for every
    row.

    References
    ----------
    .. [1] Peng, Long and Ding, "Feature selection based on mutual information: criteria of
       max-dependency, max-relevance, and min-redundancy", IEEE TPAMI, 2005, equation 6.
    .. [2] Jain, Liu and Gifford, "Information condensing active learning", arXiv:2002.07916, 2020,
       appendix.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import MRMRQuery
    >>> votes = np.eye(2)[[[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]]]
    >>> MRMRQuery().select(votes, batch_size=3)
    array([0, 3, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "redundancy_weight": [Interval(numbers.Real, 0, None, closed="left")],
        "n_reference": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "prediction": [StrOptions({"sampled", "proba", "expected", "argmax"})],
        "kernel": [StrOptions(KERNELS), callable],
        "estimator": [StrOptions({"biased", "unbiased"})],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        redundancy_weight: Real = 1.0,
        n_reference: Integer | None = None,
        prediction: Prediction = "proba",
        kernel: Kernel = "auto",
        estimator: HSICEstimator = "biased",
        random_state: Seed = None,
    ) -> None:
        self.redundancy_weight = redundancy_weight
        self.n_reference = n_reference
        self.prediction = prediction
        self.kernel = kernel
        self.estimator = estimator
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: draws of any kind; random where rows or labels are drawn."""
        return QueryTags(
            deterministic=self.n_reference is None and self.prediction != "sampled",
            kinds=understood_kinds(self),
            uses=("reference",),
            min_draws=2 if self.estimator == "biased" else 4,
        )

    def _check_draws(self, draws: Draws | RowSet, caller: str) -> None:
        check_kernel(self, draws.kind, caller)
        super()._check_draws(draws, caller)

    def _unit_power(self) -> int:
        return 0

    def _select(self, pool: Pool) -> Selection:
        reference = reference_rows(pool, self.n_reference)
        dependence = make_dependence(self, pool, np.unique(reference))
        return maximize(pool, _Difference(dependence, reference, self.redundancy_weight))


class _Difference:
    """Relevance less redundancy: dependence on the reference rows less that on the batch."""

    submodular = False

    def __init__(
        self, dependence: Dependence, reference: np.ndarray, redundancy_weight: Real
    ) -> None:
        dependence.keep_features(double=True)
        self.dependence = dependence
        self.redundancy_weight = redundancy_weight
        relevant = dependence.reference_kernels([reference])
        self.relevance = dependence.scores_of(relevant, relevant.duals, double=True)
        self.redundancy: StepScores | None = None
        self.kernel_sum = np.zeros((dependence.n_draws,) * 2)  # of the batch
        self.size = 0

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the difference for candidates, 0 up to rounding as 0."""
        relevance, error = self._values(self.relevance, slots)
        if self.redundancy is None:
            return relevance, error
        redundancy, added = self._values(self.redundancy, slots)
        redundancy = self.redundancy_weight * redundancy
        largest = float(np.abs(relevance).max() + np.abs(redundancy).max())
        error += float(self.redundancy_weight) * added + ROUNDING * largest
        gains = relevance - redundancy
        return np.where(np.abs(gains) > error, gains, 0.0), error

    def exact(self, slots: np.ndarray) -> np.ndarray:
        """Return the difference, from fractions or equal where it may differ by rounding alone."""
        relevance, errors = self.dependence.exact_values(self.relevance, 0, slots)
        if self.redundancy is None:
            return decided(relevance, errors)
        redundancy, added = self.dependence.exact_values(self.redundancy, 0, slots)
        weight = float(self.redundancy_weight)
        if relevance.dtype == object:
            # The weight as it is written: 3/10, and not the float nearest to it.
            return (relevance - Fraction(repr(weight)) * redundancy).astype(np.float64)
        rounding = ROUNDING * (np.abs(relevance) + weight * np.abs(redundancy))
        return decided(relevance - weight * redundancy, errors + weight * added + rounding)

    def add(self, slot: int) -> None:
        """Add a candidate to the batch."""
        dependence = self.dependence
        self.kernel_sum += _array.to_host(dependence.kernels(np.array([slot])))[0]
        self.size += 1
        kernel_sum = _array.like(self.kernel_sum[None], self.relevance.duals)
        batch = dependence.summed(kernel_sum, np.array([self.size]))
        self.redundancy = dependence.scores_of(batch, batch.duals, double=True)

    def _values(self, scores: StepScores, slots: np.ndarray) -> tuple[np.ndarray, float]:
        """Return mean dependences, and a bound of their errors."""
        row = _array.to_host(self.dependence.row(scores, 0))
        return row[slots] + scores.offset[0], float(scores.error[0])
