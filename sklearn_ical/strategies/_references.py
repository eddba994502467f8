"""Reference rows that candidates are compared with: one set, or one for each step."""

import math
from typing import Any

import numpy as np

from sklearn_ical import _random
from sklearn_ical._typing import Integer
from sklearn_ical._validation import check_positions
from sklearn_ical.strategies._pool import Pool


class ReferenceSets:
    """The reference set of each step: given, or drawn from its own stream.

    Parameters
    ----------
    query : object
        Its `n_reference`, `step_size`, `resample` and `replace`.
    pool : Pool
        The call; its option `reference` gives the sets.
    exclude_selected : bool
        Whether rows chosen before leave the sets.
    """

    def __init__(self, query: Any, pool: Pool, *, exclude_selected: bool = False) -> None:
        self.n_rows, _ = _source(pool)
        self.query = query
        self.depend_on_picks = exclude_selected and pool.reference is None
        self.generator = _random.stream_generator(pool.root, _random.REFERENCE)
        self.given: Any = pool.options.get("reference")
        n_steps = math.ceil(pool.requested / query.step_size)
        everything = np.arange(self.n_rows)
        if self.given is not None:
            self.given = sets_of_steps(self.given, n_steps, pool, "reference")
        elif not query.resample:
            self.given = np.tile(self._draw(everything), (n_steps, 1))
        elif not self.depend_on_picks:
            n_steps = math.ceil(pool.batch_size / query.step_size)
            self.given = np.stack([self._draw(everything) for _ in range(n_steps)])

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


def sets_of_steps(given: Any, n_steps: int, pool: Pool, name: str) -> np.ndarray:
    """Return the positions given for each step as an intp array (n_steps, r)."""
    n, what = _source(pool)
    array = check_positions(given, n, name, pool.owner, what)
    if array.ndim != 2 or array.shape[1] == 0 or array.shape[0] != n_steps:
        raise ValueError(
            f"{name} must have shape (n_steps, r) with n_steps={n_steps} for this batch_size "
            f"and step_size, and r >= 1. Got shape {array.shape} in {pool.owner}."
        )
    return array


def one_set(
    pool: Pool,
    n_rows: Integer | None,
    given: Any = None,
    name: str = "reference",
    key: int = _random.REFERENCE,
) -> np.ndarray:
    """Return the positions of the one set of a batch: those given, or drawn, or all for None."""
    n, what = _source(pool)
    if given is not None:
        array = check_positions(given, n, name, pool.owner, what)
        if array.ndim != 1 or len(array) == 0:
            raise ValueError(
                f"{name} must have shape (r,) with r >= 1: one set of positions for the whole "
                f"batch. Got shape {array.shape} in {pool.owner}."
            )
        return array
    if n_rows is None or n_rows >= n:
        return np.arange(n)
    return np.sort(_random.stream_generator(pool.root, key).choice(n, n_rows, replace=False))


def _source(pool: Pool) -> tuple[int, str]:
    """Return how many rows positions count, and what those are."""
    return pool.compared.n_points, "the pool" if pool.reference is None else "the reference rows"
