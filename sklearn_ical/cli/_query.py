"""`sklearn-ical query`: its options, checked against each other; the work is in _answer."""

import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from sklearn_ical._names import STRATEGIES, check_name
from sklearn_ical.cli._options import types_by_column, with_options


class AnswerFormat(StrEnum):
    """Forms in which `query` answers."""

    text = "text"
    csv = "csv"
    json = "json"


@dataclass(frozen=True)
class Query:
    """The options of `sklearn-ical query`."""

    model: Annotated[
        Path, Argument(metavar="MODEL", help="Fitted model, saved with skops.io.dump.")
    ]
    pool: Annotated[
        str,
        Argument(
            metavar="POOL",
            help="Unlabeled rows: csv, csv.gz, parquet, npy or npz; - for csv on stdin.",
        ),
    ]
    batch_size: Annotated[int, Option("--batch-size", "-n", min=1, help="Rows to choose.")] = 10
    strategy: Annotated[str, Option(help=f"One of {', '.join(STRATEGIES)}.")] = "ical"
    answer_format: Annotated[
        AnswerFormat, Option("--format", help="Form of the answer; csv and json have utilities.")
    ] = AnswerFormat.text
    id_column: Annotated[
        str | None, Option(help="Column to print beside the positions, as it is in the file.")
    ] = None
    cost_column: Annotated[str | None, Option(help="Column with the cost of each label.")] = None
    budget: Annotated[float | None, Option(help="Total cost allowed for the labels.")] = None
    labeled: Annotated[
        str | None, Option(help="Rows with a label, for models that are refitted to have draws.")
    ] = None
    target: Annotated[str | None, Option(help="Column of that file with the labels.")] = None
    column_type: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=TYPE",
            help="Type of a column instead of that in the model: text, number or category; "
            "repeatable.",
        ),
    ] = None
    seed: Annotated[int, Option(min=0, help="Seed of all random numbers.")] = 0
    key: Annotated[
        str | None, Option(help="Array of an npz file; by default its only one, or X.")
    ] = None
    trust_type: Annotated[
        list[str] | None,
        Option(help="Type that the model file may hold beyond those skops trusts; repeatable."),
    ] = None
    unsafe_pickle: Annotated[
        bool, Option("--unsafe-pickle", help="Load joblib and pickle files, and run their code.")
    ] = False
    out: Annotated[Path | None, Option(help="File to write the answer to.")] = None
    force: Annotated[bool, Option("--force", help="Overwrite that file.")] = False

    def __post_init__(self) -> None:
        """Check what can be checked without a file."""
        check_name(self.strategy, "--strategy")
        self._check_pool()
        _ = self.types
        if self.target is not None and self.labeled is None:
            raise ValueError(f"--target needs --labeled. Got --target {self.target!r} alone.")
        if self.budget is not None and self.cost_column is None:
            raise ValueError(f"--budget needs --cost-column. Got --budget {self.budget!r} alone.")
        if self.budget is not None and not 0 < self.budget < math.inf:
            raise ValueError(f"--budget must be a positive number. Got {self.budget!r}.")

    @property
    def types(self) -> dict[str, str]:
        """The types of columns that the user asked for."""
        return types_by_column(self.column_type or ())

    def _check_pool(self) -> None:
        """Raise if the pool is of an unknown type, or an option does not suit its type."""
        from sklearn_ical.cli._tables import SUFFIXES, WITH_COLUMNS, suffix_of

        suffix = suffix_of(self.pool)
        if suffix is None:
            raise ValueError(
                f"POOL must end with one of {', '.join(SUFFIXES)}, or be - for csv on stdin. Got "
                f"{self.pool!r}."
            )
        if self.key is not None and suffix != ".npz":
            raise ValueError(f"--key names an array of an npz file. Got the pool {self.pool!r}.")
        for option, column in (
            ("--id-column", self.id_column),
            ("--cost-column", self.cost_column),
            ("--column-type", next(iter(self.column_type or ()), None)),
        ):
            if column is not None and suffix not in WITH_COLUMNS:
                raise ValueError(
                    f"{option} names a column of a csv or parquet file. Got the pool {self.pool!r}."
                )


@with_options(Query)
def query(asked: Query) -> None:
    """Choose the rows of POOL that should be labeled next.

    Prints their positions in pick order, one a line; the first row of the pool has position 0.
    With --id-column, a tab and the row's ID follow. Progress and notes go to stderr.

    The columns of a csv or parquet file are matched by name to those that the model was fitted on;
    others are ignored with a note. They are read as the types that the model was fitted on.
    """
    from sklearn_ical.cli._answer import answer

    answer(asked)
