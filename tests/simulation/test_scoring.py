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
    # Area under the curve is for two classes unless told otherwise.
    with pytest.warns(ScoreFailedWarning, match="The score 'roc_auc' is not defined here"):
        result = run(data, scoring=["accuracy", "roc_auc"], n_rounds=1)
    assert np.isnan(result.scores["roc_auc"]).all()
    assert np.isfinite(result.scores["accuracy"]).all()


def test_log_loss_is_defined_where_the_test_rows_lack_a_class(data):
    few = data | {"X_test": data["X_test"][:2], "y_test": np.array(["a", "b"])}
    result = run(few, scoring="neg_log_loss", n_rounds=0)
    proba = next(models(result, data)).predict_proba(few["X_test"])
    expected = np.log(np.clip([proba[0, 0], proba[1, 1]], np.finfo(float).eps, 1)).mean()
    assert result.scores["neg_log_loss"][0] == pytest.approx(expected)
    one = data | {"y": np.full(80, "a"), "y_test": np.full(40, "a")}
    assert run(one, scoring="neg_log_loss", n_rounds=0).scores["neg_log_loss"][0] == 0


@pytest.mark.parametrize(
    ("scoring", "error", "words"),
    [
        (lambda model, X, y: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda model, X, y: "x", ValueError, "could not convert"),
        (accuracy_score, TypeError, "argument"),
    ],
)
def test_function_that_is_wrong_in_any_case_is_not_hidden(data, scoring, error, words):
    with pytest.raises(error, match=words):
        run(data, scoring=scoring, n_rounds=0)


def test_metric_that_the_model_cannot_have_is_not_hidden(data):
    with pytest.raises(AttributeError, match="predict_proba"):
        run(data, LinearSVC(), scoring="neg_log_loss")


def test_names_of_other_columns_are_refused(data):
    with pytest.raises(ValueError, match=r"scoring must not use names .* Got \['cost'\]"):
        run(data, scoring={"cost": "accuracy"})


def test_test_rows_have_their_columns_by_name(data):
    pandas = pytest.importorskip("pandas")
    X, X_test = (pandas.DataFrame(data[name], columns=list("pqr")) for name in ("X", "X_test"))
    expected = run(data | {"X": X, "X_test": X_test})
    assert run(data | {"X": X, "X_test": X_test[["r", "p", "q"]]}) == expected
    with pytest.raises(ValueError, match=r"X_test must have the columns of X. Got \['r'\] in only"):
        run(data | {"X": X, "X_test": X_test[["p", "q"]]})


def test_test_labels_that_cannot_be_are_refused(data):
    with pytest.raises(ValueError, match="y_test must have no missing labels"):
        run(data | {"y_test": [None, *data["y_test"][1:]]})
    with pytest.raises(TypeError, match="y_test must hold labels of the kind in y, texts or num"):
        run(data | {"y_test": np.zeros(40)})


def test_cv_without_a_seed_is_seeded_by_the_run(data, tmp_path):
    settings = data | {"X_test": None, "y_test": None}
    splits = KFold(3, shuffle=True)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    result = run(settings, cv=splits, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert run(settings, cv=splits) == result
    assert splits.random_state is None
    content = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(content[: len(content) // 2])
    assert run(settings, cv=KFold(3, shuffle=True), checkpoint=tmp_path / "c") == result
    assert run(settings, cv=KFold(3, shuffle=True, random_state=5)) != result


def test_cv_leaves_out_folds_where_a_metric_is_not_defined(data):
    settings = data | {"X_test": None, "y_test": None}
    with pytest.warns(ScoreFailedWarning, match="roc_auc_ovr"):
        result = run(
            settings, cv=KFold(6), n_initial=12, scoring=["accuracy", "roc_auc_ovr"], n_rounds=0
        )
    assert result.scores["accuracy"][0] > 0.2


def test_cv_that_is_not_defined_is_nan_with_a_warning(data):
    settings = data | {"X_test": None, "y_test": None}
    with pytest.warns(ScoreFailedWarning, match="'cross-validation' is not defined here"):
        result = run(settings, cv=5, n_initial=3, scoring=["accuracy"], n_rounds=1, batch_size=40)
    assert math.isnan(result.scores["accuracy"][0])
    assert result.scores["accuracy"][1] > 0.3
