"""Checks of units: real predictions and features may be in any."""

from typing import Any

import numpy as np

from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._data import (
    choose,
    fixed_options,
    precomputed_features,
    predicted_kinds,
    reads,
    samples_problem,
    seeded,
    with_features,
)
from sklearn_ical.testing._require import require_same

EXPONENTS = (-332, 332)  # about 1e-100 and 1e100
WHY = "The unit of a number is not information; rescale what would overflow when squared."


def check_units_of_values(strategy: Any) -> None:
    """Check that the unit of real predictions does not matter where only what is read decides."""
    if "value" not in predicted_kinds(strategy):
        return
    problem = samples_problem(strategy, "value")
    options = fixed_options(strategy, problem)
    if options is None:
        return
    for noise in (None, np.linspace(0.5, 2, problem.source.n_points)):
        picks = {
            exponent: choose(
                seeded(strategy),
                problem.with_source(_in_unit(problem.source, noise, exponent)),
                **options,
            )
            for exponent in (0, *EXPONENTS)
        }
        for exponent in EXPONENTS:
            require_same(picks[exponent], picks[0], f"from values times 2^{exponent}", WHY)


def _in_unit(
    samples: PredictionSamples, noise: np.ndarray | None, exponent: int
) -> PredictionSamples:
    """Return values times a power of two, which is exact, and noise variances times its square."""
    noise = None if noise is None else np.ldexp(noise, 2 * exponent)
    return PredictionSamples(np.ldexp(samples.values, exponent), "value", noise_variance=noise)


def check_units_of_features(strategy: Any) -> None:
    """Check that the unit of features does not matter."""
    if not reads(strategy, "features"):
        return
    problem = samples_problem(strategy, strategy.query_tags().kinds[0])
    given = precomputed_features(len(problem.X_pool))

    def ask(exponent: int) -> Any:
        features = with_features(strategy, *(np.ldexp(X, exponent) for X in given))
        return choose(seeded(strategy), problem, **features)

    for exponent in EXPONENTS:
        require_same(ask(exponent), ask(0), f"from features times 2^{exponent}", WHY)
