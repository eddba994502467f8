"""Pipelines whose steps have nothing to fit, as embedding steps often do not."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import (
    ActiveLearner,
    BALDQuery,
    CoreSetQuery,
    FASSQuery,
    MarginQuery,
    MaxEntropyQuery,
)
from sklearn_ical.samplers import BootstrapSampler, get_sampler
from sklearn_ical.samplers._base import get_embedding, get_mean
from sklearn_ical.samplers._models import is_fitted

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(40, 4)), RNG.normal(size=(30, 4))
Y = (X[:, 0] > 0).astype(int)


class Embedding(TransformerMixin, BaseEstimator):
    """A step whose `fit` leaves nothing behind."""

    def fit(self, X: Any, y: Any = None) -> "Embedding":
        return self

    def transform(self, X: Any) -> Any:
        return np.tanh(X[:, :2])


class Duck:
    """The same, without scikit-learn's base class and so without tags."""

    def fit(self, X: Any, y: Any = None) -> "Duck":
        return self

    def transform(self, X: Any) -> Any:
        return np.tanh(X[:, :2])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


def union() -> FeatureUnion:
    return FeatureUnion([("a", Embedding()), ("b", StandardScaler())])


LOGISTIC = LogisticRegression()
MODELS = {
    "last before the model": make_pipeline(StandardScaler(), Embedding(), LOGISTIC),
    "the only one": make_pipeline(Embedding(), LOGISTIC),
    "without tags": make_pipeline(Duck(), LOGISTIC),
    "before passthrough": make_pipeline(Embedding(), "passthrough", LOGISTIC),
    "before None": Pipeline([("a", Embedding()), ("b", None), ("c", LOGISTIC)]),
    "in a union": make_pipeline(StandardScaler(), union(), LOGISTIC),
    "in the last step": make_pipeline(StandardScaler(), make_pipeline(Embedding(), LOGISTIC)),
    "in a search": GridSearchCV(make_pipeline(Embedding(), LOGISTIC), {}, cv=2),
    "before a search": make_pipeline(Embedding(), GridSearchCV(LOGISTIC, {}, cv=2)),
    "in a learner": ActiveLearner(make_pipeline(Embedding(), LOGISTIC), "random"),
}


def features(model: Any) -> Any:
    """Return what the last of all steps gets of the pool, step by step."""
    model = getattr(model, "estimator_", model)
    model = getattr(model, "best_estimator_", model)
    rows = POOL
    while isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            rows = rows if step in (None, "passthrough") else step.transform(rows)
        model = model.steps[-1][1]
    return rows


@pytest.mark.parametrize("name", MODELS)
def test_steps_run_as_predictions_run_them(name: str) -> None:
    model = clone(MODELS[name]).fit(X, Y)
    np.testing.assert_array_equal(get_embedding(model)(POOL), features(model))
    core = CoreSetQuery().query(model, POOL, 4, X_labeled=X, y_labeled=Y)
    expected = CoreSetQuery().select(
        None, 4, X_pool=POOL, X_labeled=X, y_labeled=Y,
        features=features(model), labeled_features=get_embedding(model)(X),
    )  # fmt: skip
    assert core.tolist() == expected.tolist()
    proba = model.predict_proba(POOL)
    assert MarginQuery().query(model, POOL)[0] == np.argmin(np.abs(proba[:, 1] - 0.5))
    assert len(FASSQuery(random_state=0).query(model, POOL, 4)) == 4


@pytest.mark.parametrize("name", MODELS)
def test_refits_and_forests_read_the_rows_after_such_steps(name: str) -> None:
    model = clone(MODELS[name]).fit(X, Y)
    sampler = get_sampler(model).with_labeled(X, Y)
    mean = sampler.draw(10, random_state=0)(POOL).mean()
    assert np.abs(mean - model.predict_proba(POOL)).mean() < 0.1


@pytest.mark.parametrize("step", [Embedding(), Duck(), union(), make_pipeline(Embedding())])
def test_trees_behind_such_a_step_are_the_draws(step: Any) -> None:
    forest = RandomForestClassifier(5, random_state=0)
    model = make_pipeline(StandardScaler(), step, forest).fit(X, Y)
    rows = model[0].transform(POOL)
    rows = (step.steps[0][1] if isinstance(step, Pipeline) else step).transform(rows)
    draws = get_sampler(model).draw()
    np.testing.assert_allclose(draws(POOL).mean(), forest.predict_proba(rows), atol=1e-12)
    copy = pickle.loads(pickle.dumps(draws))
    np.testing.assert_array_equal(copy(POOL).values, draws(POOL).values)
    assert len(BALDQuery().query(model, POOL, 3)) == 3


def test_regressor_behind_such_a_step_states_its_deviation() -> None:
    model = make_pipeline(Embedding(), BayesianRidge()).fit(X, X[:, 0])
    std = model[-1].predict(Embedding().transform(POOL), return_std=True)[1]
    np.testing.assert_allclose(get_mean(model)(POOL).noise_variance[:, 0], std**2)
    assert MaxEntropyQuery().query(model, POOL)[0] == np.argmax(std)


@pytest.mark.parametrize("step", [Embedding(), Duck(), StandardScaler()])
def test_pipeline_that_is_not_fitted_raises_before_any_work(step: Any) -> None:
    model = make_pipeline(step, RandomForestClassifier(2))
    for strategy in (BALDQuery(), CoreSetQuery(), FASSQuery()):
        with pytest.raises(NotFittedError, match=r"is not fitted yet\. Call fit on the labeled"):
            strategy.query(model, POOL, 3, X_labeled=X, y_labeled=Y)


def test_first_steps_of_a_model_can_be_given_as_features() -> None:
    model = clone(MODELS["last before the model"]).fit(X, Y)
    picks = CoreSetQuery(features=model[:-1], random_state=0).query(None, POOL, 4)
    assert picks.tolist() == CoreSetQuery(random_state=0).query(model, POOL, 4).tolist()


def test_step_that_was_not_fitted_is_named() -> None:
    forest = RandomForestClassifier(2).fit(X, Y)
    draws = get_sampler(make_pipeline(Embedding(), StandardScaler(), forest)).draw()
    with pytest.raises(NotFittedError, match=r"^StandardScaler is not fitted yet\. Call fit"):
        draws(POOL)


class Fixed(ClassifierMixin, BaseEstimator):
    """A classifier that knows its classes and has nothing to fit."""

    def __init__(self, slope: float = 1.0) -> None:
        self.slope = slope

    @property
    def classes_(self) -> np.ndarray:
        return np.array([0, 1])

    def fit(self, X: Any, y: Any) -> "Fixed":
        return self

    def predict_proba(self, X: Any) -> Any:
        p = 1 / (1 + np.exp(-self.slope * X[:, 0]))
        return np.column_stack([1 - p, p])


def test_classifiers_with_nothing_to_fit_are_members() -> None:
    members = [Fixed(1.0), Fixed(3.0)]
    samples = get_sampler(members).sample(POOL)
    np.testing.assert_allclose(samples.values[:, 1], members[1].predict_proba(POOL))
    for around in (make_pipeline(Duck(), Fixed()), FrozenEstimator(Fixed())):
        assert is_fitted(around)
    assert not is_fitted(make_pipeline(Embedding(), LogisticRegression()))


def test_pipeline_that_is_not_fitted_is_refitted_with_its_steps() -> None:
    sampler = BootstrapSampler(make_pipeline(StandardScaler(), Embedding(), LOGISTIC)).fit(X, Y)
    members = sampler.draw(3, random_state=0).members.models
    assert len({model[0].mean_.tobytes() for model in members}) == 3
