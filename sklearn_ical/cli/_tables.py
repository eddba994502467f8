"""Reading data files: pools of rows to choose from, and labeled data sets; no models."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets

from sklearn_ical._labels import missing_labels, one_column
from sklearn_ical.cli._conversion import Types, as_guessed, convert
from sklearn_ical.cli._csv import STDIN, check_distinct, place_of, quoted, read_csv
from sklearn_ical.cli._errors import CommandError, one_line
from sklearn_ical.cli._files import check_readable

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npy", ".npz")
WITH_COLUMNS = (".csv", ".csv.gz", ".parquet")
DATASETS = ("digits", "iris", "wine", "breast_cancer")


@dataclass(frozen=True)
class Table:
    """The rows of a file as a frame with named columns or as an array, and their IDs.

    Attributes
    ----------
    name : str
        Name of the file in messages.
    rows : DataFrame or array of shape (n_rows, ...)
    ids : list of str or None
        Value of the ID column for each row.
    """

    name: str
    rows: Any
    ids: list[str] | None = None

    @property
    def has_columns(self) -> bool:
        """Whether the columns have names."""
        return not isinstance(self.rows, np.ndarray)


@dataclass(frozen=True)
class Dataset:
    """Labeled rows.

    Attributes
    ----------
    X : DataFrame or array of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
        Labels, none of them missing; labels that are text stay text.
    columns : tuple of str or None
        Names of the columns of `X`, None where the file has no names.
    """

    X: Any
    y: np.ndarray
    columns: tuple[str, ...] | None


def suffix_of(source: str) -> str | None:
    """Return which of `SUFFIXES` a file name ends with; stdin is csv, None is none of them."""
    if source == STDIN:
        return ".csv"
    return next((suffix for suffix in SUFFIXES if source.lower().endswith(suffix)), None)


def read_table(
    source: str,
    *,
    key: str | None = None,
    id_column: str | None = None,
    types: Types = as_guessed,
) -> Table:
    """Read a file of one of the types in `SUFFIXES`, or csv from stdin.

    Parameters
    ----------
    source : str
        Path, or - for stdin.
    key : str, default=None
        Array of an npz file; None for its only array, or X.
    id_column : str, default=None
        Column of a csv or parquet file whose texts are kept as they are.
    types : callable, default=as_guessed
        Returns the types of the columns of a csv or parquet file, given their names.

    Returns
    -------
    table : Table
        Arrays of npy files are mapped to memory, not read.
    """
    suffix = suffix_of(source)
    if suffix in (".csv", ".csv.gz"):
        frame, ids = read_csv(source, id_column, types=types)
        return Table("stdin" if source == STDIN else source, frame, ids)
    check_readable(Path(source))
    if suffix == ".parquet":
        table = _read_parquet(source, id_column, types)
    elif suffix == ".npy":
        table = Table(source, _load_numpy(source))
    elif suffix == ".npz":
        with _load_numpy(source) as arrays:
            table = Table(source, _array_of(arrays, _key_of(arrays, key, source), source))
    else:
        raise CommandError(f"{source} must end with one of {', '.join(SUFFIXES)}.")
    if np.ndim(table.rows) == 0 or len(table.rows) == 0:
        raise CommandError(f"{source} has no rows.")
    return table


def read_labeled(
    source: str, target: str | None, types: Types = as_guessed
) -> tuple[Table, np.ndarray]:
    """Read the rows of a data set that have a label, and these labels; see :func:`read_dataset`.

    Parameters
    ----------
    source, target, types
        As in :func:`read_dataset`.

    Returns
    -------
    table : Table
    labels : array of shape (n_rows,)
    """
    dataset = _read_all(source, target, types)
    known = ~missing_labels(dataset.y)
    if not known.any():
        raise CommandError(f"{source} must have a label in one row at least. Got none.")
    X = dataset.X[known] if isinstance(dataset.X, np.ndarray) else dataset.X.loc[known]
    return Table(source, X), dataset.y[known]


def read_dataset(source: str, target: str | None, types: Types = as_guessed) -> Dataset:
    """Read a labeled data set.

    Parameters
    ----------
    source : str
        Path of a csv, parquet or npz file, or one of the names in `DATASETS`.
    target : str or None
        Column, or array of an npz file, with the labels. None is y for an npz file; a data set of
        `DATASETS` has its own.
    types : callable, default=as_guessed
        Returns the types of columns, that of the target among them, given their names.

    Returns
    -------
    dataset : Dataset
    """
    dataset = _read_all(source, target, types)
    _check_all_labeled(dataset.y, source)
    return dataset


def _read_all(source: str, target: str | None, types: Types) -> Dataset:
    """Return rows and labels, some of which may be missing."""
    if source in DATASETS:
        return _bundled(source, target)
    suffix = suffix_of(source)
    if suffix in (None, ".npy") or source == STDIN:
        raise CommandError(
            f"The data must be one of {', '.join(DATASETS)}, or a file that ends with "
            f"{', '.join(WITH_COLUMNS)} or .npz. Got {source!r}."
        )
    if suffix == ".npz":
        dataset = _labeled_arrays(source, target)
    else:
        texts = None
        if suffix == ".parquet":
            frame = read_table(source, types=types).rows
        else:
            frame, texts = read_csv(source, target, "--target", types)
        dataset = _labeled_frame(frame, texts, source, target)
    if dataset.y.ndim != 1 or len(dataset.y) != len(dataset.X):
        raise CommandError(
            f"{source} must have one label for each of its {len(dataset.X)} rows. Got labels of "
            f"shape {dataset.y.shape}."
        )
    return dataset


def _read_parquet(source: str, id_column: str | None, types: Types) -> Table:
    import pyarrow
    from pyarrow import parquet

    try:
        content = parquet.ParquetFile(source).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise CommandError(
            f"{source} is damaged or not a parquet file: {one_line(error)}"
        ) from error
    columns = content.column_names
    check_distinct(columns, source)
    ids = None
    if id_column is not None:
        values = content.column(place_of(id_column, columns, source, "--id-column")).to_pylist()
        ids = ["" if value is None else str(value) for value in values]
    return Table(source, convert(content.to_pandas(), types(columns), source), ids)


def _load_numpy(source: str) -> Any:
    """Return the array of an npy file, or the archive of an npz file."""
    try:
        loaded = np.load(source, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise CommandError(
            f"{source} is damaged or not a file of plain numpy arrays: {one_line(error)}"
        ) from error
    is_array = isinstance(loaded, np.ndarray)
    if is_array != source.lower().endswith(".npy"):
        if not is_array:
            loaded.close()
        raise CommandError(f"{source} must end with .npy for one array, .npz for an archive.")
    return loaded


def _key_of(arrays: Any, key: str | None, source: str) -> str:
    """Return the key of the pool's rows."""
    chosen = _key_of_rows(arrays.files) if key is None else key
    if chosen not in arrays.files:
        raise CommandError(
            f"--key must name an array of {source}: {quoted(arrays.files)}. Got {key!r}."
        )
    return str(chosen)


def _key_of_rows(keys: list[str]) -> str | None:
    """Return the default key of the rows: X or the only one, else None."""
    if "X" in keys:
        return "X"
    return keys[0] if len(keys) == 1 else None


def _array_of(arrays: Any, key: str, source: str) -> np.ndarray:
    try:
        return arrays[key]
    except Exception as error:  # any error of zip and numpy for a damaged archive
        raise CommandError(f"{source}, array {key!r}, is unreadable: {one_line(error)}") from error


def _bundled(source: str, target: str | None) -> Dataset:
    if target is not None:
        raise CommandError(f"{source} has labels of its own: leave out --target. Got {target!r}.")
    bunch = getattr(sklearn.datasets, f"load_{source}")()
    return Dataset(bunch.data, bunch.target, tuple(map(str, bunch.feature_names)))


def _labeled_frame(frame: Any, texts: list[str] | None, source: str, target: str | None) -> Dataset:
    """Return columns and labels; the `texts` of the target where parsing them merges some."""
    columns = list(frame.columns)
    if target is None:
        raise CommandError(
            f"--target must name the column of {source} with the labels: {quoted(columns)}."
        )
    place_of(target, columns, source, "--target")
    if len(columns) == 1:
        raise CommandError(f"{source} has no column besides --target {target!r}.")
    X = frame.drop(columns=target)
    y = np.asarray(frame[target])
    if texts is not None:
        y = _unmerged(y, texts)
    return Dataset(X, y, tuple(X.columns))


def _unmerged(y: np.ndarray, texts: list[str]) -> np.ndarray:
    """Return the texts if distinct ones, such as 1 and 01, became the same label."""
    known, labels = ~missing_labels(y), np.array(texts, dtype=object)
    if len(set(labels[known])) == len(set(y[known])):
        return y
    labels[~known] = None
    return labels


def _labeled_arrays(source: str, target: str | None) -> Dataset:
    check_readable(Path(source))
    labels = target or "y"
    with _load_numpy(source) as arrays:
        if labels not in arrays.files:
            raise CommandError(
                f"--target must name an array of {source}: {quoted(arrays.files)}. Got {labels!r}."
            )
        others = [name for name in arrays.files if name != labels]
        key = _key_of_rows(others)
        if key is None:
            raise CommandError(
                f"{source} must hold its rows as X or as the only array besides {labels!r}. Got "
                f"{quoted(others) or 'no other'}."
            )
        X, y = _array_of(arrays, key, source), _array_of(arrays, labels, source)
    if X.ndim != 2 or len(X) == 0:
        raise CommandError(f"{source} must hold rows and columns. Got rows of shape {X.shape}.")
    return Dataset(X, one_column(y), None)


def _check_all_labeled(y: np.ndarray, source: str) -> None:
    """Raise if a label is missing: a simulation may ask for the label of any row."""
    missing = np.flatnonzero(missing_labels(y))
    if len(missing):
        raise CommandError(
            f"{source} must have a label in every row. Got {len(missing)} missing, the first at "
            f"position {missing[0]}. Remove these rows."
        )
