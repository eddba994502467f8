"""Checks of the strategy as an object: tags, signatures, parameters, copies, modAL's call."""

import pickle
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone

from sklearn_ical.samples import KINDS
from sklearn_ical.testing._data import (
    BATCH,
    N_POOL,
    Problem,
    ask,
    members,
    model_problem,
    reads,
    seeded,
)
from sklearn_ical.testing._require import require, require_same

READS = {"draws", "mean", "features", "gradients", "labeled", "refits"}
USES = {"reference", "labeled", "model"}
COMMON = (
    "batch_size",
    "candidates",
    "X_labeled",
    "y_labeled",
    "reference",
    "features",
    "labeled_features",
    "reference_features",
    "costs",
    "budget",
    "return_utilities",
)
ARGUMENTS = {
    "query": ("model", "X_pool", *COMMON, "X_reference"),
    "select": ("samples", *COMMON, "X_pool", "labeled_samples", "reference_samples"),
}


def check_tags(strategy: Any) -> None:
    """Check that `query_tags()` returns each tag with one of its legal values."""
    tags = strategy.query_tags()
    legal = {
        "deterministic": isinstance(tags.deterministic, bool),
        "utilities": tags.utilities in ("gain", "other"),
        "kinds": 0 < len(tags.kinds) and set(tags.kinds) <= set(KINDS),
        "reads": isinstance(tags.reads, tuple) and set(tags.reads) <= READS,
        "uses": isinstance(tags.uses, tuple) and set(tags.uses) <= USES,
        "min_draws": isinstance(tags.min_draws, int) and tags.min_draws >= 1,
        "max_pool": tags.max_pool is None
        or (isinstance(tags.max_pool, int) and tags.max_pool >= N_POOL),
    }
    for name, fits in legal.items():
        require(
            fits,
            f"Expected a legal value of the tag {name!r}. Got {getattr(tags, name)!r}. Tools read "
            f"tags instead of class names: kinds are {sorted(KINDS)}, reads {sorted(READS)}, uses "
            f"{sorted(USES)}, and pools of {N_POOL} rows must be allowed.",
        )


def check_signatures(strategy: Any) -> None:
    """Check that `query` and `select` take the arguments of the contract by name."""
    for method, names in ARGUMENTS.items():
        missing = [name for name in names if not _takes(getattr(strategy, method), name)]
        require(
            not missing,
            f"Expected {method} to take {', '.join(names)}. Got no {', '.join(missing)}. "
            "Strategies are interchangeable, so all get the same arguments and ignore those that "
            "they do not use, except for costs, which must raise.",
        )


def _takes(method: Callable[..., Any], name: str) -> bool:
    """Return whether an argument can be passed to a method by name."""
    try:
        signature(method).bind_partial(**{name: None})
    except TypeError:
        return False
    return True


def check_clone(strategy: Any) -> None:
    """Check that the constructor stores its parameters untouched, so that `clone` works."""
    copy = clone(strategy)
    ours, theirs = strategy.get_params(deep=False), copy.get_params(deep=False)
    require(
        type(copy) is type(strategy) and ours.keys() == theirs.keys(),
        f"Expected a clone with the parameters {sorted(ours)}. Got {sorted(theirs)}. Grid searches "
        "and simulations clone strategies.",
    )


def check_set_params(strategy: Any) -> None:
    """Check that `set_params(**get_params())` changes nothing and returns the strategy."""
    copy = clone(strategy)
    before = copy.get_params(deep=True)
    returned = copy.set_params(**before)
    after = copy.get_params(deep=True)
    changed = [name for name in before if after.get(name) is not before[name]]
    require(
        returned is copy and not changed and before.keys() == after.keys(),
        "Expected set_params(**get_params()) to return the strategy with unchanged parameters. "
        f"Got {returned!r}, with {changed} changed. Searches set parameters in this way.",
    )


def check_repr(strategy: Any) -> None:
    """Check that `repr` names the strategy."""
    name = type(strategy).__name__
    require(
        name in repr(strategy),
        f"Expected {name} in the repr. Got {strategy!r}. Logs and tables name strategies by it.",
    )


def check_pickle(strategy: Any) -> None:
    """Check that a pickled copy gives the results of the original."""
    original = seeded(strategy)
    copy = pickle.loads(pickle.dumps(original))
    problem = model_problem(strategy)
    why = "Interrupted experiments are resumed from pickles."
    require_same(ask(copy, problem), ask(original, problem), "from a pickled copy", why)


def check_call(strategy: Any) -> None:
    """Check that `strategy(learner, X_pool, n_instances)` works as a modAL strategy."""
    problem = model_problem(strategy)
    committee = members(strategy)
    learners = [_Learner(model, problem) for model in committee]
    cases = {
        "a modAL learner": (_Learner(problem.source, problem), problem.source),
        "a modAL committee": (_Committee(learners), committee),
    }
    if not reads(strategy, "labeled"):  # a bare model has no labeled rows
        cases["a model"] = (problem.source, problem.source)
    labeled = {"X_labeled": problem.X_labeled, "y_labeled": problem.y_labeled}
    tags = strategy.query_tags()
    takes_labeled = "labeled" in (*tags.reads, *tags.uses)
    for name, (given, source) in cases.items():
        options = labeled if takes_labeled and given is not problem.source else {}
        expected, rows = seeded(strategy).query(
            source, problem.X_pool, BATCH, return_utilities=True, **options
        )
        answer = seeded(strategy)(given, problem.X_pool, n_instances=BATCH)
        require(
            isinstance(answer, tuple) and len(answer) == 2,
            f"Expected (indices, utilities) from a call with {name}. Got {answer!r}. modAL unpacks "
            "two values.",
        )
        picks, utilities = answer
        why = "modAL users must get the result of query."
        require_same(picks, expected, f"from a call with {name} as from query", why)
        fits = np.shape(utilities) == (BATCH,)
        if fits and strategy.query_tags().utilities == "gain":
            fits = np.allclose(utilities, rows[np.arange(BATCH), picks], rtol=1e-9, atol=1e-12)
        require(
            fits,
            f"Expected the utility of each of {BATCH} picks at its step from a call with {name}. "
            f"Got {utilities!r}. modAL reports them beside the indices.",
        )


class _Learner:
    """The attributes by which modAL's ActiveLearner is recognized."""

    def __init__(self, estimator: Any, problem: Problem) -> None:
        self.estimator = estimator
        if hasattr(estimator, "predict_proba"):
            self.predict_proba = estimator.predict_proba
        self.X_training = problem.X_labeled
        self.y_training = problem.y_labeled

    def teach(self, X: Any, y: Any) -> None:
        """Fit on more rows; never to be called by a strategy."""
        raise AssertionError("Expected no call of teach. A strategy never changes the learner.")


class _Committee:
    """The attributes by which modAL's Committee is recognized."""

    def __init__(self, learners: list[_Learner]) -> None:
        self.learner_list = learners
