"""The options of each command and their help; what a command does is in the file of its name."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

import sklearn_ical
from sklearn_ical.cli import _compare_options as compare_options
from sklearn_ical.cli import _query_options as query_options
from sklearn_ical.cli._errors import reporting

EXIT_CODES = (
    "Exit codes: 0 done; 1 failed, or a file is in the way; 2 wrong usage; 130 interrupted."
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",
)


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
    model: query_options.ModelFile,
    pool: query_options.Pool,
    batch_size: query_options.BatchSize = 10,
    strategy: query_options.Strategy = "ical",
    answer_format: query_options.Format = query_options.AnswerFormat.text,
    id_column: query_options.IdColumn = None,
    cost_column: query_options.CostColumn = None,
    budget: query_options.Budget = None,
    labeled: query_options.Labeled = None,
    target: query_options.Target = None,
    seed: query_options.Seed = 0,
    key: query_options.Key = None,
    trust_type: query_options.TrustType = None,
    unsafe_pickle: query_options.UnsafePickle = False,
    out: query_options.Out = None,
    force: query_options.Force = False,
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
                labeled=labeled,
                target=target,
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
    data: compare_options.Data = "digits",
    target: compare_options.Target = None,
    ignore_column: compare_options.IgnoreColumn = None,
    strategies: compare_options.Strategies = None,
    rounds: compare_options.Rounds = None,
    batch_size: compare_options.BatchSize = 10,
    seeds: compare_options.Seeds = 5,
    n_initial: compare_options.NInitial = 20,
    initial: compare_options.Initial = compare_options.InitialRows.balanced,
    estimator: compare_options.Estimator = compare_options.Model.forest,
    n_estimators: compare_options.NEstimators = 50,
    scoring: compare_options.Scoring = "accuracy,neg_log_loss",
    test_size: compare_options.TestSize = 0.25,
    cv: compare_options.Cv = None,
    budget: compare_options.Budget = None,
    cost_column: compare_options.CostColumn = None,
    target_score: compare_options.TargetScore = None,
    patience: compare_options.Patience = None,
    stable_predictions: compare_options.StablePredictions = None,
    max_uncertainty: compare_options.MaxUncertainty = None,
    n_jobs: compare_options.NJobs = -1,
    out: compare_options.Out = Path("."),
    resume: compare_options.Resume = False,
    force: compare_options.Force = False,
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
