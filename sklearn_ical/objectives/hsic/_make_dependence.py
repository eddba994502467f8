"""How HSIC treats predictions: as labels or outputs, by which kernel and at which scale."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sklearn_ical import _array, _random
from sklearn_ical._array import Array
from sklearn_ical._typing import Kernel, Kind
from sklearn_ical.dependence import hsic_dual, radial_profile
from sklearn_ical.objectives.hsic._dependence import Dependence
from sklearn_ical.objectives.hsic._label_dependence import LabelDependence
from sklearn_ical.objectives.hsic._output_dependence import OutputDependence
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.samples import PredictionSamples

KERNELS = {"auto", "rq", "rbf", "linear", "delta", "distance"}
# Kernels of labels, which are all equivalent.
LABEL_KERNELS = {"auto", "delta", "linear"}
# Values of `prediction` that turn class probabilities into labels.
LABELS_OF = ("sampled", "argmax")


def make_dependence(
    query: Any, pool: Pool, needed: np.ndarray, *, tau: bool = False, sums: bool = True
) -> Dependence:
    """Return the dependence of the predictions of this call.

    Parameters
    ----------
    query : object
        Its `prediction`, `kernel` and `estimator`.
    pool : Pool
        The call.
    needed : int array
        Ascending rows that candidates may be compared with.
    tau : bool, default=False
        Whether candidates weigh each class by its probability: see `OutputDependence`.
    sums : bool, default=True
        Whether all scores are against sums of reference kernels, as they are.
    """
    kind, weights = pool.rows.kind, pool.rows.weights
    if weights is not None and query.estimator == "unbiased":
        raise ValueError(
            "The unbiased estimator has no form for weighted draws. Got weighted draws in "
            f"{pool.caller}; pass estimator='biased'."
        )
    if not tau and (kind == "label" or (kind == "proba" and query.prediction in LABELS_OF)):
        _check_label_kernel(query.kernel, pool.caller)
        integers = sums and weights is None
        return _make_label_dependence(query, pool, needed, integers=integers)
    expected = kind == "proba" and query.prediction == "expected"
    if expected:
        _check_label_kernel(query.kernel, pool.caller)
    radial = None if expected or tau else output_kernel(query.kernel, kind, pool.caller)
    predictions = pool.rows.hold()
    reference = predictions if pool.reference is None else pool.reference.hold()
    return OutputDependence(
        predictions,
        pool.candidates,
        reference,
        kernel=radial,
        scale=spread_over_draws(predictions) if kind == "value" else None,
        expected=expected,
        tau=tau,
        estimator=query.estimator,
    )


def output_kernel(kernel: Kernel, kind: str, caller: str) -> Callable[[Array], Array] | None:
    """Return a kernel of outputs as a function of squared distances, None for inner products."""
    if kernel == "delta" and kind != "label":
        raise ValueError(
            f"kernel='delta' compares labels. Got real-valued predictions in {caller}; use "
            "kernel='auto', or prediction='sampled' for a classifier."
        )
    if kernel == "auto":
        kernel = "rq" if kind == "value" else "linear"
    if kernel == "linear" or kernel == "delta":  # the same for one-hot labels
        return None
    radial = radial_profile(kernel)
    _probe(radial)
    return radial


def _make_label_dependence(
    query: Any, pool: Pool, needed: np.ndarray, *, integers: bool
) -> LabelDependence:
    """Label every row that is needed, each by its own position."""
    if pool.reference is None:
        rows = np.union1d(pool.candidates, needed)
        labels = labels_of(pool.rows, rows, query.prediction, pool.root, _random.LABELS)
        candidate_labels = _take_rows(labels, rows, pool.candidates)
        reference_labels = _take_rows(labels, rows, needed)
    else:
        key = _random.REFERENCE_LABELS
        reference_labels = labels_of(pool.reference, needed, query.prediction, pool.root, key)
        candidate_labels = labels_of(
            pool.rows, pool.candidates, query.prediction, pool.root, _random.LABELS
        )
    weights = pool.rows.weights
    return LabelDependence(
        candidate_labels, reference_labels, needed, query.estimator, weights, integers=integers
    )


def _take_rows(labels: Array, rows: np.ndarray, wanted: np.ndarray) -> Array:
    """Return the labels of the wanted ones among ascending rows."""
    if len(wanted) == len(rows):
        return labels
    where = _array.like(np.searchsorted(rows, wanted), labels)
    return _array.namespace(labels).take(labels, where, axis=0)


def labels_of(rows: RowSet, positions: np.ndarray, prediction: str, root: int, key: int) -> Array:
    """Return one label code per row and draw, (n_positions, n_draws), on the predictions' device.

    Label samples stay as they are; from probabilities, one label per draw is drawn by the
    position of the row ("sampled") or the likeliest class is taken ("argmax").
    """
    seed = _random.stream(root, key)

    def label(samples: PredictionSamples, positions: np.ndarray) -> Array:
        if samples.kind == "label":
            labels = samples.values
        elif prediction == "argmax":
            labels = _array.namespace(samples.values).argmax(samples.values, axis=2)
        else:
            uniforms = _random.row_uniforms(seed, positions, samples.n_draws)
            labels = sample_labels(samples.values, uniforms)
        return _array.smallest_codes(labels)

    return rows.map(label, positions, positions)


def sample_labels(proba: Array, uniforms: np.ndarray) -> Array:
    """Draw one label per point and draw from class probabilities.

    Parameters
    ----------
    proba : array of shape (n_points, n_draws, n_classes)
        Class probabilities.
    uniforms : array of shape (n_points, n_draws)
        Host float64 numbers in [0, 1).

    Returns
    -------
    labels : int64 array of shape (n_points, n_draws)
        On the device of `proba`: the number of classes whose running float64 sum over the total
        is at most the uniform, so a class of probability 0 is never drawn.
    """
    xp = _array.namespace(proba)
    running = _array.running_sum(proba)
    running = running / running[..., -1:]
    below = running <= _array.like(uniforms, running)[..., None]
    return xp.sum(xp.astype(below, xp.int64), axis=-1)


def understood_kinds(query: Any) -> tuple[Kind, ...]:
    """Return the kinds of predictions that a query's kernel and prediction support."""
    labels = isinstance(query.kernel, str) and query.kernel in LABEL_KERNELS
    outputs = query.kernel != "delta"
    of_proba = outputs if query.prediction == "proba" else labels
    understood: dict[Kind, bool] = {"proba": of_proba, "label": labels, "value": outputs}
    return tuple(kind for kind, fits in understood.items() if fits)


def check_kernel(query: Any, kind: str, caller: str) -> None:
    """Raise if a query's kernel does not apply to the predictions that it compares."""
    if kind == "label" or (kind == "proba" and query.prediction != "proba"):
        _check_label_kernel(query.kernel, caller)
    else:
        output_kernel(query.kernel, kind, caller)


def _check_label_kernel(kernel: Kernel, caller: str) -> None:
    """Raise if a kernel is not the one of labels.

    Labels are at squared distance 0 or 2, so every kernel of labels is the delta kernel up to an
    added constant, which HSIC ignores, and a factor.
    """
    if not (isinstance(kernel, str) and kernel in LABEL_KERNELS):
        raise ValueError(
            "kernel must be 'auto' or 'delta' for labels, as all kernels make the same choice of "
            f"them. Got {kernel!r} in {caller}; other kernels need prediction='proba' or a "
            "regressor."
        )


def _probe(kernel: Callable[[Array], Array]) -> np.ndarray:
    """Return a kernel's values at squared distances 0 and 2, checked."""
    values = np.asarray(kernel(np.array([0.0, 2.0])))
    if values.shape != (2,) or values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise ValueError(
            "A callable 'kernel' must map an array of squared distances to a finite real array of "
            f"the same shape. Got {values!r} for the distances 0 and 2 from {kernel!r}."
        )
    return values.astype(np.float64)


def spread_over_draws(rows: RowSet) -> np.ndarray:
    """Return per target the root of the pool's mean variance over draws, 1 where that is 0."""

    def variances(samples: PredictionSamples) -> np.ndarray:
        values = _array.to_host(samples.values).astype(np.float64)
        values = values[:, :, None] if values.ndim == 2 else values
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is an error below
            mean = np.average(values, axis=1, weights=samples.weights, keepdims=True)
            return np.average((values - mean) ** 2, axis=1, weights=samples.weights)

    spread = np.sqrt(rows.map(variances).mean(axis=0))
    if not np.isfinite(spread).all():
        raise ValueError(
            "The variance of the predictions over the draws must be finite in float64. Got values "
            "that overflow when squared; rescale the targets."
        )
    return np.where(spread > 0, spread, 1.0)


@dataclass(frozen=True)
class Information:
    """Mixes dependence on reference rows with dependence on the posterior draw.

    HSIC is linear in each kernel, so reference kernels S become (1 - weight) S + weight c I, where
    I is the delta kernel of the draw: dependence on it is the information of a prediction about the
    parameters. The number c makes both parts equally large on average over the pool.

    Attributes
    ----------
    weight : float
        From 0 to 1.
    mean_kernel : float64 host array of shape (n_draws, n_draws)
        Of the whole pool, up to an added constant.
    dual : float64 host array of shape (n_draws, n_draws)
        Of the kernel of the draw: see :func:`draw_dual`.
    """

    weight: float
    mean_kernel: np.ndarray
    dual: np.ndarray

    def amounts(self, duals: Array) -> np.ndarray:
        """Return weight * c for duals of reference kernels, (n_steps, m, m) -> (n_steps,)."""
        mean = _array.like(self.mean_kernel, duals)
        relevance = _array.to_host(_array.namespace(duals).sum(duals * mean, axis=(1, 2)))
        known = float(np.sum(self.dual * self.mean_kernel))
        return self.weight * relevance / known if known > 0 else np.zeros(len(relevance))

    def extent(self, duals: Array, amounts: np.ndarray) -> Array:
        """Return the sum of the magnitudes of what `shifted` adds up."""
        parts = np.abs(amounts)[:, None, None] * np.abs(self.dual)
        return (1 - self.weight) * _array.namespace(duals).abs(duals) + _array.like(parts, duals)

    def shifted(self, duals: Array, amounts: Any) -> Array:
        """Return the duals of shifted kernels: (n_steps, m, m), (n_steps,) or a number."""
        amounts = np.reshape(np.asarray(amounts, dtype=np.float64), (-1, 1, 1))
        added = _array.like(amounts, duals) * _array.like(self.dual, duals)
        return (1 - self.weight) * duals + added


def draw_dual(n_draws: int, weights: np.ndarray | None) -> np.ndarray:
    """Return the dual of the delta kernel of the draw, up to a factor.

    The kernel of one draw in place of w copies is their mean, I / w on the diagonal: the sum of a
    linear kernel against its dual is then the variance of the prediction, as for the copies.
    """
    if weights is None:
        return hsic_dual(np.eye(n_draws))
    return np.diag(weights) - np.outer(weights, weights)


def check_information_weight(query: Any, caller: str) -> None:
    """Raise if the estimator ignores what is to be added."""
    if query.information_weight > 0 and query.estimator == "unbiased":
        raise ValueError(
            "information_weight needs estimator='biased': the unbiased estimator leaves out the "
            "diagonals of kernels, and the kernel of the draw is nothing else. Got "
            f"information_weight={query.information_weight!r} and 'unbiased' in {caller}."
        )


def information_of(
    query: Any, pool: Pool, dependence: Dependence, make: Callable[[Pool], Dependence]
) -> Information | None:
    """Return the shift for a query's `information_weight`, None for 0.

    `dependence` is that of the call's candidates; `make` makes one of others.
    """
    if query.information_weight == 0:
        return None
    if len(pool.candidates) < pool.n_points:
        dependence = make(replace(pool, candidates=np.arange(pool.n_points)))
    dual = draw_dual(dependence.n_draws, dependence.weights)
    return Information(float(query.information_weight), dependence.mean_kernel(), dual)
