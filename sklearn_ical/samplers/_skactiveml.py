"""Models of scikit-activeml: draws of the scikit-learn model inside one of its wrappers."""

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array

from sklearn_ical import _array
from sklearn_ical._typing import Integer, Seed
from sklearn_ical.samplers._base import BaseSampler, Draws, get_sampler
from sklearn_ical.samplers._bootstrap import BootstrapSampler
from sklearn_ical.samplers._models import is_fitted, name_of, not_fitted
from sklearn_ical.samplers._wrappers import DrawsAround, SamplerAround, TransformedDraws
from sklearn_ical.samples import PredictionSamples


def find_sampler(model: Any) -> BaseSampler | None:
    """Return the sampler of the model inside a wrapper that has draws of its own, or None."""
    # By vars: wrappers delegate every attribute that they lack to the model inside.
    attributes = vars(model)
    if not {"estimator", "missing_label"} <= set(attributes):
        return None
    inner = attributes.get("estimator_", attributes["estimator"])
    if not is_fitted(inner) or not attributes.get("is_fitted_", True):
        raise _without_fit(model, inner) if "estimator_" in attributes else not_fitted(model)
    sampler = get_sampler(inner)
    return None if isinstance(sampler, BootstrapSampler) else WrappedSampler(model, sampler)


class WrappedSampler(SamplerAround):
    """Samples the model inside a wrapper, for the classes of the wrapper."""

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix draws of the model inside; see :class:`BaseSampler`."""
        draws = self.inner.draw(n_draws, random_state)
        classes: Any = getattr(self.outer, "classes_", None)
        if draws.classes is not None and not np.array_equal(draws.classes, classes):
            draws = _WiderDraws(draws, classes)
        return TransformedDraws(_Rows(), draws)


class _Rows:
    """Reads rows as the wrappers read them: frames become arrays."""

    def transform(self, X: Any) -> np.ndarray:
        """Return `X` as an array of any type."""
        return check_array(X, dtype=None, allow_nd=True)


class _WiderDraws(DrawsAround):
    """Draws of a classifier among more classes, with probability 0 for those that it never saw."""

    def __init__(self, inner: Draws, classes: Any) -> None:
        super().__init__(inner)
        self._classes = np.array(classes)
        self._classes.flags.writeable = False
        self.columns = np.searchsorted(self._classes, inner.classes)

    @property
    def classes(self) -> np.ndarray:
        """Labels of the columns."""
        return self._classes

    def _answer(self, samples: PredictionSamples) -> PredictionSamples:
        """Return samples with a column, or a code, for every class."""
        if self.kind == "label":
            values = self.columns[np.asarray(samples.values)]
        else:
            shape = (samples.n_points, samples.n_draws, len(self.classes))
            values = np.zeros(shape)
            values[:, :, self.columns] = _array.to_host(samples.values)
        return PredictionSamples.trusted(
            values, self.kind, classes=self.classes, weights=self.weights
        )


def _without_fit(model: Any, inner: Any) -> NotFittedError:
    """Return the error for a wrapper that continued without a fit of the model inside."""
    return NotFittedError(
        f"{name_of(model)} could not fit its {name_of(inner)} on the labels that it was given, and "
        "predicts by counting them. Fit it on more labels before query, or choose the next rows "
        "with RandomQuery."
    )
