"""Checks of costs and budgets: utilities per cost, budgets, and strategies without support."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from sklearn_ical.selection._batch import per_cost
from sklearn_ical.testing._data import (
    BATCH,
    N_POOL,
    Problem,
    ask,
    choose,
    kinds,
    model_problem,
    samples_problem,
    seeded,
)
from sklearn_ical.testing._require import require, require_error, require_same, require_valid

COST_SLACK = 1 + 1e-8  # for the rounding of sums


def check_costs_refused(strategy: Any) -> None:
    """Check that strategies whose utilities are not gains raise for costs, by name."""
    if strategy.query_tags().utilities == "gain":
        return
    for name, call, problem, n_pool in _problems(strategy):
        require_error(
            partial(call, seeded(strategy), problem, costs=np.ones(n_pool)),
            "costs",
            f"for costs in {name}, as by the tag utilities='other'",
            "Ignoring costs spends the budget on the wrong rows.",
        )


def check_equal_costs(strategy: Any) -> None:
    """Check that equal costs for all rows do not change the picks."""
    if strategy.query_tags().utilities != "gain":
        return
    for name, call, problem, n_pool in _problems(strategy):
        costs = np.full(n_pool, 2.0)
        for candidates, budget in ((None, None), (np.arange(1, n_pool, 2), 2.0 * BATCH)):
            expected = call(seeded(strategy), problem, candidates=candidates)
            limits = {"candidates": candidates, "costs": costs, "budget": budget}
            picks = call(seeded(strategy), problem, **limits)
            what = f"from {name} with equal costs and budget={budget} as without"
            require_same(picks, expected, what, "The unit of costs is not information about rows.")


def check_utilities_per_cost(strategy: Any) -> None:
    """Check that each pick has the largest utility per cost of the rows that fit the budget."""
    if strategy.query_tags().utilities != "gain":
        return
    for name, call, problem, n_pool in _problems(strategy):
        costs = _uneven_costs(n_pool)
        costs.flags.writeable = False  # it is the caller's
        _, plain = call(seeded(strategy), problem, return_utilities=True)
        for candidates, budget in ((None, None), (np.arange(0, n_pool, 2), 7.0)):
            allowed = np.isin(np.arange(n_pool), np.arange(n_pool)[candidates])
            limits = {"candidates": candidates, "costs": costs, "budget": budget}
            case = f"from {name} with costs and budget={budget}"
            picks, rows = call(seeded(strategy), problem, return_utilities=True, **limits)
            _require_rows_per_cost(rows, picks, allowed, costs, budget, case)
            shown = ~np.isnan(rows[0])
            expected = per_cost(plain[0, shown], costs[shown])
            require(
                np.allclose(rows[0, shown], expected, rtol=1e-6, atol=1e-9),
                f"Expected utilities per cost {expected} {case}. Got {rows[0, shown]}. They are u "
                "/ c where u > 0 and u * c elsewhere, so that a more expensive row is never "
                "better.",
            )
            why = "Returning utilities must not change the batch."
            same = call(seeded(strategy), problem, **limits)
            require_same(same, picks, f"{case}, with and without utilities", why)


def check_within_budget(strategy: Any) -> None:
    """Check that batches keep within the budget, and use it as long as a candidate fits."""
    if strategy.query_tags().utilities != "gain":
        return
    for name, call, problem, n_pool in _problems(strategy):
        costs = _uneven_costs(n_pool)
        for size, budget in ((BATCH, float(costs.min())), (BATCH, 5.0), (n_pool, 11.5)):
            limits = {"costs": costs, "budget": budget}
            picks = call(seeded(strategy), problem, size, **limits)
            case = f"from {name} with batch_size={size} and budget={budget}"
            require_valid(picks, len(picks), np.arange(n_pool), case)
            spent = math.fsum(costs[picks])
            require(
                0 < len(picks) <= size and spent <= budget * COST_SLACK,
                f"Expected 1 to {size} picks that cost no more than the budget {case}. Got "
                f"{picks.tolist()}, which cost {spent}. The budget must not be exceeded.",
            )
            cheapest = np.delete(costs, picks).min(initial=np.inf)
            require(
                len(picks) == size or cheapest * COST_SLACK > budget - spent,
                f"Expected more picks {case}. Got {picks.tolist()} for {spent}, with a row left "
                f"that costs {cheapest}. The budget must be used as long as a row fits.",
            )


def check_bad_costs(strategy: Any) -> None:
    """Check that invalid costs and budgets raise, by name."""
    if strategy.query_tags().utilities != "gain":
        return
    problem = model_problem(strategy)
    good = np.ones(N_POOL)
    bad_costs: dict[str, Any] = {
        "with a NaN": np.where(np.arange(N_POOL) == 3, np.nan, 1.0),
        "with an infinity": np.where(np.arange(N_POOL) == 3, np.inf, 1.0),
        "with a zero": np.where(np.arange(N_POOL) == 3, 0.0, 1.0),
        "with a negative": np.where(np.arange(N_POOL) == 3, -1.0, 1.0),
        "of another length": np.ones(N_POOL - 1),
        "of two dimensions": np.ones((N_POOL, 1)),
        "of text": ["cheap"] * N_POOL,
    }
    why = "Errors in costs are noticed only after the budget is spent."
    for name, costs in bad_costs.items():
        call = partial(ask, seeded(strategy), problem, 1, costs=costs)
        require_error(call, "costs", f"for costs {name}", why)
    for budget in (0, -1.0, np.nan, np.inf, True, "3", 0.5):
        call = partial(ask, seeded(strategy), problem, 1, costs=good, budget=budget)
        require_error(call, "budget", f"for budget={budget!r} where each row costs 1", why)
    call = partial(ask, seeded(strategy), problem, 1, budget=3.0)
    require_error(call, "costs", "for a budget without costs", why)


def _problems(strategy: Any) -> Iterator[tuple[str, Callable[..., Any], Problem, int]]:
    """Yield each call of the strategy: its name, the call, a problem and the size of its pool."""
    yield "query", ask, model_problem(strategy), N_POOL
    for kind in kinds(strategy):
        samples = samples_problem(strategy, kind)
        yield f"select with {kind} samples", choose, samples, len(samples.X_pool)


def _uneven_costs(n_pool: int) -> np.ndarray:
    return np.random.default_rng(12).integers(1, 9, size=n_pool) / 2


def _require_rows_per_cost(
    rows: Any, picks: Any, allowed: np.ndarray, costs: np.ndarray, budget: Any, case: str
) -> None:
    """Raise if numbers are not those of affordable rows, or a pick is not the first best."""
    require(
        np.shape(rows) == (len(picks), len(costs)),
        f"Expected one row of utilities per pick {case}. Got shape {np.shape(rows)} for "
        f"{len(picks)} picks.",
    )
    left, free = np.inf if budget is None else budget, allowed.copy()
    for t, pick in enumerate(picks):
        open_ = free & (costs <= left)
        require(
            np.array_equal(~np.isnan(rows[t]), open_),
            f"Expected numbers exactly for the free candidates that cost at most {left}, at pick "
            f"{t} {case}. Got {rows[t]} with {np.flatnonzero(open_).tolist()} free and affordable.",
        )
        best = int(np.nanargmax(rows[t]))
        require(
            best == pick,
            f"Expected pick {t} {case} to be {best}, the first nan-argmax of its row. Got {pick}. "
            "Users look up in the row why a row of the pool was picked.",
        )
        free[pick] = False
        left -= costs[pick]
