"""The result of a simulation: one plain record for each round, and arrays over the rounds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Round:
    """One round of active learning: the labels bought and the scores of the model fitted on them.

    Two rounds are equal if everything but their wall times is.

    Attributes
    ----------
    positions : tuple of int
        Rows of `X` whose labels were bought for this round, in pick order; the initial rows in
        the first round.
    labels : tuple
        Their labels, as plain Python values.
    refused : tuple of int
        Rows whose labels were requested in this round and refused. They are not requested again.
    n_labeled : int
        Labels known to the model of this round.
    cost : float
        Total cost of these labels: their number if no costs were given.
    scores : dict of str to float
        Every metric of the model; higher is better, NaN where the metric is not defined.
    measures : dict of str to float
        Measures of the stopping rules, by their class names.
    fit_seconds, query_seconds : float
        Wall time of fitting the model and of choosing the rows (0 for the initial rows).
    """

    positions: tuple[int, ...]
    labels: tuple[Any, ...]
    refused: tuple[int, ...]
    n_labeled: int
    cost: float
    scores: Mapping[str, float]
    measures: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float = 0.0
    query_seconds: float = 0.0

    def __eq__(self, other: object) -> bool:
        return self._compared() == other._compared() if isinstance(other, Round) else NotImplemented

    def _compared(self) -> dict[str, Any]:
        """Return the values that decide equality, with every NaN as None."""
        kept = {k: v for k, v in vars(self).items() if k not in ("fit_seconds", "query_seconds")}
        for name in ("scores", "measures"):
            kept[name] = {k: None if math.isnan(v) else v for k, v in kept[name].items()}
        return kept


@dataclass(frozen=True)
class SimulationResult:
    """The rounds of one simulation, and the same as arrays.

    Two results are equal if everything but their wall times is.

    Read more in the :ref:`User Guide <simulate>`.

    Parameters
    ----------
    rounds : tuple of Round
        The first one was fitted on the initial rows.
    stopped : str
        Why the simulation ended, such as "n_rounds: 10 rounds are done"; empty where it was
        interrupted.
    random_state : int
        The root seed: a simulation with this `random_state` repeats this one.
    pending : tuple of (int, label)
        Labels bought after the last whole round, with their positions; only where the simulation
        was interrupted.

    Attributes
    ----------
    positions : intp array of shape (n_labeled,)
        Rows of `X` with a label, in the order they were bought.
    labels : array of shape (n_labeled,) or (n_labeled, n_outputs)
        Their labels.
    refused : intp array of shape (n_refused,)
        Rows of `X` whose labels were requested and refused.
    n_labeled : int array of shape (n_rounds,)
        Labels known to the model of each round.
    cost : float array of shape (n_rounds,)
        Total cost of these labels.
    scores, measures : dict of str to float array of shape (n_rounds,)
        Every metric, higher is better, and the measures of each stopping rule.
    fit_seconds, query_seconds : float array of shape (n_rounds,)
        Wall times of each round.

    See Also
    --------
    sklearn_ical.simulate : Returns it.
    """

    rounds: tuple[Round, ...]
    stopped: str
    random_state: int
    pending: tuple[tuple[int, Any], ...] = ()

    @property
    def positions(self) -> np.ndarray:
        """Rows of `X` with a label, in the order they were bought; intp, (n_labeled,)."""
        positions = [row for record in self.rounds for row in record.positions]
        return np.array([*positions, *(row for row, _ in self.pending)], dtype=np.intp)

    @property
    def labels(self) -> np.ndarray:
        """The labels of `positions`, (n_labeled,) or (n_labeled, n_outputs)."""
        labels = [label for record in self.rounds for label in record.labels]
        return np.array([*labels, *(label for _, label in self.pending)])

    @property
    def refused(self) -> np.ndarray:
        """Rows of `X` whose labels were requested and refused; intp, (n_refused,)."""
        return np.array([row for r in self.rounds for row in r.refused], dtype=np.intp)

    @property
    def n_labeled(self) -> np.ndarray:
        """Labels known to the model of each round; int, (n_rounds,)."""
        return np.array([r.n_labeled for r in self.rounds], dtype=int)

    @property
    def cost(self) -> np.ndarray:
        """Total cost of the labels of each round's model; float, (n_rounds,)."""
        return np.array([r.cost for r in self.rounds], dtype=float)

    @property
    def scores(self) -> dict[str, np.ndarray]:
        """Every metric over the rounds, (n_rounds,) each; higher is better."""
        return self._columns("scores")

    @property
    def measures(self) -> dict[str, np.ndarray]:
        """The measures of each stopping rule over the rounds, (n_rounds,) each."""
        return self._columns("measures")

    @property
    def fit_seconds(self) -> np.ndarray:
        """Wall time of fitting the model of each round, (n_rounds,)."""
        return np.array([r.fit_seconds for r in self.rounds], dtype=float)

    @property
    def query_seconds(self) -> np.ndarray:
        """Wall time of choosing the rows of each round, (n_rounds,); 0 for the initial rows."""
        return np.array([r.query_seconds for r in self.rounds], dtype=float)

    def to_frame(self) -> Any:
        """Return the rounds as a pandas frame.

        Returns
        -------
        frame : pandas.DataFrame
            One row for each round: round, n_labeled, n_refused (in this round), cost, the scores
            and measures by their names, fit_seconds, query_seconds, positions and labels (lists).
        """
        return to_frame(self.to_columns())

    def to_columns(self) -> dict[str, Any]:
        """Return the columns of :meth:`to_frame`, for use without pandas.

        Returns
        -------
        columns : dict of str to array or list
            Each of length n_rounds.
        """
        return {
            "round": np.arange(len(self.rounds)),
            "n_labeled": self.n_labeled,
            "n_refused": np.array([len(r.refused) for r in self.rounds], dtype=int),
            "cost": self.cost,
            **self.scores,
            **self.measures,
            "fit_seconds": self.fit_seconds,
            "query_seconds": self.query_seconds,
            "positions": [list(r.positions) for r in self.rounds],
            "labels": [list(r.labels) for r in self.rounds],
        }

    def _columns(self, what: str) -> dict[str, np.ndarray]:
        names = dict.fromkeys(name for r in self.rounds for name in getattr(r, what))
        return {
            name: np.array([getattr(r, what).get(name, math.nan) for r in self.rounds])
            for name in names
        }


def to_frame(columns: Mapping[str, Any]) -> Any:
    """Return columns as a pandas frame; raise if pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('to_frame requires pandas. Install it with "pip install pandas".') from (
            error
        )
    return pandas.DataFrame(dict(columns))
