"""Figures in scikit-learn's Display convention: they hold data, and draw it in `plot`.

matplotlib is imported only when something is drawn.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sklearn_ical.simulation import Curves, scores

# The colors of Okabe and Ito, for color-blind readers, and markers, for print without colors.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
TITLES = {"accuracy": "accuracy", "nll": "NLL (nats)"}


class LearningCurvesDisplay:
    """Learning curves of several strategies: the mean over seeds and a band of standard errors.

    Parameters
    ----------
    n_labeled : array of shape (n_rounds,)
        Labels bought in total, round by round.
    scores : dict of str to array of shape (n_seeds, n_rounds)
        The metric of every seed and round by the strategy's name.
    metric : {"accuracy", "nll"}
        What `scores` hold.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the curves are, once `plot` was called.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    See Also
    --------
    sklearn_ical.simulation.learning_curves : Runs strategies and returns their curves.
    """

    def __init__(
        self, *, n_labeled: np.ndarray, scores: Mapping[str, np.ndarray], metric: str
    ) -> None:
        self.n_labeled = n_labeled
        self.scores = scores
        self.metric = metric

    @classmethod
    def from_results(
        cls, curves: Curves, *, metric: str = "accuracy", ax: Any = None
    ) -> "LearningCurvesDisplay":
        """Draw one metric of the curves that `learning_curves` returned.

        Parameters
        ----------
        curves : dict of str to dict of int to tuple of Round
            ``curves[name][seed]``; all of them with the same numbers of labels.
        metric : {"accuracy", "nll"}, default="accuracy"
            What to draw.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : LearningCurvesDisplay
            Already drawn.
        """
        if metric not in TITLES:
            raise ValueError(
                f"metric must be one of {tuple(TITLES)}. Got {metric!r} in "
                "LearningCurvesDisplay.from_results."
            )
        n_labeled = scores(next(iter(curves.values())), "n_labeled")[0]
        values = {name: scores(of_seed, metric) for name, of_seed in curves.items()}
        return cls(n_labeled=n_labeled, scores=values, metric=metric).plot(ax)

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
            mean, n_seeds = values.mean(axis=0), len(values)
            color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
            ax.plot(self.n_labeled, mean, color=color, marker=marker, markersize=5, label=name)
            if n_seeds > 1:
                error = values.std(axis=0, ddof=1) / np.sqrt(n_seeds)
                ax.fill_between(
                    self.n_labeled, mean - error, mean + error, color=color, alpha=0.15, linewidth=0
                )
        ax.set(xlabel="labels bought", ylabel=f"test {TITLES[self.metric]}")
        ax.grid(alpha=0.3)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
