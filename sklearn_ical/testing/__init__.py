"""Checks of the public contract, for strategies and samplers of this package and of others."""

from sklearn_ical.testing._sampler import check_sampler
from sklearn_ical.testing._strategy import check_strategy

__all__ = ["check_sampler", "check_strategy"]
