"""Maximum relevance, minimum redundancy (mRMR) on dependence between predictions."""

import numbers
from typing import Any, ClassVar

import numpy as np

from sklearn_ical import _array
from sklearn_ical._typing import HSICEstimator, Integer, Kernel, Prediction, Real, Seed
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.dependence import hsic_dual
from sklearn_ical.strategies._base import QueryTags
from sklearn_ical.strategies._make_scorer import KERNELS, make_scorer
from sklearn_ical.strategies._pool import Batch, Pool, Selection
from sklearn_ical.strategies._reference_query import ReferenceQuery
from sklearn_ical.strategies._scorer import Panel, Scorer


class MRMRQuery(ReferenceQuery):
    """Choose rows that depend on the reference rows, and little on those chosen before.

    Maximum relevance and minimum redundancy [1]_, in the standard form of a difference: each pick
    has the largest

        mean over i of HSIC(x, i)  -  redundancy_weight * mean over chosen b of HSIC(x, b)

    with HSIC of the predictions of candidate x, reference row i and chosen row b.

    Parameters
    ----------
    redundancy_weight : float, default=1.0
        What redundancy counts beside relevance, >= 0. With 0 the choice is that of
        :class:`ICALQuery` with one fixed reference set.
    n_reference : int or None, default=None
        How many reference rows are drawn from the pool, or from the reference rows given; None
        takes all of them.
    prediction, kernel, estimator
        As for :class:`ICALQuery`; here with ``prediction="proba"`` by default.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the reference rows where `n_reference` is a number, the labels of
        ``prediction="sampled"`` and the draws of posteriors that have more than finitely many. See
        :term:`random_state`.

    Notes
    -----
    HSIC is linear in each kernel, so both means are one HSIC, with the summary kernel of the
    reference rows less `redundancy_weight` times that of the batch. The paper on ICAL tried another
    form, in which the relevance of a candidate shrinks as the batch grows [2]_, and found it
    worse than ICAL.

    Utilities are the difference, dimensionless, and may be negative. Cost O(n_pool n_draws^2) per
    pick, over predictions that are kept where a quarter of scikit-learn's `working_memory` has
    room. Model requirements: at least 2 posterior draws, the same functions for every row.

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
            min_draws=2 if self.estimator == "biased" else 4,
        )

    def _select(self, pool: Pool) -> Selection:
        reference = self._reference(pool)
        scorer, unit = make_scorer(self, pool, np.unique(reference), sums=False)
        scorer.keep_features(double=True)
        relevant = scorer.summary([reference])
        xp, chosen = _array.namespace(relevant.duals), np.zeros((scorer.n_draws,) * 2)
        batch, duals, extent = Batch(pool), relevant.duals, xp.abs(relevant.duals)
        while not batch.full:
            panel = scorer.panel_of(relevant, duals, double=True, extent=extent)
            self._take(batch, scorer, panel, unit)
            chosen += _array.to_host(scorer.kernels(np.array(batch.places[-1:])))[0]
            mean = chosen / len(batch.places)
            redundant = hsic_dual(mean, estimator=self.estimator, weights=scorer.weights)
            redundant = self.redundancy_weight * _array.like(redundant, duals)
            duals = relevant.duals - redundant
            extent = xp.abs(relevant.duals) + xp.abs(redundant)
        return batch.selection()

    def _take(self, batch: Batch, scorer: Scorer, panel: Panel, unit: float) -> None:
        """Take the best candidate of one step."""
        row = unit * (scorer.row(panel, 0) + float(panel.offset[0]))

        def exact(places: np.ndarray) -> np.ndarray:
            return unit * scorer.exact(panel, 0, places)

        batch.take(row, tolerance=4 * unit * float(panel.error[0]), exact=exact)
