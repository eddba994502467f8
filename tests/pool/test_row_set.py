"""RowSet: what is computed in chunks, when predictions are read, and what features are."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import (
    ActiveLearner,
    BaseQuery,
    CoreSetQuery,
    FarthestFirstQuery,
    FilteredQuery,
    KernelBatchQuery,
    PredictionSamples,
)
from sklearn_ical.exceptions import LabeledRowsMissingError
from sklearn_ical.pool import Pool, RowSet
from sklearn_ical.selection import Selection
from sklearn_ical.strategies import QueryTags

N_POINTS, N_DRAWS, N_CLASSES = 23, 4, 3
PROBA = np.random.default_rng(0).dirichlet(np.ones(N_CLASSES), size=(N_POINTS, N_DRAWS))
SHUFFLED = np.random.default_rng(1).permutation(N_POINTS)[:15]
X, Y = load_iris(return_X_y=True)


class SpyDraws:
    """Draws that keep count of the rows that they are asked about; a row holds its position."""

    n_draws, kind, classes, weights, joint = N_DRAWS, "proba", None, None, False

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def __call__(self, rows: Any) -> PredictionSamples:
        positions = np.asarray(rows)[:, 0].astype(int)
        self.counts.update(positions.tolist())
        return PredictionSamples(PROBA[positions])


def spied_rows() -> tuple[RowSet, SpyDraws]:
    spy = SpyDraws()
    return RowSet(np.arange(float(N_POINTS))[:, None]).with_predictions(spy), spy


def mebibytes(n_rows: int) -> float:
    return n_rows * 8 * N_DRAWS * N_CLASSES / 2**20


# Chunks


@pytest.mark.parametrize("memory", [1024, mebibytes(7), 1e-9])
@pytest.mark.parametrize("positions", [None, SHUFFLED, np.arange(5, 19), np.array([8])])
def test_map_and_reduce_equal_an_evaluation_at_once(positions: Any, memory: float) -> None:
    where = np.arange(N_POINTS) if positions is None else positions
    factor = np.arange(float(len(where)))
    samples = PROBA[where]
    for rows in (spied_rows()[0], RowSet(samples=PredictionSamples(PROBA))):
        with sklearn.config_context(working_memory=memory):
            one = rows.map(lambda s: s.values.max(axis=(1, 2)), positions)
            pair = rows.map(
                lambda s, f: (s.mean(), f * s.values[:, 0, 0]), positions, factor, row_bytes=100
            )
            total = rows.reduce(lambda s: s.values.sum(axis=0), positions)
            both = rows.reduce(
                lambda s, f, g: (f @ s.values[:, :, 0], g.sum()), positions, factor, where
            )
            taken = rows.take(where).values
        np.testing.assert_array_equal(one, samples.max(axis=(1, 2)))
        assert isinstance(pair, tuple)
        np.testing.assert_array_equal(pair[0], samples.mean(axis=1))
        np.testing.assert_array_equal(pair[1], factor * samples[:, 0, 0])
        np.testing.assert_allclose(total, samples.sum(axis=0), rtol=1e-14)
        np.testing.assert_allclose(both[0], factor @ samples[:, :, 0], rtol=1e-14, atol=1e-15)
        assert both[1] == where.sum()
        np.testing.assert_array_equal(taken, samples)


def test_chunks_hold_no_more_rows_than_the_largest_temporary_allows() -> None:
    rows = RowSet(samples=PredictionSamples(PROBA))
    with sklearn.config_context(working_memory=mebibytes(7)):
        for row_bytes, expected in ((0, 7), (3 * 8 * N_DRAWS * N_CLASSES, 2)):
            sizes = rows.map(lambda s: np.full(s.n_points, s.n_points), row_bytes=row_bytes)
            assert sizes.max() == expected
            assert len(sizes) == N_POINTS


def test_draws_are_evaluated_only_where_they_are_read() -> None:
    rows, spy = spied_rows()
    assert (rows.n_draws, rows.kind, rows.weights, len(rows)) == (N_DRAWS, "proba", None, N_POINTS)
    assert not spy.counts
    rows.map(lambda s: s.mean(), SHUFFLED)
    assert spy.counts == Counter(SHUFFLED.tolist())
    held = rows.hold()
    held.take(SHUFFLED)
    held.reduce(lambda s: s.values.sum())
    assert max(spy.counts.values()) == 2  # once for SHUFFLED, once to hold
    spy.counts.clear()
    with sklearn.config_context(working_memory=1e-9):  # no room to hold
        assert rows.hold() is rows
    assert not spy.counts


def test_sparse_rows_are_made_sliceable_once(monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[int] = []
    tocsr = sparse.coo_array.tocsr

    def counted(self: Any, copy: bool = False) -> Any:
        converted.append(1)
        return tocsr(self, copy)

    monkeypatch.setattr(sparse.coo_array, "tocsr", counted)

    class Dense(SpyDraws):
        def __call__(self, rows: Any) -> PredictionSamples:
            assert rows.format == "csr"
            return super().__call__(rows.toarray())

    rows = RowSet(sparse.coo_array(np.arange(float(N_POINTS))[:, None]))
    converted.clear()
    rows = rows.with_predictions(Dense())
    for positions in (None, SHUFFLED):
        rows.map(lambda s: s.mean(), positions)
    assert len(converted) == 1


# Features


def pipeline() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(X, Y)


def test_auto_takes_what_the_model_makes_of_rows_before_its_last_step() -> None:
    model = pipeline()
    search = GridSearchCV(model, {"logisticregression__C": [1.0]}, cv=2).fit(X, Y)
    learner = ActiveLearner(model, "random").fit(X, Y)
    unfitted_learner = ActiveLearner(FrozenEstimator(model), "random")
    expected = model[:-1].transform(X)
    for found in (model, search, learner, FrozenEstimator(search), unfitted_learner):
        np.testing.assert_allclose(RowSet(X, model=found).features(), expected)
    for found in (None, model[-1], make_pipeline(model[-1]), object(), lambda rows: rows):
        np.testing.assert_array_equal(RowSet(X, model=found).features("auto"), X)


def test_features_come_of_a_transformer_a_function_or_the_rows() -> None:
    rows, scaler = RowSet(X, model=pipeline()), StandardScaler().fit(X)
    np.testing.assert_array_equal(rows.features(None), X)
    np.testing.assert_array_equal(rows.features(scaler), scaler.transform(X))
    np.testing.assert_array_equal(rows.features(lambda X: X[:, :2]), X[:, :2])
    assert rows.features(lambda X: X.reshape(len(X), 2, 2)).shape == (len(X), 4)
    assert rows.features(lambda X: sparse.coo_array(X)).format == "csr"


def test_features_given_with_the_call_come_first() -> None:
    rows = RowSet(["a text"] * 3, model=pipeline(), features=[[1, 2], [3, 4], [5, 6]])
    assert rows.has_features
    for source in ("auto", None, StandardScaler()):
        np.testing.assert_array_equal(rows.features(source), [[1, 2], [3, 4], [5, 6]])
    alone = RowSet(features=np.eye(4, dtype=np.float16))
    assert len(alone) == 4
    np.testing.assert_array_equal(alone.features(), np.eye(4))
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(RowSet(features=torch.eye(4)).features(), np.eye(4))


def test_features_are_made_once_for_each_source() -> None:
    calls: list[int] = []

    def make(rows: Any) -> Any:
        calls.append(1)
        return rows

    rows = RowSet(X)
    assert rows.features(make) is rows.features(make)
    assert rows.with_predictions(SpyDraws()).features(make) is rows.features(make)
    assert len(calls) == 1
    for k in range(20):  # functions that are gone lend their place in memory to the next
        assert rows.features(lambda X, k=k: X + k)[0, 0] == X[0, 0] + k


@pytest.mark.parametrize(
    ("rows", "source", "error", "message"),
    [
        (X, StandardScaler, TypeError, "fitted transformer or a function. Got the class Standard"),
        (X, lambda X: X[:3], ValueError, "What features makes of X_pool must have one row for eac"),
        (
            ["a", "b"],
            "auto",
            TypeError,
            "X_pool must hold numbers.* in MyQuery.query; pass fea",
        ),
        ([[1.0], [np.nan]], None, ValueError, "X_pool must hold numbers.* Got a list with nan"),
        (X, lambda X: X.astype(str), TypeError, "What features makes of X_pool must hold numbers"),
    ],
)
def test_features_that_are_no_numbers_are_refused(
    rows: Any, source: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        RowSet(rows, caller="MyQuery.query").features(source)


def test_features_of_a_call_are_called_by_their_name_in_errors() -> None:
    with pytest.raises(ValueError, match=r"^features must hold numbers.*with inf in MyQuery"):
        RowSet(features=[[np.inf]], caller="MyQuery.query").features()
    with pytest.raises(ValueError, match=r"^X_pool and features must have equally many rows\. Got"):
        RowSet(X, features=X[:3])
    with pytest.raises(ValueError, match=r"^X_labeled and labeled_features must have equally many"):
        RowSet(X, name="X_labeled", features=X[:3])


# What a strategy sees


class Spy(BaseQuery):
    """Keeps the pool of the call, and picks the first candidates."""

    def __init__(self, reads: Any = ("features",), uses: Any = (), seen: Any = None) -> None:
        self.reads, self.uses, self.seen = reads, uses, [] if seen is None else seen

    _parameter_constraints = {name: [object] for name in ("reads", "uses", "seen")}  # noqa: RUF012
    random_state = 0

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=self.reads, uses=self.uses, utilities="other")

    def _select(self, pool: Pool) -> Selection:
        self.seen.append(pool)
        chosen = pool.candidates[: pool.batch_size]
        return Selection(chosen, np.zeros(len(chosen)))


def seen_by(strategy: Spy, **options: Any) -> Pool:
    strategy.query(options.pop("model", None), X[50:], 2, **options)
    return strategy.seen.pop()


LABELED = {"X_labeled": X[:50], "y_labeled": Y[:50]}


def test_labeled_and_reference_rows_are_there_where_they_are_read_or_used_and_given() -> None:
    for reads, uses in ((("features", "labeled"), ()), (("features",), ("labeled",))):
        pool = seen_by(Spy(reads, uses), **LABELED)
        assert pool.labeled is not None
        np.testing.assert_array_equal(pool.labeled.features(), X[:50])
        np.testing.assert_array_equal(pool.labeled.y, Y[:50])
        np.testing.assert_array_equal(pool.rows.features(), X[50:])
    assert seen_by(Spy(), **LABELED).labeled is None
    assert seen_by(Spy(uses=("labeled",))).labeled is None
    pool = seen_by(Spy(uses=("reference",)), X_reference=X[:9])
    assert pool.reference is not None
    assert pool.compared is pool.reference
    assert len(pool.reference) == 9
    pool = seen_by(Spy(), X_reference=X[:9])
    assert pool.reference is None
    assert pool.compared is pool.rows


def test_labeled_and_reference_rows_have_features_of_the_same_model() -> None:
    model = pipeline()
    pool = seen_by(Spy(uses=("labeled", "reference")), model=model, X_reference=X[:9], **LABELED)
    assert pool.labeled is not None
    assert pool.reference is not None
    np.testing.assert_allclose(pool.labeled.features(), model[:-1].transform(X[:50]))
    np.testing.assert_allclose(pool.reference.features(), model[:-1].transform(X[:9]))


def test_features_of_a_call_need_those_of_the_labeled_rows_that_are_read() -> None:
    given = {"features": X[50:, :2], **LABELED}
    with pytest.raises(ValueError, match=r"^labeled_features must be given with features, as Spy"):
        seen_by(Spy(uses=("labeled",)), **given)
    pool = seen_by(Spy(uses=("labeled",)), labeled_features=X[:50, :2], **given)
    assert pool.labeled is not None
    np.testing.assert_array_equal(pool.labeled.features(), X[:50, :2])
    assert seen_by(Spy(), **given).labeled is None


def test_rows_that_are_read_must_be_given() -> None:
    message = r"^X_labeled and y_labeled must hold .*Spy\.query reads"
    with pytest.raises(LabeledRowsMissingError, match=message):
        seen_by(Spy(("features", "labeled")))
    with pytest.raises(TypeError, match=r"^features or X_pool must be given for Spy\.select"):
        Spy().select(PROBA)
    picks = Spy().select(features=X, batch_size=3)
    assert picks.tolist() == [0, 1, 2]


def test_a_model_that_nothing_reads_is_not_touched() -> None:
    class Untouchable:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    assert Spy(()).query(Untouchable(), ["a", "b", "c"], 2).tolist() == [0, 1]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_features_of_labeled_rows_match_those_of_the_pool(form: Any) -> None:
    pool, other = form(X[50:]), sparse.csr_array if form is np.asarray else np.asarray
    strategy = Spy(uses=("labeled",))
    strategy.query(None, pool, X_labeled=other(X[:50]))
    found = strategy.seen.pop().labeled.features()
    assert sparse.issparse(found) == sparse.issparse(pool)
    np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, X[:50])
    strategy.query(None, pool, X_labeled=other(X[:50, :3]))
    with pytest.raises(ValueError, match=r"^X_labeled must give as many features .* 4\. Got 3 in"):
        strategy.seen.pop().labeled.features()
    strategy.select(features=pool, labeled_features=X[:50, :3])
    with pytest.raises(ValueError, match=r"^labeled_features must give as many features .* 4\. Go"):
        strategy.seen.pop().labeled.features()
    strategy = Spy(("features", "labeled"))
    strategy.query(None, pool, X_labeled=[], y_labeled=[])
    assert strategy.seen.pop().labeled.features().shape == (0, 4)


def test_columns_of_a_frame_are_matched_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    rows = np.random.default_rng(3).normal(size=(20, 3)) * [1, 10, 100]
    frame = pandas.DataFrame(rows, columns=list("abc"))
    query = CoreSetQuery()
    expected = query.query(None, frame[5:], 4, X_labeled=frame[:5])
    other_order = frame[:5][list("cba")]
    assert query.query(None, frame[5:], 4, X_labeled=other_order).tolist() == expected.tolist()
    with pytest.raises(ValueError, match=r"X_labeled must have the columns of the pool"):
        query.query(None, frame[5:], 4, X_labeled=frame[:5].rename(columns={"a": "d"}))


def test_labels_are_as_many_as_the_labeled_rows() -> None:
    with pytest.raises(ValueError, match="X_labeled and y_labeled must have equally many rows"):
        CoreSetQuery().query(None, np.eye(4), X_labeled=np.eye(4)[:2], y_labeled=[0])


def test_parts_of_a_composite_get_labeled_rows_only_if_they_use_them() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    forest = RandomForestClassifier(10, random_state=0).fit(X[:20], y[:20])
    labeled = {"X_labeled": X[:20], "y_labeled": y[:20]}
    alone = FarthestFirstQuery(random_state=0).query(None, X[20:], 10)
    kept = FilteredQuery(FarthestFirstQuery(random_state=0), KernelBatchQuery(), factor=2)
    features = {"features": X[20:, :3], "labeled_features": X[:20, :3]}
    picks = kept.query(forest, X[20:], 5, **labeled)
    assert set(picks.tolist()) <= set(alone.tolist())
    assert len(kept.query(forest, X[20:], 5, **labeled, **features)) == 5
