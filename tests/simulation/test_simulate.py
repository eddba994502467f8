"""Tests of `simulate` against loops written out by hand."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import sklearn_ical
from sklearn_ical import BALDQuery, ICALQuery, MarginQuery, MaxEntropyQuery, RandomQuery, simulate
from sklearn_ical._random import stream_seed
from sklearn_ical.simulation import balanced_rows


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


def run(data, estimator=None, strategy=None, **settings):
    """Run `simulate` on the data with small defaults."""
    X, y, X_test, y_test = data
    defaults = {
        "n_initial": 6, "batch_size": 3, "n_rounds": 2, "random_state": 0,
        "X_test": X_test, "y_test": y_test,
    }  # fmt: skip
    if {"X_test", "cv"} & settings.keys():
        del defaults["X_test"], defaults["y_test"]
    if {"budget", "stopping"} & settings.keys():
        del defaults["n_rounds"]
    return simulate(
        RandomForestClassifier(5) if estimator is None else estimator,
        X,
        y,
        SmallestFirst() if strategy is None else strategy,
        **(defaults | settings),
    )


# The loop


def test_simulate_matches_loop_by_hand(data, calls):
    X, y, X_test, y_test = data
    forest = RandomForestClassifier(5)
    result = run(data, forest, n_initial=5, batch_size=4, n_rounds=3, random_state=11)
    initial = balanced_rows(y, 5, 11).tolist()
    by_value = [row for row in np.argsort(X[:, 0]) if row not in initial]
    expected_batches = [initial, by_value[:4], by_value[4:8], by_value[8:12]]
    labeled = []
    for r, batch in enumerate(expected_batches):
        labeled += list(batch)
        model = (
            clone(forest).set_params(random_state=stream_seed(11, r)).fit(X[labeled], y[labeled])
        )
        record = result.rounds[r]
        assert record.positions == tuple(batch)
        assert record.labels == tuple(y[batch])
        assert record.n_labeled == record.cost == len(labeled)
        assert record.scores == {"score": model.score(X_test, y_test)}
        assert record.refused == ()
    assert result.stopped == "n_rounds: 3 rounds are done"
    assert result.random_state == 11
    assert len(result.rounds) == 4
    assert [len(X_pool) for _, _, X_pool in calls] == [55, 51, 47]
    assert [root for root, _, _ in calls] == [stream_seed(11, r) for r in (1, 2, 3)]
    np.testing.assert_array_equal(result.positions, labeled)
    np.testing.assert_array_equal(result.labels, y[labeled])
    np.testing.assert_array_equal(result.n_labeled, [5, 9, 13, 17])
    assert result.positions.dtype == np.intp


def test_simulate_models_are_new_and_arguments_unchanged(data, calls):
    forest, strategy = RandomForestClassifier(3), SmallestFirst()
    result = run(data, forest, strategy)
    assert (result.fit_seconds > 0).all()
    assert result.query_seconds[0] == 0
    assert (result.query_seconds[1:] > 0).all()
    (_, first, _), (_, second, _) = calls
    assert first is not second
    assert first is not forest
    assert not hasattr(forest, "estimators_")
    assert forest.random_state is None
    assert strategy.random_state is None


def test_simulate_seeds_nested_steps(data, calls):
    run(data, make_pipeline(StandardScaler(), RandomForestClassifier(3)), random_state=4)
    assert calls[0][1][-1].random_state == stream_seed(4, 0)


@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.coo_matrix, "pandas", "polars", list])
def test_simulate_same_for_every_type_of_rows(data, convert):
    X, y, X_test, y_test = data
    if isinstance(convert, str):
        frame = pytest.importorskip(convert).DataFrame
        names = dict(enumerate("pqrs"))
        frames = [frame({name: A[:, i] for i, name in names.items()}) for A in (X, X_test)]
    else:
        frames = [convert(X), convert(X_test)]
    assert run((frames[0], y, frames[1], y_test)) == run(data)
    assert run((frames[0], list(y), frames[1], list(y_test)), strategy=ICALQuery()) == run(
        data, strategy=ICALQuery()
    )


def test_simulate_takes_texts():
    texts = [f"{word} w{i}" for i, word in enumerate(["good", "bad"] * 10)]
    model = make_pipeline(CountVectorizer(), RandomForestClassifier(4))
    result = simulate(
        model, texts, ["+", "-"] * 10, BALDQuery(), n_initial=4, batch_size=2, n_rounds=2,
        X_test=["good", "bad"], y_test=["+", "-"], random_state=0,
    )  # fmt: skip
    assert result.n_labeled.tolist() == [4, 6, 8]
    assert set(result.labels) == {"+", "-"}


@pytest.mark.parametrize("strategy", [ICALQuery(), BALDQuery(), MaxEntropyQuery(), RandomQuery()])
def test_simulate_takes_regressors(data, strategy):
    X, _, X_test, _ = data
    numbers = (X, X[:, 0] * 2, X_test, X_test[:, 0] * 2)
    result = run(numbers, RandomForestRegressor(5), strategy, scoring="r2")
    assert result.labels.tolist() == (X[result.positions, 0] * 2).tolist()
    assert len(set(result.positions)) == 12
    assert result.scores["r2"].shape == (3,)


def test_simulate_takes_several_outputs(data):
    X, _, X_test, _ = data
    result = run((X, X[:, :2], X_test, X_test[:, :2]), RandomForestRegressor(5))
    np.testing.assert_array_equal(result.labels, X[result.positions, :2])


def test_simulate_is_repeated_by_its_random_state(data):
    result = run(data, strategy=ICALQuery(n_reference=10), random_state=np.random.RandomState(3))
    again = run(data, strategy=ICALQuery(n_reference=10), random_state=result.random_state)
    assert again == result
    other = run(data, strategy=ICALQuery(n_reference=10), random_state=result.random_state + 1)
    assert other != result


def test_simulate_leaves_global_generators_alone(data):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    run(data, strategy=ICALQuery(n_reference=10))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_simulate_changes_no_argument(data):
    frozen = [array.copy() for array in data]
    for array in frozen:
        array.flags.writeable = False
    cost = np.ones(60)
    cost.flags.writeable = False
    run(frozen, strategy=MarginQuery(), cost=cost, budget=12, n_rounds=5)
    for array, original in zip(frozen, data, strict=True):
        np.testing.assert_array_equal(array, original)


# Ends


def test_simulate_ends_when_the_pool_does(data):
    result = run(data, n_rounds=50, batch_size=25)
    assert result.n_labeled.tolist() == [6, 31, 56, 60]
    assert result.stopped == "pool: no row without a label is left"
    assert sorted(result.positions) == list(range(60))


def test_simulate_budget_cuts_the_last_batch(data):
    result = run(data, batch_size=4, budget=13)
    assert result.n_labeled.tolist() == [6, 10, 13]
    assert result.stopped == "budget: 13 of 13 are spent"


def test_simulate_without_rounds_fits_the_initial_rows(data):
    assert run(data, n_rounds=0).n_labeled.tolist() == [6]


# Initial rows


@pytest.mark.parametrize("initial", [None, "balanced"])
def test_simulate_starts_balanced(data, initial):
    first = run(data, initial=initial, n_initial=6).rounds[0]
    assert sorted(first.labels) == ["a", "a", "b", "b", "c", "c"]


def test_simulate_starts_at_random(data):
    results = [
        run(data, DummyClassifier(), initial="random", n_rounds=0, random_state=seed)
        for seed in range(150)
    ]
    starts = [result.positions for result in results]
    assert {len(set(rows)) for rows in starts} == {6}
    assert set(np.concatenate(starts)) == set(range(60))
    counts = {tuple(sorted(np.unique(data[1][rows], return_counts=True)[1])) for rows in starts}
    assert len(counts) > 3  # not balanced


def test_simulate_starts_where_told(data):
    assert run(data, initial=[4, 2, 9]).rounds[0].positions == (4, 2, 9)


def test_simulate_starts_balanced_among_known_labels(data):
    X, y, X_test, y_test = data
    some = y.astype(object)
    some[10:] = None
    result = run((X, some, X_test, y_test), n_rounds=0)
    assert set(result.positions) < set(range(10))


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(4), LogisticRegression(), DummyClassifier()]
)
@pytest.mark.parametrize("strategy", [ICALQuery(), MarginQuery()])
def test_simulate_starts_from_one_class(data, estimator, strategy):
    X, y, X_test, y_test = data
    order = np.argsort(y, kind="stable")
    result = run(
        (X[order], y[order], X_test, y_test), estimator, strategy, initial=[0, 1], batch_size=20,
        scoring=["accuracy", "neg_log_loss"], n_rounds=1,
    )  # fmt: skip
    first = result.rounds[0].scores
    assert first["accuracy"] == np.mean(y_test == "a")
    # Classes that were not seen have probability 0, which the metric clips.
    unseen = np.mean(y_test != "a")
    assert first["neg_log_loss"] == pytest.approx(unseen * math.log(np.finfo(float).eps))
    # Rows are drawn at random until there is something to tell apart, not in the pool's order.
    assert set(result.rounds[1].labels) == {"a", "b", "c"}


@pytest.mark.parametrize("estimator", [LinearSVC(random_state=0), KNeighborsClassifier(2)])
def test_simulate_refits_models_without_draws(data, estimator):
    X, y, _, _ = data
    result = run(data, estimator, BALDQuery(), n_initial=6, batch_size=3, n_rounds=2)
    first = result.rounds[0]
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=stream_seed(0, 0))
    rows = list(first.positions)
    model.fit(X[rows], y[rows])
    pool = np.setdiff1d(np.arange(60), rows)
    strategy = BALDQuery(random_state=stream_seed(0, 1))
    picks = strategy.query(model, X[pool], 3, X_labeled=X[rows], y_labeled=np.array(first.labels))
    assert result.rounds[1].positions == tuple(pool[picks])
    assert len(set(result.positions)) == 12


# Labels


def test_oracle_gives_all_labels(data):
    X, y, X_test, y_test = data
    asked = []

    def oracle(position):
        asked.append(position)
        return y[position]

    result = run((X, None, X_test, y_test), oracle=oracle)
    assert asked == result.positions.tolist()
    assert all(type(position) is int for position in asked)
    np.testing.assert_array_equal(result.labels, y[asked])
    rows = result.rounds[0].positions
    assert run((X, y, X_test, y_test), initial=rows).rounds == result.rounds


def test_oracle_is_not_asked_for_known_initial_labels(data):
    _, y, _, _ = data
    asked = []
    result = run(data, oracle=lambda row: asked.append(row) or str(y[row]), n_initial=6)
    assert asked == result.positions[6:].tolist()
    assert result == run(data, n_initial=6)


@pytest.mark.parametrize("refusal", [None, math.nan, np.float32("nan"), "NA"])
def test_refused_rows_are_left_out_and_not_asked_again(data, refusal):
    if refusal == "NA":
        refusal = pytest.importorskip("pandas").NA
    X, y, X_test, y_test = data
    asked = []

    def oracle(position):
        asked.append(position)
        return refusal if position % 3 == 0 else y[position]

    result = run((X, None, X_test, y_test), oracle=oracle, n_rounds=30)
    assert sorted(asked) == list(range(60))
    assert sorted(result.refused) == list(range(0, 60, 3))
    assert result.n_labeled[-1] == result.cost[-1] == 40
    np.testing.assert_array_equal(result.labels, y[result.positions])
    for record in result.rounds[1:-1]:
        assert len(record.positions) + len(record.refused) == 3


def test_missing_labels_in_y_are_refused(data):
    X, y, X_test, y_test = data
    numbers = np.where(y == "a", 1.0, 0.0)
    numbers[::2] = np.nan
    result = run((X, numbers, X_test, y_test == "a"), RandomForestClassifier(3), n_rounds=20)
    assert sorted(result.positions) == list(range(1, 60, 2))
    assert sorted(result.refused) == list(range(0, 60, 2))


def test_refused_initial_rows_leave_nothing_to_fit(data):
    X, y, X_test, y_test = data
    refused = []

    def oracle(position):
        if len(refused) < 8:
            refused.append(position)
            return None
        return y[position]

    result = run((X, None, X_test, y_test), strategy=BALDQuery(), oracle=oracle, scoring="accuracy")
    assert result.n_labeled.tolist() == [0, 1, 4]
    assert math.isnan(result.scores["accuracy"][0])
    assert result.refused.tolist() == refused


def test_labels_of_odd_kinds_are_refused(data):
    X, _, X_test, y_test = data
    with pytest.raises(TypeError, match=r"A label must be text, a finite .* Got \{'a': 1\} of ty"):
        run((X, None, X_test, y_test), oracle=lambda row: {"a": 1})


@pytest.mark.parametrize("odd", [[1, 2], [], 1.5, math.inf, 10**30, b"a"])
def test_odd_answers_are_refused_before_they_are_written_down(data, tmp_path, odd):
    X, _, X_test, y_test = data
    numbers = (X, None, X_test, (y_test == "a").astype(int))
    answers = iter([1, odd])
    with pytest.raises(TypeError, match=r"A label|All labels"):
        run(numbers, oracle=lambda row: next(answers), checkpoint=tmp_path / "c")
    result = run(numbers, oracle=lambda row: row % 2, checkpoint=tmp_path / "c")
    assert result.labels[0] == 1
    assert len(result.rounds) == 3


@pytest.mark.parametrize("kind", ["int", "bool", "pandas", "polars"])
def test_missing_labels_among_others_of_a_kind(data, kind):
    X, y, X_test, y_test = data
    labels = [None, *(y[1:] == "a").tolist()]
    if kind == "int":
        labels = [None, *map(int, labels[1:])]
    elif kind == "pandas":
        labels = pytest.importorskip("pandas").Series(labels, dtype="boolean")
    elif kind == "polars":
        labels = pytest.importorskip("polars").Series(labels)
    result = run((X, labels, X_test, y_test == "a"), n_rounds=30)
    assert result.refused.tolist() == [0]
    assert set(result.labels.tolist()) == {0, 1}


def test_costs_that_round_still_pay_for_the_initial_rows(data):
    result = run(data, strategy=MarginQuery(), cost=np.full(60, 0.1), budget=0.3, n_initial=3)
    assert result.n_labeled.tolist() == [3]


def test_texts_among_numbers_are_refused(data):
    X, _, X_test, y_test = data
    answers = iter([1, 2, "3"])
    with pytest.raises(
        TypeError, match=r"all lists of one length. Got '3' for row \d+ after 1"
    ) as caught:
        run((X, None, X_test, y_test), oracle=lambda row: next(answers))
    assert caught.value.result.labels.tolist() == [1, 2]


def test_errors_pass_through_with_the_result_so_far(data):
    class Fails(RandomForestClassifier):
        def fit(self, X, y):
            if len(X) > 9:
                raise RuntimeError("no memory")
            return super().fit(X, y)

    with pytest.raises(RuntimeError, match="no memory") as caught:
        run(data, Fails(3))
    result = caught.value.result
    assert result.rounds == run(data, RandomForestClassifier(3)).rounds[:2]
    assert result.stopped == ""
    assert len(result.pending) == 3
    assert result.positions.tolist() == run(data).positions.tolist()
    assert "12 labels were bought before" in caught.value.__notes__[0]


# Costs


def test_costs_count_instead_of_labels(data):
    cost = np.linspace(1, 3, 60)
    result = run(data, strategy=MarginQuery(), cost=cost, budget=30, batch_size=4, n_rounds=20)
    spent = [cost[result.positions[:n]].sum() for n in result.n_labeled]
    np.testing.assert_allclose(result.cost, spent)
    assert result.cost[-1] <= 30
    left = np.setdiff1d(np.arange(60), result.positions)
    assert cost[left].min() > 30 - result.cost[-1]
    assert result.stopped.startswith("budget: ")


def test_costs_favor_cheap_rows_of_equal_worth(data):
    cost = np.where(np.arange(60) % 2, 1.0, 50.0)
    result = run(data, strategy=MarginQuery(), cost=cost, n_initial=9, n_rounds=5)
    assert np.mean(result.positions[9:] % 2) > 0.9
    assert run(data, strategy=MarginQuery(), cost=np.full(60, 2.0)).positions.tolist() == (
        run(data, strategy=MarginQuery()).positions.tolist()
    )


def test_costs_that_round_still_fit_the_budget(data):
    result = run(data, strategy=MarginQuery(), cost=np.full(60, 0.1), budget=1.0, batch_size=1)
    assert result.n_labeled[-1] == 10


# Callbacks and output


def test_callbacks_see_each_round(data):
    seen = []

    def look(state):
        seen.append((state.rounds[-1], len(state.labeled), len(state.unlabeled)))
        assert state.model.score(data[2], data[3]) == state.rounds[-1].scores["score"]
        assert (state.previous_model is None) == (len(state.rounds) == 1)
        assert state.X is data[0]

    result = run(data, callbacks=[look, lambda state: None])
    assert [record for record, _, _ in seen] == list(result.rounds)
    assert [counts for _, *counts in seen] == [[6, 54], [9, 51], [12, 48]]


def test_simulate_is_silent_unless_asked(data, capfd):
    pytest.importorskip("rich")
    run(data)
    assert capfd.readouterr() == ("", "")
    run(data, verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert "3/3" in err


def test_result_as_frame(data):
    pytest.importorskip("pandas")
    result = run(data, scoring=["accuracy", "f1_macro"])
    frame = result.to_frame()
    assert list(frame) == [
        "round", "n_labeled", "n_refused", "cost", "accuracy", "f1_macro", "fit_seconds",
        "query_seconds", "positions", "labels",
    ]  # fmt: skip
    assert frame["n_labeled"].tolist() == [6, 9, 12]
    assert frame["accuracy"].tolist() == [r.scores["accuracy"] for r in result.rounds]
    assert frame["positions"][1] == list(result.rounds[1].positions)


def test_result_is_frozen_and_compares_without_times(data):
    result = run(data)
    with pytest.raises(AttributeError):
        result.rounds = ()
    with pytest.raises(AttributeError):
        result.rounds[0].scores = {}
    assert run(data) == result
    assert run(data).fit_seconds.tolist() != result.fit_seconds.tolist()
    assert result != run(data, n_rounds=1)
    assert result.rounds[0] != "round"


# Bad arguments


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"n_rounds": None}, ValueError, "simulate needs to know when to stop: pass n_rounds, bud"),
        ({"n_rounds": -1}, ValueError, "n_rounds must be an integer >= 0. Got -1 in simulate"),
        ({"n_rounds": 2.0}, TypeError, "n_rounds must be an integer >= 0. Got 2.0"),
        ({"batch_size": 0}, ValueError, "batch_size must be an integer >= 1. Got 0 in simulate"),
        ({"batch_size": True}, TypeError, "batch_size must be an integer >= 1. Got True"),
        ({"n_initial": 0}, ValueError, "n_initial must be an integer >= 1. Got 0"),
        ({"n_initial": 61}, ValueError, "n_initial must not exceed .* with a label, 60. Got 61"),
        ({"initial": "even"}, ValueError, "initial must be 'balanced', 'random' or .* Got 'even'"),
        ({"initial": [1, 1]}, ValueError, r"distinct positions in X, .* Got \[1, 1\]"),
        ({"initial": [60]}, ValueError, "initial must hold positions from 0 to 59 in X. Got 60"),
        ({"initial": []}, ValueError, r"initial must hold distinct .* Got \[\]"),
        ({"budget": 5}, ValueError, "budget must cover the 6 initial labels. Got 5 in simulate"),
        ({"budget": 0}, ValueError, "budget must be a finite number > 0. Got 0 in sim"),
        ({"budget": math.nan}, ValueError, "budget must be a finite number > 0. Got nan"),
        ({"budget": "9"}, TypeError, "budget must be a finite number > 0. Got '9'"),
        (
            {"cost": [1.0]},
            ValueError,
            r"cost must hold .* of the 60 rows of X, shape \(60,\).* Got shape \(1,\)",
        ),
        (
            {"cost": [0.0] * 60},
            ValueError,
            "cost must hold .* > 0 .* Got 0.0 for row 0 in simulate",
        ),
        ({"cost": ["x"] * 60}, TypeError, "cost must hold one finite number"),
        (
            {"cost": [4.0] * 60, "budget": 20},
            ValueError,
            "budget must cover the 6 initial labels, which cost 24. Got 20",
        ),
        ({"oracle": "me"}, TypeError, "oracle must be a function .* Got 'me'"),
        ({"callbacks": 3}, TypeError, "callbacks must be a function of a RoundState.* Got 3"),
        (
            {"stopping": "soon"},
            TypeError,
            "stopping must be a rule or a list of rules.* Got 'soon'",
        ),
        ({"strategy": ICALQuery}, TypeError, r"not a class. Got ICALQuery .* write ICALQuery\(\)"),
        ({"strategy": 3}, TypeError, "strategy must have the methods query, get_params. Got int"),
        ({"estimator": [1]}, TypeError, "estimator must have the methods fit, .* Got list without"),
        ({"X_test": [[0.0]]}, ValueError, "X_test and y_test must be given together. Got no y_te"),
        ({"cv": 3, "X_test": [[0.0]], "y_test": ["a"]}, ValueError, "or from cv. Got both"),
        ({"X_test": None, "scoring": "accuracy"}, ValueError, "scoring='accuracy' needs rows to"),
        ({"scoring": "acuracy"}, ValueError, "acuracy"),
        ({"cv": [([0], [1])]}, TypeError, "cv must be a number of folds or a splitter"),
        ({"scoring": []}, ValueError, r"scoring must be .* Got \[\]"),
        ({"scoring": ["accuracy", "accuracy"]}, ValueError, "list of different names"),
        ({"random_state": -1}, ValueError, "'random_state' parameter of simulate must be >= 0"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(data, calls, settings, error, words):
    class Untouched(RandomForestClassifier):
        def fit(self, X, y):
            raise AssertionError("was fitted")

    with pytest.raises(error, match=words):
        run(data, **({"estimator": Untouched(3)} | settings))
    assert not calls


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({1: None}, "y must hold the labels of X, unless an oracle gives them"),
        ({1: ["a"]}, "y must have one label for each of the 60 rows of X. Got 1 in simulate"),
        ({1: "a"}, "y must have one label for each .* Got no array"),
        ({3: ["a"]}, "X_test and y_test must have equally many rows. Got 30 and 1"),
    ],
)
def test_bad_data_is_refused(data, changed, words):
    with pytest.raises(ValueError, match=words):
        run([changed.get(i, part) for i, part in enumerate(data)])


def test_balanced_start_needs_labels_of_classes(data):
    X, _, X_test, y_test = data
    with pytest.raises(ValueError, match=r"needs a classifier and labels in y .* without y"):
        run((X, None, X_test, y_test), oracle=int, initial="balanced")
    with pytest.raises(ValueError, match="Got RandomForestRegressor with y"):
        run((X, X[:, 0], X_test, X_test[:, 0]), RandomForestRegressor(3), initial="balanced")


def test_strategy_that_repeats_a_row_is_refused(data):
    class Repeats(SmallestFirst):
        def query(self, model, X_pool, batch_size=1):
            return np.zeros(batch_size, dtype=int)

    with pytest.raises(ValueError, match=r"Repeats.query must return distinct positions"):
        run(data, strategy=Repeats())


def test_public_names_are_the_simulation_s():
    assert sklearn_ical.simulate is simulate
    assert sklearn_ical.compare_strategies.__module__ == "sklearn_ical.simulation._compare"
