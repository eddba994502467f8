"""A fitted net: batches in, checked probabilities or values out, its state restored.

A common interface of skorch nets and bare torch modules; dropout is not known here.
"""

import copy
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier, is_regressor

from sklearn_ical._typing import DependentRows, NetKind
from sklearn_ical._validation import (
    check_integer,
    data_set_inputs,
    is_data_set,
    is_pair,
    n_rows,
    take_rows,
    without_labels,
)
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._models import is_fitted, is_net, name_of, not_fitted
from sklearn_ical.samplers._torch._batches import copied, part_of, rows_of
from sklearn_ical.samplers._torch._traces import preserving_net
from sklearn_ical.samples import PredictionSamples

_ONE = threading.RLock()
NET_KINDS = ("proba", "value")
DEPENDENT_ROWS = ("raise", "allow")
BATCH_ROWS = 128
# Modules whose layers cannot be accessed while they run, and the way out.
OPAQUE_MODULES = (
    (torch.jit.ScriptModule, "is compiled by torch.jit; pass the module that it was made of"),
    (torch.nn.DataParallel, "spreads rows over devices; pass the module inside, .module"),
    (
        torch.nn.parallel.DistributedDataParallel,
        "spreads rows over processes; pass the module inside, .module",
    ),
)


class Net:
    """A fitted skorch net or a torch module, with its weights as they are now.

    Parameters
    ----------
    model : skorch net or torch.nn.Module
        Fitted. Not modified; later training does not change this object.
    kind, nonlinearity, classes, batch_size, dependent_rows
        As in :class:`MCDropoutSampler`.
    caller : str
        Name of the sampler, for messages.
    state : dict of str to tensor, default=None
        Weights and buffers to use instead of those of the model.
    """

    def __init__(
        self,
        model: Any,
        *,
        kind: NetKind | None,
        nonlinearity: Callable[[Any], Any] | None,
        classes: Any,
        batch_size: int | None,
        caller: str,
        dependent_rows: DependentRows = "raise",
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name_of(model)
        self.caller = caller
        if not is_net(model):
            raise UnsupportedModelError(
                f"model must be a fitted skorch net or a torch.nn.Module. Got {self.name} in "
                f"{caller}; get_sampler finds the sampler of other models."
            )
        self.kind = _net_kind(model, kind, caller)
        if nonlinearity is not None and not callable(nonlinearity):
            raise TypeError(
                "nonlinearity must be a function of the outputs, such as torch.nn.Softmax(dim=-1), "
                f"or None. Got {nonlinearity!r} in {caller}."
            )
        if dependent_rows not in DEPENDENT_ROWS:
            raise ValueError(
                f"dependent_rows must be one of {DEPENDENT_ROWS}. Got {dependent_rows!r} in "
                f"{caller}."
            )
        self.dependent_rows = dependent_rows
        # Whether predictions need no (further) test for dependence on the other rows of a batch.
        self.known_alone = dependent_rows == "allow"
        self.batch_size = None
        if batch_size is not None:
            self.batch_size = check_integer(batch_size, "batch_size", caller)
        self.skorch = not isinstance(model, torch.nn.Module)
        if self.skorch and not _is_initialized(model):
            raise not_fitted(model)
        self._model = _shared(model) if self.skorch else model
        self._body = _Body(self._model)
        self._check_modules()
        weights = dict(self._body.named_parameters()) | dict(self._body.named_buffers())
        if state is not None:
            prefix = "module_." if self.skorch else "model."
            weights |= {prefix + name: value for name, value in state.items()}
        self._state = {name: value.detach().clone() for name, value in weights.items()}
        layers = self._body.named_modules()
        self._rates = {
            name: m.p for name, m in layers if isinstance(m, torch.nn.modules.dropout._DropoutNd)
        }
        self.nonlinearity = nonlinearity
        if classes is not None and self.kind == "value":
            raise ValueError(f"classes must be None for real targets. Got {classes!r} in {caller}.")
        labels = getattr(model, "classes_", None) if classes is None else classes
        self._classes = None if labels is None or self.kind == "value" else np.array(labels)
        self._fixed = classes is not None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_body"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._body = _Body(self._model)  # of the modules that the copy of the net has

    def in_double(self) -> "Net":
        """Return the same net with its weights in float64."""
        double = copy.copy(self)
        double._body = self._body
        double._state = {
            name: value.double() if value.is_floating_point() else value
            for name, value in self._state.items()
        }
        return double

    def _check_modules(self) -> None:
        for module in self._body.modules():
            for refused, reason in OPAQUE_MODULES:
                if isinstance(module, refused):
                    inside = "" if module is self._model else f" inside {self.name}"
                    raise UnsupportedModelError(
                        f"{type(module).__name__}{inside} {reason}. Got it in {self.caller}."
                    )
            if hasattr(module, "_orig_mod"):
                raise UnsupportedModelError(
                    f"{self.name} is compiled by torch.compile, which hides what it does. Pass the "
                    f"module inside, ._orig_mod, or a net without compile, to {self.caller}."
                )

    @property
    def module(self) -> Any:
        """A module that holds all modules of the net."""
        return self._body

    @property
    def dtype(self) -> Any:
        """The numpy type of the floats of the net; float32 for shorter ones."""
        known = next((t for t in self._state.values() if t.is_floating_point()), None)
        return np.float64 if known is not None and known.dtype == torch.float64 else np.float32

    def classes(self, n_outputs: int | None = None) -> Any:
        """Return the labels of the columns of `n_outputs` outputs, None for values.

        Before the first evaluation, the number of outputs is that of the last linear layer.
        """
        if self.kind == "value":
            return None
        labels: Any = self._classes
        if n_outputs is None:
            n_outputs = len(labels) if self._fixed else self._likely_outputs()
        if labels is None or len(labels) != n_outputs:
            if self._fixed:
                raise ValueError(
                    f"classes must name the {n_outputs} outputs of {self.name}. Got {labels!r} in "
                    f"{self.caller}."
                )
            labels = np.arange(n_outputs)
        labels.flags.writeable = False
        return labels

    def _likely_outputs(self) -> int:
        """Return the number of outputs of the last layer that has `out_features`."""
        sizes = [m.out_features for m in self._body.modules() if hasattr(m, "out_features")]
        if sizes:
            return max(2, int(sizes[-1]))  # one output is for two classes
        return 2 if self._classes is None else len(self._classes)

    @contextmanager
    def _at_rest(self) -> Iterator[None]:
        """Run the net in eval mode and without gradients, and restore its state."""
        dropouts = {name: m for name, m in self._body.named_modules() if name in self._rates}
        now = {name: module.p for name, module in dropouts.items()}
        # A pass replaces the weights of the modules, which other threads may be running.
        with _ONE, preserving_net(self._model), torch.no_grad(), warnings.catch_warnings():
            # Nothing writes to the rows.
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            for module in self._body.modules():
                module.training = False
            try:
                for name, module in dropouts.items():
                    module.p = self._rates[name]
                yield
            finally:
                for name, module in dropouts.items():
                    module.p = now[name]

    def answers(self, X: Any, of_batch: Callable[[Any], Any]) -> Any:
        """Return the outputs of `of_batch` for the batches of `X`, joined, (n_rows, ...)."""
        total, start, values = n_rows(X), 0, None
        if total == 0:
            raise ValueError(f"X must have at least one row. Got 0 rows for {self.name}.")
        X = self._without_lists(X)
        with self._at_rest():
            for inputs in self._batches(X):
                outputs = of_batch(inputs)
                stop = start + len(outputs)
                if values is None:
                    values = outputs.new_empty((total, *outputs.shape[1:]))
                if len(outputs) != rows_of(inputs) or stop > total:
                    break
                values[start:stop] = outputs
                start = stop
        if start != total or values is None:
            raise UnsupportedModelError(
                f"{self.name} must give one output for each row. Got outputs for {start} of "
                f"{total} rows in {self.caller}; several inputs are passed as a dict or a tuple of "
                "arrays."
            )
        return values

    def samples(self, values: Any, **described: Any) -> PredictionSamples:
        """Return outputs (n_rows, n_draws, ...) as samples, checked."""
        try:
            return PredictionSamples(values, self.kind, **described)
        except ValueError as err:
            if self.kind == "value" or not torch.isfinite(values).all():
                raise ValueError(f"{self.name} gives no usable outputs. {err}") from err
            if "probabilities" not in str(err):
                raise
            sums = values.sum(-1)
            raise ValueError(
                f"{self.name} must give class probabilities. Got outputs from "
                f"{float(values.min()):.4g} to {float(values.max()):.4g}, with sums from "
                f"{float(sums.min()):.4g} to {float(sums.max()):.4g}, in {self.caller}. Where they "
                "are logits, pass nonlinearity=torch.nn.Softmax(dim=-1) (skorch: "
                "predict_nonlinearity, or the criterion CrossEntropyLoss); where they are not "
                "classes, kind='value'."
            ) from err

    def _batches(self, X: Any) -> Iterator[Any]:
        """Yield the inputs of consecutive rows of `X`, in the batch size of the net."""
        if not self.skorch:
            size = BATCH_ROWS if self.batch_size is None else self.batch_size
            total = n_rows(X)
            for start in range(0, total, size):
                rows = take_rows(X, slice(start, min(start + size, total)))
                yield self._as_tensors(data_set_inputs(rows) if is_data_set(rows) else rows)
            return
        from skorch.dataset import unpack_data

        dataset = self._model.get_dataset(in_pairs(X))
        iterator = self._model.get_iterator(dataset, training=False)
        self._check_order(iterator, n_rows(X))
        for batch in iterator:
            inputs, _ = unpack_data(batch)
            size = rows_of(inputs)
            step = size if self.batch_size is None else self.batch_size
            for start in range(0, size, step):
                yield part_of(inputs, slice(start, min(start + step, size)))

    def _check_order(self, iterator: Any, total: int) -> None:
        """Raise if a loader leaves out rows or changes their order, where that can be checked."""
        batches: Any = getattr(iterator, "batch_sampler", None)
        streams = torch.utils.data.IterableDataset
        if batches is None or isinstance(getattr(iterator, "dataset", None), streams):
            return
        order = [row for batch in batches for row in batch]
        if order != list(range(total)):
            raise ValueError(
                "iterator_valid must give each row once and in order (no shuffle, sampler or "
                f"drop_last), as draws belong to rows. Got {len(order)} of {total} rows, starting "
                f"with {order[:3]}, in {self.name} in {self.caller}."
            )

    def forward(self, inputs: Any, mode: Any = None) -> Any:
        """Return what one forward pass returns, unchecked.

        Parameters
        ----------
        inputs : object
            One batch, or a part of one.
        mode : context manager, default=None
            Entered for the forward pass alone.
        """
        state = dict(self._state)
        # Buffers that a forward pass writes to do not change the function.
        state |= {name: state[name].clone() for name, _ in self._body.named_buffers()}
        around = nullcontext() if mode is None else mode
        # Copies: some layers write to their inputs.
        return torch.func.functional_call(self._body, state, (copied(inputs), around))

    def outputs(self, inputs: Any, mode: Any = None) -> Any:
        """Return the outputs of one forward pass, (n_rows, n_classes) or (n_rows[, n_targets]).

        Parameters
        ----------
        inputs, mode
            As in :meth:`forward`.
        """
        raw = self.forward(inputs, mode)
        output = raw[0] if isinstance(raw, tuple | list) else raw
        if not isinstance(output, torch.Tensor):
            raise UnsupportedModelError(
                f"{self.name} must return a tensor, or a tuple that starts with one. Got "
                f"{type(output).__name__} in {self.caller}."
            )
        nonlinearity = self.nonlinearity
        if nonlinearity is None and self.skorch:
            nonlinearity = self._model._get_predict_nonlinearity()
        return self._shaped(output if nonlinearity is None else nonlinearity(output))

    def _shaped(self, output: Any) -> Any:
        if not output.is_floating_point():
            raise UnsupportedModelError(
                f"{self.name} must return real numbers. Got {output.dtype} in {self.caller}."
            )
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        if self.kind == "proba" and output.ndim == 1:  # probability of the second of two classes
            output = torch.stack([1 - output, output], dim=1)
        if output.ndim not in ((2,) if self.kind == "proba" else (1, 2)):
            rule = "(n_rows, n_classes)" if self.kind == "proba" else "(n_rows[, n_targets])"
            raise UnsupportedModelError(
                f"{self.name} must return outputs of shape {rule}. Got {tuple(output.shape)} in "
                f"{self.caller}."
            )
        return output

    def _without_lists(self, X: Any) -> Any:
        """Return rows of plain numbers in a list as an array; other rows as they are."""
        if not isinstance(X, list) or hasattr(X[0], "shape") or isinstance(X[0], str | Mapping):
            return X
        rows = np.asarray(X)
        return rows.astype(self.dtype) if rows.dtype.kind == "f" else rows

    def _as_tensors(self, rows: Any) -> Any:
        """Return rows for a bare module: on its device, floats in its dtype."""
        if isinstance(rows, Mapping):
            return {name: self._as_tensors(values) for name, values in rows.items()}
        if isinstance(rows, tuple):
            return tuple(self._as_tensors(values) for values in rows)
        rows = rows if isinstance(rows, torch.Tensor) else torch.as_tensor(np.asarray(rows))
        known = next((t for t in self._state.values() if t.is_floating_point()), rows)
        dtype = known.dtype if rows.is_floating_point() else rows.dtype
        return rows.detach().to(known.device, dtype)


class _Pairs(torch.utils.data.Dataset):
    """A Dataset whose items are pairs, as skorch reads them, of one without labels."""

    def __init__(self, inputs: Any) -> None:
        self.inputs = inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, i: int) -> tuple[Any, float]:
        return without_labels(self.inputs[i]), 0.0


def in_pairs(X: Any) -> Any:
    """Return a Dataset with items (x, y), and rows of other containers as they are."""
    return _Pairs(X) if is_data_set(X) and not is_pair(X[0]) else X


class _Body(torch.nn.Module):
    """All modules of a net in one module, for passes with given weights."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.net = None
        if isinstance(model, torch.nn.Module):
            self.model = model
        else:
            self.net = model
            for name in model._modules:
                setattr(self, f"{name}_", getattr(model, f"{name}_"))

    def forward(self, inputs: Any, mode: Any) -> Any:
        with mode:
            if self.net is not None:
                return self.net.evaluation_step((inputs, None), training=False)
            if isinstance(inputs, Mapping):
                return self.model(**inputs)
            return self.model(*inputs) if isinstance(inputs, tuple) else self.model(inputs)


def _is_initialized(net: Any) -> bool:
    return getattr(net, "initialized_", False) and is_fitted(net)


def _shared(net: Any) -> Any:
    """Return a skorch net with the same modules; a later fit of the original replaces its own.

    Copies by the copy module would copy the modules too.
    """
    shared = object.__new__(type(net))
    shared.__dict__.update(net.__dict__)
    return shared


def _net_kind(model: Any, kind: NetKind | None, caller: str) -> NetKind:
    """Return the kind of a net's predictions: `kind`, or that of its class."""
    if kind is None:
        return (
            "value" if not isinstance(model, torch.nn.Module) and is_regressor(model) else "proba"
        )
    if kind not in NET_KINDS:
        raise ValueError(f"kind must be one of {NET_KINDS}, or None. Got {kind!r} in {caller}.")
    sorts = {"proba": is_regressor, "value": is_classifier}
    if not isinstance(model, torch.nn.Module) and sorts[kind](model):
        raise ValueError(
            f"kind must be what {name_of(model)} predicts, or None. Got {kind!r} in {caller}."
        )
    return kind
