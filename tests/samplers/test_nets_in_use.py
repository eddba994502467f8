"""Nets in queries, simulations and refits: what the rest of the package makes of them."""

import runpy
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_ical import (
    ActiveLearner,
    BALDQuery,
    BatchBALDQuery,
    ICALQuery,
    MarginQuery,
    MaxEntropyQuery,
    simulate,
)
from sklearn_ical.exceptions import NoDropoutError, UnsupportedModelError
from sklearn_ical.samplers import (
    BootstrapSampler,
    DeepEnsembleSampler,
    MCDropoutSampler,
    get_sampler,
)

torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")

ROOT = Path(__file__).resolve().parents[2]
X = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
CODES = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.5)


class Dropping(torch.nn.Module):
    """Three logits of four numbers, that may come in two parts."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.last = torch.nn.Linear(4, 12), torch.nn.Linear(12, 3)

    def forward(self, x: Any, more: Any = None) -> Any:
        if isinstance(x, list | tuple):
            x, more = x
        x = x if more is None else torch.cat([x, more], dim=1)
        return self.last(torch.nn.functional.dropout(torch.relu(self.inner(x)), 0.5, self.training))


def net(rows: Any = X, y: np.ndarray = CODES, **params: Any) -> Any:
    torch.manual_seed(0)
    params = {"max_epochs": 1, "train_split": None, "verbose": 0, **params}
    made = skorch.NeuralNetClassifier(Dropping, criterion=torch.nn.CrossEntropyLoss, **params)
    return made.fit(rows, y)


def test_pools_of_several_inputs_are_queried_like_one() -> None:
    named, several = {"x": X[:, :1], "more": X[:, 1:]}, (X[:, :1], X[:, 1:])
    one = net(max_epochs=0)
    expected = ICALQuery(random_state=0).query(one, X, batch_size=5)
    for pool in (named, several):
        got = ICALQuery(random_state=0).query(net(pool, max_epochs=0), pool, batch_size=5)
        np.testing.assert_array_equal(got, expected)
    module = torch.nn.Sequential(Dropping(), torch.nn.Softmax(dim=-1))
    module[0].load_state_dict(one.module_.state_dict())
    np.testing.assert_array_equal(
        ICALQuery(random_state=0).query(module, X, batch_size=5), expected
    )


def test_inputs_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"X_pool must have equally many rows .*'x': 90.*89"):
        ICALQuery().query(net(), {"x": X[:, :1], "more": X[1:, 1:]})


def test_data_set_of_torch_is_a_pool() -> None:
    pool = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(CODES))
    model = net()
    got = BALDQuery(random_state=0).query(model, pool, batch_size=5, candidates=np.arange(3, 40))
    expected = BALDQuery(random_state=0).query(model, X, batch_size=5, candidates=np.arange(3, 40))
    np.testing.assert_array_equal(got, expected)


def test_strategies_of_means_take_nets_without_dropout() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(dim=-1))
    proba = module(torch.from_numpy(X)).detach().numpy()
    margins = np.diff(np.sort(proba, axis=1)[:, -2:], axis=1)[:, 0]
    picks = MarginQuery().query(module, X, batch_size=4)
    np.testing.assert_array_equal(picks, np.argsort(margins)[:4])
    with pytest.raises(NoDropoutError, match="all 50 draws would be identical"):
        BatchBALDQuery().query(module, X, batch_size=4)


def linear_net(kind: Any = skorch.NeuralNetClassifier, n_outputs: int = 3) -> Any:
    """Return a net without dropout, not yet fitted."""
    torch.manual_seed(0)
    proba = kind is skorch.NeuralNetClassifier
    layers = [torch.nn.Linear(4, n_outputs), *([torch.nn.Softmax(dim=-1)] if proba else [])]
    loss = torch.nn.NLLLoss if proba else torch.nn.MSELoss
    return kind(
        torch.nn.Sequential(*layers), criterion=loss, max_epochs=1, train_split=None, verbose=0
    )


def test_net_without_dropout_is_refitted_on_labeled_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BootstrapSampler.__init__.__kwdefaults__, "n_draws", 4)  # to save time
    classifier, targets = linear_net().fit(X[:30], CODES[:30]), X[:30, :1]
    regressor = linear_net(skorch.NeuralNetRegressor, 1).fit(X[:30], targets)
    pipeline = make_pipeline(StandardScaler(), linear_net()).fit(X[:30], CODES[:30])
    around = TransformedTargetRegressor(
        linear_net(skorch.NeuralNetRegressor, 1), transformer=StandardScaler()
    ).fit(X[:30], targets)
    for model, y in (
        (classifier, CODES[:30]), (regressor, targets), (pipeline, CODES[:30]), (around, targets)
    ):  # fmt: skip
        expected = BALDQuery(random_state=0).query(
            BootstrapSampler(model, n_draws=4).fit(X[:30], y), X, 4
        )
        rows = {"X_labeled": X[:30], "y_labeled": y}
        np.testing.assert_array_equal(
            BALDQuery(random_state=0).query(model, X, 4, **rows), expected
        )
        assert len(set(expected.tolist())) == 4
    learner = ActiveLearner(linear_net(), BALDQuery(random_state=0)).fit(X[:30], CODES[:30])
    sampler = BootstrapSampler(learner.estimator_, n_draws=4).fit(X[:30], CODES[:30])
    np.testing.assert_array_equal(
        learner.query(X, 4), BALDQuery(random_state=0).query(sampler, X, 4)
    )


def test_net_with_dropout_ignores_labeled_rows() -> None:
    model = net()
    rows = {"X_labeled": X[:30], "y_labeled": CODES[:30]}
    for each in (model, make_pipeline(FunctionTransformer(), model), model.module_):
        options = {} if each is not model.module_ else {"nonlinearity": torch.nn.Softmax(dim=-1)}
        source = MCDropoutSampler(each, **options) if options else each
        expected = BALDQuery(random_state=0).query(source, X, 4)
        got = BALDQuery(random_state=0).query(source, X, 4, **rows)
        np.testing.assert_array_equal(got, expected)


def test_net_without_dropout_and_labeled_rows_is_refused_with_what_to_pass() -> None:
    model = linear_net().fit(X, CODES)
    rows = {"X_labeled": X, "y_labeled": CODES}
    with pytest.raises(NoDropoutError, match=r"query\(net, X_pool, X_labeled=X, y_labeled=y\)"):
        BALDQuery().query(model, X, 4)
    for given in ({}, rows):
        with pytest.raises(NoDropoutError, match="a skorch net around this module, with X_labeled"):
            BALDQuery().query(model.module_, X, 4, **given)
    # What was asked for by name is not replaced.
    with pytest.raises(NoDropoutError, match="no dropout with p > 0"):
        BALDQuery().query(MCDropoutSampler(model), X, 4, **rows)


def test_regressor_net_is_asked_for_draws_by_strategies_of_means() -> None:
    regressor = skorch.NeuralNetRegressor(
        torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1)),
        max_epochs=1, verbose=0,
    ).fit(X, X[:, :1])  # fmt: skip
    picks = MaxEntropyQuery(random_state=0).query(regressor, X, batch_size=3)
    samples = get_sampler(regressor).sample(X, random_state=0)
    assert samples.values.shape == (90, 50)
    assert len(set(picks.tolist())) == 3


def test_simulation_of_a_net_repeats_with_its_seed_and_leaves_the_generators() -> None:
    net(max_epochs=0)  # whatever torch sets up first
    states = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    estimator = skorch.NeuralNetClassifier(
        Dropping, criterion=torch.nn.CrossEntropyLoss, max_epochs=2, train_split=None, verbose=0
    )
    rest = {"X_test": X[60:], "y_test": CODES[60:], "scoring": ["accuracy", "neg_log_loss"]}
    rest |= {"initial": np.flatnonzero(CODES[:60] < 2)[:6], "n_rounds": 2, "batch_size": 3}
    runs = [
        simulate(estimator, X[:60], CODES[:60], BALDQuery(), random_state=seed, **rest)
        for seed in (0, 0, 1)
    ]
    assert runs[0] == runs[1] != runs[2]
    assert np.isfinite(runs[0].scores["neg_log_loss"]).all()  # though two of three classes are seen
    assert torch.equal(states[0], torch.get_rng_state())
    np.testing.assert_array_equal(states[1], np.random.get_state()[1])  # noqa: NPY002


def test_bootstrap_of_a_net_repeats_with_its_seed() -> None:
    sampler = BootstrapSampler(net(), n_draws=2).fit(X[:30], CODES[:30])
    first, again, other = (sampler.draw(None, seed)(X).values for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


@pytest.mark.parametrize(
    "params",
    [
        {"iterator_valid__shuffle": True},
        {"iterator_valid": partial(torch.utils.data.DataLoader, shuffle=True)},
        {"iterator_valid__drop_last": True, "batch_size": 50},
        {"iterator_valid__sampler": [3, 2, 1, 0]},
    ],
    ids=["shuffle", "loader", "drop_last", "sampler"],
)
@pytest.mark.filterwarnings("ignore:You set iterator_valid__shuffle")
def test_loaders_that_move_rows_are_refused(params: dict[str, Any]) -> None:
    model = net(max_epochs=0, **params)
    for ask in (
        lambda: MarginQuery().query(model, X, batch_size=3),
        lambda: MarginQuery().query(make_pipeline(FunctionTransformer(), model), X, batch_size=3),
        lambda: BALDQuery().query(model, X, batch_size=3),
        lambda: get_sampler([model, model]).sample(X),
    ):
        with pytest.raises(ValueError, match="iterator_valid must give each row once and in order"):
            ask()


class ByLargest(torch.nn.Module):
    """Scales rows by the largest number of all."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.last(torch.nn.functional.dropout(x / x.abs().max() * 8, 0.5, self.training))


class WithoutStatistics(torch.nn.Module):
    """Normalizes by the mean and variance of a batch, which must have two rows or more."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4, track_running_stats=False)
        self.last = torch.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.last(torch.nn.functional.dropout(self.norm(x), 0.5, self.training))


class AttendsToRows(torch.nn.Module):
    """Rows that attend to each other, as the batch is taken for the sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.last = torch.nn.MultiheadAttention(4, 2), torch.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        x = self.attention(x, x, x)[0]
        return self.last(torch.nn.functional.dropout(x, 0.5, self.training))


DEPENDENT = [ByLargest, WithoutStatistics, AttendsToRows]
REFUSED = r"for a row must not depend on the other rows of its batch.*dependent_rows='allow'"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("batch_size", [2, 30])
def test_net_that_mixes_rows_is_found_out_by_any_of_them(seed: int, batch_size: int) -> None:
    rows = X * np.random.default_rng(seed).lognormal(size=(90, 1)).astype(np.float32)
    sampler = MCDropoutSampler(ByLargest(), kind="value", batch_size=batch_size)
    with pytest.raises(UnsupportedModelError, match=REFUSED):
        sampler.draw(3, 0)(rows)


@pytest.mark.parametrize("kind", DEPENDENT)
def test_nets_whose_rows_depend_on_each_other_are_refused_unless_allowed(kind: Any) -> None:
    torch.manual_seed(0)
    module, values = kind(), {"kind": "value"}
    proba = torch.nn.Sequential(module, torch.nn.Softmax(dim=-1))
    for ask in (
        lambda: BALDQuery().query(MCDropoutSampler(module, **values), X, 3),
        lambda: BALDQuery().query(proba, X, 3),
        lambda: MarginQuery().query(proba, X, 3),
        lambda: BALDQuery().query([proba, proba], X, 3),
        lambda: DeepEnsembleSampler([module], **values).sample(X),
        lambda: get_sampler([proba, GaussianNB().fit(X, CODES)]).sample(X),
    ):
        with pytest.raises(UnsupportedModelError, match=REFUSED):
            ask()
    allowed: dict[str, Any] = {"dependent_rows": "allow", "batch_size": 45}
    draws = MCDropoutSampler(module, **values, **allowed).draw(3, 0)
    assert draws(X).values.shape == (90, 3, 3)
    assert draws.fallback == "the output of a row depends on the rows beside it"
    got = DeepEnsembleSampler([proba], **allowed).sample(X).values[:, 0]
    with torch.no_grad():
        expected = [proba.eval()(torch.from_numpy(part)) for part in (X[:45], X[45:])]
    torch.testing.assert_close(got, torch.cat(expected))


class Rounding(torch.nn.Module):
    """Rounds its inputs, differently in batches of different sizes."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.drop, self.last = torch.nn.Dropout(p), torch.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        large = 1e5 * len(x)
        return torch.softmax(self.last(self.drop((x + large) - large)), dim=-1)


def test_rounding_errors_that_differ_between_batches_are_no_dependence() -> None:
    module = Rounding(0.5).eval()
    with torch.no_grad():
        whole = module(torch.from_numpy(X[:4]))
        alone = torch.cat([module(row[None]) for row in torch.from_numpy(X[:4])])
    assert 5e-4 < (whole - alone).abs().max() < 5e-2
    for model in (module, [module, Rounding(0.0)]):
        assert len(BALDQuery(random_state=0).query(model, X, 3)) == 3
    assert len(MarginQuery().query(Rounding(0.0), X, 3)) == 3


def test_net_that_takes_no_single_row_may_treat_rows_alone() -> None:
    class Squeezed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.last = torch.nn.Dropout(), torch.nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            return self.last(self.drop(x)).squeeze()  # of one row, a number without axes

    module = Squeezed()
    assert MCDropoutSampler(module, kind="value").draw(3, 0)(X).values.shape == (90, 3)
    assert DeepEnsembleSampler([module], kind="value").sample(X).values.shape == (90, 1)


def test_generators_are_left_by_queries_of_models_around_nets() -> None:
    model = net()
    around = [
        CalibratedClassifierCV(FrozenEstimator(model)).fit(X, CODES),
        VotingClassifier([("a", model), ("b", net())]).fit(X, CODES),
        BootstrapSampler(model, n_draws=2).fit(X, CODES),
        make_pipeline(FunctionTransformer(), model),
    ]
    for each in around:
        state = torch.get_rng_state()
        ICALQuery(random_state=0).query(each, X, 3, X_labeled=X, y_labeled=CODES)
        assert torch.equal(state, torch.get_rng_state()), each


def test_own_predict_proba_of_a_net_is_what_strategies_of_means_ask() -> None:
    class Turned(skorch.NeuralNetClassifier):
        def predict_proba(self, X: Any) -> np.ndarray:
            return super().predict_proba(X)[:, ::-1] ** 2 / 3 + 2 / 9

    made = Turned(Dropping, criterion=torch.nn.CrossEntropyLoss, max_epochs=0, verbose=0)
    made.fit(X, CODES)
    with pytest.raises(ValueError, match=r"sum to .*, not 1, for row 0"):  # as squares do not
        MarginQuery().query(made, X, batch_size=3)


def test_dropout_of_a_nested_tensor_is_refused() -> None:
    class Nested(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.dropout(torch.nested.nested_tensor(list(x)), 0.5)

    with (
        pytest.warns(UserWarning, match="nested"),
        pytest.raises(UnsupportedModelError, match="nested tensor"),
    ):
        MCDropoutSampler(Nested(), kind="value").sample(X)


def test_threads_that_ask_one_net_get_their_own_draws() -> None:
    model = net()
    before = {name: value.clone() for name, value in model.module_.state_dict().items()}
    expected = [MCDropoutSampler(model).draw(4, seed)(X).values for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda k: MCDropoutSampler(model).draw(4, k)(X).values, range(8)))
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
    assert all(torch.equal(before[k], v) for k, v in model.module_.state_dict().items())
    assert all(isinstance(p, torch.nn.Parameter) for p in model.module_.parameters())


def test_packed_sequences_without_other_dropout_are_refused_by_name() -> None:
    class Packed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.memory = torch.nn.LSTM(4, 5, num_layers=2, dropout=0.5, batch_first=True)

        def forward(self, x: Any) -> Any:
            lengths = torch.full((len(x),), x.shape[1])
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
            return torch.softmax(self.memory(packed)[1][0][-1], dim=-1)

    rows = X[:60].reshape(20, 3, 4)
    with pytest.raises(NoDropoutError, match="only inside memory, which is off"):
        get_sampler(Packed()).sample(rows)


def test_dropout_benchmark_prints_its_ratios(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ROOT / "examples" / "benchmarks" / "dropout_speed.py"
    options = "--rows 4 --draws 3 --plain-draws 1 --width 2 --repeats 1".split()
    monkeypatch.setattr(sys, "argv", [str(script), *options])
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("rows become rows x draws at the first dropout") == 2
    assert "times one deterministic pass (bound 1.5)" in printed
