"""The exact oracle of a problem, where its strategy and setting have one."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from sklearn_ical import PredictionSamples
from tests import exact_oracles as family
from tests.sweep import exact
from tests.sweep.problems import BATCH_SIZE, Problem

# The first picks are enough where exact scores take long.
FEW = 3


def exact_picks(problem: Problem) -> list[int] | None:
    """Return the picks in exact arithmetic, perhaps the first of them; None without an oracle."""
    strategy = problem.strategy()
    oracle = ORACLES.get(type(strategy).__name__)
    with localcontext(family.DIGITS):
        return None if oracle is None else oracle(problem, strategy)


def _values(samples: PredictionSamples) -> np.ndarray:
    return np.asarray(samples.values)


def _by_score(scores_of: Callable[..., list[Any]]) -> Callable[..., list[int]]:
    """Return an oracle of strategies with a score for each row."""

    def picks(problem: Problem, strategy: Any) -> list[int]:
        samples = problem.samples
        scores = scores_of(_values(samples), samples.kind, samples.noise_variance)
        return _top(problem, scores)

    return picks


def _top(problem: Problem, scores: list[Any]) -> list[int]:
    return family.greedy(lambda _: scores, len(scores), BATCH_SIZE, candidates=_candidates(problem))


def _candidates(problem: Problem) -> Any:
    return problem.options.get("candidates")


def _batch_bald(problem: Problem, strategy: Any) -> list[int] | None:
    if strategy.n_configurations < 1000:  # they are sampled
        return None
    samples = problem.samples
    return exact.batch_bald_picks(_values(samples), samples.kind, FEW, _candidates(problem))


def _epig(problem: Problem, strategy: Any) -> list[int] | None:
    if strategy.batch != "top" or "reference" not in problem.options:
        return None
    others = problem.options.get("reference_samples", problem.samples)
    reference = problem.options["reference"]
    values = _values(problem.samples)
    return _top(problem, exact.epigs(values, _values(others)[reference], others.kind))


def _fass(problem: Problem, strategy: Any) -> list[int] | None:
    samples, features = problem.samples, _features(strategy, problem.options["X_pool"])
    if strategy.factor == 1:
        return _top(problem, exact.entropies(_values(samples), samples.kind, None))
    return exact.class_coverage_picks(
        _values(samples), samples.kind, features, BATCH_SIZE, strategy.factor, _candidates(problem)
    )


def _features(strategy: Any, X: np.ndarray) -> np.ndarray:
    if hasattr(strategy.features, "transform"):
        return np.asarray(strategy.features.transform(X))
    return np.asarray(strategy.features(X)) if callable(strategy.features) else X


def _k_center(problem: Problem, strategy: Any) -> list[int] | None:
    X_labeled = problem.options.get("X_labeled") if strategy.include_labeled else None
    if X_labeled is None and getattr(strategy, "first", "random") == "random":
        return None
    X = _features(strategy, problem.options["X_pool"])
    everything = X if X_labeled is None else np.concatenate([X, _features(strategy, X_labeled)])
    distances = exact.feature_distances(everything)
    norms = exact.feature_distances(everything, np.zeros((1, X.shape[1])))[:, 0].tolist()
    known = range(len(X), len(everything))
    candidates = _pool_candidates(problem)
    return exact.farthest_picks(distances, norms, BATCH_SIZE, candidates=candidates, known=known)


def _pool_candidates(problem: Problem) -> Any:
    given = _candidates(problem)
    return np.arange(problem.samples.n_points) if given is None else given


def _log_det(problem: Problem, strategy: Any) -> list[int] | None:
    if isinstance(strategy.noise, str):
        return None
    y = family.outputs_of(_values(problem.samples), problem.samples.kind)
    blocks = exact.covariance(y)
    trace = strategy.kernel == "trace"
    noise = _noises(blocks, problem.samples, strategy.noise, len(y), trace=trace)
    blocks = blocks.sum(axis=0)[None] if trace else blocks
    return exact.log_det_picks(blocks, noise, BATCH_SIZE, candidates=_candidates(problem))


def _noises(blocks: Any, samples: PredictionSamples, noise: float, n: int, *, trace: bool) -> Any:
    """Return the noise of each row, (n_blocks, n), of covariances whose first rows are the pool."""
    n_outputs, n_pool = len(blocks), samples.n_points
    if samples.noise_variance is not None:
        own = exact.mean_noise(samples.noise_variance, n_pool)
        return np.array([n_outputs * own]) if trace else np.array([own] * n_outputs)
    diagonal = np.array([block.diagonal()[:n_pool] for block in blocks], dtype=object)
    mean = diagonal.sum(axis=1) / Fraction(n_pool) * Fraction(noise)  # (n_outputs,)
    if trace:
        each = np.array([mean.sum()])
    else:
        each = mean if samples.kind == "value" else np.full(n_outputs, mean.sum() / n_outputs)
    return np.array([[x if x > 0 else Fraction(1)] * n for x in each], dtype=object)


def _kernel_batch(problem: Problem, strategy: Any) -> list[int] | None:
    if strategy.method == "kmeans++":
        return None
    samples, options = problem.samples, problem.options
    parts = [samples]
    if strategy.include_labeled and "labeled_samples" in options:
        parts.append(options["labeled_samples"])
    n_known = sum(part.n_points for part in parts[1:])
    reference = np.arange(samples.n_points)
    if strategy.method == "bait" and "reference" in options:
        reference = options["reference"]
        if "reference_samples" in options:
            reference = reference + samples.n_points + n_known
            parts.append(options["reference_samples"])
    y = _together(parts)
    blocks = exact.covariance(y)
    kernel, diagonal = blocks.sum(axis=0), None
    diagonal = kernel.diagonal().tolist()
    known = range(samples.n_points, samples.n_points + n_known)
    free = {"candidates": _pool_candidates(problem), "known": known}
    if strategy.method in ("maxdist", "lcmd"):
        distances = exact.squared_distances(kernel)
        if strategy.method == "maxdist":
            return exact.farthest_picks(distances, diagonal, BATCH_SIZE, **free)
        return exact.split_picks(distances, diagonal, BATCH_SIZE, n_pool=samples.n_points, **free)
    noise = np.concatenate(
        [_noises(blocks, part, strategy.noise, part.n_points, trace=True) for part in parts], axis=1
    )
    if samples.noise_variance is None:
        noise = _noises(blocks, samples, strategy.noise, len(y), trace=True)
    if strategy.method == "maxdet":
        return exact.log_det_picks(kernel[None], noise, BATCH_SIZE, **free)
    return exact.mean_variance_picks(kernel, noise[0], BATCH_SIZE, reference=reference, **free)


def _together(parts: list[PredictionSamples]) -> Any:
    """Return the outputs of all rows, with as many classes."""
    outputs = [family.outputs_of(_values(part), part.kind) for part in parts]
    n_outputs = max(y.shape[2] for y in outputs)
    return np.concatenate([exact._padded(y, n_outputs) for y in outputs])


# The ICAL family


@dataclass(frozen=True)
class _Compared:
    """Kernels of the pool and of the rows that it is compared with, and positions among these."""

    kernels: Any
    others: Any
    reference: np.ndarray
    kind: str
    values: np.ndarray

    @property
    def sources(self) -> Any:
        return self.kernels if self.others is None else self.others


def _reference(problem: Problem, strategy: Any) -> np.ndarray | None:
    """Return the positions of reference rows, None if they are drawn."""
    if "reference" in problem.options or strategy.n_reference is not None:
        return problem.options.get("reference")
    return np.arange(problem.samples.n_points)


def _compared(problem: Problem, strategy: Any) -> _Compared | None:
    """Return what a strategy compares; None if it draws it, or if kernels are not rational."""
    samples, options = problem.samples, problem.options
    reference = _reference(problem, strategy)
    prediction, kind = getattr(strategy, "prediction", "proba"), samples.kind
    rational = ("linear",) if kind == "value" else ("auto", "linear", "delta")
    sampled = kind == "proba" and prediction == "sampled"
    if reference is None or getattr(strategy, "kernel", "linear") not in rational or sampled:
        return None

    def as_compared(part: PredictionSamples) -> Any:
        values = _values(part)
        return family.argmax_labels(values) if kind == "proba" and by_label else values

    by_label = prediction == "argmax"
    values = as_compared(samples)
    of = "label" if kind == "proba" and by_label else kind
    how: dict[str, Any] = {"expected": kind == "proba" and prediction == "expected"}
    kernels = family.kernels_of(values, of, **how)
    others = None
    if "reference_samples" in options:
        there = as_compared(options["reference_samples"])
        others = family.kernels_of(there, of, pool=values, **how)
    return _Compared(kernels, others, reference, of, values)


def _steps(reference: np.ndarray, step_size: int, batch_size: int = BATCH_SIZE) -> np.ndarray:
    return np.tile(reference, (-(-batch_size // step_size), 1))


def _ical(problem: Problem, strategy: Any) -> list[int] | None:
    given = _compared(problem, strategy)
    if given is None:
        return None
    return family.ical_picks(
        given.kernels,
        _steps(given.reference, strategy.step_size),
        BATCH_SIZE,
        others=given.others,
        estimator=strategy.estimator,
        include_self=strategy.include_self,
        information_weight=strategy.information_weight,
        step_size=strategy.step_size,
        candidates=_candidates(problem),
    )


def _pointwise(problem: Problem, strategy: Any) -> list[int] | None:
    given = _compared(problem, strategy)
    if given is None or strategy.marginal is None:
        return None
    return family.pointwise_picks(
        given.kernels,
        _steps(given.reference, strategy.step_size, FEW),
        strategy.marginal,
        FEW,
        others=given.others,
        estimator=strategy.estimator,
        ratio_floor=strategy.ratio_floor,
        step_size=strategy.step_size,
        candidates=_candidates(problem),
    )


def _mrmr(problem: Problem, strategy: Any) -> list[int] | None:
    given = _compared(problem, strategy)
    if given is None:
        return None
    return family.mrmr_picks(
        given.kernels,
        given.reference,
        BATCH_SIZE,
        others=given.others,
        redundancy_weight=strategy.redundancy_weight,
        estimator=strategy.estimator,
        candidates=_candidates(problem),
    )


def _coverage(problem: Problem, strategy: Any) -> list[int] | None:
    weights = {name: getattr(strategy, name) for name in ("candidate_weight", "reference_weight")}
    if any(isinstance(weight, str) for weight in weights.values()):
        return None
    if strategy.dependence == "tau" and problem.samples.kind == "value":
        matrix = _variance_reductions(problem, _reference(problem, strategy))
    else:
        matrix = _dependences(_compared(problem, strategy), strategy, weights)
    if matrix is None:
        return None
    gamma = strategy.gamma if strategy.objective == "concave" else None
    return family.coverage_picks(matrix, BATCH_SIZE, gamma=gamma, candidates=_candidates(problem))


def _variance_reductions(problem: Problem, reference: np.ndarray | None) -> Any:
    if reference is None:
        return None
    samples = problem.samples
    others = problem.options.get("reference_samples", samples)
    noise = exact.mean_noise(samples.noise_variance, samples.n_points)
    return exact.variance_reductions(_values(samples), _values(others)[reference], noise)


def _dependences(given: _Compared | None, strategy: Any, weights: dict[str, Any]) -> Any:
    if given is None:
        return None
    tau = strategy.dependence == "tau"
    return family.coverage_matrix(
        given.kernels,
        given.reference,
        others=given.others,
        candidate_kernels=family.tau_kernels_of(given.values, given.kind) if tau else None,
        estimator=strategy.estimator,
        information_weight=strategy.information_weight,
        **weights,
    )


def _joint(problem: Problem, strategy: Any) -> list[int] | None:
    given = _compared(problem, strategy)
    if given is None or given.others is not None:
        return None
    return family.joint_picks(
        given.kernels,
        given.values,
        given.kind,
        given.reference,
        FEW,
        form=strategy.form,
        rate=strategy.rate,
        normalize=strategy.normalize,
        candidates=_candidates(problem),
    )


def _sequential(problem: Problem, strategy: Any) -> list[int] | None:
    reference = _reference(problem, strategy)
    if reference is None:
        return None
    samples, others = problem.samples, problem.options.get("reference_samples")
    return family.sequential_picks(
        _values(samples),
        samples.kind,
        reference,
        BATCH_SIZE,
        others=None if others is None else _values(others),
        noise=exact.mean_noise(samples.noise_variance, samples.n_points),
        candidates=_candidates(problem),
    )


ORACLES: dict[str, Callable[[Problem, Any], "list[int] | None"]] = {
    "MaxEntropyQuery": _by_score(exact.entropies),
    "MarginQuery": _by_score(exact.margins),
    "LeastConfidentQuery": _by_score(exact.least_confidences),
    "BALDQuery": _by_score(exact.balds),
    "BatchBALDQuery": _batch_bald,
    "EPIGQuery": _epig,
    "FASSQuery": _fass,
    "CoreSetQuery": _k_center,
    "FarthestFirstQuery": _k_center,
    "LogDetQuery": _log_det,
    "KernelBatchQuery": _kernel_batch,
    "ICALQuery": _ical,
    "ICALPointwiseQuery": _pointwise,
    "ICALCoverageQuery": _coverage,
    "ICALJointQuery": _joint,
    "ICALSequentialQuery": _sequential,
    "MRMRQuery": _mrmr,
}
