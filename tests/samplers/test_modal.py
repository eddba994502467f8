"""Learners and committees in the form of modAL, which stand-ins take the place of here."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_ical import (
    ActiveLearner,
    BALDQuery,
    BaseQuery,
    CoreSetQuery,
    ICALQuery,
    KernelBatchQuery,
    LeastConfidentQuery,
    MarginQuery,
    MaxEntropyQuery,
    TypiClustQuery,
)
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, EnsembleSampler, get_sampler

RNG = np.random.default_rng(0)
X, X_POOL = RNG.normal(size=(40, 3)), RNG.normal(size=(60, 3))
Y = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=40), [-0.5, 0.5])


class Learner:
    """What a strategy sees of a modAL ActiveLearner: it fits its estimator when it is made."""

    def __init__(self, estimator: Any, X_training: Any = None, y_training: Any = None) -> None:
        self.estimator = estimator
        self.X_training, self.y_training = X_training, y_training
        if X_training is not None:
            estimator.fit(X_training, y_training)
        self.n_fits = 1

    def teach(self, X: Any, y: Any) -> None:
        self.n_fits += 1

    def predict_proba(self, X: Any) -> Any:
        return self.estimator.predict_proba(X)


class Committee:
    """What a strategy sees of a modAL Committee."""

    def __init__(self, learner_list: list[Learner]) -> None:
        self.learner_list = learner_list
        self.classes_ = np.unique(
            np.concatenate([some.estimator.classes_ for some in learner_list])
        )

    def teach(self, X: Any, y: Any) -> None:
        raise AssertionError("A strategy must not teach.")

    def predict_proba(self, X: Any) -> Any:
        mean = np.zeros((len(X), len(self.classes_)))
        for learner in self.learner_list:
            places = np.searchsorted(self.classes_, learner.estimator.classes_)
            mean[:, places] += learner.predict_proba(X) / len(self.learner_list)
        return mean


class CommitteeRegressor:
    """What a strategy sees of a modAL CommitteeRegressor, which has no fitted attributes."""

    def __init__(self, learner_list: list[Learner]) -> None:
        self.learner_list = learner_list

    def teach(self, X: Any, y: Any) -> None:
        raise AssertionError("A strategy must not teach.")

    def predict(self, X: Any, return_std: bool = False) -> Any:
        raise AssertionError("Its members are asked.")


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(n_estimators=8, random_state=0)


STRATEGIES = [ICALQuery, BALDQuery, MarginQuery]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_learner_with_a_forest_is_queried_like_the_forest(strategy: type[BaseQuery]) -> None:
    learner = Learner(forest(), X, Y)
    trees = learner.estimator.estimators_
    expected = strategy(random_state=0).query(learner.estimator, X_POOL, 3)
    assert len(set(expected.tolist())) == 3
    np.testing.assert_array_equal(strategy(random_state=0).query(learner, X_POOL, 3), expected)
    picks, utilities = strategy(random_state=0)(learner, X_POOL, n_instances=3)
    np.testing.assert_array_equal(picks, expected)
    assert utilities.shape == (3,)
    assert learner.n_fits == 1
    assert learner.estimator.estimators_ is trees


@pytest.mark.parametrize("strategy", [ICALQuery, MarginQuery])
def test_learner_without_draws_is_refitted_on_its_own_rows(strategy: type[BaseQuery]) -> None:
    learner = Learner(LogisticRegression(), X, Y)
    coefficients = learner.estimator.coef_.copy()
    expected = strategy(random_state=0).query(
        learner.estimator, X_POOL, 3, X_labeled=X, y_labeled=Y
    )
    assert len(set(expected.tolist())) == 3
    picks, _ = strategy(random_state=0)(learner, X_POOL, n_instances=3)
    np.testing.assert_array_equal(picks, expected)
    np.testing.assert_array_equal(strategy(random_state=0).query(learner, X_POOL, 3), expected)
    np.testing.assert_array_equal(learner.estimator.coef_, coefficients)


def test_regressor_in_a_learner_is_refitted_on_its_own_rows() -> None:
    learner = Learner(Ridge(), X, X[:, 0])
    picks, _ = ICALQuery(random_state=0)(learner, X_POOL, n_instances=3)
    sampler = BootstrapSampler(Ridge()).fit(X, X[:, 0])
    np.testing.assert_array_equal(picks, ICALQuery(random_state=0).query(sampler, X_POOL, 3))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_committee_of_unlike_members_is_queried_like_their_list(strategy: type[BaseQuery]) -> None:
    members = [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(random_state=0), forest()]
    committee = Committee([Learner(member, X, Y) for member in members])
    sampler = EnsembleSampler(members)
    np.testing.assert_allclose(
        sampler.sample(X_POOL).mean(), committee.predict_proba(X_POOL), atol=1e-9
    )
    expected = strategy(random_state=0).query(sampler, X_POOL, 3)
    assert len(set(expected.tolist())) == 3
    picks, _ = strategy(random_state=0)(committee, X_POOL, n_instances=3)
    np.testing.assert_array_equal(picks, expected)
    np.testing.assert_array_equal(strategy(random_state=0).query(committee, X_POOL, 3), expected)


def test_committee_of_members_that_saw_different_classes_gets_all_columns() -> None:
    parts = [Y != 0, Y != 1, Y >= 0]
    committee = Committee([Learner(GaussianNB(), X[part], Y[part]) for part in parts])
    samples = get_sampler(committee).sample(X_POOL)
    assert samples.classes.tolist() == [0, 1, 2]
    assert (samples.values[:, 0, 0] == 0).all()
    assert (samples.values[:, 1, 1] == 0).all()
    np.testing.assert_allclose(samples.mean(), committee.predict_proba(X_POOL), atol=1e-9)
    for k, learner in enumerate(committee.learner_list):
        own = samples.values[:, k, learner.estimator.classes_]
        np.testing.assert_allclose(own, learner.predict_proba(X_POOL), atol=1e-12)
    picks, _ = ICALQuery(random_state=0)(committee, X_POOL, n_instances=3)
    assert len(set(picks.tolist())) == 3


def test_committee_of_members_that_vote_gives_labels() -> None:
    committee = Committee([Learner(SVC(C=c), X, Y) for c in (0.1, 1, 10)])
    samples = get_sampler(committee).sample(X_POOL)
    assert samples.kind == "label"
    for k, learner in enumerate(committee.learner_list):
        np.testing.assert_array_equal(samples.values[:, k], learner.estimator.predict(X_POOL))


# A learner has all methods, whichever its model has.
@pytest.mark.parametrize(
    ("model", "y"),
    [
        pytest.param(SVC(), Y, id="SVC"),
        pytest.param(make_pipeline(StandardScaler(), RidgeClassifier()), Y, id="pipeline"),
        pytest.param(FrozenEstimator(GaussianNB().fit(X, Y)), Y, id="frozen"),
        pytest.param(Ridge(), X[:, 0], id="Ridge"),
    ],
)
@pytest.mark.parametrize(
    "strategy",
    [
        MaxEntropyQuery(random_state=0),
        MarginQuery(random_state=0),
        LeastConfidentQuery(random_state=0),
        BALDQuery(random_state=0),
        KernelBatchQuery("bait", random_state=0),
        CoreSetQuery(),
        TypiClustQuery(random_state=0),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_learner_is_queried_like_its_model_with_its_labeled_rows(
    strategy: BaseQuery, model: Any, y: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few refits by default, to save time.
    monkeypatch.setitem(BootstrapSampler.__init__.__kwdefaults__, "n_draws", 4)
    learner = Learner(model, X, y)
    own = ActiveLearner(model, strategy).fit(X, y)

    def picks(ask: Any, *args: Any, **rows: Any) -> Any:
        try:
            answer = ask(*args, X_POOL, 3, **rows)
        except ValueError as err:
            return str(err).partition(" in ")[0]
        return (answer[0] if isinstance(answer, tuple) else answer).tolist()

    expected = picks(strategy.query, model, X_labeled=X, y_labeled=y)
    assert type(expected) is list or "supports predictions of kind" in expected
    for asked in (learner, own):
        assert picks(strategy.query, asked) == expected
        assert picks(strategy, asked) == expected
    assert picks(own.query) == expected


def test_labeled_rows_of_a_call_come_before_those_of_a_learner() -> None:
    learner = Learner(GaussianNB(), X, Y)
    given = {"X_labeled": X_POOL[:5], "y_labeled": Y[:5]}
    for strategy in (CoreSetQuery(), ICALQuery(random_state=0)):
        expected = strategy.query(learner.estimator, X_POOL, 3, **given)
        np.testing.assert_array_equal(strategy.query(learner, X_POOL, 3, **given), expected)


def test_features_of_a_call_need_those_of_the_labeled_rows_of_a_learner() -> None:
    learner = Learner(GaussianNB(), X, Y)
    with pytest.raises(ValueError, match="labeled_features must be given with features"):
        CoreSetQuery().query(learner, X_POOL, 3, features=X_POOL[:, :2])
    got = CoreSetQuery().query(
        learner, X_POOL, 3, features=X_POOL[:, :2], labeled_features=X[:, :2]
    )
    own = ActiveLearner(GaussianNB(), CoreSetQuery()).fit(X, Y, features=X[:, :2])
    for picks in (
        CoreSetQuery().query(own, X_POOL, 3, features=X_POOL[:, :2]),
        CoreSetQuery().query(None, X_POOL[:, :2], 3, X_labeled=X[:, :2], y_labeled=Y),
    ):
        np.testing.assert_array_equal(picks, got)


@pytest.mark.parametrize("strategy", [MaxEntropyQuery(), MarginQuery(), LeastConfidentQuery()])
def test_committee_of_models_without_probabilities_is_queried_like_their_list(
    strategy: BaseQuery,
) -> None:
    for models in ([SVC(C=c) for c in (0.1, 1, 10)], [GaussianNB(), SVC()]):
        committee = Committee([Learner(model, X, Y) for model in models])
        expected = strategy.query(models, X_POOL, 3)
        np.testing.assert_array_equal(strategy.query(committee, X_POOL, 3), expected)
        np.testing.assert_array_equal(strategy(committee, X_POOL, 3)[0], expected)


def test_committee_of_regressors_is_asked_for_their_spread() -> None:
    models = [Ridge(alpha=alpha) for alpha in (0.1, 10, 100)]
    committee = CommitteeRegressor([Learner(model, X, X[:, 0]) for model in models])
    spread = np.std([model.predict(X_POOL) for model in models], axis=0)
    for picks in (
        MaxEntropyQuery().query(committee, X_POOL, 5), MaxEntropyQuery()(committee, X_POOL, 5)[0]
    ):  # fmt: skip
        np.testing.assert_array_equal(picks, np.argsort(-spread)[:5])


def test_learners_in_a_list_are_their_models() -> None:
    models = [SVC(C=c) for c in (0.1, 10)]
    learners = [Learner(model, X, Y) for model in models]
    expected = get_sampler(models).sample(X_POOL).values
    for ensemble in (learners, dict(enumerate(learners))):
        np.testing.assert_array_equal(get_sampler(ensemble).sample(X_POOL).values, expected)


def test_learner_without_training_rows_asks_for_labeled_rows() -> None:
    learner = Learner(LogisticRegression().fit(X, Y))
    message = r"LogisticRegression has no posterior draws.* X_labeled=X, y_labeled=y"
    with pytest.raises(UnsupportedModelError, match=message):
        ICALQuery()(learner, X_POOL, n_instances=3)
    with pytest.raises(UnsupportedModelError, match=message):
        ICALQuery().query(learner, X_POOL)
    assert type(get_sampler(learner).with_labeled(X, Y)) is BootstrapSampler
    assert MarginQuery()(learner, X_POOL, n_instances=3)[0].shape == (3,)


@pytest.mark.parametrize("estimator", [LogisticRegression(), forest()], ids=["linear", "forest"])
def test_learner_that_is_not_fitted_is_named(estimator: Any) -> None:
    with pytest.raises(NotFittedError, match=rf"{type(estimator).__name__} is not fitted yet"):
        ICALQuery()(Learner(estimator), X_POOL, n_instances=3)
    fitted = Learner(GaussianNB(), X, Y)
    with pytest.raises(NotFittedError, match=rf"Member 1 .*{type(estimator).__name__}"):
        get_sampler(_Pair([fitted, Learner(estimator)])).draw()


class _Pair:
    """A committee before its classes are known."""

    def __init__(self, learner_list: list[Learner]) -> None:
        self.learner_list = learner_list
