"""Properties of a model of any kind: name, type, outputs, whether it is fitted."""

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from inspect import getattr_static
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_ical.exceptions import UnsupportedModelError


def name_of(model: Any) -> str:
    """Return the class name of a model, of a class itself, or of a pipeline and its last step."""
    if isinstance(model, type):
        return model.__name__
    name = type(model).__name__
    if isinstance(model, Pipeline) and model.steps:
        return f"{name}(..., {name_of(model.steps[-1][1])})"
    return name


def estimator_type(model: Any) -> str | None:
    """Return "classifier", "regressor", "clusterer" and so on, or None if unknown."""
    sort = getattr(model, "_estimator_type", None)
    if hasattr(model, "__sklearn_tags__"):
        try:
            sort = get_tags(model).estimator_type
        except (AttributeError, TypeError, ValueError):  # for a class, or a half-built model
            pass
    if sort is None and (hasattr(model, "predict_proba") or hasattr(model, "classes_")):
        return "classifier"
    return sort


def classes_of(model: Any) -> Any:
    """Return the classes of a fitted classifier, or None; AutoGluon calls them class_labels."""
    return getattr(model, "classes_", getattr(model, "class_labels", None))


def is_fitted(model: Any) -> bool:
    """Return whether a model was fitted; True also if that is unknown.

    A Pipeline is if its last step is, a frozen model if the one inside is. A model that knows its
    classes may have nothing to fit.
    """
    if isinstance(model, Pipeline) and model.steps:
        return is_fitted(model.steps[-1][1])
    if isinstance(model, FrozenEstimator):
        return is_fitted(model.estimator)
    if callable(getattr(model, "is_fitted", None)):
        return bool(model.is_fitted())
    if not isinstance(model, BaseEstimator) or not hasattr(model, "fit"):
        return True
    try:
        check_is_fitted(model)
    except NotFittedError:
        return not hasattr(model, "__sklearn_is_fitted__") and hasattr(model, "classes_")
    except AttributeError:  # around a model that is not a scikit-learn estimator
        return True
    return True


def not_fitted(model: Any) -> NotFittedError:
    """Return the error for a model, or a name of one, that was never fitted."""
    name = model if isinstance(model, str) else name_of(model)
    return NotFittedError(f"{name} is not fitted yet. Call fit on the labeled data before query.")


def frozen_copy(model: Any) -> Any:
    """Return a shallow copy of an estimator that a later fit does not change, nor its steps."""
    if not isinstance(model, BaseEstimator):
        return model
    copied = copy.copy(model)
    # Estimators that fit the models inside in place.
    for holder, name in ((Pipeline, "steps"), (FeatureUnion, "transformer_list")):
        if isinstance(model, holder):
            setattr(copied, name, [(key, frozen_copy(step)) for key, step in getattr(model, name)])
    return copied


def rows_for(model: Any, X: Any) -> Any:
    """Return rows that a model, or a list of steps, may overwrite: a copy if one works in place."""
    steps = model if isinstance(model, list) else [model]
    return X.copy() if hasattr(X, "copy") and any(map(_works_in_place, steps)) else X


def _works_in_place(model: Any) -> bool:
    """Return whether a transformer in a model has a parameter such as ``copy=False``."""
    try:
        params = model.get_params(deep=True)
    except (AttributeError, TypeError):  # of a class, or of no estimator of scikit-learn
        return False
    return any(k.rpartition("__")[2] == "copy" and value is False for k, value in params.items())


def is_search(model: Any) -> bool:
    """Return whether a model is a search for parameters, fitted or not."""
    if isinstance(model, TunedThresholdClassifierCV):  # which keeps the model given to it
        return False
    # By __dict__: some wrappers delegate attributes to the model inside.
    attributes = getattr(model, "__dict__", {})
    return "best_estimator_" in attributes or {"estimator", "refit", "scoring"} <= attributes.keys()


def is_learner(model: Any) -> bool:
    """Return whether a model is a learner or a committee, of this package or as in modAL."""
    return hasattr(model, "learner_list") or hasattr(model, "teach")


def model_inside(model: Any) -> Any:
    """Return the model chosen by a search, or inside a frozen model or a learner; else None.

    A committee holds several models.
    """
    if is_search(model):
        return chosen_by(model)
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if is_learner(model) and not hasattr(model, "learner_list"):
        return getattr(model, "estimator_", model.estimator)
    return None


def members_of_committee(committee: Any) -> list[Any]:
    """Return the models of the learners of a committee."""
    return [model_inside(learner) for learner in committee.learner_list]


def labeled_rows_of(model: Any) -> tuple[Any, Any]:
    """Return the labeled rows of a learner, or of the first one of a committee, and their labels.

    None for both if the model is no learner, whose attributes are not used then, or has no labeled
    rows yet.
    """
    if not any(getattr_static(model, name, None) for name in ("learner_list", "teach")):
        return None, None
    learner = model.learner_list[0] if hasattr(model, "learner_list") else model
    for names in (("X_labeled_", "y_labeled_"), ("X_training", "y_training")):
        X, y = (getattr(learner, name, None) for name in names)
        if X is not None and y is not None:
            return X, y
    return None, None


def chosen_by(search: Any) -> Any:
    """Return the fitted model that a search chose."""
    if hasattr(search, "best_estimator_"):
        return search.best_estimator_
    if search.refit:
        raise not_fitted(search)
    raise UnsupportedModelError(
        f"{name_of(search)} has refit=False and so keeps no fitted model. Set refit=True, or pass "
        "a model that you fitted with the chosen parameters."
    )


def refittable(model: Any) -> Any:
    """Return the model to refit: that inside a search, a frozen model or a learner."""
    while (inside := model_inside(model)) is not None:
        model = inside
    return model


def check_single_output(model: Any, name: str | None = None) -> None:
    """Raise if a classifier has several outputs, as draws have a single class axis."""
    n_outputs = _n_class_outputs(model)
    if n_outputs is not None:
        outputs = "1 class output, in a column" if n_outputs == 1 else f"{n_outputs} class outputs"
        raise UnsupportedModelError(
            f"{name or name_of(model)} was fitted on {outputs}; draws need one, "
            "(n_points, n_draws, n_classes). Fit one model per output, with y of shape "
            "(n_samples,)."
        )


def _n_class_outputs(model: Any) -> int | None:
    """Return the number of class outputs of a model that has several, or a list of one."""
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list) and classes and np.ndim(classes[0]):
        return len(classes)
    # One output per label: of one model per label, or of a network of one logistic unit per label.
    if getattr(model, "multilabel_", False):
        return len(classes)  # type: ignore[arg-type]
    n_units = getattr(model, "n_outputs_", 1)
    return n_units if getattr(model, "out_activation_", "") == "logistic" and n_units > 1 else None


def torch_file(name: str, caller: str) -> Any:
    """Return a file of this package that needs torch; raise if torch is not installed."""
    try:
        return import_module(f"sklearn_ical.samplers._torch.{name}")
    except ImportError as err:
        if (err.name or "").partition(".")[0] != "torch":
            raise
        raise ImportError(
            f'{caller} requires torch. Install it with "pip install sklearn-ical[torch]".'
        ) from err


def is_net(model: Any) -> bool:
    """Return whether a model is a torch module or a skorch net, without loading either package."""
    packages = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    module = "torch" in packages and hasattr(model, "named_parameters")
    return module or ("skorch" in packages and hasattr(model, "evaluation_step"))


def net_in(model: Any) -> Any:
    """Return the net that a model is or ends in, behind pipelines and searches.

    Parameters
    ----------
    model : object
        Of any kind. Neither torch nor skorch is loaded.

    Returns
    -------
    net : skorch net, torch.nn.Module or None
        None if the model does not use torch.
    """
    while not is_net(model):
        if isinstance(model, Pipeline) and model.steps:
            model = model.steps[-1][1]
        elif is_search(model) or isinstance(model, FrozenEstimator):
            model = getattr(model, "best_estimator_", model.estimator)
        elif hasattr(model, "calibrators"):  # one fold of a calibrated classifier
            model = model.estimator
        else:
            return None
    return model


def keeps_columns(model: Any) -> bool:
    """Return whether targets in one column, (n_rows, 1), mean something else to a model than 1-d.

    They do to nets for regression, whose outputs have the same shape, and to models that have
    several outputs only; for others they are raveled.
    """
    if _holds_net(model):  # also behind a transformation of the target
        return estimator_type(model) == "regressor"
    try:
        return not get_tags(model).target_tags.single_output
    except (AttributeError, TypeError, ValueError):  # of models that have no tags
        return False


def _holds_net(model: Any) -> bool:
    """Return whether there is a net anywhere in a model."""
    if "torch" not in sys.modules or isinstance(model, type):
        return False
    try:
        params = model.get_params(deep=True) if hasattr(model, "get_params") else {}
    except AttributeError:  # for an estimator that does not keep its parameters
        params = {}
    return net_in(model) is not None or any(is_net(value) for value in params.values())


def reads_arrays_only(model: Any) -> bool:
    """Return whether a model cannot read a Dataset of torch: one of scikit-learn, or none."""
    if isinstance(model, list | tuple):
        return all(map(reads_arrays_only, model))
    while (inside := model_inside(model)) is not None:
        model = inside
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
        return reads_arrays_only(steps[0]) if steps else True
    package = type(model).__module__.partition(".")[0]
    return model is None or (package == "sklearn" and not _holds_net(model))


@contextmanager
def preserving_state(model: Any) -> Iterator[None]:
    """Restore the state that predictions of a net change: its modes and the global generators.

    Modes are those of a net that the model ends in. Ignored for models without nets.

    Parameters
    ----------
    model : object
        Of any kind.

    Returns
    -------
    around : context manager
    """
    around, net = nullcontext(), net_in(model)
    if net is not None:
        around = torch_file("_traces", "A net").preserving_net(net)
    elif _holds_net(model):
        around = torch_file("_traces", "A net").same_generators()
    with around:
        yield


@contextmanager
def seeded_training(model: Any, seed: int) -> Iterator[None]:
    """Seed the training of a model with nets, which take no `random_state`.

    Nets are trained by the global generators of torch, numpy and Python, which are restored at
    the end. Ignored for models without nets.

    Parameters
    ----------
    model : object
        Of any kind, not yet fitted.
    seed : int
        At least 0 and below 2**32.

    Returns
    -------
    around : context manager
    """
    around = nullcontext()
    if _holds_net(model):
        around = torch_file("_traces", "A net").seeded_generators(seed)
    with around:
        yield
