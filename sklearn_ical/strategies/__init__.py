"""Query strategies: estimators that choose positions in a pool."""

from sklearn_ical.strategies._base import BaseQuery, PointwiseQuery, QueryTags
from sklearn_ical.strategies._batch_bald import BatchBALDQuery, batch_bald
from sklearn_ical.strategies._bayesian_coreset import (
    BayesianCoresetQuery,
    bayesian_coreset,
    log_likelihood_vectors,
)
from sklearn_ical.strategies._core_set import CoreSetQuery, FarthestFirstQuery
from sklearn_ical.strategies._epig import EPIGQuery
from sklearn_ical.strategies._facility_location import facility_location
from sklearn_ical.strategies._fass import FASSQuery
from sklearn_ical.strategies._filtered import FilteredQuery
from sklearn_ical.strategies._ical import ICALQuery
from sklearn_ical.strategies._ical_coverage import ICALCoverageQuery
from sklearn_ical.strategies._ical_joint import ICALJointQuery
from sklearn_ical.strategies._ical_pointwise import ICALPointwiseQuery
from sklearn_ical.strategies._ical_sequential import ICALSequentialQuery
from sklearn_ical.strategies._kernel_batch import KernelBatchQuery
from sklearn_ical.strategies._logdet import LogDetQuery
from sklearn_ical.strategies._mrmr import MRMRQuery
from sklearn_ical.strategies._resolve import all_strategies
from sklearn_ical.strategies._stochastic import StochasticQuery
from sklearn_ical.strategies._typiclust import TypiClustQuery
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
    "BatchBALDQuery",
    "BayesianCoresetQuery",
    "CoreSetQuery",
    "EPIGQuery",
    "FASSQuery",
    "FarthestFirstQuery",
    "FilteredQuery",
    "ICALCoverageQuery",
    "ICALJointQuery",
    "ICALPointwiseQuery",
    "ICALQuery",
    "ICALSequentialQuery",
    "KernelBatchQuery",
    "LeastConfidentQuery",
    "LogDetQuery",
    "MRMRQuery",
    "MarginQuery",
    "MaxEntropyQuery",
    "PointwiseQuery",
    "QueryTags",
    "RandomQuery",
    "StochasticQuery",
    "TypiClustQuery",
    "all_strategies",
    "batch_bald",
    "bayesian_coreset",
    "facility_location",
    "log_likelihood_vectors",
]
