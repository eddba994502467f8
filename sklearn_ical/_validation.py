"""Checks at the public door: parameters, candidates, batch sizes and rows of a pool.

The only file that touches private scikit-learn names.
"""

import math
import numbers
import sys
import warnings
from collections.abc import Mapping, Sized
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import (  # noqa: F401
    HasMethods,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.parallel import _get_threadpool_controller
from sklearn.utils.validation import _num_samples

from sklearn_ical.exceptions import (
    BatchClippedWarning,
    EqualUtilitiesWarning,
    ReferenceSaturatedWarning,
)

SLACK = 1e-9  # relative; the sum of the costs may exceed a budget by rounding


def check_parameters(estimator: Any) -> None:
    """Check an estimator's hyper-parameters against its ``_parameter_constraints``."""
    validate_parameter_constraints(
        estimator._parameter_constraints,
        estimator.get_params(deep=False),
        caller_name=type(estimator).__name__,
    )
    for name, value in estimator.get_params(deep=False).items():
        # A bool is an int to Python, so a range of integers lets it pass.
        rules = estimator._parameter_constraints.get(name, ["boolean"])
        if isinstance(value, bool | np.bool_) and "boolean" not in rules:
            raise TypeError(
                f"The {name!r} parameter of {type(estimator).__name__} must not be a bool. Got "
                f"{value!r} instead."
            )


def check_integer(value: Any, name: str, caller: str, *, minimum: int = 1) -> int:
    """Return `value` as an int; it must be an integer (no bool, no float) of at least `minimum`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name} must be an integer >= {minimum}. Got {value!r} of type "
            f"{type(value).__name__} in {caller}."
        )
    if value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}. Got {value!r} in {caller}.")
    return int(value)


def n_rows(X: Any, name: str = "X_pool") -> int:
    """Return the number of rows of any input that a model accepts."""
    _check_torch_data(X, name)
    inputs = inputs_of(X)
    if inputs:
        counts = {key: n_rows(part, name) for key, part in inputs.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(
                f"{name} must have equally many rows in each of its inputs. Got {counts!r}."
            )
        return next(iter(counts.values()))
    if X is None or isinstance(X, str | bytes | Mapping) or not isinstance(X, Sized):
        if not hasattr(X, "shape"):
            raise TypeError(
                f"{name} must be a collection of rows (array, sparse matrix, frame or list). "
                f"Got {type(X).__name__} instead."
            )
    try:
        return int(_num_samples(X))
    except TypeError as err:
        raise TypeError(
            f"{name} must be a collection of rows (array, sparse matrix, frame or list). "
            f"Got {type(X).__name__} instead: {err}"
        ) from err


def inputs_of(X: Any) -> dict[Any, Any]:
    """Return the inputs of rows that have several, by name or index; {} for other rows.

    These are dicts of arrays, and tuples of arrays if one of them has two axes or more; other
    tuples hold rows.
    """
    if hasattr(X, "shape") or not isinstance(X, Mapping | tuple):
        return {}
    inputs = dict(X) if isinstance(X, Mapping) else dict(enumerate(X))
    arrays = all(hasattr(part, "shape") for part in inputs.values())
    named = isinstance(X, Mapping) or any(len(getattr(p, "shape", ())) > 1 for p in X)
    return inputs if arrays and named else {}


def as_numbers(values: Any, name: str, caller: str) -> np.ndarray:
    """Return `values` as a float64 array, or raise if they are not plain numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as err:
        raise TypeError(
            f"{name} must be numbers in an array or list. Got {values!r} in {caller}."
        ) from err


def numeric_rows(X: Any, name: str, caller: str, way_out: str) -> Any:
    """Return rows as a real host array (n_rows, n_features), or as a canonical CSR matrix.

    Any container of finite numbers is accepted: host arrays of any number of axes, sparse matrices,
    frames, lists. Copied only where it has to be converted, and never changed. `way_out` ends the
    message of an error: what to do about other rows.
    """
    X = without_data_set(X, name)
    rule = f"{name} must hold numbers without NaN or infinity"
    container = type(X).__name__
    if sparse.issparse(X):
        rows = sliceable(X)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        numbers_held = rows.data
    else:
        try:
            rows = np.asarray(X)
        except ValueError as err:
            raise ValueError(
                f"{rule}. Got a {container} of rows of unequal length in {caller}; {way_out}."
            ) from err
        rows = _without_objects(rows)
        numbers_held = rows
    if numbers_held.dtype.kind not in "biuf":
        raise TypeError(
            f"{rule}. Got a {container} of dtype {numbers_held.dtype} in {caller}; {way_out}."
        )
    wrong = ~np.isfinite(numbers_held)
    if wrong.any():
        raise ValueError(
            f"{rule}. Got a {container} with {numbers_held[wrong][0]} in {caller}; {way_out}."
        )
    return rows if sparse.issparse(X) else rows.reshape(len(rows), math.prod(rows.shape[1:]))


def _without_objects(array: np.ndarray) -> np.ndarray:
    """Return an array of objects that are all numbers as float64; any other as it is."""
    if array.dtype != object or any(isinstance(entry, str | bytes) for entry in array.flat):
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return array


def sliceable(X: Any) -> Any:
    """Return `X`, or its CSR form where its sparse format has no cheap rows (COO, CSC, ...)."""
    return X.tocsr() if sparse.issparse(X) and X.format != "csr" else X


def take_rows(X: Any, rows: Any) -> Any:
    """Return rows of `X` (a slice or an integer array) in the type of `X`."""
    inputs = inputs_of(X)
    if inputs:
        parts = {key: take_rows(part, rows) for key, part in inputs.items()}
        return tuple(parts.values()) if isinstance(X, tuple) else parts
    if is_data_set(X):
        data = sys.modules["torch.utils.data"]
        return data.Subset(X, np.arange(len(X))[rows].tolist())
    return _safe_indexing(X, rows)


def is_data_set(X: Any) -> bool:
    """Return whether rows are a Dataset of torch, which is not loaded for this."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(X, data.Dataset)


def _check_torch_data(X: Any, name: str) -> None:
    """Raise if rows are in a container of torch without rows by position."""
    data = sys.modules.get("torch.utils.data")
    if data is None:
        return
    kind = type(X).__name__
    if isinstance(X, data.DataLoader):
        raise TypeError(f"{name} must be rows, not batches. Got a {kind}; pass loader.dataset.")
    streams = isinstance(X, data.IterableDataset)
    if streams or (isinstance(X, data.Dataset) and not isinstance(X, Sized)):
        raise TypeError(
            f"{name} must be rows with a position each. Got {kind}, a Dataset "
            f"{'that only iterates' if streams else 'without a length'}; pass a Dataset with "
            "__len__ and __getitem__, or an array of its rows."
        )


def is_pair(item: Any, name: str = "X_pool") -> bool:
    """Return whether an item of a Dataset is (x, y), or x alone; raise if it is a longer tuple."""
    if not isinstance(item, tuple | list) or not item or isinstance(item[0], numbers.Number):
        return False
    if len(item) > 2:
        raise TypeError(
            f"The items of {name}, a Dataset, must be x or (x, y). Got a {type(item).__name__} of "
            f"{len(item)}; several inputs are one x, a tuple or dict."
        )
    return len(item) == 2


def without_labels(item: Any, name: str = "X_pool") -> Any:
    """Return the x of an item of a Dataset: of x itself, (x,) or (x, y)."""
    if is_pair(item, name):
        return item[0]
    if not isinstance(item, tuple | list) or not item:
        return item
    plain = isinstance(item[0], numbers.Number)
    return sys.modules["torch"].tensor(item) if plain else item[0]


def data_set_inputs(X: Any, name: str = "X_pool") -> Any:
    """Return the inputs of a Dataset of torch, stacked: a tensor, or a dict or tuple of tensors."""
    collate = sys.modules["torch.utils.data"].default_collate
    inputs = collate([without_labels(X[i], name) for i in range(len(X))])
    return tuple(inputs) if isinstance(inputs, list) else inputs


def without_data_set(X: Any, name: str) -> Any:
    """Return the inputs of a Dataset of torch as arrays; other rows as they are."""
    _check_torch_data(X, name)
    if not is_data_set(X):
        return X
    inputs = data_set_inputs(X, name)
    if isinstance(inputs, Mapping):
        return {key: np.asarray(values) for key, values in inputs.items()}
    return tuple(map(np.asarray, inputs)) if isinstance(inputs, tuple) else np.asarray(inputs)


def forest_input(forest: Any, X: Any) -> Any:
    """Return `X` as a fitted forest hands it to its trees, after the forest's own checks."""
    return forest._validate_X_predict(X)


def blas_threads() -> Any:
    """Return scikit-learn's controller of threads, for the BLAS libraries of this process."""
    return _get_threadpool_controller().select(user_api="blas")


def single_thread() -> Any:
    """Return a context in which BLAS and OpenMP use one thread."""
    return _get_threadpool_controller().limit(limits=1)


def target_location_and_scale(process: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the shift and scale of the targets of a fitted Gaussian process, (n_targets,) each."""
    return np.reshape(process._y_train_mean, -1), np.reshape(process._y_train_std, -1)


def check_positions(positions: Any, n: int, name: str, caller: str, what: str) -> np.ndarray:
    """Return integer positions in [0, n) as intp, in the order and multiplicity given."""
    try:
        array = np.asarray(positions)
    except ValueError as err:
        raise ValueError(
            f"{name} must be a rectangular array of positions in {what}. Got rows of unequal "
            f"length in {caller}."
        ) from err
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(
            f"{name} must hold integer positions in {what}. Got an array of dtype {array.dtype} "
            f"in {caller}."
        )
    wrong = (array < 0) | (array >= n)
    if wrong.any():
        raise ValueError(
            f"{name} must hold positions from 0 to {n - 1} in {what}. Got {array[wrong][0]} "
            f"in {caller}."
        )
    return array.astype(np.intp)


def check_weights(weights: Any, n_draws: int) -> np.ndarray:
    """Return draw weights as host float64 of sum 1; raise if they are not valid."""
    array = as_numbers(weights, "weights", "draw weights")
    if array.shape != (n_draws,):
        raise ValueError(
            f"weights must have one entry per draw, shape ({n_draws},). Got shape {array.shape}."
        )
    wrong = ~np.isfinite(array) | (array < 0)
    if wrong.any():
        raise ValueError(f"weights must be finite and >= 0. Got {array[wrong][0]}.")
    if abs(array.sum() - 1) > 1e-6:
        raise ValueError(
            f"weights must sum to 1. Got a sum of {array.sum():.6g}; pass weights / sum(weights)."
        )
    return array / array.sum()


def check_candidates(candidates: Any, n_pool: int, caller: str) -> np.ndarray:
    """Return the allowed positions, sorted; None allows the whole pool, a mask its True rows."""
    if n_pool == 0:
        raise ValueError(f"candidates is empty because X_pool has 0 rows. Got no row in {caller}.")
    if candidates is None:
        return np.arange(n_pool, dtype=np.intp)
    array = np.asarray(candidates)
    if array.ndim != 1:
        raise ValueError(
            f"candidates must be one-dimensional: positions or a boolean mask of length {n_pool}. "
            f"Got {type(candidates).__name__} of shape {array.shape} in {caller}."
        )
    if array.dtype == bool:
        if len(array) != n_pool:
            raise ValueError(
                f"A boolean candidates mask must have one entry per pool row, {n_pool}. "
                f"Got {len(array)} in {caller}."
            )
        array = np.flatnonzero(array)
    array = check_positions(array, n_pool, "candidates", caller, "the pool")
    if array.size == 0:
        raise ValueError(
            f"candidates allows no row, so there is nothing to choose from in {caller}. "
            "Pass at least one position, or None for the whole pool."
        )
    array, counts = np.unique(array, return_counts=True)
    if counts.max() > 1:
        raise ValueError(
            f"candidates must not repeat a position. Got {array[counts.argmax()]} "
            f"{counts.max()} times in {caller}."
        )
    return array


def clip_batch_size(batch_size: Any, n_candidates: int, caller: str) -> int:
    """Return `batch_size` as an int, clipped with a warning to the number of candidates."""
    batch_size = check_integer(batch_size, "batch_size", caller)
    if batch_size > n_candidates:
        warn(
            f"batch_size={batch_size} is more than the {n_candidates} candidates of {caller}; "
            "all candidates are returned.",
            BatchClippedWarning,
        )
    return min(batch_size, n_candidates)


def check_costs(
    costs: Any, n_points: int, caller: str, *, name: str = "costs", what: str = "the pool"
) -> np.ndarray:
    """Return the cost of each row as float64; raise if an entry is not a valid cost."""
    rule = f"{name} must hold one finite number > 0 for each of the {n_points} rows of {what}"
    try:
        array = np.asarray(costs)
    except ValueError as err:
        raise ValueError(f"{rule}. Got rows of unequal length in {caller}.") from err
    strange = array.dtype.kind not in "iufO"
    if strange or (array.dtype == object and any(isinstance(c, str | bytes) for c in array.flat)):
        raise TypeError(f"{rule}. Got an array of dtype {array.dtype} in {caller}: {costs!r}.")
    array = as_numbers(array, name, caller)
    if array.shape != (n_points,):
        raise ValueError(
            f"{rule}, shape ({n_points},), whichever of them may be picked. Got shape "
            f"{array.shape} in {caller}."
        )
    wrong = ~((array >= 1e-100) & (array <= 1e100))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{rule}, from 1e-100 to 1e100. Got {array[row]} for row {row} in {caller}; leave out "
            "rows that must not be picked."
        )
    return array


def check_budget(budget: Any, costs: np.ndarray | None, caller: str) -> float:
    """Return the largest total cost, with a margin for the rounding of a sum; inf for None.

    `costs` are those of the candidates, of which one must be affordable.
    """
    if budget is None:
        return np.inf
    if costs is None:
        raise ValueError(
            f"budget must come with costs. Got budget={budget!r} without costs in {caller}; pass "
            "costs, np.ones(n_pool) where every row costs 1."
        )
    if isinstance(budget, bool | np.bool_) or not isinstance(budget, numbers.Real):
        raise TypeError(
            "budget must be a finite number > 0, in the unit of costs. Got "
            f"{budget!r} of type {type(budget).__name__} in {caller}."
        )
    if not 0 < float(budget) < np.inf:
        raise ValueError(
            f"budget must be a finite number > 0, in the unit of costs. Got {budget!r} in "
            f"{caller}; pass None for no limit."
        )
    limit = float(budget) * (1 + SLACK)
    cheapest = float(costs.min())
    if cheapest > limit:
        raise ValueError(
            f"budget must cover the cost of at least one candidate. Got budget={budget!r} in "
            f"{caller}, where the cheapest candidate costs {cheapest!r}; raise budget or offer "
            "cheaper candidates."
        )
    return limit


def warn_equal_utilities(caller: str) -> None:
    """Warn that nothing distinguishes the candidates."""
    warn(
        f"All candidates left have equal utilities in {caller}; the lowest positions are chosen.",
        EqualUtilitiesWarning,
    )


def warn_saturated(caller: str, n_picks: int, n_reference: int) -> None:
    """Warn that further picks do not add to the coverage of the reference rows."""
    warn(
        f"After the first {n_picks} picks no candidate adds to the coverage of the {n_reference} "
        f"reference rows in {caller}; the rest of the batch covers them again. Use more reference "
        "rows, if there are more, to distinguish more candidates.",
        ReferenceSaturatedWarning,
    )


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the caller's own code that led here, however deep in the package."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sklearn_ical."):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)
