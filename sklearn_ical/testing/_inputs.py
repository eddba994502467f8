"""Checks of inputs: containers of rows, and that arguments are never changed."""

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
    kinds,
    members,
    model_problem,
    reads,
    reference_positions,
    samples_problem,
    seeded,
    targets,
    with_features,
)
from sklearn_ical.testing._require import (
    require,
    require_global_generators,
    require_same,
    require_valid,
)


def check_sparse_pools(strategy: Any) -> None:
    """Check that sparse pools of any format give the picks of the dense pool."""
    problem = model_problem(strategy)
    expected = ask(seeded(strategy), problem)
    for form in (sparse.csr_matrix, sparse.csr_array, sparse.coo_array, sparse.csc_array):
        same = problem.with_rows(form(problem.X_pool), form(problem.X_labeled))
        why = "The model accepts sparse rows, so the strategy must, too."
        require_same(ask(seeded(strategy), same), expected, f"from a {form.__name__} as dense", why)


def check_frames(strategy: Any) -> None:
    """Check that frames are rows by position, whatever their index, and picks are positions."""
    expected = ask(seeded(strategy), model_problem(strategy))
    for name, convert in frames(["a", "b", "c", "d"]).items():
        picks = ask(seeded(strategy), model_problem(strategy, convert))
        why = "Index labels used as positions select the wrong rows."
        require_same(picks, expected, f"from {name} as from an array", why)


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
    """Check that frames of numbers and text work through a Pipeline that encodes them."""
    if importlib.util.find_spec("pandas") is None:
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
    """Check that lists of text work through a Pipeline that counts words."""
    rng = np.random.default_rng(9)
    words = np.array(["tree", "leaf", "root", "bark", "twig", "seed"])
    counts = rng.poisson(1.5, size=(N_LABELED + N_POOL, len(words)))
    texts = [" ".join(np.repeat(words, row)) for row in counts]
    y = targets(strategy, counts[:N_LABELED] / 2)
    _check_pipeline(strategy, CountVectorizer(), texts[:N_LABELED], texts[N_LABELED:], y)


def _check_pipeline(strategy: Any, transform: Any, labeled: Any, pool: Any, y: np.ndarray) -> None:
    """Raise if picks differ from those that the last step gives for transformed rows."""
    pipeline = make_pipeline(transform, forest(strategy)).fit(labeled, y)
    before = pipeline[:-1].transform
    features = {}
    if reads(strategy, "features"):  # only numbers can be features
        features = with_features(strategy, before(pool), before(labeled))
    picks = ask(seeded(strategy), Problem(pipeline, pool, labeled, y), **features)
    inner = Problem(pipeline[-1], before(pool), before(labeled), y)
    expected = ask(seeded(strategy), inner, **features)
    why = "X_pool is passed to the model unconverted; only the model can interpret it."
    require_same(picks, expected, "from a Pipeline as from its last step", why)


def check_missing_values(strategy: Any) -> None:
    """Check that rows with NaN work if the model accepts them."""
    if reads(strategy, "features"):
        return
    problem = model_problem(strategy)
    pool = problem.X_pool.copy()
    pool[::3, 0] = np.nan
    picks = ask(seeded(strategy), problem.with_rows(pool, problem.X_labeled))
    require_valid(picks, BATCH, np.arange(N_POOL), "from rows with NaN, which the model takes")


def check_lists(strategy: Any) -> None:
    """Check that a pool as a list of rows gives the picks of the array."""
    problem = model_problem(strategy)
    rows = problem.with_rows(problem.X_pool.tolist(), problem.X_labeled)
    why = "The model accepts lists, so the strategy must, too."
    require_same(
        ask(seeded(strategy), rows), ask(seeded(strategy), problem), "from a list as an array", why
    )


def check_inputs_unchanged(strategy: Any) -> None:
    """Check that arguments are not changed, and read-only arrays are accepted."""
    problem = model_problem(strategy)
    rows = {
        "X_pool": problem.X_pool,
        "X_labeled": problem.X_labeled,
        "y_labeled": problem.y_labeled,
    }
    options = {
        "candidates": np.arange(N_POOL)[::-1].copy(),
        "X_reference": problem.X_labeled.copy(),
        "reference": reference_positions(strategy, N_LABELED),
    }
    given = Problem(problem.source, **rows)
    _check_unchanged(partial(ask, seeded(strategy), given, **options), {**rows, **options}, "query")
    for kind in kinds(strategy):
        usual = samples_problem(strategy, kind)
        values = np.array(usual.source.values)
        samples = PredictionSamples(values, kind)
        other = np.array(values[:7])
        options = {"candidates": np.arange(len(values))[::-1].copy()}
        arrays = {"samples": values, "reference_samples": other, **options}
        options["reference_samples"] = PredictionSamples(other, kind)
        _check_unchanged(
            partial(choose, seeded(strategy), usual.with_source(samples), **options),
            arrays,
            f"select with {kind} samples",
        )


def _check_unchanged(call: Callable[[], Any], arrays: dict[str, np.ndarray], name: str) -> None:
    """Call with writeable, then with read-only arrays; raise if any of them changed."""
    before = {key: array.copy() for key, array in arrays.items()}
    for writeable in (True, False):
        for array in arrays.values():
            array.flags.writeable = writeable
        call()
        changed = [key for key in arrays if arrays[key].tobytes() != before[key].tobytes()]
        require(
            not changed,
            f"Expected unchanged arrays after {name}. Got changes in {changed}. The caller may "
            "still use them.",
        )


def check_model_unchanged(strategy: Any) -> None:
    """Check that the model is unchanged after a query, bitwise."""
    problem = model_problem(strategy)
    for model in (problem.source, members(strategy)):
        before = joblib.hash(model)
        ask(seeded(strategy), problem.with_source(model))
        require(
            joblib.hash(model) == before,
            f"Expected the {type(model).__name__} to be unchanged. Got a changed one. A strategy "
            "must never fit or change the caller's model.",
        )


def check_strategy_unchanged(strategy: Any) -> None:
    """Check that a call changes neither parameters nor attributes of the strategy."""
    problem = model_problem(strategy)
    asked = seeded(strategy)
    before = joblib.hash((asked.get_params(deep=True), vars(asked)))
    ask(asked, problem)
    ask(asked, problem, return_utilities=True)
    for kind in kinds(strategy):
        choose(asked, samples_problem(strategy, kind))
    require(
        joblib.hash((asked.get_params(deep=True), vars(asked))) == before,
        f"Expected an unchanged strategy. Got the attributes {sorted(vars(asked))}, some new or "
        "changed. A call that changes the strategy changes later results.",
    )


def check_global_generators(strategy: Any) -> None:
    """Check that the global generators of numpy, Python and torch are unchanged."""
    problem = model_problem(strategy)

    def asked() -> None:
        ask(seeded(strategy), problem)
        for kind in kinds(strategy):
            choose(seeded(strategy), samples_problem(strategy, kind))

    require_global_generators(asked, "a query")
