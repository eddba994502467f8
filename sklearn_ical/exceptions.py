"""The package's own warnings and errors; a leaf that imports nothing of ours."""

__all__ = [
    "BatchClippedWarning",
    "EqualUtilitiesWarning",
    "QueryWarning",
    "UnsupportedModelError",
]


class QueryWarning(UserWarning):
    """Base of all warnings of this package: the result is correct, but worth a look."""


class BatchClippedWarning(QueryWarning):
    """More rows were asked for than there are candidates; all candidates are returned."""


class EqualUtilitiesWarning(QueryWarning):
    """All candidates are equally useful, so the picks are just the lowest positions."""


class UnsupportedModelError(TypeError):
    """The model gives no posterior draws that a query strategy could use."""
