"""Samplers of finite ensembles: trees of a forest, lists and dicts of models, samples at hand."""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, is_regressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sklearn_ical import _array
from sklearn_ical._validation import (
    as_numbers,
    check_weights,
    forest_input,
    n_rows,
    sliceable,
    take_rows,
)
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import (
    BaseSampler,
    Draws,
    choose_members,
    get_sampler,
    name_of,
    not_fitted,
)
from sklearn_ical.samples import PredictionSamples

FORESTS = (
    RandomForestClassifier,
    ExtraTreesClassifier,
    RandomForestRegressor,
    ExtraTreesRegressor,
)
# One walk down the trees per so many rows: threads are started once, leaf numbers stay small.
FOREST_BLOCK_ROWS = 20_000


class EnsembleSampler(BaseSampler):
    """Takes the members of a finite ensemble as posterior draws.

    Parameters
    ----------
    ensemble : list, tuple or dict of fitted models, or fitted forest
        Classifiers with `predict_proba`, or regressors, of whatever unlike kinds, Pipelines
        included; or a random forest or extra-trees model, whose trees are the draws. Members of
        a list may have seen different classes: columns follow the union, with probability 0
        for a class that a member never saw.
    weights : array-like of shape (n_members,), default=None
        Non-negative member weights of any positive sum; None for equal weights.

    Raises
    ------
    UnsupportedModelError
        From `draw`, if `ensemble` is something else, or a member gives no usable output; the
        message names the member. What shows only in a member's predictions raises from the draws.
    NotFittedError
        From `draw`, if a member is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_ical.samplers import EnsembleSampler
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [GaussianNB().fit(X, y), LogisticRegression(max_iter=500).fit(X, y)]
    >>> EnsembleSampler(members, weights=[1, 3]).sample(X).weights
    array([0.25, 0.75])
    """

    def __init__(self, ensemble: Any, *, weights: Any = None) -> None:
        self.ensemble = ensemble
        self.weights = weights

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> Draws:
        """Fix members of the ensemble as draws.

        Parameters
        ----------
        n_draws : int, default=None
            None takes every member once; fewer than there are, a seeded subset in member order;
            more is an error.
        random_state : int, RandomState, Generator or None, default=None
            Seeds the choice of a subset.

        Returns
        -------
        draws : Draws
            Immutable; call it on rows to get `PredictionSamples`.
        """
        forest = isinstance(self.ensemble, FORESTS)
        if forest:
            _check_forest(self.ensemble)
        names, members = _named_members(self.ensemble)
        chosen = choose_members(len(members), n_draws, random_state, "EnsembleSampler")
        weights = _member_weights(self.weights, len(members), chosen)
        if forest:
            return _ForestDraws(self.ensemble, chosen, weights)
        return _make_list_draws([names[k] for k in chosen], [members[k] for k in chosen], weights)


def _member_weights(weights: Any, n_members: int, chosen: np.ndarray) -> np.ndarray | None:
    """Return the weights of the chosen members, scaled to sum 1."""
    if weights is None:
        return None
    weights = as_numbers(weights, "weights", "EnsembleSampler")
    if weights.shape != (n_members,):
        raise ValueError(
            f"weights must have one entry per member, shape ({n_members},). Got shape "
            f"{weights.shape} in EnsembleSampler."
        )
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        raise ValueError(
            f"weights must be finite and >= 0. Got {weights[wrong][0]} in EnsembleSampler."
        )
    weights = weights[chosen]
    if weights.sum() == 0:
        raise ValueError(
            "weights of the drawn members must have a positive sum. Got 0 for "
            f"{len(chosen)} members in EnsembleSampler."
        )
    weights = check_weights(weights / weights.sum(), len(chosen))
    weights.flags.writeable = False
    return weights


def _named_members(ensemble: Any) -> tuple[list[str], list[Any]]:
    """Return the names (for messages) and the members of a list, dict or forest."""
    if isinstance(ensemble, Mapping):
        members = list(ensemble.values())
        names = [f"{key!r} ({type(member).__name__})" for key, member in ensemble.items()]
    elif isinstance(ensemble, (list, tuple, *FORESTS)):
        members = list(ensemble.estimators_ if isinstance(ensemble, FORESTS) else ensemble)
        names = [f"{k} ({type(member).__name__})" for k, member in enumerate(members)]
    else:
        # Members of other ensembles speak encoded labels, see some features or correct each other.
        raise UnsupportedModelError(
            "ensemble must be a list, tuple or dict of fitted models, or a fitted random forest or "
            f"extra-trees model. Got {name_of(ensemble)} in EnsembleSampler; "
            "get_sampler finds the sampler of other models, or says what there is."
        )
    if not members:
        raise ValueError("EnsembleSampler needs at least one fitted member. Got an empty ensemble.")
    return names, members


def _check_forest(forest: Any) -> None:
    """Refuse forests that are not fitted or that predict several class outputs at once."""
    if not hasattr(forest, "estimators_"):
        raise not_fitted(forest)
    if hasattr(forest, "classes_") and forest.n_outputs_ > 1:
        raise UnsupportedModelError(
            f"{type(forest).__name__} was fitted on {forest.n_outputs_} class outputs; draws need "
            "one, (n_points, n_draws, n_classes). Fit one forest per output, with y of shape "
            "(n_samples,)."
        )


class _ForestDraws:
    """The trees of a forest, evaluated by one walk to the leaves and one gather of leaf values."""

    joint = False

    def __init__(self, forest: Any, chosen: np.ndarray, weights: np.ndarray | None) -> None:
        # A shallow copy keeps these trees when the caller fits the forest again.
        self.forest = copy.copy(forest)
        self.forest.estimators_ = [forest.estimators_[k] for k in chosen]
        self.n_draws = len(chosen)
        self.classes = getattr(forest, "classes_", None)
        self.kind = "value" if self.classes is None else "proba"
        self.weights = weights
        trees = [tree.tree_ for tree in self.forest.estimators_]
        table = np.concatenate([tree.value for tree in trees])  # (n_nodes, n_outputs, n_classes)
        table = table[:, 0, :] if self.kind == "proba" else table[:, :, 0]
        # Leaf values are checked here, once; predictions are only ever looked up.
        checked = PredictionSamples(table[:, None], self.kind, classes=self.classes)
        self.classes = checked.classes
        table = np.ascontiguousarray(checked.values[:, 0])
        if self.kind == "value" and table.shape[1] == 1:
            table = table[:, 0]
        # One table a tree: it stays in cache while all rows are looked up.
        self.tables = np.split(table, np.cumsum([tree.node_count for tree in trees[:-1]]))

    def __call__(self, X: Any) -> PredictionSamples:
        X = sliceable(X)
        total = n_rows(X)
        out = self._empty(total)
        for start in range(0, total, FOREST_BLOCK_ROWS):
            stop = min(start + FOREST_BLOCK_ROWS, total)
            block = X if stop - start == total else take_rows(X, slice(start, stop))
            self._evaluate(block, out[:, start:stop])
        return self._samples(out)

    def chunks(self, X: Any, n_rows: int) -> Iterator[PredictionSamples]:
        """Walk the trees once for all of `X` and yield the samples of its chunks."""
        rows = forest_input(self.forest, X)
        found = np.empty((self.n_draws, rows.shape[0]), dtype=np.int32)
        self._walk(rows, found.__setitem__)
        for start in range(0, found.shape[1], n_rows):
            part = found[:, start : start + n_rows]
            out = self._empty(part.shape[1])
            for k, leaves in enumerate(part):
                self._look_up(k, leaves, out[k])
            yield self._samples(out)

    def _evaluate(self, X: Any, out: np.ndarray) -> None:
        """Write the predictions for `X` into `out`, (n_draws, n_points, ...)."""
        rows = forest_input(self.forest, X)
        self._walk(rows, lambda k, leaves: self._look_up(k, leaves, out[k]))

    def _walk(self, rows: Any, keep: Callable[[int, np.ndarray], None]) -> None:
        """Pass each tree's leaves of all rows to `keep`, on the forest's own number of threads."""

        def walk(k: int, tree: Any) -> None:
            keep(k, tree.apply(rows, check_input=False))

        Parallel(n_jobs=self.forest.n_jobs, require="sharedmem")(
            delayed(walk)(k, tree) for k, tree in enumerate(self.forest.estimators_)
        )

    def _look_up(self, k: int, leaves: np.ndarray, out: np.ndarray) -> None:
        """Write the values of one tree's leaves into `out`, (n_points, ...)."""
        # mode="clip" lets numpy write into `out` without a buffer of its own.
        np.take(self.tables[k], leaves, axis=0, mode="clip", out=out)

    def _empty(self, n_points: int) -> np.ndarray:
        """Return room for predictions, draw by draw: a tree writes to one stretch of memory."""
        return np.empty((self.n_draws, n_points, *self.tables[0].shape[1:]))

    def _samples(self, values: np.ndarray) -> PredictionSamples:
        """Wrap predictions that come draw by draw."""
        return PredictionSamples.trusted(
            values.swapaxes(0, 1), self.kind, classes=self.classes, weights=self.weights
        )


def _make_list_draws(names: list[str], members: list[Any], weights: np.ndarray | None) -> Draws:
    """Check the members of a list or dict and return them as draws."""
    for name, member in zip(names, members, strict=True):
        _check_member(name, member)
    kinds = ["proba" if hasattr(member, "predict_proba") else "value" for member in members]
    if len(set(kinds)) > 1:
        a, b = names[kinds.index("proba")], names[kinds.index("value")]
        raise UnsupportedModelError(
            "Members must be all classifiers or all regressors. Got classifier "
            f"{a} and regressor {b} in EnsembleSampler."
        )
    if kinds[0] == "value":
        return _RegressorDraws(names, members, weights)
    return _ClassifierDraws(names, members, weights)


def _check_member(name: str, member: Any) -> None:
    """Refuse a member that is no fitted classifier with probabilities and no fitted regressor."""
    if isinstance(member, type) or not hasattr(member, "predict"):
        hint = "pass fitted models"
        if _array.is_array(member):
            hint = "stack arrays with PredictionSamples.from_array(stack, layout='KNC')"
        raise UnsupportedModelError(
            f"Member {name} of EnsembleSampler has no predict method; {hint}."
        )
    if isinstance(member, BaseEstimator) and hasattr(member, "fit"):
        try:
            check_is_fitted(member)
        except NotFittedError as err:
            raise NotFittedError(
                f"Member {name} of EnsembleSampler is not fitted yet. Call fit on the labeled "
                "data before query."
            ) from err
    if hasattr(member, "predict_proba"):
        if not hasattr(member, "classes_"):
            raise UnsupportedModelError(
                f"Member {name} of EnsembleSampler has predict_proba but no classes_, so its "
                "columns cannot be named."
            )
        if isinstance(member.classes_, list):
            raise UnsupportedModelError(
                f"Member {name} of EnsembleSampler was fitted on {len(member.classes_)} class "
                "outputs; draws need one. Fit one model per output."
            )
    elif not (isinstance(member, BaseEstimator) and is_regressor(member)):
        raise UnsupportedModelError(
            f"Member {name} of EnsembleSampler has no predict_proba and is no regressor, so it "
            "gives no probabilities. Wrap it in CalibratedClassifierCV, or drop it."
        )


class _ClassifierDraws:
    """Unlike classifiers as draws; columns follow the union of their classes."""

    kind = "proba"
    joint = False

    def __init__(self, names: list[str], members: list[Any], weights: np.ndarray | None) -> None:
        self.names = names
        self.members = members
        self.n_draws = len(members)
        self.weights = weights
        seen = [np.asarray(member.classes_) for member in members]
        labels = [classes.tolist()[0] for classes in seen]
        for name, label in zip(names, labels, strict=True):
            if isinstance(label, str) != isinstance(labels[0], str):
                raise UnsupportedModelError(
                    f"Members must share one type of class label. Got {labels[0]!r} in member "
                    f"{names[0]} and {label!r} in member {name} of EnsembleSampler."
                )
        self.classes = np.unique(np.concatenate(seen))
        self.classes.flags.writeable = False
        self.columns = [np.searchsorted(self.classes, classes) for classes in seen]

    def __call__(self, X: Any) -> PredictionSamples:
        values = np.zeros((n_rows(X), self.n_draws, len(self.classes)))
        for k, (name, member) in enumerate(zip(self.names, self.members, strict=True)):
            proba = np.asarray(member.predict_proba(X))
            if proba.shape != (len(values), len(self.columns[k])):
                raise UnsupportedModelError(
                    f"predict_proba of member {name} of EnsembleSampler must have shape "
                    f"{(len(values), len(self.columns[k]))}. Got {proba.shape}."
                )
            values[:, k, self.columns[k]] = _checked(proba, "proba", name)
        return PredictionSamples.trusted(
            values, "proba", classes=self.classes, weights=self.weights
        )


class _RegressorDraws:
    """Unlike regressors as draws."""

    kind = "value"
    joint = False
    classes = None

    def __init__(self, names: list[str], members: list[Any], weights: np.ndarray | None) -> None:
        self.names = names
        self.members = members
        self.n_draws = len(members)
        self.weights = weights

    def __call__(self, X: Any) -> PredictionSamples:
        outputs: list[np.ndarray] = []
        for name, member in zip(self.names, self.members, strict=True):
            y = np.asarray(member.predict(X), dtype=np.float64)
            # (n,) and (n, 1) are the same single target.
            y = _checked(y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y, "value", name)
            if outputs and y.shape != outputs[0].shape:
                raise UnsupportedModelError(
                    f"Members must predict the same targets. Got shape {outputs[0].shape} from "
                    f"member {self.names[0]} and {y.shape} from member {name} of EnsembleSampler."
                )
            outputs.append(y)
        return PredictionSamples.trusted(np.stack(outputs, axis=1), "value", weights=self.weights)


def _checked(output: np.ndarray, kind: str, name: str) -> np.ndarray:
    """Return the predictions of one member, checked; what is wrong with them names the member."""
    try:
        return PredictionSamples(output[:, None], kind).values[:, 0]
    except (TypeError, ValueError) as err:
        raise UnsupportedModelError(
            f"Member {name} of EnsembleSampler gives no usable predictions. {err}"
        ) from err


class SamplesSampler(BaseSampler):
    """Gives back predictions that are already at hand, for exactly the rows they belong to.

    Parameters
    ----------
    samples : PredictionSamples
    """

    def __init__(self, samples: PredictionSamples) -> None:
        self.samples = samples

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> Draws:
        """Fix columns of the samples as draws; see :class:`EnsembleSampler`."""
        samples = self.samples
        if n_draws is not None:
            chosen = choose_members(samples.n_draws, n_draws, random_state, "SamplesSampler")
            samples = samples.take_draws(chosen)
        return _SamplesDraws(samples)


class _SamplesDraws:
    """Draws whose values are known for one fixed set of rows only."""

    joint = True

    def __init__(self, samples: PredictionSamples) -> None:
        self.samples = samples
        self.n_draws = samples.n_draws
        self.kind = samples.kind
        self.classes = samples.classes
        self.weights = samples.weights

    def __call__(self, X: Any) -> PredictionSamples:
        if n_rows(X) != self.samples.n_points:
            raise ValueError(
                f"The predictions at hand belong to {self.samples.n_points} rows. Got "
                f"{n_rows(X)} rows; pass a fitted model to predict other rows."
            )
        return self.samples


for forest_class in FORESTS:
    get_sampler.register(forest_class, EnsembleSampler)
for ensemble_class in (list, tuple, dict):
    get_sampler.register(ensemble_class, EnsembleSampler)
get_sampler.register(PredictionSamples, SamplesSampler)
