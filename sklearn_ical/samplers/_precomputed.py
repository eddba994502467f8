"""Precomputed predictions as a sampler: they belong to one fixed set of rows."""

from typing import Any

from sklearn_ical._typing import Integer, Seed
from sklearn_ical._validation import n_rows
from sklearn_ical.samplers._base import BaseSampler, Draws, choose_members
from sklearn_ical.samples import PredictionSamples


class SamplesSampler(BaseSampler):
    """Returns precomputed predictions, for exactly the rows they belong to.

    Parameters
    ----------
    samples : PredictionSamples
    """

    source = "precomputed predictions"

    def __init__(self, samples: PredictionSamples) -> None:
        self.samples = samples

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix columns of the samples as draws; see :class:`EnsembleSampler`."""
        samples = self.samples
        if n_draws is not None:
            chosen = choose_members(samples.n_draws, n_draws, random_state, "SamplesSampler")
            samples = samples.take_draws(chosen)
        return _SamplesDraws(samples)


class _SamplesDraws:
    """Draws whose values are known only for one fixed set of rows."""

    joint = True

    def __init__(self, samples: PredictionSamples) -> None:
        self.samples = samples
        self.n_draws = samples.n_draws
        self.kind = samples.kind
        self.classes = samples.classes
        self.weights = samples.weights

    def __call__(self, X: Any) -> PredictionSamples:
        if n_rows(X) != self.samples.n_points:
            raise ValueError(
                f"The precomputed predictions belong to {self.samples.n_points} rows. Got "
                f"{n_rows(X)} rows; pass a fitted model to predict other rows."
            )
        return self.samples
