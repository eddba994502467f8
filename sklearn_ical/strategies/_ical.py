"""Information condensing active learning (ICAL): the paper's query strategy."""

import math
import numbers
from typing import Any, ClassVar

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import HSICEstimator, Integer, Kernel, Prediction, Real, Seed
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.strategies._base import QueryTags
from sklearn_ical.strategies._information import Information, check_information, information_of
from sklearn_ical.strategies._make_scorer import KERNELS, make_scorer
from sklearn_ical.strategies._pool import Batch, Pool, Selection
from sklearn_ical.strategies._reference_query import ReferenceQuery
from sklearn_ical.strategies._references import ReferenceSets
from sklearn_ical.strategies._scorer import Scorer, multiplicities


class ICALQuery(ReferenceQuery):
    """Choose the batch whose predictions depend most on those for the rest of the pool.

    Information condensing active learning [1]_. Each greedy step draws a reference set R of the
    pool and takes the candidates x with the largest

        s(x) = mean over x' in R of HSIC(k_x', k_x),

    the dependence between the posterior predictions for x and for x'. A row that is uncertain
    in the way in which many others are is worth a label.

    Parameters
    ----------
    n_reference : int, default=200
        Size r of the reference set of each step; at most all rows where `replace` is False.
    step_size : int, default=1
        How many rows each step takes (L in the paper); the last step may take fewer. With costs,
        they are taken one after the other, each within what is then left of the budget.
    prediction : {"sampled", "proba", "expected", "argmax"}, default="sampled"
        What a classifier's prediction is. "sampled": one label per row and draw, drawn from the
        class probabilities, as in the paper. "proba": the probabilities themselves, with the same
        limit for many draws and far less noise. "expected": the kernel of sampled labels, averaged
        over all of them. "argmax": the likeliest label. Label samples are used as they are, and
        so are the draws of regressors.
    kernel : {"auto", "rq", "rbf", "linear", "delta", "distance"} or callable, default="auto"
        Kernel of two predictions; a callable is a function of squared distances, elementwise on
        arrays. "auto" is the paper's mixture of rational quadratics ("rq") for labels and
        regression, "linear" for "proba" and "expected". For labels, all kernels make the same
        choice. Real predictions are divided by their pool-wide spread over the draws first.
    estimator : {"biased", "unbiased"}, default="biased"
        Estimator of HSIC: "biased" (V-statistic, as in the paper, exact where the draws are the
        whole posterior) or "unbiased" (needs 4 draws or more of equal weight).
    resample : bool, default=True
        Whether each step draws its own reference set. All diversity in a batch comes from this.
    replace : bool, default=False
        Whether reference rows are drawn with replacement.
    include_self : bool, default=True
        Whether a candidate in R is also compared with itself, as in the paper.
    exclude_selected : bool, default=False
        Whether rows chosen in earlier steps leave the reference sets. Then steps cannot share
        one matrix product: each costs a pass over the candidates.
    information_weight : float, default=0.0
        From 0, the paper's method, to 1: how much of a score is what the prediction tells about the
        parameters. The mean reference kernel S becomes (1 - w) S + w c I, where the identity I is
        the kernel of the draw itself and c makes both parts equal on average over the pool. Needs
        ``estimator="biased"``, as the other leaves the diagonals of kernels out.
    random_state : int, RandomState, Generator or None, default=None
        See :term:`random_state`.

    Notes
    -----
    The objective is linear in the batch, so what was chosen before changes nothing but what is
    left to choose, and the scores of all steps are one matrix product: O(n_pool * n_draws^2 *
    n_steps). It is formed in blocks of steps within half of scikit-learn's `working_memory`, from
    kernels made chunk by chunk; label samples are kept, n_pool * n_draws bytes, and other
    predictions where a quarter of `working_memory` has room. The product is in float32 and only
    makes a shortlist: label samples are decided in integers, other predictions in float64. A row
    whose draws all agree scores exactly 0.

    Utilities are s(x), dimensionless, >= 0 for "biased". Model requirements: at least 2 posterior
    draws, the same functions for every row.

    References
    ----------
    .. [1] Jain, Liu and Gifford, "Information condensing active learning", arXiv:2002.07916, 2020,
       algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical import ICALQuery
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X[:50], y[:50])
    >>> indices = ICALQuery(random_state=0).query(forest, X[50:], batch_size=10)
    >>> indices.shape
    (10,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_reference": [Interval(numbers.Integral, 1, None, closed="left")],
        "step_size": [Interval(numbers.Integral, 1, None, closed="left")],
        "prediction": [StrOptions({"sampled", "proba", "expected", "argmax"})],
        "kernel": [StrOptions(KERNELS), callable],
        "estimator": [StrOptions({"biased", "unbiased"})],
        "resample": ["boolean"],
        "replace": ["boolean"],
        "include_self": ["boolean"],
        "exclude_selected": ["boolean"],
        "information_weight": [Interval(numbers.Real, 0, 1, closed="both")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_reference: Integer = 200,
        step_size: Integer = 1,
        prediction: Prediction = "sampled",
        kernel: Kernel = "auto",
        estimator: HSICEstimator = "biased",
        resample: bool = True,
        replace: bool = False,
        include_self: bool = True,
        exclude_selected: bool = False,
        information_weight: Real = 0.0,
        random_state: Seed = None,
    ) -> None:
        self.n_reference = n_reference
        self.step_size = step_size
        self.prediction = prediction
        self.kernel = kernel
        self.estimator = estimator
        self.resample = resample
        self.replace = replace
        self.include_self = include_self
        self.exclude_selected = exclude_selected
        self.information_weight = information_weight
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: draws of any kind, 4 for the unbiased estimator."""
        return QueryTags(deterministic=False, min_draws=2 if self.estimator == "biased" else 4)

    def _select(self, pool: Pool) -> Selection:
        check_information(self, pool.owner)
        references = ReferenceSets(self, pool, exclude_selected=self.exclude_selected)

        def make(pool: Pool) -> tuple[Scorer, float]:
            sums = self.information_weight == 0
            return make_scorer(self, pool, references.needed(), sums=sums)

        scorer, unit = make(pool)
        information = information_of(self, pool, scorer, make)
        alone = pool.reference is None and not self.include_self
        batch = Batch(pool)
        run = _Run(pool, batch, scorer, unit, information, without_self=alone)
        n_steps = math.ceil(pool.batch_size / self.step_size)
        block = 1 if references.depend_on_picks else _steps_per_block(scorer, pool)
        if references.depend_on_picks:
            scorer.keep_features(double=pool.want_utilities)
        for start in range(0, n_steps, block):
            if batch.full:
                break
            steps = range(start, min(start + block, n_steps))
            run.start([references.of_step(t, batch.chosen) for t in steps])
            for i in range(len(steps)):
                if not batch.full:
                    run.take(i, int(self.step_size))
        return batch.selection()


class _Run:
    """The greedy steps of one call: from a panel's values to what the batch takes."""

    def __init__(
        self,
        pool: Pool,
        batch: Batch,
        scorer: Scorer,
        unit: float,
        information: Information | None,
        *,
        without_self: bool,
    ) -> None:
        self.pool = pool
        self.batch = batch
        self.scorer = scorer
        self.unit = unit
        self.information = information
        self.without_self = without_self

    def start(self, positions: list[np.ndarray]) -> None:
        """Score the candidates against the reference sets of a block of steps."""
        double = self.pool.want_utilities
        self.positions = positions
        if self.information is None:
            self.panel = self.scorer.panel(positions, double=double)
        else:
            references = self.scorer.summary(positions)
            self.amounts = self.information.amounts(references.duals)
            duals = self.information.shifted(references.duals, self.amounts)
            extent = self.information.extent(references.duals, self.amounts)
            self.panel = self.scorer.panel_of(references, duals, double=double, extent=extent)

    def take(self, step: int, size: int) -> None:
        """Choose the best `size` free candidates of one step of the block."""
        scorer, pool, panel = self.scorer, self.pool, self.panel
        row = scorer.row(panel, step)
        error, n_reference = float(panel.error[step]), int(panel.references.sizes[step])
        shared, counts = self._shared(self.positions[step])
        if len(shared):
            row, error = self._less_self(row, step, shared, counts, error)
        if pool.want_utilities or pool.costs is not None:  # else only the order of values counts
            xp = _array.namespace(row)
            row = self.unit * (xp.astype(row, xp.float64) + float(panel.offset[step]))
            error *= self.unit

        def exact(where: np.ndarray) -> np.ndarray:
            scores = scorer.exact(panel, step, where)
            if not len(shared):
                return scores
            own = np.zeros(len(pool.candidates), dtype=np.int64)
            own[shared] = counts
            with_self = self._own(where, step)
            return scorer.without_self(scores, with_self, own[where], n_reference)

        def values(scores: np.ndarray) -> np.ndarray:
            return self.unit * scorer.values(scores, n_reference)

        self.batch.take(row, size, tolerance=4 * error, exact=exact, values=values)

    def _own(self, candidates: np.ndarray, step: int) -> np.ndarray:
        """Return what each candidate as a reference row adds to its own score of one step."""
        if self.information is None:
            return self.scorer.exact_self(candidates)
        information, amount = self.information, self.amounts[step]
        return self.scorer.exact_self(candidates, lambda duals: information.shifted(duals, amount))

    def _shared(self, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return places of candidates that are reference rows too, and how often they are."""
        if not self.without_self:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
        counts = multiplicities([reference], self.pool.candidates)[0]
        shared = np.flatnonzero(counts)
        return shared, counts[shared]

    def _less_self(
        self,
        row: Array,
        step: int,
        shared: np.ndarray,
        counts: np.ndarray,
        error: float,
    ) -> tuple[Array, float]:
        """Take the dependence of reference rows on themselves out of one step's values."""
        size, offset = int(self.panel.references.sizes[step]), float(self.panel.offset[step])
        own = self.scorer.values(self._own(shared, step), 1)
        left = np.maximum(size - counts, 1)
        factor, shift = np.ones(row.shape[0]), np.zeros(row.shape[0])
        factor[shared] = np.where(size > counts, size / left, 0.0)
        shift[shared] = np.where(size > counts, counts * own / left, 0.0)
        xp = _array.namespace(row)
        exact_row = (xp.astype(row, xp.float64) + offset) * _array.like(factor, row)
        exact_row = exact_row - _array.like(shift, row) - offset
        return exact_row, error * float(factor.max()) * 2


def _steps_per_block(scorer: Scorer, pool: Pool) -> int:
    """Return how many steps' scores fit in half of `working_memory`."""
    item = 8 if pool.want_utilities else 4
    step_bytes = item * len(pool.candidates) + 40 * scorer.n_draws**2
    return max(1, _array.working_bytes() // 2 // step_bytes)
