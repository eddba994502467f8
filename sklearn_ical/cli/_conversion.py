"""Columns of the types that are asked for; where these types come from does not matter here."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_ical.cli._errors import CommandError

# What pandas reads as missing.
MISSING = frozenset(
    "|#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None"
    "|n/a|nan|null".split("|")
)
BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}


@dataclass(frozen=True)
class ColumnType:
    """How a column is to be read.

    Attributes
    ----------
    kind : {"number", "text", "document", "word", "boolean", "date", "any"}
        Documents and words are texts that are never missing: an empty cell is an empty document,
        but no word. "any" is whatever the values of the file look like.
    categories : tuple or None
        The values that the model was fitted on, in its order; others may occur.
    categorical : bool
        Whether the column becomes a categorical one of pandas, which begins with these categories.
    as_objects : bool
        Whether the values are Python objects, as those that the model was fitted on.
    asked : bool
        Whether the user asked for it, not the model.
    """

    kind: str
    categories: tuple[Any, ...] | None = None
    categorical: bool = False
    as_objects: bool = False
    asked: bool = False

    @property
    def missing(self) -> Any:
        """What stands for a missing value."""
        return None if self.categories is not None and None in self.categories else np.nan

    @property
    def is_text(self) -> bool:
        """Whether values are kept as they are written."""
        return self.kind in ("text", "document", "word")

    @property
    def missing_words(self) -> frozenset[str]:
        """Texts that mean a missing value, those that the model knows as values excepted."""
        if self.kind in ("document", "word"):
            return frozenset()
        return MISSING.difference(map(str, self.known))

    @property
    def known(self) -> list[Any]:
        """The categories that are not missing values."""
        return [value for value in self.categories or () if not is_missing(value)]


# From the names of a file's columns to the types of those that are to be converted.
Types = Callable[[list[str]], Mapping[str, ColumnType]]


def as_guessed(columns: list[str]) -> Mapping[str, ColumnType]:
    """Return no types, so that all columns are of the type that they look like."""
    return {}


def is_missing(value: Any) -> bool:
    """Return whether a category is None, NaN or another missing value."""
    import pandas as pd

    return bool(pd.isna(value))


def csv_arguments(columns: list[str], types: Mapping[str, ColumnType]) -> dict[str, Any]:
    """Return arguments of `pandas.read_csv` that leave the columns of text as they are written."""
    texts = {column: type_ for column, type_ in types.items() if type_.is_text}
    if not texts:
        return {}
    missing = {column: MISSING for column in columns}
    missing |= {column: type_.missing_words for column, type_ in texts.items()}
    return {
        "dtype": dict.fromkeys(texts, object),
        "keep_default_na": False,
        "na_values": {column: list(words) for column, words in missing.items()},
    }


def convert(frame: Any, types: Mapping[str, ColumnType], source: str) -> Any:
    """Return a frame whose columns have the types asked for.

    Parameters
    ----------
    frame : DataFrame
        Not changed.
    types : dict of {str: ColumnType}
        By the name of the column.
    source : str
        Name of the file in messages.

    Returns
    -------
    frame : DataFrame
    """
    converted = {}
    for column, type_ in types.items():
        values, wrong = PARSERS[type_.kind](frame[column], type_)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise CommandError(_unreadable(source, row, frame[column], type_))
        converted[column] = _finish(values, type_)
    return frame.assign(**converted)


def _unreadable(source: str, row: int, column: Any, type_: ColumnType) -> str:
    """Return the message for a value that is not of the type of its column."""
    name = column.name
    nouns = {"number": "a number", "date": "a date", "word": "a text"}
    origin = (
        "asked for by --column-type" if type_.asked else "in the data that the model was fitted on"
    )
    value = column.iloc[row]
    if type_.kind == "word":
        value, way_out = "", "Write what stands for a missing text"
    else:
        way_out = "Correct the value, or leave the cell empty if it is missing"
    return (
        f"{source}, row {row} (counted from 0), column {name!r}, value {str(value)!r}: must be "
        f"{nouns.get(type_.kind, 'True or False')}, as {origin}. {way_out}; --column-type "
        f"'{name}=text' reads the column as text."
    )


def _is_loose(column: Any) -> bool:
    """Return whether a column holds texts, or values of several types."""
    from pandas.api.types import is_object_dtype, is_string_dtype

    return bool(is_object_dtype(column) or is_string_dtype(column))


def _plain(column: Any) -> Any:
    """Return a column without categories."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.astype(column.cat.categories.dtype if column.notna().all() else object)
    return column


def _any(column: Any, type_: ColumnType) -> tuple[Any, Any]:
    return column, np.zeros(len(column), bool)


def _numbers(column: Any, type_: ColumnType) -> tuple[Any, Any]:
    import pandas as pd

    column = _plain(column)
    if not _is_loose(column):
        return column, np.zeros(len(column), bool)
    values = pd.to_numeric(column.map(_bool_or_same), errors="coerce")
    return values, np.asarray(values.isna() & column.notna())


def _bool_or_same(value: Any) -> Any:
    """Return a boolean for its text, other values as they are."""
    return BOOLEANS.get(value.lower(), value) if isinstance(value, str) else value


def _dates(column: Any, type_: ColumnType) -> tuple[Any, Any]:
    import pandas as pd

    values = pd.to_datetime(_plain(column), errors="coerce")
    return values, np.asarray(values.isna() & column.notna())


def _booleans(column: Any, type_: ColumnType) -> tuple[Any, Any]:
    import pandas as pd

    missing = np.asarray(column.isna())
    read = [BOOLEANS.get(str(value).lower(), np.nan) for value in column]
    values = pd.Series(read, index=column.index, dtype=object)
    wrong = np.asarray(values.isna()) & ~missing
    return (values if missing.any() or wrong.any() else values.astype(bool)), wrong


def _texts(column: Any, type_: ColumnType) -> tuple[Any, Any]:
    import pandas as pd

    known, missing = set(type_.known), "" if type_.kind == "document" else np.nan
    pairs = zip(column, column.isna(), strict=True)
    read = [missing if is_gap else _text(value, known) for value, is_gap in pairs]
    return pd.Series(read, index=column.index, dtype=object), np.zeros(len(column), bool)


def _text(value: Any, known: Collection[Any]) -> str:
    """Return a value of a typed file as a text, a whole number as the model knows it."""
    if isinstance(value, float) and value.is_integer() and str(value) not in known:
        return str(int(value))
    return str(value)


def _words(column: Any, type_: ColumnType) -> tuple[Any, Any]:
    values, _ = _texts(column, type_)
    return values, np.asarray(values.isna() | (values == ""))


PARSERS: dict[str, Callable[[Any, ColumnType], tuple[Any, Any]]] = {
    "any": _any,
    "number": _numbers,
    "date": _dates,
    "boolean": _booleans,
    "text": _texts,
    "document": _texts,
    "word": _words,
}


def _finish(values: Any, type_: ColumnType) -> Any:
    """Return values in the form that the model was fitted on."""
    if type_.categorical:
        return _categorical(values, type_)
    if type_.as_objects or type_.missing is None:
        values = values.astype(object)
        return values.where(values.notna(), type_.missing)
    return values


def _categorical(values: Any, type_: ColumnType) -> Any:
    """Return a column with the categories of the model, and then those that it does not know."""
    import pandas as pd

    if type_.categories is None:
        return values.astype("category")
    fitted = pd.Index(type_.known)
    others = pd.Index(_plain(values).dropna().unique()).difference(fitted)
    dtype = pd.CategoricalDtype(fitted.append(others) if len(others) else fitted)
    return pd.Series(pd.Categorical(_plain(values), dtype=dtype), index=values.index)
