"""The work of `sklearn-ical compare`: checks against the data, progress, table and files."""

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.model_selection import train_test_split

from sklearn_ical.cli._column_types import asked_types, check_asked
from sklearn_ical.cli._compare import Comparison
from sklearn_ical.cli._conversion import ColumnType
from sklearn_ical.cli._csv import place_of
from sklearn_ical.cli._errors import CommandError, warnings_as_notes
from sklearn_ical.cli._estimators import build_estimator
from sklearn_ical.cli._files import check_free, csv_text, write
from sklearn_ical.cli._strategies import make_strategy
from sklearn_ical.cli._tables import Dataset, read_dataset
from sklearn_ical.plotting import LearningCurvesDisplay
from sklearn_ical.simulation import (
    ComparisonResult,
    OverallUncertainty,
    Patience,
    StablePredictions,
    StoppingRule,
    TargetScore,
    compare_strategies,
)

BASELINE = "random"
NOT_IN_CSV = ("n_refused", "positions", "labels")


def run_comparison(asked: Comparison) -> None:
    """Run the comparison, print its table and write its files."""
    from rich.console import Console

    out, resume, force = asked.out, asked.resume, asked.force
    csv_path, figure_path, runs = out / "results.csv", out / "learning_curves.png", out / "runs"
    for path in (csv_path, figure_path):
        if resume and path.exists() and not force:
            raise FileExistsError(f"{path} exists. Pass --force beside --resume to overwrite it.")
        check_free(path, force)
    earlier = sorted(runs.glob("*.jsonl"))
    if earlier and not resume and not force:
        raise FileExistsError(
            f"{runs} holds an earlier comparison. Pass --resume to go on with it, --force to start "
            "again, or another --out."
        )
    dataset = _read(asked)
    result = None
    with warnings_as_notes():
        try:
            result = _compare(asked, dataset, runs, [] if resume else earlier)
        except ValueError as error:
            raise CommandError(str(error)) from error
    # A pipe has no width to fit the table into.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(_table(result, asked))
    write(csv_path, _csv_of_rounds(result))
    write(figure_path, _figure(result, asked))
    print(f"Results of each round: {csv_path}\nLearning curves: {figure_path}")
    if result.failures:
        raise CommandError(f"{len(result.failures)} runs failed; the others are in these files.")


def _read(asked: Comparison) -> Dataset:
    """Return the data, with columns of the types that they look like or that are asked for."""

    def types(columns: list[str]) -> Mapping[str, ColumnType]:
        check_asked(asked.types, columns, asked.data)
        return asked_types(asked.types, columns, {})

    dataset = read_dataset(asked.data, asked.target, types)
    if isinstance(dataset.X, np.ndarray):
        _check_columns(dataset, list(asked.types), "--column-type")
    return dataset


def _compare(
    asked: Comparison, dataset: Dataset, runs: Path, outdated: list[Path]
) -> ComparisonResult:
    """Split the data and run all strategies, with one progress bar each on stderr."""
    X, y, costs = dataset.X, dataset.y, None
    if asked.cost_column is not None:
        X, costs = _without_costs(dataset, asked.cost_column)
    if asked.ignore_column:
        _check_columns(dataset, asked.ignore_column, "--ignore-column")
        X = X.drop(columns=asked.ignore_column)
    _check_are_classes(y)
    rows = np.arange(len(y))
    pool, test = rows, rows[:0]
    if asked.cv is None:
        _, counts = np.unique(y, return_counts=True)
        stratify = y if counts.min() > 1 else None
        pool, test = train_test_split(
            rows, test_size=asked.test_size, stratify=stratify, random_state=0
        )
    n_wanted = asked.n_initial + (asked.n_rounds or 0) * asked.batch_size
    if asked.n_initial > len(pool) or (asked.budget is None and n_wanted > len(pool)):
        raise typer.BadParameter(
            f"--n-initial {asked.n_initial} + --rounds {asked.n_rounds or 0} x --batch-size "
            f"{asked.batch_size} must not exceed the {len(pool)} rows of the pool. Got {n_wanted}."
        )
    runs.mkdir(parents=True, exist_ok=True)
    for path in outdated:
        path.unlink()
    held_out = {"X_test": _take(X, test), "y_test": y[test]}
    return compare_strategies(
        build_estimator(asked.estimator, X, asked.n_estimators),
        _take(X, pool),
        y[pool],
        {name: make_strategy(name) for name in asked.names},
        seeds=asked.seeds,
        n_initial=asked.n_initial,
        batch_size=asked.batch_size,
        n_rounds=asked.n_rounds,
        budget=asked.budget,
        scoring=asked.metrics,
        cv=asked.cv,
        initial=asked.initial.value,
        cost=None if costs is None else costs[pool],
        stopping=_rules(asked),
        checkpoint=runs,
        n_jobs=asked.n_jobs,
        verbose=1,
        **(held_out if asked.cv is None else {}),
    )


def _rules(asked: Comparison) -> list[StoppingRule]:
    """Return the requested stopping rules."""
    rules: list[StoppingRule | None] = [
        None if asked.target_score is None else TargetScore(asked.target_score),
        None if asked.patience is None else Patience(asked.patience),
        None if asked.stable_predictions is None else StablePredictions(asked.stable_predictions),
        None if asked.max_uncertainty is None else OverallUncertainty(asked.max_uncertainty),
    ]
    return [rule for rule in rules if rule is not None]


def _take(X: Any, rows: np.ndarray) -> Any:
    return X[rows] if isinstance(X, np.ndarray) else X.iloc[rows].reset_index(drop=True)


def _without_costs(dataset: Dataset, column: str) -> tuple[Any, np.ndarray]:
    """Return the data without its column of costs, and the costs."""
    _check_columns(dataset, [column], "--cost-column")
    try:
        costs = np.asarray(dataset.X[column], dtype=float)
    except (TypeError, ValueError) as error:
        raise CommandError(f"--cost-column {column} must hold numbers.") from error
    if not (np.isfinite(costs) & (costs > 0)).all():
        raise CommandError(f"--cost-column {column} must hold a number > 0 in every row.")
    return dataset.X.drop(columns=column), costs


def _check_columns(dataset: Dataset, columns: list[str], option: str) -> None:
    """Raise if a name is not a column of the data."""
    for column in columns:
        if isinstance(dataset.X, np.ndarray):
            raise CommandError(f"{option} needs --data with names of columns. Got {column!r}.")
        place_of(column, list(dataset.X.columns), "--data", option)


def _check_are_classes(y: np.ndarray) -> None:
    """Raise if labels are not classes."""
    if _has_fractions(y):
        raise CommandError(
            "The labels must be classes: texts or whole numbers. Got numbers with a fraction, as "
            "for regression."
        )
    if len(np.unique(y)) < 2:
        raise CommandError(f"The labels must be of two classes or more. Got only {y[0]}.")


def _has_fractions(y: np.ndarray) -> bool:
    """Return whether labels are numbers, or strings of numbers, that are not all whole."""
    try:
        numbers = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        return False
    return bool((numbers != np.round(numbers)).any())


def _table(result: ComparisonResult, asked: Comparison) -> Any:
    """Return the table of one row for each metric and strategy."""
    from rich import box
    from rich.table import Table

    baseline = BASELINE if BASELINE in result.results else asked.names[0]
    table = Table(
        title=f"Mean ± standard error over {asked.seeds} seeds; higher is better",
        caption="final: after the last round. area: under the learning curve, as its mean height.\n"
        f"w/t/l: seeds whose area is above, equal to and below that of {baseline}.",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    columns = ("metric", "strategy", "runs", "final", "area", f"area - {baseline}'s", "w/t/l")
    for title in columns:
        table.add_column(title, overflow="fold")
    metric = None
    for row in result.summarize(baseline):
        if metric not in (None, row.metric):
            table.add_section()
        metric = row.metric
        table.add_row(*row.cells())
    return table


def _csv_of_rounds(result: ComparisonResult) -> bytes:
    """Return one line for each strategy, seed and round, with numbers in full precision."""
    columns = {k: v for k, v in result.to_columns().items() if k not in NOT_IN_CSV}
    return csv_text([columns, *zip(*columns.values(), strict=True)]).encode()


def _figure(result: ComparisonResult, asked: Comparison) -> bytes:
    """Return a PNG with the learning curves in all metrics side by side."""
    from matplotlib.figure import Figure

    metrics = result.metrics
    figure = Figure(figsize=(5.5 * len(metrics), 4.5), layout="constrained")
    for ax, metric in zip(figure.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True):
        LearningCurvesDisplay.from_results(result, metric=metric, ax=ax)
    name = Path(asked.data).name
    figure.suptitle(f"{name}, {asked.estimator}: mean and standard error over seeds")
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()
