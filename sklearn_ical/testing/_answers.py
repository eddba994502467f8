"""Comparison of the predictions of draws and the states of objects, up to rounding."""

import pickle
from hashlib import sha256
from io import BytesIO
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import BallTree, KDTree

from sklearn_ical.testing._require import require


def fingerprint(value: Any) -> str | None:
    """Return a hash of the pickled value; None if it cannot be pickled."""
    buffer = BytesIO()
    try:
        _Contents(buffer).dump(value)
    except Exception:  # pickling runs code of any origin; another check reports it
        return None
    return sha256(buffer.getbuffer()).hexdigest()


class _Contents(pickle.Pickler):
    """Pickles without the usage counters of some objects."""

    def reducer_override(self, obj: Any) -> Any:
        """Leave out the counters of neighbor trees, and the order flags of sparse rows."""
        if isinstance(obj, KDTree | BallTree):
            return list, ([np.asarray(array) for array in obj.get_arrays()],)
        if sparse.issparse(obj):
            return list, ([obj.format, obj.toarray()],)
        return NotImplemented


def tolerance(*arrays: Any, joint: bool = False) -> float:
    """Return the relative difference allowed for rounding, by the least precise dtype."""
    short = any(a.dtype.kind == "f" and a.dtype.itemsize < 8 for a in map(np.asarray, arrays))
    return 1e-5 if short else 1e-6 if joint else 1e-9


def close(got: Any, expected: Any, rtol: float) -> bool:
    """Return whether two arrays are equal up to a part of their largest entry."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        return False
    if got.dtype.kind not in "fiub" or expected.dtype.kind not in "fiub":
        return bool((got == expected).all())
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    return bool(np.allclose(got, expected, rtol=rtol, atol=rtol * scale))


def same_answers(got: Any, expected: Any, *, rtol: float | None = None) -> bool:
    """Return whether two samples have equal values and noise; bitwise with ``rtol=0``."""
    rtol = tolerance(got.values, expected.values) if rtol is None else rtol
    if got.kind != expected.kind or (got.noise_variance is None) != (
        expected.noise_variance is None
    ):
        return False
    noise_got, noise = (
        0.0 if s.noise_variance is None else s.noise_variance for s in (got, expected)
    )
    if rtol == 0:
        pairs = ((got.values, expected.values), (noise_got, noise))
        return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)
    return close(got.values, expected.values, rtol) and close(noise_got, noise, rtol)


def require_same_answers(
    got: Any, expected: Any, what: str, why: str, *, rtol: float | None = None
) -> None:
    """Raise if values or noise differ by more than rounding."""
    if same_answers(got, expected, rtol=rtol):
        return
    a, b = np.asarray(got.values), np.asarray(expected.values)
    if a.shape != b.shape:
        difference = f"shape {a.shape} instead of {b.shape}"
    elif np.array_equal(a, b):
        difference = f"noise variance {got.noise_variance!r} instead of {expected.noise_variance!r}"
    else:
        worst = np.unravel_index(
            np.argmax(a != b if a.dtype.kind not in "f" else abs(a - b)), a.shape
        )
        place = tuple(int(i) for i in worst)
        difference = f"{a[worst]!r} instead of {b[worst]!r} at (point, draw, ...) {place}"
    require(False, f"Expected the same predictions {what}. Got {difference}. {why}")
