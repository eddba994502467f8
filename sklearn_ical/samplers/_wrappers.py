"""Draws and samplers that wrap others, and may convert rows and samples."""

from collections.abc import Iterator
from typing import Any

from sklearn_ical.samplers._base import (
    BaseSampler,
    Draws,
    evaluate_in_chunks,
    evaluate_together,
    first_rows,
)
from sklearn_ical.samples import PredictionSamples


class DrawsAround:
    """Draws that wrap others; rows and samples are passed on unchanged.

    A subclass converts rows by `_read` and samples by `_answer`.
    """

    def __init__(self, inner: Draws) -> None:
        self.inner = inner
        self.n_draws = inner.n_draws
        self.kind: Any = inner.kind
        self.weights = inner.weights
        self.joint = inner.joint
        self.mean_differs = getattr(inner, "mean_differs", "")

    @property
    def classes(self) -> Any:
        """Labels of the columns."""
        return self.inner.classes

    def _read(self, X: Any) -> Any:
        return X

    def _answer(self, samples: PredictionSamples) -> PredictionSamples:
        return samples

    def prepare(self, X: Any) -> None:
        """Call `prepare` of the inner draws on the first rows of `X`, converted."""
        if hasattr(self.inner, "prepare"):
            self.inner.prepare(self._read(first_rows(X)))

    def __call__(self, X: Any) -> PredictionSamples:
        return self._answer(self.inner(self._read(X)))

    def chunks(self, X: Any, n_rows: int) -> Iterator[PredictionSamples]:
        """Read all of `X` once and yield the samples of its chunks."""
        for samples in evaluate_in_chunks(self.inner, self._read(X), n_rows):
            yield self._answer(samples)

    def together(self, X: Any, X_reference: Any) -> tuple[PredictionSamples, PredictionSamples]:
        """Return the samples of two sets of rows in one evaluation, for joint draws."""
        first, second = evaluate_together(self.inner, self._read(X), self._read(X_reference))
        return self._answer(first), self._answer(second)


class TransformedDraws(DrawsAround):
    """Draws on rows that a fitted transformer transforms once."""

    def __init__(self, transformer: Any, inner: Draws) -> None:
        super().__init__(inner)
        self.transformer = transformer

    def _read(self, X: Any) -> Any:
        return self.transformer.transform(X)


class SamplerAround(BaseSampler):
    """A sampler that wraps the sampler of the model inside, the source of its draws."""

    def __init__(self, outer: Any, inner: Any) -> None:
        self.outer = outer
        self.inner = inner

    @property
    def source(self) -> str:  # type: ignore[override]
        """Where the draws come from, in a few words."""
        return getattr(self.inner, "source", BaseSampler.source)

    @property
    def cost(self) -> str:  # type: ignore[override]
        """Cost of the draws, in a few words."""
        return getattr(self.inner, "cost", BaseSampler.cost)
