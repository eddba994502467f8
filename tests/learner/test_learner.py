"""ActiveLearner: scikit-learn's contract, the loop by hand, and what is never changed or lost."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import (
    LogisticRegression,
    Ridge,
)
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from sklearn_ical import ActiveLearner, BALDQuery, ICALQuery, MarginQuery, RandomQuery
from sklearn_ical.samplers import get_sampler
from sklearn_ical.strategies import QueryTags
from tests.learner.learners import (
    Asked,
    AskedWithTags,
    Recorder,
    nearest,
    small_data,
    state_of,
)

X_DIGITS, Y_DIGITS = load_digits(return_X_y=True)


# What scikit-learn asks of an estimator.


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        Ridge(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        RandomForestRegressor(5, random_state=0),
        MultinomialNB(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_scikit_learn_checks_pass(estimator: Any) -> None:
    learner = ActiveLearner(estimator, RandomQuery(random_state=0))
    results = check_estimator(learner, on_skip=None)
    assert sum(result["status"] == "passed" for result in results) > 45
    assert not any(result["expected_to_fail"] for result in results)


def test_tags_are_those_of_the_inner_estimator() -> None:
    text = ActiveLearner(make_pipeline(TfidfVectorizer(), MultinomialNB()), RandomQuery())
    assert get_tags(text).input_tags == get_tags(text.estimator).input_tags
    assert is_classifier(text)
    assert is_regressor(ActiveLearner(Ridge(), RandomQuery()))
    assert not is_classifier(ActiveLearner(Ridge(), RandomQuery()))
    forest = ActiveLearner(RandomForestRegressor(), RandomQuery())
    assert get_tags(forest).input_tags == get_tags(forest.estimator).input_tags
    assert get_tags(forest).target_tags.multi_output
    assert get_tags(forest).regressor_tags == get_tags(forest.estimator).regressor_tags


def test_methods_are_there_where_the_inner_estimator_has_them() -> None:
    svm = ActiveLearner(LinearSVC(), RandomQuery())
    forest = ActiveLearner(RandomForestClassifier(), RandomQuery())
    assert hasattr(svm, "decision_function")
    assert not hasattr(svm, "predict_proba")
    assert not hasattr(svm, "predict_log_proba")
    assert hasattr(forest, "predict_log_proba")
    assert not hasattr(forest, "decision_function")
    assert not hasattr(forest, "transform")
    assert not hasattr(ActiveLearner(Asked(), RandomQuery()), "predict")


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "decision_function"]
)
def test_methods_answer_as_the_inner_estimator(method: str) -> None:
    X, y = small_data(30)
    plain = LogisticRegression().fit(X, y)
    learner = ActiveLearner(LogisticRegression(), RandomQuery()).fit(X, y)
    np.testing.assert_array_equal(getattr(learner, method)(X), getattr(plain, method)(X))
    assert learner.score(X, y) == plain.score(X, y)


def test_attributes_are_those_of_the_inner_estimator() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = small_data()
    learner = nearest()
    for name in ("classes_", "n_features_in_", "feature_names_in_"):
        assert not hasattr(learner, name)
    learner.fit(pandas.DataFrame(X, columns=list("abcd")), y)
    assert learner.classes_.tolist() == [0, 1]
    assert learner.n_features_in_ == 4
    assert learner.feature_names_in_.tolist() == list("abcd")
    assert not hasattr(learner.fit(X, y), "feature_names_in_")
    assert not hasattr(ActiveLearner(Ridge(), RandomQuery()).fit(X, y), "classes_")


def test_grid_search_cross_validation_and_pipelines_take_a_learner() -> None:
    X, y = small_data(40)
    learner = ActiveLearner(DecisionTreeClassifier(random_state=0), RandomQuery())
    search = GridSearchCV(learner, {"estimator__max_depth": [1, 4]}, cv=2).fit(X, y)
    expected = GridSearchCV(learner.estimator, {"max_depth": [1, 4]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    assert search.best_estimator_.estimator_.get_depth() == expected.best_estimator_.get_depth()
    scores = cross_validate(learner, X, y, cv=3, scoring="neg_log_loss")["test_score"]
    plain = cross_validate(learner.estimator, X, y, cv=3, scoring="neg_log_loss")["test_score"]
    np.testing.assert_array_equal(scores, plain)
    pipeline = make_pipeline(StandardScaler(), learner).fit(X, y)
    assert is_classifier(pipeline)
    np.testing.assert_array_equal(
        pipeline.predict(X), make_pipeline(StandardScaler(), learner.estimator).fit(X, y).predict(X)
    )


def test_parameters_are_nested_cloned_and_never_changed() -> None:
    X, y = small_data()
    tree, strategy = DecisionTreeClassifier(random_state=0), MarginQuery()
    learner = ActiveLearner(tree, strategy).fit(X, y).teach(X, y)
    assert learner.estimator is tree
    assert learner.strategy is strategy
    assert not hasattr(tree, "tree_")
    learner.set_params(estimator__max_depth=3, strategy=ICALQuery(), strategy__n_reference=7)
    assert learner.get_params()["strategy__n_reference"] == 7
    copy = clone(learner)
    assert copy.estimator is not tree
    assert copy.estimator.max_depth == 3
    assert not hasattr(copy, "estimator_")


def test_pickled_learner_goes_on_where_it_was() -> None:
    X, y = small_data()
    learner = ActiveLearner(RandomForestClassifier(5, random_state=0), RandomQuery(random_state=0))
    learner.fit(X, y)
    copy = pickle.loads(pickle.dumps(learner))
    more, labels = small_data(seed=1)
    np.testing.assert_array_equal(
        copy.teach(more, labels).predict_proba(X), learner.teach(more, labels).predict_proba(X)
    )


# The loop.


def test_loop_equals_the_loop_by_hand() -> None:
    forest, strategy = RandomForestClassifier(10, random_state=0), ICALQuery(20, random_state=0)
    learner = ActiveLearner(forest, strategy).fit(X_DIGITS[:30], Y_DIGITS[:30])
    labeled, pool = np.arange(30), np.arange(30, 300)
    for _ in range(3):
        model = clone(forest).fit(X_DIGITS[labeled], Y_DIGITS[labeled])
        expected = strategy.query(model, X_DIGITS[pool], batch_size=7)
        picks = learner.query(X_DIGITS[pool], batch_size=7)
        np.testing.assert_array_equal(picks, expected)
        bought = pool[picks]
        assert learner.teach(X_DIGITS[bought], Y_DIGITS[bought]) is learner
        labeled, pool = np.concatenate([labeled, bought]), np.setdiff1d(pool, bought)
        model = clone(forest).fit(X_DIGITS[labeled], Y_DIGITS[labeled])
        np.testing.assert_array_equal(
            learner.predict_proba(X_DIGITS[300:]), model.predict_proba(X_DIGITS[300:])
        )
        np.testing.assert_array_equal(learner.X_labeled_, X_DIGITS[labeled])
        np.testing.assert_array_equal(learner.y_labeled_, Y_DIGITS[labeled])


def test_fit_starts_anew() -> None:
    X, y = small_data()
    learner = nearest().fit(X, y).teach(X, y).fit(X[:5], y[:5])
    np.testing.assert_array_equal(learner.X_labeled_, X[:5])
    assert learner.fit_params_ == {}


def test_query_passes_the_keywords_of_the_strategy_on() -> None:
    forest, strategy = RandomForestClassifier(10, random_state=0), ICALQuery(20, random_state=0)
    learner = ActiveLearner(forest, strategy).fit(X_DIGITS[:60], Y_DIGITS[:60])
    pool, rng = X_DIGITS[60:160], np.random.default_rng(0)
    given = {
        "candidates": np.arange(0, 100, 2),
        "X_reference": X_DIGITS[500:600],
        "costs": rng.uniform(1, 3, size=100),
        "budget": 9.0,
        "return_utilities": True,
    }
    picks, utilities = learner.query(pool, batch_size=6, **given)
    expected = strategy.query(learner.estimator_, pool, batch_size=6, **given)
    np.testing.assert_array_equal(picks, expected[0])
    np.testing.assert_array_equal(utilities, expected[1])
    reference = np.arange(10).reshape(1, 10)
    np.testing.assert_array_equal(
        learner.query(pool, reference=reference),
        strategy.query(learner.estimator_, pool, reference=reference),
    )
    with pytest.raises(TypeError, match="candidate"):
        learner.query(pool, candidate=[0])


class KeepsLabeled(RandomQuery):
    """Strategy of ours that looks at the labeled rows."""

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=("labeled",))

    def _select(self, pool: Any) -> Any:
        assert np.array_equal(pool.labeled.y, pool.labeled.X[:, 0])
        pool.rows.X.append((pool.labeled.X, pool.labeled.y))
        return super()._select(pool)


def test_query_hands_the_labels_to_each_strategy_of_ours() -> None:
    y = np.array([0, 1, 0, 1])
    X = np.column_stack([y, y]).astype(float)
    learner = ActiveLearner(DecisionTreeClassifier(), KeepsLabeled()).fit(X, y).teach(X[:2], y[:2])
    pool: list[Any] = [[0.0, 1.0]]
    learner.query(pool)
    assert pool[1][0] is learner.X_labeled_
    assert pool[1][1] is learner.y_labeled_


def test_query_hands_labels_to_other_strategies_if_they_need_them() -> None:
    X, y = small_data()
    learner = ActiveLearner(GaussianNB(), Asked()).fit(X, y)
    assert learner.query(X, 3, color="red") == (learner.estimator_, X, 3, {"color": "red"})
    learner.strategy = AskedWithTags()
    assert learner.query(X)[2:] == (1, {})
    learner.strategy = AskedWithTags("mean")  # which a model may have by refits alone
    given = learner.query(X)[3]
    assert given["X_labeled"] is learner.X_labeled_
    assert given["y_labeled"] is learner.y_labeled_
    assert learner.query(X, y_labeled=None)[3]["y_labeled"] is None


def test_strategies_take_a_learner_as_their_model() -> None:
    forest = RandomForestClassifier(10, random_state=0)
    learner = ActiveLearner(forest, RandomQuery()).fit(X_DIGITS[:60], Y_DIGITS[:60])
    for strategy in (BALDQuery(), MarginQuery(), ICALQuery(20, random_state=0)):
        np.testing.assert_array_equal(
            strategy.query(learner, X_DIGITS[60:200], 5),
            strategy.query(learner.estimator_, X_DIGITS[60:200], 5),
        )
    with pytest.raises(NotFittedError, match="ActiveLearner"):
        get_sampler(ActiveLearner(forest, RandomQuery()))


def test_learner_gives_its_labels_to_a_model_without_draws() -> None:
    X, y, X_pool = X_DIGITS[:60], Y_DIGITS[:60], X_DIGITS[60:200]
    machine = LinearSVC(random_state=0).fit(X, y)
    for strategy in (BALDQuery(random_state=0), MarginQuery(), ICALQuery(20, random_state=0)):
        strategy.set_params(random_state=0)
        learner = ActiveLearner(machine, strategy).fit(X, y)
        expected = strategy.query(machine, X_pool, 5, X_labeled=X, y_labeled=y)
        np.testing.assert_array_equal(learner.query(X_pool, 5), expected)
        np.testing.assert_array_equal(strategy.query(learner, X_pool, 5), expected)


@pytest.mark.parametrize("call", ["predict", "score", "query", "teach"])
def test_unfitted_learner_says_so(call: str) -> None:
    X, y = small_data()
    args = (X,) if call in ("predict", "query") else (X, y)
    with pytest.raises(NotFittedError, match="This ActiveLearner instance is not fitted yet"):
        getattr(nearest(), call)(*args)


@pytest.mark.parametrize("strategy", [5, None, RandomQuery, StandardScaler()])
def test_object_without_query_is_refused_by_name(strategy: Any) -> None:
    X, y = small_data()
    with pytest.raises(TypeError, match=r"^strategy must be an object with a method query\. Got"):
        ActiveLearner(GaussianNB(), strategy).fit(X, y)
    learner = nearest().fit(X, y).set_params(strategy=strategy)
    for call in (lambda: learner.query(X), lambda: learner.teach(X, y)):
        with pytest.raises(TypeError, match="strategy must be"):
            call()


@pytest.mark.parametrize("estimator", ["forest", GaussianNB, RandomQuery()])
def test_object_without_fit_is_refused_by_name(estimator: Any) -> None:
    with pytest.raises(TypeError, match=r"^estimator must be an object with a method fit\. Got"):
        ActiveLearner(estimator, RandomQuery()).fit(*small_data())


# Nothing is changed, nothing is lost.


class InPlace(Recorder):
    """Estimator that overwrites whatever it is fitted on."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "InPlace":
        super().fit(X.copy(), y.copy())
        for given in (X, y, sample_weight):
            given[:] = 7
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "InPlace":
        return self.fit(X, y, sample_weight)


@pytest.mark.parametrize("partial_fit", [False, True])
def test_data_outlive_callers_and_estimators_that_overwrite_them(partial_fit: bool) -> None:
    X, y = small_data()
    weights = np.ones(12)
    learner = ActiveLearner(InPlace(), RandomQuery()).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(X, small_data()[0])
    np.testing.assert_array_equal(y, small_data()[1])
    assert weights.tolist() == [1.0] * 12
    X[:], y[:], weights[:] = 0, 1, 3
    new, labels = small_data(seed=1)
    learner.teach(new, labels, sample_weight=weights, partial_fit=partial_fit)
    np.testing.assert_array_equal(new, small_data(seed=1)[0])
    np.testing.assert_array_equal(labels, small_data()[1])
    assert weights.tolist() == [3.0] * 12
    new[:], labels[:], weights[:] = 0, 1, 5
    whole = np.concatenate([small_data()[0], small_data(seed=1)[0]])
    learner.teach(whole[:1], [0])
    np.testing.assert_array_equal(learner.estimator_.fit_["X"], [*whole, whole[0]])
    np.testing.assert_array_equal(learner.X_labeled_, [*whole, whole[0]])
    np.testing.assert_array_equal(learner.y_labeled_, [*np.arange(24) % 2, 0])
    assert learner.fit_params_["sample_weight"].tolist() == [1.0] * 12 + [3.0] * 12 + [1.0]


def test_rows_in_lists_are_copies() -> None:
    X, y = [[0.0], [1.0]], [0, 1]
    learner = nearest().fit(X, y)
    new = [[5.0]]
    learner.teach(new, [1])
    X[0][0] = new[0][0] = 9.0
    assert learner.X_labeled_ == [[0.0], [1.0], [5.0]]


class Picky(Recorder):
    """Estimator that fails on more than twelve rows."""

    def fit(self, X: Any, y: Any) -> "Picky":
        if len(y) > 12:
            raise RuntimeError("too many rows")
        return super().fit(X, y)

    def partial_fit(self, X: Any, y: Any) -> "Picky":
        self.classes_ = np.array([99])
        raise RuntimeError("no such rows")


@pytest.mark.parametrize("partial_fit", [False, True])
def test_failed_fit_leaves_the_learner_as_it_was(partial_fit: bool) -> None:
    X, y = small_data()
    learner = ActiveLearner(Picky(), RandomQuery()).fit(X, y)
    before = state_of(learner)
    with pytest.raises(RuntimeError, match=r"too many rows|no such rows"):
        learner.teach(X[:1], y[:1], partial_fit=partial_fit)
    with pytest.raises(RuntimeError, match="too many rows"):
        learner.fit(np.concatenate([X, X]), np.concatenate([y, y]))
    after = state_of(learner)
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)
    assert learner.classes_.tolist() == [0, 1]


def test_strategy_called_in_the_form_of_modal_takes_the_fitted_model() -> None:
    X, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(5, random_state=0)
    learner = ActiveLearner(forest, BALDQuery()).fit(X[:50], y[:50])
    indices, utilities = BALDQuery()(learner, X[50:300], 4)
    np.testing.assert_array_equal(indices, learner.query(X[50:300], 4))
    assert utilities.shape == (4,)
