"""What `fit` is given besides X and y: which of it is aligned with the rows, and how it is sliced.

The one place for samplers, learners, strategies and simulations; models are not known here.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._validation import as_numbers, n_rows, sliceable, take_rows

SAMPLE_WEIGHT = "sample_weight"
# Aligned with the rows in any container, also in a list.
SAMPLE_PARAMETERS = {SAMPLE_WEIGHT, "groups"}
# Never aligned with the rows of X, also where an array happens to have as many entries.
OTHER_PARAMETERS = {
    *("classes", "coef_init", "intercept_init", "feature_weights", "group"),
    *("X_val", "y_val", "sample_weight_val", "eval_X", "eval_y"),
}


class FitParams(dict[str, Any]):
    """Arguments of `fit` besides X and y, by name.

    Parameters
    ----------
    params : dict
        The arguments; those that are None are left out.
    aligned : collection of str
        Names of those with one entry for each row of X.
    """

    def __init__(self, params: Mapping[str, Any], aligned: Collection[str] = ()) -> None:
        super().__init__({name: value for name, value in params.items() if value is not None})
        self.aligned = frozenset(aligned) & self.keys()

    def take(self, rows: Any) -> "FitParams":
        """Return the arguments of a fit on some of the rows: a slice or an integer array.

        Other arrays are copied, as some models work in place on them: `coef_init` for example.
        """
        taken = {name: take_rows(sliceable(self[name]), rows) for name in self.aligned}
        return FitParams(self.with_copies() | taken, self.aligned)

    def with_copies(self) -> "FitParams":
        """Return the arguments with copies of the arrays that are not aligned with the rows."""
        copies = {
            name: value.copy()
            for name, value in self.items()
            if name not in self.aligned and isinstance(value, np.ndarray)
        }
        return FitParams(self | copies, self.aligned)

    def weighted(self, counts: np.ndarray) -> "FitParams":
        """Return the arguments with each sample weight multiplied by an entry of `counts`."""
        weights = self.get(SAMPLE_WEIGHT)
        if weights is not None:
            counts = counts * _weights(weights, SAMPLE_WEIGHT, "fit_params")
        return FitParams({**self, SAMPLE_WEIGHT: counts}, self.aligned | {SAMPLE_WEIGHT})

    def of_rows_or(self, names: Collection[str]) -> "FitParams":
        """Return the arguments that are aligned with the rows, and those of these names."""
        kept = {name: value for name, value in self.items() if name in self.aligned | set(names)}
        return FitParams(kept, self.aligned)

    def renamed(self, params: Mapping[str, Any]) -> "FitParams":
        """Return some of the arguments by other names, as those of a part of the model."""
        rows = {id(self[name]) for name in self.aligned}
        named = {name for name in params if _last_part(name) in SAMPLE_PARAMETERS}
        return FitParams(params, named | {k for k, value in params.items() if id(value) in rows})


def check_fit_params(params: Any, X: Any, caller: str, *, name: str = "X") -> FitParams:
    """Return arguments of a fit on the rows of `X`, with those that are aligned with them.

    These are sample weights and groups in any container, and arrays, series, frames and sparse
    matrices of one row for each row of `X`. Raise if there are other numbers of those, or if a
    sample weight is not a finite number >= 0.

    Parameters
    ----------
    params : dict or None
        The arguments by name, None for none.
    X : object
        The rows.
    caller, name : str
        Names of the call and of the rows, for messages.
    """
    if params is None:
        return FitParams({})
    if not isinstance(params, Mapping) or not all(isinstance(key, str) for key in params):
        raise TypeError(
            "fit_params must be a dict of arguments of fit by name, such as "
            f"{{'sample_weight': weights}}. Got {params!r} in {caller}."
        )
    given = FitParams(params)
    if not given:
        return given
    n = n_rows(X, name)
    known = params.aligned if isinstance(params, FitParams) else ()
    aligned = {key for key, value in given.items() if key in known or is_aligned(key, value, n)}
    for key in aligned:
        check_aligned(key, given[key], n, caller, name)
    return FitParams(given, aligned)


def is_aligned(name: str, value: Any, n: int) -> bool:
    """Return whether an argument of a fit on `n` rows has, or must have, an entry for each."""
    name = _last_part(name)
    shape: Any = getattr(value, "shape", ())
    of_rows = len(shape) > 0 and shape[0] == n
    return name in SAMPLE_PARAMETERS or (of_rows and name not in OTHER_PARAMETERS)


def is_weight(name: str) -> bool:
    """Return whether an argument of a fit, or of a step of a pipeline, is the sample weights."""
    return _last_part(name) == SAMPLE_WEIGHT


def check_aligned(name: str, value: Any, n: int, caller: str, rows: str) -> None:
    """Raise if an argument does not have one entry, of weights a valid one, for each of n rows."""
    rule = f"{name} must have one entry for each of the {n} rows of {rows}"
    if is_weight(name):
        weights = _weights(value, name, caller)
        if weights.shape != (n,):
            raise ValueError(f"{rule}, shape ({n},). Got shape {weights.shape} in {caller}.")
        wrong = ~np.isfinite(weights) | (weights < 0)
        if wrong.any():
            raise ValueError(
                f"{name} must hold finite numbers >= 0. Got {weights[wrong][0]} for row "
                f"{int(np.argmax(wrong))} of {rows} in {caller}."
            )
        return
    try:
        entries = n_rows(value, name)
    except TypeError as err:
        raise TypeError(f"{rule}. Got {value!r} in {caller}.") from err
    if entries != n:
        raise ValueError(f"{rule}. Got {entries} in {caller}.")


def _weights(value: Any, name: str, caller: str) -> np.ndarray:
    """Return sample weights as float64 on the host."""
    return as_numbers(_array.to_host(value) if _array.is_array(value) else value, name, caller)


def _last_part(name: str) -> str:
    """Return the name of an argument without the names of steps before it."""
    return name.rpartition("__")[2]
