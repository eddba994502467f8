"""Stopping rules: small objects that decide from the rounds so far when to stop."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import cohen_kappa_score

from sklearn_ical._validation import check_integer, take_rows
from sklearn_ical.dependence import predictive_entropy
from sklearn_ical.samplers._probabilities import class_probabilities
from sklearn_ical.simulation._result import Round


@dataclass(frozen=True)
class RoundState:
    """State of a simulation for callbacks and stopping rules, once a round is fitted and scored.

    Attributes
    ----------
    rounds : tuple of Round
        All rounds so far; the last one is the current one.
    X : object
        The rows given to `simulate`.
    labeled, unlabeled : intp array
        Positions in `X` of the rows with a label, in the order bought, and of the rows whose labels
        may still be requested, ascending.
    """

    rounds: tuple[Round, ...]
    X: Any
    labeled: np.ndarray
    unlabeled: np.ndarray
    _model_of: Callable[[int], Any] = field(repr=False)

    @property
    def model(self) -> Any:
        """The model fitted in this round; None as long as there are no labels at all."""
        return self._model_of(len(self.rounds) - 1)

    @property
    def previous_model(self) -> Any:
        """The model of the round before; None in the first round."""
        return self._model_of(len(self.rounds) - 2) if len(self.rounds) > 1 else None


@dataclass(frozen=True)
class StoppingRule:
    """Base of stopping rules: override `reason`, and `measure` where the scores are not enough.

    A rule keeps no state of its own, so that a resumed simulation stops where an uninterrupted one
    does: `measure` is called once for each round, its value is kept in the round's record, and
    `reason` depends on the records alone.

    Read more in the :ref:`User Guide <stopping_rules>`.
    """

    @property
    def watches_models(self) -> bool:
        """Whether the rule measures models, beyond their scores."""
        return type(self).measure is not StoppingRule.measure

    def check(self, estimator: Any, metrics: tuple[str, ...] | None) -> None:
        """Raise, before any work, if the rule cannot be applied; the base class accepts all.

        Parameters
        ----------
        estimator : estimator
            As given to `simulate`, not fitted.
        metrics : tuple of str or None
            Names of the scores; None if they are known only once a model is scored.
        """

    def measure(self, state: RoundState) -> float:
        """Return this round's value of the measure; called only if overridden.

        Parameters
        ----------
        state : RoundState
            With the models of this round and of the round before.

        Returns
        -------
        value : float
        """
        raise NotImplementedError(f"{type(self).__name__} measures nothing.")

    def reason(self, rounds: Sequence[Round]) -> str | None:
        """Return why to stop now.

        Parameters
        ----------
        rounds : sequence of Round
            All rounds so far, with the measures in ``measures[type(self).__name__]``.

        Returns
        -------
        reason : str or None
            None to continue.
        """
        raise NotImplementedError(f"{type(self).__name__} must define reason.")

    def _measured(self, rounds: Sequence[Round]) -> list[float]:
        return [record.measures[type(self).__name__] for record in rounds]


@dataclass(frozen=True)
class TargetScore(StoppingRule):
    """Stop once a score is reached.

    Read more in the :ref:`User Guide <stopping_rules>`.

    Parameters
    ----------
    target : float
        The score to reach; higher is better, as in all scikit-learn scorers.
    metric : str, default=None
        Which score; None for the first one.

    Examples
    --------
    >>> from sklearn_ical.simulation import TargetScore
    >>> TargetScore(0.9, metric="accuracy")
    TargetScore(target=0.9, metric='accuracy')
    """

    target: float
    metric: str | None = None

    def __post_init__(self) -> None:
        check_number(self.target, "target", "TargetScore")

    def check(self, estimator: Any, metrics: tuple[str, ...] | None) -> None:
        """Raise if the metric is not among the scores."""
        _check_metric(self.metric, metrics, "TargetScore")

    def reason(self, rounds: Sequence[Round]) -> str | None:
        """Return a reason if the last round's score is at least the target."""
        name, score = _score(rounds[-1], self.metric)
        if score >= self.target:
            return f"TargetScore: {name} is {score:.6g}, at least {self.target:g}"
        return None


@dataclass(frozen=True)
class Patience(StoppingRule):
    """Stop when the best score has not risen for some rounds.

    Read more in the :ref:`User Guide <stopping_rules>`.

    Parameters
    ----------
    n_rounds : int, default=5
        Number of consecutive rounds without improvement.
    metric : str, default=None
        Which score; None for the first one.
    min_delta : float, default=0.0
        A round is an improvement if its score exceeds the best one before by more than this.

    Examples
    --------
    >>> from sklearn_ical.simulation import Patience
    >>> Patience(3)
    Patience(n_rounds=3, metric=None, min_delta=0.0)
    """

    n_rounds: int = 5
    metric: str | None = None
    min_delta: float = 0.0

    def __post_init__(self) -> None:
        check_integer(self.n_rounds, "n_rounds", "Patience")
        check_number(self.min_delta, "min_delta", "Patience", minimum=0)

    def check(self, estimator: Any, metrics: tuple[str, ...] | None) -> None:
        """Raise if the metric is not among the scores."""
        _check_metric(self.metric, metrics, "Patience")

    def reason(self, rounds: Sequence[Round]) -> str | None:
        """Return a reason if the last `n_rounds` rounds were not better than the best before."""
        scores = [_score(record, self.metric)[1] for record in rounds]
        best, since = -math.inf, 0
        for score in scores:
            if score > best + self.min_delta:
                best, since = score, 0
            elif best > -math.inf:  # scores that are not defined yet are ignored
                since += 1
        if since >= self.n_rounds:
            name = _score(rounds[-1], self.metric)[0]
            return f"Patience: {name} has not risen above {best:.6g} for {since} rounds"
        return None


@dataclass(frozen=True)
class StablePredictions(StoppingRule):
    """Stop when new labels no longer change what the models predict.

    The measure is the agreement of this round's model with the one before on all rows of `X`:
    Cohen's kappa for classifiers [1]_, and for regressors the concordance correlation, which is
    kappa with quadratic weights. Both are 1 for equal predictions, and NaN as long as the model
    knows one class only.

    Read more in the :ref:`User Guide <stopping_rules>`.

    Parameters
    ----------
    threshold : float, default=0.99
        Stop when the mean agreement over the last rounds is at least this.
    n_rounds : int, default=3
        Number of rounds of the mean.

    References
    ----------
    .. [1] Bloodgood and Vijay-Shanker, "A method for stopping active learning based on
       stabilizing predictions and the need for user-adjustable stopping", CoNLL, 2009, section 3.

    Examples
    --------
    >>> from sklearn_ical.simulation import StablePredictions
    >>> StablePredictions()
    StablePredictions(threshold=0.99, n_rounds=3)
    """

    threshold: float = 0.99
    n_rounds: int = 3

    def __post_init__(self) -> None:
        check_number(self.threshold, "threshold", "StablePredictions", maximum=1)
        check_integer(self.n_rounds, "n_rounds", "StablePredictions")

    def measure(self, state: RoundState) -> float:
        """Return the agreement of the last two models; NaN in the first round."""
        new, old = state.model, state.previous_model
        if old is None or _knows_one_class(new):
            return math.nan
        return _agreement(new.predict(state.X), old.predict(state.X), is_classifier(new))

    def reason(self, rounds: Sequence[Round]) -> str | None:
        """Return a reason if the mean agreement over the last rounds reaches the threshold."""
        last = self._measured(rounds)[-self.n_rounds :]
        if len(last) == self.n_rounds and float(np.mean(last)) >= self.threshold:
            return (
                f"StablePredictions: mean agreement over {self.n_rounds} rounds is "
                f"{np.mean(last):.6g}, at least {self.threshold:g}"
            )
        return None


@dataclass(frozen=True)
class OverallUncertainty(StoppingRule):
    """Stop when the model is certain about the remaining rows.

    The measure is the mean entropy of `predict_proba` over the unlabeled rows [1]_, in nats from
    0 to log(n_classes); NaN as long as the model knows one class only.

    Read more in the :ref:`User Guide <stopping_rules>`.

    Parameters
    ----------
    threshold : float
        Stop when the mean entropy is at most this, in nats.

    References
    ----------
    .. [1] Zhu, Wang, Hovy and Ma, "Confidence-based stopping criteria for active learning for data
       annotation", ACM TSLP 6(3), 2010, section 3.2.

    Examples
    --------
    >>> from sklearn_ical.simulation import OverallUncertainty
    >>> OverallUncertainty(0.05)
    OverallUncertainty(threshold=0.05)
    """

    threshold: float

    def __post_init__(self) -> None:
        check_number(self.threshold, "threshold", "OverallUncertainty", minimum=0)

    def check(self, estimator: Any, metrics: tuple[str, ...] | None) -> None:
        """Raise if the estimator does not have `predict_proba`."""
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                "OverallUncertainty needs an estimator with predict_proba. Got "
                f"{type(estimator).__name__}; use StablePredictions instead."
            )

    def measure(self, state: RoundState) -> float:
        """Return the mean entropy over the unlabeled rows, 0 if there are none."""
        if _knows_one_class(state.model):
            return math.nan
        if not len(state.unlabeled):
            return 0.0
        proba = class_probabilities(state.model, take_rows(state.X, state.unlabeled))
        return float(np.mean(predictive_entropy(proba.astype(np.float64)[:, None, :])))

    def reason(self, rounds: Sequence[Round]) -> str | None:
        """Return a reason if the last measure is at most the threshold."""
        measured = self._measured(rounds)[-1]
        if measured <= self.threshold:
            return (
                f"OverallUncertainty: mean entropy is {measured:.6g} nats, at most "
                f"{self.threshold:g}"
            )
        return None


def _agreement(new: Any, old: Any, labels: bool) -> float:
    """Return Cohen's kappa of labels, or the concordance correlation of numbers."""
    new, old = np.asarray(new), np.asarray(old)
    if np.array_equal(new, old):
        return 1.0
    if labels:
        return float(cohen_kappa_score(new, old))
    squares = np.mean((new - old) ** 2)
    return float(1 - squares / (np.var(new) + np.var(old) + (np.mean(new) - np.mean(old)) ** 2))


def _knows_one_class(model: Any) -> bool:
    """Return whether a model has seen no labels, or one class only."""
    return model is None or (is_classifier(model) and len(np.ravel(model.classes_)) < 2)


def _score(record: Round, metric: str | None) -> tuple[str, float]:
    """Return the name and value of one score of a round."""
    name = next(iter(record.scores)) if metric is None else metric
    return name, record.scores[name]


def _check_metric(metric: str | None, metrics: tuple[str, ...] | None, caller: str) -> None:
    """Raise if a metric is not among the scores."""
    if metrics is None:
        return
    if not metrics:
        raise ValueError(
            f"{caller} needs a metric. Got no scores; pass X_test and y_test, or cv, to simulate."
        )
    if metric is not None and metric not in metrics:
        raise ValueError(
            f"{caller} needs the metric {metric!r}. Got scoring with "
            f"{', '.join(map(repr, metrics))}."
        )


def check_number(
    value: Any,
    name: str,
    caller: str,
    *,
    minimum: float = -math.inf,
    above: float = -math.inf,
    maximum: float = math.inf,
) -> None:
    """Raise if a value is not a finite number in a range."""
    rule = "a finite number"
    if minimum > -math.inf:
        rule += f" >= {minimum:g}"
    if above > -math.inf:
        rule += f" > {above:g}"
    if maximum < math.inf:
        rule += f" <= {maximum:g}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be {rule}. Got {value!r} in {caller}.")
    if not math.isfinite(value) or not (minimum <= value <= maximum and value > above):
        raise ValueError(f"{name} must be {rule}. Got {value!r} in {caller}.")
