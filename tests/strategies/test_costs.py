"""Costs and budgets in every strategy, against loops over steps and candidates in fractions."""

import itertools
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.naive_bayes import GaussianNB

from sklearn_ical import (
    BALDQuery,
    BaseQuery,
    ICALQuery,
    LeastConfidentQuery,
    MarginQuery,
    MaxEntropyQuery,
    PredictionSamples,
    RandomQuery,
)
from sklearn_ical.exceptions import EqualUtilitiesWarning
from sklearn_ical.pool import Pool
from sklearn_ical.selection import Batch, Selection
from sklearn_ical.strategies import QueryTags

Backend = Callable[[np.ndarray], Any]

N_POINTS, N_DRAWS = 30, 6
POINTWISE = [RandomQuery(random_state=1), MaxEntropyQuery(), MarginQuery(), LeastConfidentQuery()]
POINTWISE += [BALDQuery()]
ICAL: list[dict[str, Any]] = [
    {},
    {"include_self": False},
    {"estimator": "unbiased"},
    {"estimator": "unbiased", "include_self": False, "kernel": "delta"},
    {"prediction": "proba"},
    {"prediction": "proba", "estimator": "unbiased", "kernel": "rbf"},
    {"prediction": "expected", "include_self": False},
    {"prediction": "argmax"},
]
STEP_SIZES = [1, 3]
STRATEGIES = POINTWISE + [
    ICALQuery(8, step_size=size, random_state=1, **options)
    for options, size in itertools.product(ICAL, STEP_SIZES)
]
CANDIDATES = [None, [29, 0, 3, 4, 8, 9, 11, 14, 15, 20, 21, 27]]
BUDGETS = [None, 0.5, 4.0, 9.5, 1000.0]


def name_of(strategy: Any) -> str:
    return " ".join(repr(strategy).split())


def make_proba(seed: int = 0) -> np.ndarray:
    proba = np.random.default_rng(seed).dirichlet(np.full(3, 0.6), size=(N_POINTS, N_DRAWS))
    proba[3] = np.eye(3)[0]
    proba[20:] = proba[:10]  # every strategy but the random ones has ties
    return proba


def make_costs(seed: int = 0) -> np.ndarray:
    costs = np.random.default_rng(seed).choice([0.5, 1.0, 1.5, 2.0, 3.0, 7.0], size=N_POINTS)
    costs[20:25] = costs[:5]  # some of the rows that are equal cost the same
    return costs


def ratio(utility: Any, cost: Any) -> Fraction:
    """Return what a utility is per cost, without rounding."""
    utility, cost = Fraction(utility), Fraction(cost)
    return utility / cost if utility > 0 else utility * cost


def literal(
    steps: list[Any], costs: Any, budget: Any, batch_size: int, step_size: int, candidates: Any
) -> tuple[list[int], list[list[float]]]:
    """Pick greedily, candidate by candidate; ``steps[t][x]`` is the utility of x at step t."""
    left = Fraction(10**9 if budget is None else budget)
    free = set(range(N_POINTS) if candidates is None else candidates)
    picks: list[int] = []
    rows = []
    for step in steps:
        for _ in range(step_size):
            open_ = sorted(x for x in free if costs[x] <= left)
            if len(picks) == batch_size or not open_:
                return picks, rows
            worth = {x: ratio(step[x], costs[x]) for x in open_}
            best = max(open_, key=lambda x, worth=worth: (worth[x], -x))
            rows.append([float(worth[x]) if x in worth else math.nan for x in range(N_POINTS)])
            picks.append(best)
            free.remove(best)
            left -= Fraction(float(costs[best]))
    return picks, rows


def compare(picks: Any, rows: Any, expected: tuple[list[int], list[list[float]]]) -> None:
    assert picks.tolist() == expected[0]
    assert picks.dtype == np.intp
    assert rows.dtype == np.float64
    np.testing.assert_allclose(rows, np.array(expected[1]), rtol=1e-9, atol=1e-11)
    for pick, row in zip(picks, rows, strict=True):
        assert pick == int(np.nanargmax(row))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("strategy", POINTWISE, ids=name_of)
def test_scores_of_rows_are_chosen_per_cost_within_the_budget(
    strategy: BaseQuery, dtype: str, backend: Backend
) -> None:
    proba = make_proba().astype(dtype)
    _, plain = strategy.select(proba, N_POINTS, return_utilities=True)
    steps = [without_rounding(plain[0], of_labels=False)]
    for seed, candidates, budget in itertools.product(range(2), CANDIDATES, BUDGETS):
        costs = make_costs(seed)
        limits: dict[str, Any] = {"candidates": candidates, "costs": costs, "budget": budget}
        for batch_size in (1, 6, 12):
            expected = literal(steps, costs, budget, batch_size, batch_size, candidates)
            picks, rows = strategy.select(
                backend(proba), batch_size, return_utilities=True, **limits
            )
            compare(picks, rows, expected)
            assert strategy.select(backend(proba), batch_size, **limits).tolist() == expected[0]


def scores_labels(query: Any, kind: str = "proba") -> bool:
    """Return whether the scores are integers over a small denominator."""
    labels = kind == "label" or (kind == "proba" and query.prediction in ("sampled", "argmax"))
    return isinstance(query, ICALQuery) and labels


def without_rounding(utilities: Any, *, of_labels: bool) -> list[Fraction]:
    """Return the numbers that rounded ones stand for, so that what is equal is equal."""
    if of_labels:  # multiples of 1 over n_draws^4, or about that, and the size of a reference set
        return [Fraction(u).limit_denominator(12_000) for u in utilities]
    return [Fraction(round(u, 12)) for u in utilities]


def utilities_of_steps(
    query: ICALQuery, samples: Any, reference: Any, kind: str = "proba"
) -> list[list[Fraction]]:
    """Return the utilities of all rows against each reference set, from calls without costs."""
    alone = sklearn.clone(query).set_params(step_size=1)
    rows = [alone.select(samples, reference=[z], return_utilities=True)[1][0] for z in reference]
    return [without_rounding(row, of_labels=scores_labels(query, kind)) for row in rows]


@pytest.mark.parametrize("step_size", [1, 3, 10])
@pytest.mark.parametrize("options", ICAL, ids=repr)
def test_steps_are_chosen_per_cost_within_the_budget(
    options: dict[str, Any], step_size: int, backend: Backend
) -> None:
    batch_size = 8
    query = ICALQuery(step_size=step_size, random_state=1, **options)
    reference = np.random.default_rng(2).integers(0, N_POINTS, size=(-(-8 // step_size), 6))
    for dtype, budget in zip(("float32", "float64", "float64"), (4.0, 9.5, None), strict=True):
        proba, costs = make_proba().astype(dtype), make_costs(3)
        steps = utilities_of_steps(query, proba, reference)
        for candidates in CANDIDATES:
            expected = literal(steps, costs, budget, batch_size, step_size, candidates)
            limits: dict[str, Any] = {"candidates": candidates, "costs": costs, "budget": budget}
            limits |= {"reference": reference}
            for memory in (1024, 0.002):
                with sklearn.config_context(working_memory=memory):
                    picks, rows = query.select(
                        backend(proba), batch_size, return_utilities=True, **limits
                    )
                    same = query.select(backend(proba), batch_size, **limits)
                compare(picks, rows, expected)
                assert same.tolist() == expected[0]


def test_losses_of_the_unbiased_estimator_are_multiplied_by_costs() -> None:
    query = ICALQuery(8, estimator="unbiased", random_state=1)
    _, plain = query.select(make_proba(), return_utilities=True)
    costs = make_costs()
    _, rows = query.select(make_proba(), costs=costs, return_utilities=True)
    losses = plain[0] < 0
    assert losses.any()
    np.testing.assert_allclose(rows[0][losses], (plain[0] * costs)[losses], rtol=1e-9)
    np.testing.assert_allclose(rows[0][~losses], (plain[0] / costs)[~losses], rtol=1e-9)


@pytest.mark.parametrize(("library", "factor"), [("numpy", 3.0), ("numpy", 0.1), ("torch", 0.1)])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=name_of)
def test_equal_costs_change_no_pick(strategy: BaseQuery, factor: float, library: str) -> None:
    to = np.asarray if library == "numpy" else pytest.importorskip("torch").tensor
    for dtype, candidates in itertools.product(("float32", "float64"), CANDIDATES):
        proba = to(make_proba().astype(dtype))
        costs = np.full(N_POINTS, factor)
        expected, plain = strategy.select(proba, 7, candidates=candidates, return_utilities=True)
        for budget in (None, 7 * factor, 100 * factor):
            limits = {"candidates": candidates, "costs": costs, "budget": budget}
            assert strategy.select(proba, 7, **limits).tolist() == expected.tolist()
            picks, rows = strategy.select(proba, 7, return_utilities=True, **limits)
            assert picks.tolist() == expected.tolist()
            signed = np.where(plain > 0, plain / factor, plain * factor)
            np.testing.assert_allclose(rows, signed, rtol=1e-9, atol=1e-13)
        few = strategy.select(proba, 7, candidates=candidates, costs=costs, budget=4 * factor)
        assert few.tolist() == expected[:4].tolist()


class Fixed(BaseQuery):
    """Utilities that are given."""

    def __init__(self, utilities: Any = None) -> None:
        self.utilities = utilities

    _parameter_constraints = {"utilities": [object]}  # noqa: RUF012
    random_state = 0

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=("mean",))

    def _select(self, pool: Pool) -> Selection:
        batch = Batch(pool)
        batch.take(np.asarray(self.utilities, dtype=float), pool.batch_size, errors=0.0)
        return batch.selection()


@pytest.mark.parametrize("reverse", [False, True])
def test_equal_ratios_of_unequal_utilities_tie_to_the_lowest_position(reverse: bool) -> None:
    utilities = np.array([0.5, 1.0, 1.5, 2.0, 3.5])
    costs = np.array([1.0, 2.0, 3.0, 4.0, 7.0])
    if reverse:
        utilities, costs = utilities[::-1], costs[::-1]
    samples = np.ones((5, 1, 1))
    with pytest.warns(EqualUtilitiesWarning, match=r"equal utilities in Fixed\.select"):
        picks, rows = Fixed(utilities).select(samples, 3, costs=costs, return_utilities=True)
    assert picks.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(rows[0], 0.5)


def test_labels_of_equal_ratios_tie_to_the_lowest_position() -> None:
    # Priced by their scores, times 3 or 7, so that all ratios but that of certainty are equal.
    votes = np.array([[0, 1, 1, 0], [0, 0, 0, 1], [2, 2, 2, 2], [0, 0, 1, 0], [1, 1, 0, 0]])
    samples = PredictionSamples(votes, kind="label")
    reference = [[0, 1, 3, 4]] * 4
    query = ICALQuery()
    _, plain = query.select(samples, reference=reference[:1], return_utilities=True)
    exact = without_rounding(plain[0], of_labels=True)
    np.testing.assert_allclose([float(e) for e in exact], plain[0], rtol=1e-12)
    for by in (1, 3, 7):
        costs = np.array([float(e * 1024 * by) if e else 1.0 for e in exact])
        picks = query.select(samples, 4, reference=reference, costs=costs)
        assert picks.tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_kernels_of_one_hot_labels_make_the_same_choice_per_cost(
    scale: float, backend: Backend
) -> None:
    rng = np.random.default_rng(11)
    patterns = rng.integers(0, 3, size=(6, 7))[rng.integers(0, 6, size=60)]
    names = np.stack([rng.permutation(5)[:3] for _ in range(60)])  # equal scores, unequal rows
    labels = np.take_along_axis(names, patterns, axis=1)
    samples = PredictionSamples(backend(labels), "label")
    costs = rng.choice([1.0, 2.0, 3.0], size=60)
    how: dict[str, Any] = {"reference": rng.integers(0, 60, size=(20, 9)), "costs": costs}
    expected = ICALQuery().select(samples, 20, **how)
    scaled = ICALQuery(prediction="proba", kernel=lambda d2: scale * (1 + d2) ** -0.5)
    one_hot = backend(np.eye(5)[labels])
    assert scaled.select(one_hot, 20, **how).tolist() == expected.tolist()
    sooner, later = expected[:-1], expected[1:]
    same = (patterns[sooner] == patterns[later]).all(axis=1) & (costs[sooner] == costs[later])
    assert same.any()
    assert (sooner < later)[same].all()


@pytest.mark.parametrize("strategy", STRATEGIES, ids=name_of)
def test_query_equals_select_with_costs(strategy: BaseQuery) -> None:
    X = np.random.default_rng(7).normal(size=(N_POINTS, 2))
    models = [
        GaussianNB().fit(X[:20], np.arange(20) % 3 if k % 2 else np.tile([0, 1, 2, 2], 5))
        for k in range(N_DRAWS)
    ]
    samples = PredictionSamples(np.stack([m.predict_proba(X) for m in models], axis=1))
    costs = make_costs()
    for candidates, budget in itertools.product(CANDIDATES, (None, 6.0)):
        limits: dict[str, Any] = {"candidates": candidates, "costs": costs, "budget": budget}
        expected, rows = strategy.select(samples, 6, return_utilities=True, **limits)
        picks, same = strategy.query(models, X, 6, return_utilities=True, **limits)
        assert picks.tolist() == expected.tolist()
        np.testing.assert_allclose(same, rows, rtol=1e-9, atol=1e-12)
        assert strategy.query(models, X, 6, **limits).tolist() == expected.tolist()


@pytest.mark.parametrize("kind", ["label", "value"])
@pytest.mark.parametrize(
    "strategy", [MaxEntropyQuery(), BALDQuery(), ICALQuery(8, step_size=3, random_state=0)]
)
def test_other_kinds_are_chosen_per_cost(strategy: Any, kind: str, backend: Backend) -> None:
    rng = np.random.default_rng(8)
    values: Any = rng.integers(0, 3, size=(N_POINTS, N_DRAWS))
    values = values if kind == "label" else rng.normal(size=(N_POINTS, N_DRAWS))
    samples, costs = PredictionSamples(backend(values), kind), make_costs()
    step_size = getattr(strategy, "step_size", 6)
    reference: dict[str, Any] = {}
    if isinstance(strategy, ICALQuery):
        reference = {"reference": rng.integers(0, N_POINTS, size=(2, 5))}
        steps = utilities_of_steps(strategy, samples, reference["reference"], kind)
    else:
        _, plain = strategy.select(samples, return_utilities=True)
        steps = [without_rounding(plain[0], of_labels=False)]
    expected = literal(steps, costs, 5.0, 6, step_size, None)
    picks, rows = strategy.select(
        samples, 6, costs=costs, budget=5.0, return_utilities=True, **reference
    )
    compare(picks, rows, expected)


def test_a_budget_skips_what_does_not_fit_and_ends_where_nothing_does() -> None:
    samples = np.ones((6, 1, 1))
    query = Fixed([9.0, 8.0, 7.0, 1.0, 0.5, 0.1])
    costs = [2.0, 2.0, 4.0, 1.0, 2.0, 1.0]  # per cost 4.5, 4, 1.75, 1, 0.25, 0.1
    for budget, expected in [
        (1.0, [3]),
        (1.5, [3]),
        (2.0, [0]),
        (3.0, [0, 3]),
        (4.0, [0, 1]),
        (6.0, [0, 1, 3, 5]),
        (7.9, [0, 1, 3, 4]),
        (8.0, [0, 1, 2]),
        (12.0, [0, 1, 2, 3, 4, 5]),
    ]:
        assert query.select(samples, 6, costs=costs, budget=budget).tolist() == expected
    assert query.select(samples, 2, costs=costs, budget=6.0).tolist() == [0, 1]


def test_the_rounding_of_sums_leaves_no_row_out() -> None:
    samples = np.ones((12, 1, 1))
    for n, cost in itertools.product(range(1, 13), (0.1, 0.3, 1 / 3, 0.7, 1e-9, 1e15 / 3)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EqualUtilitiesWarning)
            picks = Fixed(np.ones(12)).select(samples, 12, costs=np.full(12, cost), budget=n * cost)
        assert picks.tolist() == list(range(n))


def test_random_picks_favor_cheap_rows() -> None:
    costs = np.where(np.arange(40) < 20, 1.0, 10.0)
    generator = np.random.default_rng(0)
    query = RandomQuery(random_state=generator)
    cheap = sum(int(np.sum(query.query(None, range(40), 5, costs=costs) < 20)) for _ in range(100))
    assert cheap > 480


def test_small_budgets_for_large_pools_take_few_rounds() -> None:
    n = 20_000
    rng = np.random.default_rng(9)
    utilities, costs = rng.random(n), rng.integers(1, 1000, size=n).astype(float)
    calls: list[int] = []

    class Counting(Fixed):
        def _select(self, pool: Pool) -> Selection:
            def exact(where: np.ndarray) -> np.ndarray:
                calls.append(len(where))
                return self.utilities[where]

            batch = Batch(pool)
            batch.take(self.utilities, pool.batch_size, errors=2.5e-13, exact=exact)
            return batch.selection()

    order = np.argsort(-utilities / costs, kind="stable")
    left, expected = 30_000.0, []
    for place in order:
        if costs[place] <= left and len(expected) < 3000:
            expected.append(int(place))
            left -= costs[place]
    picks = Counting(utilities).select(np.ones((n, 1, 1)), 3000, costs=costs, budget=30_000.0)
    assert picks.tolist() == expected
    assert len(calls) < 15
    assert sum(calls) < 2 * n


def test_a_budget_without_costs_and_strange_costs_are_refused_before_any_work() -> None:
    def model(_: Any) -> None:
        raise AssertionError("the model was asked")

    for strategy in (RandomQuery(), MarginQuery(), ICALQuery()):
        name = type(strategy).__name__
        X = np.zeros((4, 1))
        with pytest.raises(ValueError, match=rf"Got budget=3 without costs in {name}\.query; pass"):
            strategy.query(model, X, budget=3)
        with pytest.raises(ValueError, match=rf"Got nan for row 2 in {name}\.query"):
            strategy.query(model, X, costs=[1, 1, np.nan, 1])
        with pytest.raises(ValueError, match=rf"shape \(4,\).*Got shape \(3,\) in {name}\.query"):
            strategy.query(model, X, costs=[1, 1, 1])
        message = rf"Got budget=1.5 in {name}\.query, where the cheapest candidate costs 2\.0"
        with pytest.raises(ValueError, match=message):
            strategy.query(model, X, costs=[1, 2, 3, 4], budget=1.5, candidates=[1, 2])
        with pytest.raises(TypeError, match=rf"Got True of type bool in {name}\.query"):
            strategy.query(model, X, costs=[1, 2, 3, 4], budget=True)
        proba = make_proba()
        with pytest.raises(ValueError, match=rf"Got budget=3 without costs in {name}\.select"):
            strategy.select(proba, budget=3)
        with pytest.raises(ValueError, match=rf"Got 0\.0 for row 0 in {name}\.select"):
            strategy.select(proba, costs=np.zeros(N_POINTS))


def test_a_wrong_call_takes_nothing_from_the_generator() -> None:
    generator = np.random.default_rng(0)
    before = generator.bit_generator.state
    with pytest.raises(ValueError, match="costs"):
        RandomQuery(random_state=generator).query(None, range(5), costs=[0] * 5)
    assert generator.bit_generator.state == before


class Whole(BaseQuery):
    """A choice without gains."""

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=(), utilities="other")

    def _select(self, pool: Pool) -> Selection:
        chosen = pool.candidates[: pool.batch_size]
        return Selection(chosen, np.zeros(len(chosen)))


class Careless(Whole):
    """A choice by gains that knows no costs."""

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=())


class Careful(Careless):
    """A choice that takes costs into account itself."""

    def _select(self, pool: Pool) -> Selection:
        costs = np.ones(len(pool.candidates)) if pool.costs is None else pool.costs
        chosen = np.argsort(costs, kind="stable")[: pool.batch_size]
        chosen = chosen[np.cumsum(costs[chosen]) <= pool.budget]
        return Selection(pool.candidates[chosen], 1 / costs[chosen], handles_costs=True)


def test_strategies_without_gains_refuse_costs_and_name_the_tag() -> None:
    assert Whole().query(None, range(5), 2).tolist() == [0, 1]
    message = r"utilities='gain'\. Got utilities='other' of Whole in Whole\.{}; leave costs out"
    with pytest.raises(ValueError, match=message.format("query")):
        Whole().query(None, range(5), 2, costs=np.ones(5))
    with pytest.raises(ValueError, match=message.format("select")):
        Whole().select(make_proba(), 2, costs=np.ones(N_POINTS))


def test_strategies_that_leave_costs_out_are_found_out() -> None:
    assert Careless().query(None, range(5), 2).tolist() == [0, 1]
    message = (
        r"_select of Careless does not support costs\. Got costs in Careless\.{}; choose .*Batch"
    )
    with pytest.raises(NotImplementedError, match=message.format("query")):
        Careless().query(None, range(5), 2, costs=np.ones(5))
    with pytest.raises(NotImplementedError, match=message.format("select")):
        Careless().select(make_proba(), 2, costs=np.ones(N_POINTS), budget=3)
    costs = [5.0, 1.0, 2.0, 9.0, 1.5]
    assert Careful().query(None, range(5), 4, costs=costs, budget=4).tolist() == [1, 4]
    picks = Careful().query(None, range(5), 3, costs=costs, budget=4, candidates=[0, 2, 4])
    assert picks.tolist() == [4, 2]


class Facility(BaseQuery):
    """Rows that cover the rows not covered yet: gains depend on what was picked before."""

    def __init__(self, likeness: Any = None) -> None:
        self.likeness = likeness

    _parameter_constraints = {"likeness": [object]}  # noqa: RUF012
    random_state = 0

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=())

    def _select(self, pool: Pool) -> Selection:
        batch = Batch(pool)
        while not batch.full:
            covered = self.likeness[batch.chosen].max(axis=0, initial=0.0)
            gains = np.maximum(self.likeness - covered, 0.0).sum(axis=1)
            batch.take(gains[pool.candidates])
        return batch.selection()


@pytest.mark.parametrize("budget", [None, 4.0, 9.5])
@pytest.mark.parametrize("candidates", CANDIDATES)
def test_gains_that_depend_on_earlier_picks_are_chosen_step_by_step(
    candidates: Any, budget: Any
) -> None:
    likeness = np.random.default_rng(10).integers(0, 16, size=(N_POINTS, N_POINTS)) / 16
    costs, left = make_costs(1), np.inf if budget is None else budget
    picks: list[int] = []
    allowed = range(N_POINTS) if candidates is None else sorted(candidates)
    while len(picks) < 7:
        covered = [max((likeness[y, x] for y in picks), default=0.0) for x in range(N_POINTS)]
        open_ = [x for x in allowed if x not in picks and costs[x] <= left]
        if not open_:
            break
        gains = {
            x: sum(max(likeness[x, z] - covered[z], 0.0) for z in range(N_POINTS)) for x in open_
        }
        picks.append(max(open_, key=lambda x, g=gains: (ratio(g[x], costs[x]), -x)))
        left -= costs[picks[-1]]
    found = Facility(likeness).query(
        None, range(N_POINTS), 7, costs=costs, budget=budget, candidates=candidates
    )
    assert found.tolist() == picks
