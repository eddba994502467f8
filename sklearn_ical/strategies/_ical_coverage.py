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
from sklearn_ical.objectives._coverage import ConcaveCoverage, MatrixCoverage
from sklearn_ical.objectives.hsic._dependence import Dependence, PairwiseDependence
from sklearn_ical.objectives.hsic._make_dependence import (
    KERNELS,
    check_information_weight,
    check_kernel,
    information_of,
    make_dependence,
    understood_kinds,
)
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.pool._references import reference_rows
from sklearn_ical.pool._row_weights import UNCERTAINTIES, given_weights, uncertainty
from sklearn_ical.samplers import Draws
from sklearn_ical.selection._batch import Selection
from sklearn_ical.selection._maximize import maximize
from sklearn_ical.strategies._base import BaseQuery, QueryTags

# Largest size of the matrix of dependences by default.
MATRIX_BYTES = 10**9
# Enough reference rows for most pools.
MANY = 1000


class ICALCoverageQuery(BaseQuery):
    """Choose the batch that covers the reference rows by dependence of the predictions.

    Information condensing active learning with an objective in which rows of a batch interact: a
    reference row counts by the one row of the batch that it depends on most, so that a second,
    redundant row adds nothing. With the dependence D(i, x) of candidate x and reference row i,

        f(S) = mean over i of max over x in S of v_i w_x D(i, x)

    is monotone and submodular, and the greedy batch reaches at least 1 - 1/e of the largest value.

    Read more in the :ref:`User Guide <ical_coverage>`.

    Parameters
    ----------
    n_reference : int or None, default=None
        Number of reference rows drawn from the pool, or from the reference rows given. None draws
        1000, or twice as many as are to be picked if that is more; at most all, and no more than a
        matrix of 1 GB allows. More reference rows give better batches, and rare kinds of rows are
        covered only if some of them are among these.
    dependence : {"hsic", "tau"}, default="hsic"
        "hsic": the Hilbert-Schmidt independence criterion of the predictions, as in ICAL. "tau":
        the expected reduction of the reference row's Gini impurity, its Brier risk, by the
        candidate's label, Bayes' rule over the draws; HSIC whose candidate kernel divides each
        class by its mean probability. For regression the expected reduction of the variance, summed
        over targets in units of their pool-wide mean variance, by an observation of all targets of
        the candidate together, with the noise of the samples: of equal targets, which observe the
        same, only the noise is less.
    candidate_weight, reference_weight : None, "margin", "entropy" or array, default=None
        The factors w and v. None: 1. "margin": 1 minus the difference of the two largest mean class
        probabilities. "entropy": entropy of the mean class probabilities, in nats. An array has one
        number >= 0 for each pool row, or for each row that reference positions refer to.
    information_weight : float, default=0.0
        From 0 to 1: share of information about the parameters in D. D becomes (1 - u) D(i, x) + u c
        D(draw, x), where the number c makes both parts equal on average over the pool. With 1 one
        row covers all reference rows, and the batch is the rows with the largest information about
        the parameters. Needs ``estimator="biased"``.
    objective : {"facility-location", "concave"}, default="facility-location"
        "concave": mean over i of (sum over x in S of v_i w_x D(i, x)) ** gamma, which is never
        saturated.
    gamma : float, default=0.5
        Exponent of the concave objective, 0 < gamma <= 1. With 1 the batch no longer interacts, and
        the choice is that of :class:`ICALQuery` with a fixed reference set.
    prediction, kernel, estimator
        Form of the predictions, their kernel and the estimator of HSIC, as for :class:`ICALQuery`;
        here with ``prediction="proba"`` by default, and estimates below 0 count as 0. "tau" needs
        ``prediction="proba"`` or label samples, and ``kernel="auto"``.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the reference rows, the labels of ``prediction="sampled"`` and the draws if the
        posterior has infinitely many. See :term:`random_state`.

    Notes
    -----
    Once no candidate adds anything, the reference rows are saturated: this gives a warning, and the
    rest of the batch covers them again.

    Utilities are gains, in the unit of D times that of the weights (to the power gamma), >= 0.

    The matrix of dependences, n_reference * n_pool float64 numbers, is one matrix product,
    O(n_reference n_pool n_draws^2), and O(n_pool n_targets^3) more for "tau" of several targets;
    there is none of n_pool by n_pool unless requested. Lazy greedy then recomputes few gains per
    pick, O(n_reference) each. Model requirements: at least 2 posterior draws (4 for the unbiased
    estimator), the same functions for every row.

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
        kinds = understood_kinds(self)
        return QueryTags(
            deterministic=False,
            uses=("reference",),
            kinds=tuple(kind for kind in kinds if kind != "value") if by_name else kinds,
            min_draws=2 if self.estimator == "biased" else 4,
        )

    def _check_draws(self, draws: Draws | RowSet, caller: str) -> None:
        for name in ("candidate_weight", "reference_weight"):
            weight = getattr(self, name)
            if isinstance(weight, str) and draws.kind == "value":
                raise ValueError(
                    f"{name}={weight!r} is computed from class probabilities. Got predictions of "
                    f"kind 'value' in {caller}; pass None, or an array of one weight for each row."
                )
        check_kernel(self, draws.kind, caller)
        super()._check_draws(draws, caller)

    def _unit_power(self) -> int:
        return 0

    def _select(self, pool: Pool) -> Selection:
        check_information_weight(self, pool.caller)
        if self.dependence == "tau":
            self._check_tau(pool)
        source, reference = pool.compared, self._reference(pool)
        given = [
            given_weights(getattr(self, name), rows.n_points, name, pool.caller)
            for name, rows in (("candidate_weight", pool.rows), ("reference_weight", source))
        ]
        matrix, dependence = self._dependences(pool, reference)
        by_row, highest = _of_rows(self.reference_weight, given[1], source, reference)
        scale, top = _of_rows(self.candidate_weight, given[0], pool.rows, pool.candidates)
        factors = np.ones(len(reference)) if by_row is None else by_row
        _clean(matrix, factors)
        column_of = dependence.atoms(np.arange(len(pool.candidates)))
        options: dict[str, Any] = {
            "column_of": column_of,
            "scale": scale,
            "share": self._share(highest, top, pool.caller) / len(reference),
            "error": matrix.error * factors,
            "extent": matrix.extent[column_of],
            "on_saturated": partial(warn_saturated, pool.caller, n_reference=len(reference)),
        }
        objective = (
            MatrixCoverage(matrix.values, **options)
            if self.objective == "facility-location"
            else ConcaveCoverage(matrix.values, self.gamma, **options)
        )
        return maximize(pool, objective)

    def _share(self, by_row: float, by_candidate: float, caller: str) -> float:
        """Return the factor of the largest D, of weight 1 on both sides, in the objective."""
        exponent = 1.0 if self.objective == "facility-location" else float(self.gamma)
        share = (by_row * by_candidate) ** exponent
        if not sys.float_info.min < share < sys.float_info.max:
            raise ValueError(
                "candidate_weight and reference_weight must have a product within float64. Got "
                f"largest weights of {by_candidate!r} and {by_row!r} in {caller}; scale them."
            )
        return share

    def _reference(self, pool: Pool) -> np.ndarray:
        n_reference = self.n_reference
        if n_reference is None:
            room = MATRIX_BYTES // (8 * pool.n_points)
            n_reference = max(1, min(max(MANY, 2 * pool.requested), room))
        return reference_rows(pool, n_reference)

    def _dependences(
        self, pool: Pool, reference: np.ndarray
    ) -> tuple[PairwiseDependence, Dependence]:
        """Return D between reference rows and candidates, and the dependence it is based on."""

        def make(pool: Pool) -> Dependence:
            tau, sums = self.dependence == "tau", self.information_weight == 0
            return make_dependence(self, pool, np.unique(reference), tau=tau, sums=sums)

        dependence = make(pool)
        information = information_of(self, pool, dependence, make)
        if information is None:
            return dependence.pairwise(reference), dependence
        amount = information.amounts(dependence.reference_kernels([reference]).duals)
        adjust = partial(information.shifted, amounts=amount)
        return dependence.pairwise(reference, adjust), dependence

    def _check_tau(self, pool: Pool) -> None:
        """Raise if the parameters do not define tau."""
        if pool.rows.kind == "proba" and self.prediction != "proba":
            raise ValueError(
                "dependence='tau' is a function of the class probabilities. Got prediction="
                f"{self.prediction!r} in {pool.caller}; pass prediction='proba'."
            )
        if self.kernel not in ("auto", "linear") or self.estimator != "biased":
            raise ValueError(
                "dependence='tau' has its own kernel and needs the biased estimator. Got kernel="
                f"{self.kernel!r} and estimator={self.estimator!r} in {pool.caller}; leave both "
                "out, or pass dependence='hsic'."
            )


def _of_rows(
    weight: Any, given: np.ndarray | None, predictions: RowSet, positions: np.ndarray
) -> tuple[np.ndarray | None, float]:
    """Return weights of some rows, and the factor they were divided by; None, 1 without weights."""
    if weight is None:
        return None, 1.0
    if given is None:
        return uncertainty(weight, predictions, positions), 1.0
    highest = float(given.max())
    return (given[positions] / highest, highest) if highest > 0 else (given[positions], 1.0)


def _clean(matrix: PairwiseDependence, factors: np.ndarray) -> None:
    """Set entries that are 0 up to rounding to 0, and multiply each column, in place."""
    values, xp = matrix.values, _array.namespace(matrix.values)
    extent, error = (_array.like(each, values) for each in (matrix.extent, matrix.error))
    for rows in _array.row_slices(values.shape[0], 16 * values.shape[1]):
        part = values[rows, :]
        part = xp.where(part > extent[rows, None] * error, part, xp.zeros_like(part))
        values[rows, :] = part * _array.like(factors, part)
