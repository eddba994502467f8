"""EPIG against the array function, imagined labels against enumeration, few votes, ties."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from sklearn_ical import EPIGQuery, PredictionSamples
from sklearn_ical._random import REFERENCE, stream_generator
from sklearn_ical.dependence import epig
from sklearn_ical.exceptions import EqualUtilitiesWarning
from sklearn_ical.samplers import get_sampler

Backend = Callable[[np.ndarray], Any]

N_POINTS, N_DRAWS, N_CLASSES = 30, 6, 3
WEIGHTS = np.array([0.1, 0.0, 0.3, 0.2, 0.15, 0.25])
BATCHES = ["top", "pseudo-label"]


def make_proba(n_points: int = N_POINTS, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(N_CLASSES, 0.5), size=(n_points, N_DRAWS))
    proba[2:3] = proba[2:3, :1]
    return proba.astype(dtype)


def make_votes(seed: int = 0, n_points: int = 40, n_draws: int = 5, top: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, top, size=(n_points, n_draws))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("rows", [None, 1, 7])
def test_utilities_are_information_about_given_reference_rows_on_every_backend(
    rows: int | None, weights: Any, dtype: str, backend: Backend
) -> None:
    proba, other = make_proba(dtype=dtype), make_proba(9, seed=1, dtype=dtype)
    expected = epig(proba.astype(float), other.astype(float), weights=weights)
    samples = PredictionSamples(backend(proba), weights=weights)
    reference = PredictionSamples(backend(other), weights=weights)
    allowed = np.setdiff1d(np.arange(N_POINTS), [3, 17])
    order = allowed[np.argsort(-expected[allowed], kind="stable")]
    with patch("sklearn_ical._array.chunk_rows", lambda row_bytes: rows or 10**6):
        picks, utilities = EPIGQuery().select(
            samples,
            8,
            reference_samples=reference,
            candidates=allowed,
            return_utilities=True,
        )
    np.testing.assert_array_equal(picks, order[:8])
    for t, row in enumerate(utilities):
        free = np.setdiff1d(allowed, picks[:t])
        np.testing.assert_allclose(row[free], expected[free], atol=1e-13)
        assert np.isnan(np.delete(row, free)).all()
        assert picks[t] == np.nanargmax(row)
    assert utilities[0, 2] == 0.0


def test_reference_rows_are_a_seeded_sample_of_the_pool_without_replacement() -> None:
    proba = make_proba()
    rows = stream_generator(7, REFERENCE).choice(N_POINTS, 10, replace=False)
    expected = epig(proba, proba[rows])
    query = EPIGQuery(n_reference=10, random_state=7)
    _, utilities = query.select(proba, return_utilities=True)
    np.testing.assert_allclose(utilities[0], expected, atol=1e-13)
    _, part = query.select(proba, candidates=[1, 5, 9], return_utilities=True)
    np.testing.assert_allclose(part[0, [1, 5, 9]], expected[[1, 5, 9]], atol=1e-13)
    _, elsewhere = query.select(proba, reference_samples=proba[::-1], return_utilities=True)
    np.testing.assert_allclose(elsewhere[0], epig(proba, proba[::-1][rows]), atol=1e-13)


@pytest.mark.parametrize("n_reference", [N_POINTS, N_POINTS + 1])
def test_all_rows_are_compared_with_where_there_are_no_more(n_reference: int) -> None:
    proba = make_proba()
    for seed in range(3):
        query = EPIGQuery(n_reference=n_reference, random_state=seed)
        _, utilities = query.select(proba, return_utilities=True)
        np.testing.assert_allclose(utilities[0], epig(proba, proba), atol=1e-13)


@pytest.mark.parametrize("batch", BATCHES)
def test_models_and_their_predictions_give_equal_batches(batch: str) -> None:
    X, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(15, random_state=0).fit(X[:60], y[:60])
    query = EPIGQuery(n_reference=20, batch=batch, random_state=3)
    sampler = get_sampler(forest)
    for other in (None, X[300:340]):
        expected = query.query(forest, X[60:300], 5, X_reference=other)
        samples = sampler.sample(X[60:300])
        reference = None if other is None else sampler.sample(other)
        picks = query.select(samples, 5, reference_samples=reference)
        np.testing.assert_array_equal(picks, expected)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("top", [3, 100])
def test_labels_are_certain_votes(batch: str, top: int, backend: Backend) -> None:
    votes = make_votes(n_points=15, n_draws=6, top=top)
    votes[3] = votes[3, 0]
    query = EPIGQuery(n_reference=8, batch=batch, random_state=1)
    samples = PredictionSamples(backend(votes), kind="label")
    picks, utilities = query.select(samples, 4, return_utilities=True)
    expected, rows = query.select(np.eye(top)[votes], 4, return_utilities=True)
    np.testing.assert_array_equal(picks, expected)
    np.testing.assert_allclose(utilities[0], rows[0], atol=1e-13)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_imagined_labels_condition_on_what_was_chosen(weights: Any) -> None:
    n_copies = 1500
    proba = 0.02 + 0.94 * np.eye(N_CLASSES)[make_votes(n_points=13, n_draws=N_DRAWS)]
    proba, target = proba[1:], proba[:1]
    prior = np.full(N_DRAWS, 1 / N_DRAWS) if weights is None else weights
    samples = PredictionSamples(proba, weights=weights)
    copies = PredictionSamples(target.repeat(n_copies, axis=0), weights=weights)
    picks, rows = EPIGQuery(n_reference=n_copies, batch="pseudo-label", random_state=0).select(
        samples, 3, reference_samples=copies, return_utilities=True
    )
    np.testing.assert_allclose(rows[0], epig(proba, target, weights=prior), atol=1e-12)
    assert picks[0] == np.argmax(rows[0])
    # The information given the label of the first, and of the first two, label by label.
    first = _given_labels(proba, target, prior, picks[:1])
    second = _given_labels(proba, target, prior, picks[:2])
    for row, expected, taken in ((rows[1], first, picks[:1]), (rows[2], second, picks[:2])):
        free = np.setdiff1d(np.arange(12), taken)
        np.testing.assert_allclose(row[free], expected[free], atol=4 * 0.3 / np.sqrt(n_copies))
    assert abs(rows[1] - rows[0])[np.setdiff1d(np.arange(12), picks[:1])].max() > 0.1


def _given_labels(
    proba: np.ndarray, target: np.ndarray, prior: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    """Return the mean information about the target over all labels of the chosen rows."""
    if len(chosen) == 0:
        return epig(proba, target, weights=prior)
    total = np.zeros(len(proba))
    for label in range(N_CLASSES):
        weights = prior * proba[chosen[0], :, label]
        chance = weights.sum()
        total += chance * _given_labels(proba, target, weights / chance, chosen[1:])
    return total


def test_imagined_labels_keep_copies_out_of_a_batch() -> None:
    votes = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1]])
    samples = PredictionSamples(votes, kind="label")
    reference = PredictionSamples(np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1]]), "label")
    top = EPIGQuery().select(samples, 2, reference_samples=reference)
    assert top.tolist() == [0, 1]
    for seed in range(10):
        query = EPIGQuery(batch="pseudo-label", random_state=seed)
        assert query.select(samples, 2, reference_samples=reference).tolist() == [0, 2]


@pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.EqualUtilitiesWarning")
def test_batches_go_on_where_labels_have_found_the_draw() -> None:
    votes = make_votes(3, n_points=40, n_draws=4, top=4)  # two labels leave a single draw
    query = EPIGQuery(batch="pseudo-label", random_state=0)
    picks, rows = query.select(PredictionSamples(votes, kind="label"), 30, return_utilities=True)
    assert len(set(picks.tolist())) == 30
    assert (rows[np.arange(30), picks] > 0.01).sum() > 20  # and still tell rows apart


def test_batches_go_on_where_the_draws_left_agree() -> None:
    votes = make_votes(3, n_points=40, n_draws=4, top=4).repeat(2, axis=1)  # each draw twice
    query = EPIGQuery(batch="pseudo-label", random_state=0)
    picks, rows = query.select(PredictionSamples(votes, kind="label"), 30, return_utilities=True)
    assert (rows[np.arange(30), picks] > 0.01).all()


def test_one_reference_row_leaves_no_pick_to_position_alone() -> None:
    X, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(8, random_state=0).fit(X[:50], y[:50])
    query = EPIGQuery(batch="pseudo-label", random_state=0)
    picks, rows = query.query(forest, X[200:400], 12, X_reference=X[100:101], return_utilities=True)
    assert (rows[np.arange(12), picks] > 0.01).all()


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("rows", [None, 1])
def test_rows_equal_up_to_the_names_of_classes_tie_to_the_lowest_position(
    rows: int | None, batch: str, backend: Backend
) -> None:
    rng = np.random.default_rng(8)
    few = rng.dirichlet(np.full(4, 0.4), size=(3, 7)).astype(np.float32)
    of = rng.integers(0, 3, size=30)
    proba = np.stack([few[k][:, rng.permutation(4)] for k in of])
    with patch("sklearn_ical._array.chunk_rows", lambda row_bytes: rows or 10**6):
        query = EPIGQuery(batch=batch, random_state=0)
        picks = query.select(backend(proba), 8, reference_samples=backend(proba[:5]))
    for k in range(3):
        mine = picks[of[picks] == k]
        np.testing.assert_array_equal(mine, np.flatnonzero(of == k)[: len(mine)])


def test_equal_rows_warn_and_give_the_lowest_positions() -> None:
    proba = np.tile(make_proba(1), (20, 1, 1))
    with pytest.warns(EqualUtilitiesWarning, match="EPIGQuery.select"):
        picks = EPIGQuery().select(proba, 3, candidates=range(5, 20))
    assert picks.tolist() == [5, 6, 7]


@pytest.mark.parametrize("batch", BATCHES)
def test_chunks_of_any_size_give_the_same_batch(batch: str) -> None:
    samples = PredictionSamples(make_votes(4, n_points=60, n_draws=12), kind="label")
    query = EPIGQuery(n_reference=25, batch=batch, random_state=0)
    expected = query.select(samples, 10)
    for rows in (1, 7, 50):
        with patch("sklearn_ical._array.chunk_rows", lambda row_bytes, rows=rows: rows):
            np.testing.assert_array_equal(query.select(samples, 10), expected)


def test_what_it_cannot_use_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"EPIGQuery supports .* 'proba' or 'label'\. Got kind"):
        EPIGQuery().select(PredictionSamples(np.zeros((3, 4)), kind="value"))
    with pytest.raises(ValueError, match=r"EPIGQuery needs at least 2 draws\. Got 1"):
        EPIGQuery().select(make_proba()[:, :1])
    with pytest.raises(ValueError, match=r"reference_samples must have at least one row\. Got 0"):
        EPIGQuery().select(make_proba(), reference_samples=make_proba()[:0])
    with pytest.raises(ValueError, match=r"'batch' parameter of EPIGQuery must be a str among"):
        EPIGQuery(batch="greedy").select(make_proba())
    with pytest.raises(ValueError, match=r"'n_reference' parameter of EPIGQuery"):
        EPIGQuery(n_reference=0).select(make_proba())
