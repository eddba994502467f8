"""`get_sampler`: from a fitted model of whatever kind to its sampler, or to one clear refusal.

What a family of models draws from is registered by the other files of this package.
"""

from functools import singledispatch
from importlib import import_module
from typing import Any

from sklearn_ical import _array
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import with_labeled
from sklearn_ical.samplers._bootstrap import BootstrapSampler, check_refittable
from sklearn_ical.samplers._models import (
    chosen_by,
    estimator_type,
    is_fitted,
    is_search,
    name_of,
    not_fitted,
)
from sklearn_ical.samples import PredictionSamples

# Files that know the models of a package; loaded for objects of that package only.
BY_PACKAGE = {
    "catboost": "sklearn_ical.samplers._boosting",
    "skactiveml": "sklearn_ical.samplers._skactiveml",
    "skorch": "sklearn_ical.samplers._torch._nets",
    "torch": "sklearn_ical.samplers._torch._nets",
    "xgboost": "sklearn_ical.samplers._boosting",
}
REFUSED: dict[str | None, str] = {
    "outlier_detector": "tells outliers from the rest",
    "clusterer": "groups rows",
    "density_estimator": "estimates a density",
}


@singledispatch
def get_sampler(model: Any) -> Any:
    """Return a sampler of posterior draws for a fitted model.

    Parameters
    ----------
    model : object
        A fitted classifier or regressor, a list or dict of such, a Pipeline, search object or
        learner around one, an array of samples in the NKC layout or
        :class:`~sklearn_ical.PredictionSamples`, or any object with its own ``draw``.

    Returns
    -------
    sampler : object
        With ``draw(n_draws=None, random_state=None)``; it returns immutable draws that give
        :class:`~sklearn_ical.PredictionSamples` when called on rows. For a model that has no
        draws of its own, a :class:`BootstrapSampler` around it, which still needs labeled rows.

    Raises
    ------
    UnsupportedModelError
        A TypeError: this kind of model gives no predictions that a strategy could use.
    NotFittedError
        If the model is known but not fitted.

    Notes
    -----
    A :func:`functools.singledispatch`: teach it a model class of your own with
    ``get_sampler.register(MyModel)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical.samplers import get_sampler
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> get_sampler(forest).sample(X).values.shape
    (150, 20, 3)
    """
    if isinstance(model, type):
        name = name_of(model)
        raise UnsupportedModelError(
            f"model must be a fitted model, not a class. Got the class {name}; pass "
            f"{name}(...).fit(X, y)."
        )
    if callable(getattr(model, "draw", None)):
        return model
    if _array.is_array(model):
        return get_sampler(PredictionSamples(model))
    if is_search(model):
        return get_sampler(chosen_by(model))
    if hasattr(model, "learner_list") or hasattr(model, "teach"):
        return _of_learner(model)
    return _of_package(model) or bootstrap_of(model)


def bootstrap_of(model: Any) -> BootstrapSampler:
    """Return the bootstrap of a fitted classifier or regressor, or say why there is none."""
    name, kind, fits = name_of(model), estimator_type(model), hasattr(model, "fit")
    aimless = fits and kind is None and not hasattr(model, "predict")
    if aimless or kind in REFUSED:
        does = REFUSED.get(
            kind, "transforms rows" if hasattr(model, "transform") else "can be fitted"
        )
        raise UnsupportedModelError(
            f"{name} {does} and predicts no target, so it gives no prediction samples. Pass a "
            "fitted classifier or regressor."
        )
    if not fits:
        raise UnsupportedModelError(
            f"No prediction sampler is registered for {name}. Pass a fitted classifier or "
            "regressor, a list or dict of them, a Pipeline or search around one, an object with a "
            "draw method, PredictionSamples or an (n_points, n_draws, n_classes) array of "
            "probabilities; or register one with "
            f"sklearn_ical.samplers.get_sampler.register({name})."
        )
    check_refittable(model)
    if not is_fitted(model):
        raise not_fitted(model)
    return BootstrapSampler(model)


def _of_learner(learner: Any) -> Any:
    """Return the sampler inside a learner or committee in the form of modAL."""
    if hasattr(learner, "learner_list"):
        return get_sampler([member.estimator for member in learner.learner_list])
    sampler = get_sampler(getattr(learner, "estimator_", learner.estimator))
    X, y = getattr(learner, "X_training", None), getattr(learner, "y_training", None)
    return sampler if X is None or y is None else with_labeled(sampler, X, y)


def _of_package(model: Any) -> Any:
    """Return the sampler that the file for the model's package has for it, or None."""
    for cls in type(model).__mro__:
        module = BY_PACKAGE.get(cls.__module__.partition(".")[0])
        if module is not None:
            return import_module(module).find_sampler(model)
    return None
