"""FASS: facility location within predicted classes among the most uncertain rows."""

import copy
import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal, Unpack, overload

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import (
    Indices,
    IndicesAndUtilities,
    Integer,
    Numbers,
    Positions,
    Real,
    Seed,
    SupportsTransform,
)
from sklearn_ical._validation import HasMethods, Interval, n_rows, numeric_rows
from sklearn_ical.dependence import predictive_entropy
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._base import PointwiseQuery, QueryTags, SelectOptions
from sklearn_ical.strategies._class_coverage import ClassCoverage
from sklearn_ical.strategies._facility_location import maximize
from sklearn_ical.strategies._pool import Batch, Pool, Predictions, Selection


class _SelectOptions(SelectOptions, total=False):
    """Keyword arguments of `select`, for type checkers."""

    X_pool: Any


class FASSQuery(PointwiseQuery):
    """Choose uncertain rows that are close to many other uncertain rows of their class.

    Filtered active submodular selection [1]_. The filter keeps the ``factor * batch_size`` rows V
    of the largest predictive entropy. Among them greedy facility location makes

        f(S) = sum over i in V of max over s in S with i's predicted class of w(i, s)

    large, where ``w(i, s) = d - |x_i - x_s|^2`` for features x, d is the largest squared distance
    in V and the maximum over nothing is 0.

    Parameters
    ----------
    factor : int, default=30
        How many rows the filter keeps per pick; all where there are fewer. With 1 the filter
        decides alone, and the batch is that of :class:`MaxEntropyQuery`.
    transform : object with `transform`, callable or None, default=None
        Makes the features of `X_pool`: a fitted transformer, which clones of the strategy keep
        fitted, or a function. None takes what all steps but the last of a fitted Pipeline make of
        `X_pool`, also of one in a search, learner or frozen model; for other models, and in
        `select`, `X_pool` itself.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the draws of a model without `predict_proba`; else without effect.

    Notes
    -----
    Features are finite numbers: arrays (further axes are flattened), frames or lists of numbers,
    or sparse matrices, which stay sparse. Distances depend on their scales.

    The rows to be covered are the most uncertain of the whole pool, whatever the candidates.
    What may be picked are the most uncertain of the candidates, as many, so that a batch can
    always be filled; w is 0 where a candidate from outside of V is farther away than d. Equal
    gains go to the larger entropy, then to the lowest position. Once every row of V is covered by
    a copy of itself, the batch goes on in the order of entropy.

    A row of utilities holds the gains of the candidates that the filter kept, in squared units of
    the features, and NaN elsewhere, so costs are refused. With ``factor=1`` it holds the entropies
    of all candidates, in nats.

    Lazy greedy: first gains in closed form, O(n_V n_features); then O(n_V n_features) for each
    gain that is renewed, within the class of the last pick; and O(n_V^2 n_features) at most for
    d. No matrix of V by V is held. Model requirements: `predict_proba`, or posterior draws.

    References
    ----------
    .. [1] Wei, Iyer and Bilmes, "Submodularity in data subset selection and active learning",
       ICML, 2015, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import FASSQuery
    >>> proba = np.full((4, 1, 2), 0.5)
    >>> FASSQuery().select(proba, batch_size=2, X_pool=[[0.0], [1.0], [2.0], [10.0]])
    array([2, 3])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "factor": [Interval(numbers.Integral, 1, None, closed="left")],
        "transform": [HasMethods(["transform"]), callable, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        factor: Integer = 30,
        transform: SupportsTransform | Callable[[Any], Any] | None = None,
        random_state: Seed = None,
    ) -> None:
        self.factor = factor
        self.transform = transform
        self.random_state = random_state

    def __sklearn_clone__(self) -> "FASSQuery":
        """Return a deep copy, as a clone of a fitted transformer would not be fitted."""
        return copy.deepcopy(self)

    def query_tags(self) -> QueryTags:
        """Return the tags: any classifier, and rows that are numbers; gains of all for factor 1."""
        return QueryTags(
            utilities="gain" if self.factor == 1 else "other",
            kinds=("proba", "label"),
            needs=("mean", "features"),
        )

    @overload
    def select(
        self, samples: PredictionSamples | Array, batch_size: Integer = 1, *,
        return_utilities: Literal[False] = False, **options: Unpack[_SelectOptions],
    ) -> Indices: ...  # fmt: skip

    @overload
    def select(
        self, samples: PredictionSamples | Array, batch_size: Integer = 1, *,
        return_utilities: Literal[True], **options: Unpack[_SelectOptions],
    ) -> IndicesAndUtilities: ...  # fmt: skip

    @overload
    def select(
        self, samples: PredictionSamples | Array, batch_size: Integer = 1, *,
        return_utilities: bool, **options: Unpack[_SelectOptions],
    ) -> Indices | IndicesAndUtilities: ...  # fmt: skip

    def select(
        self,
        samples: PredictionSamples | Array,
        batch_size: Integer = 1,
        *,
        candidates: Positions | None = None,
        reference_samples: PredictionSamples | Array | None = None,
        X_pool: Any = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose rows by their predictions and their features.

        Parameters
        ----------
        samples, batch_size, candidates, reference_samples, costs, budget, return_utilities
            As in :meth:`BaseQuery.select`.
        X_pool : object
            The rows that `samples` are the predictions of: features, or what `transform` makes
            features of. Required.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            As in :meth:`query`.
        utilities : float64 array of shape (n_picks, n_pool)
            As in :meth:`query`.
        """
        if X_pool is None:
            raise TypeError(
                "X_pool must be the rows that samples are the predictions of. Got None in "
                f"{type(self).__name__}.select, which measures distances between rows."
            )
        return self._select_samples(
            samples,
            batch_size,
            candidates=candidates,
            reference_samples=reference_samples,
            X_pool=X_pool,
            costs=costs,
            budget=budget,
            return_utilities=return_utilities,
        )

    def _score(self, samples: PredictionSamples) -> Array:
        mean = samples.mean()
        # Sorted, so that the order of the classes has no part in the rounding of the sum.
        return predictive_entropy(_array.namespace(mean).sort(mean, axis=1)[:, None, :])

    def _select(self, pool: Pool) -> Selection:
        features = self._features(pool)  # before any prediction
        if self.factor == 1:
            return super()._select(pool)
        pool = replace(pool, predictions=pool.predictions.collect())
        kept = covered = self._most_uncertain(pool, pool.candidates)
        if len(pool.candidates) < pool.n_points:
            covered = self._most_uncertain(pool, np.arange(pool.n_points))
        rows = np.union1d(kept, covered)
        objective = ClassCoverage(
            features,
            rows,
            _predicted_classes(pool.predictions, rows),
            np.isin(rows, covered),
            np.searchsorted(rows, kept),
        )
        batch = Batch(replace(pool, candidates=kept))
        maximize(batch, objective)
        return batch.selection()

    def _most_uncertain(self, pool: Pool, candidates: np.ndarray) -> np.ndarray:
        """Return the positions that the filter keeps, by descending entropy."""
        size = min(self.factor * pool.batch_size, len(candidates))
        filtered = replace(pool, candidates=candidates, batch_size=size, want_utilities=False)
        return super()._select(filtered).positions

    def _features(self, pool: Pool) -> Any:
        """Return the features of the pool, checked to be numbers."""
        X, name = pool.X_pool, "X_pool"
        transform = self.transform if self.transform is not None else _steps_before(pool.model)
        if isinstance(transform, type):
            raise TypeError(
                "The 'transform' parameter of FASSQuery must be a fitted transformer or a function."
                f" Got the class {transform.__name__}; fit an object of it first."
            )
        if transform is not None:
            make: Any = getattr(transform, "transform", transform)
            X = make(X)
            name = "What transform makes of X_pool"
            if n_rows(X, name) != pool.n_points:
                raise ValueError(
                    f"{name} must have one row for each of the {pool.n_points} rows. Got "
                    f"{n_rows(X)} in {pool.owner}."
                )
        if _array.is_array(X):
            X = _array.to_host(X)
        way_out = "pass transform=, a fitted transformer or a function that makes such rows"
        return numeric_rows(X, name, pool.owner, way_out)


def _steps_before(model: Any) -> Any:
    """Return all steps but the last of the fitted Pipeline that a model is, or stands around."""
    while not isinstance(model, Pipeline):
        if hasattr(model, "best_estimator_"):  # a search
            model = model.best_estimator_
        elif hasattr(model, "teach"):  # a learner, of this package or in the form of modAL
            model = getattr(model, "estimator_", None) or model.estimator
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        else:
            return None
    return model[:-1] if len(model) > 1 else None


def _predicted_classes(predictions: Predictions, rows: np.ndarray) -> np.ndarray:
    """Return the likeliest class of each row by its mean prediction, the first of equals."""
    parts = [samples.canonical().mean() for _, samples in predictions.chunks(rows)]
    return np.concatenate([np.argmax(mean, axis=1) for mean in parts])
