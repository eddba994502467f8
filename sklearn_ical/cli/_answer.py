"""The work of `sklearn-ical query`: from a model file and a pool file to the rows to label next."""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_ical.cli._column_types import check_asked, column_types, type_of_labels
from sklearn_ical.cli._conversion import ColumnType, Types
from sklearn_ical.cli._csv import STDIN, place_of, quoted
from sklearn_ical.cli._errors import CommandError, note, one_line, warnings_as_notes
from sklearn_ical.cli._features import rows_for_model
from sklearn_ical.cli._files import check_free, check_readable, csv_text, print_bytes, write
from sklearn_ical.cli._models import read_model
from sklearn_ical.cli._progress import steps
from sklearn_ical.cli._query import Query
from sklearn_ical.cli._strategies import make_strategy
from sklearn_ical.cli._tables import Table, read_labeled, read_table
from sklearn_ical.exceptions import LabeledRowsMissingError


@dataclass(frozen=True)
class Pick:
    """A chosen row: its position in the pool, and its utility and ID if requested."""

    position: int
    utility: float | None = None
    id: str | None = None


def answer(asked: Query) -> None:
    """Choose rows and print them, or write them to a file."""
    if asked.out is not None:
        _check_out(asked.out, asked)
    with warnings_as_notes(), steps() as step:
        step("Reading the model")
        model = read_model(
            asked.model,
            trusted=asked.trust_type or (),
            unsafe_pickle=asked.unsafe_pickle,
            arguments=sys.argv[1:],
        )
        step("Reading the pool")
        spent = [column for column in (asked.id_column, asked.cost_column) if column]
        pool = read_table(
            asked.pool,
            key=asked.key,
            id_column=asked.id_column,
            types=_types(asked, model, spent),
        )
        if asked.answer_format == "text":
            _check_one_line(pool)
        costs = _costs(pool, asked.cost_column)
        X_pool = rows_for_model(model, asked.model, pool, spent)
        labeled = _labeled(asked, model, spent)
        step("Choosing rows")
        picks = _choose(asked, model, X_pool, labeled, pool, costs)
    if asked.answer_format == "csv":
        text = _csv_of_picks(picks, with_ids=pool.ids is not None)
    else:
        text = _json(picks) if asked.answer_format == "json" else _text(picks)
    if asked.out is None:
        print_bytes(text.encode())
    else:
        write(asked.out, text.encode())


def _check_out(out: Path, asked: Query) -> None:
    """Raise, before any work, if anything but an earlier answer would be overwritten."""
    check_free(out, asked.force)
    if not out.parent.is_dir():
        raise CommandError(f"--out must be in a folder that exists. Got {out}.")
    check_readable(asked.model)
    for source in (str(asked.model), asked.pool):
        if out.exists() and source != STDIN and Path(source).exists() and out.samefile(source):
            raise CommandError(f"--out must not be the file that is read. Got {out}.")


def _check_one_line(pool: Table) -> None:
    """Raise if an ID would break the lines of the text format."""
    for position, text in enumerate(pool.ids or []):
        if any(character in text for character in "\t\r\n"):
            raise CommandError(
                f"An ID with a tab or line break needs --format csv or json. Got {text!r} at "
                f"position {position} of {pool.name}."
            )


def _types(asked: Query, model: Any, spent: list[str]) -> Types:
    """Return a function that returns the types of the columns of the pool."""

    def of_pool(columns: list[str]) -> Mapping[str, ColumnType]:
        names = [name for name in asked.types if name != asked.target]
        check_asked(names, columns, asked.pool)
        return column_types(model, columns, asked.types, spent)

    return of_pool


def _types_of_labeled(asked: Query, model: Any, spent: list[str]) -> Types:
    """Return a function that returns the types of the columns of the labeled rows."""

    def of_labeled(columns: list[str]) -> Mapping[str, ColumnType]:
        labels = type_of_labels(model)
        known = {} if labels is None or asked.target is None else {asked.target: labels}
        return known | column_types(model, columns, asked.types, [*spent, str(asked.target)])

    return of_labeled


def _costs(pool: Table, column: str | None) -> Any:
    """Return the cost of each row as float64 of shape (n_rows,), None without a column."""
    if column is None:
        return None
    place_of(column, list(pool.rows.columns), pool.name, "--cost-column")
    try:
        return pool.rows[column].to_numpy(dtype="float64", na_value=math.nan)
    except (TypeError, ValueError) as error:
        raise CommandError(
            f"--cost-column must hold numbers only. Got {one_line(error)} in column {column!r} of "
            f"{pool.name}."
        ) from error


def _labeled(asked: Query, model: Any, spent: list[str]) -> dict[str, Any]:
    """Return the labeled rows as arguments of a query, none without such a file."""
    if asked.labeled is None:
        return {}
    table, labels = read_labeled(
        asked.labeled, asked.target, _types_of_labeled(asked, model, spent)
    )
    # An array of labels that were read from a file may hold 1.0 for 1.
    classes = getattr(model, "classes_", labels)
    unknown = [str(label) for label in np.unique(labels) if not np.any(classes == label)]
    if unknown:
        note(f"{asked.model} does not know these labels of {asked.labeled}: {quoted(unknown)}.")
    return {
        "X_labeled": rows_for_model(model, asked.model, table, spent),
        "y_labeled": labels,
    }


def _choose(
    asked: Query,
    model: Any,
    X_pool: Any,
    labeled: dict[str, Any],
    pool: Table,
    costs: Any,
) -> list[Pick]:
    """Return what the strategy picks, in its order."""
    strategy = make_strategy(asked.strategy, asked.seed)
    want_utilities = asked.answer_format != "text"
    try:
        answered = strategy.query(
            model,
            X_pool,
            asked.batch_size,
            costs=costs,
            budget=asked.budget,
            return_utilities=want_utilities,
            **labeled,
        )
    except LabeledRowsMissingError as error:
        raise CommandError(
            f"{type(strategy).__name__} cannot choose from {pool.name} with {asked.model}, a "
            "model that has no posterior draws of its own and is refitted for them. Add "
            "--labeled FILE --target COLUMN with the rows that have a label, or choose a strategy "
            "that needs none: see sklearn-ical strategies."
        ) from error
    except Exception as error:  # models may raise anything for unsuitable rows
        kind = "" if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: "
        raise CommandError(
            f"{type(strategy).__name__} cannot choose from {pool.name} with {asked.model}: "
            f"{kind}{one_line(error)}"
        ) from error
    positions, rows = answered if want_utilities else (answered, None)
    return [
        Pick(
            position=int(position),
            utility=None if rows is None else float(rows[t, position]),
            id=None if pool.ids is None else pool.ids[position],
        )
        for t, position in enumerate(positions)
    ]


def _text(picks: list[Pick]) -> str:
    """Return one position a line, with a tab and the ID where there are IDs."""
    tails = ["" if pick.id is None else f"\t{pick.id}" for pick in picks]
    return "".join(f"{pick.position}{tail}\n" for pick, tail in zip(picks, tails, strict=True))


def _csv_of_picks(picks: list[Pick], with_ids: bool) -> str:
    header = ("position", "utility", *["id"] * with_ids)
    return csv_text([header, *((p.position, p.utility, *[p.id] * with_ids) for p in picks)])


def _json(picks: list[Pick]) -> str:
    """Return strict JSON: a utility that is not finite is null."""
    records = []
    for pick in picks:
        finite = pick.utility is not None and math.isfinite(pick.utility)
        record = {"position": pick.position, "utility": pick.utility if finite else None}
        records.append(record if pick.id is None else {**record, "id": pick.id})
    return json.dumps(records, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
