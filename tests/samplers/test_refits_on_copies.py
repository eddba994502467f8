"""Refits have rows in the order of the labeled ones, and copies of what models may change."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    RANSACRegressor,
    Ridge,
    SGDClassifier,
)
from sklearn.model_selection import KFold

from sklearn_ical import ActiveLearner
from sklearn_ical.samplers import BootstrapSampler

X, Y = load_iris(return_X_y=True)
SHUFFLED = np.random.default_rng(0).permutation(len(Y))
X, Y = X[SHUFFLED], Y[SHUFFLED]
TARGETS = X[:, 0] * 2 + X[:, 1] + 5
X_POOL = X + 0.1


def drawn(model: Any, y: Any, n_draws: int = 4, **options: Any) -> np.ndarray:
    sampler = BootstrapSampler(model, **options).fit(X, y)
    return np.asarray(sampler.sample(X_POOL, n_draws=n_draws, random_state=0).values)


def test_classes_keep_their_order() -> None:
    """Folds of sorted classes would lack the class that they are to predict."""
    model = StackingClassifier([("a", LogisticRegression(max_iter=500))], cv=KFold(3)).fit(X, Y)
    proba = drawn(model, Y)
    assert model.score(X, Y) > 0.9
    assert (proba.argmax(axis=2) == Y[:, None]).mean() > 0.9


def test_nets_are_trained_on_batches_of_all_classes() -> None:
    torch, skorch = pytest.importorskip("torch"), pytest.importorskip("skorch")
    digits, labels = load_digits(return_X_y=True)
    digits = digits.astype(np.float32) / 16
    torch.manual_seed(0)
    layers = torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    net = skorch.NeuralNetClassifier(
        torch.nn.Sequential(*layers),
        criterion=torch.nn.CrossEntropyLoss,
        train_split=None,
        max_epochs=15,
        lr=0.1,
        verbose=0,
    )
    sampler = BootstrapSampler(net).fit(digits[:1000], labels[:1000])
    proba = sampler.sample(digits[1000:], n_draws=2, random_state=0).values
    resample = np.random.default_rng(0).integers(0, 1000, 1000)
    by_hand = clone(net).fit(digits[resample], labels[resample]).score(digits[1000:], labels[1000:])
    accuracy = (np.asarray(proba).argmax(axis=2) == labels[1000:, None]).mean()
    assert accuracy > by_hand - 0.05  # 0.1 less with the rows sorted by class


@pytest.mark.parametrize("method", ["weights", "bayesian"])
@pytest.mark.parametrize("kind", [Ridge, LinearRegression])
def test_models_that_work_in_place_change_no_rows(kind: Any, method: str) -> None:
    rows, targets = X.copy(), TARGETS.copy()
    found = drawn(kind(copy_X=False), TARGETS, method=method)
    np.testing.assert_array_equal(X, rows)
    np.testing.assert_array_equal(TARGETS, targets)
    np.testing.assert_allclose(found, drawn(kind(copy_X=True), TARGETS, method=method))


@pytest.mark.parametrize("method", ["weights", "copies"])
def test_models_that_work_in_place_change_no_arguments(method: str) -> None:
    model, start = SGDClassifier(loss="log_loss", max_iter=2, tol=None), np.ones((3, 4))
    sampler = BootstrapSampler(model, method=method).fit(X, Y, coef_init=start)
    first, second = (
        np.asarray(sampler.sample(X_POOL, n_draws=3, random_state=0).values) for _ in "ab"
    )
    np.testing.assert_array_equal(first, second)
    learner = ActiveLearner(model, "random").fit(X, Y, coef_init=start)
    np.testing.assert_array_equal(learner.fit_params_["coef_init"], np.ones((3, 4)))
    np.testing.assert_array_equal(start, np.ones((3, 4)))


def test_models_that_draw_rows_get_copies() -> None:
    """Rows of weight 0 alone, as RANSAC may draw them, cannot be fitted."""
    few = np.arange(0, 150, 6)
    sampler = BootstrapSampler(RANSACRegressor(min_samples=3)).fit(X[few], TARGETS[few])
    values = np.asarray(sampler.sample(X_POOL, random_state=0).values)
    np.testing.assert_allclose(
        values, np.repeat(2 * X_POOL[:, :1] + X_POOL[:, 1:2] + 5, 50, axis=1)
    )
