"""Identity of simulations: plain descriptions of their inputs, and their differences."""

import math
import types
from collections.abc import Iterator, Mapping
from typing import Any

import joblib
import numpy as np
import sklearn
from scipy import sparse

from sklearn_ical import __version__
from sklearn_ical._validation import n_rows

# Parameters that do not affect the result, or that the simulation sets itself.
WITHOUT_EFFECT = {"n_jobs", "random_state", "verbose"}


def versions() -> dict[str, str]:
    """Return the versions that the numbers of a simulation depend on most."""
    return {"sklearn_ical": __version__, "scikit-learn": sklearn.__version__}


def describe(value: Any) -> Any:
    """Return a JSON value that is equal for equal settings, in this process and in any other."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"  # which is equal to itself
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return describe(value.item())
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        kept = {k: describe(v) for k, v in params.items() if k not in WITHOUT_EFFECT}
        if hasattr(params.get("features"), "transform"):  # fitted, unlike other parameters
            kept["features fitted"] = str(joblib.hash(vars(params["features"])))
        return {"class": _name(type(value)), **kept}
    if isinstance(value, list | tuple) and len(value) < 100:
        return [describe(item) for item in value]
    if isinstance(value, Mapping) and len(value) < 100:
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, types.FunctionType):
        return _describe_function(value)
    if isinstance(value, type | types.BuiltinFunctionType):
        return _name(value)
    try:
        return f"{_name(type(value))} {joblib.hash(value)}"
    except Exception:  # any error of an object that cannot be pickled
        return {"class": _name(type(value)), **describe(getattr(value, "__dict__", {}))}


def _describe_function(function: Any) -> dict[str, Any]:
    """Return the name of a Python function, and the contents of its code and its context."""

    def code(block: types.CodeType) -> list[Any]:
        inner = [code(c) if isinstance(c, types.CodeType) else c for c in block.co_consts]
        return [block.co_code, block.co_names, inner]

    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return {
        "function": _name(function),
        "code": str(joblib.hash(code(function.__code__))),
        "context": [describe(value) for value in (function.__defaults__ or (), *cells)],
    }


def describe_data(X: Any) -> Any:
    """Return the type, the shape and hashes of the values of an array, a frame or a list."""
    if X is None:
        return None
    kind = {"type": _name(type(X)), "rows": n_rows(X, "X")}
    if hasattr(X, "columns") and not sparse.issparse(X):
        columns = [str(name) for name in X.columns]
        values = {c: _hash(X[name]) for c, name in zip(columns, X.columns, strict=True)}
        return {**kind, "columns": columns, "values": values}
    if sparse.issparse(X):
        return {**kind, "shape": list(X.shape), "values": _hash(X.tocsr())}
    array = np.asarray(X) if hasattr(X, "dtype") else X
    shape = list(array.shape) if hasattr(array, "shape") else [len(array)]
    dtype = str(array.dtype) if hasattr(array, "dtype") else None
    return {**kind, "shape": shape, "dtype": dtype, "values": _hash(array)}


def differences(theirs: Any, ours: Any) -> list[str]:
    """Return the differences, such as "strategy.n_reference is 200 there and 100 here"."""
    there, here = dict(_flat(theirs, "")), dict(_flat(ours, ""))
    different = []
    for key in dict.fromkeys([*there, *here]):
        if key not in there or key not in here or there[key] != here[key]:
            old, new = (repr(d[key]) if key in d else "absent" for d in (there, here))
            different.append(f"{key} is {old} there and {new} here")
    return different


def _flat(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested dicts and lists with their dotted names."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _flat(item, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for i, item in enumerate(value):
            yield from _flat(item, f"{key}[{i}]")
    else:
        yield key, value


def _hash(values: Any) -> str:
    """Return a hash of values that does not depend on their memory layout."""
    if sparse.issparse(values):
        return str(joblib.hash([values.data, values.indices, values.indptr]))
    array = np.ascontiguousarray(values) if hasattr(values, "dtype") else values
    return str(joblib.hash(array))


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"
