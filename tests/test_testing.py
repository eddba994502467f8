"""check_strategy itself: it passes a third party's strategies, each check refuses a broken one."""

import os
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sklearn_ical import ICALQuery, MaxEntropyQuery, PredictionSamples, RandomQuery, _array
from sklearn_ical.exceptions import QueryWarning
from sklearn_ical.samplers import get_sampler
from sklearn_ical.testing import check_strategy
from sklearn_ical.testing._require import run_checks
from sklearn_ical.testing._strategy import STRATEGY_CHECKS
from tests.third_party import Apart, Noisy, Remote, RemoteOrApart, Spread, SpreadOfValues

# One strategy for each check, broken in the way that its class says; some checks have more.


class TagsUnknownKind(Spread):
    def query_tags(self) -> Any:
        return SimpleNamespace(**{**vars(super().query_tags()), "kinds": ("probability",)})


class SignaturesWithoutReference(Spread):
    def select(self, samples: Any, batch_size: Any = 1, *, candidates: Any = None) -> Any:
        return super().select(samples, batch_size, candidates=candidates)


class CloneConvertsParameter(Spread):
    def __init__(self, power: float = 1.0, random_state: Any = None) -> None:
        super().__init__(power * 1.0, random_state)


class SetParamsReturnsNothing(Spread):
    def set_params(self, **params: Any) -> None:
        super().set_params(**params)


class ReprNameless(Spread):
    def __repr__(self) -> str:
        return "<strategy>"


class SeedsIgnored(Noisy):
    def seed(self) -> Any:
        return None


class SeedsWithoutParameter(Noisy):
    def __init__(self, power: float = 1.0) -> None:
        self.power = power

    def seed(self) -> Any:
        return 0


class PickleForgetsSign(Spread):
    def __setstate__(self, state: Any) -> None:
        super().__setstate__({**state, "power": -1.0})


class PickleImpossible(Spread):
    def __init__(self, power: float = 1.0, random_state: Any = None) -> None:
        super().__init__(power, random_state)
        self.transform = lambda x: x


class GeneratorsFresh(Noisy):
    def seed(self) -> Any:
        return self.random_state if isinstance(self.random_state, int) else None


class GeneratorsNotUsedUp(Noisy):
    def seed(self) -> Any:
        return self.random_state if isinstance(self.random_state, int) else 0


class DeterministicTagUntrue(Noisy):
    def query_tags(self) -> Any:
        return Spread().query_tags()


class PicksRepeat(Spread):
    def pick(self, *args: Any) -> np.ndarray:
        return np.repeat(super().pick(*args), 2)[: args[2]]


class PicksInShortIntegers(Spread):
    def pick(self, *args: Any) -> np.ndarray:
        return super().pick(*args).astype(np.int32)


class PicksInList(Spread):
    def pick(self, *args: Any) -> Any:
        return super().pick(*args).tolist()


class PicksTooFew(Spread):
    def pick(self, *args: Any) -> np.ndarray:
        return super().pick(*args)[:3]


class PicksOffCandidates(Spread):
    def pick(self, utilities: np.ndarray, allowed: np.ndarray, size: int) -> np.ndarray:
        return super().pick(utilities, np.arange(len(utilities)), size)


class UtilitiesWithPicked(Spread):
    def rows(self, utilities: np.ndarray, allowed: np.ndarray, picks: np.ndarray) -> np.ndarray:
        return np.tile(super().rows(utilities, allowed, picks)[0], (len(picks), 1))


class UtilitiesOffCandidates(Spread):
    def rows(self, utilities: np.ndarray, allowed: np.ndarray, picks: np.ndarray) -> np.ndarray:
        return super().rows(utilities, np.arange(len(utilities)), picks)


class UtilitiesNegated(Spread):
    def rows(self, *args: Any) -> np.ndarray:
        return -super().rows(*args)


class UtilitiesInShortFloats(Spread):
    def rows(self, *args: Any) -> np.ndarray:
        return super().rows(*args).astype(np.float32)


class UtilitiesChangePicks(Spread):
    def answer(self, *args: Any) -> Any:
        found = super().answer(*args)
        return found if isinstance(found, tuple) else found[::-1]


class FormsMaskAsPositions(Spread):
    def allowed(self, candidates: Any, n: int) -> np.ndarray:
        return super().allowed(None if candidates is None else np.asarray(candidates, int), n)


class LimitChangesScale(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        utilities = super().utilities(samples, allowed)
        return utilities - utilities[allowed].mean()


class BadCandidatesFromBehind(Spread):
    def allowed(self, candidates: Any, n: int) -> np.ndarray:
        found = np.asarray(-1 if candidates is None else candidates)
        return super().allowed(found % n if found.dtype == int and found.ndim else candidates, n)


class EmptyPoolGivesNothing(Spread):
    def answer(self, samples: Any, allowed: Any, size: int, *options: Any) -> Any:
        return super().answer(samples, allowed, size, *options) if size else allowed

    def allowed(self, candidates: Any, n: int) -> np.ndarray:
        return super().allowed(candidates, n) if n else np.empty(0, dtype=np.intp)

    def size(self, batch_size: Any, n_allowed: int) -> int:
        return super().size(batch_size, n_allowed) if n_allowed else 0

    def predict(self, model: Any, X_pool: Any) -> Any:
        return super().predict(model, X_pool) if self.count(X_pool) else None


class BatchSizesClippedInSilence(Spread):
    def size(self, batch_size: Any, n_allowed: int) -> int:
        size = super().size(batch_size, 10**9)
        return min(size, n_allowed)


class BadBatchSizesTruncated(Spread):
    def size(self, batch_size: Any, n_allowed: int) -> int:
        return super().size(int(batch_size), n_allowed)


class RepeatedRowsTakenForOne(Spread):
    def pick(self, utilities: np.ndarray, allowed: np.ndarray, size: int) -> np.ndarray:
        if len(np.unique(utilities)) <= 2 < size:
            return np.resize(allowed[:2], size)
        return super().pick(utilities, allowed, size)


class CostsNotRefused(Spread):
    def query_tags(self) -> Any:
        return SimpleNamespace(**{**vars(super().query_tags()), "utilities": "other"})


class EqualCostsCount(Spread):
    def per_cost(self, utilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
        return utilities / (costs + np.arange(len(costs)))


class CostsLeftOut(Spread):
    def per_cost(self, utilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
        return utilities


class CostsSubtracted(Spread):
    def per_cost(self, utilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
        return utilities - costs


class CostsShrinkLosses(Spread):
    """Its parameter `power` makes every utility negative."""

    def per_cost(self, utilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
        return utilities / costs


class CostsWithoutBudgetInRows(Spread):
    def afford(self, *args: Any) -> Any:
        picks, open_ = super().afford(*args)
        return picks, np.ones_like(open_)


class CostsRounded(Spread):
    def bill(self, costs: Any, *args: Any) -> Any:
        if isinstance(costs, np.ndarray) and costs.dtype == float:
            costs[:] = np.ceil(costs)
        return super().bill(costs, *args)


class BudgetOverdrawn(Spread):
    def afford(self, order: np.ndarray, size: int, costs: np.ndarray, left: float) -> Any:
        large = size == len(order)
        picks, open_ = super().afford(order, size, costs, left + large)
        return picks, open_ & (costs <= left)


class BudgetEndsWithFirstRefusal(Spread):
    def afford(self, order: np.ndarray, size: int, costs: np.ndarray, left: float) -> Any:
        picks, open_ = super().afford(order, size, costs, left)
        if size < len(order):
            return picks, open_
        n_paid = int(np.searchsorted(np.cumsum(costs[order]), left, side="right"))
        return picks[: max(n_paid, 1)], open_[: max(n_paid, 1)]


class BadCostsTaken(Spread):
    def bill(self, costs: Any, budget: Any, n: int, allowed: np.ndarray) -> Any:
        if costs is not None and np.ndim(costs) == 1 and np.isnan(costs[3]):
            costs = np.nan_to_num(costs, nan=1.0)
        return super().bill(costs, budget, n, allowed)


class BadBudgetTaken(Spread):
    def bill(self, costs: Any, budget: Any, n: int, allowed: np.ndarray) -> Any:
        return super().bill(costs, 1.0 if budget is True else budget, n, allowed)


class BudgetAloneIgnored(Spread):
    def bill(self, costs: Any, budget: Any, n: int, allowed: np.ndarray) -> Any:
        return None if costs is None else super().bill(costs, budget, n, allowed)


class InformationRefused(Spread):
    def query(self, *args: Any, X_reference: Any = None, **options: Any) -> Any:
        if X_reference is not None:
            raise ValueError("X_reference is of no use here.")
        return super().query(*args, **options)


class InformationUntold(Spread):
    """Avoids rows like those labeled, and its tags do not say so."""

    def query(self, model: Any, X_pool: Any, *args: Any, X_labeled: Any = None, **options: Any):
        if X_labeled is None:
            return super().query(model, X_pool, *args, **options)
        return super().query(model, X_pool, *args, **options)[::-1]


class InformationOfSamplesUntold(Spread):
    def select(self, samples: Any, *args: Any, labeled_samples: Any = None, **options: Any) -> Any:
        samples = samples if labeled_samples is None else samples[::-1]
        return super().select(samples, *args, **options)


class InformationOfReferenceLost(ICALQuery):
    def _select(self, pool: Any) -> Any:
        return super()._select(replace(pool, reference_positions=None))


class LabeledRowsTakenForNone(Remote):
    def centers(self, X_labeled: Any, *args: Any) -> np.ndarray:
        return super().centers(np.zeros((1, 4)) if X_labeled is None else X_labeled, *args)


class LabeledRowsRequired(Remote):
    def query_tags(self) -> Any:
        changes = {"reads": ("features",), "uses": ("labeled",)}
        return SimpleNamespace(**{**vars(super().query_tags()), **changes})


class LabeledRowsNeverEmpty(LabeledRowsRequired):
    def centers(self, X_labeled: Any, *args: Any) -> np.ndarray:
        return super().centers(np.zeros((1, 4)) if X_labeled is None else X_labeled, *args)


class ModelNeverNone(RandomQuery):
    def query(self, model: Any, *args: Any, **options: Any) -> Any:
        if model is None:
            raise TypeError("model must be a model. Got None.")
        return super().query(model, *args, **options)


class ModelLookedAt(RandomQuery):
    def query(self, model: Any, *args: Any, **options: Any) -> Any:
        hasattr(model, "predict_proba")
        return super().query(model, *args, **options)


class ModelCounts(RandomQuery):
    def query(self, model: Any, *args: Any, **options: Any) -> Any:
        picks = super().query(model, *args, **options)
        return picks if model is None else picks[::-1]


class MaxPoolNotKept(RandomQuery):
    def query_tags(self) -> Any:
        return replace(super().query_tags(), max_pool=50)

    def _check_limits(self, *args: Any) -> Any:
        return RandomQuery()._check_limits(*args)


class MaxPoolWithoutWayOut(MaxPoolNotKept):
    def _check_limits(self, rows: Any, *args: Any) -> Any:
        if len(rows) > 50:
            raise ValueError("X_pool must have at most 50 rows.")
        return super()._check_limits(rows, *args)


class MaxPoolOfPredictions(Remote):
    def query(self, model: Any, *args: Any, **options: Any) -> Any:
        hasattr(model, "predict_proba")
        return super().query(model, *args, **options)


class FeaturesIgnored(Remote):
    def features(self, X_pool: Any, features: Any, n_pool: int) -> np.ndarray:
        super().features(X_pool, features, n_pool)
        if X_pool is None or features is None:
            return super().features(X_pool, features, n_pool)
        return super().features(X_pool, None, n_pool)[:, :3]


class FeaturesTransformed(Remote):
    def __init__(self, features: Any = None) -> None:
        super().__init__()
        self.features_ = features

    def numbers(self, X: Any, name: str) -> np.ndarray:
        return super().numbers(X if self.features_ is None else self.features_(X), name)

    def get_params(self, deep: bool = True) -> Any:
        return {"features": self.features_}

    def set_params(self, **params: Any) -> Any:
        self.features_ = params.get("features", self.features_)
        return self


class FeaturesInShortFloatsRefused(Remote):
    def numbers(self, X: Any, name: str) -> np.ndarray:
        if getattr(X, "dtype", None) == np.float16:
            raise TypeError(f"{name} in float16")
        return super().numbers(X, name)


class FeaturesInShortFloatsOverflow(Remote):
    def numbers(self, X: Any, name: str) -> np.ndarray:
        rows = super().numbers(X, name)
        return rows.astype(X.dtype) if getattr(X, "dtype", None) == np.float16 else rows


class FeaturesSparseRefused(Remote):
    def numbers(self, X: Any, name: str) -> np.ndarray:
        if name == "features" and hasattr(X, "toarray"):
            raise TypeError("features must be dense.")
        return super().numbers(X, name)


class BadFeaturesFilled(Remote):
    def numbers(self, X: Any, name: str) -> np.ndarray:
        return super().numbers(np.nan_to_num(X) if name == "features" else X, name)


class BadFeaturesCut(Remote):
    def features(self, X_pool: Any, features: Any, n_pool: int) -> np.ndarray:
        return super().features(None if features is not None else X_pool, features, n_pool)


class LabeledFeaturesOfRows(Remote):
    def centers(self, X_labeled: Any, features: Any, labeled_features: Any) -> np.ndarray:
        if labeled_features is None and features is not None:
            return super().centers(X_labeled, None, None)[:, :3]
        return super().centers(X_labeled, features, labeled_features)


class LabeledFeaturesOfAnyWidth(Remote):
    def distances(self, rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
        width = min(rows.shape[1], centers.shape[1])
        return super().distances(rows[:, :width], centers[:, :width])


class DegenerateFeaturesDivideByZero(Remote):
    def distances(self, rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
        return super().distances(rows, centers) / np.ptp(rows)


class StrategyRemembers(Spread):
    def answer(self, *args: Any) -> Any:
        self.calls_ = getattr(self, "calls_", 0) + 1
        return super().answer(*args)


class ModelMarked(Spread):
    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        model.queried_ = True
        return super().predict(model, X_pool)


class InputsSorted(Spread):
    def allowed(self, candidates: Any, n: int) -> np.ndarray:
        if isinstance(candidates, np.ndarray) and candidates.dtype == int:
            candidates.sort()
        return super().allowed(candidates, n)


class InputsMustBeWriteable(Spread):
    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        if isinstance(X_pool, np.ndarray):
            X_pool[:] = X_pool
        return super().predict(model, X_pool)


class GlobalGeneratorUsed(Spread):
    def answer(self, *args: Any) -> Any:
        np.random.random()  # noqa: NPY002, the fault that is to be found
        return super().answer(*args)


class KindsNotRefused(Spread):
    def query_tags(self) -> Any:
        return SimpleNamespace(**{**vars(super().query_tags()), "kinds": ("proba", "label")})

    def answer(self, samples: PredictionSamples, *args: Any) -> Any:
        if samples.kind == "value":
            samples = PredictionSamples(np.full((samples.n_points, 2, 1), 1.0))
        return super().answer(samples, *args)


class KindsInOneDtype(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        if samples.values.dtype == np.float32:
            raise TypeError("float64 only")
        return super().utilities(samples, allowed)


class RawProbabilitiesRefused(Spread):
    def as_samples(self, samples: Any) -> PredictionSamples:
        if not isinstance(samples, PredictionSamples):
            raise TypeError(f"PredictionSamples only. Got {type(samples)}.")
        return samples


class RawProbabilitiesGuessed(Spread):
    def as_samples(self, samples: Any) -> PredictionSamples:
        if getattr(samples, "ndim", 3) == 4:
            samples = samples[..., 0]
        return super().as_samples(samples)


class MinDrawsNotRefused(Spread):
    def answer(self, samples: PredictionSamples, *args: Any) -> Any:
        if samples.n_draws == 1:
            samples = samples.take_draws(np.array([0, 0]))
        return super().answer(samples, *args)


class DegenerateDividesByZero(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        utilities = super().utilities(samples, allowed)
        return utilities / utilities.max()


class PermutedRowsCount(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        return super().utilities(samples, allowed) / (1 + np.arange(samples.n_points))


class PermutedDrawsCount(Spread):
    def outputs(self, samples: PredictionSamples) -> np.ndarray:
        return super().outputs(samples) / (1 + np.arange(samples.n_draws))[:, None]


class PermutedClassesCount(Spread):
    def outputs(self, samples: PredictionSamples) -> np.ndarray:
        outputs = super().outputs(samples)
        return outputs * (1 + np.arange(outputs.shape[2])) ** 2


class TiesByRounding(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        return super().utilities(samples, allowed) * (1 + 1e-14 * np.arange(samples.n_points))


class WeightsLeftOut(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        equal = PredictionSamples(samples.values, samples.kind)
        return super().utilities(equal, allowed)


class WeightsSquared(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        if samples.weights is None:
            return super().utilities(samples, allowed)
        weights = samples.weights**2 / np.sum(samples.weights**2)
        squared = PredictionSamples(samples.values, samples.kind, weights=weights)
        return super().utilities(squared, allowed)


class UnitsOverflow(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return super().utilities(samples, allowed) ** 2


class UnitsWithJitter(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        return super().utilities(samples, allowed) + 1e-12


class UnitsOfFeaturesWithJitter(Remote):
    def distances(self, rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
        return super().distances(rows, centers) + 1e-12


class GainsTieTooWidely(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        utilities = super().utilities(samples, allowed)
        best = utilities[allowed].max()
        return np.where(utilities >= 0.75 * best, best, utilities)


class TiesOfReferencesByRounding(Spread):
    """It compares with reference rows, so that it is not deterministic without them."""

    def query_tags(self) -> Any:
        tags = vars(super().query_tags())
        return SimpleNamespace(**{**tags, "deterministic": False, "uses": ("reference",)})

    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        return super().utilities(samples, allowed) * (1 + 1e-14 * np.arange(samples.n_points))


class ChunksStandardised(Spread):
    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        utilities = super().utilities(samples, allowed)
        step = _array.chunk_rows(8)
        parts = [utilities[a : a + step] for a in range(0, len(utilities), step)]
        return np.concatenate([part - part.mean() for part in parts])


class ModelsWithoutSteps(Spread):
    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        if hasattr(model, "steps"):
            raise TypeError(f"{model} is no ensemble.")
        return super().predict(model, X_pool)


class ModelsWithDraws(MaxEntropyQuery):
    def query(self, model: Any, *args: Any, **options: Any) -> Any:
        get_sampler(model).draw()
        return super().query(model, *args, **options)


class DrawsRefused(Spread):
    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        return get_sampler(model).draw()(X_pool)


class CallGivesIndicesOnly(Spread):
    def __call__(self, model: Any, X_pool: Any, n_instances: int = 1) -> Any:
        return super().__call__(model, X_pool, n_instances)[0]


class CallTakesModelsOnly(Spread):
    def __call__(self, model: Any, X_pool: Any, n_instances: int = 1) -> Any:
        if hasattr(model, "learner_list"):
            raise TypeError("model must be a model. Got a committee.")
        picks, rows = self.query(model, X_pool, n_instances, return_utilities=True)
        return picks, rows[np.arange(len(picks)), picks]


class CallGivesFirstUtilities(Spread):
    def __call__(self, model: Any, X_pool: Any, n_instances: int = 1) -> Any:
        picks, utilities = super().__call__(model, X_pool, n_instances)
        return picks, np.sort(utilities)


class ListsWithoutShape(Spread):
    def count(self, X_pool: Any) -> int:
        return X_pool.shape[0]


class SparsePoolsAsArrays(Spread):
    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        return super().predict(model, X_pool if hasattr(X_pool, "columns") else np.asarray(X_pool))


class FramesByIndex(Spread):
    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        return super().predict(model, X_pool.sort_index() if hasattr(X_pool, "iloc") else X_pool)


class MixedFramesAsNumbers(Spread):
    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        return super().predict(model, X_pool.astype(float) if hasattr(X_pool, "iloc") else X_pool)


class TextAsNumbers(Spread):
    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        X_pool = np.asarray(X_pool, dtype=float) if isinstance(X_pool, list) else X_pool
        return super().predict(model, X_pool)


class MissingValuesRefused(Spread):
    def predict(self, model: Any, X_pool: Any) -> PredictionSamples:
        if isinstance(X_pool, np.ndarray) and np.isnan(X_pool).any():
            raise ValueError("X_pool contains NaN")
        return super().predict(model, X_pool)


class BackendsNumpyOnly(Spread):
    def outputs(self, samples: PredictionSamples) -> np.ndarray:
        samples.values.astype(np.float64)
        return super().outputs(samples)


class ProcessCounts(Spread):
    """Its parameter `power` is the process that built it."""

    def utilities(self, samples: PredictionSamples, allowed: np.ndarray) -> np.ndarray:
        utilities = super().utilities(samples, allowed)
        return utilities if os.getpid() == self.power else -utilities


BROKEN = {
    "check_tags": [TagsUnknownKind()],
    "check_signatures": [SignaturesWithoutReference()],
    "check_clone": [CloneConvertsParameter()],
    "check_set_params": [SetParamsReturnsNothing()],
    "check_repr": [ReprNameless()],
    "check_equal_seeds": [SeedsIgnored(), SeedsWithoutParameter()],
    "check_pickle": [PickleForgetsSign(), PickleImpossible()],
    "check_equal_generators": [GeneratorsFresh(), GeneratorsNotUsedUp()],
    "check_deterministic_tag": [DeterministicTagUntrue()],
    "check_picks": [
        PicksRepeat(),
        PicksInShortIntegers(),
        PicksInList(),
        PicksTooFew(),
        PicksOffCandidates(),
    ],
    "check_utilities": [
        UtilitiesWithPicked(),
        UtilitiesOffCandidates(),
        UtilitiesNegated(),
        UtilitiesInShortFloats(),
        UtilitiesChangePicks(),
    ],
    "check_gains": [GainsTieTooWidely()],
    "check_candidate_forms": [FormsMaskAsPositions()],
    "check_candidates_limit_picks_only": [LimitChangesScale()],
    "check_bad_candidates": [BadCandidatesFromBehind()],
    "check_empty_pool": [EmptyPoolGivesNothing()],
    "check_batch_sizes": [BatchSizesClippedInSilence()],
    "check_bad_batch_sizes": [BadBatchSizesTruncated()],
    "check_repeated_rows": [RepeatedRowsTakenForOne()],
    "check_costs_refused": [CostsNotRefused()],
    "check_equal_costs": [EqualCostsCount()],
    "check_utilities_per_cost": [
        CostsLeftOut(),
        CostsSubtracted(),
        CostsShrinkLosses(power=-1.0),
        CostsWithoutBudgetInRows(),
        CostsRounded(),
    ],
    "check_within_budget": [BudgetOverdrawn(), BudgetEndsWithFirstRefusal()],
    "check_bad_costs": [BadCostsTaken(), BadBudgetTaken(), BudgetAloneIgnored()],
    "check_information": [
        InformationRefused(),
        InformationUntold(),
        InformationOfSamplesUntold(),
        InformationOfReferenceLost(n_reference=5),
    ],
    "check_missing_labels": [
        LabeledRowsTakenForNone(),
        LabeledRowsRequired(),
        LabeledRowsNeverEmpty(),
    ],
    "check_without_model": [ModelNeverNone(), ModelLookedAt(), ModelCounts()],
    "check_max_pool": [MaxPoolNotKept(), MaxPoolWithoutWayOut(), MaxPoolOfPredictions()],
    "check_precomputed_features": [FeaturesIgnored(), FeaturesTransformed()],
    "check_feature_containers": [
        FeaturesInShortFloatsRefused(),
        FeaturesInShortFloatsOverflow(),
        FeaturesSparseRefused(),
    ],
    "check_bad_features": [
        BadFeaturesFilled(),
        BadFeaturesCut(),
        LabeledFeaturesOfRows(),
        LabeledFeaturesOfAnyWidth(),
    ],
    "check_degenerate_features": [DegenerateFeaturesDivideByZero()],
    "check_strategy_unchanged": [StrategyRemembers()],
    "check_model_unchanged": [ModelMarked()],
    "check_inputs_unchanged": [InputsSorted(), InputsMustBeWriteable()],
    "check_global_generators": [GlobalGeneratorUsed()],
    "check_kinds": [KindsNotRefused(), KindsInOneDtype()],
    "check_raw_probabilities": [RawProbabilitiesRefused(), RawProbabilitiesGuessed()],
    "check_min_draws": [MinDrawsNotRefused()],
    "check_degenerate_predictions": [DegenerateDividesByZero()],
    "check_permuted_rows": [PermutedRowsCount()],
    "check_permuted_draws": [PermutedDrawsCount()],
    "check_permuted_classes": [PermutedClassesCount()],
    "check_ties": [TiesByRounding(), TiesOfReferencesByRounding()],
    "check_weighted_draws": [WeightsLeftOut(), WeightsSquared()],
    "check_units_of_values": [UnitsOverflow(), UnitsWithJitter()],
    "check_units_of_features": [UnitsOfFeaturesWithJitter()],
    "check_chunks": [ChunksStandardised()],
    "check_models": [ModelsWithoutSteps(), ModelsWithDraws()],
    "check_predictions_as_model": [DrawsRefused()],
    "check_call": [CallGivesIndicesOnly(), CallTakesModelsOnly(), CallGivesFirstUtilities()],
    "check_lists": [ListsWithoutShape()],
    "check_sparse_pools": [SparsePoolsAsArrays()],
    "check_frames": [FramesByIndex()],
    "check_mixed_frames": [MixedFramesAsNumbers()],
    "check_text": [TextAsNumbers()],
    "check_missing_values": [MissingValuesRefused()],
    "check_backends": [BackendsNumpyOnly()],
    "check_processes": [ProcessCounts(power=os.getpid())],
}
# Checks that have nothing to look at where these packages are missing.
NEEDS_PACKAGE = {
    "check_frames": "pandas",
    "check_mixed_frames": "pandas",
    "check_backends": "torch",
}


@pytest.mark.parametrize(
    "strategy",
    [Spread(), Noisy(), SpreadOfValues(), Remote(), RemoteOrApart(), Apart(), Apart(np.negative)],
    ids=lambda good: type(good).__name__,
)
def test_check_strategy_passes_a_third_party_strategy(strategy: Any) -> None:
    check_strategy(strategy)


def test_every_check_has_a_broken_strategy() -> None:
    assert list(BROKEN) == list(STRATEGY_CHECKS)


def cases() -> list[Any]:
    """Return the name of a check with each strategy that it is there for."""
    return [
        pytest.param(name, strategy, id=type(strategy).__name__)
        for name, broken in BROKEN.items()
        for strategy in broken
    ]


@pytest.mark.parametrize(("name", "strategy"), cases())
def test_check_refuses_its_broken_strategy(name: str, strategy: Any) -> None:
    if name in NEEDS_PACKAGE:
        pytest.importorskip(NEEDS_PACKAGE[name])
    first, own = list(STRATEGY_CHECKS).index("check_picks"), list(STRATEGY_CHECKS).index(name)
    before = {"check_picks": STRATEGY_CHECKS["check_picks"]} if own > first else {}
    run_checks(before, strategy, silenced=QueryWarning)  # not everything is broken
    with pytest.raises(AssertionError, match=f"^{re.escape(name)}: "):
        run_checks({name: STRATEGY_CHECKS[name]}, strategy, silenced=QueryWarning)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("check_bad_candidates", BadCandidatesFromBehind()),
        ("check_bad_features", BadFeaturesFilled()),
        ("check_information", InformationUntold()),
        ("check_kinds", KindsInOneDtype()),
        ("check_max_pool", MaxPoolNotKept()),
        ("check_precomputed_features", FeaturesTransformed()),
        ("check_repr", ReprNameless()),
        ("check_without_model", ModelLookedAt()),
    ],
)
def test_check_strategy_stops_at_the_one_check_that_a_broken_strategy_fails(
    name: str, strategy: Any
) -> None:
    with pytest.raises(AssertionError, match=f"^{re.escape(name)}: "):
        check_strategy(strategy)
    others = {other: check for other, check in STRATEGY_CHECKS.items() if other != name}
    run_checks(others, strategy, silenced=QueryWarning)
