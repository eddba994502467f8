"""Types as users meet them: what a type checker says of their scripts, and what it is told."""

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_overloads, get_type_hints

import numpy as np
import pytest

import sklearn_ical
from sklearn_ical import PredictionSamples, samplers, samples, strategies
from sklearn_ical._names import STRATEGIES
from sklearn_ical._typing import StrategyName
from sklearn_ical._validation import StrOptions
from sklearn_ical.dependence import _kernels, hsic, hsic_dual, radial_profile, rbf_kernel
from sklearn_ical.samplers import DeepEnsembleSampler, MCDropoutSampler
from sklearn_ical.testing import _estimator

ROOT = Path(__file__).resolve().parents[1]

CORRECT = """
from typing import assert_type

import numpy as np
import numpy.typing as npt

from sklearn_ical import (
    ActiveLearner, BaseQuery, FilteredQuery, ICALCoverageQuery, ICALQuery, KernelBatchQuery,
    LogDetQuery, MarginQuery, PredictionSamples, RandomQuery, SimulationResult, compare_strategies,
    simulate,
)
from sklearn_ical.samplers import BaseSampler, BootstrapSampler, Draws, get_sampler
from sklearn_ical.simulation import ComparisonResult, Patience, RoundState, TargetScore

Indices = npt.NDArray[np.intp]
Both = tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]


def use(strategy: BaseQuery, model: object, X: np.ndarray, both: bool) -> None:
    assert_type(strategy.query(model, X), Indices)
    assert_type(strategy.query(model, X, 5, return_utilities=False), Indices)
    assert_type(strategy.query(model, X, np.int64(5), return_utilities=True), Both)
    assert_type(strategy.query(model, X, return_utilities=both), Indices | Both)
    assert_type(strategy.select(X, candidates=range(3)), Indices)
    assert_type(strategy.select(X, costs=[1, 2.5], budget=3, return_utilities=True), Both)
    strategy.query(model, X, candidates=np.ones(3, dtype=bool), costs=np.ones(3))


def ask(learner: ActiveLearner, X: np.ndarray) -> None:
    assert_type(learner.query(X, 3, costs=np.ones(3)), Indices)
    assert_type(learner.query(X, 3, return_utilities=True), Both)


def draws(model: object, X: np.ndarray) -> Draws:
    sampler: BaseSampler = BootstrapSampler(model, n_draws=np.int64(5), method="bayesian")
    get_sampler(model)
    return sampler.draw(np.int64(3), np.random.default_rng(0))


class Constant(BaseQuery):
    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state


class Third:
    def query(self, model: object, X_pool: list[str], batch_size: int) -> list[int]:
        return [0]


def report(state: RoundState) -> None:
    print(state.rounds)


X, y = np.zeros((4, 2)), np.zeros(4)
margin = FilteredQuery(MarginQuery(), RandomQuery(random_state=np.random.RandomState(0)))
use(ICALQuery(n_reference=np.int64(5), kernel=lambda distance: distance), None, X, True)
use(margin, None, X, False)
assert_type(ICALQuery().query(None, X, reference=[[0, 1], [2, 3]], return_utilities=True), Both)
assert_type(ICALQuery().select(X, reference=np.arange(3)), Indices)
assert_type(margin.select(X, labeled_samples=X, X_pool=X), Indices)
assert_type(KernelBatchQuery("lcmd").select(X, labeled_samples=X, return_utilities=True), Both)
ICALCoverageQuery(candidate_weight="margin", reference_weight=[1, 2, 3], gamma=np.float64(0.5))
LogDetQuery(noise="ledoit-wolf")
LogDetQuery(noise=1)
PredictionSamples(X, "value", noise_variance=0.5).mean()
PredictionSamples.from_array(X, "KNC", kind="label", classes=["a", "b"])
ActiveLearner(None, Third())
ActiveLearner(None, "margin")
FilteredQuery("margin", "ical")
assert_type(ActiveLearner(None, Constant()).fit(X, y), ActiveLearner)
assert_type(ICALQuery().set_params(n_reference=5), ICALQuery)
compare_strategies(None, X, y, [margin, Third(), "bald"], stopping=Patience(5))
assert_type(
    simulate(
        None, X, y, MarginQuery(), n_rounds=3, initial="balanced", scoring=["accuracy"],
        stopping=[Patience(5), TargetScore(0.9)], callbacks=report, random_state=np.int64(0),
    ),
    SimulationResult,
)
assert_type(
    compare_strategies(None, X, y, {"margin": margin, "ical": ICALQuery()}, seeds=range(3)),
    ComparisonResult,
)
"""

# Packages that take long to read, and that no type here comes from, are left out.
CONFIGURATION = """
[mypy]
strict = true
follow_imports = silent
cache_dir = cache
error_summary = false
[mypy-matplotlib.*,pandas.*,polars.*,rich.*,skorch.*,torch.*]
follow_imports = skip
"""

WRONG = """
import numpy as np

from sklearn_ical import ActiveLearner, ICALQuery, LogDetQuery, PredictionSamples, simulate
from sklearn_ical import ICALQuerry  # attr-defined

X = np.zeros((4, 2))
ICALQuery(n_refernce=5)  # call-arg
ICALQuery(n_reference="many")  # arg-type
strategy = ICALQuery(n_reference=5)
strategy.qeury(None, X)  # attr-defined
ActiveLearner(None, strategy).qeury(X)  # attr-defined
ICALQuery(kernel="rbg")  # arg-type
LogDetQuery(noise="ledoit-wolff")  # arg-type
strategy.query(None, X, candidate=[0])  # call-overload
strategy.query(None, X, candidates="all")  # arg-type
strategy.select(X, marginal=[0])  # call-overload
picks: list[str] = strategy.query(None, X)  # assignment
strategy.query(None, X, return_utilities=True).shape  # attr-defined
PredictionSamples(X, "probability")  # arg-type
PredictionSamples.from_array(X, "CNK")  # arg-type
ActiveLearner(None, strategy="margn")  # arg-type
simulate(None, X, X, strategy, initial="balance")  # arg-type
simulate(None, X, X, strategy, n_round=3)  # call-arg
simulate(None, X, X, strategy).scroes  # attr-defined
"""


def test_type_checker_accepts_a_correct_script_and_finds_each_mistake(tmp_path: Path) -> None:
    (tmp_path / "correct.py").write_text(CORRECT, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(CONFIGURATION, encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "correct.py", "wrong.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""
    found = re.findall(r"^(\w+)\.py:(\d+): error: .*\[([\w-]+)\]$", result.stdout, re.MULTILINE)
    expected = {
        ("wrong", str(number), line.partition("  # ")[2])
        for number, line in enumerate(WRONG.splitlines(), start=1)
        if "  # " in line
    }
    assert set(found) == expected, result.stdout


def test_root_imports_for_type_checkers_are_those_that_load_on_use() -> None:
    tree = ast.parse((ROOT / "sklearn_ical" / "__init__.py").read_text(encoding="utf-8"))
    seen = {}
    for block in tree.body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                assert isinstance(line, ast.ImportFrom)
                seen |= {alias.name: line.module for alias in line.names if not alias.asname}
    assert sorted(seen) == sklearn_ical.__all__
    for name, module in seen.items():
        assert getattr(import_module(str(module)), name) is getattr(sklearn_ical, name)


def texts(hint: Any) -> set[str]:
    """Return the strings that a type allows, "*" for any string."""
    if hint is str:
        return {"*"}
    if get_origin(hint) is Literal:
        return {value for value in get_args(hint) if isinstance(value, str)}
    if get_origin(hint) in (Callable, dict, list, tuple):
        return set()
    return set().union(*(texts(part) for part in get_args(hint)))


def constrained() -> Iterator[type]:
    """Yield the public strategies and samplers whose parameters are checked by constraints."""
    for module in (strategies, samplers):
        for name in module.__all__:
            if hasattr(getattr(module, name), "_parameter_constraints"):
                yield getattr(module, name)


@pytest.mark.parametrize("cls", list(constrained()), ids=lambda cls: cls.__name__)
def test_literals_of_parameters_are_the_options_that_the_check_allows(cls: Any) -> None:
    hints = get_type_hints(cls.__init__)
    for name in inspect.signature(cls).parameters:
        rules = cls._parameter_constraints.get(name, [])
        options = [rule.options for rule in rules if isinstance(rule, StrOptions)]
        names = set(STRATEGIES) if name in getattr(cls, "_part_names", ()) else set()
        assert texts(hints[name]) == names.union(*options), name
        for python_type in (bool, type(None)):
            rule = {bool: "boolean", type(None): None}[python_type]
            known = rule in rules or (python_type is not bool and "random_state" in rules)
            assert (python_type in {hints[name], *get_args(hints[name])}) == known, name


def test_literal_of_strategy_names_is_the_list() -> None:
    assert list(get_args(StrategyName)) == list(STRATEGIES)


def test_constrained_classes_are_found() -> None:
    names = {cls.__name__ for cls in constrained()}
    assert {"ICALQuery", "BootstrapSampler"} <= names
    assert len(names) > 15


@pytest.mark.parametrize(
    ("function", "parameter", "options"),
    [
        (PredictionSamples.__init__, "kind", samples.KINDS),
        (PredictionSamples.from_array, "kind", samples.KINDS),
        (radial_profile, "kernel", _kernels._PROFILES),
        (rbf_kernel, "length_scale", {"median"}),
        (sklearn_ical.simulate, "initial", {"balanced", *STRATEGIES}),
        (sklearn_ical.compare_strategies, "initial", {"balanced", *STRATEGIES}),
        (
            strategies.QueryTags,
            "reads",
            {"draws", "mean", "features", "gradients", "labeled", "refits"},
        ),
        (strategies.QueryTags, "uses", {"reference", "labeled", "model"}),
        (strategies.QueryTags, "kinds", _estimator.KINDS),
        (strategies.QueryTags, "utilities", {"gain", "other"}),
    ],
    ids=lambda value: getattr(value, "__qualname__", None),
)
def test_literals_of_functions_are_the_options_that_they_know(
    function: Any, parameter: str, options: Any
) -> None:
    hint = get_type_hints(function)[parameter]
    if get_origin(hint) is tuple:
        hint = get_args(hint)[0]
    assert texts(hint) == set(options)


@pytest.mark.parametrize("sampler", [MCDropoutSampler, DeepEnsembleSampler])
def test_literals_of_nets_are_the_kinds_that_they_know(sampler: Any) -> None:
    nets = pytest.importorskip("sklearn_ical.samplers._torch._nets")
    assert texts(get_type_hints(sampler.__init__)["kind"]) == set(nets.NET_KINDS)


GRAM = np.ones((1, 4, 4))
CALLS = {
    "hsic": (hsic, "estimator", lambda option: hsic(GRAM, GRAM, estimator=option)),
    "hsic_dual": (hsic_dual, "estimator", lambda option: hsic_dual(GRAM, estimator=option)),
    "from_array": (
        PredictionSamples.from_array,
        "layout",
        lambda option: PredictionSamples.from_array(np.ones((1, 1, 1)), option),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_literal_is_accepted_and_another_text_is_not(name: str) -> None:
    function, parameter, call = CALLS[name]
    options = texts(get_type_hints(function)[parameter])
    assert len(options) > 1
    for option in options:
        call(option)
    with pytest.raises(ValueError, match="other"):
        call("other")


@pytest.mark.parametrize("method", ["query", "select"])
def test_overloads_take_the_arguments_of_the_method(method: str) -> None:
    function = getattr(strategies.BaseQuery, method)
    defined = inspect.signature(function).parameters
    hints = get_type_hints(function)
    overloads = get_overloads(function)
    assert len(overloads) == 3
    for overload in overloads:
        own = get_type_hints(overload)
        (options,) = get_args(own.pop("options"))
        assert own.pop("return") in (hints["return"], *get_args(hints["return"]))
        own.pop("return_utilities")
        assert own | get_type_hints(options) | {"return_utilities": bool} == {
            name: hints[name] for name in defined if name != "self"
        }
