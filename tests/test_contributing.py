"""CONTRIBUTING.md: its example runs, the files that it names exist, and every room is named."""

import re
from textwrap import dedent

import pytest

import sklearn_ical
from tests.rooms import ROOT, SHARED, rooms

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
OF_THE_EXAMPLE = {"sklearn_ical/strategies/_gini.py", "tests/strategies/test_gini.py"}


def test_example_of_a_strategy_passes_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^( *)```python\n(.*?)^\1```$", TEXT, re.MULTILINE | re.DOTALL)
    strategy, test = (dedent(code) for _, code in blocks)
    names = {"__name__": "sklearn_ical.strategies._gini"}
    exec(strategy, names)
    monkeypatch.setattr(sklearn_ical, "GiniQuery", names["GiniQuery"], raising=False)
    exec(test, names)
    names["test_utilities_are_gini_impurities_of_the_mean"]()


def test_files_that_are_named_exist() -> None:
    named = set(re.findall(r"[\w./-]+\.(?:py|md|jsonl|rst|svg|txt)\b", TEXT))
    paths = {path for path in named if "/" in path} - OF_THE_EXAMPLE
    assert len(paths) > 20
    places = (ROOT, ROOT / "sklearn_ical")
    assert {path for path in paths if not any((at / path).exists() for at in places)} == set()


def test_every_room_is_named() -> None:
    assert {room for room in rooms() if f"**`{room}`**" not in TEXT} == {SHARED}
