"""Checks of features that are passed with a call, for strategies that read features."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical.exceptions import QueryWarning
from sklearn_ical.testing._data import (
    BATCH,
    Problem,
    choose,
    kinds,
    precomputed_features,
    reads,
    reads_predictions,
    samples_problem,
    seeded,
    uses,
    with_features,
)
from sklearn_ical.testing._inputs import frames
from sklearn_ical.testing._require import (
    recorded,
    require,
    require_error,
    require_rows,
    require_same,
    require_valid,
)


def check_precomputed_features(strategy: Any) -> None:
    """Check that features of the call are used instead of the rows and a parameter."""
    if not reads(strategy, "features"):
        return
    problem, features, labeled = _problem(strategy)
    expected = choose(
        seeded(_without_parameter(strategy, None)), problem.with_rows(features, labeled)
    )
    picks = choose(seeded(strategy), problem, **with_features(strategy, features, labeled))
    why = "Precomputed embeddings of the rows should not be computed again."
    require_same(picks, expected, "from features as from rows that hold the same numbers", why)
    deaf = seeded(_without_parameter(strategy, _never))
    picks = choose(deaf, problem, **with_features(strategy, features, labeled))
    require_same(picks, expected, "whatever the parameter features", why)


def _without_parameter(strategy: Any, value: Any) -> Any:
    """Return a clone with another value of each parameter `features`, also of nested strategies."""
    copy = seeded(strategy)
    names = [name for name in copy.get_params() if name.split("__")[-1] == "features"]
    return copy.set_params(**dict.fromkeys(names, value))


def _never(X: Any) -> Any:
    raise AssertionError(
        "Expected no call of the parameter features. Got one, with features= in the call. "
        "Arguments of a call take precedence."
    )


def check_feature_containers(strategy: Any) -> None:
    """Check that features in any container and of any precision give the same picks."""
    if not reads(strategy, "features"):
        return
    problem, features, labeled = _problem(strategy)
    expected = choose(seeded(strategy), problem, **with_features(strategy, features, labeled))
    for name, convert in _containers().items():
        options = with_features(strategy, convert(features), convert(labeled))
        picks = choose(seeded(strategy), problem, **options)
        why = "The numbers are the same, and embeddings are often stored in half precision."
        require_same(picks, expected, f"from features as {name} as in float64", why)


def _containers() -> dict[str, Callable[[np.ndarray], Any]]:
    def read_only(X: np.ndarray) -> np.ndarray:
        copy = X.copy()
        copy.flags.writeable = False
        return copy

    formats = (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array)
    dtypes = (np.float16, np.float32)
    return {
        **{f"an array of {dtype.__name__}": lambda X, dtype=dtype: X.astype(dtype)
           for dtype in dtypes},
        "an array in Fortran order": np.asfortranarray,
        "a read-only array": read_only,
        "a list": np.ndarray.tolist,
        **{f"a {form.__name__}": form for form in formats},
        **frames(["a", "b", "c"]),
    }  # fmt: skip


def check_bad_features(strategy: Any) -> None:
    """Check that invalid features, and missing ones of labeled rows, raise."""
    if not reads(strategy, "features"):
        return
    problem, features, labeled = _problem(strategy)
    why = "Wrong features would give a wrong batch without any sign of it."
    for name, bad in _bad(features).items():
        call = partial(choose, seeded(strategy), problem, **with_features(strategy, bad, labeled))
        require_error(call, "features", f"for features {name}", why)
    if reads_predictions(strategy) or not uses(strategy, "labeled"):
        return  # whether features of labeled rows are read is not in the tags
    missing = partial(choose, seeded(strategy), problem, features=features)
    require_error(missing, "labeled_features", "for features without labeled_features", why)
    for name, bad in {**_bad(labeled), "of another width": labeled[:, :2]}.items():
        options = {"features": features, "labeled_features": bad}
        call = partial(choose, seeded(strategy), problem, **options)
        require_error(call, "labeled_features", f"for labeled_features {name}", why)


def _bad(features: np.ndarray) -> dict[str, Any]:
    """Return invalid features."""
    spoiled = np.zeros_like(features)
    spoiled[3, 1] = 1
    return {
        "with a NaN": np.where(spoiled, np.nan, features),
        "with an infinity": np.where(spoiled, np.inf, features),
        "of fewer rows": features[:-1],
        "of text": features.astype(str),
    }


def check_degenerate_features(strategy: Any) -> None:
    """Check that degenerate features give distinct picks and valid utilities."""
    if not reads(strategy, "features"):
        return
    usual = samples_problem(strategy, kinds(strategy)[0])
    features, labeled = precomputed_features(len(usual.X_pool))
    varied = {
        "equal rows": np.repeat(features[:1], len(features), axis=0),
        "rows of zeros": np.zeros_like(features),
        "two distinct rows": np.resize(features[:2], features.shape),
        "a single row": features[:1],
    }
    for name, X in varied.items():
        problem = usual.take(np.arange(len(X)))
        options = with_features(strategy, X, labeled)
        size = min(BATCH, len(X))
        call = partial(choose, seeded(strategy), problem, size, return_utilities=True, **options)
        (picks, rows), warned = recorded(call)
        require_valid(picks, size, np.arange(len(X)), f"for features of {name}")
        strange = [category for category in warned if not issubclass(category, QueryWarning)]
        require(
            not strange,
            f"Expected no warning but a QueryWarning for features of {name}. Got {strange}. Users "
            "treat warnings as errors, and 0/0 in a warning is NaN in a result.",
        )
        gain = strategy.query_tags().utilities == "gain"
        everything = np.ones(len(X), dtype=bool)
        require_rows(rows, picks, everything, gain, f"select for features of {name}")


def _problem(strategy: Any) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Return samples, if any are read, with features of the pool and of the labeled rows."""
    problem = samples_problem(strategy, kinds(strategy)[0])
    return problem, *precomputed_features(len(problem.X_pool))
