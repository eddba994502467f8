"""get_sampler: what finds a sampler, what is refused and how, and how to teach it a model."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_ical import BALDQuery, PredictionSamples
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import (
    BaseSampler,
    Draws,
    EnsembleSampler,
    evaluate_in_chunks,
    get_sampler,
)

X = np.random.default_rng(0).normal(size=(60, 4))
CODES = np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.5])
NAMES = np.array(["b", "a", "c"])[CODES]
UNSUPPORTED = {
    "SVC": lambda: SVC().fit(X, NAMES),
    "GaussianNB": lambda: GaussianNB().fit(X, NAMES),
    "DecisionTreeClassifier": lambda: DecisionTreeClassifier().fit(X, NAMES),
    "KMeans": lambda: KMeans(2, n_init=1).fit(X),
    "NoneType": lambda: None,
    "int": lambda: 3,
    "str": lambda: "RandomForestClassifier",
    "bytes": lambda: b"forest",
    "object": object,
    "set": lambda: {1, 2},
    "generator": lambda: (model for model in [GaussianNB().fit(X, NAMES)]),
    "function": lambda: lambda rows: rows,
}
# Ensembles whose members speak encoded labels, see some features or correct each other.
OTHER_ENSEMBLES = {
    "GradientBoostingClassifier": lambda: GradientBoostingClassifier(n_estimators=2).fit(X, NAMES),
    "GradientBoostingRegressor": lambda: GradientBoostingRegressor(n_estimators=2).fit(X, CODES),
    "HistGradientBoostingClassifier": lambda: HistGradientBoostingClassifier(max_iter=2).fit(
        X, NAMES
    ),
    "AdaBoostClassifier": lambda: AdaBoostClassifier(n_estimators=2).fit(X, NAMES),
    "BaggingClassifier": lambda: BaggingClassifier(n_estimators=2, max_features=2).fit(X, NAMES),
    "VotingClassifier": lambda: VotingClassifier([("nb", GaussianNB())]).fit(X, NAMES),
    "VotingRegressor": lambda: VotingRegressor([("line", LinearRegression())]).fit(X, CODES),
    "StackingClassifier": lambda: StackingClassifier([("nb", GaussianNB())], cv=2).fit(X, NAMES),
    "IsolationForest": lambda: IsolationForest(n_estimators=2).fit(X),
    "RandomTreesEmbedding": lambda: RandomTreesEmbedding(2).fit(X),
    "OneVsRestClassifier": lambda: OneVsRestClassifier(GaussianNB()).fit(X, NAMES),
    "OneVsOneClassifier": lambda: OneVsOneClassifier(SGDClassifier()).fit(X, NAMES),
    "MultiOutputClassifier": lambda: MultiOutputClassifier(GaussianNB()).fit(X, X[:, :2] > 0),
}
WAYS_OUT = (
    "random forest or extra-trees",
    "list or dict of fitted models",
    "Pipeline or search",
    "draw method",
    "PredictionSamples",
    "(n_points, n_draws, n_classes)",
)


class Coin:
    """A model with draws of its own: each is one constant probability of heads."""

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> "CoinDraws":
        heads = np.random.default_rng(random_state).uniform(size=n_draws or 50)
        return CoinDraws(heads)


class CoinDraws:
    kind = "proba"
    classes = None
    weights = None
    joint = False

    def __init__(self, heads: np.ndarray) -> None:
        self.heads = heads
        self.n_draws = len(heads)

    def __call__(self, X: Any) -> PredictionSamples:
        proba = np.stack([1 - self.heads, self.heads], axis=1)
        return PredictionSamples(np.tile(proba, (len(X), 1, 1)))


class Brief:
    """Draws that give whatever they were made with, in chunks too where asked."""

    n_draws = 2
    kind = "proba"
    classes = None
    weights = None
    joint = False

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self, X: Any) -> Any:
        return self.answer


class BriefInChunks(Brief):
    def chunks(self, X: Any, n_rows: int) -> Iterator[Any]:
        yield from self.answer


def even(n_points: int) -> PredictionSamples:
    return PredictionSamples(np.full((n_points, 2, 2), 0.5))


@pytest.mark.parametrize("name", [*UNSUPPORTED, *OTHER_ENSEMBLES])
def test_unsupported_objects_are_refused_with_the_ways_out(name: str) -> None:
    model = {**UNSUPPORTED, **OTHER_ENSEMBLES}[name]()
    with pytest.raises(UnsupportedModelError) as caught:
        get_sampler(model)
    message = str(caught.value)
    assert message.startswith(f"No prediction sampler is registered for {name}.")
    assert [way for way in WAYS_OUT if way not in message] == []
    assert message.endswith(f"get_sampler.register({name}).")
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("name", [*UNSUPPORTED, *OTHER_ENSEMBLES])
def test_ensemble_sampler_refuses_other_ensembles_by_name(name: str) -> None:
    model = {**UNSUPPORTED, **OTHER_ENSEMBLES}[name]()
    message = (
        "^ensemble must be a list, tuple or dict of fitted models, or a fitted random forest or "
        rf"extra-trees model\. Got {name} in EnsembleSampler"
    )
    with pytest.raises(UnsupportedModelError, match=message):
        EnsembleSampler(model).draw()


@pytest.mark.parametrize("name", ["BaggingClassifier", "VotingClassifier", "SVC"])
def test_query_refuses_a_model_without_draws(name: str) -> None:
    model = {**UNSUPPORTED, **OTHER_ENSEMBLES}[name]()
    with pytest.raises(UnsupportedModelError, match=f"registered for {name}"):
        BALDQuery().query(model, X)


@pytest.mark.parametrize("model", [RandomForestClassifier, GaussianNB, float, Coin])
def test_classes_are_refused_with_a_hint_to_fit(model: type) -> None:
    name = model.__name__
    message = rf"not a class\. Got the class {name}; pass {name}\(\.\.\.\)\.fit\(X, y\)"
    with pytest.raises(UnsupportedModelError, match=message):
        get_sampler(model)
    with pytest.raises(UnsupportedModelError, match=f"Got {name} in EnsembleSampler"):
        EnsembleSampler(model).draw()


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(2).fit(X, NAMES),
        ExtraTreesClassifier(2).fit(X, NAMES),
        RandomForestRegressor(2).fit(X, CODES),
        [GaussianNB().fit(X, NAMES)],
        (LinearRegression().fit(X, CODES),),
        {"near": KNeighborsClassifier().fit(X, NAMES)},
    ],
    ids=lambda model: type(model).__name__,
)
def test_finite_ensembles_get_the_ensemble_sampler(model: Any) -> None:
    sampler = get_sampler(model)
    assert isinstance(sampler, EnsembleSampler)
    assert sampler.ensemble is model
    assert isinstance(sampler.draw(), Draws)


def test_samplers_are_their_own_sampler() -> None:
    sampler = EnsembleSampler([GaussianNB().fit(X, NAMES)])
    assert get_sampler(sampler) is sampler


def test_object_with_its_own_draw_is_its_sampler() -> None:
    coin = Coin()
    assert get_sampler(coin) is coin
    draws = get_sampler(coin).draw(3, random_state=0)
    assert isinstance(draws, Draws)
    heads = np.random.default_rng(0).uniform(size=3)
    assert [part.n_points for part in evaluate_in_chunks(draws, X, 25)] == [25, 25, 10]
    np.testing.assert_array_equal(draws(X).values[:, :, 1], np.tile(heads, (60, 1)))


def test_attribute_draw_that_is_no_method_does_not_count() -> None:
    model = GaussianNB().fit(X, NAMES)
    model.draw = "lots"
    with pytest.raises(UnsupportedModelError, match="registered for GaussianNB"):
        get_sampler(model)


def test_registered_class_and_its_subclasses_get_their_sampler() -> None:
    class Guess:
        level = 0.25

    class BetterGuess(Guess):
        pass

    class GuessSampler(BaseSampler):
        def __init__(self, model: Guess) -> None:
            self.model = model

        def draw(self, n_draws: int | None = None, random_state: Any = None) -> Draws:
            return CoinDraws(np.full(n_draws or 2, self.model.level))

    with pytest.raises(UnsupportedModelError, match=r"get_sampler\.register\(BetterGuess\)"):
        get_sampler(BetterGuess())
    get_sampler.register(Guess, GuessSampler)
    try:
        for model in (Guess(), BetterGuess()):
            values = get_sampler(model).sample(X, n_draws=3).values
            np.testing.assert_array_equal(values, np.tile([0.75, 0.25], (60, 3, 1)))
    finally:
        get_sampler.register(Guess, get_sampler.dispatch(object))
    with pytest.raises(UnsupportedModelError, match="registered for Guess"):
        get_sampler(Guess())


def test_sampler_without_draw_says_so() -> None:
    class Lazy(BaseSampler):
        pass

    with pytest.raises(NotImplementedError, match=r"Lazy must define draw\."):
        Lazy().sample(X)


@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestClassifier(6, random_state=0).fit(X, NAMES),
        [GaussianNB().fit(X, NAMES), LogisticRegression().fit(X, NAMES)],
        even(60),
    ],
    ids=["forest", "list", "samples"],
)
@pytest.mark.parametrize("n_draws", [None, 1, 2])
def test_sample_equals_draw_then_call(ensemble: Any, n_draws: int | None) -> None:
    sampler = get_sampler(ensemble)
    direct = sampler.sample(X, n_draws=n_draws, random_state=3)
    by_draws = sampler.draw(n_draws=n_draws, random_state=3)(X)
    np.testing.assert_array_equal(direct.values, by_draws.values)


def test_protocol_refuses_objects_without_its_members() -> None:
    assert isinstance(Brief(None), Draws)
    assert not isinstance(even(3), Draws)
    assert not isinstance(lambda rows: rows, Draws)
    assert not isinstance(EnsembleSampler([]), Draws)


@pytest.mark.parametrize(
    ("answer", "expected", "got"),
    [
        (np.full((6, 2, 2), 0.5), 6, "ndarray"),
        (None, 6, "NoneType"),
        (even(5), 6, "5 points"),
        (even(7), 6, "7 points"),
    ],
)
def test_bad_answers_of_draws_are_refused_by_name(answer: Any, expected: int, got: str) -> None:
    message = rf"Brief must return PredictionSamples of the {expected} rows .*\. Got {got}\."
    with pytest.raises(ValueError, match=message):
        list(evaluate_in_chunks(Brief(answer), X[:6], 10))


def test_answer_for_other_rows_than_the_chunk_is_refused() -> None:
    with pytest.raises(ValueError, match=r"of the 2 rows given to it\. Got 4 points"):
        list(evaluate_in_chunks(Brief(even(4)), X[:6], 4))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([even(4), even(4)], r"BriefInChunks .* of the 2 rows given to it\. Got 4 points"),
        ([even(6)], r"BriefInChunks .* of the 4 rows given to it\. Got 6 points"),
        ([even(4)], r"BriefInChunks .* of the 2 rows given to it\. Got NoneType"),
        ([even(4), even(2), even(2)], r"BriefInChunks .* of the 0 rows given to it\. Got 2 points"),
    ],
)
def test_bad_chunks_of_draws_are_refused_by_name(parts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(evaluate_in_chunks(BriefInChunks(parts), X[:6], 4))


def test_own_chunks_are_used_where_there_are_any() -> None:
    parts = [even(4), even(2)]
    assert list(evaluate_in_chunks(BriefInChunks(parts), X[:6], 4)) == parts


def test_no_row_gives_no_chunk() -> None:
    for draws in (Brief(even(0)), BriefInChunks([])):
        assert list(evaluate_in_chunks(draws, X[:0], 4)) == []
