"""Black-box batch selection on the prediction covariance kernel: KernelBatchQuery."""

import numbers
from typing import Any, ClassVar, Literal, Unpack, overload

import numpy as np

from sklearn_ical._array import Array
from sklearn_ical._random import STRATEGY, row_exponentials, stream
from sklearn_ical._typing import (
    Indices,
    IndicesAndUtilities,
    Integer,
    Numbers,
    Positions,
    Real,
    Seed,
)
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._base import BaseQuery, QueryTags, SelectOptions
from sklearn_ical.strategies._covariance import (
    CovarianceRows,
    count_outputs,
    noise_of_rows,
    set_noise,
)
from sklearn_ical.strategies._kernel_bait import minimize_mean_variance
from sklearn_ical.strategies._pool import Batch, Pool, Predictions, Selection, ties
from sklearn_ical.strategies._posterior import (
    CentreDistance,
    PosteriorVariance,
    maximize_log_det,
)

# Labeled rows that are taken in at once.
LABELED_BLOCK = 256
# What a row at distance 0 counts in D^2 sampling: nothing beside any other, but not nothing.
NEXT_TO_NOTHING = 1e-300


class _SelectOptions(SelectOptions, total=False):
    """Keyword arguments of `select`, for type checkers."""

    labeled_samples: PredictionSamples | Array | None


class KernelBatchQuery(BaseQuery):
    """Choose a batch by a rule for kernels, on the covariance of predictions over the draws.

    Black-box batch active learning [1]_: the kernel of two rows is the covariance of their
    predictions over the posterior draws, summed over classes or targets, so any rule made for
    gradient kernels runs on any ensemble.

    Parameters
    ----------
    method : {"maxdet", "maxdist", "kmeans++", "lcmd", "bait"}, default="maxdet"
        "maxdet": greedily the largest determinant of kernel plus noise, as BatchBALD under a
        Gaussian posterior. "maxdist": the row farthest from its nearest centre, as CoreSet; rows
        chosen before are the centres. "kmeans++": a random row, by the squared distance to its
        nearest centre, as BADGE. "lcmd": the row farthest from the centre in the cluster with the
        largest sum of squared distances [2]_. "bait": greedily the least mean posterior variance
        of the reference rows, twice as many rows as asked for, then back to those that are missed
        most [3]_.
    noise : float, default=2.0
        Variance of the noise in a label for "maxdet" and "bait", relative to the mean of the
        kernel's diagonal over the pool. Samples that have a `noise_variance` bring their own noise
        instead. Other methods know no noise.
    include_labeled : bool, default=True
        Whether the rows of `X_labeled` or `labeled_samples`, where they are given, are centres, or
        known to "maxdet" and "bait".
    random_state : int, RandomState, Generator or None, default=None
        See :term:`random_state`. Only "kmeans++" is random itself.

    Notes
    -----
    What a row of utilities holds. "maxdet": the information that a label adds, in nats,
    ``log(1 + r / noise) / 2`` for the variance r given what is known. "maxdist": the squared
    distance to the nearest centre; without a centre yet the kernel's diagonal. "kmeans++": the same
    over an exponential random number of the row and the pick, whose largest is a row sampled by
    squared distance; where all distances are 0, rows are filled in at random. "lcmd": the squared
    distance in the cluster that is split, and 0 in others. "bait": the decrease of the mean
    variance of the reference rows, at the forward step that took the pick. "lcmd" and "bait" choose
    the whole batch or clusters together, so their tag is `utilities="other"` and they refuse costs.

    Rows that are no candidates count in clusters and scales. Of equally large clusters the one
    with the oldest centre is split. The kernel of m draws and C classes has a rank of
    (m - 1)(C - 1) at most; batches beyond that are still distinct.

    Model requirements: at least 2 posterior draws, the same functions for every row. With ``d =
    n_draws * n_classes``: cost O(n_pool * d * batch_size), for "bait" about four times as much, and
    O(n_pool * d^2 + batch_size^3); memory O((n_pool + batch_size) * d), the first part only if it
    fits in a quarter of scikit-learn's `working_memory`: else predictions are read again in each
    step.

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

    @property
    def _compares(self) -> bool:  # type: ignore[override]
        return self.method == "bait"

    @property
    def _sees_labeled(self) -> bool:  # type: ignore[override]
        return self.include_labeled

    def query_tags(self) -> QueryTags:
        """Return the tags: at least two draws of any kind; the rest depends on the method."""
        return QueryTags(
            deterministic=self.method != "kmeans++",
            utilities="other" if self.method in ("lcmd", "bait") else "gain",
            min_draws=2,
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
        labeled_samples: PredictionSamples | Array | None = None,
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
            Predictions of the same draws for the rows whose variance "bait" decreases; None for
            the pool.
        labeled_samples : PredictionSamples or array, default=None
            Predictions of the same draws for the labeled rows; None for no labeled rows.

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
            labeled_samples=labeled_samples,
            costs=costs,
            budget=budget,
            return_utilities=return_utilities,
        )

    def _select(self, pool: Pool) -> Selection:
        n_outputs = count_outputs(pool.predictions, pool.reference, pool.labeled)

        def read(predictions: Predictions) -> CovarianceRows:
            return CovarianceRows(predictions, n_outputs, trace=True, owner=pool.owner)

        rows = read(pool.predictions)
        labeled = None if pool.labeled is None else read(pool.labeled)
        if self.method in ("maxdet", "bait"):
            posterior = _posterior(pool, rows, labeled, self.noise)
            if self.method == "maxdet":
                return maximize_log_det(pool, posterior)
            reference = rows if pool.reference is None else read(pool.reference)
            return minimize_mean_variance(pool, posterior, reference)
        everything = np.arange(pool.n_points)
        distance = CentreDistance(rows, everything if self.method == "lcmd" else pool.candidates)
        if labeled is not None:
            for block in _blocks(labeled.n_points):
                distance.add(labeled.take(block), labeled.diagonal[block, 0])
        select = {"maxdist": _maxdist, "kmeans++": _kmeans_plus_plus, "lcmd": _lcmd}[self.method]
        return select(pool, distance)


def _blocks(n_points: int) -> list[np.ndarray]:
    """Return positions in blocks that are taken in at once."""
    return [
        np.arange(start, min(start + LABELED_BLOCK, n_points))
        for start in range(0, n_points, LABELED_BLOCK)
    ]


def _posterior(
    pool: Pool, rows: CovarianceRows, labeled: CovarianceRows | None, noise: Real
) -> PosteriorVariance:
    """Return variances of the candidates given the labels of the labeled rows."""
    blocks = set_noise(rows, noise)
    own = noise_of_rows(rows, blocks, "samples", pool.owner)
    posterior = PosteriorVariance(rows, pool.candidates, own[pool.candidates])
    if labeled is not None:
        known = noise_of_rows(labeled, blocks, "labeled_samples", pool.owner)
        for block in _blocks(labeled.n_points):
            posterior.observe(labeled.take(block), known[block])
    return posterior


def _maxdist(pool: Pool, distance: CentreDistance) -> Selection:
    """Take the row farthest from its nearest centre, by lazy greedy."""
    batch = Batch(pool)
    bounds = np.full(len(pool.candidates), np.inf)

    def renewed(places: np.ndarray) -> np.ndarray:
        distance.refresh(places)
        return distance.squared(places)

    while not batch.full:
        if distance.columns.n_columns == 1:
            bounds[:] = np.inf  # the diagonal, in the step before, bounds no distance
        error = distance.error
        batch.renew(bounds, renewed, tolerance=4 * error)
        batch.take(bounds, tolerance=4 * error, exact=ties(bounds, error))
        if not batch.full:
            _take_as_centre(distance, np.array(batch.places[-1:]))
    return batch.selection()


def _kmeans_plus_plus(pool: Pool, distance: CentreDistance) -> Selection:
    """Sample rows by their squared distance to the nearest centre.

    The largest of weights over exponential random numbers is a row sampled by weight.
    """
    batch = Batch(pool)
    seed = stream(pool.root, STRATEGY)
    everything = np.arange(len(pool.candidates))
    while not batch.full:
        distance.refresh(everything)
        keys = pool.candidates + pool.n_points * len(batch.chosen)
        exponential = row_exponentials(seed, keys)
        weights = distance.squared(everything)
        batch.take(np.where(weights > 0, weights, NEXT_TO_NOTHING) / exponential)
        if not batch.full:
            _take_as_centre(distance, np.array(batch.places[-1:]))
    return batch.selection()


def _lcmd(pool: Pool, distance: CentreDistance) -> Selection:
    """Take the farthest row of the cluster with the largest sum of squared distances.

    The distances are those of all rows of the pool.
    """
    batch = Batch(pool)
    everything = np.arange(pool.n_points)
    free = np.ones(len(pool.candidates), dtype=bool)
    while not batch.full:
        distance.refresh(everything)
        squared = distance.squared(everything)
        n_clusters = max(1, distance.columns.n_columns)
        sums = np.bincount(distance.nearest, squared, n_clusters)
        cluster, far = distance.nearest[pool.candidates], squared[pool.candidates]
        far[~free] = 0.0
        splits = np.bincount(cluster, far, n_clusters) > 0
        error = distance.error
        if splits.any():
            largest = sums[splits].max()
            split = np.flatnonzero(splits & (sums >= largest - error * pool.n_points))[0]
            far = np.where(cluster == split, far, 0.0)
        batch.take(far, tolerance=4 * error, exact=ties(far, error))
        place = np.array(batch.places[-1:])
        free[place] = False
        if not batch.full:
            _take_as_centre(distance, pool.candidates[place])
    return batch.selection()


def _take_as_centre(distance: CentreDistance, place: np.ndarray) -> None:
    """Add one of the rows that distances are kept for as a centre."""
    features = distance.rows.take(distance.positions[place])
    distance.add(features, distance.diagonal[place, 0])
