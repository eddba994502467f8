"""Reference rows, which candidates are compared with: one set, or one for each step."""

import math
from typing import Any

import numpy as np

from sklearn_ical import _random
from sklearn_ical._typing import Integer
from sklearn_ical._validation import check_positions
from sklearn_ical.pool._pool import Pool


def reference_sets(query: Any, pool: Pool) -> np.ndarray:
    """Return the reference set of each step, given or drawn: (n_steps, r).

    Parameters
    ----------
    query : object
        Its `n_reference`, `step_size` and `resample`.
    pool : Pool
        The call; its reference positions are the sets where they are given.
    """
    n_rows, _ = _source(pool)
    if pool.reference_positions is not None:
        n_steps = math.ceil(pool.requested / query.step_size)
        return sets_of_steps(pool.reference_positions, n_steps, pool, "reference")
    n_steps = math.ceil(pool.batch_size / query.step_size)
    generator = _random.stream_generator(pool.root, _random.REFERENCE)
    size = min(query.n_reference, n_rows)

    def draw() -> np.ndarray:
        return generator.choice(n_rows, size, replace=False, shuffle=False)

    if not query.resample:
        return np.tile(draw(), (n_steps, 1))
    return np.stack([draw() for _ in range(n_steps)])


def sets_of_steps(positions: Any, n_steps: int, pool: Pool, name: str) -> np.ndarray:
    """Return the positions given for each step as an intp array (n_steps, r)."""
    n, what = _source(pool)
    array = check_positions(positions, n, name, pool.caller, what)
    if array.ndim != 2 or array.shape[1] == 0 or array.shape[0] != n_steps:
        raise ValueError(
            f"{name} must have shape (n_steps, r) with n_steps={n_steps} for this batch_size "
            f"and step_size, and r >= 1. Got shape {array.shape} in {pool.caller}."
        )
    return array


def reference_rows(pool: Pool, n_reference: Integer | None) -> np.ndarray:
    """Return the positions of the reference rows of the whole batch."""
    return one_set(pool, n_reference, pool.reference_positions)


def one_set(
    pool: Pool,
    n_rows: Integer | None,
    positions: Any,
    name: str = "reference",
    key: int = _random.REFERENCE,
) -> np.ndarray:
    """Return the single set of a batch: the given positions, `n_rows` drawn ones, or all rows."""
    n, what = _source(pool)
    if positions is not None:
        array = check_positions(positions, n, name, pool.caller, what)
        if array.ndim != 1 or len(array) == 0:
            raise ValueError(
                f"{name} must have shape (r,) with r >= 1: one set of positions for the whole "
                f"batch. Got shape {array.shape} in {pool.caller}."
            )
        return array
    if n_rows is None or n_rows >= n:
        return np.arange(n)
    return np.sort(_random.stream_generator(pool.root, key).choice(n, n_rows, replace=False))


def _source(pool: Pool) -> tuple[int, str]:
    """Return the number of rows that positions refer to, and their name."""
    return pool.compared.n_points, "the pool" if pool.reference is None else "the reference rows"
