"""Labeled rows in their own container: copied, and joined with new ones; no estimators."""

import copy
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical import _array
from sklearn_ical._labels import missing_labels
from sklearn_ical._validation import inputs_of

CALLER = "ActiveLearner.teach"
ARRAY, PANDAS, POLARS = "numpy.ndarray", "pandas.Series", "polars.Series"
FRAMES = {"pandas.DataFrame", "polars.DataFrame"}
SPARSE = {"scipy.spmatrix", "scipy.sparray"}
JOINABLE = {ARRAY, "list", "dict", "tuple", PANDAS, POLARS, *SPARSE, *FRAMES}


def keep(rows: Any) -> Any:
    """Return an independent copy; a tuple of rows as a list, other array-likes as an array."""
    kind, kept = _container(rows), copy.deepcopy(rows)
    if kind == ARRAY or (kind is None and hasattr(kept, "__array__")):
        return np.asarray(kept)
    return list(kept) if isinstance(kept, tuple) and not inputs_of(rows) else kept


def check_like(new: Any, old: Any, name: str) -> None:
    """Raise if rows have another type, or other columns or inputs, than those of `old`."""
    if _container(old) is None:
        raise TypeError(
            f"{name} can be joined with what was given before if that is an array, a sparse "
            "matrix, a pandas or polars frame or series, a list, or a dict of these. Got "
            f"{_classes(old)[0]} before {CALLER}; call fit with one of these."
        )
    if _container(new) != _container(old):
        raise TypeError(
            f"{name} must have the type that was given before, {_classes(old)[0]}. Got "
            f"{_classes(new)[0]} in {CALLER}; convert it, or call fit with all rows."
        )
    if isinstance(old, dict | tuple):
        _check_names(list(inputs_of(old)), list(inputs_of(new)), f"{name} must have the inputs")
        for key, part in inputs_of(old).items():
            check_like(inputs_of(new)[key], part, f"{name}[{key!r}]")
    elif _container(old) in FRAMES:
        _check_names(list(old.columns), list(new.columns), f"{name} must have the columns")
    else:
        _check_shapes(_row_shapes(old), _row_shapes(new), name)


def join(old: Any, new: Any, name: str) -> Any:
    """Return the rows of `old` and then those of `new` in the type of `old`; neither is changed.

    Raises a TypeError for another type or for values of another kind, and a ValueError for columns
    that are not those of `old`.
    """
    check_like(new, old, name)
    if isinstance(old, list):
        return [*old, *new]
    if isinstance(old, dict | tuple):
        parts, more = inputs_of(old), inputs_of(new)
        joined = {key: join(part, more[key], f"{name}[{key!r}]") for key, part in parts.items()}
        return joined if isinstance(old, dict) else tuple(joined.values())
    if sparse.issparse(old):
        return sparse.vstack([old, new], format=old.format)
    if _container(old) in FRAMES:
        return _join_frames(old, new, name)
    if _container(old) in (ARRAY, PANDAS, POLARS):
        return _join_values(old, new, name)
    return _array.namespace(old).concat([old, new])


def labels_like(labels: Any, old: Any) -> Any:
    """Return a plain list of labels in the type of the earlier labels."""
    kind = _container(old) if isinstance(labels, list) else None
    if kind == PANDAS:
        return type(old)(labels)
    if kind == POLARS:
        return type(old)(values=labels, strict=False)
    # Objects, because numpy would turn [1, "a"] into strings.
    return np.array(labels, dtype=object) if kind == ARRAY else labels


def _join_frames(old: Any, new: Any, name: str) -> Any:
    """Join pandas or polars frames column by column."""
    if _container(old) == "polars.DataFrame":
        columns = [_join_values(old[c], new[c], f"{name}[{c!r}]") for c in old.columns]
        return type(old)(columns)
    import pandas

    if not new.columns.equals(old.columns):
        new = new.reindex(columns=old.columns)
    columns = [
        _join_values(old.iloc[:, i], new.iloc[:, i], f"{name}[{column!r}]")
        for i, column in enumerate(old.columns)  # by index: two may have the same name
    ]
    return pandas.concat(columns, axis=1).set_axis(old.columns, axis=1)


def _join_values(old: Any, new: Any, name: str) -> Any:
    """Join arrays, or series of one library, in the dtype of `old` if that changes no value."""
    if isinstance(old, np.ndarray):
        if new.dtype == object != old.dtype:
            plain = np.array(new.tolist())
            new = plain if _same_values(plain, new) else new
        return np.concatenate([old, _with_dtype(new, old.dtype, name)])
    if _container(old) == POLARS:
        import polars

        frames = [s.to_frame(old.name) for s in (old, _with_dtype(new, old.dtype, name))]
        return polars.concat(frames, how="vertical_relaxed").to_series()
    import pandas

    if hasattr(old, "cat") and not old.cat.ordered:
        values = new.cat.categories if hasattr(new, "cat") else new.dropna().unique()
        old = old.cat.add_categories([v for v in values if v not in old.cat.categories])
    return pandas.concat([old, _with_dtype(new, old.dtype, name).rename(old.name)])


def _with_dtype(new: Any, dtype: Any, name: str) -> Any:
    """Return values in another dtype if that changes none, else as they are if both are numbers."""
    if new.dtype == dtype:
        return new
    with suppress(Exception), np.errstate(all="ignore"):  # each library has its own errors
        cast = new.cast(dtype) if _container(new) == POLARS else new.astype(dtype)
        if _same_values(cast, new):
            return cast
    if _sort(new.dtype) == _sort(dtype):
        return new
    raise TypeError(
        f"{name} must hold values like those before, of dtype {dtype}. Got dtype {new.dtype} in "
        f"{CALLER}, and a conversion would change values."
    )


def _sort(dtype: Any) -> Any:
    """Return the kind of values that a dtype holds; those of one kind have a common dtype."""
    if dtype.is_numeric() if hasattr(dtype, "is_numeric") else dtype.kind in "iufc":
        return "number"
    return dtype.kind if isinstance(dtype, np.dtype) else dtype


def _same_values(first: Any, second: Any) -> bool:
    """Return whether all values are equal, or missing in both."""
    lists = [rows.to_list() if hasattr(rows, "to_list") else rows for rows in (first, second)]
    values = [np.array(rows, dtype=object).ravel() for rows in lists]
    for objects in values:
        objects[missing_labels(objects)] = None
    return np.array_equal(values[0], values[1])


def _check_names(old: list[Any], new: list[Any], rule: str) -> None:
    """Raise if the names of columns or inputs are not those of `old`, in any order."""
    if sorted(map(repr, old)) != sorted(map(repr, new)):
        lacking, unknown = ([n for n in a if n not in b] for a, b in ((old, new), (new, old)))
        raise ValueError(
            f"{rule} of the rows before, {old}. Got {new} in {CALLER}: missing {lacking}, unknown "
            f"{unknown}."
        )


def _row_shapes(rows: Any) -> set[tuple[int, ...]]:
    """Return the shapes of the rows; anything else in a list is a single value."""
    if not isinstance(rows, list):
        return {tuple(rows.shape[1:])}
    return {(len(row),) if isinstance(row, list | tuple | np.ndarray) else () for row in rows}


def _check_shapes(old: set[tuple[int, ...]], new: set[tuple[int, ...]], name: str) -> None:
    """Raise if a row has another shape, where those before have one."""
    if len(old) != 1 or new <= old:
        return
    (before,), now = old, (new - old).pop()
    if len(before) == len(now):
        texts = [f"{s[0]} columns" if len(s) == 1 else f"rows of shape {s}" for s in (before, now)]
        raise ValueError(f"{name} must have {texts[0]} as before. Got {texts[1]} in {CALLER}.")
    raise ValueError(
        f"Expected {len(before) + 1}D array, got {len(now) + 1}D array instead: {name} in {CALLER} "
        f"must have rows of shape {before} as before. Got {now}. Reshape a single sample with "
        "array.reshape(1, -1), and a single feature with array.reshape(-1, 1)."
    )


def _classes(rows: Any) -> list[str]:
    """Return package and name of each class in the MRO."""
    names = [f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(rows).__mro__]
    return [name.removeprefix("builtins.") for name in names]


def _container(rows: Any) -> str | None:
    """Return the type that rows are joined as: one of their classes, or an array's namespace."""
    known = [name for name in _classes(rows) if name in JOINABLE]
    if not known and _array.is_array(rows):
        return _array.namespace(rows).__name__
    return known[0] if known else None
