"""The input of the last part of a model, a Pipeline or a net, as features."""

from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from sklearn_ical.samplers._base import get_embedding
from sklearn_ical.samplers._models import torch_file


@dataclass(frozen=True)
class PipelineEmbedding:
    """The output of the steps of a Pipeline but the last, and then the embedding of the last one.

    Attributes
    ----------
    before : Pipeline
        The steps but the last, fitted.
    embedding : callable or None
        That of the last step.
    """

    before: Pipeline
    embedding: Any = None

    def __call__(self, X: Any) -> Any:
        """Return the features of the rows of `X`."""
        rows = self.before.transform(X)
        return rows if self.embedding is None else self.embedding(rows)


def pipeline_embedding(pipeline: Pipeline) -> Any:
    """Return the embedding of a Pipeline, or of its only step."""
    embedding = get_embedding(pipeline.steps[-1][1])
    return PipelineEmbedding(pipeline[:-1], embedding) if len(pipeline) > 1 else embedding


def net_embedding(net: Any) -> Any:
    """Return the embedding of a skorch net or torch module; None without a linear layer."""
    return torch_file("_embedding", "get_embedding").find_embedding(net)
