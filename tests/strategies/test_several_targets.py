"""Several targets: reductions of variance by whole target vectors, against literal forms."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical import ICALCoverageQuery, ICALSequentialQuery, PredictionSamples
from tests.strategies.family_oracles import (
    first_best,
    literal_coverage,
    literal_variance_fall,
    small_chunks,
    spread_of,
)

Backend = Callable[[np.ndarray], Any]
N, M, BATCH = 12, 9, 4
EVERYTHING = np.arange(N)
SUM = ICALCoverageQuery(dependence="tau", objective="concave", gamma=1)
saturated = pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.ReferenceSaturatedWarning")


def make_targets(which: str) -> np.ndarray:
    """Return predictions of three targets, (n, m, 3), with covariances of any rank."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=(N, M, 3)) * rng.uniform(0.5, 2, size=(N, 1, 3))
    if which == "equal":
        y[..., 1:] = y[..., :1]
    elif which == "dependent":
        y[..., 2] = 3 * y[..., 0] - y[..., 1]
    elif which == "constant":
        y[::2, :, 1], y[5], y[..., 2] = 4.0, 1.0, 7.0
    elif which == "units":
        y *= [1e-6, 1, 1e6]
    y[N - 1] = y[1]
    return y


def noise_of(shape: str | None) -> Any:
    rng = np.random.default_rng(4)
    shapes = {"rows": (N,), "draws": (N, M)}
    if shape not in shapes:
        return None if shape is None else 0.3
    noise = rng.uniform(0, 1, size=shapes[shape])
    noise[N - 1] = noise[1]
    return noise


def literal_fall(y: np.ndarray, noise: Any = None, weights: Any = None) -> np.ndarray:
    """Return D of tau, (r, n), in units of the spread of each target."""
    spread = spread_of(y, weights)
    spread[spread < 1e-12] = 1
    of_rows: Any = None
    if noise is not None:
        mean = np.average(noise, axis=1, weights=weights) if np.ndim(noise) == 2 else noise
        of_rows = np.broadcast_to(mean, N)[:, None] / spread**2
    return literal_variance_fall(y / spread, y / spread, weights, of_rows)


@saturated
@pytest.mark.parametrize("noise", [None, "one", "rows", "draws"])
@pytest.mark.parametrize("which", ["any", "equal", "dependent", "constant", "units"])
def test_tau_is_the_fall_of_the_total_variance_by_the_target_vector(
    which: str, noise: str | None
) -> None:
    y, of_rows = make_targets(which), noise_of(noise)
    expected, rows, _ = literal_coverage(literal_fall(y, of_rows), BATCH)
    samples = PredictionSamples(y, "value", noise_variance=of_rows)
    query = ICALCoverageQuery(dependence="tau")
    picks, utilities = query.select(samples, BATCH, reference=EVERYTHING, return_utilities=True)
    assert picks.tolist() == expected
    np.testing.assert_allclose(utilities, rows, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tau_of_several_targets_is_the_same_on_every_backend(dtype: str, backend: Backend) -> None:
    weights = np.arange(1.0, M + 1) / (M * (M + 1) / 2)
    for which, chunk in (("any", 1), ("dependent", 5)):
        y = make_targets(which).astype(dtype)
        fall = literal_fall(y.astype(np.float64), 0.2, weights).mean(axis=0)
        samples = PredictionSamples(backend(y), "value", noise_variance=0.2, weights=weights)
        with small_chunks(chunk):
            picks, rows = SUM.select(samples, 1, reference=EVERYTHING, return_utilities=True)
        np.testing.assert_allclose(rows[0], fall, rtol=1e-9)
        assert picks.tolist() == [first_best(fall)]


def test_equal_targets_reduce_the_variance_once_each() -> None:
    y = np.random.default_rng(5).normal(size=(N, M))
    five = PredictionSamples(np.repeat(y[..., None], 5, axis=2), "value")
    one = SUM.select(PredictionSamples(y, "value"), BATCH, return_utilities=True)
    all_five = SUM.select(five, BATCH, return_utilities=True)
    assert all_five[0].tolist() == one[0].tolist()
    np.testing.assert_allclose(all_five[1], 5 * one[1], rtol=1e-12)
    total = y.var(axis=1) / y.var(axis=1).mean()
    own = SUM.select(five, 1, reference=[3], return_utilities=True)[1][0, 3]
    assert own == pytest.approx(5 * total[3])  # all there is, not 25


def test_equal_observations_of_unequal_targets_tie() -> None:
    f = np.random.default_rng(6).normal(size=M)
    nothing = np.zeros(M)
    vectors = [(nothing, nothing), (f, nothing), (2 * f, f), (f, f), (nothing, -f)]
    y = np.array([np.stack(pair, axis=1) for pair in vectors])
    others = PredictionSamples(np.stack([f, f], axis=1)[None], "value")
    samples = PredictionSamples(y, "value")
    for query in (ICALCoverageQuery(dependence="tau"), ICALSequentialQuery()):
        picks, rows = query.select(samples, 1, reference_samples=others, return_utilities=True)
        assert picks.tolist() == [1]
        assert rows[0, 0] == 0
        np.testing.assert_allclose(rows[0, 1:], rows[0, 1], rtol=1e-12)


@pytest.mark.parametrize("which", ["any", "equal", "dependent", "constant"])
@pytest.mark.parametrize("noise", [None, "rows"])
def test_tau_is_the_first_step_of_the_sequential_strategy(which: str, noise: str | None) -> None:
    y, of_rows = make_targets(which), noise_of(noise)
    spread = spread_of(y)
    y = y / spread.max()
    y *= spread.max() / np.where(spread > 1e-12, spread, spread.max())  # one unit for all targets
    samples = PredictionSamples(y, "value", noise_variance=of_rows)
    _, rows = SUM.select(samples, 1, reference=EVERYTHING, return_utilities=True)
    _, theirs = ICALSequentialQuery().select(samples, 1, return_utilities=True)
    np.testing.assert_allclose(rows[0], theirs[0], rtol=1e-9, atol=1e-13)
