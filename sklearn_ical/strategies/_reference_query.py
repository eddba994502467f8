"""Base of strategies that compare candidates with reference rows that the caller may name."""

from typing import Any, Literal, Unpack, overload

import numpy as np

from sklearn_ical._array import Array
from sklearn_ical._typing import (
    Indices,
    IndicesAndUtilities,
    Integer,
    Numbers,
    Positions,
    PositionSets,
    Real,
)
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._base import BaseQuery, QueryOptions, SelectOptions
from sklearn_ical.strategies._pool import Pool
from sklearn_ical.strategies._references import one_set


class _QueryOptions(QueryOptions, total=False):
    """Keyword arguments of `query`, for type checkers."""

    reference: PositionSets | None


class _SelectOptions(SelectOptions, total=False):
    """Keyword arguments of `select`, for type checkers."""

    reference: PositionSets | None


class ReferenceQuery(BaseQuery):
    """Base of strategies with a parameter `n_reference` and the keyword `reference`.

    Those that compare the whole batch with one set take it from ``_reference(pool)``.
    """

    n_reference: Integer | None
    _compares = True

    @overload
    def query(
        self, model: Any, X_pool: Any, batch_size: Integer = 1, *,
        return_utilities: Literal[False] = False, **options: Unpack[_QueryOptions],
    ) -> Indices: ...  # fmt: skip

    @overload
    def query(
        self, model: Any, X_pool: Any, batch_size: Integer = 1, *,
        return_utilities: Literal[True], **options: Unpack[_QueryOptions],
    ) -> IndicesAndUtilities: ...  # fmt: skip

    @overload
    def query(
        self, model: Any, X_pool: Any, batch_size: Integer = 1, *,
        return_utilities: bool, **options: Unpack[_QueryOptions],
    ) -> Indices | IndicesAndUtilities: ...  # fmt: skip

    def query(
        self,
        model: Any,
        X_pool: Any,
        batch_size: Integer = 1,
        *,
        candidates: Positions | None = None,
        X_labeled: Any = None,
        y_labeled: Any = None,
        X_reference: Any = None,
        reference: PositionSets | None = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose the rows of a pool that should be labeled next.

        Parameters
        ----------
        model, X_pool, batch_size, candidates, X_labeled, y_labeled, costs, budget, return_utilities
            As in :meth:`BaseQuery.query`.
        X_reference : object, default=None
            Rows that the model accepts and reference rows are taken from; None for the pool.
        reference : int array of shape (r,) or (n_steps, r), default=None
            Reference rows, as positions in the pool or in `X_reference` where that is given: one
            set for the whole batch, or one for each step where a strategy draws them anew (it
            then has a parameter `resample`). Positions may repeat and count as often. None leaves
            it to `n_reference`.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            Distinct positions in `X_pool`, in pick order, on the host.
        utilities : float64 array of shape (n_picks, n_pool)
            Only with ``return_utilities=True``.
        """
        return self._query(
            model,
            X_pool,
            batch_size,
            candidates=candidates,
            X_labeled=X_labeled,
            y_labeled=y_labeled,
            X_reference=X_reference,
            costs=costs,
            budget=budget,
            return_utilities=return_utilities,
            reference=reference,
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
        reference: PositionSets | None = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose rows by their posterior predictions alone.

        Parameters
        ----------
        samples, batch_size, candidates, costs, budget, return_utilities
            As in :meth:`BaseQuery.select`.
        reference_samples : PredictionSamples or array, default=None
            Predictions of the same draws for the rows that reference rows are taken from; None for
            the pool.
        reference : int array of shape (r,) or (n_steps, r), default=None
            As in :meth:`query`; positions in the reference samples where those are given.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            As in :meth:`query`.
        utilities : float64 array of shape (n_picks, n_pool)
            As in :meth:`query`.
        """
        return self._select_samples(
            samples,
            batch_size,
            candidates=candidates,
            reference_samples=reference_samples,
            costs=costs,
            budget=budget,
            return_utilities=return_utilities,
            reference=reference,
        )

    def _reference(self, pool: Pool) -> np.ndarray:
        """Return the positions of the reference rows."""
        return one_set(pool, self.n_reference, pool.options.get("reference"))
