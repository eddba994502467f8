"""Checks of the public contract, for the strategies of this package and for those of others."""

from sklearn_ical.testing._strategy import check_strategy

__all__ = ["check_strategy"]
