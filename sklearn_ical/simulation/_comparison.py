"""The result of a comparison: all runs, and their summary seed by seed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from sklearn_ical.simulation._result import SimulationResult, to_frame


@dataclass(frozen=True)
class Failure:
    """A run that ended in an error.

    Attributes
    ----------
    strategy, seed : str, int
        The run that failed.
    error, traceback : str
        The error's class and message, and its traceback.
    result : SimulationResult
        The rounds before the error.
    """

    strategy: str
    seed: int
    error: str
    traceback: str
    result: SimulationResult


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its standard error, NaN for a single seed."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Estimate":
        """Summarize an array of shape (n_seeds,)."""
        n = len(values)
        if n == 0:
            return cls(math.nan, math.nan)
        error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        return cls(float(np.mean(values)), error)

    def __format__(self, sign: str) -> str:
        error = "-" if math.isnan(self.error) else f"{self.error:.4f}"
        return f"{self.mean:{sign}.4f} ± {error}"

    def __str__(self) -> str:
        return format(self, "")


@dataclass(frozen=True)
class Summary:
    """Summary of the runs of one strategy in one metric.

    Attributes
    ----------
    strategy, metric : str
        Name of the strategy and of the metric; higher is better.
    n_runs : int
        Number of seeds whose run did not fail.
    final : Estimate
        The metric after the last round.
    area : Estimate
        Area under the curve of the metric over the cost of the labels, as its mean height, over the
        range that all strategies' runs of the same seed cover.
    difference : Estimate or None
        Area minus the baseline's area of the same seed; None for the baseline itself.
    wins, ties, losses : int
        Seeds whose area is above, equal to and below the baseline's; 0 for the baseline itself.
    """

    strategy: str
    metric: str
    n_runs: int
    final: Estimate
    area: Estimate
    difference: Estimate | None
    wins: int = 0
    ties: int = 0
    losses: int = 0

    def cells(self) -> tuple[str, ...]:
        """Return a line of a table.

        Returns
        -------
        cells : tuple of str
            Metric, strategy, runs, final, area, difference, and seeds won, tied and lost; "-"
            for the last two of the baseline.
        """
        difference = self.difference
        return (
            self.metric,
            self.strategy,
            str(self.n_runs),
            str(self.final),
            str(self.area),
            "-" if difference is None else f"{difference:+}",
            "-" if difference is None else f"{self.wins}/{self.ties}/{self.losses}",
        )


@dataclass(frozen=True)
class ComparisonResult:
    """All runs of a comparison; ``print(comparison)`` shows their summary.

    Read more in the :ref:`User Guide <compare_strategies>`.

    Attributes
    ----------
    results : dict of str to dict of int to SimulationResult
        ``results[strategy][seed]``; runs that failed are left out.
    failures : tuple of Failure
        The runs that failed.

    See Also
    --------
    sklearn_ical.compare_strategies : Returns it.
    sklearn_ical.plotting.LearningCurvesDisplay : Draws it.
    """

    results: Mapping[str, Mapping[int, SimulationResult]]
    failures: tuple[Failure, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, in the order of `scoring`."""
        runs = [result for of_seed in self.results.values() for result in of_seed.values()]
        return tuple(dict.fromkeys(name for result in runs for name in result.scores))

    def summarize(self, baseline: str | None = None) -> tuple[Summary, ...]:
        """Summarize the runs by means over seeds, compared seed by seed with a baseline.

        Parameters
        ----------
        baseline : str, default=None
            Name of the strategy that the others are compared with; None for the first one.

        Returns
        -------
        summaries : tuple of Summary
            All strategies for the first metric, then for the next one.
        """
        if baseline is None:
            baseline = next(iter(self.results))
        if baseline not in self.results:
            raise ValueError(
                f"baseline must be one of {', '.join(map(repr, self.results))}. Got {baseline!r} "
                "in ComparisonResult.summarize."
            )
        return tuple(
            self._summary(name, metric, baseline)
            for metric in self.metrics
            for name in self.results
        )

    def table(self, baseline: str | None = None) -> Any:
        """Return the summary as a pandas frame.

        Parameters
        ----------
        baseline : str, default=None
            As in :meth:`summarize`.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each metric and strategy: metric, strategy, n_runs, final, final_error,
            area, area_error, difference, difference_error, wins, ties, losses. Errors are
            standard errors over seeds.
        """
        nothing = Estimate(math.nan, math.nan)
        rows = []
        for s in self.summarize(baseline):
            row: dict[str, Any] = {"metric": s.metric, "strategy": s.strategy, "n_runs": s.n_runs}
            for name in ("final", "area", "difference"):
                estimate = getattr(s, name) or nothing
                row |= {name: estimate.mean, f"{name}_error": estimate.error}
            rows.append(row | {"wins": s.wins, "ties": s.ties, "losses": s.losses})
        return to_frame({name: [row[name] for row in rows] for name in (rows[0] if rows else ())})

    def to_frame(self) -> Any:
        """Return all rounds of all runs as a pandas frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each strategy, seed and round: strategy, seed, and the columns of
            :meth:`SimulationResult.to_frame`.
        """
        return to_frame(self.to_columns())

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the columns of :meth:`to_frame`, for use without pandas.

        Returns
        -------
        columns : dict of str to list
            All of one length.
        """
        runs = [
            (name, seed, len(result.rounds), result.to_columns())
            for name, of_seed in self.results.items()
            for seed, result in of_seed.items()
        ]
        # Columns that some runs lack are placed as in the others.
        names = dict.fromkeys(name for *_, columns in runs for name in columns)
        table: dict[str, list[Any]] = {"strategy": [], "seed": [], **{name: [] for name in names}}
        for strategy, seed, n_rounds, columns in runs:
            table["strategy"] += [strategy] * n_rounds
            table["seed"] += [seed] * n_rounds
            for name in names:
                table[name] += list(columns.get(name, [math.nan] * n_rounds))
        return table

    def __str__(self) -> str:
        header = ("metric", "strategy", "runs", "final", "area", "difference", "w/t/l")
        lines = [header, *(summary.cells() for summary in self.summarize())]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        failed = [f"failed: {f.strategy}, seed {f.seed}: {f.error}" for f in self.failures]
        return "\n".join([*rows, *failed])

    def _summary(self, name: str, metric: str, baseline: str) -> Summary:
        own, base = self._areas(name, metric), self._areas(baseline, metric)
        finals = [result.scores[metric][-1] for result in self.results[name].values()]
        summary = {
            "strategy": name,
            "metric": metric,
            "n_runs": len(finals),
            "final": Estimate.of(np.array(finals)),
            "area": Estimate.of(np.array(list(own.values()))),
        }
        if name == baseline:
            return Summary(**summary, difference=None)  # type: ignore[arg-type]
        pairs = np.array([own[seed] - base[seed] for seed in own if seed in base])
        return Summary(
            **summary,  # type: ignore[arg-type]
            difference=Estimate.of(pairs),
            wins=int((pairs > 0).sum()),
            ties=int((pairs == 0).sum()),
            losses=int((pairs < 0).sum()),
        )

    def _areas(self, name: str, metric: str) -> dict[int, float]:
        """Return the mean height of each seed's curve, over the range common to its strategies."""
        areas = {}
        for seed, result in self.results[name].items():
            costs = [of[seed].cost for of in self.results.values() if seed in of]
            first, last = max(c[0] for c in costs), min(c[-1] for c in costs)
            areas[seed] = _mean_height(result.cost, result.scores[metric], first, last)
        return areas


def _mean_height(x: np.ndarray, y: np.ndarray, first: float, last: float) -> float:
    """Return the mean of a piecewise linear curve from `first` to `last`."""
    if last <= first:
        return float(np.interp(last, x, y))
    inner = (x > first) & (x < last)
    ends = np.interp([first, last], x, y)
    at = np.concatenate([[first], x[inner], [last]])
    heights = np.concatenate([ends[:1], y[inner], ends[1:]])
    return float(trapezoid(heights, at) / (last - first))
