"""A custom sampler: linear functions drawn from the posterior of a Bayesian ridge regression."""

from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge

from sklearn_ical import BALDQuery, PredictionSamples
from sklearn_ical.samplers import BaseSampler, get_sampler


class LinearDraws:
    """Linear functions, fixed once drawn, that can be evaluated on any rows."""

    kind = "value"
    classes = None
    weights = None
    joint = False

    def __init__(self, coefficients: np.ndarray, intercepts: np.ndarray, noise: float) -> None:
        self.coefficients = coefficients  # (n_draws, n_features)
        self.intercepts = intercepts  # (n_draws,)
        self.noise = noise
        self.n_draws = len(coefficients)

    def __call__(self, X: Any) -> PredictionSamples:
        values = np.asarray(X) @ self.coefficients.T + self.intercepts
        return PredictionSamples(values, kind="value", noise_variance=self.noise)


class BayesianRidgeSampler(BaseSampler):
    """Draw the coefficients from their Gaussian posterior."""

    def __init__(self, model: BayesianRidge) -> None:
        self.model = model

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> LinearDraws:
        model, rng = self.model, np.random.default_rng(random_state)
        n_draws = 50 if n_draws is None else n_draws
        coefficients = rng.multivariate_normal(model.coef_, model.sigma_, size=n_draws)
        # All functions have the same value at the mean of the training rows.
        center = model.X_offset_ @ model.coef_ + model.intercept_
        return LinearDraws(coefficients, center - coefficients @ model.X_offset_, 1 / model.alpha_)


get_sampler.register(BayesianRidge, BayesianRidgeSampler)

if __name__ == "__main__":
    X, y = load_diabetes(return_X_y=True)
    model = BayesianRidge().fit(X[:50], y[:50])
    print(BALDQuery(random_state=0).query(model, X[50:], batch_size=5))

    # The mean and the standard deviation of the draws are those of the model's posterior.
    values = get_sampler(model).sample(X, n_draws=5000, random_state=0).values
    centered = X - model.X_offset_
    spread = np.sqrt(np.sum(centered @ model.sigma_ * centered, axis=1))
    np.testing.assert_allclose(values.mean(axis=1), model.predict(X), atol=0.1 * spread.max())
    np.testing.assert_allclose(values.std(axis=1), spread, rtol=0.1)
