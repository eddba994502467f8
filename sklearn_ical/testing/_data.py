"""Small pools, models and samples, and how a strategy is asked about them; no checks."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Problem:
    """What a strategy is asked about: the source is a fitted model, or samples of the pool."""

    source: Any
    X_pool: Any
    X_labeled: Any
    y_labeled: Any

    def of_samples(self, samples: PredictionSamples) -> "Problem":
        """Return the same rows with other samples."""
        return replace(self, source=samples)

    def take(self, rows: np.ndarray) -> "Problem":
        """Return the problem whose pool row j is row ``rows[j]`` of this one (samples only)."""
        return replace(self, source=self.source[rows], X_pool=self.X_pool[rows])


def seeded(strategy: Any, random_state: Any = 0) -> Any:
    """Return a fresh copy of the strategy, all of whose random states are set."""
    return _random.seeded(strategy, random_state)


def ask(strategy: Any, problem: Problem, batch_size: Any = BATCH, **options: Any) -> Any:
    """Call `query`, with the labeled rows where the tags ask for them."""
    if "labeled" in strategy.query_tags().needs:
        options = {"X_labeled": problem.X_labeled, "y_labeled": problem.y_labeled, **options}
    return strategy.query(problem.source, problem.X_pool, batch_size, **options)


def choose(strategy: Any, problem: Problem, batch_size: Any = BATCH, **options: Any) -> Any:
    """Call `select`, with the rows that its signature takes."""
    given = {name: getattr(problem, name) for name in ("X_pool", "X_labeled", "y_labeled")}
    given = {name: rows for name, rows in given.items() if takes(strategy.select, name)}
    return strategy.select(problem.source, batch_size, **given, **options)


def takes(method: Callable[..., Any], name: str) -> bool:
    """Tell whether a method has a parameter of that name."""
    return name in inspect.signature(method).parameters


def classifies(strategy: Any) -> bool:
    """Tell whether the strategy understands the predictions of classifiers."""
    return bool({"proba", "label"} & set(strategy.query_tags().kinds))


def model_problem(
    strategy: Any, convert: Callable[[np.ndarray], Any] = np.asarray, n_pool: int = N_POOL
) -> Problem:
    """Return a forest fitted on a few rows, and a pool; `convert` makes the rows' container."""
    rows = _rows(strategy, n_pool, convert)
    return replace(rows, source=forest(strategy).fit(rows.X_labeled, rows.y_labeled))


def with_rows(strategy: Any, samples: PredictionSamples) -> Problem:
    """Return a problem of these samples, with features for each of their points."""
    return _rows(strategy, samples.n_points, np.asarray).of_samples(samples)


def _rows(strategy: Any, n_pool: int, convert: Callable[[np.ndarray], Any]) -> Problem:
    """Return labeled rows and a pool, without a source of predictions."""
    X = np.random.default_rng(0).normal(size=(N_LABELED + n_pool, 4))
    labeled = X[:N_LABELED]
    return Problem(None, convert(X[N_LABELED:]), convert(labeled), targets(strategy, labeled))


def targets(strategy: Any, X: np.ndarray) -> np.ndarray:
    """Return three classes, or real values for strategies of regression alone."""
    signal = X[:, 0] + X[:, 1] ** 2 + np.random.default_rng(1).normal(scale=0.5, size=len(X))
    return np.digitize(signal, [0.3, 1.5]) if classifies(strategy) else signal


def forest(strategy: Any) -> Any:
    """Return an unfitted forest with impure leaves and as many trees as the tags ask for."""
    n_trees = max(10, strategy.query_tags().min_draws)
    kind = RandomForestClassifier if classifies(strategy) else RandomForestRegressor
    return kind(n_trees, max_depth=4, min_samples_leaf=2, random_state=0)


def members(strategy: Any, problem: Problem) -> list[Any]:
    """Return a few fitted models, each of a part of the labeled rows."""
    kind = DecisionTreeClassifier if classifies(strategy) else DecisionTreeRegressor
    rng = np.random.default_rng(2)
    fitted = []
    for _ in range(max(6, strategy.query_tags().min_draws)):
        rows = rng.choice(N_LABELED, N_LABELED, replace=True)
        model = kind(min_samples_leaf=3, random_state=0)
        fitted.append(model.fit(problem.X_labeled[rows], problem.y_labeled[rows]))
    return fitted


def samples_problem(strategy: Any, kind: Kind) -> Problem:
    """Return samples on which reasonable utilities do not tie, and rows to go with them.

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


def reference_sets(strategy: Any, n_points: int) -> np.ndarray:
    """Return fixed reference positions, for strategies that take `reference`.

    One set per step, (n_steps, r), where a parameter `resample` tells that steps may differ; else
    the set of the whole batch, (r,).
    """
    parameters = strategy.get_params()
    if "resample" not in parameters:
        return np.random.default_rng(4).integers(n_points, size=6)
    n_steps = -(-BATCH // parameters.get("step_size", 1))
    return np.random.default_rng(4).integers(n_points, size=(n_steps, 6))


def fixed_options(strategy: Any, problem: Problem) -> dict[str, Any] | None:
    """Return options under which picks follow from the predictions alone; None if there are none.

    Without the tag `deterministic`, a strategy that takes `reference` has no choice left for label
    samples; for others, whenever the picks turn out not to depend on `random_state`.
    """
    if strategy.query_tags().deterministic:
        return {}
    if not takes(strategy.select, "reference"):
        return None
    n_points = problem.source.n_points
    options = {"reference": reference_sets(strategy, n_points)}
    if takes(strategy.select, "marginal"):
        options["marginal"] = np.arange(n_points)
    if problem.source.kind == "label":
        return options
    found = {tuple(choose(seeded(strategy, seed), problem, **options)) for seed in range(3)}
    return options if len(found) == 1 else None


def has_ties(strategy: Any, problem: Problem, **options: Any) -> bool:
    """Tell whether some pick is hardly better than the next best, as far as utilities tell."""
    _, rows = choose(strategy, problem, return_utilities=True, **options)
    ordered = np.sort(np.where(np.isnan(rows), -np.inf, rows), axis=1)
    return bool((ordered[:, -1] - ordered[:, -2] <= 1e-9 * np.abs(ordered[:, -1])).any())
