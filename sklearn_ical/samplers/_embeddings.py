"""The input of the last part of a model, a Pipeline or a net, as features."""

from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from sklearn_ical.samplers._base import get_embedding
from sklearn_ical.samplers._models import is_fitted, not_fitted, torch_file
from sklearn_ical.samplers._pipelines import FittedSteps, steps_before_last


@dataclass(frozen=True)
class PipelineEmbedding:
    """The output of the steps of a Pipeline but the last, and then the embedding of the last one.

    Attributes
    ----------
    before : FittedSteps
        The steps but the last.
    embedding : callable or None
        That of the last step.
    """

    before: FittedSteps
    embedding: Any = None

    def __call__(self, X: Any) -> Any:
        """Return the features of the rows of `X`."""
        rows = self.before.transform(X)
        return rows if self.embedding is None else self.embedding(rows)


def pipeline_embedding(pipeline: Pipeline) -> Any:
    """Return the embedding of a Pipeline, or of its only step."""
    last = pipeline.steps[-1][1]
    if not is_fitted(last):
        raise not_fitted(pipeline)
    embedding = get_embedding(last)
    if len(pipeline) == 1:
        return embedding
    return PipelineEmbedding(steps_before_last(pipeline), embedding)


def net_embedding(net: Any) -> Any:
    """Return the embedding of a skorch net or torch module; None without a linear layer."""
    return torch_file("_embedding", "get_embedding").find_embedding(net)
