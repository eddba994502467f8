"""TypiClust: literal choice in known clusters, order, copies, errors."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from sklearn_ical import TypiClustQuery, simulate
from sklearn_ical.objectives import _distances
from sklearn_ical.objectives._distances import cluster_rows, neighbor_distances
from sklearn_ical.strategies._typiclust import clusters_in_turn, typicality

SIZES = (9, 14, 3, 11, 6)


def blobs(seed: int, *, n_labeled: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in far clusters of SIZES, shuffled, and the cluster of each."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(SIZES)), n_labeled or SIZES))
    centers = 1000 * np.eye(len(SIZES))
    X = centers[labels] + rng.normal(size=(len(labels), len(SIZES)))
    return X.astype(np.float32).astype(float), labels


def literal(
    X: np.ndarray,
    labels: np.ndarray,
    labeled: np.ndarray,
    known: np.ndarray,
    size: int,
    n_neighbors: int = 20,
    min_size: int = 5,
    allowed: Any = None,
) -> tuple[list[int], np.ndarray]:
    """Choose cluster after cluster from known ones, by plain loops."""
    rows, clusters = [*X, *labeled], [*labels, *known]
    allowed = set(range(len(X)) if allowed is None else allowed)
    turns = dict.fromkeys(clusters, 0)
    batch: list[int] = []
    utilities = np.full((size, len(X)), np.nan)
    for t in range(size):
        free = [i for i in range(len(X)) if i in allowed and i not in batch]
        keys = []
        for c in set(clusters[i] for i in free):
            n = clusters.count(c)
            keys.append((turns[c], n < min_size, sum(known == c), -n, clusters.index(c), c))
        chosen = min(keys)[-1]
        for i in free:
            if clusters[i] == chosen:
                mates = [j for j in range(len(rows)) if clusters[j] == chosen and j != i]
                near = sorted(np.linalg.norm(rows[i] - rows[j]) for j in mates)[:n_neighbors]
                utilities[t, i] = 1 / np.mean(near) if near else 0.0
        batch.append(int(np.nanargmax(utilities[t])))
        turns[chosen] += 1
    return batch, utilities


def test_rows_on_a_line_are_chosen_as_computed_by_hand() -> None:
    X = [[0.0], [1.0], [2.0], [10.0], [11.0], [13.0], [50.0]]
    query = TypiClustQuery(min_cluster_size=3, random_state=0)
    picks, rows = query.query(None, X, 3, return_utilities=True)
    assert picks.tolist() == [1, 4, 6]
    nan = np.nan
    expected = [
        [1 / 1.5, 1, 1 / 1.5, nan, nan, nan, nan],
        [nan, nan, nan, 1 / 2, 1 / 1.5, 1 / 2.5, nan],
        [nan, nan, nan, nan, nan, nan, 0],
    ]
    np.testing.assert_allclose(rows, expected)


@pytest.mark.parametrize("memory", [1024, 0.001])
@pytest.mark.parametrize("make", [np.asarray, np.float32, sparse.csr_matrix, sparse.coo_array])
def test_picks_and_utilities_equal_a_literal_choice(make: Any, memory: float) -> None:
    for seed in range(4):
        X, labels = blobs(seed)
        expected, utilities = literal(X, labels, X[:0], labels[:0], 5, n_neighbors=4)
        query = TypiClustQuery(n_neighbors=4, random_state=seed)
        with sklearn.config_context(working_memory=memory):
            picks, rows = query.query(None, make(X), 5, return_utilities=True)
        assert picks.tolist() == expected
        assert labels[picks].tolist() == [1, 3, 0, 4, 2]  # by size, and the small one last
        np.testing.assert_allclose(rows, utilities, rtol=1e-9)


def test_clusters_with_labeled_rows_wait_and_their_rows_are_neighbors() -> None:
    X, labels = blobs(0)
    labeled, known = blobs(9, n_labeled=(1, 0, 0, 2, 0))
    with patch.object(_distances, "KMeans", lambda k, **rest: KMeans(min(k, 5), **rest)):
        picks, rows = TypiClustQuery(random_state=0).select(
            features=X, labeled_features=labeled, batch_size=5, return_utilities=True
        )
    expected, utilities = literal(X, labels, labeled, known, 5)
    assert picks.tolist() == expected
    assert labels[picks].tolist() == [1, 4, 0, 3, 2]  # fewest labeled rows, then the larger
    np.testing.assert_allclose(rows, utilities, rtol=1e-9)


def test_clusters_have_further_turns_where_they_or_their_candidates_run_out() -> None:
    X, labels = blobs(1)
    allowed = np.flatnonzero((labels != 1) & (labels != 3))
    for options in ({}, {"candidates": allowed}):
        query = TypiClustQuery(max_clusters=5, random_state=0)
        picks = query.query(None, X, 14, **options)
        limit = options.get("candidates")
        assert picks.tolist() == literal(X, labels, X[:0], labels[:0], 14, allowed=limit)[0]
        assert len(set(picks)) == 14


def test_clusters_in_turn() -> None:
    clusters = np.array([0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 0, 0, 2])  # the last 4 are labeled
    candidates = np.array([0, 1, 2, 3, 5, 6, 7, 8, 9, 10])
    turns = clusters_in_turn(clusters, 11, candidates, 9, 4)
    # 0 (5 rows) and 2 (4) are large, with 3 and 1 labeled rows; 1 and 3 are small, without any.
    assert turns.tolist() == [2, 0, 1, 3, 2, 0, 1, 3, 2]


def test_number_of_clusters_is_that_of_labels_after_the_batch() -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    found: list[tuple[str, int]] = []

    def spy(kind: Any) -> Any:
        def make(n_clusters: int, **options: Any) -> Any:
            found.append((kind.__name__, n_clusters))
            return kind(n_clusters, **options)

        return make

    with (
        patch.object(_distances, "KMeans", spy(KMeans)),
        patch.object(_distances, "MiniBatchKMeans", spy(MiniBatchKMeans)),
    ):
        TypiClustQuery().select(features=X, labeled_features=X[:10], batch_size=40)
        TypiClustQuery().select(features=X, labeled_features=X[:10], batch_size=41)
        TypiClustQuery(max_clusters=7).select(features=X, batch_size=41)
    assert found == [("KMeans", 50), ("MiniBatchKMeans", 51), ("KMeans", 7)]


def test_copies_have_the_largest_finite_utility_and_the_lowest_position_wins() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3)) + 1e5
    X[[4, 7, 9]] = X[4]
    means, errors = neighbor_distances(X, np.arange(12), np.array([4, 7, 9, 11]), 2)
    assert means[:3].tolist() == errors[:3].tolist() == [0, 0, 0]
    query = TypiClustQuery(n_neighbors=2, max_clusters=1)
    picks, rows = query.select(features=X, batch_size=3, return_utilities=True)
    assert picks.tolist() == [4, 7, 9]
    assert np.isfinite(rows[0]).all()
    assert rows[0, 4] == rows[0, 7] == rows[0, 9] == rows[0].max() > 1e307
    assert query.select(features=np.ones((6, 2)), batch_size=3).tolist() == [0, 1, 2]


def test_equal_mean_distances_in_another_order_tie() -> None:
    ring = np.array([[np.cos(a), np.sin(a)] for a in np.arange(7) * 2 * np.pi / 7])
    for shift in range(7):
        X = np.roll(ring, shift, axis=0) * 0.1 + 3
        utilities = typicality(X, np.arange(7), np.arange(7), 4)
        assert (utilities == utilities[0]).all()


def test_neighbor_distances_are_within_their_error_bounds() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        X = rng.normal(size=(40, 3)) * 10.0 ** -(seed % 5) + 100
        members = np.sort(rng.choice(40, 25, replace=False))
        rows = members[::3]
        for n_neighbors in (1, 4, 24, 100):
            means, errors = neighbor_distances(X, members, rows, n_neighbors)
            for i, row in enumerate(rows):
                near = sorted(np.linalg.norm(X[row] - X[j]) for j in members if j != row)
                assert abs(means[i] - np.mean(near[:n_neighbors])) <= errors[i] < 1e-6 * means[i]


def test_clusters_follow_from_the_seed_and_are_numbered_as_they_come() -> None:
    X = np.random.default_rng(0).normal(size=(400, 3))
    for n_clusters in (6, 60):
        labels = cluster_rows(X, n_clusters, 3)
        np.testing.assert_array_equal(labels, cluster_rows(X.copy(), n_clusters, 3))
        first = np.unique(labels, return_index=True)[1]
        assert (np.diff(first) > 0).all()
        assert (labels != cluster_rows(X, n_clusters, 4)).any()
    assert cluster_rows(np.zeros((5, 2)), 3, 0).tolist() == [0] * 5


def test_sparse_rows_with_wide_indices_are_clustered() -> None:
    X = blobs(0)[0]
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_array_equal(cluster_rows(wide, 5, 0), cluster_rows(X, 5, 0))


def test_simulate_starts_without_labels_and_passes_labeled_rows() -> None:
    X, y = load_iris(return_X_y=True)
    strategy = TypiClustQuery(n_neighbors=5)
    result = simulate(
        LogisticRegression(max_iter=1000), X, y, strategy, initial=strategy, n_initial=5,
        batch_size=4, n_rounds=3, random_state=0,
    )  # fmt: skip
    assert len(set(result.positions.tolist())) == 17
    assert set(y[result.positions[:5]]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X_pool": [[1.0], [np.inf]]}, ValueError, r"X_pool must hold numbers .* Got .* inf in"),
        (
            {"X_pool": [["a"], ["b"]]},
            TypeError,
            r"X_pool must hold numbers .* TypiClustQuery.query",
        ),
        (
            {"X_pool": [[1.0]], "X_labeled": [[1.0, 2.0]], "y_labeled": [0]},
            ValueError,
            r"X_labeled must give as many features .* 1. Got 2 in TypiClustQuery.query",
        ),
        ({"X_pool": [[1.0]], "costs": [1.0]}, ValueError, r"costs .*'other' of TypiClustQuery"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TypiClustQuery().query(None, **arguments)


@pytest.mark.parametrize("name", ["n_neighbors", "min_cluster_size", "max_clusters"])
def test_wrong_parameters_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter of TypiClustQuery must be an int"):
        TypiClustQuery(**{name: 0}).query(None, [[1.0]])
