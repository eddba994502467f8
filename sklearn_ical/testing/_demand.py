"""How a check says what it wants: assertions that name what was expected, what came and why."""

import random
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import joblib
import numpy as np


def run_checks(
    checks: Sequence[Callable[[Any], None]], subject: Any, *, silenced: type[Warning]
) -> None:
    """Run checks one by one; what one raises becomes an AssertionError that names it."""
    for check in checks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", silenced)
            try:
                check(subject)
            except AssertionError as err:
                raise AssertionError(f"{check.__name__}: {err}") from err
            except Exception as err:
                raise AssertionError(
                    f"{check.__name__}: {check.__doc__} Got {type(err).__name__}: {err}"
                ) from err


def demand(condition: Any, message: str) -> None:
    """Raise AssertionError with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def demand_same(picks: Any, expected: Any, what: str, why: str) -> None:
    """Demand equal picks in equal order."""
    demand(
        np.array_equal(picks, expected),
        f"Expected the same picks {what}. Got {np.asarray(picks).tolist()} instead of "
        f"{np.asarray(expected).tolist()}. {why}",
    )


def demand_valid(picks: Any, n_picks: int, allowed: np.ndarray, case: str) -> None:
    """Demand distinct positions among `allowed`, as a one-dimensional host array of intp."""
    demand(
        type(picks) is np.ndarray and picks.ndim == 1 and picks.dtype == np.intp,
        f"Expected a one-dimensional numpy array of dtype intp {case}. Got {picks!r}. Picks index "
        "any host container, whatever the backend of the predictions.",
    )
    demand(
        len(picks) == n_picks,
        f"Expected {n_picks} picks {case}. Got {picks.tolist()}. A batch has as many rows as were "
        "asked for.",
    )
    demand(
        len(set(picks.tolist())) == len(picks),
        f"Expected distinct picks {case}. Got {picks.tolist()}. A row labeled twice is a label "
        "wasted.",
    )
    demand(
        np.isin(picks, allowed).all(),
        f"Expected picks among the candidates {case}. Got {picks.tolist()} where "
        f"{allowed.tolist()} are allowed. Other rows are labeled already or cannot be.",
    )


def demand_rows(rows: Any, picks: np.ndarray, allowed: np.ndarray, gain: bool, name: str) -> None:
    """Demand shape, NaN pattern and, for gains, that each pick is the first best of its row."""
    shape = (len(picks), len(allowed))
    demand(
        type(rows) is np.ndarray and rows.dtype == np.float64 and rows.shape == shape,
        f"Expected float64 utilities of shape {shape} from {name}. Got "
        f"{getattr(rows, 'dtype', type(rows))} of shape {np.shape(rows)}. Row t belongs to pick t, "
        "column i to row i of the pool.",
    )
    demand(
        np.isnan(rows[:, ~allowed]).all(),
        f"Expected NaN for rows that are no candidates, from {name}. Got {rows[:, ~allowed]}. "
        "A number says that the row could have been picked.",
    )
    for t, pick in enumerate(picks if gain else []):
        free = allowed.copy()
        free[picks[:t]] = False
        demand(
            np.isfinite(rows[t, free]).all() and np.isnan(rows[t, ~free]).all(),
            f"Expected numbers exactly for the candidates still free at pick {t} from {name}. Got "
            f"{rows[t]} with {np.flatnonzero(free).tolist()} free. NaN says not allowed, "
            "and nothing else does.",
        )
        best = int(np.nanargmax(rows[t]))
        demand(
            best == pick,
            f"Expected pick {t} from {name} to be {best}, the first nan-argmax of its row. Got "
            f"{pick}. Users read from the row why a row of the pool was picked.",
        )


def demand_refusal(call: Callable[[], Any], word: str, case: str, why: str) -> None:
    """Demand a TypeError or ValueError whose message has `word` in it."""
    try:
        got = call()
    except (TypeError, ValueError) as err:
        demand(word in str(err), f"Expected an error that names {word!r} {case}. Got: {err}. {why}")
    else:
        raise AssertionError(f"Expected a TypeError or ValueError {case}. Got {got!r}. {why}")


def recorded(call: Callable[[], Any]) -> tuple[Any, list[type[Warning]]]:
    """Return the answer of a call and the categories of the warnings it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = call()
    return answer, [warning.category for warning in caught]


def demand_global_generators(call: Callable[[], Any], what: str) -> None:
    """Demand that a call leaves the global generators of numpy, Python and torch as they are."""
    before = _global_states()
    call()
    after = _global_states()
    changed = [name for name in before if before[name] != after[name]]
    demand(
        not changed,
        f"Expected the global random states to stay as they are. Got changes in {changed}. "
        f"Randomness enters by random_state only, or {what} changes the rest of an experiment.",
    )


def _global_states() -> dict[str, Any]:
    """Return the states of the global generators in comparable form."""
    states: dict[str, Any] = {
        "numpy": joblib.hash(np.random.get_state()),  # noqa: NPY002, it must not change
        "random": random.getstate(),
    }
    if "torch" in sys.modules:
        states["torch"] = sys.modules["torch"].get_rng_state().numpy().tobytes()
    return states
