"""`sklearn-ical compare`: options checked against the data, progress, table and files."""

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import typer
from sklearn.metrics import get_scorer
from sklearn.model_selection import train_test_split

from sklearn_ical._names import check_name
from sklearn_ical.cli._csv import place_of
from sklearn_ical.cli._errors import CommandError, warnings_as_notes
from sklearn_ical.cli._estimators import DRAWN, build_estimator
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

DEFAULT_STRATEGIES = ("random", "entropy", "margin", "bald", "ical")
DEFAULT_ROUNDS = 10
BASELINE = "random"
NOT_IN_CSV = ("n_refused", "positions", "labels")


@dataclass(frozen=True)
class Comparison:
    """The options of `sklearn-ical compare`, as they were given."""

    data: str
    target: str | None
    ignored: tuple[str, ...]
    strategies: str | None
    rounds: int | None
    batch_size: int
    n_initial: int
    initial: str
    seeds: int
    budget: float | None
    cost_column: str | None
    target_score: float | None
    patience: int | None
    stable_predictions: float | None
    max_uncertainty: float | None
    scoring: str
    test_size: float
    cv: int | None
    estimator: str
    n_estimators: int
    n_jobs: int

    def __post_init__(self) -> None:
        """Check what can be checked without the data."""
        if self.n_jobs == 0:
            raise ValueError("--n-jobs must be a number of processes or negative. Got 0.")
        for name in self.names:
            check_name(name, "Each of --strategies")
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"--strategies must name each only once. Got {self.strategies!r}.")
        if self.estimator == "knn" and self.n_initial < 5:
            raise ValueError(
                f"--n-initial must be at least 5, the neighbors of --estimator knn. Got "
                f"{self.n_initial}."
            )
        for metric in self.metrics:
            try:
                get_scorer(metric)
            except ValueError as error:
                raise ValueError(
                    "--scoring must hold names of scikit-learn's scorers, separated by commas. "
                    f"Got {metric!r}."
                ) from error
        if self.budget is not None and self.cost_column is None and self.budget < self.n_initial:
            raise ValueError(
                f"--budget must cover the {self.n_initial} initial labels. Got {self.budget:g}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The strategies to compare: where none are named, those that suit the estimator."""
        if self.strategies is None:
            suited = [
                n for n in DEFAULT_STRATEGIES if self.estimator in DRAWN or not _needs_draws(n)
            ]
            return tuple(suited)
        return tuple(name.strip() for name in self.strategies.split(","))

    @property
    def metrics(self) -> list[str]:
        """The names of the scorers."""
        return [name.strip() for name in self.scoring.split(",")]

    @property
    def stopping(self) -> list[StoppingRule]:
        """The rules asked for."""
        rules: list[StoppingRule | None] = [
            None if self.target_score is None else TargetScore(self.target_score),
            None if self.patience is None else Patience(self.patience),
            None if self.stable_predictions is None else StablePredictions(self.stable_predictions),
            None if self.max_uncertainty is None else OverallUncertainty(self.max_uncertainty),
        ]
        return [rule for rule in rules if rule is not None]

    @property
    def n_rounds(self) -> int | None:
        """Rounds to run; no limit where something else ends the runs."""
        ends = self.budget is not None or self.stopping
        return DEFAULT_ROUNDS if self.rounds is None and not ends else self.rounds


def compare(asked: Comparison, out: Path, *, resume: bool, force: bool) -> None:
    """Run the comparison, print its table and write its files."""
    from rich.console import Console

    csv_path, figure_path, runs = out / "results.csv", out / "learning_curves.png", out / "runs"
    for path in (csv_path, figure_path):
        if resume and path.exists() and not force:
            raise FileExistsError(f"{path} exists. Pass --force beside --resume to overwrite it.")
        check_free(path, force)
    earlier = sorted(runs.glob("*.jsonl"))
    if earlier and not resume and not force:
        raise FileExistsError(
            f"{runs} holds an earlier comparison. Pass --resume to go on with it, --force to start "
            "anew, or another --out."
        )
    dataset = read_dataset(asked.data, asked.target)
    result = None
    with warnings_as_notes():
        try:
            result = _run(asked, dataset, runs, [] if resume else earlier)
        except ValueError as error:
            raise CommandError(str(error)) from error
    # A pipe has no width that the table must fit into.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(_table(result, asked))
    write(csv_path, _csv(result))
    write(figure_path, _figure(result, asked))
    print(f"Results of each round: {csv_path}\nLearning curves: {figure_path}")
    if result.failures:
        raise CommandError(f"{len(result.failures)} runs failed; the others are in these files.")


def _run(asked: Comparison, dataset: Dataset, runs: Path, outdated: list[Path]) -> ComparisonResult:
    """Split the data and run all strategies, with one progress bar each on stderr."""
    X, y, costs = dataset.X, dataset.y, None
    if asked.cost_column is not None:
        X, costs = _without_costs(dataset, asked.cost_column)
    if asked.ignored:
        _check_columns(dataset, asked.ignored, "--ignore-column")
        X = X.drop(columns=list(asked.ignored))
    _check_classes(y)
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
        initial=cast(Literal["balanced", "random"], asked.initial),
        cost=None if costs is None else costs[pool],
        stopping=asked.stopping,
        checkpoint=runs,
        n_jobs=asked.n_jobs,
        verbose=1,
        **(held_out if asked.cv is None else {}),
    )


def _needs_draws(name: str) -> bool:
    return "draws" in make_strategy(name).query_tags().needs


def _take(X: Any, rows: np.ndarray) -> Any:
    return X[rows] if isinstance(X, np.ndarray) else X.iloc[rows].reset_index(drop=True)


def _without_costs(dataset: Dataset, column: str) -> tuple[Any, np.ndarray]:
    """Return the data without its column of costs, and the costs."""
    _check_columns(dataset, (column,), "--cost-column")
    try:
        costs = np.asarray(dataset.X[column], dtype=float)
    except (TypeError, ValueError) as error:
        raise CommandError(f"--cost-column {column} must hold numbers.") from error
    if not (np.isfinite(costs) & (costs > 0)).all():
        raise CommandError(f"--cost-column {column} must hold a number > 0 in every row.")
    return dataset.X.drop(columns=column), costs


def _check_columns(dataset: Dataset, columns: tuple[str, ...], option: str) -> None:
    """Refuse names that are no columns of the data."""
    for column in columns:
        if isinstance(dataset.X, np.ndarray):
            raise CommandError(f"{option} needs --data with names of columns. Got {column!r}.")
        place_of(column, list(dataset.X.columns), "--data", option)


def _check_classes(y: np.ndarray) -> None:
    """Refuse labels that are no classes."""
    if _has_fractions(y):
        raise CommandError(
            "The labels must be classes: texts or whole numbers. Got numbers with a fraction, as "
            "for regression."
        )
    if len(np.unique(y)) < 2:
        raise CommandError(f"The labels must be of two classes or more. Got only {y[0]}.")


def _has_fractions(y: np.ndarray) -> bool:
    """Tell whether labels are numbers, or texts of numbers, that are not all whole."""
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


def _csv(result: ComparisonResult) -> bytes:
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
