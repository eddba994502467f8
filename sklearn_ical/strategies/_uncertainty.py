"""Strategies that score single rows: random, maximum entropy, margin, least confident, BALD."""

from dataclasses import replace
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._random import STRATEGY, row_uniforms, stream
from sklearn_ical.dependence import (
    bald,
    gaussian_bald,
    least_confidence,
    margin,
    predictive_entropy,
    predictive_variance,
)
from sklearn_ical.pool._pool import Pool
from sklearn_ical.pool._range import magnitude
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection._batch import Batch, Selection
from sklearn_ical.selection._range import in_unit
from sklearn_ical.strategies._base import BaseQuery, PointwiseQuery, QueryTags

# Variances of real predictions below it, or above its inverse, are computed in another unit.
SMALLEST = 2.0**-128


class RandomQuery(BaseQuery):
    """Choose rows uniformly at random, without replacement.

    The baseline of every comparison. The model is never used and may be None.

    Read more in the :ref:`User Guide <random>`.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=None
        See :term:`random_state`.

    Notes
    -----
    Utilities are uniforms keyed by the position in the pool; the batch is the largest among the
    candidates, so fewer candidates give a subsequence of the same order. With costs it is the
    largest uniforms per cost, so cheap rows are favored, and the batch is no longer a uniform
    sample. Cost O(n_pool).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import RandomQuery
    >>> len(set(RandomQuery(random_state=0).query(None, np.zeros((50, 2)), batch_size=5)))
    5
    """

    def query_tags(self) -> QueryTags:
        """Return the tags: no predictions are needed."""
        return QueryTags(deterministic=False, reads=())

    def _select(self, pool: Pool) -> Selection:
        seed = stream(pool.root, STRATEGY)
        utilities = row_uniforms(seed, pool.candidates, 1)[:, 0]
        batch = Batch(pool)
        batch.take(utilities, pool.batch_size, errors=0.0)
        return batch.selection()


class _MeanQuery(PointwiseQuery):
    """Base of strategies that use only the mean class probabilities."""

    def query_tags(self) -> QueryTags:
        """Return the tags: the mean prediction is enough, so any classifier is supported."""
        return QueryTags(kinds=("proba", "label"), reads=("mean",))


class _VarianceQuery(PointwiseQuery):
    """Base of strategies that score real predictions by their variance.

    If variances leave float64, or could, predictions are read again, multiplied by a power of two.
    """

    def _select(self, pool: Pool) -> Selection:
        with np.errstate(over="ignore", invalid="ignore"):
            utilities = pool.rows.map(self._score, pool.candidates)
        if pool.rows.kind != "value" or SMALLEST < _array.largest(utilities) < 1 / SMALLEST:
            return self._take_best(pool, utilities)
        factor = _array.range_factor(magnitude(pool.rows, pool.candidates))
        chosen = super()._select(replace(pool, rows=pool.rows.times(factor)))
        return in_unit(chosen, factor, self._score_power(pool))

    def _score_power(self, pool: Pool) -> int:
        """Return the power of the target's unit in scores."""
        return 2


class MaxEntropyQuery(_VarianceQuery):
    """Choose the rows whose mean prediction has the largest entropy.

    Read more in the :ref:`User Guide <max_entropy>`.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=None
        Seeds the draws of a classifier without `predict_proba`, or of a regressor that states no
        standard deviation; ignored otherwise.

    Notes
    -----
    The utility is the entropy of the draw-averaged class probabilities, in nats from 0 to
    log(n_classes); vote entropy for label samples. For regression it is the predictive variance,
    the variance over draws plus the mean noise variance, summed over targets, which ranks as the
    entropy of a Gaussian does; it is exact where `predict` has `return_std`, inside other models
    too. Model requirements: `predict_proba`, `return_std` or posterior draws. Cost
    O(n_pool * n_classes) beyond the predictions.

    References
    ----------
    .. [1] Settles, "Active learning literature survey", University of Wisconsin-Madison, 2009,
       section 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import MaxEntropyQuery
    >>> MaxEntropyQuery().select(np.array([[[0.9, 0.1]], [[0.5, 0.5]], [[0.7, 0.3]]]), batch_size=2)
    array([1, 2])
    """

    def query_tags(self) -> QueryTags:
        """Return the tags: classifiers by their mean, regressors by their draws."""
        return QueryTags(reads=("mean",))

    def _score(self, samples: PredictionSamples) -> Array:
        if samples.kind == "value":
            return predictive_variance(
                samples.values, weights=samples.weights, noise_variance=samples.noise_variance
            )
        return _mean_entropy(samples)


class MarginQuery(_MeanQuery):
    """Choose the rows whose two likeliest classes are closest.

    Read more in the :ref:`User Guide <margin>`.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=None
        Seeds the draws of a model without `predict_proba`; ignored otherwise.

    Notes
    -----
    The utility is 1 minus the difference of the two largest mean class probabilities, from 0 to 1;
    0 everywhere for a single class. Model requirements: `predict_proba`, or posterior draws. Cost
    O(n_pool * n_classes) beyond the predictions.

    References
    ----------
    .. [1] Scheffer, Decomain and Wrobel, "Active hidden Markov models for information
       extraction", IDA, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import MarginQuery
    >>> MarginQuery().select(np.array([[[0.6, 0.4, 0.0]], [[0.4, 0.3, 0.3]]]))
    array([1])
    """

    def _score(self, samples: PredictionSamples) -> Array:
        return margin(samples.mean()[:, None, :])


class LeastConfidentQuery(_MeanQuery):
    """Choose the rows whose likeliest class is least likely.

    Read more in the :ref:`User Guide <least_confident>`.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=None
        Seeds the draws of a model without `predict_proba`; ignored otherwise.

    Notes
    -----
    The utility is 1 minus the largest mean class probability, from 0 to 1 - 1/n_classes. Model
    requirements: `predict_proba`, or posterior draws. Cost O(n_pool * n_classes) beyond the
    predictions.

    References
    ----------
    .. [1] Culotta and McCallum, "Reducing labeling effort for structured prediction tasks",
       AAAI, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import LeastConfidentQuery
    >>> LeastConfidentQuery().select(np.array([[[0.6, 0.4, 0.0]], [[0.4, 0.3, 0.3]]]))
    array([1])
    """

    def _score(self, samples: PredictionSamples) -> Array:
        return least_confidence(samples.mean()[:, None, :])


class BALDQuery(_VarianceQuery):
    """Choose the rows on whose labels the posterior draws disagree most.

    Read more in the :ref:`User Guide <bald>`.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=None
        Seeds the draws if the posterior has infinitely many; ignored otherwise.

    Notes
    -----
    The utility is the mutual information between the label and the draw, in nats from 0 to
    log(min(n_draws, n_classes)): entropy of the mean prediction minus mean entropy [1]_. Label
    samples count as certain votes, so it is their vote entropy. For regression it is the
    information of Gaussian members by moment matching where the samples have a `noise_variance`;
    without one it is the variance over draws (summed over targets), which ranks in the same way
    for every constant noise. Model requirements: posterior draws. Cost O(n_pool * n_draws *
    n_classes) beyond the predictions.

    References
    ----------
    .. [1] Houlsby et al., "Bayesian active learning for classification and preference learning",
       arXiv:1112.5745, 2011, equation 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import BALDQuery
    >>> certain, split = [[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]
    >>> BALDQuery().select(np.array([certain, split]))
    array([1])
    """

    def query_tags(self) -> QueryTags:
        """Return the tags: at least two draws of any kind."""
        return QueryTags(min_draws=2)

    def _score(self, samples: PredictionSamples) -> Array:
        values, weights = samples.values, samples.weights
        if samples.kind == "proba":
            return bald(values, weights=weights)
        if samples.kind == "label":
            return _mean_entropy(samples)
        noise: Any = samples.noise_variance
        if noise is None:
            return predictive_variance(values, weights=weights)
        return gaussian_bald(values, weights=weights, noise_variance=noise)

    def _score_power(self, pool: Pool) -> int:
        return 2 if pool.rows.take(np.arange(1)).noise_variance is None else 0

    def _exact_score(self, samples: PredictionSamples) -> np.ndarray:
        if samples.kind != "proba":
            return super()._exact_score(samples)
        values = _array.to_host(samples.values).astype(np.float64)
        n_points, n_draws, n_classes = values.shape
        ordered = np.sort(values, axis=2).reshape(n_points * n_draws, 1, n_classes)
        given_draw = predictive_entropy(ordered).reshape(n_points, n_draws)
        if samples.weights is None:
            mean_entropy = np.sum(np.sort(given_draw, axis=1), axis=1) / n_draws
        else:
            mean_entropy = np.sum(given_draw * samples.weights, axis=1)
        information = np.maximum(_mean_entropy(samples.canonical()) - mean_entropy, 0.0)
        return np.where((values == values[:, :1]).all(axis=(1, 2)), 0.0, information)


def _mean_entropy(samples: PredictionSamples) -> Array:
    """Return the entropy of the mean prediction, the same for classes in any order."""
    mean = samples.mean()
    return predictive_entropy(_array.namespace(mean).sort(mean, axis=1)[:, None, :])
