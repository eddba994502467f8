"""Arguments of `fit` besides X and y: which belong to rows, and that every refit gets them."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import (
    ActiveLearner,
    BALDQuery,
    FilteredQuery,
    ICALQuery,
    LogDetQuery,
    MarginQuery,
    RandomQuery,
    StochasticQuery,
    compare_strategies,
    simulate,
)
from sklearn_ical._fit_params import FitParams, check_fit_params
from sklearn_ical._random import DRAWS, seeded, stream_seed
from sklearn_ical.exceptions import CheckpointError, UnsupportedModelError
from sklearn_ical.samplers import BaseSampler, BootstrapSampler, get_sampler
from sklearn_ical.strategies import QueryTags
from tests.samplers.test_bootstrap import resample_by_hand

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(40, 3)), RNG.normal(size=(30, 3))
# Half of the rows are labeled by another rule, and have next to no weight.
OTHER_RULE = np.arange(40) % 2 == 1
Y = np.where(OTHER_RULE, X[:, 1] > 0, X[:, 0] > 0).astype(int)
WEIGHTS = np.where(OTHER_RULE, 1e-6, 1.0)
TARGETS = np.where(OTHER_RULE, 5 * X[:, 1], X[:, 0])
STRATEGY = BALDQuery(random_state=3)
SCALED = make_pipeline(StandardScaler(), GaussianNB()).fit(X, Y, gaussiannb__sample_weight=WEIGHTS)
GRID = {"var_smoothing": [1e-9]}


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def refits_by_hand(
    model: Any, X: Any, y: Any, weights: np.ndarray, seed: int, *, copies: bool = False
) -> list[Any]:
    """Return clones of a model without a `random_state`, fitted on the documented resamples."""
    models = []
    for k in range(50):
        rows = resample_by_hand(seed, k, y)
        if copies:
            models.append(clone(model).fit(X[rows], y[rows], sample_weight=weights[rows]))
        else:
            counts = np.bincount(rows, minlength=len(y))
            models.append(clone(model).fit(X, y, sample_weight=weights * counts))
    return models


@cache
def picks_by_hand(*, weighted: bool, scaled: int = 0) -> list[int]:
    """Return the picks of `STRATEGY` from a naive Bayes model that is refitted by hand.

    Rows are scaled so many times, as in nested Pipelines.
    """
    rows, pool = X, POOL
    for _ in range(scaled):
        scaler = StandardScaler().fit(rows)
        rows, pool = scaler.transform(rows), scaler.transform(pool)
    weights = WEIGHTS if weighted else np.ones(40)
    models = refits_by_hand(GaussianNB(), rows, Y, weights, stream_seed(3, DRAWS))
    return STRATEGY.query(models, pool, 5).tolist()


def query(model: Any, params: dict[str, Any]) -> list[int]:
    given = {"X_labeled": X, "y_labeled": Y, "fit_params": params}
    return STRATEGY.query(model, POOL, 5, **given).tolist()


MODEL = GaussianNB().fit(X, Y, sample_weight=WEIGHTS)
SEARCH = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, cv=2)


def taught() -> ActiveLearner:
    learner = ActiveLearner(GaussianNB(), STRATEGY).fit(X[:30], Y[:30], sample_weight=WEIGHTS[:30])
    return learner.teach(X[30:], Y[30:], sample_weight=WEIGHTS[30:].tolist())


DOORS: dict[str, Callable[[], Any]] = {
    "query": lambda: query(MODEL, {"sample_weight": WEIGHTS}),
    "list of weights": lambda: query(MODEL, {"sample_weight": WEIGHTS.tolist()}),
    "sampler": lambda: STRATEGY.query(
        BootstrapSampler(GaussianNB()).fit(X, Y, sample_weight=WEIGHTS), POOL, 5
    ),
    "sampler in query": lambda: query(BootstrapSampler(GaussianNB()), {"sample_weight": WEIGHTS}),
    "learner": lambda: (
        ActiveLearner(GaussianNB(), STRATEGY).fit(X, Y, sample_weight=WEIGHTS).query(POOL, 5)
    ),
    "taught learner": lambda: taught().query(POOL, 5),
    "learner as model": lambda: STRATEGY.query(taught(), POOL, 5),
    "search": lambda: query(SEARCH.fit(X, Y, sample_weight=WEIGHTS), {"sample_weight": WEIGHTS}),
    "learner of a search": lambda: (
        ActiveLearner(SEARCH, STRATEGY).fit(X, Y, sample_weight=WEIGHTS).query(POOL, 5)
    ),
    "Pipeline of one step": lambda: query(
        Pipeline([("b", GaussianNB())]).fit(X, Y), {"b__sample_weight": WEIGHTS}
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_weights_reach_the_refits_of_each_door(door: str) -> None:
    if door == "Pipeline of one step":  # which copies rows
        models = refits_by_hand(GaussianNB(), X, Y, WEIGHTS, stream_seed(3, DRAWS), copies=True)
        expected = STRATEGY.query(models, POOL, 5).tolist()
    else:
        expected = picks_by_hand(weighted=True)
    assert list(DOORS[door]()) == expected != picks_by_hand(weighted=False)


INNER = make_pipeline(StandardScaler(), GaussianNB())
STEPS: dict[str, tuple[Any, str]] = {
    "last step": (make_pipeline(StandardScaler(), GaussianNB()), "gaussiannb__sample_weight"),
    "nested": (
        Pipeline([("a", StandardScaler()), ("b", INNER)]),
        "b__gaussiannb__sample_weight",
    ),
    "search in a Pipeline": (
        make_pipeline(StandardScaler(), SEARCH),
        "gridsearchcv__sample_weight",
    ),
    "Pipeline in a search": (
        GridSearchCV(INNER, {"gaussiannb__var_smoothing": [1e-9]}, cv=2),
        "gaussiannb__sample_weight",
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_weights_reach_the_refits_of_the_last_step(case: str) -> None:
    model, name = STEPS[case]
    model = clone(model).fit(X, Y, **{name: WEIGHTS})
    scaled = 2 if case == "nested" else 1
    expected = picks_by_hand(weighted=True, scaled=scaled)
    assert query(model, {name: WEIGHTS}) == expected
    learner = ActiveLearner(model, STRATEGY).fit(X, Y, **{name: WEIGHTS})
    assert learner.query(POOL, 5).tolist() == expected
    assert picks_by_hand(weighted=False, scaled=scaled) != expected


def test_whole_refits_take_the_weights_of_the_copied_rows() -> None:
    model = TransformedTargetRegressor(LinearRegression()).fit(X, TARGETS, sample_weight=WEIGHTS)
    given = {"X_labeled": X, "y_labeled": TARGETS, "fit_params": {"sample_weight": WEIGHTS}}
    strategy = LogDetQuery(random_state=3)
    seed = stream_seed(3, DRAWS)
    models = refits_by_hand(model, X, TARGETS, WEIGHTS, seed, copies=True)
    expected = strategy.query(models, POOL, 5).tolist()
    assert strategy.query(model, POOL, 5, **given).tolist() == expected
    assert expected != strategy.query(model, POOL, 5, **(given | {"fit_params": None})).tolist()


@pytest.mark.parametrize(
    "strategy",
    [
        FilteredQuery(MarginQuery(), ICALQuery(random_state=0)),
        StochasticQuery(BALDQuery(random_state=0), random_state=0),
    ],
    ids=["filtered", "stochastic"],
)
def test_composite_strategies_pass_them_on(strategy: Any) -> None:
    given = {"X_labeled": X, "y_labeled": Y}
    fitted = BootstrapSampler(GaussianNB()).fit(X, Y, sample_weight=WEIGHTS)
    expected = strategy.query(fitted, POOL, 5).tolist()
    found = strategy.query(MODEL, POOL, 5, fit_params={"sample_weight": WEIGHTS}, **given)
    assert found.tolist() == expected != strategy.query(MODEL, POOL, 5, **given).tolist()


def test_every_method_multiplies_or_takes_the_weights() -> None:
    for method in ("weights", "bayesian", "copies"):
        sampler = BootstrapSampler(GaussianNB(), method=method, n_draws=2)
        model = sampler.fit(X, Y, sample_weight=WEIGHTS).draw(random_state=0).members.models[1]
        by_hand = GaussianNB()
        if method == "bayesian":
            generator = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(1,)))
            by_hand.fit(X, Y, generator.dirichlet(np.ones(40)) * 40 * WEIGHTS)
        else:
            rows = resample_by_hand(0, 1, Y)
            by_hand.fit(X[rows], Y[rows], WEIGHTS[rows])
        np.testing.assert_allclose(model.predict_proba(POOL), by_hand.predict_proba(POOL))


# Loops.


@pytest.mark.parametrize("compared", [False, True])
def test_loops_slice_them_by_position(compared: bool) -> None:
    given: dict[str, Any] = {
        "initial": np.arange(20, 30), "batch_size": 4, "n_rounds": 2, "cv": 2,
        "scoring": "accuracy",
    }  # fmt: skip

    def run(params: Any) -> Any:
        if compared:
            found = compare_strategies(
                GaussianNB(), X, Y, {"bald": STRATEGY}, seeds=[7], fit_params=params, **given
            )
            return found.results["bald"][7]
        return simulate(GaussianNB(), X, Y, STRATEGY, random_state=7, fit_params=params, **given)

    params = {"sample_weight": WEIGHTS.tolist()}
    result, labeled = run(params), list(range(20, 30))
    for r in (1, 2):
        pool = np.setdiff1d(np.arange(40), labeled)
        sampler = BootstrapSampler(GaussianNB())
        sampler.fit(X[labeled], Y[labeled], sample_weight=WEIGHTS[labeled])
        picks = pool[seeded(STRATEGY, stream_seed(7, r)).query(sampler, X[pool], 4)]
        assert list(result.rounds[r].positions) == picks.tolist()
        labeled += picks.tolist()
    assert [one.positions for one in run(None).rounds] != [one.positions for one in result.rounds]


def test_cross_validation_gets_those_of_its_rows() -> None:
    splitter = KFold(4, shuffle=True, random_state=0)
    given = {"initial": np.arange(40), "n_rounds": 0, "cv": splitter, "scoring": "accuracy"}
    params = {"sample_weight": WEIGHTS}
    found = simulate(GaussianNB(), X, Y, "random", fit_params=params, random_state=0, **given)
    scores = cross_validate(GaussianNB(), X, Y, cv=splitter, scoring="accuracy", params=params)
    assert found.scores["accuracy"][0] == pytest.approx(scores["test_score"].mean())


def test_they_belong_to_the_identity_of_a_checkpoint(tmp_path: Path) -> None:
    given = {"n_rounds": 1, "random_state": 0, "checkpoint": tmp_path / "run"}
    simulate(GaussianNB(), X, Y, "random", fit_params={"sample_weight": WEIGHTS}, **given)
    simulate(GaussianNB(), X, Y, "random", fit_params={"sample_weight": WEIGHTS}, **given)
    with pytest.raises(CheckpointError, match=r"fit_params\.sample_weight"):
        simulate(GaussianNB(), X, Y, "random", fit_params={"sample_weight": 2 * WEIGHTS}, **given)
    with pytest.raises(CheckpointError, match="fit_params"):
        simulate(GaussianNB(), X, Y, "random", **given)


class OwnQuery(BaseEstimator):
    """A strategy whose `query` knows no `fit_params`."""

    def query_tags(self) -> QueryTags:
        return QueryTags()

    def query(
        self, model: Any, X_pool: Any, n: int = 1, *, X_labeled: Any = None, y_labeled: Any = None
    ) -> np.ndarray:
        return np.arange(n)


def test_strategies_without_the_argument_still_run() -> None:
    params = {"sample_weight": WEIGHTS}
    result = simulate(GaussianNB(), X, Y, OwnQuery(), n_rounds=1, fit_params=params, random_state=0)
    assert result.n_labeled.tolist() == [10, 11]
    learner = ActiveLearner(GaussianNB(), OwnQuery()).fit(X, Y, sample_weight=WEIGHTS)
    assert learner.query(POOL, 2).tolist() == [0, 1]


class OwnSampler(BaseSampler):
    """A sampler whose `with_labeled` takes labeled rows only."""

    def with_labeled(self, X_labeled: Any, y_labeled: Any) -> Any:  # type: ignore[override]
        return BootstrapSampler(GaussianNB()).with_labeled(X_labeled, y_labeled)

    def draw(self, n_draws: Any = None, random_state: Any = None) -> Any:
        raise AssertionError("has no labeled rows")


def test_samplers_without_the_argument_run_as_long_as_there_are_none() -> None:
    assert query(OwnSampler(), {}) == picks_by_hand(weighted=False)
    with pytest.raises(
        UnsupportedModelError, match=r"fit_params need.*\['sample_weight'\] for Own"
    ):
        query(OwnSampler(), {"sample_weight": WEIGHTS})


def test_groups_of_a_search_are_for_its_splitter() -> None:
    search = GridSearchCV(GaussianNB(), GRID, cv=GroupKFold(2))
    given = {"sample_weight": WEIGHTS, "groups": (np.arange(40) % 4).tolist()}
    learner = ActiveLearner(search, STRATEGY).fit(X, Y, **given)
    assert learner.query(POOL, 5).tolist() == picks_by_hand(weighted=True)
    pipeline = make_pipeline(StandardScaler(), search)
    learner = ActiveLearner(pipeline, STRATEGY)
    learner.fit(X, Y, **{f"gridsearchcv__{name}": value for name, value in given.items()})
    assert learner.query(POOL, 5).tolist() == picks_by_hand(weighted=True, scaled=1)


def test_arguments_of_a_partial_fit_alone_reach_no_refit() -> None:
    learner = ActiveLearner(GaussianNB(), STRATEGY).fit(X[:30], Y[:30], sample_weight=WEIGHTS[:30])
    rest = {"sample_weight": WEIGHTS[30:], "classes": [0, 1], "partial_fit": True}
    learner.teach(X[30:], Y[30:], **rest)
    assert learner.query(POOL, 5).tolist() == picks_by_hand(weighted=True)


# Routing.


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("wrap", ["pipeline", "search", "nested", "search of a pipeline"])
def test_routing_leads_to_the_refits(wrap: str) -> None:
    naive = (
        GaussianNB().set_fit_request(sample_weight="trust").set_score_request(sample_weight=False)
    )
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    model: Any = {
        "pipeline": make_pipeline(scaler, naive),
        "search": GridSearchCV(naive, GRID, cv=2),
        "nested": make_pipeline(scaler, GridSearchCV(naive, GRID, cv=2)),
        "search of a pipeline": GridSearchCV(
            make_pipeline(scaler, naive),
            {"gaussiannb__var_smoothing": [1e-9]},
            cv=2,
            scoring="accuracy",
        ),
    }[wrap]
    model = model.fit(X, Y, trust=WEIGHTS)
    expected = picks_by_hand(weighted=True, scaled=int(wrap != "search"))
    assert query(model, {"trust": WEIGHTS}) == expected
    learner = ActiveLearner(model, STRATEGY).fit(X, Y, trust=WEIGHTS)
    assert learner.query(POOL, 5).tolist() == STRATEGY.query(learner, POOL, 5).tolist() == expected
    with pytest.raises((TypeError, ValueError), match="sample_weight"):
        query(model, {"sample_weight": WEIGHTS})


@pytest.mark.usefixtures("routing")
def test_routing_reaches_other_processes() -> None:
    naive = GaussianNB().set_fit_request(sample_weight="trust")
    model = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), naive)
    values = []
    for n_jobs in (None, 2):
        sampler = BootstrapSampler(model, n_draws=2, n_jobs=n_jobs).fit(X, Y, trust=WEIGHTS)
        values.append(sampler.sample(POOL, random_state=0).values)
    np.testing.assert_array_equal(*values)
    given = {"fit_params": {"trust": WEIGHTS}, "seeds": 2, "n_rounds": 1, "cv": 2}
    compared = compare_strategies(model, X, Y, ["random"], n_jobs=2, **given)
    assert not compared.failures


@pytest.mark.usefixtures("routing")
def test_a_learner_routes_to_the_refits_of_its_own_model() -> None:
    naive = GaussianNB().set_fit_request(sample_weight="trust")
    learner = ActiveLearner(naive, STRATEGY).fit(X, Y, trust=WEIGHTS)
    assert learner.query(POOL, 5).tolist() == picks_by_hand(weighted=True)


# What is refused before any work.

WRONG = {
    "length": (WEIGHTS[:7], r"sample_weight must have one entry for each of the 40 rows.*\(7,\)"),
    "number": (2.0, r"sample_weight must have one entry for each of the 40 rows.*shape \(\)"),
    "NaN": (
        np.full(40, np.nan),
        r"sample_weight must hold finite numbers >= 0\. Got nan for row 0",
    ),
    "negative": ([1.0] * 39 + [-1], r"sample_weight must hold .* Got -1\.0 for row 39"),
    "text": (["heavy"] * 40, "sample_weight must be numbers"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_weights_are_named_before_any_work(wrong: str) -> None:
    weights, message = WRONG[wrong]
    test = {"X_test": X, "y_test": Y, "n_rounds": 1}
    doors: list[Callable[[], Any]] = [
        lambda: query(MODEL, {"sample_weight": weights}),
        lambda: BootstrapSampler(GaussianNB()).fit(X, Y, sample_weight=weights),
        lambda: ActiveLearner(GaussianNB(), STRATEGY).fit(X, Y, sample_weight=weights),
        lambda: taught().teach(X, Y, sample_weight=weights),
        lambda: simulate(
            GaussianNB(), X, Y, "bald", fit_params={"sample_weight": weights}, n_rounds=1
        ),
        lambda: compare_strategies(
            GaussianNB(), X, Y, ["bald"], fit_params={"sample_weight": weights}, **test
        ),
        lambda: query(SCALED, {"gaussiannb__sample_weight": weights}),
    ]
    taught()
    for k, door in enumerate(doors):
        error = AssertionError("a model was fitted")
        fit = GaussianNB.fit if k == 3 else None
        with (
            patch.object(GaussianNB, "fit", autospec=True, side_effect=fit or error),
            pytest.raises((TypeError, ValueError), match=message),
        ):
            door()


@pytest.mark.parametrize(
    ("model", "name", "message"),
    [
        (
            KNeighborsClassifier(),
            "sample_weight",
            "which fit of KNeighborsClassifier does not take",
        ),
        (
            make_pipeline(StandardScaler(), KNeighborsClassifier()),
            "kneighborsclassifier__sample_weight",
            "Got 'sample_weight'.*which fit of KNeighborsClassifier",
        ),
        (
            make_pipeline(StandardScaler(), GaussianNB()),
            "sample_weight",
            "form step__name.*Got 'sample_weight'.*pass gaussiannb__sample_weight",
        ),
        (GridSearchCV(KNeighborsClassifier(), {}), "sample_weight", "fit of KNeighborsClassifier"),
    ],
)
def test_arguments_that_no_fit_takes_are_named_before_any_work(
    model: Any, name: str, message: str
) -> None:
    params = {name: WEIGHTS}
    with pytest.raises((TypeError, ValueError), match=message):
        simulate(model, X, Y, "bald", fit_params=params, n_rounds=1)
    fitted = clone(model).fit(X, Y)
    with pytest.raises((TypeError, ValueError), match=message):
        query(fitted, params)


def test_anything_but_a_dict_is_refused() -> None:
    with pytest.raises(TypeError, match=r"fit_params must be a dict.*Got 3 in simulate"):
        simulate(GaussianNB(), X, Y, "bald", fit_params=3, n_rounds=1)  # type: ignore[arg-type]


def test_they_are_ignored_where_nothing_is_refitted() -> None:
    given = {"X_labeled": X, "y_labeled": Y, "fit_params": {"sample_weight": WEIGHTS}}
    for model in ([MODEL, SCALED], MODEL):
        for strategy in (MarginQuery(), RandomQuery(random_state=0)):
            picks = strategy.query(model, POOL, 5).tolist()
            assert strategy.query(model, POOL, 5, **given).tolist() == picks


# What belongs to rows.


def containers() -> dict[str, Any]:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    torch = pytest.importorskip("torch")
    values = np.arange(6.0)
    return {
        "array": values,
        "matrix": values.reshape(6, 1),
        "series": pandas.Series(values, index=list("aabbcc")),
        "frame": pandas.DataFrame({"a": values}),
        "polars_series": polars.Series(values),
        "polars_frame": polars.DataFrame({"a": values}),
        "sparse": sparse.coo_array(values.reshape(6, 1)),
        "tensor": torch.arange(6),
        "sample_weight": values.tolist(),
        "last__sample_weight": tuple(values.tolist()),
        "groups": list("aabbcc"),
    }


def test_arrays_and_sample_parameters_are_those_of_the_rows() -> None:
    given = containers()
    taken = check_fit_params(given, np.zeros((6, 2)), "f").take(np.array([5, 0, 0]))
    for name, value in taken.items():
        if name == "groups":
            assert value == ["c", "a", "a"]
            continue
        plain = value.toarray() if sparse.issparse(value) else value
        np.testing.assert_array_equal(np.asarray(plain).ravel(), [5, 0, 0])
        assert name == "sparse" or type(value) is type(given[name]) or name.startswith("last")


def test_all_else_is_passed_as_it_is() -> None:
    given = {
        "cat_features": [0, 1, 2, 3, 4, 5],
        "eval_set": [(np.zeros((6, 2)), np.zeros(6))],
        "name": "sixsix",
        "verbose": False,
        "shorter": np.zeros(5),
        "number": np.float64(6),
        "classes": np.arange(6),
        "table": {"a": 1},
        "call": len,
    }
    params = check_fit_params({**given, "nothing": None}, np.zeros((6, 2)), "f")
    assert not params.aligned
    taken = params.take(np.array([1]))
    assert taken.keys() == given.keys()
    for name, value in given.items():
        if isinstance(value, np.ndarray):  # which a model may change in place
            assert taken[name] is not value
            np.testing.assert_array_equal(taken[name], value)
        else:
            assert taken[name] is value


def test_what_belongs_to_rows_still_does_after_rows_were_taken() -> None:
    params = FitParams({"a": np.arange(6), "b": np.arange(3)}, {"a"}).take(slice(0, 3))
    again = check_fit_params(params, np.zeros((3, 1)), "f")
    assert again.aligned >= {"a"}
    with pytest.raises(ValueError, match=re.escape("a must have one entry for each of the 4 rows")):
        check_fit_params(params, np.zeros((4, 1)), "f")


def test_nothing_has_weights_unless_given() -> None:
    assert get_sampler(taught()).fit_params_.keys() == {"sample_weight"}
    assert BootstrapSampler(GaussianNB()).fit(X, Y).fit_params_ == {}


def test_refits_of_a_net_get_the_arguments_of_its_forward_pass() -> None:
    torch, skorch = pytest.importorskip("torch"), pytest.importorskip("skorch")

    class Net(torch.nn.Linear):  # type: ignore[misc, name-defined]
        def forward(self, X: Any, scale: float = 1.0) -> Any:
            return scale * super().forward(X)

    net = skorch.NeuralNetClassifier(
        Net, module__in_features=3, module__out_features=2, max_epochs=3, lr=1.0, verbose=0,
        train_split=None, criterion=torch.nn.CrossEntropyLoss,
    )  # fmt: skip
    rows = X.astype(np.float32)
    given = [
        BootstrapSampler(net, n_draws=2).fit(rows, Y, **params).sample(rows, random_state=0)
        for params in ({}, {"scale": 1.0}, {"scale": 0.0})
    ]
    values = [samples.values for samples in given]
    np.testing.assert_array_equal(values[0], values[1])
    # With a scale of 0, no gradient moves the weights from where they started.
    assert np.abs(values[2] - values[0]).max() > 0.1
