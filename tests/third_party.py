"""Good strategies that are no BaseQuery, as a third party might write them; no tests."""

import numbers
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_ical import BaseQuery, PredictionSamples
from sklearn_ical.exceptions import BatchClippedWarning
from sklearn_ical.pool import Pool
from sklearn_ical.samplers import get_sampler
from sklearn_ical.selection import Batch, Selection
from sklearn_ical.strategies import QueryTags


class Spread(BaseEstimator):
    """A third party's strategy, no BaseQuery: the rows on which the draws spread most."""

    def __init__(self, power: float = 1.0, random_state: Any = None) -> None:
        self.power = power
        self.random_state = random_state

    def query_tags(self) -> Any:
        return SimpleNamespace(
            deterministic=True,
            utilities="gain",
            kinds=("proba", "label", "value"),
            reads=("draws",),
            uses=(),
            min_draws=2,
            max_pool=None,
        )

    def query(
        self,
        model: Any,
        X_pool: Any,
        batch_size: Any = 1,
        *,
        candidates: Any = None,
        costs: Any = None,
        budget: Any = None,
        return_utilities: bool = False,
        **information: Any,
    ) -> Any:
        allowed = self.allowed(candidates, self.count(X_pool))
        size = self.size(batch_size, len(allowed))
        bill = self.bill(costs, budget, self.count(X_pool), allowed)
        return self.answer(self.predict(model, X_pool), allowed, size, return_utilities, bill)

    def select(
        self,
        samples: Any,
        batch_size: Any = 1,
        *,
        candidates: Any = None,
        costs: Any = None,
        budget: Any = None,
        return_utilities: bool = False,
        **information: Any,
    ) -> Any:
        samples = self.as_samples(samples)
        allowed = self.allowed(candidates, samples.n_points)
        size = self.size(batch_size, len(allowed))
        bill = self.bill(costs, budget, samples.n_points, allowed)
        return self.answer(samples, allowed, size, return_utilities, bill)

    def __call__(self, model: Any, X_pool: Any, n_instances: int = 1) -> Any:
        if hasattr(model, "learner_list"):
            model = [learner.estimator for learner in model.learner_list]
        model = getattr(model, "estimator", model) if hasattr(model, "teach") else model
        picks, rows = self.query(model, X_pool, n_instances, return_utilities=True)
        return picks, rows[np.arange(len(picks)), picks]

    def count(self, X_pool: Any) -> int:
        return X_pool.shape[0] if hasattr(X_pool, "shape") else len(X_pool)

    def as_samples(self, samples: Any) -> PredictionSamples:
        return samples if isinstance(samples, PredictionSamples) else PredictionSamples(samples)

    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        draws = model if hasattr(model, "n_draws") and callable(model) else None
        return (draws or get_sampler(model).draw())(X_pool)

    def allowed(self, candidates: Any, n: int) -> np.ndarray:
        found = np.arange(n) if candidates is None else np.asarray(candidates)
        if found.dtype == bool and found.shape == (n,):
            found = np.flatnonzero(found)
        if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) == 0:
            raise ValueError(f"candidates must be some positions or a mask. Got {candidates!r}.")
        if len(np.unique(found)) < len(found) or found.min() < 0 or found.max() >= n:
            raise ValueError(f"candidates must be distinct positions. Got {candidates!r}.")
        return np.sort(found).astype(np.intp)

    def size(self, batch_size: Any, n_allowed: int) -> int:
        if isinstance(batch_size, bool) or not isinstance(batch_size, numbers.Integral):
            raise TypeError(f"batch_size must be an integer. Got {batch_size!r}.")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1. Got {batch_size!r}.")
        if batch_size > n_allowed:
            warnings.warn("All candidates are returned.", BatchClippedWarning, stacklevel=3)
        return min(int(batch_size), n_allowed)

    def bill(self, costs: Any, budget: Any, n: int, allowed: np.ndarray) -> Any:
        """Return checked costs and budget, None without costs."""
        if costs is None:
            if budget is not None:
                raise ValueError("A budget needs costs.")
            return None
        costs = np.asarray(costs)
        if costs.shape != (n,) or costs.dtype.kind not in "iuf":
            raise ValueError(f"costs must be {n} numbers. Got {costs!r}.")
        if not (np.isfinite(costs) & (costs > 0)).all():
            raise ValueError(f"costs must be finite and > 0. Got {costs!r}.")
        if budget is None:
            return costs, np.inf
        if isinstance(budget, bool) or not isinstance(budget, numbers.Real):
            raise TypeError(f"budget must be a number. Got {budget!r}.")
        if not costs[allowed].min() <= float(budget) < np.inf:
            raise ValueError(f"budget must be finite and pay for a row. Got {budget!r}.")
        return costs, float(budget)

    def answer(
        self,
        samples: PredictionSamples,
        allowed: np.ndarray,
        size: int,
        return_utilities: bool,
        bill: Any,
    ) -> Any:
        least = self.query_tags().min_draws
        if samples.kind not in self.query_tags().kinds or samples.n_draws < least:
            raise ValueError(f"Got {samples.n_draws} draws of kind {samples.kind!r}.")
        return self.decide(self.utilities(samples, allowed), allowed, size, return_utilities, bill)

    def decide(
        self, utilities: np.ndarray, allowed: np.ndarray, size: int, with_rows: bool, bill: Any
    ) -> Any:
        if bill is None:
            picks = self.pick(utilities, allowed, size)
            return (picks, self.rows(utilities, allowed, picks)) if with_rows else picks
        costs, left = bill
        worth = self.per_cost(utilities, costs)
        picks, open_ = self.afford(self.pick(worth, allowed, len(allowed)), size, costs, left)
        rows = self.rows(worth, allowed, picks)
        return (picks, np.where(open_, rows, np.nan)) if with_rows else picks

    def per_cost(self, utilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
        return np.where(utilities > 0, utilities / costs, utilities * costs)

    def afford(
        self, order: np.ndarray, size: int, costs: np.ndarray, left: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Walk down; return the picks, and which rows each of them could have been instead."""
        picks: list[int] = []
        open_ = []
        for place in order:
            if costs[place] <= left and len(picks) < size:
                open_.append(costs <= left)
                picks.append(place)
                left -= costs[place]
        return np.array(picks, dtype=np.intp), np.array(open_)

    def outputs(self, samples: PredictionSamples) -> np.ndarray:
        values = np.asarray(samples.values)
        if samples.kind == "label":
            values = np.eye(3)[values]
        return values.astype(np.float64).reshape(len(values), samples.n_draws, -1)

    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        outputs = self.outputs(samples)
        mean = np.average(outputs, axis=1, weights=samples.weights, keepdims=True)
        spread = np.average((outputs - mean) ** 2, axis=1, weights=samples.weights)
        return self.power * spread.sum(axis=1)

    def pick(self, utilities: np.ndarray, allowed: np.ndarray, size: int) -> np.ndarray:
        return allowed[np.argsort(-utilities[allowed], kind="stable")[:size]]

    def rows(self, utilities: np.ndarray, allowed: np.ndarray, picks: np.ndarray) -> np.ndarray:
        rows = np.full((len(picks), len(utilities)), np.nan)
        rows[:, allowed] = utilities[allowed]
        for t, pick in enumerate(picks):
            rows[t + 1 :, pick] = np.nan
        return rows


class Noisy(Spread):
    """Spread and noise from `random_state`; still a good strategy."""

    def query_tags(self) -> Any:
        return SimpleNamespace(**{**vars(super().query_tags()), "deterministic": False})

    def seed(self) -> Any:
        given = self.random_state
        if isinstance(given, np.random.RandomState):
            return given.randint(2**31)
        return given.integers(2**31) if isinstance(given, np.random.Generator) else given

    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        noise = np.random.default_rng(self.seed()).random(samples.n_points)
        return super().utilities(samples, allowed) + noise


class SpreadOfValues(Spread):
    """Spread for regression alone; still a good strategy."""

    def query_tags(self) -> Any:
        return SimpleNamespace(**{**vars(super().query_tags()), "kinds": ("value",)})


class Remote(Spread):
    """The rows farthest from what is labeled, whatever the predictions; still a good strategy."""

    def query_tags(self) -> Any:
        changes = {"reads": ("features", "labeled"), "min_draws": 1, "max_pool": 60}
        return SimpleNamespace(**{**vars(super().query_tags()), **changes})

    def query(
        self,
        model: Any,
        X_pool: Any,
        batch_size: Any = 1,
        *,
        candidates: Any = None,
        X_labeled: Any = None,
        features: Any = None,
        labeled_features: Any = None,
        costs: Any = None,
        budget: Any = None,
        return_utilities: bool = False,
        **information: Any,
    ) -> Any:
        n_pool = self.count(X_pool if features is None else features)
        if n_pool > self.query_tags().max_pool:
            raise ValueError("X_pool is too large; use it in a FilteredQuery.")
        allowed = self.allowed(candidates, n_pool)
        size = self.size(batch_size, len(allowed))
        bill = self.bill(costs, budget, n_pool, allowed)
        centers = self.centers(X_labeled, features, labeled_features)
        rows = self.features(X_pool, features, n_pool)
        distances = self.distances(rows, centers)
        return self.decide(distances, allowed, size, return_utilities, bill)

    def select(
        self, samples: Any = None, batch_size: Any = 1, *, X_pool: Any = None, **options: Any
    ) -> Any:
        return self.query(None, X_pool, batch_size, **options)

    def features(self, X_pool: Any, features: Any, n_pool: int) -> np.ndarray:
        if features is None:
            return self.numbers(X_pool, "X_pool")
        if X_pool is not None and self.count(X_pool) != n_pool:
            raise ValueError("features and X_pool must have equally many rows.")
        return self.numbers(features, "features")

    def centers(self, X_labeled: Any, features: Any, labeled_features: Any) -> np.ndarray:
        if labeled_features is None and features is not None:
            raise ValueError("labeled_features must be given with features.")
        if labeled_features is None and X_labeled is None:
            raise ValueError("X_labeled must hold the labeled rows.")
        if labeled_features is None:
            return self.numbers(X_labeled, "X_labeled")
        if X_labeled is not None and self.count(labeled_features) != self.count(X_labeled):
            raise ValueError("labeled_features and X_labeled must have equally many rows.")
        return self.numbers(labeled_features, "labeled_features")

    def numbers(self, X: Any, name: str) -> np.ndarray:
        array = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise ValueError(f"{name} must hold finite numbers. Got {array.dtype}.")
        return array.astype(np.float64)

    def distances(self, rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
        if rows.shape[1:] != centers.shape[1:]:
            raise ValueError("features and labeled_features must have equally many columns.")
        return ((rows[:, None, :] - centers) ** 2).sum(axis=2).min(axis=1)

    def __call__(self, model: Any, X_pool: Any, n_instances: int = 1) -> Any:
        learner = model.learner_list[0] if hasattr(model, "learner_list") else model
        picks, rows = self.query(
            None, X_pool, n_instances, X_labeled=learner.X_training, return_utilities=True
        )
        return picks, rows[np.arange(len(picks)), picks]


class RemoteOrApart(Remote):
    """The rows farthest from the labeled ones, or without any from the mean of the pool."""

    def query_tags(self) -> Any:
        changes = {"reads": ("features",), "uses": ("labeled",)}
        return SimpleNamespace(**{**vars(super().query_tags()), **changes})

    def query(
        self,
        model: Any,
        X_pool: Any,
        *args: Any,
        features: Any = None,
        X_labeled: Any = None,
        labeled_features: Any = None,
        **options: Any,
    ) -> Any:
        if labeled_features is None and (X_labeled is None or self.count(X_labeled) == 0):
            rows = self.numbers(X_pool if features is None else features, "features")
            X_labeled = rows.mean(axis=0, keepdims=True)
            labeled_features = None if features is None else X_labeled
        given = {"features": features, "labeled_features": labeled_features}
        return super().query(model, X_pool, *args, X_labeled=X_labeled, **given, **options)

    def __call__(self, model: Any, X_pool: Any, n_instances: int = 1) -> Any:
        learner = model.learner_list[0] if hasattr(model, "learner_list") else model
        X_labeled = getattr(learner, "X_training", None)
        picks, rows = self.query(
            None, X_pool, n_instances, X_labeled=X_labeled, return_utilities=True
        )
        return picks, rows[np.arange(len(picks)), picks]


class Apart(BaseQuery):
    """The rows farthest from the mean of all, by the features of its parameter; also good."""

    def __init__(self, features: Any = "auto", random_state: Any = None) -> None:
        self.features = features
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        return QueryTags(reads=("features",), uses=("model",))

    def _select(self, pool: Pool) -> Selection:
        X = pool.rows.features(self.features)
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        batch = Batch(pool)
        squares = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
        batch.take(squares[pool.candidates], pool.batch_size)
        return batch.selection()
