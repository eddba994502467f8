"""The input of the last linear layer of a net, as features of rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from sklearn_ical._array import to_host
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._torch._batches import Size, in_passes, rows_of
from sklearn_ical.samplers._torch._dropout import DROPOUTS
from sklearn_ical.samplers._torch._nets import Net


def find_embedding(model: Any) -> "NetEmbedding | None":
    """Return the embedding of a net, with its weights as they are now, or None."""
    net = Net(
        model,
        kind=None,
        nonlinearity=None,
        classes=None,
        batch_size=None,
        caller="get_embedding",
    )
    return NetEmbedding(net) if _linear_layers(net) else None


@dataclass(frozen=True)
class NetEmbedding:
    """Input of the last linear layer that runs in a forward pass of a net.

    Attributes
    ----------
    net : Net
        With a linear layer.
    """

    net: Net

    def __call__(self, X: Any) -> np.ndarray:
        """Return features (n_rows, n_features) on the host."""
        size = Size(2**62)  # the batches of the net, or less if memory runs out
        return to_host(self.net.answers(X, lambda rows: in_passes(rows, size, self._of_rows)))

    def _of_rows(self, inputs: Any) -> Any:
        """Return the features of the rows of one pass, (n_rows, n_features)."""
        mode = _LastInput(_linear_layers(self.net))
        self.net.forward(inputs, mode)
        features, n_rows = mode.last, rows_of(inputs)
        if features is None or features.ndim < 2 or len(features) != n_rows:
            shape = None if features is None else tuple(features.shape)
            raise UnsupportedModelError(
                f"The last linear layer of {self.net.name} must run, and its input must have one "
                f"entry for each of the {n_rows} rows on its first axis. Got an input of shape "
                f"{shape} in {self.net.caller}; pass features of the rows, or a function that "
                "makes them."
            )
        return features.flatten(1).cpu()


class _LastInput(TorchFunctionMode):
    """A forward pass without dropout that keeps the input of the last of some layers to run."""

    def __init__(self, layers: list[Any]) -> None:
        super().__init__()
        self.layers = layers
        self.last: Any = None
        self._hooks: list[Any] = []

    def __enter__(self) -> Any:
        self._hooks = [
            m.register_forward_pre_hook(self._keep, with_kwargs=True) for m in self.layers
        ]
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        super().__exit__(*error)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in DROPOUTS:
            return args[0] if args else kwargs["input"]
        return func(*args, **kwargs)

    def _keep(self, layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.last = args[0] if args else kwargs["input"]


def _linear_layers(net: Net) -> list[Any]:
    return [module for module in net.module.modules() if isinstance(module, torch.nn.Linear)]
