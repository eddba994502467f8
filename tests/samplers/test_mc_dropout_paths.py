"""How dropout draws ask a net: rows per pass, the way back to whole passes, traces and refusals."""

import copy
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError

from sklearn_ical import ICALQuery, MarginQuery
from sklearn_ical.exceptions import DropoutOffWarning, NoDropoutError, UnsupportedModelError
from sklearn_ical.samplers import MCDropoutSampler, get_sampler

torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from tests.samplers.nets import (  # noqa: E402
    DEVICE,
    FAST,
    N_FIT,
    SLOW,
    MixAfter,
    MixBefore,
    Net,
    Packed,
    SkipAround,
    built,
    case,
    conv,
    fit,
    labels,
    logits,
    mlp,
    normed,
    one_thread,  # noqa: F401
    rows,
)

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    # Copies of nets: skorch 1.1 loads its own pickles in a way that torch 2.5 warns about.
    pytest.mark.filterwarnings("ignore:You are using .torch.load.:FutureWarning"),
]

N_DRAWS = 6
CLOSE: dict[str, float] = {"rtol": 1e-4, "atol": 2e-6}
if DEVICE == "cuda":
    CLOSE = {"rtol": 1e-2, "atol": 2e-3}


def host(samples: Any) -> np.ndarray:
    return samples.values.cpu().numpy()


def draw(model: Any, **options: Any) -> Any:
    return MCDropoutSampler(model, **options).draw(N_DRAWS, 0)


def sample(model: Any, X: Any = None, **options: Any) -> np.ndarray:
    return host(draw(model, **options)(rows(4) if X is None else X))


def classifier(build: Callable[[], nn.Module] | None = None, **params: Any) -> Any:
    """Return a net with logits of four inputs that a test may change."""
    params.setdefault("criterion", nn.CrossEntropyLoss)
    return fit(build or mlp(), rows(4, n=N_FIT, seed=1), labels(), **params)


@contextmanager
def counted(module: nn.Module) -> Iterator[list[int]]:
    """Write down the rows of each call of a module, inputs of any kind."""
    seen: list[int] = []

    def note(_: Any, args: Any, kwargs: Any) -> None:
        given = [*args, *kwargs.values()][0]
        seen.append(len(given[0] if isinstance(given, list) else given))

    handle = module.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield seen
    finally:
        handle.remove()


# -- rows per pass ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAST)
def test_rows_run_once_up_to_the_first_dropout(name: str) -> None:
    made = case(name)
    draws = MCDropoutSampler(made.model, **made.options).draw(N_DRAWS, 0)
    assert draws.fallback is None
    first = draws(made.X)
    assert draws.fallback == ""
    with counted(made.module) as seen:
        second = draws(made.X)
    assert sum(seen) == len(first.values)
    np.testing.assert_array_equal(host(first), host(second))


@pytest.mark.parametrize("name", SLOW)
def test_net_that_cannot_be_expanded_runs_once_per_draw_and_says_why(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = case(name)
    draws = MCDropoutSampler(made.model, **made.options).draw(N_DRAWS, 0)
    with caplog.at_level(logging.INFO, "sklearn_ical.samplers"):
        draws(made.X)
    assert len(draws.fallback) > 10
    assert any(
        draws.fallback in record.getMessage() and record.levelno == logging.INFO
        for record in caplog.records
    )
    with counted(made.module) as seen:
        draws(made.X)
    assert len(made.X) < sum(seen) <= len(made.X) * N_DRAWS


@pytest.mark.parametrize("n_rows", [40, 300])
def test_trunk_sees_each_row_once_and_few_probes(n_rows: int) -> None:
    net = classifier(conv_net, iterator_valid__batch_size=64)
    X = rows(4, n=n_rows)
    draws = MCDropoutSampler(net).draw(50, 0)
    with counted(net.module_[2][0]) as trunk, counted(last_linear(net.module_)) as head:
        draws(X)
        probes = sum(trunk) - n_rows
        trunk.clear()
        head.clear()
        draws(X)
    assert 0 <= probes <= 60
    assert sum(trunk) == n_rows
    assert sum(head) == n_rows * 50


def conv_net() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 2, 2)), nn.ZeroPad2d(2), conv())


def test_rows_per_pass_are_at_most_those_of_the_net() -> None:
    net, X = classifier(iterator_valid__batch_size=8), rows(4, n=50)
    with counted(net.module_) as seen:
        sample(net, X)
        assert max(seen) == 8
        seen.clear()
        sample(net, X, batch_size=5)
        assert max(seen) == 5
    module = built(mlp(nn.Softmax(-1)))
    with counted(module) as seen:
        sample(module, rows(4, n=300))
        assert max(seen) == 128
        seen.clear()
        sample(module, rows(4, n=300), batch_size=31)
        assert max(seen) == 31


@pytest.mark.parametrize("name", ["wide", "skip around"])
def test_small_working_memory_bounds_the_rows_per_pass(name: str) -> None:
    build = wide if name == "wide" else SkipAround
    net, X = classifier(build, iterator_valid__batch_size=64), rows(4, n=64)
    plain = MCDropoutSampler(net).draw(50, 0)(X)
    with counted(last_linear(net.module_)) as head:
        with sklearn.config_context(working_memory=0.25):  # of 65 rows of the wide layer
            small = MCDropoutSampler(net).draw(50, 0)(X)
        assert max(head) <= (65 if name == "wide" else 64)
        head.clear()
        with sklearn.config_context(working_memory=1e-6):
            draws = MCDropoutSampler(net).draw(50, 0)
            draws.prepare(X)
            assert max(head) <= 16  # a few rows by two draws
            head.clear()
            least = draws(X)
        assert max(head) == 1
    np.testing.assert_allclose(host(small), host(plain), **CLOSE)
    np.testing.assert_allclose(host(least), host(plain), **CLOSE)


def wide() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 1000), nn.Dropout(0.5), nn.Linear(1000, 3))


def last_linear(module: nn.Module) -> nn.Module:
    return [part for part in module.modules() if isinstance(part, nn.Linear)][-1]


def test_prepare_finds_the_way_from_a_few_rows() -> None:
    net, X = classifier(), rows(4, n=500)
    draws = draw(net)
    with counted(net.module_) as seen:
        draws.prepare(X)
    assert draws.fallback == ""
    assert sum(seen) < 100
    with counted(net.module_) as seen:
        draws(X)
    assert sum(seen) == 500


# -- memory -------------------------------------------------------------------------------------


class Limited(Net):
    """Runs out of memory where a layer sees more rows than a limit."""

    limit = 10**9
    error: type[Exception] = torch.OutOfMemoryError
    text = "CUDA out of memory. Tried to allocate 2.00 GiB."

    def forward(self, x: Any) -> Any:
        hidden = self.drop(self.hidden(x))
        assert len(hidden), "a pass of no rows"
        if len(hidden) > self.limit:
            raise self.error(self.text)
        return self.head(hidden)


class LimitedOnHost(Limited):
    error = RuntimeError
    text = (
        "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 8000000000 bytes. Error code 12 (Cannot allocate memory)"
    )


@pytest.mark.parametrize("kind", [Limited, LimitedOnHost])
@pytest.mark.parametrize("limit", [100, 6, 3])
def test_out_of_memory_halves_the_passes_and_goes_on(
    kind: type[Limited], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, X = classifier(kind), rows(4, n=100)
    plain = sample(net, X)
    draws = draw(net)
    draws.prepare(X)
    monkeypatch.setattr(kind, "limit", limit)
    np.testing.assert_allclose(host(draws(X)), plain, **CLOSE)


def test_one_row_that_does_not_fit_is_an_error_that_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net, X = classifier(Limited), rows(4, n=20)
    draws = draw(net)
    plain = host(draws(X))
    with monkeypatch.context() as patch:
        patch.setattr(Limited, "limit", 0)
        with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
            draws(X)
    np.testing.assert_allclose(host(draws(X)), plain, **CLOSE)


def test_other_errors_of_a_pass_reach_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = draw(classifier(Limited))
    draws.prepare(rows(4))
    monkeypatch.setattr(Limited, "limit", 3)
    monkeypatch.setattr(Limited, "error", RuntimeError)
    monkeypatch.setattr(Limited, "text", "mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        draws(rows(4))


# -- no trace -----------------------------------------------------------------------------------


class Fragile(nn.Module):
    """Refuses a marked row, after a dropout and a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = normed()

    def forward(self, x: Any) -> Any:
        result = self.layers(x)
        if bool((x == 99).any()):
            raise ArithmeticError("a marked row")
        return result


def state_of(module: nn.Module) -> list[Any]:
    """Return all that a module and the global generators hold, to compare."""
    state: list[Any] = [torch.get_rng_state().tolist(), random.getstate(), torch.is_grad_enabled()]
    state.append([np.asarray(part).tolist() for part in np.random.get_state()])  # noqa: NPY002
    for name, part in module.named_modules():
        hooks = [list(value) for key, value in vars(part).items() if key.endswith("_hooks")]
        state.append((name, part.training, hooks, sorted(vars(part))))
    for name, value in module.state_dict(keep_vars=True).items():
        grad = None if value.grad is None else value.grad.tolist()
        state.append((name, id(value), value.requires_grad, value.tolist(), grad, value._version))
    state.append(torch.nn.functional.dropout(torch.ones(64), 0.5, training=False).tolist())
    state.append([torch.backends.mha.get_fastpath_enabled(), torch.backends.cudnn.enabled])
    return state


def mixed(module: nn.Module) -> nn.Module:
    """Put the parts of a module in modes of their own, one weight frozen, one with a gradient."""
    for i, part in enumerate(module.modules()):
        part.training = i % 2 == 0
    weights = list(module.parameters())
    weights[0].requires_grad_(False)
    weights[1].grad = torch.ones_like(weights[1])
    module.register_forward_hook(lambda *_: None)
    return module


@pytest.mark.parametrize("name", ["conv", "batch norm", "skip around", "transformer", "deep lstm"])
@pytest.mark.parametrize("bare", [False, True])
def test_evaluation_leaves_no_trace(name: str, bare: bool) -> None:
    made = case(name)
    model = copy.deepcopy(made.module if bare else made.model)
    module = mixed(model if bare else model.module_)
    before = state_of(module)
    options = {"nonlinearity": nn.Softmax(-1)} if bare else {}
    draws = draw(model, **options)
    draws(made.X)
    assert state_of(module) == before
    draws(made.X[:1])
    assert state_of(module) == before


@pytest.mark.parametrize("bare", [False, True])
def test_error_in_the_middle_of_a_pass_leaves_no_trace(bare: bool) -> None:
    net = classifier(Fragile, iterator_valid__batch_size=4)
    module, X = mixed(net.module_), rows(4, n=30)
    model, options = (module, {"nonlinearity": nn.Softmax(-1)}) if bare else (net, {})
    draws = draw(model, **options)
    plain = host(draws(X))
    before = state_of(module)
    marked = X.copy()
    marked[17] = 99
    for tried in (draws, draw(model, **options)):
        with pytest.raises(ArithmeticError, match="a marked row"):
            tried(marked)
        assert state_of(module) == before
        np.testing.assert_array_equal(host(tried(X)), plain)


@pytest.mark.parametrize("query", [MarginQuery, ICALQuery])
def test_query_leaves_no_trace(query: Any) -> None:
    net = classifier(normed)
    module = mixed(net.module_)
    before = state_of(module)
    query(random_state=0).query(net, rows(4), batch_size=3)
    assert state_of(module) == before


# -- what a net reads its rows with -------------------------------------------------------------


class Doubling(skorch.dataset.Dataset):
    def transform(self, X: Any, y: Any) -> Any:
        return super().transform(2 * X, y)


def halving(batch: list[Any]) -> Any:
    X, y = torch.utils.data.default_collate(batch)
    return X / 2, y


class Broken:
    """An iterator that nothing should make."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise AssertionError("the iterator for training was made")


def test_rows_keep_their_order_whatever_training_does() -> None:
    plain = sample(classifier())
    shuffled = classifier()
    shuffled.iterator_train__shuffle, shuffled.iterator_train__batch_size = True, 3
    np.testing.assert_allclose(sample(shuffled), plain, **CLOSE)
    broken = classifier()
    broken.iterator_train = Broken
    np.testing.assert_allclose(sample(broken), plain, **CLOSE)


def test_dataset_and_collate_function_of_the_net_are_used() -> None:
    net = classifier()
    plain, twice = sample(net), sample(net, 2 * rows(4))
    assert np.abs(plain - twice).max() > 1e-3
    net.dataset = Doubling
    np.testing.assert_allclose(sample(net), twice, **CLOSE)
    net.iterator_valid__collate_fn = halving
    np.testing.assert_allclose(sample(net), plain, **CLOSE)


def test_nonlinearity_of_the_net_or_the_one_given_is_used() -> None:
    net = classifier()
    plain = sample(net)
    net.predict_nonlinearity = partial(torch.softmax, dim=-1)
    np.testing.assert_allclose(sample(net), plain, **CLOSE)
    cool = sample(net, nonlinearity=lambda output: torch.softmax(output / 2, dim=-1))
    expected = np.sqrt(plain) / np.sqrt(plain).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(cool, expected, **CLOSE)


# -- refusals -----------------------------------------------------------------------------------


class Bare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 3), nn.Softmax(-1))

    def forward(self, x: Any) -> Any:
        return self.layers(x)


class Noisy(Net):
    def forward(self, x: Any) -> Any:
        return super().forward(x + 0.1 * torch.randn_like(x))


class NoisyAfter(Net):
    def forward(self, x: Any) -> Any:
        return super().forward(x) + torch.empty(3, device=x.device).normal_()


class Sampled(Net):
    def forward(self, x: Any) -> Any:
        return self.head(F.gumbel_softmax(self.drop(self.hidden(x))))


def module_off() -> nn.Module:
    return nn.Sequential(nn.Dropout(0.0), nn.Linear(4, 3), nn.Dropout(0.0), nn.Softmax(-1))


@pytest.mark.parametrize(
    ("build", "name"), [(Bare, "Bare"), (module_off, "Sequential"), (Bare, "NeuralNetClassifier")]
)
def test_net_without_dropout_is_refused(build: Any, name: str) -> None:
    model = classifier(build, criterion=nn.NLLLoss) if name.startswith("Neural") else built(build)
    with pytest.raises(NoDropoutError, match=f"no .*dropout.* in {name}.*6 draws"):
        sample(model)
    with pytest.raises(ValueError, match="dropout"):
        draw(model).prepare(rows(4))
    with pytest.raises(UnsupportedModelError, match="dropout"):
        ICALQuery(random_state=0).query(model, rows(4), batch_size=2)


@pytest.mark.parametrize("sort", ["script", "trace", "DataParallel", "inside"])
def test_module_that_cannot_be_looked_into_is_named(sort: str) -> None:
    module = built(mlp(nn.Softmax(-1))).eval()
    model: Any = nn.DataParallel(module)
    if sort in ("script", "trace"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # both are on their way out of torch
            example = torch.zeros(2, 4, device=DEVICE)
            model = (
                torch.jit.script(module) if sort == "script" else torch.jit.trace(module, example)
            )
    if sort == "inside":
        model = nn.Sequential(model, nn.Dropout(0.5))
    match = "DataParallel" if sort in ("DataParallel", "inside") else "Script|Traced"
    for act in (MCDropoutSampler(model).draw, lambda: get_sampler(model).draw()):
        with pytest.raises(UnsupportedModelError, match=match):
            act()


def test_logits_are_refused_not_passed_through_a_softmax() -> None:
    for model in (classifier(criterion=nn.NLLLoss), built(mlp())):
        with pytest.raises(ValueError, match=r"probabilities.*logits.*nonlinearity"):
            sample(model)
        with pytest.raises(ValueError, match=r"logits"):
            ICALQuery(random_state=0).query(model, rows(4), batch_size=2)


def test_net_that_is_not_fitted_is_refused() -> None:
    for net in (skorch.NeuralNetClassifier(Net), skorch.NeuralNetRegressor(Net)):
        with pytest.raises(NotFittedError, match="not fitted"):
            draw(net)
        with pytest.raises(NotFittedError, match="not fitted"):
            ICALQuery().query(net, rows(4))


@pytest.mark.parametrize("kind", [Noisy, NoisyAfter, Sampled])
def test_net_with_random_numbers_of_its_own_is_refused(kind: type[Net]) -> None:
    with pytest.raises(UnsupportedModelError, match="random numbers"):
        sample(classifier(kind))
    with pytest.raises(UnsupportedModelError, match="random numbers"):
        draw(built(kind), nonlinearity=nn.Softmax(-1))(rows(4)[:1])


@pytest.mark.parametrize("kind", [MixBefore, MixAfter])
def test_net_whose_rows_depend_on_each_other_is_refused_unless_allowed(kind: type[Net]) -> None:
    model = classifier(kind)
    with pytest.raises(UnsupportedModelError, match="the other rows of its batch"):
        draw(model).prepare(rows(4))
    draws = draw(model, dependent_rows="allow")
    assert draws(rows(4)).values.shape == (13, N_DRAWS, 3)
    assert draws.fallback == "the output of a row depends on the rows beside it"


def test_packed_sequences_keep_the_inner_dropout_off_and_say_so() -> None:
    made = logits(Packed, 5, 4)()
    with pytest.warns(DropoutOffWarning, match="memory"):
        draw(made.model, dependent_rows="allow")(made.X)  # lengths belong to places


@pytest.mark.parametrize("n_draws", [0, -1])
def test_no_draws_are_refused(n_draws: int) -> None:
    with pytest.raises(ValueError, match=f"n_draws.*{n_draws}"):
        MCDropoutSampler(case("logits").model).draw(n_draws)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"kind": "label"}, ValueError, "kind.*'label'"),
        ({"kind": "value"}, ValueError, "kind.*'value'"),
        ({"batch_size": 0}, ValueError, "batch_size.*0"),
        ({"dependent_rows": "warn"}, ValueError, "dependent_rows.*'raise', 'allow'.*'warn'"),
        ({"batch_size": 2.5}, TypeError, "batch_size.*2.5"),
        ({"nonlinearity": "softmax"}, TypeError, "nonlinearity.*'softmax'"),
        ({"classes": [0, 1]}, ValueError, "classes.*3"),
        ({"classes": [0, 1, 1]}, ValueError, "classes.*distinct"),
    ],
)
def test_parameter_that_does_not_fit_is_refused(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        sample(case("logits").model, **options)
