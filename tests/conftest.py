"""Array backends for the tests: conversion to each, and a check that nothing leaves its device."""

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import array_api_compat
import numpy as np
import pytest

TESTS = Path(__file__).parent
# Files that take three quarters of the time; the others run in three minutes on two cores.
SLOW = {
    "cli/test_compare.py",
    "cli/test_query.py",
    "learner/test_learner.py",
    "paper/test_experiments.py",
    "samplers/test_boosting.py",
    "samplers/test_bootstrap.py",
    "samplers/test_deep_ensemble.py",
    "samplers/test_every_estimator.py",
    "samplers/test_mc_dropout.py",
    "samplers/test_mc_dropout_paths.py",
    "samplers/test_nets_in_use.py",
    "samplers/test_skactiveml.py",
    "samplers/test_without_torch.py",
    "simulation/test_identity.py",
    "simulation/test_resume.py",
    "strategies/test_batch_bald.py",
    "strategies/test_costs.py",
    "strategies/test_distinct.py",
    "strategies/test_filtered.py",
    "strategies/test_kernel_batch.py",
    "strategies/test_stochastic.py",
    "sweep/test_sweep.py",
    "test_common.py",
    "test_common_samplers.py",
    "test_docs.py",
    "test_testing.py",
}


@cache
def _backend_names() -> list[str]:
    names = ["numpy", "strict-device1", "torch"]
    if importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            names.append("torch-cuda")
    return names


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-tables", action="store_true", help="write the generated tables of the documents"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", _backend_names(), indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Thin out grids on other backends than numpy, mark slow files, and skip what needs torch."""
    skip_examples_without_torch(items)
    for item in items:
        if item.path.is_relative_to(TESTS) and item.path.relative_to(TESTS).as_posix() in SLOW:
            item.add_marker(pytest.mark.slow)
    thinned = rows_of_other_backends(items)
    config.hook.pytest_deselected(items=[item for item in items if item in thinned])
    items[:] = [item for item in items if item not in thinned]


def rows_of_other_backends(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return all but the first and the last row of each grid on each backend but numpy."""
    grids: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        backend = getattr(item, "callspec", SimpleNamespace(params={})).params.get("backend")
        if backend not in (None, "numpy"):
            grids.setdefault((item.nodeid.partition("[")[0], backend), []).append(item)
    return {item for grid in grids.values() for item in grid[1:-1]}


def skip_examples_without_torch(items: list[pytest.Item]) -> None:
    """Skip the examples of docstrings that need torch where it is not installed."""
    if importlib.util.find_spec("torch") is not None:
        return
    for item in items:
        examples = getattr(getattr(item, "dtest", None), "examples", ())
        if any("import torch" in example.source for example in examples):
            item.add_marker(pytest.mark.skip(reason="needs torch"))


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Callable[[np.ndarray], Any]:
    """Return a function that copies a numpy array to one backend and device; numpy: read-only."""
    if request.param == "numpy":

        def to(x: np.ndarray) -> Any:
            copy = np.array(x)
            copy.flags.writeable = False
            return copy

    elif request.param == "strict-device1":  # a device other than the default one
        strict = pytest.importorskip("array_api_strict")
        place = strict.Device("device1")

        def to(x: np.ndarray) -> Any:
            return strict.asarray(np.array(x), device=place)

    else:
        torch = pytest.importorskip("torch")
        place = torch.device("cuda" if request.param == "torch-cuda" else "cpu")

        def to(x: np.ndarray) -> Any:
            return torch.tensor(np.array(x), device=place)

    return to


@pytest.fixture
def same_place() -> Callable[[Any, Any], None]:
    """Return an assertion that a result has the namespace and the device of an input."""

    def check(result: Any, reference: Any) -> None:
        namespace = array_api_compat.array_namespace
        assert namespace(result) is namespace(reference)
        assert array_api_compat.device(result) == array_api_compat.device(reference)

    return check
