"""Batch by the log determinant of the prediction covariance: LogDetQuery."""

import numbers
from typing import Any, ClassVar, Literal

import numpy as np

from sklearn_ical._typing import Real, Seed
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.objectives._covariance_rows import (
    CovarianceRows,
    count_outputs,
    noise_of_rows,
    set_noise,
)
from sklearn_ical.objectives._posterior import LogDeterminant, PosteriorVariance
from sklearn_ical.pool._pool import Pool
from sklearn_ical.selection._batch import Selection
from sklearn_ical.selection._maximize import maximize
from sklearn_ical.strategies._base import BaseQuery, QueryTags


class LogDetQuery(BaseQuery):
    """Choose the batch whose predictions span the largest volume over the posterior draws.

    Greedy maximization of ``log det(I + K_S / noise) / 2``, where K_S is the covariance of the
    batch's predictions over the draws: the information of noisy values at the rows of S about the
    function, if the posterior were Gaussian [1]_. Rows on which the draws disagree have large
    gains, but only the first of several rows on which they disagree in the same way.

    Read more in the :ref:`User Guide <logdet>`.

    Parameters
    ----------
    kernel : {"trace", "independent"}, default="trace"
        How to combine several classes or targets. "trace": their covariances are added up to one
        kernel [2]_. "independent": the log determinants of their covariances are added up [1]_, so
        that targets may have different units.
    noise : float or "ledoit-wolf", default=2.0
        Variance of the noise in a label, relative to the mean variance over the draws in the pool:
        of all classes, or of each target under "independent". The smaller it is, the fewer similar
        rows are chosen. "ledoit-wolf" uses the term that the Ledoit-Wolf shrinkage of each
        covariance adds to its diagonal [1]_. The `noise_variance` of samples, if they have one, is
        used instead.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the draws if the posterior has infinitely many; ignored otherwise.

    Notes
    -----
    The utility of a row is its gain: half the sum of ``log(1 + r / noise)`` over the covariances,
    in nats, where r is its variance given the rows chosen before. Utilities never grow from pick to
    pick, and are exactly 0 where all draws agree. The greedy batch has at least 1 - 1/e of the
    largest possible volume.

    The covariance of m draws and C classes has a rank of (m - 1)(C - 1) at most ("independent": m -
    1 for each class). Batches beyond that are still distinct and still ordered: with noise every
    row keeps some variance, so a large batch returns to the least certain rows. With a `noise` of
    less than about 1e-9 that variance is lost in rounding.

    Weights count as repeated draws do; "ledoit-wolf", which depends on the number of draws, does
    not support them. That shrinkage is kept between 0.001 and 0.999.

    Model requirements: at least 2 posterior draws, the same functions for every row. Cost O(n_pool
    * n_draws * n_classes * batch_size) at most, by pivoted Cholesky in the space of the draws, with
    lazy evaluation; memory O((n_pool + batch_size) * n_draws * n_classes), the first part only if
    it fits in a quarter of scikit-learn's `working_memory`; otherwise predictions are read again
    for rows that may be picked.

    References
    ----------
    .. [1] Ober et al., "Big Batch Bayesian Active Learning by Considering Predictive
       Probabilities", 2025.
    .. [2] Kirsch, "Black-Box Batch Active Learning for Regression", TMLR, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import LogDetQuery, PredictionSamples
    >>> values = np.array([[-3.0, 3.0, 0.0], [-3.0, 3.1, 0.0], [1.5, 1.5, -3.0], [2.0, 2.0, 2.0]])
    >>> LogDetQuery().select(PredictionSamples(values, kind="value"), batch_size=2)
    array([1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"trace", "independent"})],
        "noise": [Interval(numbers.Real, 0, None, closed="neither"), StrOptions({"ledoit-wolf"})],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        kernel: Literal["trace", "independent"] = "trace",
        noise: Real | Literal["ledoit-wolf"] = 2.0,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: at least two draws of any kind."""
        return QueryTags(min_draws=2)

    def _unit_power(self) -> int:
        return 0

    def _select(self, pool: Pool) -> Selection:
        if self.noise == "ledoit-wolf" and pool.rows.weights is not None:
            raise ValueError(
                "noise='ledoit-wolf' counts the draws, so weights would not act as repeated draws "
                f"do. Got weights in {pool.caller}; pass noise as a number."
            )
        n_outputs = count_outputs(pool.rows)
        trace = self.kernel == "trace"
        rows = CovarianceRows(pool.rows, n_outputs, trace=trace, caller=pool.caller)
        blocks = set_noise(rows, self.noise)
        noise = noise_of_rows(rows, blocks, "samples", pool.caller)[pool.candidates]
        posterior = PosteriorVariance(rows, pool.candidates, noise)
        return maximize(pool, LogDeterminant(posterior))
