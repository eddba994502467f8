"""The mean that a model itself predicts, in the form of draws; no posterior is sampled here."""

import inspect
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline

from sklearn_ical.samplers._base import Draws, get_mean
from sklearn_ical.samplers._models import (
    classes_of,
    is_fitted,
    name_of,
    net_in,
    not_fitted,
    preserving_state,
    rows_for,
)
from sklearn_ical.samplers._net_samplers import DeepEnsembleSampler
from sklearn_ical.samplers._pipelines import steps_before_last
from sklearn_ical.samplers._probabilities import proba_samples, read_proba
from sklearn_ical.samplers._wrappers import TransformedDraws
from sklearn_ical.samples import PredictionSamples

# Numbers at equal distances, and their weights, in place of a standard normal variable.
NODES = np.arange(-96, 97) / 8
NODE_WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()


class ClassifierMean:
    """A classifier's own `predict_proba`, as one draw."""

    n_draws = 1
    kind = "proba"
    weights = None
    joint = False

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classes: Any = classes_of(model)

    def __call__(self, X: Any) -> PredictionSamples:
        owner = f"predict_proba of {name_of(self.model)}"
        with preserving_state(self.model):
            answer = self.model.predict_proba(rows_for(self.model, X))
        proba, classes = read_proba(answer, self.classes, owner)
        # A net may have more outputs than there were labels.
        known = net_in(self.model) is None or len(classes) == proba.shape[1]
        return proba_samples(proba, classes if known else None, owner)


class RegressorMean:
    """A regressor's own mean, as one draw whose noise variance is the square of its deviation.

    Of several targets, the noise variance is their average, so that its sum over targets is right.
    """

    n_draws = 1
    kind = "value"
    classes = None
    weights = None
    joint = False

    def __init__(self, model: Any) -> None:
        self.model = model

    def moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the standard deviation of each target, (n_points, n_targets)."""
        mean, std = (np.asarray(output) for output in self.model.predict(X, return_std=True))
        mean, std = (output.reshape(len(mean), -1) for output in (mean, std))
        return mean, np.broadcast_to(std, mean.shape)

    def __call__(self, X: Any) -> PredictionSamples:
        mean, std = self.moments(X)
        values = mean if mean.shape[1] == 1 else mean[:, None, :]
        noise = np.square(std).mean(axis=1, keepdims=True)
        return PredictionSamples(values, "value", noise_variance=noise)


class TargetMean(RegressorMean):
    """The mean of a regressor whose targets are transformed back, with the deviation there.

    The variance of a transformed normal target is computed by the trapezoidal rule, which is exact
    up to rounding for smooth transformations and close for those with kinks, such as quantiles.
    """

    def __init__(self, transformer: Any, mean: Draws) -> None:
        self.transformer = transformer
        self.mean = mean

    def moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the standard deviation of each target, (n_points, n_targets)."""
        inner, std = moments_of(self.mean, X)
        mean = self._invert(inner)
        variance = np.zeros(mean.shape)
        for target in range(inner.shape[1]):
            step = np.zeros(inner.shape)
            step[:, target] = std[:, target]
            variance += self._variance(inner, step, mean)
        return mean, np.sqrt(variance)

    def _variance(self, inner: np.ndarray, step: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return the variance of the targets at `inner` plus a standard normal times `step`."""
        total, first, second = np.zeros((3, *mean.shape))
        for node, weight in zip(NODES, NODE_WEIGHTS, strict=True):
            change = self._invert(inner + node * step) - mean
            inside = np.isfinite(change)  # a transformation may not be defined everywhere
            change = np.where(inside, change, 0.0)
            total += weight * inside
            first += weight * change
            second += weight * change**2
        return np.maximum(second / total - (first / total) ** 2, 0.0)

    def _invert(self, targets: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            back = np.asarray(self.transformer.inverse_transform(targets), dtype=np.float64)
        return back.reshape(len(targets), -1)


class OutputsMean(RegressorMean):
    """The means of one regressor per target, side by side."""

    def __init__(self, means: list[Any]) -> None:
        self.means = means

    def moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the standard deviation of each target, (n_points, n_targets)."""
        means, deviations = zip(*(moments_of(mean, X) for mean in self.means), strict=True)
        return np.concatenate(means, axis=1), np.concatenate(deviations, axis=1)


def moments_of(mean: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the moments of a regressor's mean, behind the steps of Pipelines."""
    while isinstance(mean, TransformedDraws):
        X, mean = mean.transformer.transform(X), mean.inner
    return mean.moments(X)


def has_moments(mean: Draws | None) -> bool:
    """Return whether a mean is that of a regressor that states its deviation."""
    while isinstance(mean, TransformedDraws):
        mean = mean.inner
    return isinstance(mean, RegressorMean)


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


def target_mean(model: TransformedTargetRegressor) -> Draws | None:
    """Return the mean of a regressor in the units of the target."""
    if not hasattr(model, "regressor_"):
        raise not_fitted(model)
    mean = get_mean(model.regressor_)
    return TargetMean(model.transformer_, mean) if mean is not None and has_moments(mean) else None


def outputs_mean(model: MultiOutputRegressor) -> Draws | None:
    """Return the means of one regressor per target."""
    if not hasattr(model, "estimators_"):
        raise not_fitted(model)
    means = [get_mean(regressor) for regressor in model.estimators_]
    return OutputsMean(means) if all(map(has_moments, means)) else None


def pipeline_mean(pipeline: Pipeline) -> Draws | None:
    """Return the mean of the last step of a Pipeline."""
    before = steps_before_last(pipeline) if len(pipeline) > 1 else None
    return wrapper_mean(pipeline, pipeline.steps[-1][1], before)
