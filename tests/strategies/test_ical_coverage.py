"""ICALCoverageQuery against set functions evaluated from nothing, enumeration and closed forms.

Shifted summary kernels are in test_ical_information.py.
"""

import itertools
import math
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

from sklearn_ical import ICALCoverageQuery, ICALQuery
from sklearn_ical.exceptions import EqualUtilitiesWarning, ReferenceSaturatedWarning
from tests.strategies.family_oracles import (
    RARE_LABELS,
    SPREAD_LABELS,
    coverage_value,
    entropy_weight,
    gain_matrix,
    label_samples,
    literal_coverage,
    literal_kernels,
    literal_tau,
    literal_variance_fall,
    make_samples,
    make_values,
    margin_weight,
    pairwise,
    prediction_of,
    small_chunks,
)

Backend = Callable[[np.ndarray], Any]
N, M, BATCH = 14, 7, 5
DRAW_WEIGHTS = np.array([0.1, 0.05, 0.4, 0.2, 0.15, 0.06, 0.04])
GIVEN = np.linspace(0.2, 1.7, N)
OBJECTIVES = [("facility-location", 0.5), ("concave", 0.5), ("concave", 0.8)]
ROWS = np.array([0, 13, 4, 4, 6, 7, 8, 9, 10, 12])  # one counts twice
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_ical.exceptions.ReferenceSaturatedWarning",
    "ignore::sklearn_ical.exceptions.EqualUtilitiesWarning",
)


def compare(
    source: str,
    values: np.ndarray,
    to: Backend = np.asarray,
    *,
    dependence: str = "hsic",
    objective: str = "facility-location",
    gamma: float = 0.5,
    draw_weights: Any = None,
    candidates: Any = None,
    rtol: float = 1e-10,
    **options: Any,
) -> None:
    """Compare picks and utilities, lazy and not, with those of the set function."""
    gain = gain_matrix(source, values, ROWS, dependence, weights=draw_weights, **options)
    expected, rows, _ = literal_coverage(gain, BATCH, objective, gamma, candidates=candidates)
    query = ICALCoverageQuery(
        dependence=dependence,
        objective=objective,
        gamma=gamma,
        prediction="proba" if source == "label" else prediction_of(source),
        **options,
    )
    samples = make_samples(source, to(values), draw_weights)
    how: dict[str, Any] = {"reference": ROWS, "candidates": candidates}
    picks = query.select(samples, BATCH, **how)
    same, utilities = query.select(samples, BATCH, return_utilities=True, **how)
    assert picks.tolist() == expected
    assert same.tolist() == expected
    assert picks.dtype == np.intp
    assert utilities.dtype == np.float64
    np.testing.assert_allclose(utilities, rows, rtol=rtol, atol=1e-13)


def test_oracles_know_the_worked_example() -> None:
    one_hot = np.eye(4)[np.array([SPREAD_LABELS, RARE_LABELS])]
    fall = literal_tau(one_hot, one_hot)  # (reference row, candidate)
    assert fall[1, 0] == pytest.approx(0.0085714286, rel=1e-8)
    assert fall[0, 1] == pytest.approx(0.0133333333, rel=1e-8)
    assert fall[0, 0] == pytest.approx(0.48, rel=1e-12)
    assert fall[1, 1] == pytest.approx(0.18, rel=1e-12)
    assert 0.18 - fall[1, 0] == pytest.approx(0.1714286, abs=1e-7)  # the Gini impurity left
    tripled = literal_tau(one_hot[:, :1].repeat(3, axis=1), one_hot[:, :3])
    assert tripled == pytest.approx(0, abs=1e-15)


def test_oracles_of_weights_and_set_functions_agree_with_hand_calculations() -> None:
    mean = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [1 / 3] * 3])
    np.testing.assert_allclose(margin_weight(mean), [0.8, 0.0, 1.0])
    np.testing.assert_allclose(entropy_weight(mean), [1.0296530, 0.0, np.log(3)], atol=1e-7)
    gain = np.array([[4.0, 1.0, 0.0], [0.0, 9.0, 16.0]])
    assert coverage_value(gain, [0, 1]) == 6.5
    assert coverage_value(gain, [0, 1], "concave", 0.5) == pytest.approx((5**0.5 + 3) / 2)
    picks, rows, restarts = literal_coverage(gain, 3)
    assert picks == [2, 0, 1]
    np.testing.assert_allclose(rows[:2], [[2, 5, 8], [2, 0.5, np.nan]])
    assert restarts == [2]
    assert rows[2, 1] == 5.0  # the cover starts again
    y = np.array([[[1.0], [-1.0], [0.0]], [[1.0], [-1.0], [3.0]], [[2.0]] * 3])
    fall = literal_variance_fall(y, y)
    np.testing.assert_allclose(fall[0, :2], [2 / 3, (2 / 3) ** 2 / (8 / 3)])
    np.testing.assert_allclose(fall[:, 2], 0)


@pytest.mark.parametrize(("objective", "gamma"), OBJECTIVES)
@pytest.mark.parametrize("source", ["label", "proba", "expected", "argmax", "value", "values"])
def test_picks_equal_literal_greedy_for_hsic(source: str, objective: str, gamma: float) -> None:
    compare(source, make_values(source), objective=objective, gamma=gamma)


@pytest.mark.parametrize(("objective", "gamma"), OBJECTIVES)
@pytest.mark.parametrize("source", ["label", "proba", "value", "values"])
def test_picks_equal_literal_greedy_for_tau(source: str, objective: str, gamma: float) -> None:
    compare(source, make_values(source, seed=1), dependence="tau", objective=objective, gamma=gamma)


@pytest.mark.parametrize("dependence", ["hsic", "tau"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("margin", None),
        (None, "margin"),
        ("margin", "margin"),
        ("entropy", None),
        ("entropy", "margin"),
        (GIVEN, None),
        (None, GIVEN[::-1]),
        (GIVEN, "entropy"),
    ],
    ids=str,
)
def test_picks_equal_literal_greedy_for_weighted_rows(
    ours: Any, theirs: Any, dependence: str
) -> None:
    for i, source in enumerate(("label", "proba")):
        objective, gamma = OBJECTIVES[i]
        compare(
            source,
            make_values(source, seed=3),
            dependence=dependence,
            objective=objective,
            gamma=gamma,
            candidate_weight=ours,
            reference_weight=theirs,
        )
    if not isinstance(ours, str) and not isinstance(theirs, str):
        compare(
            "value",
            make_values("value", seed=3),
            dependence=dependence,
            candidate_weight=ours,
            reference_weight=theirs,
        )


@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_draw_weights_equal_the_literal_ones(source: str) -> None:
    for dependence in ("hsic", "tau"):
        compare(
            source, make_values(source, seed=4), dependence=dependence, draw_weights=DRAW_WEIGHTS
        )
    if source != "value":
        compare(
            source,
            make_values(source, seed=4),
            draw_weights=DRAW_WEIGHTS,
            candidate_weight="margin",
            reference_weight="entropy",
        )


@pytest.mark.parametrize("objective", ["facility-location", "concave"])
def test_the_unbiased_estimator_is_clipped_at_zero(objective: str) -> None:
    values = make_values("proba", seed=5)
    kernels = literal_kernels("proba", values)
    assert (pairwise(kernels[ROWS], kernels, estimator="unbiased") < -1e-6).any()
    compare("proba", values, objective=objective, estimator="unbiased")
    compare("label", make_values("label", seed=5), objective=objective, estimator="unbiased")


@pytest.mark.parametrize("kernel", ["rq", "rbf", "linear"])
def test_all_kernels_follow_the_definition(kernel: str) -> None:
    for source in ("proba", "value"):
        compare(source, make_values(source, seed=6), kernel=kernel)
    for of_labels in ("delta", "linear"):
        compare("label", make_values("label", seed=6), kernel=of_labels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_picks_equal_literal_greedy_on_every_backend(
    source: str, dtype: str, backend: Backend
) -> None:
    if source == "label":
        dtype = {"float32": "uint8", "float64": "int64"}[dtype]
    values = make_values(source, seed=7).astype(dtype)
    weight = None if source == "value" else "margin"
    # Mean predictions, and so weights, are in the dtype of the probabilities.
    rtol = 1e-5 if dtype == "float32" else 1e-10
    compare(source, values, backend, dependence="tau", candidate_weight=weight, rtol=rtol)
    compare(source, values, backend, objective="concave")


@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.parametrize("source", ["label", "proba", "expected", "value"])
def test_picks_equal_literal_greedy_in_any_chunks(source: str, chunk: int) -> None:
    values = make_values(source, seed=8)
    weight = "margin" if source == "proba" else None
    with small_chunks(chunk):
        compare(source, values, candidate_weight=weight)
        with sklearn.config_context(working_memory=1e-9):
            compare(source, values, objective="concave", reference_weight=weight)


@pytest.mark.parametrize("objective", ["facility-location", "concave"])
@pytest.mark.parametrize("dependence", ["hsic", "tau"])
def test_lazy_picks_equal_plain_ones_in_large_pools(dependence: str, objective: str) -> None:
    votes = np.random.default_rng(0).integers(0, 3, size=(400, 6))
    query = ICALCoverageQuery(30, dependence, objective=objective, random_state=0)
    lazy = query.select(label_samples(votes), 40)
    plain, rows = query.select(label_samples(votes), 40, return_utilities=True)
    assert lazy.tolist() == plain.tolist()
    assert plain.tolist() == [int(np.nanargmax(row)) for row in rows]
    assert len(set(lazy.tolist())) == 40


@pytest.mark.parametrize(("objective", "gamma"), OBJECTIVES)
@pytest.mark.parametrize("dependence", ["hsic", "tau"])
def test_greedy_reaches_its_share_of_the_best_batch(
    dependence: str, objective: str, gamma: float
) -> None:
    for seed in range(3):
        values = make_values("proba", n=10, seed=20 + seed)
        gain = gain_matrix("proba", values, np.arange(10), dependence)
        query = ICALCoverageQuery(dependence=dependence, objective=objective, gamma=gamma)
        picks, rows = query.select(values, 3, reference=np.arange(10), return_utilities=True)
        worth = coverage_value(gain, picks.tolist(), objective, gamma)
        best = max(
            coverage_value(gain, list(batch), objective, gamma)
            for batch in itertools.combinations(range(10), 3)
        )
        assert rows[np.arange(3), picks].sum() == pytest.approx(worth, rel=1e-10)
        assert (1 - 1 / math.e) * best <= worth <= best * (1 + 1e-12)


@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_a_linear_bridge_is_the_paper_with_a_fixed_reference(source: str) -> None:
    samples = make_samples(source, make_values(source, seed=9))
    query = ICALCoverageQuery(objective="concave", gamma=1)
    picks, rows = query.select(samples, BATCH, reference=ROWS, return_utilities=True)
    paper = ICALQuery(prediction="proba", resample=False)
    same, others = paper.select(
        samples, BATCH, reference=np.tile(ROWS, (BATCH, 1)), return_utilities=True
    )
    assert picks.tolist() == same.tolist()
    np.testing.assert_allclose(rows, others, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("n_points", [2, 3, 4, 5])
def test_tau_of_the_worked_example_is_in_the_utilities(n_points: int) -> None:
    labels = np.array([SPREAD_LABELS, *[RARE_LABELS] * (n_points - 1)])
    query = ICALCoverageQuery(dependence="tau", objective="concave", gamma=1.0)
    everything = np.arange(n_points)
    picks, rows = query.select(
        label_samples(labels), 1, reference=everything, return_utilities=True
    )
    spread = (0.48 + (n_points - 1) * 0.06 / 7) / n_points
    rare = (0.04 / 3 + (n_points - 1) * 0.18) / n_points
    np.testing.assert_allclose(rows[0], [spread, *[rare] * (n_points - 1)], rtol=1e-10)
    assert picks.tolist() == [0 if n_points <= 3 else 1]
    single = query.select(label_samples(labels), 1, reference=[0], return_utilities=True)[1]
    np.testing.assert_allclose(single[0, :2], [0.48, 0.04 / 3], rtol=1e-10)


@pytest.mark.parametrize("chunk", [None, 1, 7])
@pytest.mark.parametrize("dependence", ["hsic", "tau"])
def test_equal_kernels_are_not_both_chosen_while_another_adds_something(
    dependence: str, chunk: int | None
) -> None:
    rng = np.random.default_rng(1)
    few = rng.integers(0, 3, size=(6, M))
    names = np.stack([rng.permutation(4)[:3] for _ in range(30)])
    of = rng.integers(0, 6, size=30)
    votes = np.take_along_axis(names, few[of], axis=1)  # equal kernels under other names
    samples = label_samples(votes)
    query = ICALCoverageQuery(dependence=dependence)
    with small_chunks(chunk):
        picks, rows = query.select(samples, 6, reference=np.arange(30), return_utilities=True)
        assert query.select(samples, 6, reference=np.arange(30)).tolist() == picks.tolist()
    for t in range(1, 6):
        copies = np.isin(of, of[picks[:t]]) & ~np.isnan(rows[t])
        if np.nanmax(rows[t]) == np.nanmax(rows[t, copies]):
            break  # the cover has started again
        np.testing.assert_allclose(rows[t, copies], 0.0, atol=1e-15)
        assert of[picks[t]] not in of[picks[:t]]
        assert picks[t] == np.flatnonzero(of == of[picks[t]])[0]  # the lowest of the copies
    assert t >= 3


def test_a_saturated_reference_is_told_and_covered_again() -> None:
    few = make_values("proba", n=4, seed=11)  # the last one is constant
    values = few[np.arange(16) % 4]
    gain = gain_matrix("proba", values, np.arange(16))
    expected, rows, restarts = literal_coverage(gain, 12)
    assert restarts
    query = ICALCoverageQuery()
    with pytest.warns(ReferenceSaturatedWarning, match="ICALCoverageQuery.select"):
        picks, utilities = query.select(values, 12, reference=np.arange(16), return_utilities=True)
    assert picks.tolist() == expected
    assert len(set(picks.tolist())) == 12
    np.testing.assert_allclose(utilities, rows, rtol=1e-10, atol=1e-15)
    with pytest.warns(ReferenceSaturatedWarning):
        assert query.select(values, 12, reference=np.arange(16)).tolist() == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReferenceSaturatedWarning)
        query.select(values, restarts[0], reference=np.arange(16))


def test_pools_without_any_variation_give_the_lowest_positions() -> None:
    values = make_values("proba", n=10, seed=12)
    values[:] = values[:, :1]
    for objective in ("facility-location", "concave"):
        for dependence in ("hsic", "tau"):
            query = ICALCoverageQuery(dependence=dependence, objective=objective)
            with pytest.warns(EqualUtilitiesWarning):
                picks, rows = query.select(values, 4, return_utilities=True)
            assert picks.tolist() == [0, 1, 2, 3]
            assert np.nanmax(rows) == 0.0


@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_constant_rows_add_exactly_nothing(source: str, backend: Backend) -> None:
    values = make_values(source, seed=13)
    values[[1, 8]] = values[[1, 8], :1]
    for dependence, chunk in (("hsic", None), ("tau", 5)):
        with small_chunks(chunk):
            _, rows = ICALCoverageQuery(dependence=dependence).select(
                make_samples(source, backend(values)),
                3,
                reference=[1, 3, 0, 5, 9, 12],
                return_utilities=True,
            )
        assert (rows[:, [1, 3, 8]] == 0).all()
        assert not np.isnan(rows[0]).any()


@pytest.mark.parametrize("objective", ["facility-location", "concave"])
def test_candidates_limit_the_picks_and_nothing_else(objective: str) -> None:
    candidates = [13, 0, 5, 3, 8, 2, 11, 9]
    for source in ("label", "proba", "value"):
        weight = None if source == "value" else "margin"
        compare(
            source,
            make_values(source, seed=14),
            candidates=candidates,
            objective=objective,
            candidate_weight=weight,
            reference_weight=GIVEN,
        )


@pytest.mark.parametrize("dependence", ["hsic", "tau"])
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_reference_samples_are_the_rows_covered(source: str, dependence: str) -> None:
    values = make_values(source, n=22, seed=15)
    pool, others = values[:12], values[12:]
    weights: list[Any] = [None, np.linspace(1, 2, 10)]
    if source != "value":
        weights.append("margin")
    for weight in weights:
        for rows in (np.arange(10), np.array([9, 2, 2, 5, 7])):
            gain = gain_matrix(
                source, pool, rows, dependence, others=others, reference_weight=weight
            )
            expected, literal, _ = literal_coverage(gain, 4)
            query = ICALCoverageQuery(dependence=dependence, reference_weight=weight)
            picks, utilities = query.select(
                make_samples(source, pool),
                4,
                reference_samples=make_samples(source, others),
                reference=rows,
                return_utilities=True,
            )
            assert picks.tolist() == expected
            np.testing.assert_allclose(utilities, literal, rtol=1e-10, atol=1e-15)


class Untouched:
    """Draws that must not be evaluated."""

    n_draws, kind, classes, weights, joint = 6, "proba", None, None, False

    def __call__(self, X: Any) -> Any:
        raise AssertionError("evaluated before the weights were checked")


@pytest.mark.parametrize("name", ["candidate_weight", "reference_weight"])
@pytest.mark.parametrize(
    "weight",
    [np.ones(13), np.ones((14, 1)), np.append(np.ones(13), -0.1), np.append(np.ones(13), np.nan)],
    ids=["length", "shape", "negative", "nan"],
)
def test_wrong_weights_are_refused_before_any_work(name: str, weight: np.ndarray) -> None:
    query = ICALCoverageQuery(**{name: weight})
    with pytest.raises(ValueError, match=rf"{name} must .* in ICALCoverageQuery\.query"):
        query.query(Untouched(), np.zeros((14, 2)), 3)


@pytest.mark.parametrize("name", ["candidate_weight", "reference_weight"])
@pytest.mark.parametrize("weight", ["margin", "entropy"])
def test_weights_of_classifiers_are_refused_for_regression(name: str, weight: str) -> None:
    samples = make_samples("value", make_values("value"))
    with pytest.raises(ValueError, match=rf"{name}.*'{weight}'(.|\n)*(None|array)"):
        ICALCoverageQuery(**{name: weight}).select(samples, 2)


@pytest.mark.parametrize(
    "options", [{"prediction": "sampled"}, {"kernel": "rq"}, {"estimator": "unbiased"}], ids=str
)
def test_what_tau_has_no_form_for_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"dependence='tau' .* in ICALCoverageQuery\.select"):
        ICALCoverageQuery(dependence="tau", **options).select(make_values("proba"))


def test_many_rows_or_twice_as_many_as_picks_are_the_reference_by_default() -> None:
    values = make_values("proba", seed=17)
    query = ICALCoverageQuery(random_state=0)
    how: dict[str, Any] = {"batch_size": 3, "return_utilities": True}
    every = query.select(values, **how)[1]
    np.testing.assert_array_equal(every, query.select(values, reference=np.arange(N), **how)[1])
    with patch("sklearn_ical.strategies._ical_coverage.MANY", 1):
        six = query.select(values, **how)[1]
    np.testing.assert_array_equal(six, query.set_params(n_reference=6).select(values, **how)[1])
    assert not np.allclose(six[0], every[0])
    others = [ICALCoverageQuery(6, random_state=seed).select(values, **how)[1] for seed in (1, 2)]
    assert not np.allclose(six[0], others[0][0])
    assert not np.allclose(others[0][0], others[1][0])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n_reference": 0}, "n_reference"),
        ({"dependence": "mi"}, "dependence"),
        ({"objective": "max"}, "objective"),
        ({"gamma": 0}, "gamma"),
        ({"gamma": 1.5}, "gamma"),
        ({"candidate_weight": "gini"}, "candidate_weight"),
        ({"reference_weight": "gini"}, "reference_weight"),
        ({"information_weight": 1.1}, "information_weight"),
    ],
)
def test_wrong_parameters_are_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter of ICALCoverageQuery"):
        ICALCoverageQuery(**options).select(make_values("proba"))


def test_arrays_of_weights_are_held_cloned_and_shown_but_never_changed() -> None:
    ours, theirs = np.linspace(0, 1, N), np.linspace(1, 0, N)
    before = ours.copy(), theirs.copy()
    for array in (ours, theirs):
        array.flags.writeable = False
    query = ICALCoverageQuery(candidate_weight=ours, reference_weight=theirs)
    assert "candidate_weight=array(" in repr(query)
    copy = clone(query)
    values = make_values("proba", seed=16)
    picks = query.select(values, 3, reference=ROWS)
    assert query.candidate_weight is ours
    assert copy.select(values, 3, reference=ROWS).tolist() == picks.tolist()
    lists = ICALCoverageQuery(candidate_weight=ours.tolist(), reference_weight=theirs.tolist())
    assert lists.select(values, 3, reference=ROWS).tolist() == picks.tolist()
    np.testing.assert_array_equal(ours, before[0])
    np.testing.assert_array_equal(theirs, before[1])


def test_memory_stays_below_a_square_of_the_pool() -> None:
    n = 3000
    votes = np.random.default_rng(2).integers(0, 4, size=(n, 10))
    samples = label_samples(votes)
    query = ICALCoverageQuery(50, random_state=0, candidate_weight="margin")
    tracemalloc.start()
    try:
        picks = query.select(samples, 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(set(picks.tolist())) == 20
    assert peak < 8 * n * n / 2


@pytest.mark.parametrize("gamma", [0.9, 0.5, 0.3, 0.1])
def test_concave_picks_of_sharp_members_are_not_lost_to_rounding(gamma: float) -> None:
    rng = np.random.default_rng(0)
    logits = 3 * (4 * rng.normal(size=(100, 1, 3)) + rng.normal(size=(100, 10, 3)))
    proba = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    deviations = proba - proba.mean(axis=1, keepdims=True)
    covariances = np.einsum("ika,jkb->ijab", deviations, deviations) / 10
    gains = (covariances**2).sum(axis=(2, 3))
    expected: list[int] = []
    for _ in range(12):
        total = gains[:, expected].sum(axis=1)
        values = ((total[:, None] + gains) ** gamma).sum(axis=0)
        values[expected] = -1
        expected.append(int(values.argmax()))
    picks = ICALCoverageQuery(objective="concave", gamma=gamma).select(proba, 12)
    assert picks.tolist() == expected


@pytest.mark.parametrize("factor", [1e-140, 1e-3, 1e120])
def test_scale_of_weights_changes_no_pick(factor: float) -> None:
    proba = np.random.default_rng(1).dirichlet(np.ones(3), size=(14, 6))
    weights = np.random.default_rng(2).uniform(0.5, 2, size=14)
    for objective in ("facility-location", "concave"):
        expected, scaled = (
            ICALCoverageQuery(
                candidate_weight=weights * by, reference_weight=weights * by, objective=objective
            ).select(proba, 6, return_utilities=True)
            for by in (1.0, factor)
        )
        np.testing.assert_array_equal(scaled[0], expected[0])
        power = 1.0 if objective == "facility-location" else 0.5
        np.testing.assert_allclose(scaled[1], expected[1] * factor ** (2 * power), rtol=1e-9)


def test_weights_whose_product_leaves_float64_are_refused() -> None:
    proba = np.random.default_rng(1).dirichlet(np.ones(3), size=(14, 6))
    query = ICALCoverageQuery(candidate_weight=np.full(14, 1e200), reference_weight=[1e200] * 14)
    with pytest.raises(ValueError, match=r"candidate_weight and reference_weight must .* scale"):
        query.select(proba, 3)


def test_one_weight_far_above_the_others_leaves_them_their_order() -> None:
    proba = np.random.default_rng(1).dirichlet(np.ones(3), size=(14, 6))
    weights = np.ones(14)
    alone = [x for x in range(14) if x != 7]
    expected = ICALCoverageQuery().select(proba, 5, candidates=alone)
    weights[7] = 1e13
    with pytest.warns(ReferenceSaturatedWarning):
        picks = ICALCoverageQuery(candidate_weight=weights).select(proba, 6)
    assert picks.tolist() == [7, *expected]
