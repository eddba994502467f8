"""What limits the picks of a call: candidates, batch size, costs and budget, checked."""

from typing import Any

from sklearn_ical._typing import QueryTags
from sklearn_ical._validation import (
    check_budget,
    check_candidates,
    check_costs,
    clip_batch_size,
)
from sklearn_ical.pool._pool import RowSet


def check_limits(
    name: str,
    tags: QueryTags,
    rows: RowSet,
    batch_size: Any,
    candidates: Any,
    costs: Any,
    budget: Any,
) -> dict[str, Any]:
    """Check what limits the picks of a strategy, and return it as fields of a Pool."""
    caller = rows.caller
    if tags.max_pool is not None and rows.n_points > tags.max_pool:
        raise ValueError(
            f"X_pool must have at most {tags.max_pool} rows for {name}. Got {rows.n_points} in "
            f"{caller}; filter it first, as in FilteredQuery(MarginQuery(), {name}())."
        )
    allowed = check_candidates(candidates, rows.n_points, caller)
    if costs is not None:
        _check_gains(name, tags.utilities, caller)
        costs = check_costs(costs, rows.n_points, caller)[allowed]
    limit = check_budget(budget, costs, caller)
    return {
        "caller": caller,
        "n_points": rows.n_points,
        "candidates": allowed,
        "batch_size": clip_batch_size(batch_size, len(allowed), caller),
        "requested": int(batch_size),
        "costs": costs,
        "budget": limit,
    }


def _check_gains(name: str, utilities: str, caller: str) -> None:
    """Raise if utilities are not gains, which costs could divide."""
    if utilities != "gain":
        raise ValueError(
            "costs needs a strategy whose utilities are gains, with the tag utilities='gain'. "
            f"Got utilities={utilities!r} of {name} in {caller}; leave costs out or choose another "
            "strategy."
        )
