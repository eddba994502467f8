"""Two strategies of one's own, one for each hook, and their check."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from sklearn_ical import BaseQuery, PredictionSamples
from sklearn_ical.strategies import PointwiseQuery, Pool, QueryTags, Selection
from sklearn_ical.testing import check_strategy


class GiniQuery(PointwiseQuery):
    """Choose the rows whose mean prediction has the largest Gini impurity."""

    def query_tags(self) -> QueryTags:
        return QueryTags(kinds=("proba", "label"), needs=("mean",))

    def _score(self, samples: PredictionSamples) -> Any:
        mean = samples.mean()  # (n_points, n_classes)
        xp = array_namespace(mean)
        return 1 - xp.sum(mean**2, axis=1)


class ClassTurnsQuery(BaseQuery):
    """Take the least confident row of each predicted class in turn."""

    def query_tags(self) -> QueryTags:
        return QueryTags(kinds=("proba", "label"), needs=("mean",), utilities="other")

    def _select(self, pool: Pool) -> Selection:
        mean = pool.predictions.take(pool.candidates).canonical().mean()
        doubt = 1 - mean.max(axis=1)  # (n_candidates,)
        predicted = mean.argmax(axis=1)
        turn = np.empty(len(doubt), dtype=np.intp)
        for label in np.unique(predicted):
            rows = np.flatnonzero(predicted == label)
            turn[rows[np.argsort(-doubt[rows], kind="stable")]] = np.arange(len(rows))
        chosen = np.lexsort((-doubt, turn))[: pool.batch_size]
        positions = pool.candidates[chosen]
        rows_of_utilities = None
        if pool.want_utilities:
            rows_of_utilities = np.full((len(chosen), pool.n_points), np.nan)
            rows_of_utilities[:, pool.candidates] = doubt
            for step, position in enumerate(positions):
                rows_of_utilities[step + 1 :, position] = np.nan
        return Selection(positions, doubt[chosen], rows_of_utilities)


if __name__ == "__main__":
    check_strategy(GiniQuery())
    check_strategy(ClassTurnsQuery())
