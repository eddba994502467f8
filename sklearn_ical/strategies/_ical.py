"""Information condensing active learning (ICAL): the paper's query strategy."""

import numbers
import sys
from typing import Any, ClassVar

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import HSICEstimator, Integer, Kernel, Prediction, Real, Seed
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.objectives.hsic._dependence import Dependence, decided, multiplicities
from sklearn_ical.objectives.hsic._make_dependence import (
    KERNELS,
    Information,
    check_information_weight,
    check_kernel,
    information_of,
    make_dependence,
    understood_kinds,
)
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.pool._references import reference_sets
from sklearn_ical.samplers._base import Draws
from sklearn_ical.selection._batch import Batch, Selection
from sklearn_ical.strategies._base import BaseQuery, QueryTags


class ICALQuery(BaseQuery):
    """Choose the batch whose predictions depend most on those for the pool.

    Information condensing active learning [1]_. Each greedy step draws a reference set R of the
    pool and takes the candidates x with the largest

        s(x) = mean over x' in R of HSIC(k_x', k_x),

    the dependence between the posterior predictions for x and for x'. Rows whose uncertainty is
    shared by many others have high scores.

    Read more in the :ref:`User Guide <ical>`.

    Parameters
    ----------
    n_reference : int, default=200
        Size r of the reference set of each step, drawn without replacement; at most all rows.
    step_size : int, default=1
        Number of rows of each step (L in the paper); the last step may take fewer. With costs, they
        are taken one after the other, each within the remaining budget.
    prediction : {"sampled", "proba", "expected", "argmax"}, default="sampled"
        Form of a classifier's predictions. "sampled": one label per row and draw, drawn from the
        class probabilities, as in the paper. "proba": the probabilities themselves, with the same
        limit for many draws and far less noise. "expected": the kernel of sampled labels, averaged
        over all of them; in both, a draw has one label whatever its weight. "argmax": the likeliest
        label. Label samples are used as they are, and so are the draws of regressors.
    kernel : {"auto", "rq", "rbf", "linear", "delta", "distance"} or callable, default="auto"
        Kernel of two predictions; a callable is a function of squared distances, elementwise on
        arrays. "auto" is "delta" for labels, for which all kernels make the same choice, the
        paper's mixture of rational quadratics ("rq") for regression, and "linear" for "proba" and
        "expected". Other kernels are for real predictions and "proba". Real predictions are
        divided by their pool-wide spread over the draws first.
    estimator : {"biased", "unbiased"}, default="biased"
        Estimator of HSIC: "biased" (V-statistic, as in the paper, exact where the draws are the
        whole posterior) or "unbiased" (needs 4 draws or more of equal weight).
    resample : bool, default=True
        Whether each step draws its own reference set. All diversity in a batch comes from this.
    include_self : bool, default=True
        Whether a candidate in R is also compared with itself, as in the paper.
    information_weight : float, default=0.0
        From 0, the paper's method, to 1: share of information about the parameters in the scores.
        The mean reference kernel S becomes (1 - w) S + w c I, where the identity I is the kernel of
        the draw itself and c makes both parts equal on average over the pool. Needs
        ``estimator="biased"``, as the other ignores the diagonals of kernels.
    random_state : int, RandomState, Generator or None, default=None
        See :term:`random_state`.

    Notes
    -----
    The objective is linear in the batch, so earlier picks do not change the scores of later ones,
    and the scores of all steps are one matrix product: O(n_pool * n_draws^2 * n_steps). It is
    formed in blocks of steps within half of scikit-learn's `working_memory`, from kernels made
    chunk by chunk; label samples are kept, n_pool * n_draws bytes, and other predictions if they
    fit in a quarter of `working_memory`. The product is in float32 and only makes a shortlist:
    label samples are decided in integers, other predictions in float64. A row whose draws all agree
    scores exactly 0.

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
        "include_self": ["boolean"],
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
        include_self: bool = True,
        information_weight: Real = 0.0,
        random_state: Seed = None,
    ) -> None:
        self.n_reference = n_reference
        self.step_size = step_size
        self.prediction = prediction
        self.kernel = kernel
        self.estimator = estimator
        self.resample = resample
        self.include_self = include_self
        self.information_weight = information_weight
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: draws of any kind, 4 for the unbiased estimator."""
        min_draws = 2 if self.estimator == "biased" else 4
        return QueryTags(
            deterministic=False,
            kinds=understood_kinds(self),
            uses=("reference",),
            min_draws=min_draws,
        )

    def _check_draws(self, draws: Draws | RowSet, caller: str) -> None:
        check_kernel(self, draws.kind, caller)
        super()._check_draws(draws, caller)

    def _unit_power(self) -> int:
        return 0

    def _select(self, pool: Pool) -> Selection:
        check_information_weight(self, pool.caller)
        references = reference_sets(self, pool)

        def make(pool: Pool) -> Dependence:
            sums = self.information_weight == 0
            return make_dependence(self, pool, np.unique(references), sums=sums)

        dependence = make(pool)
        information = information_of(self, pool, dependence, make)
        without_self = pool.reference is None and not self.include_self
        run = _BlockSteps(Batch(pool), dependence, information, without_self=without_self)
        block = _steps_per_block(dependence, pool)
        for start in range(0, len(references), block):
            if not run.batch.full:
                run.take_block(references[start : start + block], int(self.step_size))
        return run.batch.selection()


class _BlockSteps:
    """The greedy steps of one call, from scores to picks.

    The scores of a block of steps are one product, so the steps are not those of `maximize`.
    """

    def __init__(
        self,
        batch: Batch,
        dependence: Dependence,
        information: Information | None,
        *,
        without_self: bool,
    ) -> None:
        self.pool = batch.pool
        self.batch = batch
        self.dependence = dependence
        self.information = information
        self.without_self = without_self

    def take_block(self, references: np.ndarray, size: int) -> None:
        """Take `size` candidates in each of a block of steps, by these reference sets."""
        double, sets = self.pool.want_utilities, list(references)
        if self.information is None:
            self.step_scores = self.dependence.scores(sets, double=double)
        else:
            kernels = self.dependence.reference_kernels(sets)
            self.amounts = self.information.amounts(kernels.duals)
            duals = self.information.shifted(kernels.duals, self.amounts)
            extent = self.information.extent(kernels.duals, self.amounts)
            self.step_scores = self.dependence.scores_of(
                kernels, duals, double=double, extent=extent
            )
        for step, reference in enumerate(sets):
            if not self.batch.full:
                self._take(step, reference, size)

    def _take(self, step: int, reference: np.ndarray, size: int) -> None:
        """Choose the best `size` free candidates of one step of the block."""
        dependence, pool, step_scores = self.dependence, self.pool, self.step_scores
        row = dependence.row(step_scores, step)
        error, n_reference = float(step_scores.error[step]), len(reference)
        shared, counts = self._shared(reference)
        if len(shared):
            row, error = self._less_self(row, step, shared, counts, error)
        if pool.want_utilities or pool.costs is not None:  # else only the order of values counts
            xp = _array.namespace(row)
            row = xp.astype(row, xp.float64) + float(step_scores.offset[step])
        if pool.want_utilities:
            row = xp.where(xp.abs(row) > error, row, xp.zeros_like(row))

        def exact(slots: np.ndarray) -> np.ndarray:
            scores = dependence.exact(step_scores, step, slots)
            if len(shared):
                n_self = np.zeros(len(pool.candidates), dtype=np.int64)
                n_self[shared] = counts
                self_scores = self._own(slots, step)
                scores = dependence.without_self(scores, self_scores, n_self[slots], n_reference)
            return decided(*scores)

        def utilities_of(scores: np.ndarray) -> np.ndarray:
            return dependence.values(scores, n_reference)

        self.batch.take(row, size, errors=error, exact=exact, utilities_of=utilities_of)

    def _own(self, candidates: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what candidates add to their own scores of one step, and bounds of the errors."""
        if self.information is None:
            return self.dependence.exact_self(candidates)
        information, amount = self.information, self.amounts[step]
        return self.dependence.exact_self(
            candidates, lambda duals: information.shifted(duals, amount)
        )

    def _shared(self, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return slots of candidates that are reference rows too, and how often they are."""
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
        """Remove the dependence of reference rows on themselves from one step's values."""
        size, offset = (
            int(self.step_scores.references.sizes[step]),
            float(self.step_scores.offset[step]),
        )
        self_scores, self_errors = self._own(shared, step)
        self_values = self.dependence.values(self_scores, 1)
        left = np.maximum(size - counts, 1)
        factor, shift = np.ones(row.shape[0]), np.zeros(row.shape[0])
        factor[shared] = np.where(size > counts, size / left, 0.0)
        shift[shared] = np.where(size > counts, counts * self_values / left, 0.0)
        xp = _array.namespace(row)
        exact_row = (xp.astype(row, xp.float64) + offset) * _array.like(factor, row)
        exact_row = exact_row - _array.like(shift, row) - offset
        rounding = 8 * sys.float_info.epsilon * (float(np.abs(shift).max()) + abs(offset))
        error_of_self = float((counts * self_errors / left).max())
        return exact_row, 2 * float(factor.max()) * error + error_of_self + rounding


def _steps_per_block(dependence: Dependence, pool: Pool) -> int:
    """Return how many steps' scores fit in half of `working_memory`."""
    item = 8 if pool.want_utilities else 4
    step_bytes = item * len(pool.candidates) + 40 * dependence.n_draws**2
    return max(1, _array.working_bytes() // 2 // step_bytes)
