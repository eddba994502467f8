"""The draw protocol, the registry `get_sampler` and the unwrapping of scikit-learn containers.

What a family of models draws from lives in the other files of this package.
"""

from collections.abc import Iterator
from functools import singledispatch
from itertools import zip_longest
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from sklearn_ical import _array
from sklearn_ical._random import root_seed
from sklearn_ical._validation import check_integer, n_rows, sliceable, take_rows
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samples import PredictionSamples


@runtime_checkable
class Draws(Protocol):
    """m fixed functions of a posterior, ready to be evaluated on any rows.

    Immutable and picklable. The answer for a row depends on that row alone, in any chunk, unless
    `joint` is True: then all rows have to be evaluated in one call. Draws may add a method
    ``chunks(X, n_rows)`` that yields the samples of consecutive chunks of `X` where that is
    cheaper than one call per chunk.
    """

    n_draws: int
    kind: str
    classes: Any
    weights: Any
    joint: bool

    def __call__(self, X: Any) -> PredictionSamples:
        """Return the predictions of all draws for the rows of `X`."""


class BaseSampler:
    """Base of samplers: a `draw` method makes a sampler, `sample` comes with this class."""

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> Draws:
        """Fix `n_draws` functions of the posterior."""
        raise NotImplementedError(f"{type(self).__name__} must define draw.")

    def sample(
        self, X: Any, *, n_draws: int | None = None, random_state: Any = None
    ) -> PredictionSamples:
        """Return the predictions for `X` of freshly drawn functions: ``draw(...)(X)``.

        Parameters
        ----------
        X : object
            Rows that the model accepts, n_points of them.
        n_draws : int, default=None
            Number of draws; None for the sampler's default.
        random_state : int, RandomState, Generator or None, default=None
            See :term:`random_state`.

        Returns
        -------
        samples : PredictionSamples
            Of n_points points and n_draws draws.
        """
        return self.draw(n_draws, random_state)(X)


def evaluate_in_chunks(draws: Draws, X: Any, chunk: int) -> Iterator[PredictionSamples]:
    """Yield the predictions for consecutive chunks of the rows of `X`, checked.

    Parameters
    ----------
    draws : Draws
        Not joint, unless one chunk holds all rows.
    X : object
        Rows that the model accepts, n_points of them. Not modified.
    chunk : int
        Rows per chunk, at least 1; the last chunk may have fewer.

    Returns
    -------
    parts : iterator of PredictionSamples
        In row order; no row gives no part.

    Raises
    ------
    ValueError
        If the draws answer for other rows than those they were given.
    """
    total = n_rows(X)
    starts = range(0, total, chunk)
    if hasattr(draws, "chunks"):
        parts = draws.chunks(X, chunk)
    elif len(starts) == 1:
        parts = iter([draws(X)])
    else:
        X = sliceable(X)
        parts = (draws(take_rows(X, slice(a, min(a + chunk, total)))) for a in starts)
    sizes = [min(chunk, total - start) for start in starts]
    for size, part in zip_longest(sizes, parts):
        if not isinstance(part, PredictionSamples) or part.n_points != size:
            got = f"{part.n_points} points" if hasattr(part, "n_points") else type(part).__name__
            raise ValueError(
                f"{type(draws).__name__} must return PredictionSamples of the {size or 0} rows "
                f"given to it. Got {got}."
            )
        yield part


@singledispatch
def get_sampler(model: Any) -> Any:
    """Return a sampler of posterior draws for a fitted model.

    Parameters
    ----------
    model : object
        A fitted forest or extra-trees model (classifier or regressor), a list or dict of fitted
        models, a Pipeline or search object around one of these, an array of samples in the NKC
        layout or :class:`~sklearn_ical.PredictionSamples`, or any object with its own ``draw``.

    Returns
    -------
    sampler : object
        With ``draw(n_draws=None, random_state=None)``; it returns immutable draws that give
        :class:`~sklearn_ical.PredictionSamples` when called on rows.

    Raises
    ------
    UnsupportedModelError
        A TypeError: nothing is known about this kind of model.
    NotFittedError
        If the model is known but not fitted.

    Notes
    -----
    A :func:`functools.singledispatch`: teach it a model class of your own with
    ``get_sampler.register(MyModel)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical.samplers import get_sampler
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> get_sampler(forest).sample(X).values.shape
    (150, 20, 3)
    """
    if callable(getattr(model, "draw", None)) and not isinstance(model, type):
        return model
    if _array.is_array(model):
        return get_sampler(PredictionSamples(model))
    if hasattr(model, "best_estimator_"):
        return get_sampler(model.best_estimator_)
    name = name_of(model)
    if hasattr(model, "estimator") and hasattr(model, "refit") and hasattr(model, "scoring"):
        if not model.refit:
            raise UnsupportedModelError(
                f"{name} has refit=False and so keeps no fitted model. Set refit=True, or pass a "
                "model that you fitted with the chosen parameters."
            )
        raise not_fitted(model)
    if isinstance(model, type):
        raise UnsupportedModelError(
            f"model must be a fitted model, not a class. Got the class {name}; pass "
            f"{name}(...).fit(X, y)."
        )
    raise UnsupportedModelError(
        f"No prediction sampler is registered for {name}. Pass a fitted random forest or "
        "extra-trees model, a list or dict of fitted models, a Pipeline or search around one of "
        "these, an object with a draw method, PredictionSamples or an (n_points, n_draws, "
        "n_classes) array of probabilities; or register one with "
        f"sklearn_ical.samplers.get_sampler.register({name})."
    )


def name_of(model: Any) -> str:
    """Return the class name of a model, or the name of the class that was passed instead."""
    return model.__name__ if isinstance(model, type) else type(model).__name__


def not_fitted(model: Any) -> NotFittedError:
    """Return the error for a model that was never fitted."""
    return NotFittedError(
        f"{type(model).__name__} is not fitted yet. Call fit on the labeled data before query."
    )


def choose_members(
    n_members: int, n_draws: int | None, random_state: Any, owner: str
) -> np.ndarray:
    """Return which members of a finite ensemble are the draws: all, or a seeded subset in order."""
    if n_draws is None:
        return np.arange(n_members)
    n_draws = check_integer(n_draws, "n_draws", f"{owner}.draw")
    if n_draws > n_members:
        raise ValueError(
            f"n_draws must be at most the number of members, {n_members}. Got {n_draws} in "
            f"{owner}.draw; a finite ensemble has no further draws."
        )
    generator = np.random.default_rng(root_seed(random_state, owner))
    return np.sort(generator.choice(n_members, n_draws, replace=False))


class PipelineSampler(BaseSampler):
    """Samples the last step of a fitted Pipeline on rows that the other steps transform once.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted; its last step is a model that `get_sampler` knows.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> Draws:
        """Fix draws of the last step; see :class:`BaseSampler`."""
        last = self.pipeline.steps[-1][1] if self.pipeline.steps else None
        if last is None or last == "passthrough":
            raise UnsupportedModelError(
                f"Pipeline must end in a fitted model to draw from. Got {last!r} as its last step."
            )
        inner = get_sampler(last).draw(n_draws, random_state)
        return inner if len(self.pipeline) == 1 else _PipelineDraws(self.pipeline[:-1], inner)


class _PipelineDraws:
    """Draws of a model behind fitted transformers."""

    def __init__(self, transformer: Any, inner: Draws) -> None:
        self.transformer = transformer
        self.inner = inner
        self.n_draws = inner.n_draws
        self.kind = inner.kind
        self.classes = inner.classes
        self.weights = inner.weights
        self.joint = inner.joint

    def __call__(self, X: Any) -> PredictionSamples:
        return self.inner(self.transformer.transform(X))

    def chunks(self, X: Any, n_rows: int) -> Iterator[PredictionSamples]:
        """Transform all of `X` once and yield the samples of its chunks."""
        yield from evaluate_in_chunks(self.inner, self.transformer.transform(X), n_rows)


get_sampler.register(Pipeline, PipelineSampler)
