"""Labeled: rows, their labels and what else a fit was given; container types are left to _rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical._validation import as_numbers, n_rows, sliceable, take_rows
from sklearn_ical.learner._rows import OWNER, check_like, join, keep, labels_like, missing


@dataclass(frozen=True)
class Labeled:
    """What a fit is given.

    Attributes
    ----------
    X, y : object
        Rows and their labels.
    params : dict
        Other arguments of the fit by name.
    per_row : frozenset of str
        Names of those arguments that have one entry for each row.
    """

    X: Any
    y: Any
    params: dict[str, Any]
    per_row: frozenset[str]

    @classmethod
    def of(cls, X: Any, y: Any, params: dict[str, Any]) -> "Labeled":
        """Return a view of what was given; what has as many entries as `X` belongs to rows."""
        params = {name: value for name, value in params.items() if value is not None}
        per_row = {name for name, value in params.items() if _has_entry_per_row(value, X)}
        return cls(X, y, params, frozenset(per_row))

    def copied(self) -> "Labeled":
        """Return copies of rows, labels and what belongs to rows."""
        params = {n: keep(v) if n in self.per_row else v for n, v in self.params.items()}
        return Labeled(keep(self.X), keep(self.y), params, self.per_row)

    def take(self, rows: Any) -> "Labeled":
        """Return some of the rows, in the types of all."""
        params = {n: take_rows(v, rows) if n in self.per_row else v for n, v in self.params.items()}
        X, y = (take_rows(sliceable(whole), rows) for whole in (self.X, self.y))
        return Labeled(X, y, params, self.per_row)

    def joined(self, new: "Labeled") -> "Labeled":
        """Return these rows and then the new ones; of other arguments the latest."""
        X = join(self.X, new.X, "X_new")
        y = join(self.y, labels_like(new.y, self.y), "y_new")
        params = self.params | new.params
        for name in self.per_row | new.per_row:
            before, now = self._entries(name, "X_labeled_"), new._entries(name, "X_new")
            params[name] = join(before, labels_like(now, before), name)
        return Labeled(X, y, params, self.per_row | new.per_row)

    def new_rows(self, X: Any, y: Any, params: dict[str, Any]) -> "Labeled":
        """Return a copy of new rows of the same type as these, checked, without refusals."""
        new = Labeled.of(X, y, params)
        # What did not belong to rows before does not do so now, however many entries it has.
        per_row = (new.per_row - self.params.keys()) | (self.per_row & new.params.keys())
        new = Labeled(new.X, new.y, new.params, per_row).copied()
        _check_rows(new.X, new.y, self.X)
        for name in per_row:
            new._entries(name, "X_new")
        is_missing = missing(new.y)
        return new.take(np.flatnonzero(~is_missing)) if is_missing.any() else new

    def _entries(self, name: str, rows: str) -> Any:
        """Return an argument that must have one entry for each row; missing weights are 1."""
        n, is_weight = n_rows(self.X), name.rpartition("__")[2] == "sample_weight"
        if name not in self.params:
            if is_weight:
                return np.ones(n)
            raise ValueError(
                f"{name} belongs to rows, so that all labeled rows must have it, or none. Got none "
                f"for the {n} rows of {rows} in {OWNER}; pass it, or call fit with all rows."
            )
        value = self.params[name]
        if not _has_entry_per_row(value, self.X):
            raise ValueError(
                f"{name} must have one entry for each of the {n} rows of {rows}. Got {value!r} in "
                f"{OWNER}."
            )
        return as_numbers(value, name, OWNER) if is_weight else value


def check_no_new_class(labels: Any, classes: Any) -> None:
    """Refuse labels that `partial_fit` cannot learn any more, given the classes of a model."""
    if classes is None or sparse.issparse(labels):
        return
    labels = np.asarray(labels)
    outputs = [(labels.ravel(), classes)]
    if isinstance(classes, list):
        outputs = list(zip(labels.T, classes, strict=True))
    for values, known in outputs:
        unknown = set(values.tolist()) - set(known.tolist())
        if unknown:
            raise ValueError(
                f"y_new must hold classes of the last fit with partial_fit=True, one of "
                f"{known.tolist()}. Got {sorted(unknown, key=str)} in {OWNER}; leave partial_fit "
                "out to fit on all labels."
            )


def _has_entry_per_row(value: Any, rows: Any) -> bool:
    try:
        return n_rows(value) == n_rows(rows)
    except TypeError:
        return False


def _check_rows(X_new: Any, y_new: Any, X_labeled: Any) -> None:
    """Refuse rows of another kind, no rows, and labels that are not as many."""
    n_new = n_rows(X_new, "X_new")
    check_like(X_new, X_labeled, "X_new")
    n_labels = n_rows(y_new, "y_new")
    if n_new != n_labels:
        raise ValueError(
            f"y_new must have one label for each row of X_new. Got {n_labels} labels for {n_new} "
            f"rows in {OWNER}."
        )
    if not n_new:
        raise ValueError(f"X_new must have at least one row. Got none in {OWNER}.")
