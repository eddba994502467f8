"""ICAL as facility location: a batch that covers the reference rows by dependence."""

import numbers
import sys
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from sklearn_ical import _array
from sklearn_ical._typing import (
    HSICEstimator,
    Integer,
    Kernel,
    Numbers,
    Prediction,
    Real,
    Seed,
    Uncertainty,
)
from sklearn_ical._validation import Interval, StrOptions, warn_saturated
from sklearn_ical.samplers import Draws
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._base import QueryTags
from sklearn_ical.strategies._facility_location import ConcaveCoverage, MatrixCoverage
from sklearn_ical.strategies._information import check_information, information_of
from sklearn_ical.strategies._make_scorer import KERNELS, make_scorer
from sklearn_ical.strategies._pool import Batch, Pool, Predictions, Selection
from sklearn_ical.strategies._reference_query import ReferenceQuery
from sklearn_ical.strategies._references import one_set
from sklearn_ical.strategies._row_weights import UNCERTAINTIES, given_weights, uncertainty
from sklearn_ical.strategies._scorer import Matrix, Scorer

# What the matrix of dependences may take up where the number of reference rows is left open.
MATRIX_BYTES = 10**9
# So many reference rows cover what there is in most pools.
MANY = 1000


class ICALCoverageQuery(ReferenceQuery):
    """Choose the batch on whose predictions each reference row's prediction depends most.

    Information condensing active learning with an objective in which rows of a batch interact:
    a reference row counts by the one row of the batch that tells most about it, so that a
    second row that tells the same adds nothing. With the dependence D(i, x) of candidate x and
    reference row i,

        f(S) = mean over i of max over x in S of v_i w_x D(i, x)

    is monotone and submodular, and the greedy batch reaches at least 1 - 1/e of the largest value.

    Parameters
    ----------
    n_reference : int or None, default=None
        How many reference rows are drawn from the pool, or from the reference rows given. None
        draws 1000, or twice as many as are to be picked if that is more; at most all, and no more
        than a matrix of 1 GB allows. More reference rows give better batches, and rare kinds of
        rows are covered only if some of them are among these.
    dependence : {"hsic", "tau"}, default="hsic"
        "hsic": the Hilbert-Schmidt independence criterion of the predictions, as in ICAL. "tau":
        the expected reduction of the reference row's Gini impurity, its Brier risk, by the
        candidate's label, Bayes' rule over the draws; HSIC whose candidate kernel divides each
        class by its mean probability. For regression the expected reduction of the variance, in
        units of its pool-wide mean over the rows, each target on its own, by an observation with
        the noise that the samples state.
    candidate_weight, reference_weight : None, "margin", "entropy" or array, default=None
        The factors w and v. None: 1. "margin": 1 minus the difference of the two largest mean class
        probabilities. "entropy": entropy of the mean class probabilities, in nats. An array has one
        number >= 0 for each pool row, or for each row that reference positions count.
    information_weight : float, default=0.0
        From 0 to 1: how much of D is what the candidate's prediction tells about the parameters.
        D becomes (1 - u) D(i, x) + u c D(draw, x), where the number c makes both parts equal on
        average over the pool. With 1 one row covers all reference rows, and the batch is the rows
        that tell most about the parameters. Needs ``estimator="biased"``.
    objective : {"facility-location", "concave"}, default="facility-location"
        "concave": mean over i of (sum over x in S of v_i w_x D(i, x)) ** gamma, which is never
        saturated.
    gamma : float, default=0.5
        Exponent of the concave objective, 0 < gamma <= 1. With 1 the batch no longer interacts, and
        the choice is that of :class:`ICALQuery` with a fixed reference set.
    prediction, kernel, estimator
        What a prediction is, the kernel of two of them and the estimator of HSIC, as for
        :class:`ICALQuery`; here with ``prediction="proba"`` by default, and estimates below 0
        count as 0. "tau" needs ``prediction="proba"`` or label samples, and ``kernel="auto"``.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the reference rows, the labels of ``prediction="sampled"`` and the draws of posteriors
        that have more than finitely many. See :term:`random_state`.

    Notes
    -----
    Once no candidate adds anything, the reference rows are saturated: a warning says so, and the
    rest of the batch covers them anew.

    Utilities are gains, in the unit of D times that of the weights (to the power gamma), >= 0.

    The matrix of dependences, n_reference * n_pool float64 numbers, is one matrix product,
    O(n_reference n_pool n_draws^2); there is none of n_pool by n_pool unless asked for. Lazy greedy
    then renews few gains per pick, O(n_reference) each. Model requirements: at least 2 posterior
    draws (4 for the unbiased estimator), the same functions for every row.

    References
    ----------
    .. [1] Jain, Liu and Gifford, "Information condensing active learning", arXiv:2002.07916, 2020,
       section 4 (the dependence).
    .. [2] Nemhauser, Wolsey and Fisher, "An analysis of approximations for maximizing submodular
       set functions", Mathematical Programming, 1978 (the greedy guarantee).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical import ICALCoverageQuery
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X[:50], y[:50])
    >>> indices = ICALCoverageQuery(random_state=0).query(forest, X[50:], batch_size=10)
    >>> indices.shape
    (10,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_reference": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "dependence": [StrOptions({"hsic", "tau"})],
        "candidate_weight": [StrOptions(set(UNCERTAINTIES)), "array-like", None],
        "reference_weight": [StrOptions(set(UNCERTAINTIES)), "array-like", None],
        "information_weight": [Interval(numbers.Real, 0, 1, closed="both")],
        "objective": [StrOptions({"facility-location", "concave"})],
        "gamma": [Interval(numbers.Real, 0, 1, closed="right")],
        "prediction": [StrOptions({"sampled", "proba", "expected", "argmax"})],
        "kernel": [StrOptions(KERNELS), callable],
        "estimator": [StrOptions({"biased", "unbiased"})],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_reference: Integer | None = None,
        dependence: Literal["hsic", "tau"] = "hsic",
        candidate_weight: Uncertainty | Numbers | None = None,
        reference_weight: Uncertainty | Numbers | None = None,
        information_weight: Real = 0.0,
        objective: Literal["facility-location", "concave"] = "facility-location",
        gamma: Real = 0.5,
        prediction: Prediction = "proba",
        kernel: Kernel = "auto",
        estimator: HSICEstimator = "biased",
        random_state: Seed = None,
    ) -> None:
        self.n_reference = n_reference
        self.dependence = dependence
        self.candidate_weight = candidate_weight
        self.reference_weight = reference_weight
        self.information_weight = information_weight
        self.objective = objective
        self.gamma = gamma
        self.prediction = prediction
        self.kernel = kernel
        self.estimator = estimator
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: weights by name are those of classifiers."""
        by_name = isinstance(self.candidate_weight, str) or isinstance(self.reference_weight, str)
        return QueryTags(
            deterministic=False,
            kinds=("proba", "label") if by_name else ("proba", "label", "value"),
            min_draws=2 if self.estimator == "biased" else 4,
        )

    def _check_draws(self, draws: Draws | PredictionSamples, owner: str) -> None:
        for name in ("candidate_weight", "reference_weight"):
            weight = getattr(self, name)
            if isinstance(weight, str) and draws.kind == "value":
                raise ValueError(
                    f"{name}={weight!r} is taken from class probabilities. Got predictions of kind "
                    f"'value' in {owner}; pass None, or an array of one weight for each row."
                )
        super()._check_draws(draws, owner)

    def _select(self, pool: Pool) -> Selection:
        check_information(self, pool.owner)
        if self.dependence == "tau":
            self._check_tau(pool)
        source, reference = pool.compared, self._reference(pool)
        given = [
            given_weights(getattr(self, name), rows.n_points, name, pool.owner)
            for name, rows in (("candidate_weight", pool.predictions), ("reference_weight", source))
        ]
        matrix, scorer, unit = self._dependences(pool, reference)
        by_row, highest = _of_rows(self.reference_weight, given[1], source, reference)
        scale, top = _of_rows(self.candidate_weight, given[0], pool.predictions, pool.candidates)
        factors = np.ones(len(reference)) if by_row is None else by_row
        _clean(matrix, factors)
        options: dict[str, Any] = {
            "column_of": scorer.atoms(np.arange(len(pool.candidates))),
            "scale": scale,
            "share": self._share(unit, highest, top, pool.owner) / len(reference),
            "error": matrix.error * factors,
        }
        objective = (
            MatrixCoverage(matrix.values, **options)
            if self.objective == "facility-location"
            else ConcaveCoverage(matrix.values, self.gamma, **options)
        )
        batch = Batch(pool)
        _cover(batch, objective)
        return batch.selection()

    def _share(self, unit: float, by_row: float, by_candidate: float, owner: str) -> float:
        """Return what the largest D, of weight 1 on both sides, counts in the objective."""
        exponent = 1.0 if self.objective == "facility-location" else float(self.gamma)
        share = (unit * by_row * by_candidate) ** exponent
        if not sys.float_info.min < share < sys.float_info.max:
            raise ValueError(
                "candidate_weight and reference_weight must have a product within float64. Got "
                f"largest weights of {by_candidate!r} and {by_row!r} in {owner}; scale them."
            )
        return share

    def _reference(self, pool: Pool) -> np.ndarray:
        n_reference = self.n_reference
        if n_reference is None:
            room = MATRIX_BYTES // (8 * pool.n_points)
            n_reference = max(1, min(max(MANY, 2 * pool.requested), room))
        return one_set(pool, n_reference, pool.options.get("reference"))

    def _dependences(self, pool: Pool, reference: np.ndarray) -> tuple[Matrix, Scorer, float]:
        """Return D between reference rows and candidates, the scorer of those, and D's unit."""

        def make(pool: Pool) -> tuple[Scorer, float]:
            tau, sums = self.dependence == "tau", self.information_weight == 0
            return make_scorer(self, pool, np.unique(reference), tau=tau, sums=sums)

        scorer, unit = make(pool)
        information = information_of(self, pool, scorer, make)
        if information is None:
            return scorer.matrix(reference), scorer, unit
        amount = information.amounts(scorer.summary([reference]).duals)
        adjust = partial(information.shifted, amounts=amount)
        return scorer.matrix(reference, adjust), scorer, unit

    def _check_tau(self, pool: Pool) -> None:
        """Refuse what would not be tau."""
        if pool.predictions.kind == "proba" and self.prediction != "proba":
            raise ValueError(
                "dependence='tau' is a function of the class probabilities. Got prediction="
                f"{self.prediction!r} in {pool.owner}; pass prediction='proba'."
            )
        if self.kernel not in ("auto", "linear") or self.estimator != "biased":
            raise ValueError(
                "dependence='tau' has its own kernel and needs the biased estimator. Got kernel="
                f"{self.kernel!r} and estimator={self.estimator!r} in {pool.owner}; leave both "
                "out, or pass dependence='hsic'."
            )


def _of_rows(
    weight: Any, given: np.ndarray | None, predictions: Predictions, positions: np.ndarray
) -> tuple[np.ndarray | None, float]:
    """Return weights of some rows and the factor that was taken out of them; None, 1 for none."""
    if weight is None:
        return None, 1.0
    if given is None:
        return uncertainty(weight, predictions, positions), 1.0
    highest = float(given.max())
    return (given[positions] / highest, highest) if highest > 0 else (given[positions], 1.0)


def _clean(matrix: Matrix, factors: np.ndarray) -> None:
    """Make what may be 0 but for rounding 0, and multiply each column, in place."""
    values, xp = matrix.values, _array.namespace(matrix.values)
    for rows in _array.row_slices(values.shape[0], 8 * values.shape[1]):
        part = values[rows, :]
        part = xp.where(part > _array.like(matrix.error, part), part, xp.zeros_like(part))
        values[rows, :] = part * _array.like(factors, part)


def _cover(batch: Batch, objective: MatrixCoverage | ConcaveCoverage) -> None:
    """Fill a batch by lazy greedy, from the start again wherever no candidate adds anything."""
    bounds, n_covering, warned = objective.bounds(), 0, False
    while not batch.full:
        tolerance = objective.tolerance
        best = batch.renew(bounds, objective.gains, tolerance=tolerance)
        if best > tolerance:
            batch.take(bounds, tolerance=tolerance, exact=objective.exact)
            objective.add(batch.places[-1])
            n_covering += 1
        elif n_covering == 0:  # nothing depends on anything
            batch.take(np.zeros_like(bounds), len(bounds))
        else:
            if not warned:
                warn_saturated(batch.pool.owner, len(batch.chosen), objective.n_reference)
            objective.restart()
            bounds, n_covering, warned = objective.bounds(), 0, True
