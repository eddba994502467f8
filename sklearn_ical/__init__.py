"""Query strategies for batch active learning on posterior prediction samples."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names of `__all__`, which are loaded on first use
    from sklearn_ical.learner import ActiveLearner
    from sklearn_ical.samples import PredictionSamples
    from sklearn_ical.simulation import (
        SimulationResult,
        compare_strategies,
        simulate,
    )
    from sklearn_ical.strategies import (
        BALDQuery,
        BaseQuery,
        BatchBALDQuery,
        BayesianCoresetQuery,
        CoreSetQuery,
        EPIGQuery,
        FarthestFirstQuery,
        FASSQuery,
        FilteredQuery,
        ICALCoverageQuery,
        ICALJointQuery,
        ICALPointwiseQuery,
        ICALQuery,
        ICALSequentialQuery,
        KernelBatchQuery,
        LeastConfidentQuery,
        LogDetQuery,
        MarginQuery,
        MaxEntropyQuery,
        MRMRQuery,
        RandomQuery,
        StochasticQuery,
        TypiClustQuery,
    )

from sklearn_ical._names import STRATEGIES as _STRATEGIES

__version__ = "0.1.0"

# Public names load on first use, so that importing the package costs next to nothing.
_LOCATIONS = {
    **dict.fromkeys((named.class_name for named in _STRATEGIES.values()), "strategies"),
    "ActiveLearner": "learner",
    "BaseQuery": "strategies",
    "PredictionSamples": "samples",
    "SimulationResult": "simulation",
    "compare_strategies": "simulation",
    "simulate": "simulation",
}

__all__ = [
    "ActiveLearner",
    "BALDQuery",
    "BaseQuery",
    "BatchBALDQuery",
    "BayesianCoresetQuery",
    "CoreSetQuery",
    "EPIGQuery",
    "FASSQuery",
    "FarthestFirstQuery",
    "FilteredQuery",
    "ICALCoverageQuery",
    "ICALJointQuery",
    "ICALPointwiseQuery",
    "ICALQuery",
    "ICALSequentialQuery",
    "KernelBatchQuery",
    "LeastConfidentQuery",
    "LogDetQuery",
    "MRMRQuery",
    "MarginQuery",
    "MaxEntropyQuery",
    "PredictionSamples",
    "RandomQuery",
    "SimulationResult",
    "StochasticQuery",
    "TypiClustQuery",
    "compare_strategies",
    "simulate",
]


if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error

    def __getattr__(name: str) -> Any:
        if name in _LOCATIONS:
            value = getattr(import_module(f"{__name__}.{_LOCATIONS[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
