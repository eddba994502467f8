"""Few members that vote, and small forests: every batch is distinct and every utility a number."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

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
    LogDetQuery,
    MarginQuery,
    MRMRQuery,
    PredictionSamples,
    StochasticQuery,
)
from sklearn_ical._random import seeded

N_DRAWS, N_POINTS, BATCH = 5, 40, 20
N_SEEDS = 20
STRATEGIES = [
    BatchBALDQuery(),
    BatchBALDQuery(n_configurations=N_DRAWS),
    BatchBALDQuery(lazy=False),
    EPIGQuery(n_reference=15),
    EPIGQuery(n_reference=15, batch="pseudo-label"),
    LogDetQuery(),
    LogDetQuery("independent"),
    *(KernelBatchQuery(method) for method in ("maxdet", "maxdist", "kmeans++", "lcmd", "bait")),
    FASSQuery(factor=2),
    FASSQuery(factor=1),
    BayesianCoresetQuery(),
    ICALPointwiseQuery(n_reference=10, step_size=3),
    ICALCoverageQuery(n_reference=10),
    ICALCoverageQuery(dependence="tau", candidate_weight="margin"),
    ICALSequentialQuery(),
    ICALJointQuery("grouped"),
    MRMRQuery(),
    StochasticQuery(BALDQuery()),
    StochasticQuery(BatchBALDQuery(), kind="softmax"),
    StochasticQuery(LogDetQuery(), kind="softrank"),
    FilteredQuery(MarginQuery(), BatchBALDQuery(), factor=1),
    FilteredQuery(BALDQuery(), ICALQuery(n_reference=10), factor=2),
]
each_strategy = pytest.mark.parametrize(
    "strategy", STRATEGIES, ids=lambda strategy: " ".join(repr(strategy).split())
)
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_ical.exceptions.QueryWarning"
)  # votes of few members leave little to choose by


def demand_good(picks: np.ndarray, rows: np.ndarray) -> None:
    """Demand distinct picks and, wherever a row could be picked, a utility of it."""
    assert len(picks) == BATCH == len(set(picks.tolist()))
    assert ((picks >= 0) & (picks < N_POINTS)).all()
    assert rows.shape == (BATCH, N_POINTS)
    assert np.isfinite(rows[np.arange(BATCH), picks]).all()
    assert not np.isinf(rows).any()


@cache
def forests_and_pool() -> tuple[list[RandomForestClassifier], np.ndarray]:
    """Return forests of other rows and seeds, and a pool in which each row stands twice."""
    X, y = make_classification(
        200, n_features=5, n_informative=4, n_redundant=0, n_classes=3, random_state=0
    )
    forests = []
    for seed in range(N_SEEDS):
        labeled = np.random.default_rng(seed).choice(160, 30, replace=False)
        forests.append(RandomForestClassifier(10, random_state=seed).fit(X[labeled], y[labeled]))
    return forests, np.repeat(X[160:180], 2, axis=0)


@each_strategy
def test_one_hot_votes_of_few_members_give_distinct_picks(strategy: Any) -> None:
    features = np.random.default_rng(100).normal(size=(N_POINTS, 2))
    rows_of_pool = {"X_pool": features} if "features" in strategy.query_tags().reads else {}
    for seed in range(N_SEEDS):
        votes = np.random.default_rng(seed).integers(3, size=(N_POINTS, N_DRAWS))
        for samples in (PredictionSamples(np.eye(3)[votes]), PredictionSamples(votes, "label")):
            picks, rows = seeded(strategy, seed).select(
                samples, BATCH, return_utilities=True, **rows_of_pool
            )
            demand_good(picks, rows)


@each_strategy
def test_small_forests_give_distinct_picks(strategy: Any) -> None:
    forests, pool = forests_and_pool()
    for seed, forest in enumerate(forests):
        picks, rows = seeded(strategy, seed).query(forest, pool, BATCH, return_utilities=True)
        demand_good(picks, rows)
