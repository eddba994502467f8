"""One batch of rows, whatever holds it, and how much of it goes into one pass of a net."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from sklearn_ical.exceptions import UnsupportedModelError

_LOG = logging.getLogger("sklearn_ical.samplers")
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


@dataclass
class Size:
    """How much goes into one pass; less once memory ran out.

    Attributes
    ----------
    n_rows : int
        Rows of one pass.
    """

    n_rows: int

    def halve(self, n_rows: int) -> bool:
        """Plan for less than `n_rows` rows; False where there is no less."""
        if n_rows == 1:
            return False
        self.n_rows = n_rows // 2
        return True


def in_passes(inputs: Any, size: Size, of_rows: Callable[[Any], Any]) -> Any:
    """Return what `of_rows` makes of a batch, in parts of the size planned.

    Where memory runs out, the size is halved and the part asked for again.
    """
    total, start, parts = rows_of(inputs), 0, []
    while start < total:
        stop = min(start + size.n_rows, total)
        rows = inputs if stop - start == total else part_of(inputs, slice(start, stop))
        try:
            parts.append(of_rows(rows))
            start = stop
        except (RuntimeError, MemoryError) as err:
            if not _is_out_of_memory(err) or not size.halve(stop - start):
                raise
            _LOG.info("out of memory with %d rows: going on with less", stop - start)
        if start < stop and torch.cuda.is_initialized():
            torch.cuda.empty_cache()
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _is_out_of_memory(err: BaseException) -> bool:
    if isinstance(err, MemoryError | torch.OutOfMemoryError):
        return True
    return any(sign in str(err).lower() for sign in OUT_OF_MEMORY)


def rows_of(inputs: Any) -> int:
    """Return the number of rows of one batch, whatever holds them."""
    if isinstance(inputs, Mapping):
        return rows_of(next(iter(inputs.values())))
    if isinstance(inputs, list | tuple):
        return rows_of(inputs[0])
    return len(inputs)


def part_of(inputs: Any, rows: Any) -> Any:
    """Return some rows of one batch: a slice, or an index tensor on the host."""
    if isinstance(inputs, Mapping):
        return {name: part_of(part, rows) for name, part in inputs.items()}
    if isinstance(inputs, list | tuple):
        return type(inputs)(part_of(part, rows) for part in inputs)
    return inputs[rows]


def copied(inputs: Any) -> Any:
    """Return a batch that may be written into."""
    if isinstance(inputs, Mapping):
        return {name: copied(part) for name, part in inputs.items()}
    if isinstance(inputs, list | tuple):
        return type(inputs)(copied(part) for part in inputs)
    return inputs.clone() if isinstance(inputs, torch.Tensor) else inputs.copy()


def form_of(inputs: Any) -> Any:
    """Return what batches of equally shaped rows have in common."""
    if isinstance(inputs, Mapping):
        return tuple((name, form_of(part)) for name, part in inputs.items())
    if isinstance(inputs, list | tuple):
        return tuple(form_of(part) for part in inputs)
    if not hasattr(inputs, "shape") or not hasattr(inputs, "dtype"):
        raise UnsupportedModelError(
            "Batches must be tensors, or lists, tuples or dicts of tensors, whose first axis are "
            f"the rows. Got {type(inputs).__name__} from the iterator of the net."
        )
    return tuple(inputs.shape[1:]), inputs.dtype
