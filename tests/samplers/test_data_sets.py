"""Datasets of torch as rows of a pool, of a fit and of a simulation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import (
    ActiveLearner,
    BALDQuery,
    BaseQuery,
    CoreSetQuery,
    MarginQuery,
    simulate,
)
from sklearn_ical.samplers import BootstrapSampler

torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.5)


class Items(torch.utils.data.Dataset):
    """A Dataset of what a function makes of each position."""

    def __init__(self, item: Callable[[int], Any]) -> None:
        self.item = item

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> Any:
        return self.item(i)


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self) -> Any:
        return iter(X)


class WithoutLength(torch.utils.data.Dataset):
    def __getitem__(self, i: int) -> Any:
        return X[i]


class Dropping(torch.nn.Module):
    """Three probabilities of four numbers, that may come in two parts."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.last = torch.nn.Dropout(), torch.nn.Linear(4, 3)

    def forward(self, x: Any, more: Any = None) -> Any:
        if isinstance(x, list | tuple):
            x, more = x
        x = x if more is None else torch.cat([x, more], dim=1)
        return torch.softmax(self.last(self.drop(x)), dim=-1)


def net(module: Any = Dropping, **params: Any) -> Any:
    params = {"max_epochs": 1, "train_split": None, "verbose": 0, **params}
    return skorch.NeuralNetClassifier(module, criterion=torch.nn.NLLLoss, **params)


ONE_INPUT = {
    "arrays": Items(lambda i: X[i]),
    "lists": Items(lambda i: X[i].tolist()),
    "pairs": Items(lambda i: (X[i], Y[i])),
    "tensors": torch.utils.data.TensorDataset(torch.from_numpy(X)),
    "labeled tensors": torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)),
    "subset": torch.utils.data.Subset(Items(lambda i: (X[i], Y[i])), range(len(X))),
}
SEVERAL_INPUTS = {
    "dicts": Items(lambda i: {"x": X[i, :1], "more": X[i, 1:]}),
    "pairs of dicts": Items(lambda i: ({"x": X[i, :1], "more": X[i, 1:]}, Y[i])),
    "pairs of tuples": Items(lambda i: ((X[i, :1], X[i, 1:]), Y[i])),
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    torch.manual_seed(0)
    model = net().fit(X, Y)
    scaler = StandardScaler().fit(X)
    return {
        "net": model,
        "module": model.module_,
        "list of nets": [model, net(max_epochs=3).fit(X, Y)],
        "forest": RandomForestClassifier(8, random_state=0).fit(X, Y),
        "pipeline to a forest": make_pipeline(
            StandardScaler(), RandomForestClassifier(8, random_state=0)
        ).fit(X, Y),
        "pipeline to a net": make_pipeline(scaler, net()).fit(X, Y),
    }


@pytest.mark.parametrize("strategy", [MarginQuery(), BALDQuery(random_state=0)])
@pytest.mark.parametrize("pool", ONE_INPUT)
def test_data_set_is_queried_like_the_array_of_its_inputs(
    fitted: dict[str, Any], pool: str, strategy: BaseQuery
) -> None:
    allowed = np.arange(3, 50)
    for name, model in fitted.items():
        expected = strategy.query(model, X, 4, candidates=allowed)
        got = strategy.query(model, ONE_INPUT[pool], 4, candidates=allowed)
        np.testing.assert_array_equal(got, expected, err_msg=name)


@pytest.mark.parametrize("pool", SEVERAL_INPUTS)
def test_data_set_of_several_inputs_is_queried_like_their_arrays(
    fitted: dict[str, Any], pool: str
) -> None:
    for name in ("net", "module"):
        for strategy in (MarginQuery(), BALDQuery(random_state=0)):
            expected = strategy.query(fitted[name], X, 4)
            np.testing.assert_array_equal(
                strategy.query(fitted[name], SEVERAL_INPUTS[pool], 4), expected
            )


@pytest.mark.parametrize("model", ["net", "module", "forest", "none"])
def test_features_and_labeled_rows_may_be_data_sets(fitted: dict[str, Any], model: str) -> None:
    pool, labeled = ONE_INPUT["pairs"], torch.utils.data.Subset(ONE_INPUT["pairs"], range(9))
    strategy = CoreSetQuery(random_state=0)
    expected = strategy.query(fitted.get(model), X, 4, X_labeled=X[:9], y_labeled=Y[:9])
    got = strategy.query(fitted.get(model), pool, 4, X_labeled=labeled, y_labeled=Y[:9])
    np.testing.assert_array_equal(got, expected)


def test_labels_of_a_call_are_fitted_and_not_those_of_its_data_set() -> None:
    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = torch.nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return torch.softmax(self.last(x), dim=-1)

    wrong = Items(lambda i: (X[i], 0))
    draws = [
        BootstrapSampler(net(Plain), n_draws=2).fit(rows, Y).draw(None, 0) for rows in (X, wrong)
    ]
    np.testing.assert_array_equal(*(each(X).values for each in draws))


@pytest.mark.parametrize("item", [lambda i: X[i], lambda i: (X[i], 5)], ids=["x", "x, y"])
def test_refits_of_a_net_predict_the_items_of_a_pool(item: Callable[[int], Any]) -> None:
    plain = net(module=torch.nn.Linear, module__in_features=4, module__out_features=3)
    plain.set_params(criterion=torch.nn.CrossEntropyLoss).fit(X, Y)
    strategy, labeled = BALDQuery(random_state=0), {"X_labeled": X, "y_labeled": Y}
    expected = strategy.query(plain, X, 5, **labeled)
    np.testing.assert_array_equal(strategy.query(plain, Items(item), 5, **labeled), expected)


def test_data_set_in_a_loop_is_the_array_of_its_inputs() -> None:
    forest = RandomForestClassifier(5, random_state=0)
    loop: dict[str, Any] = {"batch_size": 3, "n_rounds": 2, "random_state": 0, "n_initial": 9}
    data, given = ONE_INPUT["pairs"], []
    for rows in (X, data):
        run = simulate(forest, rows, Y, MarginQuery(), X_test=rows, y_test=Y, **loop)
        learner = ActiveLearner(forest, MarginQuery()).fit(rows, Y).teach(rows, Y)
        given.append((run.scores, learner.query(rows, 5).tolist()))
    assert str(given[0]) == str(given[1])


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (
            torch.utils.data.DataLoader(ONE_INPUT["pairs"]),
            "must be rows, not batches. Got a DataLoader; pass loader.dataset",
        ),
        (Stream(), "Got Stream, a Dataset that only iterates; pass a Dataset with __len__"),
        (WithoutLength(), "Got WithoutLength, a Dataset without a length; pass a Dataset with"),
        (
            Items(lambda i: (X[i, :1], X[i, 1:], Y[i])),
            r"items of X\w*, a Dataset, must be x or \(x, y\). Got a tuple of 3",
        ),
    ],
    ids=["loader", "stream", "no length", "triples"],
)
def test_other_data_of_torch_are_refused_with_a_way_out(
    fitted: dict[str, Any], rows: Any, match: str
) -> None:
    forest = RandomForestClassifier()
    for ask in (
        lambda: MarginQuery().query(fitted["net"], rows, 3),
        lambda: BALDQuery().query(fitted["module"], rows, 3),
        lambda: MarginQuery().query(fitted["forest"], rows, 3),
        lambda: CoreSetQuery().query(None, rows, 3),
        lambda: simulate(forest, rows, Y, MarginQuery(), n_rounds=1),
        lambda: ActiveLearner(forest, MarginQuery()).fit(rows, Y),
        lambda: BootstrapSampler(forest).fit(rows, Y),
    ):
        with pytest.raises(TypeError, match=match):
            ask()
