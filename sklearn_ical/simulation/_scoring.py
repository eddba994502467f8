"""Scores of a model by scikit-learn's scorers, on test rows or by cross-validation."""

import copy
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer, log_loss
from sklearn.model_selection import check_cv

from sklearn_ical._fit_params import FitParams
from sklearn_ical._labels import one_column
from sklearn_ical._random import unfitted_clone
from sklearn_ical._validation import n_rows, take_rows, warn
from sklearn_ical.exceptions import ScoreFailedWarning
from sklearn_ical.samplers import DeepEnsembleSampler
from sklearn_ical.samplers._label_codes import fit_model
from sklearn_ical.samplers._models import keeps_columns, net_in, preserving_state, seeded_training
from sklearn_ical.samplers._probabilities import class_probabilities

# Names of columns of results besides the scores.
TAKEN = {
    *("strategy", "seed", "round", "n_labeled", "n_refused", "cost"),
    *("fit_seconds", "query_seconds", "positions", "labels"),
}


class Evaluation:
    """The combined arguments `scoring`, `X_test`, `y_test` and `cv`, checked."""

    def __init__(self, estimator: Any, scoring: Any, X_test: Any, y_test: Any, cv: Any) -> None:
        if (X_test is None) != (y_test is None):
            missing = "y_test" if y_test is None else "X_test"
            raise ValueError(f"X_test and y_test must be given together. Got no {missing}.")
        if X_test is not None and cv is not None:
            raise ValueError(
                "Scores come either from X_test and y_test or from cv. Got both; leave one out."
            )
        if scoring is not None and X_test is None and cv is None:
            raise ValueError(
                f"scoring={scoring!r} needs rows to score on. Pass X_test and y_test, or cv for "
                "cross-validation on the labeled rows."
            )
        if not (cv is None or hasattr(cv, "split") or isinstance(cv, numbers.Integral)):
            raise TypeError(
                "cv must be a number of folds or a splitter such as KFold, because the labeled "
                f"rows grow from round to round. Got {cv!r}."
            )
        self.scoring, self.X_test, self.cv = scoring, X_test, _without_state(cv)
        y_test = y_test if keeps_columns(estimator) else one_column(y_test)
        labels: Any = None if y_test is None else np.asarray(y_test)
        self.y_test: Any = labels
        if X_test is not None and n_rows(X_test, "X_test") != len(labels):
            raise ValueError(
                f"X_test and y_test must have equally many rows. Got {n_rows(X_test, 'X_test')} "
                f"and {len(labels)}."
            )
        self._scorers = _scorers(estimator, scoring)
        taken = TAKEN.intersection(self.names or ())
        if taken:
            raise ValueError(
                f"scoring must not use names of other columns of the result, {sorted(TAKEN)}. Got "
                f"{sorted(taken)}."
            )

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the metrics; None if only a call of the caller's function returns them."""
        if self.X_test is None and self.cv is None:
            return ()
        return tuple(self._scorers) if isinstance(self._scorers, Mapping) else None

    def of_model(self, model: Any) -> dict[str, float]:
        """Return the scores of a fitted model on the test rows; NaN if there is no model yet."""
        if self.X_test is None or model is None:
            return self._undefined()
        return self._scores(model, self.X_test, self.y_test)

    def by_cv(
        self, estimator: Any, X: Any, y: np.ndarray, params: FitParams, seed: int
    ) -> dict[str, float]:
        """Return the scores of clones cross-validated on the labeled rows: means over the folds.

        A fold in which a metric is not defined is ignored.
        """
        splitter = copy.copy(check_cv(self.cv, y, classifier=is_classifier(estimator)))
        if hasattr(splitter, "random_state") and splitter.random_state is None:
            splitter.random_state = seed
        folds = []
        try:
            for train, test in splitter.split(X, y):
                given = params.take(train)
                with seeded_training(estimator, seed):
                    fresh = unfitted_clone(estimator)
                    model = fit_model(fresh, take_rows(X, train), y[train], given)
                folds.append(self._scores(model, take_rows(X, test), y[test]))
        except ValueError as error:  # too few labels to split, or to fit on
            _warn_failed("cross-validation", error)
        if not folds:
            return self._undefined()
        return {name: _mean_defined([fold[name] for fold in folds]) for name in folds[0]}

    def _scores(self, model: Any, X: Any, y: np.ndarray) -> dict[str, float]:
        with preserving_state(model):
            model = _with_classes_of(model, y)
            if isinstance(self._scorers, Mapping):
                return {n: self._try(n, scorer, model, X, y) for n, scorer in self._scorers.items()}
            scores: Any = self._try("score", self._scorers, model, X, y)
        return scores if isinstance(scores, dict) else {"score": scores}

    def _undefined(self) -> dict[str, float]:
        names = ("score",) if self.names is None else self.names
        return dict.fromkeys(names, math.nan)

    @staticmethod
    def _try(name: str, scorer: Callable[..., Any], *arguments: Any) -> Any:
        """Return a score, NaN where it is not defined; raise errors not due to the data."""
        try:
            score = scorer(*arguments)
        except ValueError as error:
            _warn_failed(name, error)
            return math.nan
        if isinstance(score, Mapping):
            return {str(k): float(v) for k, v in score.items()}
        return float(score)


def _mean_defined(values: list[float]) -> float:
    """Return the mean of those that are not NaN, NaN if there are none."""
    defined = [value for value in values if not math.isnan(value)]
    return float(np.mean(defined)) if defined else math.nan


def _without_state(cv: Any) -> Any:
    """Return the splitter without its own generator: each round seeds it again."""
    if isinstance(getattr(cv, "random_state", 0), numbers.Integral):
        return cv
    cv = copy.copy(cv)
    cv.random_state = None
    return cv


def _scorers(estimator: Any, scoring: Any) -> Any:
    """Return scorers by name, or the caller's own function of model, X and y."""
    if scoring is None:
        return {"score": check_scoring(estimator)}
    if isinstance(scoring, str):
        return {scoring: _scorer(scoring)}
    if callable(scoring):
        return scoring
    if isinstance(scoring, Mapping) and scoring:
        return {str(name): _scorer(scorer) for name, scorer in scoring.items()}
    if isinstance(scoring, list | tuple | set) and scoring:
        names = sorted(scoring) if isinstance(scoring, set) else list(scoring)
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return {name: _scorer(name) for name in names}
    raise ValueError(
        "scoring must be None, the name of a scorer, a list of different names, a dict of scorers "
        f"or a function of model, X and y. Got {scoring!r}."
    )


def _scorer(scoring: Any) -> Any:
    """Return a scorer; that of the log loss adds the classes that are missing in the rows."""
    return _neg_log_loss if scoring == "neg_log_loss" else get_scorer(scoring)


def _neg_log_loss(model: Any, X: Any, y: np.ndarray) -> float:
    proba = class_probabilities(model, X)
    if len(model.classes_) < 2:
        return 0.0
    return -float(log_loss(y, proba, labels=model.classes_))


class _WithClasses:
    """A classifier for scorers, with probability 0 for classes that it has never seen.

    `known` are the classes of its columns, `classes` those and all others.
    """

    def __init__(self, model: Any, known: np.ndarray, classes: np.ndarray) -> None:
        self._model = model
        self._known = known
        self.classes_ = classes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__sklearn_tags__":
            raise AttributeError(name)
        return getattr(self._model, name)

    def __sklearn_tags__(self) -> Any:
        return self._model.__sklearn_tags__()

    def predict_proba(self, X: Any) -> np.ndarray:
        columns = class_probabilities(self._model, X)
        proba = np.zeros((len(columns), len(self.classes_)), columns.dtype)
        proba[:, np.searchsorted(self.classes_, self._known)] = columns
        return proba


def _with_classes_of(model: Any, y_test: np.ndarray) -> Any:
    """Return a classifier that has the classes of the test rows, too; other models as they are."""
    own: Any = getattr(model, "classes_", None)
    if not is_classifier(model) or isinstance(own, list) or y_test.ndim != 1:
        return model
    net = net_in(model)
    # Nets have columns for labels that they have not seen.
    known = own if net is None else DeepEnsembleSampler([net]).draw().classes
    classes = np.union1d(known, y_test)
    if len(classes) == len(known) and np.array_equal(known, own):
        return model
    return _WithClasses(model, known, classes)


def _warn_failed(name: str, error: Exception) -> None:
    warn(
        f"The score {name!r} is not defined here and NaN in this round: {error}",
        ScoreFailedWarning,
    )
