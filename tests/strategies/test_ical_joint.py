"""ICALJointQuery against the kernel of the concatenated prediction, built anew at every step."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn

from sklearn_ical import ICALJointQuery, PredictionSamples
from tests.strategies.family_oracles import (
    concatenated_kernel,
    label_samples,
    literal_hsic,
    literal_joint,
    literal_kernels,
    literal_labels,
    make_samples,
    make_values,
    outputs_of,
    prediction_of,
    product_kernel,
    small_chunks,
    spread_of,
)

Backend = Callable[[np.ndarray], Any]
N, M, BATCH = 12, 7, 4
SOURCES = ["label", "proba", "argmax", "value", "values"]
FORMS = ["scaled", "grouped"]
DRAW_WEIGHTS = np.array([0.1, 0.05, 0.4, 0.2, 0.15, 0.06, 0.04])
ROWS = np.array([0, 11, 4, 4, 6, 3, 8])  # one counts twice, one is constant
XOR = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]])
pytestmark = pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")


def literal(
    source: str,
    values: np.ndarray,
    form: str,
    *,
    rate: float = 1.0,
    normalize: bool = True,
    kernel: str = "auto",
    weights: Any = None,
    others: np.ndarray | None = None,
    rows: np.ndarray = ROWS,
    batch_size: int = BATCH,
) -> tuple[list[int], np.ndarray]:
    """Return picks and utilities by direct HSIC with kernels of all that is concatenated."""
    spread = spread_of(values, weights) if source in ("value", "values") else None
    how: dict[str, Any] = {"weights": weights, "spread": spread}
    kernels = literal_kernels(source, values, kernel, **how)
    theirs = kernels if others is None else literal_kernels(source, others, kernel, **how)
    summary = theirs[rows].mean(axis=0)
    outputs = outputs_of(source, values, spread)

    def joint(batch: list[int]) -> np.ndarray:
        if form == "grouped":
            return product_kernel(kernels, batch)
        return concatenated_kernel(outputs, batch, rate)

    def norm(k: np.ndarray) -> float:
        own = literal_hsic(k, k, weights=weights) * literal_hsic(summary, summary, weights=weights)
        return own**0.5

    size: dict[str, Any] = {"norm": norm} if normalize else {}
    return literal_joint(summary, joint, len(values), batch_size, weights=weights, **size)


def compare(
    source: str, values: np.ndarray, form: str, to: Backend = np.asarray, **options: Any
) -> None:
    """Compare picks and utilities with the direct ones."""
    expected, rows = literal(source, values, form, **options)
    weights = options.pop("weights", None)
    query = ICALJointQuery(form, prediction=prediction_of(source), **options)
    if source == "label":
        query.set_params(prediction="proba")
    samples = make_samples(source, to(values), weights)
    picks, utilities = query.select(samples, BATCH, reference=ROWS, return_utilities=True)
    assert picks.tolist() == expected
    assert picks.dtype == np.intp
    assert utilities.dtype == np.float64
    np.testing.assert_allclose(utilities, rows, rtol=1e-9, atol=1e-13)


def test_oracles_know_what_two_rows_tell_together() -> None:
    kernels = literal_kernels("label", XOR, "delta")
    for x in (0, 1):
        assert literal_hsic(kernels[2], kernels[x]) == pytest.approx(0, abs=1e-16)
        mean = kernels[[0, 1]].mean(axis=0)
        assert literal_hsic(kernels[2], mean) == pytest.approx(0, abs=1e-16)
    assert literal_hsic(kernels[2], product_kernel(kernels, [0, 1])) == pytest.approx(0.125)
    # The scaled kernel of one row of labels is two-valued: 1 and exp(-rate).
    one = concatenated_kernel(outputs_of("label", XOR), [0], 0.7)
    np.testing.assert_allclose(one, np.exp(-0.7) + (1 - np.exp(-0.7)) * kernels[0])
    # Of two rows, one or both of which differ: products of roots.
    two = concatenated_kernel(outputs_of("label", XOR), [0, 1], 0.7)
    roots = [concatenated_kernel(outputs_of("label", XOR), [x], 0.35) for x in (0, 1)]
    np.testing.assert_allclose(two, roots[0] * roots[1])


def test_what_two_rows_tell_together_is_seen() -> None:
    query = ICALJointQuery("grouped", normalize=False, kernel="delta")
    picks, rows = query.select(
        label_samples(XOR), 2, reference=[2], candidates=[0, 1], return_utilities=True
    )
    assert picks.tolist() == [0, 1]
    np.testing.assert_allclose(rows[0, :2], 0, atol=1e-16)
    assert rows[1, 1] == pytest.approx(0.125, rel=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", SOURCES)
def test_steps_equal_direct_hsic_of_the_concatenated_kernel(
    source: str, form: str, normalize: bool
) -> None:
    for seed in (0, 1):
        compare(source, make_values(source, n=N, seed=seed), form, normalize=normalize)


@pytest.mark.parametrize("rate", [0.01, 0.5, 4.0])
def test_the_rate_scales_the_distance(rate: float) -> None:
    for source in SOURCES:
        values = make_values(source, n=N, seed=2)
        for normalize in (True, False):
            compare(source, values, "scaled", rate=rate, normalize=normalize)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", SOURCES)
def test_draw_weights_equal_the_literal_ones(source: str, form: str) -> None:
    values = make_values(source, n=N, seed=3)
    for normalize in (True, False):
        compare(source, values, form, weights=DRAW_WEIGHTS, normalize=normalize)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", ["rq", "rbf", "linear", "delta"])
def test_all_kernels_equal_the_literal_ones(kernel: str, form: str) -> None:
    compare("label", make_values("label", n=N, seed=4), form, kernel=kernel)
    if kernel != "delta":
        compare("proba", make_values("proba", n=N, seed=4), form, kernel=kernel)
        compare("value", make_values("value", n=N, seed=4), form, kernel=kernel)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_steps_equal_direct_hsic_on_every_backend(
    source: str, dtype: str, backend: Backend
) -> None:
    if source == "label":
        dtype = {"float32": "uint8", "float64": "int64"}[dtype]
    values = make_values(source, n=N, seed=5).astype(dtype)
    for form in FORMS:
        compare(source, values, form, backend)


@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.parametrize("form", FORMS)
def test_steps_equal_direct_hsic_in_any_chunks(form: str, chunk: int) -> None:
    for source in ("label", "proba", "value"):
        with small_chunks(chunk):
            compare(source, make_values(source, n=N, seed=6), form)
    with sklearn.config_context(working_memory=1e-9):
        compare("proba", make_values("proba", n=N, seed=6), form, normalize=False)


def test_a_small_rate_is_the_mean_kernel() -> None:
    labels = make_values("label", n=N, seed=7)
    rate = 1e-3
    query = ICALJointQuery("scaled", rate, normalize=False, kernel="delta")
    picks, rows = query.select(label_samples(labels), BATCH, reference=ROWS, return_utilities=True)
    kernels = literal_kernels("label", labels, "delta")
    summary = kernels[ROWS].mean(axis=0)
    for t in range(BATCH):
        chosen = picks[:t].tolist()
        for x in set(range(N)) - set(chosen):
            mean = literal_hsic(summary, kernels[[*chosen, x]].mean(axis=0))
            assert rows[t, x] / rate == pytest.approx(mean, rel=5e-4, abs=1e-15)


def test_sampled_labels_are_those_of_the_positions() -> None:
    proba = make_values("proba", n=N, seed=8)
    labels = literal_labels(proba, seed=5)
    for form in FORMS:
        expected, rows = literal("label", labels, form)
        query = ICALJointQuery(form, prediction="sampled", random_state=5)
        picks, utilities = query.select(proba, BATCH, reference=ROWS, return_utilities=True)
        assert picks.tolist() == expected
        np.testing.assert_allclose(utilities, rows, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_reference_samples_are_the_rows_compared_with(source: str, form: str) -> None:
    values = make_values(source, n=20, seed=9)
    pool, others, rows = values[:12], values[12:], np.array([0, 7, 7, 2])
    expected, utilities = literal(source, pool, form, others=others, rows=rows)
    picks, found = ICALJointQuery(form, prediction="proba").select(
        make_samples(source, pool),
        BATCH,
        reference_samples=make_samples(source, others),
        reference=rows,
        return_utilities=True,
    )
    assert picks.tolist() == expected
    np.testing.assert_allclose(found, utilities, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_candidates_limit_the_picks_and_nothing_else(form: str) -> None:
    candidates = [9, 0, 5, 3, 8, 2, 11]
    for source in ("label", "proba", "value"):
        samples = make_samples(source, make_values(source, n=N, seed=10))
        query = ICALJointQuery(form, prediction="proba")
        picks, rows = query.select(
            samples, 3, reference=ROWS, candidates=candidates, return_utilities=True
        )
        first = query.select(samples, 1, reference=ROWS, return_utilities=True)[1][0]
        np.testing.assert_allclose(rows[0, candidates], first[candidates], rtol=1e-12, atol=1e-16)
        assert np.isnan(np.delete(rows[0], candidates)).all()
        assert set(picks.tolist()) <= set(candidates)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_constant_rows_are_finite_and_all_constant_pools_equal(form: str, normalize: bool) -> None:
    for source in ("label", "proba", "value"):
        values = make_values(source, n=N, seed=11)
        query = ICALJointQuery(form, normalize=normalize, prediction="proba")
        values[[0, 5, 7]] = values[[0, 5, 7], :1]
        picks, rows = query.select(make_samples(source, values), N, return_utilities=True)
        assert query.select(make_samples(source, values), N).tolist() == picks.tolist()
        assert sorted(picks.tolist()) == list(range(N))
        assert (np.isnan(rows).sum(axis=1) == np.arange(N)).all()
        assert not np.isinf(rows).any()
        np.testing.assert_array_equal(rows[0, [0, 3, 5, 7]], 0.0)
        values[:] = values[:, :1]
        picks, rows = query.select(make_samples(source, values), 3, return_utilities=True)
        assert picks.tolist() == [0, 1, 2]
        assert np.nanmax(np.abs(rows)) == 0.0


@pytest.mark.parametrize("form", FORMS)
def test_normalized_dependence_is_at_most_one(form: str) -> None:
    values = make_values("proba", n=N, seed=12)
    query = ICALJointQuery(form, kernel="rbf", prediction="proba")
    rows = query.select(values, 5, reference=[1], return_utilities=True)[1]
    assert np.nanmax(rows) <= 1 + 1e-12
    assert np.nanmin(rows) >= -1e-12
    if form == "grouped":  # the row itself
        assert rows[0, 1] == pytest.approx(1.0, rel=1e-12)


def test_equal_rows_tie_to_the_lowest_position(backend: Backend) -> None:
    few = make_values("proba", n=4, seed=13).astype(np.float32)
    of = np.random.default_rng(0).permutation(np.arange(12) % 4)
    for form in FORMS:
        for chunk in (None, 5):
            with small_chunks(chunk):
                picks = ICALJointQuery(form, prediction="proba").select(backend(few[of]), 5)
            for k in range(4):
                mine = picks[of[picks] == k]
                np.testing.assert_array_equal(mine, np.flatnonzero(of == k)[: len(mine)])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"form": "literal"}, "form"),
        ({"rate": 0}, "rate"),
        ({"rate": -1.0}, "rate"),
        ({"normalize": "yes"}, "normalize"),
        ({"n_reference": 0}, "n_reference"),
        ({"kernel": "rbg"}, "kernel"),
    ],
)
def test_wrong_parameters_are_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter of ICALJointQuery"):
        ICALJointQuery(**options).select(make_values("proba"))


def test_small_rates_lose_no_digits() -> None:
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=(12, 6))
    expected = ICALJointQuery("scaled", 1e-6, prediction="proba").select(
        proba, 4, return_utilities=True
    )
    for rate in (1e-9, 1e-14, 1e-60):
        found = ICALJointQuery("scaled", rate, prediction="proba").select(
            proba, 4, return_utilities=True
        )
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


@pytest.mark.parametrize("form", ["scaled", "grouped"])
def test_two_draws_align_all_rows_alike(form: str) -> None:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=(12, 1)) + 1e-4 * rng.normal(size=(12, 2, 3))
    proba /= proba.sum(axis=2, keepdims=True)
    for first in rng.uniform(0.1, 0.9, size=20):
        samples = PredictionSamples(proba, weights=[first, 1 - first])
        assert ICALJointQuery(form, prediction="proba").select(samples, 1).tolist() == [0]
