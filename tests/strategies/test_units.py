"""Units: real predictions and features in any unit give the same picks, to the last bit."""

from typing import Any

import numpy as np
import pytest
import sklearn

from sklearn_ical import (
    BALDQuery,
    CoreSetQuery,
    FarthestFirstQuery,
    FASSQuery,
    FilteredQuery,
    ICALQuery,
    ICALSequentialQuery,
    KernelBatchQuery,
    LogDetQuery,
    MaxEntropyQuery,
    PredictionSamples,
    StochasticQuery,
    TypiClustQuery,
)
from tests.record.settings import CLASSIFICATION, Setting, all_settings

N_POINTS, N_DRAWS = 12, 6
HUGE, TINY = 332, -332  # powers of two, about 1e100 and 1e-100
# Predictions and features of two kinds of problem: a name, and what they have.
PROBLEMS = {
    "plain": {"costs"},
    "everything": {"targets", "noise", "weights", "reference", "labeled"},
}
SETTINGS = [each for each in all_settings() if each.features or "value" in each.kinds]


def numbers(name: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng([*name.encode()])
    values = rng.normal(size=shape) * rng.uniform(0.5, 2, size=(shape[0], *[1] * (len(shape) - 1)))
    return values + rng.normal(size=(shape[0], *[1] * (len(shape) - 1)))


def samples_of(
    name: str, n_points: int, words: set[str], unit: float, backend: Any
) -> PredictionSamples:
    """Return real predictions in a unit, some rows of them copies and one without any spread."""
    shape = (n_points, N_DRAWS, 2) if "targets" in words else (n_points, N_DRAWS)
    values = numbers(name, *shape)
    values[4], values[2] = values[1], 0
    noise = np.abs(numbers(f"{name}-noise", n_points)) + 0.1
    weights = np.abs(numbers("weights", N_DRAWS))
    return PredictionSamples(
        backend(values * unit),
        "value",
        weights=weights / weights.sum() if "weights" in words else None,
        noise_variance=noise * unit * unit if "noise" in words else None,
    )


def call(setting: Setting, words: set[str], unit: float, backend: Any = np.asarray) -> Any:
    """Return picks and utilities of a setting for one problem in a unit."""
    query, tags = setting.make(0), setting.make(0).query_tags()
    words = words - ({"weights"} if "weights" not in setting.takes else set())
    words = words - ({"reference"} if "array" in setting.name else set())
    samples: Any = None
    options: dict[str, Any] = {}
    if set(tags.kinds) <= set(CLASSIFICATION):
        samples = np.random.default_rng(0).dirichlet(np.ones(3), size=(N_POINTS, N_DRAWS))
    elif tags.predictions:
        samples = samples_of("pool", N_POINTS, words, unit, backend)
        for which in {"reference", "labeled"} & words & set(tags.uses):
            options[f"{which}_samples"] = samples_of(which, 5, words, unit, backend)
    if tags.features:
        options["features"] = numbers("features", N_POINTS, 3) * unit
        if "labeled" in words & set(tags.uses) and not tags.predictions:
            options["labeled_features"] = numbers("labeled", 5, 3) * unit
    if not tags.predictions and not tags.features:
        options["X_pool"] = numbers("features", N_POINTS, 3) * unit
    if "costs" in words and tags.utilities == "gain":
        options["costs"] = np.arange(1, N_POINTS + 1) / 4
    return query.select(samples, 4, return_utilities=True, **options)


def power_of(query: Any, words: set[str]) -> int | None:
    """Return the power of the unit in utilities, None for those that are mixed."""
    if isinstance(query, StochasticQuery | CoreSetQuery | FarthestFirstQuery):
        return None  # logarithms; the first row has uniforms
    if isinstance(query, FilteredQuery):
        return power_of(query.strategy, words)
    if isinstance(query, TypiClustQuery):
        return -1
    if isinstance(query, BALDQuery):
        return 0 if "noise" in words else 2
    if isinstance(query, KernelBatchQuery):
        # Rows at distance 0 of a center have some negligible number in "kmeans++".
        return {"maxdet": 0, "kmeans++": None}.get(query.method, 2)
    if isinstance(query, FASSQuery):
        return 0 if query.factor == 1 else 2
    return 2 if isinstance(query, MaxEntropyQuery | ICALSequentialQuery) else 0


@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.ReferenceSaturatedWarning")
@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_unit_of_predictions_and_features_changes_no_pick(setting: Setting, problem: str) -> None:
    words = PROBLEMS[problem]
    expected, known = call(setting, words, 1.0)
    for exponent in (TINY, HUGE):
        picks, rows = call(setting, words, 2.0**exponent)
        np.testing.assert_array_equal(picks, expected)
        power = power_of(setting.make(0), words)
        if power is not None:
            with np.errstate(over="ignore", under="ignore"):
                np.testing.assert_array_equal(rows, np.ldexp(known, power * exponent))


class Spread:
    """Draws of values that are 0 in the first row and as large as given in the others."""

    n_draws, kind, classes, weights, joint = 4, "value", None, None, False

    def __init__(self, largest: float) -> None:
        self.largest = largest

    def __call__(self, rows: Any) -> PredictionSamples:
        rows = np.asarray(rows)
        return PredictionSamples(self.largest * (rows > 0) * np.sin(rows + np.arange(4)), "value")


@pytest.mark.parametrize(
    "query", [LogDetQuery(), ICALSequentialQuery(), ICALQuery(), BALDQuery(), MaxEntropyQuery()]
)
def test_unit_of_draws_changes_no_pick_and_rows_too_many_to_hold_may_overflow(query: Any) -> None:
    X = np.arange(20.0)[:, None]
    query.set_params(random_state=0)
    expected = query.query(Spread(1.0), X, 4)
    for unit in (2.0**-900, 2.0**900):
        np.testing.assert_array_equal(query.query(Spread(unit), X, 4), expected)
    with sklearn.config_context(working_memory=1e-4):
        np.testing.assert_array_equal(query.query(Spread(1.0), X, 4), expected)
        if isinstance(query, BALDQuery | MaxEntropyQuery):
            np.testing.assert_array_equal(query.query(Spread(2.0**900), X, 4), expected)
            return
        with pytest.raises(ValueError, match=r"redictions.*rescale"):  # only one row is probed
            query.query(Spread(2.0**900), X, 4)


def mixed(kind: str) -> tuple[PredictionSamples, np.ndarray]:
    """Return predictions and features whose rows have very different units, or one at a limit."""
    values, rows = numbers("pool", N_POINTS, N_DRAWS), numbers("features", N_POINTS, 3)
    limit = np.finfo(np.float64).max
    units = {
        "mixed": 10.0 ** np.linspace(-300, 300, N_POINTS),
        "largest": np.full(N_POINTS, limit / 8),
        "denormal": np.full(N_POINTS, 5e-324),
        "zero": np.zeros(N_POINTS),
    }[kind][:, None]
    return PredictionSamples(values.clip(-8, 8) * units, "value"), rows.clip(-8, 8) * units


@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.ReferenceSaturatedWarning")
@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")
@pytest.mark.parametrize("kind", ["mixed", "largest", "denormal", "zero"])
def test_rows_in_units_at_the_limits_of_float64_are_chosen_from_or_named(kind: str) -> None:
    samples, rows = mixed(kind)
    classes = np.full((N_POINTS, 2, 2), 0.5)
    of_variances = LogDetQuery, KernelBatchQuery
    for setting in SETTINGS:
        if setting.params and setting.strategy not in of_variances:
            continue
        query, kinds = setting.make(0), setting.make(0).query_tags().kinds
        predictions: Any = samples if "value" in kinds else classes
        message, picks = "", np.arange(4)
        try:
            picks = query.select(predictions, 4, features=rows)
        except ValueError as error:
            message = str(error)
        assert not message or "rescale" in message, setting.name
        assert len(set(picks.tolist())) == 4
