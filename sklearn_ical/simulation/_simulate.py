"""simulate: rounds of active learning on rows with known labels or labels from an oracle."""

import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier

from sklearn_ical._random import root_seed, seeded, stream_seed
from sklearn_ical._typing import (
    Initial,
    Integer,
    Numbers,
    Real,
    Scoring,
    Seed,
    Strategy,
    StrategyName,
)
from sklearn_ical._validation import SLACK, check_positions, take_rows
from sklearn_ical.exceptions import CheckpointError
from sklearn_ical.samplers._label_codes import fit_model
from sklearn_ical.samplers._models import seeded_training
from sklearn_ical.simulation._journal import Journal
from sklearn_ical.simulation._plan import Plan
from sklearn_ical.simulation._progress import rounds_bar
from sklearn_ical.simulation._result import Round, SimulationResult
from sklearn_ical.simulation._stopping import RoundState, StoppingRule
from sklearn_ical.strategies import RandomQuery
from sklearn_ical.strategies._resolve import needs_model

_LOG = logging.getLogger(__name__)

Callback: TypeAlias = Callable[[RoundState], Any]


def simulate(
    estimator: Any,
    X: Any,
    y: Any,
    strategy: Strategy | StrategyName,
    *,
    n_initial: Integer = 10,
    batch_size: Integer = 1,
    n_rounds: Integer | None = None,
    budget: Real | None = None,
    scoring: Scoring = None,
    X_test: Any = None,
    y_test: Any = None,
    cv: Any = None,
    initial: Initial = None,
    random_state: Seed = None,
    oracle: Callable[[int], Any] | None = None,
    cost: Numbers | None = None,
    features: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    stopping: StoppingRule | Sequence[StoppingRule] | None = None,
    callbacks: Callback | Sequence[Callback] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> SimulationResult:
    """Run active learning: buy labels round by round, and fit and score a model after each.

    In each round, the strategy chooses among the rows without a label, their labels are bought, and
    a new clone of the estimator is fitted on all labels so far. Arguments are never changed.

    Read more in the :ref:`User Guide <simulate>`.

    Parameters
    ----------
    estimator : estimator
        Cloned for each round; every `random_state` in it is set by the run. A skorch net has none:
        the run seeds the generators that it is trained by, and restores them.
    X : array-like, sparse matrix, frame or list of n_points rows
        Rows whose labels may be bought.
    y : array-like of shape (n_points,) or (n_points, n_outputs), or None
        Their labels, each used only once bought; NaN or None if there is none to buy. With an
        `oracle`, the labels that are known already: only those of the initial rows are taken from
        it, and None means that the oracle gives all of them.
    strategy : BaseQuery or str
        Chooses the rows; every `random_state` in it is set by the run. A name such as "margin"
        is the strategy with default parameters, also for a checkpoint; see
        :ref:`strategy_names`.
    n_initial : int, default=10
        Rows that are labeled from the start, before the first query.
    batch_size : int, default=1
        Labels to buy in each later round; fewer if the budget or the rows are exhausted.
    n_rounds : int, default=None
        Rounds after the first, which fits on the initial rows alone; None for no limit. One of
        `n_rounds`, `budget` and `stopping` must be given.
    budget : float, default=None
        Largest total cost of the labels, initial ones included; their number without `cost`.
    scoring : str, callable, list, dict or None, default=None
        As in :func:`sklearn.model_selection.cross_validate`; None for the estimator's `score`. A
        classifier gives probability 0 to classes that it has not seen yet. A metric that is not
        defined in a round is NaN there, with a warning.
    X_test, y_test : array-like of n_test rows, default=None
        Rows that the models are scored on. Without them and `cv` there are no scores.
    cv : int or splitter, default=None
        Score by cross-validation on the rows labeled so far instead: their mean over the folds.
    initial : {"balanced", "random"}, BaseQuery, str or array of int, default=None
        How the initial rows are chosen: drawn as equally from every class as possible (a class with
        fewer rows than its share gives all it has), or uniformly. A strategy that reads at most
        features, or its name such as "typiclust", chooses `n_initial` rows without a model.
        Positions in `X` are used as they are, regardless of `n_initial`. None: balanced where
        labels of a classifier are known.
    random_state : int, RandomState, Generator or None, default=None
        See :term:`random_state`. The initial rows depend on the root seed alone, and in round r the
        estimator and the strategy get one seed derived from it: runs with the same int are paired.
    oracle : callable, default=None
        ``oracle(position)`` returns the label of one row of `X`: text, a number, or a list of
        these; None or NaN refuses it, and the row is not requested again. A refused label costs
        nothing. Each answer is recorded before the next request.
    cost : array-like of shape (n_points,), default=None
        Cost of the label of each row, > 0; the strategy then chooses by utility per cost. See
        :term:`costs`.
    features : array-like of shape (n_points, n_features), default=None
        Precomputed features of the rows of `X`, such as embeddings, for strategies that read
        features.
    fit_params : dict, default=None
        Other arguments of the estimator's `fit` by name, such as `sample_weight`, for all fits: of
        each round, of strategies that refit the model, and of `cv`. Arrays with one row for each
        row of `X`, and sample weights in any container, are those of the rows; see
        :term:`fit_params`.
    stopping : StoppingRule or list of them, default=None
        When to stop, see :mod:`sklearn_ical.simulation`; the first to apply ends the run.
    callbacks : callable or list of callables, default=None
        Called with a `RoundState` after each round that was not in the checkpoint already.
    checkpoint : path, default=None
        A file to which each label and each round is written before the next step. If it exists,
        recorded steps are not repeated, and the run resumes where it ended. Only `n_rounds`,
        `budget` and `callbacks` may differ then.
    verbose : int, default=0
        1 shows a progress bar on stderr (requires rich).

    Returns
    -------
    result : SimulationResult
        One record for each round.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, before any work.
    CheckpointError
        If the checkpoint belongs to another simulation (the difference is named), is damaged or
        in use.
    BaseException
        Any exception of the estimator, the strategy or the oracle, Ctrl-C included, is raised with
        the result so far, and all labels bought, as its attribute ``result``.

    See Also
    --------
    compare_strategies : Many strategies and seeds, paired and in parallel.

    Notes
    -----
    As long as the labels known are of one class only, a strategy that needs a model is replaced by
    random rows, because a model of one class cannot distinguish rows; if the estimator cannot be
    fitted on one class, it is replaced by a constant prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical import MarginQuery, simulate
    >>> X, y = load_iris(return_X_y=True)
    >>> result = simulate(
    ...     RandomForestClassifier(10), X[::2], y[::2], MarginQuery(), n_initial=6, batch_size=4,
    ...     n_rounds=3, X_test=X[1::2], y_test=y[1::2], scoring="accuracy", random_state=0,
    ... )
    >>> result.n_labeled
    array([ 6, 10, 14, 18])
    >>> result.scores["accuracy"].shape
    (4,)
    """
    plan = Plan.from_arguments(
        "simulate", estimator, X, y, strategy, n_initial=n_initial, batch_size=batch_size,
        n_rounds=n_rounds, budget=budget, scoring=scoring, X_test=X_test, y_test=y_test, cv=cv,
        initial=initial, oracle=oracle, cost=cost, features=features, fit_params=fit_params,
        stopping=stopping, callbacks=callbacks,
    )  # fmt: skip
    root = root_seed(random_state, "simulate")
    with rounds_bar(verbose, plan.n_rounds + 1, "simulate") as advance:
        return run(plan, root, checkpoint, seed_is_free=random_state is None, advance=advance)


def run(
    plan: Plan,
    root: int,
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    seed_is_free: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> SimulationResult:
    """Run a plan to its end; `advance` is called after each round."""
    header = {**({} if checkpoint is None else plan.header), "random_state": root}
    with Journal(checkpoint, header, seed_is_free=seed_is_free) as journal:
        loop = _Loop(plan, journal)
        try:
            return loop.run(advance)
        except BaseException as error:
            error.result = loop.result("")  # type: ignore[attr-defined]
            if loop.positions:
                error.add_note(
                    f"{len(loop.positions)} labels were bought before; they are in the attribute "
                    "`result` of this exception"
                    + ("." if checkpoint is None else f" and in the checkpoint {checkpoint}.")
                )
            raise


class _Loop:
    """The rounds of one run; recorded steps are read from the journal."""

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self.plan = plan
        self.journal = journal
        self.root: int = journal.header["random_state"]
        self.rounds: list[Round] = []
        self.positions: list[int] = []  # rows with a label, in the order bought
        self.labels: list[Any] = []
        self.refused: list[int] = []
        self.n_labeled: list[int] = []  # labels known in each round
        self._models: dict[int, Any] = {}

    def run(self, advance: Callable[[], None]) -> SimulationResult:
        """Run rounds until there is a reason to stop."""
        while True:
            record, is_new = self._round(len(self.rounds))
            self.rounds.append(record)
            if is_new:
                for callback in self.plan.callbacks:
                    callback(self._state(self.rounds))
            advance()
            stopped = self._reason_to_stop()
            if stopped is not None:
                return self.result(stopped)

    def result(self, stopped: str) -> SimulationResult:
        """Return the result so far."""
        done = self.n_labeled[: len(self.rounds)]
        first = done[-1] if done else 0
        pending = tuple(zip(self.positions[first:], self.labels[first:], strict=True))
        return SimulationResult(tuple(self.rounds), stopped, self.root, pending)

    def _round(self, r: int) -> tuple[Round, bool]:
        """Choose, ask, fit and score; also return whether the round is new to the journal."""
        picks, query_seconds = self._picks(r)
        n_before, n_refused = len(self.positions), len(self.refused)
        for row in picks:
            self._ask(row, initial=r == 0)
        self.n_labeled.append(len(self.positions))
        record = Round(
            positions=tuple(self.positions[n_before:]),
            labels=tuple(self.labels[n_before:]),
            refused=tuple(self.refused[n_refused:]),
            n_labeled=len(self.positions),
            cost=self._spent(),
            scores={},
            query_seconds=query_seconds,
        )
        recorded = self.journal.recorded("round")
        if recorded is not None:
            return replace(record, **recorded), False
        record = self._fit_and_score(r, record)
        kept = ("cost", "scores", "measures", "fit_seconds")
        self.journal.append("round", {name: getattr(record, name) for name in kept})
        return record, True

    def _picks(self, r: int) -> tuple[list[int], float]:
        """Return the rows chosen in a round and the seconds that the choice took."""
        picks = self.journal.recorded("picks")
        if picks is None:
            start = time.perf_counter()
            rows = self.plan.initial_rows(self.root) if r == 0 else self._query(r)
            seconds = 0.0 if r == 0 else time.perf_counter() - start
            picks = {"positions": rows.tolist(), "query_seconds": seconds}
            self.journal.append("picks", picks)
        elif not self._may_ask(picks["positions"]):
            raise CheckpointError(
                f"{self.journal.path} is not a checkpoint of one simulation: the rows chosen in "
                f"round {r}, {picks['positions']!r}, are not all among those without a label. Move "
                "it away to start again."
            )
        return picks["positions"], picks["query_seconds"]

    def _query(self, r: int) -> np.ndarray:
        """Choose among the rows without a label by the strategy."""
        plan, pool = self.plan, self._unlabeled()
        model = self._model(r - 1)  # fitted before the query is timed
        strategy, left = plan.strategy, self._left()
        size, given = min(plan.batch_size, len(pool)), {}
        if plan.costs is not None:
            given = {"costs": plan.costs[pool]}
            if math.isfinite(left):
                given["budget"] = left
        elif math.isfinite(left):
            size = min(size, math.floor(left))
        if needs_model(strategy) and self._knows_one_class(r - 1):
            strategy = RandomQuery()
        elif hasattr(strategy, "query_tags"):
            given |= plan.rows_of_query(strategy, pool, self.positions, self.labels)
        chosen = seeded(strategy, stream_seed(self.root, r)).query(
            model, take_rows(plan.X, pool), size, **given
        )
        chosen = check_positions(chosen, len(pool), "The picks", type(strategy).__name__, "X_pool")
        if len(np.unique(chosen)) < len(chosen):
            raise ValueError(
                f"{type(strategy).__name__}.query must return distinct positions. Got {chosen!r}."
            )
        return pool[chosen]

    def _ask(self, row: int, *, initial: bool) -> None:
        """Get the label of a row, and record it before anything else happens."""
        answer = self.journal.recorded("label")
        if answer is None:
            answer = {"position": row, "label": self.plan.answer(row, initial=initial)}
            self._check_kind(answer["label"], row)
            self.journal.append("label", answer)
        elif answer["position"] != row:
            raise CheckpointError(
                f"{self.journal.path} is not a checkpoint of one simulation: it holds the label of "
                f"row {answer['position']} where that of row {row} was requested. Move it away to "
                "start again."
            )
        if answer["label"] is None:
            self.refused.append(row)
        else:
            self.positions.append(row)
            self.labels.append(answer["label"])

    def _check_kind(self, label: Any, row: int) -> None:
        """Raise, before a label is recorded, if its type differs from that of earlier labels."""
        if label is None or not self.labels:
            return
        first = self.labels[0]
        if _label_type(label) != _label_type(first):
            raise TypeError(
                f"All labels must be text, all numbers, or all lists of one length. Got {label!r} "
                f"for row {row} after {first!r}."
            )

    def _fit_and_score(self, r: int, record: Round) -> Round:
        """Return the record of a round with its scores and measures."""
        start = time.perf_counter()
        model = self._model(r)
        record = replace(record, fit_seconds=time.perf_counter() - start)
        scoring = self.plan.scoring
        if scoring.cv is not None and model is not None:
            rows, y = self._known(r)
            seed = stream_seed(self.root, r)
            clone = seeded(self.plan.estimator, seed)
            given = take_rows(self.plan.X, rows), y, self.plan.fit_params.take(rows)
            scores = scoring.by_cv(clone, *given, seed)
            record = replace(record, scores=scores)
        else:
            record = replace(record, scores=scoring.of_model(model))
        state = self._state([*self.rounds, record])
        measures = {
            type(rule).__name__: float(rule.measure(state))
            for rule in self.plan.rules
            if rule.watches_models
        }
        return replace(record, measures=measures)

    def _model(self, r: int) -> Any:
        """Return the model of round r; those of the last two rounds are kept."""
        if r not in self._models:
            kept = {k: model for k, model in self._models.items() if k == r - 1}
            self._models = {**kept, r: self._fit(r)}
        return self._models[r]

    def _fit(self, r: int) -> Any:
        """Fit a new clone on the labels of round r; None if there are none."""
        rows, y = self._known(r)
        if not rows:
            return None
        try:
            seed = stream_seed(self.root, r)
            clone = seeded(self.plan.estimator, seed)
            params = self.plan.fit_params.take(rows)
            with seeded_training(clone, seed):
                return fit_model(clone, take_rows(self.plan.X, rows), y, params)
        except ValueError as error:
            if not self._knows_one_class(r):
                raise
            _LOG.info("A model of one class is replaced by a constant prediction: %s", error)
            return DummyClassifier().fit(np.zeros((len(y), 1)), y)

    def _known(self, r: int) -> tuple[list[int], np.ndarray]:
        """Return the rows with a label in round r, and their labels."""
        n = self.n_labeled[r]
        return self.positions[:n], self.plan.label_array(self.positions[:n], self.labels[:n])

    def _knows_one_class(self, r: int) -> bool:
        """Return whether a classifier had at most one class to learn in round r."""
        _, y = self._known(r)
        if not len(y):
            return True
        return is_classifier(self.plan.estimator) and y.ndim == 1 and bool((y == y[0]).all())

    def _unlabeled(self) -> np.ndarray:
        """Return the rows whose labels may be requested, ascending."""
        free = np.ones(self.plan.n_points, dtype=bool)
        free[self.positions] = False
        free[self.refused] = False
        return np.flatnonzero(free)

    def _may_ask(self, rows: Any) -> bool:
        """Return whether these are distinct rows without a label."""
        if not isinstance(rows, list) or not all(type(row) is int for row in rows):
            return False
        return len(set(rows)) == len(rows) and set(rows) <= set(self._unlabeled().tolist())

    def _spent(self) -> float:
        costs = self.plan.costs
        return float(len(self.positions)) if costs is None else math.fsum(costs[self.positions])

    def _left(self) -> float:
        """Return the remaining budget."""
        return self.plan.budget * (1 + SLACK) - self._spent()

    def _state(self, rounds: list[Round]) -> RoundState:
        labeled = np.array(self.positions, dtype=np.intp)
        return RoundState(tuple(rounds), self.plan.X, labeled, self._unlabeled(), self._model)

    def _reason_to_stop(self) -> str | None:
        """Return why this round is the last one; None if it is not."""
        plan, pool = self.plan, self._unlabeled()
        for rule in plan.rules:
            reason = rule.reason(self.rounds)
            if reason is not None:
                return reason
        if len(self.rounds) > plan.n_rounds:
            return f"n_rounds: {plan.n_rounds} rounds are done"
        if not len(pool):
            return "pool: no row without a label is left"
        cheapest = 1.0 if plan.costs is None else float(plan.costs[pool].min())
        if cheapest > self._left():
            return f"budget: {self._spent():g} of {plan.budget:g} are spent"
        return None


def _label_type(label: Any) -> Any:
    """Return the type that the labels of one run share."""
    if isinstance(label, list):
        return [_label_type(value) for value in label]
    return "text" if isinstance(label, str) else "number"
