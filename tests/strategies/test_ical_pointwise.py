"""ICALPointwiseQuery against the ratios of its definition, by hand and with constant predictions.

The oracles themselves are checked here on values known in closed form.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn

from sklearn_ical import ICALPointwiseQuery
from sklearn_ical.exceptions import EqualUtilitiesWarning
from tests.strategies.family_oracles import (
    RARE_LABELS,
    SOURCES,
    SPREAD_LABELS,
    label_samples,
    literal_hsic,
    literal_kernels,
    literal_labels,
    literal_pointwise,
    make_samples,
    make_values,
    pairwise,
    pointwise_definition,
    prediction_of,
    small_chunks,
    spread_of,
)

Backend = Callable[[np.ndarray], Any]
N, M, R = 14, 7, 6
WEIGHTS = np.array([0.1, 0.05, 0.4, 0.2, 0.15, 0.06, 0.04])
equal_utilities = pytest.mark.filterwarnings(
    "ignore::sklearn_ical.exceptions.EqualUtilitiesWarning"
)


def make_sets(
    batch_size: int, step_size: int = 1, n: int = N, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return reference sets of all steps, and marginal positions that no constant row is in."""
    rng = np.random.default_rng(seed)
    reference = rng.integers(0, n, size=(-(-batch_size // step_size), R))
    return reference, rng.choice(np.setdiff1d(np.arange(n), [3]), size=R)


def pointwise_clipped(
    summary: np.ndarray,
    marginal: np.ndarray,
    kernels: np.ndarray,
    batch: list[int],
    x: int,
    **how: Any,
) -> float:
    """Return alpha'(x) from dependences of single rows that are clipped at 0 first."""
    h = np.maximum(pairwise(marginal, kernels[[*batch, x]], **how), 0)
    c = len(batch)
    d = h[:, :c].mean(axis=1)
    gains = [max((c * di + hi) / (c + 1) / di, 1) - 1 for di, hi in zip(d, h[:, c], strict=True)]
    return literal_hsic(summary, kernels[[*batch, x]].mean(axis=0), **how) * float(np.mean(gains))


def test_oracles_know_dependence_in_closed_form() -> None:
    labels = np.array([SPREAD_LABELS, RARE_LABELS])
    k, z = literal_kernels("label", labels, "delta")
    assert literal_hsic(k, k) == pytest.approx(0.0984, rel=1e-12)
    assert literal_hsic(k, z) == pytest.approx(0.0024, rel=1e-12)
    assert literal_hsic(z, z) == pytest.approx(0.0324, rel=1e-12)
    k, z = literal_kernels("label", labels, "rq")  # in other units, with the same ratios
    assert literal_hsic(k, k) == pytest.approx(0.0222482757, rel=1e-8)
    assert literal_hsic(k, z) == pytest.approx(0.0005426409, rel=1e-7)
    y = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    k, z = literal_kernels("label", y, "delta")
    assert literal_hsic(k, k) == 0.25
    assert literal_hsic(k, z) == pytest.approx(0, abs=1e-16)
    assert literal_hsic(k, k, estimator="unbiased") == pytest.approx(2 / 3)
    assert literal_hsic(k, z, estimator="unbiased") == pytest.approx(-1 / 3)
    proba = np.array([[[0.9, 0.1], [0.1, 0.9]]] * 2)
    k, z = literal_kernels("expected", proba)
    assert literal_hsic(k, z) == pytest.approx(0.1681)
    k, z = literal_kernels("proba", proba)
    assert literal_hsic(k, z) == pytest.approx(0.1024)
    k, z = literal_kernels("label", np.array([[0, 1, 1], [1, 0, 1]]), "delta")
    assert literal_hsic(k, z, weights=[0.5, 0.25, 0.25]) == pytest.approx(0.0625)


def test_the_definition_is_the_closed_form() -> None:
    kernels = literal_kernels("proba", make_values("proba", seed=1))
    summary, marginal = kernels[[0, 4, 9]].mean(axis=0), kernels[[1, 5, 6, 8]]
    a = np.array([literal_hsic(summary, k) for k in kernels])
    h = pairwise(marginal, kernels)
    gains = []
    for c in (1, 3, 10):
        batch = [x for x in range(N) if x != 3][:c]
        d = h[:, batch].mean(axis=1)
        for x in (12, 13):
            gain = np.maximum(h[:, x] / d - 1, 0).mean() / (c + 1)
            expected = (c * a[batch].mean() + a[x]) / (c + 1) * gain
            gains.append(gain)
            found = pointwise_definition(summary, marginal, kernels, batch, x)
            assert found == pytest.approx(expected, rel=1e-10)
    assert sum(gain > 0.01 for gain in gains) >= 2


def compare(
    source: str,
    values: np.ndarray,
    to: Backend = np.asarray,
    *,
    batch_size: int = 5,
    step_size: int = 1,
    weights: Any = None,
    kernel: str = "auto",
    memory: float = 1024,
    candidates: Any = None,
) -> None:
    """Compare picks and utilities with those of the definition."""
    kernels = literal_kernels(source, values, kernel, weights=weights)
    reference, marginal = make_sets(batch_size, step_size, len(values))
    expected, rows = literal_pointwise(
        kernels,
        batch_size,
        reference,
        marginal,
        step_size=step_size,
        candidates=candidates,
        weights=weights,
    )
    query = ICALPointwiseQuery(
        step_size=step_size,
        prediction=prediction_of(source),
        kernel=kernel,
        marginal=marginal,
    )
    samples = make_samples(source, to(values), weights)
    how: dict[str, Any] = {"reference": reference, "candidates": candidates}
    with sklearn.config_context(working_memory=memory):
        picks, utilities = query.select(samples, batch_size, return_utilities=True, **how)
    assert picks.tolist() == expected
    assert picks.dtype == np.intp
    assert utilities.dtype == np.float64
    np.testing.assert_allclose(utilities, rows, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("step_size", [1, 3])
@pytest.mark.parametrize("source", SOURCES)
def test_steps_equal_the_definition(source: str, step_size: int) -> None:
    compare(source, make_values(source), step_size=step_size)
    compare(source, make_values(source, seed=5), step_size=step_size, weights=WEIGHTS)


@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.parametrize("source", SOURCES)
def test_steps_equal_the_definition_in_any_chunks(source: str, chunk: int) -> None:
    values = make_values(source, seed=2)
    with small_chunks(chunk):
        compare(source, values, batch_size=4, step_size=2, memory=1024 if chunk > 1 else 1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_steps_equal_the_definition_on_every_backend(
    source: str, dtype: str, backend: Backend
) -> None:
    if source == "label":
        dtype = {"float32": "uint8", "float64": "int64"}[dtype]
    compare(source, make_values(source, n=12, seed=3).astype(dtype), backend, batch_size=3)


def test_each_step_may_have_a_marginal_set_of_its_own() -> None:
    values = make_values("proba", seed=16)
    reference, _ = make_sets(6, 2)
    marginal = np.array([[0, 1, 2], [5, 7, 7], [8, 2, 13]])
    kernels = literal_kernels("proba", values)
    expected, literal = literal_pointwise(kernels, 6, reference, marginal, step_size=2)
    picks, rows = ICALPointwiseQuery(step_size=2, prediction="proba", marginal=marginal).select(
        values, 6, reference=reference, return_utilities=True
    )
    assert picks.tolist() == expected
    np.testing.assert_allclose(rows, literal, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("kernel", ["rq", "rbf", "linear", "delta"])
def test_all_kernels_follow_the_definition(kernel: str) -> None:
    if kernel in ("linear", "delta"):
        compare("label", make_values("label", seed=4), kernel=kernel, batch_size=4)
    if kernel != "delta":
        compare("proba", make_values("proba", seed=4), kernel=kernel, batch_size=4)
        compare("value", make_values("value", seed=4), kernel=kernel, batch_size=4)


@pytest.mark.parametrize("c", [1, 3, 10])
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_utilities_are_the_definition_for_batches_of_any_size(source: str, c: int) -> None:
    kernels = literal_kernels(source, make_values(source, seed=6))
    reference, marginal = make_sets(c + 1, seed=6)
    query = ICALPointwiseQuery(prediction=prediction_of(source), marginal=marginal)
    picks, rows = query.select(
        make_samples(source, make_values(source, seed=6)),
        c + 1,
        reference=reference,
        return_utilities=True,
    )
    batch = picks[:c].tolist()
    summary = kernels[reference[c]].mean(axis=0)
    expected = np.full(N, np.nan)
    for x in set(range(N)) - set(batch):
        expected[x] = pointwise_definition(summary, kernels[marginal], kernels, batch, x)
    if np.nanmax(expected) < 1e-14:  # nothing gains: the order of a_x
        expected = np.array([literal_hsic(summary, k) for k in kernels])
        expected[batch] = np.nan
    np.testing.assert_allclose(rows[c], expected, rtol=1e-10, atol=1e-15)


def test_sampled_labels_are_those_of_the_positions() -> None:
    proba = make_values("proba", seed=7)
    labels = literal_labels(proba, seed=11)
    reference, marginal = make_sets(4)
    query = ICALPointwiseQuery(marginal=marginal, random_state=11)
    how: dict[str, Any] = {"reference": reference, "return_utilities": True}
    picks, rows = query.select(proba, 4, **how)
    same, others = query.select(label_samples(labels), 4, **how)
    expected, literal = literal_pointwise(literal_kernels("label", labels), 4, reference, marginal)
    assert picks.tolist() == same.tolist() == expected
    np.testing.assert_allclose(rows, literal, rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(rows, others)


def test_the_best_ratio_wins_by_hand() -> None:
    signs = np.array([[1, 1, 1, 1, -1, -1, -1, -1], [1, 1, -1, -1, 1, 1, -1, -1]], dtype=float)
    ours, theirs = signs  # uncorrelated: HSIC of linear kernels is the squared covariance
    points = [2 * ours + np.sqrt(0.2) * theirs]  # the first pick
    points += [ours + np.sqrt(h) * theirs for h in (0.2, 0.1, 0.4)]
    values = np.array([*points, ours, theirs])
    query = ICALPointwiseQuery(kernel="linear", marginal=[5])
    picks, rows = query.select(
        make_samples("value", values),
        2,
        candidates=[0, 1, 2, 3],
        reference=[[4], [4]],
        return_utilities=True,
    )
    assert picks.tolist() == [0, 3]
    unit = 1 / float(spread_of(values)[0]) ** 4
    np.testing.assert_allclose(rows[0, :4], np.array([4, 1, 1, 1]) * unit, rtol=1e-12)
    # alpha = (4 + 1) / 2, and (max(d'/d, 1) - 1) = 1 / 2 for the winner alone
    np.testing.assert_allclose(rows[1, 1:4], np.array([0, 0, 1.25]) * unit, rtol=1e-9, atol=1e-15)


def test_rows_without_dependence_are_floored() -> None:
    signs = np.array(
        [
            [1, 1, 1, 1, -1, -1, -1, -1],
            [1, 1, -1, -1, 1, 1, -1, -1],
            [1, -1, 1, -1, 1, -1, 1, -1],
        ],
        dtype=float,
    )
    first, second, third = signs
    values = np.array([2 * first, first + 0.5 * second, first, second, third])
    unit = 1 / float(spread_of(values)[0]) ** 4
    for floor in (1e-3, 0.05):
        query = ICALPointwiseQuery(kernel="linear", marginal=[2, 3, 4], ratio_floor=floor)
        picks, rows = query.select(
            make_samples("value", values),
            2,
            candidates=[0, 1, 2],
            reference=[[2], [2]],
            return_utilities=True,
        )
        assert picks.tolist() == [0, 1]
        # d = (4, 0, 0), h of row 1 = (1, 1/4, 0): only the second marginal row gains, over a floor
        gain = (0.25 / (floor * 4 / 3) - 1) / 2 / 3
        np.testing.assert_allclose(rows[1, 1], (4 + 1) / 2 * gain * unit, rtol=1e-9)
        np.testing.assert_allclose(rows[1, 2], 0, atol=1e-12)


@equal_utilities
def test_copies_of_the_batch_gain_exactly_nothing() -> None:
    signs = np.array([[1, 1, 1, 1, -1, -1, -1, -1], [1, 1, -1, -1, 1, 1, -1, -1]], dtype=float)
    ours, theirs = signs
    for seed in range(60):  # the mean of equal numbers is not always that number
        copy, other = np.random.default_rng(seed).uniform(0.5, 2, size=2)
        values = np.array([*[copy * ours] * 6, 0.1 * copy * ours + other * theirs, ours, theirs])
        picks = ICALPointwiseQuery(kernel="linear", marginal=[7]).select(
            make_samples("value", values),
            5,
            candidates=range(7),
            reference=[[7]] * 4 + [[8]],  # the last step would rather have the other
        )
        assert picks[-1] == 6, seed


def test_several_picks_of_a_step_come_from_one_state() -> None:
    values = make_values("proba", seed=8)
    reference, marginal = make_sets(7, 3, seed=8)
    query = ICALPointwiseQuery(step_size=3, prediction="proba", marginal=marginal)
    picks, rows = query.select(
        make_samples("proba", values),
        7,
        reference=reference,
        return_utilities=True,
    )
    for start, stop in ((0, 3), (3, 6), (6, 7)):
        for t in range(start, stop):
            free = ~np.isnan(rows[t])
            np.testing.assert_array_equal(rows[t, free], rows[start, free])
            assert np.flatnonzero(~free).tolist() == sorted(picks[:t].tolist())
            assert picks[t] == np.nanargmax(rows[t])


@equal_utilities
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_constant_predictions_anywhere_leave_finite_numbers(source: str, backend: Backend) -> None:
    values = make_values(source, n=8, seed=9)
    values[[0, 4, 5]] = values[[0, 4, 5], :1]
    samples = make_samples(source, backend(values))
    for reference, marginal in (
        ([[3, 4, 1]] * 4, [0, 1, 3, 5]),
        ([[0, 3]] * 4, [3, 4]),  # nothing to depend on
        ([[6, 7]] * 4, [3, 4]),
        ([[0, 3]] * 4, [6, 7]),
    ):
        query = ICALPointwiseQuery(prediction=prediction_of(source), marginal=marginal)
        found = []
        for chunk in (None, 5):
            with small_chunks(chunk):
                picks, rows = query.select(samples, 4, reference=reference, return_utilities=True)
            assert len(set(picks.tolist())) == 4
            assert (np.isnan(rows).sum(axis=1) == np.arange(4)).all()
            assert not np.isinf(rows).any()
            found.append((picks.tolist(), rows))
        assert found[0][0] == found[1][0]
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-15)


def test_without_gains_relevance_decides() -> None:
    values = make_values("proba", seed=10)
    kernels = literal_kernels("proba", values)
    reference = np.arange(12).reshape(3, 4)
    query = ICALPointwiseQuery(prediction="proba", marginal=[3, 3])
    picks, rows = query.select(values, 3, reference=reference, return_utilities=True)
    assert query.select(values, 3, reference=reference).tolist() == picks.tolist()
    for t in range(3):
        a = [literal_hsic(kernels[reference[t]].mean(axis=0), k) for k in kernels]
        free = ~np.isnan(rows[t])
        np.testing.assert_allclose(rows[t, free], np.array(a)[free], rtol=1e-10, atol=1e-16)
        assert picks[t] == np.nanargmax(rows[t])


def test_the_unbiased_estimator_clips_ratios_at_zero() -> None:
    values = make_values("proba", seed=11)
    kernels = literal_kernels("proba", values)
    how = {"estimator": "unbiased"}
    h = pairwise(kernels, kernels, **how)
    assert (h < -1e-6).any()
    reference = np.tile(np.arange(N), (2, 1))
    first = int(np.argmax([literal_hsic(kernels.mean(axis=0), k, **how) for k in kernels]))
    marginal = np.flatnonzero(h[:, first] > 1e-4)
    query = ICALPointwiseQuery(prediction="proba", estimator="unbiased", marginal=marginal)
    picks, rows = query.select(values, 2, reference=reference, return_utilities=True)
    assert picks[0] == first
    summary = kernels.mean(axis=0)
    for x in set(range(N)) - {first}:
        expected = pointwise_clipped(summary, kernels[marginal], kernels, [first], x, **how)
        assert rows[1, x] == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_candidates_limit_the_picks_and_nothing_else() -> None:
    for source in ("label", "proba", "value"):
        compare(
            source, make_values(source, seed=12), candidates=[13, 0, 5, 3, 8, 2, 11], step_size=2
        )


@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_reference_samples_are_the_rows_compared_with(source: str) -> None:
    values = make_values(source, n=18, seed=13)
    pool, others = values[:11], values[11:]
    spread = spread_of(pool) if source == "value" else None
    kernels = literal_kernels(source, values, spread=spread)
    reference = np.random.default_rng(0).integers(0, 7, size=(4, 5))
    marginal = [0, 2, 2, 5, 6]
    expected, literal = literal_pointwise(
        kernels[:11], 4, reference, marginal, sources=kernels[11:]
    )
    query = ICALPointwiseQuery(prediction=prediction_of(source), marginal=marginal)
    picks, rows = query.select(
        make_samples(source, pool),
        4,
        reference_samples=make_samples(source, others),
        reference=reference,
        return_utilities=True,
    )
    assert picks.tolist() == expected
    np.testing.assert_allclose(rows, literal, rtol=1e-9, atol=1e-15)


def test_drawn_sets_are_reproducible_and_steps_draw_their_own() -> None:
    proba = make_values("proba", seed=14)
    query = ICALPointwiseQuery(4, 5, prediction="proba", random_state=0)
    picks, rows = query.select(proba, 5, return_utilities=True)
    same, others = query.select(proba, 5, return_utilities=True)
    np.testing.assert_array_equal(rows, others)
    assert picks.tolist() == same.tolist()
    firsts = {
        tuple(ICALPointwiseQuery(4, 5, prediction="proba", random_state=seed).select(proba, 5))
        for seed in range(8)
    }
    assert len(firsts) > 1
    everything = np.arange(N)
    fixed = ICALPointwiseQuery(N, N, prediction="proba", resample=False)
    given = ICALPointwiseQuery(prediction="proba", marginal=everything).select(
        proba, 5, reference=np.tile(everything, (5, 1))
    )
    assert fixed.select(proba, 5).tolist() == given.tolist()


def test_equal_rows_tie_to_the_lowest_position(backend: Backend) -> None:
    few = make_values("proba", n=5, seed=15).astype(np.float32)
    of = np.random.default_rng(0).permutation(np.arange(20) % 5)
    reference, marginal = make_sets(6, n=20)
    for rows in (None, 7):
        with small_chunks(rows), warnings.catch_warnings():
            warnings.simplefilter("ignore", EqualUtilitiesWarning)
            picks = ICALPointwiseQuery(prediction="proba", marginal=marginal).select(
                backend(few[of]), 6, reference=reference
            )
        for k in range(5):
            mine = picks[of[picks] == k]
            np.testing.assert_array_equal(mine, np.flatnonzero(of == k)[: len(mine)])


@pytest.mark.parametrize(
    ("marginal", "error", "message"),
    [
        ([[0, 1]], ValueError, r"marginal must have shape .*Got shape \(1, 2\)"),
        ([], ValueError, r"marginal .*Got shape \(0,\)"),
        ([14], ValueError, r"marginal.*from 0 to 13 in the pool\. Got 14 in ICALPointwiseQuery"),
        ([-1], ValueError, r"marginal.*from 0 to 13 in the pool\. Got -1"),
        ([0.0], TypeError, r"marginal.*integer positions in the pool"),
    ],
)
def test_wrong_marginal_rows_are_refused(marginal: Any, error: Any, message: str) -> None:
    marginal = np.array(marginal, dtype=np.int64) if marginal == [] else marginal
    with pytest.raises(error, match=message):
        ICALPointwiseQuery(marginal=marginal).select(make_values("proba"), 2)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n_marginal": 0}, "n_marginal"),
        ({"n_reference": 0}, "n_reference"),
        ({"step_size": 0}, "step_size"),
        ({"ratio_floor": -1.0}, "ratio_floor"),
        ({"prediction": "mean"}, "prediction"),
        ({"estimator": "U"}, "estimator"),
    ],
)
def test_wrong_parameters_are_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"'{name}' parameter of ICALPointwiseQuery"):
        ICALPointwiseQuery(**options).select(make_values("proba"))


def test_batch_is_compared_with_two_hundred_rows_unless_other_numbers_are_given() -> None:
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=(230, 5))
    settings = {"random_state": 0, "prediction": "proba"}
    _, default = ICALPointwiseQuery(**settings).select(proba, 2, return_utilities=True)
    _, expected = ICALPointwiseQuery(200, **settings).select(proba, 2, return_utilities=True)
    _, other = ICALPointwiseQuery(201, **settings).select(proba, 2, return_utilities=True)
    np.testing.assert_array_equal(default, expected)
    assert not np.array_equal(default, other, equal_nan=True)
