"""Situations that broke other active-learning tools, as small inputs with the right answers."""

import pickle
import random
import tracemalloc
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.neighbors import KNeighborsClassifier

from sklearn_ical import (
    BALDQuery,
    ICALQuery,
    LeastConfidentQuery,
    MarginQuery,
    MaxEntropyQuery,
    PredictionSamples,
    RandomQuery,
)
from sklearn_ical.samplers import get_sampler

STRATEGIES = [
    RandomQuery(random_state=0),
    MaxEntropyQuery(random_state=0),
    MarginQuery(random_state=0),
    LeastConfidentQuery(random_state=0),
    BALDQuery(random_state=0),
    ICALQuery(n_reference=10, random_state=0),
    ICALQuery(n_reference=10, prediction="proba", random_state=0),
]
each_strategy = pytest.mark.parametrize(
    "strategy", STRATEGIES, ids=lambda strategy: " ".join(repr(strategy).split())
)


def fitted_forest(n_rows: int = 60, **parameters: Any) -> tuple[RandomForestClassifier, np.ndarray]:
    """Return a forest fitted on 40 rows of three classes, and a pool."""
    X, y = make_classification(
        40 + n_rows, n_features=5, n_informative=4, n_redundant=0, n_classes=3, random_state=0
    )
    options = {"max_depth": 4, "random_state": 0, **parameters}
    return RandomForestClassifier(12, **options).fit(X[:40], y[:40]), X[40:]


@each_strategy
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")
def test_repeated_rows_are_picked_once_each(strategy: Any, seed: int) -> None:
    """scikit-activeml 586: an index was picked twice when rows of the pool repeat."""
    forest, X = fitted_forest()
    pool = np.repeat(X[:2], 5, axis=0)
    picks = clone(strategy).set_params(random_state=seed).query(forest, pool, batch_size=6)
    assert len(set(picks.tolist())) == 6


@each_strategy
@pytest.mark.parametrize("writeable", [True, False])
def test_arrays_of_the_caller_stay_bitwise_equal(strategy: Any, writeable: bool) -> None:
    """scikit-activeml 566: a helper overwrote the caller's array with NaN."""
    forest, X = fitted_forest()
    probabilities = np.random.default_rng(0).dirichlet(np.ones(3), size=(60, 8))
    candidates = np.arange(60)[::-2].copy()
    arrays = (X, probabilities, candidates)
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = writeable
    options = {"candidates": candidates, "return_utilities": True}
    strategy.query(forest, X, 4, **options)
    strategy.select(probabilities, 4, **options)
    strategy.select(PredictionSamples(probabilities), 4, reference_samples=probabilities, **options)
    for array, copy in zip(arrays, copies, strict=True):
        assert array.tobytes() == copy.tobytes()


@pytest.mark.parametrize("query", [MaxEntropyQuery(), BALDQuery()], ids=["entropy", "bald"])
@pytest.mark.parametrize("voters", [[0, 1, 2, 3], [3, 1, 0, 2]], ids=["in order", "permuted"])
@pytest.mark.parametrize("names", [[0, 1], [1, 0], [2, 0]], ids=str)
def test_vote_entropy_is_that_of_the_hand(query: Any, voters: list[int], names: list[int]) -> None:
    """scikit-activeml 256: votes (4, 0), (3, 1), (2, 2) have entropies of 0, .562, .693 nats."""
    votes = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0]])[:, voters]
    samples = PredictionSamples(np.array(names)[votes], "label")
    picks, utilities = query.select(samples, 3, return_utilities=True)
    assert picks.tolist() == [2, 1, 0]
    expected = [0, -0.75 * np.log(0.75) - 0.25 * np.log(0.25), np.log(2)]
    np.testing.assert_allclose(utilities[0], expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(utilities[0], [0, 0.562, 0.693], atol=5e-4)


@pytest.mark.parametrize(
    "strategy",
    [RandomQuery(), ICALQuery(n_reference=10), ICALQuery(n_reference=10, prediction="proba")],
    ids=["random", "sampled", "proba"],
)
def test_seed_alone_decides_what_a_random_strategy_picks(strategy: Any) -> None:
    """scikit-activeml 503: an inner step ignored the outer random state."""
    forest, X = fitted_forest()
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002

    def picks(seed: int) -> list[int]:
        return clone(strategy).set_params(random_state=seed).query(forest, X, 5).tolist()

    assert picks(0) == picks(0)
    assert picks(0) != picks(1)
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]


@each_strategy
@pytest.mark.parametrize(
    ("n_pool", "candidates"),
    [(10, np.zeros(10, dtype=bool)), (10, []), (0, None), (0, [])],
    ids=["empty mask", "no position", "empty pool", "both"],
)
def test_nothing_to_choose_from_names_candidates(
    strategy: Any, n_pool: int, candidates: Any
) -> None:
    """scikit-activeml 255: a pool that is labeled in full ended in an internal crash."""
    forest, X = fitted_forest()
    with pytest.raises(ValueError, match=r"^candidates .* in [A-Za-z]*Query\.query") as caught:
        strategy.query(forest, X[:n_pool], candidates=candidates)
    assert len(caught.traceback) < 10


@each_strategy
def test_candidates_mix_with_labeled_rows(strategy: Any) -> None:
    """scikit-activeml 591: candidates among labeled rows were treated unevenly."""
    forest, X = fitted_forest()
    positions = np.array([41, 3, 8, 55, 20, 13])
    mask = np.isin(np.arange(60), positions)
    picks, utilities = strategy.query(forest, X, 4, candidates=positions, return_utilities=True)
    assert set(picks) <= set(positions)
    for t in range(4):
        free = mask & ~np.isin(np.arange(60), picks[:t])
        np.testing.assert_array_equal(np.isnan(utilities[t]), ~free)
    same, equal = strategy.query(forest, X, 4, candidates=mask, return_utilities=True)
    np.testing.assert_array_equal(same, picks)
    np.testing.assert_array_equal(equal, utilities)


@each_strategy
def test_frame_with_odd_index_gives_positions(strategy: Any) -> None:
    """modAL 59: a large frame was indexed by its labels, a KeyError."""
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(6040, 3))
    index = np.random.default_rng(1).permutation(np.arange(6040) // 2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=index)
    y = (X[:40, 0] > 0) + (X[:40, 1] > 0)
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(frame.iloc[:40], y)
    array_forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X[:40], y)
    picks = strategy.query(forest, frame.iloc[40:], 5)
    np.testing.assert_array_equal(picks, strategy.query(array_forest, X[40:], 5))
    np.testing.assert_array_equal(frame.iloc[40:].iloc[picks], X[40:][picks])


@each_strategy
def test_every_parameter_can_be_read_set_and_copied(strategy: Any) -> None:
    """modAL 103: an argument that was not stored broke get_params and clone."""
    parameters = strategy.get_params()
    for copy in (clone(strategy), pickle.loads(pickle.dumps(strategy))):
        assert copy.get_params() == parameters
        assert repr(copy) == repr(strategy)
    defaults = type(strategy)()
    assert defaults.set_params(**parameters) is defaults
    assert defaults.get_params() == parameters


def test_public_data_classes_survive_a_pickle() -> None:
    """modAL 103: samples, samplers and draws travel too."""
    forest, X = fitted_forest()
    sampler = pickle.loads(pickle.dumps(get_sampler(forest)))
    draws = pickle.loads(pickle.dumps(sampler.draw()))
    samples = pickle.loads(pickle.dumps(draws(X)))
    np.testing.assert_array_equal(samples.values, get_sampler(forest).sample(X).values)
    assert not samples.values.flags.writeable


@each_strategy
def test_forest_of_one_seed_gives_one_selection_and_is_never_fitted(strategy: Any) -> None:
    """modAL 34: the selection of a forest changed at each run."""
    forest, X = fitted_forest()
    again, _ = fitted_forest()
    before = joblib.hash(forest)
    with patch.object(RandomForestClassifier, "fit", side_effect=AssertionError("fitted")):
        picks = clone(strategy).query(forest, X, 6)
        np.testing.assert_array_equal(clone(strategy).query(again, X, 6), picks)
    assert joblib.hash(forest) == before


@pytest.mark.parametrize("prediction", ["sampled", "proba"])
def test_large_pool_and_batch_stay_within_memory(prediction: str) -> None:
    """modAL 133: a batch of 200 from 20 000 rows hung; here it takes less than 500 MB."""
    samples = PredictionSamples(np.random.default_rng(0).dirichlet(np.ones(3), size=(20_000, 10)))
    query = ICALQuery(prediction=prediction, random_state=0)
    tracemalloc.start()
    try:
        picks = query.select(samples, 200)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(set(picks.tolist())) == 200
    assert peak < 500e6
    with patch("sklearn_ical._array.chunk_rows", lambda row_bytes: 3_001):
        np.testing.assert_array_equal(query.select(samples, 200), picks)
    with sklearn.config_context(working_memory=8):
        np.testing.assert_array_equal(query.select(samples, 200), picks)


@each_strategy
def test_rounds_of_a_loop_never_ask_for_an_id_twice(strategy: Any) -> None:
    """baal 29, 200: positions in the pool were taken for positions in the data set."""
    forest, X = fitted_forest(30)
    ids = 1000 + np.random.default_rng(0).permutation(30)
    open_rows = np.arange(30)
    asked: list[int] = []
    for _ in range(3):  # by a pool that shrinks
        picks = strategy.query(forest, X[open_rows], 4)
        asked += ids[open_rows[picks]].tolist()
        open_rows = np.delete(open_rows, picks)
    assert len(set(asked)) == 12
    labeled = np.zeros(30, dtype=bool)
    for _ in range(3):  # by candidates of a pool that stays
        picks = strategy.query(forest, X, 4, candidates=~labeled)
        assert not labeled[picks].any()
        labeled[picks] = True
    assert labeled.sum() == 12


@each_strategy
def test_array_of_four_dimensions_is_refused(strategy: Any) -> None:
    """baal 63: more than three dimensions failed in spite of the docstring."""
    values = np.random.default_rng(0).dirichlet(np.ones(2), size=(6, 4, 3))
    message = r"must have shape \(n_points, n_draws, n_classes\) .* Got shape \(6, 4, 3, 2\)"
    with pytest.raises(ValueError, match=message):
        strategy.select(values)


@pytest.mark.parametrize("strategy", STRATEGIES[1:], ids=repr)
def test_forest_of_several_outputs_is_refused(strategy: Any) -> None:
    """baal 97: the list of arrays of a multi-output model gave a broadcast error."""
    _, X = fitted_forest()
    rng = np.random.default_rng(0)
    y = np.column_stack([rng.integers(2, size=60), rng.integers(3, size=60)])
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    with pytest.raises((TypeError, ValueError), match=r"output.* one (forest|model) per output"):
        strategy.query(forest, X)


def test_columns_of_forest_draws_follow_its_classes() -> None:
    """scikit-learn 12189, style-analyzer 88: members speak encoded labels."""
    X, y = make_classification(
        80, n_features=5, n_informative=4, n_redundant=0, n_classes=3, random_state=1
    )
    forest = RandomForestClassifier(7, random_state=0).fit(X, np.array(["b", "a", "c"])[y])
    samples = get_sampler(forest).sample(X)
    assert samples.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(samples.mean(), forest.predict_proba(X), rtol=1e-12, atol=1e-15)
    tree = forest.estimators_[3].predict_proba(X)
    np.testing.assert_allclose(samples.values[:, 3], tree, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_members_of_a_vote_speak_codes_and_the_draws_labels(voting: str) -> None:
    """scikit-learn 12189: members of a vote answer in encoded labels."""
    X, y = make_classification(
        80, n_features=5, n_informative=4, n_redundant=0, n_classes=3, random_state=1
    )
    members = [
        ("near", KNeighborsClassifier()),
        ("forest", RandomForestClassifier(7, random_state=0)),
    ]
    model = VotingClassifier(members, voting=voting).fit(X, np.array(["b", "a", "c"])[y])
    samples = get_sampler(model).sample(X)
    assert samples.classes.tolist() == model.classes_.tolist() == ["a", "b", "c"]
    for k, (_, member) in enumerate(members):
        alone = clone(member).fit(X, np.array(["b", "a", "c"])[y])
        np.testing.assert_allclose(samples.values[:, k], alone.predict_proba(X), atol=1e-12)
    if voting == "soft":
        np.testing.assert_allclose(samples.mean(), model.predict_proba(X), rtol=0, atol=1e-12)
    assert len(set(ICALQuery(random_state=0).query(model, X, 5).tolist())) == 5


def test_bagged_members_that_never_saw_a_class_have_zeros_there() -> None:
    """scikit-learn 8566, 8409: a bagged member without the rare class has fewer columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(np.arange(200) < 10, "rare", np.where(X[:, 0] > 0, "yes", "no"))
    model = BaggingClassifier(KNeighborsClassifier(), max_samples=0.1, random_state=0).fit(X, y)
    blind = np.array([len(member.classes_) == 2 for member in model.estimators_])
    assert 0 < blind.sum() < 10
    samples = get_sampler(model).sample(X)
    assert samples.values.shape == (200, 10, 3)
    assert samples.classes.tolist() == ["no", "rare", "yes"]
    np.testing.assert_allclose(samples.values.sum(axis=2), 1, rtol=1e-12)
    assert (samples.values[:, blind, 1] == 0).all()
    assert samples.values[:, ~blind, 1].any(axis=0).all()
    np.testing.assert_allclose(samples.mean(), model.predict_proba(X), rtol=0, atol=1e-12)
    for k, member in enumerate(model.estimators_):
        np.testing.assert_array_equal(
            samples.values[:, k, member.classes_], member.predict_proba(X)
        )
    assert len(set(ICALQuery(random_state=0).query(model, X, 5).tolist())) == 5


def test_members_that_never_saw_a_class_have_zeros_there() -> None:
    """scikit-learn 8566, 8409: in a list, a member without the rare class has fewer columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(np.arange(200) < 10, "rare", np.where(X[:, 0] > 0, "yes", "no"))
    members = []
    for _ in range(10):
        rows = rng.choice(200, 20)
        members.append(KNeighborsClassifier(3).fit(X[rows], y[rows]))
    blind = np.array(["rare" not in member.classes_ for member in members])
    assert 0 < blind.sum() < 10
    samples = get_sampler(members).sample(X)
    assert samples.values.shape == (200, 10, 3)
    assert samples.classes.tolist() == ["no", "rare", "yes"]
    np.testing.assert_allclose(samples.values.sum(axis=2), 1, rtol=1e-12)
    assert (samples.values[:, blind, 1] == 0).all()
    assert samples.values[:, ~blind, 1].any(axis=0).all()
    for k, member in enumerate(members):
        columns = np.searchsorted(samples.classes, member.classes_)
        np.testing.assert_array_equal(samples.values[:, k, columns], member.predict_proba(X))
    assert len(ICALQuery(random_state=0).query(members, X, 5)) == 5
