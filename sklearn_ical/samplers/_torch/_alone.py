"""Whether the predictions of a net for a row depend on the other rows of its batch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._torch._batches import part_of, rows_of
from sklearn_ical.samplers._torch._nets import Net

# Errors of layers for a number of rows that they do not support.
PASS_ERRORS = (RuntimeError, ValueError, IndexError, AssertionError)
# Relative differences due to rounding, by the bits of the dtype.
ROUNDING_BY_BITS = {16: 2e-2, 32: 1e-4, 64: 1e-9}
ROUNDING_OF_ACCELERATORS = 2e-3  # which may reduce the precision of float32 products
# Number of rows to compare.
COMPARED_ROWS = 4


def depend_on_each_other(net: Net, inputs: Any, predict: Callable[[Net, Any], Any]) -> bool:
    """Return whether `predict(net, inputs)` depends on which rows are in a batch, or their order.

    Where it does, the comparison is made again in float64, as rounding errors may be amplified.
    """
    if not _differ_in_batches(net, inputs, predict):
        return False
    try:
        return _differ_in_batches(net.in_double(), in_double(inputs), predict)
    except (*PASS_ERRORS, TypeError):  # such as a layer or a device of float32 alone
        return True


def check_alone(net: Net, inputs: Any) -> None:
    """Raise if the predictions of a net without dropout depend on the other rows of a batch.

    Tested until a batch has rows that differ; not at all if the net allows dependent rows.
    """
    if net.known_alone or rows_of(inputs) == 1:
        return
    rows = some_rows(inputs, COMPARED_ROWS)
    expected = net.outputs(rows)
    if not close(net.outputs(rows), expected):  # random numbers of its own
        net.known_alone = True
    elif not torch.equal(expected, expected[:1].expand_as(expected)):
        if depend_on_each_other(net, rows, lambda net, rows: net.outputs(rows)):
            raise dependent_rows_error(net)
        net.known_alone = True


def dependent_rows_error(net: Net) -> UnsupportedModelError:
    """Return the error for a net whose predictions depend on the other rows of a batch."""
    return UnsupportedModelError(
        f"The prediction of {net.name} for a row must not depend on the other rows of its batch. "
        f"Got other outputs for the same rows in another order, or one by one, in {net.caller}, as "
        "with batch normalization without running statistics or attention over the wrong axis; "
        "remove such layers, or pass MCDropoutSampler(net, dependent_rows='allow') or "
        "DeepEnsembleSampler([net], dependent_rows='allow') as the model, whose predictions then "
        "change with the batches."
    )


def _differ_in_batches(net: Net, inputs: Any, predict: Callable[[Net, Any], Any]) -> bool:
    """Return whether predictions differ in another order, or for each row without the others."""
    expected, n = predict(net, inputs), rows_of(inputs)
    order = torch.arange(n - 1, -1, -1)
    if not close(predict(net, part_of(inputs, order)), expected[order]):
        return True
    for size in (1, 2):
        parts = [part_of(inputs, torch.arange(i, i + size) % n) for i in range(n)]
        try:
            firsts = [predict(net, part)[:1] for part in parts]
        except (*PASS_ERRORS, UnsupportedModelError):  # for a net that takes no single row
            continue
        return not close(torch.cat(firsts), expected)
    return True


def in_double(inputs: Any) -> Any:
    """Return a batch with its floating tensors in float64."""
    if isinstance(inputs, dict):
        return {name: in_double(values) for name, values in inputs.items()}
    if isinstance(inputs, list | tuple):
        return type(inputs)(in_double(values) for values in inputs)
    return inputs.double() if inputs.is_floating_point() else inputs


def some_rows(inputs: Any, n: int) -> Any:
    """Return `n` rows spread over a batch, some of them twice if there are fewer."""
    order = np.random.default_rng(0).permutation(rows_of(inputs))  # always the same ones
    return part_of(inputs, torch.from_numpy(np.resize(order, n)))


def close(got: Any, expected: Any) -> bool:
    """Return whether two outputs are equal up to rounding."""
    if got.shape != expected.shape:
        return False
    rtol = ROUNDING_BY_BITS[torch.finfo(got.dtype).bits]
    if got.device.type != "cpu":
        rtol = max(rtol, ROUNDING_OF_ACCELERATORS)
    scale = max(1.0, float(expected.nan_to_num().abs().max()))
    return bool(torch.allclose(got, expected, rtol=rtol, atol=rtol * scale, equal_nan=True))
