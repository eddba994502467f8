"""Strategies that are made of other strategies: how they look at their parts."""

from typing import Any, Literal, Unpack, overload

from sklearn_ical._array import Array
from sklearn_ical._typing import Indices, IndicesAndUtilities, Integer, Numbers, Positions, Real
from sklearn_ical._validation import check_parameters
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.strategies._base import BaseQuery, SelectOptions
from sklearn_ical.strategies._resolve import resolve_strategy


class _SelectOptions(SelectOptions, total=False):
    """Keyword arguments of `select`, for type checkers."""

    labeled_samples: PredictionSamples | Array | None
    X_pool: Any
    X_labeled: Any
    y_labeled: Any


class CompositeQuery(BaseQuery):
    """Base of strategies that hold others as parameters, named in ``_part_names``.

    Parts see the pool, the predictions and the rows of the whole; each runs on the root seed of
    its own `random_state`.
    """

    _part_names: tuple[str, ...] = ()

    def _parts(self) -> list[BaseQuery]:
        """Return the parts as objects, or say which is no strategy; check their parameters too."""
        caller = type(self).__name__
        parts = [resolve_strategy(getattr(self, name), name, caller) for name in self._part_names]
        for name, part in zip(self._part_names, parts, strict=True):
            rule = (
                f"The {name!r} parameter of {caller} must be a query strategy, an object "
                "derived from BaseQuery, or the name of one."
            )
            if isinstance(part, type):
                raise TypeError(f"{rule} Got the class {part.__name__}; write {part.__name__}().")
            if not isinstance(part, BaseQuery):
                raise TypeError(
                    f"{rule} Got {part!r} instead; pass one such as BALDQuery() or 'bald'."
                )
            check_parameters(part)
        return parts

    @property
    def _compares(self) -> bool:  # type: ignore[override]
        """Whether some part compares candidates with reference rows."""
        return any(part._compares for part in self._parts())

    @property
    def _sees_labeled(self) -> bool:  # type: ignore[override]
        """Whether some part compares candidates with labeled rows."""
        return any(part._sees_labeled for part in self._parts())

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
        labeled_samples: PredictionSamples | Array | None = None,
        X_pool: Any = None,
        X_labeled: Any = None,
        y_labeled: Any = None,
        costs: Numbers | None = None,
        budget: Real | None = None,
        return_utilities: bool = False,
    ) -> Indices | IndicesAndUtilities:
        """Choose rows by their posterior predictions, and what else the parts need.

        Parameters
        ----------
        samples, batch_size, candidates, reference_samples, costs, budget, return_utilities
            As in :meth:`BaseQuery.select`.
        labeled_samples : PredictionSamples or array, default=None
            Predictions of the same draws for the labeled rows, for parts that compare with them.
        X_pool, X_labeled, y_labeled : object, default=None
            The rows of the pool, and the labeled ones, for parts that need them.

        Returns
        -------
        indices : intp array of shape (n_picks,)
            As in :meth:`query`.
        utilities : float64 array of shape (n_picks, n_pool)
            As in :meth:`query`.
        """
        if X_pool is None and "features" in self.query_tags().needs:
            raise TypeError(
                "X_pool must be the rows that samples are the predictions of. Got None in "
                f"{type(self).__name__}.select, where a part needs their features."
            )
        return self._select_samples(
            samples,
            batch_size,
            candidates=candidates,
            reference_samples=reference_samples,
            labeled_samples=labeled_samples,
            X_pool=X_pool,
            X_labeled=X_labeled,
            y_labeled=y_labeled,
            costs=costs,
            budget=budget,
            return_utilities=return_utilities,
        )
