"""Names in place of strategies: the list, what a name stands for, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import sklearn_ical
from sklearn_ical import (
    ActiveLearner,
    BALDQuery,
    BayesianCoresetQuery,
    FilteredQuery,
    ICALCoverageQuery,
    ICALQuery,
    MarginQuery,
    MaxEntropyQuery,
    RandomQuery,
    StochasticQuery,
    compare_strategies,
    simulate,
)
from sklearn_ical._names import REFUSED, STRATEGIES
from sklearn_ical._random import seeded
from sklearn_ical.simulation import read_checkpoint
from sklearn_ical.strategies import BaseQuery, all_strategies
from sklearn_ical.strategies._resolve import build, resolve_strategy
from sklearn_ical.testing import check_strategy

ROOT = Path(__file__).resolve().parents[2]
X, Y = load_iris(return_X_y=True)
FOREST = RandomForestClassifier(8, random_state=0)
LOOP: dict[str, Any] = {"n_initial": 6, "batch_size": 3, "n_rounds": 2}
SCORED = {"X_test": X[1::2], "y_test": Y[1::2]}
PAIRS = [
    ("random", RandomQuery()),
    ("margin", MarginQuery()),
    ("ical", ICALQuery()),
    ("ical-coverage", ICALCoverageQuery()),
    ("bayesian-coreset", BayesianCoresetQuery()),
    ("power-bald", StochasticQuery(BALDQuery())),
    ("margin-ical", FilteredQuery(MarginQuery(), ICALQuery())),
    (StochasticQuery("bald"), StochasticQuery(BALDQuery())),
    (FilteredQuery("margin", "ical", factor=2), FilteredQuery(MarginQuery(), ICALQuery(), 2)),
    (
        FilteredQuery(StochasticQuery("entropy"), ICALQuery()),
        FilteredQuery(StochasticQuery(MaxEntropyQuery()), ICALQuery()),
    ),
]
each_pair = pytest.mark.parametrize(
    ("given", "meant"), PAIRS, ids=lambda value: " ".join(repr(value).split())
)


def runs(strategy: Any, **options: Any) -> np.ndarray:
    """Return the positions that one simulation buys."""
    result = simulate(FOREST, X[::2], Y[::2], strategy, random_state=3, **LOOP, **options)
    return result.positions


def test_all_strategies_are_the_public_classes_in_the_order_of_the_list() -> None:
    classes = all_strategies()
    assert [one.__name__ for one in classes] == [named.class_name for named in STRATEGIES.values()]
    assert classes == [getattr(sklearn_ical, one.__name__) for one in classes]
    found = [getattr(sklearn_ical, name) for name in sklearn_ical.__all__]
    public = {one for one in found if isinstance(one, type) and issubclass(one, BaseQuery)}
    assert set(classes) == public - {BaseQuery}
    assert len(set(classes)) == len(classes)


@pytest.mark.parametrize("named", STRATEGIES.values(), ids=lambda named: named.name)
def test_class_is_in_the_file_that_the_list_says(named: Any) -> None:
    strategy = build(named.name)
    assert type(strategy).__module__ == f"sklearn_ical.strategies.{named.module}"
    defaults = type(strategy)(*map(build, named.parts))
    assert repr(strategy) == repr(defaults)


@pytest.mark.parametrize("page", ["README.md", "docs/api.rst", "docs/user_guide/strategies.rst"])
def test_pages_list_every_strategy(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [one.__name__ for one in all_strategies() if one.__name__ not in text] == []


def test_guide_lists_every_name() -> None:
    text = (ROOT / "docs" / "user_guide" / "strategies.rst").read_text(encoding="utf-8")
    for named in STRATEGIES.values():
        assert f'   * - ``"{named.name}"``\n' in text


@each_pair
def test_simulate_takes_a_name_for_the_strategy_with_defaults(given: Any, meant: Any) -> None:
    np.testing.assert_array_equal(runs(given), runs(meant))


@pytest.mark.parametrize(("first", "second"), [("ical", ICALQuery()), (ICALQuery(), "ical")])
def test_checkpoint_of_a_name_goes_on_with_the_object_and_the_other_way(
    first: Any, second: Any, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    bought = runs(first, checkpoint=path)
    size = path.stat().st_size
    np.testing.assert_array_equal(runs(second, checkpoint=path), bought)
    assert path.stat().st_size == size
    assert len(read_checkpoint(path).positions) == len(bought)
    composite = tmp_path / "composite.jsonl"
    bought = runs(FilteredQuery("margin", first), checkpoint=composite)
    again = runs(FilteredQuery(MarginQuery(), second), checkpoint=composite)
    np.testing.assert_array_equal(again, bought)


@pytest.mark.parametrize(
    "strategies",
    [["ical", RandomQuery()], {"ical": "ical", "RandomQuery": "random"}],
    ids=["list", "dict"],
)
def test_compare_strategies_takes_names(strategies: Any) -> None:
    options = {**LOOP, **SCORED, "seeds": 2}
    found = compare_strategies(FOREST, X[::2], Y[::2], strategies, **options)
    expected = compare_strategies(
        FOREST, X[::2], Y[::2], {"ical": ICALQuery(), "RandomQuery": RandomQuery()}, **options
    )
    assert list(found.results) == ["ical", "RandomQuery"]
    for label, results in expected.results.items():
        for seed, result in results.items():
            np.testing.assert_array_equal(found.results[label][seed].positions, result.positions)


@pytest.mark.parametrize(
    ("strategies", "error", "message"),
    [
        ("margin", TypeError, r"a dict or a list .* Got 'margin' in .*; pass \['margin'\]"),
        (["margin", "margin"], ValueError, r"a name occurs twice. Got \['margin', 'margin'\]"),
        ({"m": "margn"}, ValueError, "Each of strategies must be one of .* did you mean 'margin'"),
        (["random", "coreset"], ValueError, "'coreset' in compare_strategies; it is ambiguous"),
    ],
)
def test_compare_strategies_refuses(strategies: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compare_strategies(FOREST, X[::2], Y[::2], strategies, **LOOP, **SCORED)


def test_active_learner_takes_a_name_and_keeps_it() -> None:
    learner = ActiveLearner(FOREST, strategy="margin").fit(X[::5], Y[::5])
    expected = ActiveLearner(FOREST, MarginQuery()).fit(X[::5], Y[::5]).query(X, 4)
    np.testing.assert_array_equal(learner.query(X, 4), expected)
    assert learner.strategy == "margin"
    assert learner.get_params(deep=False)["strategy"] == "margin"
    assert clone(learner).set_params(strategy="entropy").strategy == "entropy"


def test_active_learner_refuses_an_unknown_name_before_the_fit() -> None:
    learner = ActiveLearner(FOREST, "margins")
    with pytest.raises(ValueError, match=r"'margins' in ActiveLearner.fit; did you mean 'margin'"):
        learner.fit(X, Y)
    assert not hasattr(learner, "estimator_")


@each_pair
def test_query_and_tags_are_those_of_the_object(given: Any, meant: Any) -> None:
    given = resolve_strategy(given, "strategy", "test") if isinstance(given, str) else given
    assert given.query_tags() == meant.query_tags()
    model = clone(FOREST).fit(X[::5], Y[::5])
    found = seeded(resolve_strategy(given, "strategy", "test"), 0).query(model, X, 5)
    np.testing.assert_array_equal(found, seeded(meant, 0).query(model, X, 5))


def test_composite_of_names_chooses_by_itself() -> None:
    model = clone(FOREST).fit(X[::5], Y[::5])
    given = FilteredQuery("margin", StochasticQuery("bald", random_state=4))
    meant = FilteredQuery(MarginQuery(), StochasticQuery(BALDQuery(), random_state=4))
    np.testing.assert_array_equal(given.query(model, X, 5), meant.query(model, X, 5))
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=(30, 6))
    np.testing.assert_array_equal(given.select(proba, 5), meant.select(proba, 5))


def test_parameters_of_a_composite_stay_the_names() -> None:
    strategy = FilteredQuery("margin", "ical")
    resolved = resolve_strategy(strategy, "strategy", "test")
    assert isinstance(resolved.strategy, ICALQuery)
    copy = clone(strategy).set_params(factor=3, strategy="bald")
    strategy.query_tags()
    assert strategy.get_params() == {"filter": "margin", "strategy": "ical", "factor": 6}
    assert copy.get_params() == {"filter": "margin", "strategy": "bald", "factor": 3}
    assert "'margin'" in repr(strategy)


def test_resolve_strategy_returns_objects_as_they_are() -> None:
    for value in (MarginQuery(), FilteredQuery(MarginQuery(), ICALQuery()), FilteredQuery, None, 3):
        assert resolve_strategy(value, "strategy", "test") is value


def test_unknown_part_names_the_parameter() -> None:
    with pytest.raises(ValueError, match=r"^filter must be one of random, .*'x' in FilteredQuery"):
        FilteredQuery("x", "ical").query_tags()
    with pytest.raises(TypeError, match=r"The 'strategy' parameter of StochasticQuery must be"):
        StochasticQuery(3).query_tags()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "hints"),
    [
        ("margn", ["did you mean 'margin'"]),
        ("ical_coverage", ["did you mean 'ical-coverage'"]),
        ("MaxEntropyQuery", ["did you mean 'entropy'?"]),
        ("nothing like it", list(STRATEGIES)),
        (
            "coreset",
            ["ambiguous", "'bayesian-coreset' for Bayesian", "'core-set' for CoreSetQuery"],
        ),
        ("filtered", ["FilteredQuery('margin', 'bald')", "'margin-ical'"]),
        ("stochastic", ["StochasticQuery('margin')", "'power-bald'"]),
    ],
)
def test_unknown_name_is_refused_with_a_way_out(name: str, hints: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^strategy must be ") as caught:
        simulate(FOREST, X, Y, name, **LOOP)
    assert f"Got {name!r} in simulate" in str(caught.value)
    for hint in hints:
        assert hint in str(caught.value)


def test_refused_names_are_not_in_the_list() -> None:
    assert not set(REFUSED) & set(STRATEGIES)


def test_check_strategy_takes_a_name() -> None:
    check_strategy("random")
    with pytest.raises(ValueError, match="'coreset' in check_strategy; it is ambiguous"):
        check_strategy("coreset")
