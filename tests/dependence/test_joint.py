"""Joint entropy against literal enumeration, closed forms and bounds; sampled against exact."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical._random import CONFIGURATIONS, stream_generator
from sklearn_ical.dependence import Configurations, bald, joint_entropy, predictive_entropy

Backend = Callable[[np.ndarray], Any]

WEIGHTS = np.array([0.1, 0.0, 0.6, 0.3])


def enumerated(proba: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the joint entropy, one literal product for each configuration and draw."""
    n_points, n_draws, n_classes = proba.shape
    w = np.full(n_draws, 1 / n_draws) if weights is None else weights
    total = 0.0
    for labels in itertools.product(range(n_classes), repeat=n_points):
        mass = sum(
            w[k] * math.prod(proba[i, k, y] for i, y in enumerate(labels)) for k in range(n_draws)
        )
        total -= mass * math.log(mass) if mass > 0 else 0.0
    return total


def make_proba(seed: int, n_points: int = 4, n_draws: int = 4, n_classes: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.5), size=(n_points, n_draws))
    proba[0] = np.eye(n_classes)[rng.integers(n_classes, size=n_draws)]  # 0 log 0 occurs
    return proba


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_entropy_equals_enumeration_on_every_backend(
    weights: np.ndarray | None, dtype: str, backend: Backend
) -> None:
    for seed in range(5):
        proba = make_proba(seed).astype(dtype)
        expected = enumerated(proba.astype(float), weights)
        got = joint_entropy(backend(proba), weights=weights)
        assert isinstance(got, float)
        assert got == pytest.approx(expected, rel=1e-6 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("n_configurations", [1, 3, 40, 100])
def test_sampled_entropy_is_unbiased(n_configurations: int, weights: Any) -> None:
    proba = make_proba(1, n_points=6)
    expected = enumerated(proba, weights)
    found = np.array(
        [
            joint_entropy(
                proba, weights=weights, n_configurations=n_configurations, random_state=seed
            )
            for seed in range(200)
        ]
    )
    error = found.std(ddof=1) / math.sqrt(len(found))
    assert error > 0  # it was sampled
    assert abs(found.mean() - expected) < 3 * error
    assert found.std() < 1 / math.sqrt(max(n_configurations, 4))


def test_enumerable_configurations_need_no_random_state() -> None:
    proba = make_proba(2)
    few = {joint_entropy(proba, n_configurations=3**4, random_state=seed) for seed in range(5)}
    assert len(few) == 1
    assert few.pop() == pytest.approx(enumerated(proba), rel=1e-12)


def test_votes_stay_exact_however_many_points_there_are() -> None:
    labels = np.random.default_rng(0).integers(3, size=(40, 5))
    labels[:, 4] = labels[:, 2]
    # Four different draws, the last of them twice.
    expected = -3 * 0.2 * math.log(0.2) - 0.4 * math.log(0.4)
    for seed in range(3):
        got = joint_entropy(np.eye(3)[labels], n_configurations=1, random_state=seed)
        assert got == pytest.approx(expected, rel=1e-12)


def test_information_of_the_papers_example_and_of_two_draws_equals_closed_forms() -> None:
    first, second = [0, 1, 2] + [3] * 7, [0] * 9 + [1]
    votes = np.eye(4)[[first, second]]
    assert joint_entropy(votes[:1]) == pytest.approx(0.9404480, abs=1e-7)
    assert joint_entropy(votes) == pytest.approx(1.2275294, abs=1e-7)
    assert joint_entropy(votes[[0, 1, 1]]) == pytest.approx(1.2275294, abs=1e-7)
    point = np.array([[0.9, 0.1], [0.1, 0.9]])
    given_draw = float(predictive_entropy(np.array([[[0.9, 0.1]]]))[0])
    information = joint_entropy(np.stack([point, point])) - 2 * given_draw
    assert information == pytest.approx(0.5143747, abs=1e-7)


def test_one_point_has_its_predictive_entropy_and_none_has_no_entropy() -> None:
    proba = make_proba(3)
    for point in range(4):
        expected = float(predictive_entropy(proba[point : point + 1])[0])
        assert joint_entropy(proba[point : point + 1]) == pytest.approx(expected, rel=1e-12)
    assert joint_entropy(proba[:0]) == 0.0
    assert joint_entropy(np.ones((7, 3, 1))) == 0.0


def test_draws_that_agree_make_labels_independent() -> None:
    proba = np.repeat(make_proba(4, n_points=9, n_draws=1), 6, axis=1)
    expected = float(np.sum(predictive_entropy(proba)))
    assert joint_entropy(proba, n_configurations=5, random_state=0) == pytest.approx(expected)


@pytest.mark.parametrize("n_configurations", [3, 300, 10_000])
def test_information_keeps_its_bounds(n_configurations: int) -> None:
    for seed in range(20):
        proba = make_proba(seed, n_points=7, n_draws=5)
        alone = bald(proba)
        given_draw = float(np.sum(predictive_entropy(proba) - alone))
        entropy = joint_entropy(proba, n_configurations=n_configurations, random_state=seed)
        slack = 1e-12 if n_configurations == 10_000 else 3 / math.sqrt(max(n_configurations, 5))
        information = entropy - given_draw
        assert alone.max() - slack <= information
        assert information <= min(alone.sum(), math.log(5)) + slack


@pytest.mark.parametrize("n_configurations", [10, 10_000])
def test_weights_count_as_repeated_draws(n_configurations: int) -> None:
    proba, counts = make_proba(5), np.array([3, 0, 1, 2])
    weighted = joint_entropy(proba, weights=counts / 6, n_configurations=n_configurations)
    repeated = joint_entropy(proba.repeat(counts, axis=1), n_configurations=n_configurations)
    assert weighted == pytest.approx(repeated, rel=1e-12 if n_configurations > 100 else 0.3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_configurations", [2, 1000])
def test_hundreds_of_points_do_not_underflow(n_configurations: int, dtype: str) -> None:
    proba = np.array([[[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]]] * 300, dtype=dtype)
    given_draw = -300 * (0.9 * math.log(0.9) + 0.1 * math.log(0.1))
    got = joint_entropy(proba, n_configurations=n_configurations, random_state=0)
    # So many labels tell which of the two draws it is.
    assert got == pytest.approx(given_draw + math.log(2), abs=1 / math.sqrt(n_configurations))
    sharp = make_proba(6, n_points=400, n_draws=10, n_classes=10) ** 8
    sharp = (sharp / sharp.sum(axis=2, keepdims=True)).astype(dtype)
    assert np.isfinite(joint_entropy(sharp, n_configurations=n_configurations, random_state=0))


def test_equal_seeds_give_equal_estimates() -> None:
    proba = make_proba(7, n_points=6)
    estimates = [
        joint_entropy(proba, n_configurations=20, random_state=seed) for seed in (1, 1, 2, None)
    ]
    assert estimates[0] == estimates[1]
    assert len(set(estimates)) == 3


def sampled_configurations(proba: np.ndarray, n: int) -> Configurations:
    """Return configurations of all points, sampled from the second point on."""
    generator = stream_generator(0, CONFIGURATIONS)
    configurations = Configurations(proba.shape[1], None, n, generator)
    for point in proba:
        configurations.add(configurations.of_active(point))
    return configurations


def test_sampled_configurations_come_from_the_joint_distribution() -> None:
    proba = make_proba(8, n_points=5, n_draws=2)
    sampled = sampled_configurations(proba, 2_000)
    assert not sampled.sampled  # no more than 3**5 configurations
    sampled = sampled_configurations(np.concatenate([proba] * 2), 2_000)
    assert sampled.sampled
    posterior = sampled.posterior
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-12)
    # The posterior, averaged over the configurations, is the prior.
    np.testing.assert_allclose(sampled.mass @ posterior, 0.5, atol=0.02)


def test_sampled_rows_take_turns_over_the_draws() -> None:
    votes = np.eye(2)[np.array([[0, 0, 1, 1]])]
    fair = np.full((12, 4, 2), 0.5)
    sampled = sampled_configurations(np.concatenate([fair, votes]), 400)
    assert sampled.sampled
    posterior = sampled.posterior
    # The vote tells to which half of the draws the row's own draw belongs.
    own = np.tile(
        [[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]], (100, 1)
    )
    np.testing.assert_allclose(posterior, own, atol=1e-12)
    np.testing.assert_allclose(sampled.mass, 1 / 400)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_configurations": 0}, ValueError, r"n_configurations must be an integer >= 1. Got 0"),
        ({"n_configurations": 2.0}, TypeError, r"n_configurations must be an integer >= 1"),
        ({"n_configurations": True}, TypeError, r"n_configurations must be an integer >= 1"),
        ({"weights": [1.0]}, ValueError, r"weights must have one entry per draw, shape \(4,\)"),
        ({"random_state": "0"}, TypeError, r"'random_state' parameter of joint_entropy"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        joint_entropy(make_proba(0), **options)
    with pytest.raises(TypeError, match=r"proba must be an array of shape .* in joint_entropy"):
        joint_entropy([[[0.5, 0.5]]])
    with pytest.raises(ValueError, match=r"proba must have shape .* Got shape \(2, 3\)"):
        joint_entropy(np.ones((2, 3)))
