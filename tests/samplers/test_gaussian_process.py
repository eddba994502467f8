"""Joint draws of Gaussian processes: moments of the posterior, noise, equal rows, limits."""

import pickle
import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.linalg import solve
from scipy.special import expit, logit
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    GenericKernelMixin,
    Kernel,
    Matern,
    StationaryKernelMixin,
    WhiteKernel,
)
from sklearn.linear_model import Ridge

from sklearn_ical import PredictionSamples
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, get_sampler
from sklearn_ical.samplers._gaussian_process import GaussianProcessSampler

NOISE = ConstantKernel(0.5) * WhiteKernel(0.3) + WhiteKernel(0.05)
KERNELS = {
    "smooth": 1.5 * RBF(1.2),
    "noisy": 1.5 * RBF(1.2) + WhiteKernel(0.2),
    "noisy-sums": ConstantKernel(2.0) * (Matern(1.5, nu=1.5) + NOISE),
    "linear": DotProduct(0.7) + WhiteKernel(0.1),
    "linear-smooth": DotProduct(0.7),  # two ways to its diagonal round in two ways
}
NOISE_OF = {
    "smooth": None,
    "noisy": 0.2,
    "noisy-sums": 2 * (0.5 * 0.3 + 0.05),
    "linear": 0.1,
    "linear-smooth": None,
}


def rows(n: int = 25, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, size=(n, 2))


def targets(X: np.ndarray, n_targets: int = 1) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=(len(X), n_targets))
    y = 40 + 7 * np.sin(X[:, :1] * np.arange(1, n_targets + 1)) + 0.3 * noise
    return y[:, 0] if n_targets == 1 else y


@cache
def regressor(kernel: str = "noisy", n_targets: int = 1, normalize_y: bool = True) -> Any:
    model = GaussianProcessRegressor(
        KERNELS[kernel], alpha=0.01, optimizer=None, normalize_y=normalize_y
    )
    return model.fit(rows(), targets(rows(), n_targets))


@cache
def classifier(n_classes: int = 2, noise: float = 0.0) -> Any:
    kernel = 4.0 * RBF(1.0) + WhiteKernel(noise) if noise else 4.0 * RBF(1.0)
    X = rows(40)
    scores = X[:, 0] + 0.5 * np.random.default_rng(2).normal(size=len(X))
    codes = np.digitize(scores, [0.0] if n_classes == 2 else [-0.7, 0.7])
    labels = np.array(["wren", "ant", "mole"])
    return GaussianProcessClassifier(kernel, optimizer=None).fit(X, labels[codes])


def construction(sampler: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (n, t) and factor (n, n) of the values: the draws with z = 0 and z = e_i.

    `X` has sorted distinct rows; the numbers of the generator are replaced by chosen ones.
    """
    draws = sampler.draw(len(X) + 1)
    chosen = np.concatenate([np.zeros((1, len(X))), np.eye(len(X))])
    draws._normal = lambda n_functions, n: np.repeat(chosen[:, None], n_functions, axis=1)
    values = draws(X).values.reshape(len(X), len(X) + 1, -1)
    return values[:, 0], values[:, 1:] - values[:, :1]


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_construction_has_exactly_the_predicted_mean_and_covariance(
    kernel: str, n_targets: int, normalize_y: bool
) -> None:
    model = regressor(kernel, n_targets, normalize_y)
    X = np.unique(rows(30, seed=3), axis=0)
    mean, factor = construction(GaussianProcessSampler(model), X)
    expected, covariance = model.predict(X, return_cov=True)
    np.testing.assert_allclose(mean, expected.reshape(mean.shape), rtol=1e-10)
    covariance = covariance.reshape(*covariance.shape[:2], -1)
    scale = targets(rows(), n_targets).std(axis=0) if normalize_y else 1.0
    noise = np.broadcast_to((NOISE_OF[kernel] or 0) * np.square(scale), n_targets)
    for t in range(n_targets):
        latent = covariance[:, :, t] - noise[t] * np.eye(len(X))
        np.testing.assert_allclose(
            factor[:, :, t] @ factor[:, :, t].T, latent, atol=1e-8 * np.diagonal(latent).max()
        )


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_many_draws_and_noise_have_the_predicted_moments(kernel: str, normalize_y: bool) -> None:
    model, X, n_draws = regressor(kernel, normalize_y=normalize_y), rows(20, seed=4), 20_000
    samples = GaussianProcessSampler(model).sample(X, n_draws=n_draws, random_state=0)
    mean, deviation = model.predict(X, return_std=True)
    scale = targets(rows()).std() if normalize_y else 1.0
    noise = NOISE_OF[kernel]
    if noise is None:
        assert samples.noise_variance is None
    else:
        np.testing.assert_allclose(samples.noise_variance, noise * scale**2, rtol=1e-9)
    variance = deviation**2 - (noise or 0) * scale**2
    mean_error = 5 * np.sqrt(variance / n_draws) + 1e-9
    assert (np.abs(samples.values.mean(axis=1) - mean) <= mean_error).all()
    variance_error = 5 * variance * np.sqrt(2 / n_draws) + 1e-9
    assert (np.abs(samples.values.var(axis=1) - variance) <= variance_error).all()


def test_draws_agree_with_sample_y_in_distribution() -> None:
    model, X, n = regressor("smooth"), rows(6, seed=5), 40_000
    ours = GaussianProcessSampler(model).sample(X, n_draws=n, random_state=0).values
    theirs = model.sample_y(X, n, random_state=1)
    a, b = np.cov(ours), np.cov(theirs)
    variances = np.diagonal(b)
    mean_error = 5 * np.sqrt(2 * variances / n)
    assert (np.abs(ours.mean(axis=1) - theirs.mean(axis=1)) <= mean_error).all()
    assert (np.abs(a - b) <= 5 * np.sqrt(2 * (np.outer(variances, variances) + b**2) / n)).all()


def test_targets_are_drawn_independently() -> None:
    X = rows(4, seed=6)
    values = GaussianProcessSampler(regressor(n_targets=2)).sample(X, n_draws=10_000).values
    assert values.shape == (4, 10_000, 2)
    correlation = np.corrcoef(values[0].T)[0, 1]
    assert abs(correlation) < 5 / np.sqrt(10_000)


def test_noise_that_differs_between_targets_is_left_out() -> None:
    X = rows(4)
    unlike = GaussianProcessSampler(regressor(n_targets=2, normalize_y=True)).sample(X)
    assert unlike.noise_variance is None
    same = GaussianProcessSampler(regressor(n_targets=2, normalize_y=False)).sample(X)
    np.testing.assert_allclose(same.noise_variance, np.full(4, 0.2), rtol=1e-12)


def test_one_column_of_targets_gives_the_values_of_a_vector() -> None:
    column = GaussianProcessRegressor(KERNELS["noisy"], alpha=0.01, optimizer=None)
    column.fit(rows(), targets(rows())[:, None])
    samples = GaussianProcessSampler(column).sample(rows(5, seed=1), random_state=0)
    vector = GaussianProcessSampler(regressor(normalize_y=False))
    expected = vector.sample(rows(5, seed=1), random_state=0)
    np.testing.assert_allclose(samples.values, expected.values, rtol=1e-12)


def test_a_process_of_noise_alone_draws_its_mean() -> None:
    model = GaussianProcessRegressor(WhiteKernel(2.0), optimizer=None).fit(rows(), targets(rows()))
    samples = GaussianProcessSampler(model).sample(rows(5, seed=1), random_state=0)
    assert (np.abs(samples.values) < 1e-100).all()
    np.testing.assert_array_equal(samples.noise_variance, np.full(5, 2.0))


MODELS = {
    "regressor": regressor,
    "binary": classifier,
    "multiclass": lambda: classifier(3),
}


@pytest.mark.parametrize("name", MODELS)
def test_equal_rows_have_equal_draws_in_any_order(name: str) -> None:
    draws = GaussianProcessSampler(MODELS[name]()).draw(20, random_state=0)
    X = rows(12, seed=7)
    plain = draws(X)
    order = np.random.default_rng(0).integers(12, size=40)  # in another order, with repeats
    assert set(order) == set(range(12))
    again = draws(X[order])
    np.testing.assert_array_equal(again.values, plain.values[order])
    if plain.noise_variance is not None:
        np.testing.assert_array_equal(again.noise_variance, plain.noise_variance[order])


@pytest.mark.parametrize("name", MODELS)
def test_fewer_draws_are_the_first_of_many(name: str) -> None:
    sampler, X = GaussianProcessSampler(MODELS[name]()), rows(8, seed=7)
    many = sampler.sample(X, random_state=5).values
    assert many.shape[:2] == (8, 50)
    few = sampler.sample(X, n_draws=8, random_state=5).values
    np.testing.assert_allclose(few, many[:, :8], rtol=1e-10)
    other = sampler.sample(X, n_draws=8, random_state=6).values
    assert np.abs(few - other).min() > 0


@pytest.mark.parametrize("name", MODELS)
def test_together_is_one_evaluation_of_the_stacked_rows(name: str) -> None:
    draws = GaussianProcessSampler(MODELS[name]()).draw(20, random_state=0)
    X, X_reference = rows(9, seed=8), np.concatenate([rows(5, seed=9), rows(9, seed=8)[:2]])
    pool, reference = draws.together(X, X_reference)
    stacked = draws(np.concatenate([X, X_reference]))
    np.testing.assert_array_equal(pool.values, stacked.values[:9])
    np.testing.assert_array_equal(reference.values, stacked.values[9:])
    np.testing.assert_array_equal(reference.values[5:], pool.values[:2])
    assert isinstance(pool, PredictionSamples)
    if pool.noise_variance is not None:
        assert (len(pool.noise_variance), len(reference.noise_variance)) == (9, 7)


@pytest.mark.parametrize("form", ["float32", "integers", "list", "frame", "polars", "read-only"])
def test_rows_in_any_form_give_the_same_draws(form: str) -> None:
    X = np.round(rows(10, seed=10))
    names = ["b", "a"]
    training: Any = rows()
    given: Any
    if form in ("frame", "polars"):
        package = pytest.importorskip("pandas" if form == "frame" else "polars")
        training, given = package.DataFrame(training), package.DataFrame(X)
        training.columns = given.columns = names
    elif form == "list":
        given = X.tolist()
    else:
        given = X.astype({"float32": np.float32, "integers": np.int64}.get(form, np.float64))
        given.flags.writeable = False
    model = GaussianProcessRegressor(
        KERNELS["noisy"], alpha=0.01, optimizer=None, normalize_y=True
    ).fit(training, targets(rows()))
    samples = GaussianProcessSampler(model).sample(given, random_state=0)
    plain = GaussianProcessSampler(regressor()).sample(X, random_state=0)
    np.testing.assert_array_equal(samples.values, plain.values)


class SharedLetters(GenericKernelMixin, StationaryKernelMixin, Kernel):
    """A kernel on words: shared over all letters."""

    def __init__(self) -> None:
        pass

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> np.ndarray:
        Y = X if Y is None else Y
        return np.array([[len(set(x) & set(y)) / len(set(x) | set(y)) for y in Y] for x in X])

    def diag(self, X: Any) -> np.ndarray:
        return np.ones(len(X))

    @property
    def hyperparameters(self) -> list[Any]:
        return []


@pytest.mark.parametrize("dtype", [str, object])
def test_words_under_a_kernel_of_their_own_are_drawn(dtype: Any) -> None:
    words = ["ant", "wren", "mole", "newt", "stoat"]
    model = GaussianProcessRegressor(SharedLetters() + WhiteKernel(0.1), optimizer=None)
    model.fit(words, np.arange(5.0))
    given = np.array(["toad", "ant", "owl", "newts"], dtype=dtype)
    draws = GaussianProcessSampler(model).draw(20_000, random_state=0)
    samples, reference = draws.together(given, given[1:2])
    if dtype is str:  # objects have no order by which equal ones could be found
        np.testing.assert_array_equal(samples.values[1], reference.values[0])
    np.testing.assert_allclose(samples.values[1], reference.values[0], atol=1e-4)
    mean, deviation = model.predict(given, return_std=True)
    variance = samples.values.var(axis=1) + samples.noise_variance
    np.testing.assert_allclose(samples.values.mean(axis=1), mean, atol=0.05)
    np.testing.assert_allclose(variance, deviation**2, rtol=0.05)


def test_more_distinct_rows_than_max_rows_are_refused_before_any_work() -> None:
    model = GaussianProcessRegressor(KERNELS["noisy"], optimizer=None).fit(rows(), targets(rows()))
    draws = GaussianProcessSampler(model, max_rows=20).draw(random_state=0)
    X = rows(20, seed=11)
    assert draws(np.concatenate([X, X])).n_points == 40
    message = (
        r"max_rows=20, .* Got 21 distinct rows in GaussianProcessSampler of "
        r"GaussianProcessRegressor, which need about 0\.0 MiB; pass a subsample of the pool, "
        r"GaussianProcessSampler\(model, max_rows=21\) or BootstrapSampler\(model\)"
    )
    with pytest.raises(ValueError, match=message):
        draws(rows(21, seed=11))
    with pytest.raises(ValueError, match="Got 21 distinct rows"):
        draws.together(X, rows(1, seed=12))
    many = np.arange(80_000.0).reshape(40_000, 2)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"max_rows=5000, .* about 47\.7 GiB"):
        GaussianProcessSampler(model).sample(many)
    assert tracemalloc.get_traced_memory()[1] < 20 * many.nbytes
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["regressor", "multiclass"])
def test_memory_stays_within_the_matrices_that_the_message_counts(name: str) -> None:
    draws, n = GaussianProcessSampler(MODELS[name]()).draw(2, random_state=0), 700
    X = rows(n, seed=13)
    draws(X[:5])
    tracemalloc.start()
    draws(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.15 * 4 * 8 * n * n


def test_fitted_rows_of_a_process_without_noise_are_drawn_as_they_are() -> None:
    model = GaussianProcessRegressor(RBF(3.0), optimizer=None).fit(rows(60), targets(rows(60)))
    X = np.concatenate([rows(60), rows(60) + 1e-9])
    values = GaussianProcessSampler(model).sample(X, random_state=0).values
    mean = model.predict(X)
    assert np.isfinite(values).all()
    assert np.abs(values - mean[:, None]).max() < 1e-3


def test_indefinite_kernel_is_refused_with_the_way_out() -> None:
    model = GaussianProcessRegressor(RBF(1.0), optimizer=None).fit(rows(3), targets(rows(3)))
    model.L_ = 0.01 * model.L_  # explains more than there is
    with pytest.raises(ValueError, match="GaussianProcessSampler; fit the model on float64 rows"):
        GaussianProcessSampler(model).sample(rows(5))


def latent_moments(binary: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the latent mean and covariance of one binary problem by algorithm 3.2."""
    cross = binary.kernel_(binary.X_train_, X)
    v = solve(binary.L_, np.diag(binary.W_sr_) @ cross)
    return cross.T @ (binary.y_train_ - binary.pi_), binary.kernel_(X) - v.T @ v


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_binary_latent_draws_follow_algorithm_3_2(noise: float) -> None:
    model, X = classifier(noise=noise), np.unique(rows(15, seed=14), axis=0)
    draws = GaussianProcessSampler(model).draw(9, random_state=2)
    mean, covariance = latent_moments(model.base_estimator_, X)
    if hasattr(model, "latent_mean_and_variance"):
        expected = model.latent_mean_and_variance(X)
        np.testing.assert_allclose(mean, expected[0], rtol=1e-10)
        np.testing.assert_allclose(np.diagonal(covariance), expected[1], rtol=1e-8)
    samples = draws(X)
    normal = np.random.default_rng(2).standard_normal((9, len(X)))
    latent = mean[:, None] + np.linalg.cholesky(covariance) @ normal.T
    np.testing.assert_allclose(logit(samples.values[:, :, 1]), latent, atol=1e-6)
    np.testing.assert_array_equal(samples.classes, model.classes_)
    assert (draws.kind, draws.joint, draws.mean_differs) == ("proba", True, "")


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_mean_of_binary_draws_is_what_the_classifier_predicts(noise: float) -> None:
    model, X, n_draws = classifier(noise=noise), rows(20, seed=15), 20_000
    samples = GaussianProcessSampler(model).sample(X, n_draws=n_draws, random_state=0)
    np.testing.assert_allclose(samples.mean(), model.predict_proba(X), atol=0.01)
    mean, covariance = latent_moments(model.base_estimator_, X)
    nodes, weights = hermegauss(80)
    exact = expit(mean[:, None] + np.sqrt(np.diagonal(covariance))[:, None] * nodes) @ weights
    exact /= weights.sum()
    error = 5 * samples.values[:, :, 1].std(axis=1) / np.sqrt(n_draws)
    assert (np.abs(samples.mean()[:, 1] - exact) <= error).all()


def test_classes_against_the_rest_are_normalized_draw_by_draw() -> None:
    model, X = classifier(3), np.unique(rows(10, seed=16), axis=0)
    draws = GaussianProcessSampler(model).draw(6, random_state=4)
    normal = np.random.default_rng(4).standard_normal((6, 3, len(X)))
    proba = np.empty((len(X), 6, 3))
    for k, binary in enumerate(model.base_estimator_.estimators_):
        mean, covariance = latent_moments(binary, X)
        factor = np.linalg.cholesky(covariance)
        proba[:, :, k] = expit(mean[:, None] + factor @ normal[:, k].T)
    expected = proba / proba.sum(axis=2, keepdims=True)
    samples = draws(X)
    np.testing.assert_allclose(samples.values, expected, atol=1e-7)
    np.testing.assert_array_equal(samples.classes, ["ant", "mole", "wren"])
    assert draws.mean_differs == "classes are normalized draw by draw"


def test_extreme_latent_values_stay_probabilities() -> None:
    draws = GaussianProcessSampler(classifier(3)).draw(2, random_state=0)
    draws._normal = lambda n_functions, n: np.full((2, n_functions, n), -1e4)
    values = draws(rows(3, seed=17)).values
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values.sum(axis=2), 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_against_one_falls_back_to_the_bootstrap_where_it_has_no_latent_function(
    n_classes: int,
) -> None:
    X, y = rows(30), np.arange(30) % n_classes
    model = GaussianProcessClassifier(optimizer=None, multi_class="one_vs_one").fit(X, y)
    if n_classes == 2:
        assert isinstance(get_sampler(model), GaussianProcessSampler)
        return
    sampler = get_sampler(model)
    assert isinstance(sampler, BootstrapSampler)
    assert sampler.estimator is model
    with pytest.raises(UnsupportedModelError, match="Got multi_class='one_vs_one' in Gaussian"):
        GaussianProcessSampler(model).draw()


def test_classifier_without_the_parts_of_its_approximation_falls_back_to_the_bootstrap() -> None:
    model = GaussianProcessClassifier(optimizer=None).fit(rows(), np.arange(25) % 2)
    del model.base_estimator_.W_sr_
    assert isinstance(get_sampler(model), BootstrapSampler)


@pytest.mark.parametrize("name", MODELS)
def test_draws_outlive_pickling_and_another_fit(name: str) -> None:
    model = pickle.loads(pickle.dumps(MODELS[name]()))
    sampler = get_sampler(model)
    assert isinstance(sampler, GaussianProcessSampler)
    draws = sampler.draw(9, random_state=0)
    before = draws(rows(5)).values
    model.fit(rows(20)[:, :1], np.arange(20) % 2)
    np.testing.assert_array_equal(draws(rows(5)).values, before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(draws))(rows(5)).values, before)


@pytest.mark.parametrize("name", MODELS)
def test_draws_leave_model_and_rows_as_they_were(name: str) -> None:
    model, X = MODELS[name](), rows(6, seed=18)
    before, copied = pickle.dumps(model), X.copy()
    GaussianProcessSampler(model).sample(X, random_state=0)
    assert pickle.dumps(model) == before
    np.testing.assert_array_equal(X, copied)


@pytest.mark.parametrize("model_class", [GaussianProcessRegressor, GaussianProcessClassifier])
def test_unfitted_model_is_named(model_class: Any) -> None:
    with pytest.raises(NotFittedError, match=f"{model_class.__name__} is not fitted yet"):
        GaussianProcessSampler(model_class()).draw()
    with pytest.raises(NotFittedError, match=f"{model_class.__name__} is not fitted yet"):
        get_sampler(model_class()).draw()


def test_other_models_and_wrong_parameters_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match=r"GaussianProcessClassifier\. Got Ridge in"):
        GaussianProcessSampler(Ridge()).draw()
    with pytest.raises(ValueError, match=r"n_draws .* Got 0 in GaussianProcessSampler\.draw"):
        GaussianProcessSampler(regressor()).draw(0)
    with pytest.raises(ValueError, match=r"max_rows must be an integer >= 1\. Got 0 in Gaussian"):
        GaussianProcessSampler(regressor(), max_rows=0).draw()
    with pytest.raises(TypeError, match=r"max_rows must be an integer >= 1\. Got 1e3|Got 1000\.0"):
        GaussianProcessSampler(regressor(), max_rows=1e3).draw()  # type: ignore[arg-type]
