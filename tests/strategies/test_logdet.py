"""LogDetQuery against literal determinants, pivoted Cholesky, brute force, and in hard corners."""

from collections.abc import Callable
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import sklearn
from sklearn.covariance import ledoit_wolf_shrinkage

from sklearn_ical import LogDetQuery, PredictionSamples
from sklearn_ical.exceptions import EqualUtilitiesWarning

Backend = Callable[[np.ndarray], Any]

N_POINTS, N_DRAWS, N_CLASSES = 18, 6, 3
WEIGHTS = [0.1, 0.0, 0.3, 0.2, 0.3, 0.1]


def covariances(values: np.ndarray, weights: Any = None) -> np.ndarray:
    """Return the covariance matrix of each output, (n_outputs, n_points, n_points)."""
    w = np.full(values.shape[1], 1 / values.shape[1]) if weights is None else np.array(weights)
    columns = values.reshape(*values.shape[:2], -1).astype(np.float64)
    apart = columns - np.einsum("k,nkc->nc", w, columns)[:, None]
    return np.einsum("k,nkc,mkc->cnm", w, apart, apart)


def volume(kernels: np.ndarray, noise: np.ndarray, rows: Any) -> float:
    """Return the literal objective; noise has shape (n_blocks, n_points)."""
    rows = list(rows)
    total = 0.0
    for kernel, variance in zip(kernels, noise, strict=True):
        scaled = kernel[np.ix_(rows, rows)] / variance[rows][:, None]
        total += np.linalg.slogdet(np.eye(len(rows)) + scaled)[1] / 2
    return total


def greedy(kernels: np.ndarray, noise: np.ndarray, size: int) -> tuple[list[int], np.ndarray]:
    """Choose by differences of the literal objective; also return its rows of utilities."""
    chosen: list[int] = []
    rows = np.full((size, kernels.shape[1]), np.nan)
    for t in range(size):
        before = volume(kernels, noise, chosen)
        for i in set(range(kernels.shape[1])) - set(chosen):
            rows[t, i] = volume(kernels, noise, [*chosen, i]) - before
        chosen.append(int(np.nanargmax(np.round(rows[t], 11))))
    return chosen, rows


def blocks_of(values: np.ndarray, kernel: str, weights: Any = None) -> np.ndarray:
    kernels = covariances(values, weights)
    return kernels.sum(axis=0, keepdims=True) if kernel == "trace" else kernels


def shared_noise(kernels: np.ndarray, noise: float) -> np.ndarray:
    """Return one noise for all classes, relative to the mean diagonal."""
    mean = np.einsum("cnn->cn", kernels).mean()
    return np.full(kernels.shape[:2], noise * mean)


def check(query: LogDetQuery, samples: PredictionSamples, expected: Any, size: int) -> None:
    picks, rows = expected
    given, got = query.select(samples, size, return_utilities=True)
    assert given.tolist() == picks
    assert query.select(samples, size).tolist() == picks
    np.testing.assert_allclose(got, rows, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("kernel", ["independent", "trace"])
def test_picks_and_gains_equal_literal_determinants(
    kernel: str, weights: Any, dtype: str, backend: Backend
) -> None:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(N_CLASSES), size=(N_POINTS, N_DRAWS)).astype(dtype)
    kernels = blocks_of(proba, kernel, weights)
    expected = greedy(kernels, shared_noise(kernels, 0.3), 14)  # beyond the rank
    samples = PredictionSamples(backend(proba), weights=weights)
    check(LogDetQuery(kernel, noise=0.3), samples, expected, 14)
    for chunk in (1, 5):
        with patch("sklearn_ical._array.chunk_rows", lambda row_bytes, chunk=chunk: chunk):
            check(LogDetQuery(kernel, noise=0.3), samples, expected, 14)
    with sklearn.config_context(working_memory=1e-9):  # features are not held
        check(LogDetQuery(kernel, noise=0.3), samples, expected, 14)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("kernel", ["independent", "trace"])
def test_labels_are_one_hot_votes(kernel: str, weights: Any, backend: Backend) -> None:
    labels = np.random.default_rng(1).integers(0, 4, size=(N_POINTS, N_DRAWS))
    kernels = blocks_of(np.eye(4)[labels], kernel, weights)
    expected = greedy(kernels, shared_noise(kernels, 2.0), 12)
    samples = PredictionSamples(backend(labels.astype(np.uint8)), "label", weights=weights)
    check(LogDetQuery(kernel), samples, expected, 12)


@pytest.mark.parametrize("kernel", ["independent", "trace"])
@pytest.mark.parametrize("noise", [None, "one", "points", "draws"])
@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_regression_equals_literal_determinants(
    n_targets: int | None, noise: str | None, kernel: str, backend: Backend
) -> None:
    rng = np.random.default_rng(2)
    shape = (N_POINTS, N_DRAWS) if n_targets is None else (N_POINTS, N_DRAWS, n_targets)
    values = rng.normal(size=shape) * np.arange(1, 1 + (n_targets or 1)) ** 2
    if n_targets is None:
        values = values.reshape(N_POINTS, N_DRAWS)
    kernels = blocks_of(values, kernel, WEIGHTS)
    given: Any = {
        None: None,
        "one": 0.4,
        "points": rng.uniform(0.1, 2, size=N_POINTS),
        "draws": rng.uniform(0.1, 2, size=(N_POINTS, N_DRAWS)),
    }[noise]
    if noise is None:
        own = 0.5 * np.einsum("cnn->cn", kernels).mean(axis=1)
        variance = np.broadcast_to(own[:, None], kernels.shape[:2])
    else:
        each = given @ np.array(WEIGHTS) if noise == "draws" else np.broadcast_to(given, N_POINTS)
        per_block = (n_targets or 1) // len(kernels)
        variance = np.broadcast_to(per_block * each, kernels.shape[:2])
    samples = PredictionSamples(backend(values), "value", weights=WEIGHTS, noise_variance=given)
    check(LogDetQuery(kernel, noise=0.5), samples, greedy(kernels, variance, 10), 10)


def test_residual_diagonals_are_those_of_pivoted_cholesky() -> None:
    values = np.random.default_rng(3).normal(size=(40, 12))
    kernel = covariances(values)[0]
    noise = 0.2 * np.trace(kernel) / 40
    left, pivots = kernel.copy(), []
    for _ in range(25):
        pivot = int(np.argmax(np.where(np.isin(np.arange(40), pivots), -1, np.diag(left))))
        pivots.append(pivot)
        left -= np.outer(left[:, pivot], left[pivot]) / (left[pivot, pivot] + noise)
    picks, rows = LogDetQuery(noise=0.2).select(
        PredictionSamples(values, "value"), 26, return_utilities=True
    )
    assert picks[:25].tolist() == pivots
    free = ~np.isnan(rows[25])
    np.testing.assert_allclose(noise * np.expm1(2 * rows[25, free]), np.diag(left)[free])


@pytest.mark.parametrize("kernel", ["independent", "trace"])
@pytest.mark.parametrize("seed", range(5))
def test_greedy_volume_is_near_the_largest(seed: int, kernel: str) -> None:
    proba = np.random.default_rng(seed).dirichlet(np.full(3, 0.3), size=(10, 5))
    kernels = blocks_of(proba, kernel)
    noise = shared_noise(kernels, 0.1)
    picks, rows = LogDetQuery(kernel, noise=0.1).select(proba, 3, return_utilities=True)
    ours = volume(kernels, noise, picks)
    assert ours == pytest.approx(np.nanmax(rows, axis=1).sum())
    best = max(volume(kernels, noise, rows) for rows in combinations(range(10), 3))
    assert (1 - 1 / np.e) * best <= ours <= best + 1e-12


@pytest.mark.parametrize("kernel", ["independent", "trace"])
def test_ledoit_wolf_is_the_determinant_of_shrunk_covariances(kernel: str) -> None:
    proba = np.random.default_rng(4).dirichlet([1, 2, 0.3], size=(N_POINTS, 9))
    proba[:, :, 0] *= np.linspace(0.2, 1, 9)  # so that the draws have something in common
    proba /= proba.sum(axis=2, keepdims=True)
    kernels = covariances(proba)
    rho = np.array([ledoit_wolf_shrinkage(proba[:, :, c].T) for c in range(3)])
    assert (rho > 0.01).all()
    assert (rho < 0.99).all()
    added = rho * np.einsum("cnn->cn", kernels).mean(axis=1)
    shrunk = kernels * (1 - rho)[:, None, None]
    if kernel == "trace":
        shrunk, added = shrunk.sum(axis=0, keepdims=True), added.sum(keepdims=True)
    noise = np.broadcast_to(added[:, None], shrunk.shape[:2])
    query = LogDetQuery(kernel, noise="ledoit-wolf")
    check(query, PredictionSamples(proba), greedy(shrunk, noise, 10), 10)
    with sklearn.config_context(working_memory=1e-9):
        check(query, PredictionSamples(proba), greedy(shrunk, noise, 10), 10)


def test_two_draws_leave_noise_to_ledoit_wolf() -> None:
    proba = np.random.default_rng(5).dirichlet(np.ones(3), size=(12, 2))
    picks, rows = LogDetQuery(noise="ledoit-wolf").select(proba, 12, return_utilities=True)
    assert sorted(picks) == list(range(12))
    assert (rows[~np.isnan(rows)] >= 0).all()
    assert rows[0].max() > 1


@pytest.mark.parametrize("kernel", ["independent", "trace"])
def test_lazy_and_full_evaluation_agree(kernel: str) -> None:
    for seed in range(10):
        proba = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), size=(700, 8))
        query = LogDetQuery(kernel, noise=0.1)
        full, rows = query.select(proba, 60, return_utilities=True)
        assert query.select(proba, 60).tolist() == full.tolist()
        assert full.tolist() == np.nanargmax(rows, axis=1).tolist()
        free = ~np.isnan(rows[1:])
        assert (rows[1:][free] <= rows[:-1][free] + 1e-12).all()  # gains never grow


@pytest.mark.parametrize("kernel", ["independent", "trace"])
def test_units_of_targets_do_not_matter(kernel: str) -> None:
    values = np.random.default_rng(6).normal(size=(30, 7, 2))
    picks = LogDetQuery(kernel).select(PredictionSamples(values, "value"), 12).tolist()
    for unit in (1e-6, 1e9):
        scaled = PredictionSamples(unit * values + 3 * unit, "value")
        assert LogDetQuery(kernel).select(scaled, 12).tolist() == picks
    each = PredictionSamples(values * [1.0, 1e4], "value")
    if kernel == "independent":
        assert LogDetQuery(kernel).select(each, 12).tolist() == picks


def test_noise_is_relative_to_the_whole_pool() -> None:
    proba = np.random.default_rng(7).dirichlet(np.full(3, 0.3), size=(30, 6))
    _, everywhere = LogDetQuery().select(proba, 1, return_utilities=True)
    _, somewhere = LogDetQuery().select(proba, 1, candidates=[3, 20, 5], return_utilities=True)
    np.testing.assert_allclose(somewhere[0, [3, 5, 20]], everywhere[0, [3, 5, 20]])


@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")
@pytest.mark.parametrize("kernel", ["independent", "trace"])
def test_copies_tie_to_the_lowest_position(kernel: str, backend: Backend) -> None:
    rng = np.random.default_rng(8)
    of = rng.integers(0, 6, size=90)
    proba = rng.dirichlet(np.ones(3), size=(6, 7)).astype(np.float32)[of]
    picks = LogDetQuery(kernel).select(backend(proba), 90)
    for row in range(6):
        assert picks[of[picks] == row].tolist() == np.flatnonzero(of == row).tolist()


def test_rows_equal_up_to_the_order_of_votes_tie() -> None:
    votes = np.array(
        [[0, 0, 1, 1, 1, 1], [1, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 1], [2, 2, 2, 2, 0, 0]]
    )
    labels = np.concatenate([np.zeros((1, 6), dtype=np.int64), np.tile(votes, (25, 1))])
    for kernel in ("independent", "trace"):
        picks, rows = LogDetQuery(kernel).select(
            PredictionSamples(labels, "label"), 1, return_utilities=True
        )
        assert picks.tolist() == [1]
        assert len(set(rows[0, 1:].tolist())) == 1


def test_agreeing_draws_are_worth_exactly_nothing(backend: Backend) -> None:
    proba = np.random.default_rng(9).dirichlet(np.ones(3), size=(30, 5))
    proba[::3] = proba[::3, :1]
    with pytest.warns(EqualUtilitiesWarning):  # of the last ten
        picks, rows = LogDetQuery().select(backend(proba), 30, return_utilities=True)
    assert (rows[:20, ::3] == 0).all()
    assert picks[20:].tolist() == list(range(0, 30, 3))
    same = backend(np.repeat(proba[::3, :1], 5, axis=1))
    with pytest.warns(EqualUtilitiesWarning, match=r"LogDetQuery\.select"):
        picks, rows = LogDetQuery().select(same, 4, return_utilities=True)
    assert picks.tolist() == [0, 1, 2, 3]
    assert (rows[0] == 0).all()


def test_a_constant_target_beside_others_changes_nothing() -> None:
    values = np.random.default_rng(10).normal(size=(20, 6))
    beside = np.stack([values, np.ones_like(values)], axis=2)
    expected = LogDetQuery().select(PredictionSamples(values, "value"), 8)
    for kernel in ("independent", "trace"):
        picks = LogDetQuery(kernel).select(PredictionSamples(beside, "value"), 8)
        assert picks.tolist() == expected.tolist()


def test_costs_divide_the_gains() -> None:
    proba = np.random.default_rng(11).dirichlet(np.full(3, 0.3), size=(300, 6))
    costs = np.random.default_rng(12).uniform(0.5, 3, size=300)
    kernels = blocks_of(proba, "trace")
    noise = shared_noise(kernels, 2.0)
    chosen: list[int] = []
    for _ in range(6):
        gains = [-1.0 if i in chosen else volume(kernels, noise, [*chosen, i]) for i in range(300)]
        worth = (np.array(gains) - volume(kernels, noise, chosen)) / costs
        worth[chosen] = -1
        chosen.append(int(np.argmax(worth)))
    assert LogDetQuery().select(proba, 6, costs=costs).tolist() == chosen


def test_what_cannot_be_is_refused_by_name() -> None:
    values = np.random.default_rng(13).normal(size=(6, 4))
    with pytest.raises(ValueError, match=r"'noise' parameter of LogDetQuery .* Got 0"):
        LogDetQuery(noise=0).select(PredictionSamples(values, "value"))
    with pytest.raises(ValueError, match=r"'kernel' parameter of LogDetQuery .* Got 'sum'"):
        LogDetQuery("sum").select(PredictionSamples(values, "value"))
    with pytest.raises(
        ValueError, match=r"noise_variance of samples must be > 0\. Got 0\.0 in Log"
    ):
        LogDetQuery().select(PredictionSamples(values, "value", noise_variance=0.0))
    weighted = PredictionSamples(values, "value", weights=[0.25] * 4)
    with pytest.raises(ValueError, match=r"ledoit-wolf. counts the draws.*Got weights in LogDetQ"):
        LogDetQuery(noise="ledoit-wolf").select(weighted)
    with pytest.raises(ValueError, match=r"LogDetQuery needs at least 2 draws\. Got 1"):
        LogDetQuery().select(np.ones((3, 1, 1)))
