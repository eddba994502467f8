"""Checks of draws against their model: the classes of the columns and the mean over draws."""

from typing import Any

import numpy as np

from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._answers import close, tolerance
from sklearn_ical.testing._demand import demand
from sklearn_ical.testing._sampler_case import SamplerCase, own_prediction

MANY_DRAWS = 2000
STANDARD_ERRORS = 6
# Models that integrate over a posterior do it by approximations of their own.
APPROXIMATION = 1e-3


def check_columns(case: SamplerCase) -> None:
    """Columns of probabilities and codes of votes follow the classes of the model."""
    draws, model = case.draws, case.model
    if draws.kind == "proba":
        sums = np.asarray(case.samples.values).sum(axis=2)
        demand(
            close(sums, np.ones_like(sums), 1e-5),
            f"Expected probabilities of sum 1. Got sums from {sums.min()} to {sums.max()}. A class "
            "without a column leaves its share to nobody.",
        )
    classes = getattr(model, "classes_", None)
    if draws.kind == "value" or classes is None:
        return
    classes = np.asarray(classes)
    own = np.asarray([] if draws.classes is None else draws.classes)
    equal = own.shape == classes.shape and bool((own == classes).all())
    refit = bool(getattr(draws, "mean_differs", ""))
    demand(
        equal or (refit and bool(np.isin(classes, own).all())),
        f"Expected the classes of the model, {classes.tolist()}, in its order"
        f"{' or among others' if refit else ''}. Got {own.tolist()}. Column c must mean the same "
        "in the draws as in predict_proba.",
    )


def check_mean(case: SamplerCase) -> None:
    """The mean over draws is the model's own prediction, unless the draws give a reason."""
    reason = getattr(case.draws, "mean_differs", "")
    if reason:
        demand(
            bool(reason.strip()),
            f"Expected a reason in mean_differs. Got {reason!r}. Users ask why the mean differs.",
        )
        return
    own = None if case.model is None else own_prediction(case.model, case.X)
    if own is None:
        return
    exact = case.finite
    samples = case.samples if exact else case.sampler.draw(MANY_DRAWS, random_state=0)(case.X)
    mean = np.asarray(samples.mean())
    error = np.zeros_like(mean) if exact else _standard_errors(samples, mean)
    slack = STANDARD_ERRORS * error + (0 if exact or samples.kind == "value" else APPROXIMATION)
    if samples.kind != "value" and not hasattr(case.model, "predict_proba"):
        _demand_top_label(mean, slack, own, samples.classes)
        return
    own = own.reshape(mean.shape) if own.size == mean.size else own
    demand(
        own.shape == mean.shape,
        f"Expected a mean over draws of shape {own.shape}, as the model predicts. Got "
        f"{mean.shape}.",
    )
    rounding = tolerance(samples.values, own) * max(1.0, float(np.abs(own).max()))
    miss = np.abs(mean - own) - slack - rounding
    worst = np.unravel_index(np.argmax(miss), miss.shape)
    within = "" if exact else f" within {slack[worst]:.3g}, by {MANY_DRAWS} draws,"
    demand(
        bool((miss <= 0).all()),
        f"Expected the model's own prediction {own[worst]!r}{within} as the mean over draws of row "
        f"{int(worst[0])}. Got {mean[worst]!r}. Draws that are not of this model need a reason in "
        "mean_differs.",
    )


def _standard_errors(samples: PredictionSamples, mean: np.ndarray) -> np.ndarray:
    """Return standard errors of the mean over independent draws, of the shape of the mean."""
    weights = np.full(samples.n_draws, 1 / samples.n_draws)
    if samples.weights is not None:
        weights = np.asarray(samples.weights)
    if samples.kind == "label":
        variance = mean * (1 - mean)
    else:
        deviations = np.asarray(samples.values) - mean[:, None]
        variance = np.einsum("nk...,k->n...", deviations**2, weights)
    return np.sqrt(variance * (weights**2).sum())


def _demand_top_label(mean: np.ndarray, slack: np.ndarray, own: np.ndarray, classes: Any) -> None:
    """Demand that the class of most votes is what the model predicts, where it is clear of ties."""
    labels = np.arange(mean.shape[1]) if classes is None else np.asarray(classes)
    second, first = np.sort(np.pad(mean, ((0, 0), (1, 0))), axis=1)[:, -2:].T
    clear = first - second > 1e-9 + 2 * slack.max(axis=1)
    top = labels[mean.argmax(axis=1)]
    wrong = np.flatnonzero(clear & (top != own))
    demand(
        not len(wrong),
        f"Expected most votes for what the model predicts, {own[wrong[:1]]}, in row {wrong[:1]}. "
        f"Got {top[wrong[:1]]} with shares {mean[wrong[:1]]}. Draws that are not of this model "
        "need a reason in mean_differs.",
    )
