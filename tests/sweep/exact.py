"""Exact greedy picks of strategies outside the ICAL family, by the definitions; no tests.

Scores are fractions, or decimals of which 40 digits are compared. Rows are object arrays of
fractions, weights of draws are equal.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from tests.exact_oracles import (
    DIGITS,
    Rows,
    as_decimal,
    as_fractions,
    compared,
    greedy,
    mean_variances,
    outputs_of,
    solved,
)


@cache
def log(x: Fraction) -> Decimal:
    return DIGITS.ln(as_decimal(x))


@cache
def minus_x_log_x(x: Fraction) -> Decimal:
    return DIGITS.multiply(-as_decimal(x), log(x)) if x > 0 else Decimal(0)


def entropy(probabilities: Any) -> Decimal:
    total = Decimal(0)
    for x in np.asarray(probabilities).reshape(-1):
        total = DIGITS.add(total, minus_x_log_x(x))
    return total


def mean_of(y: Rows) -> Rows:
    """Return the means over the draws, (n, n_outputs)."""
    return y.sum(axis=1) / Fraction(y.shape[1])


def mean_noise(noise: Any, n: int) -> Rows:
    """Return the noise variance of each row, 0 for None."""
    noise = as_fractions(0 if noise is None else noise)
    noise = noise.sum(axis=1) / Fraction(noise.shape[1]) if noise.ndim == 2 else noise
    return np.broadcast_to(noise, (n,))


# Scores of single rows


def entropies(values: Any, kind: str, noise: Any) -> list[Any]:
    y = outputs_of(values, kind)
    if kind == "value":
        variance = ((y - mean_of(y)[:, None]) ** 2).sum(axis=(1, 2)) / Fraction(y.shape[1])
        return (variance + y.shape[2] * mean_noise(noise, len(y))).tolist()
    return compared(entropy(row) for row in mean_of(y))


def margins(values: Any, kind: str, noise: Any) -> list[Any]:
    ordered = np.sort(mean_of(outputs_of(values, kind)), axis=1)
    return [row[-2] - row[-1] if len(row) > 1 else Fraction(-1) for row in ordered]


def least_confidences(values: Any, kind: str, noise: Any) -> list[Any]:
    return (-mean_of(outputs_of(values, kind)).max(axis=1)).tolist()


def balds(values: Any, kind: str, noise: Any) -> list[Any]:
    y = outputs_of(values, kind)
    if kind != "value":
        means = mean_of(y)
        return compared(entropy(means[x]) - _mean_entropy(y[x]) for x in range(len(y)))
    if noise is None:
        return entropies(values, kind, None)
    variances = ((y - mean_of(y)[:, None]) ** 2).sum(axis=1) / Fraction(y.shape[1])
    noises = np.broadcast_to(as_fractions(noise).reshape((*np.shape(noise), 1, 1)[:2]), y.shape[:2])
    scores = []
    for variance, row in zip(variances, noises, strict=True):
        logs = sum((log(x) for x in row), Decimal(0)) / len(row)
        total = [log(v + row.sum() / Fraction(len(row))) - logs for v in variance]
        scores.append(sum(total, Decimal(0)) / 2)
    return compared(scores)


def _mean_entropy(row: Rows) -> Decimal:
    return sum((entropy(p) for p in row), Decimal(0)) / len(row)


def epigs(values: Any, others: Any, kind: str) -> list[Decimal]:
    """Return the mean information between each row's label and that of other rows."""
    n_classes = max(outputs_of(each, kind).shape[2] for each in (values, others))
    y, there = (_padded(outputs_of(each, kind), n_classes) for each in (values, others))
    scores = []
    for row in y:
        total = Decimal(0)
        for other in there:
            joint = row.T @ other / Fraction(len(row))
            total += entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint)
        scores.append(total / len(there))
    return compared(scores)


def _padded(y: Rows, n_classes: int) -> Rows:
    missing = as_fractions(np.zeros((*y.shape[:2], n_classes - y.shape[2])))
    return np.concatenate([y, missing], axis=2)


# BatchBALD


def batch_bald_picks(values: Any, kind: str, size: int, candidates: Any = None) -> list[int]:
    """Return greedy picks by the information of labels, those of BALD once there is none left."""
    y = outputs_of(values, kind)
    m = y.shape[1]
    alone = balds(values, kind, None)

    def scores(chosen: list[int]) -> list[Any]:
        joint = as_fractions(np.ones((1, m)))  # (n_configurations, m)
        for x in chosen:
            joint = (joint[:, None, :] * y[x].T[None]).reshape(-1, m)
            joint = joint[(joint > 0).any(axis=1)]
        before = entropy(joint.sum(axis=1) / Fraction(m))
        gains = []
        for row in y:
            both = joint @ row / Fraction(m)  # (n_configurations, n_classes)
            gains.append(entropy(both) - before - _mean_entropy(row))
        return compared(gains)

    def with_rest(chosen: list[int]) -> list[Any]:
        gains = scores(chosen)
        free = set(range(len(y)) if candidates is None else candidates) - set(chosen)
        return gains if any(gains[x] > 0 for x in free) else alone

    return greedy(with_rest, len(y), size, candidates=candidates)


# Kernels on the covariance of predictions


def covariance(y: Rows) -> Rows:
    """Return the covariance of rows over the draws, of each output, (n_outputs, n, n)."""
    apart = np.moveaxis(y - mean_of(y)[:, None], 2, 0)  # (n_outputs, n, m)
    return np.array([a @ a.T for a in apart], dtype=object) / Fraction(y.shape[1])


def as_decimals(rows: Rows) -> Rows:
    return np.vectorize(as_decimal, otypes=[object])(rows)


def observed(kernel: Rows, noise: Rows, rows: Any) -> Rows:
    """Return the covariance given noisy labels of rows."""
    for x in rows:
        column = kernel[:, x]
        kernel = kernel - np.outer(column, column / (kernel[x, x] + noise[x]))
    return kernel


def log_det_picks(
    blocks: Rows, noise: Rows, size: int, *, candidates: Any = None, known: Any = ()
) -> list[int]:
    """Return greedy picks for covariances (n_blocks, n, n) and noises (n_blocks, n).

    Half the sum of log(1 + r / noise) grows with the product of the numbers in the logarithms.
    """
    blocks, noise = as_decimals(blocks), as_decimals(noise)

    def scores(chosen: list[int]) -> list[Any]:
        products = np.full(blocks.shape[1], Decimal(1))
        for kernel, variance in zip(blocks, noise, strict=True):
            left = observed(kernel, variance, [*known, *chosen])
            products = products * (1 + left.diagonal() / variance)
        return compared(products)

    with localcontext(DIGITS):
        return greedy(scores, blocks.shape[1], size, candidates=candidates)


def squared_distances(kernel: Rows) -> Rows:
    diagonal = kernel.diagonal()
    return diagonal[:, None] + diagonal - 2 * kernel


def farthest_picks(
    distances: Rows, first: Any, size: int, *, candidates: Any = None, known: Any = ()
) -> list[int]:
    """Return the picks farthest from their nearest center; by `first` while there is none."""

    def scores(chosen: list[int]) -> list[Any]:
        centers = [*known, *chosen]
        return distances[:, centers].min(axis=1).tolist() if centers else list(first)

    return greedy(scores, len(distances), size, candidates=candidates)


def split_picks(
    distances: Rows, first: Any, size: int, *, n_pool: int, candidates: Any, known: Any = ()
) -> list[int]:
    """Return the picks farthest from the center of the largest cluster; "lcmd"."""
    allowed = range(n_pool) if candidates is None else candidates

    def scores(chosen: list[int]) -> list[Any]:
        centers = [*known, *chosen]
        if not centers:
            return list(first)
        nearest = [
            min(centers, key=lambda c: (distances[x, c], centers.index(c))) for x in range(n_pool)
        ]
        far = [distances[x, nearest[x]] for x in range(n_pool)]
        sums = {
            c: sum(far[x] for x in range(n_pool) if nearest[x] == c)
            for c in centers
            if any(nearest[x] == c and far[x] > 0 for x in allowed if x not in chosen)
        }
        split = max(sums, key=lambda c: (sums[c], -centers.index(c)), default=None)
        return [far[x] if nearest[x] == split else Fraction(0) for x in range(n_pool)]

    return greedy(scores, n_pool, size, candidates=candidates)


def mean_variance_picks(
    kernel: Rows, noise: Rows, size: int, *, reference: Any, candidates: Any, known: Any = ()
) -> list[int]:
    """Return the picks of "bait": twice as many forward, then those of the least loss removed."""

    kernel, noise = as_decimals(kernel), as_decimals(noise)

    def left(rows: list[int]) -> Any:
        return observed(kernel, noise, [*known, *rows]).diagonal()[reference].sum()

    def gains(chosen: list[int]) -> list[Any]:
        after = observed(kernel, noise, [*known, *chosen])
        shared = (after[:, reference] ** 2).sum(axis=1)
        return compared(shared / (after.diagonal() + noise))

    free = range(len(kernel)) if candidates is None else candidates
    with localcontext(DIGITS):
        chosen = greedy(gains, len(kernel), min(2 * size, len(free)), candidates=candidates)
        while len(chosen) > size:
            without = compared(left([j for j in chosen if j != x]) for x in chosen)
            del chosen[max(i for i, value in enumerate(without) if value == min(without))]
    return chosen


def variance_reductions(values: Any, others: Any, noise: Rows) -> Rows:
    """Return how much a noisy target vector reduces the variances of other rows, (n, r).

    The variance of each target is in units of its mean over the rows.
    """
    y, there = (outputs_of(each, "value") for each in (values, others))
    m = Fraction(y.shape[1])
    unit = mean_variances(y)
    apart, far = (np.swapaxes(each - mean_of(each)[:, None], 1, 2) for each in (y, there))
    identity = as_fractions(np.eye(len(unit)))
    out = np.empty((len(y), len(there)), dtype=object)
    for x, here in enumerate(apart):
        inner = here @ here.T / m + noise[x] * identity
        for i, other in enumerate(far):
            shared = here @ other.T / m  # (n_targets, n_targets)
            out[x, i] = (shared * solved(inner, shared)).sum(axis=0) @ (1 / unit)
    return out


# Features


def feature_distances(features: Any, others: Any = None) -> Rows:
    X = as_fractions(features)
    Z = X if others is None else as_fractions(others)
    return ((X[:, None] - Z[None]) ** 2).sum(axis=2)


def class_coverage_picks(
    values: Any, kind: str, features: Any, size: int, factor: int, candidates: Any = None
) -> list[int]:
    """Return the picks of FASSQuery."""
    uncertain = entropies(values, kind, None)
    classes = [row.tolist().index(max(row)) for row in mean_of(outputs_of(values, kind))]
    order = sorted(range(len(uncertain)), key=lambda x: (-uncertain[x], x))
    allowed = order if candidates is None else [x for x in order if x in candidates]
    covered, kept = order[: factor * size], allowed[: factor * size]
    distances = feature_distances(features)
    largest = max(distances[i, s] for i in covered for s in covered)
    chosen: list[int] = []
    while len(chosen) < min(size, len(kept)):
        near = {
            i: min([largest, *(distances[i, s] for s in chosen if classes[s] == classes[i])])
            for i in covered
        }
        gains = {
            s: sum(max(near[i] - distances[i, s], 0) for i in covered if classes[i] == classes[s])
            for s in kept
            if s not in chosen
        }
        chosen.append(max(gains, key=lambda s: (gains[s], -kept.index(s))))
    return chosen
