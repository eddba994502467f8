"""The most typical row of each cluster: TypiClustQuery."""

import numbers
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from sklearn_ical._random import STRATEGY, stream_seed
from sklearn_ical._typing import Features, Integer, Seed
from sklearn_ical._validation import Interval
from sklearn_ical.objectives._distances import cluster_rows, neighbor_distances
from sklearn_ical.pool import Pool
from sklearn_ical.pool._range import features_in_range
from sklearn_ical.selection import Selection
from sklearn_ical.selection._batch import merge_ties
from sklearn_ical.selection._range import in_unit
from sklearn_ical.strategies._base import FEATURES, BaseQuery, QueryTags


class TypiClustQuery(BaseQuery):
    """Choose the most typical row of each cluster with few labels.

    k-means splits the labeled rows and the pool into clusters by their features. The clusters with
    the fewest labeled rows come first, and from each the candidate with the smallest mean distance
    to its nearest neighbors is taken [1]_. For the start of a loop, with no or few labels.

    Read more in the :ref:`User Guide <typiclust>`.

    Parameters
    ----------
    features : {"auto"}, object with `transform`, callable or None, default="auto"
        Makes features of the rows. "auto": what a fitted Pipeline passes to its last step, or a net
        to its last linear layer; the rows themselves for other models and without a model. A
        fitted transformer, which clones of the strategy keep fitted, or a function. None: the rows
        themselves. Features given with the call are used instead.
    n_neighbors : int, default=20
        Number of nearest rows of the cluster that count; all others in smaller clusters.
    min_cluster_size : int, default=5
        Clusters with fewer rows come last.
    max_clusters : int, default=500
        The number of clusters is the number of labeled rows plus `batch_size`, and at most this.
    random_state : int, RandomState, Generator or None, default=None
        Seeds k-means; see :term:`random_state`.

    Notes
    -----
    Clusters are in the order of the number of their labeled rows, fewest first, then of their size,
    largest first; those with fewer than `min_cluster_size` rows come last. One row is taken from
    each. If there are fewer clusters with candidates than rows in the batch, because of
    `max_clusters` or `candidates`, further rounds in the same order follow.

    The utility of a row is its typicality 1 / (mean Euclidean distance to its `n_neighbors` nearest
    rows in the cluster, labeled ones too). It is 0 for a cluster of one row, and the largest
    number, about 4e307, for a row among copies of itself. A row of utilities holds those of the
    free candidates of one cluster and NaN elsewhere. Utilities of different clusters are not
    compared, so costs are not supported.

    Distances depend on the scales of the features, so put a scaler into the Pipeline or pass one as
    `features`. Features are finite numbers: arrays, frames or lists, or sparse matrices, which stay
    sparse.

    Model requirements: none; a model is used for features="auto" only. Cost: k-means, on
    mini-batches above 50 clusters, and O(n^2 * n_features) for each cluster of n rows that is
    picked from; memory O(n_rows * n_features).

    References
    ----------
    .. [1] Hacohen, Dekel and Weinshall, "Active learning on a budget: opposite strategies suit high
       and low budgets", ICML, 2022, section 4.

    Examples
    --------
    >>> from sklearn_ical import TypiClustQuery
    >>> X_pool = [[0.0], [1.0], [2.0], [10.0], [11.0], [13.0], [50.0]]
    >>> TypiClustQuery(min_cluster_size=3, random_state=0).query(None, X_pool, batch_size=3)
    array([1, 4, 6])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "features": FEATURES,
        "n_neighbors": [Interval(numbers.Integral, 1, None, closed="left")],
        "min_cluster_size": [Interval(numbers.Integral, 1, None, closed="left")],
        "max_clusters": [Interval(numbers.Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        features: Features = "auto",
        n_neighbors: Integer = 20,
        min_cluster_size: Integer = 5,
        max_clusters: Integer = 500,
        random_state: Seed = None,
    ) -> None:
        self.features = features
        self.n_neighbors = n_neighbors
        self.min_cluster_size = min_cluster_size
        self.max_clusters = max_clusters
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: features, of labeled rows too where there are any."""
        return QueryTags(
            deterministic=False,
            utilities="other",
            reads=("features",),
            uses=("labeled", "model"),
        )

    def _select(self, pool: Pool) -> Selection:
        features, factor = self._features(pool)
        n_labeled = features.shape[0] - pool.n_points
        n_clusters = min(n_labeled + pool.batch_size, self.max_clusters)
        clusters = cluster_rows(features, n_clusters, stream_seed(pool.root, STRATEGY))
        turns = clusters_in_turn(
            clusters, pool.n_points, pool.candidates, pool.batch_size, self.min_cluster_size
        )
        free = self._typicalities(features, clusters, np.unique(turns), pool)
        positions, utilities, rows = [], [], []
        for cluster in turns:
            row = np.where(clusters[: pool.n_points] == cluster, free, np.nan)
            positions.append(int(np.nanargmax(row)))
            utilities.append(row[positions[-1]])
            free[positions[-1]] = np.nan
            if pool.want_utilities:
                rows.append(row)
        chosen = Selection(
            np.array(positions, dtype=np.intp),
            np.array(utilities),
            np.stack(rows) if pool.want_utilities else None,
        )
        return _finite(in_unit(chosen, factor, power=-1))

    def _typicalities(
        self, features: Any, clusters: np.ndarray, chosen: np.ndarray, pool: Pool
    ) -> np.ndarray:
        """Return typicalities of the candidates in some clusters, NaN elsewhere, (n_points,)."""
        out = np.full(pool.n_points, np.nan)
        for cluster in chosen:
            members = np.flatnonzero(clusters == cluster)
            allowed = np.intersect1d(members, pool.candidates, assume_unique=True)
            out[allowed] = typicality(features, members, allowed, self.n_neighbors)
        return out

    def _features(self, pool: Pool) -> tuple[Any, float]:
        """Return the features of the pool, and below them those of the labeled rows.

        Multiplied by a power of two, which is returned too.
        """
        (features, labeled), factor = features_in_range(self.features, pool.rows, pool.labeled)
        if labeled is None:
            return features, factor
        if sparse.issparse(features):
            return sparse.vstack([features, labeled], format="csr"), factor
        return np.concatenate([features, labeled]), factor


def clusters_in_turn(
    clusters: np.ndarray, n_pool: int, candidates: np.ndarray, n_picks: int, min_size: Integer
) -> np.ndarray:
    """Return the cluster that each pick comes from, (n_picks,).

    The first `n_pool` rows of `clusters` are the pool, the others are labeled. There are at least
    `n_picks` candidates.
    """
    sizes = np.bincount(clusters)
    n_labeled = np.bincount(clusters[n_pool:], minlength=len(sizes))
    order = np.lexsort((-sizes, n_labeled, sizes < min_size))
    n_turns = np.bincount(clusters[candidates], minlength=len(sizes))[order]
    turns = np.concatenate([np.arange(n) for n in n_turns])
    return np.repeat(order, n_turns)[np.argsort(turns, kind="stable")][:n_picks]


def typicality(
    features: Any, members: np.ndarray, rows: np.ndarray, n_neighbors: Integer
) -> np.ndarray:
    """Return 1 / mean distance to the nearest members of a cluster, for some of them, (n_rows,).

    0 in a cluster of one row, and infinite for copies.
    """
    if len(members) == 1:
        return np.zeros(len(rows))
    means, errors = neighbor_distances(features, members, rows, n_neighbors)
    with np.errstate(divide="ignore"):
        return 1 / np.abs(merge_ties(-means, errors))


def _finite(chosen: Selection) -> Selection:
    """Return a selection with the largest number in place of infinite utilities."""
    largest = 1 / np.finfo(np.float64).tiny
    rows = None if chosen.rows is None else np.minimum(chosen.rows, largest)
    return replace(chosen, utilities=np.minimum(chosen.utilities, largest), rows=rows)
