"""Reading csv, strictly: every line has the fields of the header; no other types of files."""

import csv
import gzip
import io
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sklearn_ical.cli._conversion import Types, as_guessed, convert, csv_arguments
from sklearn_ical.cli._errors import CommandError, one_line
from sklearn_ical.cli._files import check_readable

STDIN = "-"
# Longer fields than this do not fit into a C long everywhere.
MAX_FIELD = 2**31 - 1


def read_csv(
    source: str,
    id_column: str | None,
    option: str = "--id-column",
    types: Types = as_guessed,
) -> tuple[Any, list[str] | None]:
    """Return a csv file (`STDIN`: the standard input) as a frame, and its IDs as written.

    `option` is the option that names their column. A frame has types: an ID 007 would become 7, and
    NA a missing value. Blank lines do not count.
    """
    import pandas as pd

    name = "stdin" if source == STDIN else source
    content = _content(source)
    try:
        with content() as file, _long_fields():
            lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            header, n_rows, ids = _scan(csv.reader(lines), name, id_column, option)
        with content() as file:
            wanted = types(header)
            frame = pd.read_csv(
                file,
                encoding="utf-8-sig",
                index_col=False,
                low_memory=False,
                **csv_arguments(header, wanted),
            )
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} must be text in UTF-8. Got {one_line(error)}.") from error
    except (csv.Error, pd.errors.ParserError, EOFError, zlib.error) as error:
        raise CommandError(f"{name} is damaged or not a csv file: {one_line(error)}.") from error
    if len(frame) != n_rows:
        raise CommandError(
            f"{name} has {n_rows} or {len(frame)} rows, depending on how its quotes are read. "
            "Put quotes around whole fields only."
        )
    return convert(frame, wanted, name), ids


def _content(source: str) -> Callable[[], Any]:
    """Return a function that opens the bytes of the file, as often as it is called."""
    if source == STDIN:
        received = sys.stdin.buffer.read()
        return lambda: io.BytesIO(received)
    path = Path(source)
    check_readable(path)
    if not path.is_file():  # a named pipe gives its content only once
        received = path.read_bytes()
        return lambda: io.BytesIO(received)
    if path.suffix.lower() == ".gz":
        return lambda: gzip.open(path)
    return lambda: path.open("rb")


@contextmanager
def _long_fields() -> Iterator[None]:
    """Allow the csv module to read fields of any length, such as whole documents."""
    before = csv.field_size_limit(MAX_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _scan(
    reader: Any, name: str, id_column: str | None, option: str
) -> tuple[list[str], int, list[str] | None]:
    """Return the header, the number of rows and the ID column, having checked every line."""
    rows = (row for row in reader if row and not (len(row) == 1 and row[0].isspace()))
    header = [text or f"Unnamed: {i}" for i, text in enumerate(next(rows, []))]
    if not header:
        raise CommandError(f"{name} is empty.")
    check_distinct(header, name)
    place = None if id_column is None else place_of(id_column, header, name, option)
    n_rows, ids = 0, []
    for row in rows:
        if len(row) != len(header):
            raise CommandError(
                f"{name}, line {reader.line_num}: every line must have the {len(header)} fields "
                f"of the header. Got {len(row)}."
            )
        n_rows += 1
        if place is not None:
            ids.append(row[place])
    if n_rows == 0:
        raise CommandError(f"{name} has a header but no rows.")
    return header, n_rows, None if place is None else ids


def check_distinct(columns: list[str], name: str) -> None:
    """Raise if a file has two columns of the same name."""
    repeated = [column for column, count in Counter(columns).items() if count > 1]
    if repeated:
        raise CommandError(
            f"{name} must have distinct column names. Got twice: {quoted(repeated)}."
        )


def place_of(column: str, columns: list[str], name: str, option: str) -> int:
    """Return the index of a column; raise if the file does not have it."""
    if column not in columns:
        raise CommandError(
            f"{option} must name a column of {name}: {quoted(columns)}. Got {column!r}."
        )
    return columns.index(column)


def quoted(names: list[str]) -> str:
    """Return names in quotes, separated by commas."""
    return ", ".join(map(repr, names))
