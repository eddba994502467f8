"""Kernels of draws: closed forms, loops, exactness, backends and messages."""

import math

import numpy as np
import pytest

from sklearn_ical._array import to_host
from sklearn_ical.dependence import (
    delta_kernel,
    distance_kernel,
    linear_kernel,
    radial_profile,
    rbf_kernel,
    rq_kernel,
    squared_distances,
)

ALPHAS = (0.2, 0.5, 1, 2, 5)
Q = 0.5244998809
KERNELS = [rq_kernel, rbf_kernel, linear_kernel, distance_kernel, squared_distances]
TOLERANCE = {"float16": 1e-6, "float32": 1e-6, "float64": 1e-13}


def draws(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def loop(pair, y):
    """Evaluate a function of two draws by loops over points and draws."""
    points = y.reshape(-1, *y.shape[-2:]).astype(float).tolist()
    values = [[[pair(a, b) for b in point] for a in point] for point in points]
    return np.reshape(values, (*y.shape[:-1], y.shape[-2]))


def d2(a, b):
    return sum((s - t) ** 2 for s, t in zip(a, b, strict=True))


PAIRS = {
    "rq_kernel": lambda a, b: sum((1 + d2(a, b) / (2 * s)) ** -s for s in ALPHAS) / 5,
    "rbf_kernel": lambda a, b: math.exp(-d2(a, b) / 2),
    "linear_kernel": lambda a, b: sum(s * t for s, t in zip(a, b, strict=True)),
    "distance_kernel": lambda a, b: -math.sqrt(d2(a, b)) / 2,
    "squared_distances": d2,
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_equal_loops_on_every_backend(kernel, dtype, backend, same_place):
    y = draws(2, 3, 5, 4).astype(dtype)
    if dtype == "float16":
        try:
            on_device = backend(y)
        except TypeError:
            pytest.skip("this backend has no half precision")
    on_device = backend(y)
    result = kernel(on_device)
    same_place(result, on_device)
    expected = loop(PAIRS[kernel.__name__], y)
    assert to_host(result).dtype == (np.float64 if dtype == "float64" else np.float32)
    np.testing.assert_allclose(
        to_host(result), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )
    np.testing.assert_array_equal(to_host(on_device), y)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_of_one_point_need_no_batch_axis(kernel):
    y = draws(3, 5, 2)
    np.testing.assert_array_equal(kernel(y)[1], kernel(y[1]))


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_of_equal_rows_are_bitwise_equal(kernel):
    y = draws(23, 7, 3)
    y[[4, 11, 22]] = y[0]
    whole = kernel(y)
    for row in (4, 11, 22):
        np.testing.assert_array_equal(whole[row], whole[0])
    for step in (1, 7):
        parts = [kernel(y[start : start + step]) for start in range(0, 23, step)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0)):  # other memory layouts of the same values
        moved = np.ascontiguousarray(y.transpose(order)).transpose(np.argsort(order))
        np.testing.assert_array_equal(kernel(moved), whole)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_exactly_symmetric(kernel):
    result = kernel(draws(4, 9, 5))
    np.testing.assert_array_equal(result, result.swapaxes(-1, -2))


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_of_no_points_are_empty(kernel):
    assert kernel(np.zeros((0, 4, 2))).shape == (0, 4, 4)


def test_squared_distances_keep_the_digits_of_near_equal_draws(backend):
    y = np.array([[1.0, 5.0], [1.0 + 2.0**-40, 5.0], [1.0, 5.0]])
    result = to_host(squared_distances(backend(y)))
    assert result[0, 1] == 2.0**-80
    assert result[0, 2] == 0
    assert (np.diag(result) == 0).all()


def test_squared_distances_of_many_targets_equal_numpy():
    y = draws(2, 6, 300)
    expected = ((y[:, :, None] - y[:, None, :]) ** 2).sum(-1)
    np.testing.assert_allclose(squared_distances(y), expected, rtol=1e-13)


def test_rq_kernel_of_one_hot_labels_takes_two_values():
    labels = np.array([0, 2, 1, 1, 0])
    expected = Q + (1 - Q) * delta_kernel(labels)
    np.testing.assert_allclose(rq_kernel(np.eye(3)[labels]), expected, atol=5e-11)
    assert (np.diag(rq_kernel(np.eye(3)[labels])) == 1).all()


@pytest.mark.parametrize(
    ("alpha", "value"),
    [(0.2, 0.69882712), (0.5, 0.57735027), (1, 0.5), (2, 0.44444444), (5, 0.40187757)],
)
def test_rq_kernel_components_equal_closed_form(alpha, value):
    assert rq_kernel(np.eye(2), alphas=(alpha,))[0, 1] == pytest.approx(value, abs=5e-9)


def test_rq_kernel_mixes_by_its_weights_and_length_scale():
    y = draws(4, 3)
    parts = [rq_kernel(y / 3, alphas=(alpha,)) for alpha in (0.5, 2)]
    mixed = rq_kernel(y, alphas=(0.5, 2), weights=(0.25, 0.75), length_scale=3)
    np.testing.assert_allclose(mixed, 0.25 * parts[0] + 0.75 * parts[1], rtol=1e-13)


def test_rbf_kernel_median_pools_all_points(backend):
    # distances 1, 2, 3 in the first point and 10, 10, 0 in the second: median (3 + 2) / 2 = 3
    y = np.array([[[0.0], [1.0], [3.0]], [[0.0], [10.0], [0.0]]])
    result = to_host(rbf_kernel(backend(y), length_scale="median"))
    np.testing.assert_allclose(result, rbf_kernel(y, length_scale=3.0), rtol=1e-14)


def test_rbf_kernel_median_of_an_even_count_is_the_middle():
    y = np.array([[[0.0], [1.0]], [[0.0], [4.0]]])
    np.testing.assert_allclose(
        rbf_kernel(y, length_scale="median"), rbf_kernel(y, length_scale=2.5), rtol=1e-14
    )


def test_rbf_kernel_median_of_equal_draws_gives_ones():
    np.testing.assert_array_equal(
        rbf_kernel(np.full((2, 3, 1), 7.0), length_scale="median"), np.ones((2, 3, 3))
    )


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_delta_kernel_equals_equality_of_labels(dtype, backend, same_place):
    labels = np.array([[0, 255, 255, 1], [3, 3, 3, 3]]).astype(dtype)
    on_device = backend(labels)
    result = delta_kernel(on_device)
    same_place(result, on_device)
    assert to_host(result).dtype == np.float64
    expected = [[[float(a == b) for b in row] for a in row] for row in labels.tolist()]
    np.testing.assert_array_equal(to_host(result), expected)


@pytest.mark.parametrize(
    ("name", "kernel"), [("rq", rq_kernel), ("rbf", rbf_kernel), ("distance", distance_kernel)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_radial_profile_of_squared_distances_is_the_kernel(name, kernel, dtype, backend):
    y = backend(draws(2, 4, 3).astype(dtype))
    values = radial_profile(name)(squared_distances(y))
    assert values.dtype == y.dtype
    np.testing.assert_allclose(to_host(values), to_host(kernel(y)), rtol=1e-5, atol=1e-6)


def test_radial_profile_rq_at_label_distances_is_one_and_q():
    np.testing.assert_allclose(radial_profile("rq")(np.array([0, 2])), [1, Q], atol=5e-11)


def test_radial_profile_returns_a_callable_as_it_is():
    def profile(d2):
        return 1 / (1 + d2)

    assert radial_profile(profile) is profile


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_refuse_what_is_not_a_floating_array(kernel):
    message = rf"y must be a floating array.*Got dtype int64 in {kernel.__name__}.*delta_kernel"
    with pytest.raises(TypeError, match=message):
        kernel(np.array([[0, 1], [1, 2]]))
    with pytest.raises(TypeError, match=rf"Got list in {kernel.__name__}"):
        kernel([[0.0], [1.0]])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", [(3,), (2, 0), (0, 2), (2, 4, 0)])
def test_kernels_refuse_missing_axes(kernel, shape):
    shown = str(shape).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=rf"Got shape {shown} in {kernel.__name__}\."):
        kernel(np.zeros(shape))


def test_delta_kernel_refuses_floats_and_missing_axes():
    with pytest.raises(
        TypeError, match=r"labels must be an integer array.*float64 in delta_kernel"
    ):
        delta_kernel(np.zeros(3))
    with pytest.raises(TypeError, match="Got list in delta_kernel"):
        delta_kernel([0, 1])
    with pytest.raises(ValueError, match=r"at least one draw. Got shape \(2, 0\) in delta_kernel"):
        delta_kernel(np.zeros((2, 0), dtype=int))


@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, True, None, "mean"])
def test_length_scale_out_of_range_raises(value):
    message = (
        f"'length_scale' parameter of rbf_kernel must be a number > 0 or 'median'. Got {value!r}"
    )
    with pytest.raises(ValueError, match=message):
        rbf_kernel(np.eye(2), length_scale=value)
    with pytest.raises(ValueError, match=r"of rq_kernel must be a number > 0\. Got"):
        rq_kernel(np.eye(2), length_scale=value)


def test_rq_kernel_has_no_median_length_scale():
    with pytest.raises(ValueError, match=r"must be a number > 0\. Got 'median' instead"):
        rq_kernel(np.eye(2), length_scale="median")


@pytest.mark.parametrize("alphas", [(), (1.0, 0.0), (-1,), (np.inf,)])
def test_rq_kernel_refuses_alphas_out_of_range(alphas):
    with pytest.raises(
        ValueError, match=r"'alphas' parameter of rq_kernel must be numbers > 0\. Got"
    ):
        rq_kernel(np.eye(2), alphas=alphas)


@pytest.mark.parametrize("weights", [(1.0,), (0.5, 0.6), (1.5, -0.5)])
def test_rq_kernel_refuses_weights_that_do_not_fit(weights):
    message = "'weights' parameter of rq_kernel must be 2 numbers >= 0 that sum to 1"
    with pytest.raises(ValueError, match=message):
        rq_kernel(np.eye(2), alphas=(1, 2), weights=weights)


@pytest.mark.parametrize("kernel", ["linear", "RQ", None, 3, ["rq"]])
def test_radial_profile_refuses_other_kernels(kernel):
    with pytest.raises(ValueError, match="must be one of 'distance', 'rbf', 'rq' or a callable"):
        radial_profile(kernel)


@pytest.mark.parametrize("exponent", [-900, -332, 332, 900])
def test_unit_of_the_draws_changes_no_kernel(exponent: int) -> None:
    y, unit = np.random.default_rng(0).normal(size=(3, 5, 2)), 2.0**exponent
    np.testing.assert_array_equal(
        rbf_kernel(y * unit, length_scale="median"), rbf_kernel(y, length_scale="median")
    )
    for kernel in (rbf_kernel, rq_kernel):
        expected = kernel(y, length_scale=0.5)
        np.testing.assert_array_equal(kernel(y * unit, length_scale=0.5 * unit), expected)
    np.testing.assert_array_equal(distance_kernel(y * unit), distance_kernel(y) * unit)
