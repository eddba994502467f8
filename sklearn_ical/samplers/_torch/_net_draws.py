"""Several nets as draws, and one net as a member among models of other kinds; no dropout here."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from sklearn_ical._array import to_host
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import first_rows
from sklearn_ical.samplers._torch._alone import check_alone
from sklearn_ical.samplers._torch._batches import Size, in_passes
from sklearn_ical.samplers._torch._nets import Net
from sklearn_ical.samples import PredictionSamples


def predictions(net: Net, X: Any) -> Any:
    """Return the outputs of a net without dropout, (n_rows, n_classes) or (n_rows[, n_targets])."""
    size = Size(net.batch_size or 2**62)

    def of_batch(inputs: Any) -> Any:
        check_alone(net, inputs)
        return in_passes(inputs, size, net.outputs)

    return net.answers(X, of_batch)


class NetDraws:
    """Nets as draws, one net per draw, as tensors on the device of the first.

    Parameters
    ----------
    nets : list of Net
        All classifiers or all regressors.
    weights : array of shape (n_draws,) or None
    """

    joint = False
    mean_differs = ""

    def __init__(self, nets: list[Net], weights: Any = None) -> None:
        self.nets = nets
        self.n_draws = len(nets)
        self.kind = nets[0].kind
        self.weights = weights
        self._n_outputs: list[Any] = [None] * len(nets)

    @property
    def classes(self) -> Any:
        """Labels of the columns: those of all nets. Final once rows have been evaluated."""
        if self.kind == "value":
            return None
        classes = np.unique(np.concatenate(self._seen()))
        classes.flags.writeable = False
        return classes

    def _seen(self) -> list[np.ndarray]:
        return [net.classes(n) for net, n in zip(self.nets, self._n_outputs, strict=True)]

    def prepare(self, X: Any) -> None:
        """Determine from a few rows how many outputs the nets have."""
        self(first_rows(X))

    def __call__(self, X: Any) -> PredictionSamples:
        outputs = [predictions(net, X) for net in self.nets]
        outputs = [output.to(outputs[0].device) for output in outputs]
        if self.kind == "proba":
            # Checked net by net, so that the error names the net.
            for net, output in zip(self.nets, outputs, strict=True):
                net.samples(output[:, None])
            self._n_outputs = [output.shape[1] for output in outputs]
            outputs = self._in_columns(outputs)
        elif len({output.shape for output in outputs}) > 1:
            shapes = [tuple(output.shape) for output in outputs]
            raise UnsupportedModelError(
                f"Members must predict the same targets. Got outputs of shapes {shapes} in "
                f"{self.nets[0].caller}."
            )
        values = torch.stack(outputs, dim=1)
        return self.nets[0].samples(values, classes=self.classes, weights=self.weights)

    def _in_columns(self, outputs: list[Any]) -> list[Any]:
        """Return outputs with a column for every class, 0 for those that a net does not have."""
        classes, laid = self.classes, []
        for output, seen in zip(outputs, self._seen(), strict=True):
            if not np.array_equal(seen, classes):
                wide = output.new_zeros((len(output), len(classes)))
                wide[:, torch.from_numpy(np.searchsorted(classes, seen)).to(wide.device)] = output
                output = wide
            laid.append(output)
        return laid


class NetMember:
    """A net with the methods of a fitted regressor; without dropout, its state restored.

    Parameters
    ----------
    net : Net
    """

    _estimator_type = "regressor"

    def __init__(self, net: Net) -> None:
        self.net = net

    def predict(self, X: Any) -> np.ndarray:
        """Return targets (n_rows[, n_targets])."""
        return to_host(predictions(self.net, X))


class ClassifierMember(NetMember):
    """A net with the methods of a fitted classifier."""

    _estimator_type = "classifier"

    @property
    def output_dtype(self) -> Any:
        """The floating type of the outputs."""
        return self.net.dtype

    @property
    def classes_(self) -> np.ndarray:
        """Labels of the outputs, as many as the last layer has."""
        return self.net.classes()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities (n_rows, n_classes)."""
        output = predictions(self.net, X)
        return to_host(self.net.samples(output[:, None]).values[:, 0])


def member_of(model: Any, caller: str) -> Any:
    """Return a net as a member of an ensemble of models of any kind."""
    net = Net(model, kind=None, nonlinearity=None, classes=None, batch_size=None, caller=caller)
    return NetMember(net) if net.kind == "value" else ClassifierMember(net)


def read_state(path: Path, template: Any, caller: str) -> dict[str, Any]:
    """Return the weights and buffers in a file that fit a module; nothing but tensors is read."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as err:
        raise FileNotFoundError(f"There is no state file {path} for {caller}.") from err
    except Exception as err:  # any error of unpickling or of archives
        raise ValueError(
            "A state file must hold a state_dict, as torch.save or save_params of skorch write it, "
            f"and nothing but tensors is read. Got another file, {path}, in {caller}."
        ) from err
    expected = getattr(template, "module_", template).state_dict()
    if not isinstance(state, dict):
        raise ValueError(
            f"A state file must hold a state_dict. Got a {type(state).__name__} in {path} in "
            f"{caller}."
        )
    wrong = set(expected) ^ set(state)
    wrong |= {
        name for name in expected if name in state and expected[name].shape != state[name].shape
    }
    if wrong:
        raise ValueError(
            f"The state in {path} must fit the template of {caller}. Got differences in "
            f"{sorted(wrong)}."
        )
    return {
        name: value.to(expected[name].device, expected[name].dtype) for name, value in state.items()
    }
