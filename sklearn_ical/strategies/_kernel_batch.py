"""Black-box batch selection on the prediction covariance kernel: KernelBatchQuery."""

import numbers
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from sklearn_ical._random import STRATEGY, row_exponentials, stream
from sklearn_ical._typing import Real, Seed, Use
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.objectives._covariance_rows import (
    CovarianceRows,
    count_outputs,
    noise_of_rows,
    set_noise,
)
from sklearn_ical.objectives._mean_variance import minimize_mean_variance
from sklearn_ical.objectives._posterior import (
    CenterDistance,
    FarthestCenter,
    LogDeterminant,
    PosteriorVariance,
)
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.pool._references import reference_rows
from sklearn_ical.selection._batch import Selection
from sklearn_ical.selection._maximize import maximize
from sklearn_ical.strategies._base import BaseQuery, QueryTags

# Number of labeled rows that are added at once.
LABELED_BLOCK = 256
# Weight of a row at distance 0 in D^2 sampling: negligible, but positive.
NEXT_TO_NOTHING = 1e-300


class KernelBatchQuery(BaseQuery):
    """Choose the batch by a kernel method on the covariance of predictions over the draws.

    Black-box batch active learning [1]_: the kernel of two rows is the covariance of their
    predictions over the posterior draws, summed over classes or targets, so any method for gradient
    kernels can be used with any ensemble.

    Read more in the :ref:`User Guide <kernel_batch>`.

    Parameters
    ----------
    method : {"maxdet", "maxdist", "kmeans++", "lcmd", "bait"}, default="maxdet"
        "maxdet": greedily the largest determinant of kernel plus noise, as BatchBALD under a
        Gaussian posterior. "maxdist": the row farthest from its nearest center, as CoreSet; rows
        chosen before are the centers. "kmeans++": a random row, by the squared distance to its
        nearest center, as BADGE. "lcmd": the row farthest from the center in the cluster with the
        largest sum of squared distances [2]_. "bait": greedily the smallest mean posterior variance
        of the reference rows, first for twice as many rows as requested, of which those of the
        least loss are then removed [3]_.
    noise : float, default=2.0
        Variance of the noise in a label for "maxdet" and "bait", relative to the mean of the
        kernel's diagonal over the pool. The `noise_variance` of samples, if they have one, is used
        instead. Other methods ignore it.
    include_labeled : bool, default=True
        Whether the rows of `X_labeled` or `labeled_samples`, where they are given, are centers, or
        known to "maxdet" and "bait".
    random_state : int, RandomState, Generator or None, default=None
        See :term:`random_state`. Only "kmeans++" is random itself.

    Notes
    -----
    Rows of utilities hold, for "maxdet": the information that a label adds, in nats, ``log(1 + r /
    noise) / 2`` for the variance r given what is known. "maxdist": the squared distance to the
    nearest center; without a center the kernel's diagonal. "kmeans++": the same divided by an
    exponential random number of the row and the pick, of which the largest is that of a row sampled
    by squared distance; if all distances are 0, rows are chosen at random. "lcmd": the squared
    distance in the cluster that is split, and 0 in others. "bait": the decrease of the mean
    variance of the reference rows, at the forward step that took the pick. "lcmd" and "bait" choose
    the whole batch or clusters together, so their tag is `utilities="other"` and costs are not
    supported.

    Rows that are not candidates count in clusters and scales. Of equally large clusters the one
    with the earliest center is split. The kernel of m draws and C classes has a rank of (m - 1)(C -
    1) at most; batches beyond that are still distinct.

    Model requirements: at least 2 posterior draws, the same functions for every row. With ``d =
    n_draws * n_classes``: cost O(n_pool * d * batch_size), for "bait" about four times as much, and
    O(n_pool * d^2 + batch_size^3); memory O((n_pool + batch_size) * d), the first part only if it
    fits in a quarter of scikit-learn's `working_memory`; otherwise predictions are read again in
    each step.

    References
    ----------
    .. [1] Kirsch, "Black-box batch active learning for regression", TMLR, 2023.
    .. [2] Holzmueller et al., "A framework and benchmark for deep batch active learning for
       regression", JMLR, 2023.
    .. [3] Ash et al., "Gone fishing: neural active learning with Fisher embeddings", NeurIPS, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import KernelBatchQuery, PredictionSamples
    >>> f = np.array([0.0, 1.0, 10.0, 11.0, 12.0])
    >>> samples = PredictionSamples(np.stack([-f, f], axis=1), kind="value")
    >>> KernelBatchQuery("lcmd").select(samples, batch_size=4)
    array([4, 0, 2, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions({"maxdet", "maxdist", "kmeans++", "lcmd", "bait"})],
        "noise": [Interval(numbers.Real, 0, None, closed="neither")],
        "include_labeled": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        method: Literal["maxdet", "maxdist", "kmeans++", "lcmd", "bait"] = "maxdet",
        noise: Real = 2.0,
        include_labeled: bool = True,
        random_state: Seed = None,
    ) -> None:
        self.method = method
        self.noise = noise
        self.include_labeled = include_labeled
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: at least two draws of any kind; the rest depends on the method."""
        uses: list[Use] = ["reference"] if self.method == "bait" else []
        uses += ["labeled"] if self.include_labeled else []
        return QueryTags(
            deterministic=self.method != "kmeans++",
            utilities="other" if self.method in ("lcmd", "bait") else "gain",
            uses=tuple(uses),
            min_draws=2,
        )

    def _unit_power(self) -> int:
        return 0 if self.method == "maxdet" else 2

    def _select(self, pool: Pool) -> Selection:
        n_outputs = count_outputs(pool.rows, pool.reference, pool.labeled)

        def read(rows: RowSet) -> CovarianceRows:
            return CovarianceRows(rows, n_outputs, trace=True, caller=pool.caller)

        rows = read(pool.rows)
        labeled = None if pool.labeled is None else read(pool.labeled)
        if self.method in ("maxdet", "bait"):
            posterior = _posterior(pool, rows, labeled, self.noise)
            if self.method == "maxdet":
                return maximize(pool, LogDeterminant(posterior))
            return minimize_mean_variance(pool, posterior, self._reference(pool, rows, read))
        everything = np.arange(pool.n_points)
        distance = CenterDistance(rows, everything if self.method == "lcmd" else pool.candidates)
        if labeled is not None:
            for block in _position_blocks(labeled.n_points):
                distance.add(labeled.take(block), labeled.diagonal[block, 0])
        if self.method == "maxdist":
            return maximize(pool, FarthestCenter(distance))
        objective = _SampledCenters if self.method == "kmeans++" else _LargestCluster
        return maximize(pool, objective(pool, distance))

    def _reference(
        self, pool: Pool, rows: CovarianceRows, read: Callable[[RowSet], CovarianceRows]
    ) -> CovarianceRows:
        """Return the rows whose mean variance is to decrease."""
        if pool.reference_positions is not None:
            positions = reference_rows(pool, None)
            return read(pool.compared.with_predictions(pool.compared.take(positions)))
        return rows if pool.reference is None else read(pool.reference)


def _position_blocks(n_points: int) -> list[np.ndarray]:
    """Return positions in blocks that are added at once."""
    return [
        np.arange(start, min(start + LABELED_BLOCK, n_points))
        for start in range(0, n_points, LABELED_BLOCK)
    ]


def _posterior(
    pool: Pool, rows: CovarianceRows, labeled: CovarianceRows | None, noise: Real
) -> PosteriorVariance:
    """Return variances of the candidates given the labels of the labeled rows."""
    blocks = set_noise(rows, noise)
    noises = noise_of_rows(rows, blocks, "samples", pool.caller)
    posterior = PosteriorVariance(rows, pool.candidates, noises[pool.candidates])
    if labeled is not None:
        known = noise_of_rows(labeled, blocks, "labeled_samples", pool.caller)
        for block in _position_blocks(labeled.n_points):
            posterior.observe(labeled.take(block), known[block])
    return posterior


class _SampledCenters:
    """Rows sampled by their squared distance to the nearest center.

    The largest of weights over exponential random numbers is a row sampled by weight.
    """

    submodular = False

    def __init__(self, pool: Pool, distance: CenterDistance) -> None:
        self.pool = pool
        self.distance = distance
        self.seed = stream(pool.root, STRATEGY)
        self.n_added = 0

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, float]:
        """Return squared distances over random numbers of each row and pick."""
        self.distance.refresh(slots)
        keys = self.pool.candidates[slots] + self.pool.n_points * self.n_added
        weights = self.distance.squared(slots)
        weights = np.where(weights > 0, weights, NEXT_TO_NOTHING)
        return weights / row_exponentials(self.seed, keys), 0.0

    def add(self, slot: int) -> None:
        """Make a candidate a center."""
        self.distance.add_slot(slot)
        self.n_added += 1


class _LargestCluster:
    """Squared distances in the cluster with the largest sum of them, which is split next.

    The distances are those of all rows of the pool.
    """

    submodular = False

    def __init__(self, pool: Pool, distance: CenterDistance) -> None:
        self.candidates = pool.candidates
        self.distance = distance
        self.everything = np.arange(pool.n_points)
        self.free = np.ones(len(pool.candidates), dtype=bool)

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, float]:
        """Return squared distances within the cluster that is split, 0 elsewhere."""
        distance = self.distance
        distance.refresh(self.everything)
        squared = distance.squared(self.everything)
        n_clusters = max(1, distance.columns.n_columns)
        sums = np.bincount(distance.nearest, squared, n_clusters)
        cluster, far = distance.nearest[self.candidates], squared[self.candidates]
        far[~self.free] = 0.0
        splits = np.bincount(cluster, far, n_clusters) > 0
        if splits.any():
            least = sums[splits].max() - distance.error * len(self.everything)
            far = np.where(cluster == np.flatnonzero(splits & (sums >= least))[0], far, 0.0)
        return far[slots], distance.error

    def add(self, slot: int) -> None:
        """Make a candidate a center."""
        self.free[slot] = False
        self.distance.add_slot(int(self.candidates[slot]))
