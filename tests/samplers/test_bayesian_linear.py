"""Draws of Bayesian linear regression: moments of the posterior, pruned features, forms of rows."""

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import ARDRegression, BayesianRidge, Ridge

from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import get_sampler
from sklearn_ical.samplers._bayesian_linear import BayesianLinearSampler, coefficient_factor

MODELS = (BayesianRidge, ARDRegression)
# Before 1.9 the predicted variance of a model with intercept was that of rows not centered.
CENTERED = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 9)


def rows(n: int = 40, n_features: int = 4, seed: int = 0) -> np.ndarray:
    """Return rows far from the origin, on which an intercept that does not move would show."""
    return np.random.default_rng(seed).normal(5, 1, size=(n, n_features))


def targets(X: np.ndarray) -> np.ndarray:
    """Return targets of which the last of four features knows nothing."""
    noise = np.random.default_rng(1).normal(size=len(X))
    return 3 + X @ np.array([1.0, -2.0, 0.5, 0.0])[: X.shape[1]] + 0.3 * noise


def fitted(model_class: Any, **parameters: Any) -> Any:
    X = rows()
    return model_class(**parameters).fit(X, targets(X))


def full_covariance(model: Any) -> np.ndarray:
    """Return the covariance of all coefficients, 0 for those that the model pruned."""
    covariance = np.zeros((len(model.coef_), len(model.coef_)))
    kept = np.flatnonzero(model.coef_)
    covariance[np.ix_(kept, kept)] = model.sigma_
    return covariance


def exact_variance(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the variance that the construction of the draws gives to rows, without noise."""
    return (((X - model.X_offset_) @ coefficient_factor(model)) ** 2).sum(axis=1)


def check_moments(model: Any, X: np.ndarray, n_draws: int = 20_000) -> None:
    """Compare mean and variance over draws with the posterior, within 5 standard errors."""
    samples = BayesianLinearSampler(model).sample(X, n_draws=n_draws, random_state=0)
    centered = X - model.X_offset_
    variance = np.einsum("ij,jk,ik->i", centered, full_covariance(model), centered)
    mean_error = 5 * np.sqrt(variance / n_draws) + 1e-9
    assert (np.abs(samples.values.mean(axis=1) - model.predict(X)) <= mean_error).all()
    variance_error = 5 * variance * np.sqrt(2 / n_draws) + 1e-15
    assert (np.abs(samples.values.var(axis=1) - variance) <= variance_error).all()
    assert samples.noise_variance == 1 / model.alpha_


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("model_class", MODELS)
def test_construction_has_exactly_the_variance_that_the_model_predicts(
    model_class: Any, fit_intercept: bool
) -> None:
    if fit_intercept and not CENTERED:
        pytest.skip("this scikit-learn does not center the rows whose variance it predicts")
    model = fitted(model_class, fit_intercept=fit_intercept)
    X = rows(30, seed=3)
    deviation = model.predict(X, return_std=True)[1]
    np.testing.assert_allclose(
        exact_variance(model, X) + 1 / model.alpha_, deviation**2, rtol=1e-10
    )


@pytest.mark.parametrize("model_class", MODELS)
def test_draws_are_planes_of_normal_coefficients_through_the_mean_row(model_class: Any) -> None:
    model = fitted(model_class)
    draws = BayesianLinearSampler(model).draw(7, random_state=3)
    factor = coefficient_factor(model)
    normal = np.random.default_rng(3).standard_normal((7, factor.shape[1]))
    X = rows(5, seed=2)
    expected = model.predict(X)[:, None] + (X - model.X_offset_) @ factor @ normal.T
    np.testing.assert_allclose(draws(X).values, expected, rtol=1e-10)
    at_mean = draws(model.X_offset_[None]).values
    np.testing.assert_allclose(at_mean, targets(rows()).mean(), rtol=1e-10)
    assert draws(X).kind == draws.kind == "value"
    assert not draws.joint


@pytest.mark.parametrize("model_class", MODELS)
def test_many_draws_have_the_moments_of_the_posterior(model_class: Any) -> None:
    check_moments(fitted(model_class), rows(20, seed=4))


@pytest.mark.parametrize("model_class", MODELS)
def test_fewer_draws_are_the_first_of_many(model_class: Any) -> None:
    sampler, X = BayesianLinearSampler(fitted(model_class)), rows(6)
    many = sampler.sample(X, random_state=5).values
    assert many.shape == (6, 50)
    few = sampler.sample(X, n_draws=8, random_state=5).values
    np.testing.assert_allclose(few, many[:, :8], rtol=1e-12)
    other = sampler.sample(X, n_draws=8, random_state=6).values
    assert np.abs(few - other).min() > 0


def test_pruned_features_have_coefficient_zero_in_every_draw() -> None:
    model = fitted(ARDRegression, threshold_lambda=100.0)
    assert (model.coef_ == 0).tolist() == [False, False, False, True]
    assert model.sigma_.shape == (3, 3)
    draws = BayesianLinearSampler(model).draw(20, random_state=0)
    assert (draws.coefficients[:, 3] == 0).all()
    assert (draws.coefficients[:, :3].std(axis=0) > 0).all()
    check_moments(model, rows(10, seed=4))
    moved = rows(10)
    moved[:, 3] += 1000
    np.testing.assert_array_equal(draws(moved).values, draws(rows(10)).values)


def test_a_model_without_any_feature_left_draws_its_constant() -> None:
    model = fitted(ARDRegression, threshold_lambda=1e-3)
    assert model.sigma_.shape == (0, 0)
    values = BayesianLinearSampler(model).sample(rows(3), random_state=0).values
    np.testing.assert_array_equal(values, np.full((3, 50), model.intercept_))


@pytest.mark.parametrize("model_class", MODELS)
def test_one_feature_and_one_row_are_enough(model_class: Any) -> None:
    X = rows(n_features=1)
    model = model_class().fit(X, targets(X))
    check_moments(model, X[:1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model_class", MODELS)
def test_collinear_features_factorize_with_next_to_no_jitter(model_class: Any, dtype: Any) -> None:
    X = rows()
    X = np.column_stack([X, 1e3 * X[:, 0], X[:, 1] - X[:, 2]])
    model = model_class(lambda_1=0, lambda_2=1e-12, alpha_2=1e-12).fit(
        X.astype(dtype), targets(X[:, :4]).astype(dtype)
    )
    covariance = full_covariance(model)
    factor = coefficient_factor(model)
    scale = np.sqrt(np.outer(np.diagonal(covariance), np.diagonal(covariance)))
    assert (np.abs(factor @ factor.T - covariance) <= 1e-5 * scale).all()


def test_singular_covariance_is_reproduced_to_rounding() -> None:
    model = fitted(BayesianRidge)
    root = np.array([[1.0, 0], [2, 0], [0, 1e-4], [3, 0]])
    model.sigma_ = root @ root.T  # of rank 2, and of unlike scales
    factor = coefficient_factor(model)
    scale = np.sqrt(np.outer(*2 * [np.diagonal(model.sigma_)]))
    assert (np.abs(factor @ factor.T - model.sigma_) <= 1e-11 * scale).all()


def test_indefinite_covariance_is_refused_with_the_way_out() -> None:
    model = fitted(BayesianRidge)
    model.sigma_ = np.diag([1.0, 1.0, -0.5, 1.0])
    with pytest.raises(ValueError, match=r"BayesianLinearSampler; fit the model on float64 rows"):
        BayesianLinearSampler(model).draw()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "list", "float32", "frame", "polars"])
def test_rows_in_any_form_that_the_model_takes_give_the_same_values(form: str) -> None:
    X = rows(12, seed=6).astype(np.float32).astype(np.float64)
    names = ["d", "a", "c", "b"]
    training: Any = rows()
    given: Any
    if form == "frame":
        pandas = pytest.importorskip("pandas")
        training = pandas.DataFrame(training, columns=names)
        given = pandas.DataFrame(X, columns=names)
    elif form == "polars":
        polars = pytest.importorskip("polars")
        training, given = polars.DataFrame(training, schema=names), polars.DataFrame(X, names)
    elif form == "list":
        given = X.tolist()
    elif form == "float32":
        given = X.astype(np.float32)
    else:
        given = sparse.csr_array(X).asformat(form)
    model = BayesianRidge().fit(training, targets(rows()))
    samples = BayesianLinearSampler(model).sample(given, random_state=0)
    plain = BayesianLinearSampler(fitted(BayesianRidge)).sample(X, random_state=0)
    assert samples.values.dtype == np.float64
    np.testing.assert_allclose(samples.values, plain.values, rtol=1e-10)


def test_draws_outlive_pickling_and_another_fit() -> None:
    model = fitted(BayesianRidge)
    draws = BayesianLinearSampler(model).draw(9, random_state=0)
    before = draws(rows(5)).values
    model.fit(rows(n_features=2), -targets(rows(n_features=2)))
    np.testing.assert_array_equal(draws(rows(5)).values, before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(draws))(rows(5)).values, before)


@pytest.mark.parametrize("model_class", MODELS)
def test_get_sampler_finds_the_sampler(model_class: Any) -> None:
    assert isinstance(get_sampler(fitted(model_class)), BayesianLinearSampler)


@pytest.mark.parametrize("model_class", MODELS)
def test_unfitted_model_is_named(model_class: Any) -> None:
    with pytest.raises(NotFittedError, match=f"{model_class.__name__} is not fitted yet"):
        BayesianLinearSampler(model_class()).draw()


def test_other_models_and_wrong_numbers_of_draws_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match=r"or ARDRegression\. Got Ridge in"):
        BayesianLinearSampler(Ridge()).draw()
    with pytest.raises(ValueError, match=r"n_draws .* Got 0 in BayesianLinearSampler.draw"):
        BayesianLinearSampler(fitted(BayesianRidge)).draw(0)
