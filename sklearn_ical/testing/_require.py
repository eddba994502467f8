"""How checks are run, and assertions that name what was expected, what was got and why."""

import random
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import joblib
import numpy as np


def named(*checks: Callable[[Any], None]) -> dict[str, Callable[[Any], None]]:
    """Return checks by name, in the order in which they are run."""
    return {check.__name__: check for check in checks}


def run_checks(
    checks: Mapping[str, Callable[[Any], None]], subject: Any, *, silenced: type[Warning]
) -> None:
    """Run checks in their order, up to the first that fails."""
    for name, check in checks.items():
        run_check(name, check, subject, silenced=silenced)


def run_check(
    name: str, check: Callable[[Any], None], subject: Any, *, silenced: type[Warning]
) -> None:
    """Run one check; whatever it raises becomes an AssertionError that names it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", silenced)
        try:
            check(subject)
        except AssertionError as err:
            raise AssertionError(f"{name}: {err}") from err
        except Exception as err:
            message = f"{name}: {check.__doc__} Got {type(err).__name__}: {err}"
            raise AssertionError(message) from err


def require(condition: Any, message: str) -> None:
    """Raise AssertionError with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def require_same(picks: Any, expected: Any, what: str, why: str) -> None:
    """Raise if picks or their order differ."""
    require(
        np.array_equal(picks, expected),
        f"Expected the same picks {what}. Got {np.asarray(picks).tolist()} instead of "
        f"{np.asarray(expected).tolist()}. {why}",
    )


def require_valid(picks: Any, n_picks: int, allowed: np.ndarray, case: str) -> None:
    """Raise if picks are not distinct positions among `allowed`, in a 1-d host array of intp."""
    require(
        type(picks) is np.ndarray and picks.ndim == 1 and picks.dtype == np.intp,
        f"Expected a one-dimensional numpy array of dtype intp {case}. Got {picks!r}. Picks index "
        "any host container, whatever the backend of the predictions.",
    )
    require(
        len(picks) == n_picks,
        f"Expected {n_picks} picks {case}. Got {picks.tolist()}. A batch must have as many rows as "
        "requested.",
    )
    require(
        len(set(picks.tolist())) == len(picks),
        f"Expected distinct picks {case}. Got {picks.tolist()}. A row labeled twice is a label "
        "wasted.",
    )
    require(
        np.isin(picks, allowed).all(),
        f"Expected picks among the candidates {case}. Got {picks.tolist()} where "
        f"{allowed.tolist()} are allowed. Other rows are labeled already or cannot be.",
    )


def require_rows(rows: Any, picks: np.ndarray, allowed: np.ndarray, gain: bool, name: str) -> None:
    """Raise if utilities have another shape or NaN pattern, or a pick is not the best gain."""
    shape = (len(picks), len(allowed))
    require(
        type(rows) is np.ndarray and rows.dtype == np.float64 and rows.shape == shape,
        f"Expected float64 utilities of shape {shape} from {name}. Got "
        f"{getattr(rows, 'dtype', type(rows))} of shape {np.shape(rows)}. Row t belongs to pick t, "
        "column i to row i of the pool.",
    )
    require(
        np.isnan(rows[:, ~allowed]).all(),
        f"Expected NaN for rows that are no candidates, from {name}. Got {rows[:, ~allowed]}. A "
        "number means that the row could have been picked.",
    )
    for t, pick in enumerate(picks if gain else []):
        free = allowed.copy()
        free[picks[:t]] = False
        require(
            np.isfinite(rows[t, free]).all() and np.isnan(rows[t, ~free]).all(),
            f"Expected numbers exactly for the candidates still free at pick {t} from {name}. Got "
            f"{rows[t]} with {np.flatnonzero(free).tolist()} free. NaN and nothing else means that "
            "a row is not allowed.",
        )
        best = int(np.nanargmax(rows[t]))
        require(
            best == pick,
            f"Expected pick {t} from {name} to be {best}, the first nan-argmax of its row. Got "
            f"{pick}. Users look up in the row why a row of the pool was picked.",
        )


def require_error(call: Callable[[], Any], word: str, case: str, why: str) -> None:
    """Raise if a call does not raise a TypeError or ValueError with `word` in its message."""
    try:
        got = call()
    except (TypeError, ValueError) as err:
        expected = f"Expected an error that names {word!r} {case}."
        require(word in str(err), f"{expected} Got: {err}. {why}")
    else:
        raise AssertionError(f"Expected a TypeError or ValueError {case}. Got {got!r}. {why}")


def recorded(call: Callable[[], Any]) -> tuple[Any, list[type[Warning]]]:
    """Return the result of a call and the categories of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = call()
    return answer, [warning.category for warning in caught]


def require_global_generators(call: Callable[[], Any], what: str) -> None:
    """Raise if a call changes the global generators of numpy, Python or torch."""
    before = _global_states()
    call()
    after = _global_states()
    changed = [name for name in before if before[name] != after[name]]
    require(
        not changed,
        f"Expected unchanged global random states. Got changes in {changed}. Randomness must come "
        f"from random_state only, or {what} changes the rest of an experiment.",
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
