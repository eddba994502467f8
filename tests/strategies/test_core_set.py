"""CoreSet and FarthestFirst: literal greedy, ties, features, costs, cold starts, errors."""

import math
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import CoreSetQuery, FarthestFirstQuery, RandomQuery, simulate
from sklearn_ical.exceptions import EqualUtilitiesWarning
from sklearn_ical.objectives import _k_center
from sklearn_ical.objectives._k_center import KCenter

LINE = np.array([[3.0], [6.0], [9.0], [12.0]])
UNEVEN = np.array([[3.0], [6.5], [9.0], [14.0]])
ignore_equal = pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")


def literal(
    X: np.ndarray,
    labeled: np.ndarray,
    size: int,
    allowed: np.ndarray,
    costs: np.ndarray | None = None,
    budget: float = math.inf,
) -> tuple[list[int], np.ndarray]:
    """Compare every candidate with every center in each step; the norm decides without centers."""
    centers = [list(map(float, row)) for row in labeled]
    costs = np.ones(len(X)) if costs is None else costs
    batch: list[int] = []
    rows: list[np.ndarray] = []
    while len(batch) < size:
        row = np.full(len(X), np.nan)
        best, pick = -1.0, -1
        for i in allowed.tolist():
            if i in batch or costs[i] > budget:
                continue
            point = list(map(float, X[i]))
            others = centers if centers else [[0.0] * len(point)]
            row[i] = min(math.dist(point, other) for other in others) / costs[i]
            if row[i] > best * (1 + 1e-12):
                best, pick = row[i], i
        if pick < 0:
            break
        batch.append(pick)
        rows.append(row)
        budget -= costs[pick]
        centers.append(list(map(float, X[pick])))
    return batch, np.array(rows)


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labeled rows and candidates: of any numbers, with many ties, or with copies."""
    rng = np.random.default_rng(seed)
    shapes: list[Any] = [(36, 3), (36, 2), (12, 3)]
    X = rng.normal(size=shapes[seed % 3])
    if seed % 3 == 1:  # a grid
        X = rng.integers(0, 5, size=X.shape).astype(float)
    if seed % 3 == 2:
        X = np.repeat(X, 3, axis=0)[rng.permutation(36)]
    X = X.astype(np.float32).astype(float)  # the same numbers in either precision
    labeled = X[rng.choice(36, seed % 4)]
    allowed = np.arange(36) if seed % 2 else np.sort(rng.choice(36, 20, replace=False))
    return X, labeled, allowed


def test_rows_on_a_line_are_chosen_as_computed_by_hand() -> None:
    labeled: dict[str, Any] = {"X_labeled": [[0.0]], "y_labeled": [1]}
    picks, rows = CoreSetQuery().query(None, LINE, 2, return_utilities=True, **labeled)
    assert picks.tolist() == [3, 1]
    np.testing.assert_array_equal(rows, [[3, 6, 9, 12], [3, 6, 3, np.nan]])


@ignore_equal
@pytest.mark.parametrize("memory", [1024, 0.001])
@pytest.mark.parametrize("make", [np.asarray, np.float32, sparse.csr_matrix, sparse.coo_array])
def test_picks_and_utilities_equal_literal_greedy(make: Any, memory: float) -> None:
    for seed in range(12):
        X, labeled, allowed = problem(seed)
        expected, utilities = literal(X, labeled, 14, allowed)
        known = {"labeled_features": make(labeled)} if len(labeled) else {}
        query = CoreSetQuery(first="norm")
        options: Any = {"features": make(X), "candidates": allowed, **known}
        with sklearn.config_context(working_memory=memory):
            picks, rows = query.select(batch_size=14, return_utilities=True, **options)
            lazy = query.select(batch_size=14, **options)
        assert lazy.tolist() == picks.tolist() == expected
        np.testing.assert_allclose(rows, utilities, rtol=1e-12)


def test_distances_to_many_centers_are_those_of_differences() -> None:
    rng = np.random.default_rng(0)
    X, labeled = rng.normal(size=(60, 4)) + 1e7, rng.normal(size=(40, 4)) + 1e7
    labeled[::4] = X[:10]
    expected = np.sqrt(((X[:, None] - labeled) ** 2).sum(axis=2)).min(axis=1)
    for most in (1, 7, 256):
        for chunk in (1, 5, 10**6):
            objective = KCenter(X, np.arange(60), np.ones(60))
            with (
                patch.object(_k_center, "MOST_CENTERS", most),
                patch("sklearn_ical._array.chunk_rows", lambda row_bytes, chunk=chunk: chunk),
            ):
                objective.add_centers(labeled, np.arange(40))
            gains, errors = objective.gains(np.arange(60))
            np.testing.assert_allclose(gains, expected, rtol=1e-14)
            assert (gains[:10] == 0).all()
            assert (errors < 1e-14 * gains.max()).all()


def test_few_distances_are_computed_from_differences() -> None:
    X = np.random.default_rng(0).normal(size=(3000, 8))
    counts: list[int] = []
    original = _k_center.exact_squared_distances

    def counted(*arguments: Any) -> np.ndarray:
        counts.append(len(arguments[1]))
        return original(*arguments)

    with patch.object(_k_center, "exact_squared_distances", counted):
        CoreSetQuery(first="norm").select(features=X, batch_size=50)
    assert counts[0] == 3000
    assert sum(counts[1:]) < 5 * 3000


@pytest.mark.parametrize("strategy", [CoreSetQuery, FarthestFirstQuery])
def test_first_pick_without_centers_is_that_of_random(strategy: Any) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    for seed in range(5):
        options: Any = {"candidates": np.arange(3, 27), "return_utilities": True}
        expected, uniforms = RandomQuery(random_state=seed).query(None, X, **options)
        picks, rows = strategy(random_state=seed).query(None, X, 4, **options)
        assert picks[0] == expected[0]
        np.testing.assert_array_equal(rows[0], uniforms[0])
        after = literal(X, X[picks[:1]], 3, np.setdiff1d(np.arange(3, 27), picks[0]))[0]
        assert picks[1:].tolist() == after


def test_farthest_first_ignores_labeled_rows_unless_they_are_included() -> None:
    X, labeled = UNEVEN, {"X_labeled": [[0.0]], "y_labeled": [1]}
    plain = FarthestFirstQuery(random_state=0).query(None, X, 4)
    for strategy in (FarthestFirstQuery(random_state=0), CoreSetQuery("auto", "random", False, 0)):
        np.testing.assert_array_equal(strategy.query(None, X, 4, **labeled), plain)
    active = FarthestFirstQuery(include_labeled=True).query(None, X, 3, **labeled)
    np.testing.assert_array_equal(active, CoreSetQuery().query(None, X, 3, **labeled))


def test_no_labeled_rows_are_a_cold_start() -> None:
    query = CoreSetQuery(random_state=3)
    empty: Any = {"X_labeled": np.empty((0, 1)), "y_labeled": []}
    np.testing.assert_array_equal(
        query.query(None, UNEVEN, 4, **empty), query.query(None, UNEVEN, 4)
    )


def test_copies_are_taken_last_and_in_the_order_of_positions() -> None:
    X = np.array([[0.1, 0.7]] * 4 + [[0.3, 0.2]] * 3) + 1e6
    with pytest.warns(EqualUtilitiesWarning):
        picks, rows = CoreSetQuery(first="norm").select(
            features=X, batch_size=4, return_utilities=True
        )
    assert picks.tolist() == [0, 4, 1, 2]
    assert set(rows[2, [1, 2, 3, 5, 6]]) == {0.0}


def test_equal_distances_in_another_order_of_columns_tie() -> None:
    row = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    X = np.array([[0.0] * 7, *(np.roll(row, i) for i in range(7))])
    assert CoreSetQuery(first="norm").select(features=X).tolist() == [1]
    assert CoreSetQuery().select(features=X, labeled_features=X[:1]).tolist() == [1]


@pytest.mark.parametrize("budget", [math.inf, 11.0, 4.5])
def test_costs_and_budget_equal_literal_greedy(budget: float) -> None:
    for seed in range(8):
        X, labeled, allowed = problem(3 * seed)  # without ties, which quotients may round apart
        costs = np.random.default_rng(seed).uniform(0.5, 4, size=36)
        expected, utilities = literal(X, labeled, 6, allowed, costs, budget)
        options: Any = {"costs": costs, "candidates": allowed}
        if math.isfinite(budget):
            options["budget"] = budget
        if len(labeled):
            options["labeled_features"] = labeled
        picks, rows = CoreSetQuery(first="norm").select(
            features=X, batch_size=6, return_utilities=True, **options
        )
        assert picks.tolist() == expected
        np.testing.assert_allclose(rows, utilities, rtol=1e-12)


def test_features_come_from_the_pipeline_a_transformer_a_function_or_the_call() -> None:
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), PCA(2), LogisticRegression()).fit(X[::10], y[::10])
    labeled: Any = {"X_labeled": X[::10], "y_labeled": y[::10]}
    made = model[:-1].transform(X)
    expected = CoreSetQuery().select(features=made, labeled_features=made[::10], batch_size=8)
    np.testing.assert_array_equal(CoreSetQuery().query(model, X, 8, **labeled), expected)
    for features in (model[:-1], model[:-1].transform):
        found = CoreSetQuery(features=features).query(None, X, 8, **labeled)
        np.testing.assert_array_equal(found, expected)
    plain = CoreSetQuery(features=None).query(model, X, 8, **labeled)
    np.testing.assert_array_equal(plain, CoreSetQuery().query(None, X, 8, **labeled))
    assert plain.tolist() != expected.tolist()


def test_labeled_rows_may_be_dense_beside_a_sparse_pool() -> None:
    X, labeled, _ = problem(3)
    expected = CoreSetQuery().select(features=X, labeled_features=labeled, batch_size=5)
    for pool, known in ((sparse.csr_array(X), labeled), (X, sparse.csc_matrix(labeled))):
        found = CoreSetQuery().select(features=pool, labeled_features=known, batch_size=5)
        np.testing.assert_array_equal(found, expected)


def test_simulate_starts_without_labels_and_passes_labeled_rows() -> None:
    X, y = load_iris(return_X_y=True)
    start = CoreSetQuery(first="norm")
    result = simulate(
        LogisticRegression(max_iter=1000), X, y, start, initial=start, n_initial=5, batch_size=4,
        n_rounds=3,
    )  # fmt: skip
    expected = literal(X, X[:0], 17, np.arange(150))[0]  # no pick depends on the model
    assert result.positions.tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X_pool": [[1.0], [np.nan]]}, ValueError, r"X_pool must hold numbers .* Got .* nan in"),
        ({"X_pool": [["a"], ["b"]]}, TypeError, r"X_pool must hold numbers .* CoreSetQuery.query"),
        (
            {"X_pool": LINE, "X_labeled": [[1.0, 2.0]], "y_labeled": [0]},
            ValueError,
            r"X_labeled must give as many features .* of the pool, 1. Got 2 in CoreSetQuery.query",
        ),
        ({"X_pool": LINE, "features": LINE[:2]}, ValueError, r"features must have .*rows. Got"),
    ],
)
def test_wrong_rows_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CoreSetQuery().query(None, batch_size=2, **arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"first": "center"}, r"'first' parameter of CoreSetQuery must be"),
        ({"features": "pca"}, r"'features' parameter of CoreSetQuery must be"),
        ({"include_labeled": "yes"}, r"'include_labeled' parameter of CoreSetQuery must be"),
    ],
)
def test_wrong_parameters_are_refused(parameters: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CoreSetQuery(**parameters).query(None, LINE)
