"""Literal forms of the ICAL family in float64 numpy, slow loops from the definitions; no tests.

Kernels are explicit (m, m) matrices, dependence is the centered trace, objectives are set functions
evaluated from nothing, and greedy drivers scan every free candidate in each step.
"""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from sklearn_ical import PredictionSamples

ALPHAS = (0.2, 0.5, 1, 2, 5)
CONSTANT, COPY, COPIED = 3, 11, 2  # rows with special predictions in `make_values`
SOURCES = ["label", "proba", "expected", "argmax", "value", "values"]
# The worked example: one point whose labels spread over four classes, others that rarely differ.
SPREAD_LABELS = [0, 1, 2, 3, 3, 3, 3, 3, 3, 3]
RARE_LABELS = [0] * 9 + [1]


def make_values(source: str, n: int = 14, m: int = 7, seed: int = 0) -> np.ndarray:
    """Return values of one kind of input, with a constant row and a repeated row among them."""
    rng = np.random.default_rng(seed)
    if source == "label":
        values: np.ndarray = rng.integers(0, 3, size=(n, m))
    elif source in ("value", "values"):
        values = rng.normal(size=(n, m) if source == "value" else (n, m, 2))
        values = values * rng.uniform(0.5, 2, size=n).reshape((n,) + (1,) * (values.ndim - 1))
    else:
        values = rng.dirichlet(np.full(3, 0.5), size=(n, m))
    values[CONSTANT] = values[CONSTANT, :1]
    if n > COPY:
        values[COPY] = values[COPIED]
    return values


def make_samples(source: str, values: Any, weights: Any = None) -> PredictionSamples:
    kind = {"label": "label", "value": "value", "values": "value"}.get(source, "proba")
    return PredictionSamples(values, kind=kind, weights=weights)


def small_chunks(rows: int | None) -> Any:
    """Force chunks of so many rows, everything at once for None."""
    return patch("sklearn_ical._array.chunk_rows", lambda row_bytes: rows or 10**6)


def prediction_of(source: str) -> str:
    """Return the `prediction` parameter for one kind of input."""
    return source if source in ("proba", "expected", "argmax", "sampled") else "sampled"


def label_samples(labels: Any) -> PredictionSamples:
    return make_samples("label", np.asarray(labels))


def literal_labels(proba: np.ndarray, seed: int, key: int = 1) -> np.ndarray:
    """Draw one label per row and draw, from the uniforms of the rows' positions."""
    n, m, _ = proba.shape
    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(key,)))
    uniforms = np.random.Generator(bits).random((n, m))
    running = np.cumsum(proba.astype(np.float64), axis=2)
    return (running / running[:, :, -1:] <= uniforms[:, :, None]).sum(axis=2)


# Kernels and dependence


def kernel_of(outputs: np.ndarray, name: str) -> np.ndarray:
    """Return the kernel (m, m) of one point's outputs (m, n_outputs)."""
    m = len(outputs)
    d2, inner = np.empty((m, m)), np.empty((m, m))
    for i in range(m):
        for j in range(m):
            d2[i, j] = ((outputs[i] - outputs[j]) ** 2).sum()
            inner[i, j] = outputs[i] @ outputs[j]
    if name == "linear":
        return inner
    profiles: dict[str, Callable[[Any], Any]] = {
        "rq": lambda d2: np.mean([(1 + d2 / (2 * a)) ** -a for a in ALPHAS], axis=0),
        "rbf": lambda d2: np.exp(-d2 / 2),
        "delta": lambda d2: np.where(d2 == 0, 1.0, 0.0),
    }
    return profiles[name](d2)


def spread_of(values: np.ndarray, weights: Any = None) -> np.ndarray:
    """Return per target the root of the mean over rows of the variance over draws."""
    values = values.reshape(*values.shape[:2], -1)
    share = np.full(values.shape[1], 1 / values.shape[1]) if weights is None else weights
    mean = np.einsum("k,nkd->nd", share, values)
    return np.sqrt(np.einsum("k,nkd->nd", share, (values - mean[:, None]) ** 2).mean(axis=0))


def outputs_of(source: str, values: np.ndarray, spread: Any = None) -> np.ndarray:
    """Return what the kernel compares, (n, m, n_outputs): one-hot labels, probabilities, values."""
    if source in ("label", "argmax"):
        labels = values if source == "label" else values.argmax(axis=2)
        return np.eye(max(3, int(labels.max()) + 1))[np.asarray(labels, dtype=np.int64)]
    values = np.asarray(values, dtype=np.float64)
    if source in ("value", "values"):
        return values.reshape(*values.shape[:2], -1) / spread
    return values


def literal_kernels(
    source: str,
    values: np.ndarray,
    name: str = "auto",
    *,
    weights: Any = None,
    spread: Any = None,
) -> np.ndarray:
    """Return the kernel of each point, (n, m, m); `spread` is that of the pool, None for these."""
    if name == "auto":
        name = "rq" if source in ("value", "values") else "linear"
    if source in ("value", "values") and spread is None:
        spread = spread_of(np.asarray(values, dtype=np.float64), weights)
    outputs = outputs_of(source, values, spread)
    if source != "expected":
        return np.array([kernel_of(row, name) for row in outputs])
    unequal, equal = kernel_of(np.eye(2), name)[0][::-1]
    kernels = []
    for row in outputs:  # labels of two draws agree with probability p_i . p_j
        agree = row @ row.T
        np.fill_diagonal(agree, 1.0)
        kernels.append(unequal + (equal - unequal) * agree)
    return np.array(kernels)


def centered(k: np.ndarray, weights: Any = None) -> np.ndarray:
    m = len(k)
    h = np.eye(m) - (1 / m if weights is None else np.asarray(weights)[None, :])
    return h @ k @ h.T


def literal_hsic(
    k: np.ndarray,
    l: np.ndarray,  # noqa: E741
    *,
    estimator: str = "biased",
    weights: Any = None,
) -> float:
    m = len(k)
    if estimator == "unbiased":
        k, l = k - np.diag(np.diag(k)), l - np.diag(np.diag(l))  # noqa: E741
        cross = 2 / (m - 2) * np.sum(k @ l)
        total = k.sum() * l.sum() / ((m - 1) * (m - 2))
        return float((np.sum(k * l) + total - cross) / (m * (m - 3)))
    share = np.full(m, 1 / m) if weights is None else np.asarray(weights)
    return float(share @ (centered(k, weights) * centered(l, weights)) @ share)


def pairwise(reference: np.ndarray, pool: np.ndarray, **how: Any) -> np.ndarray:
    """Return HSIC of every reference row with every pool row, (r, n)."""
    return np.array([[literal_hsic(z, k, **how) for k in pool] for z in reference])


def literal_tau(reference: np.ndarray, pool: np.ndarray, weights: Any = None) -> np.ndarray:
    """Return the expected fall of the Gini impurity at each reference row, (r, n).

    Bayes over the draws, one imagined label of the candidate after the other; predictions are
    probabilities or one-hot labels, (n, m, C).
    """
    m = pool.shape[1]
    prior = np.full(m, 1 / m) if weights is None else np.asarray(weights)
    fall = np.empty((len(reference), len(pool)))
    pool, reference = (p / p.sum(axis=2, keepdims=True) for p in (pool, reference))
    for i, there in enumerate(reference):
        before = 1 - ((prior @ there) ** 2).sum()
        for x, here in enumerate(pool):
            after = 0.0
            for label in range(here.shape[1]):
                chance = float(prior @ here[:, label])
                if chance > 0:
                    posterior = prior * here[:, label] / chance
                    after += chance * (1 - ((posterior @ there) ** 2).sum())
            fall[i, x] = before - after
    return fall


def literal_variance_fall(
    reference: np.ndarray, pool: np.ndarray, weights: Any = None, noise: Any = None
) -> np.ndarray:
    """Return the fall of the total variance at each reference row by a label vector, (r, n).

    Values are (n, m, n_targets); the noise, if there is some, is that of each target, (n,) or (n,
    n_targets).
    """
    m, n_targets = pool.shape[1:]
    share = np.full(m, 1 / m) if weights is None else np.asarray(weights)
    fall = np.zeros((len(reference), len(pool)))
    for x, here in enumerate(pool):
        of = here - share @ here
        of[:, np.abs(of).max(axis=0) < 1e-12] = 0  # rounding of targets that are constant
        each = np.zeros(n_targets) if noise is None else noise[x] * np.ones(n_targets)
        scale = np.sqrt(share @ of**2 + each)
        scale[scale == 0] = 1
        of = of / scale
        label = of.T @ (share[:, None] * of) + np.diag(each / scale**2)
        known = np.linalg.pinv(label, rcond=1e-10, hermitian=True)
        for i, there in enumerate(reference):
            shared = (there - share @ there).T @ (share[:, None] * of)
            fall[i, x] = np.trace(shared @ known @ shared.T)
    return fall


def margin_weight(mean: np.ndarray) -> np.ndarray:
    """Return 1 minus the margin of mean predictions (n, C)."""
    ordered = np.sort(mean, axis=1)
    return 1 - (ordered[:, -1] - ordered[:, -2])


def entropy_weight(mean: np.ndarray) -> np.ndarray:
    """Return the entropy of mean predictions (n, C) in nats."""
    return np.array([-sum(p * np.log(p) for p in row if p > 0) for row in mean.tolist()])


def mean_prediction(outputs: np.ndarray, weights: Any = None) -> np.ndarray:
    share = np.full(outputs.shape[1], 1 / outputs.shape[1]) if weights is None else weights
    return np.einsum("k,nkc->nc", np.asarray(share), outputs)


def gain_matrix(
    source: str,
    values: np.ndarray,
    rows: Any,
    dependence: str = "hsic",
    *,
    kernel: str = "auto",
    others: np.ndarray | None = None,
    weights: Any = None,
    candidate_weight: Any = None,
    reference_weight: Any = None,
    estimator: str = "biased",
) -> np.ndarray:
    """Return G of coverage, (r, n): reference rows of `others`, of the pool itself for None."""
    theirs = values if others is None else others
    real = source in ("value", "values")
    if dependence == "hsic":
        spread = spread_of(values, weights) if real else None
        how: dict[str, Any] = {"weights": weights, "spread": spread}
        k = literal_kernels(source, values, kernel, **how)
        z = literal_kernels(source, theirs[rows], kernel, **how)
        d = np.maximum(pairwise(z, k, estimator=estimator, weights=weights), 0)
    else:
        fall = literal_variance_fall if real else literal_tau
        # Reference rows are in units of the pool's spread; a regression's share has no unit.
        spread = spread_of(values, weights) if real else None
        there, here = outputs_of(source, theirs, spread)[rows], outputs_of(source, values, spread)
        d = fall(there, here, weights)
    d[d < 1e-15] = 0.0  # what is rounding alone would not be small in a power
    ours = row_weight(source, values, candidate_weight, weights)
    given = row_weight(source, theirs, reference_weight, weights)[rows]
    return given[:, None] * d * ours[None, :]


def row_weight(source: str, values: np.ndarray, weight: Any, weights: Any = None) -> np.ndarray:
    """Return the weight of each row, (n,), by what it is called or as it is given."""
    if weight is None:
        return np.ones(len(values))
    if not isinstance(weight, str):
        return np.asarray(weight, dtype=np.float64)
    mean = mean_prediction(outputs_of(source, values), weights)
    return margin_weight(mean) if weight == "margin" else entropy_weight(mean)


# Greedy


def first_best(scores: np.ndarray) -> int:
    """Return the lowest position within rounding of the largest score; NaN is not allowed."""
    best = float(np.nanmax(scores))
    slack = 1e-10 * abs(best) + 1e-15
    return int(np.flatnonzero(np.nan_to_num(scores, nan=-np.inf) >= best - slack)[0])


def literal_greedy(
    scores_of: Callable[[list[int], list[int]], Any],
    n: int,
    batch_size: int,
    *,
    candidates: Any = None,
    step_size: int = 1,
    otherwise: Callable[[list[int], list[int]], Any] | None = None,
) -> tuple[list[int], np.ndarray]:
    """Pick by ``scores_of(batch, free)``, `step_size` from one state; return picks and rows.

    `otherwise` decides about the rest of a step once no score is above 0.
    """
    allowed = range(n) if candidates is None else sorted(candidates)
    batch: list[int] = []
    rows = []
    while len(batch) < batch_size:
        free = [x for x in allowed if x not in batch]
        scores = np.full(n, np.nan)
        scores[free] = scores_of(batch, free)
        state = batch
        for _ in range(min(step_size, batch_size - len(batch))):
            if otherwise is not None and not np.nanmax(scores) > 0:
                free = [x for x in allowed if x not in batch]
                scores[free] = otherwise(state, free)
            rows.append(scores.copy())
            batch = [*batch, first_best(scores)]
            scores[batch[-1]] = np.nan
    return batch, np.array(rows)


# Pointwise


def pointwise_gains(
    marginal: np.ndarray, kernels: np.ndarray, batch: list[int], x: int, floor: float, **how: Any
) -> np.ndarray:
    """Return max(d'_i / d_i, 1) - 1 per marginal row, from the mean kernels with and without x."""
    before, after = kernels[batch].mean(axis=0), kernels[[*batch, x]].mean(axis=0)
    d = np.array([literal_hsic(k, before, **how) for k in marginal])
    more = np.array([literal_hsic(k, after, **how) for k in marginal])
    gains = np.zeros(len(marginal))
    tiny = 1e-12 * max(literal_hsic(k, k, **how) for k in marginal)
    for i in range(len(marginal)):
        if d[i] > max(tiny, 1e-20):
            gains[i] = max(more[i] / d[i], 1) - 1
            continue
        h = literal_hsic(marginal[i], kernels[x], **how)
        if h > max(tiny, 1e-20):
            gains[i] = max(h / (floor * d.mean()) - 1, 0) / (len(batch) + 1)
    return np.where(gains > 1e-14, gains, 0.0)


def pointwise_definition(
    summary: np.ndarray,
    marginal: np.ndarray,
    kernels: np.ndarray,
    batch: list[int],
    x: int,
    floor: float = 1e-3,
    **how: Any,
) -> float:
    """Return alpha'(x) = alpha(batch + x) (M_x - 1)."""
    alpha = literal_hsic(summary, kernels[[*batch, x]].mean(axis=0), **how)
    return alpha * float(pointwise_gains(marginal, kernels, batch, x, floor, **how).mean())


def literal_pointwise(
    kernels: np.ndarray,
    batch_size: int,
    reference: Any,
    marginal: Any,
    *,
    sources: np.ndarray | None = None,
    candidates: Any = None,
    step_size: int = 1,
    floor: float = 1e-3,
    **how: Any,
) -> tuple[list[int], np.ndarray]:
    """Pick by the definition, in the order of a_x where nothing has a value yet.

    `marginal` has one set, or one for each step.
    """
    theirs = kernels if sources is None else sources

    def alone(batch: list[int], free: list[int]) -> list[float]:
        summary = theirs[reference[len(batch) // step_size]].mean(axis=0)
        return [literal_hsic(summary, kernels[x], **how) for x in free]

    def scores_of(batch: list[int], free: list[int]) -> list[float]:
        if not batch:
            return alone(batch, free)
        step = len(batch) // step_size
        summary = theirs[reference[step]].mean(axis=0)
        rows = marginal if np.ndim(marginal) == 1 else marginal[step]
        args = summary, theirs[rows], kernels, batch
        return [pointwise_definition(*args, x, floor, **how) for x in free]

    return literal_greedy(
        scores_of,
        len(kernels),
        batch_size,
        candidates=candidates,
        step_size=step_size,
        otherwise=alone,
    )


# Coverage


def coverage_value(
    gain: np.ndarray, batch: list[int], objective: str = "facility-location", gamma: float = 0.5
) -> float:
    """Evaluate f of a batch from nothing; `gain` is G, (r, n)."""
    total = 0.0
    for row in gain:
        if objective == "facility-location":
            total += max((row[x] for x in batch), default=0.0)
        else:
            total += sum(row[x] for x in batch) ** gamma
    return total / len(gain)


def literal_coverage(
    gain: np.ndarray,
    batch_size: int,
    objective: str = "facility-location",
    gamma: float = 0.5,
    *,
    candidates: Any = None,
) -> tuple[list[int], np.ndarray, list[int]]:
    """Pick by f(batch + x) - f(batch); start again from nothing where nothing adds anything.

    Returns picks, rows and the steps that started again.
    """
    start, restarts = 0, []

    def added(batch: list[int], x: int) -> float:
        f = coverage_value(gain, [*batch[start:], x], objective, gamma)
        return f - coverage_value(gain, batch[start:], objective, gamma)

    def scores_of(batch: list[int], free: list[int]) -> list[float]:
        nonlocal start
        scores = [added(batch, x) for x in free]
        if batch and max(scores) <= 1e-14 * float(gain.max()):
            start = len(batch)
            restarts.append(start)
            scores = [added(batch, x) for x in free]
        return scores

    picks, rows = literal_greedy(scores_of, gain.shape[1], batch_size, candidates=candidates)
    return picks, rows, restarts


# mRMR and joint kernels


def literal_mrmr(
    summary: np.ndarray, kernels: np.ndarray, batch_size: int, weight: float, **how: Any
) -> tuple[list[int], np.ndarray]:
    def score(batch: list[int], x: int) -> float:
        relevance = literal_hsic(summary, kernels[x], **how)
        if not batch:
            return relevance
        redundancy = np.mean([literal_hsic(kernels[b], kernels[x], **how) for b in batch])
        return relevance - weight * float(redundancy)

    return literal_greedy(
        lambda batch, free: [score(batch, x) for x in free], len(kernels), batch_size
    )


def concatenated_kernel(outputs: np.ndarray, batch: list[int], rate: float) -> np.ndarray:
    """Return exp(-rate * mean over the batch of half the squared distance), (m, m)."""
    total = 0.0
    for b in batch:
        total = total + ((outputs[b][:, None] - outputs[b][None]) ** 2).sum(axis=2) / 2
    return np.exp(-rate * total / len(batch))


def product_kernel(kernels: np.ndarray, batch: list[int]) -> np.ndarray:
    """Return the kernel of the concatenated prediction as the product over the batch."""
    k = np.ones(kernels.shape[1:])
    for b in batch:
        k = k * kernels[b]
    return k


def literal_joint(
    summary: np.ndarray,
    joint: Callable[[list[int]], np.ndarray],
    n: int,
    batch_size: int,
    *,
    norm: Callable[[np.ndarray], float] = lambda k: 1.0,
    weights: Any = None,
) -> tuple[list[int], np.ndarray]:
    """Pick by HSIC of the summary with the kernel of batch and candidate, over `norm` of it."""

    def score(batch: list[int], x: int) -> float:
        k = joint([*batch, x])
        size = norm(k)
        return literal_hsic(summary, k, weights=weights) / size if size > 1e-14 else 0.0

    return literal_greedy(lambda batch, free: [score(batch, x) for x in free], n, batch_size)
