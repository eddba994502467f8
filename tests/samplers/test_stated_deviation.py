"""Regressors that state their predictive standard deviation are asked for it, not sampled."""

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    QuantileTransformer,
    StandardScaler,
)

from sklearn_ical import ActiveLearner, MaxEntropyQuery
from sklearn_ical.samplers._base import get_mean

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(40, 3)), 1.5 * RNG.normal(size=(200, 3))
Y = X[:, 0] + 0.3 * np.sin(3 * X[:, 1]) + 10
TARGETS = np.column_stack([Y, 100 * X[:, 1], Y**2])

REGRESSORS = {
    "process": GaussianProcessRegressor(RBF() + WhiteKernel(0.1), optimizer=None, normalize_y=True),
    "ridge": BayesianRidge(),
    "ard": ARDRegression(),
}


class Learner:
    """A learner in the form of modAL, which has every method whether its model has it or not."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.X_training, self.y_training = X, Y

    def teach(self, X: Any, y: Any) -> None:
        raise AssertionError

    def predict(self, X: Any, **options: Any) -> Any:
        return self.estimator.predict(X, **options)

    def predict_proba(self, X: Any) -> Any:
        return self.estimator.predict_proba(X)


def search(model: Any) -> GridSearchCV:
    return GridSearchCV(model, {}, cv=2)


def scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def with_targets(model: Any) -> Any:
    return TransformedTargetRegressor(model, transformer=StandardScaler())


# Whether rows are scaled before the model, and the models around it.
AROUND = {
    "alone": (False, lambda model: model.fit(X, Y)),
    "frozen": (False, lambda model: FrozenEstimator(model.fit(X, Y))),
    "search": (False, lambda model: search(model).fit(X, Y)),
    "learner": (False, lambda model: ActiveLearner(model, "entropy").fit(X, Y)),
    "modAL": (False, lambda model: Learner(model.fit(X, Y))),
    "pipeline": (True, lambda model: scaled(model).fit(X, Y)),
    "search of a pipeline": (True, lambda model: search(scaled(model)).fit(X, Y)),
    "modAL around a pipeline": (True, lambda model: Learner(scaled(model).fit(X, Y))),
    "targets": (False, lambda model: with_targets(model).fit(X, Y)),
    "targets of a pipeline": (True, lambda model: with_targets(scaled(model)).fit(X, Y)),
    "targets in a pipeline": (True, lambda model: scaled(with_targets(model)).fit(X, Y)),
    "outputs": (False, lambda model: MultiOutputRegressor(model).fit(X, Y[:, None])),
}  # fmt: skip


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", REGRESSORS)
def test_top_of_the_stated_deviation_is_picked(name: str, around: str) -> None:
    behind, wrap = AROUND[around]
    rows, pool = X, POOL
    if behind:
        scaler = StandardScaler().fit(X)
        rows, pool = scaler.transform(X), scaler.transform(POOL)
    y, scale = Y, 1.0
    if "targets" in around:
        y, scale = (Y - Y.mean()) / Y.std(), Y.std()
    std = scale * clone(REGRESSORS[name]).fit(rows, y).predict(pool, return_std=True)[1]
    expected = np.argsort(-std, kind="stable")[:10].tolist()
    model = wrap(clone(REGRESSORS[name]))
    for seed in (0, 1):
        assert MaxEntropyQuery(random_state=seed).query(model, POOL, 10).tolist() == expected
    picks, utilities = MaxEntropyQuery()(model, POOL, 10)
    assert picks.tolist() == expected
    np.testing.assert_allclose(utilities, std[expected] ** 2, rtol=1e-7)
    assert MaxEntropyQuery().query_tags().deterministic


@pytest.mark.parametrize("name", REGRESSORS)
def test_linear_transformation_of_the_target_scales_its_deviation(name: str) -> None:
    scaler = MinMaxScaler().fit(Y[:, None])
    inner = clone(REGRESSORS[name]).fit(X, scaler.transform(Y[:, None])[:, 0])
    std = inner.predict(POOL, return_std=True)[1] * (Y.max() - Y.min())
    model = TransformedTargetRegressor(clone(REGRESSORS[name]), transformer=MinMaxScaler())
    samples = get_mean(model.fit(X, Y))(POOL)
    np.testing.assert_allclose(samples.values[:, 0], model.predict(POOL))
    np.testing.assert_allclose(samples.noise_variance[:, 0], std**2, rtol=1e-9)


def test_deviation_of_a_logarithm_is_that_of_the_lognormal() -> None:
    model = TransformedTargetRegressor(BayesianRidge(), func=np.log, inverse_func=np.exp).fit(X, Y)
    mean, std = model.regressor_.predict(POOL, return_std=True)
    expected = np.exp(2 * mean + std**2) * np.expm1(std**2)
    np.testing.assert_allclose(get_mean(model)(POOL).noise_variance[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_deviation_of_a_transformation_by_quantiles_is_that_of_many_targets(
    distribution: str,
) -> None:
    quantiles = QuantileTransformer(n_quantiles=20, output_distribution=distribution)
    model = TransformedTargetRegressor(BayesianRidge(), transformer=quantiles).fit(X, Y)
    mean, std = model.regressor_.predict(POOL, return_std=True)
    inner = mean[:, None] + np.outer(std, ndtri((np.arange(10_000) + 0.5) / 10_000))
    targets = model.transformer_.inverse_transform(inner.reshape(-1, 1)).reshape(inner.shape)
    variance, stated = targets.var(axis=1), get_mean(model)(POOL).noise_variance[:, 0]
    np.testing.assert_allclose(stated, variance, rtol=5e-3, atol=1e-3 * variance.max())
    assert MaxEntropyQuery().query(model, POOL, 5).tolist() == np.argsort(-variance)[:5].tolist()


@pytest.mark.filterwarnings("ignore:The provided functions:UserWarning")
def test_transformation_that_is_not_defined_everywhere_keeps_what_is() -> None:
    inverse = FunctionTransformer(np.square, np.sqrt, check_inverse=False)
    model = TransformedTargetRegressor(BayesianRidge(), transformer=inverse).fit(X, np.abs(X[:, 0]))
    samples = get_mean(model)(POOL[:20])
    defined = np.isfinite(model.predict(POOL[:20]))
    assert (samples.noise_variance[defined] > 0).all()


def test_variances_of_several_targets_add_up() -> None:
    process = clone(REGRESSORS["process"]).fit(X, TARGETS)
    total = np.square(process.predict(POOL, return_std=True)[1]).sum(axis=1)
    expected = np.argsort(-total, kind="stable")[:10].tolist()
    scaled_targets = TransformedTargetRegressor(clone(process), transformer=StandardScaler())
    for model in (process, search(clone(process)), scaled_targets):
        model.fit(X, TARGETS)
        picks, utilities = MaxEntropyQuery()(model, POOL, 10)
        assert picks.tolist() == expected
        np.testing.assert_allclose(utilities, total[expected], rtol=1e-7)


def test_variances_of_one_regressor_per_target_add_up() -> None:
    model = MultiOutputRegressor(scaled(BayesianRidge())).fit(X, TARGETS)
    stds = [part.predict(POOL, return_std=True)[1] for part in model.estimators_]
    total = np.square(stds).sum(axis=0)
    expected = np.argsort(-total, kind="stable")[:10].tolist()
    assert MaxEntropyQuery().query(model, POOL, 10).tolist() == expected
    np.testing.assert_allclose(get_mean(model)(POOL).values[:, 0], model.predict(POOL))


def test_mixed_targets_are_transformed_back_one_by_one() -> None:
    mix = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0, 1.0]])
    unmix = np.linalg.inv(mix)
    process = clone(REGRESSORS["process"])
    model = TransformedTargetRegressor(
        process, func=lambda y: y @ unmix, inverse_func=lambda y: y @ mix
    ).fit(X, TARGETS)
    inner = np.square(model.regressor_.predict(POOL, return_std=True)[1])
    total = get_mean(model)(POOL).noise_variance[:, 0] * 3
    np.testing.assert_allclose(total, (inner @ mix**2).sum(axis=1), rtol=1e-7)
