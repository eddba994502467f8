"""Tests of the scores of a round, against scikit-learn's scorers and cross_validate."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, log_loss, make_scorer, roc_auc_score
from sklearn.model_selection import KFold, cross_validate
from sklearn.svm import LinearSVC

from sklearn_ical import RandomQuery, simulate
from sklearn_ical._random import stream_seed
from sklearn_ical.exceptions import ScoreFailedWarning


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(3, size=120)]
    X = rng.normal(size=(120, 3)) + (y == "a")[:, None] - 2 * (y == "c")[:, None]
    return {"X": X[:80], "y": y[:80], "X_test": X[80:], "y_test": y[80:]}


def run(data, estimator=None, **settings):
    defaults = {
        "n_initial": 12, "batch_size": 6, "n_rounds": 2, "random_state": 0,
        "strategy": RandomQuery(),
    }  # fmt: skip
    estimator = RandomForestClassifier(8) if estimator is None else estimator
    return simulate(estimator, **(defaults | data | settings))


def models(result, data, estimator=None):
    """Fit the model of each round again."""
    for r, n in enumerate(result.n_labeled):
        rows = result.positions[:n]
        model = clone(RandomForestClassifier(8) if estimator is None else estimator)
        yield model.set_params(random_state=stream_seed(0, r)).fit(data["X"][rows], data["y"][rows])


def first_errors(model, X, y):
    return {"errors": float(np.sum(model.predict(X) != y)), "rows": len(X)}


@pytest.mark.parametrize(
    ("scoring", "names"),
    [
        (None, ["score"]),
        ("accuracy", ["accuracy"]),
        (["accuracy", "neg_log_loss"], ["accuracy", "neg_log_loss"]),
        (("f1_macro",), ["f1_macro"]),
        ({"balanced_accuracy", "accuracy"}, ["accuracy", "balanced_accuracy"]),
        ({"mine": make_scorer(accuracy_score), "auc": "roc_auc_ovr"}, ["mine", "auc"]),
        (make_scorer(accuracy_score), ["score"]),
        (first_errors, ["errors", "rows"]),
        (lambda model, X, y: model.score(X, y), ["score"]),
    ],
)
def test_scoring_takes_what_cross_validate_takes(data, scoring, names):
    result = run(data, scoring=scoring)
    X, y = data["X_test"], data["y_test"]
    expected = {
        "score": lambda m: m.score(X, y),
        "accuracy": lambda m: m.score(X, y),
        "mine": lambda m: m.score(X, y),
        "neg_log_loss": lambda m: -log_loss(y, m.predict_proba(X)),
        "auc": lambda m: roc_auc_score(y, m.predict_proba(X), multi_class="ovr"),
        "errors": lambda m: len(y) * (1 - m.score(X, y)),
        "rows": lambda m: len(y),
    }
    assert list(result.scores) == names
    for name in set(names) & set(expected):
        got = [expected[name](model) for model in models(result, data)]
        np.testing.assert_allclose(result.scores[name], got, rtol=1e-12)


def test_cv_scores_are_those_of_cross_validate(data):
    settings = data | {"X_test": None, "y_test": None}
    splits = KFold(3, shuffle=True, random_state=1)
    result = run(settings, cv=splits, scoring=["accuracy", "f1_macro"])
    for r, model in enumerate(models(result, data)):
        rows = result.positions[: result.n_labeled[r]]
        found = cross_validate(
            clone(model), data["X"][rows], data["y"][rows], cv=splits,
            scoring=["accuracy", "f1_macro"],
        )  # fmt: skip
        for name in ("accuracy", "f1_macro"):
            assert result.rounds[r].scores[name] == pytest.approx(found[f"test_{name}"].mean())
    single = run(settings, cv=3)
    assert list(single.scores) == ["score"]
    assert np.isfinite(single.scores["score"]).all()


def test_without_test_rows_there_are_no_scores(data):
    result = run({"X": data["X"], "y": data["y"]})
    assert result.scores == {}
    assert len(result.rounds) == 3


def test_classes_never_seen_have_probability_zero(data):
    rows = np.flatnonzero(data["y"] != "b")[:10]
    result = run(data, initial=rows, n_rounds=0, scoring=["neg_log_loss", "roc_auc_ovr"])
    model = next(models(result, data))
    proba = np.insert(model.predict_proba(data["X_test"]), 1, 0.0, axis=1)
    expected = -log_loss(data["y_test"], proba, labels=["a", "b", "c"])
    assert result.scores["neg_log_loss"][0] == pytest.approx(expected)
    auc = roc_auc_score(data["y_test"], proba, multi_class="ovr")
    assert result.scores["roc_auc_ovr"][0] == pytest.approx(auc)


def test_score_that_is_not_defined_is_nan_with_a_warning(data):
    with pytest.warns(ScoreFailedWarning, match="The score 'neg_log_loss' is not defined here"):
        result = run(data, LinearSVC(), scoring=["accuracy", "neg_log_loss"], n_rounds=1)
    assert np.isnan(result.scores["neg_log_loss"]).all()
    assert np.isfinite(result.scores["accuracy"]).all()


def test_cv_that_is_not_defined_is_nan_with_a_warning(data):
    settings = data | {"X_test": None, "y_test": None}
    with pytest.warns(ScoreFailedWarning, match="'cross-validation' is not defined here"):
        result = run(settings, cv=5, n_initial=3, scoring=["accuracy"], n_rounds=1, batch_size=40)
    assert math.isnan(result.scores["accuracy"][0])
    assert result.scores["accuracy"][1] > 0.3


def test_function_that_fails_is_nan_with_a_warning(data):
    def fails(model, X, y):
        raise RuntimeError("no score today")

    with pytest.warns(ScoreFailedWarning, match="no score today"):
        result = run(data, scoring=fails, n_rounds=0)
    assert math.isnan(result.scores["score"][0])
