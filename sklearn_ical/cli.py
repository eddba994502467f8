"""The sklearn-ical command: options, progress, tables and files; all computing is elsewhere.

typer, rich and matplotlib are imported only once the command runs.
"""

import csv
import io
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import sklearn_ical
from sklearn_ical.plotting import TITLES, LearningCurvesDisplay
from sklearn_ical.simulation import Curves, Estimate, Summary, learning_curves, summarize

STRATEGIES = {
    "random": sklearn_ical.RandomQuery,
    "entropy": sklearn_ical.MaxEntropyQuery,
    "margin": sklearn_ical.MarginQuery,
    "least-confident": sklearn_ical.LeastConfidentQuery,
    "bald": sklearn_ical.BALDQuery,
    "ical": sklearn_ical.ICALQuery,
}
BASELINE = "random"
EXIT_CODES = "Exit codes: 0 done; 1 failed, or a file is in the way; 2 wrong usage."


def main() -> None:
    """Run the command; without its optional packages, say how to install them."""
    try:
        app = _build_app()
    except ImportError as error:
        sys.exit(
            f"sklearn-ical: {error}. Install the packages that the command needs with\n"
            '    pip install "sklearn-ical[cli]"'
        )
    app(prog_name="sklearn-ical")


def _build_app() -> Any:
    """Return the typer application."""
    import matplotlib  # noqa: F401  (missing packages are reported before anything runs)
    import rich  # noqa: F401
    import typer
    from typer import Option

    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_show_locals=False,
        rich_markup_mode="markdown",
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"sklearn-ical {sklearn_ical.__version__}")
            raise typer.Exit

    @app.callback(epilog=EXIT_CODES)
    def root(
        version: Annotated[
            bool,
            Option("--version", callback=show_version, is_eager=True, help="Print the version."),
        ] = False,
    ) -> None:
        """Query strategies for batch active learning on posterior prediction samples."""

    @app.command(epilog=EXIT_CODES)
    def compare(
        strategies: Annotated[
            str, Option(help=f"Comma-separated, from {', '.join(STRATEGIES)}.")
        ] = "random,entropy,margin,bald,ical",
        rounds: Annotated[int, Option(min=1, help="Batches of labels to buy.")] = 10,
        batch_size: Annotated[int, Option(min=1, help="Labels to buy in a round.")] = 10,
        n_initial: Annotated[int, Option(min=1, help="Labels at the start, balanced.")] = 20,
        seeds: Annotated[int, Option(min=1, help="Paired runs of each strategy.")] = 5,
        n_estimators: Annotated[int, Option(min=2, help="Trees of the forest.")] = 50,
        n_jobs: Annotated[int, Option(help="Processes; -1 for one on each core.")] = -1,
        out: Annotated[Path, Option(file_okay=False, help="Folder to write to.")] = Path("."),
        force: Annotated[bool, Option("--force", help="Overwrite files there.")] = False,
    ) -> None:
        """Compare query strategies on scikit-learn's digits with a random forest.

        Prints a table and writes two files: results.csv, with one row for each strategy, seed and
        round (columns: strategy, seed, round, n_labeled, accuracy, nll in nats, fit_seconds,
        query_seconds), and learning_curves.png.
        """
        try:
            names = _parse_strategies(strategies)
            sizes = Sizes(rounds, batch_size, n_initial, seeds, n_estimators, n_jobs)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        try:
            _compare(names, sizes, out, force)
        except OSError as error:
            typer.echo(f"sklearn-ical: {error}", err=True)
            raise typer.Exit(1) from error

    return app


def _parse_strategies(text: str) -> tuple[str, ...]:
    """Return the distinct names of a comma-separated list, in its order."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in STRATEGIES:
            raise ValueError(
                f"--strategies must name some of {', '.join(STRATEGIES)}, separated by commas. "
                f"Got {name!r}."
            )
    return names


@dataclass(frozen=True)
class Sizes:
    """The numbers among the options of `sklearn-ical compare`, checked against the data."""

    rounds: int
    batch_size: int
    n_initial: int
    seeds: int
    n_estimators: int
    n_jobs: int

    def __post_init__(self) -> None:
        n_pool, n_wanted = len(_digits()[0]), self.n_initial + self.rounds * self.batch_size
        if n_wanted > n_pool:
            raise ValueError(
                f"--n-initial {self.n_initial} + --rounds {self.rounds} x --batch-size "
                f"{self.batch_size} must not exceed the {n_pool} rows of the pool. Got {n_wanted}."
            )
        if self.n_jobs == 0:
            raise ValueError("--n-jobs must be a number of processes or negative. Got 0.")


def _digits() -> list[Any]:
    """Return X, X_test, y, y_test of the digits: a pool of 1347 rows and 450 test rows."""
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)


def _compare(names: tuple[str, ...], sizes: Sizes, out: Path, force: bool) -> None:
    """Run the comparison, print its table and write its files."""
    from rich.console import Console

    csv_path, figure_path = out / "results.csv", out / "learning_curves.png"
    for path in (csv_path, figure_path):
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder. Move it away, or pass another --out.")
        if path.exists() and not force:
            raise FileExistsError(f"{path} exists. Pass --force to overwrite it, or another --out.")
    out.mkdir(parents=True, exist_ok=True)
    curves = _run(names, sizes)
    # A pipe has no width that the table must fit into.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(_table(summarize(curves, BASELINE), sizes))
    _write(csv_path, _csv(curves))
    _write(figure_path, _figure(curves))
    print(f"Results of each round: {csv_path}\nLearning curves: {figure_path}")


def _run(names: tuple[str, ...], sizes: Sizes) -> Curves:
    """Run all strategies with one progress bar each on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    X, X_test, y, y_test = _digits()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        bars = {name: progress.add_task(name, total=sizes.seeds) for name in names}
        return learning_curves(
            # Fully grown trees are certain of each row, and BALD would be the same as entropy.
            RandomForestClassifier(sizes.n_estimators, min_samples_leaf=2),
            X,
            y,
            X_test,
            y_test,
            {name: STRATEGIES[name]() for name in names},
            seeds=range(sizes.seeds),
            n_initial=sizes.n_initial,
            batch_size=sizes.batch_size,
            n_rounds=sizes.rounds,
            n_jobs=sizes.n_jobs,
            callback=lambda name, seed: progress.advance(bars[name]),
        )


def _table(summaries: list[Summary], sizes: Sizes) -> Any:
    """Return the table of one row for each metric and strategy."""
    from rich import box
    from rich.table import Table

    n_labeled = sizes.n_initial + sizes.rounds * sizes.batch_size
    table = Table(
        title=f"Mean ± standard error over seeds 0 to {sizes.seeds - 1}",
        caption=f"final: after {n_labeled} labels. area: under the learning curve, as its mean "
        f"height. Better: higher accuracy, lower NLL.",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for title in ("metric", "strategy", "final", "area", f"area - {BASELINE}'s"):
        table.add_column(title, overflow="fold")
    metric = None
    for row in summaries:
        if metric not in (None, row.metric):
            table.add_section()
        metric = row.metric
        table.add_row(
            TITLES[row.metric],
            row.strategy,
            _text(row.final),
            _text(row.area),
            "-" if row.difference is None else _text(row.difference, sign="+"),
        )
    return table


def _text(estimate: Estimate, sign: str = "") -> str:
    error = "-" if math.isnan(estimate.error) else f"{estimate.error:.4f}"
    return f"{estimate.mean:{sign}.4f} ± {error}"


def _csv(curves: Curves) -> bytes:
    """Return one line for each strategy, seed and round, with numbers in full precision."""
    fields = ("n_labeled", "accuracy", "nll", "fit_seconds", "query_seconds")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("strategy", "seed", "round", *fields))
    for name, of_seed in curves.items():
        for seed, curve in of_seed.items():
            for r, record in enumerate(curve):
                writer.writerow((name, seed, r, *(getattr(record, field) for field in fields)))
    return text.getvalue().encode()


def _figure(curves: Curves) -> bytes:
    """Return a PNG with the learning curves in both metrics side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for ax, metric in zip(figure.subplots(1, 2), TITLES, strict=True):
        LearningCurvesDisplay.from_results(curves, metric=metric, ax=ax)
    figure.suptitle("Digits, random forest: mean and standard error over seeds")
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()


def _write(path: Path, content: bytes) -> None:
    """Write a file at once: a reader finds the old one or the whole new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
