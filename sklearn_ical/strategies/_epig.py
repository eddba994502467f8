"""Expected predictive information gain (EPIG), of single rows and of batches."""

import math
import numbers
import sys
from typing import Any, ClassVar, Literal

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._random import LABELS, row_uniforms, stream
from sklearn_ical._typing import Integer, Seed
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.dependence import epig
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection import merge_ties
from sklearn_ical.strategies._base import BaseQuery, QueryTags
from sklearn_ical.strategies._pool import Batch, Pool, Predictions, Selection
from sklearn_ical.strategies._references import one_set
from sklearn_ical.strategies._votes import outputs

# Where no candidate tells so many nats any more, imagined labels are forgotten.
LEAST_TOLD = 1e-6


class EPIGQuery(BaseQuery):
    """Choose rows whose labels tell most about the labels of reference rows.

    Expected predictive information gain [1]_: the mutual information between the label of a
    candidate and that of a reference row, averaged over the reference rows. Where BALD wants to
    know the model, EPIG wants to know what the model predicts there.

    Parameters
    ----------
    n_reference : int, default=200
        How many reference rows the candidates are compared with, at most all there are: a uniform
        sample of `X_reference`, or of the pool where that is not given.
    batch : {"top", "pseudo-label"}, default="top"
        How a batch is made. "top": the rows of largest information, as published, which may tell
        the same things. "pseudo-label": greedily, where each reference row imagines the labels of
        the rows chosen before; better batches, for the cost of "top" at each pick.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the sample of reference rows, the imagined labels, and the draws of posteriors that
        have more than finitely many. See :term:`random_state`.

    Notes
    -----
    Utilities are in nats, >= 0, and exactly 0 for rows on which all draws agree. Label samples
    count as certain votes.

    For "pseudo-label", each pick gets a label for each reference row, sampled from the mean of the
    draws under that row's weights; the weight of each draw is then multiplied by the probability
    that it gives the label, which is Bayes' rule [2]_, and the next pick has the largest mean
    information under these weights. One history of labels per reference row costs no more than
    one for all. Labels identify a draw after about log(n_draws) nats: once no candidate tells
    anything any more, all rows start again from the weights of the posterior.

    Model requirements: a classifier with at least 2 posterior draws, the same functions for every
    row. Cost O(n_pool n_reference n_draws n_classes^2), for "pseudo-label" per pick, beyond the
    predictions.

    References
    ----------
    .. [1] Bickford Smith et al., "Prediction-oriented Bayesian active learning", AISTATS 2023,
       section 4.
    .. [2] Hu and Mussmann, ParBaLS (partial batch label sampling), 2025; here the draws are
       weighted anew instead of the model fitted anew.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical import EPIGQuery
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X[:50], y[:50])
    >>> strategy = EPIGQuery(n_reference=50, random_state=0)
    >>> strategy.query(forest, X[50:], batch_size=10).shape
    (10,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_reference": [Interval(numbers.Integral, 1, None, closed="left")],
        "batch": [StrOptions({"top", "pseudo-label"})],
        "random_state": ["random_state", np.random.Generator],
    }
    _compares = True

    def __init__(
        self,
        n_reference: Integer = 200,
        batch: Literal["top", "pseudo-label"] = "top",
        random_state: Seed = None,
    ) -> None:
        self.n_reference = n_reference
        self.batch = batch
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: two draws or more of a classifier."""
        return QueryTags(deterministic=False, kinds=("proba", "label"), min_draws=2)

    def _select(self, pool: Pool) -> Selection:
        reference = outputs(self._reference(pool))
        batch = Batch(pool)
        if self.batch == "top":
            weights = pool.predictions.weights
            utilities = _information(pool, pool.predictions, reference, weights)
            _take(batch, pool.batch_size, utilities, reference)
            return batch.selection()
        predictions = pool.predictions.collect()
        seed = stream(pool.root, LABELS)
        prior = np.full(reference.shape[1], 1 / reference.shape[1])
        prior = prior if predictions.weights is None else predictions.weights
        weights = np.tile(prior, (reference.shape[0], 1))
        while True:
            utilities = _information(pool, predictions, reference, weights)
            free = ~np.isin(pool.candidates, batch.chosen)
            told = float(_array.to_host(utilities)[free].max())
            if told < LEAST_TOLD and (weights != prior).any():
                weights[:] = prior
                continue
            _take(batch, 1, utilities, reference)
            if batch.full:
                return batch.selection()
            position = np.array(batch.chosen[-1:])
            proba = _array.to_host(outputs(predictions.take(position)))[0]
            uniforms = row_uniforms(seed, position, len(weights))[0]
            weights = _after_labels(weights, proba.astype(np.float64), uniforms)

    def _reference(self, pool: Pool) -> PredictionSamples:
        """Return the predictions of the rows to compare with."""
        return pool.compared.take(one_set(pool, self.n_reference))


def _information(
    pool: Pool, predictions: Predictions, reference: Array, weights: np.ndarray | None
) -> Array:
    """Return what each candidate tells of the reference rows under these weights."""
    parts = [
        epig(outputs(samples), reference, weights=weights)
        for _, samples in predictions.chunks(pool.candidates)
    ]
    return _array.namespace(*parts).concat(parts)


def _error(reference: Array) -> float:
    """Bound the rounding of sums of n_draws products, and of terms of a few logarithms."""
    n_draws, n_classes = reference.shape[1:]
    return (n_draws + 64) * sys.float_info.epsilon * (2 + 2 * math.log(n_draws * n_classes))


def _take(batch: Batch, size: int, utilities: Array, reference: Array) -> None:
    """Let the batch take the `size` candidates of largest information."""
    error = _error(reference)

    def exact(places: np.ndarray) -> np.ndarray:
        found = _array.namespace(utilities).take(utilities, _array.like(places, utilities), axis=0)
        return merge_ties(_array.to_host(found), error)

    batch.take(utilities, size, tolerance=4 * error, exact=exact)


def _after_labels(weights: np.ndarray, proba: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Sample one row's label under each set of weights, and weigh the draws by how they saw it.

    Weights (n_reference, n_draws), probabilities (n_draws, n_classes), uniforms (n_reference,).
    """
    running = np.cumsum(weights @ proba, axis=1)
    labels = np.sum(running <= (uniforms * running[:, -1])[:, None], axis=1)
    weights = weights * proba[:, labels].T
    return weights / np.sum(weights, axis=1, keepdims=True)
