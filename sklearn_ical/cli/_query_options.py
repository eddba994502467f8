"""The options of `sklearn-ical query`, one type each; the command is in the application."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from sklearn_ical._names import STRATEGIES


class AnswerFormat(StrEnum):
    """Forms in which `query` answers."""

    text = "text"
    csv = "csv"
    json = "json"


ModelFile = Annotated[
    Path, Argument(metavar="MODEL", help="Fitted model, saved with skops.io.dump.")
]
Pool = Annotated[
    str,
    Argument(
        metavar="POOL", help="Unlabeled rows: csv, csv.gz, parquet, npy or npz; - for csv on stdin."
    ),
]
BatchSize = Annotated[int, Option("--batch-size", "-n", min=1, help="Rows to choose.")]
Strategy = Annotated[str, Option(help=f"One of {', '.join(STRATEGIES)}.")]
Format = Annotated[
    AnswerFormat, Option("--format", help="Form of the answer; csv and json have utilities.")
]
IdColumn = Annotated[
    str | None, Option(help="Column to print beside the positions, as it is in the file.")
]
CostColumn = Annotated[str | None, Option(help="Column with what each label costs.")]
Budget = Annotated[float | None, Option(help="What the labels may cost together.")]
Labeled = Annotated[
    str | None, Option(help="Rows with a label, for models that are refitted to have draws.")
]
Target = Annotated[str | None, Option(help="Column of that file with the labels.")]
Seed = Annotated[int, Option(min=0, help="Seed of all that is random.")]
Key = Annotated[str | None, Option(help="Array of an npz file; else its only one, or X.")]
TrustType = Annotated[
    list[str] | None,
    Option(help="Type that the model file may hold beyond those skops trusts; repeatable."),
]
UnsafePickle = Annotated[
    bool, Option("--unsafe-pickle", help="Load joblib and pickle files, and run their code.")
]
Out = Annotated[Path | None, Option(help="File to write the answer to.")]
Force = Annotated[bool, Option("--force", help="Overwrite that file.")]
