"""ICALQuery against literal loops over points, draws and reference rows, in float64.

Exact ties, streams of randomness and edge cases are in test_ical_exact.py.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn

from sklearn_ical import ICALQuery, PredictionSamples

Backend = Callable[[np.ndarray], Any]

N_POINTS, BATCH = 16, 6
ALPHAS = (0.2, 0.5, 1, 2, 5)
WEIGHTS = np.array([0.1, 0.05, 0.4, 0.2, 0.15, 0.1])
OPTIONS = {
    "biased": {},
    "unbiased": {"estimator": "unbiased"},
    "weighted": {"weights": WEIGHTS},
}
INPUTS = ["label", "proba", "expected", "argmax", "value", "values"]
LABELS = ["label", "expected", "argmax"]  # or kernels of labels
KERNELS = ["auto", "rq", "rbf", "linear", "delta", "distance", "callable"]
OF_LABELS = ["auto", "linear", "delta"]
# working_memory in MiB: everything at once, a few rows, one row
WHOLE, SOME, ONE = CHUNKS = (1024, 0.002, 1e-9)
# include_self, step_size and working_memory
MANY = list(itertools.product((True, False), (1, 3, 10), CHUNKS))
FEW = [(True, 1, WHOLE), (False, 3, SOME), (True, 10, ONE)]


def radial(d2: Any) -> Any:
    """A kernel of the user's own, of squared distances."""
    return (1 + d2) ** -0.5


RADIAL: dict[str, Callable[[Any], Any]] = {
    "rq": lambda d2: np.mean([(1 + d2 / (2 * a)) ** -a for a in ALPHAS], axis=0),
    "rbf": lambda d2: np.exp(-d2 / 2),
    "distance": lambda d2: -np.sqrt(d2) / 2,
    "delta": lambda d2: np.where(d2 == 0, 1.0, 0.0),
    "callable": radial,
}


def parameters(source: str, kernel: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the query for one kind of input."""
    prediction = source if source in ("proba", "expected", "argmax") else "sampled"
    given = radial if kernel == "callable" else kernel
    return {
        "prediction": prediction,
        "kernel": given,
        "estimator": options.get("estimator", "biased"),
    }


def make_values(source: str, m: int = 6, n_classes: int = 3, seed: int = 0) -> np.ndarray:
    """Return values of one kind of input, with constant rows and repeated rows among them."""
    rng = np.random.default_rng(seed)
    # Of many classes few occur, so that draws agree; 0 and 256 are the same in 8 bits.
    codes = np.array([0, 256, n_classes - 1]) if n_classes > 256 else np.arange(n_classes)
    if source == "label":
        values: np.ndarray = rng.choice(codes, size=(N_POINTS, m))
    elif source in ("value", "values"):
        values = rng.normal(size=(N_POINTS, m) if source == "value" else (N_POINTS, m, 2))
    else:
        values = np.zeros((N_POINTS, m, n_classes))
        values[:, :, codes] = rng.dirichlet(np.full(len(codes), 0.5), size=(N_POINTS, m))
        values[6] = np.eye(n_classes)[0]
    values[3] = values[3, :1]
    values[11] = values[2]
    return values


def make_samples(source: str, values: Any, options: dict[str, Any]) -> PredictionSamples:
    kind = {"label": "label", "value": "value", "values": "value"}.get(source, "proba")
    return PredictionSamples(values, kind=kind, weights=options.get("weights"))


def kernel_of(outputs: np.ndarray, name: str) -> np.ndarray:
    """Return the kernel (m, m) of one point's outputs (m, n_outputs)."""
    if name == "linear":
        return outputs @ outputs.T
    return RADIAL[name](((outputs[:, None] - outputs[None]) ** 2).sum(axis=2))


def literal_kernels(
    source: str, values: np.ndarray, name: str, weights: np.ndarray | None
) -> list[np.ndarray]:
    """Return the kernel of each point as the method defines it."""
    values = np.asarray(values, dtype=np.int64 if source == "label" else np.float64)
    if name == "auto":
        name = "rq" if source in ("value", "values", "scaled") else "linear"
    if source in ("label", "argmax"):
        labels = values if source == "label" else values.argmax(axis=2)
        return [kernel_of(np.eye(labels.max() + 1)[row], name) for row in labels]
    if source == "expected":  # the labels of two draws agree with probability p_i . p_j
        one_hot = np.eye(2)
        equal, unequal = kernel_of(one_hot, name)[0]
        kernels = []
        for row in values:
            agree = row @ row.T
            np.fill_diagonal(agree, 1.0)
            kernels.append(unequal + (equal - unequal) * agree)
        return kernels
    if source == "scaled":
        values = values.reshape(*values.shape[:2], -1)
    if source in ("value", "values"):
        values = values.reshape(*values.shape[:2], -1)
        share = np.full(values.shape[1], 1 / values.shape[1]) if weights is None else weights
        mean = np.einsum("k,nkd->nd", share, values)
        variance = np.einsum("k,nkd->nd", share, (values - mean[:, None]) ** 2)
        values = values / np.sqrt(variance.mean(axis=0))
    return [kernel_of(row, name) for row in values]


def literal_hsic(
    k: np.ndarray,
    l: np.ndarray,  # noqa: E741
    *,
    estimator: str = "biased",
    weights: Any = None,
) -> float:
    m = len(k)
    if estimator == "unbiased":
        k, l = k - np.diag(np.diag(k)), l - np.diag(np.diag(l))  # noqa: E741
        cross = 2 / (m - 2) * np.sum(k @ l)
        total = k.sum() * l.sum() / ((m - 1) * (m - 2))
        return float((np.sum(k * l) + total - cross) / (m * (m - 3)))
    share = np.full(m, 1 / m) if weights is None else weights
    center = np.eye(m) - np.outer(np.ones(m), share)
    product = (center @ k @ center.T) * (center @ l @ center.T)
    return float(share @ product @ share)


def pairwise_hsic(kernels: list[np.ndarray], others: list[np.ndarray], **how: Any) -> np.ndarray:
    return np.array([[literal_hsic(k, z, **how) for z in others] for k in kernels])


def literal_ical(
    pairs: np.ndarray,
    reference: np.ndarray,
    *,
    batch_size: int = BATCH,
    step_size: int = 1,
    include_self: bool = True,
    candidates: Any = None,
) -> tuple[list[int], np.ndarray]:
    """Pick greedily, one candidate and one reference row at a time, from HSIC of all pairs."""
    free = set(range(len(pairs)) if candidates is None else candidates)
    picks: list[int] = []
    rows = []
    for rows_of_step in reference:
        scores = np.full(len(pairs), np.nan)
        for x in free:
            others = [z for z in rows_of_step if include_self or z != x]
            scores[x] = sum(pairs[x, z] for z in others) / max(len(others), 1)
        for _ in range(min(step_size, batch_size - len(picks))):
            rows.append(scores.copy())
            best = int(np.nanargmax(np.round(scores, 12)))  # ties are exact, rounding is not
            picks.append(best)
            free.remove(best)
            scores[best] = np.nan
    return picks, np.array(rows)


def compare(
    source: str,
    values: np.ndarray,
    kernel: str,
    options: dict[str, Any],
    variants: list[tuple[bool, int, float]],
    to: Backend = np.asarray,
) -> None:
    """Compare picks and utilities with the literal ones for variants of steps and chunks."""
    kernels = literal_kernels(source, values, kernel, options.get("weights"))
    pairs = pairwise_hsic(kernels, kernels, **options)
    samples = make_samples(source, to(values), options)
    for include_self, step_size, memory in variants:
        rng = np.random.default_rng(step_size)
        reference = rng.integers(0, N_POINTS, size=(-(-BATCH // step_size), 6))
        query = ICALQuery(
            include_self=include_self,
            step_size=step_size,
            **parameters(source, kernel, options),
        )
        expected, rows = literal_ical(
            pairs, reference, step_size=step_size, include_self=include_self
        )
        with sklearn.config_context(working_memory=memory):
            picks = query.select(samples, BATCH, reference=reference)
            same, utilities = query.select(samples, BATCH, reference=reference, return_utilities=1)
        assert picks.tolist() == expected
        assert same.tolist() == expected
        assert isinstance(picks, np.ndarray)
        assert picks.dtype == np.intp
        assert utilities.dtype == np.float64
        np.testing.assert_allclose(utilities, rows, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        (source, kernel)
        for source, kernel in itertools.product(INPUTS, KERNELS)
        if (kernel in OF_LABELS if source in LABELS else kernel != "delta")
    ],
)
def test_query_equals_literal_loops(source: str, kernel: str, options: dict[str, Any]) -> None:
    variants = [FEW[KERNELS.index(kernel) % 3]] if options else FEW
    compare(source, make_values(source), kernel, options, variants)


@pytest.mark.parametrize("source", INPUTS)
def test_query_equals_literal_loops_in_all_chunks_and_step_sizes(source: str) -> None:
    compare(source, make_values(source, seed=3), "auto", {}, MANY)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("source", INPUTS)
def test_query_equals_literal_loops_on_every_backend(
    source: str, dtype: str, backend: Backend
) -> None:
    if source == "label":
        dtype = {"float32": "uint8", "float64": "int64"}[dtype]
    values = make_values(source, seed=1).astype(dtype)
    for options, variant in zip(OPTIONS.values(), [*FEW[:2], (True, 10, SOME)], strict=True):
        compare(source, values, "auto", options, [variant], backend)
    other = "callable" if source == "proba" else "linear"
    compare(source, values, other, {}, [(False, 10, WHOLE)], backend)


@pytest.mark.parametrize(("m", "n_classes"), [(2, 2), (3, 5), (9, 2), (5, 300)])
@pytest.mark.parametrize("source", INPUTS)
def test_query_of_other_sizes_equals_literal_loops(source: str, m: int, n_classes: int) -> None:
    values = make_values(source, m, n_classes, seed=2)
    compare(source, values, "auto", {}, FEW)
    if m > 3:
        compare(source, values, "auto", OPTIONS["unbiased"], [(False, 3, SOME)])
    weights = np.arange(1.0, m + 1) / (m * (m + 1) / 2)
    compare(source, values, "auto", {"weights": weights}, [(False, 1, WHOLE)])


@pytest.mark.parametrize("step_size", [1, 3])
@pytest.mark.parametrize("source", INPUTS)
def test_candidates_limit_the_picks_and_nothing_else(source: str, step_size: int) -> None:
    values = make_values(source)
    candidates = [14, 0, 5, 3, 8, 2, 11, 9]
    n_steps = -(-5 // step_size)
    reference = np.random.default_rng(0).integers(0, N_POINTS, size=(n_steps, 6))
    kernels = literal_kernels(source, values, "auto", None)
    expected, rows = literal_ical(
        pairwise_hsic(kernels, kernels),
        reference,
        batch_size=5,
        step_size=step_size,
        candidates=candidates,
    )
    query = ICALQuery(step_size=step_size, **parameters(source, "auto", {}))
    samples = make_samples(source, values, {})
    for given in (candidates, np.isin(np.arange(N_POINTS), candidates)):
        picks, utilities = query.select(
            samples, 5, candidates=given, reference=reference, return_utilities=True
        )
        assert picks.tolist() == expected
        np.testing.assert_allclose(utilities, rows, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("step_size", [1, 3, 4])
@pytest.mark.parametrize("source", ["label", "proba", "value"])
def test_picks_are_the_first_nan_argmax_of_their_rows(source: str, step_size: int) -> None:
    values = make_values(source)
    values[8:] = values[:8]  # every row twice, the constant ones too
    query = ICALQuery(step_size=step_size, random_state=0, **parameters(source, "auto", {}))
    samples = make_samples(source, values, {})
    picks, utilities = query.select(samples, 9, candidates=range(1, 16), return_utilities=True)
    taken: list[int] = [0]
    for pick, row in zip(picks.tolist(), utilities, strict=True):
        assert np.flatnonzero(np.isnan(row)).tolist() == sorted(taken)
        assert pick == int(np.nanargmax(row))
        taken.append(pick)


@pytest.mark.parametrize("cap", [None, 20])
def test_batch_equals_sequential_greedy_with_the_mean_kernel_of_the_batch(cap: int | None) -> None:
    n, m, batch_size, r = 40, 8, 25, 9
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=(n, m))
    kernels = np.stack(literal_kernels("label", labels, "auto", None))
    reference = rng.integers(0, n, size=(batch_size, r))

    def dhsic(k: np.ndarray, l: np.ndarray) -> float:  # noqa: E741
        t1 = np.sum(k * l) / m**2
        t2 = 2 / m**3 * np.sum(k.sum(axis=1) * l.sum(axis=1))
        return float(t1 - t2 + k.sum() * l.sum() / m**4)

    chosen: list[int] = []
    alphas = []
    for rows in reference:
        summary = kernels[rows].mean(axis=0)
        kept = chosen
        if cap is not None and len(chosen) > cap:  # a random part of the batch stands for it
            kept = rng.choice(chosen, cap, replace=False).tolist()
        scores = [
            -np.inf if x in chosen else dhsic(summary, kernels[[*kept, x]].mean(axis=0))
            for x in range(n)
        ]
        best = int(np.argmax(np.round(scores, 12)))
        alphas.append(scores[best])
        chosen.append(best)

    query, samples = ICALQuery(), PredictionSamples(labels, kind="label")
    assert query.select(samples, batch_size, reference=reference).tolist() == chosen
    if cap is None:
        for t, rows in enumerate(reference):
            _, scores = query.select(samples, reference=rows[None], return_utilities=True)
            running_mean = scores[0, chosen[: t + 1]].mean()
            np.testing.assert_allclose(running_mean, alphas[t], rtol=1e-10)


@pytest.mark.parametrize("source", ["label", "proba", "expected", "value"])
def test_fixed_reference_gives_the_best_of_all_batches(source: str) -> None:
    values = make_values(source, seed=4)[4:12]
    seed, r = 3, 5
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(2,))))
    reference = generator.choice(8, r, replace=False, shuffle=False)
    query = ICALQuery(r, resample=False, random_state=seed, **parameters(source, "auto", {}))
    picks, utilities = query.select(make_samples(source, values, {}), 3, return_utilities=True)
    kernels = np.stack(literal_kernels(source, values, "auto", None))
    summary = kernels[reference].mean(axis=0)
    worth = {
        batch: literal_hsic(summary, kernels[list(batch)].mean(axis=0))
        for batch in itertools.combinations(range(8), 3)
    }
    assert worth[tuple(sorted(picks.tolist()))] == pytest.approx(max(worth.values()), rel=1e-10)
    assert (np.diff(utilities[0, picks]) <= 0).all()
    assert utilities[0, picks].mean() == pytest.approx(max(worth.values()), rel=1e-10)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("source", INPUTS)
def test_permuting_the_draws_of_all_points_changes_nothing(
    source: str, options: dict[str, Any]
) -> None:
    values = make_values(source)
    order = np.random.default_rng(5).permutation(6)
    permuted = {**options}
    if "weights" in options:
        permuted["weights"] = options["weights"][order]
    reference = np.random.default_rng(6).integers(0, N_POINTS, size=(BATCH, 6))
    query = ICALQuery(**parameters(source, "auto", options))
    how: dict[str, Any] = {"reference": reference, "return_utilities": True}
    picks, utilities = query.select(make_samples(source, values, options), BATCH, **how)
    same, others = query.select(make_samples(source, values[:, order], permuted), BATCH, **how)
    assert picks.tolist() == same.tolist()
    np.testing.assert_allclose(others, utilities, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("source", INPUTS)
def test_weights_of_integers_equal_duplicated_draws(source: str) -> None:
    values = make_values(source, m=3)
    weighted = make_samples(source, values, {"weights": np.array([0.5, 0.25, 0.25])})
    doubled = make_samples(source, values[:, [0, 0, 1, 2]], {})
    reference = np.random.default_rng(7).integers(0, N_POINTS, size=(BATCH, 6))
    for include_self in (True, False):
        query = ICALQuery(include_self=include_self, **parameters(source, "auto", {}))
        if source == "expected":  # a draw and its copy give labels of their own
            query.set_params(kernel="linear", prediction="proba")
        _, a = query.select(weighted, BATCH, reference=reference, return_utilities=True)
        _, b = query.select(doubled, BATCH, reference=reference, return_utilities=True)
        np.testing.assert_allclose(a[0], b[0], rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("source", INPUTS)
def test_reference_samples_are_the_rows_compared_with(source: str) -> None:
    values = make_values(source, seed=8)
    pool, others = values[:9], values[9:]
    reference = np.random.default_rng(9).integers(0, 7, size=(4, 5))
    # The scale of regression is that of the pool alone.
    real = source in ("value", "values")
    scaled = values / np.sqrt(pool.var(axis=1).mean(axis=0)) if real else values
    kernels = literal_kernels("scaled" if real else source, scaled, "auto", None)
    pairs = pairwise_hsic(kernels[:9], kernels[9:])
    expected = []
    for rows in reference:
        scores = pairs[:, rows].mean(axis=1)
        scores[expected] = -np.inf
        expected.append(int(np.argmax(np.round(scores, 12))))
    for include_self in (True, False):
        query = ICALQuery(include_self=include_self, **parameters(source, "auto", {}))
        picks, utilities = query.select(
            make_samples(source, pool, {}),
            4,
            reference_samples=make_samples(source, others, {}),
            reference=reference,
            return_utilities=True,
        )
        assert picks.tolist() == expected
        np.testing.assert_allclose(
            utilities[0], pairs[:, reference[0]].mean(axis=1), rtol=1e-10, atol=1e-13
        )


def test_first_example_equals_closed_forms() -> None:
    labels = np.array([[1, 2, 3] + [4] * 7, [1] * 9 + [2]])
    samples = PredictionSamples(labels, kind="label")
    closed = {
        "delta": [[0.0984, 0.0024], [0.0024, 0.0324]],
        "linear": [[0.0984, 0.0024], [0.0024, 0.0324]],
    }
    closed["auto"] = closed["delta"]
    for kernel, values in closed.items():
        for r in (0, 1):
            _, utilities = ICALQuery(kernel=kernel).select(
                samples, reference=[[r]], return_utilities=True
            )
            np.testing.assert_allclose(utilities[0], values[r], atol=5e-11)


def test_two_draws_that_differ_equal_closed_forms() -> None:
    samples = PredictionSamples(np.array([[0, 1], [5, 5]]), kind="label")
    _, utilities = ICALQuery().select(samples, reference=[[0]], return_utilities=True)
    np.testing.assert_allclose(utilities, [[0.25, 0.0]], rtol=1e-15)


def test_expected_and_linear_scores_equal_closed_forms_and_the_mean_of_sampled_ones() -> None:
    pair = np.array([[0.9, 0.1], [0.1, 0.9]])
    three = np.stack([pair, pair, [[1.0, 0.0], [1.0, 0.0]]])
    for prediction, value in (("expected", 0.1681), ("proba", 0.1024)):
        query = ICALQuery(prediction=prediction)
        _, utilities = query.select(three, reference=[[1]], return_utilities=True)
        assert utilities[0, 0] == pytest.approx(value, rel=1e-12)
        assert utilities[0, 2] == 0.0
    n = 4000  # each row with labels of its own: the mean over all pairs of two rows
    many = np.tile(pair, (n, 1, 1))
    query = ICALQuery(kernel="delta", include_self=False, random_state=0)
    _, utilities = query.select(many, reference=[range(n)], return_utilities=True)
    assert utilities.mean() == pytest.approx(0.1681, abs=0.0075)  # 3 standard errors


@pytest.mark.parametrize("kernel", ["auto", "rbf", "linear", "distance"])
@pytest.mark.parametrize("source", ["value", "values"])
def test_regression_scores_do_not_depend_on_scale_and_shift(source: str, kernel: str) -> None:
    values = make_values(source)
    rows = np.random.default_rng(1).normal(size=(N_POINTS, 1, 1)[: values.ndim])
    factor = np.array([1000.0, 0.01]) if source == "values" else 1000.0
    query = ICALQuery(kernel=kernel)
    reference = np.random.default_rng(2).integers(0, N_POINTS, size=(1, 6))
    how: dict[str, Any] = {"reference": reference, "return_utilities": True}
    _, expected = query.select(make_samples(source, values, {}), **how)
    _, found = query.select(make_samples(source, (values + rows) * factor, {}), **how)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


def test_regression_scale_is_shared_by_all_rows_and_ignores_candidates() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N_POINTS, 6))
    values[5] *= 3  # the widest row would not stand out if each row had a scale of its own
    values[7] = 4.0
    query = ICALQuery(kernel="linear")
    samples = PredictionSamples(values, kind="value")
    picks, utilities = query.select(samples, reference=[range(N_POINTS)], return_utilities=True)
    assert picks.tolist() == [5]
    assert utilities[0, 7] == 0.0
    _, part = query.select(
        samples, candidates=[2, 5, 7], reference=[range(N_POINTS)], return_utilities=True
    )
    np.testing.assert_allclose(part[0, [2, 5, 7]], utilities[0, [2, 5, 7]], rtol=1e-12)


def test_regression_of_draws_that_all_agree_warns_and_scores_zero() -> None:
    from sklearn_ical.exceptions import EqualUtilitiesWarning

    values = np.tile(np.arange(5.0)[:, None], (1, 4))
    with pytest.warns(EqualUtilitiesWarning):
        picks, utilities = ICALQuery(random_state=0).select(
            PredictionSamples(values, kind="value"), 3, return_utilities=True
        )
    assert picks.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(utilities[0], 0.0)


@pytest.mark.parametrize("step_size", [1, 4])
def test_every_kernel_of_labels_makes_the_same_choice(step_size: int) -> None:
    labels = np.random.default_rng(0).integers(0, 4, size=(50, 9))
    picks = [
        ICALQuery(8, step_size=step_size, random_state=0).select(
            PredictionSamples(labels, kind="label"), 20
        )
    ]
    one_hot = np.eye(4)[labels]
    for kernel in ("rq", "rbf", "linear", "distance", radial):
        query = ICALQuery(8, prediction="proba", kernel=kernel, step_size=step_size, random_state=0)
        picks.append(query.select(one_hot, 20))
    for other in picks[1:]:
        np.testing.assert_array_equal(other, picks[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "rbg"}, r"The 'kernel' parameter of ICALQuery must be .*Got 'rbg' instead"),
        ({"prediction": "mean"}, r"The 'prediction' parameter of ICALQuery must be .*Got 'mean'"),
        ({"estimator": "U"}, r"The 'estimator' parameter of ICALQuery must be .*Got 'U'"),
        ({"n_reference": 0}, r"The 'n_reference' parameter of ICALQuery must be .*Got 0"),
        ({"step_size": 1.5}, r"The 'step_size' parameter of ICALQuery must be .*Got 1.5"),
        ({"resample": "yes"}, r"The 'resample' parameter of ICALQuery must be .*Got 'yes'"),
        ({"random_state": -1}, r"The 'random_state' parameter of ICALQuery must be .*Got -1"),
        (
            {"prediction": "proba", "kernel": "delta"},
            r"kernel='delta' compares labels\. Got real-valued predictions in ICALQuery\.select; "
            r"use kernel='auto', or prediction='sampled'",
        ),
        (
            {"kernel": "rq"},
            r"kernel must be 'auto' or 'delta' for labels, as all kernels make the same choice .*"
            r"Got 'rq' in ICALQuery\.select; other kernels need prediction='proba' or a regressor",
        ),
        ({"kernel": np.exp, "prediction": "argmax"}, "must be 'auto' or 'delta' for labels"),
        ({"kernel": "rbf", "prediction": "expected"}, "must be 'auto' or 'delta' for labels"),
    ],
)
def test_wrong_parameters_raise(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ICALQuery(**options).select(make_values("proba"))


@pytest.mark.parametrize("source", INPUTS)
def test_the_unbiased_estimator_needs_four_draws_of_equal_weight(source: str) -> None:
    query = ICALQuery(**parameters(source, "auto", {"estimator": "unbiased"}))
    three = make_samples(source, make_values(source, m=3), {})
    with pytest.raises(ValueError, match=r"ICALQuery needs at least 4 draws\. Got 3 in ICALQuery"):
        query.select(three)
    weighted = make_samples(source, make_values(source), {"weights": WEIGHTS})
    message = r"no form for weighted draws\. Got weighted draws in ICALQuery.select; pass estimator"
    with pytest.raises(ValueError, match=message):
        query.select(weighted)


def test_a_single_draw_raises() -> None:
    with pytest.raises(ValueError, match=r"ICALQuery needs at least 2 draws\. Got 1 in ICALQuery"):
        ICALQuery().select(make_values("proba", m=1))


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        ([[0, 1]], ValueError, r"shape \(n_steps, r\) with n_steps=2 for .*Got shape \(1, 2\)"),
        ([[0], [1], [2]], ValueError, r"n_steps=2 .*Got shape \(3, 1\) in ICALQuery.select"),
        ([0, 1], ValueError, r"n_steps=2 .*Got shape \(2,\)"),
        ([[], []], ValueError, r"r >= 1\. Got shape \(2, 0\)"),
        ([[0], [16]], ValueError, r"positions from 0 to 15 in the pool\. Got 16 in ICALQuery"),
        ([[0], [-1]], ValueError, r"positions from 0 to 15 in the pool\. Got -1"),
        ([[0.0], [1.0]], TypeError, r"integer positions in the pool\. Got an array of dtype float"),
        ([[True], [False]], TypeError, r"integer positions in the pool\. Got .* bool"),
    ],
)
def test_wrong_reference_sets_raise(reference: Any, error: type[Exception], message: str) -> None:
    query = ICALQuery(step_size=2)
    with pytest.raises(error, match=message):
        query.select(make_values("proba"), 4, reference=reference)


def test_reference_positions_are_those_of_the_reference_samples() -> None:
    values = make_values("proba")
    query = ICALQuery(prediction="proba")
    with pytest.raises(ValueError, match=r"from 0 to 4 in the reference rows\. Got 5"):
        query.select(values, reference_samples=values[:5], reference=[[5]])
    with pytest.raises(ValueError, match=r"same draws as samples, with n_draws=6\. Got n_draws=5"):
        query.select(values, reference_samples=values[:, :5])
    labels = PredictionSamples(make_values("label"), kind="label")
    with pytest.raises(ValueError, match=r"with kind='proba'\. Got kind='label'"):
        query.select(values, reference_samples=labels)


def test_calls_leave_parameters_and_inputs_alone() -> None:
    state = np.random.default_rng(0)
    query = ICALQuery(kernel=radial, prediction="proba", random_state=state)
    before = dict(vars(query))
    values = make_values("proba")
    copy = values.copy()
    values.flags.writeable = False
    query.select(values, 5)
    assert vars(query) == before
    assert query.random_state is state
    np.testing.assert_array_equal(values, copy)
