"""PredictionSamples: the predictions of m posterior draws for n points, checked and immutable."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_ical import _array, _validation
from sklearn_ical._array import Array
from sklearn_ical._typing import Kind, Layout, Real
from sklearn_ical._validation import check_weights

KINDS = ("proba", "label", "value")
SHAPES = {
    "proba": "(n_points, n_draws, n_classes)",
    "label": "(n_points, n_draws)",
    "value": "(n_points, n_draws) or (n_points, n_draws, n_targets)",
}
# Sums of rows of probabilities may differ from 1 by this; beyond rounding they are renormalized.
SUM_TOLERANCE = 1e-3
NEGATIVE_TOLERANCE = -1e-9


class PredictionSamples:
    """Predictions of the same posterior draws for a set of points.

    Draw k is one function for every point: column k of two points belongs to the same member, tree
    or dropout mask. Dependence between points is measured over this axis.

    Read more in the :ref:`User Guide <prediction_samples>`.

    Parameters
    ----------
    values : array
        Of any array API namespace; its shape depends on ``kind``. Not modified, and copied only if
        probabilities are renormalized, or integers or half precision are converted.
    kind : {"proba", "label", "value"}, default="proba"
        "proba": class probabilities (n_points, n_draws, n_classes), finite, rows sum to 1 within
        1e-3 or the rounding of their dtype (renormalized if the difference exceeds rounding of
        float32 or float64), entries >= -1e-9 (clipped to 0). "label": one class code per draw
        (n_points, n_draws), integers from 0 to n_classes - 1. "value": real predictions (n_points,
        n_draws) or (n_points, n_draws, n_targets), finite.
    classes : array of shape (n_classes,), default=None
        Class labels that the columns or codes stand for; None for 0, 1, ...
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights. Weight 0 counts as no draw.
    noise_variance : float or array of shape (n_points,) or (n_points, n_draws), default=None
        Variance of the observation noise, only for ``kind="value"``; shared by all targets.

    Attributes
    ----------
    values : array
        The checked predictions; numpy arrays are read-only views.
    n_points, n_draws : int
        Lengths of the first two axes.
    n_classes : int or None
        Number of classes; None for ``kind="value"``.

    Raises
    ------
    TypeError
        If `values` is not an array, or has a dtype that does not fit `kind`.
    ValueError
        If shape, range, row sums, classes, weights or noise do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import PredictionSamples
    >>> samples = PredictionSamples(np.array([[[0.9, 0.1], [0.6, 0.4]]]))
    >>> samples.n_points, samples.n_draws, samples.n_classes
    (1, 2, 2)
    >>> samples.mean()
    array([[0.75, 0.25]])
    """

    def __init__(
        self,
        values: Array,
        kind: Kind = "proba",
        *,
        classes: ArrayLike | None = None,
        weights: Array | None = None,
        noise_variance: Real | Array | None = None,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}. Got {kind!r} in PredictionSamples.")
        values = _array.plain(_check_layout(values, kind))
        n_points, n_draws = values.shape[:2]
        check = {"proba": _check_proba, "label": _check_labels, "value": _check_values}[kind]
        values = check(values)
        n_classes: Any = None  # for values
        if kind == "proba":
            n_classes = values.shape[2]
        elif kind == "label":
            xp = _array.namespace(values)
            n_classes = int(xp.max(values)) + 1 if n_points else 1
        if classes is not None:
            classes = _check_classes(classes, n_classes, at_least=kind == "label")
            n_classes = len(classes)
        self.values = _read_only(values)
        self.kind: Kind = kind
        self.classes: Any = classes
        if weights is not None:
            weights = _read_only(check_weights(_array.to_host(weights), n_draws))
        self.weights = weights
        self.noise_variance = _check_noise(noise_variance, kind, n_points, n_draws)
        self.n_classes: Any = n_classes

    @classmethod
    def from_array(
        cls,
        a: Array,
        layout: Layout = "NKC",
        *,
        log: bool = False,
        kind: Kind = "proba",
        classes: ArrayLike | None = None,
        weights: Array | None = None,
        noise_variance: Real | Array | None = None,
    ) -> "PredictionSamples":
        """Build samples from an array whose axes are in a named order.

        Parameters
        ----------
        a : array
            Three axes in the order of `layout`; two where `kind` has no class axis, whose
            letter is then skipped.
        layout : {"NKC", "KNC", "NCK"}, default="NKC"
            N points, K draws, C classes or targets. The axes are never guessed.
        log : bool, default=False
            Whether `a` holds log-probabilities (only for ``kind="proba"``). Logits are not
            log-probabilities: apply a log-softmax to them first.
        kind, classes, weights, noise_variance
            As in the constructor.

        Returns
        -------
        samples : PredictionSamples
            Of `a`, never modified, in the NKC order.
        """
        if layout not in ("NKC", "KNC", "NCK"):
            raise ValueError(
                f"layout must be one of 'NKC', 'KNC', 'NCK'. Got {layout!r} in "
                "PredictionSamples.from_array."
            )
        a = _array.plain(a) if _array.is_array(a) else _stack(a)
        xp = _array.namespace(a)
        letters = layout if a.ndim == 3 else layout.replace("C", "")
        if a.ndim != len(letters):
            raise ValueError(
                f"layout {layout!r} with kind={kind!r} needs {SHAPES.get(kind, kind)}. Got an "
                f"array of shape {tuple(a.shape)} in PredictionSamples.from_array."
            )
        order = "NKC" if a.ndim == 3 else "NK"
        a = xp.permute_dims(a, tuple(letters.index(axis) for axis in order))
        if log:
            if kind != "proba":
                raise ValueError(
                    f"log=True needs kind='proba'. Got kind={kind!r} in "
                    "PredictionSamples.from_array."
                )
            a = _array.as_floating(a)
            if bool(xp.any(a > SUM_TOLERANCE)):
                raise ValueError(
                    f"Log-probabilities must be <= 0. Got a maximum of {float(xp.max(a)):.6g} in "
                    "PredictionSamples.from_array; apply a log-softmax to logits first."
                )
            a = xp.exp(a)
        return cls(a, kind, classes=classes, weights=weights, noise_variance=noise_variance)

    @classmethod
    def trusted(
        cls, values: Array, kind: Kind, *, classes: Any = None, weights: Any = None
    ) -> "PredictionSamples":
        """Wrap values that are valid by construction, without checks.

        For samplers that look up their outputs in tables that were checked once.
        """
        samples = object.__new__(cls)
        samples.values = _read_only(values)
        samples.kind = kind
        samples.classes = classes
        samples.weights = weights
        samples.noise_variance = None
        known = None if classes is None else len(classes)
        samples.n_classes = values.shape[2] if kind == "proba" else known
        return samples

    @property
    def n_points(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_draws(self) -> int:
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return self.n_points

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else ", weighted"
        return (
            f"PredictionSamples(kind={self.kind!r}, shape={tuple(self.values.shape)}, "
            f"dtype={self.values.dtype}{weighted})"
        )

    def __getitem__(self, rows: Any) -> "PredictionSamples":
        """Return the samples of some points: a slice, positions >= 0 or a boolean mask."""
        if isinstance(rows, slice):
            values = self.values[rows, ...]
        else:
            rows = self._positions(_array.to_host(rows))
            xp = _array.namespace(self.values)
            values = xp.take(self.values, _array.like(rows, self.values), axis=0)
        noise = self.noise_variance
        return self._replace(values, noise[rows] if np.ndim(noise) > 0 else noise)

    def _positions(self, rows: np.ndarray) -> np.ndarray:
        """Return checked positions of a one-dimensional index."""
        masked = rows.dtype == bool
        if rows.ndim != 1 or (masked and len(rows) != self.n_points):
            raise ValueError(
                "PredictionSamples are indexed by a slice, by one-dimensional positions or by a "
                f"boolean mask of length {self.n_points}. Got {rows.dtype} of shape {rows.shape}."
            )
        rows = np.flatnonzero(rows) if masked else rows
        caller = "PredictionSamples"
        return _validation.check_positions(rows, self.n_points, "The index", caller, "the samples")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Unpickled numpy arrays are writeable.
        self.__dict__.update({name: _read_only(value) for name, value in state.items()})

    def take_draws(self, draws: np.ndarray) -> "PredictionSamples":
        """Return the samples of some draws, positions in draw order; weights are rescaled to 1."""
        xp = _array.namespace(self.values)
        values = xp.take(self.values, _array.like(draws, self.values), axis=1)
        noise = self.noise_variance
        part = self._replace(values, noise[:, draws] if np.ndim(noise) == 2 else noise)
        if self.kind == "label" and self.classes is None and self.n_points:
            part.n_classes = int(xp.max(values)) + 1
        if self.weights is not None:
            total = self.weights[draws].sum()
            if total == 0:
                raise ValueError(
                    f"The {len(draws)} selected draws all have weight 0. Take more draws, or leave "
                    "out members of weight 0."
                )
            part.weights = _read_only(self.weights[draws] / total)
        return part

    def _replace(self, values: Array, noise_variance: Any) -> "PredictionSamples":
        """Return samples of other points or draws of the same kind, without checking again."""
        other = object.__new__(PredictionSamples)
        other.__dict__.update(self.__dict__)
        other.values = _read_only(values)
        other.noise_variance = _read_only(noise_variance)
        return other

    def mean(self) -> Array:
        """Return the mean prediction over the draws, weighted where the draws are.

        Returns
        -------
        mean : float64 array of shape (n_points, n_classes), or (n_points[, n_targets]) for values
            Class probabilities, or vote fractions for label samples.
        """
        values = self.values
        xp = _array.namespace(values)
        if self.kind == "label":
            values = self.votes()
        values = xp.astype(values, xp.float64)
        if self.weights is None:
            return xp.sum(values, axis=1) / self.n_draws
        weights = _array.like(self.weights.reshape((-1,) + (1,) * (values.ndim - 2)), values)
        base = values[:, int(np.argmax(self.weights)), ...]  # so equal draws are their mean
        return base + xp.sum((values - base[:, None, ...]) * weights, axis=1)

    def votes(self, n_classes: int | None = None) -> Array:
        """Return label samples as bool (n_points, n_draws, n_classes), True at each draw's label.

        `n_classes` is for parts of samples, which without `classes` have only their own codes.
        """
        xp = _array.namespace(self.values)
        n = self.n_classes if n_classes is None else n_classes
        codes = xp.arange(n, dtype=xp.int64, device=_array.device(self.values))
        # Compared in int64: the samples' own dtype may be too short for n_classes.
        return xp.astype(self.values, xp.int64)[:, :, None] == codes

    def as_outputs(self) -> Array:
        """Return real predictions and probabilities as they are, label samples as one-hot votes.

        Votes are float32 (n_points, n_draws, n_columns). Where there are more classes than draws,
        each class of a row has the column of the first draw that votes for it.
        """
        if self.kind != "label":
            return self.values
        labels = self.values
        xp, device = _array.namespace(labels), _array.device(labels)
        labels = xp.astype(labels, xp.int64)
        n_codes = self.n_classes
        if n_codes > self.n_draws:
            same = labels[:, :, None] == labels[:, None, :]
            labels = xp.argmax(xp.astype(same, xp.uint8), axis=2)
            n_codes = self.n_draws
        codes = xp.arange(n_codes, dtype=xp.int64, device=device)
        return xp.astype(labels[:, :, None] == codes, xp.float32)

    def mean_noise(self) -> np.ndarray:
        """Return the noise variance of each point, averaged over the draws, on the host."""
        noise = self.noise_variance
        if np.ndim(noise) < 2:
            return np.broadcast_to(np.asarray(noise, dtype=np.float64), (self.n_points,))
        if self.weights is None:
            return np.mean(noise, axis=1)
        return np.asarray(noise @ self.weights)

    def canonical(self) -> "PredictionSamples":
        """Return float64 samples on the host, the draws of each column sorted if of equal weight.

        Means and variances over draws are then bitwise equal for the same draws in another order.
        Columns are sorted one by one, so a draw is no longer one function.
        """
        values = _array.to_host(self.values)
        noise = self.noise_variance
        if self.kind != "label":
            values = values.astype(np.float64)
        if self.weights is None:
            values = np.sort(values, axis=1)
            noise = np.sort(noise, axis=1) if np.ndim(noise) == 2 else noise
        return self._replace(values, noise)


def concatenate(parts: list[PredictionSamples]) -> PredictionSamples:
    """Join the samples of consecutive points, all of the same draws."""
    first = parts[0]
    if len(parts) == 1:
        return first
    values = _array.namespace(first.values).concat([part.values for part in parts], axis=0)
    noise = first.noise_variance
    if np.ndim(noise) > 0:
        noise = np.concatenate([part.noise_variance for part in parts])
    joined = first._replace(values, noise)
    if first.kind == "label":  # without `classes`, each part knows only its own codes
        joined.n_classes = max(part.n_classes for part in parts)
    return joined


def _stack(a: Any) -> np.ndarray:
    """Return anything but an array, such as a list of one array per draw, as a numpy array."""
    try:
        return np.asarray(a)
    except ValueError as err:
        raise ValueError(
            f"a must be one array, or equally shaped arrays. Got a {type(a).__name__} of unlike "
            "items in PredictionSamples.from_array; a multi-output model needs one "
            "PredictionSamples per output."
        ) from err


def _check_layout(values: Array, kind: str) -> Array:
    """Check that `values` is an array with the axes of its kind and at least one draw."""
    if isinstance(values, list | tuple):
        raise TypeError(
            f"values must be one array of shape {SHAPES[kind]}. Got a {type(values).__name__} of "
            f"{len(values)} items, as multi-output models give; build one PredictionSamples per "
            "output."
        )
    if not _array.is_array(values):
        raise TypeError(
            f"values must be an array of shape {SHAPES[kind]}. Got {type(values).__name__}."
        )
    n_axes = {"proba": (3,), "label": (2,), "value": (2, 3)}[kind]
    if values.ndim not in n_axes or 0 in values.shape[1:]:
        hint = ""
        if kind == "proba" and values.ndim == 2:
            hint = " A single model's (n_points, n_classes) is one draw: pass values[:, None, :]."
        raise ValueError(
            f"PredictionSamples of kind {kind!r} must have shape {SHAPES[kind]} with at least one "
            f"entry on every axis after the first. Got shape {tuple(values.shape)}.{hint}"
        )
    return values


def _row_chunks(values: Array) -> list[slice]:
    """Return slices of rows whose float64 copy fits in the working chunk."""
    return _array.row_slices(values.shape[0], 8 * math.prod(values.shape[1:]))


def _check_finite(part: Array, start: int) -> None:
    xp = _array.namespace(part)
    finite = xp.isfinite(part)
    if not bool(xp.all(finite)):
        bad = xp.any(xp.reshape(~finite, (part.shape[0], -1)), axis=1)
        row = start + int(xp.argmax(xp.astype(bad, xp.int8)))
        raise ValueError(
            f"Predictions must be finite. Got NaN or infinity in row {row}; remove such rows or "
            "members."
        )


def _check_proba(values: Array) -> Array:
    """Return probabilities as float32 or float64, clipped and renormalized where needed."""
    xp = _array.namespace(values)
    if not xp.isdtype(values.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"Probabilities must be real numbers. Got dtype {values.dtype}.")
    tolerance = SUM_TOLERANCE
    if xp.isdtype(values.dtype, "real floating"):  # bfloat16 rounds more coarsely than that
        tolerance = max(tolerance, float(xp.finfo(values.dtype).eps))
    values = _array.as_floating(values)
    rounding = 1e-6 if values.dtype == xp.float32 else 1e-12
    fixed = None
    for rows in _row_chunks(values):
        part = values[rows, ...]
        _check_finite(part, rows.start)
        sums = xp.sum(part, axis=-1, keepdims=True, dtype=xp.float64)
        miss = xp.abs(sums - 1)
        low, far = float(xp.min(part)), float(xp.max(miss))
        if low < NEGATIVE_TOLERANCE or far > tolerance:
            raise ValueError(
                "Class probabilities must be >= 0 and sum to 1 over the last axis. Got a minimum "
                f"of {low:.6g} and a sum that differs from 1 by {far:.6g}. Pass log-probabilities "
                "to PredictionSamples.from_array(a, log=True); apply a softmax to logits first."
            )
        if low < 0 or far > rounding:
            if fixed is None:
                fixed = xp.asarray(values, copy=True)
            part = xp.where(part < 0, xp.zeros_like(part), part)
            sums = xp.sum(part, axis=-1, keepdims=True, dtype=xp.float64)
            scaled = xp.astype(xp.astype(part, xp.float64) / sums, values.dtype)
            fixed[rows, ...] = xp.where(xp.abs(sums - 1) > rounding, scaled, part)
    return values if fixed is None else fixed


def _check_labels(values: Array) -> Array:
    """Return label codes unchanged after checking that they are integers >= 0."""
    xp = _array.namespace(values)
    if not xp.isdtype(values.dtype, "integral"):
        raise TypeError(
            f"Label samples must be integer class codes 0, 1, ... Got dtype {values.dtype}; "
            "encode labels with numpy.searchsorted(classes, labels) and pass classes=classes."
        )
    if values.shape[0] and int(xp.min(values)) < 0:
        raise ValueError(f"Label samples must be codes >= 0. Got {int(xp.min(values))}.")
    return values


def _check_values(values: Array) -> Array:
    """Return real predictions as float32 or float64 after checking that they are finite."""
    xp = _array.namespace(values)
    if not xp.isdtype(values.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"Real predictions must be real numbers. Got dtype {values.dtype}.")
    values = _array.as_floating(values)
    for rows in _row_chunks(values):
        _check_finite(values[rows, ...], rows.start)
    return values


def _check_classes(classes: Any, n_classes: int | None, *, at_least: bool) -> np.ndarray:
    """Return the class labels as an array of `n_classes` entries, or more with `at_least`."""
    if n_classes is None:
        raise ValueError("classes do not apply to kind='value'. Pass classes=None.")
    array = np.array(classes)
    enough = array.ndim == 1 and len(array) >= n_classes
    if not enough or (len(array) > n_classes and not at_least):
        raise ValueError(
            f"classes must name the {n_classes} classes of the predictions. Got an array of shape "
            f"{array.shape}."
        )
    if len(set(array.tolist())) != len(array):
        raise ValueError(f"classes must be distinct. Got {array!r}.")
    return _read_only(array)


def _check_noise(noise: Any, kind: str, n_points: int, n_draws: int) -> Any:
    """Return the noise variance as a float or a host float64 array."""
    if noise is None:
        return None
    if kind != "value":
        raise ValueError(f"noise_variance applies to kind='value' only. Got kind={kind!r}.")
    array = _validation.as_numbers(_array.to_host(noise), "noise_variance", "PredictionSamples")
    if array.shape not in ((), (n_points,), (n_points, n_draws)):
        raise ValueError(
            f"noise_variance must be a number or of shape ({n_points},) or ({n_points}, "
            f"{n_draws}). Got shape {array.shape}."
        )
    wrong = ~np.isfinite(array) | (array < 0)
    if wrong.any():
        raise ValueError(f"noise_variance must be finite and >= 0. Got {array[wrong][0]}.")
    return float(array) if array.ndim == 0 else _read_only(array)


def _read_only(values: Array) -> Array:
    """Return a read-only view of a numpy array; other arrays as they are."""
    if _array.is_numpy(values):
        values = values.view()
        values.flags.writeable = False
    return values
