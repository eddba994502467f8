"""Models inside others: pipelines, transformed targets, thresholds, frozen models."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline

from sklearn_ical import _array
from sklearn_ical._typing import Integer, Seed
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import Draws, get_sampler, with_labeled
from sklearn_ical.samplers._bootstrap import BootstrapSampler
from sklearn_ical.samplers._models import (
    labeled_rows_of,
    members_of_committee,
    model_inside,
    not_fitted,
)
from sklearn_ical.samplers._net_samplers import NetSampler
from sklearn_ical.samplers._pipelines import steps_before_last
from sklearn_ical.samplers._wrappers import DrawsAround, SamplerAround, TransformedDraws
from sklearn_ical.samples import PredictionSamples


class PipelineSampler(SamplerAround):
    """Samples the last step of a fitted Pipeline on rows that the other steps transform once."""

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix draws of the last step; see :class:`BaseSampler`."""
        inner = self.inner.draw(n_draws, random_state)
        if len(self.outer) == 1:
            return inner
        return TransformedDraws(steps_before_last(self.outer), inner)

    def with_labeled(
        self, X_labeled: Any, y_labeled: Any, fit_params: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the bootstrap of the last step if it has no draws of its own."""
        if X_labeled is None or not isinstance(self.inner, NetSampler):
            return self
        rows = steps_before_last(self.outer).transform(X_labeled)
        if self.inner.with_labeled(rows, y_labeled) is self.inner:
            return self
        sampler = _pipeline_bootstrap(self.outer, self.inner.model)
        return sampler.with_labeled(X_labeled, y_labeled, fit_params)


class TargetSampler(SamplerAround):
    """Samples the regressor of a fitted TransformedTargetRegressor, in the units of the target."""

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix draws of the regressor; see :class:`BaseSampler`."""
        return _TargetDraws(self.outer.transformer_, self.inner.draw(n_draws, random_state))

    def with_labeled(
        self, X_labeled: Any, y_labeled: Any, fit_params: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the bootstrap of the whole model if its regressor has no draws of its own."""
        if self.inner.with_labeled(X_labeled, y_labeled) is self.inner:
            return self
        return BootstrapSampler(self.outer).with_labeled(X_labeled, y_labeled, fit_params)


class _TargetDraws(DrawsAround):
    """Draws of a regressor, transformed back one by one."""

    def __init__(self, transformer: Any, inner: Draws) -> None:
        super().__init__(inner)
        self.transformer = transformer
        self.mean_differs = "targets are transformed back draw by draw"

    def _answer(self, samples: PredictionSamples) -> PredictionSamples:
        """Return samples in the units of the target."""
        values = _array.to_host(samples.values)
        noise = samples.noise_variance
        back = self._invert(values)
        if noise is not None:
            # The mean effect of one standard deviation up and down on a prediction: exact where the
            # transformation is linear. One of them may lie outside of its domain.
            spread = np.sqrt(np.broadcast_to(_by_point(noise, values), values.shape))
            up = self._invert(values + spread) - back
            down = back - self._invert(values - spread)
            up, down = np.where(np.isfinite(up), up, down), np.where(np.isfinite(down), down, up)
            noise = noise_of_all_targets(((up + down) / 2) ** 2)
        try:
            return PredictionSamples(back, "value", weights=self.weights, noise_variance=noise)
        except ValueError as err:
            raise ValueError(
                "Draws of the regressor in TransformedTargetRegressor must lie where its targets "
                f"can be transformed back. {err} Or pass BootstrapSampler(model), whose refits "
                "draw from the whole model."
            ) from err

    def _invert(self, values: np.ndarray) -> np.ndarray:
        """Return transformed-back values (n_points, n_draws[, n_targets])."""
        n_points, n_draws = values.shape[:2]
        flat = values.reshape(n_points * n_draws, -1)
        with np.errstate(all="ignore"):  # values that are not finite raise later
            back = np.asarray(self.transformer.inverse_transform(flat), dtype=np.float64)
        back = back.reshape(n_points, n_draws, -1)
        return back[:, :, 0] if back.shape[2] == 1 else back


def noise_of_all_targets(noise: np.ndarray) -> np.ndarray | None:
    """Return noise variances (n_points, n_draws), or None where they differ between targets.

    `noise` has shape (n_points, n_draws[, n_targets]).
    """
    if noise.ndim == 2:
        return noise
    shared = noise[:, :, :1]
    return shared[:, :, 0] if np.allclose(noise, shared, rtol=1e-9, atol=0) else None


def _by_point(noise: Any, values: np.ndarray) -> np.ndarray:
    """Return noise variances with as many axes as `values`."""
    noise = np.asarray(noise)
    if noise.ndim == 0:
        return noise
    return noise.reshape(noise.shape + (1,) * (values.ndim - noise.ndim))


def pipeline_sampler(pipeline: Pipeline) -> Any:
    """Return the sampler of the last step after the others, or its bootstrap there."""
    last = pipeline.steps[-1][1] if pipeline.steps else None
    if last is None or last == "passthrough":
        raise UnsupportedModelError(
            f"Pipeline must end in a fitted model to draw from. Got {last!r} as its last step."
        )
    inner = get_sampler(last)
    if not isinstance(inner, BootstrapSampler):
        return PipelineSampler(pipeline, inner)
    return _pipeline_bootstrap(pipeline, inner.estimator)


def _pipeline_bootstrap(pipeline: Pipeline, last: Any) -> BootstrapSampler:
    """Return the bootstrap of a Pipeline with the part of its last step that can be refitted."""
    model = copy.copy(pipeline)
    model.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], last)]
    return BootstrapSampler(model)


def target_sampler(model: TransformedTargetRegressor) -> Any:
    if not hasattr(model, "regressor_"):
        raise not_fitted(model)
    inner = get_sampler(model.regressor_)
    if isinstance(inner, BootstrapSampler):
        return BootstrapSampler(model)
    return TargetSampler(model, inner)


def frozen_sampler(model: FrozenEstimator) -> Any:
    return get_sampler(model.estimator)


def learner_sampler(learner: Any) -> Any:
    """Return the sampler inside a learner or committee in the form of modAL."""
    if hasattr(learner, "learner_list"):
        return get_sampler(members_of_committee(learner))
    return with_labeled(get_sampler(model_inside(learner)), *labeled_rows_of(learner))


def decider_sampler(model: Any) -> Any:
    """Return the sampler of the model inside one that only thresholds its predictions."""
    if hasattr(model, "estimator_"):
        return get_sampler(model.estimator_)
    if isinstance(model, FixedThresholdClassifier):  # which may also wrap a fitted model
        return get_sampler(model.estimator)
    raise not_fitted(model)
