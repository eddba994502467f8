"""Samplers turn fitted models into posterior draws; `get_sampler` finds the one for a model."""

from sklearn_ical.samplers import _at_hand  # noqa: F401, it registers
from sklearn_ical.samplers._base import (
    BaseSampler,
    Draws,
    evaluate_in_chunks,
    evaluate_together,
    prepare,
    with_labeled,
)
from sklearn_ical.samplers._bayesian_linear import BayesianLinearSampler
from sklearn_ical.samplers._bootstrap import BootstrapSampler
from sklearn_ical.samplers._containers import net_mean
from sklearn_ical.samplers._deep_ensemble import DeepEnsembleSampler
from sklearn_ical.samplers._ensemble import EnsembleSampler
from sklearn_ical.samplers._gaussian_process import GaussianProcessSampler
from sklearn_ical.samplers._mc_dropout import MCDropoutSampler
from sklearn_ical.samplers._models import net_in, seeded_training, untouched
from sklearn_ical.samplers._registry import get_sampler

__all__ = [
    "BaseSampler",
    "BayesianLinearSampler",
    "BootstrapSampler",
    "DeepEnsembleSampler",
    "Draws",
    "EnsembleSampler",
    "GaussianProcessSampler",
    "MCDropoutSampler",
    "evaluate_in_chunks",
    "evaluate_together",
    "get_sampler",
    "net_in",
    "net_mean",
    "prepare",
    "seeded_training",
    "untouched",
    "with_labeled",
]
