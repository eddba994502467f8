"""The situations of the record: predictions and options of a call, made from the situation's name.

The first word of a name is the kind of the predictions; each other word adds one thing. Every part
has a seed of its own, so no situation and no part depends on another.
"""

import math
import zlib
from typing import Any

import numpy as np

from sklearn_ical import PredictionSamples
from tests.record.settings import N_POINTS, Setting

N_DRAWS = 8
N_CLASSES = 3
BATCH_SIZE = 4
FULL = (
    "proba",
    "label",
    "value",
    "value-targets",
    "value-noise",
    "proba-binary-one",
    "proba-ties",
    "label-ties-candidates",
    "proba-constant",
    "proba-weights-costs",
    "label-weights",
    "value-ties-float32",
    "label-costs-budget",
    "value-weights-costs-budget",
    "proba-candidates",
    "label-mask",
    "value-clipped",
    "proba-reference",
    "label-reference",
    "value-rows",
    "proba-rows-reference",
    "value-weights-reference",
    "proba-marginal",
    "label-reference-marginal",
    "label-labeled",
    "value-labeled",
    "value-noise-labeled",
)


def seed_of(name: str) -> int:
    """Return the seed of a name."""
    return zlib.crc32(name.encode())


def generator(name: str) -> np.random.Generator:
    """Return a generator that depends on the name alone."""
    return np.random.Generator(np.random.PCG64(seed_of(name)))


def samples_of(name: str, part: str, n_points: int) -> PredictionSamples:
    """Return the predictions of one part of a situation: the pool, reference or labeled rows."""
    kind, *words = name.split("-")
    rng = generator(f"{name}/{part}")
    values = _values(kind, words, rng, n_points)
    if "ties" in words:
        _tie(values)
    if "constant" in words:
        values[:] = values[0]
    if "float32" in words:
        values = values.astype(np.float32)
    weights = noise = None
    if "weights" in words:
        weights = generator(f"{name}/weights").dirichlet(np.full(N_DRAWS, 3.0))
    if "noise" in words:
        noise = rng.uniform(0.2, 2, size=n_points)
    return PredictionSamples(values, kind, weights=weights, noise_variance=noise)


def _values(kind: str, words: list[str], rng: np.random.Generator, n_points: int) -> np.ndarray:
    n_classes = 2 if "binary" in words else N_CLASSES
    if kind == "label":
        return rng.integers(n_classes, size=(n_points, N_DRAWS))
    if kind == "proba":
        if "ties" in words:  # exact binary fractions
            return rng.multinomial(16, np.full(n_classes, 1 / n_classes), (n_points, N_DRAWS)) / 16
        return rng.dirichlet(np.ones(n_classes), size=(n_points, N_DRAWS))
    shape = (n_points, N_DRAWS, 2) if "targets" in words else (n_points, N_DRAWS)
    values = rng.normal(size=shape) * rng.uniform(
        0.5, 2, size=(n_points,) + (1,) * (len(shape) - 1)
    )
    return np.round(4 * values) / 4 if "ties" in words else values


def _tie(values: np.ndarray) -> None:
    """Make some rows copies of others, and let all draws agree on one row."""
    values[[4, 8]] = values[1]
    values[10] = values[3]
    values[6] = values[6, 0]


def options_of(name: str, setting: Setting) -> dict[str, Any]:
    """Return the keyword arguments of `select` in a situation."""
    words = name.split("-")
    options: dict[str, Any] = {}
    if "rows" in words:
        options["reference_samples"] = samples_of(name, "rows", 7)
    if "labeled" in words:
        options["labeled_samples"] = samples_of(name, "labeled", 5)
    if setting.features:
        options["X_pool"] = generator(f"{name}/features").normal(size=(N_POINTS, 3))
        if "ties" in words:
            options["X_pool"] = np.round(options["X_pool"])
            _tie(options["X_pool"][:, :, None])
        if "labeled" in words:
            options["X_labeled"] = generator(f"{name}/labeled-features").normal(size=(5, 3))
    n_compared = 7 if "rows" in words else N_POINTS
    options |= _limits(name, words) | _positions(name, words, setting, n_compared)
    return options


def _limits(name: str, words: list[str]) -> dict[str, Any]:
    """Return what limits the picks."""
    options: dict[str, Any] = {}
    allowed = generator(f"{name}/candidates").permutation(N_POINTS)[:8]
    if "candidates" in words:
        options["candidates"] = allowed
    if "mask" in words:
        options["candidates"] = np.isin(np.arange(N_POINTS), allowed)
    if "costs" in words:
        options["costs"] = generator(f"{name}/costs").integers(1, 12, size=N_POINTS) / 4
    if "budget" in words:
        options["budget"] = 3.0
    return options


def _positions(name: str, words: list[str], setting: Setting, n_compared: int) -> dict[str, Any]:
    """Return the positions of the rows that candidates are compared with."""
    options: dict[str, Any] = {}
    if "reference" in words:
        n_steps = math.ceil(batch_size_of(name) / setting.params.get("step_size", 1))
        resamples = setting.strategy.__name__ in ("ICALQuery", "ICALPointwiseQuery")
        shape = (n_steps, 5) if resamples else (5,)
        options["reference"] = generator(f"{name}/reference").integers(n_compared, size=shape)
    if "marginal" in words:
        options["marginal"] = generator(f"{name}/marginal").integers(n_compared, size=5)
    return options


def batch_size_of(name: str) -> int:
    """Return how many rows a situation asks for."""
    words = name.split("-")
    if "one" in words:
        return 1
    return N_POINTS + 2 if "clipped" in words else BATCH_SIZE
