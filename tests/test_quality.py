"""Quality gates of the source tree: linter, formatter, types, docstrings and sizes; no behavior."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sklearn_ical"
SOURCES = sorted(PACKAGE.rglob("*.py"))
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
TEXT_SUFFIXES = {".cfg", ".ini", ".md", ".py", ".rst", ".toml", ".txt", ".yaml", ".yml", ""}
VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
PUBLIC_MODULES = (
    "sklearn_ical",
    "sklearn_ical.dependence",
    "sklearn_ical.samplers",
    "sklearn_ical.testing",
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "--no-cache"), ("ruff", "format", "--check", "--no-cache"), ("mypy",)],
    ids=["ruff-check", "ruff-format", "mypy"],
)
def test_tool_reports_nothing(command: tuple[str, ...]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}\n{result.stderr}"


def file_problems(source: str) -> list[str]:
    """Say what breaks the rules on opening sentences and lengths in one source text."""
    problems = []
    tree = ast.parse(source)
    first_line = (ast.get_docstring(tree) or "").partition("\n")[0]
    if not first_line.endswith("."):
        problems.append("does not open with a one-sentence docstring")
    if len(source.splitlines()) > MAX_FILE_LINES:
        problems.append(f"has more than {MAX_FILE_LINES} lines")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_lines = code_lines(node)
            if n_lines > MAX_FUNCTION_LINES:
                problems.append(f"{node.name} has {n_lines} lines, over {MAX_FUNCTION_LINES}")
    return problems


def code_lines(node: Any) -> int:
    """Count the lines of a function without its docstring."""
    n_lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node, clean=False) is not None:
        n_lines -= node.body[0].end_lineno - node.body[0].lineno + 1
    return n_lines


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_source_file_follows_the_size_rules(path: Path) -> None:
    assert file_problems(path.read_text(encoding="utf-8")) == []


def test_file_problems_reports_each_broken_rule() -> None:
    long_function = "def f():\n" + "    x = 1\n" * MAX_FUNCTION_LINES
    assert file_problems(long_function) == [
        "does not open with a one-sentence docstring",
        f"f has {MAX_FUNCTION_LINES + 1} lines, over {MAX_FUNCTION_LINES}",
    ]
    assert file_problems('"""Ok."""\n' + "\n" * MAX_FILE_LINES) == [
        f"has more than {MAX_FILE_LINES} lines"
    ]
    documented = 'def f():\n    """Text.\n' + "\n" * MAX_FUNCTION_LINES + '    """\n    x = 1\n'
    assert file_problems('"""Ok."""\n' + documented) == []


def text_files() -> list[Path]:
    """List the text files of the tree that git tracks or would track."""
    result = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        pytest.skip("the tree is no git checkout")
    paths = [ROOT / name for name in result.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and path.suffix in TEXT_SUFFIXES]


def test_text_files_hold_no_path_of_one_machine() -> None:
    files = text_files()
    assert PACKAGE / "__init__.py" in files
    forbidden = "/" + "work" + "/"
    assert [name_of(path) for path in files if forbidden in path.read_text(encoding="utf-8")] == []


def documented_parameters(docstring: str) -> set[str]:
    """Return the parameter names that a numpydoc docstring describes."""
    _, _, section = docstring.partition("Parameters\n----------\n")
    section = re.split(r"\n\n[A-Z][A-Za-z ]+\n-{3,}\n", section)[0]
    entries = [line.partition(" :")[0] for line in section.splitlines() if line[:1].strip()]
    return {name.strip(" *") for entry in entries for name in entry.split(",")}


def docstring_problems(public: Any, name: str) -> list[str]:
    """Say what the docstring of a public class or function lacks."""
    docstring = inspect.getdoc(public)
    if not docstring:
        return [f"{name} has no docstring"]
    signature = inspect.signature(public)
    named = {key for key, value in signature.parameters.items() if value.kind not in VARIADIC}
    undocumented = named - documented_parameters(docstring)
    problems = [f"{name} does not describe {parameter}" for parameter in sorted(undocumented)]
    if isinstance(public, type):
        methods = [key for key, value in vars(public).items() if inspect.isfunction(value)]
        public_methods = [key for key in methods if not key.startswith("_")]
        bare = [key for key in public_methods if not inspect.getdoc(getattr(public, key))]
        problems += [f"{name}.{key} has no docstring" for key in bare]
    elif signature.return_annotation is not None and "Returns\n-------" not in docstring:
        problems.append(f"{name} has no section Returns")
    return problems


@pytest.mark.parametrize("module_name", PUBLIC_MODULES)
def test_public_docstrings_have_their_sections(module_name: str) -> None:
    module = import_module(module_name)
    problems: list[str] = []
    for name in module.__all__:
        if callable(getattr(module, name)):
            problems += docstring_problems(getattr(module, name), name)
    assert problems == []


def test_docstring_problems_reports_each_gap() -> None:
    def bare(x: int) -> int:
        return x

    def half(first: int, second: int, third: int) -> int:
        return first + second + third

    class Silent:
        """Say nothing."""

        def method(self) -> None:
            pass

    half.__doc__ = """Add.

    Parameters
    ----------
    first, second : int
        Numbers.

    Notes
    -----
    third : no parameter
    """
    assert docstring_problems(bare, "bare") == ["bare has no docstring"]
    assert docstring_problems(half, "half") == [
        "half does not describe third",
        "half has no section Returns",
    ]
    assert docstring_problems(Silent, "Silent") == ["Silent.method has no docstring"]
