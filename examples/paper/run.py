"""Run an experiment of the paper: ``python examples/paper/run.py mnist --data-home FOLDER``.

The experiments are the rows of the table in experiments.py. At full scale an experiment needs the
full files and a GPU, or days; ``--scale small`` takes minutes on one core but is not conclusive: it
has fewer images, narrower nets, shorter epochs, fewer rounds and fewer seeds. The folder of the
results gets

- checkpoints: one file for each strategy and seed. If it is killed, the same command resumes;
- rounds.csv: labels, different images among them, test accuracy, test NLL and mean entropy of the
  unlabeled pool in nats, for each strategy, seed and round. All of them are of means over draws;
- classes.csv: how often each class was acquired.

Runs of one seed share their initial labels, which are balanced over the classes, and the seeds of
their nets. The nets are trained from scratch in each round.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import joblib
import torch
from data import Split, load_split
from experiments import EXPERIMENTS, Experiment, at_scale
from measures import PoolEntropy, scores
from report import print_tables, write_results
from training import DropoutClassifier

from sklearn_ical import (
    BALDQuery,
    BatchBALDQuery,
    BayesianCoresetQuery,
    FASSQuery,
    ICALCoverageQuery,
    ICALQuery,
    MarginQuery,
    MaxEntropyQuery,
    RandomQuery,
    compare_strategies,
)
from sklearn_ical.simulation import ComparisonResult

STRATEGIES: dict[str, Any] = {
    "ical": ICALQuery,
    "coverage": ICALCoverageQuery,
    "batchbald": BatchBALDQuery,
    "bald": BALDQuery,
    "fass": FASSQuery,
    "bayes-coreset": BayesianCoresetQuery,
    "max-entropy": MaxEntropyQuery,
    "margin": MarginQuery,
    "random": RandomQuery,
}


def run_experiment(
    row: Experiment,
    split: Split,
    folder: Path,
    *,
    strategies: list[str],
    seeds: list[int],
    device: str = "cpu",
    n_jobs: int = 1,
) -> ComparisonResult:
    """Run an experiment, or what its checkpoints lack, and write its files.

    Parameters
    ----------
    row : Experiment
        The experiment, at whatever scale.
    split : Split
        Its images.
    folder : Path
        What gets the files; made if it is not there.
    strategies : list of str
        Names in `STRATEGIES`.
    seeds : list of int
        Each of them is one run of each strategy.
    device : str, default="cpu"
        Of the nets, and of the draws that strategies choose by.
    n_jobs : int, default=1
        Runs at a time, each in one thread on the host.

    Returns
    -------
    comparison : ComparisonResult
        All runs.
    """
    estimator = DropoutClassifier(
        row.net,
        row.n_classes,
        row.width,
        split.X_validation,
        split.y_validation,
        n_draws=row.n_draws,
        epoch_size=row.epoch_size,
        max_epochs=row.max_epochs,
        patience=row.patience,
        device=device,
    )
    start = time.perf_counter()

    def tell(name: str, seed: int) -> None:
        print(
            f"{name}, seed {seed}: {time.perf_counter() - start:.0f} s from the start", flush=True
        )

    torch.set_num_threads(1)  # sums of several threads differ, so would runs of other `n_jobs`
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        comparison = compare_strategies(
            estimator,
            split.X_pool,
            split.y_pool,
            {name: STRATEGIES[name]() for name in strategies},
            seeds=seeds,
            n_initial=row.n_initial,
            batch_size=row.batch_size,
            n_rounds=row.n_rounds,
            scoring=scores,
            X_test=split.X_test,
            y_test=split.y_test,
            initial="balanced",
            stopping=PoolEntropy(),
            checkpoint=folder / "checkpoints",
            n_jobs=n_jobs,
            callback=tell,
        )
    write_results(folder, row, comparison)
    return comparison


def parse(arguments: list[str] | None = None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    """Return the parser and what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--data-home", help="folder of the images; default: $SKLEARN_ICAL_DATA")
    parser.add_argument("--scale", choices=("full", "small"), default="full")
    parser.add_argument(
        "--strategies", nargs="+", choices=STRATEGIES, help="default: those the paper compares"
    )
    parser.add_argument("--seeds", nargs="+", type=int, help="default: as many as the table has")
    parser.add_argument("--out", type=Path, default=Path("paper-results"), help="folder of results")
    parser.add_argument("--device", default="cpu", help="of torch, such as cuda")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, a thread each")
    parser.add_argument("--rst", action="store_true", help="print tables for the documentation")
    return parser, parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Read the images, run the experiment and print its tables."""
    parser, args = parse(arguments)
    row = at_scale(args.experiment, args.scale)
    try:
        split = load_split(row, args.data_home)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    comparison = run_experiment(
        row,
        split,
        args.out / f"{row.name}-{args.scale}",
        strategies=args.strategies or list(row.strategies),
        seeds=list(range(row.n_seeds)) if args.seeds is None else args.seeds,
        device=args.device,
        n_jobs=args.jobs,
    )
    print_tables(comparison, rst=args.rst)
    if comparison.failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
