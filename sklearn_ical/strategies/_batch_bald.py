"""BatchBALD: the batch with the largest mutual information between its labels and the model."""

import numbers
from typing import Any, ClassVar

import numpy as np

from sklearn_ical._array import Array
from sklearn_ical._random import CONFIGURATIONS, stream_generator
from sklearn_ical._typing import Integer, Seed
from sklearn_ical._validation import Interval
from sklearn_ical.dependence import Configurations
from sklearn_ical.objectives._joint_information import JointInformation
from sklearn_ical.pool._pool import Pool
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection._batch import Batch, Selection
from sklearn_ical.strategies._base import BaseQuery, QueryTags

# Distance of a bound from sampled configurations to the estimate, in standard errors.
N_ERRORS = 4
# Parts of the sampled configurations on which candidates are compared before all are used, the
# smallest number of configurations in a part, and the smallest number of candidates for it.
SHARES = (16, 4)
FEWEST_ROWS = 500
FEWEST_CONTENDERS = 128
# Double precision is used where the tolerance of single exceeds this share of the best gain.
COARSE = 1 / 8


def batch_bald(
    proba: Array,
    batch_size: Integer = 1,
    *,
    weights: Array | None = None,
    n_configurations: Integer = 10_000,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Choose the points with the largest mutual information between labels and draw, greedily.

    Read more in the :ref:`User Guide <batch_bald>`.

    Parameters
    ----------
    proba : array of shape (n_points, n_draws, n_classes)
        Class probabilities of each draw, rows sum to 1. Not modified.
    batch_size : int, default=1
        Number of points to choose, at least 1.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.
    n_configurations, random_state
        As in :class:`BatchBALDQuery`.

    Returns
    -------
    indices : intp array of shape (n_picks,)
        Distinct, in pick order, on the host.
    gains : float64 array of shape (n_picks,)
        Information of each label about the draw given the labels before, in nats. Their sum is the
        joint information of the batch. Once the information is exhausted, see
        :class:`BatchBALDQuery`, that of each point alone.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, before any work.

    See Also
    --------
    BatchBALDQuery : The same as a query strategy.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.strategies import batch_bald
    >>> split, same, other = [0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]
    >>> indices, gains = batch_bald(np.eye(2)[[split, same, other]], batch_size=2)
    >>> indices, gains.round(4)
    (array([0, 2]), array([0.6931, 0.3466]))
    """
    query = BatchBALDQuery(n_configurations=n_configurations, random_state=random_state)
    samples = PredictionSamples(proba, weights=weights)
    chosen = query._choose(query._pool("select", {"pool": {"samples": samples}}, batch_size))
    return chosen.positions, chosen.utilities


class BatchBALDQuery(BaseQuery):
    """Choose the batch with the largest mutual information between its labels and the model.

    BALD for batches [1]_: each greedy step takes the candidate whose label has the largest
    information about the posterior draw given the labels of those chosen before,

        I(y_x; draw | y_1, ..., y_t),

    so that rows with redundant labels have a small gain.

    Read more in the :ref:`User Guide <batch_bald>`.

    Parameters
    ----------
    n_configurations : int, default=10_000
        Configurations of the chosen rows' labels are enumerated as long as no more than this number
        have a positive probability. Beyond that they are sampled, equally many for each draw, at
        least one, and at most this number in total if there are no more draws than that.
    lazy : bool, default=True
        Whether a step skips candidates that cannot be best by their earlier gains: with certainty
        while configurations are enumerated, by four standard errors when they are sampled. False
        evaluates all candidates on all configurations.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the configurations that are sampled, and the draws if the posterior has infinitely
        many; see :term:`random_state`.

    Notes
    -----
    Utilities are gains in nats: the mean over the configurations of the information of the
    candidate's label under the posterior that follows from each, >= 0 also where they are sampled.
    All candidates share the configurations, which grow by the label of each row that is chosen.
    Posteriors are kept as logs, so batches may have any size.

    The information about the draws is at most log(n_draws) nats. Once the best gain is 0 up to
    rounding, or less than one standard error of the label's sampled mean entropy, the rest of the
    batch is chosen by BALD, the gain of the first step; rows of utilities are then those of BALD.

    Label samples count as certain votes: no more configurations than draws are possible, so they
    are enumerated for any batch. Draws of weight 0 are ignored. For regression see `LogDetQuery`.

    Model requirements: at least 2 posterior draws, the same functions for every row. Cost O(n_pool
    * n_draws * n_classes * n_configurations) for each step with ``lazy=False``; lazy steps evaluate
    the pool on a sixteenth of sampled configurations and few candidates on all. Memory is O(n_pool
    + n_draws * n_configurations), beyond the predictions, which are kept if they fit in a quarter
    of `working_memory`. Single precision makes a shortlist; float64 decides.

    References
    ----------
    .. [1] Kirsch, van Amersfoort and Gal, "BatchBALD: Efficient and diverse batch acquisition for
       deep Bayesian active learning", NeurIPS 2019, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import BatchBALDQuery
    >>> split, same, other = [0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]
    >>> BatchBALDQuery().select(np.eye(2)[[split, same, other]], batch_size=2)
    array([0, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_configurations": [Interval(numbers.Integral, 1, None, closed="left")],
        "lazy": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self, n_configurations: Integer = 10_000, lazy: bool = True, random_state: Seed = None
    ) -> None:
        self.n_configurations = n_configurations
        self.lazy = lazy
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: at least two draws of a classifier; configurations are sampled."""
        return QueryTags(deterministic=False, kinds=("proba", "label"), min_draws=2)

    def _select(self, pool: Pool) -> Selection:
        predictions = pool.rows.hold()
        generator = stream_generator(pool.root, CONFIGURATIONS)
        configurations = Configurations(
            predictions.n_draws, predictions.weights, self.n_configurations, generator
        )
        gains = JointInformation(
            predictions, pool.candidates, configurations, double=pool.want_utilities
        )
        return _InformationSteps(pool, lazy=self.lazy).selection(gains)


class _InformationSteps:
    """The greedy steps of one call."""

    def __init__(self, pool: Pool, *, lazy: bool) -> None:
        self.pool = pool
        self.batch = Batch(pool)
        self.lazy = lazy
        self.free = np.ones(len(pool.candidates), dtype=bool)
        self.upper = np.full(len(pool.candidates), np.inf)  # bounds of this and later gains

    def selection(self, first: JointInformation) -> Selection:
        """Choose the batch, from the gains of the first step on."""
        gains = first
        bounds, best = alone, _ = self._step(gains)
        while not self._exhausted(gains, bounds, best):
            self._take(gains, bounds, 1)
            if self.batch.full:
                return self.batch.selection()
            slot = self.batch.slots[-1]
            self.free[slot] = False
            gains = gains.given(slot)
            bounds, best = self._step(gains)
        self._take(first, alone, self.pool.batch_size)
        return self.batch.selection()

    def _step(self, gains: JointInformation) -> tuple[np.ndarray, float]:
        """Return gains, or bounds below the best gain, and the best gain."""
        bounds = self.upper.copy() if self.lazy else np.full_like(self.upper, np.inf)
        races = self.lazy and self.pool.costs is None and not self.pool.want_utilities
        if races and gains.configurations.sampled:
            self._race(gains, bounds)
        best = self.batch.refresh_bounds(
            bounds, lambda slots: self._evaluate(gains, slots), gains.tolerance() / 4
        )
        if gains.double or gains.tolerance() <= COARSE * best:
            return bounds, best
        gains.double = True
        return self._step(gains)

    def _evaluate(self, gains: JointInformation, slots: np.ndarray) -> np.ndarray:
        """Return gains of some slots on all configurations, and bound the later ones."""
        found, error = gains.screen(slots)
        n_errors = N_ERRORS if gains.configurations.sampled else 0
        self.upper[slots] = found + (n_errors * error + gains.tolerance())
        return np.maximum(found, 0.0)

    def _race(self, gains: JointInformation, bounds: np.ndarray) -> None:
        """Lower bounds by part of the configurations, paired with a leading candidate's gain."""
        configurations = gains.configurations
        leader = int(np.argmax(np.where(self.free, bounds, -np.inf)))
        for share in SHARES:
            n_rows = configurations.per_draw // share * len(configurations.active)
            local = configurations.local_information(gains.proba(leader))
            lead = float(configurations.mass @ local)
            slots = np.flatnonzero(self.free & (bounds >= lead))
            if n_rows < FEWEST_ROWS or len(slots) < FEWEST_CONTENDERS:
                continue
            less, error = gains.screen(slots, n_rows, local[:n_rows])
            upper = lead + less + (N_ERRORS * error + gains.tolerance())
            bounds[slots] = self.upper[slots] = np.minimum(bounds[slots], upper)
            leader = int(slots[np.argmax(less)])

    def _exhausted(self, gains: JointInformation, bounds: np.ndarray, best: float) -> bool:
        """Return whether no gain differs from 0 significantly."""
        limit = gains.tolerance()
        if best > limit and gains.configurations.sampled:
            near = np.flatnonzero(self.free & (np.abs(bounds - best) <= limit))
            scores = gains.exact(near)
            best = scores.max()
            proba = gains.proba(int(near[np.argmax(scores)]))
            limit = max(limit, gains.configurations.standard_error(proba))
        if best > limit:
            return False
        if self.pool.costs is None:
            return True
        expensive = np.flatnonzero(self.free & (bounds > limit))  # perhaps never evaluated
        if len(expensive):
            bounds[expensive] = self._evaluate(gains, expensive)
        return not (bounds[expensive] > limit).any()

    def _take(self, gains: JointInformation, bounds: np.ndarray, size: int) -> None:
        self.batch.take(bounds, size, errors=gains.tolerance() / 4, exact=gains.exact)
