"""The public contract, checked on every public strategy with several settings of its parameters."""

from typing import Any

import pytest

from sklearn_ical import (
    BALDQuery,
    BatchBALDQuery,
    BayesianCoresetQuery,
    CoreSetQuery,
    EPIGQuery,
    FASSQuery,
    FilteredQuery,
    ICALCoverageQuery,
    ICALJointQuery,
    ICALPointwiseQuery,
    ICALQuery,
    KernelBatchQuery,
    LeastConfidentQuery,
    LogDetQuery,
    MarginQuery,
    MaxEntropyQuery,
    MRMRQuery,
    RandomQuery,
    StochasticQuery,
    TypiClustQuery,
)
from sklearn_ical._names import STRATEGIES
from sklearn_ical.exceptions import QueryWarning
from sklearn_ical.strategies._resolve import build
from sklearn_ical.testing import check_strategy
from sklearn_ical.testing._repeat import _decided
from sklearn_ical.testing._require import run_checks
from sklearn_ical.testing._strategy import STRATEGY_CHECKS

DEFAULTS = [build(name) for name in STRATEGIES]
SETTINGS = [
    ICALQuery(n_reference=12, prediction="proba", kernel="rbf"),
    ICALQuery(n_reference=12, prediction="proba", kernel="distance"),
    ICALQuery(n_reference=12, prediction="expected"),
    ICALQuery(n_reference=12, prediction="argmax", resample=False),
    ICALQuery(n_reference=12, estimator="unbiased", prediction="proba", include_self=False),
    ICALQuery(n_reference=12, step_size=3, prediction="proba"),
    ICALQuery(n_reference=12, information_weight=0.5),
    ICALPointwiseQuery(n_reference=12, n_marginal=20),
    ICALPointwiseQuery(n_reference=12, step_size=3, prediction="proba"),
    ICALCoverageQuery(dependence="tau", candidate_weight="margin", information_weight=0.3),
    ICALCoverageQuery(objective="concave", prediction="sampled", reference_weight="entropy"),
    ICALCoverageQuery(n_reference=4, estimator="unbiased"),
    ICALJointQuery(prediction="proba"),
    ICALJointQuery("grouped", n_reference=12, normalize=False),
    MRMRQuery(n_reference=12, prediction="sampled"),
    BatchBALDQuery(n_configurations=40),
    BatchBALDQuery(lazy=False),
    EPIGQuery(n_reference=12, batch="pseudo-label"),
    LogDetQuery("independent"),
    LogDetQuery(noise="ledoit-wolf"),
    KernelBatchQuery("maxdist"),
    KernelBatchQuery("kmeans++"),
    KernelBatchQuery("lcmd"),
    KernelBatchQuery("bait"),
    FASSQuery(factor=1),
    FASSQuery(factor=2),
    BayesianCoresetQuery(n_projections=5, gamma=0.7),
    CoreSetQuery(first="norm"),
    TypiClustQuery(n_neighbors=3, min_cluster_size=2, max_clusters=3),
    StochasticQuery(MarginQuery(), kind="softmax", beta=3),
    FilteredQuery(BALDQuery(), LogDetQuery(), factor=2),
    FilteredQuery(StochasticQuery(MaxEntropyQuery()), FASSQuery(factor=2), factor=4),
]


def name_of(value: Any) -> str:
    """Return the repr of a strategy on one line."""
    return " ".join(repr(value).split())


# What the recipe of all strategies does with models, containers and wrong input, whatever the
# parameters of the strategy: checked once for each class.
OF_THE_RECIPE = {
    "check_bad_batch_sizes",
    "check_bad_candidates",
    "check_bad_costs",
    "check_bad_features",
    "check_call",
    "check_candidate_forms",
    "check_empty_pool",
    "check_equal_generators",
    "check_feature_containers",
    "check_frames",
    "check_lists",
    "check_missing_values",
    "check_mixed_frames",
    "check_model_unchanged",
    "check_models",
    "check_pickle",
    "check_predictions_as_model",
    "check_processes",
    "check_raw_probabilities",
    "check_signatures",
    "check_sparse_pools",
    "check_text",
}
OF_THE_CHOICE = {
    name: check for name, check in STRATEGY_CHECKS.items() if name not in OF_THE_RECIPE
}


@pytest.mark.parametrize("strategy", DEFAULTS, ids=name_of)
def test_strategy_keeps_the_contract(strategy: Any) -> None:
    check_strategy(strategy)


@pytest.mark.parametrize("strategy", SETTINGS, ids=name_of)
def test_setting_keeps_what_the_contract_says_of_the_choice(strategy: Any) -> None:
    run_checks(OF_THE_CHOICE, strategy, silenced=QueryWarning)


def test_checks_of_the_recipe_are_checks() -> None:
    assert set(STRATEGY_CHECKS) > OF_THE_RECIPE


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
