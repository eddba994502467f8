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
    ask,
    choose,
    fixed_options,
    has_ties,
    members,
    model_problem,
    samples_problem,
    seeded,
    with_rows,
)
from sklearn_ical.testing._demand import (
    demand,
    demand_refusal,
    demand_rows,
    demand_same,
    demand_valid,
    recorded,
)

DTYPES: dict[Kind, tuple[type, ...]] = {
    "proba": (np.float64, np.float32, np.float16),
    "label": (np.int64, np.int32, np.int8, np.uint8),
    "value": (np.float64, np.float32, np.float16),
}


def check_kinds(strategy: Any) -> None:
    """Samples of the kinds in the tags work in every dtype; others are refused by name."""
    for kind, dtypes in DTYPES.items():
        values = samples_problem(strategy, kind).source.values
        for dtype in dtypes:
            problem = with_rows(strategy, PredictionSamples(values.astype(dtype), kind))
            if kind not in strategy.query_tags().kinds:
                demand_refusal(
                    partial(choose, seeded(strategy), problem),
                    kind,
                    f"for {kind} samples, which the tags leave out",
                    "A formula for other predictions gives numbers that mean nothing.",
                )
                continue
            picks = choose(seeded(strategy), problem)
            case = f"from {kind} samples of dtype {np.dtype(dtype)}"
            demand_valid(picks, BATCH, np.arange(len(values)), case)


def check_raw_probabilities(strategy: Any) -> None:
    """`select` takes an (n_points, n_draws, n_classes) array as probabilities, and no other."""
    if "proba" not in strategy.query_tags().kinds:
        return
    problem = samples_problem(strategy, "proba")
    values = problem.source.values
    raw = Problem(values, problem.X_pool, problem.X_labeled, problem.y_labeled)
    why = "Arrays are the shortest way from another package's model to a strategy."
    demand_same(
        choose(seeded(strategy), raw),
        choose(seeded(strategy), problem),
        "from an array of probabilities as from PredictionSamples",
        why,
    )
    deep = Problem(values[..., None], problem.X_pool, problem.X_labeled, problem.y_labeled)
    demand_refusal(
        partial(choose, seeded(strategy), deep),
        "shape",
        "for an array of four dimensions",
        "Which axis is which must never be guessed.",
    )


def check_min_draws(strategy: Any) -> None:
    """As many draws as the tag asks for are enough, and fewer are refused."""
    least = strategy.query_tags().min_draws
    for kind in strategy.query_tags().kinds:
        problem = samples_problem(strategy, kind)
        enough = problem.of_samples(problem.source.take_draws(np.arange(least)))
        picks = choose(seeded(strategy), enough)
        demand_valid(picks, BATCH, np.arange(16), f"from {least} draws ({kind} samples)")
        if least > 1:
            fewer = problem.of_samples(problem.source.take_draws(np.arange(least - 1)))
            demand_refusal(
                partial(choose, seeded(strategy), fewer),
                "draw",
                f"for {least - 1} draws, as the tag min_draws={least} says",
                "Estimates from too few draws are NaN or constant.",
            )


def check_weights(strategy: Any) -> None:
    """Draw weights count as repeated draws do, or are refused by name."""
    for kind in strategy.query_tags().kinds:
        problem = samples_problem(strategy, kind)
        values = problem.source.values
        counts = np.random.default_rng(6).integers(1, 4, size=values.shape[1])
        weights = counts / counts.sum()
        weighted = problem.of_samples(PredictionSamples(values, kind, weights=weights))
        explicit = problem.of_samples(PredictionSamples(values.repeat(counts, axis=1), kind))
        try:
            picks = choose(seeded(strategy), weighted)
        except ValueError as err:
            demand(
                "weight" in str(err),
                f"Expected an error that names the weights where they are refused. Got: {err}.",
            )
            continue
        demand_valid(picks, BATCH, np.arange(len(values)), f"from weighted {kind} samples")
        options = fixed_options(strategy, explicit)
        if options is not None and not has_ties(seeded(strategy), explicit, **options):
            demand_same(
                choose(seeded(strategy), weighted, **options),
                choose(seeded(strategy), explicit, **options),
                f"from weights as from repeated draws ({kind} samples)",
                "Ensembles weight their members; a weight left out is a wrong posterior.",
            )


def check_backends(strategy: Any) -> None:
    """Samples in torch tensors give the picks of the same samples in numpy arrays."""
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    for kind in strategy.query_tags().kinds:
        problem = samples_problem(strategy, kind)
        tensor = torch.tensor(np.array(problem.source.values))
        picks = choose(seeded(strategy), problem.of_samples(PredictionSamples(tensor, kind)))
        demand_valid(picks, BATCH, np.arange(16), f"from {kind} samples in torch")
        why = "Where the predictions were made says nothing about them."
        expected = choose(seeded(strategy), problem)
        demand_same(picks, expected, f"from torch as from numpy ({kind} samples)", why)


def check_degenerate_predictions(strategy: Any) -> None:
    """Predictions that leave nothing to choose by give distinct picks and finite utilities."""
    for kind in strategy.query_tags().kinds:
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
            demand_valid(picks, size, np.arange(len(values)), case)
            strange = [category for category in warned if not issubclass(category, QueryWarning)]
            demand(
                not strange,
                f"Expected no warning but a QueryWarning {case}. Got {strange}. Users treat "
                "warnings as errors, and 0/0 in a warning is NaN in a result.",
            )
            everything = np.ones(len(values), dtype=bool)
            gain = strategy.query_tags().utilities == "gain"
            demand_rows(rows, picks, everything, gain, f"select {case}")


def check_ties(strategy: Any) -> None:
    """Among equally useful rows the lowest position wins."""
    tags = strategy.query_tags()
    if not tags.deterministic or tags.utilities != "gain":
        return
    for kind in tags.kinds:
        usual = samples_problem(strategy, kind)
        original = np.random.default_rng(5).permutation(np.repeat(np.arange(4), 4))
        problem = usual.take(original)
        picks = choose(seeded(strategy), problem, 10)
        for row in range(4):
            mine = picks[original[picks] == row]
            copies = np.flatnonzero(original == row)[: len(mine)]
            why = "Rounding must not decide between equal rows: answers would differ by machine."
            demand_same(
                mine, copies, f"among copies of one row ({kind} samples), lowest first", why
            )


def check_models(strategy: Any) -> None:
    """Models of every form that the tags promise are understood."""
    tags = strategy.query_tags()
    problem = model_problem(strategy)
    rows, y = problem.X_labeled, problem.y_labeled
    models = {
        "a list of models": members(strategy, problem),
        "a Pipeline": make_pipeline(StandardScaler(), problem.source).fit(rows, y),
    }
    if not {"draws", "gradients"} & set(tags.needs) and "proba" in tags.kinds:
        models["a classifier without draws"] = LogisticRegression().fit(rows, y)
    if "nothing" in tags.needs:
        models["None"] = None
    for name, model in models.items():
        given = Problem(model, problem.X_pool, rows, y)
        picks = ask(seeded(strategy), given)
        demand_valid(picks, BATCH, np.arange(N_POOL), f"from {name} as the model")


def check_predictions_as_model(strategy: Any) -> None:
    """A model, its draws and its samples are one and the same to a strategy of draws."""
    needs = set(strategy.query_tags().needs)
    if "draws" not in needs:
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
        same = Problem(source, problem.X_pool, problem.X_labeled, problem.y_labeled)
        why = "Predictions saved to a file must give the batch that the model gives."
        demand_same(call(seeded(strategy), same), expected, f"from {name} as from the model", why)


def check_reference_rows(strategy: Any) -> None:
    """Rows to compare with are taken by every strategy, and ignored where of no use."""
    problem = model_problem(strategy)
    picks = ask(seeded(strategy), problem, X_reference=problem.X_labeled)
    demand_valid(picks, BATCH, np.arange(N_POOL), "from query with X_reference")
    for kind in strategy.query_tags().kinds:
        samples = samples_problem(strategy, kind)
        other = samples.source[np.arange(7)]
        picks = choose(seeded(strategy), samples, reference_samples=other)
        demand_valid(picks, BATCH, np.arange(16), f"from {kind} samples with reference_samples")
