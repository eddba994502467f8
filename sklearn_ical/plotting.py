"""Figures in scikit-learn's Display convention: they hold data, and draw it in `plot`.

matplotlib is imported only when something is drawn.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sklearn_ical.simulation import ComparisonResult, SimulationResult

# The colors of Okabe and Ito, for color-blind readers, and markers, for print without colors.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
MARKERS = "osD^vPX"


class LearningCurvesDisplay:
    """Learning curves of several strategies: the mean over seeds and a band of standard errors.

    Parameters
    ----------
    cost : array of shape (n_points,)
        Total cost of the labels, ascending: their number where no costs were given.
    scores : dict of str to array of shape (n_seeds, n_points)
        The metric of every seed by the strategy's name; NaN where a run has not begun or has
        ended.
    metric : str
        Name of the metric in `scores`.
    xlabel : str, default="labels bought"
        Label of the x-axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the curves, once `plot` was called.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    See Also
    --------
    sklearn_ical.compare_strategies : Runs strategies and returns what is drawn here.
    """

    def __init__(
        self,
        *,
        cost: np.ndarray,
        scores: Mapping[str, np.ndarray],
        metric: str,
        xlabel: str = "labels bought",
    ) -> None:
        self.cost = cost
        self.scores = scores
        self.metric = metric
        self.xlabel = xlabel

    @classmethod
    def from_results(
        cls,
        results: ComparisonResult | SimulationResult,
        *,
        metric: str | None = None,
        ax: Any = None,
    ) -> "LearningCurvesDisplay":
        """Draw one metric of what `compare_strategies` or `simulate` returned.

        Parameters
        ----------
        results : ComparisonResult or SimulationResult
            Runs of different lengths are interpolated between their rounds.
        metric : str, default=None
            What to draw; None for the first metric.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : LearningCurvesDisplay
            Already drawn.

        Raises
        ------
        ValueError
            If there is no such metric, or none at all.
        """
        if isinstance(results, SimulationResult):
            results = ComparisonResult({"simulate": {results.random_state: results}})
        if metric is None and results.metrics:
            metric = results.metrics[0]
        if metric not in results.metrics:
            raise ValueError(
                f"metric must be one of {results.metrics}. Got {metric!r} in "
                "LearningCurvesDisplay.from_results."
            )
        drawn = {name: list(of.values()) for name, of in results.results.items() if of}
        runs = [run for of_strategy in drawn.values() for run in of_strategy]
        cost = np.unique(np.concatenate([run.cost for run in runs]))
        scores = {
            name: np.stack([_on_grid(cost, run, metric) for run in of_strategy])
            for name, of_strategy in drawn.items()
        }
        counted = all(np.array_equal(run.cost, run.n_labeled) for run in runs)
        xlabel = "labels bought" if counted else "cost of the labels"
        return cls(cost=cost, scores=scores, metric=metric, xlabel=xlabel).plot(ax)

    def plot(self, ax: Any = None) -> "LearningCurvesDisplay":
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : LearningCurvesDisplay
            The object itself, with `ax_` and `figure_` set.
        """
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(layout="constrained")
        for i, (name, values) in enumerate(self.scores.items()):
            there = ~np.isnan(values).all(axis=0)
            x, values = self.cost[there], values[:, there]
            mean, n_seeds = np.nanmean(values, axis=0), np.sum(~np.isnan(values), axis=0)
            color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
            ax.plot(x, mean, color=color, marker=marker, markersize=5, label=name)
            if len(values) > 1:
                squares = np.nansum((values - mean) ** 2, axis=0)
                error = np.sqrt(squares / np.maximum(n_seeds - 1, 1) / n_seeds)
                band = {"color": color, "alpha": 0.15, "linewidth": 0}
                ax.fill_between(x, mean - error, mean + error, **band)
        ax.set(xlabel=self.xlabel, ylabel=self.metric.replace("_", " "))
        ax.grid(alpha=0.3)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _on_grid(cost: np.ndarray, run: SimulationResult, metric: str) -> np.ndarray:
    """Return a run's metric at every cost, NaN before its first and after its last round."""
    return np.interp(cost, run.cost, run.scores[metric], left=np.nan, right=np.nan)
