"""Sample weights and other metadata, without scikit-learn's routing and with it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import (
    LogisticRegression,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.metadata_routing import MetadataRouter

from sklearn_ical import ActiveLearner, RandomQuery
from tests.learner.learners import Recorder, small_data, state_of


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# Sample weights and other metadata, without routing.


def test_weights_reach_the_fit_and_are_kept() -> None:
    X, y = small_data()
    weights = np.arange(1.0, 13.0)
    learner = ActiveLearner(DecisionTreeClassifier(max_depth=1, random_state=0), RandomQuery())
    learner.fit(X[:6], y[:6], sample_weight=weights[:6])
    learner.teach(X[6:], y[6:], sample_weight=weights[6:])
    by_hand = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(learner.predict_proba(X), by_hand.predict_proba(X))
    np.testing.assert_array_equal(learner.fit_params_["sample_weight"], weights)
    assert learner.score(X, y, sample_weight=weights) == by_hand.score(X, y, weights)


@pytest.mark.parametrize("make", [np.array, list, "pandas"])
def test_missing_weights_are_one(make: Any) -> None:
    X, y = small_data(6)
    make = pytest.importorskip("pandas").Series if make == "pandas" else make
    early = ActiveLearner(Recorder(), RandomQuery()).fit(X[:2], y[:2], sample_weight=make([3, 4]))
    early.teach(X[2:4], y[2:4]).teach(X[4:], y[4:], sample_weight=make([0.5, 6]))
    assert early.estimator_.fit_["sample_weight"].tolist() == [3, 4, 1, 1, 0.5, 6]
    late = ActiveLearner(Recorder(), RandomQuery()).fit(X[:2], y[:2], sample_weight=None)
    assert late.estimator_.fit_["sample_weight"] is None
    assert late.fit_params_ == {}
    late.teach(X[2:4], y[2:4], sample_weight=make([5, 6]))
    assert late.estimator_.fit_["sample_weight"].tolist() == [1, 1, 5, 6]


def test_weights_of_refused_labels_are_left_out() -> None:
    X, y = small_data(4)
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(X, y)
    learner.teach(X[:3], [0, None, 1], sample_weight=[5, 6, 7])
    assert learner.estimator_.fit_["sample_weight"].tolist() == [1, 1, 1, 1, 5, 7]


def test_weights_of_a_step_are_weights() -> None:
    X, y = small_data(4)
    learner = ActiveLearner(Pipeline([("last", Recorder())]), RandomQuery())
    learner.fit(X, y, last__sample_weight=[1, 2, 3, 4]).teach(X[:1], y[:1])
    assert learner.estimator_["last"].fit_["sample_weight"].tolist() == [1, 2, 3, 4, 1]


def test_partial_fit_gets_the_weights_of_its_rows() -> None:
    X, y = small_data(6)
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(X[:2], y[:2], sample_weight=[3, 4])
    learner.teach(X[2:4], y[2:4], sample_weight=[5, 6], partial_fit=True)
    assert list(learner.estimator_.partial_fit_["sample_weight"]) == [5, 6]
    learner.teach(X[4:5], y[4:5], partial_fit=True)
    assert learner.estimator_.partial_fit_["sample_weight"] is None
    learner.teach(X[5:], y[5:])
    assert learner.estimator_.fit_["sample_weight"].tolist() == [3, 4, 5, 6, 1, 1]


def test_metadata_of_rows_must_be_complete_and_as_long() -> None:
    X, y = small_data(6)
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(X, y, groups=list("aabbcc"))
    with pytest.raises(ValueError, match=r"groups belongs to rows.*none for the 2 rows of X_new"):
        learner.teach(X[:2], y[:2])
    with pytest.raises(ValueError, match=r"groups must have one entry for each of the 2 rows"):
        learner.teach(X[:2], y[:2], groups=["a"])
    learner.teach(X[:2], [0, None], groups=["d", "e"])
    assert learner.estimator_.fit_["groups"] == list("aabbccd")
    bare = ActiveLearner(Recorder(), RandomQuery()).fit(X, y)
    with pytest.raises(ValueError, match=r"groups belongs.*none for the 6 rows of X_labeled_"):
        bare.teach(X[:2], y[:2], groups=["d", "e"])
    weighted = ActiveLearner(Recorder(), RandomQuery()).fit(X, y, sample_weight=np.ones(6))
    with pytest.raises(ValueError, match="sample_weight must have one entry for each of the 2"):
        weighted.teach(X[:2], y[:2], sample_weight=[1.0, 2.0, 3.0])
    assert len(weighted.y_labeled_) == len(bare.y_labeled_) == 6


def test_what_belongs_to_no_row_is_kept_and_replaced() -> None:
    X, y = small_data(6)
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(X, y, flag="red").teach(X, y)
    assert learner.estimator_.fit_["flag"] == "red"
    assert learner.teach(X, y, flag=[1, 2]).estimator_.fit_["flag"] == [1, 2]
    # As many entries as rows by chance: it did not belong to rows before.
    learner.teach(X[:2], [0, None], flag=[3, 4])
    assert learner.estimator_.fit_["flag"] == [3, 4]


def test_arguments_of_predict_reach_the_estimator() -> None:
    X, y = small_data(6)
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(X, y)
    assert learner.predict(X, shift=3).tolist() == [3] * 6
    assert learner.score(X, y, sample_weight=[1, 2]) == 3.0
    with pytest.raises(TypeError, match="color"):
        learner.fit(X, y, color="red")


# Sample weights and other metadata, with routing.


@pytest.mark.usefixtures("routing")
def test_routing_passes_what_is_requested() -> None:
    X, y = small_data(4)
    recorder = Recorder().set_fit_request(sample_weight=True, groups=True)
    recorder.set_score_request(sample_weight="score_weight").set_predict_request(shift=True)
    learner = ActiveLearner(recorder, RandomQuery())
    learner.fit(X[:2], y[:2], sample_weight=[1, 2], groups=["a", "b"])
    learner.teach(X[2:], y[2:], sample_weight=[3, 4], groups=["c", "d"])
    assert list(learner.estimator_.fit_["sample_weight"]) == [1, 2, 3, 4]
    assert learner.estimator_.fit_["groups"] == list("abcd")
    assert learner.predict(X, shift=2).tolist() == [2] * 4
    assert learner.score(X, y, score_weight=[2, 3]) == 5.0
    assert isinstance(learner.get_metadata_routing(), MetadataRouter)


@pytest.mark.usefixtures("routing")
def test_routing_refuses_what_is_not_requested() -> None:
    X, y = small_data(4)
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(X, y)
    before = state_of(learner)
    for call in (learner.fit, learner.teach, learner.score):
        with pytest.raises(ValueError, match=r"sample_weight.* not explicitly set as requested"):
            call(X, y, sample_weight=np.ones(4))
    with pytest.raises(ValueError, match="not explicitly set as requested"):
        learner.teach(X, y, sample_weight=np.ones(4), partial_fit=True)
    with pytest.raises(TypeError, match="color"):
        learner.fit(X, y, color="red")
    assert all(value is before[name] for name, value in state_of(learner).items())


@pytest.mark.usefixtures("routing")
def test_routing_goes_into_a_pipeline_and_through_a_search() -> None:
    X, y = small_data(8)
    recorder = Recorder().set_fit_request(sample_weight="weights", groups=True)
    learner = ActiveLearner(make_pipeline(StandardScaler(), recorder), RandomQuery())
    learner.fit(X[:6], y[:6], weights=np.arange(6.0), groups=np.arange(6))
    learner.teach(X[6:], y[6:], weights=np.array([6.0, 7.0]), groups=np.array([6, 7]))
    seen = learner.estimator_[-1].fit_
    np.testing.assert_array_equal(seen["sample_weight"], np.arange(8.0))
    np.testing.assert_array_equal(seen["groups"], np.arange(8))
    weighted = LogisticRegression().set_fit_request(sample_weight=True)
    weighted.set_score_request(sample_weight=False)
    search = GridSearchCV(
        ActiveLearner(weighted, RandomQuery()), {"estimator__C": [0.1, 1.0]}, cv=2
    )
    search.fit(X, y, sample_weight=np.arange(1.0, 9.0))
    expected = GridSearchCV(weighted, {"C": [0.1, 1.0]}, cv=2)
    expected.fit(X, y, sample_weight=np.arange(1.0, 9.0))
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(search.predict_proba(X), expected.predict_proba(X))


@pytest.mark.usefixtures("routing")
def test_routing_of_partial_fit_has_requests_of_its_own() -> None:
    X, y = small_data(6)
    recorder = Recorder().set_fit_request(sample_weight=True)
    recorder.set_partial_fit_request(sample_weight=True)
    learner = ActiveLearner(recorder, RandomQuery()).fit(X[:2], y[:2])
    learner.teach(X[2:4], y[2:4], sample_weight=[5, 6], partial_fit=True)
    assert list(learner.estimator_.partial_fit_["sample_weight"]) == [5, 6]
    learner.teach(X[4:], y[4:])
    assert learner.estimator_.fit_["sample_weight"].tolist() == [1, 1, 5, 6, 1, 1]
