"""Small pools, models and samples, and calls of a strategy with them; no checks."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sklearn_ical import _random
from sklearn_ical._typing import Kind
from sklearn_ical.samples import PredictionSamples

BATCH = 5
N_POOL = 40
N_LABELED = 40
N_MODELS = 6


@dataclass(frozen=True)
class Problem:
    """Input of a strategy: the source is a fitted model, or samples of the pool."""

    source: Any
    X_pool: Any
    X_labeled: Any
    y_labeled: Any

    def with_source(self, source: Any) -> "Problem":
        """Return the same rows with another model or other samples."""
        return replace(self, source=source)

    def with_rows(self, X_pool: Any, X_labeled: Any) -> "Problem":
        """Return a problem of the same source with other rows."""
        return replace(self, X_pool=X_pool, X_labeled=X_labeled)

    def take(self, rows: np.ndarray) -> "Problem":
        """Return the problem whose pool row j is row ``rows[j]`` of this one (samples only)."""
        return replace(self, source=self.source[rows], X_pool=self.X_pool[rows])


def seeded(strategy: Any, random_state: Any = 0) -> Any:
    """Return a fresh copy of the strategy, all of whose random states are set."""
    return _random.seeded(strategy, random_state)


def reads(strategy: Any, *what: str) -> bool:
    """Return whether a strategy reads any of these, by its tags."""
    return not set(what).isdisjoint(strategy.query_tags().reads)


def uses(strategy: Any, what: str) -> bool:
    """Return whether a strategy reads this, or uses it if given, by its tags."""
    return reads(strategy, what) or what in strategy.query_tags().uses


def reads_predictions(strategy: Any) -> bool:
    """Return whether `select` needs samples."""
    return reads(strategy, "draws", "mean")


def reads_model(strategy: Any) -> bool:
    """Return whether `query` needs a model."""
    return reads(strategy, "draws", "mean", "gradients", "refits")


def kinds(strategy: Any) -> tuple[Kind, ...]:
    """Return the kinds of samples to test: one, without effect, if none are read."""
    known = strategy.query_tags().kinds
    return known if reads_predictions(strategy) else known[:1]


def predicted_kinds(strategy: Any) -> tuple[Kind, ...]:
    """Return the supported kinds of samples, none if no predictions are read."""
    return kinds(strategy) if reads_predictions(strategy) else ()


def ask(strategy: Any, problem: Problem, batch_size: Any = BATCH, **options: Any) -> Any:
    """Call `query`, with the labeled rows that it reads."""
    options = labeled_rows(strategy, problem) | options
    return strategy.query(problem.source, problem.X_pool, batch_size, **options)


def choose(strategy: Any, problem: Problem, batch_size: Any = BATCH, **options: Any) -> Any:
    """Call `select`, with the samples and the labeled rows that it reads."""
    options = {"X_pool": problem.X_pool} | labeled_rows(strategy, problem) | options
    samples = problem.source if reads_predictions(strategy) else None
    return strategy.select(samples, batch_size, **options)


def labeled_rows(strategy: Any, problem: Problem) -> dict[str, Any]:
    """Return the labeled rows by name, if the rows themselves and not predictions are used."""
    if reads(strategy, "labeled") or (
        uses(strategy, "labeled") and not reads_predictions(strategy)
    ):
        return {"X_labeled": problem.X_labeled, "y_labeled": problem.y_labeled}
    return {}


def with_features(strategy: Any, features: Any, labeled_features: Any) -> dict[str, Any]:
    """Return features of the pool, and of labeled rows that are used, by name."""
    others = {"labeled_features": labeled_features} if uses(strategy, "labeled") else {}
    return {"features": features} | others


def classifies(strategy: Any) -> bool:
    """Return whether the strategy supports the predictions of classifiers."""
    return bool({"proba", "label"} & set(strategy.query_tags().kinds))


def model_problem(
    strategy: Any, convert: Callable[[np.ndarray], Any] | None = None, n_pool: int = N_POOL
) -> Problem:
    """Return a forest fitted on a few rows, and a pool; `convert` makes the rows' container."""
    if convert is None:
        source = pickle.loads(_pickled_forest(classifies(strategy), _n_models(strategy)))
        return _labeled_and_pool(strategy, n_pool, np.asarray).with_source(source)
    rows = _labeled_and_pool(strategy, n_pool, convert)
    return rows.with_source(forest(strategy).fit(rows.X_labeled, rows.y_labeled))


def with_rows(strategy: Any, samples: PredictionSamples) -> Problem:
    """Return a problem of these samples, with features for each of their points."""
    return _labeled_and_pool(strategy, samples.n_points, np.asarray).with_source(samples)


def _labeled_and_pool(strategy: Any, n_pool: int, convert: Callable[[np.ndarray], Any]) -> Problem:
    """Return labeled rows and a pool, without a source of predictions."""
    X = np.random.default_rng(0).normal(size=(N_LABELED + n_pool, 4))
    labeled = X[:N_LABELED]
    y = _targets(classifies(strategy), labeled)
    return Problem(None, convert(X[N_LABELED:]), convert(labeled), y)


def targets(strategy: Any, X: np.ndarray) -> np.ndarray:
    """Return three classes, or real values for strategies that only support regression."""
    return _targets(classifies(strategy), X)


def _targets(classes: bool, X: np.ndarray) -> np.ndarray:
    signal = X[:, 0] + X[:, 1] ** 2 + np.random.default_rng(1).normal(scale=0.5, size=len(X))
    return np.digitize(signal, [0.3, 1.5]) if classes else signal


def forest(strategy: Any) -> Any:
    """Return an unfitted forest with impure leaves and as many trees as the tags require."""
    return _forest(classifies(strategy), _n_models(strategy))


def _forest(classes: bool, n_trees: int) -> Any:
    kind = RandomForestClassifier if classes else RandomForestRegressor
    return kind(n_trees, max_depth=4, min_samples_leaf=2, random_state=0)


def _n_models(strategy: Any) -> int:
    return max(N_MODELS, strategy.query_tags().min_draws)


@cache
def _pickled_forest(classes: bool, n_trees: int) -> bytes:
    """Return a fitted forest, pickled, so that strategies cannot change each other's."""
    X = np.random.default_rng(0).normal(size=(N_LABELED, 4))
    return pickle.dumps(_forest(classes, n_trees).fit(X, _targets(classes, X)))


def members(strategy: Any) -> list[Any]:
    """Return a few models, each fitted on a part of the labeled rows."""
    return pickle.loads(_pickled_members(classifies(strategy), _n_models(strategy)))


@cache
def _pickled_members(classes: bool, n_models: int) -> bytes:
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    X = np.random.default_rng(0).normal(size=(N_LABELED, 4))
    y, rng, fitted = _targets(classes, X), np.random.default_rng(2), []
    for _ in range(n_models):
        rows = rng.choice(N_LABELED, N_LABELED, replace=True)
        fitted.append(kind(min_samples_leaf=3, random_state=0).fit(X[rows], y[rows]))
    return pickle.dumps(fitted)


def precomputed_features(n_pool: int = N_POOL) -> tuple[np.ndarray, np.ndarray]:
    """Return features of the pool and of the labeled rows.

    Numbers that float16 holds exactly, but not their squares.
    """
    X = 256 * np.random.default_rng(14).normal(size=(N_LABELED + n_pool, 3))
    features = X.astype(np.float16).astype(np.float64)
    return features[N_LABELED:], features[:N_LABELED]


def samples_problem(strategy: Any, kind: Kind) -> Problem:
    """Return samples for which reasonable utilities do not tie, and rows for them.

    Label samples have 16 rows of 40 votes: a for one class, 38 - a for another and 2 for the
    third, each a once, so no two rows have equal votes, margins or entropies.
    """
    rng = np.random.default_rng(3)
    n_points, n_draws = 16, max(40, strategy.query_tags().min_draws)
    values: Any
    if kind == "label":
        votes = np.arange(n_draws)[None, :]
        first = n_draws // 2 + np.arange(n_points)[:, None]
        values = (votes >= first).astype(np.int64) + (votes >= n_draws - 2)
        values = (rng.permuted(values, axis=1) + rng.integers(3, size=(n_points, 1))) % 3
        values = rng.permutation(values)
    elif kind == "proba":
        values = rng.dirichlet(np.ones(3), size=(n_points, n_draws))
    else:
        values = rng.normal(size=(n_points, n_draws)) * rng.uniform(0.5, 2, size=(n_points, 1))
    return with_rows(strategy, PredictionSamples(values, kind))


def reference_positions(strategy: Any, n_points: int, seed: int = 4) -> np.ndarray:
    """Return reference positions.

    One set per step, (n_steps, r), if there is a parameter `resample`; else the set of the whole
    batch, (r,).
    """
    shape = (*_reference_steps(strategy, BATCH), 6)
    return np.random.default_rng(seed).integers(n_points, size=shape)


def all_positions(strategy: Any, n_points: int, batch_size: int) -> np.ndarray:
    """Return each position once as the reference set, or as that of each step."""
    steps = _reference_steps(strategy, batch_size)
    return np.broadcast_to(np.arange(n_points), (*steps, n_points))


def _reference_steps(strategy: Any, batch_size: int) -> tuple[int, ...]:
    """Return (n_steps,) if each step has a reference set, () if the batch has one."""
    steps = {name.split("__")[-1]: value for name, value in strategy.get_params().items()}
    return (-(-batch_size // steps.get("step_size", 1)),) if "resample" in steps else ()


def fixed_options(strategy: Any, problem: Problem) -> dict[str, Any] | None:
    """Return options under which picks depend only on what is read; None if there are none.

    Without the tag `deterministic`, they may fix the reference rows, if nothing else is random: if
    `random_state` then has no effect.
    """
    positions = reference_positions(strategy, problem.source.n_points)
    return fixed_by(strategy, problem, positions, BATCH)


def fixed_by(
    strategy: Any, problem: Problem, positions: np.ndarray, batch_size: int
) -> dict[str, Any] | None:
    """Return options under which picks depend only on what is read, with these reference rows."""
    if strategy.query_tags().deterministic:
        return {}
    if not uses(strategy, "reference"):
        return None
    options = {"reference": positions}
    picks = {
        tuple(choose(seeded(strategy, seed), problem, batch_size, **options)) for seed in range(3)
    }
    return options if len(picks) == 1 else None


def has_ties(strategy: Any, problem: Problem, **options: Any) -> bool:
    """Return whether some pick is hardly better than the next best, by the utilities."""
    _, rows = choose(strategy, problem, return_utilities=True, **options)
    ordered = np.sort(np.where(np.isnan(rows), -np.inf, rows), axis=1)
    return bool((ordered[:, -1] - ordered[:, -2] <= 1e-9 * np.abs(ordered[:, -1])).any())
