"""The output of a run: two files of results and a table; nothing is computed again."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from experiments import Experiment

from sklearn_ical.simulation import ComparisonResult, Estimate, SimulationResult


def write_results(folder: Path, row: Experiment, comparison: ComparisonResult) -> None:
    """Write `rounds.csv`, a line for each strategy, seed and round, and `classes.csv`.

    The latter has how often each class was acquired in all rounds, the initial labels left out.
    """
    runs = [
        (name, seed, result)
        for name, of_seed in comparison.results.items()
        for seed, result in of_seed.items()
    ]
    header = ("strategy", "seed", "round", "n_labeled", "n_images", *("accuracy", "nll", "entropy"))
    rounds = [
        (name, seed, number, *line)
        for name, seed, result in runs
        for number, line in enumerate(round_lines(row, result))
    ]
    write_csv(folder / "rounds.csv", header, rounds)
    classes = [
        (name, seed, label, count)
        for name, seed, result in runs
        for label, count in enumerate(class_counts(row, result))
    ]
    write_csv(folder / "classes.csv", ("strategy", "seed", "class", "count"), classes)


def round_lines(row: Experiment, result: SimulationResult) -> Iterable[tuple[Any, ...]]:
    """Yield labels, different images among them, accuracy, NLL and pool entropy of each round."""
    for n, record in zip(result.n_labeled, result.rounds, strict=True):
        n_images = len(np.unique(result.positions[:n] % row.n_pool))
        nll = -record.scores["neg_log_loss"]
        entropy = record.measures["PoolEntropy"]
        yield int(n), n_images, record.scores["accuracy"], nll, entropy


def class_counts(row: Experiment, result: SimulationResult) -> list[int]:
    """Return how often each class was acquired."""
    acquired = result.labels[len(result.rounds[0].positions) :].astype(int)
    return np.bincount(acquired, minlength=row.n_classes).tolist()


def write_csv(path: Path, header: Iterable[str], lines: Iterable[Iterable[Any]]) -> None:
    """Write a table; numbers as Python prints them, so that equal numbers are equal bytes."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(lines)


def print_tables(comparison: ComparisonResult, *, rst: bool = False) -> None:
    """Print accuracy and NLL at five numbers of labels, and areas compared with a baseline."""
    ended = {name: list(runs.values()) for name, runs in comparison.results.items() if runs}
    n_labeled = next(iter(ended.values()))[0].n_labeled
    rounds = np.unique(np.linspace(0, len(n_labeled) - 1, 5).round().astype(int))
    header: tuple[str, ...] = ("strategy", *map(str, n_labeled[rounds]))
    for metric, sign, title in (("accuracy", 1, "accuracy"), ("neg_log_loss", -1, "NLL")):
        lines = [
            (name, *(means([sign * run.scores[metric][r] for run in runs]) for r in rounds))
            for name, runs in ended.items()
        ]
        print_table(f"{title} by number of labels", header, lines, rst=rst)
    baseline = "random" if "random" in ended else next(iter(ended))
    lines = [summary.cells() for summary in comparison.summarize(baseline)]
    header = ("metric", "strategy", "runs", "final", "area", "difference", "w/t/l")
    print_table(f"mean heights of the curves, compared with {baseline}", header, lines, rst=rst)
    lines = [
        (
            name,
            f"{sum(run.fit_seconds.sum() for run in runs):.0f}",
            f"{sum(run.query_seconds.sum() for run in runs):.0f}",
        )
        for name, runs in ended.items()
    ]
    print_table("seconds in all", ("strategy", "fits", "queries"), lines, rst=rst)
    for failure in comparison.failures:
        print(f"failed: {failure.strategy}, seed {failure.seed}: {failure.error}")


def means(values: list[float]) -> str:
    """Return a mean over seeds with its standard error, if there are several."""
    estimate = Estimate.of(np.array(values))
    return f"{estimate.mean:.3f}" + (f" ± {estimate.error:.3f}" if len(values) > 1 else "")


def print_table(
    title: str, header: tuple[str, ...], lines: list[tuple[str, ...]], *, rst: bool
) -> None:
    """Print a table for a terminal, or in reStructuredText."""
    if rst:
        print(f".. csv-table:: {title}\n   :header: {', '.join(header)}\n")
        print("".join(f"   {', '.join(line)}\n" for line in lines))
        return
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    print(title)
    for line in (header, *lines):
        print("  " + "  ".join(map(str.ljust, line, widths)).rstrip())
    print()
