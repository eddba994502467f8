"""A zoo of torch modules and fitted skorch nets, for tests of samplers of deep models; no tests."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("skorch")

import torch.nn.functional as F  # noqa: E402
from skorch import (  # noqa: E402
    NeuralNet,
    NeuralNetBinaryClassifier,
    NeuralNetClassifier,
    NeuralNetRegressor,
)
from torch import Tensor, nn  # noqa: E402

from tests.samplers.net_twins import AttentionTwin, TransformerTwin, Unrolled  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
N_FIT = 60
# Unlike the length of every other axis of the inputs and the layers below.
N_POOL = 13


def same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Case:
    """A model, rows for it, and what its raw outputs mean.

    Attributes
    ----------
    model : object
        A fitted skorch net, or a module.
    X : object
        N_POOL rows: an array, or a dict or tuple of such.
    answer : callable
        From the raw output of the module for one row to the row's probabilities or values.
    options : dict
        Of the sampler.
    twin : callable
        From the module to one that does the same by plain layers and calls of dropout alone.
    """

    model: Any
    X: Any
    answer: Callable[[Any], Tensor]
    options: dict[str, Any] = field(default_factory=dict)
    twin: Callable[[Any], nn.Module] = same

    @property
    def module(self) -> nn.Module:
        return getattr(self.model, "module_", self.model)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let torch use one thread: for nets this small, more only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def take(X: Any, rows: Any) -> Any:
    """Return rows of arrays in a dict or tuple, or of one array."""
    if isinstance(X, dict):
        return {key: value[rows] for key, value in X.items()}
    return tuple(value[rows] for value in X) if isinstance(X, tuple) else X[rows]


def call(module: nn.Module, X: Any) -> Any:
    """Call a module on rows as skorch does: a dict by names, a tuple as one list."""

    def tensor(value: Any) -> Tensor:
        return torch.as_tensor(np.array(value), device=DEVICE)

    if isinstance(X, dict):
        return module(**{key: tensor(value) for key, value in X.items()})
    return module([tensor(value) for value in X] if isinstance(X, tuple) else tensor(X))


def rows(*shape: int, n: int = N_POOL, seed: int = 0) -> np.ndarray:
    """Return n standard normal float32 rows of a shape; more rows of one seed begin alike."""
    return np.random.default_rng(seed).normal(size=(n, *shape)).astype(np.float32)


def labels(n_classes: int = 3) -> np.ndarray:
    return np.arange(N_FIT) % n_classes


def fit(
    build: Callable[[], nn.Module],
    X: Any,
    y: np.ndarray,
    net: type[NeuralNet] = NeuralNetClassifier,
    **params: Any,
) -> Any:
    """Return a skorch net fitted for one epoch, from the same weights each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        defaults: dict[str, Any] = {"train_split": None, "verbose": 0, "max_epochs": 1}
        defaults |= {"batch_size": 30, "lr": 0.1, "device": DEVICE}
        return net(build(), **(defaults | params)).fit(X, y)


def built(build: Callable[[], nn.Module]) -> nn.Module:
    """Return a module with the same weights each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().to(DEVICE)


softmax = partial(torch.softmax, dim=-1)


def first(output: tuple[Tensor, ...]) -> Tensor:
    return softmax(output[0])


class Net(nn.Module):
    """Four inputs to 16 hidden units, and those to three logits; subclasses put dropout between."""

    def __init__(self, n_inputs: int = 4, n_outputs: int = 3) -> None:
        super().__init__()
        self.trunk = nn.Linear(n_inputs, 16)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(16, n_outputs)

    def hidden(self, x: Tensor) -> Tensor:
        return torch.tanh(self.trunk(x))

    def forward(self, x: Tensor) -> Any:
        return self.head(self.drop(self.hidden(x)))


class Functional(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.dropout(self.hidden(x), 0.4, training=self.training))


class TorchFunction(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.dropout(self.hidden(x), 0.4, self.training))


class AlwaysOn(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.dropout(self.hidden(x), 0.4))


class Functional2d(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 5, 3)
        self.head = nn.Linear(80, 3)

    def forward(self, x: Tensor) -> Tensor:
        maps = F.dropout2d(torch.relu(self.conv(x)), p=0.4, training=self.training)
        return self.head(maps.flatten(1))


class SameTwice(Net):
    """One dropout module called twice, around one that is switched off."""

    def __init__(self) -> None:
        super().__init__()
        self.off = nn.Dropout(0.0)
        self.middle = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.off(self.drop(self.hidden(x)))
        return self.head(self.drop(torch.tanh(self.middle(hidden))))


class InPlaceIgnored(Net):
    """A dropout in place whose result is not used but through the tensor that it changes."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x).clone()
        F.dropout(hidden, 0.5, self.training, inplace=True)
        return self.head(hidden)


class TwoHeads(Net):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.drop(self.hidden(x))
        return self.head(hidden), self.other(hidden)


class TwoHeadDropouts(TwoHeads):
    """Each head with its own dropout of one trunk; that of the second output comes first."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.hidden(x)
        other = self.other(self.drop(hidden))
        return self.head(self.drop(hidden)), other


class SkipAround(Net):
    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(x)
        return self.head(hidden + self.drop(hidden))


class ConcatAround(Net):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(20, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.cat([self.drop(self.hidden(x)), x], dim=1))


class SkipAfter(Net):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.3))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.drop(self.hidden(x))
        return self.head(hidden + self.block(hidden))


class FlattenTime(Net):
    """(n, 5, 4) to (n * 5, 4) before the dropout and back after it, by the number of rows."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        hidden = self.drop(self.hidden(x.reshape(-1, 4)))
        return self.head(hidden).reshape(n, 5, 3).mean(dim=1)


class FlattenTimeOpen(Net):
    """The same, where the way back takes any number of rows."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.drop(self.hidden(x.reshape(-1, 4)))
        return self.head(hidden).reshape(-1, 5, 3).mean(dim=1)


class SequenceFirst(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.hidden(x.transpose(0, 1)))).mean(dim=0)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module] = nn.LSTM, p: float = 0.5, **options: Any) -> None:
        super().__init__()
        self.memory = kind(4, 6, batch_first=True, **options)
        self.drop = nn.Dropout(p)
        self.head = nn.Linear(12 if self.memory.bidirectional else 6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.memory(x)[0][:, -1]))


class Packed(Recurrent):
    """The same for sequences of unequal lengths, the longest first."""

    def __init__(self) -> None:
        super().__init__(num_layers=2, dropout=0.3)

    def forward(self, x: Tensor) -> Tensor:
        lengths = torch.arange(len(x), 0, -1).clamp(max=x.shape[1])
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        return self.head(self.drop(self.memory(packed)[1][0][-1]))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(self.embed(x)).mean(dim=1))


class AttentionOnly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(4, 2, dropout=0.3, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attend(x, x, x)[0].mean(dim=1))


class MixBefore(Net):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean(0))


class MixAfter(Net):
    def forward(self, x: Tensor) -> Tensor:
        hidden = self.drop(self.hidden(x))
        return self.head(hidden - hidden.mean(0))


class Flip(Net):
    """The rows in reverse order through the dropout, and back."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flip(0)).flip(0)


class ByName(Net):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(torch.cat([a, b], dim=1))


class ByList(Net):
    def forward(self, inputs: list[Tensor]) -> Tensor:  # type: ignore[override]
        return super().forward(torch.cat(list(inputs), dim=1))


class Embedded(Net):
    def __init__(self) -> None:
        super().__init__(6)
        self.embed = nn.Embedding(10, 6)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.embed(x).mean(dim=1))


class Flat(Net):
    """One output without an axis of its own."""

    def __init__(self) -> None:
        super().__init__(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[:, 0]


class FirstHeadNet(NeuralNetClassifier):
    """A classifier of a module with several outputs, trained on the first."""

    def get_loss(self, y_pred: Any, y_true: Any, *args: Any, **kwargs: Any) -> Tensor:
        return super().get_loss(y_pred[0], y_true, *args, **kwargs)


def mlp(*last: nn.Module, n_outputs: int = 3) -> Callable[[], nn.Module]:
    """Return a builder of a perceptron with dropout before the last linear layer."""
    return lambda: nn.Sequential(
        nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, n_outputs), *last
    )


def conv() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 3),
        nn.Dropout2d(0.3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(96, 8),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(8, 3),
    )


def normed() -> nn.Module:
    layers = [nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3)]
    return nn.Sequential(*layers)


def logits(
    build: Callable[[], nn.Module],
    *shape: int,
    net: type[NeuralNet] = NeuralNetClassifier,
    **described: Any,
) -> Callable[[], Case]:
    """Return a maker of a classifier with logits, fitted on normal rows of a shape."""

    def case() -> Case:
        X = rows(*shape, n=N_FIT, seed=1)
        model = fit(build, X, labels(), net, criterion=nn.CrossEntropyLoss)
        answer = first if net is FirstHeadNet else softmax
        return Case(model, rows(*shape), answer, **described)

    return case


def probabilities() -> Case:
    return Case(fit(mlp(nn.Softmax(-1)), rows(4, n=N_FIT, seed=1), labels()), rows(4), same)


def binary(build: Callable[[], nn.Module], criterion: type[nn.Module]) -> Callable[[], Case]:
    """Return a maker of a binary classifier with logits or probabilities of the class 1."""

    def answer(output: Tensor) -> Tensor:
        positive = output.reshape(-1)
        if criterion is nn.BCEWithLogitsLoss:
            positive = torch.sigmoid(positive)
        return torch.stack([1 - positive, positive], dim=1)

    def case() -> Case:
        y = labels(2).astype(np.float32)
        X = rows(4, n=N_FIT, seed=1)
        model = fit(build, X, y, NeuralNetBinaryClassifier, criterion=criterion)
        return Case(model, rows(4), answer)

    return case


def regression(build: Callable[[], nn.Module], *targets: int) -> Callable[[], Case]:
    """Return a maker of a regressor with targets of shape (n, *targets)."""

    def case() -> Case:
        X, y = rows(4, n=N_FIT, seed=1), rows(*targets, n=N_FIT, seed=2)
        model = fit(build, X, y, NeuralNetRegressor)
        return Case(model, rows(4), same if targets == (2,) else lambda output: output.reshape(-1))

    return case


def by_name() -> Case:
    X = {"a": rows(2, n=N_FIT, seed=1), "b": rows(2, n=N_FIT, seed=2)}
    model = fit(ByName, X, labels(), criterion=nn.CrossEntropyLoss)
    return Case(model, {"a": rows(2), "b": rows(2, seed=3)}, softmax)


def by_list() -> Case:
    X = (rows(2, n=N_FIT, seed=1), rows(2, n=N_FIT, seed=2))
    model = fit(ByList, X, labels(), criterion=nn.CrossEntropyLoss)
    return Case(model, (rows(2), rows(2, seed=3)), softmax)


def tokens() -> Case:
    codes = np.random.default_rng(0).integers(10, size=(N_FIT, 7))
    model = fit(Embedded, codes, labels(), criterion=nn.CrossEntropyLoss)
    return Case(model, codes[:N_POOL], softmax)


def double() -> Case:
    model = built(lambda: conv().double())
    X = rows(1, 6, 6).astype(np.float64)
    return Case(model, X, softmax, {"nonlinearity": nn.Softmax(-1)})


def bare(build: Callable[[], nn.Module], **options: Any) -> Callable[[], Case]:
    """Return a maker of a case of a module, as it is."""
    answer = softmax if "nonlinearity" in options else same
    return lambda: Case(built(build), rows(4), answer, options)


# The layers before the first dropout run once for each row.
FAST: dict[str, Callable[[], Case]] = {
    "logits": logits(mlp(), 4),
    "probabilities": probabilities,
    "conv": logits(conv, 1, 6, 6),
    "dropout1d": logits(
        lambda: nn.Sequential(
            nn.Conv1d(2, 5, 3), nn.Dropout1d(0.4), nn.Flatten(), nn.Linear(35, 3)
        ),
        *(2, 9),
    ),
    "dropout3d": logits(
        lambda: nn.Sequential(
            nn.Conv3d(1, 5, 2), nn.Dropout3d(0.4), nn.Flatten(), nn.Linear(135, 3)
        ),
        *(1, 4, 4, 4),
    ),
    "alpha": logits(
        lambda: nn.Sequential(nn.Linear(4, 16), nn.SELU(), nn.AlphaDropout(0.3), nn.Linear(16, 3)),
        4,
    ),
    "feature alpha": logits(
        lambda: nn.Sequential(
            nn.Conv2d(1, 5, 3),
            nn.SELU(),
            nn.FeatureAlphaDropout(0.3),
            nn.Flatten(),
            nn.Linear(80, 3),
        ),
        *(1, 6, 6),
    ),
    "functional": logits(Functional, 4),
    "functional 2d": logits(Functional2d, 1, 6, 6),
    "torch.dropout": logits(TorchFunction, 4),
    "always on": logits(AlwaysOn, 4),
    "in place": logits(
        lambda: nn.Sequential(
            nn.Linear(4, 16), nn.Dropout(0.5, inplace=True), nn.ReLU(), nn.Linear(16, 3)
        ),
        4,
    ),
    "dropout first": logits(lambda: nn.Sequential(nn.Dropout(0.3, inplace=True), Net()), 4),
    "dropout last": logits(
        lambda: nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3), nn.Dropout(0.5)),
        4,
    ),
    "same twice": logits(SameTwice, 4),
    "two heads": logits(TwoHeads, 4, net=FirstHeadNet),
    "batch norm": logits(normed, 4),
    "skip after": logits(SkipAfter, 4),
    "lstm": logits(Recurrent, 5, 4),
    "by name": by_name,
    "by list": by_list,
    "binary logits": binary(Flat, nn.BCEWithLogitsLoss),
    "binary probabilities": binary(mlp(nn.Sigmoid(), n_outputs=1), nn.BCELoss),
    "regression": regression(Flat),
    "regression column": regression(mlp(n_outputs=1), 1),
    "two targets": regression(mlp(n_outputs=2), 2),
    "tokens": tokens,
    "double": double,
    "module": bare(mlp(nn.Softmax(-1))),
    "module logits": bare(mlp(), nonlinearity=nn.Softmax(-1)),
    "module values": bare(mlp(n_outputs=2), kind="value"),
}
# Each draw is a pass of its own.
SLOW: dict[str, Callable[[], Case]] = {
    "skip around": logits(SkipAround, 4),
    "concat around": logits(ConcatAround, 4),
    "in place ignored": logits(InPlaceIgnored, 4),
    "flatten by rows": logits(FlattenTime, 5, 4),
    "flip": logits(Flip, 4),
    "deep lstm": logits(partial(Recurrent, num_layers=2, dropout=0.3), *(5, 4), twin=Unrolled),
    "deep gru": logits(
        partial(Recurrent, nn.GRU, num_layers=3, dropout=0.3, bidirectional=True),
        *(5, 4),
        twin=Unrolled,
    ),
    "recurrence alone": logits(
        partial(Recurrent, nn.RNN, 0.0, num_layers=2, dropout=0.3), *(5, 4), twin=Unrolled
    ),
    "transformer": logits(Transformer, 5, 4, twin=TransformerTwin),
    "attention alone": logits(AttentionOnly, 5, 4, twin=AttentionTwin),
}
# Either is right.
EITHER: dict[str, Callable[[], Case]] = {
    "two head dropouts": logits(TwoHeadDropouts, 4, net=FirstHeadNet),
    "flatten": logits(FlattenTimeOpen, 5, 4),
    "sequence first": logits(SequenceFirst, 5, 4),
}
ZOO = FAST | SLOW | EITHER


@cache
def case(name: str) -> Case:
    """Return the case of a name, made once; tests leave its model as it is."""
    return ZOO[name]()
