"""One strategy after another: what is kept, who sees what, seeds, tags, and use in loops."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_ical import (
    ActiveLearner,
    BALDQuery,
    BaseQuery,
    EPIGQuery,
    FASSQuery,
    FilteredQuery,
    ICALQuery,
    LeastConfidentQuery,
    MarginQuery,
    MaxEntropyQuery,
    RandomQuery,
    StochasticQuery,
    compare_strategies,
    simulate,
)
from sklearn_ical.exceptions import BatchClippedWarning
from sklearn_ical.samplers import get_sampler
from sklearn_ical.strategies import QueryTags

X, Y = load_digits(return_X_y=True)
X_LABELED, Y_LABELED, POOL = X[:60], Y[:60], X[60:260]


def make_proba(n_points: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(3, 0.6), size=(n_points, 6))


def make_forest(**options: Any) -> RandomForestClassifier:
    return RandomForestClassifier(12, random_state=0, **options).fit(X_LABELED, Y_LABELED)


STRATEGIES = [
    ICALQuery(n_reference=20, random_state=1),
    EPIGQuery(n_reference=20, batch="pseudo-label", random_state=1),
    StochasticQuery(BALDQuery(), random_state=1),
    FASSQuery(factor=3),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("candidates", [None, np.arange(1, 200, 3)])
def test_batch_is_that_of_the_strategy_among_what_the_filter_would_choose(
    strategy: BaseQuery, candidates: Any
) -> None:
    forest = make_forest()
    query = FilteredQuery(MarginQuery(), strategy, factor=4)
    picks, rows = query.query(forest, POOL, 5, candidates=candidates, return_utilities=True)
    samples = get_sampler(forest).sample(POOL)
    kept = MarginQuery().select(samples, 20, candidates=candidates)
    expected, utilities = strategy.query(forest, POOL, 5, candidates=kept, return_utilities=True)
    np.testing.assert_array_equal(picks, expected)
    np.testing.assert_array_equal(rows, utilities)
    assert np.isnan(rows[:, np.setdiff1d(np.arange(len(POOL)), kept)]).all()
    same = query.select(samples, 5, candidates=candidates, X_pool=POOL)
    np.testing.assert_array_equal(same, expected)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
def test_filter_that_keeps_everything_changes_nothing(
    strategy: BaseQuery, recwarn: pytest.WarningsRecorder
) -> None:
    bayes = GaussianNB().fit(X_LABELED / 16, Y_LABELED)  # draws are refits on the labeled rows
    labeled = {"X_labeled": X_LABELED / 16, "y_labeled": Y_LABELED}
    pool, few = POOL[:40] / 16, [3, 9, 11, 30]
    for factor, size, candidates in ((8, 5, None), (1, 40, None), (2, 2, few)):
        options = {"candidates": candidates, **labeled}
        query = FilteredQuery(RandomQuery(random_state=9), strategy, factor=factor)
        expected = strategy.query(bayes, pool, size, **options)
        np.testing.assert_array_equal(query.query(bayes, pool, size, **options), expected)
    assert BatchClippedWarning not in [warned.category for warned in recwarn.list]


def test_fewer_candidates_than_picks_clip_the_batch_once() -> None:
    query = FilteredQuery(MarginQuery(), BALDQuery(), factor=2)
    with pytest.warns(BatchClippedWarning, match="FilteredQuery.select") as caught:
        picks = query.select(make_proba(), 9, candidates=[4, 7, 1])
    assert len(caught) == 1
    assert sorted(picks.tolist()) == [1, 4, 7]


def test_factor_one_leaves_the_filter_to_decide_and_the_strategy_to_order() -> None:
    proba = make_proba()
    picks = FilteredQuery(MarginQuery(), BALDQuery(), factor=1).select(proba, 7)
    kept = MarginQuery().select(proba, 7)
    assert picks.tolist() == BALDQuery().select(proba, 7, candidates=kept).tolist()
    assert sorted(picks) == sorted(kept)


def test_reference_rows_reach_filter_and_strategy() -> None:
    proba, other = make_proba(), make_proba(9, seed=3)
    ical = ICALQuery(n_reference=30, prediction="proba", random_state=2)
    for narrow, strategy in ((ical, BALDQuery()), (BALDQuery(), ical)):
        query = FilteredQuery(narrow, strategy, factor=3)
        kept = narrow.select(proba, 12, reference_samples=other)
        expected = strategy.select(proba, 4, candidates=kept, reference_samples=other)
        picks = query.select(proba, 4, reference_samples=other)
        np.testing.assert_array_equal(picks, expected)
        assert not np.array_equal(picks, query.select(proba, 4))


class Counting:
    """A model that counts the rows that it predicts for."""

    def __init__(self, forest: RandomForestClassifier) -> None:
        self.forest, self.n_rows = forest, 0
        self.classes_ = forest.classes_

    def predict_proba(self, rows: Any) -> np.ndarray:
        self.n_rows += len(rows)
        return self.forest.predict_proba(rows)


def test_both_parts_see_predictions_that_were_made_once() -> None:
    model = Counting(make_forest())
    query = FilteredQuery(LeastConfidentQuery(), FilteredQuery(MarginQuery(), MaxEntropyQuery(), 2))
    query.query(model, POOL, 5)
    assert model.n_rows == len(POOL)


def test_model_of_means_needs_no_draws_where_no_part_does() -> None:
    logistic = LogisticRegression(max_iter=300).fit(X_LABELED / 16, Y_LABELED)
    query = FilteredQuery(MarginQuery(), RandomQuery(random_state=0), factor=3)
    picks = query.query(logistic, POOL / 16, 5)
    kept = MarginQuery().query(logistic, POOL / 16, 15)
    assert (
        picks.tolist() == RandomQuery(random_state=0).query(None, POOL, 5, candidates=kept).tolist()
    )
    at_random = FilteredQuery(RandomQuery(random_state=0), RandomQuery(random_state=1), factor=2)
    assert len(set(at_random.query(None, POOL, 5).tolist())) == 5


@pytest.mark.parametrize(
    ("narrow", "strategy", "expected"),
    [
        (MarginQuery(), MaxEntropyQuery(), {"kinds": ("proba", "label"), "reads": ("mean",)}),
        (MarginQuery(), BALDQuery(), {"kinds": ("proba", "label"), "min_draws": 2}),
        (RandomQuery(), MarginQuery(), {"kinds": ("proba", "label"), "reads": ("mean",)}),
        (RandomQuery(), BALDQuery(), {"min_draws": 2}),
        (RandomQuery(), RandomQuery(), {"reads": ()}),
        (
            BALDQuery(),
            FASSQuery(),
            {
                "kinds": ("proba", "label"),
                "reads": ("draws", "features"),
                "uses": ("model",),
                "min_draws": 2,
            },
        ),
        (BALDQuery(), ICALQuery(estimator="unbiased"), {"uses": ("reference",), "min_draws": 4}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_tags_are_what_both_understand_and_either_reads(
    narrow: BaseQuery, strategy: BaseQuery, expected: dict[str, Any]
) -> None:
    sure = narrow.query_tags().deterministic and strategy.query_tags().deterministic
    tags = QueryTags(deterministic=sure, utilities="other", **expected)
    assert FilteredQuery(narrow, strategy).query_tags() == tags


def test_each_part_runs_on_its_own_random_state() -> None:
    proba = make_proba()
    query = FilteredQuery(RandomQuery(random_state=1), RandomQuery(random_state=2), factor=2)
    kept = RandomQuery(random_state=1).select(proba, 10)
    expected = RandomQuery(random_state=2).select(proba, 5, candidates=kept)
    for asked in (
        query,
        clone(query),
        FilteredQuery(RandomQuery(), RandomQuery()).set_params(
            factor=2, filter__random_state=1, strategy__random_state=2
        ),
    ):
        np.testing.assert_array_equal(asked.select(proba, 5), expected)
    generator = np.random.default_rng(0)
    query = FilteredQuery(RandomQuery(random_state=generator), BALDQuery(), factor=2)
    assert len({tuple(query.select(proba, 5).tolist()) for _ in range(5)}) > 1


def test_warning_of_a_filter_that_finds_all_equal_names_it() -> None:
    constant = np.tile(make_proba(1), (20, 1, 1))
    query = FilteredQuery(MarginQuery(), RandomQuery(random_state=0), factor=2)
    with pytest.warns(match=r"equal utilities in the filter of FilteredQuery\.select"):
        picks = query.select(constant, 4)
    assert picks.max() < 8


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (
            FilteredQuery(MarginQuery, BALDQuery()),  # type: ignore[arg-type]
            TypeError,
            r"'filter' parameter of FilteredQuery .* Got the class MarginQuery; write MarginQu",
        ),
        (
            FilteredQuery(MarginQuery(), None),  # type: ignore[arg-type]
            TypeError,
            r"'strategy' parameter of FilteredQuery must be a query strategy.* Got None instead",
        ),
        (
            FilteredQuery(MarginQuery(), BALDQuery(), factor=0),
            ValueError,
            r"'factor' parameter of FilteredQuery",
        ),
        (
            FilteredQuery(MarginQuery(), BALDQuery(), factor=True),
            TypeError,
            r"'factor' parameter of FilteredQuery must not be a bool",
        ),
        (
            FilteredQuery(MarginQuery(), FilteredQuery(ICALQuery(step_size=0), BALDQuery())),
            ValueError,
            r"'step_size' parameter of ICALQuery",
        ),
        (FilteredQuery(MarginQuery(), FASSQuery()), TypeError, "features or X_pool must be given"),
        (FilteredQuery(BALDQuery(), ICALQuery(estimator="unbiased")), ValueError, "least 4 draws"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    query: BaseQuery, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        query.select(np.full((20, 3, 2), 0.5))


def test_parts_for_different_predictions_are_refused() -> None:
    class OfValues(BALDQuery):
        def query_tags(self) -> QueryTags:
            return QueryTags(kinds=("value",))

    message = r"one kind of predictions in common\. Got MarginQuery for .* and OfValues for .*value"
    with pytest.raises(ValueError, match=message):
        FilteredQuery(MarginQuery(), OfValues()).select(make_proba())


def test_costs_are_refused_as_the_filter_hides_gains() -> None:
    with pytest.raises(ValueError, match=r"costs needs .* utilities='other' of FilteredQuery"):
        FilteredQuery(MarginQuery(), BALDQuery()).select(make_proba(), 2, costs=np.ones(60))


WRAPPED = [
    FilteredQuery(MarginQuery(), ICALQuery(n_reference=20), factor=3),
    StochasticQuery(BALDQuery()),
    FilteredQuery(RandomQuery(), StochasticQuery(BALDQuery()), factor=3),
]


@pytest.mark.parametrize("strategy", WRAPPED, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("model", ["forest", "bayes"])
def test_composed_strategies_run_in_simulations_and_learners(
    strategy: BaseQuery, model: str
) -> None:
    rows, labels = X[:150] / 16, Y[:150]
    estimator: Any = RandomForestClassifier(8)
    if model == "bayes":  # draws are refits on the labeled rows
        estimator = GaussianNB()
    options = {"n_initial": 15, "batch_size": 5, "n_rounds": 2}
    runs = [
        simulate(
            estimator,
            rows,
            labels,
            strategy,
            random_state=seed,
            X_test=X[150:250] / 16,
            y_test=Y[150:250],
            **options,
        )
        for seed in (0, 0, 1)
    ]
    bought = [[row for each in run.rounds for row in each.positions] for run in runs]
    assert bought[0] == bought[1] != bought[2]
    assert all(len(set(each)) == len(each) for each in bought)
    learner = ActiveLearner(clone(estimator), strategy=_seeded(strategy)).fit(
        rows[:40], labels[:40]
    )
    picks = learner.query(rows[40:], 5)
    assert len(set(np.asarray(picks).tolist())) == 5


def _seeded(strategy: BaseQuery) -> BaseQuery:
    names = [name for name in strategy.get_params() if name.split("__")[-1] == "random_state"]
    return clone(strategy).set_params(**dict.fromkeys(names, 0))


def test_composed_strategies_are_compared() -> None:
    strategies = {"filtered": WRAPPED[0], "power": WRAPPED[1]}
    comparison = compare_strategies(
        RandomForestClassifier(8),
        X[:150],
        Y[:150],
        strategies,
        n_initial=15,
        batch_size=5,
        n_rounds=1,
        X_test=X[150:250],
        y_test=Y[150:250],
        seeds=2,
    )
    assert not comparison.failures
    for name, runs in comparison.results.items():
        for run in runs.values():
            rows = [row for each in run.rounds for row in each.positions]
            assert len(rows) == len(set(rows)) == 20, name


def test_composed_strategies_are_modal_strategies() -> None:
    forest = make_forest()
    for strategy in WRAPPED:
        asked = _seeded(strategy)
        picks, utilities = asked(forest, POOL, n_instances=5)
        expected, rows = asked.query(forest, POOL, 5, return_utilities=True)
        np.testing.assert_array_equal(picks, expected)
        np.testing.assert_array_equal(utilities, rows[np.arange(5), picks])
