"""Information between labels of pairs of points: loops, closed forms, weights, blocks, backends."""

import math
import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
import sklearn

from sklearn_ical._array import to_host
from sklearn_ical.dependence import bald, epig, predictive_entropy

N_DRAWS = 5
WEIGHTS = np.array([0.1, 0.0, 0.4, 0.2, 0.3])
EXAMPLE_1 = np.eye(5)[np.array([[1, 2, 3] + [4] * 7, [1] * 9 + [2]])]


def probabilities(n_points, n_classes, seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, 0.5), size=(n_points, N_DRAWS))
    p[0] = np.eye(n_classes)[rng.integers(n_classes, size=N_DRAWS)]  # 0 log 0 occurs
    p[1] = p[1, :1]
    return p.astype(dtype)


def loop_epig(proba, reference, weights=None):
    """Return the mean information of each point, pair of labels by pair of labels."""
    equal = np.full(proba.shape[1], 1 / proba.shape[1])
    expected = []
    for p in proba.astype(float):
        terms = []
        for r, q in enumerate(reference.astype(float)):
            w = equal if weights is None else weights if weights.ndim == 1 else weights[r]
            joint = np.einsum("k,ka,kb->ab", w, p / p.sum(1)[:, None], q / q.sum(1)[:, None])
            for (a, b), value in np.ndenumerate(joint):
                if value > 0:
                    independent = joint[a].sum() * joint[:, b].sum()
                    terms.append(value * math.log(value / independent))
        expected.append(math.fsum(terms) / len(reference))
    return np.array(expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", ["none", "shared", "own"])
@pytest.mark.parametrize("rows", [None, 1, 7, 40])
def test_epig_equals_loops_in_blocks_of_any_size_on_every_backend(
    rows, weights, dtype, backend, same_place
):
    proba, reference = probabilities(9, 3, dtype=dtype), probabilities(6, 4, seed=1, dtype=dtype)
    own = np.random.default_rng(2).dirichlet(np.full(N_DRAWS, 0.4), size=6)
    w = {"none": None, "shared": WEIGHTS, "own": own}[weights]
    on_device = backend(proba)
    with patch("sklearn_ical._array.chunk_rows", (lambda row_bytes: rows or 10**6)):
        result = epig(on_device, backend(reference), weights=w)
    same_place(result, on_device)
    assert to_host(result).dtype == np.float64
    np.testing.assert_allclose(to_host(result), loop_epig(proba, reference, w), atol=1e-14)
    np.testing.assert_array_equal(to_host(on_device), proba)


def test_first_example_equals_closed_forms():
    np.testing.assert_allclose(epig(EXAMPLE_1, EXAMPLE_1[1:]), [0.0380016, 0.3250830], atol=5e-8)
    np.testing.assert_allclose(epig(EXAMPLE_1, EXAMPLE_1[:1]), [0.9404480, 0.0380016], atol=5e-8)


def test_epig_is_symmetric_and_at_most_what_either_tells_of_the_draw():
    a, b = probabilities(8, 3), probabilities(7, 2, seed=1)
    pairs = np.stack([epig(a, b[[j]]) for j in range(len(b))], axis=1)
    back = np.stack([epig(b, a[[i]]) for i in range(len(a))], axis=0)
    np.testing.assert_allclose(pairs, back, atol=1e-14)
    assert (pairs <= np.minimum(bald(a)[:, None], bald(b)) + 1e-14).all()
    np.testing.assert_allclose(epig(a, b), pairs.mean(axis=1), atol=1e-14)


def test_certain_votes_tell_all_about_themselves():
    votes = np.eye(3)[np.random.default_rng(0).integers(3, size=(6, N_DRAWS))]
    own = [epig(votes[[i]], votes[[i]])[0] for i in range(6)]
    np.testing.assert_allclose(own, predictive_entropy(votes), atol=1e-15)


def test_points_without_disagreement_are_exactly_zero(backend):
    proba = probabilities(9, 3, dtype="float32")
    constant = np.repeat(proba[:, :1], N_DRAWS, axis=1)
    np.testing.assert_array_equal(to_host(epig(backend(constant), backend(proba))), 0.0)
    np.testing.assert_array_equal(to_host(epig(backend(proba), backend(constant))), 0.0)
    for i in range(N_DRAWS):  # draws of weight 0 may disagree
        ignored = constant.copy()
        ignored[:, i] = proba[:, (i + 1) % N_DRAWS]
        weights = np.where(np.arange(N_DRAWS) == i, 0, 1 / (N_DRAWS - 1))
        result = to_host(epig(backend(ignored), backend(proba), weights=weights))
        np.testing.assert_array_equal(result, 0.0)
        for w in (weights, np.tile(weights, (9, 1))):
            result = to_host(epig(backend(proba), backend(ignored), weights=w))
            np.testing.assert_array_equal(result, 0.0)


def test_information_is_never_negative():
    rng = np.random.default_rng(3)
    nearly = rng.dirichlet(np.ones(4), size=50)[:, None] + 1e-9 * rng.normal(size=(50, 8, 4))
    assert (epig(nearly, nearly[:9]) >= 0).all()


def test_rounding_of_rows_is_no_information():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), size=(20, 6)).astype(np.float32)
    exact = p.astype(np.float64) / p.astype(np.float64).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(epig(p, p[:5]), epig(exact, exact[:5]), atol=1e-15)
    scaled = p * rng.uniform(0.9, 1.1, size=(20, 6, 1))
    np.testing.assert_allclose(epig(scaled, scaled[:5]), epig(exact, exact[:5]), atol=1e-7)


def test_weights_count_as_repeated_draws():
    proba, reference = probabilities(9, 3), probabilities(6, 4, seed=1)
    counts = np.array([1, 3, 2, 0, 4])
    repeated = epig(proba.repeat(counts, axis=1), reference.repeat(counts, axis=1))
    weights = counts / 10
    np.testing.assert_allclose(epig(proba, reference, weights=weights), repeated, atol=1e-14)
    tiled = np.tile(weights, (6, 1))
    np.testing.assert_allclose(epig(proba, reference, weights=tiled), repeated, atol=1e-14)


def test_no_points_give_no_information_and_one_class_none(backend):
    proba = probabilities(4, 3)
    assert to_host(epig(backend(proba[:0]), backend(proba))).shape == (0,)
    single = backend(np.ones((3, N_DRAWS, 1)))
    np.testing.assert_array_equal(to_host(epig(single, backend(proba))), [0, 0, 0])
    np.testing.assert_array_equal(to_host(epig(backend(proba), single)), [0, 0, 0, 0])


def test_memory_is_that_of_the_working_chunk():
    proba = probabilities(1000, 10)
    with sklearn.config_context(working_memory=1):
        tracemalloc.start()
        epig(proba, proba[:50])  # all pairs at once are 40 MB
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8 * 2**20


@pytest.mark.parametrize(
    ("reference", "weights", "error", "message"),
    [
        (np.zeros((0, 5, 2)), None, ValueError, r"at least one point .* 5 draws .* \(0, 5, 2\)"),
        (np.ones((2, 4, 2)), None, ValueError, r"the 5 draws of proba\. Got shape \(2, 4, 2\)"),
        (np.ones((2, 5)), None, ValueError, r"proba_reference must have shape .* in epig"),
        ([[[1.0]]], None, TypeError, r"proba_reference must be an array .* Got list in epig"),
        (np.ones((2, 5, 2)), np.ones((3, 5)) / 5, ValueError, r"\(2, 5\), one row for each"),
        (np.ones((2, 5, 2)), np.ones(4) / 4, ValueError, r"weights must have one entry per draw"),
        (np.ones((2, 5, 2)), np.ones((2, 5)), ValueError, r"weights must sum to 1"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(reference, weights, error, message):
    with pytest.raises(error, match=message):
        epig(probabilities(3, 2), reference, weights=weights)
