"""Checks of draws against their model: classes of the columns, mean over draws, and variance."""

from inspect import signature
from typing import Any

import numpy as np
import sklearn
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import ARDRegression, BayesianRidge

from sklearn_ical.dependence import predictive_variance
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._answers import close, tolerance
from sklearn_ical.testing._require import require
from sklearn_ical.testing._sampler_case import MANY_DRAWS, SamplerCase, own_prediction

STANDARD_ERRORS = 6
# Models that integrate over a posterior do it by approximations of their own.
APPROXIMATION = 1e-3
# Other columns that are closer by less, in ratio and difference, may be so by chance of few draws.
COLUMN_RATIO = 1.5
COLUMN_DIFFERENCE = 0.1
VARIANCE_RATIO = 0.2
# Before 1.9, Bayesian linear models with an intercept predict the variance of rows not centered.
CENTERED = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 9)


def check_columns(case: SamplerCase) -> None:
    """Check that columns of probabilities and codes of votes follow the classes of the model."""
    draws, model = case.draws, case.model
    if draws.kind == "proba":
        sums = np.asarray(case.samples.values).sum(axis=2)
        require(
            close(sums, np.ones_like(sums), 1e-5),
            f"Expected probabilities of sum 1. Got sums from {sums.min()} to {sums.max()}. A class "
            "without a column loses its share.",
        )
    classes = getattr(model, "classes_", None)
    if draws.kind == "value" or classes is None:
        return
    classes = np.asarray(classes)
    own = np.asarray([] if draws.classes is None else draws.classes)
    refit = bool(getattr(draws, "mean_differs", ""))
    known = own[np.isin(own, classes)] if refit else own
    require(
        known.shape == classes.shape and bool((known == classes).all()),
        f"Expected the classes of the model, {classes.tolist()}, in its order"
        f"{' or among others' if refit else ''}. Got {own.tolist()}. Column c must mean the same "
        "in the draws as in predict_proba.",
    )


def check_column_order(case: SamplerCase) -> None:
    """Check that the mean over draws fits the model best with its columns as they are."""
    model, draws = case.model, case.draws
    if draws.kind == "value" or not callable(getattr(model, "predict_proba", None)):
        return
    own, mean = np.asarray(model.predict_proba(case.X)), np.asarray(case.samples.mean())
    classes = getattr(model, "classes_", None)
    names = np.arange(mean.shape[1]) if classes is None else np.asarray(classes)
    if classes is not None:
        mean = mean[:, np.isin(draws.classes, names)]  # without classes that only draws have
    if own.shape != mean.shape:
        return  # a matter of the mean
    distances = np.abs(mean[:, :, None] - own[:, None, :]).mean(axis=0)  # (n_classes, n_classes)
    columns, best = linear_sum_assignment(distances)
    moved = columns[columns != best]  # columns that stay would only hide the others
    given, least = distances[moved, moved].sum(), distances[moved, best[moved]].sum()
    require(
        given <= COLUMN_RATIO * least + COLUMN_DIFFERENCE,
        f"Expected the columns of {names[moved].tolist()} to fit those of the model. Got a mean "
        f"distance of {given:.3g} in total, but {least:.3g} to the columns of "
        f"{names[best[moved]].tolist()}. Column c must mean the same in the draws as in "
        "predict_proba.",
    )


def check_mean(case: SamplerCase) -> None:
    """Check that the mean over draws is the model's own prediction, or the draws have a reason."""
    reason = getattr(case.draws, "mean_differs", "")
    if reason:
        require(
            bool(reason.strip()),
            f"Expected a reason in mean_differs. Got {reason!r}. Users need to know why the mean "
            "differs.",
        )
        return
    own = None if case.model is None else own_prediction(case.model, case.X)
    if own is None:
        return
    exact, samples = case.finite, case.many_samples
    mean = np.asarray(samples.mean())
    error = np.zeros_like(mean) if exact else _standard_errors(samples, mean)
    slack = STANDARD_ERRORS * error + (0 if exact or samples.kind == "value" else APPROXIMATION)
    if samples.kind != "value" and not hasattr(case.model, "predict_proba"):
        _require_top_label(mean, slack, own, samples.classes)
        return
    own = own.reshape(mean.shape) if own.size == mean.size else own
    require(
        own.shape == mean.shape,
        f"Expected a mean over draws of shape {own.shape}, as the model predicts. Got "
        f"{mean.shape}.",
    )
    rounding = tolerance(samples.values, own) * max(1.0, float(np.abs(own).max()))
    miss = np.abs(mean - own) - slack - rounding
    worst = np.unravel_index(np.argmax(miss), miss.shape)
    within = "" if exact else f" within {slack[worst]:.3g}, by {MANY_DRAWS} draws,"
    require(
        bool((miss <= 0).all()),
        f"Expected the model's own prediction {own[worst]!r}{within} as the mean over draws of row "
        f"{int(worst[0])}. Got {mean[worst]!r}. Draws that are not of this model need a reason in "
        "mean_differs.",
    )


def check_noise(case: SamplerCase) -> None:
    """Check that variance over draws plus noise is the squared deviation of the model."""
    differs = bool(getattr(case.draws, "mean_differs", ""))
    if case.samples.noise_variance is None or differs or not _predicts_variance(case.model):
        return
    samples = case.many_samples
    variance = predictive_variance(
        samples.values, weights=samples.weights, noise_variance=samples.noise_variance
    )
    got = float(np.asarray(variance).mean())
    deviation = np.asarray(case.model.predict(case.X, return_std=True)[1])
    own = float((deviation**2).reshape(case.n_points, -1).sum(axis=1).mean())
    require(
        abs(got - own) <= VARIANCE_RATIO * own,
        f"Expected the variance {own:.3g} that the model predicts, by return_std=True, as the mean "
        f"over rows. Got {got:.3g} from draws and noise. Strategies compare the disagreement of "
        "draws with noise that no label reduces.",
    )


def _predicts_variance(model: Any) -> bool:
    """Return whether `predict` takes `return_std`, and gives that of the posterior."""
    if isinstance(model, BayesianRidge | ARDRegression):
        return CENTERED or not model.fit_intercept
    predict = getattr(model, "predict", None)
    return callable(predict) and "return_std" in signature(predict).parameters


def _standard_errors(samples: PredictionSamples, mean: np.ndarray) -> np.ndarray:
    """Return standard errors of the mean over independent draws, of the shape of the mean."""
    if samples.kind == "label":
        variance = mean * (1 - mean)
    else:
        deviations = np.asarray(samples.values) - mean[:, None]
        variance = np.einsum("nk...,k->n...", deviations**2, _weights(samples))
    return np.sqrt(variance * (_weights(samples) ** 2).sum())


def _weights(samples: PredictionSamples) -> np.ndarray:
    """Return the weights of all draws, (n_draws,), equal ones too."""
    if samples.weights is None:
        return np.full(samples.n_draws, 1 / samples.n_draws)
    return np.asarray(samples.weights)


def _require_top_label(mean: np.ndarray, slack: np.ndarray, own: np.ndarray, classes: Any) -> None:
    """Raise if the class of most votes is not the model's prediction, unless there is a tie."""
    labels = np.arange(mean.shape[1]) if classes is None else np.asarray(classes)
    second, first = np.sort(np.pad(mean, ((0, 0), (1, 0))), axis=1)[:, -2:].T
    clear = first - second > 1e-9 + 2 * slack.max(axis=1)
    top = labels[mean.argmax(axis=1)]
    wrong = np.flatnonzero(clear & (top != own))
    require(
        not len(wrong),
        f"Expected most votes for the model's prediction, {own[wrong[:1]]}, in row {wrong[:1]}. "
        f"Got {top[wrong[:1]]} with shares {mean[wrong[:1]]}. Draws that are not of this model "
        "need a reason in mean_differs.",
    )
