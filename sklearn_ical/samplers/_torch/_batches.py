"""One batch of rows in any container, and how many of them go into one pass of a net."""

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
    """Size of one pass, reduced when memory runs out.

    Attributes
    ----------
    n_rows : int
        Number of rows of one pass.
    """

    n_rows: int

    def halve(self, n_rows: int) -> bool:
        """Reduce the size below `n_rows` rows; return False if that is not possible."""
        if n_rows == 1:
            return False
        self.n_rows = n_rows // 2
        return True


def in_passes(inputs: Any, size: Size, of_rows: Callable[[Any], Any]) -> Any:
    """Return the output of `of_rows` for a batch, in parts of this size.

    If memory runs out, the size is halved and the part evaluated again.
    """
    total, start, outputs = rows_of(inputs), 0, []
    while start < total:
        stop = min(start + size.n_rows, total)
        rows = inputs if stop - start == total else part_of(inputs, slice(start, stop))
        try:
            outputs.append(of_rows(rows))
            start = stop
        except (RuntimeError, MemoryError) as err:
            if not _is_out_of_memory(err) or not size.halve(stop - start):
                raise
            _LOG.info("out of memory with %d rows: continuing with fewer", stop - start)
        if start < stop and torch.cuda.is_initialized():
            torch.cuda.empty_cache()
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def _is_out_of_memory(err: BaseException) -> bool:
    if isinstance(err, MemoryError | torch.OutOfMemoryError):
        return True
    return any(sign in str(err).lower() for sign in OUT_OF_MEMORY)


def rows_of(inputs: Any) -> int:
    """Return the number of rows of one batch, in any container."""
    if isinstance(inputs, Mapping):
        return rows_of(next(iter(inputs.values())))
    if isinstance(inputs, list | tuple):
        return rows_of(inputs[0])
    return len(inputs)


def part_of(inputs: Any, rows: Any) -> Any:
    """Return some rows of one batch: a slice, or an index tensor on the host."""
    if isinstance(inputs, Mapping):
        return {name: part_of(values, rows) for name, values in inputs.items()}
    if isinstance(inputs, list | tuple):
        return type(inputs)(part_of(values, rows) for values in inputs)
    return inputs[rows]


def copied(inputs: Any) -> Any:
    """Return a batch that can be written to."""
    if isinstance(inputs, Mapping):
        return {name: copied(values) for name, values in inputs.items()}
    if isinstance(inputs, list | tuple):
        return type(inputs)(copied(values) for values in inputs)
    return inputs.clone() if isinstance(inputs, torch.Tensor) else inputs.copy()


def form_of(inputs: Any) -> Any:
    """Return a key that batches of equally shaped rows share."""
    if isinstance(inputs, Mapping):
        return tuple((name, form_of(values)) for name, values in inputs.items())
    if isinstance(inputs, list | tuple):
        return tuple(form_of(part) for part in inputs)
    if not hasattr(inputs, "shape") or not hasattr(inputs, "dtype"):
        raise UnsupportedModelError(
            "Batches must be tensors, or lists, tuples or dicts of tensors, whose first axis are "
            f"the rows. Got {type(inputs).__name__} from the iterator of the net."
        )
    return tuple(inputs.shape[1:]), inputs.dtype
