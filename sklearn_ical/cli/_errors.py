"""Failures as one line on stderr and an exit code, warnings as notes; no command's own errors."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer


class CommandError(Exception):
    """A command failed; its message is all that the user is shown."""


@contextmanager
def reporting() -> Iterator[None]:
    """Turn a failure of a command into its message on stderr and its exit code."""
    try:
        yield
    except BrokenPipeError as error:
        # The reader of stdout closed it; python must not flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from error
    except (CommandError, OSError) as error:
        print(f"sklearn-ical: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(130) from error


def note(message: str) -> None:
    """Print a note on stderr that is not a failure."""
    print(f"sklearn-ical: note: {message}", file=sys.stderr)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print each distinct warning for users as one line, without python's source lines."""
    seen = set()

    def show(message: Any, *_: Any) -> None:
        text = one_line(message)
        if text not in seen:
            seen.add(text)
            note(text)

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        warnings.simplefilter("ignore")
        for category in (UserWarning, FutureWarning, RuntimeWarning):
            warnings.simplefilter("always", category)
        yield


def one_line(error: Any) -> str:
    """Return the text of an error or warning without line breaks and XGBoost's stack trace."""
    text = " ".join(str(error).split()).partition(" Stack trace:")[0]
    return text or type(error).__name__
