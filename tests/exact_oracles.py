"""Greedy picks of the ICAL family in exact arithmetic, by the definitions; no tests.

Float inputs are taken as the numbers that they are, as fractions, so no score is rounded, scores
tie only if they are equal, and the lowest position is picked. Powers and exponentials are decimals
of 60 digits, of which 40 are compared. For pools of about ten rows and draws.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

DIGITS = Context(prec=60)
COMPARED = Decimal(10) ** -40
# Of ICALPointwiseQuery and ICALSequentialQuery.
NO_DEPENDENCE = Fraction(1e-12)
LEAST_REDUCTION = Fraction(1e-9)

Rows = np.ndarray  # of fractions
Scores = Callable[[list[int]], list[Any]]


# Numbers


def as_fractions(values: Any) -> Rows:
    """Return an object array of fractions, equal to the floats or integers given."""
    values = np.asarray(values)
    flat = [Fraction(value) for value in values.astype(np.float64).reshape(-1).tolist()]
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    return out.reshape(values.shape)


def as_decimal(x: Fraction) -> Decimal:
    return DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))


def power(x: Fraction, exponent: Any) -> Decimal:
    """Return a power of a number >= 0; 0 for 0."""
    if x == 0:
        return Decimal(0)
    return DIGITS.exp(DIGITS.multiply(as_decimal(Fraction(exponent)), DIGITS.ln(as_decimal(x))))


def draw_weights(weights: Any, m: int) -> Rows:
    """Return the weights of draws as fractions of sum 1."""
    given = as_fractions(np.ones(m) if weights is None else weights)
    return given / given.sum()


# Predictions


def outputs_of(values: Any, kind: str) -> Rows:
    """Return what kernels compare, (n, m, n_outputs): one-hot labels, probabilities, values."""
    values = np.asarray(values)
    if kind == "label":
        return as_fractions(np.eye(int(values.max()) + 1)[values])
    return as_fractions(values.reshape(*values.shape[:2], -1))


def argmax_labels(values: Any) -> np.ndarray:
    """Return the labels of ``prediction="argmax"``."""
    labels: np.ndarray = np.asarray(values).argmax(axis=2)
    return labels


def kernels_of(
    values: Any,
    kind: str,
    *,
    expected: bool = False,
    weights: Any = None,
    pool: Any = None,
) -> Rows:
    """Return the inner products of the draws' predictions of each row, (n, m, m).

    They are the delta kernel for labels. With `expected` two draws of the labels are compared.
    Values are divided by their spread in `pool`, or in `values` themselves.
    """
    y = outputs_of(values, kind)
    scale = np.ones(y.shape[2], dtype=object)
    if kind == "value":
        scale = mean_variances(y if pool is None else outputs_of(pool, kind), weights)
    kernels = np.array([(row / scale) @ row.T for row in y], dtype=object)
    if expected:
        kernels[:, np.arange(y.shape[1]), np.arange(y.shape[1])] = Fraction(1)
    return kernels


def mean_variances(y: Rows, weights: Any = None) -> Rows:
    """Return the pool's mean variance over the draws of each target, 1 where it is 0."""
    w = draw_weights(weights, y.shape[1])
    mean = np.array([w @ row for row in y], dtype=object)  # (n, n_outputs)
    second = np.array([w @ row**2 for row in y], dtype=object)
    variances = (second - mean**2).sum(axis=0) / len(y)
    return np.array([v if v > 0 else Fraction(1) for v in variances], dtype=object)


def tau_kernels_of(values: Any, kind: str, weights: Any = None) -> Rows:
    """Return kernels that weigh each class by the inverse of its mean probability."""
    y = outputs_of(values, kind)
    w = draw_weights(weights, y.shape[1])
    kernels = []
    for row in y:
        mean = w @ row
        inverse = np.array([1 / p if p > 0 else Fraction(0) for p in mean], dtype=object)
        kernels.append((row * inverse) @ row.T)
    return np.array(kernels, dtype=object)


# Dependence


def dual_of(kernel: Rows, *, estimator: str = "biased", weights: Any = None) -> Rows:
    """Return Z, for which HSIC of any kernel k with this one is the sum of k * Z."""
    whole, unit = in_integers(kernel)
    dual, factor = integer_dual(whole, estimator, weights)
    return dual * Fraction(1, unit * factor)


def integer_dual(kernel: Rows, estimator: str, weights: Any) -> tuple[Rows, int]:
    """Return a multiple of the dual of a kernel of integers, in integers, and which one."""
    m = len(kernel)
    if estimator == "biased":
        w, total = in_integers(draw_weights(weights, m))
        rows = kernel @ w
        centered = total**2 * kernel - total * (rows[:, None] + rows[None, :]) + w @ rows
        return centered * w[:, None] * w[None, :], total**4
    off = kernel.copy()
    off[np.arange(m), np.arange(m)] = 0
    rows = off.sum(axis=1)
    z = (m - 1) * (m - 2) * off - (m - 1) * (rows[:, None] + rows[None, :]) + rows.sum()
    z[np.arange(m), np.arange(m)] = 0
    return z, (m - 1) * (m - 2) * m * (m - 3)


def in_integers(numbers: Rows) -> tuple[Rows, int]:
    """Return a multiple of fractions that is integers, and which one."""
    unit = math.lcm(*[x.denominator for x in numbers.reshape(-1)])
    whole = np.empty(numbers.size, dtype=object)
    whole[:] = [x.numerator * (unit // x.denominator) for x in numbers.reshape(-1)]
    return whole.reshape(numbers.shape), unit


def dependences(
    candidates: Rows, reference: Rows, *, estimator: str = "biased", weights: Any = None
) -> Rows:
    """Return HSIC of each of these kernels with each of the reference kernels, (n, r)."""
    whole, unit = in_integers(candidates)
    others, other_unit = in_integers(reference)
    flat = whole.reshape(len(whole), -1)
    columns = []
    for kernel in others:
        dual, factor = integer_dual(kernel, estimator, weights)
        scores = flat @ dual.reshape(-1)
        columns.append([Fraction(score, unit * other_unit * factor) for score in scores])
    return np.array(columns, dtype=object).T


def draw_dependences(kernels: Rows, weights: Any = None) -> Rows:
    """Return HSIC of each kernel with that of the draw itself: its weighted variance, (n,)."""
    w = draw_weights(weights, kernels.shape[1])
    return np.array([w @ k.diagonal() - w @ k @ w for k in kernels], dtype=object)


def with_information(h: Rows, kernels: Rows, relevance: Rows, share: Any, weights: Any) -> Rows:
    """Mix dependences (n, r) with those on the draw, equally large on average over the pool.

    `relevance` (n_pool,) is the mean dependence on the reference rows; `kernels` are the pool's.
    """
    u, known = Fraction(share), draw_dependences(kernels, weights)
    if u == 0 or known.sum() == 0:
        return (1 - u) * h
    return (1 - u) * h + (u * relevance.sum() / known.sum() * known)[:, None]


# Greedy picks


def greedy(
    scores: Scores, n: int, batch_size: int, *, candidates: Any = None, step_size: int = 1
) -> list[int]:
    """Pick the largest `step_size` scores of each step, ties to the lowest position.

    `scores(chosen)` returns the score of every row.
    """
    free = sorted(range(n) if candidates is None else np.asarray(candidates).tolist())
    batch_size = min(batch_size, len(free))
    chosen: list[int] = []
    while len(chosen) < batch_size:
        values = scores(list(chosen))
        order = sorted(free, key=lambda x: (-values[x], x))
        for x in order[: min(step_size, batch_size - len(chosen))]:
            chosen.append(x)
            free.remove(x)
    return chosen


def with_restarts(
    gains: Scores, n: int, batch_size: int, *, candidates: Any = None, negligible: Any = 0
) -> list[int]:
    """Pick the largest gain, and start again from an empty batch once no gain is left.

    If there is none from the start, the lowest positions are picked.
    """
    free = sorted(range(n) if candidates is None else np.asarray(candidates).tolist())
    batch_size = min(batch_size, len(free))
    chosen: list[int] = []
    start = 0
    while len(chosen) < batch_size:
        values = gains(chosen[start:])
        best = min(free, key=lambda x: (-values[x], x))
        if values[best] <= negligible and len(chosen) > start:
            start = len(chosen)
            continue
        chosen.append(best)
        free.remove(best)
    return chosen


def compared(values: Any) -> list[Decimal]:
    """Round decimals to what is compared."""
    return [value.quantize(COMPARED, context=DIGITS) for value in values]


# Strategies. `kernels` are those of the pool, `others` those of reference rows, None for the pool.


def ical_picks(
    kernels: Rows,
    reference: Any,
    batch_size: int,
    *,
    others: Rows | None = None,
    estimator: str = "biased",
    weights: Any = None,
    include_self: bool = True,
    information_weight: float = 0.0,
    step_size: int = 1,
    candidates: Any = None,
) -> list[int]:
    """Return the picks of ICALQuery for reference sets (n_steps, r)."""
    steps = iter(
        [
            ical_scores(
                kernels,
                rows,
                others=others,
                estimator=estimator,
                weights=weights,
                include_self=include_self,
                information_weight=information_weight,
            )
            for rows in np.asarray(reference)
        ]
    )
    return greedy(
        lambda _: next(steps).tolist(),
        len(kernels),
        batch_size,
        candidates=candidates,
        step_size=step_size,
    )


def ical_scores(
    kernels: Rows,
    rows: Any,
    *,
    others: Rows | None = None,
    estimator: str = "biased",
    weights: Any = None,
    include_self: bool = True,
    information_weight: float = 0.0,
) -> Rows:
    """Return the mean dependence of each row on reference rows."""
    rows = np.asarray(rows)
    sources = kernels if others is None else others
    h = dependences(kernels, sources[rows], estimator=estimator, weights=weights)
    relevance = h.sum(axis=1) / len(rows)
    h = with_information(h, kernels, relevance, information_weight, weights)
    if include_self or others is not None:
        return h.sum(axis=1) / Fraction(len(rows))
    scores = []
    for x, row in enumerate(h):
        kept = row[rows != x]
        scores.append(kept.sum() / Fraction(len(kept)) if len(kept) else Fraction(0))
    return np.array(scores, dtype=object)


def pointwise_picks(
    kernels: Rows,
    reference: Any,
    marginal: Any,
    batch_size: int,
    *,
    others: Rows | None = None,
    estimator: str = "biased",
    weights: Any = None,
    ratio_floor: float = 1e-3,
    step_size: int = 1,
    candidates: Any = None,
) -> list[int]:
    """Return the picks of ICALPointwiseQuery for reference sets and one marginal set, or sets."""
    options: dict[str, Any] = {"estimator": estimator, "weights": weights}
    sources = kernels if others is None else others
    free = sorted(range(len(kernels)) if candidates is None else np.asarray(candidates).tolist())
    chosen: list[int] = []
    for step, rows in enumerate(np.asarray(reference)):
        alone = ical_scores(kernels, rows, others=others, **options)
        marginals = np.atleast_2d(marginal)
        i = sources[marginals[min(step, len(marginals) - 1)]]
        own = max(dependences(i[[k]], i[[k]], **options)[0, 0] for k in range(len(i)))
        h = dependences(kernels, i, **options)
        scores = pointwise_scores(h, alone, own, chosen, Fraction(ratio_floor))
        order = sorted((x for x in free if scores[x] > 0), key=lambda x: (-scores[x], x))
        order += sorted((x for x in free if scores[x] <= 0), key=lambda x: (-alone[x], x))
        size = min(step_size, batch_size - len(chosen), len(free))
        chosen += order[:size]
        free = [x for x in free if x not in chosen]
    return chosen


def pointwise_scores(
    h: Rows, alone: Rows, own: Fraction, chosen: list[int], ratio_floor: Fraction
) -> Rows:
    """Return the scores of ICALPointwiseQuery, 0 for an empty batch."""
    none, c = NO_DEPENDENCE * own, len(chosen)
    zeros = as_fractions(np.zeros(len(h)))
    if c == 0 or none <= 0:
        return zeros
    d = np.maximum(h[chosen], Fraction(0)).sum(axis=0) / Fraction(c)
    floor = max(ratio_floor * d.sum() / len(d), none)
    d = np.array([value if value > none else floor for value in d], dtype=object)
    gain = np.maximum(h / d - 1, Fraction(0)).sum(axis=1) / Fraction(len(d))
    scores: Rows = (alone[chosen].sum() + alone) / Fraction(c + 1) * gain / Fraction(c + 1)
    return scores


def mrmr_picks(
    kernels: Rows,
    rows: Any,
    batch_size: int,
    *,
    others: Rows | None = None,
    redundancy_weight: float = 1.0,
    estimator: str = "biased",
    weights: Any = None,
    candidates: Any = None,
) -> list[int]:
    """Return the picks of MRMRQuery for these reference rows."""
    options: dict[str, Any] = {"estimator": estimator, "weights": weights}
    relevance = ical_scores(kernels, rows, others=others, **options)
    h = dependences(kernels, kernels, **options)

    def scores(chosen: list[int]) -> list[Any]:
        if not chosen:
            return relevance.tolist()
        redundancy = h[:, chosen].sum(axis=1) / Fraction(len(chosen))
        return (relevance - Fraction(repr(float(redundancy_weight))) * redundancy).tolist()

    return greedy(scores, len(kernels), batch_size, candidates=candidates)


def coverage_matrix(
    kernels: Rows,
    rows: Any,
    *,
    others: Rows | None = None,
    candidate_kernels: Rows | None = None,
    estimator: str = "biased",
    weights: Any = None,
    information_weight: float = 0.0,
    candidate_weight: Any = None,
    reference_weight: Any = None,
) -> Rows:
    """Return D >= 0 of ICALCoverageQuery times the weights of rows, (n, r).

    `candidate_kernels` are those of tau, see :func:`tau_kernels_of`; weights of rows one number
    for each row of the pool, and for each row that reference positions refer to.
    """
    rows = np.asarray(rows)
    sources = kernels if others is None else others
    own = kernels if candidate_kernels is None else candidate_kernels
    h = dependences(own, sources[rows], estimator=estimator, weights=weights)
    h = with_information(h, own, h.sum(axis=1) / len(rows), information_weight, weights)
    h = np.maximum(h, Fraction(0))
    if candidate_weight is not None:
        h = h * as_fractions(candidate_weight)[:, None]
    if reference_weight is not None:
        h = h * as_fractions(reference_weight)[rows]
    return h


def coverage_picks(
    matrix: Rows, batch_size: int, *, gamma: float | None = None, candidates: Any = None
) -> list[int]:
    """Return the picks of ICALCoverageQuery for D (n, r); concave where gamma is given."""

    def facility_location(chosen: list[int]) -> list[Any]:
        covered = as_fractions(np.zeros(matrix.shape[1]))
        for x in chosen:
            covered = np.maximum(covered, matrix[x])
        return np.maximum(matrix - covered, Fraction(0)).sum(axis=1).tolist()

    def concave(chosen: list[int]) -> list[Any]:
        summed = matrix[chosen].sum(axis=0) if chosen else as_fractions(np.zeros(len(matrix[0])))
        gains = []
        for row in matrix:
            pairs = zip(summed, row, strict=True)
            gains.append(sum(power(s + d, gamma) - power(s, gamma) for s, d in pairs))
        return compared(gains)

    gains = facility_location if gamma is None else concave
    return with_restarts(gains, len(matrix), batch_size, candidates=candidates)


def joint_picks(
    kernels: Rows,
    values: Any,
    kind: str,
    rows: Any,
    batch_size: int,
    *,
    form: str = "scaled",
    rate: float = 1.0,
    normalize: bool = True,
    weights: Any = None,
    candidates: Any = None,
) -> list[int]:
    """Return the picks of ICALJointQuery for linear or delta kernels, in decimals."""
    reference = kernels[np.asarray(rows)].sum(axis=0) / Fraction(len(rows))
    dual = dual_of(reference, weights=weights)
    own = (reference * dual).sum()
    y = outputs_of(values, kind)
    scale = mean_variances(y, weights) if kind == "value" else np.ones(y.shape[2], dtype=object)
    gaps = [((r[:, None] - r[None]) ** 2 / scale).sum(axis=2) / Fraction(2) for r in y]

    def joint(batch: list[int]) -> Rows:
        if form == "grouped":
            product: Rows = np.prod(kernels[batch], axis=0)
            return product
        mean = sum(gaps[x] for x in batch) / Fraction(len(batch)) * Fraction(rate)
        digits = [Fraction(DIGITS.exp(-as_decimal(gap))) for gap in mean.reshape(-1)]
        kernel = np.empty(len(digits), dtype=object)
        kernel[:] = digits
        return kernel.reshape(mean.shape)

    def scores(chosen: list[int]) -> list[Any]:
        out = []
        for x in range(len(kernels)):
            kernel = joint([*chosen, x])
            value = as_decimal((kernel * dual).sum())
            size = (kernel * dual_of(kernel, weights=weights)).sum() * own
            if normalize and size > Fraction(COMPARED):
                value = DIGITS.divide(value, DIGITS.sqrt(as_decimal(size)))
            out.append(value)
        return compared(out)

    return greedy(scores, len(kernels), batch_size, candidates=candidates)


def sequential_picks(
    values: Any,
    kind: str,
    rows: Any,
    batch_size: int,
    *,
    others: Any = None,
    weights: Any = None,
    noise: Any = 0,
    candidates: Any = None,
) -> list[int]:
    """Return the picks of ICALSequentialQuery; `noise` is that of values, a number or by row."""
    y = outputs_of(values, kind)
    w = draw_weights(weights, y.shape[1])
    means = np.array([w @ row for row in y], dtype=object)
    deviations = np.swapaxes(y - means[:, None], 1, 2)  # (n, n_outputs, m)
    sources = deviations if others is None else _deviations(outputs_of(others, kind), w)
    shared = sum(d.T @ d for d in sources[np.asarray(rows)]) / Fraction(len(rows))
    start = np.diag(w)
    variance = (w * shared.diagonal()).sum()
    noises = np.broadcast_to(as_fractions(noise), (len(y),))
    identity = as_fractions(np.eye(y.shape[2]))

    def noise_of(x: int) -> Rows:
        if kind == "value":
            return identity * noises[x]
        return identity * means[x] - (y[x].T * w) @ y[x]

    def left(chosen: list[int]) -> Rows:
        q = start
        for x in chosen:
            seen = deviations[x] @ q
            q = q - seen.T @ solved(seen @ deviations[x].T + noise_of(x), seen)
        return q

    def gains(chosen: list[int]) -> list[Any]:
        q, out = left(chosen), []
        for x in range(len(y)):
            seen = deviations[x] @ q
            covariance = seen @ deviations[x].T + noise_of(x)
            out.append(solved(covariance, seen @ shared @ seen.T).trace())
        return out

    negligible = LEAST_REDUCTION * variance
    return with_restarts(gains, len(y), batch_size, candidates=candidates, negligible=negligible)


def _deviations(y: Rows, w: Rows) -> Rows:
    return np.array([(row - w @ row).T for row in y], dtype=object)


def solved(matrix: Rows, columns: Rows) -> Rows:
    """Return a generalized inverse of a positive semidefinite matrix times columns of its range."""
    size = len(matrix)
    left, right = matrix.copy(), columns.copy()
    pivots: list[int] = []
    for i in range(size):
        if left[i, i] == 0:  # the Schur complement has no such row
            continue
        pivots.append(i)
        factor = left[i, i]
        left[i], right[i] = left[i] / factor, right[i] / factor
        for j in range(size):
            if j != i and left[j, i] != 0:
                multiple = left[j, i]
                left[j], right[j] = left[j] - multiple * left[i], right[j] - multiple * right[i]
    out = right * Fraction(0)
    out[pivots] = right[pivots]
    return out
