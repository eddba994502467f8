"""ICAL-pointwise: candidates that explain single reference rows better than the batch so far."""

import math
import numbers
import sys
from typing import Any, ClassVar

import numpy as np

from sklearn_ical import _array
from sklearn_ical._random import STRATEGY
from sklearn_ical._typing import (
    HSICEstimator,
    Integer,
    Kernel,
    PositionSets,
    Prediction,
    Real,
    Seed,
)
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.objectives.hsic._dependence import Dependence, StepScores, decided
from sklearn_ical.objectives.hsic._make_dependence import (
    KERNELS,
    check_kernel,
    make_dependence,
    understood_kinds,
)
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.pool._references import one_set, reference_sets, sets_of_steps
from sklearn_ical.samplers._base import Draws
from sklearn_ical.selection._batch import Batch, Selection
from sklearn_ical.strategies._base import BaseQuery, QueryTags

# Dependence below this share of the largest self-dependence counts as 0.
NO_DEPENDENCE = 1e-12
# Bytes per entry of chunks whose arrays stay in the cache of a processor.
ENTRY_BYTES = 128


class ICALPointwiseQuery(BaseQuery):
    """Choose rows that reference rows depend on more than on the batch so far.

    The pointwise variant of information condensing active learning [1]_. The first pick is that of
    :class:`ICALQuery`. From then on, a candidate x counts for each row i of a second reference
    set, the marginal set R', that depends more on x than on the mean of the batch. With the c rows
    chosen so far, h(i, x) = HSIC of rows i and x, d(i) = mean over chosen b of h(i, b), and a(x)
    the mean dependence on the reference set of the step, each step takes the largest

        (c * mean over chosen b of a(b) + a(x)) / (c + 1)
        * mean over i of max(h(i, x) / d(i) - 1, 0) / (c + 1).

    Read more in the :ref:`User Guide <ical_pointwise>`.

    Parameters
    ----------
    n_reference : int, default=200
        Size of the reference set of each step, for a.
    n_marginal : int, default=200
        Size of the marginal set, drawn once for the whole batch without replacement; should be many
        more than there are classes.
    step_size : int, default=1
        Number of rows of each step (L in the paper); the last step may take fewer.
    prediction, kernel, estimator, resample
        As for :class:`ICALQuery`. Unbiased estimates below 0 count as 0 in h.
    marginal : int array of shape (n_marginal,) or (n_steps, n_marginal), default=None
        The marginal set of the whole batch, or of each step, as positions in the pool or in the
        reference rows that are given with the call. None draws one for the whole batch.
    ratio_floor : float, default=0.001
        If row i is independent of the batch so far, d(i) is replaced by `ratio_floor` times the
        mean of d over R', so that the ratio stays finite.
    random_state : int, RandomState, Generator or None, default=None
        See :term:`random_state`.

    Notes
    -----
    The scores are the paper's in closed form: the mean kernel of the batch and x is linear in both,
    so no two nearly equal numbers are subtracted, however large the batch. Rows of R' that depend
    neither on x nor on the batch count as unchanged; dependence up to 1e-12 of the largest
    dependence of a row of R' on itself counts as 0.

    Where fewer free candidates than a step takes have a score above 0, a(x) decides about the
    rest of the step. Utilities are the scores, or a(x) in the first step and where that decides;
    dimensionless.

    Cost O(n_pool n_draws^2 (n_marginal + n_steps)) for the matrix products, and for each step
    O(n_pool n_marginal); n_pool * n_marginal float64 numbers are kept in memory. Model
    requirements: at least 2 posterior draws (4 for the unbiased estimator), the same functions for
    every row.

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
        "marginal": ["array-like", None],
        "ratio_floor": [Interval(numbers.Real, 0, None, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_reference: Integer = 200,
        n_marginal: Integer = 200,
        step_size: Integer = 1,
        prediction: Prediction = "sampled",
        kernel: Kernel = "auto",
        estimator: HSICEstimator = "biased",
        resample: bool = True,
        marginal: PositionSets | None = None,
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
        self.marginal = marginal
        self.ratio_floor = ratio_floor
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
        references, marginals = reference_sets(self, pool), self._marginals(pool)
        dependence = make_dependence(self, pool, np.union1d(references, marginals))
        batch, gains = Batch(pool), _Gains(dependence, self.ratio_floor)
        block = max(1, _array.working_bytes() // 2 // (8 * len(pool.candidates)))
        for start in range(0, len(references), block):
            sets = list(references[start : start + block])
            step_scores = dependence.scores(sets, double=True)
            for i in range(len(sets)):
                if not batch.full:
                    gains.compare(marginals[min(start + i, len(marginals) - 1)])
                    _Step(batch, dependence, step_scores, i).take(gains, int(self.step_size))
        return batch.selection()

    def _marginals(self, pool: Pool) -> np.ndarray:
        """Return the marginal set of each step, or one for all: (n_steps or 1, n_marginal)."""
        if np.ndim(self.marginal) == 2:  # type: ignore[arg-type]
            n_steps = math.ceil(pool.requested / self.step_size)
            return sets_of_steps(self.marginal, n_steps, pool, "marginal")
        return one_set(pool, self.n_marginal, self.marginal, "marginal", STRATEGY)[None, :]


class _Step:
    """One greedy step: picks by score, and by dependence alone."""

    def __init__(
        self, batch: Batch, dependence: Dependence, step_scores: StepScores, step: int
    ) -> None:
        self.batch = batch
        self.dependence = dependence
        self.step_scores = step_scores
        self.step = step
        row = _array.to_host(dependence.row(step_scores, step))
        self.alone = row + step_scores.offset[step]
        self.error = float(step_scores.error[step])

    def take(self, gains: "_Gains", size: int) -> None:
        """Take `size` candidates, or as many as are left to pick."""
        batch, n_chosen = self.batch, len(self.batch.slots)
        if n_chosen > 0:
            scores, errors = self._scores(*gains.over(np.array(batch.slots)))
            free = np.ones(len(scores), dtype=bool)
            free[batch.slots] = False
            better = min(size, int((free & (scores > 0)).sum()))
            if better > 0:
                batch.take(scores, better, errors=errors)
        left = size - (len(batch.slots) - n_chosen)
        if left > 0 and not batch.full:
            self._by_dependence(left)

    def _scores(self, gain: np.ndarray, gain_errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores of all candidates, 0 up to rounding as 0, and bounds of the errors."""
        slots = self.batch.slots
        factor = 1 / (len(slots) + 1)
        mean = (self.alone[slots].sum() + self.alone) * factor
        scores = mean * gain * factor
        errors = (self.error * gain + (np.abs(mean) + self.error) * gain_errors) * factor
        errors += (len(slots) + 8) * sys.float_info.epsilon * np.abs(scores)
        return np.where(np.abs(scores) > errors, scores, 0.0), errors

    def _by_dependence(self, size: int) -> None:
        n_reference = int(self.step_scores.references.sizes[self.step])

        def exact(slots: np.ndarray) -> np.ndarray:
            return decided(*self.dependence.exact(self.step_scores, self.step, slots))

        def utilities_of(scores: np.ndarray) -> np.ndarray:
            return self.dependence.values(scores, n_reference)

        values = np.where(np.abs(self.alone) > self.error, self.alone, 0.0)
        self.batch.take(values, size, errors=self.error, exact=exact, utilities_of=utilities_of)


class _Gains:
    """Dependence of marginal rows on candidates relative to that on the mean of a batch."""

    def __init__(self, dependence: Dependence, ratio_floor: Real) -> None:
        self.dependence = dependence
        self.ratio_floor = float(ratio_floor)
        self.marginal: np.ndarray | None = None

    def compare(self, marginal: np.ndarray) -> None:
        """Compare with these rows from now on."""
        if self.marginal is None or not np.array_equal(marginal, self.marginal):
            self.marginal = marginal
            self.matrix = self.dependence.pairwise(marginal)

    def over(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean over i of max(h(i, x) / d(i) - 1, 0), and bounds of their rounding errors.

        `chosen` are slots among the candidates, whose mean d is. A term is exactly 0 where h(i, x)
        is surely below d(i).
        """
        dependence, h = self.dependence, self.matrix.values
        of_candidate = dependence.atoms(np.arange(dependence.n_candidates))
        if float(self.matrix.own.max()) <= 0:  # no marginal row varies
            return np.zeros(len(of_candidate)), np.zeros(len(of_candidate))
        d, d_errors = self._mean(dependence.atoms(chosen))
        xp, epsilon = _array.namespace(h), sys.float_info.epsilon
        entry, relative = self.matrix.error / d, d_errors / d + 4 * epsilon
        lowest = _array.like(1 - float(self.matrix.extent.max()) * entry - relative, h)
        inverse, bounds = _array.like(1 / d, h), _array.like(np.stack([entry, relative], axis=1), h)
        gains, errors = [], []
        for part in _array.row_slices(h.shape[0], ENTRY_BYTES * len(d)):
            ratios = h[part, :] * inverse
            terms = xp.clip(ratios - 1, 0.0, None)
            above = xp.astype(ratios > lowest, xp.float64)
            entries, shares = _array.to_host(above @ bounds).T
            shares = shares + _array.to_host(terms @ bounds[:, 1])
            gains.append(_array.to_host(xp.mean(terms, axis=1)))
            errors.append((self.matrix.extent[part] * entries + shares) / len(d))
        gain, error = np.concatenate(gains), np.concatenate(errors)
        error += (len(d) + 4) * epsilon * gain
        return np.where(gain > error, gain, 0.0)[of_candidate], error[of_candidate]

    def _mean(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return d(i) over the predictions chosen, and bounds of its errors."""
        matrix, h = self.matrix, self.matrix.values
        rows = _array.namespace(h).take(h, _array.like(chosen, h), axis=0)
        d = np.maximum(_array.to_host(rows), 0.0).mean(axis=0)
        errors = matrix.extent[chosen].mean() * matrix.error
        errors += (len(chosen) + 4) * sys.float_info.epsilon * d
        none = NO_DEPENDENCE * float(matrix.own.max())
        floor, floor_error = self.ratio_floor * d.mean(), self.ratio_floor * errors.mean()
        if floor < none:
            floor, floor_error = none, none * sys.float_info.epsilon
        return np.where(d > none, d, floor), np.where(d > none, errors, floor_error)
