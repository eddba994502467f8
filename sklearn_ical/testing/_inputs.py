"""Checks of what goes in: containers of rows, and that nothing given is ever changed."""

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_ical.samples import PredictionSamples
from sklearn_ical.testing._data import (
    BATCH,
    N_LABELED,
    N_POOL,
    Problem,
    ask,
    choose,
    forest,
    members,
    model_problem,
    reference_sets,
    samples_problem,
    seeded,
    takes,
    targets,
)
from sklearn_ical.testing._demand import (
    demand,
    demand_global_generators,
    demand_same,
    demand_valid,
)


def check_sparse_pools(strategy: Any) -> None:
    """Sparse pools of any format give the picks of the dense pool."""
    problem = model_problem(strategy)
    expected = ask(seeded(strategy), problem)
    for form in (sparse.csr_matrix, sparse.csr_array, sparse.coo_array, sparse.csc_array):
        same = Problem(problem.source, form(problem.X_pool), problem.X_labeled, problem.y_labeled)
        why = "The model takes sparse rows, so the strategy has to."
        demand_same(ask(seeded(strategy), same), expected, f"from a {form.__name__} as dense", why)


def check_frames(strategy: Any) -> None:
    """Frames are rows by position, whatever their index says, and picks are positions."""
    expected = ask(seeded(strategy), model_problem(strategy))
    for name, convert in frames(["a", "b", "c", "d"]).items():
        picks = ask(seeded(strategy), model_problem(strategy, convert))
        why = "Index labels taken for positions label the wrong rows."
        demand_same(picks, expected, f"from {name} as from an array", why)


def frames(names: list[str]) -> dict[str, Callable[[np.ndarray], Any]]:
    """Return makers of frames of these columns, of the packages that are installed."""
    makers: dict[str, Callable[[np.ndarray], Any]] = {}
    if importlib.util.find_spec("pandas") is not None:
        import pandas as pd

        def indexed(index: Callable[[int], Any]) -> Callable[[np.ndarray], Any]:
            return lambda X: pd.DataFrame(X, columns=names, index=index(len(X)))

        shuffled = np.random.default_rng(7)
        makers["a pandas frame with a shuffled index"] = indexed(lambda n: shuffled.permutation(n))
        makers["a pandas frame with a repeated index"] = indexed(lambda n: np.arange(n) // 3)
        makers["a pandas frame with an index of text"] = indexed(
            lambda n: [f"r{i}" for i in range(n)]
        )
    if importlib.util.find_spec("polars") is not None:
        import polars as pl

        makers["a polars frame"] = lambda X: pl.DataFrame(X, schema=names)
    return makers


def check_mixed_frames(strategy: Any) -> None:
    """Frames of numbers and text work through a Pipeline that encodes them."""
    if "features" in strategy.query_tags().needs or importlib.util.find_spec("pandas") is None:
        return
    import pandas as pd

    rng = np.random.default_rng(8)
    n = N_LABELED + N_POOL
    X = rng.normal(size=(n, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=rng.permutation(n))
    frame["color"] = rng.choice(["red", "green", "blue"], size=n)
    encode = make_column_transformer((OneHotEncoder(), ["color"]), remainder="passthrough")
    labeled, pool = frame.iloc[:N_LABELED], frame.iloc[N_LABELED:]
    _check_pipeline(strategy, encode, labeled, pool, targets(strategy, X[:N_LABELED]))


def check_text(strategy: Any) -> None:
    """Lists of text work through a Pipeline that counts words."""
    if "features" in strategy.query_tags().needs:
        return
    rng = np.random.default_rng(9)
    words = np.array(["tree", "leaf", "root", "bark", "twig", "seed"])
    counts = rng.poisson(1.5, size=(N_LABELED + N_POOL, len(words)))
    texts = [" ".join(np.repeat(words, row)) for row in counts]
    y = targets(strategy, counts[:N_LABELED] / 2)
    _check_pipeline(strategy, CountVectorizer(), texts[:N_LABELED], texts[N_LABELED:], y)


def _check_pipeline(strategy: Any, transform: Any, labeled: Any, pool: Any, y: np.ndarray) -> None:
    """Demand the picks that the last step gives for transformed rows."""
    pipeline = make_pipeline(transform, forest(strategy)).fit(labeled, y)
    picks = ask(seeded(strategy), Problem(pipeline, pool, labeled, y))
    before = pipeline[:-1].transform
    inner = Problem(pipeline[-1], before(pool), before(labeled), y)
    why = "X_pool goes to the model unconverted; only the model knows how to read it."
    demand_same(picks, ask(seeded(strategy), inner), "from a Pipeline as from its last step", why)


def check_missing_values(strategy: Any) -> None:
    """Rows with NaN work where the model takes them."""
    if "features" in strategy.query_tags().needs:
        return
    problem = model_problem(strategy)
    pool = problem.X_pool.copy()
    pool[::3, 0] = np.nan
    gaps = Problem(problem.source, pool, problem.X_labeled, problem.y_labeled)
    picks = ask(seeded(strategy), gaps)
    demand_valid(picks, BATCH, np.arange(N_POOL), "from rows with NaN, which the model takes")


def check_lists(strategy: Any) -> None:
    """A pool as a list of rows gives the picks of the array."""
    problem = model_problem(strategy)
    rows = Problem(problem.source, problem.X_pool.tolist(), problem.X_labeled, problem.y_labeled)
    why = "The model takes lists, so the strategy has to."
    demand_same(
        ask(seeded(strategy), rows), ask(seeded(strategy), problem), "from a list as an array", why
    )


def check_inputs_unchanged(strategy: Any) -> None:
    """Nothing that the caller passes is changed; read-only arrays pass."""
    problem = model_problem(strategy)
    rows = {
        "X_pool": problem.X_pool,
        "X_labeled": problem.X_labeled,
        "y_labeled": problem.y_labeled,
    }
    options = {
        "candidates": np.arange(N_POOL)[::-1].copy(),
        "X_reference": problem.X_labeled.copy(),
    }
    if takes(strategy.query, "reference"):
        options["reference"] = reference_sets(strategy, N_LABELED)
    given = Problem(problem.source, **rows)
    _check_unchanged(partial(ask, seeded(strategy), given, **options), {**rows, **options}, "query")
    for kind in strategy.query_tags().kinds:
        usual = samples_problem(strategy, kind)
        values = np.array(usual.source.values)
        samples = PredictionSamples(values, kind)
        other = np.array(values[:7])
        options = {"candidates": np.arange(len(values))[::-1].copy()}
        arrays = {"samples": values, "reference_samples": other, **options}
        options["reference_samples"] = PredictionSamples(other, kind)
        _check_unchanged(
            partial(choose, seeded(strategy), usual.of_samples(samples), **options),
            arrays,
            f"select with {kind} samples",
        )


def _check_unchanged(call: Callable[[], Any], arrays: dict[str, np.ndarray], name: str) -> None:
    """Call with writeable, then with read-only arrays, and demand them bitwise as they were."""
    before = {key: array.copy() for key, array in arrays.items()}
    for writeable in (True, False):
        for array in arrays.values():
            array.flags.writeable = writeable
        call()
        changed = [key for key in arrays if arrays[key].tobytes() != before[key].tobytes()]
        demand(
            not changed,
            f"Expected the arrays given to {name} to stay as they are. Got changes in {changed}. "
            "The caller goes on to use them.",
        )


def check_model_unchanged(strategy: Any) -> None:
    """The model is the same after a query, bit for bit."""
    problem = model_problem(strategy)
    for model in (problem.source, members(strategy, problem)):
        before = joblib.hash(model)
        ask(seeded(strategy), Problem(model, problem.X_pool, problem.X_labeled, problem.y_labeled))
        demand(
            joblib.hash(model) == before,
            f"Expected the {type(model).__name__} to stay as it is. Got a changed one. A strategy "
            "never fits, and leaves no trace in what others use.",
        )


def check_strategy_unchanged(strategy: Any) -> None:
    """The strategy object is the same after a call: parameters, attributes."""
    problem = model_problem(strategy)
    asked = seeded(strategy)
    before = joblib.hash((asked.get_params(deep=True), vars(asked)))
    ask(asked, problem)
    ask(asked, problem, return_utilities=True)
    for kind in strategy.query_tags().kinds:
        choose(asked, samples_problem(strategy, kind))
    demand(
        joblib.hash((asked.get_params(deep=True), vars(asked))) == before,
        f"Expected the strategy to stay as it was. Got the attributes {sorted(vars(asked))}, some "
        "new or changed. A call that leaves traces changes the next answer.",
    )


def check_global_generators(strategy: Any) -> None:
    """The global generators of numpy, of Python and of torch stay as they are."""
    problem = model_problem(strategy)

    def asked() -> None:
        ask(seeded(strategy), problem)
        for kind in strategy.query_tags().kinds:
            choose(seeded(strategy), samples_problem(strategy, kind))

    demand_global_generators(asked, "a query")
