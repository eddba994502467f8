"""Tests of the active-learning loop against loops written out by hand and closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklearn_ical
from sklearn_ical._random import stream_seed
from sklearn_ical.simulation import (
    Round,
    balanced_rows,
    learning_curve,
    learning_curves,
    scores,
    summarize,
)


class SmallestFirst(BaseEstimator):
    """Picks the pool rows with the smallest first feature, and keeps what it was given."""

    calls: list = []  # noqa: RUF012  (clones must report to the test, too)

    def __init__(self, random_state=None):
        self.random_state = random_state

    def query(self, model, X_pool, batch_size=1):
        SmallestFirst.calls.append((self.random_state, model, X_pool))
        first = X_pool[:, [0]].toarray() if sparse.issparse(X_pool) else np.asarray(X_pool)[:, :1]
        return np.argsort(first[:, 0])[:batch_size]


@pytest.fixture
def calls(monkeypatch):
    monkeypatch.setattr(SmallestFirst, "calls", [])
    return SmallestFirst.calls


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(3, size=90)]
    X = rng.normal(size=(90, 4)) + (y == "a")[:, None] - 2 * (y == "c")[:, None]
    return X[:60], y[:60], X[60:], y[60:]


def without_times(curve):
    return [replace(r, fit_seconds=0, query_seconds=0) for r in curve]


def test_learning_curve_matches_loop_by_hand(data, calls):
    X, y, X_test, y_test = data
    initial = balanced_rows(y, 5, 0).tolist()  # one row of each class at least
    forest = RandomForestClassifier(5)
    curve = list(
        learning_curve(
            forest, *data, SmallestFirst(), initial=initial, batch_size=4, n_rounds=3,
            random_state=11,
        )
    )  # fmt: skip
    by_value = [row for row in np.argsort(X[:, 0]) if row not in initial]
    expected_batches = [initial, by_value[:4], by_value[4:8], by_value[8:12]]
    labeled = []
    for r, batch in enumerate(expected_batches):
        labeled += list(batch)
        root = stream_seed(11, r)
        model = clone(forest).set_params(random_state=root).fit(X[labeled], y[labeled])
        assert curve[r].bought == tuple(batch)
        assert curve[r].n_labeled == len(labeled)
        assert curve[r].accuracy == model.score(X_test, y_test)
        assert curve[r].nll == pytest.approx(log_loss(y_test, model.predict_proba(X_test)))
    assert len(curve) == 4
    assert [len(X_pool) for _, _, X_pool in calls] == [55, 51, 47]
    assert [root for root, _, _ in calls] == [stream_seed(11, r) for r in (1, 2, 3)]


def test_learning_curve_models_are_new_and_arguments_unchanged(data, calls):
    forest, strategy = RandomForestClassifier(3), SmallestFirst()
    curve = learning_curve(
        forest, *data, strategy, initial=range(9), batch_size=2, n_rounds=2, random_state=0
    )
    assert all(r.fit_seconds > 0 for r in curve)
    (_, first, _), (_, second, _) = calls
    assert first is not second
    assert first is not forest
    assert not hasattr(forest, "estimators_")
    assert forest.random_state is None
    assert strategy.random_state is None


def test_learning_curve_is_lazy_and_times_queries(data, calls):
    curve = learning_curve(
        DummyClassifier(), *data, SmallestFirst(), initial=[0, 1], batch_size=1, n_rounds=1,
        random_state=0,
    )  # fmt: skip
    assert next(curve).query_seconds == 0
    assert not calls
    assert next(curve).query_seconds > 0


def test_learning_curve_seeds_nested_steps(data, calls):
    model = make_pipeline(StandardScaler(), RandomForestClassifier(3))
    list(
        learning_curve(
            model, *data, SmallestFirst(), initial=range(5), batch_size=2, n_rounds=1,
            random_state=4,
        )
    )  # fmt: skip
    assert calls[0][1][-1].random_state == stream_seed(4, 0)


@pytest.mark.parametrize("convert", [sparse.csr_array, "pandas", "polars"])
def test_learning_curve_same_for_every_type_of_rows(data, convert):
    X, y, X_test, y_test = data
    if isinstance(convert, str):
        convert = pytest.importorskip(convert).DataFrame
    if convert is not sparse.csr_array:
        names = ["p", "q", "r", "s"]
        columns = {name: i for i, name in enumerate(names)}
        frames = [convert({n: A[:, i] for n, i in columns.items()}) for A in (X, X_test)]
    else:
        frames = [convert(X), convert(X_test)]
    sizes = {"initial": range(8), "batch_size": 3, "n_rounds": 2, "random_state": 2}
    strategy = SmallestFirst()
    forest = RandomForestClassifier(4)
    dense = learning_curve(forest, X, y, X_test, y_test, strategy, **sizes)
    other = learning_curve(forest, frames[0], y, frames[1], y_test, strategy, **sizes)
    assert without_times(other) == without_times(dense)


def test_learning_curve_unseen_class_has_probability_zero():
    X, y = np.zeros((4, 1)), np.array([0, 1, 0, 1])
    (only,) = learning_curve(
        DummyClassifier(), X, y, np.zeros((3, 1)), [0, 1, 7], SmallestFirst(), initial=range(4),
        batch_size=1, n_rounds=0, random_state=0,
    )  # fmt: skip
    assert only.nll == pytest.approx((2 * math.log(2) - math.log(np.finfo(float).eps)) / 3)
    assert only.accuracy == pytest.approx(1 / 3)


def test_learning_curve_scores_test_rows_that_lack_a_class():
    X, y = np.zeros((3, 1)), np.array([0, 1, 2])
    (only,) = learning_curve(
        DummyClassifier(), X, y, X[:2], [0, 1], SmallestFirst(), initial=range(3), batch_size=1,
        n_rounds=0, random_state=0,
    )  # fmt: skip
    assert only.nll == pytest.approx(math.log(3))


def test_learning_curve_starts_from_one_class():
    X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    first, last = learning_curve(
        DummyClassifier(), X, y, X, y, SmallestFirst(), initial=[0], batch_size=5, n_rounds=1,
        random_state=0,
    )  # fmt: skip
    assert first.nll == pytest.approx(-math.log(np.finfo(float).eps) / 2)
    assert last.nll == pytest.approx(math.log(2))


def test_learning_curve_refuses_more_labels_than_rows(data):
    curve = learning_curve(
        None, *data, None, initial=range(11), batch_size=25, n_rounds=2, random_state=0
    )
    with pytest.raises(
        ValueError, match=r"61 = 11 initial rows [+] 2 rounds x batch_size=25. Got 60 "
    ):
        next(curve)


def test_balanced_rows_are_balanced_and_distinct():
    y = np.repeat([5, 6, 7], [100, 20, 40])
    for seed in range(20):
        rows = balanced_rows(y, 17, seed)
        assert len(set(rows)) == 17
        assert sorted(np.bincount(y[rows])[5:]) == [5, 6, 6]
    assert len({tuple(sorted(balanced_rows(y, 17, seed))) for seed in range(20)}) == 20
    # Every class is the one that gives less in some seed, so none is favored.
    short = {int(np.bincount(y[balanced_rows(y, 17, seed)])[5:].argmin()) for seed in range(20)}
    assert short == {0, 1, 2}


def test_balanced_rows_small_class_gives_all_it_has():
    y = np.array(["x"] * 50 + ["y"] * 2 + ["z"] * 50)
    rows = balanced_rows(y, 22, 0)
    assert {label: int((y[rows] == label).sum()) for label in "xyz"} == {"x": 10, "y": 2, "z": 10}
    assert sorted(balanced_rows(y, len(y), 1)) == list(range(len(y)))


def test_balanced_rows_reach_every_row():
    y = np.repeat([0, 1], 10)
    drawn = np.concatenate([balanced_rows(y, 4, seed) for seed in range(100)])
    assert set(drawn) == set(range(20))


def test_learning_curves_same_for_any_number_of_jobs_and_paired(data):
    strategies = {
        "ical": sklearn_ical.ICALQuery(n_reference=20),
        "random": sklearn_ical.RandomQuery(),
        "again": sklearn_ical.RandomQuery(random_state=3),
    }
    sizes = {"seeds": [5, 2], "n_initial": 6, "batch_size": 3, "n_rounds": 2}
    forest, ended = RandomForestClassifier(6), []
    one, two = (
        learning_curves(
            forest,
            *data,
            strategies,
            **sizes,
            n_jobs=n_jobs,
            callback=lambda *run: ended.append(run),
        )
        for n_jobs in (1, 2)
    )
    assert list(one) == list(two) == ["ical", "random", "again"]
    for name in strategies:
        assert list(one[name]) == list(two[name]) == [5, 2]
        for seed in (5, 2):
            assert without_times(one[name][seed]) == without_times(two[name][seed])
            assert without_times(one[name][seed])[0] == without_times(one["ical"][seed])[0]
    runs = [(name, seed) for seed in (5, 2) for name in strategies]
    assert ended[:6] == runs
    assert sorted(ended[6:]) == sorted(runs)
    # The seed of the run replaces a strategy's own; seeds differ; the curve is `learning_curve`.
    assert without_times(one["again"][5]) == without_times(one["random"][5])
    assert one["random"][5][0].bought != one["random"][2][0].bought
    initial = balanced_rows(data[1], 6, 2)
    alone = learning_curve(
        forest, *data, strategies["ical"], initial=initial, batch_size=3, n_rounds=2, random_state=2
    )
    assert without_times(alone) == without_times(one["ical"][2])


def made_up_curve(accuracies, nlls):
    return tuple(
        Round(n_labeled, (), accuracy, nll, 0.0, 0.0)
        for n_labeled, accuracy, nll in zip((10, 20, 40), accuracies, nlls, strict=True)
    )


@pytest.fixture
def made_up():
    return {
        "new": {
            0: made_up_curve((0.5, 0.7, 0.9), (2.0, 1.0, 0.5)),
            1: made_up_curve((0.5, 0.6, 1.0), (2.0, 2.0, 2.0)),
        },
        "old": {
            0: made_up_curve((0.5, 0.5, 0.5), (2.0, 2.0, 2.0)),
            1: made_up_curve((0.5, 0.7, 0.7), (1.0, 1.0, 1.0)),
        },
    }


def test_summarize_matches_numbers_by_hand(made_up):
    summaries = {(s.metric, s.strategy): s for s in summarize(made_up, "old")}
    assert list(summaries) == [
        ("accuracy", "new"),
        ("accuracy", "old"),
        ("nll", "new"),
        ("nll", "old"),
    ]
    # Two seeds: the standard error is half the distance of the two values.
    new = summaries["accuracy", "new"]
    areas = (0.6 * 10 + 0.8 * 20) / 30, (0.55 * 10 + 0.8 * 20) / 30
    assert (new.final.mean, new.final.error) == pytest.approx((0.95, 0.05))
    assert new.area.mean == pytest.approx(sum(areas) / 2)
    assert new.area.error == pytest.approx((areas[0] - areas[1]) / 2)
    differences = areas[0] - 0.5, areas[1] - (0.6 * 10 + 0.7 * 20) / 30
    assert new.difference.mean == pytest.approx(sum(differences) / 2)
    assert new.difference.error == pytest.approx((differences[0] - differences[1]) / 2)
    nll = summaries["nll", "new"]
    assert nll.difference.mean == pytest.approx(((1.5 * 10 + 0.75 * 20) / 30 - 2 + 1) / 2)
    assert summaries["nll", "old"].difference is None


def test_summarize_without_baseline_has_no_differences(made_up):
    assert [s.difference for s in summarize(made_up, "absent")] == [None] * 4


def test_summarize_one_seed_has_no_error(made_up):
    one_seed = {name: {0: of_seed[0]} for name, of_seed in made_up.items()}
    new = summarize(one_seed, "old")[0]
    assert new.final.mean == 0.9
    assert all(math.isnan(e.error) for e in (new.final, new.area, new.difference))


def test_scores_are_seeds_by_rounds(made_up):
    expected = [[2.0, 1.0, 0.5], [2.0, 2.0, 2.0]]
    assert scores(made_up["new"], "nll").tolist() == expected
