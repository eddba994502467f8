"""Entropy, variance and information of single points: loops, closed forms, weights, backends."""

import math

import numpy as np
import pytest
from scipy.special import entr

from sklearn_ical._array import to_host
from sklearn_ical.dependence import (
    bald,
    gaussian_bald,
    least_confidence,
    margin,
    predictive_entropy,
    predictive_variance,
)

WEIGHTS = np.array([0.1, 0.0, 0.4, 0.2, 0.3])
EXAMPLE_1 = np.eye(5)[np.array([[1, 2, 3] + [4] * 7, [1] * 9 + [2]])]


def probabilities(*shape, seed=0, dtype="float64"):
    p = np.random.default_rng(seed).dirichlet(np.full(shape[-1], 0.5), size=shape[:-1])
    p[0, 0] = np.eye(shape[-1])[0]  # 0 log 0 occurs
    return p.astype(dtype)


def entropy(p):
    return -math.fsum(x * math.log(x) for x in p if x > 0)


def loop_mean(rows, w):
    return [
        math.fsum(wk * row[c] for wk, row in zip(w, rows, strict=True)) for c in range(len(rows[0]))
    ]


def loop_information(p, w):
    """Return the predictive entropy and the mutual information of each point."""
    points = p.astype(float).tolist()
    total = np.array([entropy(loop_mean(rows, w)) for rows in points])
    given = [
        math.fsum(wk * entropy(row) for wk, row in zip(w, rows, strict=True)) for rows in points
    ]
    return total, total - given


def loop_variance(values, w):
    """Return the variance over the draws, (n_points, n_targets)."""
    mean = np.einsum("k,nkd->nd", w, values)
    return np.array(
        [
            [
                math.fsum(wk * (row[d] - mean[n, d]) ** 2 for wk, row in zip(w, rows, strict=True))
                for d in range(values.shape[2])
            ]
            for n, rows in enumerate(values)
        ]
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_entropies_equal_loops_on_every_backend(weights, dtype, backend, same_place):
    p = probabilities(4, 5, 3, dtype=dtype)
    on_device = backend(p)
    w = np.full(5, 0.2) if weights is None else weights
    for function, expected in zip((predictive_entropy, bald), loop_information(p, w), strict=True):
        result = function(on_device, weights=weights)
        same_place(result, on_device)
        assert to_host(result).dtype == np.float64
        np.testing.assert_allclose(to_host(result), expected, rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(to_host(on_device), p)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_margin_and_least_confidence_equal_loops_on_every_backend(
    weights, dtype, backend, same_place
):
    p = probabilities(6, 5, 3, dtype=dtype)
    on_device = backend(p)
    w = np.full(5, 0.2) if weights is None else weights
    ordered = [sorted(loop_mean(rows, w), reverse=True) for rows in p.astype(float).tolist()]
    expected = {
        margin: [1 - (first - second) for first, second, _ in ordered],
        least_confidence: [1 - first for first, _, _ in ordered],
    }
    for function, values in expected.items():
        result = function(on_device, weights=weights)
        same_place(result, on_device)
        assert to_host(result).dtype == np.float64
        np.testing.assert_allclose(to_host(result), values, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(to_host(on_device), p)


def test_margin_and_least_confidence_reach_their_bounds():
    uniform, certain = np.full((1, 3, 4), 0.25), np.tile(np.eye(4)[2], (1, 3, 1))
    assert margin(uniform)[0] == 1
    assert least_confidence(uniform)[0] == 0.75
    assert margin(certain)[0] == least_confidence(certain)[0] == 0
    single = np.ones((2, 3, 1), dtype=np.float32)
    np.testing.assert_array_equal(margin(single), [0, 0])
    np.testing.assert_array_equal(least_confidence(single), [0, 0])


@pytest.mark.parametrize("function", [margin, least_confidence])
def test_margin_and_least_confidence_refuse_what_is_no_samples(function):
    name = function.__name__
    with pytest.raises(ValueError, match=rf"proba must have shape .* Got shape \(2, 3\) in {name}"):
        function(np.full((2, 3), 1 / 3))
    with pytest.raises(TypeError, match=rf"proba must be an array .* Got list in {name}"):
        function([[[0.5, 0.5]]])
    with pytest.raises(ValueError, match="weights must have one entry per draw"):
        function(probabilities(4, 5, 3), weights=[0.5, 0.5])


def test_information_of_the_first_example_equals_closed_form():
    np.testing.assert_allclose(bald(EXAMPLE_1), [0.9404480, 0.3250830], atol=5e-8)
    np.testing.assert_allclose(predictive_entropy(EXAMPLE_1), bald(EXAMPLE_1), rtol=1e-14)


def test_entropy_after_a_label_is_entropy_under_its_draws():
    # the label of the first point splits the draws; the second point's entropy given the label
    given, gini = 0.0, 0.0
    for label in range(5):
        draws = EXAMPLE_1[0][:, label]
        if draws.any():
            left = predictive_entropy(EXAMPLE_1[1:], weights=draws / draws.sum())[0]
            given += draws.mean() * left
            gini += draws.mean() * (
                1 - (draws @ EXAMPLE_1[1] / draws.sum()) @ (draws @ EXAMPLE_1[1] / draws.sum())
            )
            if label == 4:
                assert left == pytest.approx(0.4101163, abs=5e-8)
    assert given == pytest.approx(0.2870814, abs=5e-8)
    assert predictive_entropy(EXAMPLE_1)[1] - given == pytest.approx(0.0380016, abs=5e-8)
    assert gini == pytest.approx(0.1714286, abs=5e-8)


def test_bald_of_two_opposed_draws_equals_closed_form():
    assert bald(np.array([[[0.9, 0.1], [0.1, 0.9]]]))[0] == pytest.approx(0.368064, abs=5e-7)


@pytest.mark.parametrize("n_classes", [1, 2, 10])
def test_entropy_of_a_uniform_row_is_log_and_of_a_certain_row_zero(n_classes):
    uniform = np.full((1, 3, n_classes), 1 / n_classes)
    certain = np.tile(np.eye(n_classes)[0], (1, 3, 1))
    assert predictive_entropy(uniform)[0] == pytest.approx(math.log(n_classes), abs=1e-15)
    assert predictive_entropy(certain)[0] == 0
    assert not np.signbit(predictive_entropy(certain)[0])
    assert bald(certain)[0] == 0


def test_entropy_of_votes_is_that_of_exact_counts():
    for m in (3, 7, 10, 49):
        for count in range(m + 1):
            votes = np.eye(2)[(np.arange(m) < count).astype(int)][None]
            expected = entr([(m - count) / m, count / m]).sum()
            assert predictive_entropy(votes)[0] == pytest.approx(expected, rel=1e-15)
            shuffled = votes[:, np.random.default_rng(m).permutation(m)]
            assert predictive_entropy(shuffled)[0] == predictive_entropy(votes)[0]


@pytest.mark.parametrize("weights", [None, "random", "with zero"])
def test_information_of_draws_that_agree_is_exactly_zero(weights):
    rng = np.random.default_rng(0)
    p = np.repeat(rng.dirichlet(np.ones(4), size=(50, 1)), 7, axis=1)
    values = np.repeat(rng.normal(size=(50, 1, 2)) * 1e3, 7, axis=1)
    w = None if weights is None else rng.dirichlet(np.ones(7))
    if weights == "with zero":  # a draw without weight has no say
        w = np.array([0, 0.1, 0.3, 0.05, 0.25, 0.1, 0.2])
        p[:, 0], values[:, 0] = [1, 0, 0, 0], 0
    assert (bald(p, weights=w) == 0).all()
    assert (predictive_variance(values, weights=w) == 0).all()
    noise = rng.random(50)
    for shared in (0.1, noise):
        assert (gaussian_bald(values, weights=w, noise_variance=shared) == 0).all()
    # noise that is equal but written out per draw has no exact zero, but never a negative value
    per_draw = gaussian_bald(values, weights=w, noise_variance=np.repeat(noise[:, None], 7, axis=1))
    assert (per_draw >= 0).all()
    assert (per_draw <= 1e-15).all()


def test_bald_is_never_negative():
    p = np.repeat(probabilities(500, 1, 6), 5, axis=1)
    p[:, 0] = p[:, 0] * (1 - 1e-16) + 1e-16 / 6
    p[:, 1] += 1e-17
    assert (bald(p) >= 0).all()
    assert (bald(p) < 1e-14).all()


def test_integer_weights_equal_duplicated_draws():
    counts = np.array([3, 1, 0, 2, 5])
    w = counts / counts.sum()
    p = probabilities(6, 5, 3)
    for function in (predictive_entropy, bald):
        copies = function(np.repeat(p, counts, axis=1))
        np.testing.assert_allclose(function(p, weights=w), copies, rtol=1e-12)
    values, noise = p[..., :2] * 9, p[..., 2] + 0.1
    for function in (predictive_variance, gaussian_bald):
        weighted = function(values, weights=w, noise_variance=noise)
        copies = function(
            np.repeat(values, counts, axis=1), noise_variance=np.repeat(noise, counts, axis=1)
        )
        np.testing.assert_allclose(weighted, copies, rtol=1e-12)


def test_permuting_the_draws_changes_nothing():
    p, order = probabilities(6, 5, 3), [3, 0, 4, 1, 2]
    for function in (predictive_entropy, bald):
        permuted = function(p[:, order], weights=WEIGHTS[order])
        np.testing.assert_allclose(permuted, function(p, weights=WEIGHTS), rtol=1e-12)


def test_entropies_keep_nan_and_do_not_spread_it():
    p = probabilities(3, 4, 3)
    clean = bald(p), predictive_entropy(p)
    p[1, 2] = np.nan
    for result, before in zip((bald(p), predictive_entropy(p)), clean, strict=True):
        np.testing.assert_array_equal(np.isnan(result), [False, True, False])
        np.testing.assert_array_equal(result[[0, 2]], before[[0, 2]])


def test_entropies_take_half_precision_integers_and_single_draws():
    votes = np.eye(3)[[[0, 1, 1, 2]]]
    for dtype in ("float16", "float32", "int8", "bool"):
        result = predictive_entropy(votes.astype(dtype))
        assert result.dtype == np.float64
        assert result[0] == predictive_entropy(votes)[0]
    assert bald(probabilities(2, 1, 3)).tolist() == [0, 0]
    assert predictive_variance(np.array([[7.0]])).tolist() == [0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("n_targets", [None, 1, 3])
@pytest.mark.parametrize("noise_axes", [0, 1, 2])
def test_regression_measures_equal_loops_on_every_backend(
    noise_axes, n_targets, weights, dtype, backend, same_place
):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4, 5, n_targets or 1)).astype(dtype)
    noise = rng.random((4, 5)[:noise_axes]) + 0.1
    given = values[..., 0] if n_targets is None else values
    on_device = backend(given)
    w = np.full(5, 0.2) if weights is None else weights
    s2 = np.broadcast_to(np.reshape(noise, noise.shape + (1,) * (2 - noise_axes)), (4, 5))
    variance, mean_s2 = loop_variance(values.astype(float), w), (s2 * w).sum(1)
    expected = (variance + mean_s2[:, None]).sum(1)
    information = (0.5 * np.log(variance + mean_s2[:, None])).sum(1)
    information -= 0.5 * values.shape[2] * (np.log(s2) * w).sum(1)
    noise = float(noise) if noise_axes == 0 else noise
    if noise_axes:
        noise.flags.writeable = False
    for passed in (noise, backend(noise)) if noise_axes else (noise,):
        total = predictive_variance(on_device, weights=weights, noise_variance=passed)
        gain = gaussian_bald(on_device, weights=weights, noise_variance=passed)
        for result, reference in ((total, expected), (gain, information)):
            same_place(result, on_device)
            assert to_host(result).dtype == np.float64
            np.testing.assert_allclose(to_host(result), reference, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(
        to_host(predictive_variance(on_device, weights=weights)), variance.sum(1), rtol=1e-11
    )


def test_gaussian_bald_of_equal_noise_equals_closed_form():
    values = np.array([[1.0, 3.0, 5.0, 7.0]])
    expected = 0.5 * math.log(1 + 5 / 0.2)  # variance 5
    assert gaussian_bald(values, noise_variance=0.2)[0] == pytest.approx(expected, rel=1e-13)
    tiny = 1e-9 * values
    assert gaussian_bald(tiny, noise_variance=1.0)[0] == pytest.approx(2.5e-18, rel=1e-9)


def test_predictive_variance_is_accurate_far_from_zero():
    values = np.array([[1.0, 3.0, 5.0, 7.0]]) + 2.0**40
    assert predictive_variance(values)[0] == 5
    assert predictive_variance(values, noise_variance=0.0)[0] == 5


@pytest.mark.parametrize("weights", [None, np.full(9, 1 / 9)])
@pytest.mark.parametrize("n_classes", [1, 2, 7])
def test_equal_rows_get_bitwise_equal_values_in_any_chunk_and_layout(n_classes, weights):
    p = probabilities(23, 9, n_classes)
    p[[4, 11, 22]] = p[0]
    functions = [
        predictive_entropy,
        bald,
        predictive_variance,
        lambda p, weights: gaussian_bald(p, weights=weights, noise_variance=0.3),
    ]
    for function in functions:
        whole = function(p, weights=weights)
        assert len(set(whole[[0, 4, 11, 22]].tolist())) == 1
        for step in (1, 7):
            parts = [function(p[i : i + step], weights=weights) for i in range(0, 23, step)]
            np.testing.assert_array_equal(np.concatenate(parts), whole)
        for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0)):
            moved = np.ascontiguousarray(p.transpose(order)).transpose(np.argsort(order))
            np.testing.assert_array_equal(function(moved, weights=weights), whole)


def test_measures_of_no_points_are_empty():
    for function in (predictive_entropy, bald, predictive_variance):
        assert function(np.zeros((0, 4, 3))).shape == (0,)
    assert gaussian_bald(np.zeros((0, 4, 3)), noise_variance=1.0).shape == (0,)


@pytest.mark.parametrize("function", [predictive_entropy, bald])
def test_entropies_refuse_what_is_no_probability_array(function):
    name = function.__name__
    with pytest.raises(TypeError, match=rf"proba must be an array of shape .*Got list in {name}"):
        function([[[0.5, 0.5]]])
    with pytest.raises(
        TypeError, match=rf"proba must hold real numbers\. Got dtype complex128 in {name}"
    ):
        function(np.ones((1, 2, 2), dtype=complex))
    for shape in ((3, 2), (2, 0, 2), (2, 2, 0)):
        with pytest.raises(
            ValueError, match=rf"\(n_points, n_draws, n_classes\).*Got shape .* in {name}"
        ):
            function(np.ones(shape))
    with pytest.raises(ValueError, match=r"weights must have one entry per draw, shape \(2,\)"):
        function(np.ones((1, 2, 2)) / 2, weights=[1.0])


@pytest.mark.parametrize("function", [predictive_variance, gaussian_bald])
def test_regression_measures_refuse_what_does_not_fit(function):
    name = function.__name__
    with pytest.raises(TypeError, match=rf"values must be an array .*Got list in {name}"):
        function([[1.0]], noise_variance=1.0)
    for shape in ((3,), (2, 0), (2, 3, 0), (1, 2, 3, 4)):
        with pytest.raises(ValueError, match=rf"\[, n_targets\]\) with at least .* in {name}"):
            function(np.ones(shape), noise_variance=1.0)
    with pytest.raises(ValueError, match=r"weights must sum to 1\. Got a sum of 2"):
        function(np.ones((3, 2)), weights=[1, 1], noise_variance=1.0)
    message = rf"or of shape \(3,\) or \(3, 2\)\. Got shape \(2,\) in {name}"
    with pytest.raises(ValueError, match=message):
        function(np.ones((3, 2)), noise_variance=[1.0, 1.0])
    for noise in (-0.5, np.nan, np.inf):
        with pytest.raises(
            ValueError, match=rf"noise_variance must be finite .*Got {noise} in {name}"
        ):
            function(np.ones((3, 2)), noise_variance=noise)


def test_gaussian_bald_needs_positive_noise():
    with pytest.raises(ValueError, match=r"finite and > 0\. Got 0\.0 in gaussian_bald"):
        gaussian_bald(np.ones((2, 2)), noise_variance=[1.0, 0.0])
