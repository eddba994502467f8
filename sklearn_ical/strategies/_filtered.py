"""Two consecutive strategies: one filters the candidates, the other chooses among them."""

import numbers
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from sklearn_ical._typing import Integer, StrategyName
from sklearn_ical._validation import Interval
from sklearn_ical.pool._pool import Pool
from sklearn_ical.selection._batch import Selection
from sklearn_ical.strategies._base import BaseQuery, QueryTags
from sklearn_ical.strategies._composite import CompositeQuery


class FilteredQuery(CompositeQuery):
    """Choose rows by one strategy among the best of another.

    A cheap filter reduces the pool of an expensive strategy, and keeps a strategy of coverage from
    choosing rows of which the model is certain.

    Read more in the :ref:`User Guide <filtered>`.

    Parameters
    ----------
    filter : BaseQuery or str
        The strategy that filters the candidates: those that it would choose itself, as a batch of
        `factor` times the size, are kept. A name such as "margin" stands for the strategy with
        default parameters, see :ref:`strategy_names`.
    strategy : BaseQuery or str
        The strategy that chooses the batch among them, or its name.
    factor : int, default=6
        Number of rows that the filter keeps for each that is chosen, at least 1; all candidates if
        there are fewer. With 1 the batch is that of the filter, in the order of `strategy`.

    Notes
    -----
    Both use the same predictions. The filter only limits what may be picked: reference rows, scales
    and kernels of `strategy` are still those of the whole pool. Each part uses its own
    `random_state`; draws of a posterior with infinitely many depend on that of `strategy`, so that
    a filter that keeps everything changes nothing.

    Utilities are those of `strategy`, NaN also for the rows that the filter left out, so costs are
    not supported. Model requirements: those of both parts.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn_ical import FilteredQuery, ICALQuery, MarginQuery
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X[:50], y[:50])
    >>> strategy = FilteredQuery(MarginQuery(), ICALQuery(random_state=0))
    >>> indices = strategy.query(forest, X[50:], batch_size=10)
    >>> set(indices) <= set(MarginQuery().query(forest, X[50:], batch_size=60))
    True
    """

    _part_names = ("filter", "strategy")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "factor": [Interval(numbers.Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        filter: BaseQuery | StrategyName,
        strategy: BaseQuery | StrategyName,
        factor: Integer = 6,
    ) -> None:
        self.filter = filter
        self.strategy = strategy
        self.factor = factor

    def query_tags(self) -> QueryTags:
        """Return the tags: the kinds that both parts support, and what either reads.

        Raises
        ------
        TypeError, ValueError
            If a part is neither a strategy nor the name of one, or the two have no kind of
            predictions in common.
        """
        parts = self._parts()
        tags = [part.query_tags() for part in parts]
        reads = {read for each in tags for read in each.reads}
        if "draws" in reads:
            reads.discard("mean")  # which the draws have too
        readers = [each for each in tags if each.predictions] or tags
        kinds = [kind for kind in readers[0].kinds if all(kind in each.kinds for each in readers)]
        if not kinds:
            raise ValueError(
                "The 'filter' and 'strategy' parameters of FilteredQuery must support one kind of "
                f"predictions in common. Got {type(parts[0]).__name__} for {tags[0].kinds} and "
                f"{type(parts[1]).__name__} for {tags[1].kinds}; choose another filter."
            )
        return QueryTags(
            deterministic=all(each.deterministic for each in tags),
            utilities="other",
            kinds=tuple(kinds),
            reads=tuple(sorted(reads)),
            uses=tuple(sorted({use for each in tags for use in each.uses})),
            min_draws=max(each.min_draws for each in tags),
        )

    def _root(self) -> int:
        """Return the root seed of the strategy that chooses, which also seeds the draws."""
        return self._parts()[1]._root()

    def _select(self, pool: Pool) -> Selection:
        narrow, strategy = self._parts()
        if self.query_tags().predictions:
            pool = replace(pool, rows=pool.rows.hold())
        n_kept = self.factor * pool.batch_size
        if n_kept < len(pool.candidates):
            # Sets of steps belong to the steps of the strategy.
            positions = pool.reference_positions
            one_set = positions if np.ndim(positions) == 1 else None
            kept = self._choose_by(
                narrow,
                replace(
                    pool,
                    caller=f"the filter of {pool.caller}",
                    root=narrow._root(),
                    requested=n_kept,
                    batch_size=n_kept,
                    want_utilities=False,
                    reference_positions=one_set,
                ),
            ).positions
            pool = replace(pool, candidates=np.sort(kept))
        return self._choose_by(strategy, pool)
