"""Samplers turn fitted models into posterior draws; `get_sampler` finds the one for a model."""

from sklearn_ical.samplers import _registrations  # noqa: F401, loaded so that it registers
from sklearn_ical.samplers._base import BaseSampler, Draws, get_sampler
from sklearn_ical.samplers._bayesian_linear import BayesianLinearSampler
from sklearn_ical.samplers._bootstrap import BootstrapSampler
from sklearn_ical.samplers._ensemble import EnsembleSampler
from sklearn_ical.samplers._gaussian_process import GaussianProcessSampler
from sklearn_ical.samplers._net_samplers import DeepEnsembleSampler, MCDropoutSampler

__all__ = [
    "BaseSampler",
    "BayesianLinearSampler",
    "BootstrapSampler",
    "DeepEnsembleSampler",
    "Draws",
    "EnsembleSampler",
    "GaussianProcessSampler",
    "MCDropoutSampler",
    "get_sampler",
]
