"""Checks of costs and budgets: utilities per cost, what still fits, and who refuses them."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from sklearn_ical.selection import per_cost
from sklearn_ical.testing._data import (
    BATCH,
    N_POOL,
    Problem,
    ask,
    choose,
    model_problem,
    samples_problem,
    seeded,
)
from sklearn_ical.testing._demand import demand, demand_refusal, demand_same, demand_valid

SLACK = 1 + 1e-8  # for the rounding of sums


def check_costs_refused(strategy: Any) -> None:
    """Strategies whose utilities are no gains refuse costs by name."""
    if strategy.query_tags().utilities == "gain":
        return
    for name, call, problem, n_pool in _problems(strategy):
        demand_refusal(
            partial(call, seeded(strategy), problem, costs=np.ones(n_pool)),
            "costs",
            f"for costs in {name}, as the tag utilities='other' says",
            "Costs left out in silence spend a budget on the wrong rows.",
        )


def check_equal_costs(strategy: Any) -> None:
    """Costs that are all equal change no pick."""
    if strategy.query_tags().utilities != "gain":
        return
    for name, call, problem, n_pool in _problems(strategy):
        costs = np.full(n_pool, 2.0)
        for candidates in (None, np.arange(1, n_pool, 2)):
            expected = call(seeded(strategy), problem, candidates=candidates)
            for budget in (None, 2.0 * BATCH):
                limits = {"candidates": candidates, "costs": costs, "budget": budget}
                picks = call(seeded(strategy), problem, **limits)
                what = f"from {name} with equal costs and budget={budget} as without"
                demand_same(picks, expected, what, "The unit of costs says nothing about rows.")


def check_costs(strategy: Any) -> None:
    """With costs, each pick has the largest utility per cost of those that fit in the budget."""
    if strategy.query_tags().utilities != "gain":
        return
    for name, call, problem, n_pool in _problems(strategy):
        costs = _uneven_costs(n_pool)
        costs.flags.writeable = False  # it is the caller's
        _, plain = call(seeded(strategy), problem, return_utilities=True)
        for candidates in (None, np.arange(0, n_pool, 2)):
            allowed = np.isin(np.arange(n_pool), np.arange(n_pool)[candidates])
            for budget in (None, 7.0):
                limits = {"candidates": candidates, "costs": costs, "budget": budget}
                case = f"from {name} with costs and budget={budget}"
                picks, rows = call(seeded(strategy), problem, return_utilities=True, **limits)
                _demand_rows_per_cost(rows, picks, allowed, costs, budget, case)
                shown = ~np.isnan(rows[0])
                expected = per_cost(plain[0, shown], costs[shown])
                demand(
                    np.allclose(rows[0, shown], expected, rtol=1e-6, atol=1e-9),
                    f"Expected utilities per cost {expected} {case}. Got {rows[0, shown]}. They "
                    "are u / c where u > 0 and u * c elsewhere, so that dearer is never better.",
                )
                why = "Looking at utilities must not change the batch."
                same = call(seeded(strategy), problem, **limits)
                demand_same(same, picks, f"{case}, with and without utilities", why)


def check_budget(strategy: Any) -> None:
    """Batches keep within the budget, and use it as long as some candidate fits."""
    if strategy.query_tags().utilities != "gain":
        return
    for name, call, problem, n_pool in _problems(strategy):
        costs = _uneven_costs(n_pool)
        for size in (BATCH, n_pool):
            for budget in (float(costs.min()), 5.0, 11.5):
                limits = {"costs": costs, "budget": budget}
                picks = call(seeded(strategy), problem, size, **limits)
                case = f"from {name} with batch_size={size} and budget={budget}"
                demand_valid(picks, len(picks), np.arange(n_pool), case)
                spent = math.fsum(costs[picks])
                demand(
                    0 < len(picks) <= size and spent <= budget * SLACK,
                    f"Expected 1 to {size} picks that cost no more than the budget {case}. Got "
                    f"{picks.tolist()}, which cost {spent}. Money that is not there buys nothing.",
                )
                cheapest = np.delete(costs, picks).min(initial=np.inf)
                demand(
                    len(picks) == size or cheapest * SLACK > budget - spent,
                    f"Expected more picks {case}. Got {picks.tolist()} for {spent}, with a row "
                    f"left that costs {cheapest}. What is left of a budget is there to be used.",
                )


def check_bad_costs(strategy: Any) -> None:
    """Costs and budgets that make no sense are refused by name."""
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
    why = "A wrong bill is noticed when the money is gone."
    for name, costs in bad_costs.items():
        call = partial(ask, seeded(strategy), problem, 1, costs=costs)
        demand_refusal(call, "costs", f"for costs {name}", why)
    for budget in (0, -1.0, np.nan, np.inf, True, "3", 0.5):
        call = partial(ask, seeded(strategy), problem, 1, costs=good, budget=budget)
        demand_refusal(call, "budget", f"for budget={budget!r} where each row costs 1", why)
    call = partial(ask, seeded(strategy), problem, 1, budget=3.0)
    demand_refusal(call, "costs", "for a budget without costs", why)


def _problems(strategy: Any) -> Iterator[tuple[str, Callable[..., Any], Problem, int]]:
    """Yield each way to ask: its name, its call, a problem and the size of its pool."""
    yield "query", ask, model_problem(strategy), N_POOL
    for kind in strategy.query_tags().kinds:
        samples = samples_problem(strategy, kind)
        yield f"select with {kind} samples", choose, samples, samples.source.n_points


def _uneven_costs(n_pool: int) -> np.ndarray:
    return np.random.default_rng(12).integers(1, 9, size=n_pool) / 2


def _demand_rows_per_cost(
    rows: Any, picks: Any, allowed: np.ndarray, costs: np.ndarray, budget: Any, case: str
) -> None:
    """Demand numbers exactly where a row is free and fits, and picks that are the first best."""
    demand(
        np.shape(rows) == (len(picks), len(costs)),
        f"Expected one row of utilities per pick {case}. Got shape {np.shape(rows)} for "
        f"{len(picks)} picks.",
    )
    left, free = np.inf if budget is None else budget, allowed.copy()
    for t, pick in enumerate(picks):
        open_ = free & (costs <= left)
        demand(
            np.array_equal(~np.isnan(rows[t]), open_),
            f"Expected numbers exactly for the free candidates that {left} can pay, at pick {t} "
            f"{case}. Got {rows[t]} with {np.flatnonzero(open_).tolist()} free and affordable.",
        )
        best = int(np.nanargmax(rows[t]))
        demand(
            best == pick,
            f"Expected pick {t} {case} to be {best}, the first nan-argmax of its row. Got {pick}. "
            "Users read from the row why a row of the pool was picked.",
        )
        free[pick] = False
        left -= costs[pick]
