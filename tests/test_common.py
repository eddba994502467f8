"""The public contract, checked on every public strategy with several settings of its parameters."""

from typing import Any

import pytest

from sklearn_ical import (
    BALDQuery,
    BatchBALDQuery,
    BayesianCoresetQuery,
    EPIGQuery,
    FASSQuery,
    FilteredQuery,
    ICALCoverageQuery,
    ICALJointQuery,
    ICALPointwiseQuery,
    ICALQuery,
    ICALSequentialQuery,
    KernelBatchQuery,
    LeastConfidentQuery,
    LogDetQuery,
    MarginQuery,
    MaxEntropyQuery,
    MRMRQuery,
    RandomQuery,
    StochasticQuery,
)
from sklearn_ical.strategies import all_strategies
from sklearn_ical.testing import check_strategy
from sklearn_ical.testing._repeat import _decided

STRATEGIES = [
    RandomQuery(),
    MaxEntropyQuery(),
    MarginQuery(),
    LeastConfidentQuery(),
    BALDQuery(),
    ICALQuery(),
    ICALQuery(n_reference=12, prediction="proba", kernel="rbf"),
    ICALQuery(n_reference=12, prediction="expected"),
    ICALQuery(n_reference=12, prediction="argmax", resample=False),
    ICALQuery(n_reference=12, kernel="distance", replace=True),
    ICALQuery(n_reference=12, estimator="unbiased", prediction="proba", include_self=False),
    ICALQuery(n_reference=12, step_size=3, prediction="proba", exclude_selected=True),
    ICALQuery(n_reference=12, exclude_selected=True, resample=False),
    ICALQuery(n_reference=12, information_weight=0.5),
    ICALPointwiseQuery(n_reference=12, n_marginal=9),
    ICALPointwiseQuery(n_reference=12, step_size=3, prediction="proba"),
    ICALCoverageQuery(),
    ICALCoverageQuery(dependence="tau", candidate_weight="margin", information_weight=0.3),
    ICALCoverageQuery(objective="concave", prediction="sampled", reference_weight="entropy"),
    ICALCoverageQuery(n_reference=4, estimator="unbiased"),
    ICALSequentialQuery(),
    ICALJointQuery(prediction="proba"),
    ICALJointQuery("grouped", n_reference=12, normalize=False),
    MRMRQuery(),
    MRMRQuery(n_reference=12, prediction="sampled"),
    BatchBALDQuery(),
    BatchBALDQuery(n_configurations=40),
    BatchBALDQuery(lazy=False),
    EPIGQuery(n_reference=12),
    EPIGQuery(n_reference=12, batch="pseudo-label"),
    LogDetQuery(),
    LogDetQuery("independent"),
    LogDetQuery(noise="ledoit-wolf"),
    KernelBatchQuery(),
    KernelBatchQuery("maxdist"),
    KernelBatchQuery("kmeans++"),
    KernelBatchQuery("lcmd"),
    KernelBatchQuery("bait"),
    FASSQuery(),
    FASSQuery(factor=1),
    FASSQuery(factor=2),
    BayesianCoresetQuery(),
    BayesianCoresetQuery(n_projections=5, gamma=0.7),
    StochasticQuery(BALDQuery()),
    StochasticQuery(MarginQuery(), kind="softmax", beta=3),
    FilteredQuery(MarginQuery(), ICALQuery(n_reference=12)),
    FilteredQuery(BALDQuery(), LogDetQuery(), factor=2),
    FilteredQuery(StochasticQuery(MaxEntropyQuery()), FASSQuery(factor=2), factor=4),
]


def name_of(value: Any) -> str:
    """Return the repr of a strategy on one line."""
    return " ".join(repr(value).split())


@pytest.mark.parametrize("strategy", STRATEGIES, ids=name_of)
def test_strategy_keeps_the_contract(strategy: Any) -> None:
    check_strategy(strategy)


def test_every_public_strategy_is_checked() -> None:
    assert {type(strategy) for strategy in STRATEGIES} == set(all_strategies())


@pytest.mark.parametrize(
    ("strategy", "kinds"),
    [
        (MaxEntropyQuery(), ["proba", "label", "value"]),
        (MarginQuery(), ["proba", "label"]),
        (LeastConfidentQuery(), ["proba", "label"]),
        (BALDQuery(), ["proba", "label", "value"]),
        (ICALQuery(), ["label", "value"]),
        (ICALQuery(n_reference=12, prediction="proba"), ["proba", "label", "value"]),
        (ICALQuery(n_reference=12, prediction="argmax"), ["proba", "label", "value"]),
        (RandomQuery(), []),
    ],
    ids=name_of,
)
def test_permutation_checks_look_at_every_kind_that_predictions_decide(
    strategy: Any, kinds: list[str]
) -> None:
    assert [problem.source.kind for problem, _ in _decided(strategy)] == kinds
