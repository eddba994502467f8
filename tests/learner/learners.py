"""Data, estimators and strategies that the tests of ActiveLearner share; no tests."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

from sklearn_ical import ActiveLearner, RandomQuery
from sklearn_ical.strategies import QueryTags


def small_data(n: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of four columns and labels of two classes that take turns."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, np.arange(n) % 2


def nearest(n_neighbors: int = 1) -> ActiveLearner:
    """Return a learner that remembers its rows: each is predicted by its own label."""
    return ActiveLearner(KNeighborsClassifier(n_neighbors), RandomQuery(random_state=0))


class Recorder(ClassifierMixin, BaseEstimator):
    """Classifier that keeps what each of its methods got."""

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, flag: Any = None
    ) -> "Recorder":
        self.fit_ = {
            "X": X, "y": y, "sample_weight": sample_weight, "groups": groups, "flag": flag,
        }  # fmt: skip
        self.classes_ = np.unique(np.asarray(y))
        return self

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> "Recorder":
        self.partial_fit_ = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
        return self

    def predict(self, X: Any, shift: Any = 0) -> Any:
        return np.full(len(X), self.classes_[0]) + shift

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return -1.0 if sample_weight is None else float(np.sum(sample_weight))


class SparseLabels(Recorder):
    """The same for labels in a sparse matrix, one column for each class."""

    def fit(self, X: Any, y: Any) -> "SparseLabels":
        self.classes_ = np.arange(y.shape[1])
        return self


class Asked:
    """Strategy that is none of ours and keeps what it was asked."""

    def __init__(self, *reads: str) -> None:
        self.reads = reads

    def query(self, model: Any, X_pool: Any, batch_size: int, **given: Any) -> Any:
        return model, X_pool, batch_size, given


class AskedWithTags(Asked):
    """The same, with tags."""

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=self.reads)


def pandas_frame(X: np.ndarray) -> Any:
    return pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))


def state_of(learner: ActiveLearner) -> dict[str, Any]:
    return {name: value for name, value in vars(learner).items() if name.endswith("_")}
