"""What is written from other parts of the repository: lists of strategies, the picture of rooms.

``python -m pytest tests/test_generated.py --write-tables`` writes all of it.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sklearn_ical
from sklearn_ical._names import STRATEGIES, Named
from sklearn_ical.strategies._resolve import build
from tests.rooms import PLAN, ROOT, arrow_column, arrows, imports, picture, rooms, row_of

HOW_TO = "Run `python -m pytest tests/test_generated.py --write-tables`."
CLASSES = list(dict.fromkeys(named.class_name for named in STRATEGIES.values()))


def root_imports() -> list[str]:
    """Return the lines that import the root's strategies for type checkers."""
    locations = sklearn_ical._LOCATIONS.items()
    names = [name for name, location in locations if location == "strategies"]
    return [f"        {name}," for name in sorted(names, key=str.lower)]


def root_names() -> list[str]:
    """Return the lines of the root's ``__all__``."""
    return [f'    "{name}",' for name in sorted(sklearn_ical._LOCATIONS)]


def typed_names() -> list[str]:
    """Return the lines of the type of strategies' names."""
    return [f'    "{name}",' for name in STRATEGIES]


def reference() -> list[str]:
    """Return the lines of the API reference."""
    return [f"   {name}" for name in CLASSES]


def guide() -> Iterator[str]:
    """Yield the rows of the user guide's table of names."""

    def described(named: Named) -> str:
        parts = " and ".join(f'``"{part}"``' for part in named.parts)
        return f":class:`~sklearn_ical.{named.class_name}`" + (f" of {parts}" if parts else "")

    for named in STRATEGIES.values():
        yield f'   * - ``"{named.name}"``'
        yield f"     - {described(named)}"


def readme() -> Iterator[str]:
    """Yield the rows of the README's table, from docstrings and tags."""
    for named in {named.class_name: named for named in STRATEGIES.values()}.values():
        strategy = build(named.name)
        parts = ", ".join(getattr(strategy, "_part_names", ()))
        call = f"`{named.class_name}({parts})`" if parts else f"`{named.class_name}`"
        yield f"| {' | '.join([call, chooses(strategy), *tags_in_words(strategy)])} |"


def chooses(strategy: Any) -> str:
    """Return what a strategy chooses, in the words of its docstring."""
    summary = (inspect.getdoc(type(strategy)) or "").partition("\n")[0]
    return summary.removeprefix("Choose ").removesuffix(".")


def tags_in_words(strategy: Any) -> list[str]:
    """Return what a strategy reads and uses, and the models that it is for."""
    tags = strategy.query_tags()
    if hasattr(strategy, "_part_names"):
        return ["as its parts"] * 3
    models = "classifiers" if "value" not in tags.kinds else "classifiers, regressors"
    reads, uses = ", ".join(tags.reads) or "nothing", ", ".join(tags.uses)
    return [reads, uses, models if tags.predictions else "any, or none"]


@pytest.mark.parametrize(
    ("path", "lines", "start", "end"),
    [
        ("sklearn_ical/__init__.py", root_imports, "sklearn_ical.strategies import (\n", "\n    )"),
        ("sklearn_ical/__init__.py", root_names, "__all__ = [\n", "\n]"),
        ("sklearn_ical/_typing.py", typed_names, "StrategyName: TypeAlias = Literal[\n", "\n]"),
        ("docs/api.rst", reference, "\n   :nosignatures:\n\n", "\n\nThe classes in one list"),
        ("docs/user_guide/strategies.rst", guide, "   * - name\n     - strategy\n", "\n\n"),
        ("README.md", readme, "| for models |\n|---|---|---|---|---|\n", "\n\n"),
    ],
    ids=["imports of the root", "names of the root", "type", "reference", "guide", "README"],
)
def test_list_is_that_of_the_strategies(
    path: str,
    lines: Callable[[], list[str]],
    start: str,
    end: str,
    request: pytest.FixtureRequest,
) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    before, rest = text.split(start, 1)
    after = rest.partition(end)[2]
    check_or_write(path, before + start + "\n".join(lines()) + end + after, request)


def test_picture_is_that_of_the_imports(request: pytest.FixtureRequest) -> None:
    check_or_write("docs/_static/rooms.svg", picture(), request)


def test_picture_shows_every_room_and_no_arrow_crosses_another_room() -> None:
    assert {room for pair in imports() for room in pair} == set(rooms())
    for start, end in arrows():
        crossed = [
            room
            for room in rooms()
            if row_of(end) < row_of(room) < row_of(start)
            and PLAN[room][0] < arrow_column(start, end) < PLAN[room][1] + 1
        ]
        assert crossed == [], f"{start} -> {end}"
        for room in (start, end):
            assert PLAN[room][0] < arrow_column(start, end) < PLAN[room][1] + 1


def test_arrows_are_imports_and_lead_to_all_others() -> None:
    led = set(arrows())
    assert led <= imports()
    for _ in rooms():
        led |= {(a, d) for a, b in led for c, d in led if b == c}
    assert imports() <= led


def check_or_write(path: str, text: str, request: pytest.FixtureRequest) -> None:
    """Check that a file holds a text, or write it."""
    file = ROOT / path
    if request.config.getoption("--write-tables"):
        file.write_text(text, encoding="utf-8", newline="\n")
    else:
        assert file.exists(), HOW_TO
        assert file.read_text(encoding="utf-8") == text, HOW_TO
