"""Draw weights: the weighted variance, and draws of weight 0, which do not count.

That integer weights count as repeated draws is tried with every setting in `tests.sweep`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical import BALDQuery, ICALCoverageQuery, ICALQuery, PredictionSamples
from sklearn_ical.samplers import EnsembleSampler
from tests.record.settings import MAIN, Setting

Backend = Callable[[np.ndarray], Any]
N, M, BATCH = 12, 5, 4
CONSTANT, COPY, COPIED = 3, 9, 2
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_ical.exceptions.EqualUtilitiesWarning",
    "ignore::sklearn_ical.exceptions.ReferenceSaturatedWarning",
)


def weighted(samples: PredictionSamples, counts: Any) -> PredictionSamples:
    """Return the samples with each draw weighted by how often it counts."""
    weights = np.asarray(counts) / np.sum(counts)
    return PredictionSamples(
        samples.values, samples.kind, weights=weights, noise_variance=samples.noise_variance
    )


def repeated(samples: PredictionSamples, counts: Any) -> PredictionSamples:
    """Return the samples with each draw as often as it counts."""
    return samples.take_draws(np.repeat(np.arange(samples.n_draws), counts))


def make_samples(kind: str) -> PredictionSamples:
    rng = np.random.default_rng(2)
    if kind == "proba":
        values = rng.dirichlet(np.ones(3), size=(N, M))
    elif kind == "label":
        values = rng.integers(0, 3, size=(N, M))
    else:
        values = rng.normal(size=(N, M))
    values[CONSTANT], values[COPY] = values[CONSTANT, :1], values[COPIED]
    return PredictionSamples(values, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_information_about_the_draw_is_the_weighted_variance(source: str) -> None:
    samples, counts = make_samples(source).take_draws(np.arange(3)), [8, 1, 1]
    weights = np.array([0.8, 0.1, 0.1])
    y = np.asarray(samples.as_outputs(), dtype=np.float64).reshape(N, 3, -1)
    deviations = y - np.einsum("k,nkc->nc", weights, y)[:, None]
    variance = np.einsum("k,nkc->n", weights, deviations**2)
    for query in (
        ICALQuery(N, prediction="proba", kernel="linear", information_weight=1, random_state=0),
        ICALCoverageQuery(kernel="linear", information_weight=1),
    ):
        _, rows = query.select(weighted(samples, counts), 1, return_utilities=True)
        np.testing.assert_allclose(rows[0] / rows[0].sum(), variance / variance.sum(), atol=1e-14)
        _, theirs = query.select(repeated(samples, counts), 1, return_utilities=True)
        np.testing.assert_allclose(rows, theirs, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("setting", MAIN, ids=lambda setting: setting.name)
def test_a_draw_of_weight_zero_is_no_draw(setting: Setting, backend: Backend) -> None:
    strategy, features = setting.make(0), np.random.default_rng(0).normal(size=(N, 2))
    if "weights" not in setting.takes or not strategy.query_tags().predictions:
        pytest.skip("reads no draws, or refuses weights")
    options: dict[str, Any] = {"features": features} if setting.features else {}
    weights, kept = np.array([0.5, 0, 0.3, 0.2, 0]), np.array([0, 2, 3])
    for kind in sorted({*setting.kinds} & {*strategy.query_tags().kinds}):
        values = make_samples(kind).values
        wild = values.copy()
        wild[:, 4] = 0 if kind != "value" else 1e12
        if kind == "proba":
            wild[:, 4, 0] = 1
        part = PredictionSamples(backend(values[:, kept]), kind, weights=weights[kept])
        all_draws = PredictionSamples(backend(wild), kind, weights=weights)
        picks, rows = strategy.select(all_draws, BATCH, return_utilities=True, **options)
        expected, theirs = strategy.select(part, BATCH, return_utilities=True, **options)
        assert picks.tolist() == expected.tolist()
        np.testing.assert_allclose(rows, theirs, rtol=1e-9, atol=1e-13)


def test_members_of_weight_zero_are_no_members() -> None:
    X = np.linspace(-1, 1, 20)[:, None]
    models = [Sigmoid(slope) for slope in (-3.0, 0.5, 2.0)]
    all_members = EnsembleSampler(models, weights=[1, 0, 3])
    some = EnsembleSampler([models[0], models[2]], weights=[1, 3])
    for query in (BALDQuery(), ICALQuery(5, random_state=0), ICALCoverageQuery(random_state=0)):
        assert query.query(all_members, X, 5).tolist() == query.query(some, X, 5).tolist()


def test_too_few_draws_of_positive_weight_are_refused() -> None:
    proba = make_samples("proba").values
    samples = PredictionSamples(proba, weights=[1.0, 0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"at least 2 draws. Got 1 in BALDQuery.select"):
        BALDQuery().select(samples)
    one = EnsembleSampler([Sigmoid(slope) for slope in (0.2, 0.6)], weights=[1, 0])
    with pytest.raises(ValueError, match=r"at least 2 draws. Got 1 in BALDQuery.query"):
        BALDQuery().query(one, np.zeros((4, 1)))


def test_reference_rows_have_the_weights_of_the_pool() -> None:
    samples, others = make_samples("proba"), np.random.default_rng(7).dirichlet(np.ones(3), (6, M))
    weights = np.array([0.4, 0.2, 0, 0.3, 0.1])
    pool = PredictionSamples(samples.values, weights=weights)
    query = ICALCoverageQuery(dependence="tau")
    how: dict[str, Any] = {"reference": np.arange(6), "return_utilities": True}
    stated = PredictionSamples(others, weights=weights)
    expected = query.select(pool, 3, reference_samples=stated, **how)
    for unstated in (others, PredictionSamples(others)):
        for ours, theirs in zip(
            query.select(pool, 3, reference_samples=unstated, **how), expected, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="reference_samples must come from the same draws"):
        query.select(samples, 3, reference_samples=stated)
    wrong = PredictionSamples(others, weights=weights[::-1])
    with pytest.raises(ValueError, match="reference_samples must come from the same draws"):
        query.select(pool, 3, reference_samples=wrong)


class Sigmoid:
    """A model of two classes whose log odds are a multiple of the only feature."""

    classes_ = np.array([0, 1])

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        p = 1 / (1 + np.exp(-self.slope * X[:, 0]))
        return np.stack([1 - p, p], axis=1)
