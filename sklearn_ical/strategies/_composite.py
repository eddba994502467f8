"""Base of strategies that are composed of other strategies."""

from dataclasses import replace

from sklearn_ical._validation import check_parameters
from sklearn_ical.pool._pool import Pool
from sklearn_ical.selection._batch import Selection
from sklearn_ical.strategies._base import BaseQuery
from sklearn_ical.strategies._resolve import resolve_strategy


class CompositeQuery(BaseQuery):
    """Base of strategies that hold others as parameters, named in ``_part_names``.

    Parts get the same pool, predictions and rows; each uses the root seed of its own
    `random_state`.
    """

    _part_names: tuple[str, ...] = ()

    def _parts(self) -> list[BaseQuery]:
        """Return the parts as objects, checked; raise if one is not a strategy."""
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

    def _choose_by(self, part: BaseQuery, pool: Pool) -> Selection:
        """Select by a part, which gets the labeled and the reference rows only if it uses them."""
        tags = part.query_tags()
        used = {*tags.reads, *tags.uses}
        labeled = pool.labeled if "labeled" in used else None
        reference = pool.reference if "reference" in used else None
        return part._choose(replace(pool, labeled=labeled, reference=reference))

    def _reads_of(self, which: str, what: str) -> bool:
        """Return whether some part reads them."""
        return any(part._reads_of(which, what) for part in self._parts())
