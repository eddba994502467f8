"""The commands of sklearn-ical; the options of each, and what it does, are in its own file."""

from typing import Annotated

import typer
from typer import Option

import sklearn_ical
from sklearn_ical.cli._compare import compare
from sklearn_ical.cli._query import query
from sklearn_ical.cli._strategies import strategies

EXIT_CODES = (
    "Exit codes: 0 done; 1 failed, or a file is in the way; 2 wrong usage; 130 interrupted."
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sklearn-ical {sklearn_ical.__version__}")
        raise typer.Exit


@app.callback(epilog=EXIT_CODES)
def root(
    version: Annotated[
        bool,
        Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Query strategies for batch active learning on posterior prediction samples."""


for command in (query, strategies, compare):
    app.command(epilog=EXIT_CODES)(command)
