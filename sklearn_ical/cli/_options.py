"""Commands whose options are the fields of a dataclass, each declared there and nowhere else."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import typer

from sklearn_ical.cli._errors import reporting

Options = TypeVar("Options")
COLUMN_TYPES = ("text", "number", "category")


def types_by_column(options: Iterable[str]) -> dict[str, str]:
    """Return the values of --column-type as a dict; raise if one is not NAME=TYPE."""
    types: dict[str, str] = {}
    for option in options:
        name, _, kind = option.rpartition("=")
        if not name or kind not in COLUMN_TYPES:
            raise ValueError(
                f"--column-type must be NAME=TYPE with a type of {', '.join(COLUMN_TYPES)}. Got "
                f"{option!r}."
            )
        if types.setdefault(name, kind) != kind:
            raise ValueError(
                f"--column-type must give each column one type. Got {types[name]!r} and {kind!r} "
                f"for {name!r}."
            )
    return types


def with_options(
    options: type[Options],
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator that makes a command of a function of `options`.

    The fields of the dataclass are the parameters of the command, with their annotations for typer.
    A ValueError of its checks is wrong usage; a failure of the function is reported.
    """

    def decorate(work: Callable[[Options], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            with reporting():
                try:
                    asked = options(**given)
                except ValueError as error:
                    raise typer.BadParameter(str(error)) from error
                work(asked)

        command.__name__ = work.__name__
        command.__doc__ = work.__doc__
        command.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
        return command

    return decorate
