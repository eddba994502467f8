"""CatBoost: models that are not fitted, categories in the constructor or in `fit`."""

from typing import Any

import numpy as np
import pytest

from sklearn_ical import ActiveLearner, BALDQuery, simulate
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler

catboost = pytest.importorskip("catboost")
pandas = pytest.importorskip("pandas")

X = np.random.default_rng(0).normal(size=(60, 4))
FRAME = pandas.DataFrame(X, columns=list("abcd"))
FRAME["c"] = np.where(X[:, 2] > 0, "u", "v")
# The label depends on the category alone.
Y = (FRAME["c"] == "u").to_numpy().astype(int)
STRATEGY = BALDQuery(random_state=0)


def model(name: str = "CatBoostClassifier", **params: Any) -> Any:
    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1, "depth": 2}
    return getattr(catboost, name)(**{"iterations": 5, **quiet, **params})


@pytest.mark.parametrize("name", ["CatBoostClassifier", "CatBoostRegressor"])
def test_models_that_are_not_fitted_can_be_refitted(name: str) -> None:
    y = Y if name == "CatBoostClassifier" else X[:, 0]
    draws = BootstrapSampler(model(name), n_draws=3).fit(X, y).draw(random_state=0)
    samples = draws(X)
    assert samples.n_draws == 3
    assert np.ptp(samples.values, axis=1).max() > 0.01
    fitted = BootstrapSampler(model(name).fit(X, y), n_draws=3).fit(X, y)
    np.testing.assert_array_equal(fitted.sample(X, random_state=0).values, samples.values)


CATEGORIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"cat_features": ["c"]}, {}),
    ({"cat_features": [2]}, {}),
    ({}, {"cat_features": ["c"]}),
    ({}, {"cat_features": np.array([2])}),
]


@pytest.mark.parametrize(("own", "given"), CATEGORIES, ids=str)
def test_categories_reach_refits(own: dict[str, Any], given: dict[str, Any]) -> None:
    sampler = BootstrapSampler(model(**own), n_draws=3).fit(FRAME, Y, **given)
    mean = sampler.sample(FRAME, random_state=0).mean()
    np.testing.assert_array_equal(mean.argmax(axis=1), Y)


@pytest.mark.parametrize(("own", "given"), CATEGORIES[::2], ids=str)
def test_categories_reach_learners_and_simulations(
    own: dict[str, Any], given: dict[str, Any]
) -> None:
    fitted = model(**own).fit(FRAME, Y, **given)
    labeled = {"X_labeled": FRAME, "y_labeled": Y, "fit_params": given}
    picks = STRATEGY.query(fitted, FRAME, 3, **labeled)
    learner = ActiveLearner(model(**own), STRATEGY).fit(FRAME, Y, **given)
    np.testing.assert_array_equal(learner.query(FRAME, 3), picks)
    result = simulate(
        model(**own), FRAME, Y, "random", n_rounds=1, cv=2, fit_params=given, random_state=0
    )
    assert result.scores["score"].tolist() == [1.0, 1.0]


def test_refits_that_lack_what_fit_was_given_say_so() -> None:
    fitted = model().fit(FRAME, Y, cat_features=["c"])
    message = "'[uv]' to float.*If fit needs more than X and y, pass it as fit_params"
    with pytest.raises(UnsupportedModelError, match=message):
        STRATEGY.query(fitted, FRAME, X_labeled=FRAME, y_labeled=Y)


def test_the_best_of_validated_models_needs_rows_to_validate_on() -> None:
    fitted = model(use_best_model=True).fit(X, Y, eval_set=(X[:20], Y[:20]))
    message = r"With use_best_model=True, fit needs rows.*eval_set.*or set use_best_model=None"
    with pytest.raises(UnsupportedModelError, match=message):
        STRATEGY.query(fitted, X, X_labeled=X, y_labeled=Y)
    params = {"eval_set": (X[:20], Y[:20])}
    assert len(STRATEGY.query(fitted, X, 2, X_labeled=X, y_labeled=Y, fit_params=params)) == 2
