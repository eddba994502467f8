"""The rows that are labeled from the start: balanced over the classes, or drawn at random."""

from typing import Any

import numpy as np


def balanced_rows(y: Any, n: int, random_state: int) -> np.ndarray:
    """Draw `n` rows at random, as equally from every class as possible.

    Parameters
    ----------
    y : array-like of shape (n_points,)
        Labels.
    n : int
        Rows to draw, at most n_points. A class with fewer rows than its share gives all it has.
    random_state : int
        Seed of the draw.

    Returns
    -------
    rows : intp array of shape (n,)
        Distinct positions in `y`; class counts differ by at most 1 where the classes allow it.
    """
    rng = np.random.default_rng(random_state)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    order = rng.permutation(len(codes))
    codes = rng.permutation(len(classes))[codes[order]]  # the class served first is random, too
    # How many rows of its own class come before a row.
    by_class = np.argsort(codes, kind="stable")
    ordered = codes[by_class]
    turn = np.empty(len(codes), dtype=np.intp)
    turn[by_class] = np.arange(len(codes)) - np.searchsorted(ordered, ordered)
    return order[np.lexsort((codes, turn))[:n]]
