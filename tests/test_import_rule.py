"""The import rule: the rows of `tests.rooms`, checked on the syntax tree of every source file."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sklearn_ical._names import STRATEGIES
from tests.rooms import PACKAGE, ROOT, ROW_OF, SOURCES

# Files of the strategies that hold no strategy of their own.
STRATEGY_HELPERS = {path.stem for path in (ROOT / PACKAGE / "strategies").glob("_*.py")} - {
    "__init__",
    *(named.module for named in STRATEGIES.values()),
}
OPTIONAL = {
    "torch",
    "skorch",
    "matplotlib",
    "pandas",
    "polars",
    "typer",
    "rich",
    "pyarrow",
    "skops",
}
# Other packages of that set are loaded by scikit-learn itself where it finds them.
NEVER_LOADED = {"torch", "skorch", "matplotlib"}
# Parts of the package that are loaded on use, and what they may therefore load.
MAY_LOAD_OPTIONAL = {
    "sklearn_ical.cli": {"typer", "rich"},
    "sklearn_ical.samplers._torch": {"torch", "skorch"},
}


def module_of(path: Path) -> str:
    """Return the dotted name of a source file; a package's ``__init__`` keeps its own part."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def layer_of(module: str) -> str:
    """Return the layer of a dotted module name: its first part below the package."""
    return module.split(".")[1]


def resolved(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the dotted name that each alias of an import statement stands for."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield f"{'.' * node.level}{node.module or ''}.{alias.name}"
        else:
            yield alias.name


def at_import_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module loads: all but the bodies of functions."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from at_import_time(child)


def for_type_checkers(tree: ast.AST) -> set[ast.AST]:
    """Return the nodes below ``if TYPE_CHECKING:``, which never run."""
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {node for block in blocks for line in block.body for node in ast.walk(line)}


def own_problem(module: str, target: str) -> str | None:
    """Say which rule an import of one of our own names breaks."""
    layer = layer_of(module)
    parts = target.split(".")
    if len(parts) < 2 or not is_module(parts[:2]):
        if target == f"{PACKAGE}.__version__":
            return None
        # The root package's own lazy names would import anything from anywhere.
        return None if layer in ("__init__", "cli", "testing") else "takes a name from the root"
    if layer == "__init__":
        if parts[1] == "_names":  # plain data, which loads nothing else
            return None
        return "the root package must not import its own modules eagerly"
    if parts[1] != layer:
        if ROW_OF[parts[1]] >= ROW_OF[layer]:
            return f"{layer} must not import {parts[1]}"
    elif layer == "strategies" and module.split(".")[2] != "__init__":
        sibling = parts[2] if len(parts) > 2 else ""
        if sibling not in STRATEGY_HELPERS:
            return f"a strategy must not import its sibling {sibling}"
    return None


def is_module(parts: list[str]) -> bool:
    """Tell whether a dotted name is a source file or package, not a name inside one."""
    path = ROOT.joinpath(*parts)
    return len(parts) > 1 and (path.is_dir() or path.with_suffix(".py").is_file())


def outside_problem(module: str, target: str) -> str | None:
    """Say which rule an import of another package's name breaks, wherever it stands."""
    package = target.split(".")[0]
    if package == "":
        return "relative import"
    if package == "sklearn" and layer_of(module) != "_validation":
        if any(part.startswith("_") for part in target.split(".")):
            return "private scikit-learn names belong in _validation"
    if package == "array_api_compat" and layer_of(module) != "_array":
        return "array_api_compat belongs in _array"
    return None


def import_problems(source: str, module: str) -> list[str]:
    """List the imports of one source text that break the rule, as "line: import: reason"."""
    tree = ast.parse(source)
    eager = set(at_import_time(tree))
    # The root package names what it loads on first use, which is anything from anywhere.
    unseen = for_type_checkers(tree) if layer_of(module) == "__init__" else set()
    parents = {".".join(module.split(".")[:n]) for n in range(2, 5)}
    allowed = set().union(*(MAY_LOAD_OPTIONAL.get(parent, set()) for parent in parents))
    problems = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom) or node in unseen:
            continue
        for target in resolved(node):
            package = target.split(".")[0]
            own = package == PACKAGE
            reason = (own_problem if own else outside_problem)(module, target)
            if package in OPTIONAL - allowed and node in eager:
                reason = "optional packages load inside the function that needs them"
            if reason:
                problems.append(f"{node.lineno}: {target}: {reason}")
    return problems


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_source_file_imports_only_what_its_layer_may(path: Path) -> None:
    module = module_of(path)
    assert layer_of(module) in {*ROW_OF, "__init__"}, "a new module needs a layer"
    assert import_problems(path.read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("samples", "from sklearn_ical import samplers", "samples must not import samplers"),
        ("samples", "import sklearn_ical.samplers", "samples must not import samplers"),
        ("_array", "from sklearn_ical import _random", "_array must not import _random"),
        ("samples", "def f():\n    from sklearn_ical import cli", "samples must not import cli"),
        (
            "learner",
            "from sklearn_ical import PredictionSamples",
            "takes a name from the root",
        ),
        (
            "pool._pool",
            "from sklearn_ical.selection import Batch",
            "pool must not import selection",
        ),
        ("learner", "from sklearn_ical import simulation", "learner must not import simulation"),
        (
            "strategies._ical",
            "from sklearn_ical.strategies._bald import BALDQuery",
            "a strategy must not import its sibling _bald",
        ),
        (
            "strategies._ical",
            "from sklearn_ical.strategies import BALDQuery",
            "a strategy must not import its sibling BALDQuery",
        ),
        ("__init__", "from sklearn_ical import samples", "the root package must not import"),
        (
            "__init__",
            "if TYPE_CHECKING:\n    pass\nelse:\n    from sklearn_ical import samples",
            "the root package must not import",
        ),
        (
            "samples",
            "if TYPE_CHECKING:\n    from sklearn_ical import cli",
            "samples must not import cli",
        ),
        ("samples", "from . import _array", "relative import"),
        ("samples", "from sklearn.utils._param_validation import Interval", "private scikit"),
        ("samples", "from sklearn.utils import _safe_indexing", "private scikit"),
        ("samples", "import array_api_compat.torch", "array_api_compat belongs in _array"),
        ("samplers._forest", "import torch.nn", "optional packages load inside"),
        ("samplers._forest", "try:\n    import skorch\nexcept ImportError: ...", "optional"),
        ("plotting", "class A:\n    from matplotlib import pyplot", "optional packages"),
        ("cli", "import matplotlib", "optional packages"),
    ],
)
def test_import_problems_reports_a_forbidden_import(module: str, source: str, reason: str) -> None:
    (problem,) = import_problems(source, f"{PACKAGE}.{module}")
    assert reason in problem


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("__init__", "if TYPE_CHECKING:\n    from sklearn_ical.samples import PredictionSamples"),
        ("samples", "from sklearn_ical import _array"),
        ("samples", "from sklearn_ical._array import Array"),
        ("strategies._ical", "from sklearn_ical.strategies._base import BaseQuery"),
        ("strategies._ical", "from sklearn_ical.samplers import get_sampler"),
        ("pool._pool", "from sklearn_ical.samplers._base import evaluate_in_chunks"),
        ("__init__", "from sklearn_ical._names import STRATEGIES"),
        ("simulation", "from sklearn_ical.strategies._resolve import resolve_strategy"),
        ("strategies.__init__", "from sklearn_ical.strategies._ical import ICALQuery"),
        ("samplers._torch._nets", "import torch"),
        ("samplers._forest", "def f():\n    import torch"),
        ("_validation", "from sklearn.utils import _safe_indexing"),
        ("_array", "import array_api_compat"),
        ("cli", "import typer\nfrom rich.table import Table\nfrom sklearn_ical import BALDQuery"),
    ],
)
def test_import_problems_accepts_an_allowed_import(module: str, source: str) -> None:
    assert import_problems(source, f"{PACKAGE}.{module}") == []


QUERY_A_FOREST = """
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn_ical import ICALQuery
X = np.random.default_rng(0).normal(size=(30, 3))
forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, X[:, 0] > 0)
assert len(ICALQuery(n_reference=10, random_state=0).query(forest, X, batch_size=3)) == 3
"""


@pytest.mark.parametrize("work", ["", QUERY_A_FOREST], ids=["import", "query"])
def test_import_and_query_leave_torch_and_matplotlib_out(work: str) -> None:
    check = f"import sys, sklearn_ical\n{work}\nprint(*sorted({NEVER_LOADED} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == []
