"""`sklearn-ical strategies`: what each strategy reads; and strategies made from their names."""

import inspect
import json
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any

from typer import Option

from sklearn_ical._names import STRATEGIES
from sklearn_ical.cli._files import csv_text, print_bytes
from sklearn_ical.cli._options import with_options

COLUMNS = ("name", "reads", "uses", "kinds", "min_draws", "deterministic", "utilities", "summary")


class ListFormat(StrEnum):
    """Forms in which `strategies` lists."""

    table = "table"
    csv = "csv"
    json = "json"


@dataclass(frozen=True)
class Listing:
    """The options of `sklearn-ical strategies`."""

    list_format: Annotated[ListFormat, Option("--format", help="Form of the list.")] = (
        ListFormat.table
    )


def make_strategy(name: str, seed: int | None = None) -> Any:
    """Return the strategy of a name in `STRATEGIES`, with its default parameters."""
    from sklearn_ical._random import seeded
    from sklearn_ical.strategies._resolve import build

    return seeded(build(name), seed)


@with_options(Listing)
def strategies(asked: Listing) -> None:
    """List the query strategies and what each reads."""
    records = [_record(name) for name in STRATEGIES]
    if asked.list_format == "json":
        print_bytes(f"{json.dumps(records, indent=2)}\n".encode())
    elif asked.list_format == "csv":
        print_bytes(csv_text([COLUMNS, *map(_cells, records)]).encode())
    else:
        _print_table(records)


def _record(name: str) -> dict[str, Any]:
    """Return the record of a default instance."""
    strategy = make_strategy(name)
    known = {
        "name": name,
        **asdict(strategy.query_tags()),
        "summary": (inspect.getdoc(type(strategy)) or "").partition("\n")[0],
    }
    return {column: known[column] for column in COLUMNS}


def _cells(record: dict[str, Any]) -> list[str]:
    """Return a record's values as text, several values separated by spaces."""
    return [
        " ".join(value) if isinstance(value, tuple) else str(value) for value in record.values()
    ]


def _print_table(records: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column.replace("_", " "), overflow="fold")
    for record in records:
        table.add_row(*_cells(record))
    # A pipe has no width to fit the table into.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(table)
