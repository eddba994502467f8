"""get_sampler: what finds a sampler, what is refused and how, and how to teach it a model."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
    StackingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KernelDensity,
    KNeighborsClassifier,
    LocalOutlierFactor,
    RadiusNeighborsClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from sklearn_ical import BALDQuery, ICALQuery, PredictionSamples, samplers
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BaseSampler, BootstrapSampler, Draws, EnsembleSampler, get_sampler
from sklearn_ical.samplers._base import evaluate_in_chunks

X = np.random.default_rng(0).normal(size=(60, 4))
CODES = np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.5])
NAMES = np.array(["b", "a", "c"])[CODES]
ENSEMBLES = (
    "^ensemble must be a list, tuple or dict of fitted models, or a fitted forest, bagging, "
    r"voting, stacking or calibrated model\. "
)
UNSUPPORTED = {
    "NoneType": lambda: None,
    "int": lambda: 3,
    "str": lambda: "RandomForestClassifier",
    "bytes": lambda: b"forest",
    "object": object,
    "set": lambda: {1, 2},
    "generator": lambda: (model for model in [GaussianNB().fit(X, NAMES)]),
    "function": lambda: lambda rows: rows,
}
WAYS_OUT = (
    "fitted classifier or regressor",
    "list or dict of them",
    "Pipeline or search",
    "draw method",
    "PredictionSamples",
    "(n_points, n_draws, n_classes)",
)
WITHOUT_TARGET = [
    (IsolationForest(n_estimators=2), "detects outliers"),
    (OneClassSVM(), "detects outliers"),
    (LocalOutlierFactor(novelty=True), "detects outliers"),
    (LocalOutlierFactor(), "detects outliers"),
    (KMeans(2, n_init=1), "groups rows"),
    (AgglomerativeClustering(), "groups rows"),
    (KernelDensity(), "can be fitted"),
    (GaussianMixture(2), "estimates a density"),
    (StandardScaler(), "transforms rows"),
    (PCA(2), "transforms rows"),
    (RandomTreesEmbedding(2), "transforms rows"),
]
# Models without posterior draws: neither single ones, nor ensembles whose members correct each
# other or know one class each.
WITHOUT_DRAWS = [
    StackingClassifier([("nb", GaussianNB())], cv=2),  # EnsembleSampler knows its first layer
    SVC(),
    GaussianNB(),
    DecisionTreeClassifier(),
    GradientBoostingClassifier(n_estimators=2),
    GradientBoostingRegressor(n_estimators=2),
    HistGradientBoostingClassifier(max_iter=2),
    AdaBoostClassifier(n_estimators=2),
    OneVsRestClassifier(GaussianNB()),
    OneVsOneClassifier(SGDClassifier()),
]
TWO_OUTPUTS = [
    MultiOutputClassifier(GaussianNB()),
    ClassifierChain(LogisticRegression()),
    KNeighborsClassifier(),
    RadiusNeighborsClassifier(9.0),
    DecisionTreeClassifier(),
    ExtraTreeClassifier(),
    RandomForestClassifier(2),
    DummyClassifier(strategy="prior"),
    MLPClassifier(3, solver="lbfgs", max_iter=3000, random_state=0),
    OneVsRestClassifier(LogisticRegression()),
    GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3]}, cv=2),
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
    FrozenEstimator(KNeighborsClassifier().fit(X, X[:, :2] > 0)),
]
by_name = {"ids": lambda model: type(model).__name__}


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


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_objects_are_refused_with_the_ways_out(name: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        get_sampler(UNSUPPORTED[name]())
    message = str(caught.value)
    assert message.startswith(f"No prediction sampler is registered for {name}.")
    assert [way for way in WAYS_OUT if way not in message] == []
    assert message.endswith(f"get_sampler.register({name}).")
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(("model", "reason"), WITHOUT_TARGET, **by_name)
@pytest.mark.parametrize("fit", [False, True])
def test_models_without_a_target_are_refused_with_the_reason(
    model: Any, reason: str, fit: bool
) -> None:
    model = clone(model).fit(X) if fit else model
    message = (
        rf"^{type(model).__name__} {reason} and predicts no target, so it gives no prediction "
        r"samples\. Pass a fitted classifier or regressor\.$"
    )
    with pytest.raises(UnsupportedModelError, match=message):
        get_sampler(model)
    with pytest.raises(UnsupportedModelError, match=message):
        BALDQuery().query(model, X, X_labeled=X, y_labeled=NAMES)
    with pytest.raises(UnsupportedModelError, match=f"^{type(model).__name__} must be a class"):
        BootstrapSampler(model).fit(X, NAMES)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_ensemble_sampler_refuses_what_is_no_ensemble(name: str) -> None:
    with pytest.raises(UnsupportedModelError, match=ENSEMBLES + f"Got {name} in EnsembleSampler"):
        EnsembleSampler(UNSUPPORTED[name]()).draw()


@pytest.mark.parametrize("model", WITHOUT_DRAWS[1:], **by_name)
def test_ensemble_sampler_refuses_other_models_by_name(model: Any) -> None:
    message = ENSEMBLES + f"Got {type(model).__name__} in EnsembleSampler"
    with pytest.raises(UnsupportedModelError, match=message):
        EnsembleSampler(clone(model).fit(X, CODES)).draw()


@pytest.mark.parametrize("model", WITHOUT_DRAWS, **by_name)
def test_model_without_draws_gets_the_bootstrap_and_asks_for_labeled_rows(model: Any) -> None:
    model, name = clone(model).fit(X, CODES), type(model).__name__
    sampler = get_sampler(model)
    assert isinstance(sampler, BootstrapSampler)
    assert sampler.estimator is model
    message = (
        rf"^{name} has no posterior draws of its own, .* Got no labeled rows; call "
        r"query\(model, X_pool, X_labeled=X, y_labeled=y\), or pass "
        r"BootstrapSampler\(model\)\.fit\(X, y\) as the model\.$"
    )
    for ask in (sampler.draw, lambda: ICALQuery().query(model, X)):
        with pytest.raises(UnsupportedModelError, match=message):
            ask()
    with pytest.raises(NotFittedError, match=f"{name} is not fitted yet"):
        get_sampler(clone(model))


@pytest.mark.parametrize("model", WITHOUT_DRAWS[1:5], **by_name)
def test_query_with_labeled_rows_asks_the_refits(model: Any) -> None:
    model = clone(model).fit(X[:40], NAMES[:40])
    given = {"X_labeled": X[:40], "y_labeled": NAMES[:40]}
    picks = ICALQuery(random_state=0).query(model, X[40:], 3, **given)
    sampler = BootstrapSampler(model).fit(X[:40], NAMES[:40])
    again = ICALQuery(random_state=0).query(sampler, X[40:], 3)
    assert len(set(picks.tolist())) == 3
    np.testing.assert_array_equal(again, picks)


@pytest.mark.parametrize("model", TWO_OUTPUTS, **by_name)
def test_classifiers_of_several_outputs_are_refused_with_the_shape_that_works(model: Any) -> None:
    y = (X[:, :2] > 0).astype(int)
    model = clone(model).fit(X, y)
    message = (
        r"^\w+ was fitted on 2 class outputs; draws need one, \(n_points, n_draws, n_classes\)\. "
        r"Fit one model per output, with y of shape \(n_samples,\)\.$"
    )
    for labeled in ({}, {"X_labeled": X, "y_labeled": y}):
        with pytest.raises(UnsupportedModelError, match=message):
            ICALQuery().query(model, X, **labeled)
    with pytest.raises(UnsupportedModelError, match=r"class outputs|y_labeled must have shape"):
        BootstrapSampler(model).fit(X, y)


def test_list_of_one_output_is_refused_too() -> None:
    model = MultiOutputClassifier(GaussianNB()).fit(X, CODES[:, None])
    with pytest.raises(UnsupportedModelError, match="was fitted on 1 class output, in a column"):
        get_sampler(model)


@pytest.mark.parametrize(
    "model", [MultiOutputRegressor(Ridge()), RegressorChain(Ridge()), Ridge()], **by_name
)
def test_regressors_of_several_targets_are_refitted(model: Any) -> None:
    y = np.column_stack([X[:, 0], X[:, 1] ** 2, CODES])
    model = clone(model).fit(X, y)
    sampler = get_sampler(model).with_labeled(X, y)
    assert sampler.sample(X[:7], n_draws=4, random_state=0).values.shape == (7, 4, 3)
    picks = ICALQuery(random_state=0).query(model, X, 2, X_labeled=X, y_labeled=y)
    assert len(set(picks.tolist())) == 2


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
    assert isinstance(get_sampler(model), BootstrapSampler)


class Plain:
    """A model that is no scikit-learn estimator, and has what it was given besides `predict`."""

    def fit(self, X: Any, y: Any) -> "Plain":
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.zeros(len(X))


def test_model_that_cannot_be_cloned_is_refused_by_name() -> None:
    message = (
        r"^Plain must be an estimator with fit and get_params, .*BaseEstimator, or pass a list"
    )
    with pytest.raises(UnsupportedModelError, match=message):
        get_sampler(Plain())


def test_model_that_does_not_say_what_it_is_is_refused_by_name() -> None:
    class Silent(Plain, BaseEstimator):
        pass

    message = r"^Silent must be a classifier or a regressor\. .* ClassifierMixin or RegressorMixin"
    with pytest.raises(UnsupportedModelError, match=message):
        get_sampler(Silent())


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


def test_registrations_are_on_one_page() -> None:
    register = re.compile(r"^\s*@?get_\w+\.register\b", re.MULTILINE)
    files = Path(samplers.__file__).parent.rglob("*.py")
    assert [file.name for file in files if register.search(file.read_text())] == [
        "_registrations.py"
    ]
