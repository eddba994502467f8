"""ICALQuery where exactness counts, in fractions: ties, zeros, random streams and edge cases.

Comparisons of real-valued scores are in test_ical.py.
"""

from collections.abc import Callable
from fractions import Fraction
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn

from sklearn_ical import ICALQuery, PredictionSamples
from sklearn_ical.dependence import hsic_dual
from sklearn_ical.dependence._features import label_features, pair_weights
from sklearn_ical.exceptions import BatchClippedWarning, EqualUtilitiesWarning
from sklearn_ical.objectives.hsic._label_dependence import LabelDependence

Backend = Callable[[np.ndarray], Any]
DATA = Path(__file__).parent / "data"
CHUNKS = (1024, 0.002, 1e-9)


def generator_of(root: int, key: int, skip: int = 0) -> np.random.Generator:
    """Return the generator of one named stream, some numbers further on."""
    bits = np.random.PCG64(np.random.SeedSequence(root, spawn_key=(key,)))
    return np.random.Generator(bits.advance(skip))


def fraction_hsic(a: Any, b: Any) -> Fraction:
    """Return HSIC of two rows of labels from their contingency table, without rounding."""
    m = len(a)
    total = 0
    for x in set(a):
        for y in set(b):
            both = sum(p == x and q == y for p, q in zip(a, b, strict=True))
            total += (m * both - a.count(x) * b.count(y)) ** 2
    return Fraction(total, m**4)


class Literal:
    """Greedy steps over label samples, scored in fractions; equal pairs are scored once."""

    def __init__(self, labels: np.ndarray) -> None:
        self.rows = [tuple(row) for row in labels.tolist()]
        self.known: dict[Any, Fraction] = {}

    def pair(self, x: int, z: int) -> Fraction:
        key = self.rows[x], self.rows[z]
        if key not in self.known:
            self.known[key] = fraction_hsic(*key)
        return self.known[key]

    def scores(self, reference: Any, *, include_self: bool = True) -> list[Fraction]:
        found = []
        for x in range(len(self.rows)):
            others = [z for z in reference if include_self or z != x]
            total = sum((self.pair(x, z) for z in others), Fraction(0))
            found.append(total / max(len(others), 1))
        return found

    def picks(
        self,
        reference: Any,
        batch_size: int,
        *,
        step_size: int = 1,
        include_self: bool = True,
        candidates: Any = None,
    ) -> list[int]:
        allowed = range(len(self.rows)) if candidates is None else sorted(candidates)
        chosen: list[int] = []
        for rows in reference:
            scores = self.scores(rows, include_self=include_self)
            free = [x for x in allowed if x not in chosen]
            free.sort(key=lambda x: (-scores[x], x))
            chosen += free[: min(step_size, batch_size - len(chosen))]
        return chosen


def label_samples(labels: Any) -> PredictionSamples:
    return PredictionSamples(labels, kind="label")


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("memory", [1024, 0.05])
def test_published_sequences_are_reproduced(name: str, memory: float, backend: Backend) -> None:
    case = np.load(DATA / f"ical_sequence_{name}.npz")
    query = ICALQuery(step_size=int(case["step_size"]))
    with sklearn.config_context(working_memory=memory):
        picks = query.select(
            label_samples(backend(case["labels"])),
            batch_size=len(case["expected"]),
            reference=case["reference"],
        )
    np.testing.assert_array_equal(picks, case["expected"])


def relabeled_pool(n: int, m: int, n_patterns: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows of few patterns under class names of their own: equal kernels, unequal rows."""
    patterns = rng.integers(0, 3, size=(n_patterns, m))
    patterns[0] = 0
    names = np.stack([rng.permutation(5)[:3] for _ in range(n)])
    return np.take_along_axis(names, patterns[rng.integers(0, n_patterns, size=n)], axis=1)


@pytest.mark.parametrize(("step_size", "memory"), [(1, 1024), (4, 0.002), (30, 0.002)])
@pytest.mark.parametrize("include_self", [True, False])
def test_relabeled_rows_tie_to_the_lowest_position(
    include_self: bool, step_size: int, memory: float, backend: Backend
) -> None:
    rng = np.random.default_rng(0)
    labels = relabeled_pool(60, 7, 6, rng)
    batch_size = 30
    reference = rng.integers(0, 60, size=(-(-batch_size // step_size), 9))
    expected = Literal(labels).picks(
        reference, batch_size, step_size=step_size, include_self=include_self
    )
    query = ICALQuery(step_size=step_size, include_self=include_self)
    with sklearn.config_context(working_memory=memory):
        picks = query.select(label_samples(backend(labels)), batch_size, reference=reference)
    assert picks.tolist() == expected


def close_pair(rng: np.random.Generator, *, near: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """Return five rows of labels, a reference set, and the sign of row 0 less row 1.

    Rows 0 and 1 score the same against the reference set, or differ by the smallest number that
    copies of rows 2 and 3 can leave, though their kernels differ. Row 4 is constant.
    """
    m = 23  # a prime: few common factors, so the difference can be small
    while True:
        rows = rng.integers(0, 3, size=(5, m))
        rows[4] = 0
        x, y, a, b, _ = [tuple(row) for row in rows.tolist()]
        by_a = int((fraction_hsic(x, a) - fraction_hsic(y, a)) * m**4)
        by_b = int((fraction_hsic(x, b) - fraction_hsic(y, b)) * m**4)
        if by_a * by_b >= 0:
            continue
        p, q = abs(by_a) // gcd(by_a, by_b), abs(by_b) // gcd(by_a, by_b)
        n_a, n_b = q, p
        if near and q > 1:  # p * n_a - q * n_b = 1
            n_a = pow(p, -1, q)
            n_b = (p * n_a - 1) // q
        if min(n_a, n_b) > 0 and 5000 < n_a + n_b < 50_000:
            return rows, np.repeat([2, 3], [n_a, n_b]), int(np.sign(n_a * by_a + n_b * by_b))


def float32_scores(labels: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the scores of a float32 product, as a shortlist has them."""
    agree = (labels[:, :, None] == labels[:, None, :]).astype(np.float64)
    counts = np.bincount(reference, minlength=len(labels)) / len(reference)
    dual = hsic_dual(np.einsum("n,nij->ij", counts, agree)[None])
    weights = pair_weights(dual, diagonal=False).astype(np.float32)
    return (weights @ label_features(labels, np.float32))[0]


@pytest.mark.parametrize("near", [False, True])
def test_scores_that_float32_mixes_up_are_told_apart(near: bool, backend: Backend) -> None:
    rng = np.random.default_rng(int(near))
    mistakes = 0
    for _ in range(15):
        rows, reference, sign = close_pair(rng, near=near)
        assert near == (sign != 0)
        for labels, best in ((rows, int(sign < 0)), (rows[[1, 0, 2, 3, 4]], int(sign > 0))):
            picks = ICALQuery().select(
                label_samples(backend(labels)), candidates=[0, 1, 4], reference=reference[None]
            )
            assert picks.tolist() == [best]
            mistakes += int(np.argmax(float32_scores(labels, reference)[:2])) != best
    assert mistakes > 0  # else these cases are too easy


@pytest.mark.parametrize("step_size", [1, 50])
def test_real_rows_that_repeat_tie_to_the_lowest_position(step_size: int, backend: Backend) -> None:
    rng = np.random.default_rng(0)
    few = rng.dirichlet(np.ones(3), size=(4, 6)).astype(np.float32)
    of = rng.integers(0, 4, size=50)
    batch_size = max(9, step_size)
    reference = [range(0, 50, 3)] * (batch_size // step_size)
    for prediction, kernel in (("proba", "auto"), ("proba", "rq"), ("expected", "auto")):
        query = ICALQuery(prediction=prediction, kernel=kernel, step_size=step_size)
        worth = query.select(few[of], step_size, reference=reference[:1], return_utilities=True)
        of_group = [worth[1][0][np.flatnonzero(of == group)[0]] for group in range(4)]
        order = [np.flatnonzero(of == group) for group in np.argsort(of_group)[::-1]]
        expected = np.concatenate(order).tolist()[:batch_size]
        for memory in CHUNKS[:2]:
            with sklearn.config_context(working_memory=memory):
                picks = query.select(backend(few[of]), batch_size, reference=reference)
            assert picks.tolist() == expected


def test_constant_candidates_score_exactly_zero(backend: Backend) -> None:
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), size=(12, 5))
    proba[[2, 7]] = proba[[2, 7], :1]
    certain = proba.copy()
    certain[[2, 7]] = np.eye(3)[1]
    labels = rng.integers(0, 3, size=(12, 5))
    labels[[2, 7]] = [[1], [0]]
    cases: list[tuple[Any, dict[str, Any]]] = [
        (label_samples(backend(labels)), {}),
        (label_samples(backend(labels)), {"estimator": "unbiased"}),
        (PredictionSamples(backend(proba)), {"prediction": "proba"}),
        (PredictionSamples(backend(proba)), {"prediction": "proba", "kernel": "rq"}),
        (PredictionSamples(backend(proba)), {"prediction": "proba", "estimator": "unbiased"}),
        (PredictionSamples(backend(proba)), {"prediction": "argmax"}),
        (PredictionSamples(backend(certain)), {"prediction": "expected"}),
        (PredictionSamples(backend(certain)), {}),
        (PredictionSamples(backend(proba[:, :, 0]), kind="value"), {}),
        (PredictionSamples(backend(proba), kind="value"), {"kernel": "linear"}),
    ]
    for samples, options in cases:
        for include_self in (True, False):
            query = ICALQuery(include_self=include_self, random_state=0, **options)
            reference = [range(12)] * 3
            _, utilities = query.select(samples, 3, reference=reference, return_utilities=True)
            np.testing.assert_array_equal(utilities[0, [2, 7]], 0.0)
            assert np.count_nonzero(utilities[0]) >= 8


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prediction": "proba"},
        {"prediction": "argmax"},
        {"prediction": "proba", "kernel": "rq"},
    ],
)
def test_constant_references_make_every_score_zero(
    options: dict[str, Any], include_self: bool, backend: Backend
) -> None:
    proba = np.random.default_rng(2).dirichlet(np.ones(3), size=(9, 5))
    proba[[4, 6, 8]] = np.eye(3)[:, None]
    samples = PredictionSamples(backend(proba))
    query = ICALQuery(include_self=include_self, random_state=0, **options)
    reference = np.array([[4, 6, 8, 4]] * 5)
    with pytest.warns(EqualUtilitiesWarning, match=r"ICALQuery.select; the lowest positions"):
        picks, utilities = query.select(samples, 5, reference=reference, return_utilities=True)
    assert picks.tolist() == [0, 1, 2, 3, 4]
    assert utilities.shape == (5, 9)
    for t in range(5):
        np.testing.assert_array_equal(utilities[t, t:], 0.0)
    with pytest.warns(EqualUtilitiesWarning):
        picks = query.select(samples, 3, reference=reference[:3], candidates=[8, 1, 5, 2])
    assert picks.tolist() == [1, 2, 5]


@pytest.mark.parametrize("step_size", [1, 2])
def test_scores_without_self_equal_fractions_with_repeated_reference_rows(step_size: int) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, size=(10, 6))
    labels[5] = labels[4]
    literal = Literal(labels)
    reference = rng.integers(0, 10, size=(8 // step_size, 7))
    reference[0] = [4, 4, 4, 5, 1, 1, 9]
    reference[1] = 2  # nothing is left for row 2
    query = ICALQuery(include_self=False, kernel="delta", step_size=step_size)
    for memory in CHUNKS:
        with sklearn.config_context(working_memory=memory):
            picks, utilities = query.select(
                label_samples(labels), 8, reference=reference, return_utilities=True
            )
            again = query.select(label_samples(labels), 8, reference=reference)
        assert again.tolist() == picks.tolist()
        assert picks.tolist() == literal.picks(
            reference, 8, step_size=step_size, include_self=False
        )
        for t, rows in enumerate(reference):
            row = utilities[t * step_size]
            free = ~np.isnan(row)
            exact = np.array([float(s) for s in literal.scores(rows, include_self=False)])
            np.testing.assert_allclose(row[free], exact[free], rtol=1e-12, atol=1e-16)


def test_a_row_that_is_the_whole_reference_set_scores_exactly_zero_without_self() -> None:
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=(12, 5))
    for prediction in ("sampled", "proba", "expected"):
        query = ICALQuery(prediction=prediction, include_self=False, random_state=0)
        for x in range(12):
            _, utilities = query.select(proba, reference=[[x, x, x]], return_utilities=True)
            assert utilities[0, x] == 0.0


def literal_labels(proba: np.ndarray, root: int, key: int) -> np.ndarray:
    """Draw one label per row and draw, each row from its own place in the stream."""
    n, m, _ = proba.shape
    labels = np.empty((n, m), dtype=np.int64)
    for i in range(n):
        uniforms = generator_of(root, key, skip=i * m).random(m)
        for k in range(m):
            running = np.cumsum(proba[i, k].astype(np.float64))
            labels[i, k] = np.sum(running / running[-1] <= uniforms[k])
    return labels


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sampled_labels_and_reference_sets_come_from_their_streams(
    dtype: str, backend: Backend
) -> None:
    root, n, m, r, batch_size = 11, 40, 6, 8, 12
    proba = np.random.default_rng(0).dirichlet(np.full(4, 0.6), size=(n, m)).astype(dtype)
    sampled = literal_labels(proba, root, 1)
    stream = generator_of(root, 2)
    reference = [stream.choice(n, r, replace=False, shuffle=False) for _ in range(4)]
    candidates = [39, 0, *range(7, 33)]
    query = ICALQuery(r, step_size=3, random_state=root)
    literal = Literal(sampled)
    for allowed in (None, candidates):
        expected = literal.picks(reference, batch_size, step_size=3, candidates=allowed)
        for memory in CHUNKS[:2]:
            with sklearn.config_context(working_memory=memory):
                picks = query.select(backend(proba), batch_size, candidates=allowed)
            assert picks.tolist() == expected
        by_hand = query.select(
            label_samples(backend(sampled)), batch_size, candidates=allowed, reference=reference
        )
        assert by_hand.tolist() == expected


def test_labels_of_reference_samples_have_a_stream_of_their_own(backend: Backend) -> None:
    root, m = 5, 6
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), size=(15, m))
    others = rng.dirichlet(np.ones(3), size=(9, m))
    stacked = np.concatenate([literal_labels(proba, root, 1), literal_labels(others, root, 4)])
    stream = generator_of(root, 2)
    reference = [15 + stream.choice(9, 4, replace=False, shuffle=False) for _ in range(6)]
    expected = Literal(stacked).picks(reference, 6, candidates=range(15))
    for include_self in (True, False):
        query = ICALQuery(4, include_self=include_self, random_state=root)
        picks = query.select(backend(proba), 6, reference_samples=backend(others))
        assert picks.tolist() == expected


def test_the_reference_set_is_every_row_where_more_are_asked_for() -> None:
    labels = np.random.default_rng(2).integers(0, 3, size=(12, 5))
    expected = Literal(labels).picks([range(12)] * 7, 7)
    assert ICALQuery(200, random_state=0).select(label_samples(labels), 7).tolist() == expected


@pytest.mark.parametrize(("batch_size", "step_size"), [(7, 3), (7, 10), (12, 5), (12, 1)])
def test_the_last_step_takes_what_is_left(batch_size: int, step_size: int) -> None:
    labels = np.random.default_rng(3).integers(0, 3, size=(12, 5))
    stream = generator_of(4, 2)
    n_steps = -(-batch_size // step_size)
    reference = [stream.choice(12, 6, replace=False, shuffle=False) for _ in range(n_steps)]
    query = ICALQuery(6, step_size=step_size, random_state=4)
    expected = Literal(labels).picks(reference, batch_size, step_size=step_size)
    assert query.select(label_samples(labels), batch_size).tolist() == expected


def test_a_batch_beyond_the_candidates_is_clipped() -> None:
    labels = np.random.default_rng(3).integers(0, 3, size=(9, 5))
    stream = generator_of(4, 2)
    reference = [stream.choice(9, 6, replace=False, shuffle=False) for _ in range(9)]
    expected = Literal(labels).picks(reference, 9)
    query = ICALQuery(6, random_state=4)
    with pytest.warns(BatchClippedWarning, match=r"batch_size=20 is more than the 9 candidates"):
        assert query.select(label_samples(labels), 20).tolist() == expected
    given = reference + [reference[0]] * 11  # one set per step asked for
    with pytest.warns(BatchClippedWarning):
        picks = query.select(label_samples(labels), 20, reference=given)
    assert picks.tolist() == expected


@pytest.mark.parametrize(
    ("top", "dtype"),
    [(2, "uint8"), (200, "uint8"), (1000, "int16"), (1000, "int64"), (70_000, "uint64")],
)
def test_label_codes_of_any_integer_type_give_the_same_picks(top: int, dtype: str) -> None:
    rng = np.random.default_rng(10)
    codes = np.array([0, top - 1, top, max(0, top - 256)])
    labels = codes[rng.integers(0, 4, size=(20, 5))].astype(dtype)
    reference = rng.integers(0, 20, size=(8, 6))
    picks = ICALQuery().select(label_samples(labels), 8, reference=reference)
    assert picks.tolist() == Literal(labels).picks(reference, 8)


def test_half_precision_is_taken_as_the_numbers_it_holds() -> None:
    proba = np.random.default_rng(11).integers(0, 2, size=(20, 5, 1)) * 0.75 + 0.125
    proba = np.concatenate([proba, 1 - proba], axis=2)  # exact in half precision
    for prediction in ("sampled", "proba", "expected", "argmax"):
        query = ICALQuery(6, prediction=prediction, random_state=0)
        expected = query.select(proba, 8, return_utilities=True)
        found = query.select(proba.astype(np.float16), 8, return_utilities=True)
        assert found[0].tolist() == expected[0].tolist()
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)


@pytest.mark.parametrize("prediction", ["sampled", "proba", "expected", "argmax"])
def test_hard_probabilities_are_labels(prediction: str, backend: Backend) -> None:
    rng = np.random.default_rng(12)
    labels = rng.integers(0, 3, size=(20, 5))
    reference = rng.integers(0, 20, size=(8, 6))
    expected = Literal(labels).picks(reference, 8)
    for dtype in ("float32", "float64", "int64"):
        hard = np.eye(3)[labels].astype(dtype)
        query = ICALQuery(prediction=prediction, kernel="linear", random_state=0)
        picks = query.select(backend(hard), 8, reference=reference)
        if prediction in ("sampled", "argmax"):
            assert picks.tolist() == expected
        exact = Literal(labels).scores(reference[0])
        _, utilities = query.select(backend(hard), reference=reference[:1], return_utilities=True)
        np.testing.assert_allclose(utilities[0], [float(s) for s in exact], atol=1e-15)


@pytest.mark.parametrize("prediction", ["sampled", "proba", "expected", "argmax"])
def test_one_row_is_picked_without_a_warning(prediction: str, backend: Backend) -> None:
    query = ICALQuery(prediction=prediction, random_state=0)
    for proba in ([[[1.0], [1.0]]], [[[0.3, 0.7], [0.6, 0.4]]], [[[1.0, 0.0], [1.0, 0.0]]]):
        picks, utilities = query.select(backend(np.array(proba)), return_utilities=True)
        assert picks.tolist() == [0]
        assert np.isfinite(utilities).all()


@pytest.mark.parametrize("prediction", ["sampled", "proba", "expected", "argmax"])
def test_one_class_leaves_nothing_to_choose_by(prediction: str, backend: Backend) -> None:
    query = ICALQuery(prediction=prediction, random_state=0)
    with pytest.warns(EqualUtilitiesWarning):
        picks, utilities = query.select(backend(np.ones((5, 4, 1))), 2, return_utilities=True)
    assert picks.tolist() == [0, 1]
    np.testing.assert_array_equal(utilities[0], 0.0)


def test_two_draws_order_rows_by_whether_they_differ() -> None:
    labels = np.array([[0, 0], [0, 1], [2, 2], [1, 2], [1, 0]])
    query = ICALQuery(kernel="delta", include_self=False)
    picks, utilities = query.select(
        label_samples(labels), 3, reference=[range(5)] * 3, return_utilities=True
    )
    assert picks.tolist() == [1, 3, 4]
    np.testing.assert_allclose(utilities[0], [0, 0.125, 0, 0.125, 0.125])


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1.0, 1e15, 1e25])
def test_kernels_of_any_magnitude_make_the_same_choice(scale: float) -> None:
    proba = np.random.default_rng(13).dirichlet(np.ones(3), size=(15, 5))
    reference = np.random.default_rng(14).integers(0, 15, size=(6, 4))
    plain = ICALQuery(prediction="proba", kernel=lambda d2: np.exp(-d2))
    scaled = ICALQuery(prediction="proba", kernel=lambda d2: scale * np.exp(-d2))
    expected = plain.select(proba, 6, reference=reference).tolist()
    assert scaled.select(proba, 6, reference=reference).tolist() == expected


@pytest.mark.parametrize("exponent", [-10, -19, -20, -21, -25])
def test_reference_rows_of_tiny_spread_are_told_apart(exponent: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first = np.empty((20, 4))
        first[0] = rng.random(4) * 10.0**exponent
        first[1:] = np.clip(rng.random(4) + 1e-5 * rng.normal(size=(19, 4)), 0, 1)
        proba = np.stack([first, 1 - first], axis=2)
        query = ICALQuery(prediction="proba")
        how: dict[str, Any] = {"batch_size": 3, "reference": [[0]] * 3}
        in_double, _ = query.select(proba, return_utilities=True, **how)
        assert query.select(proba, **how).tolist() == in_double.tolist()


def test_a_kernel_of_the_users_own_sees_arrays_of_the_backend(backend: Backend) -> None:
    proba = backend(np.random.default_rng(15).dirichlet(np.ones(3), size=(9, 5)))
    kinds: set[type] = set()

    def kernel(d2: Any) -> Any:
        kinds.add(type(d2))
        return 1 / (1 + d2)

    ICALQuery(prediction="proba", kernel=kernel, random_state=0).select(proba, 3)
    assert type(proba) in kinds


def test_sums_are_rounded_to_integers_only_where_the_error_cannot_reach_the_next() -> None:
    labels = np.random.default_rng(0).integers(0, 3, size=(6, 5))
    scorer = LabelDependence(labels, labels, np.arange(6), "biased", None, integers=True)
    values, unit = np.array([[0.1], [1.9]]) / 5**4, 1 / 5**4
    sure, bound = scorer.settle(values.copy(), np.array([0.2 * unit]))
    np.testing.assert_array_equal(sure, np.array([[0.0], [2.0]]) / 5**4)
    assert bound[0] < 1e-15
    unsure, bound = scorer.settle(values.copy(), np.array([0.3 * unit]))
    np.testing.assert_array_equal(unsure, values)
    assert bound[0] == 0.3 * unit
