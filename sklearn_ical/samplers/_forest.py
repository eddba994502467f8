"""The trees of a forest as posterior draws, evaluated by one walk to the leaves."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from sklearn_ical._typing import Kind
from sklearn_ical._validation import forest_input, n_rows, sliceable, take_rows
from sklearn_ical.samplers._models import check_single_output, not_fitted
from sklearn_ical.samples import PredictionSamples

FORESTS = (
    RandomForestClassifier,
    ExtraTreesClassifier,
    RandomForestRegressor,
    ExtraTreesRegressor,
)
# Rows of one walk down the trees: threads are started once, leaf numbers stay small.
FOREST_BLOCK_ROWS = 20_000


def check_forest(forest: Any) -> None:
    """Raise if a forest is not fitted or predicts several class outputs at once."""
    if not hasattr(forest, "estimators_"):
        raise not_fitted(forest)
    check_single_output(forest)


class ForestDraws:
    """The trees of a forest, evaluated by one walk to the leaves and one gather of leaf values."""

    joint = False

    def __init__(self, forest: Any, chosen: np.ndarray, weights: np.ndarray | None) -> None:
        # A shallow copy keeps these trees when the caller fits the forest again.
        self.forest = copy.copy(forest)
        self.forest.estimators_ = [forest.estimators_[k] for k in chosen]
        self.n_draws = len(chosen)
        self.classes = getattr(forest, "classes_", None)
        self.kind: Kind = "value" if self.classes is None else "proba"
        self.weights = weights
        trees = [tree.tree_ for tree in self.forest.estimators_]
        table = np.concatenate([tree.value for tree in trees])  # (n_nodes, n_outputs, n_classes)
        table = table[:, 0, :] if self.kind == "proba" else table[:, :, 0]
        # Leaf values are checked here, once; predictions are only ever looked up.
        checked = PredictionSamples(table[:, None], self.kind, classes=self.classes)
        self.classes = checked.classes
        table = np.ascontiguousarray(checked.values[:, 0])
        if self.kind == "value" and table.shape[1] == 1:
            table = table[:, 0]
        # One table per tree, which stays in cache while all rows are looked up.
        self.tables = np.split(table, np.cumsum([tree.node_count for tree in trees[:-1]]))

    def __call__(self, X: Any) -> PredictionSamples:
        X = sliceable(X)
        total = n_rows(X)
        out = self._empty(total)
        for start in range(0, total, FOREST_BLOCK_ROWS):
            stop = min(start + FOREST_BLOCK_ROWS, total)
            block = X if stop - start == total else take_rows(X, slice(start, stop))
            self._evaluate(block, out[:, start:stop])
        return self._samples(out)

    def chunks(self, X: Any, n_rows: int) -> Iterator[PredictionSamples]:
        """Walk the trees once for all of `X` and yield the samples of its chunks."""
        rows = forest_input(self.forest, X)
        leaves = np.empty((self.n_draws, rows.shape[0]), dtype=np.int32)
        self._walk(rows, leaves.__setitem__)
        for start in range(0, leaves.shape[1], n_rows):
            chunk = leaves[:, start : start + n_rows]
            out = self._empty(chunk.shape[1])
            for k, leaves_of_tree in enumerate(chunk):
                self._look_up(k, leaves_of_tree, out[k])
            yield self._samples(out)

    def _evaluate(self, X: Any, out: np.ndarray) -> None:
        """Write the predictions for `X` into `out`, (n_draws, n_points, ...)."""
        rows = forest_input(self.forest, X)
        self._walk(rows, lambda k, leaves: self._look_up(k, leaves, out[k]))

    def _walk(self, rows: Any, keep: Callable[[int, np.ndarray], None]) -> None:
        """Pass each tree's leaves of all rows to `keep`, on the forest's own number of threads."""

        def walk(k: int, tree: Any) -> None:
            keep(k, tree.apply(rows, check_input=False))

        Parallel(n_jobs=self.forest.n_jobs, require="sharedmem")(
            delayed(walk)(k, tree) for k, tree in enumerate(self.forest.estimators_)
        )

    def _look_up(self, k: int, leaves: np.ndarray, out: np.ndarray) -> None:
        """Write the values of one tree's leaves into `out`, (n_points, ...)."""
        # mode="clip" lets numpy write into `out` without a buffer of its own.
        np.take(self.tables[k], leaves, axis=0, mode="clip", out=out)

    def _empty(self, n_points: int) -> np.ndarray:
        """Return an empty array for predictions; the draws of each tree are contiguous."""
        return np.empty((self.n_draws, n_points, *self.tables[0].shape[1:]))

    def _samples(self, values: np.ndarray) -> PredictionSamples:
        """Wrap predictions that come draw by draw."""
        return PredictionSamples.trusted(
            values.swapaxes(0, 1), self.kind, classes=self.classes, weights=self.weights
        )
