"""Query strategies: estimators that turn posterior prediction samples into pool positions."""

from sklearn_ical.strategies._base import BaseQuery, PointwiseQuery, QueryTags
from sklearn_ical.strategies._ical import ICALQuery
from sklearn_ical.strategies._pool import Batch, Pool, Predictions, Selection
from sklearn_ical.strategies._uncertainty import (
    BALDQuery,
    LeastConfidentQuery,
    MarginQuery,
    MaxEntropyQuery,
    RandomQuery,
)

__all__ = [
    "BALDQuery",
    "BaseQuery",
    "Batch",
    "ICALQuery",
    "LeastConfidentQuery",
    "MarginQuery",
    "MaxEntropyQuery",
    "PointwiseQuery",
    "Pool",
    "Predictions",
    "QueryTags",
    "RandomQuery",
    "Selection",
]
