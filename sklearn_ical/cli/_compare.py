"""`sklearn-ical compare`: its options, checked against each other; the work is in _curves."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from sklearn_ical._names import STRATEGIES, check_name
from sklearn_ical.cli._options import types_by_column, with_options
from sklearn_ical.cli._strategies import make_strategy

DEFAULT_STRATEGIES = ("random", "entropy", "margin", "bald", "ical")
DEFAULT_ROUNDS = 10


class InitialRows(StrEnum):
    """Ways of drawing the first labels."""

    balanced = "balanced"
    random = "random"


class Model(StrEnum):
    """Models to fit."""

    forest = "forest"
    logistic = "logistic"
    knn = "knn"


@dataclass(frozen=True)
class Comparison:
    """The options of `sklearn-ical compare`."""

    data: Annotated[
        str, Option(help="csv, parquet or npz file, or one of digits, iris, wine, breast_cancer.")
    ] = "digits"
    target: Annotated[
        str | None, Option(help="Column, or array of an npz file, with the labels.")
    ] = None
    ignore_column: Annotated[
        list[str] | None, Option(help="Column to leave out, such as an ID; repeatable.")
    ] = None
    column_type: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=TYPE",
            help="Type of a column instead of that of its values: text, number or category; "
            "repeatable.",
        ),
    ] = None
    strategies: Annotated[
        str | None,
        Option(
            help=f"Comma-separated, from {', '.join(STRATEGIES)}.",
            show_default=f"{','.join(DEFAULT_STRATEGIES)}; without posterior draws only the first "
            "three",
        ),
    ] = None
    rounds: Annotated[
        int | None,
        Option(
            min=1,
            help="Batches of labels to buy.",
            show_default=f"{DEFAULT_ROUNDS}, or no limit with --budget or a stopping rule",
        ),
    ] = None
    batch_size: Annotated[int, Option(min=1, help="Labels to buy in a round.")] = 10
    seeds: Annotated[int, Option(min=1, help="Paired runs of each strategy.")] = 5
    n_initial: Annotated[int, Option(min=1, help="Labels at the start.")] = 20
    initial: Annotated[InitialRows, Option(help="How these are drawn.")] = InitialRows.balanced
    estimator: Annotated[Model, Option(help="Model to fit.")] = Model.forest
    n_estimators: Annotated[int, Option(min=2, help="Trees of the forest.")] = 50
    scoring: Annotated[str, Option(help="Names of scikit-learn's scorers, comma-separated.")] = (
        "accuracy,neg_log_loss"
    )
    test_size: Annotated[
        float, Option(min=0.01, max=0.99, help="Share of the rows to score on.")
    ] = 0.25
    cv: Annotated[
        int | None,
        Option(
            min=2,
            help="Score by cross-validation with this many folds of the labeled rows instead.",
        ),
    ] = None
    budget: Annotated[
        float | None,
        Option(
            min=0, help="Total cost allowed for the labels of a run, including the initial ones."
        ),
    ] = None
    cost_column: Annotated[
        str | None, Option(help="Column with the cost of each label; 1 for each if omitted.")
    ] = None
    target_score: Annotated[
        float | None, Option(help="Stop a run when its first score is at least this.")
    ] = None
    patience: Annotated[
        int | None, Option(min=1, help="Stop after this many rounds without a better first score.")
    ] = None
    stable_predictions: Annotated[
        float | None,
        Option(min=-1, max=1, help="Stop when successive models agree at least this much (kappa)."),
    ] = None
    max_uncertainty: Annotated[
        float | None,
        Option(
            min=0, help="Stop when the mean entropy of the unlabeled rows is at most this, in nats."
        ),
    ] = None
    n_jobs: Annotated[int, Option(help="Processes; -1 for one on each core.")] = -1
    out: Annotated[Path, Option(file_okay=False, help="Folder to write to.")] = Path(".")
    resume: Annotated[
        bool,
        Option(
            "--resume",
            help="Resume the comparison in that folder; add --force if it has finished.",
        ),
    ] = False
    force: Annotated[bool, Option("--force", help="Overwrite files there.")] = False

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
        self._check_metrics()
        _ = self.types
        if self.budget is not None and self.cost_column is None and self.budget < self.n_initial:
            raise ValueError(
                f"--budget must cover the {self.n_initial} initial labels. Got {self.budget:g}."
            )

    @property
    def types(self) -> dict[str, str]:
        """The types of columns that the user asked for."""
        return types_by_column(self.column_type or ())

    def _check_metrics(self) -> None:
        """Raise if a metric is not the name of a scorer."""
        from sklearn.metrics import get_scorer

        for metric in self.metrics:
            try:
                get_scorer(metric)
            except ValueError as error:
                raise ValueError(
                    "--scoring must hold names of scikit-learn's scorers, separated by commas. "
                    f"Got {metric!r}."
                ) from error

    @property
    def names(self) -> tuple[str, ...]:
        """The strategies to compare: by default, those that suit the estimator."""
        from sklearn_ical.cli._estimators import DRAWN

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
    def n_rounds(self) -> int | None:
        """Rounds to run; None if something else ends the runs."""
        rules = (self.target_score, self.patience, self.stable_predictions, self.max_uncertainty)
        ends = any(value is not None for value in (self.budget, *rules))
        return DEFAULT_ROUNDS if self.rounds is None and not ends else self.rounds


def _needs_draws(name: str) -> bool:
    return "draws" in make_strategy(name).query_tags().reads


@with_options(Comparison)
def compare(asked: Comparison) -> None:
    """Compare query strategies by simulated active learning.

    Prints a table and writes three things. results.csv has one row for each strategy, seed and
    round (columns: strategy, seed, round, n_labeled, cost, the scores, the measures of the stopping
    rules, fit_seconds, query_seconds). learning_curves.png shows the scores. The folder runs has
    the labels bought in each run, from which --resume continues.
    """
    from sklearn_ical.cli._curves import run_comparison

    run_comparison(asked)
