"""Labels of each type, refusals among them, and models that learn in steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    LinearRegression,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import ActiveLearner, RandomQuery
from tests.learner.learners import (
    Recorder,
    SparseLabels,
    nearest,
    pandas_frame,
    small_data,
    state_of,
)

LABELS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "array": np.array,
    "object array": lambda labels: np.array(labels, dtype=object),
    "pandas": lambda labels: pytest.importorskip("pandas").Series(labels, name="y"),
    "categorical": lambda labels: pytest.importorskip("pandas").Series(labels, dtype="category"),
    "polars": lambda labels: pytest.importorskip("polars").Series("y", labels),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize(
    "labels", [["no", "yes", "no", "perhaps"], [0, 1, 0, 2]], ids=["str", "int"]
)
@pytest.mark.parametrize("as_list", [False, True])
def test_labels_keep_their_type(name: str, labels: list[Any], as_list: bool) -> None:
    X = small_data(4)[0]
    if name == "object array":
        labels = list(map(str, labels))  # scikit-learn takes no other objects as classes
    make = LABELS[name]
    learner = nearest().fit(X[:2], make(labels[:2]))
    learner.teach(X[2:], labels[2:] if as_list else make(labels[2:]))
    kept, whole = learner.y_labeled_, make(labels)
    assert type(kept) is type(whole)
    assert list(kept) == labels
    assert getattr(kept, "dtype", None) == getattr(whole, "dtype", None) or name == "categorical"
    assert getattr(kept, "name", None) == getattr(whole, "name", None)
    if name == "categorical":
        assert set(kept.cat.categories) == set(labels)
    assert learner.predict(X).tolist() == labels


REFUSALS: dict[str, Callable[[], Any]] = {
    "list of None": lambda: [None, 1, None],
    "list of NaN": lambda: [np.nan, 1, np.nan],
    "list of NA": lambda: [pytest.importorskip("pandas").NA, 1, None],
    "array": lambda: np.array([np.nan, 1.0, np.nan]),
    "object array": lambda: np.array([None, 1, np.nan], dtype=object),
}


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("integer", [int, np.int8, float])
def test_refused_labels_are_left_out(name: str, integer: type) -> None:
    X, y = small_data()
    y = y.astype(integer)
    learner = nearest().fit(X, y)
    learner.teach(X[:3] + 5, REFUSALS[name]())
    np.testing.assert_array_equal(learner.X_labeled_, [*X, X[1] + 5])
    np.testing.assert_array_equal(learner.y_labeled_, [*y, 1])
    assert learner.y_labeled_.dtype == y.dtype


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_refused_labels_in_a_series_are_left_out(package: str) -> None:
    series = pytest.importorskip(package).Series
    X = small_data()[0]
    for first, new, expected in (
        (["a", "b"], ["a", None, "b"], ["a", "b", "a", "b"]),
        ([0, 1], [1, None, 0], [0, 1, 1, 0]),
        ([0.5, 1.5], [1.0, np.nan, 0.0], [0.5, 1.5, 1.0, 0.0]),
    ):
        learner = ActiveLearner(Recorder(), RandomQuery()).fit(X[:2], series(first))
        learner.teach(X[:3], series(new))
        assert learner.y_labeled_.to_list() == expected
        assert learner.y_labeled_.dtype == series(first).dtype
        np.testing.assert_array_equal(learner.X_labeled_, X[[0, 1, 0, 2]])


def test_refusals_alone_change_nothing() -> None:
    X, y = small_data()
    learner = nearest().fit(X, y)
    before = state_of(learner)
    assert learner.teach(X[:2], [None, np.nan]) is learner
    assert all(value is before[name] for name, value in state_of(learner).items())


def test_regression_targets_are_taught_with_refusals() -> None:
    X, _ = small_data()
    y = 2.0 * X[:, 0]
    learner = ActiveLearner(LinearRegression(), RandomQuery()).fit(X[:6], y[:6])
    learner.teach(X[6:], np.where(np.arange(6) == 2, np.nan, y[6:]))
    assert len(learner.y_labeled_) == 11
    np.testing.assert_allclose(learner.predict(X), y)
    integers = ActiveLearner(LinearRegression(), RandomQuery()).fit(X[:6], np.arange(6))
    assert integers.teach(X[6:7], [2.5]).y_labeled_.tolist() == [0, 1, 2, 3, 4, 5, 2.5]


@pytest.mark.parametrize("make", [np.array, list, "pandas", "polars"])
def test_several_outputs_are_taught(make: Any) -> None:
    X, _ = small_data()
    Y = np.column_stack([X[:, 0], X[:, 1]])

    def outputs(values: np.ndarray) -> Any:
        if isinstance(make, str):
            return pytest.importorskip(make).DataFrame({"u": values[:, 0], "v": values[:, 1]})
        return make(values.tolist())

    learner = ActiveLearner(MultiOutputRegressor(LinearRegression()), RandomQuery())
    learner.fit(X[:6], outputs(Y[:6]))
    new = Y[6:].copy()
    new[3, 1] = np.nan
    learner.teach(X[6:], outputs(new))
    assert type(learner.y_labeled_) is type(outputs(Y))
    np.testing.assert_array_equal(np.asarray(learner.y_labeled_), np.delete(Y, 9, axis=0))
    np.testing.assert_allclose(learner.predict(X), Y)
    with pytest.raises((TypeError, ValueError), match="y_new"):
        learner.teach(X[:2], Y[:2, 0].tolist() if make is list else Y[:2, 0])


@pytest.mark.parametrize("sparse_type", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_label_sets_are_taught(sparse_type: Any) -> None:
    X, y = small_data()
    Y = np.column_stack([y, 1 - y, y])
    learner = ActiveLearner(SparseLabels(), RandomQuery()).fit(X[:8], sparse_type(Y[:8]))
    learner.teach(X[8:], sparse_type(Y[8:]), partial_fit=True)
    assert type(learner.y_labeled_) is sparse_type
    np.testing.assert_array_equal(learner.y_labeled_.toarray(), Y)


def test_partial_fit_checks_the_classes_of_each_output() -> None:
    X, y = small_data()
    learner = ActiveLearner(MultiOutputClassifier(GaussianNB()), RandomQuery())
    learner.fit(X, np.column_stack([y, y + 5]))
    learner.teach(X, np.column_stack([y, y + 5]), partial_fit=True)
    with pytest.raises(ValueError, match=r"one of \[5, 6\]. Got \[0, 1\]"):
        learner.teach(X, np.column_stack([y, y]), partial_fit=True)


def test_labels_of_another_type_or_sort_are_refused() -> None:
    X, y = small_data()
    pandas = pytest.importorskip("pandas")
    learner = nearest().fit(X, y)
    with pytest.raises(TypeError, match=r"y_new must have the type .* numpy.ndarray\. Got pandas"):
        learner.teach(X, pandas.Series(y))
    for labels in (["1"] * 12, np.array(["1"] * 12), [1, "a"] * 6):
        with pytest.raises(TypeError, match="y_new must hold values like those before"):
            learner.teach(X, labels)
    flags = nearest().fit(X, y == 1)
    with pytest.raises(TypeError, match=r"of dtype bool\. Got dtype int"):
        flags.teach(X, y + 1)
    assert flags.teach(X, y).y_labeled_.dtype == bool
    texts = nearest().fit(X, np.array(["no", "yes"] * 6))
    with pytest.raises(TypeError, match="y_new must hold values like those before"):
        texts.teach(X, y)
    assert len(learner.y_labeled_) == len(texts.y_labeled_) == 12


# partial_fit.


def test_partial_fit_goes_on_with_the_new_rows_alone() -> None:
    X, y = small_data(30)
    learner = ActiveLearner(GaussianNB(), RandomQuery()).fit(X[:10], y[:10])
    first = learner.estimator_
    learner.teach(X[10:20], y[10:20], partial_fit=True)
    by_hand = GaussianNB().fit(X[:10], y[:10]).partial_fit(X[10:20], y[10:20])
    np.testing.assert_array_equal(learner.predict_proba(X), by_hand.predict_proba(X))
    assert first.class_count_.sum() == 10
    recorder = ActiveLearner(Recorder(), RandomQuery()).fit(X[:10], y[:10])
    recorder.teach(X[10:20], y[10:20], partial_fit=True)
    np.testing.assert_array_equal(recorder.estimator_.partial_fit_["X"], X[10:20])
    np.testing.assert_array_equal(recorder.estimator_.fit_["X"], X[:10])
    # The labels were kept: what comes next can be fitted on all of them.
    recorder.teach(X[20:], y[20:])
    np.testing.assert_array_equal(recorder.estimator_.fit_["X"], X)
    assert not hasattr(recorder.estimator_, "partial_fit_")


def test_partial_fit_matches_columns_before_the_model_sees_them() -> None:
    X, y = small_data()
    frame = pandas_frame(X)
    learner = ActiveLearner(GaussianNB(), RandomQuery()).fit(frame[:8], y[:8])
    learner.teach(frame[8:][list("dcba")], y[8:], partial_fit=True)
    by_hand = GaussianNB().fit(frame[:8], y[:8]).partial_fit(frame[8:], y[8:])
    np.testing.assert_array_equal(learner.estimator_.theta_, by_hand.theta_)


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(2), make_pipeline(StandardScaler(), GaussianNB())]
)
def test_partial_fit_without_one_is_refused(estimator: Any) -> None:
    X, y = small_data()
    learner = ActiveLearner(estimator, RandomQuery()).fit(X, y)
    name = type(estimator).__name__
    with pytest.raises(TypeError, match=rf"Got {name} in .*; leave partial_fit out"):
        learner.teach(X, y, partial_fit=True)


@pytest.mark.parametrize("estimator", [GaussianNB(), SGDClassifier()])
def test_partial_fit_refuses_a_new_class(estimator: Any) -> None:
    X, y = small_data()
    learner = ActiveLearner(estimator, RandomQuery()).fit(X, y)
    with pytest.raises(ValueError, match=r"one of \[0, 1\]\. Got \[2, 7\] in .*leave partial_fit"):
        learner.teach(X[:4], [0, 7, 2, 7], partial_fit=True)
    assert len(learner.y_labeled_) == 12
    assert learner.teach(X[:4], [0, 7, 2, 7]).classes_.tolist() == [0, 1, 2, 7]
    learner.teach(X[:1], [7], partial_fit=True)


def test_partial_fit_of_a_regressor_takes_any_value() -> None:
    X, y = small_data()
    learner = ActiveLearner(SGDRegressor(random_state=0), RandomQuery()).fit(X, y)
    learner.teach(X, y + 10.5, partial_fit=True)
    by_hand = SGDRegressor(random_state=0).fit(X, y).partial_fit(X, y + 10.5)
    np.testing.assert_array_equal(learner.estimator_.coef_, by_hand.coef_)
