"""FASS: literal greedy on the definition, ties, features of many forms, limits and refusals."""

import itertools
import math
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_ical import ActiveLearner, MaxEntropyQuery, PredictionSamples
from sklearn_ical.objectives import _class_coverage
from sklearn_ical.strategies._fass import FASSQuery

Backend = Callable[[np.ndarray], Any]
ignore_saturation = pytest.mark.filterwarnings(
    "ignore::sklearn_ical.exceptions.EqualUtilitiesWarning"
)


def entropies(proba: np.ndarray) -> np.ndarray:
    safe = np.where(proba > 0, proba, 1.0)
    return -(proba * np.log(safe)).sum(axis=1)


def literal(
    proba: np.ndarray, X: np.ndarray, size: int, factor: int, allowed: np.ndarray
) -> tuple[list[int], np.ndarray]:
    """Scan everything in each step; return picks, and rows of gains with NaN."""
    H = np.round(entropies(proba), 12)
    order = np.lexsort((np.arange(len(H)), -H))
    covered = order[: factor * size].tolist()
    kept = [x for x in order if x in allowed][: factor * size]
    label = proba.argmax(axis=1)
    distance = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    d = distance[np.ix_(covered, covered)].max()
    w = np.where(label[:, None] == label, np.maximum(d - distance, 0.0), 0.0)
    batch: list[int] = []
    rows = np.full((size, len(X)), np.nan)
    for t in range(size):
        cover = {i: max((w[i, s] for s in batch), default=0.0) for i in covered}
        best, pick = -1.0, -1
        for s in kept:
            if s in batch:
                continue
            gain = math.fsum(max(w[i, s] - cover[i], 0.0) for i in covered)
            rows[t, s] = gain
            if gain > best + 1e-9 * d * len(covered):
                best, pick = gain, s
        batch.append(pick)
    return batch, rows


def make_problem(seed: int, n: int = 40, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    return np.round(proba, 12) if n_classes == 1 else proba, rng.normal(size=(n, 3))


def test_points_on_a_line_are_covered_as_computed_by_hand() -> None:
    proba = np.full((4, 1, 2), 0.5)
    X = np.array([[0.0], [1.0], [2.0], [10.0]])
    picks, rows = FASSQuery().select(proba, 2, X_pool=X, return_utilities=True)
    assert picks.tolist() == [2, 3]
    assert rows[0].tolist() == [295.0, 317.0, 331.0, 155.0]
    assert rows[1, [0, 1, 3]].tolist() == [4.0, 4.0, 64.0]
    assert np.isnan(rows[1, 2])
    assert np.nanmax(rows, axis=1).sum() == 395.0


@ignore_saturation
@pytest.mark.parametrize("room", ["pairs", "no-pairs"])
@pytest.mark.parametrize("chunk", [1, 7, 10**6])
@pytest.mark.parametrize("factor", [2, 3, 30])
def test_picks_and_gains_equal_literal_greedy(factor: int, chunk: int, room: str) -> None:
    most = 10**9 if room == "pairs" else 0
    for seed in range(6):
        proba, X = make_problem(seed, n_classes=1 + seed % 3 + (seed == 0))
        X = X + 1000 * (seed == 4)
        for allowed in (np.arange(40), np.array([1, 3, 4, 8, 11, 20, 21, 22, 25, 30, 31, 39])):
            expected, worth = literal(proba, X, 6, factor, allowed)
            with (
                patch("sklearn_ical._array.chunk_rows", lambda row_bytes: chunk),
                patch.object(_class_coverage, "MOST_PAIRS", most),
            ):
                query = FASSQuery(factor=factor)
                options: Any = {"candidates": allowed, "X_pool": X}
                picks, rows = query.select(proba[:, None], 6, return_utilities=True, **options)
                lazy = query.select(proba[:, None], 6, **options)
            assert lazy.tolist() == picks.tolist() == expected
            np.testing.assert_allclose(rows, worth, rtol=1e-9, atol=1e-7)


@ignore_saturation
def test_pairs_that_turn_out_to_be_too_many_are_given_up(monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X[::2] *= 1e-3  # half of the rows are in few pairs, if the probes are theirs
    proba = np.full((300, 1, 1), 1.0)
    expected = FASSQuery().select(proba, 12, X_pool=X)
    attempts = []
    original = _class_coverage._Group._keep_pairs

    def counted(group: Any) -> None:
        original(group)
        attempts.append(group._pairs is not None)

    monkeypatch.setattr(_class_coverage._Group, "_keep_pairs", counted)
    for most in (0, 300, 3000, 30_000, 10**6):
        with patch.object(_class_coverage, "MOST_PAIRS", most):
            picks = FASSQuery().select(proba, 12, X_pool=X)
        assert picks.tolist() == expected.tolist()
    assert True in attempts
    assert False in attempts


def test_greedy_reaches_its_share_of_the_best_batch() -> None:
    for seed in range(10):
        proba, X = make_problem(seed, n=10)
        distance = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        label = proba.argmax(axis=1)
        w = np.where(label[:, None] == label, distance.max() - distance, 0.0)
        best = max(
            w[:, list(batch)].max(axis=1).sum() for batch in itertools.combinations(range(10), 3)
        )
        picks, rows = FASSQuery().select(proba[:, None], 3, X_pool=X, return_utilities=True)
        found = w[:, picks].max(axis=1).sum()
        assert rows[np.arange(3), picks].sum() == pytest.approx(found, rel=1e-9)
        assert (1 - 1 / math.e) * best <= found <= best * (1 + 1e-12)


@ignore_saturation
@pytest.mark.parametrize("kind", ["proba", "label"])
def test_factor_one_is_maximum_entropy(kind: str) -> None:
    for seed in range(100):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 3, size=(40, 5))
        values = labels if kind == "label" else rng.dirichlet(np.ones(3), size=(40, 4))
        samples = PredictionSamples(values, kind)
        X = rng.normal(size=(40, 2))
        allowed = rng.permutation(40)[:25]
        ours = FASSQuery(factor=1).select(
            samples, 12, candidates=allowed, X_pool=X, return_utilities=True
        )
        theirs = MaxEntropyQuery().select(samples, 12, candidates=allowed, return_utilities=True)
        assert ours[0].tolist() == theirs[0].tolist()
        np.testing.assert_array_equal(ours[1], theirs[1])


@ignore_saturation
def test_rows_that_are_all_equal_follow_the_entropy_then_the_position() -> None:
    H = [0.3, 0.5, 0.5, 0.1, 0.4, 0.5]
    proba = np.array([[[p, 1 - p]] for p in H])
    X = np.full((6, 2), 0.1)
    for form in (np.asarray, sparse.csr_array):
        picks = FASSQuery().select(proba, 6, X_pool=form(X))
        assert picks.tolist() == [1, 2, 5, 4, 0, 3]


@ignore_saturation
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_copies_tie_to_the_lowest_position_and_wait_for_others(form: Any, dtype: str) -> None:
    rng = np.random.default_rng(1)
    few = (200 * rng.random((7, 5))).astype(dtype)
    of = rng.permutation(np.repeat(np.arange(7), 20))
    proba = np.full((140, 1, 2), [0.6, 0.4])
    for chunk in (1, 9, 10**6):
        with patch("sklearn_ical._array.chunk_rows", lambda row_bytes, chunk=chunk: chunk):
            picks = FASSQuery().select(proba, 30, X_pool=form(few[of]))
        assert sorted(of[picks[:7]].tolist()) == list(range(7))
        assert picks[:7].tolist() == [int(np.flatnonzero(of == of[x])[0]) for x in picks[:7]]
        left = np.setdiff1d(np.arange(140), picks[:7])
        assert picks[7:].tolist() == left[:23].tolist()


@ignore_saturation
def test_gains_that_are_equal_by_symmetry_tie_to_the_lowest_position() -> None:
    x = np.array([0.1, 0.7, 0.4, 0.5, 0.2, 0.6, 0.3])  # 0.4 is the center of three mirrored pairs
    for offset in (0.0, 2.0**20):
        X = np.round(10 * x)[:, None] + offset
        proba = np.full((7, 1, 1), 1.0)
        picks = FASSQuery().select(proba, 3, X_pool=X)
        assert picks[0] == 2
        expected, _ = literal(proba[:, 0], X, 3, 30, np.arange(7))
        assert picks.tolist() == expected


def test_two_rows_that_stand_for_each_other_tie_to_the_larger_entropy() -> None:
    rng = np.random.default_rng(2)
    for seed in range(50):
        center, pair = rng.normal(size=(20, 3)), 9 + rng.normal(size=(2, 3)) / 10
        X = np.concatenate([center, pair])
        proba = np.full((22, 1, 2), 0.5)
        proba[20 + seed % 2] = [0.6, 0.4]
        picks, rows = FASSQuery().select(proba, 2, X_pool=X, return_utilities=True)
        assert picks[1] == 21 - seed % 2
        assert rows[1, 20] == pytest.approx(rows[1, 21], rel=1e-12)


def test_rows_far_from_the_origin_keep_their_differences() -> None:
    proba, X = make_problem(3)
    X = np.round(X, 3)
    expected = FASSQuery().select(proba[:, None], 8, X_pool=X)
    far = X + 2.0**26  # squares near 2^52, differences down to 2^-10
    assert FASSQuery().select(proba[:, None], 8, X_pool=far).tolist() == expected.tolist()


def test_candidates_limit_what_is_picked_and_not_what_is_covered() -> None:
    proba = np.array([[0.5, 0.5]] * 6 + [[0.9, 0.1]] * 3)
    X = np.array([[0.0], [1], [2], [10], [11], [12], [1.5], [11.5], [40]])
    # The filter keeps rows 0 to 5; none of them may be picked, and 40 is far from all of them.
    picks, rows = FASSQuery(factor=3).select(
        proba[:, None], 2, candidates=[6, 7, 8], X_pool=X, return_utilities=True
    )
    assert picks.tolist() == [6, 7]
    covered = X[:6, 0]
    expected = [np.maximum(144 - (covered - x) ** 2, 0).sum() for x in (1.5, 11.5, 40)]
    np.testing.assert_allclose(rows[0, 6:], expected)
    assert np.isnan(rows[:, :6]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_backends_of_predictions_and_features_give_equal_picks(
    dtype: str, backend: Backend
) -> None:
    proba, X = make_problem(5)
    proba = proba.astype(dtype)
    expected = FASSQuery().select(proba[:, None], 8, X_pool=X)
    picks = FASSQuery().select(backend(proba[:, None]), 8, X_pool=backend(X))
    assert picks.tolist() == expected.tolist()


@ignore_saturation
def test_weights_count_as_repeated_draws_do() -> None:
    rng = np.random.default_rng(6)
    values = rng.dirichlet(np.ones(3), size=(40, 4))
    X = rng.normal(size=(40, 3))
    counts = np.array([1, 3, 2, 2])
    weighted = PredictionSamples(values, weights=counts / counts.sum())
    repeated = values.repeat(counts, axis=1)
    for factor in (1, 3, 30):
        query = FASSQuery(factor=factor)
        expected = query.select(repeated, 10, X_pool=X)
        assert query.select(weighted, 10, X_pool=X).tolist() == expected.tolist()
    equal = PredictionSamples(values)
    assert FASSQuery().select(equal, 10, X_pool=X).tolist() != expected.tolist()


@pytest.mark.parametrize(
    "form",
    [
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.csc_array,
        sparse.coo_array,
        sparse.lil_array,
        sparse.bsr_array,
        sparse.dok_array,
    ],
)
def test_sparse_rows_of_any_format_give_the_picks_of_dense_rows(form: Any) -> None:
    rng = np.random.default_rng(7)
    for seed, dtype in enumerate((np.float64, np.float32, np.int64)):
        proba, _ = make_problem(seed, n=60)
        X = (10 * rng.random((60, 20)) * (rng.random((60, 20)) < 0.15)).astype(dtype)
        X[5] = 0
        expected, gains = FASSQuery().select(proba[:, None], 12, X_pool=X, return_utilities=True)
        for chunk in (5, 10**6):
            with patch("sklearn_ical._array.chunk_rows", lambda row_bytes, chunk=chunk: chunk):
                picks, rows = FASSQuery().select(
                    proba[:, None], 12, X_pool=form(X), return_utilities=True
                )
            assert picks.tolist() == expected.tolist()
            np.testing.assert_allclose(rows, gains, rtol=1e-6, atol=1e-6)


def test_sparse_entries_given_twice_are_added_up_and_left_alone() -> None:
    proba, _ = make_problem(8, n=3)
    twice = sparse.csr_array(
        (np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3, 3])), shape=(3, 2)
    )
    data = twice.data.copy()
    once = np.array([[0.0, 3.0], [5.0, 0.0], [0.0, 0.0]])
    _, rows = FASSQuery().select(proba[:, None], 2, X_pool=twice, return_utilities=True)
    _, expected = FASSQuery().select(proba[:, None], 2, X_pool=once, return_utilities=True)
    np.testing.assert_allclose(rows, expected)
    np.testing.assert_array_equal(twice.data, data)


def test_numbers_in_any_container_give_the_picks_of_the_array() -> None:
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    proba, X = make_problem(9)
    expected = FASSQuery().select(proba[:, None], 6, X_pool=X).tolist()
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(40)[::-1])
    forms = {
        "list": X.tolist(),
        "frame": frame,
        "nullable": frame.convert_dtypes(),
        "objects": frame.astype(object),
        "polars": pl.DataFrame(X),
        "more axes": X.reshape(40, 1, 3, 1),
        "longer": X.astype(np.longdouble),
    }
    for name, form in forms.items():
        assert FASSQuery().select(proba[:, None], 6, X_pool=form).tolist() == expected, name


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:60], y[:60], X[60:200]


def test_query_measures_what_a_pipeline_makes_of_the_rows() -> None:
    X, y, pool = digits()
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(X, y)
    scaled = pipeline[:-1].transform(pool)
    samples = pipeline.predict_proba(pool)[:, None]
    expected = FASSQuery().select(samples, 10, X_pool=scaled).tolist()
    assert FASSQuery().select(samples, 10, X_pool=pool).tolist() != expected
    search = GridSearchCV(pipeline, {"logisticregression__C": [1.0]}, cv=2).fit(X, y)
    learner = ActiveLearner(pipeline, FASSQuery()).fit(X, y)
    for model in (pipeline, search, learner, FrozenEstimator(pipeline), FrozenEstimator(search)):
        assert FASSQuery().query(model, pool, 10).tolist() == expected, type(model)
    alone = make_pipeline(pipeline[-1])
    direct = FASSQuery().query(pipeline[-1], scaled, 10)
    assert FASSQuery().query(alone, scaled, 10).tolist() == direct.tolist() == expected


def test_features_come_of_an_object_or_a_function_that_stays_fitted_in_clones() -> None:
    X, y, pool = digits()
    model = LogisticRegression(max_iter=5000).fit(X, y)
    scaler = StandardScaler().fit(X)
    expected = FASSQuery().select(
        model.predict_proba(pool)[:, None], 10, X_pool=scaler.transform(pool)
    )
    for features in (scaler, scaler.transform, lambda rows: scaler.transform(rows)):
        query = FASSQuery(features=features)
        assert query.query(model, pool, 10).tolist() == expected.tolist()
        copy = clone(query)
        assert copy.query(model, pool, 10).tolist() == expected.tolist()
    assert copy is not query
    nested = clone(FASSQuery(features=scaler))
    assert nested.features is not scaler  # setting its parameters leaves the caller's alone
    assert nested.set_params(factor=5).factor == 5


def test_mixed_frames_and_text_work_through_a_pipeline_and_are_refused_without() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(10)
    frame = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"])
    frame["color"] = rng.choice(["red", "green"], size=90)
    y = rng.integers(0, 3, size=30)
    encode = make_column_transformer((OneHotEncoder(), ["color"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestClassifier(10, random_state=0))
    model.fit(frame[:30], y)
    picks = FASSQuery().query(model, frame[30:], 5)
    inner = FASSQuery().query(model[-1], model[:-1].transform(frame[30:]), 5)
    assert picks.tolist() == inner.tolist()

    words = ["tree", "leaf", "root", "bark"]
    texts = [" ".join(rng.choice(words, size=9)) for _ in range(90)]
    model = make_pipeline(TfidfVectorizer(), MultinomialNB()).fit(texts[:30], y)
    picks = FASSQuery().query(model, texts[30:], 5)
    inner = FASSQuery().query(model[-1], model[:-1].transform(texts[30:]), 5)
    assert picks.tolist() == inner.tolist()

    class Untouchable:
        def predict_proba(self, X: Any) -> Any:
            raise AssertionError("predictions were asked for")

    message = (
        r"X_pool must hold numbers without NaN or infinity\. Got a {} of dtype .* in "
        r"FASSQuery\.query; pass features="
    )
    for rows in (texts, frame, [["1", "2"]] * 9, [[1, "a"]] * 9, [{"a": 1}] * 9):
        with pytest.raises(TypeError, match=message.format(type(rows).__name__)):
            FASSQuery().query(Untouchable(), rows, 2)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (np.array([[1.0], [np.nan], [2.0]]), ValueError, "Got a ndarray with nan in FASS"),
        (np.array([[1.0], [np.inf], [2.0]]), ValueError, "Got a ndarray with inf in FASS"),
        (sparse.csr_array([[1.0], [np.nan], [2.0]]), ValueError, "Got a csr_array with nan"),
        ([[1.0], [None], [2.0]], ValueError, "Got a list with nan in FASSQuery.select; pass fea"),
        ([[1.0], [1.0, 2.0], [2.0]], ValueError, "Got a list of rows of unequal length"),
        (np.zeros((3, 1), dtype="datetime64[s]"), TypeError, "of dtype datetime64"),
        (np.zeros((3, 1), dtype=complex), TypeError, "of dtype complex128"),
        (sparse.csr_array(np.ones((3, 1), dtype=complex)), TypeError, "of dtype complex128"),
        (np.zeros((4, 1)), ValueError, r"X_pool and samples must have equally .*Got 4 and 3"),
        (None, TypeError, "features or X_pool must be given for FASSQuery"),
    ],
)
def test_rows_that_have_no_distances_are_refused(rows: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        FASSQuery().select(make_problem(0, n=3)[0][:, None], 2, X_pool=rows)


def test_settings_that_make_no_sense_are_refused() -> None:
    proba, X = make_problem(0)
    wrong: Any
    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match="'factor' parameter of FASSQuery"):
            FASSQuery(factor=wrong).select(proba[:, None], 2, X_pool=X)
    with pytest.raises(ValueError, match="'features' parameter of FASSQuery"):
        FASSQuery(features=3).select(proba[:, None], 2, X_pool=X)
    with pytest.raises(ValueError, match="What features makes of X_pool must have one row for ea"):
        FASSQuery(features=lambda rows: rows[:5]).select(proba[:, None], 2, X_pool=X)
    with pytest.raises(TypeError, match=r"Got the class StandardScaler in FASSQ.*; fit an object"):
        FASSQuery(features=StandardScaler).select(proba[:, None], 2, X_pool=X)
    with pytest.raises(TypeError, match=r"What features makes of X_pool must hold numbers"):
        FASSQuery(features=lambda rows: rows.astype(str)).select(proba[:, None], 2, X_pool=X)
    with pytest.raises(ValueError, match="costs needs a strategy whose utilities are gains"):
        FASSQuery().select(proba[:, None], 2, X_pool=X, costs=np.ones(40))
    values = PredictionSamples(X, kind="value")
    with pytest.raises(ValueError, match="supports predictions of kind 'proba' or 'label'"):
        FASSQuery().select(values, 2, X_pool=X)


@ignore_saturation
def test_memory_at_hand_decides_nothing() -> None:
    proba, X = make_problem(11, n=400, n_classes=2)
    expected = FASSQuery().select(proba[:, None], 40, X_pool=X)
    for memory in (1e-6, 0.01, 0.3):
        with sklearn.config_context(working_memory=memory):
            picks = FASSQuery().select(proba[:, None], 40, X_pool=X)
        assert picks.tolist() == expected.tolist()
