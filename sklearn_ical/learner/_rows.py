"""Labeled rows in the container they came in: kept, joined with new ones; no estimators here."""

import copy
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical import _array, _validation

OWNER = "ActiveLearner.teach"


def keep(rows: Any) -> Any:
    """Return a copy that no later change can reach; rows in a tuple as list, in others as array."""
    kind = _kind(rows)
    kept = copy.deepcopy(rows)
    if kind == _ARRAY or (kind is None and hasattr(kept, "__array__")):
        return np.asarray(kept)
    several = bool(_validation.inputs_of(rows))
    return list(kept) if isinstance(kept, tuple) and not several else kept


def check_like(new: Any, old: Any, name: str) -> None:
    """Refuse rows of another type, number of dimensions or number of columns than `old`."""
    kind = _kind(old)
    if kind is None:
        raise TypeError(
            f"{name} can be joined with what was given before if that is an array, a sparse "
            "matrix, a pandas or polars frame or series, a list, or a dict of these. Got "
            f"{_type_name(old)} before {OWNER}; call fit with one of these."
        )
    if _kind(new) != kind:
        raise TypeError(
            f"{name} must have the type that was given before, {_type_name(old)}. Got "
            f"{_type_name(new)} in {OWNER}; convert it, or call fit with all rows."
        )
    if isinstance(old, dict | tuple):
        _check_inputs(old, new, name)
    elif isinstance(old, list):
        _check_rows_of_list(old, new, name)
    elif not hasattr(old, "columns"):
        _check_shape(tuple(old.shape), tuple(new.shape), name)
    else:
        _check_columns(list(old.columns), list(new.columns), name)


def join(old: Any, new: Any, name: str) -> Any:
    """Return the rows of `old` and then those of `new` in the type of `old`; neither is changed.

    Raises a TypeError for another type or for values of another sort, and a ValueError for
    columns that are not those of `old`.
    """
    check_like(new, old, name)
    return _JOINS.get(_kind(old), _join_other_arrays)(old, new, name)


def labels_like(labels: Any, old: Any) -> Any:
    """Return a plain list of labels, such as answers come in, in the type of the earlier labels."""
    kind = _kind(old)
    if not isinstance(labels, list) or kind not in (_ARRAY, _PANDAS_SERIES, _POLARS_SERIES):
        return labels
    if kind == _PANDAS_SERIES:
        return _pandas().Series(labels)
    if kind == _POLARS_SERIES:
        return _polars().Series(values=labels, strict=False)
    # Objects, because numpy would turn [1, "a"] into texts without a word.
    return np.array(labels, dtype=object)


def missing(labels: Any) -> np.ndarray:
    """Tell for each row whether a label is None, NaN or NA, or has one among its outputs."""
    if sparse.issparse(labels):
        return np.zeros(labels.shape[0], dtype=bool)
    host = _array.to_host(labels) if _array.is_array(labels) else labels
    return _validation.missing_rows(np.asarray(host, dtype=object))


def _join_arrays(old: np.ndarray, new: np.ndarray, name: str) -> np.ndarray:
    new = _recast(new, old.dtype)
    if new.dtype == object != old.dtype:
        new = _recast(new, np.array(new.tolist()).dtype)
    if _sort(new.dtype) != _sort(old.dtype):
        raise _unlike(name, old.dtype, new.dtype)
    return np.concatenate([old, new])


def _join_sparse(old: Any, new: Any, name: str) -> Any:
    return sparse.vstack([old, new], format=old.format)


def _join_lists(old: list[Any], new: list[Any], name: str) -> list[Any]:
    return [*old, *new]


def _join_inputs(old: Any, new: Any, name: str) -> Any:
    parts, more = _validation.inputs_of(old), _validation.inputs_of(new)
    joined = {key: join(part, more[key], f"{name}[{key!r}]") for key, part in parts.items()}
    return joined if isinstance(old, dict) else tuple(joined.values())


def _join_other_arrays(old: Any, new: Any, name: str) -> Any:
    return _array.namespace(old).concat([old, new])


def _join_pandas_frames(old: Any, new: Any, name: str) -> Any:
    if not new.columns.equals(old.columns):
        new = new.reindex(columns=old.columns)
    old = old.copy(deep=False)
    for place, column in enumerate(old.columns):
        both = _alike_series(old.iloc[:, place], new.iloc[:, place], f"{name}[{column!r}]")
        for frame, series in zip((old, new), both, strict=True):
            frame.isetitem(place, series)
    return _pandas().concat([old, new])


def _join_pandas_series(old: Any, new: Any, name: str) -> Any:
    old, new = _alike_series(old, new, name)
    return _pandas().concat([old, new.rename(old.name)])


def _alike_series(old: Any, new: Any, name: str) -> tuple[Any, Any]:
    """Return two pandas series of one dtype, or of numbers that have a common one."""
    pandas = _pandas()
    if isinstance(old.dtype, pandas.CategoricalDtype):
        dtype = _grown_categories(old, new, name)
        return old.astype(dtype), new.astype(dtype)
    with suppress(TypeError, ValueError):
        cast = new.astype(old.dtype)
        if ((cast == new) | (cast.isna() & new.isna())).all():
            return old, cast
    kinds = pandas.api.types
    for dtype in (old.dtype, new.dtype):
        if kinds.is_bool_dtype(dtype) or not kinds.is_numeric_dtype(dtype):
            raise _unlike(name, old.dtype, new.dtype)
    return old, new


def _grown_categories(old: Any, new: Any, name: str) -> Any:
    """Return a categorical dtype for both series; those known keep their codes."""
    values = new.cat.categories if hasattr(new, "cat") else new.dropna().unique()
    added = [value for value in values if value not in old.cat.categories]
    if added and old.cat.ordered:
        raise _unlike(name, old.dtype, new.dtype)
    return _pandas().CategoricalDtype([*old.cat.categories, *added], old.cat.ordered)


def _join_polars_frames(old: Any, new: Any, name: str) -> Any:
    columns = [_join_polars_series(old[c], new[c], f"{name}[{c!r}]") for c in old.columns]
    return _polars().DataFrame(columns)


def _join_polars_series(old: Any, new: Any, name: str) -> Any:
    polars = _polars()
    if new.dtype != old.dtype:
        with suppress(polars.exceptions.PolarsError):
            cast = new.cast(old.dtype)
            if cast.eq_missing(new).all():
                return polars.concat([old, cast])
        if not (old.dtype.is_numeric() and new.dtype.is_numeric()):
            raise _unlike(name, old.dtype, new.dtype)
    frames = [series.rename(old.name).to_frame() for series in (old, new)]
    return polars.concat(frames, how="vertical_relaxed").to_series()


def _check_inputs(old: Any, new: Any, name: str) -> None:
    """Refuse rows that have not the inputs of `old`."""
    parts, more = _validation.inputs_of(old), _validation.inputs_of(new)
    if set(parts) != set(more):
        raise ValueError(
            f"{name} must have the inputs of the rows before, {list(parts)}. Got {list(more)} in "
            f"{OWNER}."
        )
    for key, part in parts.items():
        check_like(more[key], part, f"{name}[{key!r}]")


def _check_columns(old: list[Any], new: list[Any], name: str) -> None:
    """Refuse a frame that has not just the columns of `old`, in any order."""
    if sorted(map(repr, old)) != sorted(map(repr, new)):
        raise ValueError(
            f"{name} must have the columns of the rows before, {old}. Got {new} in {OWNER}: "
            f"missing {[column for column in old if column not in new]}, unknown "
            f"{[column for column in new if column not in old]}."
        )


def _check_shape(old: tuple[int, ...], new: tuple[int, ...], name: str) -> None:
    """Refuse rows of another shape, a single row among them."""
    if len(old) != len(new):
        advice = ""
        if len(new) == 1:
            advice = (
                " Reshape your data either using array.reshape(-1, 1) if your data has a single "
                "feature or array.reshape(1, -1) if it contains a single sample."
            )
        raise ValueError(
            f"Expected {len(old)}D array, got {len(new)}D array instead: {name} of shape {new} "
            f"in {OWNER}, where rows of shape {old[1:]} were given before.{advice}"
        )
    if old[1:] != new[1:]:
        raise ValueError(
            f"{name} must have {_columns(old)} as the rows before. Got {_columns(new)} in {OWNER}."
        )


def _check_rows_of_list(old: Any, new: Any, name: str) -> None:
    """Refuse rows of another length, if those before are all of one."""
    widths = {_width(row) for row in old}
    for row in new:
        if len(widths) == 1 and _width(row) not in widths:
            _check_shape((len(old), *widths.pop()), (len(new), *_width(row)), name)


def _columns(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} columns" if len(shape) == 2 else f"rows of shape {shape[1:]}"


def _width(row: Any) -> tuple[int, ...]:
    """Return the shape of a row in a list; texts, numbers and dicts are a single value."""
    if isinstance(row, str | bytes | dict) or not hasattr(row, "__len__"):
        return ()
    return (len(row),)


def _recast(new: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `new` in another dtype if that changes no value, else as it is."""
    with suppress(TypeError, ValueError, OverflowError), np.errstate(all="ignore"):
        cast = new.astype(dtype)
        if bool(np.all((cast == new) | ((cast != cast) & (new != new)))):
            return cast
    return new


def _sort(dtype: np.dtype) -> str:
    """Return what sort of values a dtype holds; those of one sort have a common dtype."""
    return "number" if dtype.kind in "biufc" else dtype.kind


def _unlike(name: str, old: Any, new: Any) -> TypeError:
    return TypeError(
        f"{name} must hold values like those before, of dtype {old}. Got dtype {new} in {OWNER}, "
        "and a conversion would change values."
    )


def _kind(rows: Any) -> tuple[str, str] | None:
    """Return what rows can be joined as: a class in their MRO by package, or an array API."""
    for cls in type(rows).__mro__:
        key = (cls.__module__.partition(".")[0], cls.__name__)
        if key in _JOINS:
            return key
    return ("array API", _array.namespace(rows).__name__) if _array.is_array(rows) else None


def _type_name(rows: Any) -> str:
    cls = type(rows)
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}".removeprefix("builtins.")


def _pandas() -> Any:
    return sys.modules["pandas"]


def _polars() -> Any:
    return sys.modules["polars"]


_ARRAY = ("numpy", "ndarray")
_PANDAS_SERIES = ("pandas", "Series")
_POLARS_SERIES = ("polars", "Series")
_JOINS: dict[Any, Callable[[Any, Any, str], Any]] = {
    _ARRAY: _join_arrays,
    ("scipy", "spmatrix"): _join_sparse,
    ("scipy", "sparray"): _join_sparse,
    ("builtins", "list"): _join_lists,
    ("builtins", "dict"): _join_inputs,
    ("builtins", "tuple"): _join_inputs,
    ("pandas", "DataFrame"): _join_pandas_frames,
    _PANDAS_SERIES: _join_pandas_series,
    ("polars", "DataFrame"): _join_polars_frames,
    _POLARS_SERIES: _join_polars_series,
}
