"""Tests of the stopping rules: by records made up by hand, and through `simulate`."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import cohen_kappa_score
from sklearn.svm import LinearSVC

from sklearn_ical import MarginQuery, RandomQuery, simulate
from sklearn_ical.simulation import (
    OverallUncertainty,
    Patience,
    Round,
    RoundState,
    StablePredictions,
    StoppingRule,
    TargetScore,
)


def rounds(*scores, **measured):
    """Return rounds with these accuracies, and with measures of one rule."""
    ((rule, values),) = measured.items() if measured else (("", [math.nan] * len(scores)),)
    scores = scores or [0.5] * len(values)
    return [
        Round((), (), (), 10, 10.0, {"accuracy": score, "loss": -score}, {rule: value})
        for score, value in zip(scores, values, strict=True)
    ]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(3, size=150)]
    X = rng.normal(size=(150, 3)) + 1.5 * (y == "a")[:, None] - 2 * (y == "c")[:, None]
    return {"X": X[:100], "y": y[:100], "X_test": X[100:], "y_test": y[100:]}


def run(data, stopping, estimator=None, **settings):
    defaults = {"n_initial": 6, "batch_size": 4, "random_state": 0, "strategy": MarginQuery()}
    estimator = RandomForestClassifier(10) if estimator is None else estimator
    return simulate(estimator, stopping=stopping, **(defaults | data | settings))


# By the records


def test_target_score_is_reached_at_equality():
    rule = TargetScore(0.8)
    assert rule.reason(rounds(0.9, 0.79)) is None
    assert rule.reason(rounds(0.1, 0.8)) == "TargetScore: accuracy is 0.8, at least 0.8"
    assert TargetScore(-0.5, metric="loss").reason(rounds(0.6)) is None
    assert "loss is -0.5" in TargetScore(-0.5, metric="loss").reason(rounds(0.5))
    assert rule.reason(rounds(math.nan)) is None


@pytest.mark.parametrize(
    ("scores", "stops"),
    [
        ((0.5,), False),
        ((0.5, 0.5), False),
        ((0.5, 0.5, 0.5), True),
        ((0.5, 0.4, 0.5), True),
        ((0.5, 0.4, 0.6), False),
        ((0.5, 0.6, 0.55, 0.58), True),
        ((math.nan, math.nan, 0.1), False),
        ((0.5, math.nan, math.nan), True),
        ((math.nan, math.nan, math.nan), False),
    ],
)
def test_patience_counts_rounds_without_a_better_score(scores, stops):
    assert (Patience(2).reason(rounds(*scores)) is not None) == stops


def test_patience_asks_for_more_than_min_delta():
    better = rounds(0.5, 0.52, 0.54)
    assert Patience(2).reason(better) is None
    assert "accuracy has not risen above 0.5 for 2 rounds" in Patience(2, min_delta=0.05).reason(
        better
    )
    assert Patience(2, metric="loss").reason(better).startswith("Patience: loss")


def test_stable_predictions_needs_the_mean_of_whole_rounds():
    rule = StablePredictions(0.9, n_rounds=2)
    assert rule.reason(rounds(StablePredictions=[math.nan, 1.0])) is None
    assert rule.reason(rounds(StablePredictions=[1.0])) is None
    assert rule.reason(rounds(StablePredictions=[0.1, 0.85, 0.96])) is not None
    assert rule.reason(rounds(StablePredictions=[1.0, 1.0, 0.7])) is None


def test_overall_uncertainty_looks_at_the_last_round():
    rule = OverallUncertainty(0.1)
    assert rule.reason(rounds(OverallUncertainty=[0.05, 0.2])) is None
    assert "mean entropy is 0.1 nats" in rule.reason(rounds(OverallUncertainty=[0.1]))
    assert rule.reason(rounds(OverallUncertainty=[math.nan])) is None


# What is measured


def states(data, estimator, **settings):
    found = []
    run(data, None, estimator, callbacks=found.append, n_rounds=3, **settings)
    return found


def test_stable_predictions_measures_kappa_on_all_rows(data):
    rule = StablePredictions()
    found = states(data, RandomForestClassifier(10))
    assert math.isnan(rule.measure(found[0]))
    for before, state in itertools.pairwise(found):
        expected = cohen_kappa_score(
            state.model.predict(data["X"]), before.model.predict(data["X"])
        )
        assert rule.measure(state) == pytest.approx(expected)


def test_stable_predictions_measures_concordance_of_regressors(data):
    numbers = data | {"y": data["X"][:, 0], "y_test": data["X_test"][:, 0]}
    found = states(numbers, RandomForestRegressor(10), strategy=RandomQuery())
    new, old = (state.model.predict(data["X"]) for state in (found[-1], found[-2]))
    covariance = np.cov(new, old, bias=True)
    expected = (
        2
        * covariance[0, 1]
        / (covariance[0, 0] + covariance[1, 1] + (new.mean() - old.mean()) ** 2)
    )
    assert StablePredictions().measure(found[-1]) == pytest.approx(expected)


def test_overall_uncertainty_measures_entropy_of_unlabeled_rows(data):
    for state in states(data, RandomForestClassifier(10)):
        left = np.setdiff1d(np.arange(100), state.labeled)
        proba = state.model.predict_proba(data["X"][left])
        entropies = [-sum(p * math.log(p) for p in row if p > 0) for row in proba]
        assert OverallUncertainty(0.1).measure(state) == pytest.approx(np.mean(entropies))


def test_overall_uncertainty_of_no_rows_is_zero(data):
    model = RandomForestClassifier(2).fit(data["X"], data["y"])
    empty = np.arange(0)
    state = RoundState(tuple(rounds(0.5)), data["X"], np.arange(100), empty, lambda r: model)
    assert OverallUncertainty(0.1).measure(state) == 0


def test_models_of_one_class_measure_nothing(data):
    one_class = np.flatnonzero(data["y"] == "a")[:2]
    result = run(
        data,
        [StablePredictions(0.0, n_rounds=1), OverallUncertainty(1e-9)],
        initial=one_class,
        n_rounds=2,
        batch_size=20,
    )
    assert math.isnan(result.measures["StablePredictions"][0])
    assert math.isnan(result.measures["OverallUncertainty"][0])
    assert len(result.rounds) > 1


# Through `simulate`


@pytest.mark.parametrize(
    "rule",
    [
        TargetScore(0.9),
        Patience(2),
        StablePredictions(0.9, n_rounds=2),
        OverallUncertainty(0.4),
    ],
)
def test_simulate_stops_at_the_first_round_with_a_reason(data, rule, tmp_path):
    result = run(data, rule)
    assert result.stopped.startswith(type(rule).__name__)
    assert rule.reason(result.rounds) == result.stopped
    for n in range(1, len(result.rounds)):
        assert rule.reason(result.rounds[:n]) is None
    assert 1 < len(result.rounds) < 24
    # It is the beginning of a run without the rule, apart from what was measured.
    free = run(data, None, n_rounds=len(result.rounds) - 1)
    assert free.positions.tolist() == result.positions.tolist()
    assert run(data, [Patience(40), rule], n_rounds=60).stopped == result.stopped
    assert run(data, rule, checkpoint=tmp_path / "c") == result
    assert run(data, rule, checkpoint=tmp_path / "c") == result


def test_budget_ends_a_run_before_its_rules_do(data):
    result = run(data, Patience(40), budget=19)
    assert result.n_labeled.tolist() == [6, 10, 14, 18, 19]
    assert result.stopped == "budget: 19 of 19 are spent"


def test_own_rule_measures_and_stops(data):
    @dataclass(frozen=True)
    class FewRows(StoppingRule):
        at_most: int

        def measure(self, state):
            return len(state.unlabeled)

        def reason(self, rounds):
            return "few" if rounds[-1].measures["FewRows"] <= self.at_most else None

    result = run(data, FewRows(80))
    assert result.stopped == "few"
    assert result.measures["FewRows"].tolist() == [94, 90, 86, 82, 78]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: TargetScore("x"), TypeError, "target must be a finite number. Got 'x' in Target"),
        (lambda: TargetScore(math.inf), ValueError, "target must be a finite number. Got inf"),
        (lambda: Patience(0), ValueError, "n_rounds must be an integer >= 1. Got 0 in Patience"),
        (lambda: Patience(min_delta=-1), ValueError, "min_delta must be a finite number >= 0. Got"),
        (
            lambda: StablePredictions(True),
            TypeError,
            "threshold must be a finite number <= 1. Got True",
        ),
        (lambda: StablePredictions(5), ValueError, "threshold must be a finite number <= 1. Got 5"),
        (lambda: StablePredictions(n_rounds=1.5), TypeError, "n_rounds must be an integer"),
        (lambda: OverallUncertainty(-1), ValueError, "threshold must be a finite number >= 0. Got"),
    ],
)
def test_rules_refuse_bad_numbers(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_rules_that_do_not_fit_are_refused(data):
    with pytest.raises(
        ValueError, match="OverallUncertainty needs an estimator with predict_proba"
    ):
        run(data, OverallUncertainty(0.1), LinearSVC())
    with pytest.raises(ValueError, match="must not hold two rules of one class that measure"):
        run(data, [StablePredictions(0.5), StablePredictions(0.6)])
    with pytest.raises(ValueError, match=r"TargetScore needs the metric 'f1'. Got .*'score'"):
        run(data, TargetScore(0.5, metric="f1"))
    with pytest.raises(ValueError, match=r"Patience needs a metric. Got no scores"):
        run({"X": data["X"], "y": data["y"]}, Patience(2))
