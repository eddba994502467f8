"""Two strategies in a row: one narrows the candidates down, the other chooses among them."""

import numbers
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from sklearn_ical._typing import Integer, StrategyName
from sklearn_ical._validation import Interval
from sklearn_ical.strategies._base import BaseQuery, QueryTags
from sklearn_ical.strategies._parts import CompositeQuery
from sklearn_ical.strategies._pool import Pool, Selection


class FilteredQuery(CompositeQuery):
    """Choose by one strategy among the rows that another likes best.

    A cheap filter spares an expensive strategy most of the pool, and keeps one that looks for
    coverage away from rows that the model knows already.

    Parameters
    ----------
    filter : BaseQuery or str
        The strategy that narrows the candidates down to those that it would choose itself, as a
        batch of `factor` times the size. A name such as "margin" stands for the strategy with
        default parameters, see :ref:`strategy_names`.
    strategy : BaseQuery or str
        The strategy that chooses the batch among them, or its name.
    factor : int, default=6
        How many rows the filter keeps for each that is chosen, at least 1; all candidates if there
        are fewer. At 1 the batch is the filter's, in the order of `strategy`.

    Notes
    -----
    Both see the same predictions. The filter limits what may be picked and nothing else: reference
    rows, scales and kernels of `strategy` still come from the whole pool. Each part runs on its own
    `random_state`; the draws of posteriors that have more than finitely many follow that of
    `strategy`, so that a filter that keeps everything changes nothing.

    Utilities are those of `strategy`, NaN also for the rows that the filter left out, so no costs
    are taken. Model requirements: those of both parts.

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
        """Return the tags: what both parts understand, and what either needs.

        Raises
        ------
        TypeError, ValueError
            If a part is no strategy and no name of one, or the two have no kind of predictions in
            common.
        """
        parts = self._parts()
        tags = [part.query_tags() for part in parts]
        asking = [each for each in tags if "nothing" not in each.needs]
        needs = {need for each in asking for need in each.needs}
        if "draws" in needs:
            needs.discard("mean")  # which the draws have too
        readers = asking or tags
        kinds = [kind for kind in readers[0].kinds if all(kind in each.kinds for each in readers)]
        if not kinds:
            raise ValueError(
                "The 'filter' and 'strategy' parameters of FilteredQuery must understand one kind "
                f"of predictions in common. Got {type(parts[0]).__name__} for {tags[0].kinds} and "
                f"{type(parts[1]).__name__} for {tags[1].kinds}; choose another filter."
            )
        return QueryTags(
            deterministic=all(each.deterministic for each in tags),
            utilities="other",
            kinds=tuple(kinds),
            needs=tuple(sorted(needs)) or ("nothing",),
            min_draws=max(each.min_draws for each in tags),
        )

    def _root(self) -> int:
        """Return the root seed of the strategy that chooses, which has the draws made too."""
        return self._parts()[1]._root()

    def _select(self, pool: Pool) -> Selection:
        narrow, strategy = self._parts()
        if pool.predictions is not None:
            pool = replace(pool, predictions=pool.predictions.collect())
        n_kept = self.factor * pool.batch_size
        if n_kept < len(pool.candidates):
            kept = narrow._choose(
                replace(
                    pool,
                    owner=f"the filter of {pool.owner}",
                    root=narrow._root(),
                    requested=n_kept,
                    batch_size=n_kept,
                    want_utilities=False,
                )
            ).positions
            pool = replace(pool, candidates=np.sort(kept))
        return strategy._choose(pool)
