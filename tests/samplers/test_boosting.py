"""Boosted models: LightGBM, XGBoost and CatBoost by refits, parallel trees, virtual ensembles."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.exceptions import NotFittedError

from sklearn_ical import ICALQuery, MarginQuery
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, get_sampler
from sklearn_ical.samplers._boosting import ParallelTreesSampler, VirtualEnsembleSampler

RNG = np.random.default_rng(0)
X, X_POOL = RNG.normal(size=(60, 4)), RNG.normal(size=(80, 4))
Y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
THREE = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.4, 0.4])
TARGET = X[:, 0] - X[:, 1] ** 2


def lightgbm(name: str, **params: Any) -> Any:
    module = pytest.importorskip("lightgbm")
    return getattr(module, name)(**{"n_estimators": 5, "verbose": -1, "n_jobs": 1, **params})


def xgboost(name: str, **params: Any) -> Any:
    module = pytest.importorskip("xgboost")
    defaults = {"n_estimators": 5, "n_jobs": 1, "random_state": 0}
    if "RF" not in name:  # fast on few rows, but without sampling of columns by node
        defaults["tree_method"] = "exact"
    return getattr(module, name)(**{**defaults, **params})


def catboost(name: str, **params: Any) -> Any:
    module = pytest.importorskip("catboost")
    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return getattr(module, name)(**{"iterations": 5, **quiet, **params})


def walker(name: str, **params: Any) -> Any:
    """Return a CatBoost model that walks through its posterior."""
    return catboost(name, **{"iterations": 40, "posterior_sampling": True, "depth": 3, **params})


MODELS: dict[str, tuple[Callable[..., Any], str]] = {
    "LGBMClassifier": (lightgbm, "refits"),
    "LGBMRegressor": (lightgbm, "refits"),
    "XGBClassifier": (xgboost, "refits"),
    "XGBRegressor": (xgboost, "refits"),
    "CatBoostClassifier": (catboost, "refits"),
    "CatBoostRegressor": (catboost, "refits"),
    "XGBRFClassifier": (xgboost, "trees"),
    "XGBRFRegressor": (xgboost, "trees"),
}


def fitted(name: str) -> tuple[Any, np.ndarray]:
    y = TARGET if name.endswith("Regressor") else Y
    return MODELS[name][0](name).fit(X, y), y


@pytest.mark.parametrize("name", MODELS)
def test_query_picks_the_same_distinct_rows_and_leaves_the_model_alone(
    name: str, capfd: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    model, y = fitted(name)
    predict = getattr(model, "predict_proba", model.predict)
    before = predict(X_POOL)
    query = ICALQuery(random_state=0).query
    picks, again = (query(model, X_POOL, 4, X_labeled=X, y_labeled=y) for _ in range(2))
    assert len(set(picks.tolist())) == 4
    np.testing.assert_array_equal(picks, again)
    np.testing.assert_array_equal(predict(X_POOL), before)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", MODELS)
def test_models_that_are_not_fitted_are_named(name: str) -> None:
    with pytest.raises(NotFittedError, match=rf"^{name} is not fitted yet\. Call fit"):
        ICALQuery().query(MODELS[name][0](name), X_POOL, X_labeled=X, y_labeled=Y)


@pytest.mark.parametrize("name", [name for name, (_, draws) in MODELS.items() if draws == "refits"])
def test_refits_without_labeled_rows_ask_for_them(name: str) -> None:
    model, y = fitted(name)
    assert type(get_sampler(model)) is BootstrapSampler
    with pytest.raises(UnsupportedModelError, match=rf"{name} has no .* X_labeled=X, y_labeled=y"):
        ICALQuery().query(model, X_POOL)
    draws = BootstrapSampler(model, n_draws=3).fit(X, y).draw(random_state=0)
    assert np.ptp(draws(X_POOL).values, axis=1).max() > 0.01


@pytest.mark.parametrize("name", ["LGBMClassifier", "XGBClassifier", "CatBoostClassifier"])
def test_refits_take_missing_values_and_more_classes(name: str) -> None:
    holes = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    model = MODELS[name][0](name).fit(holes, THREE)
    sampler = BootstrapSampler(model, n_draws=3).fit(holes, THREE)
    samples = sampler.sample(holes, random_state=0)
    assert samples.classes.tolist() == [0, 1, 2]
    assert samples.values.shape == (60, 3, 3)
    # Refits on resamples of labels that follow the rows predict most of them.
    assert (samples.mean().argmax(axis=1) == THREE).mean() > 0.7


@pytest.mark.parametrize("make", [lightgbm, catboost], ids=["LGBMClassifier", "CatBoostClassifier"])
def test_refits_take_text_labels(make: Callable[..., Any], request: Any) -> None:
    name = request.node.callspec.id
    labels = np.array(["no", "yes"])[Y]
    text = MODELS[name][0](name).fit(X, labels)
    picks = ICALQuery(random_state=0).query(text, X_POOL, 3, X_labeled=X, y_labeled=labels)
    numbers, y = fitted(name)
    expected = ICALQuery(random_state=0).query(numbers, X_POOL, 3, X_labeled=X, y_labeled=y)
    np.testing.assert_array_equal(picks, expected)


def categorical_frame(rows: np.ndarray) -> Any:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=list("abcd"))
    frame["c"] = pandas.Categorical(np.where(rows[:, 2] > 0, "u", "v"), categories=["u", "v"])
    return frame


@pytest.mark.parametrize(
    "make",
    [
        lambda: lightgbm("LGBMClassifier"),
        lambda: xgboost("XGBClassifier", tree_method="hist", enable_categorical=True),
        lambda: xgboost("XGBRFClassifier", enable_categorical=True),
        lambda: walker("CatBoostClassifier", cat_features=["c"]),
        lambda: catboost("CatBoostClassifier", cat_features=["c"]),
    ],
    ids=["LGBMClassifier", "XGBClassifier", "XGBRFClassifier", "CatBoost-walk", "CatBoost"],
)
def test_categorical_frames_reach_the_model_unconverted(make: Callable[[], Any]) -> None:
    frame, pool = categorical_frame(X), categorical_frame(X_POOL)
    # The label depends on the category alone.
    y = (frame["c"] == "u").to_numpy().astype(int)
    sampler = get_sampler(make().fit(frame, y))
    if isinstance(sampler, BootstrapSampler):
        sampler = BootstrapSampler(sampler.estimator, n_draws=3).fit(frame, y)
    mean = sampler.sample(pool, random_state=0).mean()
    np.testing.assert_array_equal(mean.argmax(axis=1), (pool["c"] == "u").to_numpy())


# Parallel trees of XGBoost.

FORESTS = {
    "binary": (lambda: xgboost("XGBRFClassifier", max_depth=3), Y),
    "three classes": (lambda: xgboost("XGBRFClassifier", max_depth=3), THREE),
    "target": (lambda: xgboost("XGBRFRegressor", max_depth=3), TARGET + 10),
    "one round": (
        lambda: xgboost("XGBClassifier", n_estimators=1, num_parallel_tree=5, subsample=0.5),
        Y,
    ),
}


def leaf_by_hand(node: dict[str, Any], row: np.ndarray) -> float:
    """Walk one dumped tree down to the value of a row's leaf, in single precision as XGBoost."""
    while "leaf" not in node:
        value = np.float32(row[int(node["split"][1:])])
        if np.isnan(value):
            branch = node["missing"]
        else:
            branch = node["yes"] if value < np.float32(node["split_condition"]) else node["no"]
        node = next(child for child in node["children"] if child["nodeid"] == branch)
    return node["leaf"]


@pytest.mark.parametrize("case", FORESTS)
def test_parallel_trees_equal_a_walk_by_hand(case: str) -> None:
    make, y = FORESTS[case]
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    model = make().fit(holes, y)
    sampler = get_sampler(model)
    assert isinstance(sampler, ParallelTreesSampler)
    samples = sampler.sample(holes)
    trees = [json.loads(tree) for tree in model.get_booster().get_dump(dump_format="json")]
    leaves = np.array([[leaf_by_hand(tree, row) for tree in trees] for row in holes])
    n_outputs = 3 if case == "three classes" else 1
    leaves = leaves.reshape(60, n_outputs, 5)  # the trees of one class come together
    margin = model.predict(holes, output_margin=True).reshape(60, n_outputs)
    starts = margin - leaves.sum(axis=2)
    start = starts.mean(axis=0)
    np.testing.assert_allclose(starts, np.broadcast_to(start, starts.shape), atol=1e-5)
    draws = start[:, None] + 5 * leaves  # (n_points, n_outputs, n_draws)
    if case == "target":
        expected = draws[:, 0]
    elif n_outputs == 1:
        expected = np.stack([1 - expit(draws[:, 0]), expit(draws[:, 0])], axis=2)
    else:
        expected = softmax(draws, axis=1).swapaxes(1, 2)
    np.testing.assert_allclose(samples.values, expected, atol=1e-5)


@pytest.mark.parametrize("case", FORESTS)
def test_parallel_trees_have_the_margin_of_the_model_as_mean(case: str) -> None:
    make, y = FORESTS[case]
    model = make().fit(X, y)
    draws = get_sampler(model).draw()
    values = draws(X_POOL).values
    if case == "target":
        assert draws.mean_differs == ""
        np.testing.assert_allclose(values.mean(axis=1), model.predict(X_POOL), rtol=1e-5)
        return
    assert draws.mean_differs == "the mean of the trees is one of margins"
    assert draws.classes.tolist() == np.unique(y).tolist()
    # Log-probabilities are margins up to a constant for each row, which softmax takes away.
    mean = softmax(np.log(values).mean(axis=1), axis=1)
    np.testing.assert_allclose(mean, model.predict_proba(X_POOL), atol=1e-5)
    assert np.abs(values.mean(axis=1) - mean).max() > 1e-4  # so the reason is one
    assert MarginQuery().query(model, X_POOL, 3).tolist() == (
        MarginQuery().select(model.predict_proba(X_POOL)[:, None], 3).tolist()
    )


def other_forests() -> dict[str, Any]:
    two = np.column_stack([TARGET, X[:, 2]])
    return {
        "one tree": xgboost("XGBRFRegressor", n_estimators=1).fit(X, TARGET),
        "two rounds": xgboost("XGBClassifier", n_estimators=2, num_parallel_tree=4).fit(X, Y),
        "equal trees": xgboost("XGBClassifier", n_estimators=1, num_parallel_tree=4).fit(X, Y),
        "dart": xgboost(
            "XGBClassifier", booster="dart", n_estimators=1, num_parallel_tree=4, subsample=0.5
        ).fit(X, Y),
        "linear": xgboost("XGBRegressor", booster="gblinear", n_estimators=1, tree_method=None).fit(
            X, TARGET
        ),
        "rate": xgboost("XGBRFRegressor", objective="count:poisson").fit(X, np.abs(TARGET)),
        "probability": xgboost("XGBRFRegressor", objective="binary:logistic").fit(X, Y),
        "two targets": xgboost("XGBRFRegressor").fit(X, two),
    }


def test_trees_that_are_no_draws_go_to_the_bootstrap() -> None:
    for case, model in other_forests().items():
        assert type(get_sampler(model)) is BootstrapSampler, case
        with pytest.raises(UnsupportedModelError, match="one boosting round of several different"):
            ParallelTreesSampler(model).draw()


# Virtual ensembles of CatBoost.

WALKS: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    "Logloss": (lambda: walker("CatBoostClassifier"), np.array(["no", "yes"])[Y]),
    "CrossEntropy": (lambda: walker("CatBoostClassifier", loss_function="CrossEntropy"), Y),
    "MultiClass": (lambda: walker("CatBoostClassifier"), THREE),
    "RMSE": (lambda: walker("CatBoostRegressor"), TARGET + 10),
}


@pytest.mark.parametrize("loss", WALKS)
def test_virtual_ensembles_end_with_the_model_itself(loss: str) -> None:
    make, y = WALKS[loss]
    model = make().fit(X, y)
    draws = get_sampler(model).draw()
    assert (draws.n_draws, draws.kind) == (10, "value" if loss == "RMSE" else "proba")
    assert draws.mean_differs == "virtual ensembles leave out some of the last trees"
    values = draws(X_POOL).values
    whole = model.predict(X_POOL) if loss == "RMSE" else model.predict_proba(X_POOL)
    np.testing.assert_allclose(values[:, -1], whole, rtol=1e-9)
    if loss == "RMSE":
        assert draws.classes is None
    else:
        assert draws.classes.tolist() == model.classes_.tolist()
    # The other members are the model cut after 22, 24, ... of its 40 trees, up to a scale of the
    # trees for the shrinking of each step, as told by the model's own raw values.
    raw = model.virtual_ensembles_predict(X_POOL, virtual_ensembles_count=10)
    for k, n_trees in enumerate(range(22, 42, 2)):
        cut = model.predict(X_POOL, prediction_type="RawFormulaVal", ntree_end=n_trees)
        cut = cut.reshape(len(X_POOL), -1)
        assert np.corrcoef(cut[:, 0], raw[:, k, 0])[0, 1] == pytest.approx(1, abs=1e-9)
    link = {"RMSE": lambda m: m[:, :, 0], "MultiClass": lambda m: softmax(m, axis=2)}
    expected = link.get(loss, lambda m: expit(m * [-1, 1]))(raw)
    np.testing.assert_allclose(values, expected, rtol=1e-9)


def test_virtual_ensembles_follow_the_classes_in_the_model_s_order() -> None:
    labels = np.array(["no", "yes"])[Y]
    model = walker("CatBoostClassifier", class_names=["yes", "no"]).fit(X, labels)
    samples = get_sampler(model).sample(X)
    assert samples.classes.tolist() == ["yes", "no"]
    assert (samples.classes[samples.mean().argmax(axis=1)] == labels).mean() > 0.9


def test_virtual_ensembles_that_are_no_draws_go_to_the_bootstrap() -> None:
    stages = catboost("CatBoostClassifier", iterations=40).fit(X, Y)
    spread = walker("CatBoostRegressor", loss_function="RMSEWithUncertainty").fit(X, TARGET)
    for model in (stages, spread):
        assert type(get_sampler(model)) is BootstrapSampler
        with pytest.raises(UnsupportedModelError, match=r"posterior_sampling=True and a loss of"):
            VirtualEnsembleSampler(model).draw()
    short = walker("CatBoostClassifier", iterations=19).fit(X, Y)
    assert type(get_sampler(short)) is BootstrapSampler
    with pytest.raises(ValueError, match=r"^n_members must be at most half .*, 9\. Got 10 in"):
        VirtualEnsembleSampler(short).draw()
    assert VirtualEnsembleSampler(short, n_members=9).sample(X).n_draws == 9
    with pytest.raises(TypeError, match=r"n_members must be an integer >= 1\. Got 2\.5"):
        VirtualEnsembleSampler(short, n_members=2.5).draw()  # type: ignore[arg-type]


# What both have in common.

ENSEMBLES = {
    "trees": (lambda y: xgboost("XGBRFClassifier", n_estimators=10).fit(X, y), Y, THREE),
    "virtual": (lambda y: walker("CatBoostClassifier").fit(X, y), Y, THREE),
}


@pytest.mark.parametrize("case", ENSEMBLES)
def test_fewer_draws_are_a_seeded_subset_and_more_are_refused(case: str) -> None:
    make, y, _ = ENSEMBLES[case]
    sampler = get_sampler(make(y))
    everything = sampler.sample(X_POOL).values
    some = sampler.sample(X_POOL, n_draws=4, random_state=3).values
    again = sampler.sample(X_POOL, n_draws=4, random_state=3).values
    np.testing.assert_array_equal(some, again)
    places = [
        [k for k in range(10) if np.array_equal(everything[:, k], some[:, j])] for j in range(4)
    ]
    assert all(places)
    assert [found[0] for found in places] == sorted({found[0] for found in places})
    with pytest.raises(ValueError, match=r"n_draws must be at most the number of members, 10\."):
        sampler.draw(11)


@pytest.mark.parametrize("case", ENSEMBLES)
def test_draws_are_the_same_in_chunks_and_after_pickling(case: str) -> None:
    make, y, _ = ENSEMBLES[case]
    draws = get_sampler(make(y)).draw()
    whole = draws(X_POOL).values
    parts = np.concatenate([draws(X_POOL[a : a + 7]).values for a in range(0, 80, 7)])
    np.testing.assert_array_equal(parts, whole)
    turned = draws(X_POOL[::-1]).values[::-1]
    np.testing.assert_array_equal(turned, whole)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(draws))(X_POOL).values, whole)


@pytest.mark.parametrize("case", ENSEMBLES)
def test_draws_outlive_another_fit_of_the_model(case: str, tmp_path: Path) -> None:
    make, y, others = ENSEMBLES[case]
    model = make(y)
    draws = get_sampler(model).draw()
    before = draws(X_POOL).values
    path = str(tmp_path / "other.json")
    if case == "trees":
        make(others).get_booster().save_model(path)
        model.get_booster().load_model(path)
    else:
        make(others).save_model(path, format="json")
        model.load_model(path, format="json")
    np.testing.assert_array_equal(draws(X_POOL).values, before)
    model.fit(X, others)
    np.testing.assert_array_equal(draws(X_POOL).values, before)


def test_samplers_say_where_draws_come_from() -> None:
    trees = get_sampler(xgboost("XGBRFClassifier").fit(X, Y))
    assert (trees.source, trees.cost) == ("its parallel trees", "one prediction per tree")
    virtual = get_sampler(walker("CatBoostRegressor").fit(X, TARGET))
    assert virtual.source == "its virtual ensembles"
    assert virtual.cost == "one prediction per virtual ensemble"


def test_other_models_load_no_boosting_package() -> None:
    code = """
import sys
from sklearn.ensemble import RandomForestClassifier
from sklearn_ical.samplers import get_sampler
forest = RandomForestClassifier(n_estimators=2).fit([[0.0], [1.0]], [0, 1])
get_sampler(forest).sample([[0.5]])
print(*sorted({"catboost", "lightgbm", "skactiveml", "xgboost"} & set(sys.modules)))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout.split()) == (0, []), result.stderr
