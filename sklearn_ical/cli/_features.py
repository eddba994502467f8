"""Matching the columns of a pool to those that a model was fitted on; nothing is read here."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from sklearn_ical.cli._column_types import first_model, fitted_names, n_columns_of, reads_documents
from sklearn_ical.cli._csv import quoted
from sklearn_ical.cli._errors import CommandError, note
from sklearn_ical.cli._tables import Table


def rows_for_model(model: Any, path: Path, pool: Table, spent: Collection[str]) -> Any:
    """Return the rows of a pool in the columns, and the form, that the model was fitted on.

    Parameters
    ----------
    model : object
        Content of the file at `path`; of several models the first one counts.
    path : Path
        For messages.
    pool : Table
        Never changed.
    spent : collection of str
        Columns with another use, which are not features of a model without column names.

    Returns
    -------
    rows : DataFrame or array of shape (n_rows, n_columns) or (n_rows,)
        A frame for a model that was fitted on column names, else an array; of texts for one that
        was fitted on texts.
    """
    model = first_model(model)
    names = fitted_names(model, pool.rows.columns if pool.has_columns else ())
    n_columns = n_columns_of(model)
    if not pool.has_columns:
        return _array(pool, path, names, n_columns)
    if names is not None:
        return _named_columns(pool, path, names, spent)
    if reads_documents(model):
        return _unnamed_columns(pool, path, 1, spent)[:, 0]
    return _unnamed_columns(pool, path, n_columns, spent)


def _named_columns(pool: Table, path: Path, names: list[str], spent: Collection[str]) -> Any:
    """Return the columns of these names, in this order."""
    columns = list(pool.rows.columns)
    missing = [name for name in names if name not in columns]
    if missing:
        raise CommandError(
            f"{pool.name} must have all columns that {path} was fitted on. Missing: "
            f"{quoted(missing)}."
        )
    extra = [column for column in columns if column not in names and column not in spent]
    if extra:
        note(f"{path} does not use these columns of {pool.name}: {quoted(extra)}.")
    return pool.rows[names]


def _unnamed_columns(pool: Table, path: Path, n_columns: int | None, spent: Collection[str]) -> Any:
    """Return all columns that have no other use, in the order of the file, without names."""
    kept = [column for column in pool.rows.columns if column not in spent]
    if n_columns not in (None, len(kept)):
        raise CommandError(
            f"{path} was fitted without column names, so {pool.name} must have exactly its "
            f"{n_columns} columns in their order, besides --id-column and --cost-column. Got "
            f"{len(kept)}: {quoted(kept)}. Remove or add columns, or fit the model on a frame."
        )
    return pool.rows[kept].to_numpy()


def _array(pool: Table, path: Path, names: list[str] | None, n_columns: int | None) -> Any:
    """Return an array, as a frame of the same memory for a model with column names."""
    shape = pool.rows.shape
    if n_columns is not None and (len(shape) != 2 or shape[1] != n_columns):
        raise CommandError(
            f"{pool.name} must have the {n_columns} columns that {path} was fitted on. Got an "
            f"array of shape {shape}."
        )
    if names is None:
        return pool.rows
    import pandas as pd

    note(f"the columns of {pool.name} have no names; they are taken in the order of {path}.")
    return pd.DataFrame(pool.rows, columns=names, copy=False)
