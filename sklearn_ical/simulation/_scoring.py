"""Scores of a model by scikit-learn's scorers, on test rows or by cross-validation."""

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import check_cv, cross_validate

from sklearn_ical._validation import n_rows, warn
from sklearn_ical.exceptions import ScoreFailedWarning


class Scoring:
    """What `scoring`, `X_test`, `y_test` and `cv` say together, checked."""

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
        self.scoring, self.X_test, self.cv = scoring, X_test, cv
        labels: Any = None if y_test is None else np.asarray(y_test)
        self.y_test: Any = labels
        if X_test is not None and n_rows(X_test, "X_test") != len(labels):
            raise ValueError(
                f"X_test and y_test must have equally many rows. Got {n_rows(X_test, 'X_test')} "
                f"and {len(labels)}."
            )
        self._scorers = _scorers(estimator, scoring)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the metrics; None if only a call of the caller's function can tell."""
        if self.X_test is None and self.cv is None:
            return ()
        return tuple(self._scorers) if isinstance(self._scorers, Mapping) else None

    def of_model(self, model: Any) -> dict[str, float]:
        """Return the scores of a fitted model on the test rows; NaN if there is no model yet."""
        if self.X_test is None or model is None:
            return dict.fromkeys(self.names or (), math.nan)
        model = _with_classes_of(model, self.y_test)
        if isinstance(self._scorers, Mapping):
            return {
                name: self._try(name, scorer, model, self.X_test, self.y_test)
                for name, scorer in self._scorers.items()
            }
        found: Any = self._try("score", self._scorers, model, self.X_test, self.y_test)
        return found if isinstance(found, dict) else {"score": found}

    def by_cv(self, estimator: Any, X: Any, y: np.ndarray) -> dict[str, float]:
        """Return the mean scores of clones cross-validated on the labeled rows."""
        scoring = self._scorers
        splits = check_cv(self.cv, y, classifier=is_classifier(estimator))
        try:
            found = cross_validate(estimator, X, y, scoring=scoring, cv=splits, error_score="raise")
        except Exception as error:
            _warn_failed("cross-validation", error)
            return dict.fromkeys(self.names or ("score",), math.nan)
        means = {name[5:]: found[name] for name in found if name.startswith("test_")}
        return {name: float(np.mean(values)) for name, values in means.items()}

    @staticmethod
    def _try(name: str, scorer: Callable[..., Any], *arguments: Any) -> Any:
        try:
            found = scorer(*arguments)
            if isinstance(found, Mapping):
                return {str(k): float(v) for k, v in found.items()}
            return float(found)
        except Exception as error:
            _warn_failed(name, error)
            return math.nan


def _scorers(estimator: Any, scoring: Any) -> Any:
    """Return scorers by name, or the caller's own function of model, X and y."""
    if scoring is None:
        if not hasattr(estimator, "score"):
            return {"score": None}
        return {"score": check_scoring(estimator)}
    if isinstance(scoring, str):
        return {scoring: get_scorer(scoring)}
    if callable(scoring):
        return scoring
    if isinstance(scoring, Mapping) and scoring:
        return {str(name): get_scorer(scorer) for name, scorer in scoring.items()}
    if isinstance(scoring, list | tuple | set) and scoring:
        names = sorted(scoring) if isinstance(scoring, set) else list(scoring)
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return {name: get_scorer(name) for name in names}
    raise ValueError(
        "scoring must be None, the name of a scorer, a list of different names, a dict of scorers "
        f"or a function of model, X and y. Got {scoring!r}."
    )


class _WithClasses:
    """A classifier as scorers see it, with probability 0 for classes it has never seen."""

    def __init__(self, model: Any, classes: np.ndarray) -> None:
        self._model = model
        self.classes_ = classes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__sklearn_tags__":
            raise AttributeError(name)
        return getattr(self._model, name)

    def __sklearn_tags__(self) -> Any:
        return self._model.__sklearn_tags__()

    def predict_proba(self, X: Any) -> np.ndarray:
        known = np.asarray(self._model.predict_proba(X))
        proba = np.zeros((len(known), len(self.classes_)))
        proba[:, np.searchsorted(self.classes_, self._model.classes_)] = known
        return proba


def _with_classes_of(model: Any, y_test: np.ndarray) -> Any:
    """Return a classifier that knows the classes of the test rows, too; others as they are."""
    known: Any = getattr(model, "classes_", None)
    if not is_classifier(model) or isinstance(known, list) or y_test.ndim != 1:
        return model
    classes = np.union1d(known, y_test)
    return model if len(classes) == len(known) else _WithClasses(model, classes)


def _warn_failed(name: str, error: Exception) -> None:
    warn(
        f"The score {name!r} is not defined here and NaN in this round: {error}",
        ScoreFailedWarning,
    )
