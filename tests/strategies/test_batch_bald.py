"""BatchBALD against literal enumeration; sampled configurations, laziness, ties and saturation."""

import itertools
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn
from threadpoolctl import threadpool_info

from sklearn_ical import BatchBALDQuery, PredictionSamples
from sklearn_ical.dependence import Configurations, bald, joint_entropy
from sklearn_ical.exceptions import EqualUtilitiesWarning
from sklearn_ical.objectives._joint_information import JointInformation
from sklearn_ical.pool import RowSet
from sklearn_ical.strategies import _batch_bald, batch_bald

Backend = Callable[[np.ndarray], Any]

CHUNKS = (1024, 0.001, 1e-9)
WEIGHTS = np.array([0.1, 0.0, 0.6, 0.3])


def literal_entropy(proba: np.ndarray, weights: np.ndarray) -> float:
    """Return the entropy of the joint labels, one product for each configuration and draw."""
    joint = np.ones((1, len(weights)))
    for point in proba:
        joint = (joint[:, :, None] * point).transpose(0, 2, 1).reshape(-1, len(weights))
    mass = joint @ weights
    return -math.fsum(x * math.log(x) for x in mass.tolist() if x > 0)


def literal_information(proba: np.ndarray, weights: np.ndarray) -> float:
    """Return what the joint labels of some points tell of the draw."""
    given_draw = math.fsum(
        w * literal_entropy(point[None, [k]], np.ones(1))
        for point in proba
        for k, w in enumerate(weights.tolist())
    )
    return literal_entropy(proba, weights) - given_draw


def literal_batch(
    proba: np.ndarray,
    size: int,
    weights: np.ndarray | None = None,
    allowed: Any = None,
    costs: Any = None,
) -> tuple[list[int], np.ndarray]:
    """Return greedy picks and rows of gains by enumeration; ties to the lowest position.

    Where nothing is left to tell, rows are those of the first step.
    """
    w = np.full(proba.shape[1], 1 / proba.shape[1]) if weights is None else weights
    free = list(range(len(proba)) if allowed is None else allowed)
    picks: list[int] = []
    rows = np.full((size, len(proba)), np.nan)
    for row in rows:
        before = literal_information(proba[picks], w)
        for x in free:
            row[x] = literal_information(proba[[*picks, x]], w) - before
        if np.nanmax(row) < 1e-11:
            row[free] = [literal_information(proba[[x]], w) for x in free]
        if costs is not None:
            row /= costs
        pick = min(free, key=lambda x: (-round(row[x], 11), x))
        picks.append(pick)
        free.remove(pick)
    return picks, rows


def make_proba(
    seed: int, n_points: int = 9, n_draws: int = 4, n_classes: int = 3, flat: float = 0.7
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, flat), size=(n_points, n_draws))
    proba[3] = proba[3, 0]  # draws that agree
    proba[4] = np.eye(n_classes)[rng.integers(n_classes, size=n_draws)]
    return proba


@pytest.mark.parametrize("flat", [0.2, 0.7, 20.0])
def test_picks_and_gains_equal_enumeration(flat: float) -> None:
    for seed in range(15):
        proba = make_proba(seed, n_draws=3 + seed % 3, n_classes=2 + seed % 2, flat=flat)
        expected, rows = literal_batch(proba, 5)
        for lazy in (True, False):
            query = BatchBALDQuery(lazy=lazy)
            picks, utilities = query.select(proba, 5, return_utilities=True)
            assert picks.tolist() == query.select(proba, 5).tolist() == expected
            np.testing.assert_allclose(utilities, rows, atol=1e-12)
        indices, gains = batch_bald(proba, 5)
        assert indices.tolist() == expected
        np.testing.assert_allclose(gains, rows[np.arange(5), expected], atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_every_backend_and_chunk_gives_the_enumerated_picks(
    weights: np.ndarray | None, dtype: str, backend: Backend
) -> None:
    allowed = [8, 1, 4, 3, 6, 5]
    for seed in range(3):
        proba = make_proba(seed).astype(dtype)
        expected, rows = literal_batch(proba.astype(float), 4, weights)
        limited, _ = literal_batch(proba.astype(float), 4, weights, sorted(allowed))
        samples = PredictionSamples(backend(proba), weights=weights)
        for memory in CHUNKS if isinstance(samples.values, np.ndarray) else CHUNKS[:2]:
            with sklearn.config_context(working_memory=memory):
                query = BatchBALDQuery()
                picks, utilities = query.select(samples, 4, return_utilities=True)
                assert picks.tolist() == query.select(samples, 4).tolist() == expected
                np.testing.assert_allclose(utilities, rows, atol=1e-6)
                assert query.select(samples, 4, candidates=allowed).tolist() == limited


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_label_samples_are_certain_predictions(weights: Any, backend: Backend) -> None:
    for seed in range(4):
        labels = np.random.default_rng(seed).integers(0, 3, size=(12, 4))
        expected, rows = literal_batch(np.eye(3)[labels], 3, weights)
        samples = PredictionSamples(backend(labels), kind="label", weights=weights)
        picks, utilities = BatchBALDQuery().select(samples, 3, return_utilities=True)
        assert picks.tolist() == expected
        np.testing.assert_allclose(utilities, rows, atol=1e-12)


def test_the_papers_example_and_the_two_draws_give_their_numbers() -> None:
    first, second = [0, 1, 2] + [3] * 7, [0] * 9 + [1]
    votes = np.array([second, first, second, second])
    samples = PredictionSamples(votes, kind="label")
    with pytest.warns(EqualUtilitiesWarning):  # the rest is all the same
        picks, utilities = BatchBALDQuery().select(samples, 3, return_utilities=True)
    assert picks.tolist() == [1, 0, 2]
    joint = 1.2275294
    np.testing.assert_allclose(utilities[0], [0.3250830, 0.9404480, 0.3250830, 0.3250830], 1e-6)
    np.testing.assert_allclose(utilities[1, [0, 2, 3]], joint - 0.9404480, rtol=1e-6)
    assert joint_entropy(np.eye(4)[votes[[1, 0, 2]]]) == pytest.approx(joint, abs=1e-7)
    point = [[0.9, 0.1], [0.1, 0.9]]
    with pytest.warns(EqualUtilitiesWarning):
        indices, gains = batch_bald(np.array([point, point]), 2)
    assert indices.tolist() == [0, 1]
    assert gains[0] == pytest.approx(0.7361284 / 2, abs=1e-7)
    assert gains.sum() == pytest.approx(0.5143747, abs=1e-7)


@pytest.mark.parametrize("n_configurations", [3, 600])
def test_sampled_gains_are_unbiased(n_configurations: int) -> None:
    proba = make_proba(1, n_points=8, n_draws=5, n_classes=3, flat=2.0)
    w = np.full(5, 0.2)
    found, given = [], [0, 1, 2, 5, 6, 7][: 6 if n_configurations > 3 else 3]
    for seed in range(100):
        rng = np.random.default_rng(seed)
        configurations = Configurations(5, None, n_configurations, rng)
        for place in given:
            configurations.add(proba[place])
        assert configurations.sampled
        pool = RowSet(samples=PredictionSamples(proba))
        gains = JointInformation(pool, np.arange(8), configurations, double=True)
        found.append(gains.screen(np.arange(8)))
        np.testing.assert_allclose(found[-1][0], gains.exact(np.arange(8)), atol=1e-12)
    means, errors = np.array(found).transpose(1, 0, 2)
    before = literal_information(proba[given], w)
    for x in range(8):
        expected = literal_information(proba[[*given, x]], w) - before
        spread = means[:, x].std(ddof=1)
        assert abs(means[:, x].mean() - expected) <= 3.5 * spread / 10 + 1e-12
        # Evenly spread samples err less than the standard error of independent ones.
        assert spread <= 1.3 * errors[:, x].mean() + 1e-12


@pytest.mark.parametrize("n_configurations", [3, 300, 5_000])
def test_first_picks_of_sampled_batches_equal_enumeration(n_configurations: int) -> None:
    n_exact = {3: 1, 300: 5, 5_000: 6}[n_configurations]
    for seed in range(5):
        proba = make_proba(seed, n_points=12, n_draws=3)
        expected, _ = literal_batch(proba, n_exact)
        query = BatchBALDQuery(n_configurations, random_state=seed)
        picks = query.select(proba, 12)
        assert picks[:n_exact].tolist() == expected
        assert sorted(picks) == list(range(12))


@pytest.mark.parametrize("n_configurations", [20, 1_000, 6_000])
def test_lazy_and_full_scans_pick_the_same(
    n_configurations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_batch_bald, "FEWEST_CONTENDERS", 20)
    monkeypatch.setattr("sklearn_ical.selection._batch.FIRST_BLOCK", 4)
    races = []
    race = _batch_bald._InformationSteps._race

    def recorded(self: Any, gains: JointInformation, bounds: np.ndarray) -> None:
        before = bounds.copy()
        race(self, gains, bounds)
        races.append(np.sum(bounds < before))

    monkeypatch.setattr(_batch_bald._InformationSteps, "_race", recorded)
    for seed in range(20):
        proba = make_proba(seed, n_points=100, n_draws=10, n_classes=4, flat=2.0)
        lazy, full = (
            BatchBALDQuery(n_configurations, lazy=lazy, random_state=seed).select(proba, 9)
            for lazy in (True, False)
        )
        assert lazy.tolist() == full.tolist()
    assert sum(races) > 0 or n_configurations < 6_000


def test_lazy_steps_evaluate_few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[int] = []
    screen = JointInformation.screen

    def counted(
        self: JointInformation, places: np.ndarray, n_rows: Any = None, less: Any = None
    ) -> Any:
        work.append(len(places) * (n_rows or len(self.configurations.mass)))
        return screen(self, places, n_rows, less)

    monkeypatch.setattr(JointInformation, "screen", counted)
    proba = make_proba(0, n_points=600, n_draws=10, n_classes=5, flat=1.0)
    done = []
    for lazy in (True, False):
        work.clear()
        BatchBALDQuery(8_000, lazy=lazy, random_state=0).select(proba, 9)
        done.append(sum(work))
    assert done[0] < 0.35 * done[1]


def test_costs_buy_information_per_cost() -> None:
    for seed in range(5):
        proba = make_proba(seed)
        costs = np.random.default_rng(seed).uniform(0.5, 4, size=9)
        expected, rows = literal_batch(proba, 4, costs=costs)
        picks, utilities = BatchBALDQuery().select(proba, 4, costs=costs, return_utilities=True)
        assert picks.tolist() == BatchBALDQuery().select(proba, 4, costs=costs).tolist() == expected
        np.testing.assert_allclose(utilities, rows, atol=1e-12)


def test_dear_row_with_information_is_left_for_later_steps() -> None:
    torn, copy, other = [0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]
    votes = np.eye(2)[[torn, copy, other, [0, 0, 0, 0]]]
    picks = BatchBALDQuery().select(votes, 3, costs=[1.0, 1.1, 900.0, 1.0])
    # The second step has nothing cheap to tell: what tells more is still bought, and first.
    assert picks.tolist() == [0, 2, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_batches_are_finite_and_end_in_the_order_of_bald(dtype: str) -> None:
    proba = make_proba(2, n_points=260, n_draws=12, n_classes=4, flat=1.0).astype(dtype)
    query = BatchBALDQuery(2_000, random_state=0)
    picks, utilities = query.select(proba, 200, return_utilities=True)
    assert picks.tolist() == query.select(proba, 200).tolist()
    assert len(set(picks.tolist())) == 200
    assert np.array_equal(np.isnan(utilities).sum(axis=1), np.arange(200))
    alone = bald(proba.astype(float))
    same = [np.allclose(row[~np.isnan(row)], alone[~np.isnan(row)]) for row in utilities]
    told = same.index(False) if False in same[:1] else same[1:].index(True) + 1
    assert 4 < told < 100
    assert all(same[told:])
    gains = utilities[np.arange(told), picks[:told]]
    assert (gains > 0).all()
    assert gains.sum() < math.log(12) + 0.05
    left = np.setdiff1d(np.arange(260), picks[:told])
    expected = left[np.argsort(-np.round(alone[left], 9), kind="stable")]
    assert picks[told:].tolist() == expected[: 200 - told].tolist()


def test_sharp_predictions_do_not_underflow() -> None:
    proba = make_proba(3, n_points=230, n_draws=6, n_classes=5, flat=1.0) ** 30
    proba /= proba.sum(axis=2, keepdims=True)
    for n_configurations in (5, 500):
        query = BatchBALDQuery(n_configurations, random_state=0)
        picks, utilities = query.select(proba, 200, return_utilities=True)
        assert len(set(picks.tolist())) == 200
        assert np.isfinite(utilities[np.arange(200), picks]).all()


def test_small_gains_are_told_apart_in_single_precision() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.ones(3), size=(20, 1)) + 1e-4 * rng.normal(size=(20, 4, 3))
        proba = np.clip(proba, 1e-3, None)
        proba /= proba.sum(axis=2, keepdims=True)
        expected, rows = literal_batch(proba, 3)
        assert np.nanmax(rows) < 1e-4
        assert BatchBALDQuery().select(proba, 3).tolist() == expected


def test_single_precision_stays_within_its_error_bound() -> None:
    rng = np.random.default_rng(0)
    for m, c, flat in ((2, 2, 1.0), (50, 10, 0.05), (50, 10, 30.0), (400, 3, 1.0), (5, 300, 0.1)):
        proba = rng.dirichlet(np.full(c, flat), size=(60, m)).astype(np.float32)
        configurations = Configurations(m, None, 2_000, rng)
        pool = RowSet(samples=PredictionSamples(proba))
        for _ in range(4):
            gains = JointInformation(pool, np.arange(60), configurations, double=False)
            single, _ = gains.screen(np.arange(60))
            double = [configurations.information(point.astype(float)) for point in proba]
            assert np.abs(single - double).max() < gains.tolerance() / 8
            configurations.add(configurations.of_active(proba[configurations.n_points]))


def test_copies_tie_to_the_lowest_position(backend: Backend) -> None:
    rng = np.random.default_rng(4)
    few = rng.dirichlet(np.full(4, 0.6), size=(6, 5))
    of = rng.integers(0, 6, size=80)
    copies = np.stack([few[k][:, rng.permutation(4)] for k in of])  # classes in any order
    expected, _ = literal_batch(few, 3)
    for dtype in ("float32", "float64"):
        picks = BatchBALDQuery().select(backend(copies.astype(dtype)), 3)
        # A copy of a pick tells something too, so the literal batch is taken over two of each.
        twice, _ = literal_batch(np.concatenate([few, few]), 3)
        assert of[picks].tolist() == [pick % 6 for pick in twice]
        for t, pick in enumerate(picks):
            before = picks[:t]
            assert pick == np.setdiff1d(np.flatnonzero(of == of[pick]), before)[0]
    assert expected[0] == twice[0]


def test_draws_in_another_order_tie_in_the_first_step() -> None:
    rng = np.random.default_rng(5)
    row = rng.dirichlet(np.full(4, 0.6), size=7)
    copies = np.stack([row[rng.permutation(7)] for _ in range(40)])
    copies[0] = row[0]  # nothing to tell
    assert BatchBALDQuery().select(copies.astype(np.float32)).tolist() == [1]
    assert BatchBALDQuery().select(copies).tolist() == [1]


def test_weights_count_as_repeated_draws() -> None:
    for seed in range(5):
        proba, counts = make_proba(seed), np.array([3, 0, 1, 2])
        weighted = batch_bald(proba, 4, weights=counts / 6)
        repeated = batch_bald(proba.repeat(counts, axis=1), 4)
        assert weighted[0].tolist() == repeated[0].tolist()
        np.testing.assert_allclose(weighted[1], repeated[1], atol=1e-12)
        sampled = batch_bald(proba, 4, weights=counts / 6, n_configurations=5, random_state=0)
        assert np.isfinite(sampled[1]).all()


@pytest.mark.parametrize("n_draws", [2, 30])
def test_predictions_without_a_choice_warn_and_give_the_lowest_positions(n_draws: int) -> None:
    proba = np.random.default_rng(6).dirichlet(np.ones(3), size=(9, 1)).repeat(n_draws, axis=1)
    for given in (proba, proba.astype(np.float32), np.ones((9, n_draws, 1))):
        with pytest.warns(EqualUtilitiesWarning, match=r"in BatchBALDQuery\.select"):
            picks = BatchBALDQuery(random_state=0).select(given, 4)
        assert picks.tolist() == [0, 1, 2, 3]


def test_peak_memory_holds_no_cube_of_configurations() -> None:
    proba = make_proba(0, n_points=3_000, n_draws=20, n_classes=5, flat=1.0)
    samples = PredictionSamples(proba.astype(np.float32))
    tracemalloc.start()
    BatchBALDQuery(4_000, random_state=0).select(samples, 7)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # (n_points, n_configurations, n_classes) in float32 is 240e6


def test_threads_change_neither_the_batch_nor_the_settings_of_blas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proba = make_proba(0, n_points=200, n_draws=10, n_classes=5, flat=1.0)
    screen, found = JointInformation.screen, []

    def recorded(self: JointInformation, *args: Any) -> Any:
        found.append(screen(self, *args))
        return found[-1]

    monkeypatch.setattr(JointInformation, "screen", recorded)
    answers = []
    for size in (1, 10**9):  # always, never
        monkeypatch.setattr("sklearn_ical.objectives._joint_information.PARALLEL_SIZE", size)
        found.clear()
        before = threadpool_info()
        picks = BatchBALDQuery(2_000, random_state=0).select(proba, 7)
        assert threadpool_info() == before
        answers.append((picks, np.concatenate([mean for mean, _ in found])))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_allclose(answers[0][1], answers[1][1], atol=1e-6)


def test_regression_is_refused_by_kind() -> None:
    values = PredictionSamples(np.zeros((5, 3)), kind="value")
    with pytest.raises(ValueError, match=r"'proba' or 'label'. Got kind 'value'"):
        BatchBALDQuery().select(values)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_configurations": 0}, ValueError, r"'n_configurations' parameter of BatchBALDQuery"),
        ({"n_configurations": 2.5}, ValueError, r"'n_configurations' parameter of BatchBALDQuery"),
        ({"batch_size": 0}, ValueError, r"batch_size"),
        ({"weights": [0.5, 0.5]}, ValueError, r"weights must have one entry per draw"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        batch_bald(make_proba(0), **options)


def test_equal_seeds_give_equal_batches_and_others_differ() -> None:
    proba = make_proba(7, n_points=60, n_draws=8, flat=3.0)
    batches = [
        tuple(BatchBALDQuery(16, random_state=seed).select(proba, 12)) for seed in (1, 1, 2, 3, 4)
    ]
    assert batches[0] == batches[1]
    assert len(set(batches)) > 1


def test_literal_oracle_equals_a_product_over_all_configurations() -> None:
    proba, w = make_proba(8, n_points=5)[:3], np.full(4, 0.25)
    masses = [
        sum(w[k] * math.prod(proba[i, k, y] for i, y in enumerate(labels)) for k in range(4))
        for labels in itertools.product(range(3), repeat=3)
    ]
    expected = -math.fsum(x * math.log(x) for x in masses if x > 0)
    assert literal_entropy(proba, w) == pytest.approx(expected, rel=1e-12)
