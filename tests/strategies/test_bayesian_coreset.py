"""Bayesian coresets: literal vectors and Frank-Wolfe, optimality, random rows, refusals."""

import math
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy.optimize import nnls

from sklearn_ical import PredictionSamples
from sklearn_ical.strategies._bayesian_coreset import (
    BayesianCoresetQuery,
    bayesian_coreset,
    log_likelihood_vectors,
)

Backend = Callable[[np.ndarray], Any]
WEIGHTS = [0.1, 0.4, 0.3, 0.2]


def make_proba(n_points: int = 30, n_draws: int = 4, seed: int = 0) -> np.ndarray:
    proba = np.random.default_rng(seed).dirichlet(np.full(3, 0.6), size=(n_points, n_draws))
    proba[3] = np.eye(3)[0]
    proba[4] = np.eye(3)[np.arange(n_draws) % 3]
    return proba


def literal_vectors(
    proba: np.ndarray, weights: list[float], n_projections: int, gamma: float, floor: float
) -> np.ndarray:
    """Evaluate the formula entry by entry."""
    total = sum(weights[:n_projections])
    out = np.zeros((len(proba), n_projections))
    for x, draws in enumerate(proba.tolist()):
        mean = [sum(w * p[c] for w, p in zip(weights, draws, strict=True)) for c in range(3)]
        entropy = -sum(p * math.log(p) for p in mean if p > 0)
        for j in range(n_projections):
            expected = sum(
                mean[c] * math.log(max(draws[j][c], floor)) for c in range(3) if mean[c] > 0
            )
            out[x, j] = math.sqrt(weights[j] / total) * (expected + gamma * entropy)
    return out


def literal_frank_wolfe(
    vectors: np.ndarray, n_steps: int, allowed: list[int]
) -> tuple[list[int], np.ndarray]:
    """Follow the algorithm word by word; return the order of entry and all weights."""
    norms = np.sqrt((vectors**2).sum(axis=1) + 1e-6)
    sigma, target = norms.sum(), vectors.sum(axis=0)
    weights, entered = np.zeros(len(vectors)), []
    for _ in range(n_steps):
        now = weights @ vectors
        scores = {x: (target - now) @ vectors[x] / norms[x] for x in allowed}
        f = max(scores, key=lambda x: scores[x])
        vertex = sigma / norms[f] * vectors[f]
        length = (vertex - now) @ (vertex - now)
        step = (vertex - now) @ (target - now) / length if length > 0 else 0.0
        step = min(max(step, 0.0), 1.0)
        weights = (1 - step) * weights
        weights[f] += step * sigma / norms[f]
        if f not in entered:
            entered.append(f)
    return [f for f in entered if weights[f] > 1e-10 * weights.max()], weights


def test_three_vectors_give_the_support_and_random_rows_by_hand() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    indices, weights = bayesian_coreset(vectors, 3)
    assert indices.dtype == np.intp
    assert weights.dtype == np.float64
    assert indices.tolist() == [2]
    np.testing.assert_allclose(weights, [2.0], rtol=1e-12)


@pytest.mark.parametrize("chunk", [1, 7, 10**6])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("settings", [(None, 1.0, 1e-6), (3, 0.7, 1e-3), (1, 0.0, 0.2)])
def test_vectors_equal_literal_formula_on_every_backend(
    settings: tuple[Any, float, float], weights: Any, dtype: str, chunk: int, backend: Backend
) -> None:
    proba = make_proba().astype(dtype)
    n_projections, gamma, floor = settings
    w = [0.25] * 4 if weights is None else weights
    expected = literal_vectors(proba.astype(float), w, n_projections or 4, gamma, floor)
    samples = PredictionSamples(backend(proba), weights=weights)
    with patch("sklearn_ical._array.chunk_rows", lambda row_bytes: chunk):
        vectors = log_likelihood_vectors(
            samples, n_projections=n_projections, gamma=gamma, floor=floor
        )
    assert isinstance(vectors, np.ndarray)
    np.testing.assert_allclose(vectors, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_votes_are_probabilities_of_zero_and_one(weights: Any, backend: Backend) -> None:
    labels = np.random.default_rng(1).integers(0, 3, size=(40, 4))
    votes = PredictionSamples(backend(labels), kind="label", weights=weights)
    proba = PredictionSamples(np.eye(3)[labels], weights=weights)
    for gamma in (1.0, 0.7):
        ours = log_likelihood_vectors(votes, gamma=gamma)
        np.testing.assert_allclose(ours, log_likelihood_vectors(proba, gamma=gamma), atol=1e-12)
        assert np.isfinite(ours).all()


def test_draws_that_agree_have_a_vector_of_zeros() -> None:
    proba = np.repeat(np.random.default_rng(2).dirichlet([1, 1, 1], size=(8, 1)), 4, axis=1)
    np.testing.assert_allclose(log_likelihood_vectors(proba), 0.0, atol=1e-15)
    indices, weights = bayesian_coreset(log_likelihood_vectors(proba), 5)
    assert len(indices) == len(weights) == 0
    values = PredictionSamples(np.repeat(np.arange(8.0)[:, None], 4, axis=1), kind="value")
    for gamma in (1.0, 0.7):
        np.testing.assert_array_equal(log_likelihood_vectors(values, gamma=gamma), 0.0)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("noise", [None, "one", "points", "draws"])
@pytest.mark.parametrize("n_targets", [None, 2])
@pytest.mark.parametrize("chunk", [1, 10**6])
def test_regression_vectors_equal_literal_gaussians(
    chunk: int, n_targets: int | None, noise: str | None, weights: Any, backend: Backend
) -> None:
    rng = np.random.default_rng(3)
    shape = (12, 4) if n_targets is None else (12, 4, n_targets)
    values = rng.normal(size=shape)
    given: Any = {
        None: None,
        "one": 0.4,
        "points": rng.uniform(0.1, 2, size=12),
        "draws": rng.uniform(0.1, 2, size=(12, 4)),
    }[noise]
    w = np.full(4, 0.25) if weights is None else np.array(weights)
    columns = values.reshape(12, 4, -1)
    mean = np.einsum("j,xjt->xt", w, columns)
    spread = np.einsum("j,xjt->xt", w, (columns - mean[:, None]) ** 2)
    each = spread.mean() if given is None else given
    each = np.broadcast_to(np.reshape(each, (*np.shape(each), 1, 1)[:2]), (12, 4))
    unit = (each @ w).mean()
    samples = PredictionSamples(
        backend(values), kind="value", weights=weights, noise_variance=given
    )
    for gamma in (1.0, 0.7):
        expected = np.zeros((12, 4))
        for x in range(12):
            for j in range(4):
                for t in range(columns.shape[2]):
                    total = spread[x, t] + each[x] @ w
                    s2 = each[x, j]
                    expected[x, j] += -0.5 * math.log(2 * math.pi * s2 / unit)
                    expected[x, j] -= ((columns[x, j, t] - mean[x, t]) ** 2 + total) / (2 * s2)
                    entropy = 0.5 * math.log(2 * math.pi * math.e * total / unit)
                    expected[x, j] += gamma * entropy
                expected[x, j] *= math.sqrt(w[j])
        with patch("sklearn_ical._array.chunk_rows", lambda row_bytes: chunk):
            ours = log_likelihood_vectors(samples, gamma=gamma)
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("gamma", [1.0, 0.7])
@pytest.mark.parametrize("noise", [None, 0.3])
def test_unit_of_the_target_changes_no_regression_vector(noise: Any, gamma: float) -> None:
    values = np.random.default_rng(4).normal(size=(20, 5))
    here, there = (
        log_likelihood_vectors(
            PredictionSamples(
                unit * values + shift,
                kind="value",
                noise_variance=None if noise is None else noise * unit**2,
            ),
            gamma=gamma,
        )
        for unit, shift in ((1.0, 0.0), (1000.0, 7.0))
    )
    np.testing.assert_allclose(there, here, rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_coreset_equals_literal_frank_wolfe(dtype: str, backend: Backend) -> None:
    for seed in range(8):
        vectors = np.random.default_rng(seed).normal(size=(40, 6)).astype(dtype)
        vectors += 0.3
        for allowed in (list(range(40)), [1, 5, 6, 9, 20, 33]):
            steps = min(12, len(allowed))
            entered, weights = literal_frank_wolfe(vectors.astype(float), steps, allowed)
            indices, ours = bayesian_coreset(backend(vectors), steps, candidates=allowed)
            assert indices.tolist() == entered
            np.testing.assert_allclose(ours, weights[entered], rtol=1e-8)


def test_weighted_sum_approaches_the_sum_and_never_beats_nonnegative_least_squares() -> None:
    vectors = log_likelihood_vectors(make_proba(60, 8))
    target = vectors.sum(axis=0)
    errors = []
    for steps in (1, 5, 20, 60):
        indices, weights = bayesian_coreset(vectors, steps)
        errors.append(np.linalg.norm(weights @ vectors[indices] - target))
        _, best = nnls(vectors[indices].T, target)
        assert errors[-1] >= best - 1e-9
        assert (weights > 0).all()
        # Every weighted sum lies in the polytope of the vertices sigma L / sigma_x.
        norms = np.sqrt((vectors**2).sum(axis=1) + 1e-6)
        assert weights @ norms[indices] <= norms.sum() * (1 + 1e-12)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02 * np.linalg.norm(target)


def test_what_is_left_at_the_level_of_rounding_enters_no_coreset() -> None:
    indices, weights = bayesian_coreset(np.array([[0.0, 1e-12], [1.0, 0.0]]), 2)
    assert indices.tolist() == [1]
    assert weights == pytest.approx([1.0])


def test_one_step_is_taken_unless_more_are_asked_for() -> None:
    vectors = np.random.default_rng(5).normal(size=(30, 5)) + 0.2
    for given, expected in zip(
        bayesian_coreset(vectors), bayesian_coreset(vectors, 1), strict=True
    ):
        np.testing.assert_array_equal(given, expected)
    assert len(bayesian_coreset(vectors, 2)[0]) == 2


def test_one_projection_is_enough() -> None:
    proba = make_proba(30, 4)
    picks = BayesianCoresetQuery(n_projections=1).select(proba, 1)
    vectors = log_likelihood_vectors(proba, n_projections=1)
    assert picks.tolist() == bayesian_coreset(vectors, 1)[0].tolist()


def test_each_step_is_the_best_on_its_line() -> None:
    vectors = np.random.default_rng(5).normal(size=(30, 5)) + 0.2
    target = vectors.sum(axis=0)
    norms = np.sqrt((vectors**2).sum(axis=1) + 1e-6)
    full = np.zeros((2, 30))
    for k, steps in enumerate((3, 4)):
        indices, weights = bayesian_coreset(vectors, steps)
        full[k, indices] = weights
    before, after = full @ vectors
    scores = vectors @ (target - before) / norms
    vertex = vectors[scores.argmax()] * norms.sum() / norms[scores.argmax()]
    line = [before + t * (vertex - before) for t in np.linspace(0, 1, 1001)]
    best = min(np.linalg.norm(target - point) for point in line)
    assert np.linalg.norm(target - after) <= best + 1e-9


def test_batch_is_the_support_then_the_largest_uniforms_left() -> None:
    proba = make_proba()
    allowed = np.array([0, 2, 4, 5, 9, 12, 13, 20, 21, 25, 28])
    vectors = log_likelihood_vectors(proba)
    core, _ = bayesian_coreset(vectors, 9, candidates=allowed)
    uniforms = np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(7, spawn_key=(5,)))
    ).random(30)
    rest = [x for x in np.argsort(-uniforms) if x in allowed and x not in core]
    query = BayesianCoresetQuery(random_state=7)
    picks, rows = query.select(proba, 9, candidates=allowed, return_utilities=True)
    assert 0 < len(core) < 9
    assert picks.tolist() == [*core, *rest][:9]
    assert query.select(proba, 9, candidates=allowed).tolist() == picks.tolist()
    norms = np.sqrt((vectors**2).sum(axis=1) + 1e-6)
    first = vectors @ vectors.sum(axis=0) / norms
    np.testing.assert_allclose(rows[0, allowed], first[allowed], rtol=1e-9)
    assert np.isnan(np.delete(rows, allowed, axis=1)).all()
    for t in range(len(core), 9):
        free = np.setdiff1d(allowed, picks[:t])
        np.testing.assert_array_equal(np.flatnonzero(~np.isnan(rows[t])), free)
        np.testing.assert_array_equal(rows[t, free], uniforms[free])


def test_random_rows_are_uniform_and_distinct() -> None:
    proba = np.full((6, 4, 2), 0.5)  # nothing to tell rows apart: all are random
    counts = np.zeros(6)
    for seed in range(1500):
        picks = BayesianCoresetQuery(random_state=seed).select(proba, 2)
        assert picks[0] != picks[1]
        counts[picks] += 1
    np.testing.assert_allclose(counts / 1500, 1 / 3, atol=0.05)  # 4 standard errors


@pytest.mark.parametrize("kind", ["proba", "label", "value"])
def test_weights_count_as_repeated_draws_do(kind: str) -> None:
    rng = np.random.default_rng(6)
    values: Any = rng.dirichlet([1, 1, 1], size=(40, 5))
    values = (
        values if kind == "proba" else values.argmax(axis=2) if kind == "label" else values[..., 0]
    )
    counts = np.array([1, 3, 2, 1, 3])
    weighted = PredictionSamples(values, kind, weights=counts / counts.sum())
    repeated = PredictionSamples(values.repeat(counts, axis=1), kind)
    ours, theirs = (log_likelihood_vectors(s) for s in (weighted, repeated))
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-10)
    if kind == "label":  # of votes that tie
        return
    query = BayesianCoresetQuery(random_state=0)
    assert query.select(weighted, 12).tolist() == query.select(repeated, 12).tolist()


def test_rows_that_differ_by_more_than_rounding_do_not_tie() -> None:
    vectors = np.tile([1.0, 0.0], (4000, 1))
    vectors[:2, 1] = 1e-6, -1e-6  # farther from the sum, by half a millionth of a millionth
    assert bayesian_coreset(vectors, 1)[0].tolist() == [2]


def test_random_projections_and_rows_are_in_the_tag() -> None:
    assert not BayesianCoresetQuery().query_tags().deterministic


def test_equal_rows_tie_to_the_lowest_position() -> None:
    few = make_proba(5, 6, seed=8)
    of = np.random.default_rng(9).permutation(np.repeat(np.arange(5), 40))
    for chunk in (1, 13, 10**6):
        with patch("sklearn_ical._array.chunk_rows", lambda row_bytes, chunk=chunk: chunk):
            indices, _ = bayesian_coreset(log_likelihood_vectors(few[of]), 20)
        assert indices.tolist() == [int(np.flatnonzero(of == of[x])[0]) for x in indices]


def test_caller_arrays_stay_as_they_are() -> None:
    proba = make_proba()
    before = proba.copy()
    proba.flags.writeable = False
    BayesianCoresetQuery(random_state=0).select(proba, 5)
    log_likelihood_vectors(proba)
    np.testing.assert_array_equal(proba, before)


def test_settings_and_samples_that_make_no_sense_are_refused() -> None:
    proba = make_proba()
    with pytest.raises(ValueError, match=r"needs at least 6 draws. Got 4"):
        BayesianCoresetQuery(n_projections=6).select(proba)
    with pytest.raises(ValueError, match=r"needs at least 2 draws. Got 1"):
        BayesianCoresetQuery().select(proba[:, :1])
    wrong: Any
    for name, wrong in (("n_projections", 0), ("gamma", -0.1), ("floor", 0.0), ("floor", 1.0)):
        with pytest.raises(ValueError, match=f"'{name}' parameter of BayesianCoresetQuery"):
            BayesianCoresetQuery(**{name: wrong}).select(proba)
    with pytest.raises(ValueError, match="costs needs a strategy whose utilities are gains"):
        BayesianCoresetQuery().select(proba, costs=np.ones(30))
    silent = PredictionSamples(proba, weights=[0.0, 0.0, 0.5, 0.5])
    with pytest.raises(ValueError, match=r"at least 3 draws. Got 2 in BayesianCoresetQuery"):
        BayesianCoresetQuery(n_projections=3).select(silent)
    noiseless = PredictionSamples(proba[..., 0], kind="value", noise_variance=0.0)
    certain = PredictionSamples(
        proba[..., 0], kind="value", noise_variance=np.append(np.ones(29), 0.0)
    )
    for samples in (noiseless, certain):
        with pytest.raises(ValueError, match="noise_variance must be > 0"):
            BayesianCoresetQuery().select(samples)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1.0]],), TypeError, "vectors must be an array .* Got list in bayesian_coreset"),
        ((np.ones(3),), ValueError, r"n_projections\), at least one of each. Got shape \(3,\)"),
        ((np.ones((3, 0)),), ValueError, r"Got shape \(3, 0\)"),
        ((np.array([[np.nan]]),), ValueError, "vectors must be finite"),
        ((np.ones((3, 2)), 0), ValueError, "batch_size must be an integer >= 1"),
        ((np.array([["a"]]),), TypeError, "vectors must be numbers"),
    ],
)
def test_what_is_no_vectors_is_refused(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        bayesian_coreset(*arguments)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_projections": 5}, ValueError, "n_projections must be at most .* draws, 4. Got 5"),
        ({"n_projections": 1.5}, TypeError, "n_projections must be an integer"),
        ({"gamma": -1}, ValueError, "gamma must be a finite number >= 0. Got -1"),
        ({"floor": 0}, ValueError, r"floor must be a number in \(0, 1\). Got 0"),
    ],
)
def test_vectors_with_senseless_numbers_are_refused(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        log_likelihood_vectors(make_proba(), **options)
    with pytest.raises(TypeError, match="samples must be PredictionSamples or an"):
        log_likelihood_vectors(make_proba().tolist())


def test_what_overflows_is_refused_by_name() -> None:
    values = np.random.default_rng(0).normal(size=(40, 6))
    with pytest.raises(ValueError, match=r"Log-likelihoods of predictions must not overflow"):
        BayesianCoresetQuery().select(
            PredictionSamples(values, kind="value", noise_variance=1e-200), 3
        )
    with pytest.raises(ValueError, match=r"vectors must not overflow .*; rescale them"):
        bayesian_coreset(1e155 * values, 3)


def test_votes_give_the_picks_of_certain_predictions() -> None:
    for seed in range(20):
        labels = np.random.default_rng(seed).integers(0, 3, (40, 6))
        labels[labels == 1] = 0
        query = BayesianCoresetQuery(random_state=0)
        votes, votes_rows = query.select(
            PredictionSamples(labels, kind="label"), 8, return_utilities=True
        )
        certain, rows = query.select(np.eye(3)[labels], 8, return_utilities=True)
        np.testing.assert_array_equal(votes, certain)
        np.testing.assert_allclose(votes_rows, rows, atol=1e-9)
