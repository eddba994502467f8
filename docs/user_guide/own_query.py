"""Three custom strategies and their check: scores, an objective, and a selection."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import sparse

from sklearn_ical import BaseQuery, PredictionSamples
from sklearn_ical.pool import Pool
from sklearn_ical.selection import Selection, maximize
from sklearn_ical.strategies import PointwiseQuery, QueryTags
from sklearn_ical.testing import check_strategy


class GiniQuery(PointwiseQuery):
    """Choose the rows whose mean prediction has the largest Gini impurity."""

    def query_tags(self) -> QueryTags:
        return QueryTags(kinds=("proba", "label"), reads=("mean",))

    def _score(self, samples: PredictionSamples) -> Any:
        mean = samples.mean()  # (n_points, n_classes)
        xp = array_namespace(mean)
        return 1 - xp.sum(mean**2, axis=1)


class NearestCenter:
    """Squared distance of each candidate to the nearest center; it never grows."""

    submodular = True

    def __init__(self, X: np.ndarray, centers: np.ndarray) -> None:
        self.X, self.distance = X, np.min([((X - c) ** 2).sum(axis=1) for c in centers], axis=0)

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, float]:
        return self.distance[slots], 1e-12 * float(self.distance.max())

    def add(self, slot: int) -> None:
        self.distance = np.minimum(self.distance, ((self.X - self.X[slot]) ** 2).sum(axis=1))


class KCenterQuery(BaseQuery):
    """Choose rows far from the labeled rows, or the mean of the pool, and from each other."""

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=("features",), uses=("labeled", "model"))

    def _select(self, pool: Pool) -> Selection:
        X = dense(pool.rows.features())
        centers = X.mean(axis=0)[None] if pool.labeled is None else dense(pool.labeled.features())
        return maximize(pool, NearestCenter(X[pool.candidates], centers))


def dense(X: Any) -> np.ndarray:
    """Return features, which may be a CSR matrix, as a float64 array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


class ClassTurnsQuery(BaseQuery):
    """Take the least confident row of each predicted class in turn."""

    def query_tags(self) -> QueryTags:
        return QueryTags(kinds=("proba", "label"), reads=("mean",), utilities="other")

    def _select(self, pool: Pool) -> Selection:
        mean = pool.rows.map(lambda samples: samples.canonical().mean(), pool.candidates)
        uncertainty = 1 - mean.max(axis=1)  # (n_candidates,)
        predicted = mean.argmax(axis=1)
        turn = np.empty(len(uncertainty), dtype=np.intp)
        for label in np.unique(predicted):
            rows = np.flatnonzero(predicted == label)
            turn[rows[np.argsort(-uncertainty[rows], kind="stable")]] = np.arange(len(rows))
        chosen = np.lexsort((-uncertainty, turn))[: pool.batch_size]
        positions = pool.candidates[chosen]
        utilities = None
        if pool.want_utilities:
            utilities = np.full((len(chosen), pool.n_points), np.nan)
            utilities[:, pool.candidates] = uncertainty
            for step, position in enumerate(positions):
                utilities[step + 1 :, position] = np.nan
        return Selection(positions, uncertainty[chosen], utilities)


if __name__ == "__main__":
    check_strategy(GiniQuery())
    check_strategy(KCenterQuery())
    check_strategy(ClassTurnsQuery())
