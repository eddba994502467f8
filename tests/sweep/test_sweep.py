"""Every strategy and setting on a few of the problems of the sweep, which notices faults."""

from typing import Any

import numpy as np
import pytest

from sklearn_ical import MarginQuery, PredictionSamples
from sklearn_ical.dependence import predictive_variance
from sklearn_ical.strategies import PointwiseQuery
from tests.record.settings import CLASSIFICATION, Setting
from tests.sweep.run import try_setting
from tests.sweep.settings import sweep_settings

N_PROBLEMS = 20


@pytest.mark.parametrize("setting", sweep_settings(), ids=lambda setting: setting.name)
def test_properties_hold(setting: Setting) -> None:
    pytest.importorskip("torch")
    tally = try_setting(setting, range(N_PROBLEMS), in_turn=True)
    assert tally.n_problems == N_PROBLEMS
    assert not tally.mismatches, "\n".join(tally.mismatches)


class WeightsLeftOut(MarginQuery):
    def _score(self, samples: PredictionSamples) -> Any:
        return super()._score(_unweighted(samples))

    def _exact_score(self, samples: PredictionSamples) -> np.ndarray:
        return super()._exact_score(_unweighted(samples))


def _unweighted(samples: PredictionSamples) -> PredictionSamples:
    if samples.weights is None:
        return samples
    return PredictionSamples(samples.values, samples.kind)


class LastOfCopies(MarginQuery):
    def _exact_score(self, samples: PredictionSamples) -> np.ndarray:
        return super()._exact_score(samples) + 1e-12 * np.arange(samples.n_points)


class Squared(PointwiseQuery):
    def _score(self, samples: PredictionSamples) -> Any:
        with np.errstate(over="ignore"):
            return predictive_variance(samples.values) ** 2


class TorchNegated(MarginQuery):
    def _score(self, samples: PredictionSamples) -> Any:
        score = super()._score(samples)
        return score if isinstance(score, np.ndarray) else -score


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (Setting(WeightsLeftOut, kinds=CLASSIFICATION), "draws"),
        (Setting(LastOfCopies, kinds=CLASSIFICATION), "copies"),
        (Setting(Squared, kinds=("value",)), "units"),
        (Setting(TorchNegated, kinds=CLASSIFICATION), "torch"),
    ],
    ids=lambda case: getattr(case, "name", case),
)
def test_fault_is_noticed_by_its_property(setting: Setting, name: str) -> None:
    pytest.importorskip("torch")
    tally = try_setting(setting, range(N_PROBLEMS))
    assert tally.wrong[name] > 0
    assert f"{setting.name}, seed " in tally.mismatches[0]
