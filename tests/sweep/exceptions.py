"""Where a property does not hold by definition, and why."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.sweep.problems import Problem


def _parameters(problem: Problem) -> dict[str, Any]:
    """Return the parameters of the strategy and of its parts, by the last part of their names."""
    return problem.strategy().get_params(deep=True)


def _has(name: str, value: Any) -> Callable[[Problem], bool]:
    """Return whether the strategy or a part of it has a parameter of this value."""
    return lambda problem: any(
        key.split("__")[-1] == name and type(given) is type(value) and given == value
        for key, given in _parameters(problem).items()
    )


def _is(*names: str) -> Callable[[Problem], bool]:
    """Return whether the strategy or a part of it is of one of these classes."""
    return lambda problem: any(
        type(each).__name__ in names
        for each in [problem.strategy(), *_parameters(problem).values()]
    )


def _has_array(problem: Problem) -> bool:
    return any(isinstance(given, np.ndarray) for given in problem.setting.all_params.values())


def _draws_references(problem: Problem) -> bool:
    return _has("include_self", False)(problem) and "reference" not in problem.options


def _draws_labels(problem: Problem) -> bool:
    return problem.samples.kind == "proba" and _has("prediction", "sampled")(problem)


def _filters_ties(problem: Problem) -> bool:
    return problem.exact and _is("FilteredQuery", "FASSQuery")(problem)


def _expects_labels(problem: Problem) -> bool:
    return problem.samples.kind == "proba" and _has("prediction", "expected")(problem)


def _starts_at_random(problem: Problem) -> bool:
    starts = _is("FarthestFirstQuery")(problem) or _has("first", "random")(problem)
    return starts and "X_labeled" not in problem.options


EXCEPTIONS: list[tuple[str, Callable[[Problem], bool], str]] = [
    ("draws", _draws_labels, "labels are drawn for each draw"),
    ("draws", _expects_labels, "a kernel compares one label of each draw with itself"),
    ("draws", _has("n_configurations", 20), "configurations of labels are drawn"),
    ("draws", _has("n_projections", 5), "projections are the first draws"),
    ("copies", _draws_labels, "labels are drawn for each row"),
    ("copies", _is("RandomQuery", "StochasticQuery"), "random numbers of each row"),
    ("copies", _has("method", "kmeans++"), "random numbers of each row"),
    ("copies", _starts_at_random, "the first pick is random"),
    ("copies", _is("BayesianCoresetQuery"), "rows beyond the coreset are random"),
    ("copies", _has_array, "weights of each row"),
    ("copies", _draws_references, "rows are not compared with themselves, but with some copies"),
    ("order", _draws_labels, "labels are drawn for each row"),
    ("order", _has_array, "weights or positions of each row"),
    ("order", _filters_ties, "the filter breaks ties of distinct rows by position"),
    ("order", _is("TypiClustQuery"), "k-means depends on the order of the rows"),
]


def reason(name: str, problem: Problem) -> str | None:
    """Return why a property does not hold for a problem, None if it has to."""
    return next((why for of, applies, why in EXCEPTIONS if of == name and applies(problem)), None)
