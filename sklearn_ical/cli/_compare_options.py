"""The options of `sklearn-ical compare`, one type each; the command is in the application."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

from sklearn_ical._names import STRATEGIES

NAMES = ", ".join(STRATEGIES)
DEFAULTS = "random,entropy,margin,bald,ical; without posterior draws only the first three"


class InitialRows(StrEnum):
    """Ways of drawing the first labels."""

    balanced = "balanced"
    random = "random"


class Model(StrEnum):
    """Models to fit."""

    forest = "forest"
    logistic = "logistic"
    knn = "knn"


Data = Annotated[
    str,
    Option(help="csv, parquet or npz file, or one of digits, iris, wine, breast_cancer."),
]
Target = Annotated[str | None, Option(help="Column, or array of an npz file, with the labels.")]
IgnoreColumn = Annotated[
    list[str] | None, Option(help="Column to leave out, such as an ID; repeatable.")
]
Strategies = Annotated[
    str | None, Option(help=f"Comma-separated, from {NAMES}.", show_default=DEFAULTS)
]
Rounds = Annotated[
    int | None,
    Option(
        min=1,
        help="Batches of labels to buy.",
        show_default="10, or no limit with --budget or a rule to stop",
    ),
]
BatchSize = Annotated[int, Option(min=1, help="Labels to buy in a round.")]
Seeds = Annotated[int, Option(min=1, help="Paired runs of each strategy.")]
NInitial = Annotated[int, Option(min=1, help="Labels at the start.")]
Initial = Annotated[InitialRows, Option(help="How these are drawn.")]
Estimator = Annotated[Model, Option(help="Model to fit.")]
NEstimators = Annotated[int, Option(min=2, help="Trees of the forest.")]
Scoring = Annotated[str, Option(help="Names of scikit-learn's scorers, comma-separated.")]
TestSize = Annotated[float, Option(min=0.01, max=0.99, help="Share of the rows to score on.")]
Cv = Annotated[
    int | None,
    Option(min=2, help="Score by so many folds of the labeled rows instead."),
]
Budget = Annotated[
    float | None, Option(min=0, help="What all labels of a run may cost, initial ones too.")
]
CostColumn = Annotated[
    str | None, Option(help="Column with what each label costs; 1 each without it.")
]
TargetScore = Annotated[
    float | None, Option(help="Stop a run when its first score is at least this.")
]
Patience = Annotated[
    int | None, Option(min=1, help="Stop after so many rounds without a better first score.")
]
StablePredictions = Annotated[
    float | None,
    Option(min=-1, max=1, help="Stop when successive models agree so much (kappa)."),
]
MaxUncertainty = Annotated[
    float | None,
    Option(min=0, help="Stop when the mean entropy of the rest is at most this, in nats."),
]
NJobs = Annotated[int, Option(help="Processes; -1 for one on each core.")]
Out = Annotated[Path, Option(file_okay=False, help="Folder to write to.")]
Resume = Annotated[
    bool,
    Option(
        "--resume",
        help="Go on with the comparison that was begun there; --force too if it has ended.",
    ),
]
Force = Annotated[bool, Option("--force", help="Overwrite files there.")]
