"""Sequential ICAL against literal matrices and Bayes' rule, votes that saturate, ties, backends."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_digits, make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from sklearn_ical import ICALSequentialQuery, PredictionSamples
from sklearn_ical._random import REFERENCE, stream_generator
from sklearn_ical.samplers import get_sampler
from tests.strategies.family_oracles import RARE_LABELS, SPREAD_LABELS, first_best, literal_tau

Backend = Callable[[np.ndarray], Any]

N_POINTS, N_DRAWS, N_CLASSES = 12, 5, 3
WEIGHTS = np.array([0.1, 0.3, 0.0, 0.35, 0.25])
SOURCES = ["proba", "label", "value", "values", "noisy value", "noisy values"]
saturated = pytest.mark.filterwarnings(
    "ignore::sklearn_ical.exceptions.EqualUtilitiesWarning"
)  # the last direction left is the same for every row that has it


def make_values(source: str, n_points: int = N_POINTS, seed: int = 0) -> np.ndarray:
    """Return predictions in which the draws agree on row 2 and row 7 is a copy of row 1."""
    rng = np.random.default_rng(seed)
    values: Any
    if source == "proba":
        values = rng.dirichlet(np.full(N_CLASSES, 0.5), size=(n_points, N_DRAWS))
    elif source == "label":
        values = rng.integers(N_CLASSES, size=(n_points, N_DRAWS))
    else:
        values = rng.normal(size=(n_points, N_DRAWS) + ((2,) if "values" in source else ()))
    values[2] = values[2, 0]
    values[7:8] = values[1]
    return values


def make_samples(
    source: str, to: Callable[[np.ndarray], Any] = np.asarray, weights: Any = None, **how: Any
) -> PredictionSamples:
    """Return samples of one source; noise differs by row and draw."""
    values = make_values(source, **how)
    kind = source.split()[-1].removesuffix("s")
    noise = None
    if "noisy" in source:
        noise = np.random.default_rng(1).uniform(0.1, 2, size=values.shape[:2])
    return PredictionSamples(to(values), kind, weights=weights, noise_variance=noise)


# Literal form: matrices by loops over draws, numpy's pseudo-inverse


def literal_parts(samples: PredictionSamples) -> tuple[np.ndarray, np.ndarray]:
    """Return A (n, n_outputs, m) and N (n, n_outputs, n_outputs)."""
    values = np.asarray(samples.values)
    if samples.kind == "label":
        values = np.eye(int(values.max()) + 1)[values]
    values = values.reshape(*values.shape[:2], -1).astype(np.float64)
    n, m, c = values.shape
    w = np.full(m, 1 / m) if samples.weights is None else samples.weights
    a, noise = np.zeros((n, c, m)), np.zeros((n, c, c))
    for x in range(n):
        mean = sum(w[k] * values[x, k] for k in range(m))
        for k in range(m):
            p = values[x, k]
            a[x, :, k] = np.sqrt(w[k]) * (p - mean)
            if samples.kind != "value":
                noise[x] += w[k] * (np.diag(p) - np.outer(p, p))
            elif samples.noise_variance is not None:
                noise[x] += w[k] * samples.noise_variance[x, k] * np.eye(c)
    return a, noise


def literal_inverse(a: np.ndarray, noise: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return (A Q A' + N)^+; what is less than 1e-7 of the label's own variance is 0."""
    size = np.linalg.norm(a @ a.T + noise, 2)
    matrix = a @ q @ a.T + noise
    largest = np.linalg.norm(matrix, 2)
    if largest <= 1e-7 * size:
        return np.zeros_like(matrix)
    return np.linalg.pinv(matrix, rcond=1e-7 * size / largest, hermitian=True)


def literal_batch(
    samples: PredictionSamples,
    batch_size: int,
    reference: Any = None,
    others: PredictionSamples | None = None,
    candidates: Any = None,
) -> tuple[list[int], np.ndarray]:
    """Pick by the definition, and start again where nothing tells anything; picks and rows."""
    a, noise = literal_parts(samples)
    theirs = a if others is None else literal_parts(others)[0]
    theirs = theirs if reference is None else theirs[np.asarray(reference)]
    t = np.mean([b.T @ b for b in theirs], axis=0)
    n, m = len(a), len(t)
    q, batch, rows = np.eye(m), [], []
    while len(batch) < batch_size:
        row = np.full(n, np.nan)
        for x in range(n) if candidates is None else candidates:
            if x not in batch:
                inverse = literal_inverse(a[x], noise[x], q)
                row[x] = np.trace(inverse @ a[x] @ q @ t @ q @ a[x].T)
        if np.nanmax(row) <= 1e-8 * np.trace(t) and (q != np.eye(m)).any():
            q = np.eye(m)
            continue
        rows.append(row)
        x = first_best(row)
        batch.append(x)
        q = q - q @ a[x].T @ literal_inverse(a[x], noise[x], q) @ a[x] @ q
    return batch, np.array(rows)


@saturated
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("source", SOURCES)
def test_whole_batches_are_those_of_the_definition(source: str, weights: Any) -> None:
    samples = make_samples(source, weights=weights)
    others = make_samples(source, weights=weights, n_points=6, seed=5)
    allowed = [0, 1, 2, 4, 5, 7, 8, 10, 11]
    options: Any
    for options in (
        {},
        {"reference": [3, 3, 4, 9]},
        {"others": others},
        {"others": others, "reference": [0, 4, 4]},
        {"candidates": allowed},
    ):
        size = len(allowed) if "candidates" in options else N_POINTS
        expected, rows = literal_batch(samples, size, **options)
        call = {("reference_samples" if k == "others" else k): v for k, v in options.items()}
        picks, utilities = ICALSequentialQuery().select(
            samples, size, return_utilities=True, **call
        )
        assert picks.tolist() == expected
        np.testing.assert_allclose(utilities, rows, rtol=1e-6, atol=1e-11 * np.nanmax(rows))
        assert set(utilities[~np.isnan(utilities[:, 2]), 2]) == {0.0}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("source", SOURCES)
def test_backends_and_dtypes_give_the_batches_of_numpy(
    source: str, weights: Any, dtype: str, backend: Backend
) -> None:
    if source == "label":
        dtype = {"float32": "uint8", "float64": "int64"}[dtype]
    samples = make_samples(source, lambda values: backend(values.astype(dtype)), weights)
    with_numpy = make_samples(source, lambda values: values.astype(dtype), weights)
    options = {"reference": [8, 0, 0, 5], "return_utilities": True}
    expected, rows = ICALSequentialQuery().select(with_numpy, 4, **options)
    picks, utilities = ICALSequentialQuery().select(samples, 4, **options)
    np.testing.assert_array_equal(picks, expected)
    np.testing.assert_allclose(utilities, rows, rtol=1e-7, atol=1e-11)
    if dtype == "float32":
        _, rows = literal_batch(with_numpy, 1, options["reference"])
        np.testing.assert_allclose(utilities[0], rows[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_first_utilities_are_the_expected_fall_of_the_gini_impurity(weights: Any) -> None:
    for source in ("proba", "label"):
        values = make_values(source)
        shown = np.eye(N_CLASSES)[values] if source == "label" else values
        expected = literal_tau(shown, shown, weights).mean(axis=0)
        samples = PredictionSamples(values, source, weights=weights)
        _, rows = ICALSequentialQuery().select(samples, return_utilities=True)
        np.testing.assert_allclose(rows[0], expected, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize(
    ("there", "expected"), [(0, [0.48, 0.0133333333]), (1, [0.0085714286, 0.18])]
)
def test_worked_example_has_the_known_falls(there: int, expected: list[float]) -> None:
    votes = PredictionSamples(np.array([SPREAD_LABELS, RARE_LABELS]), kind="label")
    _, rows = ICALSequentialQuery().select(votes, reference=[there], return_utilities=True)
    np.testing.assert_allclose(rows[0], expected, rtol=1e-8)


def test_worked_example_tells_the_rare_row_after_the_spread_one() -> None:
    votes = np.array([SPREAD_LABELS, *[RARE_LABELS] * 3])
    picks, rows = ICALSequentialQuery().select(
        PredictionSamples(votes, kind="label"), 2, return_utilities=True
    )
    # One spread row against three rare ones that are equal: .18 of each, and little of the other.
    np.testing.assert_allclose(rows[0, 0], (0.48 + 3 * 0.0085714286) / 4, rtol=1e-8)
    np.testing.assert_allclose(rows[0, 1], (3 * 0.18 + 0.0133333333) / 4, rtol=1e-8)
    assert picks.tolist() == [1, 0]


def test_regression_is_the_fall_of_the_posterior_variance_of_a_gaussian_process() -> None:
    samples = make_samples("noisy value")
    values, noise = np.asarray(samples.values), samples.noise_variance.mean(axis=1)
    covariance = np.cov(values, bias=True)
    picks, rows = ICALSequentialQuery().select(samples, 6, return_utilities=True)
    for t, row in enumerate(rows):
        free = np.setdiff1d(np.arange(N_POINTS), picks[:t])
        left = [posterior_variance(covariance, noise, [*picks[:t], x]) for x in free]
        before = posterior_variance(covariance, noise, picks[:t])
        np.testing.assert_allclose(row[free], before - np.array(left), rtol=1e-9, atol=1e-15)


def posterior_variance(covariance: np.ndarray, noise: np.ndarray, observed: Any) -> float:
    """Return the mean variance of all rows given noisy observations of some."""
    at = np.asarray(observed, dtype=int)
    gain = np.linalg.solve(covariance[np.ix_(at, at)] + np.diag(noise[at]), covariance[at])
    return float(np.trace(covariance - covariance[:, at] @ gain) / len(covariance))


@saturated
@pytest.mark.parametrize("source", ["label", "value", "values"])
def test_copies_of_a_chosen_row_without_noise_tell_nothing(source: str) -> None:
    samples = make_samples(source)
    copies = samples[np.repeat(np.arange(N_POINTS), 2)]
    picks, rows = ICALSequentialQuery().select(copies, 2, return_utilities=True)
    copy = picks[0] + 1  # the lower one was chosen
    assert rows[1, copy] < 1e-11 * rows[0, copy]
    assert picks[1] // 2 != picks[0] // 2


def test_copies_of_a_noisy_row_tell_less_again() -> None:
    samples = make_samples("proba")
    picks, rows = ICALSequentialQuery().select(samples, 2, reference=[1], return_utilities=True)
    assert picks[0] == 1  # row 7 is its copy
    assert 0.05 * rows[0, 7] < rows[1, 7] < 0.9 * rows[0, 7]


def test_weights_count_as_repeated_draws() -> None:
    counts = np.array([1, 3, 2, 1, 2])
    for source in ("proba", "label", "value", "values"):
        values = make_values(source)
        kind = source.removesuffix("s")
        weighted = PredictionSamples(values, kind, weights=counts / counts.sum())
        repeated = PredictionSamples(values.repeat(counts, axis=1), kind)
        picks, rows = ICALSequentialQuery().select(weighted, 3, return_utilities=True)
        expected, theirs = ICALSequentialQuery().select(repeated, 3, return_utilities=True)
        np.testing.assert_array_equal(picks, expected)
        np.testing.assert_allclose(rows, theirs, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_units_of_targets_change_utilities_and_no_picks(scale: float) -> None:
    values = make_values("value", n_points=20)
    expected, rows = ICALSequentialQuery().select(
        PredictionSamples(values, "value", noise_variance=0.5), 6, return_utilities=True
    )
    scaled = PredictionSamples(values * scale, "value", noise_variance=0.5 * scale**2)
    picks, theirs = ICALSequentialQuery().select(scaled, 6, return_utilities=True)
    np.testing.assert_array_equal(picks, expected)
    np.testing.assert_allclose(theirs / scale**2, rows, rtol=1e-9, atol=1e-15)


def test_rows_of_other_units_count_by_what_they_tell() -> None:
    values = make_values("value")
    factors = np.geomspace(1e-6, 1e6, N_POINTS)[:, None]
    reference = PredictionSamples(values, "value")
    picks, rows = ICALSequentialQuery().select(
        PredictionSamples(values * factors, "value"),
        3,
        reference_samples=reference,
        return_utilities=True,
    )
    expected, theirs = ICALSequentialQuery().select(reference, 3, return_utilities=True)
    np.testing.assert_array_equal(picks, expected)
    np.testing.assert_allclose(rows, theirs, rtol=1e-9, atol=1e-13)


def test_near_certain_probabilities_are_told_apart() -> None:
    rng = np.random.default_rng(2)
    logits = rng.normal(scale=12, size=(N_POINTS, N_DRAWS, 6))
    proba = np.exp(logits - logits.max(axis=2, keepdims=True))
    proba /= proba.sum(axis=2, keepdims=True)
    assert proba.min() < 1e-20
    expected = literal_tau(proba, proba).mean(axis=0)
    picks, rows = ICALSequentialQuery().select(proba, 8, return_utilities=True)
    np.testing.assert_allclose(rows[0], expected, rtol=1e-8)
    assert (rows[np.arange(8), picks] > 0).all()


@saturated
@pytest.mark.parametrize("kind", ["label", "proba", "value"])
def test_batches_start_again_where_everything_is_told(kind: str) -> None:
    rng = np.random.default_rng(3)
    votes = rng.integers(2, size=(60, 4))
    values: Any = {"label": votes, "proba": np.eye(2)[votes], "value": rng.normal(size=(60, 4))}
    samples = PredictionSamples(values[kind], kind)
    picks, rows = ICALSequentialQuery().select(samples, 24, return_utilities=True)
    assert len(set(picks.tolist())) == 24
    # Four draws have three differences: every fourth pick is chosen as the first is.
    for t in range(0, 24, 3):
        free = ~np.isnan(rows[t])
        np.testing.assert_allclose(rows[t, free], rows[0, free], rtol=1e-9, atol=1e-13)
        assert rows[t, picks[t]] > 0.01


@saturated
def test_many_classes_are_renamed_by_the_draws_that_vote_for_them(backend: Backend) -> None:
    votes = np.random.default_rng(4).integers(30, size=(15, N_DRAWS))
    votes[::2] %= 3
    samples = PredictionSamples(backend(votes), kind="label")
    picks, rows = ICALSequentialQuery().select(samples, 3, return_utilities=True)
    expected, theirs = literal_batch(PredictionSamples(votes, kind="label"), 3)
    assert picks.tolist() == expected
    np.testing.assert_allclose(rows, theirs, rtol=1e-7, atol=1e-12)


@saturated
@pytest.mark.parametrize("source", ["proba", "label"])
@pytest.mark.parametrize("rows", [None, 4])
def test_rows_equal_up_to_the_names_of_classes_tie_to_the_lowest_position(
    rows: int | None, source: str, backend: Backend
) -> None:
    rng = np.random.default_rng(8)
    few = rng.dirichlet(np.full(4, 0.4), size=(4, 7)).astype(np.float32)
    if source == "label":
        few = np.eye(4, dtype=np.float32)[rng.integers(4, size=(4, 7))]
    of = rng.integers(0, 4, size=30)
    proba = np.stack([few[k][:, rng.permutation(4)] for k in of])
    with patch("sklearn_ical._array.chunk_rows", lambda row_bytes: rows or 10**6):
        picks = ICALSequentialQuery().select(backend(proba), 12)
    for k in range(4):
        mine = picks[of[picks] == k]
        np.testing.assert_array_equal(mine, np.flatnonzero(of == k)[: len(mine)])


@saturated
@pytest.mark.parametrize("source", SOURCES)
def test_chunks_of_any_size_give_the_same_batch(source: str) -> None:
    samples = make_samples(source, n_points=50)
    expected, rows = ICALSequentialQuery().select(samples, 10, return_utilities=True)
    for size in (1, 7, 10**9):
        with patch("sklearn_ical._array.chunk_rows", lambda row_bytes, size=size: size):
            picks, theirs = ICALSequentialQuery().select(samples, 10, return_utilities=True)
        np.testing.assert_array_equal(picks, expected)
        np.testing.assert_allclose(theirs, rows, rtol=1e-9, atol=1e-12)


@saturated
def test_votes_of_few_members_give_distinct_picks() -> None:
    for seed in range(100):
        votes = np.random.default_rng(seed).integers(3, size=(40, 5))
        query = ICALSequentialQuery([None, 7][seed % 2], random_state=seed)
        samples = PredictionSamples(votes, "label")
        if seed % 3 == 0:
            samples = PredictionSamples(np.eye(3)[votes])
        picks, rows = query.select(samples, 20, return_utilities=True)
        assert len(set(picks.tolist())) == 20
        free = np.isin(np.arange(40), picks, invert=True)
        assert np.isfinite(rows[:, free]).all()
        assert (rows[np.arange(20), picks] > 1e-6).all()


@saturated
def test_forests_of_few_trees_give_distinct_picks() -> None:
    X, y = make_classification(200, n_features=5, n_informative=4, n_redundant=0, random_state=0)
    pool = np.repeat(X[100:130], 2, axis=0)
    for seed in range(10):
        forest = RandomForestClassifier(10, random_state=seed).fit(X[:30], y[:30])
        picks = ICALSequentialQuery().query(forest, pool, 20)
        assert len(set(picks.tolist())) == 20


def test_draws_that_agree_everywhere_give_the_lowest_positions() -> None:
    same = np.tile(make_values("proba")[:, :1], (1, N_DRAWS, 1))
    with pytest.warns(UserWarning, match=r"equal utilities in ICALSequentialQuery\.select"):
        picks, rows = ICALSequentialQuery().select(same, 3, return_utilities=True)
    assert picks.tolist() == [0, 1, 2]
    assert set(rows[~np.isnan(rows)]) == {0.0}


def test_reference_rows_are_a_seeded_sample_without_replacement() -> None:
    samples = make_samples("proba", n_points=30)
    rows = np.sort(stream_generator(7, REFERENCE).choice(30, 10, replace=False))
    query = ICALSequentialQuery(n_reference=10, random_state=7)
    for others in (None, samples[::-1]):
        expected, theirs = literal_batch(samples, 3, rows, others)
        picks, utilities = query.select(samples, 3, reference_samples=others, return_utilities=True)
        assert picks.tolist() == expected
        np.testing.assert_allclose(utilities, theirs, rtol=1e-8, atol=1e-16)
    assert not query.query_tags().deterministic
    assert ICALSequentialQuery().query_tags().deterministic


@saturated
def test_models_and_their_predictions_give_equal_batches() -> None:
    X, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(15, random_state=0).fit(X[:60], y[:60])
    sampler = get_sampler(forest)
    query = ICALSequentialQuery(n_reference=20, random_state=3)
    for other in (None, X[300:340]):
        expected = query.query(forest, X[60:300], 5, X_reference=other)
        reference = None if other is None else sampler.sample(other)
        picks = query.select(sampler.sample(X[60:300]), 5, reference_samples=reference)
        np.testing.assert_array_equal(picks, expected)
        given = query.query(forest, X[60:300], 5, X_reference=other, reference=[1, 4, 4])
        with sklearn.config_context(working_memory=0.01):  # predictions are not held
            again = query.query(forest, X[60:300], 5, X_reference=other, reference=[4, 1, 4])
        np.testing.assert_array_equal(again, given)


@saturated
def test_mixed_models_and_regression_forests_are_asked() -> None:
    X, y = make_classification(120, n_features=4, n_informative=3, n_redundant=0, random_state=1)
    models = [
        model.fit(X[rows], y[rows])
        for rows in (slice(0, 40), slice(20, 60))
        for model in (GaussianNB(), LogisticRegression(), DecisionTreeClassifier(max_depth=3))
    ]
    forest = RandomForestRegressor(12, random_state=0)
    targets = make_regression(120, n_features=4, n_targets=2, random_state=1)[1]
    for model in (models, forest.fit(X[:60], targets[:60, 0]), forest.fit(X[:60], targets[:60])):
        picks = ICALSequentialQuery().query(model, X[60:], 6)
        samples = get_sampler(model).sample(X[60:])
        assert picks.tolist() == literal_batch(samples, 6)[0]


def test_costs_weigh_what_a_label_tells() -> None:
    samples = make_samples("proba")
    costs = np.random.default_rng(6).uniform(0.5, 4, size=N_POINTS)
    _, rows = literal_batch(samples, 1)
    picks = ICALSequentialQuery().select(samples, 4, costs=costs, budget=6.0)
    assert picks[0] == np.argmax(rows[0] / costs)
    assert costs[picks].sum() <= 6


def test_what_it_cannot_use_is_refused_by_name() -> None:
    proba = make_values("proba")
    query = ICALSequentialQuery()
    with pytest.raises(ValueError, match=r"reference must have shape \(r,\).* Got shape \(2, 2\)"):
        query.select(proba, reference=[[0, 1], [2, 3]])
    with pytest.raises(ValueError, match=r"reference must have shape .* Got shape \(0,\)"):
        query.select(proba, reference=[])
    with pytest.raises(ValueError, match=r"reference must hold positions from 0 to 11 in the pool"):
        query.select(proba, reference=[12])
    with pytest.raises(ValueError, match=r"positions from 0 to 3 in the reference rows\. Got 4"):
        query.select(proba, reference=[4], reference_samples=proba[:4])
    with pytest.raises(TypeError, match=r"reference must hold integer positions"):
        query.select(proba, reference=[0.5])
    with pytest.raises(ValueError, match=r"'n_reference' parameter of ICALSequentialQuery"):
        ICALSequentialQuery(n_reference=0).select(proba)
    with pytest.raises(TypeError, match=r"'n_reference' parameter .* must not be a bool"):
        ICALSequentialQuery(n_reference=True).select(proba)
    with pytest.raises(ValueError, match=r"ICALSequentialQuery needs at least 2 draws\. Got 1"):
        query.select(proba[:, :1])


def test_regression_rows_below_all_digits_count_as_constant() -> None:
    values = np.random.default_rng(0).normal(size=(20, 5))
    known = values.copy()
    values[3] *= 1e-157
    known[3] = 0
    picks, rows = (
        ICALSequentialQuery().select(
            PredictionSamples(some, kind="value"), 4, return_utilities=True
        )
        for some in (values, known)
    )
    np.testing.assert_array_equal(picks[0], rows[0])
    np.testing.assert_array_equal(picks[1], rows[1])
