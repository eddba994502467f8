"""The package's own warnings and errors; a leaf that imports nothing of ours."""

__all__ = [
    "BatchClippedWarning",
    "CheckpointError",
    "DropoutOffWarning",
    "EqualUtilitiesWarning",
    "LabeledRowsMissingError",
    "NoDropoutError",
    "QueryWarning",
    "ReferenceSaturatedWarning",
    "RunFailedWarning",
    "ScoreFailedWarning",
    "UnsupportedModelError",
]


class QueryWarning(UserWarning):
    """Base of all warnings of this package: the result is correct, but deserves attention."""


class BatchClippedWarning(QueryWarning):
    """More rows were requested than there are candidates; all candidates are returned."""


class DropoutOffWarning(QueryWarning):
    """Dropout inside some layers of a net has no fixed masks and stays off; other dropout is on."""


class EqualUtilitiesWarning(QueryWarning):
    """All candidates have equal utilities, so the picks are the lowest positions."""


class ReferenceSaturatedWarning(QueryWarning):
    """The reference rows are covered before the batch is full; the rest covers them again."""


class RunFailedWarning(QueryWarning):
    """Some runs of a comparison failed; the others are complete."""


class ScoreFailedWarning(QueryWarning):
    """A metric is not defined for the model of a round; its score there is NaN."""


class CheckpointError(ValueError):
    """A checkpoint belongs to another simulation, is in use or is damaged."""


class UnsupportedModelError(TypeError):
    """The model does not provide posterior draws that a query strategy could use."""


class LabeledRowsMissingError(UnsupportedModelError):
    """The model has no posterior draws of its own, and there are no labeled rows to refit it on."""


class NoDropoutError(UnsupportedModelError, ValueError):
    """A net has no active dropout, so that all of its draws would be the same."""
