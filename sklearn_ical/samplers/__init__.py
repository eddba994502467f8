"""Samplers turn fitted models into posterior draws; `get_sampler` finds the one for a model."""

from sklearn_ical.samplers._base import BaseSampler, Draws, evaluate_in_chunks, get_sampler
from sklearn_ical.samplers._ensemble import EnsembleSampler

__all__ = ["BaseSampler", "Draws", "EnsembleSampler", "evaluate_in_chunks", "get_sampler"]
