"""Random, entropy, margin, least-confident and BALD queries against literal formulas and ties."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn

from sklearn_ical import (
    BALDQuery,
    BaseQuery,
    LeastConfidentQuery,
    MarginQuery,
    MaxEntropyQuery,
    PredictionSamples,
    RandomQuery,
)
from sklearn_ical.exceptions import BatchClippedWarning, EqualUtilitiesWarning

Backend = Callable[[np.ndarray], Any]
Rows = list[list[float]]

N_POINTS, N_DRAWS, N_CLASSES = 25, 4, 3
WEIGHTS = [0.1, 0.0, 0.6, 0.3]
CHUNKS = (1024, 0.001, 1e-9)
QUERIES = [MaxEntropyQuery, MarginQuery, LeastConfidentQuery, BALDQuery]


def entropy(p: list[float]) -> float:
    return -math.fsum(x * math.log(x) for x in p if x > 0)


def mean_of(rows: Rows, w: list[float]) -> list[float]:
    return [math.fsum(wk * x for wk, x in zip(w, column, strict=True)) for column in zip(*rows)]  # noqa: B905


def literal(query: type[BaseQuery], rows: Rows, w: list[float]) -> float:
    """Return the utility of one point from its class probabilities, draw by draw."""
    mean = mean_of(rows, w)
    first, second = sorted(mean)[::-1][:2]
    if query is MarginQuery:
        return 1 - (first - second)
    if query is LeastConfidentQuery:
        return 1 - first
    given_draw = math.fsum(wk * entropy(row) for wk, row in zip(w, rows, strict=True))
    return entropy(mean) - (given_draw if query is BALDQuery else 0.0)


def make_proba(seed: int = 0) -> np.ndarray:
    proba = np.random.default_rng(seed).dirichlet(np.full(N_CLASSES, 0.6), size=(N_POINTS, N_DRAWS))
    proba[3] = np.eye(N_CLASSES)[0]  # 0 log 0 occurs
    proba[4] = np.eye(N_CLASSES)[[0, 1, 2, 2]]
    return proba


def check(
    query: BaseQuery, samples: PredictionSamples, expected: np.ndarray, candidates: Any = None
) -> None:
    """Compare picks and utilities with fixed utilities per row, in chunks of several sizes."""
    allowed = np.arange(len(expected)) if candidates is None else np.sort(candidates)
    order = allowed[np.lexsort((allowed, -np.round(expected[allowed], 12)))]
    for memory in CHUNKS if isinstance(samples.values, np.ndarray) else CHUNKS[:2]:
        with sklearn.config_context(working_memory=memory):
            picks, utilities = query.select(
                samples, 6, candidates=candidates, return_utilities=True
            )
            same = query.select(samples, 6, candidates=candidates)
        assert isinstance(picks, np.ndarray)
        assert picks.dtype == np.intp
        assert picks.tolist() == same.tolist() == order[:6].tolist()
        assert utilities.dtype == np.float64
        for t, row in enumerate(utilities):
            free = np.setdiff1d(allowed, picks[:t])
            np.testing.assert_array_equal(np.flatnonzero(~np.isnan(row)), free)
            np.testing.assert_allclose(row[free], expected[free], rtol=1e-10, atol=1e-13)
            assert picks[t] == np.nanargmax(row)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("query", QUERIES)
def test_utilities_equal_literal_formulas_on_every_backend(
    query: type[BaseQuery], weights: Any, dtype: str, backend: Backend
) -> None:
    proba = make_proba().astype(dtype)
    w = [1 / N_DRAWS] * N_DRAWS if weights is None else weights
    expected = np.array([literal(query, rows, w) for rows in proba.astype(float).tolist()])
    samples = PredictionSamples(backend(proba), weights=weights)
    check(query(), samples, expected)
    check(query(), samples, expected, candidates=[24, 1, 4, 3, 9, 11, 12])


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("query", QUERIES)
def test_labels_are_votes(
    query: type[BaseQuery], weights: Any, dtype: str, backend: Backend
) -> None:
    labels = np.random.default_rng(1).integers(0, 4, size=(N_POINTS, N_DRAWS)).astype(dtype)
    labels[7] = 2
    w = [1 / N_DRAWS] * N_DRAWS if weights is None else weights
    expected = np.array([literal(query, rows, w) for rows in np.eye(4)[labels].tolist()])
    check(query(), PredictionSamples(backend(labels), kind="label", weights=weights), expected)


def test_vote_entropy_of_four_voters_equals_closed_form() -> None:
    votes = np.array([[1, 1, 1, 1], [0, 1, 0, 0], [1, 1, 0, 0], [5, 2, 5, 2], [3, 3, 3, 8]])
    for query in (MaxEntropyQuery(), BALDQuery()):
        picks, utilities = query.select(
            PredictionSamples(votes, kind="label"), 5, return_utilities=True
        )
        np.testing.assert_allclose(utilities[0], [0, 0.562335, 0.693147, 0.693147, 0.562335], 1e-6)
        assert utilities[0, 0] == 0.0
        assert picks.tolist() == [2, 3, 1, 4, 0]


def test_labels_of_many_classes_do_not_wrap_around() -> None:
    labels = np.array([[0, 0, 0], [0, 256, 512], [0, 256, 0]])
    samples = PredictionSamples(labels.astype(np.int16), kind="label")
    for query in (MaxEntropyQuery(), MarginQuery(), LeastConfidentQuery(), BALDQuery()):
        assert query.select(samples, 3).tolist() == [1, 2, 0]


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("noise", [None, "one", "points", "draws"])
@pytest.mark.parametrize("n_targets", [None, 2])
def test_regression_utilities_equal_variance_and_information(
    n_targets: int | None, noise: str | None, weights: Any, backend: Backend
) -> None:
    rng = np.random.default_rng(2)
    shape = (N_POINTS, N_DRAWS) if n_targets is None else (N_POINTS, N_DRAWS, n_targets)
    values = rng.normal(size=shape) + 5 * rng.normal(size=(N_POINTS, 1, 1)[: len(shape)])
    given: Any = {
        None: None,
        "one": 0.4,
        "points": rng.uniform(0.1, 2, size=N_POINTS),
        "draws": rng.uniform(0.1, 2, size=(N_POINTS, N_DRAWS)),
    }[noise]
    w = np.full(N_DRAWS, 1 / N_DRAWS) if weights is None else np.array(weights)
    columns = values.reshape(N_POINTS, N_DRAWS, -1)
    mean = np.einsum("k,nkd->nd", w, columns)
    spread = np.einsum("k,nkd->nd", w, (columns - mean[:, None]) ** 2)
    total, information = spread.sum(axis=1), spread.sum(axis=1)
    if given is not None:
        each = np.broadcast_to(np.reshape(given, (*np.shape(given), 1, 1)[:2]), (N_POINTS, N_DRAWS))
        total = total + spread.shape[1] * (each @ w)
        logs = np.log(spread + (each @ w)[:, None]) - (np.log(each) @ w)[:, None]
        information = logs.sum(axis=1) / 2
    samples = PredictionSamples(
        backend(values), kind="value", weights=weights, noise_variance=given
    )
    check(MaxEntropyQuery(), samples, total)
    check(BALDQuery(), samples, information)


def test_noise_makes_entropy_and_information_disagree() -> None:
    values = np.array([[0.0, 2.0], [0.0, 3.0], [1.0, 1.0]])
    noise = np.array([0.1, 1.0, 100.0])
    samples = PredictionSamples(values, kind="value", noise_variance=noise)
    assert MaxEntropyQuery().select(samples, 3).tolist() == [2, 1, 0]
    assert BALDQuery().select(samples, 3).tolist() == [0, 1, 2]
    assert BALDQuery().select(PredictionSamples(values, kind="value"), 3).tolist() == [1, 0, 2]


@pytest.mark.parametrize("memory", CHUNKS)
def test_noise_that_is_zero_for_some_rows_is_refused_in_any_chunk(memory: float) -> None:
    values = np.random.default_rng(0).normal(size=(6, 5))
    noise = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    samples = PredictionSamples(values, kind="value", noise_variance=noise)
    with (
        sklearn.config_context(working_memory=memory),
        pytest.raises(ValueError, match=r"noise_variance must be finite and > 0"),
    ):
        BALDQuery().select(samples, 2)


def permuted_copies(
    query: type[BaseQuery], of: np.ndarray, dtype: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that equal few rows up to the order of classes and draws, and their utilities."""
    n_draws, n_classes = 7, 5
    few = rng.dirichlet(np.full(n_classes, 0.4), size=(of.max() + 1, n_draws)).astype(dtype)
    w = [1 / n_draws] * n_draws
    worth = np.array([literal(query, rows, w) for rows in few.astype(float).tolist()])
    rows = [few[k][rng.permutation(n_draws)][:, rng.permutation(n_classes)] for k in of]
    return np.stack(rows), worth[of]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("query", QUERIES)
def test_rows_equal_up_to_order_tie_to_the_lowest_position(
    query: type[BaseQuery], dtype: str, backend: Backend
) -> None:
    rng = np.random.default_rng(4)
    of = rng.integers(0, 5, size=120)
    proba, worth = permuted_copies(query, of, dtype, rng)
    expected = np.lexsort((np.arange(120), -worth))
    for memory in CHUNKS[:2]:
        with sklearn.config_context(working_memory=memory):
            for batch_size in (1, 20, 120):
                picks = query().select(backend(proba), batch_size)
                np.testing.assert_array_equal(picks, expected[:batch_size])
            picks, utilities = query().select(backend(proba), 120, return_utilities=True)
    np.testing.assert_array_equal(picks, expected)
    for pick, row in zip(picks, utilities, strict=True):
        assert pick == np.nanargmax(row)


@pytest.mark.parametrize("noise", [None, "draws"])
@pytest.mark.parametrize("query", [MaxEntropyQuery, BALDQuery])
def test_regression_rows_equal_up_to_the_order_of_draws_tie(
    query: type[BaseQuery], noise: str | None, backend: Backend
) -> None:
    rng = np.random.default_rng(5)
    of = rng.integers(0, 3, size=60)
    few, noises = rng.normal(size=(3, 7)) * [[1], [2], [4]], rng.uniform(1, 2, size=(3, 7))
    orders = [rng.permutation(7) for _ in of]
    values = np.stack([few[k][order] for k, order in zip(of, orders, strict=True)])
    others = np.stack([noises[k][order] for k, order in zip(of, orders, strict=True)])
    samples = PredictionSamples(
        backend(values), kind="value", noise_variance=others if noise else None
    )
    expected = np.lexsort((np.arange(60), -of))  # wider rows first
    np.testing.assert_array_equal(query().select(samples, 60), expected)


@pytest.mark.parametrize("query", QUERIES)
def test_equal_rows_warn_and_give_the_lowest_positions(
    query: type[BaseQuery], backend: Backend
) -> None:
    proba = np.tile(np.random.default_rng(6).dirichlet(np.ones(3), size=4), (50, 1, 1))
    for memory in CHUNKS[:2]:
        with (
            sklearn.config_context(working_memory=memory),
            pytest.warns(EqualUtilitiesWarning, match=rf"equal utilities in {query.__name__}.sel"),
        ):
            picks = query().select(backend(proba), 7, candidates=range(9, 50))
        assert picks.tolist() == list(range(9, 16))
    assert query().select(backend(proba), 50).tolist() == list(range(50))  # nothing is left out


@pytest.mark.parametrize("query", QUERIES)
def test_one_row_and_one_class_give_right_answers(query: type[BaseQuery], backend: Backend) -> None:
    picks, utilities = query().select(backend(make_proba()[:1]), return_utilities=True)
    assert picks.tolist() == [0]
    assert np.isfinite(utilities).all()
    single = backend(np.ones((3, 2, 1), dtype=np.float32))
    with pytest.warns(EqualUtilitiesWarning):
        picks, utilities = query().select(single, 2, return_utilities=True)
    assert picks.tolist() == [0, 1]
    np.testing.assert_array_equal(utilities[0], 0.0)


@pytest.mark.parametrize("query", QUERIES)
def test_hard_and_half_precision_probabilities_give_right_answers(query: type[BaseQuery]) -> None:
    labels = np.random.default_rng(7).integers(0, 3, size=(20, 5))
    labels[:2] = [[0] * 5, [0, 0, 1, 1, 2]]
    hard = np.eye(3)[labels]
    expected = np.array([literal(query, rows, [0.2] * 5) for rows in hard.tolist()])
    order = np.lexsort((np.arange(20), -np.round(expected, 12)))
    for dtype in (np.int64, np.float16, np.float32, np.float64):
        np.testing.assert_array_equal(query().select(hard.astype(dtype), 20), order)


def test_bald_needs_two_draws_and_means_need_one() -> None:
    one = make_proba()[:, :1]
    with pytest.raises(ValueError, match=r"BALDQuery needs at least 2 draws\. Got 1 in BALDQuery"):
        BALDQuery().select(one)
    expected = np.argmax([entropy(rows[0]) for rows in one.tolist()])
    assert MaxEntropyQuery().select(one).tolist() == [expected]


@pytest.mark.parametrize("query", [MarginQuery, LeastConfidentQuery])
def test_means_of_classes_refuse_real_predictions(query: type[BaseQuery]) -> None:
    samples = PredictionSamples(np.zeros((3, 2)), kind="value")
    message = rf"{query.__name__} supports predictions of kind 'proba' or 'label'\. Got kind"
    with pytest.raises(ValueError, match=message):
        query().select(samples)


def test_random_picks_are_the_largest_of_their_stream() -> None:
    seed = np.random.SeedSequence(3, spawn_key=(5,))
    uniforms = np.random.Generator(np.random.PCG64(seed)).random(40)
    order = np.argsort(-uniforms)
    query = RandomQuery(random_state=3)
    rows = np.zeros((40, 1))
    picks, utilities = query.query(None, rows, 40, return_utilities=True)
    np.testing.assert_array_equal(picks, order)
    np.testing.assert_array_equal(utilities[0], uniforms)
    assert np.isnan(utilities[10, picks[:10]]).all()
    np.testing.assert_array_equal(utilities[10, picks[10:]], uniforms[picks[10:]])
    candidates = [39, 2, 17, 21, 5]
    part = query.query(None, rows, 3, candidates=candidates)
    assert part.tolist() == [place for place in order if place in candidates][:3]
    assert query.select(make_proba(), 2).tolist() == [p for p in order if p < N_POINTS][:2]
    with pytest.warns(BatchClippedWarning, match="RandomQuery.query"):
        assert query.query(None, rows, 41).tolist() == order.tolist()


def test_random_picks_are_uniform() -> None:
    generator = np.random.default_rng(0)  # each call takes one number of it
    query = RandomQuery(random_state=generator)
    counts = np.zeros(5)
    for _ in range(1000):
        counts[query.query(None, range(5), 2)] += 1
    np.testing.assert_allclose(counts / 1000, 0.4, atol=0.062)  # 4 standard errors


@pytest.mark.parametrize(
    "query", [MaxEntropyQuery(), MarginQuery(), LeastConfidentQuery(), BALDQuery()]
)
def test_weights_that_round_tie_as_repeated_draws_do(query: Any) -> None:
    labels = np.array([[1, 1, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1]])  # of weights 3, 3 and 4 tenths
    for order in itertools.permutations(range(3)):
        weighted = PredictionSamples(
            labels[list(order)], kind="label", weights=np.array([0.1, 0.2, 0.3, 0.4])
        )
        repeated = PredictionSamples(
            np.repeat(labels[list(order)], [1, 2, 3, 4], axis=1), kind="label"
        )
        np.testing.assert_array_equal(query.select(weighted, 3), query.select(repeated, 3))


def test_bald_of_draws_that_agree_is_exactly_zero() -> None:
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=(20, 1)).repeat(7, axis=1)
    for weights in (None, np.arange(1, 8) / 28):
        samples = PredictionSamples(proba, weights=weights)
        with pytest.warns(EqualUtilitiesWarning):
            picks, utilities = BALDQuery().select(samples, 3, return_utilities=True)
        assert picks.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(utilities[0], 0.0)
