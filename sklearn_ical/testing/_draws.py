"""Checks of draws: their attributes, and their predictions for rows in any chunk or order."""

from typing import Any

import numpy as np

from sklearn_ical.samplers._base import evaluate_in_chunks, evaluate_together
from sklearn_ical.samples import KINDS, PredictionSamples, concatenate
from sklearn_ical.testing._answers import fingerprint, require_same_answers, tolerance
from sklearn_ical.testing._require import require
from sklearn_ical.testing._sampler_case import SamplerCase

# Units in the last place within which draws are equal.
EQUAL_WITHIN = 100


def check_draws(case: SamplerCase) -> None:
    """Check that `draw` returns draws that describe themselves and the samples they give."""
    draws, samples = case.draws, case.samples
    n_draws = getattr(draws, "n_draws", None)
    legal = {
        "n_draws": type(n_draws) is not bool
        and isinstance(n_draws, int | np.integer)
        and n_draws >= 1,
        "kind": getattr(draws, "kind", None) in KINDS,
        "classes": hasattr(draws, "classes") and _are_classes(draws.classes),
        "weights": hasattr(draws, "weights"),
        "joint": isinstance(getattr(draws, "joint", None), bool),
        "mean_differs": isinstance(getattr(draws, "mean_differs", ""), str),
    }
    for name, fits in legal.items():
        require(
            fits,
            f"Expected {type(draws).__name__} with a legal {name!r}. Got "
            f"{getattr(draws, name, 'no such attribute')!r}. Strategies read the attributes of "
            "draws before they evaluate them.",
        )
    for name in ("source", "cost"):
        text = getattr(case.sampler, name, "")
        require(
            isinstance(text, str),
            f"Expected a string as {name!r} of {type(case.sampler).__name__}, or none. Got "
            f"{text!r}. Tables of models print it.",
        )
    require_valid_samples(samples, case, "for all rows")


def check_draws_differ(case: SamplerCase) -> None:
    """Check that two or more draws are not all the same function."""
    n_draws = case.draws.n_draws
    values = np.asarray(case.samples.values)
    if values.dtype.kind == "f":
        rounding = EQUAL_WITHIN * np.finfo(values.dtype).eps * np.abs(values).max()
        differ = np.ptp(values, axis=1).max() > rounding
    else:
        differ = (values != values[:, :1]).any()
    require(
        differ or n_draws == 1,
        f"Expected draws that differ on some row. Got {n_draws} equal draws for all "
        f"{case.n_points} rows. Equal draws have no disagreement and no dependence to choose by.",
    )


def check_sample(case: SamplerCase) -> None:
    """Check that `sample(X, n_draws=..., random_state=...)`, if any, is ``draw(...)(X)``."""
    if not hasattr(case.sampler, "sample"):
        return
    samples = case.sampler.sample(case.X, n_draws=case.few, random_state=0)
    why = "It is a shortcut, which BaseSampler provides."
    require_same_answers(samples, case.few_samples, "from sample as from draw", why)
    default = case.sampler.sample(case.X, random_state=0)
    require_same_answers(default, case.samples, "from sample as from draw, by default", why)


def check_draw_weights(case: SamplerCase) -> None:
    """Check that weights are one per draw, >= 0 and of sum 1, and that samples have them too."""
    for draws, samples in ((case.draws, case.samples), (case.few_draws, case.few_samples)):
        weights = draws.weights
        if weights is not None:
            weights = np.asarray(weights)
            require(
                weights.shape == (draws.n_draws,)
                and bool((weights >= 0).all())
                and abs(weights.sum() - 1) < 1e-9,
                f"Expected None or {draws.n_draws} weights >= 0 of sum 1. Got {weights}. Weighted "
                "means are sums of weight times value.",
            )
        require(
            (weights is None) == (samples.weights is None)
            and (
                weights is None
                or np.allclose(np.asarray(samples.weights), weights, rtol=1e-12, atol=0)
            ),
            f"Expected samples with the weights of the draws, {weights}. Got {samples.weights}. "
            "Strategies get the samples; without the weights the posterior is wrong.",
        )


def check_same_rows(case: SamplerCase) -> None:
    """Check that the same draws give the same predictions for the same rows, bitwise."""
    why = "Draws are fixed functions; everything random was fixed by draw."
    require_same_answers(case.draws(case.X), case.samples, "from a second evaluation", why, rtol=0)


def check_chunked_rows(case: SamplerCase) -> None:
    """Check that the prediction of a row does not depend on the other rows of its chunk."""
    if case.draws.joint:
        return
    why = "Pools are read in chunks whose size depends on memory, unless joint=True."
    for size in (7, case.n_points // 2 + 1, case.n_points):
        parts = list(evaluate_in_chunks(case.draws, case.X, size))
        what = f"in chunks of {size} rows"
        require_same_answers(concatenate(parts), case.samples, what, why)
    positions = np.linspace(0, case.n_points - 1, 5).astype(int)
    singles = [case.draws(case.take(slice(i, i + 1))) for i in positions.tolist()]
    require_same_answers(concatenate(singles), case.samples[positions], "for rows one by one", why)


def check_moved_rows(case: SamplerCase) -> None:
    """Check that rows in another order, and repeated rows, keep their predictions."""
    if case.precomputed:
        return
    rtol = tolerance(case.samples.values, joint=case.draws.joint)
    why = "Draw k is one function: its value at a row does not depend on the row's position."
    order = np.random.default_rng(13).permutation(case.n_points)
    moved = case.draws(case.take(order))
    require_same_answers(moved, case.samples[order], "for rows in another order", why, rtol=rtol)
    twice = np.tile(np.arange(case.n_points), 2)
    repeated = case.draws(case.take(twice))
    require_same_answers(repeated, case.samples[twice], "for rows given twice", why, rtol=rtol)


def check_joint_rows(case: SamplerCase) -> None:
    """Check that joint draws predict pool and reference rows as one set of rows."""
    if not case.draws.joint or case.precomputed:
        return
    cut = case.n_points // 3
    X, X_reference = (case.take(rows) for rows in (slice(cut), slice(cut, case.n_points)))
    rtol = tolerance(case.samples.values, joint=True)
    why = "Draw k must be the same function for both, or they cannot be compared."
    for name, part, rows in zip(
        ("X", "X_reference"),
        evaluate_together(case.draws, X, X_reference),
        (slice(cut), slice(cut, case.n_points)),
        strict=True,
    ):
        what = f"for {name} of together as for all rows"
        require_same_answers(part, case.samples[rows], what, why, rtol=rtol)


def check_draws_unchanged(case: SamplerCase) -> None:
    """Check that draws are immutable."""
    draws = case.draws
    names = ("n_draws", "kind", "classes", "weights", "joint")

    def state() -> tuple[Any, ...]:
        return fingerprint(draws), *(fingerprint(getattr(draws, name)) for name in names)

    draws(case.X)  # what models store in their first prediction is not a change
    before = state()
    draws(case.X)
    if not case.precomputed:
        draws(case.take(slice(0, case.n_points - 1)))
    require(
        state() == before,
        f"Expected {type(draws).__name__} to be unchanged. Got changed ones after an evaluation. "
        "Draws are shared between chunks, threads and steps of a batch.",
    )


def require_valid_samples(samples: Any, case: SamplerCase, what: str) -> None:
    """Raise if these are not the PredictionSamples of all rows that the draws describe."""
    draws = case.draws
    require(
        isinstance(samples, PredictionSamples),
        f"Expected PredictionSamples {what}. Got {type(samples).__name__}.",
    )
    n_points, n_draws = case.n_points, draws.n_draws
    got = (samples.kind, samples.n_points, samples.n_draws)
    require(
        got == (draws.kind, n_points, n_draws),
        f"Expected samples of kind {draws.kind!r}, {n_points} points and {n_draws} draws {what}. "
        f"Got kind {got[0]!r}, {got[1]} points and {got[2]} draws.",
    )
    same = (draws.classes is None) == (samples.classes is None) and (
        draws.classes is None or np.array_equal(draws.classes, samples.classes)
    )
    require(
        same,
        f"Expected samples with the classes of the draws, {draws.classes}, {what}. Got "
        f"{samples.classes}.",
    )
    # Values are checked again, as the sampler may have skipped the checks.
    PredictionSamples(samples.values, samples.kind, classes=samples.classes)


def _are_classes(classes: Any) -> bool:
    """Return whether these are None, or distinct labels in one row."""
    if classes is None:
        return True
    labels = np.asarray(classes)
    return labels.ndim == 1 and len(set(labels.tolist())) == len(labels) > 0
