"""compare_strategies: many strategies and seeds, paired and in parallel."""

import functools
import os
import re
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import sklearn

from sklearn_ical._typing import Initial, Integer, Numbers, Real, Scoring, Strategy, StrategyName
from sklearn_ical._validation import check_integer, warn
from sklearn_ical.exceptions import CheckpointError, RunFailedWarning
from sklearn_ical.simulation._comparison import ComparisonResult, Failure
from sklearn_ical.simulation._plan import Plan
from sklearn_ical.simulation._progress import bars
from sklearn_ical.simulation._result import SimulationResult
from sklearn_ical.simulation._simulate import run
from sklearn_ical.simulation._stopping import StoppingRule
from sklearn_ical.strategies._resolve import resolve_strategy


def compare_strategies(
    estimator: Any,
    X: Any,
    y: Any,
    strategies: Mapping[str, Strategy | StrategyName] | Iterable[Strategy | StrategyName],
    *,
    seeds: Integer | Iterable[Integer] = 10,
    n_initial: Integer = 10,
    batch_size: Integer = 1,
    n_rounds: Integer | None = None,
    budget: Real | None = None,
    scoring: Scoring = None,
    X_test: Any = None,
    y_test: Any = None,
    cv: Any = None,
    initial: Initial = None,
    cost: Numbers | None = None,
    features: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    stopping: StoppingRule | Sequence[StoppingRule] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    n_jobs: Integer | None = None,
    callback: Callable[[str, int], None] | None = None,
    verbose: int = 0,
) -> ComparisonResult:
    """Simulate active learning with every strategy and every seed.

    The runs of one seed are paired: they start from the same initial rows, and their models get the
    same random state in each round, so differences between strategies are not due to chance. A run
    that fails is reported and does not affect the others.

    Read more in the :ref:`User Guide <compare_strategies>`.

    Parameters
    ----------
    estimator, X, y, n_initial, batch_size, n_rounds, budget, scoring
        As in :func:`simulate`; `y` holds all labels.
    X_test, y_test, cv, initial, cost, features, fit_params, stopping
        As in :func:`simulate`; one of `X_test` with `y_test` and `cv` must be given.
    strategies : dict of str to BaseQuery or str, or list of BaseQuery or str
        The strategies by their labels in the result. In a list, the label of an object is the
        name of its class, and that of a name such as "margin" the name itself. A name stands for
        the strategy with default parameters, see :ref:`strategy_names`.
    seeds : int or iterable of int, default=10
        The runs of each strategy: a number of seeds from 0 on, or the seeds themselves.
    checkpoint : path, default=None
        A folder for one checkpoint of each run. Recorded steps are not repeated.
    n_jobs : int, default=None
        Workers of joblib, as everywhere in scikit-learn. The results are the same for any number of
        them, except for wall times.
    callback : callable, default=None
        Called in this process as ``callback(name, seed)`` when a run has ended, in any order.
    verbose : int, default=0
        1 shows a progress bar for each strategy on stderr (requires rich).

    Returns
    -------
    comparison : ComparisonResult
        All results, the failures, and a summary.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, before any work; also if all runs failed.
    CheckpointError
        If a checkpoint belongs to another simulation, is damaged or in use.

    See Also
    --------
    simulate : One run.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical import MarginQuery, RandomQuery, compare_strategies
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = compare_strategies(
    ...     RandomForestClassifier(5), X[::2], y[::2], [RandomQuery(), MarginQuery()], seeds=2,
    ...     n_initial=6, batch_size=4, n_rounds=2, X_test=X[1::2], y_test=y[1::2],
    ... )
    >>> comparison.results["MarginQuery"][0].n_labeled
    array([ 6, 10, 14])
    """
    if X_test is None and cv is None:
        raise ValueError(
            "compare_strategies needs rows to score on. Got neither X_test and y_test nor cv."
        )
    named, wanted = _check_strategies(strategies), _check_seeds(seeds)
    plans = {
        name: Plan.from_arguments(
            "compare_strategies", estimator, X, y, strategy, n_initial=n_initial,
            batch_size=batch_size, n_rounds=n_rounds, budget=budget, scoring=scoring, X_test=X_test,
            y_test=y_test, cv=cv, initial=initial, oracle=None, cost=cost, features=features,
            fit_params=fit_params, stopping=stopping, callbacks=None,
        )
        for name, strategy in named.items()
    }  # fmt: skip
    for plan in plans.values():
        _prepare(plan, wanted, checkpointed=checkpoint is not None)
    paths, config = _checkpoints(checkpoint, named, wanted), sklearn.get_config()
    jobs = (
        joblib.delayed(_one_run)(name, seed, plan, paths.get((name, seed)), os.getpid(), config)
        for seed in wanted
        for name, plan in plans.items()
    )
    ended: dict[tuple[str, int], SimulationResult | Failure] = {}
    shown: set[tuple[str, type[Warning]]] = set()
    with bars(verbose, dict.fromkeys(named, len(wanted))) as advance:
        parallel = joblib.Parallel(n_jobs, return_as="generator_unordered")
        for name, seed, result, warned in parallel(jobs):
            ended[name, seed] = result
            for text, category in sorted(warned - shown, key=str):
                warn(text, category)
            shown |= warned
            advance(name)
            if callback is not None:
                callback(name, seed)
    return _collect(ended, list(named), wanted)


def _prepare(plan: Plan, seeds: list[int], *, checkpointed: bool) -> None:
    """Raise if the budget does not cover the start, and hash the data here, once."""
    for seed in seeds if plan.costs is not None else ():
        plan.initial_rows(seed)
    if checkpointed:
        plan.header  # noqa: B018  (cached, and sent to the workers with the plan)


def _one_run(
    name: str, seed: int, plan: Plan, checkpoint: Path | None, caller: int, config: dict[str, Any]
) -> tuple[str, int, SimulationResult | Failure, set[tuple[str, type[Warning]]]]:
    """Run one simulation; an error is returned, so that the others continue.

    In another process than the caller's, scikit-learn is configured as there, and warnings are
    returned, too, to be shown there.
    """
    if os.getpid() == caller:
        return name, seed, _result_or_failure(name, seed, plan, checkpoint), set()
    _end_with(caller)
    with sklearn.config_context(**config), warnings.catch_warnings(record=True) as caught:
        result = _result_or_failure(name, seed, plan, checkpoint)
    return name, seed, result, {(str(w.message), w.category) for w in caught}


@functools.cache  # once in each worker
def _end_with(caller: int) -> None:
    """End this worker within a second after its caller was killed.

    Otherwise it would continue, and lock the checkpoint that the user wants to resume. Its
    unfinished step is lost, as if it had been killed itself.
    """

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(0.5)
        os._exit(1)

    if os.getppid() == caller:  # not a worker on another machine, or of another process's pool
        threading.Thread(target=watch, daemon=True).start()


def _result_or_failure(
    name: str, seed: int, plan: Plan, checkpoint: Path | None
) -> SimulationResult | Failure:
    try:
        return run(plan, seed, checkpoint)
    except CheckpointError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        partial: SimulationResult = error.result  # type: ignore[attr-defined]
        return Failure(name, seed, text, traceback.format_exc(), partial)


def _collect(
    ended: Mapping[tuple[str, int], SimulationResult | Failure], names: list[str], seeds: list[int]
) -> ComparisonResult:
    """Return results and failures in the order of strategies and seeds."""
    runs = [(name, seed, ended[name, seed]) for name in names for seed in seeds]
    failures = tuple(result for *_, result in runs if isinstance(result, Failure))
    if len(failures) == len(runs):
        error = ValueError(
            f"All {len(runs)} runs failed. The first, {failures[0].strategy} with seed "
            f"{failures[0].seed}: {failures[0].error}"
        )
        error.add_note(failures[0].traceback)
        raise error
    if failures:
        warn(
            f"{len(failures)} of {len(runs)} runs failed and are left out; see `failures` of the "
            f"result. The first, {failures[0].strategy} with seed {failures[0].seed}: "
            f"{failures[0].error}",
            RunFailedWarning,
        )
    results: dict[str, dict[int, SimulationResult]] = {name: {} for name in names}
    for name, seed, result in runs:
        if not isinstance(result, Failure):
            results[name][seed] = result
    return ComparisonResult(results, failures)


def _check_strategies(strategies: Any) -> dict[str, Any]:
    """Return the strategies, none of them as a string, by their labels."""
    if isinstance(strategies, Mapping):
        named = {str(label): strategy for label, strategy in strategies.items()}
    elif isinstance(strategies, Iterable) and not isinstance(strategies, str):
        listed = list(strategies)
        labels = [one if isinstance(one, str) else type(one).__name__ for one in listed]
        named = dict(zip(labels, listed, strict=True))
        if len(named) < len(listed):
            raise ValueError(
                "strategies must be a dict of names if a class or a name occurs twice. Got "
                f"{labels} in compare_strategies."
            )
    else:
        way_out = f"; pass [{strategies!r}]" if isinstance(strategies, str) else ""
        raise TypeError(
            "strategies must be a dict or a list of strategies. Got "
            f"{strategies!r} in compare_strategies{way_out}."
        )
    if not named:
        raise ValueError("strategies must hold at least one. Got none in compare_strategies.")
    return {
        label: resolve_strategy(strategy, "Each of strategies", "compare_strategies")
        for label, strategy in named.items()
    }


def _check_seeds(seeds: Any) -> list[int]:
    """Return distinct seeds."""
    if not isinstance(seeds, Iterable):
        return list(range(check_integer(seeds, "seeds", "compare_strategies")))
    caller = "compare_strategies"
    checked = [check_integer(seed, "Each of seeds", caller, minimum=0) for seed in seeds]
    if not checked or len(set(checked)) < len(checked):
        raise ValueError(f"seeds must be distinct integers >= 0. Got {checked} in {caller}.")
    return checked


def _checkpoints(
    folder: Any, names: Iterable[str], seeds: list[int]
) -> dict[tuple[str, int], Path]:
    """Return the checkpoint of each run, in a folder that exists."""
    if folder is None:
        return {}
    files = {name: re.sub(r"[^\w.-]+", "_", name) for name in names}
    if len(set(files.values())) < len(files):
        raise ValueError(
            f"strategies must have names that differ in letters or digits. Got {list(files)} in "
            "compare_strategies, whose checkpoints would be the same files."
        )
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(
            f"checkpoint must be a folder of its own. Got {path}: {error.strerror}."
        ) from error
    return {
        (name, seed): path / f"{file}-seed{seed}.jsonl"
        for name, file in files.items()
        for seed in seeds
    }
