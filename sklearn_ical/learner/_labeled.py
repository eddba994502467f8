"""Labeled: rows, their labels and other arguments of a fit; containers are handled by _rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical._fit_params import FitParams, check_aligned, check_fit_params, is_weight
from sklearn_ical._labels import missing_labels
from sklearn_ical._validation import as_numbers, n_rows, sliceable, take_rows, without_data_set
from sklearn_ical.learner._rows import CALLER, check_like, join, keep, labels_like


@dataclass(frozen=True)
class Labeled:
    """The arguments of a fit.

    Attributes
    ----------
    X, y : object
        Rows and their labels.
    params : FitParams
        Other arguments of the fit by name.
    features : object
        Precomputed features of the rows, None for none.
    """

    X: Any
    y: Any
    params: FitParams
    features: Any = None

    @classmethod
    def from_arguments(
        cls, X: Any, y: Any, params: dict[str, Any], features: Any = None, name: str = "X"
    ) -> "Labeled":
        """Return a view of the arguments, checked; `name` is that of `X` for messages."""
        X = without_data_set(X, name)
        if features is not None and n_rows(features, "features") != n_rows(X, "X"):
            raise ValueError(
                f"features must have one row for each of the {n_rows(X)} labeled rows. Got "
                f"{n_rows(features)}."
            )
        caller = "ActiveLearner.fit" if name == "X" else CALLER
        return cls(X, y, check_fit_params(params, X, caller, name=name), features)

    def copied(self) -> "Labeled":
        """Return copies of the rows, the labels and the arguments that are arrays."""
        kept = {name: keep(self.params[name]) for name in self.params.aligned}
        features = None if self.features is None else keep(self.features)
        params = FitParams(self.params.with_copies() | kept, self.params.aligned)
        return Labeled(keep(self.X), keep(self.y), params, features)

    def take(self, rows: Any) -> "Labeled":
        """Return some of the rows, in the types given."""
        X, y = (take_rows(sliceable(whole), rows) for whole in (self.X, self.y))
        features = None if self.features is None else take_rows(sliceable(self.features), rows)
        return Labeled(X, y, self.params.take(rows), features)

    def joined(self, new: "Labeled") -> "Labeled":
        """Return these rows followed by the new ones, and the latest of the other arguments."""
        X = join(self.X, new.X, "X_new")
        y = join(self.y, labels_like(new.y, self.y), "y_new")
        params, aligned = self.params | new.params, self.params.aligned | new.params.aligned
        for name in aligned:
            before, now = self._entries(name, "X_labeled_"), new._entries(name, "X_new")
            params[name] = join(before, labels_like(now, before), name)
        features = None if new.features is None else join(self.features, new.features, "features")
        return Labeled(X, y, FitParams(params, aligned), features)

    def new_rows(self, X: Any, y: Any, params: dict[str, Any], features: Any = None) -> "Labeled":
        """Return a copy of new rows of the same type as these, checked, without unlabeled ones."""
        if (features is None) != (self.features is None):
            raise ValueError(
                "features must be given for all labeled rows, or for none. Got "
                f"{'none' if features is None else 'some'} for X_new in {CALLER}, and "
                f"{'none' if self.features is None else 'some'} for the rows before."
            )
        new = Labeled.from_arguments(X, y, params, features, "X_new")
        # Arguments that did not belong to rows before do not now, whatever their length.
        before = self.params
        aligned = (new.params.aligned - before.keys()) | (before.aligned & new.params.keys())
        new = Labeled(new.X, new.y, FitParams(new.params, aligned), features).copied()
        _check_new_rows(new.X, new.y, self.X)
        for name in aligned:
            new._entries(name, "X_new")
        missing = missing_labels(new.y)
        return new.take(np.flatnonzero(~missing)) if missing.any() else new

    def _entries(self, name: str, rows: str) -> Any:
        """Return an argument that must have one entry for each row; missing weights are 1."""
        n = n_rows(self.X)
        if name not in self.params:
            if is_weight(name):
                return np.ones(n)
            raise ValueError(
                f"{name} belongs to rows, so that all labeled rows must have it, or none. Got none "
                f"for the {n} rows of {rows} in {CALLER}; pass it, or call fit with all rows."
            )
        value = self.params[name]
        check_aligned(name, value, n, CALLER, rows)
        return as_numbers(value, name, CALLER) if is_weight(name) else value


def check_no_new_class(labels: Any, classes: Any) -> None:
    """Raise if `partial_fit` cannot learn a label, given the classes of a model."""
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
                f"{known.tolist()}. Got {sorted(unknown, key=str)} in {CALLER}; leave partial_fit "
                "out to fit on all labels."
            )


def _check_new_rows(X_new: Any, y_new: Any, X_labeled: Any) -> None:
    """Raise if rows have another type, if there are none, or if labels are not as many."""
    n_new = n_rows(X_new, "X_new")
    check_like(X_new, X_labeled, "X_new")
    n_labels = n_rows(y_new, "y_new")
    if n_new != n_labels:
        raise ValueError(
            f"y_new must have one label for each row of X_new. Got {n_labels} labels for {n_new} "
            f"rows in {CALLER}."
        )
    if not n_new:
        raise ValueError(f"X_new must have at least one row. Got none in {CALLER}.")
