"""FASS: facility location within predicted classes among the most uncertain rows."""

import numbers
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._typing import Features, Integer, Seed
from sklearn_ical._validation import Interval
from sklearn_ical.dependence import predictive_entropy
from sklearn_ical.objectives._class_coverage import ClassCoverage
from sklearn_ical.pool._pool import Pool
from sklearn_ical.pool._range import features_in_range
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection._batch import Selection
from sklearn_ical.selection._maximize import maximize
from sklearn_ical.selection._range import in_unit
from sklearn_ical.strategies._base import FEATURES, PointwiseQuery, QueryTags


class FASSQuery(PointwiseQuery):
    """Choose uncertain rows that are close to many other uncertain rows of their class.

    Filtered active submodular selection [1]_. The filter keeps the ``factor * batch_size`` rows V
    of the largest predictive entropy. Among them greedy facility location makes

        f(S) = sum over i in V of max over s in S with i's predicted class of w(i, s)

    large, where ``w(i, s) = d - |x_i - x_s|^2`` for features x, d is the largest squared distance
    in V and the maximum over nothing is 0.

    Read more in the :ref:`User Guide <fass>`.

    Parameters
    ----------
    factor : int, default=30
        Number of rows that the filter keeps per pick; all if there are fewer. With 1 the filter
        alone decides, and the batch is that of :class:`MaxEntropyQuery`.
    features : {"auto"}, object with `transform`, callable or None, default="auto"
        Computes features of the rows. "auto": the input of the last step of a fitted Pipeline, also
        inside a search, learner or frozen model, or of the last linear layer of a net; the rows
        themselves for other models. A fitted transformer, which clones of the strategy keep fitted,
        or a function. None: the rows themselves. Features given with the call are used instead.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the draws of a model without `predict_proba`; ignored otherwise.

    Notes
    -----
    Features are finite numbers: arrays (further axes are flattened), frames or lists of numbers,
    or sparse matrices, which stay sparse. Distances depend on their scales.

    The rows to be covered are the most uncertain of the whole pool, for any candidates. Picks are
    among equally many of the most uncertain candidates, so that a batch can always be filled; w is
    0 if a candidate outside of V is farther away than d. Among equal gains the larger entropy is
    preferred, then the lowest position. Once every row of V is covered by a copy of itself, the
    batch continues in the order of entropy.

    A row of utilities holds the gains of the candidates that the filter kept, in squared units of
    the features, and NaN elsewhere, so costs are not supported. With ``factor=1`` it holds the
    entropies of all candidates, in nats.

    Lazy greedy: first gains in closed form, O(n_V n_features); then O(n_V n_features) for each
    recomputed gain, within the class of the last pick; and at most O(n_V^2 n_features) for d. There
    is no matrix of V by V. Model requirements: `predict_proba`, or posterior draws.

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
        "features": FEATURES,
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        factor: Integer = 30,
        features: Features = "auto",
        random_state: Seed = None,
    ) -> None:
        self.factor = factor
        self.features = features
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: any classifier, and features; gains of all rows for factor 1."""
        return QueryTags(
            utilities="gain" if self.factor == 1 else "other",
            kinds=("proba", "label"),
            reads=("mean", "features"),
            uses=("model",),
        )

    def _score(self, samples: PredictionSamples) -> Array:
        mean = samples.mean()
        # Sorted, so that the rounding of the sum does not depend on the order of the classes.
        return predictive_entropy(_array.namespace(mean).sort(mean, axis=1)[:, None, :])

    def _select(self, pool: Pool) -> Selection:
        (features,), factor = features_in_range(self.features, pool.rows)  # before any prediction
        if self.factor == 1:
            return super()._select(pool)
        pool = replace(pool, rows=pool.rows.hold())
        kept = covered = self._most_uncertain(pool, pool.candidates)
        if len(pool.candidates) < pool.n_points:
            covered = self._most_uncertain(pool, np.arange(pool.n_points))
        rows = np.union1d(kept, covered)
        objective = ClassCoverage(
            features,
            rows,
            pool.rows.map(_predicted_class, rows),
            np.isin(rows, covered),
            np.searchsorted(rows, kept),
        )
        return in_unit(maximize(replace(pool, candidates=kept), objective), factor, power=2)

    def _most_uncertain(self, pool: Pool, candidates: np.ndarray) -> np.ndarray:
        """Return the positions that the filter keeps, by descending entropy."""
        size = min(self.factor * pool.batch_size, len(candidates))
        filtered = replace(pool, candidates=candidates, batch_size=size, want_utilities=False)
        return super()._select(filtered).positions


def _predicted_class(samples: PredictionSamples) -> np.ndarray:
    """Return the likeliest class of each row by its mean prediction, the first of equals."""
    return np.argmax(samples.canonical().mean(), axis=1)
