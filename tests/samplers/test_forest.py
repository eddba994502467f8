"""Forest draws: each tree's own output, one function for every row, in any form of the rows."""

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError

from sklearn_ical import PredictionSamples
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import Draws, EnsembleSampler, _forest, get_sampler
from sklearn_ical.samplers._base import evaluate_in_chunks

CLASSIFIERS = (RandomForestClassifier, ExtraTreesClassifier)
REGRESSORS = (RandomForestRegressor, ExtraTreesRegressor)
LABELS = {
    "strings": np.array(["wren", "ant", "mole"]),
    "one-to-three": np.array([1, 2, 3]),
    "booleans": np.array([False, True]),
    "floats": np.array([-1.0, 7.0, 2.0]),
    "objects": np.array(["b", "a", "cc"], dtype=object),
}
FORMS = ("float32", "fortran", "csr", "csc", "coo", "list", "memmap", "frame", "polars")


def rows(n: int = 90, seed: int = 0) -> np.ndarray:
    """Return rows whose values are float32 numbers, so that no form of them rounds."""
    values = np.random.default_rng(seed).normal(size=(n, 4)).astype(np.float32)
    values[np.abs(values) < 0.3] = 0
    return values.astype(np.float64)


def codes(X: np.ndarray, n_classes: int = 3) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=len(X))
    return np.digitize(X[:, 0] + X[:, 1] + noise, [-0.7, 0.7][: n_classes - 1])


def targets(X: np.ndarray, n_targets: int = 1) -> np.ndarray:
    noise = np.random.default_rng(2).normal(size=(len(X), n_targets))
    y = X[:, :1] * np.arange(1, n_targets + 1) + noise
    return y[:, 0] if n_targets == 1 else y


@cache
def fitted(forest_class: Any, n_targets: int = 1) -> Any:
    X = rows()
    y = targets(X, n_targets) if forest_class in REGRESSORS else LABELS["strings"][codes(X)]
    return forest_class(n_estimators=9, min_samples_leaf=3, random_state=0).fit(X, y)


def tree_outputs(forest: Any, X: np.ndarray) -> np.ndarray:
    """Stack each tree's own predict_proba or predict, one call per tree and row."""
    method = "predict_proba" if hasattr(forest, "classes_") else "predict"
    outputs = [
        np.concatenate([getattr(tree, method)(X[i : i + 1]) for i in range(len(X))])
        for tree in forest.estimators_
    ]
    return np.stack(outputs, axis=1)


def in_form(X: np.ndarray, form: str, folder: Any) -> Any:
    """Return the same rows in another type."""
    names = ["d", "a", "c", "b"]
    if form == "frame":
        pandas = pytest.importorskip("pandas")
        return pandas.DataFrame(X, columns=names, index=np.arange(len(X))[::-1] // 2)
    if form == "polars":
        return pytest.importorskip("polars").DataFrame(X, schema=names)
    if form == "memmap":
        np.save(folder / "rows.npy", X)
        return np.load(folder / "rows.npy", mmap_mode="r")
    simple: dict[str, Callable[[np.ndarray], Any]] = {
        "float32": lambda x: x.astype(np.float32),
        "fortran": np.asfortranarray,
        "csr": sparse.csr_array,
        "csc": sparse.csc_matrix,
        "coo": sparse.coo_matrix,
        "list": lambda x: x.tolist(),
    }
    return simple[form](X)


def assert_same(samples: PredictionSamples, expected: PredictionSamples) -> None:
    """Assert equality to the last bit."""
    np.testing.assert_array_equal(samples.values, expected.values, strict=True)
    assert samples.kind == expected.kind


@pytest.mark.parametrize("forest_class", CLASSIFIERS)
@pytest.mark.parametrize("labels", LABELS)
def test_classifier_draws_equal_the_trees_and_average_to_predict_proba(
    forest_class: Any, labels: str
) -> None:
    X, pool = rows(), rows(50, seed=3)
    y = LABELS[labels][codes(X, len(LABELS[labels]))]
    forest = forest_class(n_estimators=7, min_samples_leaf=2, random_state=0).fit(X, y)
    samples = get_sampler(forest).sample(pool)
    assert (samples.kind, samples.n_draws) == ("proba", 7)
    np.testing.assert_array_equal(samples.values, tree_outputs(forest, pool))
    np.testing.assert_allclose(samples.mean(), forest.predict_proba(pool), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(samples.classes, np.unique(LABELS[labels]))


@pytest.mark.parametrize("forest_class", REGRESSORS)
@pytest.mark.parametrize("n_targets", [1, 3])
def test_regressor_draws_equal_the_trees_and_average_to_predict(
    forest_class: Any, n_targets: int
) -> None:
    forest, pool = fitted(forest_class, n_targets), rows(50, seed=3)
    samples = get_sampler(forest).sample(pool)
    shape = (50, 9) if n_targets == 1 else (50, 9, 3)
    assert (samples.kind, samples.values.shape, samples.classes) == ("value", shape, None)
    np.testing.assert_array_equal(samples.values, tree_outputs(forest, pool))
    np.testing.assert_allclose(samples.mean(), forest.predict(pool), rtol=1e-12, atol=1e-12)


def test_one_target_in_a_column_gives_two_axes() -> None:
    X = rows()
    with pytest.warns(match="column-vector"):
        forest = RandomForestRegressor(n_estimators=3).fit(X, targets(X)[:, None])
    assert get_sampler(forest).sample(X).values.shape == (90, 3)


@pytest.mark.parametrize("forest_class", CLASSIFIERS)
def test_stump_draws_are_the_leaf_fractions(forest_class: Any) -> None:
    X = np.array([[0.0], [0.0], [0.0], [0.0], [8.0], [8.0]])
    y = np.array(["b", "b", "a", "b", "c", "c"])
    forest = forest_class(n_estimators=2, bootstrap=False, max_leaf_nodes=2).fit(X, y)
    samples = get_sampler(forest).sample(np.array([[9.0], [-1.0]]))
    assert samples.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(samples.values[0], [[0, 0, 1], [0, 0, 1]])
    np.testing.assert_array_equal(samples.values[1], [[0.25, 0.75, 0], [0.25, 0.75, 0]])


@pytest.mark.parametrize(
    "options",
    [
        {"criterion": "log_loss"},
        {"class_weight": "balanced"},
        {"class_weight": "balanced_subsample"},
        {"max_samples": 0.1},
        {"max_leaf_nodes": 2},
        {"n_estimators": 1},
        {"monotonic_cst": [1, 0, 0, -1]},
        {"ccp_alpha": 0.02},
    ],
    ids=str,
)
def test_options_of_the_classifier_leave_draws_equal_to_the_trees(options: dict[str, Any]) -> None:
    X, pool = rows(), rows(40, seed=3)
    weight = np.random.default_rng(4).uniform(0.1, 1e3, size=len(X))
    settings = {"n_estimators": 5, "random_state": 0, **options}
    y = codes(X, 2)
    forest = RandomForestClassifier(**settings).fit(X, y, sample_weight=weight)
    values = get_sampler(forest).sample(pool).values
    np.testing.assert_allclose(values, tree_outputs(forest, pool), rtol=0, atol=1e-12)
    np.testing.assert_allclose(values.mean(axis=1), forest.predict_proba(pool), rtol=0, atol=1e-12)


@pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
def test_criteria_of_the_regressor_leave_draws_equal_to_the_trees(criterion: str) -> None:
    X = rows()
    forest = RandomForestRegressor(5, criterion=criterion, min_samples_leaf=4, random_state=0)
    forest.fit(X, np.exp(targets(X)))
    np.testing.assert_array_equal(get_sampler(forest).sample(X).values, tree_outputs(forest, X))


def test_single_class_forest_is_certain() -> None:
    forest = RandomForestClassifier(3).fit(rows(), np.full(90, "only"))
    samples = get_sampler(forest).sample(rows(5))
    np.testing.assert_array_equal(samples.values, np.ones((5, 3, 1)))
    assert samples.classes.tolist() == ["only"]


def test_rare_class_keeps_its_column_in_trees_that_never_saw_it() -> None:
    X = rows()
    y = np.array(["common"] * 88 + ["also", "rare"])
    forest = RandomForestClassifier(20, max_samples=0.2, random_state=0).fit(X, y)
    values = get_sampler(forest).sample(X).values
    never = [k for k in range(20) if not values[:, k, 2].any()]
    assert never
    np.testing.assert_array_equal(values, tree_outputs(forest, X))


@pytest.mark.parametrize("forest_class", CLASSIFIERS + REGRESSORS)
@pytest.mark.parametrize("size", [1, 7, 60, 1000])
def test_chunks_equal_one_call_bitwise(forest_class: Any, size: int) -> None:
    draws, pool = get_sampler(fitted(forest_class)).draw(), rows(60, seed=3)
    whole = draws(pool)
    slices = [draws(pool[a : a + size]).values for a in range(0, 60, size)]
    np.testing.assert_array_equal(np.concatenate(slices), whole.values)
    parts = list(evaluate_in_chunks(draws, pool, size))
    assert [part.n_points for part in parts] == [len(part) for part in slices]
    np.testing.assert_array_equal(np.concatenate([part.values for part in parts]), whole.values)
    assert {part.kind for part in parts} == {whole.kind}


@pytest.mark.parametrize("forest_class", CLASSIFIERS + REGRESSORS)
def test_rows_in_another_order_get_the_same_values(forest_class: Any) -> None:
    draws, pool = get_sampler(fitted(forest_class)).draw(), rows(60, seed=3)
    order = np.random.default_rng(5).permutation(60)
    np.testing.assert_array_equal(draws(pool[order]).values, draws(pool).values[order])
    repeated = np.array([3, 3, 59, 3])
    np.testing.assert_array_equal(draws(pool[repeated]).values, draws(pool).values[repeated])


@pytest.mark.parametrize("block", [1, 16, 59, 60])
def test_blocks_smaller_than_the_pool_change_nothing(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    draws, pool = get_sampler(fitted(RandomForestClassifier)).draw(), rows(60, seed=3)
    whole = draws(pool)
    monkeypatch.setattr(_forest, "FOREST_BLOCK_ROWS", block)
    assert_same(draws(pool), whole)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("forest_class", [RandomForestClassifier, ExtraTreesRegressor])
def test_forms_of_the_rows_give_the_same_draws(
    forest_class: Any, form: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    forest, pool = fitted(forest_class), rows(60, seed=3)
    expected = get_sampler(forest).sample(pool)
    other = in_form(pool, form, tmp_path)
    if form in ("frame", "polars"):  # names are checked against those of fit
        y = LABELS["strings"][codes(rows())] if forest_class in CLASSIFIERS else targets(rows())
        named = forest_class(n_estimators=9, min_samples_leaf=3, random_state=0)
        forest = named.fit(in_form(rows(), form, tmp_path), y)
    draws = get_sampler(forest).draw()
    assert_same(draws(other), expected)
    parts = [part.values for part in evaluate_in_chunks(draws, other, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), expected.values)
    monkeypatch.setattr(_forest, "FOREST_BLOCK_ROWS", 25)
    assert_same(draws(other), expected)


def test_read_only_rows_pass_and_stay_as_they_are() -> None:
    pool = rows(60, seed=3)
    pool.flags.writeable = False
    before = pool.copy()
    get_sampler(fitted(RandomForestClassifier)).sample(pool)
    np.testing.assert_array_equal(pool, before)


@pytest.mark.parametrize("forest_class", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("seen_in_fit", [True, False])
def test_missing_values_go_where_the_trees_send_them(forest_class: Any, seen_in_fit: bool) -> None:
    X, pool = rows(), rows(60, seed=3)
    y = codes(X)
    pool[::3, 1] = np.nan
    if seen_in_fit:
        X[::4, 1] = np.nan
    forest = forest_class(6, random_state=0).fit(X, y)
    values = get_sampler(forest).sample(pool).values
    np.testing.assert_array_equal(values, tree_outputs(forest, pool))


def test_infinite_values_are_refused_as_by_the_forest() -> None:
    pool = rows(5)
    pool[2, 1] = np.inf
    forest = fitted(RandomForestClassifier)
    with pytest.raises(ValueError, match="infinity or a value too large"):
        forest.predict_proba(pool)
    with pytest.raises(ValueError, match="infinity or a value too large"):
        get_sampler(forest).sample(pool)


def test_rows_with_other_features_are_refused_as_by_the_forest() -> None:
    draws = get_sampler(fitted(RandomForestClassifier)).draw()
    with pytest.raises(ValueError, match="X has 3 features, but RandomForestClassifier"):
        draws(rows(5)[:, :3])
    with pytest.raises(ValueError, match="X has 3 features, but RandomForestClassifier"):
        list(evaluate_in_chunks(draws, rows(5)[:, :3], 2))


def test_frames_with_other_names_are_refused_as_by_the_forest() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows(), columns=["d", "a", "c", "b"])
    forest = RandomForestClassifier(3).fit(frame, codes(rows()))
    draws = get_sampler(forest).draw()
    with pytest.raises(ValueError, match="feature names should match"):
        draws(frame[["a", "b", "c", "d"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        draws(rows(5))


@pytest.mark.parametrize("forest_class", CLASSIFIERS + REGRESSORS)
def test_number_of_jobs_changes_nothing(forest_class: Any) -> None:
    X = rows()
    y = codes(X)
    one = forest_class(6, random_state=0, n_jobs=1).fit(X, y)
    two = forest_class(6, random_state=0, n_jobs=2).fit(X, y)
    assert_same(get_sampler(two).sample(X), get_sampler(one).sample(X))


def test_no_row_gives_no_point() -> None:
    samples = get_sampler(fitted(RandomForestClassifier)).sample(rows(0))
    assert samples.values.shape == (0, 9, 3)


def test_fewer_draws_are_a_seeded_subset_in_member_order() -> None:
    forest, pool = fitted(RandomForestClassifier), rows(60, seed=3)
    full = tree_outputs(forest, pool)
    sampler = get_sampler(forest)
    seen = set()
    for seed in range(8):
        draws = sampler.draw(4, random_state=seed)
        values = draws(pool).values
        found = [next(j for j in range(9) if (full[:, j] == values[:, k]).all()) for k in range(4)]
        assert draws.n_draws == 4
        assert found == sorted(set(found))
        assert_same(sampler.draw(4, random_state=seed)(pool), draws(pool))
        seen.add(tuple(found))
    assert len(seen) > 4


def test_equal_generators_give_equal_subsets_and_move_on() -> None:
    sampler, pool = get_sampler(fitted(RandomForestClassifier)), rows(60, seed=3)
    for make in (np.random.default_rng, np.random.RandomState):
        first, second = make(3), make(3)
        a, b = sampler.draw(4, first)(pool), sampler.draw(4, second)(pool)
        assert_same(a, b)
        later = [sampler.draw(4, first)(pool).values for _ in range(4)]
        assert any((values != a.values).any() for values in later)


def test_global_generator_is_left_alone() -> None:
    before = joblib.hash(np.random.get_state())  # noqa: NPY002
    get_sampler(fitted(RandomForestClassifier)).draw(4)(rows(3))
    assert joblib.hash(np.random.get_state()) == before  # noqa: NPY002


@pytest.mark.parametrize("n_draws", [None, 9, np.int64(9)])
def test_all_members_are_taken_once_in_order(n_draws: Any) -> None:
    forest, pool = fitted(ExtraTreesClassifier), rows(20, seed=3)
    values = get_sampler(forest).sample(pool, n_draws=n_draws, random_state=5).values
    np.testing.assert_array_equal(values, tree_outputs(forest, pool))


@pytest.mark.parametrize(
    ("n_draws", "error", "message"),
    [
        (10, ValueError, r"n_draws must be at most the number of members, 9\. Got 10 in"),
        (0, ValueError, r"n_draws must be an integer >= 1\. Got 0 in EnsembleSampler\.draw"),
        (-1, ValueError, r"n_draws must be an integer >= 1\. Got -1"),
        (True, TypeError, r"n_draws must be an integer >= 1\. Got True of type bool"),
        (4.0, TypeError, r"n_draws must be an integer >= 1\. Got 4\.0 of type float"),
        ("4", TypeError, r"n_draws must be an integer >= 1\. Got '4' of type str"),
    ],
)
def test_impossible_numbers_of_draws_are_refused(n_draws: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        get_sampler(fitted(RandomForestClassifier)).draw(n_draws)


def test_negative_seed_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'random_state' parameter of EnsembleSampler"):
        get_sampler(fitted(RandomForestClassifier)).draw(4, random_state=-1)


def test_weights_weigh_the_mean_and_follow_a_subset() -> None:
    forest, pool = fitted(RandomForestClassifier), rows(20, seed=3)
    weights = [9, 8, 7, 6, 5, 4, 3, 2, 1]
    sampler = EnsembleSampler(forest, weights=weights)
    full = tree_outputs(forest, pool)
    samples = sampler.sample(pool)
    np.testing.assert_allclose(samples.weights, np.array(weights) / 45, rtol=1e-15)
    expected = sum(w * full[:, k] for k, w in enumerate(weights)) / 45
    np.testing.assert_allclose(samples.mean(), expected, rtol=0, atol=1e-14)
    part = sampler.sample(pool, n_draws=3, random_state=0)
    found = [next(j for j in range(9) if (full[:, j] == part.values[:, k]).all()) for k in range(3)]
    chosen = np.array([weights[j] for j in found])
    np.testing.assert_allclose(part.weights, chosen / chosen.sum(), rtol=1e-15)


def test_pickled_draws_give_the_same_values() -> None:
    pool = rows(20, seed=3)
    for forest_class in CLASSIFIERS + REGRESSORS:
        draws = EnsembleSampler(fitted(forest_class), weights=range(9)).draw(5, random_state=1)
        copy = pickle.loads(pickle.dumps(draws))
        assert_same(copy(pool), draws(pool))
        np.testing.assert_array_equal(copy.weights, draws.weights)
        assert (copy.n_draws, copy.kind, copy.joint) == (5, draws.kind, False)


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("forest_class", [RandomForestClassifier, ExtraTreesRegressor])
def test_draws_outlive_a_new_fit_of_the_forest(forest_class: Any, warm_start: bool) -> None:
    X, pool = rows(), rows(20, seed=3)
    forest = forest_class(5, random_state=0, warm_start=warm_start).fit(X, codes(X))
    draws = get_sampler(forest).draw()
    before = draws(pool)
    forest.set_params(n_estimators=8).fit(X if warm_start else X[:, :2], codes(X))
    assert forest.n_features_in_ == (4 if warm_start else 2)
    assert_same(draws(pool), before)
    assert get_sampler(forest).draw().n_draws == 8


@pytest.mark.parametrize("forest_class", CLASSIFIERS + REGRESSORS)
def test_forest_is_unchanged(forest_class: Any) -> None:
    forest = fitted(forest_class)
    before = joblib.hash(forest)
    draws = get_sampler(forest).draw(4, random_state=0)
    draws(rows(20))
    list(evaluate_in_chunks(draws, rows(20), 3))
    assert joblib.hash(forest) == before


def test_samples_cannot_be_written_through_to_the_forest() -> None:
    samples = EnsembleSampler(fitted(RandomForestClassifier), weights=range(1, 10)).sample(rows(3))
    for array in (samples.values, samples.classes, samples.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]


def test_draws_follow_the_protocol() -> None:
    draws = get_sampler(fitted(RandomForestClassifier)).draw()
    assert isinstance(draws, Draws)
    assert (draws.n_draws, draws.kind, draws.weights, draws.joint) == (9, "proba", None, False)
    assert draws.classes.tolist() == ["ant", "mole", "wren"]


def test_sample_equals_draw_then_call() -> None:
    sampler, pool = get_sampler(fitted(ExtraTreesClassifier)), rows(20, seed=3)
    assert_same(sampler.sample(pool, n_draws=3, random_state=2), sampler.draw(3, 2)(pool))


def test_subclass_of_a_forest_is_a_forest() -> None:
    class Grove(RandomForestClassifier):
        pass

    X = rows()
    grove = Grove(4, random_state=0).fit(X, codes(X))
    np.testing.assert_array_equal(get_sampler(grove).sample(X).values, tree_outputs(grove, X))


@pytest.mark.parametrize("forest_class", CLASSIFIERS)
def test_classifier_of_several_outputs_is_refused_by_name(forest_class: Any) -> None:
    X = rows()
    forest = forest_class(3).fit(X, np.column_stack([codes(X, 2), codes(X, 3)]))
    with pytest.raises(UnsupportedModelError, match=f"{forest_class.__name__} was fitted on 2"):
        get_sampler(forest).draw()


@pytest.mark.parametrize("forest_class", CLASSIFIERS + REGRESSORS)
def test_unfitted_forest_is_refused_by_name(forest_class: Any) -> None:
    message = f"{forest_class.__name__} is not fitted yet. Call fit"
    with pytest.raises(NotFittedError, match=message):
        get_sampler(forest_class()).draw()
    with pytest.raises(NotFittedError, match=message):
        EnsembleSampler(forest_class()).sample(rows(3))
