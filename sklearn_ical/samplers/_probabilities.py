"""What `predict_proba` of a model returns, read as one array of class probabilities."""

from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._models import classes_of, name_of, rows_for
from sklearn_ical.samples import NEGATIVE_TOLERANCE, SUM_TOLERANCE, PredictionSamples


class ProbabilitiesError(UnsupportedModelError, ValueError):
    """`predict_proba` of a model returns no class probabilities, of all rows or of one.

    The number of that row is moved by those who passed the model some of their rows.
    """

    def __init__(
        self, text: str, row: int | None = None, way_out: str = "", rows: str = ""
    ) -> None:
        super().__init__(text, row, way_out, rows)
        self.text, self.row, self.way_out, self.rows = text, row, way_out, rows

    def __str__(self) -> str:
        of = f" of {self.rows}" if self.rows else ""
        row = "" if self.row is None else f" for row {self.row}{of}"
        return f"{self.text}{row}{self.way_out}"

    def at(self, positions: Any, rows: str = "") -> "ProbabilitiesError":
        """Return the error for the rows of which those of the model are some `positions`."""
        row = None if self.row is None else int(positions[self.row])
        return ProbabilitiesError(self.text, row, self.way_out, rows or self.rows)


def class_probabilities(model: Any, X: Any) -> np.ndarray:
    """Return what a model predicts for `X`, on the host, columns in the order of its classes."""
    owner = f"predict_proba of {name_of(model)}"
    answer = model.predict_proba(rows_for(model, X))
    return _array.to_host(read_proba(answer, classes_of(model), owner)[0])


def read_proba(answer: Any, classes: Any, owner: str) -> tuple[Array, Any]:
    """Return class probabilities as an array (n_points, n_columns), and its classes.

    Parameters
    ----------
    answer : array, sparse matrix, frame or nested list
        What `predict_proba` returned. Columns of a frame are named by class, in any order.
    classes : array of shape (n_classes,) or None
        The classes of the model; None takes the names of the columns of a frame.
    owner : str
        The method and model, for messages.
    """
    got = f"a {type(answer).__name__}"
    if hasattr(answer, "columns"):
        answer, classes = _read_frame(answer, classes, owner)
    elif sparse.issparse(answer):
        answer = answer.toarray()
    elif hasattr(answer, "to_dense"):  # a sparse tensor
        answer = answer.to_dense()
    elif isinstance(answer, list | tuple):
        got = f"a list of {len(answer)} arrays" if len(answer) and np.ndim(answer[0]) == 2 else got
        answer = _numbers([_array.to_host(row) for row in answer])
    if not _array.is_array(answer) or answer.dtype == object:
        answer = _numbers(answer)
    if answer.ndim != 2:
        got = got if answer.ndim == 0 or "list" in got else f"shape {tuple(answer.shape)}"
        raise ProbabilitiesError(
            f"{owner} must return one (n_points, n_classes) array. Got {got}; a model of several "
            "outputs has to be replaced by one model per output."
        )
    return _array.plain(answer), classes


def _numbers(answer: Any) -> np.ndarray:
    """Return numbers as an array; what is no array of numbers as one without axes."""
    try:
        array = np.asarray(answer)
        return array.astype(np.float64) if array.dtype == object else array
    except (TypeError, ValueError):
        return np.zeros(())


def _read_frame(frame: Any, classes: Any, owner: str) -> tuple[np.ndarray, Any]:
    """Return the columns of a frame in the order of the classes, or as they are if unnamed."""
    names = list(getattr(frame, "column_names", frame.columns))
    values = _numbers(frame)
    if classes is None:
        return values, np.asarray(names)
    wanted, texts = np.asarray(classes).tolist(), [str(name) for name in names]
    unnamed = range(len(names)), [f"column_{k}" for k in range(len(names))]
    for own, expected in ((names, wanted), (texts, [str(label) for label in wanted])):
        if len(own) == len(expected) and set(own) == set(expected):
            return values[:, [own.index(label) for label in expected]], classes
    if len(names) == len(wanted) and names in [list(default) for default in unnamed]:
        return values, classes
    raise ProbabilitiesError(
        f"{owner} must name the columns of its frame by class, {wanted}. Got columns {names}; "
        "rename them, or return an array."
    )


def proba_samples(proba: Array, classes: Any, owner: str) -> PredictionSamples:
    """Return probabilities (n_points, n_classes) as one draw; errors name a row and the reason."""
    try:
        return PredictionSamples(proba[:, None, :], classes=classes)
    except (TypeError, ValueError) as err:
        error = _improper_row(_array.to_host(proba), owner)
        raise error or ProbabilitiesError(f"{owner} gives no usable output. {err}") from err


def _improper_row(proba: np.ndarray, owner: str) -> ProbabilitiesError | None:
    """Return the error for the first row that is no class probabilities, or None."""
    if not proba.size or not np.issubdtype(proba.dtype, np.number):
        return None
    proba = proba.astype(np.float64)
    lowest, totals = proba.min(axis=1), proba.sum(axis=1)
    proper = (lowest >= NEGATIVE_TOLERANCE) & (np.abs(totals - 1) <= SUM_TOLERANCE)
    if proper.all():
        return None
    row = int(np.argmin(proper))
    low, total = lowest[row], totals[row]
    if not np.isfinite(total):
        problem, way_out = "NaN or infinity", "leave out such rows, or members that give them"
    elif low < NEGATIVE_TOLERANCE:
        problem = f"a negative probability, {low:.6g},"
        way_out = "apply a softmax if these are logits"
    elif total == 0:
        problem = "no class a positive probability"
        way_out = (
            "models that fit one classifier per class may reject all of them; use one of all "
            "classes, or calibrate the model with CalibratedClassifierCV"
        )
    else:
        problem = f"probabilities that sum to {total:.6g}, not 1,"
        way_out = "normalize them, or apply a softmax if these are logits"
    return ProbabilitiesError(f"{owner} gives {problem}", row, f"; {way_out}.")
