"""XGBoost: labels other than 0, 1, ..., which it does not accept, and early stopping."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import ActiveLearner, BALDQuery, FASSQuery, MarginQuery, simulate
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, get_sampler

xgboost = pytest.importorskip("xgboost")

X = np.random.default_rng(0).normal(size=(60, 4))
CODES = np.digitize(X[:, 0], [-0.4, 0.4])
OUTER = CODES != 1
BINARY = (CODES[OUTER] == 2).astype(int)
STRATEGY = BALDQuery(random_state=0)


def model(name: str = "XGBClassifier", **params: Any) -> Any:
    quiet = {"n_estimators": 5, "n_jobs": 1, "random_state": 0, "max_depth": 2}
    return getattr(xgboost, name)(**{**quiet, **params})


LABELS = {"codes": np.array([0, 1, 2]), "text": np.array(["a", "b", "c"]), "signs": [-1, 0, 1]}


@pytest.mark.parametrize("labels", LABELS)
def test_refits_take_any_labels_and_keep_them(labels: str) -> None:
    y = np.asarray(LABELS[labels])[CODES][OUTER]
    found = BootstrapSampler(model(), n_draws=3).fit(X[OUTER], y).sample(X, random_state=0)
    plain = BootstrapSampler(model(), n_draws=3).fit(X[OUTER], BINARY).sample(X, random_state=0)
    assert found.classes.tolist() == np.unique(y).tolist()
    np.testing.assert_array_equal(found.values, plain.values)


@pytest.mark.parametrize("known", [[0, 2], [0, 1], [1, 2]])
def test_columns_follow_the_classes_of_the_fitted_model(known: list[int]) -> None:
    fitted, rows = model().fit(X, CODES), np.isin(CODES, known)
    sampler = BootstrapSampler(fitted, n_draws=3).fit(X[rows], CODES[rows])
    samples = sampler.sample(X, random_state=0)
    assert samples.classes.tolist() == [0, 1, 2]
    unknown = np.setdiff1d([0, 1, 2], known)[0]
    assert (samples.values[:, :, unknown] == 0).all()
    assert (samples.mean()[rows].argmax(axis=1) == CODES[rows]).mean() > 0.9


WRAPPERS = {
    "alone": (model(), ""),
    "Pipeline": (make_pipeline(StandardScaler(), model()), "xgbclassifier__"),
    "search": (GridSearchCV(model(), {"max_depth": [2]}, cv=2), ""),
    "forest": (model("XGBRFClassifier", subsample=0.5), ""),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_learners_predict_labels_and_choose_as_with_codes(wrapper: str) -> None:
    estimator, prefix = WRAPPERS[wrapper]
    y = np.array(["no", "yes"])[BINARY]
    weights = {f"{prefix}sample_weight": np.linspace(0.1, 1, OUTER.sum())}
    for strategy in (STRATEGY, MarginQuery(), FASSQuery()):
        named = ActiveLearner(estimator, strategy).fit(X[OUTER], y, **weights)
        plain = ActiveLearner(estimator, strategy).fit(X[OUTER], BINARY, **weights)
        assert named.query(X, 4).tolist() == plain.query(X, 4).tolist()
    assert named.classes_.tolist() == ["no", "yes"]
    assert named.predict(X).tolist() == np.array(["no", "yes"])[plain.predict(X)].tolist()
    np.testing.assert_array_equal(named.predict_proba(X), plain.predict_proba(X))
    assert named.score(X[OUTER], y) == plain.score(X[OUTER], BINARY)
    assert named.n_features_in_ == 4
    assert get_sampler(named).draw(2, random_state=0).classes.tolist() == ["no", "yes"]
    again = pickle.loads(pickle.dumps(named))
    assert again.query(X, 4).tolist() == named.query(X, 4).tolist()


def test_a_simulation_may_start_without_some_class() -> None:
    start = np.flatnonzero(OUTER)[:10]
    result = simulate(
        model(), X, CODES, STRATEGY, initial=start, batch_size=5, n_rounds=3, random_state=0,
        X_test=X, y_test=CODES, scoring=["accuracy", "neg_log_loss"],
    )  # fmt: skip
    assert set(result.labels[:10].tolist()) == {0, 2}
    by_hand = model().fit(X[start], CODES[start] // 2)
    accuracy = (np.array([0, 2])[by_hand.predict(X)] == CODES).mean()
    assert result.scores["accuracy"][0] == pytest.approx(accuracy)
    assert np.isfinite(result.scores["accuracy"]).all()
    by_cv = simulate(
        model(), X, CODES, "random", initial=start, n_rounds=0, random_state=0, cv=2
    )  # fmt: skip
    assert np.isfinite(by_cv.scores["score"][0])


def test_rows_to_validate_on_get_the_same_codes() -> None:
    y = np.array(["no", "yes"])[BINARY]
    rows = X[OUTER]
    stopped = model(early_stopping_rounds=2, n_estimators=20)
    given = {"eval_set": [(rows[:20], y[:20])], "verbose": False}
    found = BootstrapSampler(stopped, n_draws=3).fit(rows, y, **given)
    codes = given | {"eval_set": [(rows[:20], BINARY[:20])]}
    plain = BootstrapSampler(stopped, n_draws=3).fit(rows, BINARY, **codes)
    values = [each.sample(X, random_state=0).values for each in (found, plain)]
    np.testing.assert_array_equal(*values)
    learner = ActiveLearner(stopped, STRATEGY).fit(rows, y, **given)
    assert len(learner.query(X, 3)) == 3


def test_early_stopping_needs_rows_to_validate_on() -> None:
    given = {"eval_set": [(X[:20], CODES[:20])], "verbose": False}
    fitted = model(early_stopping_rounds=2).fit(X, CODES, **given)
    message = (
        r"With early_stopping_rounds=2, fit needs rows to validate on: pass them as in "
        r"fit_params=\{'eval_set': \[\(X_valid, y_valid\)\]\}, or set early_stopping_rounds=None\.$"
    )
    labeled = {"X_labeled": X, "y_labeled": CODES}
    with pytest.raises(UnsupportedModelError, match=message):
        STRATEGY.query(fitted, X, **labeled)
    assert len(STRATEGY.query(fitted, X, 3, fit_params=given, **labeled)) == 3
    without = clone(fitted).set_params(early_stopping_rounds=None).fit(X, CODES)
    assert len(STRATEGY.query(without, X, 3, **labeled)) == 3


def test_continuous_targets_are_no_labels() -> None:
    with pytest.raises(ValueError, match="Invalid classes"):
        ActiveLearner(model(), STRATEGY).fit(X, X[:, 0])


def test_an_error_of_other_reasons_is_that_of_the_labels_given() -> None:
    with pytest.raises(ValueError, match=r"Invalid classes.*\['no' 'yes'\]"):
        ActiveLearner(model(), STRATEGY).fit(X[OUTER][:5], np.array(["no", "yes"] * 2 + ["no"]),
            sample_weight=None, xgb_model="missing")  # fmt: skip
