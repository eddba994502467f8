"""HSIC in integers: equal to literal fractions, whatever the size of the counts."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sklearn_ical.dependence import delta_kernel, hsic
from sklearn_ical.dependence._hsic import integer_hsic, integer_self_hsic

Matrix = list[list[int]]


def unit(m: int, estimator: str) -> int:
    return m**4 if estimator == "biased" else (m - 1) * (m - 2) * m * (m - 3)


def kernel_of(labels: Any) -> Matrix:
    return [[int(a == b) for b in labels] for a in labels]


def fraction_hsic(k: Matrix, l: Matrix, estimator: str) -> Fraction:  # noqa: E741
    """Evaluate the statistic of two kernels term by term, without rounding."""
    m = len(k)
    draws = range(m)
    if estimator == "unbiased":
        k, l = ([[0 if i == j else z[i][j] for j in draws] for i in draws] for z in (k, l))  # noqa: E741
    joint = sum(k[i][j] * l[i][j] for i in draws for j in draws)
    rows = sum(sum(k[i]) * sum(l[i]) for i in draws)
    totals = sum(map(sum, k)) * sum(map(sum, l))
    if estimator == "biased":
        return Fraction(joint, m**2) - Fraction(2 * rows, m**3) + Fraction(totals, m**4)
    value = joint + Fraction(totals, (m - 1) * (m - 2)) - Fraction(2 * rows, m - 2)
    return value / (m * (m - 3))


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64])
@pytest.mark.parametrize("m", [4, 7])
def test_integer_hsic_equals_fractions(m: int, dtype: Any, estimator: str) -> None:
    rng = np.random.default_rng(m)
    labels = rng.integers(0, 3, size=(12, m)).astype(dtype)
    labels[0] = 1
    sums = sum(np.array(kernel_of(row)) for row in rng.integers(0, 3, size=(9, m)))
    scores = integer_hsic(labels, sums, estimator)
    assert scores.dtype == np.int64
    assert scores[0] == 0
    for row, score in zip(labels, scores.tolist(), strict=True):
        literal = fraction_hsic(kernel_of(row), sums.tolist(), estimator)
        assert Fraction(score, unit(m, estimator)) == literal


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_integer_hsic_of_huge_counts_equals_fractions(estimator: str) -> None:
    rng = np.random.default_rng(0)
    m = 6
    labels = rng.integers(0, 3, size=(8, m))
    labels[0] = 2
    patterns = rng.integers(0, 3, size=(5, m))
    counts = [int(c) for c in rng.integers(10**15, 3 * 10**15, size=5)]
    sums = sum(c * np.array(kernel_of(row)) for c, row in zip(counts, patterns, strict=True))
    scores = integer_hsic(labels, sums, estimator)
    for row, score in zip(labels, scores, strict=True):
        literal = fraction_hsic(kernel_of(row), sums.tolist(), estimator)
        assert Fraction(score, unit(m, estimator)) == literal
    assert scores[0] == 0
    assert max(abs(score) for score in scores.tolist()) > 2**53  # float64 could not hold them


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_integer_hsic_ignores_constants_in_the_sums(estimator: str) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, size=(6, 5))
    sums = sum(np.array(kernel_of(row)) for row in rng.integers(0, 2, size=(4, 5)))
    expected = integer_hsic(labels, sums, estimator)
    np.testing.assert_array_equal(integer_hsic(labels, sums + 17, estimator), expected)
    np.testing.assert_array_equal(integer_hsic(labels, sums - 4, estimator), expected)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_integer_self_hsic_is_integer_hsic_with_the_own_kernel(estimator: str) -> None:
    labels = np.random.default_rng(2).integers(0, 4, size=(20, 6)).astype(np.uint8)
    labels[0] = 3
    own = integer_self_hsic(labels, estimator)
    assert own[0] == 0
    for row, score in zip(labels, own, strict=True):
        kernel = np.array(kernel_of(row))
        assert integer_hsic(row[None], kernel, estimator).tolist() == [score]
        expected = hsic(delta_kernel(row), delta_kernel(row), estimator=estimator)
        assert score / unit(6, estimator) == pytest.approx(float(expected), abs=1e-14)


def test_integer_hsic_of_two_draws_is_a_quarter() -> None:
    labels = np.array([[0, 1], [0, 0]])
    sums = np.array([[2, 0], [0, 2]])  # two reference rows whose draws differ
    assert integer_hsic(labels, sums, "biased").tolist() == [2 * 2**4 // 4, 0]
    assert integer_self_hsic(labels, "biased").tolist() == [2**4 // 4, 0]


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
def test_relabeled_patterns_tie(estimator: str) -> None:
    rng = np.random.default_rng(3)
    pattern = rng.integers(0, 4, size=9)
    labels = np.stack([rng.permutation(300)[:4][pattern] for _ in range(10)])
    sums = sum(np.array(kernel_of(row)) for row in rng.integers(0, 2, size=(4, 9)))
    assert len(set(integer_hsic(labels, sums, estimator).tolist())) == 1
    assert len(set(integer_self_hsic(labels, estimator).tolist())) == 1
