"""Parameter information in ICALQuery and ICALCoverageQuery, as a shifted summary kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sklearn_ical import ICALCoverageQuery, ICALQuery
from tests.strategies.family_oracles import (
    SOURCES,
    centered,
    first_best,
    literal_coverage,
    literal_hsic,
    literal_kernels,
    literal_labels,
    make_samples,
    make_values,
    mean_prediction,
    outputs_of,
    pairwise,
    prediction_of,
    small_chunks,
)

Backend = Callable[[np.ndarray], Any]
N, M, BATCH = 14, 7, 5
DRAW_WEIGHTS = np.array([0.1, 0.05, 0.4, 0.2, 0.15, 0.06, 0.04])
SETS = np.random.default_rng(0).integers(0, N, size=(BATCH, 6))
ROWS = np.array([0, 13, 4, 4, 6, 7, 8, 9])
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_ical.exceptions.EqualUtilitiesWarning",
    "ignore::sklearn_ical.exceptions.ReferenceSaturatedWarning",
)


def draw_kernel(m: int, weights: Any = None) -> np.ndarray:
    """Return the delta kernel of the draw: the mean over copies, for draws of unequal weight."""
    return np.eye(m) if weights is None else np.diag(1 / np.asarray(weights))


def shifted_score(
    summary: np.ndarray, kernels: np.ndarray, b: float, weights: Any = None
) -> np.ndarray:
    """Score all rows against (1 - b) S + b c I, where c makes both terms equal on average."""
    identity = draw_kernel(len(summary), weights)
    plain = np.array([literal_hsic(summary, k, weights=weights) for k in kernels])
    spread = np.array([literal_hsic(identity, k, weights=weights) for k in kernels])
    c = plain.mean() / spread.mean()
    shifted = (1 - b) * summary + b * c * identity
    return np.array([literal_hsic(shifted, k, weights=weights) for k in kernels])


def compare(
    kernels: np.ndarray,
    samples: Any,
    query: ICALQuery,
    *,
    weights: Any = None,
    candidates: Any = None,
) -> None:
    """Compare steps of ICALQuery with scores against shifted summary kernels."""
    chosen: list[int] = []
    picks, rows = query.select(
        samples, BATCH, reference=SETS, candidates=candidates, return_utilities=True
    )
    allowed = np.arange(N) if candidates is None else np.asarray(candidates)
    for t, reference in enumerate(SETS):
        scores = shifted_score(
            kernels[reference].mean(axis=0), kernels, query.information_weight, weights
        )
        scores[np.setdiff1d(np.arange(N), allowed)] = np.nan
        scores[chosen] = np.nan
        np.testing.assert_allclose(rows[t], scores, rtol=1e-10, atol=1e-15)
        chosen.append(first_best(scores))
    assert picks.tolist() == chosen


def coverage_gain(kernels: np.ndarray, b: float, weights: Any = None) -> np.ndarray:
    """Return D of coverage, (r, n), from one shifted kernel per reference row."""
    h = pairwise(kernels[ROWS], kernels, weights=weights)
    identity = draw_kernel(M, weights)
    spread = np.array([literal_hsic(identity, k, weights=weights) for k in kernels])
    shift = b * h.mean() / spread.mean() * identity
    shifted = np.array([(1 - b) * kernels[i] + shift for i in ROWS])
    return pairwise(shifted, kernels, weights=weights)


def test_dependence_on_the_draw_is_the_variance_of_the_prediction() -> None:
    values = make_values("proba", seed=1)
    for k, p in zip(literal_kernels("proba", values), values, strict=True):
        trace = np.trace(centered(k)) / M**2
        assert literal_hsic(np.eye(M), k) == pytest.approx(trace, rel=1e-12, abs=1e-18)
        assert trace == pytest.approx(p.var(axis=0).sum() / M, rel=1e-12, abs=1e-17)
    labels = make_values("label", seed=1)
    mean = mean_prediction(outputs_of("label", labels))
    gini = 1 - (mean**2).sum(axis=1)  # of labels: their Gini impurity
    found = [literal_hsic(np.eye(M), k) for k in literal_kernels("label", labels, "delta")]
    np.testing.assert_allclose(found, gini / M, atol=1e-16)


def test_the_shift_makes_both_terms_equal_on_average() -> None:
    kernels = literal_kernels("proba", make_values("proba", seed=2))
    summary = kernels[SETS[0]].mean(axis=0)
    means = [shifted_score(summary, kernels, b).mean() for b in (0.0, 0.4, 1.0)]
    np.testing.assert_allclose(means, means[0], rtol=1e-12)


@pytest.mark.parametrize("b", [0.3, 1.0])
@pytest.mark.parametrize("source", SOURCES)
def test_scores_are_those_of_the_shifted_summary(source: str, b: float) -> None:
    values = make_values(source, seed=3)
    query = ICALQuery(prediction=prediction_of(source), information_weight=b)
    compare(literal_kernels(source, values), make_samples(source, values), query)


@pytest.mark.parametrize("source", SOURCES)
def test_weighted_draws_shift_alike(source: str) -> None:
    values = make_values(source, seed=4)
    query = ICALQuery(prediction=prediction_of(source), information_weight=0.5)
    compare(
        literal_kernels(source, values, weights=DRAW_WEIGHTS),
        make_samples(source, values, DRAW_WEIGHTS),
        query,
        weights=DRAW_WEIGHTS,
    )


@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.parametrize("source", SOURCES)
def test_chunks_shift_alike(source: str, chunk: int) -> None:
    values = make_values(source, seed=5)
    query = ICALQuery(prediction=prediction_of(source), information_weight=0.3)
    with small_chunks(chunk):
        compare(literal_kernels(source, values), make_samples(source, values), query)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_every_backend_shifts_alike(source: str, dtype: str, backend: Backend) -> None:
    if source == "label":
        dtype = {"float32": "uint8", "float64": "int64"}[dtype]
    values = make_values(source, seed=6).astype(dtype)
    query = ICALQuery(prediction=prediction_of(source), information_weight=0.3)
    compare(literal_kernels(source, values), make_samples(source, backend(values)), query)


def test_the_shift_is_that_of_the_whole_pool_whatever_the_candidates() -> None:
    candidates = [13, 0, 5, 3, 8, 2, 11]
    for source in ("label", "proba", "value"):
        values = make_values(source, seed=7)
        query = ICALQuery(prediction=prediction_of(source), information_weight=0.4)
        kernels = literal_kernels(source, values)
        compare(kernels, make_samples(source, values), query, candidates=candidates)


def test_sampled_labels_shift_by_their_own_kernels() -> None:
    proba = make_values("proba", seed=8)
    kernels = literal_kernels("label", literal_labels(proba, seed=3))
    query = ICALQuery(information_weight=0.6, random_state=3)
    compare(kernels, make_samples("proba", proba), query)


def test_scores_without_the_row_itself_shift_alike() -> None:
    values = make_values("proba", seed=9)
    kernels = literal_kernels("proba", values)
    b, identity = 0.4, np.eye(M)
    spread = np.array([literal_hsic(identity, k) for k in kernels])
    summary = kernels[SETS[0]].mean(axis=0)
    c = np.mean([literal_hsic(summary, k) for k in kernels]) / spread.mean()
    query = ICALQuery(prediction="proba", include_self=False, information_weight=b)
    rows = query.select(values, 1, reference=SETS[:1], return_utilities=True)[1]
    for x in range(N):
        others = [z for z in SETS[0] if z != x]
        plain = np.mean([literal_hsic(kernels[z], kernels[x]) for z in others])
        expected = (1 - b) * plain + b * c * spread[x]
        assert rows[0, x] == pytest.approx(expected, rel=1e-10, abs=1e-16)


@pytest.mark.parametrize("source", SOURCES)
def test_no_weight_changes_not_a_bit(source: str) -> None:
    samples = make_samples(source, make_values(source, seed=10))
    prediction = prediction_of(source)
    for information_weight in (0, 0.0):
        query = ICALQuery(prediction=prediction, information_weight=information_weight)
        picks, rows = query.select(samples, BATCH, reference=SETS, return_utilities=True)
        plain = ICALQuery(prediction=prediction)
        same, others = plain.select(samples, BATCH, reference=SETS, return_utilities=True)
        np.testing.assert_array_equal(picks, same)
        np.testing.assert_array_equal(rows, others)
        assert query.select(samples, BATCH, reference=SETS).tolist() == picks.tolist()


@pytest.mark.parametrize("source", SOURCES)
def test_information_alone_orders_by_the_trace(source: str) -> None:
    values = make_values(source, seed=11)
    trace = np.array([np.trace(centered(k)) for k in literal_kernels(source, values)])
    order = sorted(range(N), key=lambda x: (-np.round(trace[x], 10), x))
    query = ICALQuery(prediction=prediction_of(source), information_weight=1)
    picks = query.select(make_samples(source, values), 8, reference=np.tile(ROWS, (8, 1)))
    assert picks.tolist() == order[:8]


@pytest.mark.parametrize("objective", ["facility-location", "concave"])
@pytest.mark.parametrize("source", SOURCES)
def test_coverage_shifts_the_kernel_of_each_reference_row(source: str, objective: str) -> None:
    values = make_values(source, seed=12)
    for weights in (None, DRAW_WEIGHTS):
        kernels = literal_kernels(source, values, weights=weights)
        for b in (0.3, 1.0):
            gain = coverage_gain(kernels, b, weights)
            gain[gain < 1e-16] = 0.0
            expected, literal, _ = literal_coverage(gain, BATCH, objective)
            query = ICALCoverageQuery(
                prediction=prediction_of(source), information_weight=b, objective=objective
            )
            samples = make_samples(source, values, weights)
            picks, rows = query.select(samples, BATCH, reference=ROWS, return_utilities=True)
            assert picks.tolist() == expected
            np.testing.assert_allclose(rows, literal, rtol=1e-10, atol=1e-14)
            assert query.select(samples, BATCH, reference=ROWS).tolist() == expected


@pytest.mark.parametrize("source", ["label", "proba"])
def test_coverage_by_tau_shifts_what_its_kernel_sees(source: str) -> None:
    outputs = outputs_of(source, make_values(source, seed=16))
    theirs = np.array([y @ y.T for y in outputs])
    mean = mean_prediction(outputs)
    ours = np.array(
        [
            sum(np.outer(y[:, c], y[:, c]) / p[c] for c in range(3) if p[c] > 0)
            for y, p in zip(outputs, mean, strict=True)
        ]
    )
    plain, spread = pairwise(theirs[ROWS], ours), pairwise(np.eye(M)[None], ours)
    b = 0.4
    gain = (1 - b) * plain + b * plain.mean() / spread.mean() * spread
    gain[gain < 1e-15] = 0.0
    expected, literal, _ = literal_coverage(gain, BATCH)
    query = ICALCoverageQuery(dependence="tau", information_weight=b)
    samples = make_samples(source, make_values(source, seed=16))
    picks, rows = query.select(samples, BATCH, reference=ROWS, return_utilities=True)
    assert picks.tolist() == expected
    np.testing.assert_allclose(rows, literal, rtol=1e-10, atol=1e-14)


def test_coverage_with_a_linear_bridge_is_the_shifted_paper() -> None:
    values = make_values("proba", seed=13)
    query = ICALCoverageQuery(objective="concave", gamma=1, information_weight=0.4)
    picks, rows = query.select(values, BATCH, reference=ROWS, return_utilities=True)
    paper = ICALQuery(prediction="proba", information_weight=0.4)
    same, others = paper.select(
        values, BATCH, reference=np.tile(ROWS, (BATCH, 1)), return_utilities=True
    )
    assert picks.tolist() == same.tolist()
    np.testing.assert_allclose(rows, others, rtol=1e-10, atol=1e-15)


def test_coverage_without_weight_changes_not_a_bit() -> None:
    for source in ("label", "proba", "value"):
        samples = make_samples(source, make_values(source, seed=14))
        rows = [
            query.select(samples, BATCH, reference=ROWS, return_utilities=True)[1]
            for query in (ICALCoverageQuery(information_weight=0), ICALCoverageQuery())
        ]
        np.testing.assert_array_equal(*rows)


@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_pools_without_any_variation_are_finite(source: str) -> None:
    values = make_values(source, seed=15)
    values[:] = values[:, :1]
    samples = make_samples(source, values)
    for query in (
        ICALQuery(prediction="proba", information_weight=0.5),
        ICALCoverageQuery(information_weight=0.5),
    ):
        picks, rows = query.select(samples, 3, return_utilities=True)
        assert picks.tolist() == [0, 1, 2]
        assert np.nanmax(rows) == 0.0


@pytest.mark.parametrize("strategy", [ICALQuery, ICALCoverageQuery])
def test_the_unbiased_estimator_is_refused(strategy: Any) -> None:
    query = strategy(estimator="unbiased", information_weight=0.1)
    message = rf"information_weight .*'biased'.*Got .*0\.1.* in {strategy.__name__}\.select"
    with pytest.raises(ValueError, match=message):
        query.select(make_values("proba"), 2)
    strategy(estimator="unbiased", information_weight=0).select(make_values("proba"), 2)


@pytest.mark.parametrize("strategy", [ICALQuery, ICALCoverageQuery])
@pytest.mark.parametrize("weight", [-0.1, 1.1, np.nan, "half", None])
def test_weights_are_from_zero_to_one(strategy: Any, weight: Any) -> None:
    with pytest.raises(
        (ValueError, TypeError), match=f"'information_weight' parameter of {strategy.__name__}"
    ):
        strategy(information_weight=weight).select(make_values("proba"), 2)
