"""HSIC and dHSIC: literal loops, closed forms, identities, weights, backends and messages."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from sklearn_ical._array import to_host
from sklearn_ical.dependence import (
    delta_kernel,
    dhsic,
    distance_kernel,
    hsic,
    hsic_dual,
    linear_kernel,
    rq_kernel,
)

# float32 results are float64 results rounded once, whatever cancels on the way.
TOLERANCE = {
    "float32": {"rtol": 1e-6, "atol": 1e-14},
    "float64": {"rtol": 1e-9, "atol": 1e-14},
}
EXAMPLE_1 = np.array([[1, 2, 3] + [4] * 7, [1] * 9 + [2]])
HALVES, ALTERNATING = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


def kernels(*shape, seed=0, dtype="float64"):
    """Return rational quadratic kernels of random draws: shape (*batch, m) -> (*batch, m, m)."""
    y = np.random.default_rng(seed).normal(size=(*shape, 2))
    return rq_kernel(y).astype(dtype)


def psd_kernels(*shape, seed=0):
    """Return random positive definite matrices with entries of both signs."""
    return linear_kernel(np.random.default_rng(seed).normal(size=(*shape, 3)))


def loop_dhsic(matrices, weights=None):
    """Evaluate the V-statistic of d variables term by term: (d, m, m) -> float."""
    d, m = matrices.shape[:2]
    k = matrices.astype(float).tolist()
    w = [1 / m] * m if weights is None else list(map(float, weights))
    t1 = t2 = 0.0
    for a in range(m):
        for b in range(m):
            product = 1.0
            for j in range(d):
                product *= k[j][a][b]
            t1 += w[a] * w[b] * product
        product = 1.0
        for j in range(d):
            product *= sum(w[b] * k[j][a][b] for b in range(m))
        t2 += 2 * w[a] * product
    t3 = 1.0
    for j in range(d):
        t3 *= sum(w[a] * w[b] * k[j][a][b] for a in range(m) for b in range(m))
    return t1 - t2 + t3


def loop_biased_hsic(k, l):  # noqa: E741
    return loop_dhsic(np.stack([k, l]))


def loop_unbiased_hsic(k, l):  # noqa: E741
    """Average the kernel of the U-statistic over all four distinct draws."""
    k, l = k.astype(float).tolist(), l.astype(float).tolist()  # noqa: E741
    quadruples = list(itertools.permutations(range(len(k)), 4))
    return math.fsum(
        k[i][j] * (l[i][j] + l[q][r] - 2 * l[i][q]) for i, j, q, r in quadruples
    ) / len(quadruples)


def over_batch(function, *stacks):
    """Apply a function of matrices (..., m, m) to each element of the batch."""
    batch = stacks[0].shape[:-2]
    return np.reshape([function(*(s[i] for s in stacks)) for i in np.ndindex(batch)], batch)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_dhsic_equals_loops_on_every_backend(d, batch, dtype, backend, same_place):
    stack = kernels(d, *batch, 6, dtype=dtype)
    on_device = backend(stack)
    result = dhsic(on_device)
    same_place(result, on_device)
    assert to_host(result).dtype == dtype
    expected = over_batch(lambda *each: loop_dhsic(np.stack(each)), *stack)
    np.testing.assert_allclose(to_host(result), expected, **TOLERANCE[dtype])
    np.testing.assert_array_equal(to_host(on_device), stack)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_hsic_equals_loops_on_every_backend(estimator, batch, dtype, backend, same_place):
    stack = kernels(2, *batch, 6, dtype=dtype)
    k, l = backend(stack[0]), backend(stack[1])  # noqa: E741
    result = hsic(k, l, estimator=estimator)
    same_place(result, k)
    assert to_host(result).dtype == dtype
    literal = loop_unbiased_hsic if estimator == "unbiased" else loop_biased_hsic
    np.testing.assert_allclose(to_host(result), over_batch(literal, *stack), **TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [2, 3])
def test_weighted_dhsic_equals_loops_on_every_backend(d, dtype, backend, same_place):
    stack = kernels(d, 2, 5, dtype=dtype)
    weights = np.array([0.1, 0.0, 0.4, 0.2, 0.3])
    weights.flags.writeable = False
    on_device = backend(stack)
    expected = over_batch(lambda *each: loop_dhsic(np.stack(each), weights), *stack)
    for given in (weights, backend(weights), weights.tolist()):
        result = dhsic(on_device, weights=given)
        same_place(result, on_device)
        np.testing.assert_allclose(to_host(result), expected, **TOLERANCE[dtype])
    if d == 2:
        result = hsic(on_device[0, ...], on_device[1, ...], weights=weights)
        np.testing.assert_allclose(to_host(result), expected, **TOLERANCE[dtype])


@pytest.mark.parametrize("options", [{}, {"estimator": "unbiased"}, {"weights": [0.4, 0.2] * 2}])
def test_hsic_dual_gives_hsic_by_products_and_sums(options, backend, same_place):
    if "weights" in options:
        options = {"weights": np.array([0.4, 0.2, 0.3, 0.1])}
    stack = kernels(2, 3, 4)
    dual = hsic_dual(backend(stack[1]), **options)
    same_place(dual, backend(stack[1]))
    result = (stack[0] * to_host(dual)).sum(axis=(-2, -1))
    expected = to_host(hsic(backend(stack[0]), backend(stack[1]), **options))
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-15)


def test_hsic_dual_equals_centering_matrices():
    m, k = 5, kernels(5)
    h = np.eye(m) - np.ones((m, m)) / m
    np.testing.assert_allclose(hsic_dual(k), h @ k @ h / m**2, atol=1e-16)
    w = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    h = np.eye(m) - np.outer(np.ones(m), w)
    expected = np.outer(w, w) * (h @ k @ h.T)
    np.testing.assert_allclose(hsic_dual(k, weights=w), expected, atol=1e-16)


def test_hsic_dual_unbiased_has_zero_diagonal_and_row_sums():
    dual = hsic_dual(kernels(3, 7), estimator="unbiased")
    assert (np.diagonal(dual, axis1=-2, axis2=-1) == 0).all()
    np.testing.assert_allclose(dual.sum(-1), np.zeros((3, 7)), atol=1e-15)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("int64", "float64")],
)
def test_hsic_family_returns_the_dtype_of_the_caller(given, expected):
    k = delta_kernel(EXAMPLE_1).astype(given)
    assert hsic(k[0], k[1]).dtype == expected
    assert dhsic(np.stack([k[0], k[1], k[1]])).dtype == expected
    assert hsic_dual(k[0]).dtype == expected
    assert hsic(k[0], delta_kernel(EXAMPLE_1[1])).dtype == "float64"
    assert float(hsic(k[0], k[0])) == pytest.approx(0.0984, rel=1e-6)


def test_hsic_of_four_draws_equals_quarter_and_zero():
    same = delta_kernel(HALVES)
    assert hsic(same, same) == 0.25
    assert hsic(same, delta_kernel(ALTERNATING)) == 0
    y = np.eye(2)
    assert hsic(rq_kernel(y), rq_kernel(y)) == pytest.approx(0.0565250908, abs=5e-11)


@pytest.mark.parametrize(
    ("i", "j", "delta", "rq"),
    [
        (0, 0, 0.0984, 0.0222482757),
        (0, 1, 0.0024, 0.0005426409),
        (1, 1, 0.0324, 0.0073256518),
    ],
)
def test_hsic_of_the_first_example_equals_closed_form(i, j, delta, rq):
    k = delta_kernel(EXAMPLE_1)
    assert hsic(k[i], k[j]) == pytest.approx(delta, rel=1e-12)
    y = rq_kernel(np.eye(5)[EXAMPLE_1])
    assert hsic(y[i], y[j]) == pytest.approx(rq, abs=5e-11)


def test_unbiased_hsic_of_four_draws_equals_closed_form():
    k, l = delta_kernel(HALVES), delta_kernel(ALTERNATING)  # noqa: E741
    assert hsic(k, k, estimator="unbiased") == pytest.approx(2 / 3, rel=1e-12)
    assert hsic(k, l, estimator="unbiased") == pytest.approx(-1 / 3, rel=1e-12)
    m = 4
    u, v = (hsic_dual(each, estimator="unbiased") * m * (m - 3) for each in (k, l))
    assert (u * v).sum() / (m * (m - 3)) == pytest.approx(-1 / 3, rel=1e-12)


def test_grouped_xor_is_seen_by_products_and_not_by_pairs():
    labels = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]])
    a, b, c = delta_kernel(labels)
    assert hsic(a, c) == hsic(b, c) == hsic(a, b) == 0
    assert hsic(c, a * b) == 0.125


def test_linear_hsic_equals_squared_covariance_of_probabilities():
    p = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 9))
    centered = p - p.mean(axis=1, keepdims=True)
    covariance = centered[0].T @ centered[1] / 9
    k = linear_kernel(p)
    assert hsic(k[0], k[1]) == pytest.approx((covariance**2).sum(), rel=1e-11)


def test_distance_hsic_equals_a_quarter_of_distance_covariance():
    k = distance_kernel(np.array([[0.0], [1.0]]))  # dVar^2 of the fair coin is 1/4
    assert hsic(k, k) == pytest.approx(1 / 16, rel=1e-12)


def test_expected_and_linear_kernels_equal_closed_form_and_sampled_mean():
    p = np.array([[0.9, 0.1], [0.1, 0.9]])
    linear = linear_kernel(p)
    expected = linear.copy()
    np.fill_diagonal(expected, 1)
    assert hsic(expected, expected) == pytest.approx(0.1681, rel=1e-12)
    assert hsic(linear, linear) == pytest.approx(0.1024, rel=1e-12)
    # one label per draw and point, drawn independently for the two points
    labels = np.random.default_rng(0).random((2, 20_000, 2)) < p[:, 1]
    k = delta_kernel(labels.astype(int))
    sampled = hsic(k[0], k[1])
    assert abs(sampled.mean() - 0.1681) < 4 * sampled.std() / math.sqrt(20_000)


def test_dhsic_equals_the_log_space_form():
    d, m = 3, 12
    log_k = np.log(kernels(d, m, seed=3))
    terms = [
        logsumexp(log_k.sum(0)) - 2 * math.log(m),
        logsumexp(logsumexp(log_k, axis=2).sum(0)) + math.log(2) - (d + 1) * math.log(m),
        logsumexp(log_k, axis=(1, 2)).sum() - 2 * d * math.log(m),
    ]
    top = max(terms)
    t1, t2, t3 = (math.exp(term - top) for term in terms)
    expected = math.exp(top) * (t1 - t2 + t3)
    assert dhsic(kernels(d, m, seed=3)) == pytest.approx(expected, rel=1e-9)


def test_dhsic_of_two_variables_equals_the_centered_trace():
    k, l = kernels(2, 8)  # noqa: E741
    h = np.eye(8) - 1 / 8
    assert dhsic(np.stack([k, l])) == pytest.approx(np.trace(k @ h @ l @ h) / 64, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"weights": [0.5, 0.25, 0.125, 0.125]}])
def test_hsic_of_nearly_constant_kernels_keeps_its_digits(options):
    k, l = rq_kernel(np.array([[0, 1, 3, 4], [2, 1, 5, 0]])[..., None] * 2.0**-16)  # noqa: E741
    w = [Fraction(weight) for weight in options.get("weights", [0.25] * 4)]
    exact = [[[Fraction(x) for x in row] for row in each.tolist()] for each in (k, l)]
    pairs = list(itertools.product(range(4), repeat=2))
    rows = [[sum(w[b] * each[a][b] for b in range(4)) for a in range(4)] for each in exact]
    totals = [sum(w[a] * row[a] for a in range(4)) for row in rows]
    expected = (
        sum(w[a] * w[b] * exact[0][a][b] * exact[1][a][b] for a, b in pairs)
        - 2 * sum(w[a] * rows[0][a] * rows[1][a] for a in range(4))
        + totals[0] * totals[1]
    )
    assert abs(float(expected)) < 1e-16  # out of reach of the three terms as they stand
    for result in (hsic(k, l, **options), dhsic(np.stack([k, l]), **options)):
        assert result == pytest.approx(float(expected), rel=1e-6, abs=0)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_dhsic_is_linear_in_every_kernel(d):
    first, second = psd_kernels(2, d, 7)
    for slot in range(d):
        swapped, mixed = first.copy(), first.copy()
        swapped[slot] = second[slot]
        mixed[slot] = 2 * first[slot] - 3 * second[slot]
        expected = 2 * dhsic(first) - 3 * dhsic(swapped)
        assert dhsic(mixed) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("d", [2, 3])
def test_dhsic_of_a_mean_kernel_is_the_mean_of_dhsic(d):
    reference, others = kernels(9, 6), kernels(d - 1, 6, seed=1)
    whole = dhsic(np.stack([reference.mean(0), *others]))
    each = [dhsic(np.stack([k, *others])) for k in reference]
    assert whole == pytest.approx(np.mean(each), rel=1e-11)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_hsic_is_linear_in_both_kernels(estimator):
    a, b, c = psd_kernels(3, 7)
    for pair in (lambda k: (k, c), lambda k: (c, k)):
        mixed, first, second = (hsic(*pair(k), estimator=estimator) for k in (2 * a - 3 * b, a, b))
        assert mixed == pytest.approx(2 * first - 3 * second, rel=1e-10)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("m", [2, 5, 20])
def test_dhsic_of_positive_definite_kernels_is_not_negative(d, m):
    stack = psd_kernels(d, 200, m)
    bound = np.abs(stack).max(axis=(-2, -1)).prod(axis=0)
    assert (dhsic(stack) / bound >= -1e-12).all()
    assert (dhsic(kernels(d, 200, m)) >= -1e-12).all()


def test_hsic_of_labels_is_at_most_half_their_information():
    rng = np.random.default_rng(0)
    ratios = []
    for n_classes, m in itertools.product((2, 3, 6), (2, 5, 30)):
        a = rng.integers(n_classes, size=(100, m))
        b = np.where(rng.random((100, m)) < rng.random((100, 1)), a, rng.integers(2, size=(100, m)))
        for x, y, value in zip(a, b, hsic(delta_kernel(a), delta_kernel(b)), strict=True):
            joint = np.zeros((n_classes, n_classes))
            np.add.at(joint, (x, y), 1 / m)
            product = np.outer(joint.sum(1), joint.sum(0))
            seen = joint > 0
            information = (joint[seen] * np.log(joint[seen] / product[seen])).sum()
            assert value <= information / 2 + 1e-12
            ratios.append(value / information if information > 1e-9 else 0)
    assert max(ratios) > 0.3  # the bound was put to the test


def test_biased_hsic_of_independent_labels_has_the_stated_mean():
    m, p, q = 12, (0.5, 0.3, 0.2), (0.6, 0.4)
    rng = np.random.default_rng(0)
    k = delta_kernel(rng.choice(3, p=p, size=(20_000, m)))
    l = delta_kernel(rng.choice(2, p=q, size=(20_000, m)))  # noqa: E741
    gini = (1 - sum(x**2 for x in p)) * (1 - sum(x**2 for x in q))
    assert gini * (m - 1) / m**2 == pytest.approx(0.0227333, abs=5e-8)
    for estimator, mean in (("biased", 0.0227333), ("unbiased", 0.0)):
        values = hsic(k, l, estimator=estimator)
        assert abs(values.mean() - mean) < 4 * values.std() / math.sqrt(20_000)


@pytest.mark.parametrize("options", [{}, {"estimator": "unbiased"}])
def test_permuting_the_draws_of_both_points_changes_nothing(options):
    k, l = kernels(2, 9)  # noqa: E741
    order = np.random.default_rng(0).permutation(9)
    permuted = hsic(k[np.ix_(order, order)], l[np.ix_(order, order)], **options)
    assert permuted == pytest.approx(hsic(k, l, **options), rel=1e-11)
    stack = kernels(3, 9)
    assert dhsic(stack[:, order][:, :, order]) == pytest.approx(dhsic(stack), rel=1e-11)


def test_permuting_the_draws_of_one_point_gives_unbiased_mean_zero():
    k = kernels(5)
    orders = list(itertools.permutations(range(5)))
    permuted = np.stack([k[np.ix_(order, order)] for order in orders])
    together = np.broadcast_to(k, permuted.shape)
    assert abs(hsic(together, permuted, estimator="unbiased").mean()) < 1e-16
    assert hsic(k, k, estimator="unbiased") > 1e-3
    assert hsic(together, permuted).mean() > 1e-3


@pytest.mark.parametrize("d", [2, 3, 4])
def test_integer_weights_equal_duplicated_draws(d):
    counts = np.array([3, 1, 0, 2, 5])
    stack = psd_kernels(d, 4, 5)
    copies = np.repeat(np.repeat(stack, counts, axis=-1), counts, axis=-2)
    weighted = dhsic(stack, weights=counts / counts.sum())
    np.testing.assert_allclose(weighted, dhsic(copies), rtol=1e-9)
    if d == 2:
        np.testing.assert_allclose(
            hsic(*stack, weights=counts / counts.sum()), hsic(*copies), rtol=1e-9
        )


def test_weights_of_three_labels_equal_one_sixteenth():
    k, l = delta_kernel(np.array([[0, 1, 1], [1, 0, 1]]))  # noqa: E741
    assert hsic(k, l, weights=[0.5, 0.25, 0.25]) == pytest.approx(0.0625, rel=1e-12)
    copies = delta_kernel(np.array([[0, 0, 1, 1], [1, 1, 0, 1]]))
    assert hsic(*copies) == pytest.approx(0.0625, rel=1e-12)


@pytest.mark.parametrize("m", [4, 7, 50])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -0.3])
def test_constant_kernels_give_exactly_zero(m, value):
    constant, k = np.full((m, m), value), kernels(m)
    weights = np.random.default_rng(0).dirichlet(np.ones(m))
    for options in ({}, {"estimator": "unbiased"}, {"weights": weights}):
        assert hsic(constant, k, **options) == 0
        assert hsic(k, constant, **options) == 0
        assert (hsic_dual(constant, **options) == 0).all()
    assert dhsic(np.stack([constant, k])) == 0
    assert dhsic(np.stack([constant] * 3)) == 0
    # one dependent variable among constants is independent of them, up to rounding
    assert abs(dhsic(np.stack([constant, k, constant]))) <= 1e-16


def test_unbiased_hsic_ignores_the_diagonal():
    k, l = kernels(2, 6)  # noqa: E741
    changed = k + np.diag(np.arange(6.0))
    assert hsic(changed, l, estimator="unbiased") == pytest.approx(
        hsic(k, l, estimator="unbiased"), rel=1e-10
    )
    assert hsic(np.eye(6), l, estimator="unbiased") == 0


def test_two_draws_that_differ_equal_closed_form():
    k = np.array([[1.0, 0.25], [0.25, 1.0]])  # (1 - q)(1 - q') / 4
    l = np.array([[1.0, 0.5], [0.5, 1.0]])  # noqa: E741
    assert hsic(k, l) == 0.75 * 0.5 / 4
    assert hsic(k, np.ones((2, 2))) == 0


def test_dhsic_with_zero_and_cancelling_kernels_is_finite():
    k = kernels(6)
    assert dhsic(np.stack([k, np.zeros((6, 6)), k])) == 0
    signs = np.outer([1, -1] * 3, [1, -1] * 3).astype(float)  # mean exactly 0
    stack = np.stack([k, signs, k])
    assert dhsic(stack) == pytest.approx(loop_dhsic(stack), rel=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dhsic_of_many_variables_neither_overflows_nor_vanishes(dtype):
    m = 50
    identical = np.broadcast_to(np.eye(m, dtype=dtype), (200, m, m))
    assert dhsic(identical) == pytest.approx(1 / m, rel=1e-6)
    spread = np.linspace(0, 1, 20)[:, None]
    alike = np.stack([rq_kernel(spread, length_scale=5.0)] * 100).astype(dtype)
    assert dhsic(alike) == pytest.approx(loop_dhsic(alike), rel=1e-6)
    assert dhsic(alike) > 0.01


@pytest.mark.parametrize("options", [{}, {"estimator": "unbiased"}, {"weights": np.full(7, 1 / 7)}])
def test_equal_rows_get_bitwise_equal_values_in_any_chunk(options):
    k, l = kernels(2, 23, 7)  # noqa: E741
    k[[4, 11, 22]], l[[4, 11, 22]] = k[0], l[0]
    whole = hsic(k, l, **options)
    assert len(set(whole[[0, 4, 11, 22]].tolist())) == 1
    for step in (1, 7):
        slices = [slice(start, start + step) for start in range(0, 23, step)]
        parts = np.concatenate([hsic(k[s], l[s], **options) for s in slices])
        np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(hsic(np.asfortranarray(k), l, **options), whole)
    if options != {"estimator": "unbiased"}:
        triple = np.stack([k, l, k])
        joint = dhsic(triple, **options)
        parts = np.concatenate([dhsic(triple[:, i : i + 1], **options) for i in range(23)])
        np.testing.assert_array_equal(parts, joint)


def test_gradients_flow_through_torch():
    torch = pytest.importorskip("torch")
    y = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64, requires_grad=True)
    other = torch.tensor(kernels(3))
    assert torch.autograd.gradcheck(lambda y: hsic(rq_kernel(y), other), (y,))


@pytest.mark.parametrize("function", [hsic, hsic_dual])
def test_hsic_refuses_what_is_no_square_kernel(function):
    name = function.__name__
    call = (lambda k: hsic(np.eye(4), k)) if function is hsic else hsic_dual
    with pytest.raises(TypeError, match=f"l must be an array. Got list in {name}"):
        call([[1.0]])
    with pytest.raises(
        TypeError, match=f"l must hold real numbers. Got dtype complex128 in {name}"
    ):
        call(np.eye(4, dtype=complex))
    with pytest.raises(ValueError, match=rf"l must hold square .*Got shape \(4, 3\) in {name}"):
        call(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=rf"Got shape \(4,\) in {name}"):
        call(np.zeros(4))
    with pytest.raises(
        ValueError, match=f"l has 1 draw; {name} needs at least 2. Increase n_draws"
    ):
        call(np.ones((1, 1)))


def test_hsic_refuses_kernels_of_different_shapes():
    message = r"k and l must have the same shape .*Got \(2, 4, 4\) and \(4, 4\) in hsic"
    with pytest.raises(ValueError, match=message):
        hsic(np.ones((2, 4, 4)), np.ones((4, 4)))


@pytest.mark.parametrize("function", [lambda k, **o: hsic(k, k, **o), hsic_dual])
def test_hsic_refuses_options_that_do_not_fit(function):
    message = "'estimator' parameter of hsic.* must be one of 'biased', 'unbiased'. Got 'u' instead"
    with pytest.raises(ValueError, match=message):
        function(np.eye(4), estimator="u")
    with pytest.raises(ValueError, match=r"needs at least 4 draws\. Got 3; increase n_draws"):
        function(np.eye(3), estimator="unbiased")
    with pytest.raises(ValueError, match="The unbiased estimator has no weighted form"):
        function(np.eye(4), estimator="unbiased", weights=np.full(4, 0.25))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.5], r"one entry per draw, shape \(3,\)\. Got shape \(2,\)"),
        ([0.5, 0.6, -0.1], r"weights must be finite and >= 0\. Got .*-0\.1"),
        ([0.5, np.nan, 0.5], "weights must be finite and >= 0"),
        ([1, 1, 1], r"weights must sum to 1\. Got a sum of 3; pass weights / sum\(weights\)"),
    ],
)
def test_weights_that_do_not_fit_raise(weights, message):
    for call in (
        lambda **o: hsic(np.eye(3), np.eye(3), **o),
        lambda **o: dhsic(np.ones((3, 3, 3)), **o),
    ):
        with pytest.raises(ValueError, match=message):
            call(weights=weights)


def test_dhsic_refuses_what_is_no_stack_of_kernels():
    with pytest.raises(TypeError, match=r"kernels must be an array\. Got list in dhsic"):
        dhsic([np.eye(3), np.eye(3)])
    for shape in ((1, 3, 3), (3, 3)):
        with pytest.raises(ValueError, match=r"with at least 2 variables\. Got shape"):
            dhsic(np.ones(shape))
    with pytest.raises(
        ValueError, match=r"kernels must hold square .*Got shape \(2, 3, 4\) in dhsic"
    ):
        dhsic(np.ones((2, 3, 4)))
    with pytest.raises(ValueError, match="kernels has 1 draw; dhsic needs at least 2"):
        dhsic(np.ones((2, 1, 1)))
