"""The recipe of query: what is asked of the model, how often, in which chunks and which form.

What each strategy then chooses is in the other files of this folder.
"""

import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sklearn_ical import (
    BALDQuery,
    BaseQuery,
    ICALQuery,
    KernelBatchQuery,
    LeastConfidentQuery,
    LogDetQuery,
    MarginQuery,
    MaxEntropyQuery,
    PredictionSamples,
    RandomQuery,
)
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import get_sampler

MEANS = [MaxEntropyQuery, MarginQuery, LeastConfidentQuery]
N_POINTS, N_DRAWS, N_CLASSES = 60, 5, 3
ROW_BYTES = 8 * N_DRAWS * N_CLASSES


def mebibytes(n_rows: int) -> float:
    """Return the working_memory that has room for the predictions of some rows."""
    return (n_rows * ROW_BYTES + 1) / 2**20


def first_column(X: Any) -> np.ndarray:
    """Return the row numbers that the pools of these tests hold in their first column."""
    if sparse.issparse(X):
        return np.asarray(X.todense())[:, 0].astype(int)
    if hasattr(X, "to_numpy"):
        return X.to_numpy()[:, 0].astype(int)
    return np.asarray(X)[:, 0].astype(int)


class SpyDraws:
    """Draws whose answers are known by row number; it notes what it is asked for."""

    n_draws, kind, joint, weights = N_DRAWS, "proba", False, None
    classes = np.arange(N_CLASSES)

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.proba = rng.dirichlet(np.ones(N_CLASSES), size=(N_POINTS, N_DRAWS))
        self.calls: list[Any] = []

    def __call__(self, X: Any) -> PredictionSamples:
        self.calls.append(X)
        return PredictionSamples(self.proba[first_column(X)], classes=self.classes)

    def counts(self) -> Counter[int]:
        return Counter(row for X in self.calls for row in first_column(X).tolist())


class SpySampler:
    """A sampler whose draws are known."""

    def __init__(self, draws: SpyDraws) -> None:
        self.draws = draws

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> SpyDraws:
        return self.draws


class SpyModel:
    """A classifier with `predict_proba` and nothing else; it notes what it is asked for."""

    def __init__(self) -> None:
        self.draws = SpyDraws()
        self.calls: list[Any] = []
        self.classes_ = np.arange(N_CLASSES)

    def predict_proba(self, X: Any) -> np.ndarray:
        self.calls.append(X)
        return self.draws.proba[first_column(X)].mean(axis=1)

    @property
    def estimators_(self) -> Any:
        raise AssertionError("members are nobody's business here")

    draw = estimators_


class Untouchable:
    """A model that must be left alone."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


def make_pool(form: str = "array") -> Any:
    """Return a pool whose first column is the row number."""
    X = np.stack([np.arange(N_POINTS), np.ones(N_POINTS)], axis=1)
    if form == "pandas":
        pandas = pytest.importorskip("pandas")
        index = np.random.default_rng(0).integers(0, 5, size=N_POINTS)  # odd: repeats, unsorted
        return pandas.DataFrame({"row": X[:, 0], "one": X[:, 1]}, index=index)
    if form == "polars":
        return pytest.importorskip("polars").DataFrame({"row": X[:, 0], "one": X[:, 1]})
    if form == "list":
        return X.tolist()
    return X if form == "array" else sparse.csr_array(X).asformat(form)


FORMS = ["array", "list", "pandas", "polars", "csr", "csc", "coo"]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(
        140, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    return X, y


@pytest.fixture(scope="module")
def forest(data: Any) -> RandomForestClassifier:
    X, y = data
    return RandomForestClassifier(20, max_depth=3, random_state=0).fit(X[:60], y[:60])


@pytest.mark.parametrize("memory", [1024, mebibytes(7), 1e-9])
@pytest.mark.parametrize("strategy", [ICALQuery(4, random_state=0), BALDQuery()])
def test_draws_see_each_row_once_and_no_more_than_a_chunk(
    strategy: BaseQuery, memory: float
) -> None:
    spy, pool = SpyDraws(), make_pool()
    expected = strategy.select(spy.proba, 5)
    with sklearn.config_context(working_memory=memory):
        picks = strategy.query(spy, pool, 5)
    assert picks.tolist() == expected.tolist()
    counts = spy.counts()
    assert set(counts) == set(range(N_POINTS))
    chunk = {1024: N_POINTS, mebibytes(7): 7, 1e-9: 1}[memory]
    assert max(len(X) for X in spy.calls) == chunk
    # Scores of a row are looked at again where they could be tied for the last place.
    again = 0 if isinstance(strategy, ICALQuery) else 9
    assert sum(counts.values()) <= N_POINTS + again


@pytest.mark.parametrize("strategy", [LogDetQuery(), KernelBatchQuery("maxdist")])
def test_features_that_fit_in_memory_are_read_once(strategy: BaseQuery) -> None:
    for memory, again in ((1024, False), (1e-9, True)):
        spy = SpyDraws()
        with sklearn.config_context(working_memory=memory):
            strategy.query(spy, make_pool(), 6)
        assert (max(spy.counts().values()) > 1) == again


def test_ical_asks_for_candidates_and_reference_rows_alone() -> None:
    spy = SpyDraws()
    reference = np.array([[3, 50, 3], [9, 4, 50]])
    candidates = [1, 2, 9, 40, 41]
    query = ICALQuery(random_state=0)
    picks = query.query(spy, make_pool(), 2, candidates=candidates, reference=reference)
    assert spy.counts() == Counter({*candidates, *reference.ravel().tolist()})
    assert set(picks.tolist()) <= set(candidates)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategy", [ICALQuery(random_state=0), BALDQuery(), MaxEntropyQuery()])
def test_a_pool_of_any_form_reaches_the_model_as_it_is(strategy: BaseQuery, form: str) -> None:
    model: Any = SpyModel() if isinstance(strategy, MaxEntropyQuery) else SpyDraws()
    pool = make_pool(form)
    expected = strategy.select(SpyDraws().proba, 4)
    assert strategy.query(model, pool, 4).tolist() == expected.tolist()
    first = model.calls[0]
    if form in ("csc", "coo"):
        assert first.format == "csr"
    else:
        assert first is pool
    model.calls.clear()
    with sklearn.config_context(working_memory=mebibytes(7)):
        assert strategy.query(model, pool, 4).tolist() == expected.tolist()
    assert len(model.calls) >= (N_POINTS // 7 if hasattr(model, "kind") else 1)
    for part in model.calls:
        assert type(part) is type(first)


@pytest.mark.parametrize("strategy", [ICALQuery(random_state=0), ICALQuery(prediction="proba")])
def test_a_sparse_pool_without_cheap_rows_is_converted_once(
    strategy: BaseQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[int] = []
    tocsr = sparse.coo_array.tocsr

    def counted(self: Any, copy: bool = False) -> Any:
        converted.append(1)
        return tocsr(self, copy)

    monkeypatch.setattr(sparse.coo_array, "tocsr", counted)
    pool = make_pool("coo")
    converted.clear()
    with sklearn.config_context(working_memory=mebibytes(7)):
        strategy.query(SpyDraws(), pool, 4)
    assert len(converted) == 1


@pytest.mark.parametrize("strategy", MEANS)
def test_mean_strategies_ask_for_predict_proba_alone(strategy: type[BaseQuery]) -> None:
    model = SpyModel()
    expected = strategy().select(model.draws.proba.mean(axis=1)[:, None], 6)
    assert strategy().query(model, make_pool(), 6).tolist() == expected.tolist()
    assert len(first_column(model.calls[0])) == N_POINTS


@pytest.mark.parametrize("strategy", MEANS)
def test_mean_strategies_take_any_classifier(strategy: type[BaseQuery], data: Any) -> None:
    X, y = data
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:60], y[:60])
    proba = linear.predict_proba(X[60:])
    expected = strategy().select(proba[:, None], 6).tolist()
    assert strategy().query(linear, X[60:], 6).tolist() == expected
    with pytest.raises(UnsupportedModelError, match=r"LogisticRegression\) has no posterior draws"):
        BALDQuery().query(linear, X[60:])
    assert len(BALDQuery().query(linear, X[60:], 6, X_labeled=X[:60], y_labeled=y[:60])) == 6


@pytest.mark.parametrize("strategy", MEANS)
def test_mean_strategies_take_the_mean_of_an_ensemble(strategy: type[BaseQuery], data: Any) -> None:
    X, y = data
    members = [GaussianNB().fit(X[:60], y[:60]), LogisticRegression().fit(X[:60], y[:60])]
    mean = sum(member.predict_proba(X[60:]) for member in members) / 2
    expected = strategy().select(mean[:, None], 6).tolist()
    assert strategy().query(members, X[60:], 6).tolist() == expected
    named = dict(enumerate(members))
    assert strategy().query(named, X[60:], 6).tolist() == expected
    spy = SpyDraws()
    expected = strategy().select(spy.proba.mean(axis=1)[:, None], 6).tolist()
    assert strategy().query(spy, make_pool(), 6).tolist() == expected


def test_random_query_leaves_the_model_alone() -> None:
    query = RandomQuery(random_state=0)
    picks = query.query(Untouchable(), make_pool(), 5)
    assert picks.tolist() == query.query(None, make_pool("pandas"), 5).tolist()
    assert picks.tolist() == query.query(SVC, [[0]] * N_POINTS, 5).tolist()


@pytest.mark.parametrize("strategy", [ICALQuery(random_state=0), BALDQuery(), MaxEntropyQuery()])
def test_models_draws_and_predictions_give_the_same_picks(
    strategy: BaseQuery, data: Any, forest: RandomForestClassifier
) -> None:
    X = data[0][60:]
    sampler = get_sampler(forest)
    samples = sampler.sample(X)
    expected = strategy.select(samples, 6).tolist()
    values = np.array(samples.values)
    named = dict(enumerate(forest.estimators_))
    trees = list(forest.estimators_)
    for tree in trees:  # members speak the codes of the forest's classes
        np.testing.assert_array_equal(tree.classes_, [0, 1, 2])
    for model in (forest, sampler, sampler.draw(), samples, values, trees, named):
        assert strategy.query(model, X, 6).tolist() == expected
    wrapped = make_pipeline(StandardScaler(with_mean=False, with_std=False), forest)
    wrapped[0].fit(X)
    assert strategy.query(wrapped, X, 6).tolist() == expected


def test_regressors_are_queried_by_their_trees(data: Any) -> None:
    X, y = data
    trees = RandomForestRegressor(15, max_depth=3, random_state=0).fit(X[:60], y[:60])
    values = np.stack([tree.predict(X[60:]) for tree in trees.estimators_], axis=1)
    samples = PredictionSamples(values, kind="value")
    for strategy in (ICALQuery(random_state=0), BALDQuery(), MaxEntropyQuery()):
        expected = strategy.select(samples, 5).tolist()
        assert strategy.query(trees, X[60:], 5).tolist() == expected
    assert BALDQuery().query(trees, X[60:])[0] == np.argmax(values.var(axis=1))


def test_reference_rows_are_predicted_by_the_same_draws() -> None:
    spy, rows = SpyDraws(), [5, 17, 3, 44]
    reference = [[0, 3], [2, 2], [1, 0]]
    for prediction in ("proba", "expected", "argmax", "sampled"):
        query = ICALQuery(prediction=prediction, random_state=0)
        picks = query.query(spy, make_pool(), 3, X_reference=make_pool()[rows], reference=reference)
        expected = query.select(
            spy.proba, 3, reference_samples=spy.proba[rows], reference=reference
        )
        assert picks.tolist() == expected.tolist()


def test_reference_rows_need_a_model_and_rows() -> None:
    spy, pool = SpyDraws(), make_pool()
    message = (
        r"X_reference needs a model that can predict it\. Got precomputed predictions; use select"
    )
    for at_hand in (spy.proba, PredictionSamples(spy.proba)):
        with pytest.raises(ValueError, match=message):
            ICALQuery().query(at_hand, pool, X_reference=pool[:3])
    with pytest.raises(ValueError, match=r"X_reference must have at least one row\. Got 0 rows in"):
        ICALQuery().query(spy, pool, X_reference=pool[:0])


@pytest.mark.parametrize(
    "strategy", [RandomQuery(random_state=0), MaxEntropyQuery(), ICALQuery(random_state=0)]
)
def test_a_strategy_is_callable_as_a_modal_strategy(strategy: BaseQuery) -> None:
    class Learner:
        def __init__(self, estimator: Any) -> None:
            self.estimator = estimator

        def teach(self) -> None:
            raise AssertionError("nothing is to be taught")

    class Committee:
        def __init__(self, learners: list[Learner]) -> None:
            self.learner_list = learners

    spy, pool = SpyDraws(), make_pool()
    picks, utilities = strategy.query(spy, pool, 4, return_utilities=True)
    for model in (spy, Learner(SpySampler(spy))):
        indices, worth = strategy(model, pool, n_instances=4)
        assert indices.tolist() == picks.tolist()
        np.testing.assert_allclose(worth, utilities[range(4), picks], rtol=1e-10)
    assert strategy(spy, pool)[0].tolist() == picks[:1].tolist()
    members = [GaussianNB().fit(pool, np.arange(N_POINTS) % n) for n in (2, 3)]
    indices, _ = strategy(Committee([Learner(member) for member in members]), pool, 4)
    assert indices.tolist() == strategy.query(members, pool, 4).tolist()


class Computed:
    """Draws that are computed from the rows, so that a large pool costs no memory of its own."""

    n_draws, kind, joint, weights, classes = 50, "proba", False, None, np.arange(5)

    def __call__(self, X: Any) -> PredictionSamples:
        angles = X[:, :1, None] * np.arange(1.0, 51)[:, None] + np.arange(5.0)
        p = 1.5 + np.sin(angles)  # (n_points, 50, 5)
        return PredictionSamples(p / p.sum(axis=2, keepdims=True), classes=self.classes)


@pytest.mark.parametrize(
    "strategy",
    [
        BALDQuery(),
        MaxEntropyQuery(),
        ICALQuery(20, random_state=0),
        ICALQuery(20, prediction="proba", random_state=0),
    ],
)
def test_memory_stays_near_the_working_memory(strategy: BaseQuery) -> None:
    X = np.linspace(0, 1, 15_000)[:, None]  # 29 MiB of probabilities
    strategy.query(Computed(), X[:100], 3)
    with sklearn.config_context(working_memory=1):
        tracemalloc.start()
        try:
            strategy.query(Computed(), X, 3)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 8 * 2**20


@pytest.mark.parametrize("strategy", [ICALQuery(), BALDQuery(), MaxEntropyQuery()])
def test_models_that_cannot_be_used_are_named(strategy: BaseQuery, data: Any) -> None:
    X, y = data
    with pytest.raises(TypeError, match=r"must be a fitted model, not a class\. Got the class Ran"):
        strategy.query(RandomForestClassifier, X)
    machine = SVC().fit(X[:60], y[:60])
    with pytest.raises(TypeError, match=r"SVC has no posterior draws.*X_labeled=X, y_labeled=y"):
        strategy.query(machine, X)
    assert len(strategy.query(machine, X, 3, X_labeled=X[:60], y_labeled=y[:60])) == 3
    with pytest.raises(TypeError, match="No prediction sampler is registered for NoneType"):
        strategy.query(None, X)
    with pytest.raises(NotFittedError, match=r"RandomForestClassifier.*is not fitted yet"):
        strategy.query(RandomForestClassifier(), X)
    outputs = np.stack([y, y % 2], axis=1)
    several = RandomForestClassifier(3, random_state=0).fit(X[:60], outputs[:60])
    with pytest.raises((TypeError, ValueError), match=r"per output"):
        strategy.query(several, X)


def test_draws_that_give_other_rows_than_asked_for_are_refused() -> None:
    class Short(SpyDraws):
        def __call__(self, X: Any) -> PredictionSamples:
            return super().__call__(X[:-1])

    with pytest.raises(ValueError, match=r"Short must return PredictionSamples of the 60 rows"):
        ICALQuery().query(Short(), make_pool())
    with pytest.raises(ValueError, match=r"belong to 60 rows\. Got 59 rows"):
        ICALQuery().query(SpyDraws().proba, make_pool()[:59])


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ([[[0.5, 0.5]]], TypeError, r"samples must be PredictionSamples or an .*Got list in"),
        (np.full((3, 2), 0.5), ValueError, r"\(n_points, n_draws, n_classes\)"),
        (np.full((3, 2, 2), 0.7), ValueError, r"must be >= 0 and sum to 1"),
        (np.full((3, 2, 2), np.nan), ValueError, r"NaN or infinity in row 0"),
        (np.full((3, 2, 2, 2), 0.5), ValueError, r"Got shape \(3, 2, 2, 2\)"),
    ],
)
def test_select_refuses_what_is_no_prediction(
    samples: Any, error: type[Exception], message: str
) -> None:
    for strategy in (ICALQuery(), MaxEntropyQuery(), RandomQuery()):
        with pytest.raises(error, match=message):
            strategy.select(samples)


@pytest.mark.parametrize("strategy", [ICALQuery(), BALDQuery(), RandomQuery()])
def test_batch_sizes_and_candidates_are_checked_before_any_work(strategy: BaseQuery) -> None:
    spy, pool = SpyDraws(), make_pool()
    name = type(strategy).__name__
    for wrong in (0, -1, np.int64(0)):
        with pytest.raises(ValueError, match=rf"batch_size must be .* in {name}.query"):
            strategy.query(spy, pool, wrong)
    for wrong in (True, 2.0, "3", None):
        with pytest.raises(TypeError, match=rf"batch_size must be .* in {name}.query"):
            strategy.query(spy, pool, wrong)
    for candidates in ([], np.zeros(N_POINTS, dtype=bool)):
        with pytest.raises(ValueError, match=rf"candidates allows no row.* in {name}.query"):
            strategy.query(spy, pool, candidates=candidates)
    with pytest.raises(ValueError, match=rf"candidates is empty because X_pool has 0 rows.*{name}"):
        strategy.query(spy, pool[:0])
    assert not spy.calls
    assert strategy.query(spy, pool, np.int64(3)).shape == (3,)
