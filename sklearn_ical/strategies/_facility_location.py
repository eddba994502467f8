"""Facility location for an explicit similarity: an array function."""

import sys
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import Integer
from sklearn_ical._validation import clip_batch_size
from sklearn_ical.objectives._coverage import MatrixCoverage
from sklearn_ical.pool._pool import Pool
from sklearn_ical.selection._maximize import maximize


def facility_location(similarity: Array, batch_size: Integer = 1) -> tuple[np.ndarray, np.ndarray]:
    """Choose columns that together are similar to all rows, greedily.

    The objective is f(S) = sum over rows i of max over s in S of similarity[i, s], 0 for no
    column at all: monotone and submodular, so the greedy batch reaches at least 1 - 1/e of the
    best one's value [1]_.

    Read more in the :ref:`User Guide <fass>`.

    Parameters
    ----------
    similarity : array of shape (n_reference, n_candidates)
        How well each candidate represents each reference row, finite and >= 0. Not modified.
    batch_size : int, default=1
        Number of candidates to choose; all, with a warning, if there are fewer.

    Returns
    -------
    indices : intp array of shape (n_picks,)
        Distinct columns, in pick order, on the host. Ties go to the lowest.
    gains : float64 array of shape (n_picks,)
        Increase of f by each pick, in the unit of `similarity`, never growing. Their running sum is
        f of the batch so far.

    Raises
    ------
    TypeError
        If `similarity` is not a real array, or `batch_size` not an integer.
    ValueError
        If `similarity` does not have two axes with entries, or has negative or not finite ones.

    See Also
    --------
    FASSQuery : Facility location on the features of uncertain rows.

    Notes
    -----
    Lazy greedy [2]_: gains never grow, so those of earlier steps bound those of later ones and few
    have to be recomputed. Cost O(n_reference n_candidates), and n_reference for each recomputed
    gain. Sums are in float64, of columns in chunks; numpy arrays are copied once unless their
    columns are contiguous (``order="F"``).

    References
    ----------
    .. [1] Nemhauser, Wolsey and Fisher, "An analysis of approximations for maximizing submodular
       set functions", Mathematical Programming, 1978.
    .. [2] Minoux, "Accelerated greedy algorithms for maximizing submodular set functions",
       Optimization Techniques, 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.strategies import facility_location
    >>> x = np.array([0.0, 1.0, 2.0, 10.0])
    >>> facility_location(100 - (x[:, None] - x) ** 2, batch_size=2)
    (array([2, 3]), array([331.,  64.]))
    """
    caller = "facility_location"
    _check_similarity(similarity, caller)
    n_candidates = similarity.shape[1]
    n_picks = clip_batch_size(batch_size, n_candidates, caller)
    pool = Pool(
        caller=caller,
        n_points=n_candidates,
        candidates=np.arange(n_candidates),
        requested=int(batch_size),
        batch_size=n_picks,
        root=0,
    )
    columns = _array.namespace(similarity).matrix_transpose(similarity)
    columns = np.ascontiguousarray(columns) if _array.is_numpy(columns) else columns
    chosen = maximize(pool, MatrixCoverage(columns))
    return chosen.positions, chosen.utilities


def _check_similarity(similarity: Any, caller: str) -> None:
    """Raise if the similarity is not a finite and non-negative matrix."""
    rule = "similarity must be an array of shape (n_reference, n_candidates)"
    if not _array.is_array(similarity):
        raise TypeError(f"{rule}. Got {type(similarity).__name__} in {caller}.")
    xp = _array.namespace(similarity)
    if not xp.isdtype(similarity.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"{rule} of real numbers. Got dtype {similarity.dtype} in {caller}.")
    if similarity.ndim != 2 or 0 in similarity.shape:
        raise ValueError(
            f"{rule}, at least one of each. Got shape {tuple(similarity.shape)} in {caller}."
        )
    if not xp.isdtype(similarity.dtype, "real floating"):
        lowest, finite = float(xp.min(xp.astype(similarity, xp.float64))), True
    else:
        lowest, finite = float(xp.min(similarity)), bool(xp.all(xp.isfinite(similarity)))
    if finite and not float(xp.max(similarity)) < sys.float_info.max / 2 / similarity.shape[0]:
        raise ValueError(
            f"similarity must not overflow float64 when added up. Got {float(xp.max(similarity))} "
            f"in {caller}; divide it by its largest entry."
        )
    if not finite or lowest < 0:
        raise ValueError(
            f"similarity must be finite and >= 0. Got {lowest if finite else 'NaN or infinity'} in "
            f"{caller}; shift similarities so that the smallest is 0."
        )
