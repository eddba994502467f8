"""BootstrapSampler: its resamples, what it fits on them, and what it refuses before any fit."""

import pickle
import warnings
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sklearn_ical import BALDQuery, MarginQuery
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, Draws, get_sampler

WORDS = np.array(["b", "a", "c"])


def rows(n: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 4))


def codes(X: np.ndarray) -> np.ndarray:
    return np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.6, 0.6])


X, POOL = rows(), rows(25, seed=3)
CODES = codes(X)
Y = WORDS[CODES]
TARGETS = X[:, 0] + X[:, 1] ** 2


class Spy(ClassifierMixin, BaseEstimator):
    """Keeps what it was fitted on; certain of the first class."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Spy":
        self.X_, self.y_, self.weights_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.tile(np.eye(len(self.classes_))[0], (len(X), 1))

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.classes_[0])


class RowSpy(Spy):
    """A spy whose `fit` takes no weights."""

    def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]
        return Spy.fit(self, X, y)


class ValueSpy(RegressorMixin, BaseEstimator):
    """A spy that is a regressor."""

    fit = Spy.fit

    def predict(self, X: Any) -> np.ndarray:
        return np.zeros(len(X))


class RowValueSpy(ValueSpy):
    fit = RowSpy.fit


def fits_of(spy: Any, X: Any, y: Any, n_draws: int = 6, seed: int = 0, **options: Any) -> list[Any]:
    """Return the clones of a spy."""
    sampler = BootstrapSampler(spy, n_draws=n_draws, **options).fit(X, y)
    return sampler.draw(random_state=seed).members.models


def resample_by_hand(seed: int, k: int, y: Any, n_seeds: int = 0) -> np.ndarray:
    """Return the rows that draw k was fitted on: for each row one of its class, by class."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,)))
    for _ in range(n_seeds):
        generator.integers(2**31)
    y = np.zeros(len(y)) if np.asarray(y).dtype.kind == "f" else np.asarray(y)
    uniforms = iter(generator.random(len(y)))
    found = np.empty(len(y), dtype=int)
    for label in sorted(set(y.tolist())):
        places = np.flatnonzero(y == label)
        found[places] = [places[int(next(uniforms) * len(places))] for _ in places]
    return found


@pytest.mark.parametrize(
    ("spy", "y", "method"),
    [
        (RowSpy(), Y, "auto"),
        (RowSpy(), Y, "copies"),
        (Spy(), Y, "copies"),
        (RowValueSpy(), TARGETS, "auto"),
        (ValueSpy(), TARGETS, "copies"),
    ],
)
def test_copies_are_the_rows_of_the_documented_stream(spy: Any, y: Any, method: str) -> None:
    for seed in (0, 7):
        for k, model in enumerate(fits_of(spy, X, y, seed=seed, method=method)):
            found = resample_by_hand(seed, k, y)
            np.testing.assert_array_equal(model.X_, X[found])
            np.testing.assert_array_equal(model.y_, y[found])
            assert model.weights_ is None


@pytest.mark.parametrize(("spy", "y"), [(Spy(), Y), (ValueSpy(), TARGETS)])
@pytest.mark.parametrize("method", ["auto", "weights"])
def test_weights_count_the_same_rows_and_move_none(spy: Any, y: Any, method: str) -> None:
    for k, model in enumerate(fits_of(spy, X, y, method=method)):
        np.testing.assert_array_equal(model.X_, X)
        np.testing.assert_array_equal(model.y_, y)
        expected = np.bincount(resample_by_hand(0, k, y), minlength=60)
        np.testing.assert_array_equal(model.weights_, expected)


@pytest.mark.parametrize("method", ["weights", "copies"])
def test_every_class_keeps_its_number_of_rows(method: str) -> None:
    y = np.array(["common"] * 40 + ["rare"] + ["some"] * 19)
    for model in fits_of(Spy(), X, y, 20, method=method):
        counts = np.ones(60) if model.weights_ is None else model.weights_
        totals = {label: counts[model.y_ == label].sum() for label in np.unique(y)}
        assert totals == {"common": 40, "rare": 1, "some": 19}
    drawn = np.concatenate([m.weights_[:40] for m in fits_of(Spy(), X, y, 50, method="weights")])
    # Each of 40 rows is drawn Binomial(40, 1/40) times.
    assert abs((drawn == 0).mean() - (1 - 1 / 40) ** 40) < 0.03
    assert abs(drawn.var() - (1 - 1 / 40)) < 0.1


def test_bayesian_weights_are_flat_dirichlet() -> None:
    weights = np.array([m.weights_ for m in fits_of(Spy(), X, Y, 400, method="bayesian")])
    assert (weights > 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 60, rtol=1e-12)
    # Of 60 times Dirichlet(1, ..., 1): mean 1, variance (n - 1) / (n + 1), covariance with the
    # others -1 / (n + 1), and P(w > t) = (1 - t / n)^(n - 1).
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.25)
    assert abs(weights.var() - 59 / 61) < 0.05
    assert abs((weights > 2).mean() - (1 - 2 / 60) ** 59) < 0.01
    half = weights[:, :30].sum(axis=1)
    assert abs(half.var() - (30 * 59 / 61 - 30 * 29 / 61)) < 3
    for k in (0, 3):
        generator = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(k,)))
        np.testing.assert_allclose(weights[k], 60 * generator.dirichlet(np.ones(60)), rtol=1e-12)


def nothing_is_fitted() -> Any:
    return no_fit(GaussianNB)


def no_fit(model_class: type) -> Any:
    """Let the `fit` of a class fail, with the signature that it has."""
    error = AssertionError("a model was fitted")
    return patch.object(model_class, "fit", autospec=True, side_effect=error)


MODELS = [
    (KNeighborsClassifier(3), Y, "copies", 0),
    (LinearSVC(), Y, "weights", 1),
    (DecisionTreeClassifier(), Y, "copies", 1),
    (GaussianNB(), Y, "weights", 0),
    (LogisticRegression(), Y, "weights", 1),
    (make_pipeline(StandardScaler(), GaussianNB()), Y, "copies", 0),
    (Ridge(), TARGETS, "weights", 1),
    (KNeighborsRegressor(3), TARGETS, "copies", 0),
    (DecisionTreeRegressor(max_depth=3), TARGETS, "weights", 1),
    (LinearRegression(), np.column_stack([TARGETS, X[:, 2]]), "copies", 0),
]


@pytest.mark.parametrize(("model", "y", "method", "n_seeds"), MODELS)
def test_clones_equal_those_fitted_by_hand(model: Any, y: Any, method: str, n_seeds: int) -> None:
    samples = BootstrapSampler(model, method=method).fit(X, y).sample(POOL, n_draws=4)
    samples = (
        BootstrapSampler(model, method=method).fit(X, y).sample(POOL, n_draws=4, random_state=5)
    )
    for k in range(4):
        found = resample_by_hand(5, k, y, n_seeds)
        by_hand = clone(model)
        if n_seeds:
            generator = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(k,)))
            by_hand.set_params(random_state=int(generator.integers(2**31)))
        if method == "copies":
            by_hand.fit(X[found], y[found])
        else:
            by_hand.fit(X, y, sample_weight=np.bincount(found, minlength=60))
        if samples.kind == "value":
            expected = by_hand.predict(POOL)
        elif samples.kind == "proba":
            expected = by_hand.predict_proba(POOL)
        else:
            expected = np.searchsorted(np.unique(Y), by_hand.predict(POOL))
        np.testing.assert_array_equal(samples.values[:, k], expected)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (GaussianNB(), Y),
        (MultinomialNB(), Y),
        (LogisticRegression(tol=1e-10, max_iter=10_000), Y),
        (Ridge(), TARGETS),
        (LinearRegression(), TARGETS),
    ],
)
def test_a_weight_of_two_is_a_row_twice(model: Any, y: Any) -> None:
    samples = []
    for method in ("weights", "copies"):
        sampler = BootstrapSampler(model, method=method, n_draws=5).fit(np.abs(X), y)
        samples.append(sampler.sample(np.abs(POOL), random_state=0))
    np.testing.assert_allclose(samples[0].values, samples[1].values, rtol=0, atol=1e-6)
    assert not np.allclose(samples[0].values[:, 0], samples[0].values[:, 1], rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (GaussianNB(), "weights"),
        (KNeighborsClassifier(3), "copies"),
        (GaussianNB(), "bayesian"),
        (DecisionTreeClassifier(), "auto"),
    ],
)
def test_fewer_draws_are_the_first_of_many_in_one_process_or_two(model: Any, method: str) -> None:
    sampler = BootstrapSampler(model, method=method, n_draws=12).fit(X, Y)
    many = sampler.sample(POOL, random_state=3).values
    np.testing.assert_array_equal(sampler.sample(POOL, random_state=3).values, many)
    few = sampler.sample(POOL, n_draws=5, random_state=3).values
    np.testing.assert_array_equal(few, many[:, :5])
    parallel = clone(sampler).set_params(n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(parallel.sample(POOL, random_state=3).values, many)
    assert not np.array_equal(sampler.sample(POOL, random_state=4).values, many)


def test_generators_give_other_draws_each_time() -> None:
    sampler = BootstrapSampler(GaussianNB(), n_draws=3).fit(X, Y)
    for make in (np.random.default_rng, np.random.RandomState):
        first, second = make(3), make(3)
        values = sampler.sample(POOL, random_state=first).values
        np.testing.assert_array_equal(sampler.sample(POOL, random_state=second).values, values)
        assert not np.array_equal(sampler.sample(POOL, random_state=first).values, values)
    fresh = [sampler.sample(POOL).values for _ in range(2)]
    assert not np.array_equal(*fresh)


@pytest.mark.parametrize("inner", [None, 7, np.random.RandomState(7)], ids=str)
def test_every_random_state_inside_is_seeded_by_the_draw(inner: Any) -> None:
    network = MLPClassifier(3, max_iter=3, solver="lbfgs", random_state=inner)
    members = [("net", network), ("tree", DecisionTreeClassifier(random_state=inner))]
    model = make_pipeline(StandardScaler(), VotingClassifier(members, voting="soft"))
    before = joblib.hash(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps do not converge
        draws = BootstrapSampler(model, n_draws=4).fit(X, Y).draw(random_state=0)
        again = BootstrapSampler(model, n_draws=4).fit(X, Y).draw(random_state=0)
    assert joblib.hash(model) == before
    np.testing.assert_array_equal(draws(POOL).values, again(POOL).values)
    seeds = set()
    for k, refit in enumerate(draws.members.models):
        generator = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(k,)))
        net, tree = (member.random_state for _, member in refit[-1].estimators)
        assert [net, tree] == generator.integers(2**31, size=2).tolist()
        seeds |= {net, tree}
    assert len(seeds) == 8


def test_networks_differ_by_their_first_weights_where_rows_cannot() -> None:
    network = MLPClassifier(5, max_iter=2000, solver="lbfgs")
    pipeline = make_pipeline(StandardScaler(), network)
    values = BootstrapSampler(pipeline, n_draws=3).fit(X[:3], ["a", "b", "c"]).sample(POOL).values
    assert not np.allclose(values[:, 0], values[:, 1], rtol=0, atol=1e-3)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(3, algorithm="brute")])
def test_model_rows_and_labels_are_unchanged(model: Any, n_jobs: Any) -> None:
    model = clone(model).fit(X, Y)
    before, rows_, y = joblib.hash(model), X.copy(), Y.copy()
    rows_.flags.writeable = y.flags.writeable = False
    state = joblib.hash(np.random.get_state())  # noqa: NPY002
    sampler = BootstrapSampler(model, n_draws=4, n_jobs=n_jobs)
    draws = sampler.with_labeled(rows_, y).draw(random_state=0)
    draws(POOL)
    assert not hasattr(sampler, "X_")
    assert joblib.hash(model) == before
    assert joblib.hash(np.random.get_state()) == state  # noqa: NPY002
    np.testing.assert_array_equal(rows_, X)
    np.testing.assert_array_equal(y, Y)
    assert all(refit is not model for refit in draws.members.models)


def test_single_rows_per_class_go_to_the_bayesian_bootstrap() -> None:
    for model in fits_of(Spy(), X[:3], ["a", "b", "c"]):
        assert len(set(model.weights_)) == 3
        np.testing.assert_allclose(model.weights_.sum(), 3, rtol=1e-12)
    for model in fits_of(Spy(), X[:4], ["a", "b", "c", "c"]):
        assert set(model.weights_) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("model", "y", "method", "rule"),
    [
        (KNeighborsClassifier(1), ["a", "b", "c"], "auto", "one labeled row per class .* Got 3 "),
        (KNeighborsClassifier(1), ["a"], "auto", "one labeled row there is .* Got 1 labeled row;"),
        (GaussianNB(), ["a", "b", "c"], "weights", "one labeled row per class there is nothing"),
        (GaussianNB(), ["a"], "auto", "one labeled row there is nothing to resample"),
        (GaussianNB(), ["a"], "bayesian", "one labeled row there is nothing to resample"),
        (LinearRegression(), [2.5], "auto", "one labeled row there is nothing to resample"),
        (KNeighborsRegressor(1), [2.5], "auto", "one labeled row there is nothing to resample"),
    ],
)
def test_resamples_that_would_all_be_the_same_are_refused(
    model: Any, y: Any, method: str, rule: str
) -> None:
    name = type(model).__name__
    message = f"^All refits of {name} by BootstrapSampler would be the same: with {rule}"
    sampler = BootstrapSampler(model, method=method).fit(X[: len(y)], y)
    with no_fit(type(model)), pytest.raises(UnsupportedModelError, match=message):
        sampler.draw()


class Foreign:
    """A model of no library that could be cloned."""

    def fit(self, X: Any, y: Any) -> "Foreign":
        raise AssertionError("a model was fitted")


def test_model_that_cannot_be_cloned_is_refused_before_any_fit() -> None:
    for model, name in ((Foreign(), "Foreign"), (GaussianNB, "GaussianNB")):
        message = rf"^{name} must be an estimator with fit and get_params, .* clones of it can be"
        with pytest.raises(UnsupportedModelError, match=message):
            BootstrapSampler(model).fit(X, Y)


class Fussy(Spy):
    """Raises in fit what it was told to."""

    def __init__(self, error: Any = None) -> None:
        self.error = error

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Fussy":
        raise self.error


def test_fit_that_raises_names_the_model_the_resample_and_the_way_out() -> None:
    message = (
        r"^Fussy could not be fitted on resample 0 of 60 labeled rows by "
        r"BootstrapSampler\(method='weights'\): too little data\. If fit needs more than X and y, "
        r"pass it as fit_params; if there are too few rows, label more of them; else pass a list "
        r"of models that you fitted yourself\.$"
    )
    sampler = BootstrapSampler(Fussy(ValueError("too little data.")), n_draws=2).fit(X, Y)
    with pytest.raises(UnsupportedModelError, match=message) as caught:
        sampler.draw()
    assert isinstance(caught.value.__cause__, ValueError)


def test_labeled_rows_of_other_columns_are_refused_before_any_fit() -> None:
    model = Fussy(AssertionError("fitted"))
    model.n_features_in_ = X.shape[1]
    with pytest.raises(ValueError, match=rf"X_labeled must have the {X.shape[1]} columns .* Got 1"):
        BootstrapSampler(model).fit(X[:, :1], Y)


@pytest.mark.parametrize("n_jobs", [0, 1.5])
def test_number_of_jobs_is_checked(n_jobs: Any) -> None:
    with pytest.raises(ValueError, match="'n_jobs' parameter of BootstrapSampler must be"):
        BootstrapSampler(GaussianNB(), n_jobs=n_jobs).fit(X, Y)


def test_strategy_that_cannot_use_the_model_says_so_before_any_fit() -> None:
    y = X[:, 0]
    model = Ridge().fit(X, y)
    with pytest.raises(ValueError, match=r"MarginQuery supports .* Got kind 'value'"):
        MarginQuery().query(model, X)
    sampler = BootstrapSampler(Fussy(AssertionError("fitted")), n_draws=1).fit(X, Y)
    with pytest.raises(ValueError, match="at least 2 draws"):
        BALDQuery().query(sampler, X)


def test_interrupt_passes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        BootstrapSampler(Fussy(KeyboardInterrupt()), n_draws=2).fit(X, Y).draw()


@pytest.mark.parametrize("method", ["weights", "bayesian"])
def test_weights_for_a_model_that_takes_none_are_refused(method: str) -> None:
    message = (
        rf"^method='{method}' of BootstrapSampler needs a model whose fit takes sample_weight\. "
        r"Got KNeighborsClassifier; use method='copies'\.$"
    )
    with pytest.raises(UnsupportedModelError, match=message):
        BootstrapSampler(KNeighborsClassifier(), method=method).fit(X, Y).draw()


def test_model_with_another_inside_gets_copies() -> None:
    weighed = VotingClassifier([("spy", GaussianNB())])  # its fit has a sample_weight
    with patch.object(GaussianNB, "fit", autospec=True, side_effect=GaussianNB.fit) as fit:
        BootstrapSampler(weighed, n_draws=2).fit(X, Y).draw()
    assert [call.kwargs.get("sample_weight") for call in fit.call_args_list] == [None, None]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_draws": 0}, ValueError, r"'n_draws' parameter of BootstrapSampler must be an int"),
        (
            {"n_draws": True},
            TypeError,
            r"'n_draws' parameter of BootstrapSampler must not be a bool",
        ),
        ({"method": "jackknife"}, ValueError, r"'method' parameter .* Got 'jackknife' instead"),
        ({"n_jobs": 1.5}, ValueError, r"'n_jobs' parameter of BootstrapSampler"),
    ],
)
def test_wrong_parameters_are_refused_before_any_fit(
    options: dict[str, Any], error: Any, message: str
) -> None:
    sampler = BootstrapSampler(GaussianNB(), **options)
    with nothing_is_fitted():
        with pytest.raises(error, match=message):
            sampler.fit(X, Y)
        with pytest.raises(error, match=message):
            sampler.draw()


@pytest.mark.parametrize("n_draws", [0, -1, True, 2.0])
def test_wrong_numbers_of_draws_are_refused_before_any_fit(n_draws: Any) -> None:
    sampler = BootstrapSampler(GaussianNB()).fit(X, Y)
    with nothing_is_fitted(), pytest.raises((TypeError, ValueError), match=r"n_draws must be an"):
        sampler.draw(n_draws)


def test_parameters_are_those_of_an_estimator() -> None:
    sampler = BootstrapSampler(GaussianNB(), n_draws=7, method="copies", n_jobs=2)
    assert repr(sampler) == (
        "BootstrapSampler(estimator=GaussianNB(), method='copies', n_draws=7, n_jobs=2)"
    )
    copy = clone(sampler)
    assert copy.get_params(deep=False).keys() == {"estimator", "method", "n_draws", "n_jobs"}
    assert copy.set_params(estimator__var_smoothing=0.5).estimator.var_smoothing == 0.5
    assert sampler.estimator.var_smoothing != 0.5
    assert not hasattr(clone(sampler.fit(X, Y)), "X_")
    assert (sampler.cost, BootstrapSampler(GaussianNB()).cost) == ("7 fits", "50 fits")


def test_sampler_and_draws_pickle() -> None:
    sampler = BootstrapSampler(GaussianNB(), n_draws=3).fit(X, Y)
    draws = sampler.draw(random_state=0)
    assert isinstance(draws, Draws)
    assert (draws.n_draws, draws.kind, draws.weights, draws.joint) == (3, "proba", None, False)
    assert draws.mean_differs == "each draw is a refit on a resample of the labeled rows"
    other = pickle.loads(pickle.dumps(sampler)).draw(random_state=0)
    for copy in (pickle.loads(pickle.dumps(draws)), other):
        np.testing.assert_array_equal(copy(POOL).values, draws(POOL).values)


def test_labeled_rows_of_a_call_win_over_those_of_the_sampler() -> None:
    sampler = BootstrapSampler(GaussianNB(), n_draws=3).fit(X, Y)
    later = sampler.with_labeled(X[:40], Y[:40])
    expected = BootstrapSampler(GaussianNB(), n_draws=3).fit(X[:40], Y[:40])
    values = later.sample(POOL, random_state=0).values
    np.testing.assert_array_equal(values, expected.sample(POOL, random_state=0).values)
    assert sampler.X_ is X
    assert later.X_.shape == (40, 4)


def test_spread_of_refits_is_that_of_least_squares() -> None:
    """The bootstrap of a mean has the variance of the labels over their number."""
    y = np.random.default_rng(0).normal(size=200)
    ones = np.ones((200, 1))
    for method, n in (("weights", 200), ("bayesian", 201), ("copies", 200)):
        sampler = BootstrapSampler(LinearRegression(fit_intercept=False), method=method)
        means = sampler.fit(ones, y).sample(ones[:1], n_draws=400, random_state=0).values[0]
        np.testing.assert_allclose(means.mean(), y.mean(), atol=4 * y.std() / 200)
        np.testing.assert_allclose(means.var(), y.var() / n, rtol=0.25)


def test_sampler_of_a_model_is_its_bootstrap_with_default_parameters() -> None:
    model = GaussianNB().fit(X, Y)
    assert get_sampler(model).get_params(deep=False) == {
        **BootstrapSampler(model).get_params(deep=False),
        "n_draws": 50,
        "method": "auto",
    }
