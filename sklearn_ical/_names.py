"""The names of the strategies: one list of plain data, from which all others are made."""

from typing import NamedTuple


class Named(NamedTuple):
    """One strategy of the list.

    `name` is the name in strings and in the command, `module` a file of `sklearn_ical.strategies`.
    `parts` are the names of the strategies that a composite one is built from.
    """

    name: str
    class_name: str
    module: str
    parts: tuple[str, ...] = ()


STRATEGIES = {
    named.name: named
    for named in (
        Named("random", "RandomQuery", "_uncertainty"),
        Named("entropy", "MaxEntropyQuery", "_uncertainty"),
        Named("margin", "MarginQuery", "_uncertainty"),
        Named("least-confident", "LeastConfidentQuery", "_uncertainty"),
        Named("bald", "BALDQuery", "_uncertainty"),
        Named("batchbald", "BatchBALDQuery", "_batch_bald"),
        Named("power-bald", "StochasticQuery", "_stochastic", ("bald",)),
        Named("epig", "EPIGQuery", "_epig"),
        Named("logdet", "LogDetQuery", "_logdet"),
        Named("kernel-batch", "KernelBatchQuery", "_kernel_batch"),
        Named("fass", "FASSQuery", "_fass"),
        Named("bayesian-coreset", "BayesianCoresetQuery", "_bayesian_coreset"),
        Named("core-set", "CoreSetQuery", "_core_set"),
        Named("farthest-first", "FarthestFirstQuery", "_core_set"),
        Named("typiclust", "TypiClustQuery", "_typiclust"),
        Named("ical", "ICALQuery", "_ical"),
        Named("ical-pointwise", "ICALPointwiseQuery", "_ical_pointwise"),
        Named("ical-coverage", "ICALCoverageQuery", "_ical_coverage"),
        Named("ical-sequential", "ICALSequentialQuery", "_ical_sequential"),
        Named("ical-joint", "ICALJointQuery", "_ical_joint"),
        Named("mrmr", "MRMRQuery", "_mrmr"),
        Named("margin-ical", "FilteredQuery", "_filtered", ("margin", "ical")),
    )
}

# Names that are not supported, with what to pass instead.
REFUSED = {
    "coreset": "it is ambiguous: pass 'core-set' for CoreSetQuery, the k-center method, or "
    "'bayesian-coreset' for BayesianCoresetQuery",
    "filtered": "it needs strategies: pass 'margin-ical', or in Python an object such as "
    "FilteredQuery('margin', 'bald')",
    "stochastic": "it needs a strategy: pass 'power-bald', or in Python an object such as "
    "StochasticQuery('margin')",
}


def check_name(name: str, parameter: str, caller: str | None = None) -> None:
    """Raise if `name` is not the name of a strategy; `caller` is the function that got it."""
    if name in STRATEGIES:
        return
    got = f"Got {name!r}" + ("" if caller is None else f" in {caller}")
    if name in REFUSED:
        raise ValueError(f"{parameter} must be the name of one strategy. {got}; {REFUSED[name]}.")
    near = _near(name)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    raise ValueError(f"{parameter} must be one of {', '.join(STRATEGIES)}. {got}{hint}")


def _near(name: str) -> list[str]:
    """Return the names that a misspelled name, or the name of a class, may stand for."""
    from difflib import get_close_matches

    of_class = [named.name for named in STRATEGIES.values() if named.class_name == name]
    return of_class or get_close_matches(name.lower().replace("_", "-"), STRATEGIES, n=2)
