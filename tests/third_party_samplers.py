"""Good samplers and their models, as a third party might write them; no tests."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from sklearn_ical import PredictionSamples
from sklearn_ical.samplers import BaseSampler

# Deviation of each coefficient of a plane, and variance of the noise around it.
DEVIATION = 0.3
NOISE = 0.04


def plain(X: Any) -> np.ndarray:
    """Return rows as an array, or refuse them as models do."""
    array = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    if np.isnan(array).any():
        raise ValueError("X contains NaN")
    return array


class Plane:
    """A fitted regressor of a third party, which knows how far off it may be."""

    def __init__(self) -> None:
        self.coef = np.array([1.0, -2.0, 0.5])
        self.n_features_in_ = 3

    def predict(self, X: Any, return_std: bool = False) -> Any:
        mean = plain(X) @ self.coef
        variance = DEVIATION**2 * (plain(X) ** 2).sum(axis=1) + NOISE
        return (mean, np.sqrt(variance)) if return_std else mean


class Votes:
    """A fitted classifier of a third party: the weighted mean of its members."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.coefs = rng.normal(scale=3, size=(3, 3)) + rng.normal(size=(6, 3, 3))
        self.weights = np.array([1, 2, 3, 4, 5, 6]) / 21
        self.classes_ = np.array(["a", "b", "c"])
        self.n_features_in_ = 3

    def predict_proba(self, X: Any) -> np.ndarray:
        members = softmax(plain(X) @ self.coefs, axis=2)
        return np.einsum("knc,k->nc", members, self.weights)

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class PlaneDraws:
    """Draws of `Planes`, whose answers a subclass spoils."""

    kind: Any = "value"
    classes: Any = None
    weights: Any = None
    joint: Any = False
    noise_variance: Any = NOISE

    def __init__(self, coefs: np.ndarray) -> None:
        self.coefs = coefs
        self.n_draws = len(coefs)

    def __call__(self, X: Any) -> Any:
        values = self.values(plain(X))
        return PredictionSamples(values, "value", noise_variance=self.noise_variance)

    def values(self, X: np.ndarray) -> np.ndarray:
        return X @ self.coefs.T


class Planes(BaseSampler):
    """A third party's posterior: planes around that of the model."""

    make: Any = PlaneDraws

    def __init__(self, model: Any = None) -> None:
        self.model: Any = Plane() if model is None else model

    def draw(self, n_draws: Any = None, random_state: Any = None) -> Any:
        n_draws, generator = self.count(n_draws), self.generator(random_state)
        deviations = generator.normal(scale=DEVIATION, size=(n_draws, 3))
        return self.make(self.model.coef + deviations)

    def count(self, n_draws: Any) -> int:
        n_draws = 8 if n_draws is None else n_draws
        if isinstance(n_draws, bool) or not isinstance(n_draws, int | np.integer) or n_draws < 1:
            raise ValueError(f"n_draws must be an integer >= 1. Got {n_draws!r}.")
        return int(n_draws)

    def generator(self, random_state: Any) -> np.random.Generator:
        if isinstance(random_state, np.random.Generator):
            return np.random.default_rng(random_state.integers(2**40))
        if isinstance(random_state, np.random.RandomState):
            return np.random.default_rng(random_state.randint(2**30))
        if random_state is None:
            return np.random.default_rng()
        if not isinstance(random_state, int | np.integer) or random_state < 0:
            raise TypeError(f"random_state must be an integer >= 0. Got {random_state!r}.")
        return np.random.default_rng(int(random_state))


class BarePlanes:
    """The same posterior by the one method that is asked for."""

    def __init__(self) -> None:
        self.model = Plane()

    def draw(self, n_draws: Any = None, random_state: Any = None) -> Any:
        return Planes(self.model).draw(n_draws, random_state)


class VoteDraws:
    """Draws of `Committee`, whose answers a subclass spoils."""

    kind: Any = "proba"
    joint = False

    def __init__(self, coefs: np.ndarray, weights: Any, classes: Any) -> None:
        self.coefs = coefs
        self.n_draws = len(coefs)
        self.weights = weights
        self.classes = classes

    def __call__(self, X: Any) -> Any:
        values = softmax(plain(X) @ self.coefs, axis=2).swapaxes(0, 1)
        return PredictionSamples.trusted(
            self.spoiled(values), "proba", classes=self.classes, weights=self.weights
        )

    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return values


class MoreClasses(VoteDraws):
    """Draws of refits, which know classes that the model does not."""

    mean_differs = "members are refits on more classes"

    def __init__(self, coefs: np.ndarray, weights: Any, classes: Any) -> None:
        super().__init__(coefs, weights, ("0", "a", "aa", "b", "c"))

    def spoiled(self, values: np.ndarray) -> np.ndarray:
        share = 0.1 * values[:, :, :1]
        return np.concatenate([share, values[:, :, :1] - 2 * share, share, values[:, :, 1:]], 2)


class Committee(Planes):
    """A third party's finite ensemble."""

    make: Any = VoteDraws

    def __init__(self, model: Any = None) -> None:
        super().__init__(Votes() if model is None else model)

    def draw(self, n_draws: Any = None, random_state: Any = None) -> Any:
        if n_draws is None:
            chosen = np.arange(6)
        else:
            chosen = self.choose(self.count(n_draws), self.generator(random_state))
        return self.members(chosen)

    def members(self, chosen: np.ndarray) -> Any:
        weights = self.model.weights[chosen]
        return self.make(self.model.coefs[chosen], weights / weights.sum(), self.model.classes_)

    def choose(self, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        if n_draws > 6:
            raise ValueError(f"n_draws must be at most 6. Got {n_draws}.")
        return np.sort(generator.choice(6, n_draws, replace=False))


class JointPlaneDraws(PlaneDraws):
    joint = True

    def together(self, X: Any, X_reference: Any) -> Any:
        samples = self(np.concatenate([plain(X), plain(X_reference)]))
        return samples[: len(X)], samples[len(X) :]
