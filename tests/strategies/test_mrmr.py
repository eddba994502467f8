"""MRMRQuery against literal relevance less mean redundancy, one pair of kernels at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn

from sklearn_ical import ICALQuery, MRMRQuery
from tests.strategies.family_oracles import (
    SOURCES,
    literal_greedy,
    literal_hsic,
    literal_kernels,
    literal_labels,
    literal_mrmr,
    make_samples,
    make_values,
    prediction_of,
    small_chunks,
    spread_of,
)

Backend = Callable[[np.ndarray], Any]
N, M, BATCH = 14, 7, 5
DRAW_WEIGHTS = np.array([0.1, 0.05, 0.4, 0.2, 0.15, 0.06, 0.04])
ROWS = np.array([0, 13, 4, 4, 6, 3, 8])  # one counts twice, one is constant
pytestmark = pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")


def compare(
    source: str,
    values: np.ndarray,
    to: Backend = np.asarray,
    *,
    redundancy_weight: float = 1.0,
    kernel: str = "auto",
    weights: Any = None,
    estimator: str = "biased",
) -> None:
    """Compare picks and utilities with the literal ones."""
    kernels = literal_kernels(source, values, kernel, weights=weights)
    summary = kernels[ROWS].mean(axis=0)
    expected, rows = literal_mrmr(
        summary, kernels, BATCH, redundancy_weight, weights=weights, estimator=estimator
    )
    query = MRMRQuery(
        redundancy_weight, prediction=prediction_of(source), kernel=kernel, estimator=estimator
    )
    samples = make_samples(source, to(values), weights)
    picks, utilities = query.select(samples, BATCH, reference=ROWS, return_utilities=True)
    assert picks.tolist() == expected
    assert picks.dtype == np.intp
    assert utilities.dtype == np.float64
    np.testing.assert_allclose(utilities, rows, rtol=1e-10, atol=1e-14)


def test_relevance_less_redundancy_is_as_computed_by_hand() -> None:
    signs = np.array([[1, 1, 1, 1, -1, -1, -1, -1], [1, 1, -1, -1, 1, 1, -1, -1]], dtype=float)
    ours, theirs = signs  # uncorrelated: HSIC of linear kernels is the squared covariance
    values = np.array([2 * ours, 1.5 * ours, ours + theirs, 0 * ours, ours])
    unit = 1 / float(spread_of(values)[0]) ** 4
    query = MRMRQuery(0.5, kernel="linear")
    picks, rows = query.select(
        make_samples("value", values),
        3,
        candidates=[0, 1, 2, 3],
        reference=[4],
        return_utilities=True,
    )
    np.testing.assert_allclose(rows[0, :4], np.array([4, 2.25, 1, 0]) * unit, atol=1e-14)
    # less half of the squared covariances with the first pick: 16, 9, 4 and 0
    np.testing.assert_allclose(rows[1, 1:4], np.array([-2.25, -1, 0]) * unit, atol=1e-14)
    # less a quarter of the sum over the first pick and the constant
    np.testing.assert_allclose(rows[2, 1:3], np.array([0, 0]) * unit, atol=1e-14)
    assert picks.tolist()[:2] == [0, 3]


@pytest.mark.parametrize("redundancy_weight", [0.0, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("source", SOURCES)
def test_steps_equal_the_literal_form(source: str, redundancy_weight: float) -> None:
    compare(source, make_values(source), redundancy_weight=redundancy_weight)


@pytest.mark.parametrize("source", SOURCES)
def test_weighted_draws_and_the_unbiased_estimator_equal_the_literal_form(source: str) -> None:
    compare(source, make_values(source, seed=1), weights=DRAW_WEIGHTS)
    compare(source, make_values(source, seed=2), estimator="unbiased")


@pytest.mark.parametrize("kernel", ["rq", "rbf", "linear", "delta"])
def test_all_kernels_equal_the_literal_form(kernel: str) -> None:
    if kernel in ("linear", "delta"):
        compare("label", make_values("label", seed=3), kernel=kernel)
    if kernel != "delta":
        compare("proba", make_values("proba", seed=3), kernel=kernel)
        compare("value", make_values("value", seed=3), kernel=kernel)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_steps_equal_the_literal_form_on_every_backend(
    source: str, dtype: str, backend: Backend
) -> None:
    if source == "label":
        dtype = {"float32": "uint8", "float64": "int64"}[dtype]
    compare(source, make_values(source, seed=4).astype(dtype), backend)


@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.parametrize("source", SOURCES)
def test_steps_equal_the_literal_form_in_any_chunks(source: str, chunk: int) -> None:
    values = make_values(source, seed=5)
    with small_chunks(chunk), sklearn.config_context(working_memory=1024 if chunk > 1 else 1e-9):
        compare(source, values)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("weights", [None, DRAW_WEIGHTS], ids=["equal", "weighted"])
def test_without_redundancy_it_is_the_paper_with_a_fixed_reference(
    source: str, weights: Any
) -> None:
    samples = make_samples(source, make_values(source, seed=7), weights)
    prediction = prediction_of(source)
    picks, rows = MRMRQuery(0, prediction=prediction).select(
        samples, BATCH, reference=ROWS, return_utilities=True
    )
    paper = ICALQuery(prediction=prediction, resample=False)
    same, others = paper.select(
        samples, BATCH, reference=np.tile(ROWS, (BATCH, 1)), return_utilities=True
    )
    assert picks.tolist() == same.tolist()
    np.testing.assert_allclose(rows, others, rtol=1e-10, atol=1e-15)
    lean = MRMRQuery(0, prediction=prediction).select(samples, BATCH, reference=ROWS)
    assert lean.tolist() == picks.tolist()


def test_all_rows_are_the_reference_by_default() -> None:
    values = make_values("proba", seed=8)
    by_default = MRMRQuery().select(values, BATCH, return_utilities=True)[1]
    given = MRMRQuery().select(values, BATCH, reference=np.arange(N), return_utilities=True)[1]
    np.testing.assert_array_equal(by_default, given)


def test_sampled_labels_are_those_of_the_positions() -> None:
    proba = make_values("proba", seed=9)
    kernels = literal_kernels("label", literal_labels(proba, seed=5))
    expected, literal = literal_mrmr(kernels.mean(axis=0), kernels, BATCH, 1.0)
    query = MRMRQuery(prediction="sampled", random_state=5)
    picks, rows = query.select(proba, BATCH, return_utilities=True)
    assert picks.tolist() == expected
    np.testing.assert_allclose(rows, literal, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_reference_samples_are_the_rows_compared_with(source: str) -> None:
    values = make_values(source, n=20, seed=10)
    pool, others = values[:12], values[12:]
    spread = spread_of(pool) if source == "value" else None
    kernels = literal_kernels(source, values, spread=spread)
    summary = kernels[12:][[0, 7, 7, 2]].mean(axis=0)
    expected, literal = literal_mrmr(summary, kernels[:12], 4, 1.0)
    picks, rows = MRMRQuery(prediction=prediction_of(source)).select(
        make_samples(source, pool),
        4,
        reference_samples=make_samples(source, others),
        reference=[0, 7, 7, 2],
        return_utilities=True,
    )
    assert picks.tolist() == expected
    np.testing.assert_allclose(rows, literal, rtol=1e-10, atol=1e-15)


def test_candidates_limit_the_picks_and_nothing_else() -> None:
    candidates = [13, 0, 5, 3, 8, 2, 11]
    for source in ("label", "proba", "value"):
        values = make_values(source, seed=11)
        kernels = literal_kernels(source, values)
        summary = kernels[ROWS].mean(axis=0)

        def scores_of(batch: list[int], free: list[int], k: Any = kernels, s: Any = summary) -> Any:
            less = [np.mean([literal_hsic(k[b], k[x]) for b in batch] or [0.0]) for x in free]
            return np.array([literal_hsic(s, k[x]) for x in free]) - less

        expected, literal = literal_greedy(scores_of, N, BATCH, candidates=candidates)
        picks, rows = MRMRQuery(prediction=prediction_of(source)).select(
            make_samples(source, values),
            BATCH,
            reference=ROWS,
            candidates=candidates,
            return_utilities=True,
        )
        assert picks.tolist() == expected
        np.testing.assert_allclose(rows, literal, rtol=1e-10, atol=1e-15)


def test_equal_rows_tie_to_the_lowest_position(backend: Backend) -> None:
    few = make_values("proba", n=5, seed=12).astype(np.float32)
    of = np.random.default_rng(0).permutation(np.arange(20) % 5)
    for chunk in (None, 7):
        with small_chunks(chunk):
            picks = MRMRQuery().select(backend(few[of]), 7)
        for k in range(5):
            mine = picks[of[picks] == k]
            np.testing.assert_array_equal(mine, np.flatnonzero(of == k)[: len(mine)])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"redundancy_weight": -0.1}, "redundancy_weight"),
        ({"n_reference": 0}, "n_reference"),
        ({"prediction": "mean"}, "prediction"),
        ({"kernel": "rbg"}, "kernel"),
    ],
)
def test_wrong_parameters_are_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter of MRMRQuery"):
        MRMRQuery(**options).select(make_values("proba"))


def test_picks_of_the_whole_reference_set_leave_ties_at_zero() -> None:
    n_covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.ones(3), size=(12, 6))
        reference = rng.choice(12, 3, replace=False)
        picks = MRMRQuery().select(proba, 4, reference=reference)
        if set(picks[:3]) == set(reference):  # their mean is that of the batch: all scores are 0
            n_covered += 1
            assert picks[3] == min(set(range(12)) - set(reference))
    assert n_covered > 20
