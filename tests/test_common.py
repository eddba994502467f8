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
from sklearn_ical.exceptions import QueryWarning
from sklearn_ical.strategies import all_strategies
from sklearn_ical.testing import check_strategy
from sklearn_ical.testing._costs import check_bad_costs
from sklearn_ical.testing._demand import run_checks
from sklearn_ical.testing._estimator import check_call, check_signatures
from sklearn_ical.testing._inputs import (
    check_frames,
    check_lists,
    check_missing_values,
    check_mixed_frames,
    check_sparse_pools,
    check_text,
)
from sklearn_ical.testing._picks import (
    check_bad_batch_sizes,
    check_bad_candidates,
    check_empty_pool,
)
from sklearn_ical.testing._repeat import _decided, check_processes
from sklearn_ical.testing._samples import check_models, check_predictions_as_model
from sklearn_ical.testing._strategy import CHECKS

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
STRATEGY_CLASSES = list(dict.fromkeys(type(strategy) for strategy in STRATEGIES))


def name_of(value: Any) -> str:
    """Return the repr of a strategy on one line."""
    return " ".join(repr(value).split())


DEFAULTS = [next(one for one in STRATEGIES if type(one) is cls) for cls in STRATEGY_CLASSES]
SETTINGS = [one for one in STRATEGIES if one not in DEFAULTS]
# What the recipe of all strategies does with models, containers and wrong input, whatever the
# parameters of the strategy: checked once for each class.
OF_THE_RECIPE = {
    check_bad_batch_sizes,
    check_bad_candidates,
    check_bad_costs,
    check_call,
    check_empty_pool,
    check_frames,
    check_lists,
    check_missing_values,
    check_mixed_frames,
    check_models,
    check_predictions_as_model,
    check_processes,
    check_signatures,
    check_sparse_pools,
    check_text,
}


@pytest.mark.parametrize("strategy", DEFAULTS, ids=name_of)
def test_strategy_keeps_the_contract(strategy: Any) -> None:
    check_strategy(strategy)


@pytest.mark.parametrize("strategy", SETTINGS, ids=name_of)
def test_setting_keeps_what_the_contract_says_of_the_choice(strategy: Any) -> None:
    of_the_choice = tuple(check for check in CHECKS if check not in OF_THE_RECIPE)
    run_checks(of_the_choice, strategy, silenced=QueryWarning)


def test_checks_of_the_recipe_are_checks() -> None:
    assert set(CHECKS) > OF_THE_RECIPE


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
