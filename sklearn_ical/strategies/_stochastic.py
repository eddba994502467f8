"""Stochastic batches: the largest of randomly perturbed scores."""

import numbers
import warnings
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from sklearn_ical._random import STRATEGY, row_exponentials, stream, stream_seed
from sklearn_ical._typing import Real, Seed, StrategyName
from sklearn_ical._validation import Interval, StrOptions
from sklearn_ical.exceptions import EqualUtilitiesWarning
from sklearn_ical.pool._pool import Pool
from sklearn_ical.selection._batch import Batch, Selection, default_error, merge_ties
from sklearn_ical.strategies._base import BaseQuery, QueryTags
from sklearn_ical.strategies._composite import CompositeQuery


class StochasticQuery(CompositeQuery):
    """Choose rows at random, with probabilities that increase with another strategy's scores.

    Rows with the top scores are often near copies of each other; a random batch is more diverse at
    no cost [1]_. Each score is perturbed by Gumbel noise and the largest are chosen, which draws
    rows one after the other, without replacement, with probabilities that follow from the scores s.

    Read more in the :ref:`User Guide <stochastic>`.

    Parameters
    ----------
    strategy : BaseQuery or str
        The strategy that scores: the utilities of its first pick are the scores. Its tag
        `utilities` must be "gain". A name such as "bald" stands for the strategy with default
        parameters, see :ref:`strategy_names`. StochasticQuery("bald") is PowerBALD.
    kind : {"power", "softmax", "softrank"}, default="power"
        Form of the probability of a row, up to a factor. "power": s^beta; rows of score 0 or less
        come after all others, in random order. "softmax": exp(beta s), which depends on the unit of
        s. "softrank": rank^-beta, where the best score of the candidates has rank 1 and equal
        scores share their best rank.
    beta : float, default=1.0
        Exponent or scale of the scores, >= 0. The larger, the closer to the top scores; with 0 all
        rows ("power": all of score above 0) are equally likely.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the noise, and the draws if the posterior has infinitely many. The randomness of
        `strategy` is seeded by its own. See :term:`random_state`.

    Notes
    -----
    Utilities are perturbed scores: beta times log s, s or -log rank, plus the noise of the row; for
    "power", rows of score 0 or less lie below all others. The noise is keyed by the position in the
    pool. Model requirements: those of `strategy`. Cost: one step of `strategy`, and O(n_pool).

    References
    ----------
    .. [1] Kirsch et al., "Stochastic batch acquisition: a simple baseline for deep active
       learning", TMLR 2023, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical import BALDQuery, StochasticQuery
    >>> power_bald = StochasticQuery(BALDQuery(), random_state=0)
    >>> split, certain = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
    >>> set(power_bald.select(np.array([certain, split, split, certain]), batch_size=2).tolist())
    {1, 2}
    """

    _part_names = ("strategy",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions({"power", "softmax", "softrank"})],
        "beta": [Interval(numbers.Real, 0, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        strategy: BaseQuery | StrategyName,
        kind: Literal["power", "softmax", "softrank"] = "power",
        beta: Real = 1.0,
        random_state: Seed = None,
    ) -> None:
        self.strategy = strategy
        self.kind = kind
        self.beta = beta
        self.random_state = random_state

    def query_tags(self) -> QueryTags:
        """Return the tags: those of the strategy that scores, but random.

        Raises
        ------
        TypeError, ValueError
            If `strategy` is neither a strategy nor the name of one, or has no gains.
        """
        (strategy,) = self._parts()
        tags = strategy.query_tags()
        if tags.utilities != "gain":
            raise ValueError(
                "The 'strategy' parameter of StochasticQuery must have gains to perturb, with the "
                f"tag utilities='gain'. Got {type(strategy).__name__} with "
                f"utilities={tags.utilities!r}; choose another, such as BALDQuery()."
            )
        return replace(tags, deterministic=False, utilities="other")

    def _select(self, pool: Pool) -> Selection:
        scores = self._scores(pool)
        # A child of the stream: other strategies with an equal seed draw from the stream itself.
        seed = stream(stream_seed(pool.root, STRATEGY), STRATEGY)
        exponentials = row_exponentials(seed, pool.candidates)
        batch = Batch(pool)
        values = _perturbed(scores, self.kind, self.beta, exponentials)
        batch.take(values, pool.batch_size, errors=0.0)
        return batch.selection()

    def _scores(self, pool: Pool) -> np.ndarray:
        """Return the utilities of the strategy's first pick: (n_candidates,)."""
        (strategy,) = self._parts()
        first = replace(
            pool,
            root=strategy._root(),
            requested=1,
            batch_size=1,
            want_utilities=True,
            reference_positions=None,
        )
        with warnings.catch_warnings():  # among equal scores, the noise decides
            warnings.simplefilter("ignore", EqualUtilitiesWarning)
            rows: Any = self._choose_by(strategy, first).rows
        scores = rows[0, pool.candidates]
        if not np.isfinite(scores).all():
            raise ValueError(
                f"Utilities of {type(strategy).__name__} must be finite to be perturbed. Got "
                f"infinity in {pool.caller}; rescale the targets or features."
            )
        return scores


def _perturbed(scores: np.ndarray, kind: str, beta: Real, exponentials: np.ndarray) -> np.ndarray:
    """Add Gumbel noise, made from exponentials, to the logarithms of the weights of rows."""
    noise = -np.log(exponentials)
    if kind == "softmax":
        return beta * scores + noise
    if kind == "softrank":
        scores = merge_ties(scores, default_error(scores))
        ranks = 1 + np.searchsorted(np.sort(-scores), -scores)
        return noise - beta * np.log(ranks)
    weighs = scores > 0
    values = beta * np.log(np.where(weighs, scores, 1.0)) + noise
    below = values[weighs].min(initial=0.0) - 1
    return np.where(weighs, values, below - exponentials)
