"""Stochastic batches: frequencies in closed form, limits of beta, what may be inside, seeds."""

import itertools
from typing import Any

import numpy as np
import pytest

from sklearn_ical import (
    BALDQuery,
    BaseQuery,
    FilteredQuery,
    ICALQuery,
    MarginQuery,
    RandomQuery,
    StochasticQuery,
)
from sklearn_ical.pool import Pool
from sklearn_ical.selection import Batch, Selection
from sklearn_ical.strategies import QueryTags
from sklearn_ical.strategies._stochastic import _perturbed

KINDS = ["power", "softmax", "softrank"]


class Scores(BaseQuery):
    """Chooses by fixed scores."""

    def __init__(self, scores: Any = (1, 2, 4), random_state: Any = None) -> None:
        self.scores = scores
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=())

    def _select(self, pool: Pool) -> Selection:
        batch = Batch(pool)
        batch.take(np.array(self.scores, dtype=float)[pool.candidates], pool.batch_size)
        return batch.selection()


def ask(query: BaseQuery, batch_size: int = 1, **options: Any) -> Any:
    """Query a pool of as many rows as there are scores."""
    n_rows = len(query.get_params()["strategy__scores"])
    return query.query(None, np.zeros((n_rows, 1)), batch_size, **options)


def chances(kind: str, beta: float, scores: np.ndarray) -> np.ndarray:
    """Return the probability of each row to be the first pick."""
    ranks = 1 + np.sum(scores[:, None] < scores, axis=1)
    weights = {
        "power": np.maximum(scores, 0) ** beta * (scores > 0),
        "softmax": np.exp(beta * scores),
        "softrank": ranks**-beta,
    }[kind]
    return weights / weights.sum()


def test_power_picks_with_frequencies_in_proportion_to_scores() -> None:
    uniforms = np.random.default_rng(0).random((20_000, 3))
    scores = np.array([1.0, 2.0, 4.0])
    first = [np.argmax(_perturbed(scores, "power", 1.0, -np.log1p(-row))) for row in uniforms]
    frequencies = np.bincount(first, minlength=3) / 20_000
    np.testing.assert_allclose(frequencies, [1 / 7, 2 / 7, 4 / 7], atol=0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
def test_batches_are_drawn_one_after_the_other_without_replacement(kind: str, beta: float) -> None:
    scores = np.array([0.5, 2.0, 0.5, 1.0])
    n = 6000
    uniforms = np.random.default_rng(1).random((n, 4))
    pairs = np.array(
        [
            np.argsort(-_perturbed(scores, kind, beta, -np.log1p(-row)), kind="stable")[:2]
            for row in uniforms
        ]
    )
    p = chances(kind, beta, scores)
    for a, b in itertools.permutations(range(4), 2):
        expected = p[a] * p[b] / (1 - p[a])
        got = np.mean((pairs == [a, b]).all(axis=1))
        assert abs(got - expected) < 4 * np.sqrt(expected * (1 - expected) / n)


@pytest.mark.parametrize("kind", KINDS)
def test_queries_have_the_frequencies_of_their_kind(kind: str) -> None:
    n = 2000
    query = StochasticQuery(Scores(), kind=kind, random_state=np.random.default_rng(2))
    first = np.concatenate([ask(query) for _ in range(n)])
    p = chances(kind, 1.0, np.array([1.0, 2.0, 4.0]))
    frequencies = np.bincount(first, minlength=3) / n
    np.testing.assert_allclose(frequencies, p, atol=4 * 0.5 / np.sqrt(n))


def test_rows_without_a_score_come_last_in_random_order() -> None:
    scores = [0.0, 1e-300, -3.0, 1e300, 0.0, 2.0]
    lasts = set()
    for seed in range(200):
        picks, rows = ask(
            StochasticQuery(Scores(scores), random_state=seed), 6, return_utilities=True
        )
        assert set(picks[:3].tolist()) == {1, 3, 5}
        assert np.isfinite(rows[0]).all()
        lasts.add(tuple(picks[3:].tolist()))
    assert len(lasts) == 6
    nothing = StochasticQuery(Scores([0.0, 0.0, -1.0]), random_state=0)
    assert sorted(ask(nothing, 3).tolist()) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_large_beta_gives_the_top_of_the_scores(kind: str) -> None:
    scores = np.random.default_rng(3).permutation(np.arange(1, 31)) / 10
    query = StochasticQuery(Scores(scores), kind=kind, beta=1e6, random_state=0)
    np.testing.assert_array_equal(ask(query, 10), np.argsort(-scores)[:10])


@pytest.mark.parametrize("kind", KINDS)
def test_equal_scores_are_equally_likely_and_no_matter_of_warnings(kind: str) -> None:
    query = StochasticQuery(Scores([0.3] * 50), kind=kind)
    picked = {int(ask(query.set_params(random_state=seed))[0]) for seed in range(100)}
    assert len(picked) > 35  # 43 of 50 are expected


@pytest.mark.parametrize("kind", KINDS)
def test_noise_belongs_to_the_position_in_the_pool(kind: str) -> None:
    scores = np.random.default_rng(4).random(40)
    query = StochasticQuery(Scores(scores), kind=kind, random_state=5)
    picks, rows = ask(query, 40, return_utilities=True)
    for t, row in enumerate(rows):
        assert picks[t] == np.nanargmax(row)
        assert np.isnan(row[picks[:t]]).all()
    if kind != "softrank":  # ranks are those among the candidates
        allowed = np.arange(3, 40, 4)
        part = ask(query, 10, candidates=allowed)
        assert part.tolist() == [place for place in picks if place in allowed]


def test_noise_is_independent_of_what_other_strategies_draw_from_an_equal_seed() -> None:
    pool = np.zeros((5000, 1))
    _, uniforms = RandomQuery(random_state=0).query(None, pool, return_utilities=True)
    query = StochasticQuery(Scores([1.0] * 5000), random_state=0)
    _, noise = query.query(None, pool, return_utilities=True)
    assert abs(np.corrcoef(uniforms[0], noise[0])[0, 1]) < 4 / np.sqrt(5000)


def test_scores_are_the_utilities_of_the_first_pick_whatever_the_candidates() -> None:
    proba = np.random.default_rng(6).dirichlet(np.ones(3), size=(30, 5))
    inner = ICALQuery(n_reference=10, prediction="proba", random_state=1)
    _, expected = inner.select(proba, return_utilities=True)
    _, rows = StochasticQuery(inner, kind="softmax", random_state=2).select(
        proba, return_utilities=True
    )
    _, noise = StochasticQuery(inner, kind="softmax", beta=0, random_state=2).select(
        proba, return_utilities=True
    )
    np.testing.assert_allclose(rows - noise, expected, atol=1e-12)


def test_each_part_runs_on_its_own_random_state() -> None:
    proba = np.random.default_rng(7).dirichlet(np.ones(3), size=(30, 5))
    inner = ICALQuery(n_reference=5, prediction="proba")
    query = StochasticQuery(inner, kind="softmax", beta=0, random_state=2)
    (noise,) = {tuple(query.select(proba, 30)) for _ in range(3)}  # scores count for nothing
    assert tuple(query.set_params(random_state=3).select(proba, 30)) != noise
    query.set_params(beta=1e6, strategy__random_state=0)
    ordered = {tuple(query.set_params(random_state=seed).select(proba, 5)) for seed in range(5)}
    assert len(ordered) == 1  # noise counts for nothing
    varied = (query.set_params(strategy__random_state=seed).select(proba, 5) for seed in range(6))
    assert len(set(map(tuple, varied))) > 1


def test_reference_rows_reach_the_strategy() -> None:
    proba = np.random.default_rng(8).dirichlet(np.ones(3), size=(40, 5))
    inner = ICALQuery(n_reference=10, prediction="proba", random_state=0)
    query = StochasticQuery(inner, kind="softmax", beta=1e9, random_state=0)
    expected = inner.select(proba, reference_samples=proba[:12])
    np.testing.assert_array_equal(query.select(proba, reference_samples=proba[:12]), expected)
    assert (
        query.select(proba, 5).tolist()
        != query.select(proba, 5, reference_samples=proba[:12]).tolist()
    )


def test_tags_are_those_of_the_strategy_but_random() -> None:
    assert StochasticQuery(BALDQuery()).query_tags() == QueryTags(
        deterministic=False, utilities="other", min_draws=2
    )
    assert StochasticQuery(MarginQuery()).query_tags() == QueryTags(
        deterministic=False, utilities="other", kinds=("proba", "label"), reads=("mean",)
    )


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (
            StochasticQuery(BALDQuery),  # type: ignore[arg-type]
            TypeError,
            r"'strategy' parameter of StochasticQuery must be a query strategy.*"
            r"Got the class BALDQuery; write BALDQuery\(\)\.",
        ),
        (
            StochasticQuery(3),  # type: ignore[arg-type]
            TypeError,
            r"'strategy' parameter of StochasticQuery .* Got 3 instead; pass one",
        ),
        (
            StochasticQuery(StochasticQuery(BALDQuery())),
            ValueError,
            r"'strategy' parameter of StochasticQuery .*utilities='gain'\. Got StochasticQuery "
            r"with utilities='other'",
        ),
        (
            StochasticQuery(FilteredQuery(BALDQuery(), MarginQuery())),
            ValueError,
            r"Got FilteredQuery with utilities='other'",
        ),
        (
            StochasticQuery(ICALQuery(n_reference=0)),
            ValueError,
            r"'n_reference' parameter of ICALQuery",
        ),
        (StochasticQuery(BALDQuery(), kind="soft"), ValueError, r"'kind' parameter of Stoch"),
        (StochasticQuery(BALDQuery(), beta=-1.0), ValueError, r"'beta' parameter of Stoch"),
        (StochasticQuery(BALDQuery(), beta=np.nan), ValueError, r"'beta' parameter of Stoch"),
        (StochasticQuery(BALDQuery(), beta=True), TypeError, r"'beta' parameter .* a bool"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    query: BaseQuery, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        query.select(np.full((4, 3, 2), 0.5))


def test_costs_are_refused_as_perturbed_scores_are_no_gains() -> None:
    with pytest.raises(ValueError, match=r"costs needs .* Got utilities='other' of StochasticQ"):
        ask(StochasticQuery(Scores()), costs=[1, 2, 3])
