"""Classifiers that accept no labels but 0, 1, ...: fitted on codes of others, asked for labels."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from sklearn_ical._fit_params import FitParams
from sklearn_ical._labels import label_array
from sklearn_ical._typing import BaseEstimator, Integer, Seed
from sklearn_ical.samplers._base import BaseSampler, Draws, labeled_sampler
from sklearn_ical.samplers._models import estimator_type, net_in
from sklearn_ical.samplers._wrappers import DrawsAround, SamplerAround
from sklearn_ical.samples import PredictionSamples

# Arguments of a fit that hold labels too: pairs of rows and labels, and labels alone.
WITH_LABELS = {"eval_set": True, "eval_y": False, "y_val": False}


def fit_model(model: Any, X: Any, y: Any, params: Mapping[str, Any]) -> Any:
    """Return a model fitted on labeled rows, on codes of the labels if it accepts no others.

    Parameters
    ----------
    model : estimator
        Changed.
    X, y : object
        The rows and their labels.
    params : dict
        Other arguments of its `fit`.

    Returns
    -------
    model : estimator
        The same, or an :class:`EncodedClassifier` around it.
    """
    try:
        return model.fit(X, y, **params)
    except (TypeError, ValueError):
        encoded = _fit_on_codes(model, X, y, params)
        if encoded is None:
            raise
        return encoded


def _fit_on_codes(model: Any, X: Any, y: Any, params: Mapping[str, Any]) -> Any:
    """Return a classifier fitted on codes, None where that does not help either.

    Nets are left out: their outputs, not the labels, decide which codes there are.
    """
    if estimator_type(model) != "classifier" or net_in(model) is not None:
        return None
    try:
        labels = label_array(y, "y", "fit")
        classes, codes = np.unique(labels, return_inverse=True)
        are_codes = np.array_equal(classes, np.arange(len(classes)))
        objective = _binary_objective(model) if len(classes) == 2 else {}
        continuous = labels.dtype.kind == "f" and bool((classes != np.round(classes)).any())
        if labels.ndim > 1 or continuous or len(classes) < 2 or (are_codes and not objective):
            return None
        model = model.set_params(**objective).fit(X, codes, **_encoded(params, classes))
    except Exception:  # the first error is that of the labels that were given
        return None
    return model if are_codes else EncodedClassifier(model, classes)


def _binary_objective(model: Any) -> dict[str, str]:
    """Return the parameters for two classes of XGBoost, which `fit` sets to those for several."""
    return {
        name: "binary:logistic"
        for name, value in model.get_params().items()
        if name.rpartition("__")[2] == "objective" and str(value).startswith("multi:")
    }


def _encoded(params: Mapping[str, Any], classes: np.ndarray) -> FitParams:
    """Return arguments of a fit with the labels in them, those of rows to validate on, as codes."""
    encoded = FitParams(params, getattr(params, "aligned", ()))
    for name, value in params.items():
        pairs = WITH_LABELS.get(name.rpartition("__")[2])
        if pairs is None or value is None:
            continue
        if not pairs:
            encoded[name] = _codes(value, classes)
        elif isinstance(value, tuple):
            encoded[name] = (value[0], _codes(value[1], classes))
        else:
            encoded[name] = [(X, _codes(y, classes)) for X, y in value]
    return encoded


def _codes(labels: Any, classes: np.ndarray) -> np.ndarray:
    """Return the indices in sorted `classes` of labels; raise for others."""
    labels = label_array(labels, "y", "fit")
    codes = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    unknown = classes[codes] != labels
    if unknown.any():
        raise ValueError(
            f"Labels must be among those that the model was fitted on, {classes.tolist()}. Got "
            f"{labels[unknown][0]!r}."
        )
    return codes


def _inner_has(method: str) -> Any:
    return available_if(lambda model: hasattr(model.estimator_, method))


class EncodedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier fitted on codes of the labels, which predicts the labels themselves.

    Parameters
    ----------
    estimator : estimator
        Fitted on the indices of the labels in `classes`.
    classes : array of shape (n_classes,)
        The labels, sorted.
    """

    def __init__(self, estimator: Any, classes: np.ndarray) -> None:
        self.estimator = estimator
        self.classes = classes

    @property
    def estimator_(self) -> Any:
        """The model, fitted on codes."""
        return self.estimator

    @property
    def classes_(self) -> np.ndarray:
        """The labels, sorted."""
        return self.classes

    @property
    def n_features_in_(self) -> int:
        """Number of features that the model saw."""
        return self.estimator.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features that the model saw."""
        return self.estimator.feature_names_in_

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted labels, (n_rows,)."""
        return self.classes[np.asarray(self.estimator.predict(X)).astype(np.intp)]

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the labels, (n_rows, n_classes)."""
        return self.estimator.predict_proba(X)

    @_inner_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities of the labels, (n_rows, n_classes)."""
        return self.estimator.predict_log_proba(X)

    @_inner_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the decision values of the model."""
        return self.estimator.decision_function(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)


class _EncodedSampler(SamplerAround):
    """Samples the model inside an :class:`EncodedClassifier`."""

    def with_labeled(
        self, X_labeled: Any, y_labeled: Any, fit_params: Mapping[str, Any] | None = None
    ) -> BaseSampler:
        """Return the sampler with labeled rows; see :class:`BaseSampler`."""
        if X_labeled is None or y_labeled is None:
            return self.inner.with_labeled(X_labeled, y_labeled)
        model, classes = self.outer.estimator, self.outer.classes
        params = _encoded(fit_params or {}, classes)
        inner = labeled_sampler(model, X_labeled, _codes(y_labeled, classes), params)
        return _EncodedSampler(self.outer, inner)

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix draws of the model inside; see :class:`BaseSampler`."""
        return _LabelDraws(self.inner.draw(n_draws, random_state), self.outer.classes)


class _LabelDraws(DrawsAround):
    """Draws whose columns have labels instead of codes."""

    def __init__(self, inner: Draws, classes: np.ndarray) -> None:
        super().__init__(inner)
        self._classes = classes[inner.classes]
        self._classes.flags.writeable = False

    @property
    def classes(self) -> np.ndarray:
        """Labels of the columns."""
        return self._classes

    def _answer(self, samples: PredictionSamples) -> PredictionSamples:
        return PredictionSamples.trusted(
            samples.values, samples.kind, classes=self.classes, weights=self.weights
        )


def encoded_sampler(model: EncodedClassifier) -> BaseSampler:
    """Return the sampler of the model inside, for its labels."""
    return _EncodedSampler(model, labeled_sampler(model.estimator, None, None))
