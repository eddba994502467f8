"""Bounds, pins and the README's table of supported versions say the same; installs nothing."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
EXTRAS_OF_USERS = ("torch", "plot", "cli")
EXTRAS_OF_TESTS = (*EXTRAS_OF_USERS, "test")
# What these report depends on their version, so all sessions run the same one.
TOOLS = {"build", "mypy", "pytest", "pytest-xdist", "ruff", "setuptools"}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def requirements_of(extras: tuple[str, ...]) -> list[Requirement]:
    """List what the package and its extras require, itself left out."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return [r for r in map(Requirement, lines) if r.name != project["name"]]


def lower_bound(requirement: Requirement) -> str:
    """Return the version after the one ``>=`` that a requirement consists of."""
    (specifier,) = requirement.specifier
    assert specifier.operator == ">=", str(requirement)
    return specifier.version


def bounds(extras: tuple[str, ...]) -> dict[str, str]:
    return {r.name: lower_bound(r) for r in requirements_of(extras)}


def pins(name: str) -> dict[str, str]:
    """Read the lines ``package==version`` of a file; other lines must be comments."""
    lines = [line for line in read(name).splitlines() if line and not line.startswith("#")]
    return dict(line.split("==") for line in lines)


def section(title: str) -> str:
    """Return the text of one section of the README."""
    _, found, rest = read("README.md").partition(f"\n## {title}\n")
    assert found, f"README.md has no section {title!r}"
    return rest.partition("\n## ")[0]


def test_every_mention_of_a_package_has_the_same_bound() -> None:
    for requirement in requirements_of((*EXTRAS_OF_TESTS, "docs")):
        bound = bounds((*EXTRAS_OF_TESTS, "docs"))[requirement.name]
        assert lower_bound(requirement) == bound, requirement.name


def test_both_builds_of_xgboost_have_the_same_versions() -> None:
    for versions in (bounds(EXTRAS_OF_TESTS), pins("constraints.txt")):
        assert versions["xgboost"] == versions["xgboost-cpu"]


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-oldest.txt"])
def test_direct_dependencies_are_pinned(name: str) -> None:
    assert bounds(EXTRAS_OF_TESTS).keys() - pins(name).keys() == set()


def test_pins_are_no_older_than_the_bounds() -> None:
    pinned = pins("constraints.txt")
    older = {
        package
        for package, bound in bounds(EXTRAS_OF_TESTS).items()
        if Version(pinned[package]) < Version(bound)
    }
    assert older == set()


def test_oldest_pins_are_the_lower_bounds() -> None:
    oldest = pins("constraints-oldest.txt")
    libraries = {k: Version(v) for k, v in bounds(EXTRAS_OF_TESTS).items() if k not in TOOLS}
    assert {package: Version(oldest[package]) for package in libraries} == libraries


def test_tools_have_one_version_in_all_sessions() -> None:
    oldest, pinned = pins("constraints-oldest.txt"), pins("constraints.txt")
    assert {tool: oldest[tool] for tool in TOOLS} == {tool: pinned[tool] for tool in TOOLS}


def test_readme_table_has_the_bounds_and_the_pins() -> None:
    rows = re.findall(r"^\| (\S+) \| (\S+) \| (\S+) \|$", section("Supported versions"), re.M)
    pinned = pins("constraints.txt")
    expected = {name: (bound, pinned[name]) for name, bound in bounds(EXTRAS_OF_USERS).items()}
    assert {name: (oldest, newest) for name, oldest, newest in rows[1:]} == expected


def test_readme_names_the_oldest_python() -> None:
    required = tomllib.loads(read("pyproject.toml"))["project"]["requires-python"]
    assert f"Python {required.removeprefix('>=')} or newer" in section("Supported versions")


def test_sessions_that_are_shown_are_those_that_there_are() -> None:
    sessions = re.findall(r"^@nox\.session\ndef (\w+)\(", read("noxfile.py"), re.M)
    shown = re.findall(r"nox -s (\w+)", read("CONTRIBUTING.md"))
    assert len(sessions) > 0
    assert sorted(shown) == sorted(sessions)
