"""Objectives of a batch, and the greedy maximizer of all of them."""

from typing import Any, Protocol

import numpy as np

from sklearn_ical.pool._pool import Pool
from sklearn_ical.selection._batch import Batch, Selection, default_error


class Objective(Protocol):
    """An objective of a batch: gains of candidates, given those added so far.

    A slot is an index into the candidates, ``pool.candidates[slot]`` its position in the pool.
    Besides the methods below, an objective may have

    - ``exact(slots)``: sortable scores of ascending slots that are free of rounding. They decide
      between gains within their errors; without it, such gains are equal.
    - ``restart()``: forget the picks so far. It is called once no gain is above `negligible`.
    - ``negligible``: the largest gain that counts as 0; 0.0 without it.
    """

    @property
    def submodular(self) -> bool:
        """Whether gains of this step bound those of later ones, so that few are evaluated.

        Once none is above 0, the rest of the batch is taken by position: for objectives that a
        pick may decrease, this must be False.
        """

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return the gain of each of ascending slots, and bounds of the rounding errors.

        Gains are finite float64 numbers on the host; errors one number or one for each slot, 0.0
        if exact, None for a few roundings of the largest gain.
        """

    def add(self, slot: int) -> None:
        """Add a candidate to the batch."""


def maximize(pool: Pool, objective: Objective) -> Selection:
    """Pick the candidate with the largest gain until the batch is full.

    Ties, costs, a budget, rows of utilities and lazy evaluation are handled. Once the best gain of
    a submodular objective, or of one that can restart, is not above 0, an objective that can
    restart does so; if there is no gain after that, the rest is taken in one step.

    Parameters
    ----------
    pool : Pool
        The call.
    objective : Objective
        Over the slots of `pool`, with nothing added yet.

    Returns
    -------
    selection : Selection

    Notes
    -----
    The greedy batch of a monotone submodular objective reaches at least 1 - 1/e of the largest
    value [1]_.

    References
    ----------
    .. [1] Nemhauser, Wolsey and Fisher, "An analysis of approximations for maximizing submodular
       set functions", Mathematical Programming, 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.pool import Pool
    >>> from sklearn_ical.selection import maximize
    >>> class Cover:
    ...     submodular = True
    ...     def __init__(self, sets):
    ...         self.sets, self.covered = sets, np.zeros(sets.shape[1], dtype=bool)
    ...     def gains(self, slots):
    ...         return (self.sets[slots] & ~self.covered).sum(axis=1).astype(float), 0.0
    ...     def add(self, slot):
    ...         self.covered |= self.sets[slot]
    >>> pool = Pool("cover", n_points=3, candidates=np.arange(3), requested=2, batch_size=2, root=0)
    >>> sets = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]], dtype=bool)
    >>> maximize(pool, Cover(sets)).positions
    array([1, 2])
    """
    run = _GreedySteps(pool, objective)
    while not run.batch.full:
        run.step()
    return run.batch.selection()


class _GreedySteps:
    """The steps of one call."""

    def __init__(self, pool: Pool, objective: Objective) -> None:
        self.batch = Batch(pool)
        self.objective = objective
        self.values = np.full(len(pool.candidates), np.inf)  # gains, or upper bounds of them
        self.errors = np.zeros(len(pool.candidates))
        self.n_added = 0  # since the start, or the last restart

    def step(self) -> None:
        """Take one candidate, or restart, or take the rest at once."""
        objective, batch, lazy = self.objective, self.batch, self.objective.submodular
        restart = getattr(objective, "restart", None)
        best = self._evaluate()
        spent = lazy and self.n_added > 0 and batch.utilities[-1] <= 0  # by exact scores
        if spent or (best <= self._negligible() and (lazy or restart is not None)):
            if restart is not None and self.n_added > 0:
                restart()
                self.values[:], self.n_added = np.inf, 0
                return
            n_left = int(batch.may_pick().sum())
            rest = np.zeros(len(self.values)) if lazy else self.values
            batch.take(rest, len(rest), errors=0.0 if lazy else self.errors)
            batch.some_equal |= lazy and n_left > 1
            return
        batch.take(self.values, errors=self.errors, exact=getattr(objective, "exact", None))
        if not batch.full:
            objective.add(batch.slots[-1])
            self.n_added += 1
        if not lazy:  # gains of this step do not bound later ones
            self.values[:] = np.inf

    def _negligible(self) -> float:
        return float(getattr(self.objective, "negligible", 0.0))

    def _evaluate(self) -> float:
        """Update gains as far as is needed for the best candidate, and return its gain."""
        if self.objective.submodular:
            return self.batch.refresh_bounds(self.values, self._gains, self.errors)
        self.values[:] = self._gains(np.arange(len(self.values)))
        return float(self.values[self.batch.may_pick()].max())

    def _gains(self, slots: np.ndarray) -> np.ndarray:
        values, errors = self.objective.gains(slots)
        errors = default_error(values) if errors is None else errors
        where = f"from {type(self.objective).__name__} in {self.batch.pool.caller}"
        if np.shape(values) != slots.shape or np.shape(errors) not in ((), slots.shape):
            raise ValueError(
                f"gains must return one gain for each of {len(slots)} slots, and one error for all "
                f"or for each. Got shapes {np.shape(values)} and {np.shape(errors)} {where}."
            )
        if not np.isfinite(values).all():
            raise ValueError(f"gains must be finite. Got NaN or infinity {where}.")
        if not (np.isfinite(errors) & np.greater_equal(errors, 0)).all():
            raise ValueError(f"Errors of gains must be finite and >= 0. Got {errors!r} {where}.")
        self.errors[slots] = errors
        return values
