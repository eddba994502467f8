"""Bayesian coresets by Frank-Wolfe (ACS-FW): log-likelihood vectors, coreset and strategy."""

import math
import numbers
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._random import STRATEGY, row_uniforms, stream
from sklearn_ical._typing import Integer, Positions, Real, Seed
from sklearn_ical._validation import (
    Interval,
    as_numbers,
    check_candidates,
    check_integer,
    clip_batch_size,
)
from sklearn_ical.dependence import predictive_entropy
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.pool._range import in_range
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection._batch import Selection, best_k, merge_ties
from sklearn_ical.strategies._base import BaseQuery, QueryTags

# Added to squared norms, so that vectors of 0 are not divided by 0.
NORM_FLOOR = 1e-6
# Weights below this share of the largest are rounding, and so are residuals of the total.
NO_WEIGHT = 1e-10


class BayesianCoresetQuery(BaseQuery):
    """Choose the batch whose weighted log-likelihood approximates that of the whole pool.

    Active Bayesian coresets with Frank-Wolfe optimization, ACS-FW [1]_. Each row has a vector L_x
    of its expected log-likelihood under each posterior draw, see :func:`log_likelihood_vectors`.
    ``batch_size`` steps of :func:`bayesian_coreset` bring a weighted sum of few of them close to
    the sum over the pool. A step may return to a row, so there may be fewer rows than `batch_size`:
    the others are drawn at random.

    Read more in the :ref:`User Guide <bayesian_coreset>`.

    Parameters
    ----------
    n_projections : int or None, default=None
        Number of draws that the vectors consist of, the first ones; None for all. The expectation
        is always over all draws.
    gamma : float, default=1.0
        Factor of the entropy that is added to each expected log-likelihood, >= 0. With 1, the
        vectors hold minus the Kullback-Leibler divergence of a draw's prediction from the mean
        prediction; the authors' experiments take 0.7.
    floor : float, default=1e-6
        Smallest class probability in the logarithm, in (0, 1). Votes of trees and label samples
        give classes the probability 0, whose log-likelihood would be infinite.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the random rows, and the draws if the posterior has infinitely many; see
        :term:`random_state`.

    Notes
    -----
    The batch is in the order in which rows entered the coreset, then the random ones, which are
    uniform among the candidates left. Candidates limit only the coreset; the sum is over the whole
    pool. The weights of the coreset are not used, as a label counts once; the array function
    returns them.

    Rows of utilities: for the coreset, <r, L_x> / sigma_x of all candidates, the alignment with the
    residual, also of those in the batch; for a random pick, the uniforms of the remaining
    candidates.

    Cost O(n_pool n_draws n_classes) for the vectors, which take 8 n_pool n_projections bytes, and
    O(n_pool n_projections) per step. Model requirements: at least 2 posterior draws.

    References
    ----------
    .. [1] Pinsler, Gordon, Nalisnick and Hernandez-Lobato, "Bayesian batch active learning as
       sparse subset approximation", NeurIPS, 2019, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import BayesianCoresetQuery
    >>> proba = np.random.default_rng(0).dirichlet([1, 1, 1], size=(100, 20))
    >>> len(set(BayesianCoresetQuery(random_state=0).select(proba, batch_size=10).tolist()))
    10
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_projections": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "gamma": [Interval(numbers.Real, 0, None, closed="left")],
        "floor": [Interval(numbers.Real, 0, 1, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_projections: Integer | None = None,
        gamma: Real = 1.0,
        floor: Real = 1e-6,
        random_state: Seed = None,
    ) -> None:
        self.n_projections = n_projections
        self.gamma = gamma
        self.floor = floor
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: draws of any kind, as many as there are projections."""
        least = max(2, int(self.n_projections or 2))
        return QueryTags(deterministic=False, utilities="other", min_draws=least)

    def _unit_power(self) -> int:
        return 0

    def _select(self, pool: Pool) -> Selection:
        vectors = _vectors(pool.rows, self.n_projections, self.gamma, self.floor, pool.caller)
        coreset = _frank_wolfe(vectors, pool.candidates, pool.batch_size, pool.want_utilities)
        left = np.ones(len(pool.candidates), dtype=bool)
        left[coreset.slots] = False
        uniforms = row_uniforms(stream(pool.root, STRATEGY), pool.candidates, 1)[:, 0]
        n_random = pool.batch_size - len(coreset.slots)
        order = np.argsort(-uniforms, kind="stable")
        random = order[left[order]][:n_random]
        rows = None
        if pool.want_utilities:
            rows = np.full((pool.batch_size, pool.n_points), np.nan)
            for t, alignments in enumerate(coreset.rows):
                rows[t, pool.candidates] = alignments
            for t in range(n_random):
                row = rows[len(coreset.slots) + t]
                row[pool.candidates[left]] = uniforms[left]
                left[random[t]] = False
        return Selection(
            pool.candidates[np.concatenate([coreset.slots, random])],
            np.concatenate([coreset.alignments, uniforms[random]]),
            rows,
        )


def bayesian_coreset(
    vectors: Array, batch_size: Integer = 1, *, candidates: Positions | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Find few points whose weighted sum is close to the sum of all, by Frank-Wolfe.

    Each of `batch_size` steps moves the weighted sum, by exact line search, towards the point
    whose direction fits the residual best [1]_.

    Read more in the :ref:`User Guide <bayesian_coreset>`.

    Parameters
    ----------
    vectors : array of shape (n_points, n_projections)
        One vector per point, finite: log-likelihoods under posterior draws, as of
        :func:`log_likelihood_vectors`, or any others with meaningful inner products. Not modified.
    batch_size : int, default=1
        Number of steps, and so the largest number of points; all candidates, with a warning, if
        there are fewer.
    candidates : array of int or bool, default=None
        See :term:`candidates`; the sum is over all points.

    Returns
    -------
    indices : intp array of shape (n_core,)
        Distinct points in the order in which they entered, on the host. A step may return to a
        point, so ``n_core <= batch_size``; none if all vectors are 0.
    weights : float64 array of shape (n_core,)
        Their weights, > 0: ``weights @ vectors[indices]`` approximates ``vectors.sum(axis=0)``; for
        a coreset of every point all weights would be 1.

    Raises
    ------
    TypeError
        If `vectors` is not a real array, or `batch_size` not an integer.
    ValueError
        If `vectors` does not have two axes with entries, or is not finite.

    Notes
    -----
    With sigma_x = ``sqrt(|L_x|^2 + 1e-6)`` and sigma their sum over all points, the weighted sum
    stays in the hull of the vectors sigma L_x / sigma_x. Points whose weight is at most 1e-10 of
    the largest are left out. Ties go to the lowest position. Cost O(n_points n_projections
    batch_size).

    References
    ----------
    .. [1] Pinsler, Gordon, Nalisnick and Hernandez-Lobato, "Bayesian batch active learning as
       sparse subset approximation", NeurIPS, 2019, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.strategies import bayesian_coreset
    >>> indices, weights = bayesian_coreset(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), 3)
    >>> indices, weights.round(6)
    (array([2]), array([2.]))
    """
    caller = "bayesian_coreset"
    rule = "vectors must be an array of shape (n_points, n_projections)"
    if not _array.is_array(vectors):
        raise TypeError(f"{rule}. Got {type(vectors).__name__} in {caller}.")
    host = as_numbers(_array.to_host(vectors), "vectors", caller)
    if host.ndim != 2 or 0 in host.shape:
        raise ValueError(f"{rule}, at least one of each. Got shape {host.shape} in {caller}.")
    if not np.isfinite(host).all():
        raise ValueError(f"vectors must be finite. Got NaN or infinity in {caller}.")
    _check_squares(host, "vectors", caller)
    allowed = check_candidates(candidates, len(host), caller)
    n_steps = clip_batch_size(batch_size, len(allowed), caller)
    coreset = _frank_wolfe(host, allowed, n_steps)
    return allowed[coreset.slots], coreset.weights


def log_likelihood_vectors(
    samples: PredictionSamples | Array,
    *,
    n_projections: Integer | None = None,
    gamma: Real = 1.0,
    floor: Real = 1e-6,
) -> np.ndarray:
    """Compute the expected log-likelihood of each point's label under each posterior draw.

    Read more in the :ref:`User Guide <bayesian_coreset>`.

    Parameters
    ----------
    samples : PredictionSamples or array of shape (n_points, n_draws, n_classes)
        Predictions; an array holds class probabilities. Not modified.
    n_projections : int or None, default=None
        Number of draws to use, the first ones; None for all. Means are over all draws. Draws of
        weight 0 are left out.
    gamma : float, default=1.0
        Factor of the entropy of the mean prediction, which is added.
    floor : float, default=1e-6
        Smallest class probability in the logarithm.

    Returns
    -------
    vectors : float64 array of shape (n_points, n_projections)
        In nats times the square root of each draw's weight, so that inner products are means
        over the draws; on the host. With ``gamma=1`` and no probability below `floor`, minus
        the divergences of the draws from the mean prediction.

    Raises
    ------
    TypeError
        If `samples` or a number is of the wrong type.
    ValueError
        If a number is out of range, or a noise variance is 0.

    Notes
    -----
    Column j is sqrt(w_j) (E log p_j(y) + gamma H), with y from the mean prediction and H its
    entropy. For classes, E log p_j(y) = sum_c pbar(c) log max(p_j(c), floor); label samples are
    probabilities 0 and 1. For regression p_j is Gaussian around draw j with the observation noise,
    y has the mean and the variance of the mean prediction, and H is the entropy of a Gaussian of
    that variance; targets add up. Samples without a `noise_variance` get the mean over points and
    targets of the variance over the draws as noise. Densities are those of targets in a unit in
    which the mean noise variance is 1, so that the result does not depend on the unit of the
    target.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.strategies import log_likelihood_vectors
    >>> log_likelihood_vectors(np.array([[[0.9, 0.1], [0.1, 0.9]]])).round(4)
    array([[-0.3612, -0.3612]])
    """
    caller = "log_likelihood_vectors"
    if not isinstance(samples, PredictionSamples):
        if not _array.is_array(samples):
            raise TypeError(
                "samples must be PredictionSamples or an (n_points, n_draws, n_classes) array of "
                f"probabilities. Got {type(samples).__name__} in {caller}."
            )
        samples = PredictionSamples(samples)
    rows = RowSet(samples=samples)
    if n_projections is not None:
        n_projections = check_integer(n_projections, "n_projections", caller)
        if n_projections > rows.n_draws:
            raise ValueError(
                f"n_projections must be at most the number of draws, {rows.n_draws}. Got "
                f"{n_projections} in {caller}."
            )
    if not 0 <= gamma < math.inf:
        raise ValueError(f"gamma must be a finite number >= 0. Got {gamma!r} in {caller}.")
    if not 0 < floor < 1:
        raise ValueError(f"floor must be a number in (0, 1). Got {floor!r} in {caller}.")
    return _vectors(rows, n_projections, gamma, floor, caller)


def _vectors(
    rows: RowSet, n_projections: Integer | None, gamma: Real, floor: Real, caller: str
) -> np.ndarray:
    """Return the log-likelihood vectors of all points, (n_points, n_projections), on the host."""
    n_projections = rows.n_draws if n_projections is None else int(n_projections)
    (rows,), _ = in_range(rows)
    with np.errstate(over="ignore", invalid="ignore"):  # raises below
        unit = float(rows.map(_noise_or_variance).mean()) if rows.kind == "value" else 0.0

        def vectors(samples: PredictionSamples) -> np.ndarray:
            if samples.kind == "value":
                return _array.to_host(_of_values(samples, unit, n_projections, gamma))
            return _array.to_host(_of_classes(samples, n_projections, gamma, floor))

        out = rows.map(vectors)
    _check_squares(out, "Log-likelihoods of predictions", caller)
    if rows.weights is None:
        return out / math.sqrt(n_projections)
    weights = rows.weights[:n_projections]
    return out * np.sqrt(weights / weights.sum())


def _of_classes(
    samples: PredictionSamples, n_projections: Integer, gamma: Real, floor: Real
) -> Array:
    """Return expected log-likelihoods plus entropies of class predictions."""
    mean = samples.mean()  # (n_points, n_classes)
    xp = _array.namespace(mean)
    values = samples.values[:, :n_projections, ...]
    if samples.kind == "label":
        votes = xp.take_along_axis(mean, xp.astype(values, xp.int64), axis=1)
        entropy = predictive_entropy(mean[:, None, :])
        return math.log(floor) * (1 - votes) + gamma * entropy[:, None]
    proba = xp.astype(values, xp.float64)
    logs = xp.log(xp.where(proba < floor, xp.full_like(proba, floor), proba))
    # Relative to the mean prediction, so that a draw that agrees with it gets a 0.
    logs = logs - xp.log(xp.where(mean > 0, mean, xp.ones_like(mean)))[:, None, :]
    vectors = xp.sum(mean[:, None, :] * logs, axis=2)
    if gamma == 1:
        return vectors
    return vectors + (gamma - 1) * predictive_entropy(mean[:, None, :])[:, None]


def _of_values(
    samples: PredictionSamples, unit: float, n_projections: Integer, gamma: Real
) -> Array:
    """Return expected log-likelihoods plus entropies of Gaussian predictions.

    `unit` is the unit of variances in both, and the noise variance of samples without one.
    """
    noise: Any = samples.noise_variance
    deviations, variance = _spread(samples)
    xp = _array.namespace(deviations)
    if noise is None:
        if unit == 0:  # all draws agree everywhere
            return xp.zeros_like(deviations[:, :n_projections, 0])
        noise = unit
    if not (np.asarray(noise) > 0).all():
        raise ValueError(
            "noise_variance must be > 0 for log-likelihoods. Got 0 for some points; leave it out "
            "to estimate one."
        )
    shape = (samples.n_points, samples.n_draws)
    host = np.broadcast_to(np.reshape(noise, (*np.shape(noise), 1, 1)[:2]), shape)
    average = host.mean(axis=1) if samples.weights is None else host @ samples.weights
    noises = _array.like(np.array(host[:, :n_projections, None]), deviations)
    variance = variance + _array.like(average[:, None], variance)  # (n_points, n_targets)
    ratio = variance[:, None, :] / noises
    misfit = ratio - 1 - xp.log(ratio) + deviations[:, :n_projections, :] ** 2 / noises
    vectors = -xp.sum(misfit, axis=2) / 2
    if gamma == 1:
        return vectors
    entropy = xp.sum(xp.log(2 * math.pi * math.e * variance / unit), axis=1) / 2
    return vectors + (gamma - 1) * entropy[:, None]


def _spread(samples: PredictionSamples) -> tuple[Array, Array]:
    """Return deviations from the mean (n_points, n_draws, n_targets), and their variance."""
    values = samples.values if samples.values.ndim == 3 else samples.values[:, :, None]
    xp = _array.namespace(values)
    values = xp.astype(values, xp.float64)
    mean = xp.reshape(samples.mean(), (values.shape[0], 1, values.shape[2]))
    deviations = values - mean
    if samples.weights is None:
        return deviations, xp.sum(deviations**2, axis=1) / samples.n_draws
    weights = _array.like(samples.weights, values)
    return deviations, xp.sum(deviations**2 * weights[:, None], axis=1)


def _noise_or_variance(samples: PredictionSamples) -> np.ndarray:
    """Return the noise variance of each point, or without one the variance over the draws."""
    if samples.noise_variance is not None:
        return samples.mean_noise()
    return _array.to_host(_spread(samples)[1])


def _check_squares(vectors: np.ndarray, what: str, caller: str) -> None:
    """Raise if vectors would overflow."""
    largest = float(np.max(np.abs(vectors)))
    if not largest < 1e150 / vectors.size:
        raise ValueError(
            f"{what} must not overflow float64 when squared and added up. Got "
            f"{largest} in {caller}; rescale them."
        )


@dataclass(frozen=True)
class _Coreset:
    """The support of the weights in the order of entry, and the utilities of each choice."""

    slots: np.ndarray
    weights: np.ndarray
    alignments: np.ndarray
    rows: list[np.ndarray]


def _frank_wolfe(
    vectors: np.ndarray, candidates: np.ndarray, n_steps: int, keep_rows: bool = False
) -> _Coreset:
    """Approximate the sum of all vectors by a weighted sum of candidates; slots among them."""
    target = vectors.sum(axis=0)
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors) + NORM_FLOOR)
    total = float(norms.sum())
    if len(candidates) < len(vectors):
        vectors, norms = vectors[candidates], norms[candidates]
    weights = np.zeros(len(vectors))
    error = (vectors.shape[1] + 4) * sys.float_info.epsilon * total
    entered: dict[int, tuple[float, Any]] = {}
    for _ in range(n_steps):
        support = list(entered)
        reached = weights[support] @ vectors[support]
        residual = target - reached
        size = float(np.linalg.norm(residual))
        if size <= NO_WEIGHT * total:
            break
        alignments = vectors @ residual / norms

        def exact(where: np.ndarray, residual: np.ndarray = residual) -> np.ndarray:
            alignments = (vectors[where] * residual).sum(axis=1) / norms[where]
            return merge_ties(alignments, error)

        slot = int(best_k(alignments, 1, tolerance=4 * error, exact=exact).positions[0])
        direction = total / norms[slot] * vectors[slot] - reached
        length = float(direction @ direction)
        step = float(direction @ residual) / length if length > 0 else 0.0
        if step <= 0:  # no candidate brings the sum closer
            break
        step = min(step, 1.0)
        weights *= 1 - step
        weights[slot] += step * total / norms[slot]
        entered.setdefault(slot, (float(alignments[slot]), alignments if keep_rows else None))
    least = NO_WEIGHT * weights.max()
    support = [slot for slot in entered if weights[slot] > least]
    return _Coreset(
        np.array(support, dtype=np.intp),
        weights[support],
        np.array([entered[slot][0] for slot in support]),
        [entered[slot][1] for slot in support if keep_rows],
    )
