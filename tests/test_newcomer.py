"""Mistakes that newcomers make, each answered by one error that says what to do."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from sklearn_ical import BALDQuery, ICALQuery, PredictionSamples
from sklearn_ical.samplers import EnsembleSampler

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
FOREST = RandomForestClassifier(8, random_state=0).fit(X[:30], RNG.integers(3, size=30))
POOL = X[30:]
PROBA = RNG.dirichlet(np.ones(3), size=(30, 10))
VALUES = RNG.normal(size=(30, 10))


class OwnSampler:
    """A sampler whose `draw` needs both arguments and returns `answer`."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def draw(self, n_draws: Any, random_state: Any) -> Any:
        return self.answer


def test_draw_without_defaults_is_called_with_both_arguments() -> None:
    draws = EnsembleSampler(FOREST).draw()
    query = ICALQuery(random_state=0)
    np.testing.assert_array_equal(
        query.query(OwnSampler(draws), POOL, 5), query.query(FOREST, POOL, 5)
    )


def test_draw_that_returns_an_array_is_refused() -> None:
    with pytest.raises(TypeError, match=r"draw of OwnSampler must return draws.*Got ndarray"):
        ICALQuery().query(OwnSampler(PROBA), POOL)


@pytest.mark.parametrize("kernel", ["auto", "linear"])
def test_values_that_overflow_when_squared_give_the_same_picks(kernel: str) -> None:
    query = ICALQuery(kernel=kernel, random_state=0)
    expected = query.select(PredictionSamples(VALUES, "value"), 4)
    for unit in (2.0**400, 2.0**1020, 2.0**-1000):
        np.testing.assert_array_equal(
            query.select(PredictionSamples(VALUES * unit, "value"), 4), expected
        )


@pytest.mark.parametrize("name", ["n_reference", "step_size"])
def test_bool_for_a_number_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"'{name}' parameter of ICALQuery must not be a bool"):
        ICALQuery(**{name: True}).query(FOREST, POOL)


@pytest.mark.parametrize("kernel", [lambda d2: 3, lambda d2: None, lambda d2: d2 * np.nan])
def test_kernel_without_finite_values_is_refused(kernel: Any) -> None:
    with pytest.raises(ValueError, match="callable 'kernel' must map an array"):
        ICALQuery(prediction="proba", kernel=kernel).select(PROBA, 2)


def test_reference_of_unequal_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="reference must be a rectangular array"):
        ICALQuery().query(FOREST, POOL, 2, reference=[[0], [1, 2]])


def test_reference_rows_of_a_wrong_type_are_named() -> None:
    with pytest.raises(TypeError, match=r"X_reference must be a collection of rows.*Got str"):
        ICALQuery().query(FOREST, POOL, 2, X_reference="abc")


def test_model_and_pool_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(TypeError, match="X_pool must be a collection of rows"):
        ICALQuery().query(POOL, FOREST.estimators_[0], 3)


@pytest.mark.parametrize("weights", [["a"] * 10, {"a": 3}])
def test_weights_that_are_no_numbers_are_refused(weights: Any) -> None:
    with pytest.raises(TypeError, match="weights must be numbers"):
        PredictionSamples(PROBA, weights=weights)
    with pytest.raises(TypeError, match=r"weights must be numbers.*EnsembleSampler"):
        EnsembleSampler([FOREST, FOREST], weights=weights).draw()


def test_noise_that_is_no_number_is_refused() -> None:
    with pytest.raises(TypeError, match="noise_variance must be numbers"):
        PredictionSamples(VALUES, "value", noise_variance="a")


def test_candidates_of_a_wrong_type_are_named() -> None:
    with pytest.raises(ValueError, match=r"candidates must be one-dimensional.*Got set of shape"):
        BALDQuery().query(FOREST, POOL, candidates={1, 2})


def test_folder_in_the_way_of_results_is_reported_before_the_run(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    pytest.importorskip("matplotlib")
    (tmp_path / "results.csv").mkdir()
    command = [sys.executable, "-m", "sklearn_ical.cli", "compare", "--force", "--out"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is a folder. Move it away" in done.stderr
    assert "━" not in done.stderr  # no progress: nothing was run
