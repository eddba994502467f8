"""Every strategy still answers the problems of the record as it did when the file was written."""

import inspect
import json
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sklearn_ical
from sklearn_ical import BaseQuery
from tests.record.__main__ import changes
from tests.record.problems import (
    Answer,
    Problem,
    all_problems,
    as_answer,
    differences,
    line_of,
    read,
    rounded,
)
from tests.record.settings import MAIN, Setting

CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"
GROUPS = list(dict.fromkeys(problem.group for problem in all_problems()))
HOW_TO = "If the change is intended, run `python -m tests.record` and list what it prints."


@cache
def pins() -> dict[str, str]:
    """Return the pinned version of each package whose arithmetic the answers depend on."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    return {package: pinned[package] for package in ("numpy", "scipy", "scikit-learn")}


def skip_at_other_versions() -> None:
    """Skip the test unless the pinned versions are installed."""
    for package, pinned in pins().items():
        if version(package) != pinned:
            pytest.skip(
                f"the record holds for {package} {pinned} (constraints.txt), not {version(package)}"
            )


def failures(problems: list[Problem], kept: dict[str, Answer]) -> list[str]:
    """Describe each problem whose answer differs from the kept one."""
    lines = []
    for problem in problems:
        if problem.name not in kept:
            lines.append(f"{problem.name}\n    is not in the file")
            continue
        answer = as_answer(*raw_answer(problem.name), problem.digits)
        found = differences(kept[problem.name], answer, problem.digits)
        lines += [f"{problem.name}\n    {each}" for each in found]
    return lines


@cache
def raw_answer(name: str) -> Any:
    """Return the picks, warnings and utilities of a problem, computed once for all tests."""
    return {problem.name: problem for problem in all_problems()}[name].raw()


@pytest.mark.parametrize("group", GROUPS)
def test_answers_are_those_of_the_record(group: str) -> None:
    skip_at_other_versions()
    if group == "torch":
        pytest.importorskip("torch")
    problems = [problem for problem in all_problems() if problem.group == group]
    found = failures(problems, read()[1])
    assert not found, "\n".join([f"{len(found)} answers changed. {HOW_TO}", *found])


def test_record_was_written_at_the_pinned_versions() -> None:
    versions, _ = read()
    assert {package: versions[package] for package in pins()} == pins()


def test_file_holds_the_problems_of_the_script_and_no_others() -> None:
    names = [problem.name for problem in all_problems()]
    assert len(names) >= 300
    assert len(set(names)) == len(names)
    assert list(read()[1]) == names


def test_every_public_strategy_occurs() -> None:
    public = {getattr(sklearn_ical, name) for name in sklearn_ical.__all__}
    strategies = {one for one in public if inspect.isclass(one) and issubclass(one, BaseQuery)}
    assert {type(setting.make(0)) for setting in MAIN} == strategies - {BaseQuery}


def missing_values(settings: list[Setting], strategy: type) -> list[str]:
    """List the values of a strategy's parameters that no setting has.

    They are the strings, both truth values, None, callables, and a number besides the default.
    """
    missing = []
    made = [setting.make(0) for setting in settings if setting.strategy is strategy]
    constraints: dict[str, list[Any]] = getattr(strategy, "_parameter_constraints", {})
    for name, parameter in inspect.signature(strategy).parameters.items():
        if name == "random_state":
            continue
        found = [getattr(each, name) for each in made]
        wanted: list[Any] = []
        for constraint in constraints.get(name, []):
            wanted += getattr(constraint, "options", [True, False] * (constraint == "boolean"))
        missing += [
            f"{name}={value!r}" for value in wanted if not any(_is(value, x) for x in found)
        ]
        if None in constraints.get(name, []) and None not in [x for x in found if x is None]:
            missing.append(f"{name}=None")
        if callable in constraints.get(name, []) and not any(map(callable, found)):
            missing.append(f"{name}=callable")
        if all(_is(parameter.default, x) for x in found):
            missing.append(f"{name} other than {parameter.default!r}")
    return missing


def _is(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(np.all(value == other))


@pytest.mark.parametrize("strategy", [main.strategy for main in MAIN])
def test_every_value_of_every_parameter_occurs(strategy: type) -> None:
    settings = [problem.setting for problem in all_problems()]
    assert missing_values(settings, strategy) == []


def test_missing_values_are_noticed() -> None:
    settings = [p.setting for p in all_problems() if p.setting.params.get("method") != "lcmd"]
    strategy = sklearn_ical.KernelBatchQuery
    assert missing_values(settings, strategy) == ["method='lcmd'"]


def near_tie(rows: np.ndarray, size: float) -> bool:
    """Return whether in some row the best value is ahead of another by rounding alone."""
    for row in rows:
        gaps = np.nanmax(row) - row[~np.isnan(row)]
        if np.any((gaps > 0) & (gaps < size * np.nanmax(np.abs(rows)))):
            return True
    return False


def test_no_pick_depends_on_rounding() -> None:
    skip_at_other_versions()
    doubtful = []
    for problem in all_problems():
        if problem.digits == 10 and "costs" not in problem.situation and not problem.needs_torch:
            _, _, utilities = raw_answer(problem.name)
            if near_tie(utilities, 1e-9):
                doubtful.append(problem.name)
    assert doubtful == []


ANSWER = Answer([3, 1], ["BatchClippedWarning"], [[None, 0.25, 0.125, 2.0], [0.0, 1.0, 0.5, None]])


@pytest.mark.parametrize(
    ("twin", "what"),
    [
        (replace(ANSWER, picks=[1, 3]), "picks: expected [3, 1], got [1, 3]"),
        (replace(ANSWER, warnings=[]), "warnings: expected ['BatchClippedWarning'], got []"),
        (
            replace(ANSWER, utilities=[ANSWER.utilities[0], [0.0, 1.0, 0.5001, None]]),
            "utilities: 1 differ, the first in row 1, column 2: expected",
        ),
        (
            replace(ANSWER, utilities=[ANSWER.utilities[0], [0.0, 1.0, None, None]]),
            "utilities: 1 differ, the first in row 1, column 2: expected",
        ),
        (replace(ANSWER, utilities=ANSWER.utilities[:1]), "utilities: expected shape (2, 4)"),
    ],
)
@pytest.mark.parametrize("digits", [10, 5])
def test_comparison_notices_one_change(twin: Answer, what: str, digits: int) -> None:
    if "0.5001" in str(twin) and digits == 5:
        twin = json.loads(json.dumps(vars(twin)).replace("0.5001", "0.51"))
        twin = Answer(**twin)
    (found,) = differences(ANSWER, twin, digits)
    assert found.startswith(what)
    assert differences(ANSWER, replace(ANSWER), digits) == []


def test_one_changed_line_of_the_file_is_reported_by_name() -> None:
    skip_at_other_versions()
    _, kept = read()
    problems = [p for p in all_problems() if p.setting.name == "MarginQuery()"][:4]
    broken = problems[0].name
    kept[broken] = replace(kept[broken], picks=kept[broken].picks[::-1])
    (found,) = failures(problems, kept)
    assert found.startswith(f"{broken}\n    picks: expected ")


def test_changes_are_listed_by_name() -> None:
    _, kept = read()
    first, second, third, *_ = kept
    found = {name: answer for name, answer in kept.items() if name != first}
    found[second] = replace(kept[second], picks=[])
    kept_before = {name: answer for name, answer in kept.items() if name != third}
    problems = {problem.name: problem for problem in all_problems()}
    lines = changes({**kept_before, first: kept[first]}, {**found, first: kept[first]})
    assert lines[0] == f"added   {third}"
    assert lines[1].startswith(f"changed {second}: picks: expected ")
    assert len(lines) == 2
    assert "\n" not in line_of(problems[first], kept[first])


def test_utilities_are_rounded_in_proportion_to_the_largest() -> None:
    utilities = np.array([[123.4567891234, np.nan], [-1e-15, 1e-3]])
    assert rounded(utilities, 10) == [[123.4567891, None], [0.0, 0.001]]
    assert str(rounded(-np.zeros((1, 1)), 10)) == "[[0.0]]"
