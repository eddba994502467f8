"""The public names: which there are, where they live and that loading them is lazy."""

import re
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

import pytest

import sklearn_ical
from sklearn_ical._names import STRATEGIES

ROOT = Path(__file__).resolve().parents[1]
PUBLIC_MODULES = (
    "sklearn_ical",
    "sklearn_ical.dependence",
    "sklearn_ical.exceptions",
    "sklearn_ical.learner",
    "sklearn_ical.pool",
    "sklearn_ical.samplers",
    "sklearn_ical.selection",
    "sklearn_ical.simulation",
    "sklearn_ical.strategies",
    "sklearn_ical.testing",
)


@pytest.mark.parametrize("module_name", PUBLIC_MODULES)
def test_all_is_sorted_and_every_name_resolves(module_name: str) -> None:
    module = import_module(module_name)
    assert list(module.__all__) == sorted(set(module.__all__))
    for name in module.__all__:
        assert not name.startswith("_")
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("module_name", PUBLIC_MODULES[1:])
def test_all_names_every_public_object_defined_there(module_name: str) -> None:
    module = import_module(module_name)
    defined = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and getattr(value, "__module__", "").startswith(module_name)
    }
    assert defined <= set(module.__all__)


def test_reference_lists_every_public_name_once() -> None:
    text = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w[\w.]*)$", text, re.MULTILINE)
    names = {
        name
        if name in sklearn_ical.__all__
        else f"{module_name.removeprefix('sklearn_ical.')}.{name}"
        for module_name in PUBLIC_MODULES
        for name in import_module(module_name).__all__
    }
    assert sorted(listed) == sorted({*names, "plotting.LearningCurvesDisplay"})


def test_root_names_are_those_of_the_modules_they_come_from() -> None:
    assert sorted(sklearn_ical._LOCATIONS) == list(sklearn_ical.__all__)
    for name, location in sklearn_ical._LOCATIONS.items():
        module = import_module(f"sklearn_ical.{location}")
        assert getattr(sklearn_ical, name) is getattr(module, name)


def test_root_strategies_are_those_of_the_strategies_package() -> None:
    strategies = import_module("sklearn_ical.strategies")
    public = {name for name, at in sklearn_ical._LOCATIONS.items() if at == "strategies"}
    queries = {name for name in strategies.__all__ if name.endswith("Query")}
    assert public == queries - {"PointwiseQuery"}  # a base class for authors of strategies
    assert public - {"BaseQuery"} == {named.class_name for named in STRATEGIES.values()}


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'sklearn_ical' has no attribute 'IcalQuery'"):
        _ = sklearn_ical.IcalQuery


def test_import_loads_no_heavy_package() -> None:
    check = "import sys, sklearn_ical; print('numpy' in sys.modules, 'sklearn' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["False", "False"]


def test_version_is_that_of_the_installed_distribution() -> None:
    try:
        installed = metadata.version("sklearn-ical")
    except metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    assert sklearn_ical.__version__ == installed
