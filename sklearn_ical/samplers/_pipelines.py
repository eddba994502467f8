"""The steps of fitted Pipelines: rows pass them as in `predict`, and refits keep them as fitted."""

import copy
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from sklearn_ical._typing import BaseEstimator
from sklearn_ical.samplers._models import frozen_copy, name_of, not_fitted, refittable, rows_for


class FittedSteps(BaseEstimator):
    """Fitted steps of a Pipeline as one transformer, which no `fit` changes.

    Rows pass one step after the other, as in `predict`. Unlike the Pipeline of these steps, it does
    not ask whether the last of them was fitted: a step may have nothing to fit.

    Parameters
    ----------
    steps : list
        Transformers, fitted; None, "passthrough" and steps that resample are skipped.
    """

    def __init__(self, steps: list[Any]) -> None:
        self.steps = steps

    def __sklearn_clone__(self) -> "FittedSteps":
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None, **params: Any) -> "FittedSteps":
        """Do nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows after all steps, which do not change `X`."""
        X = rows_for(self.steps, X)
        for step in self.steps:
            X = transform_rows(step, X)
        return X


def steps_before_last(pipeline: Pipeline) -> FittedSteps:
    """Return the steps of a fitted Pipeline but the last; later fits do not change them."""
    return _frozen(pipeline.steps[:-1])


def transform_rows(step: Any, X: Any) -> Any:
    """Return rows as one step of a fitted Pipeline, or all steps of a nested one, transform them.

    Raises
    ------
    NotFittedError
        If the step was not fitted and cannot transform rows.
    """
    if isinstance(step, Pipeline):
        return _frozen(step.steps).transform(X)
    if _is_skipped(step):
        return X
    try:
        return step.transform(X)
    except NotFittedError as err:
        raise not_fitted(name_of(step)) from err


def split_for_refits(pipeline: Pipeline) -> tuple[FittedSteps | None, Any]:
    """Return the steps of a fitted Pipeline before the part to refit, and that part.

    The part is the last step; where steps resample rows, as those of imbalanced-learn do, it is a
    Pipeline from the first of them on, whose transformers stay as they were fitted. None if no step
    is before it.
    """
    steps, last = pipeline.steps, len(pipeline.steps) - 1
    first = next((k for k in range(last) if _resamples(steps[k][1])), last)
    part = steps[last][1] if 0 < first == last else _with_fitted_transformers(pipeline, first)
    return (_frozen(steps[:first]) if first else None), part


def _with_fitted_transformers(pipeline: Pipeline, first: int = 0) -> Pipeline:
    """Return the steps from `first` on, as a Pipeline whose fit leaves its transformers alone."""
    *steps, (name, last) = pipeline.steps[first:]
    last = refittable(last)
    if isinstance(last, Pipeline):
        last = _with_fitted_transformers(last)
    kept = [(key, step if _is_skipped(step) else _frozen([(key, step)])) for key, step in steps]
    part = copy.copy(pipeline)
    part.steps = [*kept, (name, last)]
    return part


def _frozen(steps: list[tuple[str, Any]]) -> FittedSteps:
    return FittedSteps([frozen_copy(step) for _, step in steps])


def _is_skipped(step: Any) -> bool:
    """Return whether predictions skip a step."""
    return step is None or isinstance(step, str) or _resamples(step)


def _resamples(step: Any) -> bool:
    """Return whether a step resamples rows and labels, in `fit` alone."""
    return hasattr(step, "fit_resample")
