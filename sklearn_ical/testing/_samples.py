"""Checks of predictions: kinds, draws, weights, backends, degenerate cases and kinds of models."""

import importlib.util
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical._typing import Kind
from sklearn_ical.exceptions import QueryWarning
from sklearn_ical.samplers import get_sampler
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._data import (
    BATCH,
    N_POOL,
    Problem,
    all_positions,
    ask,
    choose,
    fixed_by,
    fixed_options,
    has_ties,
    kinds,
    members,
    model_problem,
    predicted_kinds,
    reads,
    reads_predictions,
    samples_problem,
    seeded,
    with_rows,
)
from sklearn_ical.testing._require import (
    recorded,
    require,
    require_error,
    require_rows,
    require_same,
    require_valid,
)

DTYPES: dict[Kind, tuple[type, ...]] = {
    "proba": (np.float64, np.float32, np.float16),
    "label": (np.int64, np.int32, np.int8, np.uint8),
    "value": (np.float64, np.float32, np.float16),
}


def check_kinds(strategy: Any) -> None:
    """Check that samples of the kinds in the tags work in every dtype, and others raise."""
    if not reads_predictions(strategy):
        return
    for kind, dtypes in DTYPES.items():
        values = samples_problem(strategy, kind).source.values
        for dtype in dtypes:
            problem = with_rows(strategy, PredictionSamples(values.astype(dtype), kind))
            if kind not in strategy.query_tags().kinds:
                require_error(
                    partial(choose, seeded(strategy), problem),
                    kind,
                    f"for {kind} samples, which are not in the tags",
                    "A formula for other predictions gives meaningless numbers.",
                )
                continue
            picks = choose(seeded(strategy), problem)
            case = f"from {kind} samples of dtype {np.dtype(dtype)}"
            require_valid(picks, BATCH, np.arange(len(values)), case)


def check_raw_probabilities(strategy: Any) -> None:
    """Check that `select` accepts an (n_points, n_draws, n_classes) array, and no other."""
    if not reads_predictions(strategy) or "proba" not in strategy.query_tags().kinds:
        return
    problem = samples_problem(strategy, "proba")
    values = problem.source.values
    raw = problem.with_source(values)
    why = "Arrays are the simplest interface to models of other packages."
    require_same(
        choose(seeded(strategy), raw),
        choose(seeded(strategy), problem),
        "from an array of probabilities as from PredictionSamples",
        why,
    )
    deep = problem.with_source(values[..., None])
    require_error(
        partial(choose, seeded(strategy), deep),
        "shape",
        "for an array of four dimensions",
        "The meaning of the axes must never be guessed.",
    )


def check_min_draws(strategy: Any) -> None:
    """Check that as many draws as in the tag are enough, and fewer raise."""
    least = strategy.query_tags().min_draws
    for kind in predicted_kinds(strategy):
        problem = samples_problem(strategy, kind)
        enough = problem.with_source(problem.source.take_draws(np.arange(least)))
        picks = choose(seeded(strategy), enough)
        require_valid(picks, BATCH, np.arange(16), f"from {least} draws ({kind} samples)")
        if least > 1:
            fewer = problem.with_source(problem.source.take_draws(np.arange(least - 1)))
            require_error(
                partial(choose, seeded(strategy), fewer),
                "draw",
                f"for {least - 1} draws, as by the tag min_draws={least}",
                "Estimates from too few draws are NaN or constant.",
            )


def check_weighted_draws(strategy: Any) -> None:
    """Check that draw weights count as repeated draws do, 0 as a missing draw, or raise, by name.

    Strategies for which equal draws are not the same as one, as they draw a label from each of
    them, need not treat weights like repetitions.
    """
    for kind in predicted_kinds(strategy):
        problem = samples_problem(strategy, kind)
        values = problem.source.values
        counts = np.random.default_rng(6).integers(0, 4, size=values.shape[1])
        weights = counts / counts.sum()
        weighted = problem.with_source(PredictionSamples(values, kind, weights=weights))
        try:
            picks = choose(seeded(strategy), weighted)
        except ValueError as err:
            require(
                "weight" in str(err),
                f"Expected an error that names the weights if they are not supported. Got: {err}.",
            )
            continue
        require_valid(picks, BATCH, np.arange(len(values)), f"from weighted {kind} samples")
        options = fixed_options(strategy, problem)
        if options is None or not _same_first_step(
            strategy, problem, _repeated(problem, np.full_like(counts, 2)), options
        ):
            continue
        explicit = _repeated(problem, counts)
        why = "Ensembles weight their members; without the weights the posterior is wrong."
        require(
            _same_first_step(strategy, weighted, explicit, options),
            f"Expected the utilities of repeated draws from weighted ones ({kind} samples). {why}",
        )
        if not has_ties(seeded(strategy), explicit, **options):
            picks = choose(seeded(strategy), weighted, **options)
            expected = choose(seeded(strategy), explicit, **options)
            what = f"from weights as from repeated draws ({kind} samples)"
            require_same(picks, expected, what, why)


def _repeated(problem: Problem, counts: np.ndarray) -> Problem:
    """Return a problem with repeated draws."""
    values = problem.source.values.repeat(counts, axis=1)
    return problem.with_source(PredictionSamples(values, problem.source.kind))


def _same_first_step(
    strategy: Any, problem: Problem, other: Problem, options: dict[str, Any]
) -> bool:
    """Return whether the utilities of the first step are the same, up to rounding."""
    ours, theirs = (
        choose(seeded(strategy), each, return_utilities=True, **options)[1][0]
        for each in (problem, other)
    )
    largest = np.nanmax(np.abs(theirs))
    return np.allclose(ours, theirs, rtol=1e-6, atol=1e-9 * largest, equal_nan=True)


def check_backends(strategy: Any) -> None:
    """Check that samples in torch tensors give the picks of those in numpy arrays."""
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    for kind in predicted_kinds(strategy):
        problem = samples_problem(strategy, kind)
        tensor = torch.tensor(np.array(problem.source.values))
        picks = choose(seeded(strategy), problem.with_source(PredictionSamples(tensor, kind)))
        require_valid(picks, BATCH, np.arange(16), f"from {kind} samples in torch")
        why = "The backend of the predictions must not matter."
        expected = choose(seeded(strategy), problem)
        require_same(picks, expected, f"from torch as from numpy ({kind} samples)", why)


def check_degenerate_predictions(strategy: Any) -> None:
    """Check that degenerate predictions give distinct picks and valid utilities."""
    for kind in predicted_kinds(strategy):
        usual = samples_problem(strategy, kind).source
        values = usual.values
        varied = {
            "equal rows": np.repeat(values[:1], 12, axis=0),
            "draws that all agree": np.repeat(values[:12, :1], values.shape[1], axis=1),
            "constant predictions": np.repeat(values[:1, :1], 12, 0).repeat(values.shape[1], 1),
            "a single point": values[:1],
        }
        if kind != "value":
            shape = (12, *values.shape[1:2], *((1,) if kind == "proba" else ()))
            varied["a single class"] = np.full(shape, 1 if kind == "proba" else 0)
        if kind == "proba":
            varied["certain predictions"] = np.eye(3)[np.argmax(values[:12], axis=2)]
        for name, values in varied.items():
            problem = with_rows(strategy, type(usual)(values, kind))
            size = min(BATCH, len(values))
            case = f"for {name} ({kind} samples)"
            (picks, rows), warned = recorded(
                partial(choose, seeded(strategy), problem, size, return_utilities=True)
            )
            require_valid(picks, size, np.arange(len(values)), case)
            strange = [category for category in warned if not issubclass(category, QueryWarning)]
            require(
                not strange,
                f"Expected no warning but a QueryWarning {case}. Got {strange}. Users treat "
                "warnings as errors, and 0/0 in a warning is NaN in a result.",
            )
            everything = np.ones(len(values), dtype=bool)
            gain = strategy.query_tags().utilities == "gain"
            require_rows(rows, picks, everything, gain, f"select {case}")


def check_ties(strategy: Any) -> None:
    """Check that among rows of equal utility the lowest position is picked."""
    if strategy.query_tags().utilities != "gain":
        return
    for kind in kinds(strategy):
        usual = samples_problem(strategy, kind)
        original = np.random.default_rng(5).permutation(np.repeat(np.arange(4), 4))
        problem = usual.take(original)
        everything = all_positions(strategy, len(original), 2 * BATCH)
        options = fixed_by(strategy, problem, everything, 2 * BATCH)
        if options is None:
            continue
        picks = choose(seeded(strategy), problem, 2 * BATCH, **options)
        for row in range(4):
            picked = picks[original[picks] == row]
            copies = np.flatnonzero(original == row)[: len(picked)]
            why = "Rounding must not decide between equal rows: picks would depend on the machine."
            require_same(
                picked, copies, f"among copies of one row ({kind} samples), lowest first", why
            )


def check_models(strategy: Any) -> None:
    """Check that models of every form that the tags include are supported."""
    tags = strategy.query_tags()
    problem = model_problem(strategy)
    rows, y = problem.X_labeled, problem.y_labeled
    models = {
        "a list of models": members(strategy),
        "a Pipeline": make_pipeline(StandardScaler(), problem.source).fit(rows, y),
    }
    if not reads(strategy, "draws", "gradients") and "proba" in tags.kinds:
        models["a classifier without draws"] = LogisticRegression().fit(rows, y)
    for name, model in models.items():
        picks = ask(seeded(strategy), problem.with_source(model))
        require_valid(picks, BATCH, np.arange(N_POOL), f"from {name} as the model")


def check_predictions_as_model(strategy: Any) -> None:
    """Check that a model, its draws and its samples give a strategy of draws the same picks."""
    if not reads(strategy, "draws"):
        return
    problem = model_problem(strategy)
    expected = ask(seeded(strategy), problem)
    samples = get_sampler(problem.source).sample(problem.X_pool)
    given = {
        "draws": (ask, get_sampler(problem.source).draw()),
        "a sampler": (ask, get_sampler(problem.source)),
        "PredictionSamples": (ask, samples),
        "select": (choose, samples),
    }
    for name, (call, source) in given.items():
        same = problem.with_source(source)
        why = "Saved predictions must give the same batch as the model."
        require_same(call(seeded(strategy), same), expected, f"from {name} as from the model", why)
