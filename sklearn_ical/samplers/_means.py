"""The mean that a model itself predicts, in the form of draws; no posterior is sampled here."""

import inspect
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from sklearn_ical.samplers._base import Draws, get_mean
from sklearn_ical.samplers._containers import noise_of_all_targets
from sklearn_ical.samplers._models import (
    is_fitted,
    name_of,
    net_in,
    not_fitted,
    preserving_state,
)
from sklearn_ical.samplers._net_samplers import DeepEnsembleSampler
from sklearn_ical.samplers._pipelines import steps_before_last
from sklearn_ical.samplers._probabilities import proba_samples, read_proba
from sklearn_ical.samplers._wrappers import TransformedDraws
from sklearn_ical.samples import PredictionSamples


class ClassifierMean:
    """A classifier's own `predict_proba`, as one draw."""

    n_draws = 1
    kind = "proba"
    weights = None
    joint = False

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classes: Any = getattr(model, "classes_", None)

    def __call__(self, X: Any) -> PredictionSamples:
        owner = f"predict_proba of {name_of(self.model)}"
        with preserving_state(self.model):
            answer = self.model.predict_proba(X)
        proba, classes = read_proba(answer, self.classes, owner)
        # A net may have more outputs than there were labels.
        known = net_in(self.model) is None or len(classes) == proba.shape[1]
        return proba_samples(proba, classes if known else None, owner)


class RegressorMean:
    """A regressor's own mean, as one draw whose noise variance is the square of its `std`."""

    n_draws = 1
    kind = "value"
    classes = None
    weights = None
    joint = False

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, X: Any) -> PredictionSamples:
        mean, std = (np.asarray(output) for output in self.model.predict(X, return_std=True))
        if mean.ndim == 2 and mean.shape[1] == 1:  # one target in a column
            mean, std = mean[:, 0], std.reshape(len(mean))
        noise = noise_of_all_targets(np.square(std)[:, None])
        return PredictionSamples(mean[:, None], "value", noise_variance=noise)


def model_mean(model: Any) -> Draws | None:
    """Return the mean that a model predicts by a method of its own, or None."""
    if callable(getattr(model, "predict_proba", None)):
        return ClassifierMean(model)
    predict = getattr(model, "predict", None)
    if callable(predict) and "return_std" in inspect.signature(predict).parameters:
        if not is_fitted(model):
            raise not_fitted(model)
        return RegressorMean(model)
    return None


def net_mean(net: Any) -> Draws | None:
    """Return the class probabilities of a net without dropout, or None for a net of values."""
    method = getattr(type(net), "predict_proba", None)
    if method is not None and method.__module__.partition(".")[0] != "skorch":
        return ClassifierMean(net)
    draws = DeepEnsembleSampler([net]).draw()
    return draws if draws.kind == "proba" else None


def wrapper_mean(wrapper: Any, model: Any, before: Any = None) -> Draws | None:
    """Return the mean of a model inside another, on rows transformed by the steps `before`.

    A wrapper around a classifier predicts it itself.
    """
    mean = get_mean(model)
    if isinstance(mean, ClassifierMean):
        return model_mean(wrapper)
    return mean if before is None or mean is None else TransformedDraws(before, mean)


def pipeline_mean(pipeline: Pipeline) -> Draws | None:
    """Return the mean of the last step of a Pipeline."""
    before = steps_before_last(pipeline) if len(pipeline) > 1 else None
    return wrapper_mean(pipeline, pipeline.steps[-1][1], before)
