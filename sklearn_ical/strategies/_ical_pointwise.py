"""ICAL-pointwise: candidates that explain single reference rows better than the batch so far."""

import math
import numbers
import sys
from typing import Any, ClassVar, Literal, Unpack, overload

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._random import STRATEGY
from sklearn_ical._typing import (
    HSICEstimator,
    Indices,
    IndicesAndUtilities,
    Integer,
    Kernel,
    Numbers,
    Positions,
    PositionSets,
    Prediction,
    Real,
    Seed,
)
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._base import BaseQuery, QueryOptions, QueryTags, SelectOptions
from sklearn_ical.strategies._make_scorer import KERNELS, make_scorer
from sklearn_ical.strategies._pool import Batch, Pool, Selection, ties
from sklearn_ical.strategies._references import ReferenceSets, one_set, sets_of_steps
from sklearn_ical.strategies._scorer import Panel, Scorer

# Dependence below so much of the largest self-dependence is none.
NEGLIGIBLE = 1e-12


class _QueryOptions(QueryOptions, total=False):
    """Keyword arguments of `query`, for type checkers."""

    reference: PositionSets | None
    marginal: PositionSets | None


class _SelectOptions(SelectOptions, total=False):
    """Keyword arguments of `select`, for type checkers."""

    reference: PositionSets | None
    marginal: PositionSets | None


class ICALPointwiseQuery(BaseQuery):
    """Choose rows that reference rows depend on more than on the batch so far.

    The pointwise variant of information condensing active learning [1]_. The first pick is that of
    :class:`ICALQuery`. From then on, a candidate x counts for each row i of a second reference
    set, the marginal set R', that depends more on x than on the mean of the batch. With the c rows
    chosen so far, h(i, x) = HSIC of rows i and x, d(i) = mean over chosen b of h(i, b), and a(x)
    the mean dependence on the reference set of the step, each step takes the largest

        (c * mean over chosen b of a(b) + a(x)) / (c + 1)
        * mean over i of max(h(i, x) / d(i) - 1, 0) / (c + 1).

    Parameters
    ----------
    n_reference : int, default=200
        Size of the reference set of each step, which a is taken over.
    n_marginal : int, default=200
        Size of the marginal set, drawn once for the whole batch without replacement; better many
        more than there are classes.
    step_size : int, default=1
        How many rows each step takes (L in the paper); the last step may take fewer.
    prediction, kernel, estimator, resample, replace
        As for :class:`ICALQuery`. Unbiased estimates below 0 count as 0 in h.
    ratio_floor : float, default=0.001
        Where the batch so far tells nothing about row i, d(i) is replaced by `ratio_floor` times
        the mean of d over R', so that the ratio stays finite.
    random_state : int, RandomState, Generator or None, default=None
        See :term:`random_state`.

    Notes
    -----
    The scores are the paper's in closed form: the mean kernel of the batch and x is linear in both,
    so no two nearly equal numbers are subtracted, however large the batch. Rows of R' that depend
    neither on x nor on the batch count as unchanged; dependence counts as none up to 1e-12 of the
    largest dependence of a row of R' on itself.

    Where fewer free candidates than a step takes have a score above 0, a(x) decides about the
    rest of the step. Utilities are the scores, or a(x) in the first step and where that decides;
    dimensionless.

    Cost O(n_pool n_draws^2 (n_marginal + n_steps)) for the matrix products, and for each step
    O(n_pool n_marginal); n_pool * n_marginal float64 numbers are held. Model requirements: at least
    2 posterior draws (4 for the unbiased estimator), the same functions for every row.

    References
    ----------
    .. [1] Jain, Liu and Gifford, "Information condensing active learning", arXiv:2002.07916, 2020,
       appendix.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical import ICALPointwiseQuery
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X[:50], y[:50])
    >>> indices = ICALPointwiseQuery(random_state=0).query(forest, X[50:], batch_size=10)
    >>> indices.shape
    (10,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_reference": [Interval(numbers.Integral, 1, None, closed="left")],
        "n_marginal": [Interval(numbers.Integral, 1, None, closed="left")],
        "step_size": [Interval(numbers.Integral, 1, None, closed="left")],
        "prediction": [StrOptions({"sampled", "proba", "expected", "argmax"})],
        "kernel": [StrOptions(KERNELS), callable],
        "estimator": [StrOptions({"biased", "unbiased"})],
        "resample": ["boolean"],
        "replace": ["boolean"],
        "ratio_floor": [Interval(numbers.Real, 0, None, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
    }
    _compares = True

    def __init__(
        self,
        n_reference: Integer = 200,
        n_marginal: Integer = 200,
        step_size: Integer = 1,
        prediction: Prediction = "sampled",
        kernel: Kernel = "auto",
        estimator: HSICEstimator = "biased",
        resample: bool = True,
        replace: bool = False,
        ratio_floor: Real = 1e-3,
        random_state: Seed = None,
    ) -> None:
        self.n_reference = n_reference
        self.n_marginal = n_marginal
        self.step_size = step_size
        self.prediction = prediction
        self.kernel = kernel
        self.estimator = estimator
        self.resample = resample
        self.replace = replace
        self.ratio_floor = ratio_floor
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: draws of any kind, 4 for the unbiased estimator."""
        return QueryTags(deterministic=False, min_draws=2 if self.estimator == "biased" else 4)

    @overload
    def query(
        self, model: Any, X_pool: Any, batch_size: Integer = 1, *,
        return_utilities: Literal[False] = False, **options: Unpack[_QueryOptions],
    ) -> Indices: ...  # fmt: skip

    @overload
    def query(
        self, model: Any, X_pool: Any, batch_size: Integer = 1, *,
        return_utilities: Literal[True], **options: Unpack[_QueryOptions],
    ) -> IndicesAndUtilities: ...  # fmt: skip

    @overload
    def query(
        self, model: Any, X_pool: Any, batch_size: Integer = 1, *,
        return_utilities: bool, **options: Unpack[_QueryOptions],
    ) -> Indices | IndicesAndUtilities: ...  # fmt: skip

    def query(
        self,
        model: Any,
        X_pool: Any,
        batch_size: Integer = 1,
        *,
        candidates: Positions | None = None,
        X_labeled: Any = None,
        y_labeled: Any = None,
        X_reference: Any = None,
        reference: PositionSets | None = None,
        marginal: PositionSets | None = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose the rows of a pool that should be labeled next.

        Parameters
        ----------
        model, X_pool, batch_size, candidates, X_labeled, y_labeled, costs, budget, return_utilities
            As in :meth:`BaseQuery.query`. The picks of one step are made one after the other, each
            within what is then left of the budget.
        X_reference : object, default=None
            Rows that the model accepts and both sets are drawn from; None for the pool.
        reference : int array of shape (n_steps, r), default=None
            The reference set of each step, as positions in the pool or in `X_reference` where
            that is given. Positions may repeat and count as often. None draws them.
        marginal : int array of shape (n_marginal,) or (n_steps, n_marginal), default=None
            The marginal set of the whole batch, or of each step, as such positions. None draws one
            for the whole batch.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            Distinct positions in `X_pool`, in pick order, on the host.
        utilities : float64 array of shape (n_picks, n_pool)
            Only with ``return_utilities=True``.
        """
        return self._query(
            model,
            X_pool,
            batch_size,
            candidates=candidates,
            X_labeled=X_labeled,
            y_labeled=y_labeled,
            X_reference=X_reference,
            costs=costs,
            budget=budget,
            return_utilities=return_utilities,
            reference=reference,
            marginal=marginal,
        )

    @overload
    def select(
        self, samples: PredictionSamples | Array, batch_size: Integer = 1, *,
        return_utilities: Literal[False] = False, **options: Unpack[_SelectOptions],
    ) -> Indices: ...  # fmt: skip

    @overload
    def select(
        self, samples: PredictionSamples | Array, batch_size: Integer = 1, *,
        return_utilities: Literal[True], **options: Unpack[_SelectOptions],
    ) -> IndicesAndUtilities: ...  # fmt: skip

    @overload
    def select(
        self, samples: PredictionSamples | Array, batch_size: Integer = 1, *,
        return_utilities: bool, **options: Unpack[_SelectOptions],
    ) -> Indices | IndicesAndUtilities: ...  # fmt: skip

    def select(
        self,
        samples: PredictionSamples | Array,
        batch_size: Integer = 1,
        *,
        candidates: Positions | None = None,
        reference_samples: PredictionSamples | Array | None = None,
        reference: PositionSets | None = None,
        marginal: PositionSets | None = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose rows by their posterior predictions alone.

        Parameters
        ----------
        samples, batch_size, candidates, costs, budget, return_utilities
            As in :meth:`BaseQuery.select`.
        reference_samples : PredictionSamples or array, default=None
            Predictions of the same draws for the rows that both sets are drawn from;
            None for the pool.
        reference : int array of shape (n_steps, r), default=None
            As in :meth:`query`; positions in the reference samples where those are given.
        marginal : int array of shape (n_marginal,) or (n_steps, n_marginal), default=None
            As in :meth:`query`; likewise.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            As in :meth:`query`.
        utilities : float64 array of shape (n_picks, n_pool)
            As in :meth:`query`.
        """
        return self._select_samples(
            samples,
            batch_size,
            candidates=candidates,
            reference_samples=reference_samples,
            costs=costs,
            budget=budget,
            return_utilities=return_utilities,
            reference=reference,
            marginal=marginal,
        )

    def _select(self, pool: Pool) -> Selection:
        references, marginals = ReferenceSets(self, pool), self._marginals(pool)
        needed = np.union1d(references.needed(), marginals)
        scorer, unit = make_scorer(self, pool, needed)
        batch, gains = Batch(pool), _Gains(scorer, self.ratio_floor)
        n_steps = math.ceil(pool.batch_size / self.step_size)
        block = max(1, _array.working_bytes() // 2 // (8 * len(pool.candidates)))
        for start in range(0, n_steps, block):
            steps = range(start, min(start + block, n_steps))
            panel = scorer.panel([references.of_step(t, []) for t in steps], double=True)
            for i, t in enumerate(steps):
                if not batch.full:
                    gains.compare(marginals[min(t, len(marginals) - 1)])
                    _Step(batch, scorer, panel, i, unit).take(gains, int(self.step_size))
        return batch.selection()

    def _marginals(self, pool: Pool) -> np.ndarray:
        """Return the marginal set of each step, or one for all: (n_steps or 1, n_marginal)."""
        given: Any = pool.options.get("marginal")
        if np.ndim(given) == 2:
            n_steps = math.ceil(pool.requested / self.step_size)
            return sets_of_steps(given, n_steps, pool, "marginal")
        return one_set(pool, self.n_marginal, given, "marginal", STRATEGY)[None, :]


class _Step:
    """One greedy step: what it takes by score, and what by dependence alone."""

    def __init__(self, batch: Batch, scorer: Scorer, panel: Panel, step: int, unit: float) -> None:
        self.batch = batch
        self.scorer = scorer
        self.panel = panel
        self.step = step
        self.unit = unit
        row = _array.to_host(scorer.row(panel, step))
        self.alone = unit * (row + panel.offset[step])
        self.error = unit * float(panel.error[step])

    def take(self, gains: "_Gains", size: int) -> None:
        """Take `size` candidates, or as many as there is room for."""
        batch, c = self.batch, len(self.batch.places)
        if c > 0:
            gain, gain_error = gains.over(np.array(batch.places))
            mean = (self.alone[batch.places].sum() + self.alone) / (c + 1)
            scores = mean * gain / (c + 1)
            rounding = 8 * sys.float_info.epsilon * np.abs(scores).max()
            doubt = self.error * gain.max() + np.abs(mean).max() * gain_error
            free = np.ones(len(scores), dtype=bool)
            free[batch.places] = False
            better = min(size, int((free & (scores > 0)).sum()))
            if better > 0:
                error = rounding + doubt / (c + 1)
                batch.take(scores, better, tolerance=4 * error, exact=ties(scores, error))
        left = size - (len(batch.places) - c)
        if left > 0 and not batch.full:
            self._by_dependence(left)

    def _by_dependence(self, size: int) -> None:
        n_reference = int(self.panel.references.sizes[self.step])

        def exact(places: np.ndarray) -> np.ndarray:
            return self.scorer.exact(self.panel, self.step, places)

        def values(scores: np.ndarray) -> np.ndarray:
            return self.unit * self.scorer.values(scores, n_reference)

        self.batch.take(self.alone, size, tolerance=4 * self.error, exact=exact, values=values)


class _Gains:
    """What candidates tell about marginal rows beyond what the mean of a batch tells."""

    def __init__(self, scorer: Scorer, ratio_floor: Real) -> None:
        self.scorer = scorer
        self.ratio_floor = ratio_floor
        self.marginal: np.ndarray | None = None

    def compare(self, marginal: np.ndarray) -> None:
        """Compare with these rows from now on."""
        if self.marginal is None or not np.array_equal(marginal, self.marginal):
            self.marginal = marginal
            self.matrix = self.scorer.matrix(marginal)

    def over(self, chosen: np.ndarray) -> tuple[np.ndarray, float]:
        """Return mean over i of max(h(i, x) / d(i) - 1, 0), and a bound of its rounding error.

        `chosen` are places among the candidates, whose mean d is.
        """
        h, scorer = self.matrix.values, self.scorer
        xp = _array.namespace(h)
        rows = xp.take(h, _array.like(scorer.atoms(chosen), h), axis=0)
        d = _array.to_host(xp.mean(xp.clip(rows, 0.0, None), axis=0))
        none = NEGLIGIBLE * float(self.matrix.own.max())
        if none <= 0:  # no marginal row varies
            return np.zeros(scorer.n_candidates), 0.0
        told = d > none
        d = np.where(told, d, max(self.ratio_floor * float(d.mean()), none))
        inverse = _array.like(1 / d, h)
        parts, highest = [], 0.0
        for part in _array.row_slices(h.shape[0], 24 * len(d)):
            ratios = h[part, :] * inverse
            highest = max(highest, float(xp.max(ratios)))
            parts.append(_array.to_host(xp.mean(xp.clip(ratios - 1, 0.0, None), axis=1)))
        gain = np.concatenate(parts)
        # Of the entries, of their quotients with a mean, and of sums of these.
        terms = len(d) * float(gain.max()) + (len(chosen) + 8) * (1 + highest)
        error = float((self.matrix.error / d).mean()) * (1 + highest)
        error += terms * sys.float_info.epsilon
        gain = np.where(gain > error, gain, 0.0)
        return gain[scorer.atoms(np.arange(scorer.n_candidates))], error
