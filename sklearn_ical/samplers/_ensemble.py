"""EnsembleSampler: the members of a finite ensemble, wherever they are kept, as draws."""

import copy
from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from sklearn_ical._typing import Integer, Numbers, Seed
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import BaseSampler, Draws, choose_members, member_weights
from sklearn_ical.samplers._bootstrap import bootstrap_sampler
from sklearn_ical.samplers._forest import FORESTS, ForestDraws, check_forest
from sklearn_ical.samplers._members import Members, make_draws
from sklearn_ical.samplers._models import (
    check_single_output,
    frozen_copy,
    is_fitted,
    is_learner,
    is_net,
    model_inside,
    name_of,
    not_fitted,
    torch_file,
)
from sklearn_ical.samplers._net_samplers import DeepEnsembleSampler
from sklearn_ical.samplers._wrappers import TransformedDraws

SOURCES = {
    FORESTS: "its trees",
    (BaggingClassifier, BaggingRegressor): "its bagged members",
    (VotingClassifier, VotingRegressor): "its members, with their weights",
    (StackingClassifier, StackingRegressor): "its first layer",
    (CalibratedClassifierCV,): "its calibrated folds",
}


class EnsembleSampler(BaseSampler):
    """Takes the members of a finite ensemble as posterior draws.

    Read more in the :ref:`User Guide <ensembles>`.

    Parameters
    ----------
    ensemble : list, tuple or dict of fitted models, or fitted ensemble
        Classifiers or regressors of any kinds, Pipelines, skorch nets and torch modules included;
        those without `predict_proba` vote. Members of a list may have seen different
        classes: columns follow the union, with probability 0 for a class that a member never saw.
        Or a random forest or extra-trees model, whose trees are the draws; a bagging or voting
        model; a `CalibratedClassifierCV`, by its folds; or a stacking model, by its first layer.
    weights : array-like of shape (n_members,), default=None
        Non-negative member weights of any positive sum; None for those of a voting model, and
        for equal weights elsewhere.

    Raises
    ------
    UnsupportedModelError
        From `draw`, if `ensemble` is something else, or a member gives no usable output; the
        message names the member. Problems that only appear in a member's predictions raise from the
        draws.
    NotFittedError
        From `draw`, if a member is not fitted.

    Notes
    -----
    The predictions of the first layer of a stacking model are not those of its final estimator;
    :func:`get_sampler` therefore refits a stacking model as a whole, and only
    ``EnsembleSampler(stacking)`` draws from the layer.

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

    cost = "one prediction per member"

    def __init__(self, ensemble: Any, *, weights: Numbers | None = None) -> None:
        self.ensemble = ensemble
        self.weights = weights

    @property
    def source(self) -> str:  # type: ignore[override]
        """Where the draws come from, in a few words."""
        for classes, source in SOURCES.items():
            if isinstance(self.ensemble, classes):
                return source
        return "its members"

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
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
        if isinstance(self.ensemble, FORESTS):
            check_forest(self.ensemble)
            n_members = len(self.ensemble.estimators_)
            chosen = choose_members(n_members, n_draws, random_state, "EnsembleSampler")
            forest_weights = member_weights(self.weights, n_members, chosen, "EnsembleSampler")
            return ForestDraws(self.ensemble, chosen, forest_weights)
        members = _members_of(self.ensemble)
        n_members = len(members.models)
        if not n_members:
            raise ValueError(
                "EnsembleSampler needs at least one fitted member. Got an empty ensemble."
            )
        chosen = choose_members(n_members, n_draws, random_state, "EnsembleSampler")
        weights = members.weights if self.weights is None else self.weights
        # Kind and classes are those of all members, not only of those drawn.
        draws = make_draws(members).take(
            chosen, member_weights(weights, n_members, chosen, "EnsembleSampler")
        )
        if isinstance(self.ensemble, BaggingClassifier | BaggingRegressor):
            return TransformedDraws(_BaggingInput(self.ensemble), draws)
        return draws


@singledispatch
def _members_of(ensemble: Any) -> Members:
    """Return the members of an ensemble that is not a forest, unchecked."""
    # Members of other ensembles know one class each or correct each other: they are not draws.
    raise UnsupportedModelError(
        "ensemble must be a list, tuple or dict of fitted models, or a fitted forest, bagging, "
        f"voting, stacking or calibrated model. Got {name_of(ensemble)} in EnsembleSampler; "
        "get_sampler finds the sampler of other models."
    )


@_members_of.register(list)
@_members_of.register(tuple)
def _of_sequence(ensemble: Any) -> Members:
    return Members("EnsembleSampler", _numbered(ensemble), [_member(model) for model in ensemble])


@_members_of.register(Mapping)
def _of_mapping(ensemble: Mapping[Any, Any]) -> Members:
    names = [f"{key!r} ({type(member).__name__})" for key, member in ensemble.items()]
    return Members("EnsembleSampler", names, [_member(model) for model in ensemble.values()])


def _member(model: Any) -> Any:
    """Return a copy of a fitted model of any kind that a later fit does not change.

    Of a learner, the model inside: the learner has all methods, whichever the model has.
    """
    if is_learner(model):
        model = model_inside(model) or model
    if is_net(model):
        return torch_file("_net_draws", "EnsembleSampler").member_of(model, "EnsembleSampler")
    return frozen_copy(model)


@_members_of.register(BaggingClassifier)
@_members_of.register(BaggingRegressor)
def _of_bagging(ensemble: Any) -> Members:
    _check(ensemble)
    names, models = _numbered(ensemble.estimators_), list(ensemble.estimators_)
    all_features = np.arange(ensemble.n_features_in_)
    features = [np.asarray(columns) for columns in ensemble.estimators_features_]
    whole = all(np.array_equal(columns, all_features) for columns in features)
    return Members(
        caller=f"EnsembleSampler of {name_of(ensemble)}",
        names=names,
        models=models,
        features=None if whole else features,
        **_outer_classes(ensemble, names, models),
    )


@_members_of.register(VotingClassifier)
@_members_of.register(VotingRegressor)
def _of_voting(ensemble: Any) -> Members:
    _check(ensemble)
    used = [model != "drop" for _, model in ensemble.estimators]
    weights = None if ensemble.weights is None else np.compress(used, ensemble.weights)
    names, models = _named_members(ensemble), list(ensemble.estimators_)
    hard = getattr(ensemble, "voting", "soft") == "hard"
    votes = not any(hasattr(model, "predict_proba") for model in models)
    return Members(
        caller=f"EnsembleSampler of {name_of(ensemble)}",
        names=names,
        models=models,
        weights=weights,
        mean_differs="hard voting counts labels, draws keep probabilities"
        if hard and not votes
        else "",
        **_outer_classes(ensemble, names, models),
    )


@_members_of.register(StackingClassifier)
@_members_of.register(StackingRegressor)
def _of_stacking(ensemble: Any) -> Members:
    _check(ensemble)
    names, models = _named_members(ensemble), list(ensemble.estimators_)
    return Members(
        caller=f"EnsembleSampler of {name_of(ensemble)}",
        names=names,
        models=models,
        mean_differs="the final estimator does not average the first layer",
        **_outer_classes(ensemble, names, models),
    )


@_members_of.register(CalibratedClassifierCV)
def _of_calibrated(ensemble: Any) -> Members:
    _check(ensemble)
    folds = list(ensemble.calibrated_classifiers_)
    every = np.arange(len(ensemble.classes_))
    return Members(
        caller=f"EnsembleSampler of {name_of(ensemble)}",
        names=[f"{k} (calibrated {type(fold.estimator).__name__})" for k, fold in enumerate(folds)],
        models=folds,
        classes=ensemble.classes_,
        columns=[every] * len(folds),
    )


def _check(ensemble: Any) -> None:
    """Raise if an ensemble is not fitted or has several class outputs."""
    if not is_fitted(ensemble):
        raise not_fitted(ensemble)
    check_single_output(ensemble)


def _outer_classes(ensemble: Any, names: list[str], models: list[Any]) -> dict[str, Any]:
    """Return the classes of a fitted classifier, and the columns of its members among them.

    Members are fitted on codes, the indices of their labels among all classes; frozen ones keep the
    labels that they were fitted on.
    """
    if not hasattr(ensemble, "classes_"):
        return {}
    outer = np.asarray(ensemble.classes_)
    codes = np.arange(len(outer))
    prefit = getattr(ensemble, "cv", None) == "prefit"
    columns = []
    for name, model in zip(names, models, strict=True):
        known = np.asarray(getattr(model, "classes_", codes))
        if not prefit and not _is_frozen(model) and np.isin(known, codes).all():
            columns.append(known.astype(np.intp))
        elif np.isin(known, outer).all():
            columns.append(np.searchsorted(outer, known))
        else:
            raise UnsupportedModelError(
                f"Member {name} of {name_of(ensemble)} must know only classes of "
                f"{name_of(ensemble)}, {outer.tolist()}. Got {known.tolist()}; pass a list of the "
                "fitted members."
            )
    return {"classes": outer, "columns": columns}


def _is_frozen(model: Any) -> bool:
    """Return whether a member predicts the labels of a fit before that of the ensemble."""
    return (
        _is_frozen(model[-1]) if isinstance(model, Pipeline) else isinstance(model, FrozenEstimator)
    )


def _numbered(models: Any) -> list[str]:
    return [f"{k} ({type(model).__name__})" for k, model in enumerate(models)]


def _named_members(ensemble: Any) -> list[str]:
    pairs = [(name, model) for name, model in ensemble.estimators if model != "drop"]
    return [f"{name!r} ({type(model).__name__})" for name, model in pairs]


class _BaggingInput:
    """Reads rows as a fitted bagging model does before it passes them to its members."""

    def __init__(self, ensemble: Any) -> None:
        # A shallow copy without members, used only to check rows.
        self.ensemble = copy.copy(ensemble)
        self.ensemble.estimators_ = []

    def transform(self, X: Any) -> Any:
        """Return `X` as an array or a sparse matrix of the columns that the model was fitted on."""
        return validate_data(
            self.ensemble,
            X,
            accept_sparse=["csr", "csc"],
            dtype=None,
            ensure_all_finite=False,
            reset=False,
        )


def list_sampler(models: Any) -> BaseSampler:
    """Return the sampler of a list of models: nets alone stay on their device."""
    nets = len(models) > 0 and all(is_net(model) for model in models)
    return DeepEnsembleSampler(models) if nets else EnsembleSampler(models)


def calibrated_sampler(model: CalibratedClassifierCV) -> BaseSampler:
    """Return the folds as draws, or the bootstrap if there is a single one."""
    if len(getattr(model, "calibrated_classifiers_", ())) == 1:
        return bootstrap_sampler(model)
    return EnsembleSampler(model)
