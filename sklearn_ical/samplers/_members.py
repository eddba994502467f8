"""Fitted models as posterior draws, one per model, wherever the models come from.

Classifiers without `predict_proba` vote: their draws give probability 1 to the label they predict.
"""

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from sklearn_ical import _array
from sklearn_ical._labels import check_one_type
from sklearn_ical._typing import Kind
from sklearn_ical._validation import is_data_set, n_rows
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._models import (
    check_single_output,
    classes_of,
    estimator_type,
    is_fitted,
    is_net,
    not_fitted,
    preserving_state,
    rows_for,
    torch_file,
)
from sklearn_ical.samplers._probabilities import proba_samples, read_proba
from sklearn_ical.samples import PredictionSamples


@dataclass(frozen=True)
class Members:
    """Fitted models and how to read their predictions.

    Attributes
    ----------
    caller : str
        The sampler they belong to, for messages.
    names : list of str
        Their names in messages.
    models : list
        The models.
    weights : array of shape (n_members,) or None
        Weight of each, of sum 1; None for equal weights.
    classes : array of shape (n_classes,) or None
        The classes of the draws; None for the union of those of the models.
    columns : list of int arrays or None
        For each model the indices in `classes` of its own columns; None finds them by label.
    features : list of int arrays or None
        For each model the columns of `X` that it uses; None for all of them.
    mean_differs : str
        See `Draws`.
    """

    caller: str
    names: list[str]
    models: list[Any]
    weights: Any = None
    classes: Any = None
    columns: list[np.ndarray] | None = None
    features: list[np.ndarray] | None = None
    mean_differs: str = ""

    def take(self, chosen: np.ndarray, weights: np.ndarray | None) -> "Members":
        """Return some of the members, with their weights."""

        def chosen_of(items: list[Any] | None) -> Any:
            return None if items is None else [items[k] for k in chosen]

        return replace(
            self,
            names=chosen_of(self.names),
            models=chosen_of(self.models),
            columns=chosen_of(self.columns),
            features=chosen_of(self.features),
            weights=weights,
        )


def make_draws(members: Members) -> Any:
    """Check members, all of one kind, and return them as draws."""
    sorts = [_sort_of(members, k) for k in range(len(members.models))]
    if len(set(sorts)) > 1:
        a, b = (members.names[sorts.index(sort)] for sort in ("classifier", "regressor"))
        raise UnsupportedModelError(
            "Members must be all classifiers or all regressors. Got classifier "
            f"{a} and regressor {b} in {members.caller}."
        )
    return RegressorDraws(members) if sorts[0] == "regressor" else ClassifierDraws(members)


def _sort_of(members: Members, k: int) -> str:
    """Return whether a member is a classifier or a regressor; raise if it cannot be used."""
    name, model, caller = members.names[k], members.models[k], members.caller
    predicts = hasattr(model, "predict") or hasattr(model, "predict_proba")
    if isinstance(model, type) or not predicts:
        hint = "pass fitted models"
        if _array.is_array(model):
            hint = "stack arrays with PredictionSamples.from_array(stack, layout='KNC')"
        raise UnsupportedModelError(f"Member {name} of {caller} has no predict method; {hint}.")
    if not is_fitted(model):
        raise not_fitted(f"Member {name} of {caller}")
    check_single_output(model, f"Member {name} of {caller}")
    sort = estimator_type(model)
    if hasattr(model, "predict_proba") and sort != "regressor":  # those of skorch have it, too
        sort = "classifier"
    placed = members.columns is not None and hasattr(model, "predict_proba")
    if sort == "classifier" and not placed and classes_of(model) is None:
        raise UnsupportedModelError(
            f"Member {name} of {caller} is a classifier but has no classes_, so its columns cannot "
            "be named."
        )
    if sort not in ("classifier", "regressor"):
        raise UnsupportedModelError(
            f"Member {name} of {caller} must be a classifier or a regressor. Got a model that has "
            "no predict_proba and no estimator type; drop it."
        )
    return sort


class ClassifierDraws:
    """Classifiers as draws; if all of them vote, samples are of kind "label"."""

    joint = False

    def __init__(self, members: Members) -> None:
        self.members = members
        self.n_draws = len(members.models)
        self.weights = members.weights
        self.mean_differs = members.mean_differs
        self.votes = [not hasattr(model, "predict_proba") for model in members.models]
        self.kind: Kind = "label" if all(self.votes) else "proba"
        if members.columns is None:
            seen = [np.asarray(classes_of(model)) for model in members.models]
            outer = [] if members.classes is None else [np.asarray(members.classes)]
            names = [f"member {name}" for name in members.names] + ["the model"] * len(outer)
            check_one_type(zip(names, seen + outer, strict=True), members.caller)
            self.classes = np.unique(np.concatenate(seen + outer))
            self.columns = [np.searchsorted(self.classes, classes) for classes in seen]
        else:
            self.classes, self.columns = np.array(members.classes), members.columns
        self.classes.flags.writeable = False

    def take(self, chosen: np.ndarray, weights: Any) -> "ClassifierDraws":
        """Return the draws of some members, of the same kind and classes."""
        draws = copy.copy(self)
        draws.members, draws.weights = self.members.take(chosen, weights), weights
        draws.n_draws = len(chosen)
        draws.votes = [self.votes[k] for k in chosen]
        draws.columns = [self.columns[k] for k in chosen]
        return draws

    def __call__(self, X: Any) -> PredictionSamples:
        n_points = n_rows(X)
        if self.kind == "label":
            votes = [self._votes(k, X, n_points) for k in range(self.n_draws)]
            values = np.stack(votes, axis=1)
        else:
            # The precision is that of the least precise member.
            digits = [getattr(model, "output_dtype", np.float64) for model in self.members.models]
            shape = (n_points, self.n_draws, len(self.classes))
            values = np.zeros(shape, min(digits, key=lambda dtype: np.dtype(dtype).itemsize))
            for k in range(self.n_draws):
                if self.votes[k]:
                    values[np.arange(n_points), k, self._votes(k, X, n_points)] = 1
                else:
                    values[:, k, self.columns[k]] = self._proba(k, X, n_points)
        return PredictionSamples.trusted(
            values, self.kind, classes=self.classes, weights=self.weights
        )

    def _proba(self, k: int, X: Any, n_points: int) -> np.ndarray:
        """Return the checked probabilities of member k, (n_points, n_columns)."""
        members = self.members
        owner = f"predict_proba of member {members.names[k]} of {members.caller}"
        answer = _ask(members, k, "predict_proba", X)
        proba, _ = read_proba(answer, classes_of(members.models[k]), owner)
        if proba.shape != (n_points, len(self.columns[k])):
            raise UnsupportedModelError(
                f"{owner} must have shape {(n_points, len(self.columns[k]))}. Got {proba.shape}."
            )
        return proba_samples(_array.to_host(proba), None, owner).values[:, 0]

    def _votes(self, k: int, X: Any, n_points: int) -> np.ndarray:
        """Return the indices in `classes` of the labels that member k predicts, (n_points,)."""
        members = self.members
        labels = np.asarray(_ask(members, k, "predict", X))
        classes = np.asarray(classes_of(members.models[k]))
        order = np.argsort(classes)
        places = np.searchsorted(classes, labels, sorter=order).clip(max=len(classes) - 1)
        places = order[places]
        shaped = labels.shape == (n_points,)
        if not shaped or (classes[places] != labels).any():
            got = labels[classes[places] != labels][0] if shaped else f"shape {labels.shape}"
            raise UnsupportedModelError(
                f"predict of member {members.names[k]} of {members.caller} must give one of "
                f"classes_ for each of {n_points} rows. Got {got}."
            )
        return self.columns[k][places]


class RegressorDraws:
    """Regressors as draws."""

    kind = "value"
    joint = False
    classes = None

    def __init__(self, members: Members) -> None:
        self.members = members
        self.n_draws = len(members.models)
        self.weights = members.weights
        self.mean_differs = members.mean_differs

    def take(self, chosen: np.ndarray, weights: Any) -> "RegressorDraws":
        """Return the draws of some members."""
        return RegressorDraws(self.members.take(chosen, weights))

    def __call__(self, X: Any) -> PredictionSamples:
        members = self.members
        outputs: list[np.ndarray] = []
        for k in range(self.n_draws):
            y = np.asarray(_ask(members, k, "predict", X)).astype(np.float64, copy=False)
            # (n,) and (n, 1) are the same single target.
            y = _checked(y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y, members, k)
            if outputs and y.shape != outputs[0].shape:
                raise UnsupportedModelError(
                    f"Members must predict the same targets. Got shape {outputs[0].shape} from "
                    f"member {members.names[0]} and {y.shape} from member {members.names[k]} of "
                    f"{members.caller}."
                )
            outputs.append(y)
        return PredictionSamples.trusted(np.stack(outputs, axis=1), "value", weights=self.weights)


def _ask(members: Members, k: int, method: str, X: Any) -> Any:
    """Return the output of a method of member k for `X`, of which it may use only some columns."""
    model = members.models[k]
    rows = X if members.features is None else X[:, members.features[k]]
    if is_data_set(rows) and is_net(model):  # skorch predicts pairs (x, y) only
        rows = torch_file("_nets", "A net").in_pairs(rows)
    try:
        with preserving_state(model):
            return getattr(model, method)(rows_for(model, rows))
    except (NotFittedError, MemoryError):
        raise
    except Exception as err:
        sort = ValueError if isinstance(err, ValueError) else UnsupportedModelError
        raise sort(
            f"Member {members.names[k]} of {members.caller} cannot predict these rows. "
            f"{str(err) or type(err).__name__}"
        ) from err


def _checked(output: np.ndarray, members: Members, k: int) -> np.ndarray:
    """Return the values that one member predicts, checked; errors name the member."""
    try:
        return PredictionSamples(output[:, None], "value").values[:, 0]
    except (TypeError, ValueError) as err:
        raise UnsupportedModelError(
            f"Member {members.names[k]} of {members.caller} gives no usable predictions. {err}"
        ) from err
