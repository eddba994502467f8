"""Commands whose options are the fields of a dataclass, each declared there and nowhere else."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import typer

from sklearn_ical.cli._errors import reporting

Options = TypeVar("Options")


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
