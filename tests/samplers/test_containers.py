"""Transformed targets, frozen models, thresholds, self-training and searches around a model."""

import pickle
from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC

from sklearn_ical import BALDQuery, PredictionSamples
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, Draws, EnsembleSampler, get_sampler
from sklearn_ical.samplers._base import evaluate_in_chunks, evaluate_together
from sklearn_ical.samplers._containers import TargetSampler
from sklearn_ical.samplers._precomputed import SamplesSampler

SEARCHES = (GridSearchCV, RandomizedSearchCV)


def rows(n: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 4))


def labels(X: np.ndarray) -> np.ndarray:
    return np.array(["no", "yes"], dtype=object)[(X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)]


def partly_labeled(model: Any, X: np.ndarray) -> np.ndarray:
    """Return labels as the model's own fit wants them."""
    y = labels(X)
    if isinstance(model, SelfTrainingClassifier):
        y[::9] = -1
    return y


POOL = rows(25, seed=3)


def transformed(model: Any, n_targets: int = 1, **options: Any) -> TransformedTargetRegressor:
    X = rows()
    y = np.exp(X[:, :n_targets] + 0.1 * X[:, 2:3])
    target = y[:, 0] if n_targets == 1 else y
    return TransformedTargetRegressor(model, **options).fit(X, target)


def forest() -> RandomForestRegressor:
    return RandomForestRegressor(6, min_samples_leaf=2, random_state=0)


def test_trees_behind_a_logarithm_give_exponentials() -> None:
    model = transformed(forest(), func=np.log, inverse_func=np.exp)
    sampler = get_sampler(model)
    assert isinstance(sampler, TargetSampler)
    assert sampler.source == EnsembleSampler(model.regressor_).source
    samples = sampler.sample(POOL)
    assert (samples.kind, samples.values.shape) == ("value", (25, 6))
    for k, tree in enumerate(model.regressor_.estimators_):
        np.testing.assert_allclose(samples.values[:, k], np.exp(tree.predict(POOL)), rtol=1e-12)
    geometric = np.exp(np.log(samples.values).mean(axis=1))
    np.testing.assert_allclose(geometric, model.predict(POOL), rtol=1e-12)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_trees_behind_a_scaler_average_to_the_prediction(n_targets: int) -> None:
    model = transformed(forest(), n_targets, transformer=StandardScaler())
    samples = get_sampler(model).sample(POOL)
    scaler = model.transformer_
    for k, tree in enumerate(model.regressor_.estimators_):
        expected = tree.predict(POOL).reshape(25, -1) * scaler.scale_ + scaler.mean_
        got = samples.values[:, k].reshape(25, -1)
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert samples.values.shape == ((25, 6) if n_targets == 1 else (25, 6, 2))
    np.testing.assert_allclose(samples.mean(), model.predict(POOL), rtol=1e-12)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_trees_behind_quantiles_stay_in_the_range_of_the_targets(n_targets: int) -> None:
    model = transformed(forest(), n_targets, transformer=QuantileTransformer(n_quantiles=30))
    samples = get_sampler(model).sample(POOL)
    for k, tree in enumerate(model.regressor_.estimators_):
        inner = tree.predict(POOL).reshape(25, n_targets)
        expected = model.transformer_.inverse_transform(inner)
        got = samples.values[:, k].reshape(25, n_targets)
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert (samples.values > 0).all()


def test_identity_without_a_transformer_changes_nothing() -> None:
    model = transformed(forest())
    values = get_sampler(model).sample(POOL).values
    np.testing.assert_array_equal(values, get_sampler(model.regressor_).sample(POOL).values)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_refits_of_a_transformed_target_are_in_its_units(n_targets: int) -> None:
    model = transformed(Ridge(), n_targets, func=np.log, inverse_func=np.exp)
    y = np.exp(rows()[:, :n_targets])
    sampler = get_sampler(model)
    assert isinstance(sampler, BootstrapSampler)
    assert sampler.estimator is model
    draws = sampler.with_labeled(rows(), y[:, 0] if n_targets == 1 else y).draw(4, 0)
    values = draws(POOL).values
    for k, refit in enumerate(draws.members.models):
        np.testing.assert_array_equal(values[:, k], refit.predict(POOL))
    assert values.shape == ((25, 4) if n_targets == 1 else (25, 4, 2))
    assert (values > 0).all()


class Noisy:
    """A regressor whose draws have a noise variance: two planes for each target."""

    def __init__(self, noise: Any, n_targets: int = 1, joint: bool = False) -> None:
        self.noise, self.n_targets, self.joint = noise, n_targets, joint

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"noise": self.noise, "n_targets": self.n_targets, "joint": self.joint}

    def fit(self, X: Any, y: Any) -> "Noisy":
        return self

    def predict(self, X: Any) -> np.ndarray:
        return X[:, : self.n_targets].squeeze(axis=1) if self.n_targets == 1 else X[:, :2]

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> Any:
        return NoisyDraws(self)


class NoisyDraws:
    kind = "value"
    classes = None
    n_draws = 2
    weights = np.array([0.25, 0.75])

    def __init__(self, model: Noisy) -> None:
        self.model = model
        self.joint = model.joint
        self.calls: list[int] = []

    def __call__(self, X: Any) -> PredictionSamples:
        self.calls.append(len(X))
        values = np.stack([X[:, : self.model.n_targets], -X[:, : self.model.n_targets]], axis=1)
        values = values[:, :, 0] if self.model.n_targets == 1 else values
        noise = self.model.noise(X) if callable(self.model.noise) else self.model.noise
        return PredictionSamples(values, "value", weights=self.weights, noise_variance=noise)

    def chunks(self, X: Any, n_rows: int) -> Iterator[PredictionSamples]:
        self.calls.append(-len(X))
        for start in range(0, len(X), n_rows):
            yield self(X[start : start + n_rows])

    def together(self, X: Any, X_reference: Any) -> tuple[PredictionSamples, PredictionSamples]:
        return self(X), self(X_reference)


def by_point(X: np.ndarray) -> np.ndarray:
    return X[:, 3] ** 2


def by_draw(X: np.ndarray) -> np.ndarray:
    return np.stack([X[:, 3] ** 2, X[:, 2] ** 2], axis=1)


@pytest.mark.parametrize("noise", [0.25, by_point, by_draw, None])
def test_noise_of_the_regressor_is_scaled_with_a_linear_transformation(noise: Any) -> None:
    model = transformed(Noisy(noise), transformer=StandardScaler())
    samples = get_sampler(model).sample(POOL)
    np.testing.assert_array_equal(samples.weights, [0.25, 0.75])
    scale, mean = model.transformer_.scale_[0], model.transformer_.mean_[0]
    expected = np.stack([POOL[:, 0], -POOL[:, 0]], axis=1) * scale + mean
    np.testing.assert_allclose(samples.values, expected, rtol=1e-12)
    if noise is None:
        assert samples.noise_variance is None
        return
    inner = noise(POOL) if callable(noise) else noise
    inner = inner[:, None] if np.ndim(inner) == 1 else inner
    expected = np.broadcast_to(inner * scale**2, (25, 2))
    np.testing.assert_allclose(samples.noise_variance, expected, rtol=1e-9)


def test_noise_behind_a_logarithm_is_that_of_one_deviation_up_and_down() -> None:
    model = transformed(Noisy(0.04), func=np.log, inverse_func=np.exp)
    noise = get_sampler(model).sample(POOL).noise_variance
    inner = np.stack([POOL[:, 0], -POOL[:, 0]], axis=1)
    np.testing.assert_allclose(noise, (np.exp(inner) * np.sinh(0.2)) ** 2, rtol=1e-9)


def test_noise_that_differs_between_targets_is_left_out() -> None:
    model = transformed(Noisy(0.25, 2), 2, transformer=StandardScaler())
    samples = get_sampler(model).sample(POOL)
    assert samples.values.shape == (25, 2, 2)
    assert samples.noise_variance is None
    model = transformed(Noisy(0.25, 2), 2, func=lambda y: y / 3, inverse_func=lambda y: y * 3)
    noise = get_sampler(model).sample(POOL).noise_variance
    np.testing.assert_allclose(noise, np.full((25, 2), 2.25), rtol=1e-12)


def test_chunks_are_those_of_the_regressor() -> None:
    draws = get_sampler(transformed(Noisy(0.25), transformer=StandardScaler())).draw()
    whole = draws(POOL)
    draws.inner.calls.clear()
    parts = list(evaluate_in_chunks(draws, POOL, 10))
    assert draws.inner.calls == [-25, 10, 10, 5]
    np.testing.assert_array_equal(np.concatenate([part.values for part in parts]), whole.values)
    noise = np.concatenate([part.noise_variance for part in parts])
    np.testing.assert_array_equal(noise, whole.noise_variance)


def test_joint_draws_stay_joint() -> None:
    draws = get_sampler(transformed(Noisy(0.25, joint=True), transformer=StandardScaler())).draw()
    assert draws.joint is True
    first, second = evaluate_together(draws, POOL, POOL[:5])
    np.testing.assert_array_equal(first.values, draws(POOL).values)
    np.testing.assert_array_equal(second.values, draws(POOL[:5]).values)


def test_target_draws_follow_the_protocol_and_pickle() -> None:
    model = transformed(forest(), transformer=StandardScaler())
    before = joblib.hash(model)
    draws = get_sampler(model).draw(3, random_state=0)
    assert isinstance(draws, Draws)
    copy = pickle.loads(pickle.dumps(draws))
    np.testing.assert_array_equal(copy(POOL).values, draws(POOL).values)
    assert joblib.hash(model) == before


def test_unfitted_transformed_target_is_refused_by_name() -> None:
    with pytest.raises(NotFittedError, match="TransformedTargetRegressor is not fitted yet"):
        get_sampler(TransformedTargetRegressor(forest()))


def test_transformed_target_behind_a_pipeline_is_drawn_in_its_units() -> None:
    X = rows()
    target = TransformedTargetRegressor(forest(), func=np.log, inverse_func=np.exp)
    pipeline = make_pipeline(StandardScaler(), target).fit(X, np.exp(X[:, 0]))
    trees = pipeline[-1].regressor_.estimators_
    expected = [np.exp(tree.predict(pipeline[0].transform(POOL))) for tree in trees]
    values = get_sampler(pipeline).sample(POOL).values
    np.testing.assert_allclose(values, np.stack(expected, axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(4, random_state=0),
        BaggingClassifier(GaussianNB(), 4, random_state=0),
        AdaBoostClassifier(n_estimators=3),  # with an attribute estimator_ of its own
        SVC(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_frozen_model_is_the_model_inside(model: Any) -> None:
    model = clone(model).fit(rows(), labels(rows()))
    for frozen in (FrozenEstimator(model), FrozenEstimator(FrozenEstimator(model))):
        sampler = get_sampler(frozen)
        inner = sampler.estimator if hasattr(sampler, "estimator") else sampler.ensemble
        assert inner is model
    with pytest.raises(NotFittedError, match=f"{type(model).__name__} is not fitted yet"):
        get_sampler(FrozenEstimator(clone(model))).draw()


def test_frozen_model_is_thawed_for_its_refits() -> None:
    X, y = rows(), labels(rows())
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    theta = frozen.theta_.copy()
    for sampler in (get_sampler(frozen), BootstrapSampler(frozen)):
        values = sampler.with_labeled(X, y).sample(POOL, n_draws=3, random_state=0).values
        assert len({values[:, k].tobytes() for k in range(3)}) == 3
    np.testing.assert_array_equal(frozen.theta_, theta)


def deciders(inner: Any) -> list[Any]:
    return [
        FixedThresholdClassifier(inner, threshold=0.3, pos_label="yes"),
        TunedThresholdClassifierCV(inner, cv=2, scoring="accuracy"),
        SelfTrainingClassifier(inner),
    ]


@pytest.mark.parametrize("model", deciders(RandomForestClassifier(5, random_state=0)))
def test_models_that_only_decide_draw_from_the_trees_inside(model: Any) -> None:
    X = rows()
    model = clone(model).fit(X, partly_labeled(model, X))
    samples = get_sampler(model).sample(POOL)
    assert samples.classes.tolist() == ["no", "yes"]
    for k, tree in enumerate(model.estimator_.estimators_):
        np.testing.assert_array_equal(samples.values[:, k], tree.predict_proba(POOL))
    np.testing.assert_allclose(samples.mean(), model.predict_proba(POOL), rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", deciders(GaussianNB()))
def test_models_that_only_decide_refit_the_model_inside(model: Any) -> None:
    X = rows()
    model = clone(model).fit(X, partly_labeled(model, X))
    sampler = get_sampler(model)
    assert isinstance(sampler, BootstrapSampler)
    assert sampler.estimator is model.estimator_
    picks = BALDQuery(random_state=0).query(model, POOL, 2, X_labeled=X, y_labeled=labels(X))
    assert len(set(picks.tolist())) == 2


@pytest.mark.parametrize("model", deciders(GaussianNB()))
def test_unfitted_models_that_only_decide_are_refused(model: Any) -> None:
    with pytest.raises(NotFittedError, match=r"^\w+ is not fitted yet"):
        get_sampler(model)


def test_threshold_around_a_fitted_model_needs_no_fit() -> None:
    model = RandomForestClassifier(3, random_state=0).fit(rows(), labels(rows()))
    assert get_sampler(FixedThresholdClassifier(model)).ensemble is model


@pytest.mark.parametrize("search_class", SEARCHES)
def test_refits_of_a_search_clone_the_model_it_chose(
    search_class: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows(), labels(rows())
    search = search_class(LogisticRegression(), {"C": [0.01, 30.0]}, cv=2)
    if search_class is RandomizedSearchCV:
        search.n_iter = 2
    search.fit(X, y)
    nested = GridSearchCV(search, {"cv": [2]}, cv=2).fit(X, y)

    def no_search(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a search was run")

    for each in SEARCHES:
        monkeypatch.setattr(each, "fit", no_search)
    plain = BootstrapSampler(search.best_estimator_).fit(X, y)
    chosen = plain.sample(POOL, n_draws=3, random_state=0)
    samplers = [get_sampler(search), BootstrapSampler(search), get_sampler(nested)]
    for sampler in [*samplers, BootstrapSampler(nested)]:
        draws = sampler.with_labeled(X, y).draw(3, random_state=0)
        assert {model.C for model in draws.members.models} == {search.best_params_["C"]}
        np.testing.assert_array_equal(draws(POOL).values, chosen.values)


@pytest.mark.parametrize("search_class", SEARCHES)
def test_search_that_kept_no_model_is_refused_by_name_before_any_fit(search_class: Any) -> None:
    X, y = rows(), labels(rows())
    unfitted = search_class(GaussianNB(), {"var_smoothing": [0.1]}, cv=2)
    no_refit = search_class(GaussianNB(), {"var_smoothing": [0.1]}, cv=2, refit=False)
    if search_class is RandomizedSearchCV:
        unfitted.n_iter = no_refit.n_iter = 1
    name = search_class.__name__
    for ask in (get_sampler, lambda search: BootstrapSampler(search).fit(X, y)):
        with pytest.raises(NotFittedError, match=f"{name} is not fitted yet"):
            ask(unfitted)
        for search in (no_refit, clone(no_refit).fit(X, y)):
            message = rf"{name} has refit=False and so keeps no fitted model\. Set refit=True"
            with pytest.raises(UnsupportedModelError, match=message):
                ask(search)


def test_noise_beside_the_domain_of_the_inverse_is_that_of_the_other_side() -> None:
    model = TransformedTargetRegressor(Ridge(), func=np.square, inverse_func=np.sqrt)
    model.fit(POOL, 1 + POOL[:, 0] ** 2)
    samples = PredictionSamples(np.array([[0.25, 4.0]]), "value", noise_variance=1.0)
    back = TargetSampler(model, SamplesSampler(samples)).sample(POOL[:1])
    up = np.sqrt([1.25, 5.0]) - [0.5, 2.0]
    down = [up[0], 2.0 - np.sqrt(3.0)]  # sqrt(0.25 - 1) is none
    np.testing.assert_allclose(back.noise_variance, [((up + down) / 2) ** 2], rtol=1e-12)


def test_draws_beside_the_domain_of_the_inverse_name_the_model_and_the_way_out() -> None:
    model = TransformedTargetRegressor(Ridge(), func=np.square, inverse_func=np.sqrt)
    model.fit(POOL, 1 + POOL[:, 0] ** 2)
    samples = PredictionSamples(np.array([[-0.5, 4.0]]), "value")
    message = r"TransformedTargetRegressor must lie where .*pass BootstrapSampler\(model\)"
    with pytest.raises(ValueError, match=message):
        TargetSampler(model, SamplesSampler(samples)).sample(POOL[:1])
