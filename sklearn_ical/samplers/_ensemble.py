"""EnsembleSampler: the members of a finite ensemble, found in whatever keeps them, as draws."""

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
from sklearn_ical._validation import as_numbers, check_weights
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import BaseSampler, Draws, TransformedDraws, choose_members
from sklearn_ical.samplers._forest import FORESTS, ForestDraws, check_forest
from sklearn_ical.samplers._members import Members, make_draws
from sklearn_ical.samplers._models import (
    check_single_output,
    is_fitted,
    is_net,
    kept,
    name_of,
    not_fitted,
    torch_file,
)
from sklearn_ical.samplers._registry import bootstrap_of, get_sampler

SOURCES = {
    FORESTS: "its trees",
    (BaggingClassifier, BaggingRegressor): "its bagged members",
    (VotingClassifier, VotingRegressor): "its members, with their weights",
    (StackingClassifier, StackingRegressor): "its first layer",
    (CalibratedClassifierCV,): "its calibrated folds",
}


class EnsembleSampler(BaseSampler):
    """Takes the members of a finite ensemble as posterior draws.

    Parameters
    ----------
    ensemble : list, tuple or dict of fitted models, or fitted ensemble
        Classifiers or regressors of whatever unlike kinds, Pipelines, skorch nets and torch modules
        included; those without `predict_proba` vote. Members of a list may have seen different
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
        message names the member. What shows only in a member's predictions raises from the draws.
    NotFittedError
        From `draw`, if a member is not fitted.

    Notes
    -----
    The first layer of a stacking model says what its members think, not what the final estimator
    makes of it; :func:`get_sampler` therefore refits a stacking model as a whole, and only
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
            weights = member_weights(self.weights, n_members, chosen, "EnsembleSampler")
            return ForestDraws(self.ensemble, chosen, weights)
        members = _members_of(self.ensemble)
        n_members = len(members.models)
        if not n_members:
            raise ValueError(
                "EnsembleSampler needs at least one fitted member. Got an empty ensemble."
            )
        chosen = choose_members(n_members, n_draws, random_state, "EnsembleSampler")
        given = members.weights if self.weights is None else self.weights
        # Kind and classes are those of all members, whichever are drawn.
        draws = make_draws(members).take(
            chosen, member_weights(given, n_members, chosen, "EnsembleSampler")
        )
        if isinstance(self.ensemble, BaggingClassifier | BaggingRegressor):
            return TransformedDraws(_BaggingInput(self.ensemble), draws)
        return draws


def member_weights(
    weights: Any, n_members: int, chosen: np.ndarray, owner: str
) -> np.ndarray | None:
    """Return the weights of the chosen members, scaled to sum 1."""
    if weights is None:
        return None
    weights = as_numbers(weights, "weights", owner)
    if weights.shape != (n_members,):
        raise ValueError(
            f"weights must have one entry per member, shape ({n_members},). Got shape "
            f"{weights.shape} in {owner}."
        )
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        raise ValueError(f"weights must be finite and >= 0. Got {weights[wrong][0]} in {owner}.")
    weights = weights[chosen]
    if weights.sum() == 0:
        raise ValueError(
            "weights of the drawn members must have a positive sum. Got 0 for "
            f"{len(chosen)} members in {owner}."
        )
    weights = check_weights(weights / weights.sum(), len(chosen))
    weights.flags.writeable = False
    return weights


@singledispatch
def _members_of(ensemble: Any) -> Members:
    """Return the members of an ensemble that is no forest, not yet checked."""
    # Members of other ensembles know one class each or correct each other: they are no draws.
    raise UnsupportedModelError(
        "ensemble must be a list, tuple or dict of fitted models, or a fitted forest, bagging, "
        f"voting, stacking or calibrated model. Got {name_of(ensemble)} in EnsembleSampler; "
        "get_sampler finds the sampler of other models, or says what there is."
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
    """Return a fitted model of whatever kind as one that a later fit does not reach."""
    if is_net(model):
        return torch_file("_members", "EnsembleSampler").member_of(model, "EnsembleSampler")
    return kept(model)


@_members_of.register(BaggingClassifier)
@_members_of.register(BaggingRegressor)
def _of_bagging(ensemble: Any) -> Members:
    _check(ensemble)
    names, models = _numbered(ensemble.estimators_), list(ensemble.estimators_)
    all_features = np.arange(ensemble.n_features_in_)
    features = [np.asarray(some) for some in ensemble.estimators_features_]
    whole = all(np.array_equal(some, all_features) for some in features)
    return Members(
        owner=f"EnsembleSampler of {name_of(ensemble)}",
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
    names, models = _named(ensemble), list(ensemble.estimators_)
    hard = getattr(ensemble, "voting", "soft") == "hard"
    votes = not any(hasattr(model, "predict_proba") for model in models)
    return Members(
        owner=f"EnsembleSampler of {name_of(ensemble)}",
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
    names, models = _named(ensemble), list(ensemble.estimators_)
    return Members(
        owner=f"EnsembleSampler of {name_of(ensemble)}",
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
        owner=f"EnsembleSampler of {name_of(ensemble)}",
        names=[f"{k} (calibrated {type(fold.estimator).__name__})" for k, fold in enumerate(folds)],
        models=folds,
        classes=ensemble.classes_,
        columns=[every] * len(folds),
    )


def _check(ensemble: Any) -> None:
    """Refuse an ensemble that is not fitted or has several class outputs."""
    if not is_fitted(ensemble):
        raise not_fitted(ensemble)
    check_single_output(ensemble)


def _outer_classes(ensemble: Any, names: list[str], models: list[Any]) -> dict[str, Any]:
    """Return the classes of a fitted classifier and where the columns of its members belong.

    Members are fitted on codes, the places of their labels among all classes; frozen ones keep
    the labels that they know.
    """
    if not hasattr(ensemble, "classes_"):
        return {}
    outer = np.asarray(ensemble.classes_)
    codes = np.arange(len(outer))
    prefit = getattr(ensemble, "cv", None) == "prefit"
    columns = []
    for name, model in zip(names, models, strict=True):
        own = np.asarray(getattr(model, "classes_", codes))
        if not prefit and not _is_frozen(model) and np.isin(own, codes).all():
            columns.append(own.astype(np.intp))
        elif np.isin(own, outer).all():
            columns.append(np.searchsorted(outer, own))
        else:
            raise UnsupportedModelError(
                f"Member {name} of {name_of(ensemble)} must know classes of {name_of(ensemble)} "
                f"alone, {outer.tolist()}. Got {own.tolist()}; pass a list of the fitted members."
            )
    return {"classes": outer, "columns": columns}


def _is_frozen(model: Any) -> bool:
    """Tell whether a member answers in the labels of a fit before that of the ensemble."""
    return (
        _is_frozen(model[-1]) if isinstance(model, Pipeline) else isinstance(model, FrozenEstimator)
    )


def _numbered(models: Any) -> list[str]:
    return [f"{k} ({type(model).__name__})" for k, model in enumerate(models)]


def _named(ensemble: Any) -> list[str]:
    pairs = [(name, model) for name, model in ensemble.estimators if model != "drop"]
    return [f"{name!r} ({type(model).__name__})" for name, model in pairs]


class _BaggingInput:
    """Reads rows as a fitted bagging model reads them before it hands them to its members."""

    def __init__(self, ensemble: Any) -> None:
        # A shallow copy without members: it is only asked what its rows look like.
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


def _calibrated(model: CalibratedClassifierCV) -> BaseSampler:
    """Return the folds as draws, or the bootstrap where there is a single one."""
    if len(getattr(model, "calibrated_classifiers_", ())) == 1:
        return bootstrap_of(model)
    return EnsembleSampler(model)


for ensemble_class in (
    *FORESTS,
    BaggingClassifier,
    BaggingRegressor,
    VotingClassifier,
    VotingRegressor,
    dict,
):
    get_sampler.register(ensemble_class, EnsembleSampler)
get_sampler.register(CalibratedClassifierCV, _calibrated)
