"""The only file that knows array backends: namespace, device, host transfer and native fast paths.

Everything else asks for ``xp = namespace(x)`` once and uses standard functions of the array API.
"""

import math
from typing import Any

import array_api_compat
import numpy as np
import sklearn

Array = Any  # an array of any namespace of the array API standard

# Temporaries stay near the caches: about this many bytes, however large working_memory is.
CHUNK_BYTES = 16 * 2**20
# Numbers up to 2**64 and down to 2**-64 can be raised to the fourth power, and such powers added up
# and compared to the last digit, far within float64.
EASY_EXPONENT = 64
# Of their factors: with it the largest and the smallest number of float64 are in that range too.
MOST_EXPONENT = 1020


def is_array(x: Any) -> bool:
    """Return whether `x` is an array of numpy or of another array API namespace."""
    return array_api_compat.is_array_api_obj(x) and not array_api_compat.is_pydata_sparse_array(x)


def namespace(*arrays: Array) -> Any:
    """Return the array API namespace that all the arrays share."""
    return array_api_compat.array_namespace(*arrays)


def device(x: Array) -> Any:
    """Return the device of `x`, as its own namespace names it."""
    return array_api_compat.device(x)


def is_numpy(x: Array) -> bool:
    """Return whether `x` is a numpy array."""
    return array_api_compat.is_numpy_array(x)


def like(values: Any, x: Array, dtype: Any = None) -> Array:
    """Put host values into the namespace and on the device of `x`."""
    xp = namespace(x)
    if is_numpy(values) and not values.flags.writeable and not is_numpy(x):
        values = values.copy()  # torch shares memory, and rejects read-only arrays
    return xp.asarray(values, dtype=dtype, device=device(x))


def plain(x: Array) -> Array:
    """Return `x` as a plain array on the same memory: no autograd history, no numpy subclass."""
    if array_api_compat.is_torch_array(x):
        return x.detach()
    return np.asarray(x) if is_numpy(x) else x


def to_host(x: Any) -> np.ndarray:
    """Return `x` as a host numpy array; an array on the host shares its memory."""
    if array_api_compat.is_torch_array(x):
        x = x.detach().cpu()
        return x.float().numpy() if str(x.dtype) == "torch.bfloat16" else x.numpy()
    if is_array(x) and not is_numpy(x):
        host = namespace(x).__array_namespace_info__().devices()[0]
        return np.asarray(array_api_compat.to_device(x, host))
    return np.asarray(x)


def working_bytes() -> int:
    """Return scikit-learn's `working_memory` in bytes."""
    return int(sklearn.get_config()["working_memory"] * 2**20)


def chunk_rows(row_bytes: int) -> int:
    """Return how many rows fit in the working chunk, at least one."""
    return max(1, min(working_bytes(), CHUNK_BYTES) // max(1, int(row_bytes)))


def row_slices(n_rows: int, row_bytes: int) -> list[slice]:
    """Return consecutive slices of rows, each of which fits in the working chunk."""
    size = chunk_rows(row_bytes)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def as_floating(x: Array) -> Array:
    """Return `x` as float32 or float64: half precision becomes float32, other types float64."""
    xp = namespace(x)
    if x.dtype == xp.float64 or x.dtype == xp.float32:
        return x
    short = xp.isdtype(x.dtype, "real floating") and xp.finfo(x.dtype).bits <= 32
    return xp.astype(x, xp.float32 if short else xp.float64)


def as_float64(x: Array) -> Array:
    """Return `x` as float64 with its last axis contiguous.

    One memory order for every input makes the order of numpy's sums, and so their rounding, the
    same for a row wherever it lies and however its array was sliced or transposed.
    """
    xp = namespace(x)
    return xp.reshape(xp.astype(xp.reshape(x, (-1,)), xp.float64, copy=False), tuple(x.shape))


def largest(x: Array) -> float:
    """Return the largest absolute value of a real array, 0 for none."""
    xp = namespace(x)
    if 0 in x.shape:
        return 0.0
    return max(float(to_host(xp.max(x))), -float(to_host(xp.min(x))))


def range_factor(magnitude: float) -> float:
    """Return a power of two that numbers up to a magnitude are to be multiplied by.

    It brings them near 1 where their fourth powers could leave float64, without rounding as long as
    none of them is negligible beside the magnitude; else it is 1.
    """
    _, exponent = math.frexp(magnitude)
    if abs(exponent) <= EASY_EXPONENT:
        return 1.0
    return 2.0 ** max(-MOST_EXPONENT, min(-exponent, MOST_EXPONENT))


def weighted_mean(x: Array, weights: Array | None, axis: int) -> Array:
    """Average `x` over the axis of the draws; without weights, the sum over the count."""
    xp = namespace(x)
    if weights is None:
        return xp.sum(x, axis=axis) / x.shape[axis]
    shape = [1] * x.ndim
    shape[axis] = -1
    return xp.sum(x * xp.reshape(weights, tuple(shape)), axis=axis)


def running_sum(x: Array) -> Array:
    """Return float64 running sums over the last axis, added strictly from left to right.

    Parallel scans of other backends associate differently; adding one class after the other gives
    the same bits as ``numpy.cumsum`` on every backend.
    """
    if is_numpy(x):
        return np.cumsum(x, axis=-1, dtype=np.float64)
    xp = namespace(x)
    x = xp.astype(x, xp.float64)
    sums = [x[..., 0]]
    for c in range(1, x.shape[-1]):
        sums.append(sums[-1] + x[..., c])
    return xp.stack(sums, axis=-1)


def kth_largest(x: Array, k: int) -> float:
    """Return the k-th largest value of a one-dimensional array."""
    xp = namespace(x)
    if k == 1:
        return float(xp.max(x))
    if is_numpy(x):
        return float(np.partition(x, len(x) - k)[len(x) - k])
    return float(xp.sort(x)[x.shape[0] - k])


def unique_rows(x: Array) -> tuple[Array, Array]:
    """Return the distinct rows of a (n, m) integer array and, for each row, which one it is.

    Backends without a row-wise unique keep every row, which is slower and equally correct.
    """
    if is_numpy(x):
        packed = np.ascontiguousarray(x).view(np.dtype((np.void, x.dtype.itemsize * x.shape[1])))
        _, first, inverse = np.unique(packed[:, 0], return_index=True, return_inverse=True)
        order = np.argsort(first)  # by first occurrence, so that they are read in sequence
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return x[first[order]], rank[inverse]
    xp = namespace(x)
    if array_api_compat.is_torch_array(x):
        return xp.unique(x, dim=0, return_inverse=True)
    return x, xp.arange(x.shape[0], device=device(x))


def smallest_codes(labels: Array) -> Array:
    """Return non-negative codes in the smallest integer type that all backends have."""
    xp = namespace(labels)
    top = int(xp.max(labels)) if labels.shape[0] else 0
    dtype = xp.uint8 if top < 256 else xp.int16 if top < 2**15 else xp.int32
    return xp.astype(labels, dtype, copy=False)


def count_true(x: Array) -> Array:
    """Count the true entries along the last axis of a boolean array, as int64."""
    if is_numpy(x):
        return np.bitwise_count(np.packbits(x, axis=-1)).sum(axis=-1, dtype=np.int64)
    xp = namespace(x)
    return xp.sum(xp.astype(x, xp.int64), axis=-1)


def matmul_into(out: Array, where: tuple[slice, slice], a: Array, b: Array) -> None:
    """Write ``a @ b`` into ``out[where]``; numpy does it without a copy."""
    if is_numpy(out):
        np.matmul(a, b, out=out[where])
    else:
        out[where] = a @ b
