"""imbalanced-learn: refits of its Pipelines resample rows, predictions do not; its ensembles."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import ActiveLearner, BALDQuery, CoreSetQuery, FASSQuery, MarginQuery, simulate
from sklearn_ical.samplers import BootstrapSampler, EnsembleSampler, get_sampler
from sklearn_ical.samplers._base import get_embedding

pytest.importorskip("imblearn")
from imblearn.ensemble import (
    BalancedBaggingClassifier,
    BalancedRandomForestClassifier,
    EasyEnsembleClassifier,
    RUSBoostClassifier,
)
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline as make_resampling_pipeline
from imblearn.under_sampling import RandomUnderSampler

RNG = np.random.default_rng(0)
Y = (np.arange(200) < 16).astype(int)
X = RNG.normal(size=(200, 3)) + Y[:, None]
POOL = RNG.normal(size=(80, 3)) + 0.5


def logistic() -> LogisticRegression:
    return LogisticRegression()


def refits(model: Any, n_draws: int = 10, X: Any = X) -> Any:
    """Return draws of a model that has to be refitted on the labeled rows."""
    return get_sampler(model).with_labeled(X, Y).draw(n_draws, random_state=0)


PIPELINES = {
    "between": make_resampling_pipeline(StandardScaler(), SMOTE(), logistic()),
    "first": make_resampling_pipeline(SMOTE(), logistic()),
    "first of three": make_resampling_pipeline(SMOTE(), StandardScaler(), logistic()),
    "two": make_resampling_pipeline(
        RandomUnderSampler(sampling_strategy=0.2), StandardScaler(), SMOTE(), logistic()
    ),
    "after passthrough": make_resampling_pipeline("passthrough", SMOTE(), logistic()),
    "in the last step": make_pipeline(
        StandardScaler(), make_resampling_pipeline(SMOTE(), logistic())
    ),
    "around a pipeline": make_resampling_pipeline(
        SMOTE(), make_pipeline(StandardScaler(), logistic())
    ),
    "in a search": GridSearchCV(
        make_resampling_pipeline(StandardScaler(), SMOTE(), logistic()), {}, cv=2
    ),
    "around a search": make_resampling_pipeline(
        StandardScaler(), SMOTE(), GridSearchCV(logistic(), {}, cv=2)
    ),
    "in a learner": ActiveLearner(
        make_resampling_pipeline(StandardScaler(), SMOTE(), logistic()), MarginQuery()
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_refits_resample_rows(name: str) -> None:
    model = clone(PIPELINES[name]).fit(X, Y)
    minority = refits(model)(POOL).mean()[:, 1].mean()
    assert minority == pytest.approx(model.predict_proba(POOL)[:, 1].mean(), abs=0.06)
    assert minority > 2 * logistic().fit(X, Y).predict_proba(POOL)[:, 1].mean()


@pytest.mark.parametrize("name", PIPELINES)
def test_queries_skip_the_steps_that_resample(name: str) -> None:
    model = clone(PIPELINES[name]).fit(X, Y)
    proba = model.predict_proba(POOL)
    picks = MarginQuery().query(model, POOL, 3)
    assert picks.tolist() == np.argsort(np.abs(proba[:, 1] - 0.5))[:3].tolist()
    for strategy in (FASSQuery(random_state=0), CoreSetQuery()):
        assert len(strategy.query(model, POOL, 3, X_labeled=X, y_labeled=Y)) == 3


def test_refits_are_those_of_the_steps_from_the_first_that_resamples() -> None:
    model = make_resampling_pipeline(StandardScaler(), SMOTE(), logistic()).fit(X, Y)
    scale = model[0].transform
    rest = make_resampling_pipeline(SMOTE(), logistic())
    expected = BootstrapSampler(rest).fit(scale(X), Y).draw(10, random_state=0)(scale(POOL))
    np.testing.assert_array_equal(refits(model)(POOL).values, expected.values)


@pytest.mark.parametrize("nested", [False, True])
def test_transformers_after_a_resampling_stay_as_fitted(nested: bool) -> None:
    steps = [StandardScaler(), logistic()]
    last = [make_pipeline(*steps)] if nested else steps
    model = make_resampling_pipeline(RandomOverSampler(), *last).fit(X, Y)
    scaler = model[-1][0] if nested else model[1]
    draws = refits(model)
    expected = scaler.transform(POOL)
    scaler.fit(100 * X)  # a later fit does not reach the draws
    for member in draws.members.models:
        inner = member[-1] if nested else member
        np.testing.assert_array_equal(inner[-2].transform(POOL), expected)
        assert inner[-1].coef_.shape == (1, 3)


def test_pipeline_that_is_not_fitted_is_refitted_as_a_whole() -> None:
    model = make_resampling_pipeline(StandardScaler(), SMOTE(), logistic())
    draws = BootstrapSampler(model).fit(X, Y).draw(4, random_state=0)
    assert len({member[0].mean_.tobytes() for member in draws.members.models}) == 4


def test_steps_that_resample_are_seeded_for_each_refit() -> None:
    model = make_resampling_pipeline(SMOTE(random_state=3), logistic()).fit(X, Y)
    draws = refits(model)
    assert len({member[0].random_state for member in draws.members.models}) == 10
    np.testing.assert_array_equal(draws(POOL).values, refits(model)(POOL).values)
    assert model[0].random_state == 3


def test_embedding_skips_the_steps_that_resample() -> None:
    model = make_resampling_pipeline(StandardScaler(), SMOTE(), logistic()).fit(X, Y)
    np.testing.assert_array_equal(get_embedding(model)(POOL), model[0].transform(POOL))


def test_forest_behind_a_resampling_is_drawn_from_as_it_is() -> None:
    forest = RandomForestClassifier(5, random_state=0)
    model = make_resampling_pipeline(StandardScaler(), SMOTE(random_state=0), forest).fit(X, Y)
    samples = get_sampler(model).sample(POOL)
    assert samples.n_draws == 5
    np.testing.assert_allclose(samples.mean(), model.predict_proba(POOL), atol=1e-12)


def test_loop_refits_the_resampling() -> None:
    model = make_resampling_pipeline(StandardScaler(), SMOTE(k_neighbors=2), logistic())
    strategy = BALDQuery(random_state=0)
    result = simulate(
        model, X[:60], Y[:60], strategy, n_initial=20, batch_size=5, n_rounds=1, X_test=X, y_test=Y
    )
    assert result.rounds[-1].n_labeled == 25


@pytest.mark.parametrize(
    "ensemble",
    [
        BalancedRandomForestClassifier(
            5, sampling_strategy="all", replacement=True, bootstrap=False, random_state=0
        ),
        BalancedBaggingClassifier(n_estimators=4, random_state=0),
        EasyEnsembleClassifier(n_estimators=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_members_of_balanced_ensembles_are_draws(ensemble: Any) -> None:
    sampler = get_sampler(ensemble.fit(X, np.array(["no", "yes"])[Y]))
    assert isinstance(sampler, EnsembleSampler)
    samples = sampler.sample(POOL)
    assert samples.n_draws == len(ensemble.estimators_)
    np.testing.assert_allclose(samples.mean(), ensemble.predict_proba(POOL), atol=1e-12)


def test_boosting_on_resampled_rows_is_refitted_on_copies() -> None:
    rows = X + 2 * Y[:, None]
    model = RUSBoostClassifier(n_estimators=3, random_state=0).fit(rows, Y)
    copies = BootstrapSampler(model, method="copies").fit(rows, Y).draw(5, random_state=0)
    drawn = refits(model, 5, rows)(POOL)
    np.testing.assert_array_equal(drawn.values, copies(POOL).values)
