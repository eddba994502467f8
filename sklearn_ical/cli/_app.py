"""The options of each command and their help; what a command does is in the file of its name."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

import sklearn_ical
from sklearn_ical.cli import _compare_options as options
from sklearn_ical.cli._errors import reporting
from sklearn_ical.cli._strategies import STRATEGIES

EXIT_CODES = (
    "Exit codes: 0 done; 1 failed, or a file is in the way; 2 wrong usage; 130 interrupted."
)
NAMES = ", ".join(STRATEGIES)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",
)


class AnswerFormat(StrEnum):
    """Forms in which `query` answers."""

    text = "text"
    csv = "csv"
    json = "json"


class ListFormat(StrEnum):
    """Forms in which `strategies` lists."""

    table = "table"
    csv = "csv"
    json = "json"


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


@app.command(epilog=EXIT_CODES)
def query(
    model: Annotated[
        Path, Argument(metavar="MODEL", help="Fitted model, saved with skops.io.dump.")
    ],
    pool: Annotated[
        str,
        Argument(
            metavar="POOL",
            help="Unlabeled rows: csv, csv.gz, parquet, npy or npz; - for csv on stdin.",
        ),
    ],
    batch_size: Annotated[int, Option("--batch-size", "-n", min=1, help="Rows to choose.")] = 10,
    strategy: Annotated[str, Option(help=f"One of {NAMES}.")] = "ical",
    answer_format: Annotated[
        AnswerFormat, Option("--format", help="Form of the answer; csv and json have utilities.")
    ] = AnswerFormat.text,
    id_column: Annotated[
        str | None, Option(help="Column to print beside the positions, as it is in the file.")
    ] = None,
    cost_column: Annotated[str | None, Option(help="Column with what each label costs.")] = None,
    budget: Annotated[float | None, Option(help="What the labels may cost together.")] = None,
    seed: Annotated[int, Option(min=0, help="Seed of all that is random.")] = 0,
    key: Annotated[
        str | None, Option(help="Array of an npz file; else its only one, or X.")
    ] = None,
    trust_type: Annotated[
        list[str] | None,
        Option(help="Type that the model file may hold beyond those skops trusts; repeatable."),
    ] = None,
    unsafe_pickle: Annotated[
        bool, Option("--unsafe-pickle", help="Load joblib and pickle files, and run their code.")
    ] = False,
    out: Annotated[Path | None, Option(help="File to write the answer to.")] = None,
    force: Annotated[bool, Option("--force", help="Overwrite that file.")] = False,
) -> None:
    """Choose the rows of POOL that should be labeled next.

    Prints their positions in pick order, one a line; the first row of the pool has position 0.
    With --id-column, a tab and the row's ID follow. Progress and notes go to stderr.

    The columns of a csv or parquet file are matched by name to those that the model was fitted on;
    others are ignored with a note.
    """
    with reporting():
        from sklearn_ical.cli._query import Request, answer

        try:
            request = Request(
                model=model,
                pool=pool,
                batch_size=batch_size,
                strategy=strategy,
                id_column=id_column,
                cost_column=cost_column,
                budget=budget,
                seed=seed,
                key=key,
                trusted=tuple(trust_type or ()),
                unsafe_pickle=unsafe_pickle,
                arguments=tuple(sys.argv[1:]),
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        answer(request, answer_format, out, force)


@app.command(epilog=EXIT_CODES)
def strategies(
    list_format: Annotated[
        ListFormat, Option("--format", help="Form of the list.")
    ] = ListFormat.table,
) -> None:
    """List the query strategies and what each needs from the model."""
    with reporting():
        from sklearn_ical.cli._strategies import listing

        listing(list_format)


@app.command(epilog=EXIT_CODES)
def compare(
    data: options.Data = "digits",
    target: options.Target = None,
    ignore_column: options.IgnoreColumn = None,
    strategies: options.Strategies = None,
    rounds: options.Rounds = None,
    batch_size: options.BatchSize = 10,
    seeds: options.Seeds = 5,
    n_initial: options.NInitial = 20,
    initial: options.Initial = options.InitialRows.balanced,
    estimator: options.Estimator = options.Model.forest,
    n_estimators: options.NEstimators = 50,
    scoring: options.Scoring = "accuracy,neg_log_loss",
    test_size: options.TestSize = 0.25,
    cv: options.Cv = None,
    budget: options.Budget = None,
    cost_column: options.CostColumn = None,
    target_score: options.TargetScore = None,
    patience: options.Patience = None,
    stable_predictions: options.StablePredictions = None,
    max_uncertainty: options.MaxUncertainty = None,
    n_jobs: options.NJobs = -1,
    out: options.Out = Path("."),
    resume: options.Resume = False,
    force: options.Force = False,
) -> None:
    """Compare query strategies by simulated active learning.

    Prints a table and writes three things. results.csv has one row for each strategy, seed and
    round (columns: strategy, seed, round, n_labeled, cost, the scores, what the rules to stop
    measured, fit_seconds, query_seconds). learning_curves.png shows the scores. The folder runs
    has the labels bought in each run, from which --resume goes on.
    """
    with reporting():
        from sklearn_ical.cli._compare import Comparison
        from sklearn_ical.cli._compare import compare as run

        try:
            asked = Comparison(
                data, target, tuple(ignore_column or ()), strategies, rounds, batch_size,
                n_initial, initial, seeds, budget, cost_column, target_score, patience,
                stable_predictions, max_uncertainty, scoring, test_size, cv, estimator,
                n_estimators, n_jobs,
            )  # fmt: skip
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        run(asked, out, resume=resume, force=force)
