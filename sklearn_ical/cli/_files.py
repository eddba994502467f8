"""Paths: what can be read, what may be written, and writing it; no content of files."""

import csv
import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def check_readable(path: Path) -> None:
    """Raise if a path does not hold a file."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file.")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")


def check_free(path: Path, force: bool) -> None:
    """Raise, before any work, if a path cannot or must not be written to."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Move it away, or pass another --out.")
    if path.exists():
        if not path.is_file():
            raise FileExistsError(f"{path} is not a regular file. Pass another --out.")
        if not force:
            raise FileExistsError(f"{path} exists. Pass --force to overwrite it, or another --out.")


def write(path: Path, content: bytes) -> None:
    """Write a file at once: a reader finds the old one or the whole new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows, the header among them, as the text of a csv file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def print_bytes(content: bytes) -> None:
    """Write the same bytes to stdout that a file would hold, and all of them now."""
    if sys.stdout is None:
        raise OSError("stdout is closed, so the answer has nowhere to go.")
    sys.stdout.flush()
    left = memoryview(content)
    while left:  # unbuffered (python -u), a pipe may accept only a part
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()
