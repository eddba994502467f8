"""The active-learning loop as plain data: simulate, compare, stop early, resume."""

from sklearn_ical.simulation._compare import compare_strategies
from sklearn_ical.simulation._comparison import ComparisonResult, Estimate, Failure, Summary
from sklearn_ical.simulation._journal import read_checkpoint
from sklearn_ical.simulation._result import Round, SimulationResult
from sklearn_ical.simulation._simulate import simulate
from sklearn_ical.simulation._start import balanced_rows
from sklearn_ical.simulation._stopping import (
    OverallUncertainty,
    Patience,
    RoundState,
    StablePredictions,
    StoppingRule,
    TargetScore,
)

__all__ = [
    "ComparisonResult",
    "Estimate",
    "Failure",
    "OverallUncertainty",
    "Patience",
    "Round",
    "RoundState",
    "SimulationResult",
    "StablePredictions",
    "StoppingRule",
    "Summary",
    "TargetScore",
    "balanced_rows",
    "compare_strategies",
    "read_checkpoint",
    "simulate",
]
