"""get_mean: a model's own mean as draws; resolve_source and draw_from, which strategies call."""

from typing import Any

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import ActiveLearner, PredictionSamples
from sklearn_ical.samplers import get_sampler
from sklearn_ical.samplers._base import draw_from, get_mean, is_draws, resolve_source

X = np.random.default_rng(0).normal(size=(40, 3))
VALUES = X[:, 0] + 0.1 * X[:, 1] ** 2
LABELS = np.array(["b", "a"])[(X[:, 0] > 0).astype(int)]
PROCESS = GaussianProcessRegressor(RBF() + WhiteKernel(0.1), optimizer=None)


def learner(estimator: Any, y: np.ndarray) -> ActiveLearner:
    return ActiveLearner(estimator, "random").fit(X, y)


def search(estimator: Any) -> GridSearchCV:
    return GridSearchCV(estimator, {}, cv=2)


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        make_pipeline(StandardScaler(), GaussianNB()),
        search(make_pipeline(StandardScaler(), GaussianNB())),
        FrozenEstimator(GaussianNB().fit(X, LABELS)),
        ActiveLearner(GaussianNB(), "random"),
        RandomForestClassifier(3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_mean_of_a_classifier_is_its_own_predict_proba(model: Any) -> None:
    mean = get_mean(model.fit(X, LABELS))
    samples = mean(X)
    assert mean.n_draws == 1
    assert is_draws(mean)
    assert samples.classes.tolist() == mean.classes.tolist() == ["a", "b"]
    np.testing.assert_array_equal(samples.values[:, 0], model.predict_proba(X))


def regressors() -> dict[str, tuple[Any, Any]]:
    """Return models, and the regressor and rows whose mean and deviation they should have."""
    ridge, process = BayesianRidge().fit(X, VALUES), PROCESS.fit(X, VALUES)
    steps = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, VALUES)
    behind = steps[-1], steps[:-1].transform(X)
    return {
        "ridge": (ridge, (ridge, X)),
        "process": (process, (process, X)),
        "frozen": (FrozenEstimator(ridge), (ridge, X)),
        "learner": (learner(BayesianRidge(), VALUES), (ridge, X)),
        "pipeline": (steps, behind),
        "one step": (make_pipeline(ridge), (ridge, X)),
        "search": (search(make_pipeline(StandardScaler(), BayesianRidge())).fit(X, VALUES), behind),
        "pipeline of a search": (
            make_pipeline(StandardScaler(), search(BayesianRidge())).fit(X, VALUES),
            behind,
        ),
    }


@pytest.mark.parametrize("name", regressors())
def test_mean_of_a_regressor_has_its_deviation_as_noise(name: str) -> None:
    model, (regressor, rows) = regressors()[name]
    samples = get_mean(model)(X)
    mean, std = regressor.predict(rows, return_std=True)
    assert samples.values.shape == (40, 1)
    np.testing.assert_allclose(samples.values[:, 0], mean, rtol=1e-12)
    np.testing.assert_allclose(samples.noise_variance[:, 0], std**2, rtol=1e-12)


def test_mean_of_several_targets_has_the_noise_that_they_share() -> None:
    targets = np.column_stack([VALUES, 3 * VALUES])
    shared = PROCESS.fit(X, targets)
    mean, std = shared.predict(X, return_std=True)
    samples = get_mean(shared)(X)
    np.testing.assert_array_equal(samples.values[:, 0], mean)
    np.testing.assert_allclose(samples.noise_variance[:, 0], std[:, 0] ** 2)


class Column:
    """A regressor whose single target is in a column."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        return X[:, :1], np.full((len(X), 1), 0.5)


def test_mean_of_a_target_in_a_column_has_no_axis_of_targets() -> None:
    samples = get_mean(Column())(X)
    np.testing.assert_array_equal(samples.values, X[:, :1])
    assert (samples.noise_variance == 0.25).all()


@pytest.mark.parametrize(
    "model",
    [
        Ridge().fit(X, VALUES),
        RandomForestRegressor(2).fit(X, VALUES),
        VotingRegressor([("ridge", BayesianRidge())]).fit(X, VALUES),
        TransformedTargetRegressor(Ridge()).fit(X, VALUES),
        MultiOutputRegressor(Ridge()).fit(X, np.column_stack([VALUES, VALUES])),
        make_pipeline(StandardScaler(), Ridge()).fit(X, VALUES),
        search(Ridge()).fit(X, VALUES),
        GaussianNB,
        [GaussianNB().fit(X, LABELS)],
        PredictionSamples(np.full((40, 2, 2), 0.5)),
        np.full((40, 2, 2), 0.5),
        None,
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_objects_have_no_mean_of_their_own(model: Any) -> None:
    assert get_mean(model) is None


def test_mean_of_a_model_that_is_not_fitted_raises() -> None:
    ridge = BayesianRidge()
    around = (TransformedTargetRegressor(ridge), MultiOutputRegressor(ridge))
    for model in (ridge, search(ridge), *around):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            get_mean(model)
    with pytest.raises(NotFittedError):
        get_mean(GaussianNB())(X)


def test_mean_of_a_registered_class_is_what_was_registered() -> None:
    class Odd(GaussianNB):
        pass

    constant = get_mean(GaussianNB().fit(X, LABELS))
    get_mean.register(Odd, lambda model: constant)
    assert get_mean(Odd()) is constant


@pytest.mark.filterwarnings("ignore:You are using .torch.load.:FutureWarning")
def test_mean_of_a_net_is_its_output_without_dropout() -> None:
    torch = pytest.importorskip("torch")
    body = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Dropout(), torch.nn.Linear(5, 2))
    net = torch.nn.Sequential(body, torch.nn.Softmax(dim=-1)).double()
    model = make_pipeline(StandardScaler().fit(X), net)
    samples = get_mean(model)(X)
    assert net.training
    rows = torch.from_numpy(model[:-1].transform(X))
    torch.testing.assert_close(samples.values[:, 0], net.eval()(rows).detach())


def test_net_of_values_has_no_mean_of_its_own_behind_steps_either() -> None:
    torch, skorch = pytest.importorskip("torch"), pytest.importorskip("skorch")
    net = skorch.NeuralNetRegressor(torch.nn.Linear(3, 1), max_epochs=1, verbose=0)
    rows, values = X.astype(np.float32), VALUES[:, None].astype(np.float32)
    model = make_pipeline(StandardScaler(), net).fit(rows, values)
    assert hasattr(model, "predict_proba")  # whatever it gives, these are no probabilities
    assert get_mean(model) is get_mean(model[-1]) is None


def test_source_is_the_mean_where_that_will_do_else_draws_or_a_sampler() -> None:
    forest = RandomForestClassifier(3, random_state=0).fit(X, LABELS)
    mean = resolve_source(forest, mean_only=True)
    assert draw_from(mean, 0) is mean
    np.testing.assert_array_equal(mean(X).values[:, 0], forest.predict_proba(X))
    draws = draw_from(resolve_source(forest, mean_only=False), 0)
    assert draws.n_draws == 3
    assert resolve_source(draws, mean_only=True) is draws
    assert draw_from(draws, 1) is draws


def test_source_of_a_model_without_draws_has_the_labeled_rows() -> None:
    model = GaussianNB().fit(X, LABELS)
    source = resolve_source(model, mean_only=False, X_labeled=X, y_labeled=LABELS)
    assert source.X_ is X
    expected = get_sampler(model).with_labeled(X, LABELS).draw(random_state=5)(X)
    np.testing.assert_array_equal(draw_from(source, 5)(X).values, expected.values)


def test_draws_that_are_none_are_refused() -> None:
    class Bad:
        def draw(self, n_draws: Any, random_state: Any) -> np.ndarray:
            return np.zeros(3)

    with pytest.raises(TypeError, match=r"^draw of Bad must return draws: .* Got ndarray\.$"):
        draw_from(Bad(), 0)
