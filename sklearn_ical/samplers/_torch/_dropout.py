"""The dropout calls of a forward pass: how they are intercepted, and the axis of the rows.

The replacement of torch's own noise is defined elsewhere.
"""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# The functions of all dropout outside of fused layers, by what they drop: single entries, or whole
# channels. Those marked "alpha" preserve the mean and variance of SELU nets.
DROPOUTS = {
    F.dropout: ("entry", False),
    F.dropout1d: ("channel", False),
    F.dropout2d: ("channel", False),
    F.dropout3d: ("channel", False),
    F.alpha_dropout: ("entry", True),
    F.feature_alpha_dropout: ("channel", True),
    torch.dropout: ("entry", False),
    torch.dropout_: ("entry", False),
    torch.feature_dropout: ("channel", False),
    torch.feature_dropout_: ("channel", False),
    torch.alpha_dropout: ("entry", True),
    torch.alpha_dropout_: ("entry", True),
    torch.feature_alpha_dropout: ("channel", True),
    torch.feature_alpha_dropout_: ("channel", True),
}
IN_PLACE = {
    torch.dropout_,
    torch.feature_dropout_,
    torch.alpha_dropout_,
    torch.feature_alpha_dropout_,
}
# Number of axes of an input with a batch axis; with one less, torch adds that axis.
BATCHED_NDIM = {F.dropout1d: 3, F.dropout3d: 5}
RECURRENT = {torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu}
ATTENTION = {F.multi_head_attention_forward, F.scaled_dot_product_attention}


class NotSteadyError(Exception):
    """The dropout calls of a net differ between the rows of two passes."""


@dataclass(frozen=True)
class Call:
    """One dropout call of a forward pass.

    Attributes
    ----------
    p : float
        Probability of being dropped, > 0.
    alpha : bool
        Whether dropped entries become the limit of SELU.
    shape : tuple of int
        Shape of the noise as torch draws it for the rows of a pass.
    axis, factor : int
        The axis of the rows in the noise, -1 for none, and the number of consecutive entries of
        each row on it.
    apart : bool
        Whether these entries have separate masks, or share one.
    """

    p: float
    alpha: bool
    shape: tuple[int, ...]
    axis: int = -1
    factor: int = 1
    apart: bool = True

    @property
    def mask_shape(self) -> tuple[int, ...]:
        """Shape of the mask of one draw: that of the noise, without the axis of the rows."""
        shape = list(self.shape)
        if self.axis >= 0:
            shape[self.axis] = self.factor if self.apart else 1
        return tuple(shape)


class DropoutMode(TorchFunctionMode):
    """Intercepts every dropout call of a forward pass; a subclass defines what is done.

    Attributes
    ----------
    n_calls : int
        Active calls so far.
    off : int
        Dropouts inside fused layers that had to stay off.
    """

    def __init__(self) -> None:
        super().__init__()
        self.n_calls = 0
        self.off = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in DROPOUTS:
            return self._of_dropout(func, *args, **kwargs)
        if func in RECURRENT or func in ATTENTION:
            return self._of_fused(func, args, kwargs)
        result = func(*args, **kwargs)
        self.note(result)
        return result

    def note(self, result: Any) -> None:
        """Inspect the result of a torch function."""

    def drop(self, x: Any, call: Call, inplace: bool) -> Any:
        """Return the input of a dropout call with its noise applied."""
        raise NotImplementedError

    def keep(self, like: Any, call: Call) -> Any:
        """Return the noise of a fused layer, 1 where it keeps, in the shape of `like`."""
        raise NotImplementedError

    def _of_dropout(
        self,
        func: Any,
        input: Any,
        p: float = 0.5,
        training: bool = False,
        inplace: bool = False,
        **renamed: Any,
    ) -> Any:
        # `training` is ignored, under either of its names: nets run in eval mode.
        p = float(p)
        if not 0 < p <= 1:
            return func(input, p, False)  # which also raises if p is not a probability
        if input.is_nested:
            raise NotSteadyError("drops entries of a nested tensor, which has no axis of rows")
        unit, alpha = DROPOUTS[func]
        shape = list(input.shape)
        if unit == "channel":
            first = 1 if input.ndim == BATCHED_NDIM.get(func, 0) - 1 else 2
            shape[first:] = [1] * (input.ndim - first)
        call = Call(p, alpha, tuple(shape))
        result = self.drop(input, call, inplace or func in IN_PLACE)
        self.n_calls += 1
        self.note(result)
        return result

    def _of_fused(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        p, switched = _switched_on(func, args, kwargs)
        if p > 0 and switched is None:
            self.off += 1
        if p == 0 or switched is None:
            result = func(*args, **kwargs)
        else:
            with (
                _InnerNoise(self, p),
                sdpa_kernel(SDPBackend.MATH),
                torch.backends.cudnn.flags(enabled=False),
            ):
                result = func(*switched[0], **switched[1])
        for tensor in result if isinstance(result, tuple) else (result,):
            self.note(tensor)
        return result


def _switched_on(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[float, tuple[Any, dict[str, Any]] | None]:
    """Return the dropout probability inside a fused layer, and its arguments with dropout on.

    Packed sequences have None for these, as their rows are interleaved.
    """
    if func is F.scaled_dot_product_attention:
        p = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
        return float(p), (args, kwargs)
    if func is F.multi_head_attention_forward:
        bound = inspect.signature(func).bind(*args, **kwargs).arguments
        return float(bound["dropout_p"]), ((), {**bound, "training": True})
    packed = isinstance(args[3], list | tuple)  # the weights, which otherwise come before
    place = 6 if packed else 5
    n_layers, p = args[place - 1], float(args[place])
    if n_layers == 1:
        return 0.0, None
    return p, None if packed else ((*args[: place + 1], True, *args[place + 2 :]), kwargs)


class _InnerNoise(TorchDispatchMode):
    """Replaces the noise that a fused layer draws internally."""

    def __init__(self, outer: DropoutMode, p: float) -> None:
        super().__init__()
        self.outer = outer
        self.p = p

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.ops.aten.bernoulli_.float:
            return args[0].copy_(self._keep(args[0]))
        if func is torch.ops.aten.native_dropout.default:
            keep = self._keep(args[0])
            scale = 0.0 if self.p == 1 else 1 / (1 - self.p)
            return args[0] * keep * scale, keep.bool()
        return func(*args, **(kwargs or {}))

    def _keep(self, like: Any) -> Any:
        call = Call(self.p, False, tuple(like.shape))
        keep = self.outer.keep(like, call)
        self.outer.n_calls += 1
        return keep


class Trace(DropoutMode):
    """Records the dropout calls of a pass and the sizes of its tensors; drops nothing.

    Attributes
    ----------
    calls : list of Call
        Without an axis, which is determined from two traces.
    sizes : list of (int, tuple of int)
        Bytes and shape of every tensor made.
    first : int or None
        Number of these before the first call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.sizes: list[tuple[int, tuple[int, ...]]] = []
        self.first: int | None = None

    def note(self, result: Any) -> None:
        if isinstance(result, torch.Tensor):
            self.sizes.append((result.numel() * result.element_size(), tuple(result.shape)))

    def drop(self, x: Any, call: Call, inplace: bool) -> Any:
        self._write(call)
        return x

    def keep(self, like: Any, call: Call) -> Any:
        self._write(call)
        return torch.ones_like(like)

    def _write(self, call: Call) -> None:
        self.calls.append(call)
        self.first = len(self.sizes) if self.first is None else self.first


def located(few: Trace, more: Trace, n_few: int, n_more: int) -> list[Call]:
    """Return the calls of two traces of one net, with the axes of the rows.

    Parameters
    ----------
    few, more : Trace
        Of two passes.
    n_few, n_more : int
        The rows of each.

    Returns
    -------
    calls : list of Call

    Raises
    ------
    NotSteadyError
        If calls differ by more than the number of rows.
    """
    if len(few.calls) != len(more.calls):
        raise NotSteadyError(
            f"makes {len(few.calls)} dropout calls for {n_few} rows and {len(more.calls)} for "
            f"{n_more}"
        )
    calls = []
    for a, b in zip(few.calls, more.calls, strict=True):
        if (a.p, a.alpha, len(a.shape)) != (b.p, b.alpha, len(b.shape)):
            raise NotSteadyError("makes other dropout calls for other rows")
        axes = [
            i for i, pair in enumerate(zip(a.shape, b.shape, strict=True)) if len(set(pair)) > 1
        ]
        axis = axes[0] if axes else -1
        factor, rest = divmod(a.shape[axis], n_few) if axes else (1, 0)
        if len(axes) > 1 or rest or (axes and b.shape[axis] != factor * n_more):
            raise NotSteadyError(
                f"drops entries of a tensor whose shape, {a.shape} for {n_few} rows and {b.shape} "
                f"for {n_more}, is not one part per row: it mixes rows"
            )
        calls.append(Call(a.p, a.alpha, a.shape, axis, factor))
    return calls
