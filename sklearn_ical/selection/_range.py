"""Selection among real predictions of any magnitude, with utilities in the unit of the caller."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sklearn_ical.pool._pool import Pool
from sklearn_ical.pool._range import in_range
from sklearn_ical.selection._batch import Selection


def select_in_range(
    select: Callable[[Pool], Selection], pool: Pool, power: int | None
) -> Selection:
    """Select from a pool whose real predictions are multiplied by a power of two where needed.

    Parameters
    ----------
    select : callable
        Makes a selection from a pool.
    pool : Pool
        The call.
    power : int or None
        Utilities are in the unit of the predictions to this power; None leaves these as they are.

    Returns
    -------
    selection : Selection
        In the unit of `pool`.
    """
    if power is None:
        return select(pool)
    (rows, reference, labeled), factor = in_range(pool.rows, pool.reference, pool.labeled)
    chosen = select(replace(pool, rows=rows, reference=reference, labeled=labeled))
    return in_unit(chosen, factor, power)


def in_unit(selection: Selection, factor: float, power: int, start: int = 0) -> Selection:
    """Return a selection among predictions or features multiplied by a factor, in their own unit.

    Utilities are in that unit to this power; those before pick `start` have none. They may
    overflow, or be 0, where the numbers themselves leave float64.
    """
    if factor == 1 or power == 0:
        return selection
    back = 1 / factor if power > 0 else factor

    def restored(utilities: np.ndarray) -> np.ndarray:
        utilities = utilities.copy()
        with np.errstate(over="ignore", under="ignore"):
            for _ in range(abs(power)):  # the power of the factor may not be in float64
                utilities[start:] *= back
        return utilities

    rows = None if selection.rows is None else restored(selection.rows)
    return replace(selection, utilities=restored(selection.utilities), rows=rows)
