"""Reference sets: the rows that each step compares the candidates with, given or drawn."""

import math
from typing import Any

import numpy as np

from sklearn_ical import _random
from sklearn_ical._validation import check_positions
from sklearn_ical.strategies._pool import Pool


class ReferenceSets:
    """The reference set of each step: given, or drawn from its own stream."""

    def __init__(self, query: Any, pool: Pool) -> None:
        source = pool.predictions if pool.reference is None else pool.reference
        n, what = source.n_points, "the pool" if pool.reference is None else "the reference rows"
        self.n_rows = n
        self.query = query
        self.depend_on_picks = query.exclude_selected and pool.reference is None
        self.generator = _random.stream_generator(pool.root, _random.REFERENCE)
        self.given: Any = pool.options.get("reference")
        n_steps = math.ceil(pool.requested / query.step_size)
        if self.given is not None:
            self.given = _check_reference(self.given, n_steps, n, pool.owner, what)
        elif not query.resample:
            drawn = self._draw(np.arange(n))
            self.given = np.tile(drawn, (n_steps, 1))
        elif not self.depend_on_picks:
            n_steps = math.ceil(pool.batch_size / query.step_size)
            self.given = np.stack([self._draw(np.arange(n)) for _ in range(n_steps)])

    def of_step(self, t: int, chosen: list[int]) -> np.ndarray:
        """Return the positions of step t, given what was chosen before."""
        if not self.depend_on_picks:
            return self.given[t]
        if self.given is None:
            return self._draw(np.setdiff1d(np.arange(self.n_rows), chosen))
        return self.given[t][~np.isin(self.given[t], chosen)]

    def _draw(self, rows: np.ndarray) -> np.ndarray:
        replace = self.query.replace
        size = self.query.n_reference if replace else min(self.query.n_reference, len(rows))
        return rows[self.generator.choice(len(rows), size, replace=replace, shuffle=False)]

    def needed(self) -> np.ndarray:
        """Return every position that some step may compare with, ascending."""
        return np.arange(self.n_rows) if self.given is None else np.unique(self.given)


def _check_reference(reference: Any, n_steps: int, n: int, owner: str, what: str) -> np.ndarray:
    """Return reference positions as an intp array (n_steps, r)."""
    array = check_positions(reference, n, "reference", owner, what)
    if array.ndim != 2 or array.shape[1] == 0 or array.shape[0] != n_steps:
        raise ValueError(
            f"reference must have shape (n_steps, r) with n_steps={n_steps} for this batch_size "
            f"and step_size, and r >= 1. Got shape {array.shape} in {owner}."
        )
    return array
