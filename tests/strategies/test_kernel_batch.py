"""KernelBatchQuery: each method against a naive implementation, and in hard corners."""

from collections.abc import Callable
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor

from sklearn_ical import KernelBatchQuery, LogDetQuery, PredictionSamples
from sklearn_ical._random import DRAWS, stream_seed
from sklearn_ical.exceptions import EqualUtilitiesWarning
from sklearn_ical.samplers import get_sampler

Backend = Callable[[np.ndarray], Any]

N_POINTS, N_DRAWS, N_CLASSES, N_LABELED = 30, 6, 3, 4
WEIGHTS = [0.1, 0.0, 0.3, 0.2, 0.3, 0.1]
METHODS = ["maxdet", "maxdist", "kmeans++", "lcmd", "bait"]
DETERMINISTIC = ["maxdet", "maxdist", "lcmd", "bait"]
CANDIDATES = np.array([0, 3, 4, 7, 8, 12, 13, 14, 18, 20, 21, 25, 27, 29])


def trace_kernel(values: np.ndarray, weights: Any = None) -> np.ndarray:
    """Return the covariances over the draws, summed over the outputs: (n, n)."""
    w = np.full(values.shape[1], 1 / values.shape[1]) if weights is None else np.array(weights)
    columns = values.reshape(*values.shape[:2], -1).astype(np.float64)
    apart = columns - np.einsum("k,nkc->nc", w, columns)[:, None]
    return np.einsum("k,nkc,mkc->nm", w, apart, apart)


def square_distances(kernel: np.ndarray) -> np.ndarray:
    diagonal = np.diag(kernel)
    return np.round(diagonal[:, None] + diagonal - 2 * kernel, 12)


def first_best(utilities: dict[int, float]) -> int:
    return max(utilities, key=lambda i: (round(utilities[i], 11), -i))


def naive_maxdet(kernel: np.ndarray, noise: Any, size: int, free: Any, known: Any) -> list[int]:
    chosen: list[int] = []
    for _ in range(size):
        volumes = {}
        for i in set(free) - set(chosen):
            rows = [*known, *chosen, i]
            scaled = kernel[np.ix_(rows, rows)] / noise[rows]
            volumes[i] = np.linalg.slogdet(np.eye(len(rows)) + scaled)[1]
        chosen.append(first_best(volumes))
    return chosen


def naive_maxdist(kernel: np.ndarray, size: int, free: Any, known: Any) -> list[int]:
    distances, chosen = square_distances(kernel), []
    for _ in range(size):
        centres = [*known, *chosen]
        left = set(free) - set(chosen)
        chosen.append(
            first_best({i: distances[i, centres].min() if centres else kernel[i, i] for i in left})
        )
    return chosen


def naive_lcmd(kernel: np.ndarray, size: int, free: Any, known: Any, pool: Any) -> list[int]:
    distances, chosen = square_distances(kernel), []
    for _ in range(size):
        centres = [*known, *chosen]
        left = set(free) - set(chosen)
        if not centres:
            chosen.append(first_best({i: kernel[i, i] for i in left}))
            continue
        of = {i: int(np.argmin(distances[i, centres])) for i in pool}
        sums = {
            c: sum(distances[i, centre] for i in pool if of[i] == c)
            for c, centre in enumerate(centres)
            if any(of[i] == c and distances[i, centre] > 0 for i in left)
        }
        split = first_best(sums)
        chosen.append(first_best({i: distances[i, centres[split]] for i in left if of[i] == split}))
    return chosen


def mean_variance(kernel: np.ndarray, noise: Any, rows: list[int], reference: Any) -> float:
    """Return the mean posterior variance of reference rows, given noisy labels of some rows."""
    across = kernel[np.ix_(reference, rows)]
    inverse = np.linalg.inv(kernel[np.ix_(rows, rows)] + np.diag(noise[rows]))
    left = np.diag(kernel)[reference] - np.einsum("ni,ij,nj->n", across, inverse, across)
    return float(left.mean())


def naive_bait(
    kernel: np.ndarray, noise: Any, size: int, free: Any, known: Any, reference: Any
) -> list[int]:
    chosen: list[int] = []
    known = list(known)

    def left(rows: list[int]) -> float:
        return -mean_variance(kernel, noise, known + rows, reference)

    for _ in range(min(2 * size, len(free))):
        chosen.append(first_best({i: left([*chosen, i]) for i in set(free) - set(chosen)}))
    while len(chosen) > size:
        without = {i: left([j for j in chosen if j != i]) for i in chosen}
        best = max(without.values())
        chosen.remove([i for i in chosen if without[i] > best - 1e-12][-1])
    return chosen


def naive(
    method: str,
    kernel: np.ndarray,
    size: int,
    *,
    free: Any,
    n_known: int = 0,
    noise: Any = None,
    n_pool: int = N_POINTS,
    reference: Any = None,
) -> list[int]:
    """Choose by the literal definition; the pool comes first in the kernel, then labeled rows."""
    pool, known = range(n_pool), range(n_pool, n_pool + n_known)
    if noise is None:
        noise = np.full(len(kernel), np.diag(kernel)[:n_pool].mean())
    if method == "maxdet":
        return naive_maxdet(kernel, noise, size, free, known)
    if method == "maxdist":
        return naive_maxdist(kernel, size, free, known)
    if method == "lcmd":
        return naive_lcmd(kernel, size, free, known, pool)
    return naive_bait(
        kernel, noise, size, free, known, list(pool if reference is None else reference)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("method", DETERMINISTIC)
def test_picks_equal_a_naive_implementation(
    method: str, weights: Any, dtype: str, backend: Backend
) -> None:
    proba = np.random.default_rng(0).dirichlet(np.full(N_CLASSES, 0.5), size=(N_POINTS, N_DRAWS))
    proba = proba.astype(dtype)
    kernel = trace_kernel(proba, weights)
    samples = PredictionSamples(backend(proba), weights=weights)
    query = KernelBatchQuery(method, noise=1.0)
    for free in (np.arange(N_POINTS), CANDIDATES):
        expected = naive(method, kernel, 8, free=free)
        assert query.select(samples, 8, candidates=free).tolist() == expected
        if not isinstance(samples.values, np.ndarray):
            continue  # chunks are made on the host, whatever the backend
        for chunk in (1, 7):
            with patch("sklearn_ical._array.chunk_rows", lambda row_bytes, chunk=chunk: chunk):
                assert query.select(samples, 8, candidates=free).tolist() == expected
        with sklearn.config_context(working_memory=1e-9):
            assert query.select(samples, 8, candidates=free).tolist() == expected


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("method", DETERMINISTIC)
def test_labeled_rows_are_centres_or_known(method: str, weights: Any, backend: Backend) -> None:
    for seed in range(3):
        proba = np.random.default_rng(seed).dirichlet(
            np.full(N_CLASSES, 0.4), size=(N_POINTS + N_LABELED, N_DRAWS)
        )
        kernel = trace_kernel(proba, weights)
        pool = PredictionSamples(backend(proba[:N_POINTS]), weights=weights)
        labeled = PredictionSamples(backend(proba[N_POINTS:]), weights=weights)
        expected = naive(method, kernel, 6, free=CANDIDATES, n_known=N_LABELED)
        given = {"candidates": CANDIDATES, "labeled_samples": labeled}
        query = KernelBatchQuery(method, noise=1.0)
        assert query.select(pool, 6, **given).tolist() == expected
        for block in (1, 3):
            with patch("sklearn_ical.strategies._kernel_batch.LABELED_BLOCK", block):
                assert query.select(pool, 6, **given).tolist() == expected
        query.set_params(include_labeled=False)
        alone = naive(method, kernel[:N_POINTS, :N_POINTS], 6, free=CANDIDATES)
        assert query.select(pool, 6, **given).tolist() == alone
        nothing = query.set_params(include_labeled=True).select(
            pool, 6, candidates=CANDIDATES, labeled_samples=labeled[:0]
        )
        assert nothing.tolist() == alone


@pytest.mark.parametrize("noise", [None, "points", "draws"])
@pytest.mark.parametrize("n_targets", [None, 1, 2])
@pytest.mark.parametrize("method", DETERMINISTIC)
def test_regression_equals_a_naive_implementation(
    method: str, n_targets: int | None, noise: str | None, backend: Backend
) -> None:
    rng = np.random.default_rng(1)
    n = N_POINTS + N_LABELED
    values = rng.normal(size=(n, N_DRAWS, n_targets or 1)) * [[[5.0]]]
    values = values[:, :, 0] if n_targets is None else values
    kernel = trace_kernel(values, WEIGHTS)
    given: Any = None
    variance = None
    if noise is not None:
        given = rng.uniform(5, 50, size=(n,) if noise == "points" else (n, N_DRAWS))
        variance = (n_targets or 1) * (given if noise == "points" else given @ np.array(WEIGHTS))
    pool, labeled = (
        PredictionSamples(
            backend(values[rows]),
            "value",
            weights=WEIGHTS,
            noise_variance=None if given is None else given[rows],
        )
        for rows in (slice(N_POINTS), slice(N_POINTS, None))
    )
    everything = np.arange(N_POINTS)
    expected = naive(method, kernel, 7, free=everything, n_known=N_LABELED, noise=variance)
    query = KernelBatchQuery(method, noise=1.0)
    assert query.select(pool, 7, labeled_samples=labeled).tolist() == expected


def test_bait_informs_the_reference_rows(backend: Backend) -> None:
    for seed in range(4):
        proba = np.random.default_rng(seed).dirichlet(np.full(3, 0.4), size=(N_POINTS + 9, 7))
        kernel = trace_kernel(proba)
        reference = np.arange(N_POINTS, N_POINTS + 9)
        everything = np.arange(N_POINTS)
        expected = naive("bait", kernel, 5, free=everything, reference=reference)
        picks, rows = KernelBatchQuery("bait", noise=1.0).select(
            backend(proba[:N_POINTS]),
            5,
            reference_samples=backend(proba[N_POINTS:]),
            return_utilities=True,
        )
        assert picks.tolist() == expected
        noise = np.full(len(kernel), np.diag(kernel)[:N_POINTS].mean())
        before = np.diag(kernel)[reference].mean()
        gains = [before - mean_variance(kernel, noise, [i], reference) for i in range(N_POINTS)]
        if np.argmax(gains) == picks[0]:
            np.testing.assert_allclose(rows[0], gains, rtol=1e-9)
    with sklearn.config_context(working_memory=1e-9):  # one column of T after the other
        again = KernelBatchQuery("bait", noise=1.0).select(
            backend(proba[:N_POINTS]), 5, reference_samples=backend(proba[N_POINTS:])
        )
    assert again.tolist() == expected


def test_bait_forward_rows_are_decreases_of_the_mean_variance() -> None:
    values = np.random.default_rng(2).normal(size=(10, 8))
    kernel = trace_kernel(values)
    noise = np.full(10, np.diag(kernel).mean())
    picks, rows = KernelBatchQuery("bait", noise=1.0).select(
        PredictionSamples(values, "value"), 10, return_utilities=True
    )
    everything = list(range(10))
    before = np.diag(kernel).mean()
    for t, pick in enumerate(picks):
        for i in set(everything) - set(picks[:t].tolist()):
            left = mean_variance(kernel, noise, [*picks[:t].tolist(), i], everything)
            assert rows[t, i] == pytest.approx(before - left, abs=1e-10)
        assert np.nanargmax(rows[t]) == pick
        before = mean_variance(kernel, noise, picks[: t + 1].tolist(), everything)


def test_bait_is_no_worse_than_half_the_best_decrease() -> None:
    for seed in range(5):
        proba = np.random.default_rng(seed).dirichlet(np.full(3, 0.3), size=(10, 6))
        kernel = trace_kernel(proba)
        noise = np.full(10, np.diag(kernel).mean())
        everything = list(range(10))
        start = np.diag(kernel).mean()
        ours = KernelBatchQuery("bait", noise=1.0).select(proba, 3).tolist()
        decrease = start - mean_variance(kernel, noise, ours, everything)
        best = max(
            start - mean_variance(kernel, noise, list(rows), everything)
            for rows in combinations(range(10), 3)
        )
        assert 0.9 * best <= decrease <= best + 1e-12


def line(*features: float) -> PredictionSamples:
    """Return two draws whose covariance is the product of these features."""
    f = np.array(features)
    return PredictionSamples(np.stack([-f, f], axis=1), "value")


def test_lcmd_of_five_points_on_a_line_equals_the_known_answer() -> None:
    query = KernelBatchQuery("lcmd")
    picks, rows = query.select(line(0, 1, 10, 11, 12), 5, return_utilities=True)
    assert picks.tolist() == [4, 0, 2, 3, 1]
    expected = [
        [0, 1, 100, 121, 144],
        [144, 121, 4, 1, np.nan],
        [np.nan, 0, 4, 1, np.nan],
        [np.nan, 0, np.nan, 1, np.nan],
        [np.nan, 1, np.nan, np.nan, np.nan],
    ]
    np.testing.assert_allclose(rows, expected, atol=1e-12)
    picks = query.select(line(0, 1, 10, 11, 12), 3, labeled_samples=line(0, 12))
    assert picks.tolist() == [2, 1, 3]


def test_lcmd_splits_only_clusters_with_candidates() -> None:
    picks = KernelBatchQuery("lcmd").select(line(0, 1, 10, 11, 12, 5), 3, candidates=[0, 1, 4])
    assert picks.tolist() == [4, 0, 1]
    same = KernelBatchQuery("lcmd").select(line(0, 0.5, 8, 9, 12, 12), 3, candidates=[0, 1, 4, 5])
    assert same.tolist() == [4, 0, 1]  # position 5 lies in the larger cluster, on its centre


def test_maxdist_of_points_on_a_line_equals_the_known_answer() -> None:
    query = KernelBatchQuery("maxdist")
    picks, rows = query.select(line(0, 3, 6, 9, 13), 3, return_utilities=True)
    assert picks.tolist() == [4, 0, 2]
    np.testing.assert_allclose(rows[0], [0, 9, 36, 81, 169])
    np.testing.assert_allclose(rows[2, 1:4], [9, 36, 16])
    picks = query.select(line(3, 6, 9, 12), 2, labeled_samples=line(0))
    assert picks.tolist() == [3, 1]


def test_maxdet_is_log_det_of_the_trace_kernel() -> None:
    proba = np.random.default_rng(3).dirichlet(np.full(4, 0.3), size=(400, 9))
    for noise in (0.1, 1.0):
        picks, rows = KernelBatchQuery("maxdet", noise).select(proba, 40, return_utilities=True)
        other, theirs = LogDetQuery("trace", noise).select(proba, 40, return_utilities=True)
        assert picks.tolist() == other.tolist()
        np.testing.assert_array_equal(rows, theirs)
        assert KernelBatchQuery("maxdet", noise).select(proba, 40).tolist() == picks.tolist()


def test_lazy_and_full_farthest_first_agree() -> None:
    for seed in range(5):
        proba = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), size=(600, 9))
        expected = naive("maxdist", trace_kernel(proba), 40, free=range(600))
        picks, rows = KernelBatchQuery("maxdist").select(proba, 40, return_utilities=True)
        assert picks.tolist() == np.nanargmax(rows, axis=1).tolist() == expected
        assert KernelBatchQuery("maxdist").select(proba, 40).tolist() == expected


def test_kmeans_plus_plus_samples_by_squared_distance() -> None:
    samples = line(1, 2, 4, 4)
    pairs = np.zeros((4, 4))
    n_seeds = 1500
    for seed in range(n_seeds):
        first, second = KernelBatchQuery("kmeans++", random_state=seed).select(samples, 2)
        pairs[first, second] += 1 / n_seeds
    f = np.array([1.0, 2.0, 4.0, 4.0])
    expected = np.zeros((4, 4))
    for first in range(4):
        weights = (f - f[first]) ** 2
        expected[first] = f[first] ** 2 / np.sum(f**2) * weights / weights.sum()
    error = np.sqrt(expected * (1 - expected) / n_seeds)
    assert (np.abs(pairs - expected) <= 4 * error).all()
    assert pairs[2, 3] == pairs[3, 2] == 0  # copies are at distance 0


def test_kmeans_plus_plus_keys_are_those_of_positions() -> None:
    proba = np.random.default_rng(4).dirichlet(np.full(3, 0.3), size=(30, 5))
    query = KernelBatchQuery("kmeans++", random_state=1)
    _, everywhere = query.select(proba, 1, return_utilities=True)
    _, somewhere = query.select(proba, 1, candidates=[3, 8, 9], return_utilities=True)
    np.testing.assert_array_equal(somewhere[0, [3, 8, 9]], everywhere[0, [3, 8, 9]])
    centre = query.select(proba, 8, labeled_samples=proba[:2])
    assert not {0, 1} & set(centre.tolist())


def test_kmeans_plus_plus_fills_in_at_random_where_all_distances_are_zero() -> None:
    same = np.repeat(np.random.default_rng(5).dirichlet(np.ones(3), size=(1, 5)), 30, axis=0)
    found = set()
    for seed in range(20):
        picks = KernelBatchQuery("kmeans++", random_state=seed).select(same, 10).tolist()
        assert len(set(picks)) == 10
        found.add(tuple(picks))
    assert len(found) == 20


@pytest.mark.parametrize("method", ["maxdet", "maxdist", "lcmd"])
def test_copies_come_last_lowest_position_first(method: str, backend: Backend) -> None:
    rng = np.random.default_rng(6)
    of = np.concatenate([rng.permutation(8), rng.integers(0, 8, size=60)])
    proba = rng.dirichlet(np.ones(3), size=(8, 7)).astype(np.float32)[of]
    picks = KernelBatchQuery(method, noise=1e-3).select(backend(proba), 8)
    assert sorted(of[picks]) == list(range(8))
    assert picks.max() < 8


@pytest.mark.parametrize("method", METHODS)
def test_agreeing_draws_leave_nothing_to_choose_by(method: str, backend: Backend) -> None:
    proba = np.random.default_rng(7).dirichlet(np.ones(3), size=(30, 5))
    same = backend(np.repeat(proba[:, :1], 5, axis=1))
    query = KernelBatchQuery(method, random_state=0)
    if method == "kmeans++":
        assert len(set(query.select(same, 4).tolist())) == 4
        return
    with pytest.warns(EqualUtilitiesWarning, match=r"KernelBatchQuery\.select"):
        picks, rows = query.select(same, 4, return_utilities=True)
    assert picks.tolist() == [0, 1, 2, 3]
    assert (rows[0] == 0).all()


@pytest.mark.parametrize("method", DETERMINISTIC)
def test_labeled_rows_of_a_model_are_predicted_by_the_same_draws(method: str) -> None:
    X, y = load_digits(return_X_y=True)
    known, pool, reference = X[:40], X[40:140], X[200:230]
    forest = RandomForestRegressor(8, random_state=0).fit(known, y[:40])
    query = KernelBatchQuery(method)
    given = {"X_labeled": known, "y_labeled": y[:40], "X_reference": reference}
    picks = query.query(forest, pool, 10, **given)
    each = [
        PredictionSamples(np.stack([tree.predict(rows) for tree in forest], axis=1), "value")
        for rows in (pool, known, reference)
    ]
    expected = query.select(each[0], 10, labeled_samples=each[1], reference_samples=each[2])
    assert picks.tolist() == expected.tolist()
    alone = query.query(forest, pool, 10)
    assert alone.tolist() != picks.tolist()
    off = KernelBatchQuery(method, include_labeled=False)
    given = {"X_labeled": known, "y_labeled": y[:40]}
    assert off.query(forest, pool, 10, **given).tolist() == alone.tolist()
    cold = query.query(forest, pool, 10, X_labeled=known[:0], y_labeled=y[:0])
    assert cold.tolist() == alone.tolist()


def test_joint_draws_see_the_labeled_rows_with_the_pool() -> None:
    rng = np.random.default_rng(8)
    X = rng.uniform(-3, 3, size=(60, 1))
    model = GaussianProcessRegressor(optimizer=None).fit(X[:5], np.sin(X[:5, 0]))
    query = KernelBatchQuery("maxdist", random_state=0)
    picks = query.query(model, X[5:], 4, X_labeled=X[:5], y_labeled=np.sin(X[:5, 0]))
    draws = get_sampler(model).draw(random_state=stream_seed(0, DRAWS))
    pool, known = draws.together(X[5:], X[:5])
    assert picks.tolist() == query.select(pool, 4, labeled_samples=known).tolist()
    assert picks.tolist() != query.select(pool, 4).tolist()
    query = KernelBatchQuery("bait", random_state=0)
    assert len(query.query(model, X[5:], 4, X_labeled=X[:5])) == 4
    with pytest.raises(ValueError, match=r"X_labeled needs draws .* joint draws and X_reference"):
        query.query(model, X[5:], 4, X_labeled=X[:5], X_reference=X[:9])
    assert len(query.query(model, X[5:], 4, X_labeled=X[:0], X_reference=X[:9])) == 4


def test_precomputed_predictions_take_labeled_samples_only() -> None:
    proba = np.random.default_rng(9).dirichlet(np.ones(3), size=(12, 5))
    samples = PredictionSamples(proba)
    with pytest.raises(ValueError, match=r"X_labeled needs draws .* Got precomputed predictions"):
        KernelBatchQuery().query(samples, np.zeros((12, 2)), X_labeled=np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"labeled_samples must come .* n_draws=5\. Got n_dra"):
        KernelBatchQuery().select(samples, labeled_samples=proba[:3, :4])
    with pytest.raises(ValueError, match=r"labeled_samples must come from .* Got kind='value'"):
        KernelBatchQuery().select(
            samples, labeled_samples=PredictionSamples(np.ones((3, 5)), "value")
        )
    with pytest.raises(ValueError, match=r"must have the 3 classes or targets .* Got 2 in Kernel"):
        KernelBatchQuery().select(samples, labeled_samples=np.full((3, 5, 2), 0.5))


def test_label_codes_of_labeled_rows_alone_count() -> None:
    labels = np.random.default_rng(11).integers(0, 2, size=(12, 5))
    pool, far = (
        PredictionSamples(labels, "label", classes=classes) for classes in (None, range(9))
    )
    labeled = [
        PredictionSamples(np.array([[0, 7, 8, 0, 1]]), "label", classes=classes)
        for classes in (None, range(9))
    ]
    for method in METHODS:
        query = KernelBatchQuery(method, random_state=0)
        picks = query.select(pool, 4, labeled_samples=labeled[0])
        assert picks.tolist() == query.select(far, 4, labeled_samples=labeled[1]).tolist()


def test_what_cannot_be_is_refused_by_name() -> None:
    proba = np.random.default_rng(10).dirichlet(np.ones(3), size=(12, 5))
    with pytest.raises(ValueError, match=r"'method' parameter of KernelBatchQuery .* Got 'badge'"):
        KernelBatchQuery("badge").select(proba)
    with pytest.raises(ValueError, match=r"'noise' parameter of KernelBatchQuery .* Got 'ledoit-w"):
        KernelBatchQuery(noise="ledoit-wolf").select(proba)
    for method in ("lcmd", "bait"):
        with pytest.raises(ValueError, match=r"utilities='other' of KernelBatchQuery"):
            KernelBatchQuery(method).select(proba, costs=np.ones(12))


def test_bait_refuses_reference_rows_that_are_none() -> None:
    samples = PredictionSamples(np.random.default_rng(0).normal(size=(6, 4)), kind="value")
    with pytest.raises(ValueError, match=r"reference_samples must have at least one row\. Got 0"):
        KernelBatchQuery("bait").select(samples, 2, reference_samples=samples[:0])
