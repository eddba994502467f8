"""Checks of the strategy as an object: tags, signatures, parameters, copies, modAL's call."""

import pickle
from typing import Any

import numpy as np
from sklearn.base import clone

from sklearn_ical.testing._data import (
    BATCH,
    Problem,
    ask,
    members,
    model_problem,
    seeded,
    takes,
)
from sklearn_ical.testing._demand import demand, demand_same

KINDS = {"proba", "label", "value"}
NEEDS = {"nothing", "mean", "draws", "features", "labeled", "gradients"}
ARGUMENTS = {
    "query": (
        "batch_size",
        "candidates",
        "X_labeled",
        "y_labeled",
        "X_reference",
        "costs",
        "budget",
        "return_utilities",
    ),
    "select": (
        "batch_size",
        "candidates",
        "reference_samples",
        "costs",
        "budget",
        "return_utilities",
    ),
}


def check_tags(strategy: Any) -> None:
    """`query_tags()` returns each tag with one of its legal values."""
    tags = strategy.query_tags()
    legal = {
        "deterministic": isinstance(tags.deterministic, bool),
        "utilities": tags.utilities in ("gain", "other"),
        "kinds": 0 < len(tags.kinds) and set(tags.kinds) <= KINDS,
        "needs": 0 < len(tags.needs) and set(tags.needs) <= NEEDS,
        "min_draws": isinstance(tags.min_draws, int) and tags.min_draws >= 1,
    }
    for name, fits in legal.items():
        demand(
            fits,
            f"Expected a legal value of the tag {name!r}. Got {getattr(tags, name)!r}. Tools read "
            f"tags instead of class names: kinds are {sorted(KINDS)}, needs {sorted(NEEDS)}.",
        )


def check_signatures(strategy: Any) -> None:
    """`query` and `select` take the arguments of the contract by name."""
    for method, names in ARGUMENTS.items():
        missing = [name for name in names if not takes(getattr(strategy, method), name)]
        demand(
            not missing,
            f"Expected {method} to take {', '.join(names)}. Got no {', '.join(missing)}. Whoever "
            "swaps strategies calls them all alike; what a strategy has no use for, it ignores, "
            "except for costs: it refuses them.",
        )


def check_clone(strategy: Any) -> None:
    """The constructor stores its parameters untouched, so `clone` works."""
    copy = clone(strategy)
    ours, theirs = strategy.get_params(deep=False), copy.get_params(deep=False)
    demand(
        type(copy) is type(strategy) and ours.keys() == theirs.keys(),
        f"Expected a clone with the parameters {sorted(ours)}. Got {sorted(theirs)}. Grid searches "
        "and simulations clone strategies.",
    )


def check_set_params(strategy: Any) -> None:
    """`set_params(**get_params())` changes nothing and returns the strategy."""
    copy = clone(strategy)
    before = copy.get_params(deep=True)
    returned = copy.set_params(**before)
    after = copy.get_params(deep=True)
    changed = [name for name in before if after.get(name) is not before[name]]
    demand(
        returned is copy and not changed and before.keys() == after.keys(),
        f"Expected set_params(**get_params()) to return the strategy with its parameters as they "
        f"were. Got {returned!r}, with {changed} changed. Searches set parameters in this way.",
    )


def check_repr(strategy: Any) -> None:
    """`repr` tells which strategy it is."""
    name = type(strategy).__name__
    demand(
        name in repr(strategy),
        f"Expected {name} in the repr. Got {strategy!r}. Logs and tables name strategies by it.",
    )


def check_pickle(strategy: Any) -> None:
    """A pickled copy gives the answers of the original."""
    original = seeded(strategy)
    copy = pickle.loads(pickle.dumps(original))
    problem = model_problem(strategy)
    why = "Interrupted experiments are resumed from pickles."
    demand_same(ask(copy, problem), ask(original, problem), "from a pickled copy", why)


def check_call(strategy: Any) -> None:
    """`strategy(learner, X_pool, n_instances)` is a modAL strategy, for learners and committees."""
    problem = model_problem(strategy)
    committee = members(strategy, problem)
    learners = [_Learner(model, problem) for model in committee]
    cases = {
        "a modAL learner": (_Learner(problem.source, problem), problem.source),
        "a modAL committee": (_Committee(learners), committee),
    }
    if "labeled" not in strategy.query_tags().needs:  # a bare model has no labeled rows
        cases["a model"] = (problem.source, problem.source)
    for name, (given, source) in cases.items():
        expected, rows = ask(
            seeded(strategy),
            Problem(source, problem.X_pool, problem.X_labeled, problem.y_labeled),
            return_utilities=True,
        )
        answer = seeded(strategy)(given, problem.X_pool, n_instances=BATCH)
        demand(
            isinstance(answer, tuple) and len(answer) == 2,
            f"Expected (indices, utilities) from a call with {name}. Got {answer!r}. modAL unpacks "
            "two values.",
        )
        picks, utilities = answer
        why = "modAL users get what query gives."
        demand_same(picks, expected, f"from a call with {name} as from query", why)
        fits = np.shape(utilities) == (BATCH,)
        if fits and strategy.query_tags().utilities == "gain":
            fits = np.allclose(utilities, rows[np.arange(BATCH), picks], rtol=1e-9, atol=1e-12)
        demand(
            fits,
            f"Expected the utility of each of {BATCH} picks at its step from a call with {name}. "
            f"Got {utilities!r}. modAL reports them beside the indices.",
        )


class _Learner:
    """The attributes of modAL's ActiveLearner that tell what it is."""

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
    """The attributes of modAL's Committee that tell what it is."""

    def __init__(self, learners: list[_Learner]) -> None:
        self.learner_list = learners
