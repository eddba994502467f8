"""Labels in one column, (n_rows, 1): as those of one axis, everywhere that labels enter."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

from sklearn_ical import ActiveLearner, BALDQuery, compare_strategies, simulate
from sklearn_ical._labels import label_array, one_column
from sklearn_ical.cli._tables import read_dataset
from sklearn_ical.samplers import BootstrapSampler

RNG = np.random.default_rng(0)
X, X_TEST = RNG.normal(size=(60, 3)), RNG.normal(size=(20, 3))
# Few rows are of one class, so that a balanced start differs from a random one.
Y = np.where(X[:, 0] > 1.2, "rare", "common")
Y_TEST = np.where(X_TEST[:, 0] > 1.2, "rare", "common")
TARGETS = X[:, 0] - X[:, 1]

COLUMNS: dict[str, Callable[[Any], Any]] = {
    "array": lambda y: np.asarray(y)[:, None],
    "pandas": lambda y: pd.DataFrame({"label": y}),
    "polars": lambda y: pl.DataFrame({"label": y}),
    "lists": lambda y: np.asarray(y)[:, None].tolist(),
}


@pytest.mark.parametrize("form", COLUMNS)
def test_simulations_equal_those_of_labels_of_one_axis(form: str) -> None:
    def run(column: Callable[[Any], Any]) -> Any:
        return simulate(
            RandomForestClassifier(5), X, column(Y), "margin", n_initial=6, batch_size=3,
            n_rounds=2, X_test=X_TEST, y_test=column(Y_TEST), random_state=0,
        )  # fmt: skip

    plain, found = run(np.asarray), run(COLUMNS[form])
    assert list(found.labels) == list(plain.labels)
    np.testing.assert_array_equal(found.positions, plain.positions)
    np.testing.assert_array_equal(found.scores["score"], plain.scores["score"])
    assert sorted(found.labels[:6]) == ["common"] * 3 + ["rare"] * 3


def test_comparisons_start_balanced() -> None:
    given = {"n_initial": 4, "n_rounds": 0, "cv": 2, "seeds": [3]}
    result = compare_strategies(GaussianNB(), X, Y[:, None], ["random"], **given)
    assert sorted(result.results["random"][3].labels) == ["common"] * 2 + ["rare"] * 2


def test_answers_of_an_oracle_are_those_of_one_value() -> None:
    given = {"n_rounds": 2, "random_state": 0}
    found = simulate(GaussianNB(), X, None, "random", oracle=lambda row: [Y[row]], **given)
    plain = simulate(GaussianNB(), X, None, "random", oracle=lambda row: Y[row], **given)
    assert list(found.labels) == list(plain.labels)
    mixed = simulate(GaussianNB(), X, Y[:, None], "random", oracle=lambda row: [Y[row]], **given)
    assert set(mixed.labels) <= {"common", "rare"}


@pytest.mark.parametrize("form", COLUMNS)
def test_learners_fit_and_teach_without_a_warning(form: str) -> None:
    column = COLUMNS[form]
    learner = ActiveLearner(RandomForestClassifier(5, random_state=0), "margin")
    learner.fit(X[:50], column(Y[:50])).teach(X[50:], column(Y[50:]))
    plain = ActiveLearner(RandomForestClassifier(5, random_state=0), "margin").fit(X, Y)
    with pytest.warns(DataConversionWarning, match="ravel"):  # as scikit-learn asks of estimators
        ActiveLearner(GaussianNB(), "margin").fit(X, column(Y))
    assert np.asarray(learner.y_labeled_).tolist() == Y.tolist()
    np.testing.assert_array_equal(learner.predict_proba(X_TEST), plain.predict_proba(X_TEST))
    learner.teach(X[:1], Y[:1].tolist())
    assert len(learner.y_labeled_) == 61


@pytest.mark.parametrize("form", COLUMNS)
@pytest.mark.parametrize("labels", ["classes", "targets"])
def test_refits_get_one_axis(form: str, labels: str) -> None:
    model = GaussianNB() if labels == "classes" else RandomForestRegressor(2)
    y = Y if labels == "classes" else TARGETS
    found = BootstrapSampler(model, n_draws=2).fit(X, COLUMNS[form](y))
    plain = BootstrapSampler(model, n_draws=2).fit(X, y)
    values = [each.sample(X_TEST, random_state=0).values for each in (found, plain)]
    np.testing.assert_array_equal(*values)


def test_queries_take_labeled_rows_in_a_column() -> None:
    model = GaussianNB().fit(X, Y)
    picks = [
        BALDQuery(random_state=0).query(model, X_TEST, 3, X_labeled=X, y_labeled=y).tolist()
        for y in (Y, *(column(Y) for column in COLUMNS.values()))
    ]
    assert picks == picks[:1] * 5


def test_a_file_of_arrays_may_hold_a_column(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", X=X, y=Y[:, None])
    assert read_dataset(str(tmp_path / "data.npz"), None).y.tolist() == Y.tolist()


def test_models_of_several_outputs_keep_a_column() -> None:
    model = MultiOutputRegressor(DecisionTreeRegressor())
    result = simulate(model, X, TARGETS[:, None], "random", n_rounds=1, random_state=0)
    assert result.labels[0] == [TARGETS[result.positions[0]]]
    oracle = {"oracle": lambda row: [TARGETS[row]], "n_rounds": 1}
    assert len(simulate(model, X, None, "random", **oracle).labels) == 11
    learner = ActiveLearner(model, "random").fit(X, TARGETS[:, None])
    assert learner.teach(X[:2], TARGETS[:2, None]).y_labeled_.shape == (62, 1)
    sampler = BootstrapSampler(model, n_draws=2).fit(X, TARGETS[:, None])
    assert sampler.sample(X_TEST, random_state=0).values.shape == (20, 2)


def test_nets_for_regression_keep_a_column() -> None:
    torch, skorch = pytest.importorskip("torch"), pytest.importorskip("skorch")
    net = skorch.NeuralNetRegressor(
        torch.nn.Linear(3, 1), max_epochs=2, verbose=0, train_split=None, lr=0.01
    )
    rows, targets = X.astype(np.float32), TARGETS.astype(np.float32)[:, None]
    result = simulate(net, rows, targets, "random", n_rounds=1, random_state=0)
    assert result.n_labeled.tolist() == [10, 11]


def test_other_labels_stay_as_they_are() -> None:
    for labels in (Y, TARGETS, np.zeros((3, 2)), np.zeros((3, 1, 1)), ["a"], [], [[1, 2]], (1,)):
        assert one_column(labels) is labels
    assert label_array([[1], [2]], "y", "f").tolist() == [1, 2]
    assert label_array(np.zeros((2, 1)), "y", "f", ravel=False).shape == (2, 1)
