"""Dropout draws: each is one function of a row, that of the masks of its number, for all nets."""

import copy
import itertools
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import BatchBALDQuery, ICALQuery, MarginQuery
from sklearn_ical.dependence import hsic, linear_kernel
from sklearn_ical.samplers import MCDropoutSampler, get_sampler
from sklearn_ical.samplers._base import evaluate_in_chunks
from sklearn_ical.samples import concatenate
from sklearn_ical.testing import check_sampler

torch = pytest.importorskip("torch")
pytest.importorskip("skorch")

from torch import nn  # noqa: E402

from tests.samplers.nets import (  # noqa: E402
    DEVICE,
    N_FIT,
    N_POOL,
    ZOO,
    Case,
    FirstHeadNet,
    TwoHeads,
    built,
    call,
    case,
    fit,
    labels,
    mlp,
    normed,
    one_thread,  # noqa: F401
    rows,
    take,
)

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    # Copies of nets: skorch 1.1 loads its own pickles in a way that torch 2.5 warns about.
    pytest.mark.filterwarnings("ignore:You are using .torch.load.:FutureWarning"),
]

N_DRAWS = 5
ROOT = 11
ALPHA = -1.0507009873554805 * 1.6732632423543772  # what SELU gives far below zero
# Of float32; convolutions on a GPU multiply in fewer digits.
CLOSE: dict[str, float] = {"rtol": 1e-4, "atol": 2e-6}
if DEVICE == "cuda":
    CLOSE = {"rtol": 1e-2, "atol": 2e-3}


def host(values: Any) -> np.ndarray:
    return values.detach().cpu().numpy()


def drawn(made: Case, n_draws: int | None = N_DRAWS, random_state: Any = ROOT) -> Any:
    return MCDropoutSampler(made.model, **made.options).draw(n_draws, random_state)


def values(draws: Any, X: Any) -> np.ndarray:
    return host(draws(X).values)


def chunked(draws: Any, X: Any, size: int) -> np.ndarray:
    return host(concatenate(list(evaluate_in_chunks(draws, X, size))).values)


def mask(root: int, draw: int, number: int, shape: tuple[int, ...], p: float) -> np.ndarray:
    """Return which entries a dropout call keeps, of the documented stream."""
    seed = np.random.SeedSequence(root, spawn_key=(0, draw, number))
    return np.random.Generator(np.random.PCG64(seed)).random(shape) >= p


@contextmanager
def masked_torch(draw: int) -> Iterator[list[int]]:
    """Multiply by the masks of one draw wherever torch would drop entries of one row.

    Yields the list of calls so far, to be cleared before the next row.
    """
    calls: list[int] = []

    def fixed(features: bool, alpha: bool) -> Callable[..., Any]:
        def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            if p == 0:
                return x
            shape = x.shape[:2] + (1,) * (x.ndim - 2) if features else x.shape
            keep = torch.as_tensor(mask(ROOT, draw, len(calls), tuple(shape), p), device=DEVICE)
            calls.append(draw)
            if alpha:
                scale = (1 - p) ** -0.5 * (1 + p * ALPHA**2) ** -0.5
                result = scale * (torch.where(keep, x, ALPHA) - p * ALPHA)
            else:
                result = x * keep / (1 - p)
            return x.copy_(result) if inplace else result

        return dropout

    names = {"dropout": (False, False), "alpha_dropout": (False, True)}
    names |= {name: (True, False) for name in ("dropout1d", "dropout2d", "dropout3d")}
    names |= {"feature_alpha_dropout": (True, True)}
    patches = [
        mock.patch.object(torch.nn.functional, name, fixed(*how)) for name, how in names.items()
    ]
    patches.append(mock.patch.object(torch, "dropout", fixed(False, False)))
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    for patch in patches:
        patch.start()
    try:
        yield calls
    finally:
        for patch in patches:
            patch.stop()
        torch.backends.mha.set_fastpath_enabled(fused)


def expected(made: Case, X: Any, n_rows: int) -> np.ndarray:
    """Return what each draw says of each row, row by row and draw by draw."""
    module = made.twin(copy.deepcopy(made.module)).to(DEVICE).eval()
    answers = []
    for draw in range(N_DRAWS):
        with torch.no_grad(), masked_torch(draw) as calls:
            for row in range(n_rows):
                calls.clear()
                answers.append(host(made.answer(call(module, take(X, slice(row, row + 1))))))
    of_draws = np.stack(answers).reshape(N_DRAWS, n_rows, *answers[0].shape[1:])
    return np.swapaxes(of_draws, 0, 1)


@cache
def expected_of(name: str) -> np.ndarray:
    made = case(name)
    return expected(made, made.X, N_POOL)


@pytest.mark.parametrize(("alpha", "p"), [(False, 0.4), (True, 0.3)])
def test_reference_keeps_and_drops_as_torch_does(alpha: bool, p: float) -> None:
    name = "alpha_dropout" if alpha else "dropout"
    x = torch.full((400,), 0.7, device=DEVICE)
    with torch.random.fork_rng():
        real = getattr(torch.nn.functional, name)(x, p, True)
    with masked_torch(0):
        ours = getattr(torch.nn.functional, name)(x, p)
    np.testing.assert_allclose(np.unique(host(ours)), np.unique(host(real)), rtol=1e-5, atol=1e-6)


# -- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ZOO)
def test_draws_equal_each_row_under_the_masks_of_each_draw(name: str) -> None:
    made = case(name)
    draws = drawn(made)
    kept = draws(made.X)
    reference = expected_of(name)
    assert isinstance(kept.values, torch.Tensor)
    assert kept.values.device.type == DEVICE
    assert kept.values.dtype == next(made.module.parameters()).dtype
    assert not kept.values.requires_grad
    assert kept.kind == draws.kind == ("value" if _is_value(made) else "proba")
    assert np.ptp(reference, axis=1).max() > 1e-3
    np.testing.assert_allclose(host(kept.values), reference, **CLOSE)


def _is_value(made: Case) -> bool:
    return made.options.get("kind") == "value" or "Regressor" in type(made.model).__name__


@pytest.mark.parametrize("name", ZOO)
def test_chunks_of_permuted_rows_give_the_same_draws(name: str) -> None:
    made = case(name)
    reference = expected_of(name)
    for size in (1, 7, N_POOL):
        order = np.random.default_rng(size).permutation(N_POOL)
        draws = drawn(made)  # afresh: the first chunk is all that it has seen
        parts = [
            values(draws, take(made.X, order[start : start + size]))
            for start in range(0, N_POOL, size)
        ]
        np.testing.assert_allclose(np.concatenate(parts), reference[order], **CLOSE)


@pytest.mark.parametrize("n_rows", [4, 5, 6, 16])
@pytest.mark.parametrize("name", ["logits", "conv", "sequence first", "flatten", "flip"])
def test_row_counts_equal_to_another_axis_give_the_same_draws(name: str, n_rows: int) -> None:
    made = case(name)
    X = rows(*made.X.shape[1:], n=n_rows, seed=5)
    np.testing.assert_allclose(values(drawn(made), X), expected(made, X, n_rows), **CLOSE)


@pytest.mark.parametrize("name", ["logits", "two targets", "tokens", "by name", "by list"])
def test_chunks_of_evaluate_in_chunks_equal_all_rows(name: str) -> None:
    made = case(name)
    draws = drawn(made)
    reference = values(draws, made.X)
    for size in (1, 7, N_POOL):
        np.testing.assert_allclose(chunked(draws, made.X, size), reference, **CLOSE)


def test_perceptron_equals_its_closed_form() -> None:
    made = case("logits")
    w1, b1, w2, b2 = (host(p).astype(np.float64) for p in made.module.parameters())
    hidden = np.maximum(made.X.astype(np.float64) @ w1.T + b1, 0)
    for k in range(N_DRAWS):
        dropped = hidden * mask(ROOT, k, 0, (1, 16), 0.5) / (1 - 0.5)
        odds = np.exp(dropped @ w2.T + b2)
        proba = odds / odds.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(values(drawn(made), made.X)[:, k], proba, **CLOSE)


def test_alpha_dropout_equals_its_closed_form() -> None:
    made = case("alpha")
    w1, b1, w2, b2 = (host(p).astype(np.float64) for p in made.module.parameters())
    z = made.X.astype(np.float64) @ w1.T + b1
    hidden = 1.0507009873554805 * np.where(z > 0, z, 1.6732632423543772 * np.expm1(z))
    p, low = 0.3, -1.7580993408473766
    a = ((1 - p) * (1 + p * low**2)) ** -0.5
    for k in range(N_DRAWS):
        dropped = a * np.where(mask(ROOT, k, 0, (1, 16), p), hidden, low) - a * p * low
        odds = np.exp(dropped @ w2.T + b2)
        proba = odds / odds.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(values(drawn(made), made.X)[:, k], proba, **CLOSE)


def test_switched_off_dropout_takes_no_number() -> None:
    plain = built(mlp(nn.Softmax(-1)))
    with_off = nn.Sequential(nn.Dropout(0.0), *plain)
    one, two = (MCDropoutSampler(m).draw(N_DRAWS, ROOT)(rows(4)) for m in (plain, with_off))
    np.testing.assert_allclose(host(one.values), host(two.values), **CLOSE)


@pytest.mark.parametrize(
    "outer", ["pipeline", "search", "search of pipeline", "pipeline of search"]
)
def test_net_inside_another_estimator_equals_the_net_alone(outer: str) -> None:
    X, y = 3 * rows(4, n=N_FIT, seed=1) + 1, labels()
    net = fit(mlp(), X, y, criterion=nn.CrossEntropyLoss)
    grid, one = {"lr": [0.05, 0.1]}, {"cv": 2, "scoring": "accuracy"}
    model: Any = net
    if outer == "pipeline of search":
        model = GridSearchCV(net, grid, **one)
    if outer.startswith("pipeline"):
        model = make_pipeline(StandardScaler(), model)
    elif outer == "search of pipeline":
        piped = make_pipeline(StandardScaler(), net)
        model = GridSearchCV(piped, {"neuralnetclassifier__lr": [0.1]}, **one)
    else:
        model = GridSearchCV(net, grid, **one)
    with torch.random.fork_rng():
        model.fit(X, y)
    pool = 3 * rows(4) + 1
    inner, given = model, pool
    while hasattr(inner, "best_estimator_") or hasattr(inner, "steps"):
        if hasattr(inner, "best_estimator_"):
            inner = inner.best_estimator_
        else:
            inner, given = inner[-1], inner[:-1].transform(given)
    assert given.dtype == np.float32
    alone = Case(inner, given, lambda output: torch.softmax(output, -1))
    draws = get_sampler(model).draw(N_DRAWS, ROOT)
    np.testing.assert_allclose(values(draws, pool), expected(alone, given, N_POOL), **CLOSE)
    np.testing.assert_array_equal(draws.classes, [0, 1, 2])


def test_get_sampler_of_a_net_and_of_a_module_is_this_one() -> None:
    for name in ("logits", "regression", "binary logits", "module"):
        made = case(name)
        sampler = get_sampler(made.model)
        assert isinstance(sampler, MCDropoutSampler)
        np.testing.assert_array_equal(
            values(sampler.draw(N_DRAWS, ROOT), made.X), values(drawn(made), made.X)
        )


# -- columns and kinds --------------------------------------------------------------------------


def prepared(model: Any, X: Any = None, **options: Any) -> Any:
    draws = MCDropoutSampler(model, **options).draw(N_DRAWS, ROOT)
    draws.prepare(rows(4) if X is None else X)
    return draws


def test_classes_are_those_of_the_net_where_there_are_as_many() -> None:
    made = case("logits")
    np.testing.assert_array_equal(prepared(made.model).classes, [0, 1, 2])
    np.testing.assert_array_equal(prepared(case("binary logits").model).classes, [0, 1])
    given = fit(mlp(nn.Softmax(-1)), rows(4, n=N_FIT), labels(), classes=[7, 8, 9])
    np.testing.assert_array_equal(prepared(given).classes, [7, 8, 9])
    np.testing.assert_array_equal(prepared(made.model, classes=list("abc")).classes, list("abc"))
    samples = MCDropoutSampler(made.model, classes=list("abc")).draw(3, 0)(made.X)
    np.testing.assert_array_equal(samples.classes, list("abc"))


def test_net_that_saw_fewer_labels_than_it_has_outputs_has_all_columns() -> None:
    net = fit(mlp(), rows(4, n=N_FIT), 2 * labels(2), criterion=nn.CrossEntropyLoss)
    np.testing.assert_array_equal(net.classes_, [0, 2])
    draws = MCDropoutSampler(net).draw(N_DRAWS, ROOT)
    samples = draws(rows(4))
    assert samples.values.shape == (N_POOL, N_DRAWS, 3)
    np.testing.assert_array_equal(draws.classes, [0, 1, 2])
    np.testing.assert_array_equal(samples.classes, [0, 1, 2])


def test_module_has_no_classes_of_its_own() -> None:
    draws = prepared(case("module").model)
    np.testing.assert_array_equal(draws.classes, [0, 1, 2])
    assert prepared(case("module values").model, kind="value").classes is None
    assert prepared(case("regression").model).classes is None


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("regression", (N_POOL, N_DRAWS)),
        ("regression column", (N_POOL, N_DRAWS)),
        ("two targets", (N_POOL, N_DRAWS, 2)),
        ("module values", (N_POOL, N_DRAWS, 2)),
        ("binary logits", (N_POOL, N_DRAWS, 2)),
    ],
)
def test_values_have_the_shape_of_the_outputs(name: str, shape: tuple[int, ...]) -> None:
    made = case(name)
    assert values(drawn(made), made.X).shape == shape


def test_fifty_draws_come_by_default() -> None:
    made = case("module")
    assert drawn(made, None).n_draws == 50
    assert values(drawn(made, None), made.X).shape == (N_POOL, 50, 3)


# -- properties ---------------------------------------------------------------------------------


def test_duplicate_rows_in_different_chunks_have_equal_draws() -> None:
    for name in ("logits", "conv", "skip around", "batch norm"):
        made = case(name)
        both = np.concatenate([made.X, made.X[::-1]])
        answers = chunked(drawn(made), both, 5)
        np.testing.assert_allclose(answers[:N_POOL], answers[N_POOL:][::-1], **CLOSE)


def test_fewer_draws_are_the_first_of_more() -> None:
    for name in ("logits", "two targets", "skip around"):
        made = case(name)
        more = values(drawn(made, 9), made.X)
        np.testing.assert_allclose(values(drawn(made, 4), made.X), more[:, :4], **CLOSE)


def test_seeds_decide_the_draws() -> None:
    made = case("logits")
    first = values(drawn(made, random_state=3), made.X)
    np.testing.assert_array_equal(values(drawn(made, random_state=3), made.X), first)
    assert np.abs(values(drawn(made, random_state=4), made.X) - first).max() > 1e-3
    generator = np.random.default_rng(0)
    one, two = (values(drawn(made, random_state=generator), made.X) for _ in range(2))
    assert np.abs(one - two).max() > 1e-3


def test_pickled_draws_give_the_same() -> None:
    for name in ("probabilities", "module", "regression column", "skip around"):
        made = case(name)
        draws = drawn(made)
        before = pickle.loads(pickle.dumps(draws))
        reference = values(draws, made.X)
        after = pickle.loads(pickle.dumps(draws))
        np.testing.assert_array_equal(values(before, made.X), reference)
        np.testing.assert_array_equal(values(after, made.X), reference)


@pytest.mark.parametrize("evaluated", [False, True])
def test_training_on_does_not_change_earlier_draws(evaluated: bool) -> None:
    X, y = rows(4, n=N_FIT, seed=1), labels()
    net = fit(normed, X, y, criterion=nn.CrossEntropyLoss, lr=1.0)
    reference = values(MCDropoutSampler(net).draw(N_DRAWS, ROOT), rows(4))
    draws = MCDropoutSampler(net).draw(N_DRAWS, ROOT)
    if evaluated:
        draws(rows(4))
    with torch.random.fork_rng():
        net.partial_fit(X, y)
    np.testing.assert_array_equal(values(draws, rows(4)), reference)
    with torch.no_grad():
        for parameter in net.module_.parameters():
            parameter.zero_()
        net.module_[1].running_mean.fill_(9.0)
    np.testing.assert_array_equal(values(draws, rows(4)), reference)
    now = values(MCDropoutSampler(net).draw(N_DRAWS, ROOT), rows(4))
    np.testing.assert_allclose(now, 1 / 3, rtol=1e-6)


@pytest.mark.parametrize("evaluated", [False, True])
def test_probability_changed_later_does_not_change_earlier_draws(evaluated: bool) -> None:
    module = built(mlp(nn.Softmax(-1)))
    draws = MCDropoutSampler(module).draw(N_DRAWS, ROOT)
    if evaluated:
        draws(rows(4))
    module[2].p = 0.1
    reference = values(drawn(case("module")), rows(4))
    np.testing.assert_allclose(values(draws, rows(4)), reference, **CLOSE)


def unbiased_dependence(samples: np.ndarray) -> float:
    """Return the mean dependence of all pairs of rows, (n_points, n_draws, n_classes)."""
    kernels = linear_kernel(samples.astype(np.float64))
    pairs = itertools.combinations(range(len(kernels)), 2)
    return float(np.mean([hsic(kernels[i], kernels[j], estimator="unbiased") for i, j in pairs]))


@pytest.mark.parametrize("name", ["logits", "conv", "skip around"])
def test_masks_redrawn_for_each_row_lose_the_dependence(name: str) -> None:
    made, m = case(name), 60
    consistent = unbiased_dependence(values(drawn(made, m), made.X))
    module = copy.deepcopy(made.module).train()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(1)
        passes = [made.answer(call(module, made.X)) for _ in range(m)]
    independent = unbiased_dependence(host(torch.stack(passes, dim=1)))
    assert consistent > 0
    assert abs(independent) < 0.1 * consistent
    swapped = values(drawn(made, m), made.X)
    for row in range(N_POOL):  # the draws of each row in an order of its own
        swapped[row] = swapped[row, np.random.default_rng(row).permutation(m)]
    assert abs(unbiased_dependence(swapped)) < 0.1 * consistent


@pytest.mark.parametrize(
    "name", ["logits", "regression column", "binary probabilities", "pipeline"]
)
def test_check_sampler_passes(name: str) -> None:
    if name == "pipeline":
        X, y = rows(4, n=N_FIT, seed=1), labels()
        net = fit(mlp(), X, y, criterion=nn.CrossEntropyLoss)
        with torch.random.fork_rng():
            model = make_pipeline(StandardScaler(), net).fit(X, y)
    else:
        model = case(name).model
    check_sampler(model, rows(4, n=20))


# -- tensors ------------------------------------------------------------------------------------


def test_rows_in_a_tensor_or_read_only_array_give_the_same() -> None:
    for name in ("logits", "module", "skip around"):
        made = case(name)
        reference = values(drawn(made), made.X)
        frozen = made.X.copy()
        frozen.flags.writeable = False
        for X in (torch.tensor(made.X), torch.tensor(made.X, device=DEVICE), frozen):
            kept = drawn(made)(X)
            assert isinstance(kept.values, torch.Tensor)
            assert kept.values.device.type == DEVICE
            np.testing.assert_allclose(host(kept.values), reference, **CLOSE)


def test_double_rows_of_a_double_module_give_the_same_in_a_tensor() -> None:
    made = case("double")
    kept = drawn(made)(torch.tensor(made.X, dtype=torch.float64))
    np.testing.assert_allclose(host(kept.values), values(drawn(made), made.X), **CLOSE)


@pytest.mark.parametrize("query", [ICALQuery, MarginQuery, BatchBALDQuery])
@pytest.mark.parametrize("name", ["logits", "module"])
def test_query_of_tensor_rows_returns_positions_on_the_host(query: Any, name: str) -> None:
    made = case(name)
    strategy = query(random_state=0)
    with torch.random.fork_rng():
        picks = strategy.query(made.model, torch.tensor(made.X), batch_size=4)
    assert isinstance(picks, np.ndarray)
    assert picks.dtype == np.intp
    assert len(set(picks.tolist())) == 4
    np.testing.assert_array_equal(picks, strategy.query(made.model, made.X, batch_size=4))


def test_caller_rows_stay_as_they_are_under_dropout_in_place() -> None:
    made = case("dropout first")
    for X in (made.X.copy(), torch.tensor(made.X), torch.tensor(made.X, device=DEVICE)):
        before = copy.deepcopy(X)
        drawn(made)(X)
        assert (X == before).all()


def test_first_output_of_several_is_the_prediction() -> None:
    made = case("two heads")
    assert isinstance(made.model, FirstHeadNet)
    assert isinstance(made.module, TwoHeads)
    assert values(drawn(made), made.X).shape == (N_POOL, N_DRAWS, 3)
