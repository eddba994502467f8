"""Picks of the ICAL family are those of exact arithmetic, on small pools of few distinct numbers.

Pools have copies of rows, rows with their draws or classes in another order, and constant rows, so
that many scores tie exactly or are exactly 0. Predictions are multiples of 1/16.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn

from sklearn_ical import (
    ICALCoverageQuery,
    ICALJointQuery,
    ICALPointwiseQuery,
    ICALQuery,
    ICALSequentialQuery,
    MRMRQuery,
    PredictionSamples,
)
from tests import exact_oracles as exact

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")
SOURCES = ("label", "proba", "expected", "value")
N_POINTS = 8


class Problem:
    """A small pool and reference sets, by seed."""

    def __init__(self, source: str, seed: int, *, weighted: bool = False) -> None:
        rng = np.random.default_rng([seed, SOURCES.index(source)])
        m, c = int(rng.integers(4, 7)), int(rng.integers(2, 4))
        self.kind = "proba" if source == "expected" else source
        self.values = _pool(rng, self.kind, m, c)
        self.weights = None
        if weighted:
            weights = rng.integers(1, 5, size=m)
            self.weights = weights / weights.sum()
        self.options: dict[str, Any] = {
            "prediction": "sampled" if source == "label" else "proba",
            "kernel": "linear" if source == "value" else "auto",
            "random_state": 0,
        }
        if source == "expected":
            self.options["prediction"] = "expected"
        self.kernels = exact.kernels_of(
            self.values, self.kind, expected=source == "expected", weights=self.weights
        )
        self.step_size = int(rng.integers(1, 4))
        self.sets = rng.integers(0, N_POINTS, size=(-(-6 // self.step_size), 5))
        if seed % 2 == 0:
            self.sets[:] = rng.permutation([1, 1, 7, 7, 7])  # copies, one more often than the other
        self.marginal = rng.integers(0, N_POINTS, size=int(rng.integers(1, 9)))
        self.memory = 1e-9 if seed == 0 and source == "expected" else 1024

    def check(self, query: Any, expected: list[int], **call: Any) -> None:
        """Check picks on both backends, and with utilities."""
        samples = PredictionSamples(self.values, kind=self.kind, weights=self.weights)
        with sklearn.config_context(working_memory=self.memory):
            assert query.select(samples, len(expected), **call).tolist() == expected
        picks, _ = query.select(samples, len(expected), return_utilities=True, **call)
        assert picks.tolist() == expected
        torch = pytest.importorskip("torch")
        values = torch.asarray(self.values)
        samples = PredictionSamples(values, kind=self.kind, weights=self.weights)
        assert query.select(samples, len(expected), **call).tolist() == expected


def _pool(rng: np.random.Generator, kind: str, m: int, c: int) -> np.ndarray:
    if kind == "label":
        values = rng.integers(0, c, size=(N_POINTS, m))
        values[6] = (values[2] + 1) % c
    elif kind == "value":
        values = rng.integers(-8, 9, size=(N_POINTS, m, 2)) / 16
        values[6] = values[2] + 0.5
    else:
        cuts = np.sort(rng.integers(0, 17, size=(N_POINTS, m, c - 1)), axis=2)
        values = np.diff(cuts, axis=2, prepend=0, append=16) / 16
        values[6] = values[2, :, ::-1]
    values[3] = values[3, :1]
    values[7] = values[1]
    values[5] = values[4][rng.permutation(m)]
    return values


def problems(source: str, *, weighted: bool = False) -> Iterator[Problem]:
    for seed in range(2):
        yield Problem(source, seed, weighted=weighted)


def estimators(weighted: bool) -> tuple[str, ...]:
    return ("biased",) if weighted else ("biased", "unbiased")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_ical_picks_are_exact_with_and_without_self(source: str, weighted: bool) -> None:
    for problem in problems(source, weighted=weighted):
        for estimator in estimators(weighted):
            for include_self in (True, False):
                same: dict[str, Any] = {"estimator": estimator, "include_self": include_self}
                same["step_size"] = problem.step_size
                expected = exact.ical_picks(
                    problem.kernels, problem.sets, 6, weights=problem.weights, **same
                )
                query = ICALQuery(**same, **problem.options)
                problem.check(query, expected, reference=problem.sets)


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("source", SOURCES)
def test_ical_picks_with_information_are_exact_without_self(source: str, share: float) -> None:
    for problem in problems(source):
        same: dict[str, Any] = {"information_weight": share, "include_self": False}
        expected = exact.ical_picks(problem.kernels, problem.sets[:, :4], len(problem.sets), **same)
        query = ICALQuery(**same, **problem.options)
        problem.check(query, expected, reference=problem.sets[:, :4])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_pointwise_picks_are_exact(source: str, weighted: bool) -> None:
    for problem in problems(source, weighted=weighted):
        for estimator in estimators(weighted):
            same: dict[str, Any] = {"estimator": estimator, "step_size": problem.step_size}
            call: dict[str, Any] = {"reference": problem.sets}
            expected = exact.pointwise_picks(
                problem.kernels, problem.sets, problem.marginal, 6, weights=problem.weights, **same
            )
            query = ICALPointwiseQuery(marginal=problem.marginal, **same, **problem.options)
            problem.check(query, expected, **call)


@pytest.mark.parametrize("prediction", ["proba", "expected", "argmax"])
def test_pointwise_scores_of_a_batch_without_unbiased_dependence_do_not_tie(
    prediction: str,
) -> None:
    floored = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.ones(2), size=(8, 7))
        if prediction == "argmax":
            kernels = exact.kernels_of(exact.argmax_labels(proba), "label")
        else:
            kernels = exact.kernels_of(proba, "proba", expected=prediction == "expected")
        marginal = rng.choice(8, size=2, replace=False)
        sets = rng.integers(0, 8, size=(3, 5))
        expected = exact.pointwise_picks(kernels, sets, marginal, 3, estimator="unbiased")
        h = exact.dependences(kernels, kernels[marginal], estimator="unbiased")
        if (h[expected[0]] > 0).any():
            continue
        floored += 1
        query = ICALPointwiseQuery(
            marginal=marginal, estimator="unbiased", prediction=prediction, random_state=0
        )
        picks, rows = query.select(proba, 3, reference=sets, return_utilities=True)
        assert picks.tolist() == expected
        assert rows[1, picks[1]] > 0
    assert floored > 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_mrmr_picks_are_exact(source: str, weighted: bool) -> None:
    for problem in problems(source, weighted=weighted):
        for estimator in estimators(weighted):
            rows = problem.sets[0]
            same: dict[str, Any] = {"estimator": estimator}
            same["redundancy_weight"] = 0.3 if weighted else 1.0
            expected = exact.mrmr_picks(problem.kernels, rows, 4, weights=problem.weights, **same)
            problem.check(MRMRQuery(**same, **problem.options), expected, reference=rows)


@pytest.mark.parametrize("gamma", [None, 0.5, 0.05])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.ReferenceSaturatedWarning")
def test_coverage_picks_are_exact(source: str, gamma: float | None) -> None:
    for problem in problems(source):
        for estimator in ("biased", "unbiased"):
            rows = problem.sets[0]
            matrix = exact.coverage_matrix(problem.kernels, rows, estimator=estimator)
            expected = exact.coverage_picks(matrix, 6, gamma=gamma)
            query = ICALCoverageQuery(
                estimator=estimator,
                objective="facility-location" if gamma is None else "concave",
                gamma=gamma or 0.5,
                **problem.options,
            )
            problem.check(query, expected, reference=rows)


@pytest.mark.parametrize("source", ["label", "proba"])
@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.ReferenceSaturatedWarning")
def test_coverage_picks_by_tau_are_exact(source: str) -> None:
    for problem in problems(source, weighted=True):
        rows = problem.sets[0]
        tau = exact.tau_kernels_of(problem.values, problem.kind, problem.weights)
        matrix = exact.coverage_matrix(
            problem.kernels, rows, candidate_kernels=tau, weights=problem.weights
        )
        expected = exact.coverage_picks(matrix, 7)
        query = ICALCoverageQuery(dependence="tau", random_state=0)
        problem.check(query, expected, reference=rows)


@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_sequential_picks_are_exact(source: str) -> None:
    for problem in problems(source, weighted=True):
        rows = problem.sets[0]
        expected = exact.sequential_picks(
            problem.values, problem.kind, rows, 6, weights=problem.weights
        )
        problem.check(ICALSequentialQuery(random_state=0), expected, reference=rows)


@pytest.mark.parametrize("form", ["scaled", "grouped"])
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_joint_picks_are_exact(source: str, form: str) -> None:
    for problem in problems(source):
        rows = problem.sets[0]
        same: dict[str, Any] = {"form": form, "normalize": source != "proba"}
        expected = exact.joint_picks(problem.kernels, problem.values, problem.kind, rows, 4, **same)
        problem.check(ICALJointQuery(**same, **problem.options), expected, reference=rows)


@pytest.mark.parametrize("strategy", [ICALQuery, ICALPointwiseQuery, MRMRQuery])
def test_utilities_of_label_samples_are_zero_where_the_score_is(strategy: type) -> None:
    zeros = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, size=(8, 4))
        labels[0] = 0
        rows = rng.integers(0, 8, size=3)
        query = strategy(estimator="unbiased", random_state=0)
        reference = rows if strategy is MRMRQuery else rows[None]
        samples = PredictionSamples(labels, kind="label")
        _, utilities = query.select(samples, reference=reference, return_utilities=True)
        scores = exact.ical_scores(exact.kernels_of(labels, "label"), rows, estimator="unbiased")
        assert ((utilities[0] == 0) == (scores == 0)).all()
        zeros += int((scores[1:] == 0).sum())
    assert zeros > 20
