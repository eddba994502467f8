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
from sklearn_ical.pool._pool import Pool, RowSet
from sklearn_ical.pool._references import reference_rows
from sklearn_ical.selection._batch import Batch, Selection
from sklearn_ical.selection._maximize import maximize
from sklearn_ical.strategies._base import BaseQuery, QueryTags

# Sampled labels are dropped if no candidate has more information than this left, in nats.
LEAST_INFORMATION = 1e-6


class EPIGQuery(BaseQuery):
    """Choose rows with the largest mutual information between their labels and reference labels.

    Expected predictive information gain [1]_: the mutual information between the label of a
    candidate and that of a reference row, averaged over the reference rows. While BALD measures
    information about the model, EPIG measures information about its predictions there.

    Read more in the :ref:`User Guide <epig>`.

    Parameters
    ----------
    n_reference : int, default=200
        Number of reference rows that the candidates are compared with, at most all: a uniform
        sample of `X_reference`, or of the pool if that is not given.
    batch : {"top", "pseudo-label"}, default="top"
        How a batch is built. "top": the rows of largest information, as published, which may be
        redundant. "pseudo-label": greedily, given labels of the rows chosen before that are sampled
        for each reference row; better batches, at the cost of "top" for each pick.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the sample of reference rows, the sampled labels, and the draws if the posterior has
        infinitely many. See :term:`random_state`.

    Notes
    -----
    Utilities are in nats, >= 0, and exactly 0 for rows on which all draws agree. Label samples
    count as certain votes.

    For "pseudo-label", each pick gets a label for each reference row, sampled from the mean of the
    draws under that row's weights; the weight of each draw is then multiplied by the probability
    that it gives the label, which is Bayes' rule [2]_, and the next pick has the largest mean
    information under these weights. One history of labels per reference row costs no more than one
    for all. Labels identify a draw after about log(n_draws) nats: once no candidate has any
    information left, all rows start again from the weights of the posterior.

    Model requirements: a classifier with at least 2 posterior draws, the same functions for every
    row. Cost O(n_pool n_reference n_draws n_classes^2), for "pseudo-label" per pick, beyond the
    predictions.

    References
    ----------
    .. [1] Bickford Smith et al., "Prediction-oriented Bayesian active learning", AISTATS 2023,
       section 4.
    .. [2] Hu and Mussmann, ParBaLS (partial batch label sampling), 2025; here the draws are
       reweighted instead of the model refitted.

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
        return QueryTags(
            deterministic=False, kinds=("proba", "label"), uses=("reference",), min_draws=2
        )

    def _select(self, pool: Pool) -> Selection:
        positions = reference_rows(pool, self.n_reference)
        reference = pool.compared.take(positions).as_outputs()
        if self.batch == "pseudo-label":
            return maximize(pool, _PseudoLabels(pool, reference))
        batch = Batch(pool)
        utilities = _information(pool.rows, pool.candidates, reference, pool.rows.weights)
        batch.take(utilities, pool.batch_size, errors=_error(reference))
        return batch.selection()


class _PseudoLabels:
    """Information of candidates under draw weights that follow from sampled labels."""

    submodular = False
    negligible = LEAST_INFORMATION

    def __init__(self, pool: Pool, reference: Array) -> None:
        self.rows = pool.rows.hold()
        self.candidates = pool.candidates
        self.reference = reference
        self.seed = stream(pool.root, LABELS)
        n_reference, n_draws = reference.shape[:2]
        equal, weights = np.full(n_draws, 1 / n_draws), self.rows.weights
        self.prior = np.tile(equal if weights is None else weights, (n_reference, 1))
        self.restart()

    def restart(self) -> None:
        """Return to the weights of the posterior."""
        self.weights = self.prior

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the mean information of candidates about the reference labels."""
        positions = self.candidates[slots]
        gains = _information(self.rows, positions, self.reference, self.weights)
        return _array.to_host(gains), _error(self.reference)

    def add(self, slot: int) -> None:
        """Sample a candidate's label for each reference row, and update that row's weights."""
        position = self.candidates[[slot]]
        proba = _array.to_host(self.rows.take(position).as_outputs())[0]
        uniforms = row_uniforms(self.seed, position, len(self.weights))[0]
        self.weights = _after_labels(self.weights, proba.astype(np.float64), uniforms)


def _information(
    rows: RowSet, positions: np.ndarray, reference: Array, weights: np.ndarray | None
) -> Array:
    """Return the mean information of rows about the reference rows under these weights."""
    return rows.map(
        lambda samples: epig(samples.as_outputs(), reference, weights=weights), positions
    )


def _error(reference: Array) -> float:
    """Bound the rounding of sums of n_draws products, and of terms of a few logarithms."""
    n_draws, n_classes = reference.shape[1:]
    return (n_draws + 64) * sys.float_info.epsilon * (2 + 2 * math.log(n_draws * n_classes))


def _after_labels(weights: np.ndarray, proba: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Sample one row's label under each set of weights, and update them by Bayes' rule.

    Weights (n_reference, n_draws), probabilities (n_draws, n_classes), uniforms (n_reference,).
    """
    running = np.cumsum(weights @ proba, axis=1)
    labels = np.sum(running <= (uniforms * running[:, -1])[:, None], axis=1)
    weights = weights * proba[:, labels].T
    return weights / np.sum(weights, axis=1, keepdims=True)
