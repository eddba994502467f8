"""What predictions are to HSIC: labels or outputs, under which kernel and at which scale."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_ical import _array, _random
from sklearn_ical._array import Array
from sklearn_ical._typing import Kernel
from sklearn_ical.dependence import radial_profile
from sklearn_ical.strategies._label_scorer import LabelScorer
from sklearn_ical.strategies._output_scorer import OutputScorer
from sklearn_ical.strategies._pool import Pool, Predictions
from sklearn_ical.strategies._scorer import Scorer

KERNELS = {"auto", "rq", "rbf", "linear", "delta", "distance"}
# Values of `prediction` that make labels of class probabilities.
LABELS_OF = ("sampled", "argmax")


def make_scorer(
    query: Any, pool: Pool, needed: np.ndarray, *, tau: bool = False, sums: bool = True
) -> tuple[Scorer, float]:
    """Return the scorer of this call, and what one unit of its scores is in utilities.

    Parameters
    ----------
    query : object
        Its `prediction`, `kernel` and `estimator`.
    pool : Pool
        The call.
    needed : int array
        Ascending rows that candidates may be compared with.
    tau : bool, default=False
        Whether candidates weigh each class by its probability: see `OutputScorer`.
    sums : bool, default=True
        Whether all scores are against sums of reference kernels, as they are.
    """
    kind, weights = pool.predictions.kind, pool.predictions.weights
    if weights is not None and query.estimator == "unbiased":
        raise ValueError(
            "The unbiased estimator has no form for weighted draws. Got weighted draws in "
            f"{pool.owner}; pass estimator='biased'."
        )
    if not tau and (kind == "label" or (kind == "proba" and query.prediction in LABELS_OF)):
        integers = sums and weights is None
        unit = _label_unit(query.kernel, type(query).__name__)
        return _make_label_scorer(query, pool, needed, integers=integers), unit
    expected = kind == "proba" and query.prediction == "expected"
    radial = None if expected or tau else output_kernel(query.kernel, kind, pool.owner)
    predictions = pool.predictions.collect()
    reference = predictions if pool.reference is None else pool.reference.collect()
    scorer = OutputScorer(
        predictions,
        pool.candidates,
        reference,
        kernel=radial,
        scale=spread_over_draws(predictions) if kind == "value" else None,
        expected=expected,
        tau=tau,
        estimator=query.estimator,
    )
    if not expected:
        return scorer, 1.0
    kernel: Kernel = "linear" if query.kernel == "auto" else query.kernel
    return scorer, _label_unit(kernel, type(query).__name__)


def output_kernel(kernel: Kernel, kind: str, owner: str) -> Callable[[Array], Array] | None:
    """Return a kernel of outputs as a function of squared distances, None for inner products."""
    if kernel == "delta" and kind != "label":
        raise ValueError(
            f"kernel='delta' compares labels. Got real-valued predictions in {owner}; use "
            "kernel='auto', or prediction='sampled' for a classifier."
        )
    if kernel == "auto":
        kernel = "linear" if kind == "proba" else "rq"
    if kernel == "linear" or kernel == "delta":  # the same for one-hot labels
        return None
    radial = radial_profile(kernel)
    _probe(radial)
    return radial


def _make_label_scorer(
    query: Any, pool: Pool, needed: np.ndarray, *, integers: bool
) -> LabelScorer:
    """Label every row that is needed, each by its own position."""
    if pool.reference is None:
        rows = np.union1d(pool.candidates, needed)
        labels = labels_of(pool.predictions, rows, query.prediction, pool.root, _random.LABELS)
        own = _take_rows(labels, rows, pool.candidates)
        theirs = _take_rows(labels, rows, needed)
    else:
        key = _random.REFERENCE_LABELS
        theirs = labels_of(pool.reference, needed, query.prediction, pool.root, key)
        own = labels_of(
            pool.predictions, pool.candidates, query.prediction, pool.root, _random.LABELS
        )
    weights = pool.predictions.weights
    return LabelScorer(own, theirs, needed, query.estimator, weights, integers=integers)


def _take_rows(labels: Array, rows: np.ndarray, wanted: np.ndarray) -> Array:
    """Return the labels of the wanted ones among ascending rows."""
    if len(wanted) == len(rows):
        return labels
    where = _array.like(np.searchsorted(rows, wanted), labels)
    return _array.namespace(labels).take(labels, where, axis=0)


def labels_of(
    predictions: Predictions, positions: np.ndarray, prediction: str, root: int, key: int
) -> Array:
    """Return one label code per row and draw, (n_positions, n_draws), on the predictions' device.

    Label samples stay as they are; from probabilities, one label per draw is drawn by the
    position of the row ("sampled") or the likeliest class is taken ("argmax").
    """
    seed = _random.stream(root, key)
    parts = []
    for where, samples in predictions.chunks(positions):
        if samples.kind == "label":
            labels = samples.values
        elif prediction == "argmax":
            labels = _array.namespace(samples.values).argmax(samples.values, axis=2)
        else:
            uniforms = _random.row_uniforms(seed, positions[where], predictions.n_draws)
            labels = samples.sample_labels(uniforms)
        parts.append(_array.smallest_codes(labels))
    return parts[0] if len(parts) == 1 else _array.namespace(*parts).concat(parts, axis=0)


def _label_unit(kernel: Kernel, owner: str) -> float:
    """Return HSIC with the kernel over HSIC with the delta kernel, for one-hot labels.

    Labels are at squared distance 0 or 2, so every kernel of labels is the delta kernel up to
    an added constant, which HSIC does not see, and a factor, which comes in squared.
    """
    if kernel == "linear" or kernel == "delta":
        return 1.0
    profile = radial_profile("rq" if kernel == "auto" else kernel)
    equal, unequal = _probe(profile).tolist()
    if equal == unequal:
        raise ValueError(
            f"The 'kernel' parameter of {owner} must tell equal labels from unequal ones. Got "
            f"{equal!r} at squared distances 0 and 2 from {kernel!r}."
        )
    return float((equal - unequal) ** 2)


def _probe(kernel: Callable[[Array], Array]) -> np.ndarray:
    """Return a kernel's values at squared distances 0 and 2 after checking that it has some."""
    values = np.asarray(kernel(np.array([0.0, 2.0])))
    if values.shape != (2,) or values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise ValueError(
            "A callable 'kernel' must map an array of squared distances to a finite real array of "
            f"the same shape. Got {values!r} for the distances 0 and 2 from {kernel!r}."
        )
    return values.astype(np.float64)


def spread_over_draws(predictions: Predictions) -> np.ndarray:
    """Return per target the root of the pool's mean variance over draws, 1 where that is 0."""
    variances = []
    for _, samples in predictions.chunks(np.arange(predictions.n_points)):
        values = _array.to_host(samples.values).astype(np.float64)
        values = values[:, :, None] if values.ndim == 2 else values
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is an error below
            mean = np.average(values, axis=1, weights=samples.weights, keepdims=True)
            variances.append(np.average((values - mean) ** 2, axis=1, weights=samples.weights))
    spread = np.sqrt(np.concatenate(variances).mean(axis=0))
    if not np.isfinite(spread).all():
        raise ValueError(
            "The variance of the predictions over the draws must be finite in float64. Got values "
            "that overflow when squared; rescale the targets."
        )
    return np.where(spread > 0, spread, 1.0)
