"""check_sampler itself: it passes a third party's samplers, each check refuses a broken one."""

import copy
import os
import re
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import BayesianRidge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from sklearn_ical import PredictionSamples
from sklearn_ical.samplers import BootstrapSampler
from sklearn_ical.testing import check_sampler
from sklearn_ical.testing._sampler import SAMPLER_CHECKS
from tests.third_party_samplers import (
    NOISE,
    BarePlanes,
    Committee,
    JointPlaneDraws,
    MoreClasses,
    Plane,
    PlaneDraws,
    Planes,
    VoteDraws,
    plain,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.where(X[:, 0] > 0, "b", "a")


# One sampler for each check, broken in the way that its class says; some checks have more.


class KindUnknown(PlaneDraws):
    kind = "values"


class JointUnsaid(PlaneDraws):
    joint = None


class ClassesRepeated(PlaneDraws):
    classes = ("a", "a")


class SamplesInArray(PlaneDraws):
    def __call__(self, X: Any) -> Any:
        return self.values(plain(X))


class SamplesOfFewerRows(PlaneDraws):
    def __call__(self, X: Any) -> Any:
        return super().__call__(X)[:-1]


class SamplesNotFinite(PlaneDraws):
    def __call__(self, X: Any) -> Any:
        return PredictionSamples.trusted(np.full((len(X), self.n_draws), np.nan), "value")


class SourceLeftOpen(Planes):
    source: Any = None


class DrawsEqual(PlaneDraws):
    def values(self, X: np.ndarray) -> np.ndarray:
        return np.tile(X @ self.coefs[:1].T, self.n_draws)


class DrawsEqualButForRounding(PlaneDraws):
    def __init__(self, coefs: np.ndarray) -> None:
        super().__init__(coefs[:1] + 1e-15 * np.arange(len(coefs))[:, None])


class VotesEqual(VoteDraws):
    kind = "label"

    def __call__(self, X: Any) -> Any:
        labels = np.tile(super().__call__(X).values[:, :1].argmax(axis=2), self.n_draws)
        return PredictionSamples(labels, "label", classes=self.classes, weights=self.weights)


class WeightsLeftOut(VoteDraws):
    def __call__(self, X: Any) -> Any:
        return PredictionSamples(super().__call__(X).values, "proba", classes=self.classes)


class WeightsOfSumTwo(VoteDraws):
    def __init__(self, coefs: np.ndarray, weights: Any, classes: Any) -> None:
        super().__init__(coefs, weights * 2, classes)


class ColumnsReversed(VoteDraws):
    def __init__(self, coefs: np.ndarray, weights: Any, classes: Any) -> None:
        super().__init__(coefs[:, :, ::-1], weights, classes[::-1])


class ColumnsLoseAPart(VoteDraws):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return values * (1 - 5e-4)


class ColumnsReversedByRefits(ColumnsReversed):
    mean_differs = "members are refits"


class ValuesReversed(VoteDraws):
    mean_differs = "members are refits"

    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return values[:, :, ::-1]


class TwoValuesSwapped(VoteDraws):
    mean_differs = "members are refits"

    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return values[:, :, [1, 0, 2]]


class CodesReversed(VoteDraws):
    mean_differs = "members vote"
    kind = "label"

    def __call__(self, X: Any) -> Any:
        codes = 2 - super().__call__(X).values.argmax(axis=2)
        return PredictionSamples(codes, "label", classes=self.classes, weights=self.weights)


class MoreClassesReversed(MoreClasses):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return super().spoiled(values)[:, :, [0, 4, 2, 3, 1]]


class AnswersNoisy(PlaneDraws):
    def values(self, X: np.ndarray) -> np.ndarray:
        return super().values(X) + 1e-6 * np.random.default_rng().normal(size=(len(X), 1))


class DrawsOfLambda(PlaneDraws):
    def __init__(self, coefs: np.ndarray) -> None:
        super().__init__(coefs)
        self.link = lambda x: x


class DrawsForgetSign(PlaneDraws):
    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state, coefs=-state["coefs"])


class DrawsCount(PlaneDraws):
    calls = 0

    def __call__(self, X: Any) -> Any:
        self.calls += 1
        return super().__call__(X)


class SeedIgnored(Planes):
    def generator(self, random_state: Any) -> np.random.Generator:
        super().generator(random_state)
        return np.random.default_rng()


class SamplerOfLambda(Planes):
    def __init__(self) -> None:
        super().__init__()
        self.link = lambda x: x


class SamplerForgetsSign(Planes):
    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.model.coef = -self.model.coef


class ModelMarked(Planes):
    def draw(self, n_draws: Any = None, random_state: Any = None) -> Any:
        self.model.seen_ = True
        return super().draw(n_draws, random_state)


class SamplerCounts(Planes):
    calls = 0

    def draw(self, n_draws: Any = None, random_state: Any = None) -> Any:
        self.calls += 1
        return super().draw(n_draws, random_state)


class RowsChanged(PlaneDraws):
    def __call__(self, X: Any) -> Any:
        if isinstance(X, np.ndarray) and X.flags.writeable:
            X[0, 0] = 0
        return super().__call__(X)


class LabeledKept(Planes):
    def with_labeled(self, X_labeled: Any, y_labeled: Any) -> Any:
        self.X_, self.y_ = X_labeled, y_labeled
        return self


class LabeledCounted(Planes):
    calls = 0

    def with_labeled(self, X_labeled: Any, y_labeled: Any) -> Any:
        type(self).calls += 1
        again = type(self)()
        again.model.coef = again.model.coef + self.calls
        return again


class GlobalGeneratorUsed(Planes):
    def draw(self, n_draws: Any = None, random_state: Any = None) -> Any:
        np.random.random()  # noqa: NPY002, it is what the check is for
        return super().draw(n_draws, random_state)


class GlobalGeneratorUsedUnseeded(Planes):
    def draw(self, n_draws: Any = None, random_state: Any = None) -> Any:
        if random_state is None:
            np.random.random()  # noqa: NPY002, it is what the check is for
        return super().draw(n_draws, random_state)


class FewerIgnored(Planes):
    def count(self, n_draws: Any) -> int:
        return max(8, super().count(n_draws))


class FirstDrawsOthers(Planes):
    def draw(self, n_draws: Any = None, random_state: Any = None) -> Any:
        draws = super().draw(n_draws, random_state)
        return self.make(draws.coefs[::-1])


class SubsetUnordered(Committee):
    def choose(self, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        chosen = super().choose(n_draws, generator)
        return chosen[::-1] if n_draws < 6 else chosen


class SubsetRepeats(Committee):
    def choose(self, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        return np.full(n_draws, 2) if n_draws < 6 else super().choose(n_draws, generator)


class SubsetOfFirstWeights(Committee):
    def members(self, chosen: np.ndarray) -> Any:
        draws = super().members(chosen)
        weights = self.model.weights[: len(chosen)]
        return self.make(draws.coefs, weights / weights.sum(), draws.classes)


class SubsetOfOtherKind(Committee):
    def members(self, chosen: np.ndarray) -> Any:
        draws = super().members(chosen)
        if chosen.tolist() == [3]:
            draws.kind = "label"
        return draws


class MembersDrawnTwice(Committee):
    def choose(self, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        return np.arange(n_draws) % 6 if n_draws > 6 else super().choose(n_draws, generator)


class PosteriorEnds(Planes):
    def count(self, n_draws: Any) -> int:
        if super().count(n_draws) > 8:
            raise ValueError("n_draws must be at most 8.")
        return super().count(n_draws)


class NumbersTruncated(Planes):
    def count(self, n_draws: Any) -> int:
        return super().count(None if n_draws is None else max(1, int(n_draws)))


class SampleOfDefault(Planes):
    def sample(self, X: Any, *, n_draws: Any = None, random_state: Any = None) -> Any:
        return self.draw(None, random_state)(X)


class GeneratorCopied(Planes):
    def generator(self, random_state: Any) -> np.random.Generator:
        return super().generator(copy.deepcopy(random_state))


class SeedsRounded(Planes):
    def generator(self, random_state: Any) -> np.random.Generator:
        return super().generator(int(random_state) if random_state == 1.5 else random_state)


class ChunksCentred(PlaneDraws):
    def values(self, X: np.ndarray) -> np.ndarray:
        return super().values(X) - 1e-3 * X.mean()


class PlacesCount(JointPlaneDraws):
    def values(self, X: np.ndarray) -> np.ndarray:
        return super().values(X) + np.arange(len(X))[:, None]


class CopiesRefused(JointPlaneDraws):
    def values(self, X: np.ndarray) -> np.ndarray:
        if len(np.unique(X, axis=0)) < len(X):
            raise ValueError("rows must be distinct")
        return super().values(X)


class ReferenceApart(JointPlaneDraws):
    def values(self, X: np.ndarray) -> np.ndarray:
        return super().values(X) - X.mean()

    def together(self, X: Any, X_reference: Any) -> Any:
        return self(X), self(X_reference)


class ReferenceRefused(PlaneDraws):
    joint = True


class MeanOfOtherPlane(PlaneDraws):
    def values(self, X: np.ndarray) -> np.ndarray:
        return super().values(X + 0.2)


class MeanOfOtherMembers(VoteDraws):
    def spoiled(self, values: np.ndarray) -> np.ndarray:
        return 0.999 * values + 0.001 * values[:, :, [1, 2, 0]]


class MeanExcused(MeanOfOtherPlane):
    mean_differs = "planes are shifted"


class ReasonBlank(MeanOfOtherPlane):
    mean_differs = " "


class NoiseOfDeviation(PlaneDraws):
    noise_variance = NOISE**0.5


class NoiseOfEachDraw(NoiseOfDeviation):
    def __call__(self, X: Any) -> Any:
        values = self.values(plain(X))
        noise = np.full(values.shape, self.noise_variance)
        return PredictionSamples(values, "value", noise_variance=noise)


class DrawsTooNear(PlaneDraws):
    def __init__(self, coefs: np.ndarray) -> None:
        super().__init__((coefs + Plane().coef) / 2)


class DrawsTooNearWithoutNoise(DrawsTooNear):
    noise_variance = None


class ListsRefused(PlaneDraws):
    def __call__(self, X: Any) -> Any:
        if isinstance(X, list):
            raise TypeError("X must have a shape")
        return super().__call__(X)


class WriteableOnly(PlaneDraws):
    def __call__(self, X: Any) -> Any:
        if isinstance(X, np.ndarray):
            X[0, 0] = +X[0, 0]
        return super().__call__(X)


class SparseRefused(PlaneDraws):
    def __call__(self, X: Any) -> Any:
        return super().__call__(np.asarray(X, dtype=np.float64))


class ChunksOfFramesByIndex(PlaneDraws):
    def __call__(self, X: Any) -> Any:
        return super().__call__(X.sort_index() if hasattr(X, "sort_index") else X)


class WarnsOfRows(PlaneDraws):
    def __call__(self, X: Any) -> Any:
        warnings.warn("rows are evaluated", UserWarning, stacklevel=2)
        return super().__call__(X)


class ProcessCounts(PlaneDraws):
    def __init__(self, coefs: np.ndarray) -> None:
        super().__init__(coefs)
        self.home = os.getpid()

    def values(self, X: np.ndarray) -> np.ndarray:
        return super().values(X) * (1 if os.getpid() == self.home else -1)


class ProcessSeeds(Planes):
    def __init__(self) -> None:
        super().__init__()
        self.home = os.getpid()

    def generator(self, random_state: Any) -> np.random.Generator:
        there = os.getpid() != self.home
        return super().generator(random_state if not there else 99)


def of(draws: Any) -> Any:
    """Return a sampler of these draws."""
    sampler = Committee() if issubclass(draws, VoteDraws) else Planes()
    sampler.make = draws
    return sampler


def wrong_votes() -> tuple[Any, Any]:
    """Return voters, and a model of other voters."""
    rows, labels = RNG.normal(size=(60, 3)), np.repeat(["a", "b", "c"], 20)
    voters = [("one", RidgeClassifier()), ("two", RidgeClassifier(alpha=100.0))]
    model = VotingClassifier(voters).fit(rows, labels)
    return [member.fit(-rows, labels) for _, member in voters], model


def fitted_on_text() -> Any:
    """Return a model of rows that nobody can make up."""
    return make_pipeline(CountVectorizer(), MultinomialNB()).fit(["leaf", "root"], ["a", "b"])


BROKEN: dict[str, list[Any]] = {
    "check_draws": [
        KindUnknown,
        JointUnsaid,
        ClassesRepeated,
        SamplesInArray,
        SamplesOfFewerRows,
        SamplesNotFinite,
        SourceLeftOpen,
    ],
    "check_draw_weights": [WeightsLeftOut, WeightsOfSumTwo],
    "check_draws_differ": [DrawsEqual, DrawsEqualButForRounding, VotesEqual],
    "check_columns": [ColumnsReversed, ColumnsReversedByRefits, ColumnsLoseAPart],
    "check_column_order": [ValuesReversed, TwoValuesSwapped, CodesReversed, MoreClassesReversed],
    "check_same_rows": [AnswersNoisy],
    "check_pickled_draws": [DrawsOfLambda, DrawsForgetSign],
    "check_draws_unchanged": [DrawsCount],
    "check_equal_random_states": [SeedIgnored],
    "check_pickled_sampler": [SamplerOfLambda, SamplerForgetsSign],
    "check_given_unchanged": [ModelMarked, SamplerCounts, RowsChanged],
    "check_labeled_rows": [LabeledKept, LabeledCounted],
    "check_drawing_generators": [GlobalGeneratorUsed, GlobalGeneratorUsedUnseeded],
    "check_fewer_draws": [
        FewerIgnored,
        FirstDrawsOthers,
        SubsetUnordered,
        SubsetRepeats,
        SubsetOfFirstWeights,
        SubsetOfOtherKind,
    ],
    "check_more_draws": [MembersDrawnTwice, PosteriorEnds],
    "check_bad_n_draws": [NumbersTruncated],
    "check_sample": [SampleOfDefault],
    "check_used_generators": [GeneratorCopied],
    "check_bad_random_states": [SeedsRounded],
    "check_chunked_rows": [ChunksCentred],
    "check_moved_rows": [PlacesCount, CopiesRefused],
    "check_joint_rows": [ReferenceApart, ReferenceRefused],
    "check_mean": [MeanOfOtherPlane, MeanOfOtherMembers, ReasonBlank],
    "check_noise": [NoiseOfDeviation, NoiseOfEachDraw, DrawsTooNear],
    "check_row_containers": [
        ListsRefused,
        WriteableOnly,
        SparseRefused,
        ChunksOfFramesByIndex,
        WarnsOfRows,
    ],
    "check_other_processes": [ProcessCounts, ProcessSeeds],
}
NEEDS_PACKAGE = {ChunksOfFramesByIndex: "pandas"}


@pytest.mark.parametrize("make", [Planes, Committee, lambda: of(JointPlaneDraws)])
def test_check_sampler_passes_a_third_party_sampler(make: Callable[[], Any]) -> None:
    sampler = make()
    check_sampler(sampler, X)
    check_sampler(sampler, X, model=sampler.model)
    check_sampler(sampler, model=sampler.model, X_labeled=X, y_labeled=Y)


def test_check_sampler_passes_a_sampler_that_only_draws() -> None:
    check_sampler(BarePlanes(), X, model=Plane())


def test_every_check_has_a_broken_sampler() -> None:
    assert sorted(BROKEN) == sorted(SAMPLER_CHECKS)


@pytest.mark.parametrize(
    ("name", "broken"),
    [(name, broken) for name, some in BROKEN.items() for broken in some],
    ids=[broken.__name__ for some in BROKEN.values() for broken in some],
)
def test_check_refuses_its_broken_sampler(name: str, broken: Any) -> None:
    if broken in NEEDS_PACKAGE:
        pytest.importorskip(NEEDS_PACKAGE[broken])
    sampler = broken() if issubclass(broken, Planes) else of(broken)
    labeled = {"X_labeled": X, "y_labeled": Y} if name == "check_labeled_rows" else {}
    with pytest.raises(AssertionError, match=f"^{re.escape(name)}: "):
        check_sampler(sampler, X.copy(), model=sampler.model, **labeled)


def test_votes_against_the_model_are_refused() -> None:
    voters, model = wrong_votes()
    with pytest.raises(AssertionError, match=r"^check_mean: Expected most votes for the model"):
        check_sampler(voters, X, model=model)


@pytest.mark.parametrize("draws", [MeanExcused, MoreClasses, DrawsTooNearWithoutNoise])
def test_draws_with_a_reason_or_without_noise_are_compared_with_less(draws: Any) -> None:
    sampler = of(draws)
    check_sampler(sampler, X, model=sampler.model)


@pytest.mark.parametrize("n_classes", [2, 12])
def test_few_refits_on_labels_of_chance_keep_their_columns(n_classes: int) -> None:
    rng = np.random.default_rng(3)
    rows, labels = rng.normal(size=(60, 3)), np.arange(60) % n_classes
    sampler = BootstrapSampler(DecisionTreeClassifier(max_depth=3), n_draws=4)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(rows, labels)
    check_sampler(sampler, X, model=model, X_labeled=rows, y_labeled=labels)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_variance_of_rows_far_from_the_origin_is_right_in_any_scikit_learn(
    fit_intercept: bool,
) -> None:
    model = BayesianRidge(fit_intercept=fit_intercept).fit(X + 5, X[:, 0] + RNG.normal(size=30))
    check_sampler(model, X + 5)


def test_precomputed_predictions_that_are_all_equal_are_refused() -> None:
    samples = PredictionSamples(np.tile(X[:, :1], 5), "value")
    with pytest.raises(AssertionError, match=r"^check_draws_differ: .* Got 5 equal draws for all"):
        check_sampler(samples, X)
    check_sampler(PredictionSamples(X[:, :1], "value"), X)


def test_row_of_a_read_only_array_is_enough() -> None:
    rows = X.copy()
    rows.flags.writeable = False
    check_sampler(Planes(), rows)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((Planes(), X[:9]), {}, "X must have at least 10 rows.* Got 9 in check_sampler"),
        ((Planes(),), {}, "X must be rows that the model accepts .* Got None for NoneType"),
        ((fitted_on_text(),), {}, "X must be rows that the model accepts .* for Pipeline"),
        ((Planes(), 3), {}, "X must be a collection of rows"),
        ((Planes(), "leaf"), {}, "X must be a collection of rows"),
        (
            (Planes(), X[:, :2]),
            {"model": Planes().model},
            "X must be rows that the model accepts. Got ValueError from predict of Plane",
        ),
        ((Planes(), X), {"X_labeled": X}, "given together. Got y_labeled=None in check_sampler"),
        ((Planes(), X), {"y_labeled": Y}, "given together. Got X_labeled=None in check_sampler"),
        (
            (SimpleNamespace(draw=Planes().draw), X),
            {"X_labeled": X, "y_labeled": Y},
            "X_labeled must be None for a sampler without with_labeled. Got .* SimpleNamespace",
        ),
        ((GaussianNB().fit(X, Y), X), {}, "X_labeled and y_labeled .* Got None for GaussianNB"),
        ((BootstrapSampler(GaussianNB()), X), {}, "X_labeled and y_labeled must be given"),
        ((RandomForestClassifier(), X), {}, "RandomForestClassifier instance is not fitted yet"),
        ((RandomForestClassifier, X), {}, "Got the class RandomForestClassifier"),
        ((3, X), {}, "No prediction sampler is registered for int"),
    ],
)
def test_bad_use_of_check_sampler_raises(
    arguments: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError, NotFittedError), match=message):
        check_sampler(*arguments, **options)
