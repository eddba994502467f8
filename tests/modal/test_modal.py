"""Loops of the real modAL, which needs an older scikit-learn: ``python -m nox -s modal``."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import (
    BayesianRidge,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from sklearn_ical import (
    BALDQuery,
    BaseQuery,
    CoreSetQuery,
    ICALQuery,
    KernelBatchQuery,
    MarginQuery,
    MaxEntropyQuery,
)
from sklearn_ical.exceptions import LabeledRowsMissingError
from sklearn_ical.samplers import BootstrapSampler
from sklearn_ical.strategies import all_strategies

modal = pytest.importorskip("modAL.models", reason="modAL has an environment of its own")

pytestmark = [
    pytest.mark.filterwarnings("ignore:'force_all_finite' was renamed:FutureWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_ical.exceptions.QueryWarning"),
]

RNG = np.random.default_rng(0)
X, X_POOL = RNG.normal(size=(30, 3)), RNG.normal(size=(40, 3))


def classes_of(X: np.ndarray) -> np.ndarray:
    return np.digitize(X[:, 0] + X[:, 1] ** 2, [0.3, 1.2])


def targets_of(X: np.ndarray) -> np.ndarray:
    return X[:, 0] + np.sin(2 * X[:, 1])


CLASSIFIERS = {
    "forest": RandomForestClassifier(5, random_state=0),
    "logistic": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "pipeline of SVC": make_pipeline(StandardScaler(), SVC()),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 10]}, cv=2),
    "SVC": SVC(),
    "LinearSVC": LinearSVC(random_state=0),
    "RidgeClassifier": RidgeClassifier(),
    "hinge": SGDClassifier(random_state=0),
}
REGRESSORS = {
    "forest": RandomForestRegressor(5, random_state=0),
    "Ridge": Ridge(),
    "BayesianRidge": BayesianRidge(),
    "pipeline": make_pipeline(StandardScaler(), Ridge()),
    "process": GaussianProcessRegressor(alpha=0.1),
}
LEARNERS = [
    *(pytest.param(each, classes_of, id=f"{key} classifier") for key, each in CLASSIFIERS.items()),
    *(pytest.param(each, targets_of, id=f"{key} regressor") for key, each in REGRESSORS.items()),
]


def strategies() -> list[BaseQuery]:
    """Return every strategy with its defaults, seeded."""
    parts = {"StochasticQuery": (BALDQuery(),), "FilteredQuery": (MaxEntropyQuery(), BALDQuery())}
    made = [each(*parts.get(each.__name__, ())) for each in all_strategies()]
    for each in made:
        names = [name for name in each.get_params() if name.endswith("random_state")]
        each.set_params(**dict.fromkeys(names, 0))
    return made


def supports(strategy: BaseQuery, of_rows: Any) -> bool:
    return of_rows is classes_of or "value" in strategy.query_tags().kinds


@pytest.mark.parametrize(("model", "of_rows"), LEARNERS[3::4])
def test_every_strategy_picks_for_a_learner_what_it_picks_for_the_model(
    model: Any, of_rows: Any
) -> None:
    y = of_rows(X)
    learner = modal.ActiveLearner(clone(model), X_training=X, y_training=y)
    for strategy in strategies():
        if not supports(strategy, of_rows):
            for ask in (strategy.query, strategy):
                with pytest.raises(ValueError, match="supports predictions of kind"):
                    ask(learner, X_POOL, 3)
            continue
        rows = {"X_labeled": X, "y_labeled": y}
        picks, utilities = strategy.query(
            learner.estimator, X_POOL, 3, return_utilities=True, **rows
        )
        np.testing.assert_array_equal(strategy.query(learner, X_POOL, 3), picks)
        learner.query_strategy = strategy
        got, instances, metrics = learner.query(X_POOL, n_instances=3, return_metrics=True)
        np.testing.assert_array_equal(got, picks, err_msg=type(strategy).__name__)
        np.testing.assert_array_equal(instances, X_POOL[picks])
        np.testing.assert_array_equal(metrics, utilities[np.arange(3), picks])


@pytest.mark.parametrize(
    "strategy", [MaxEntropyQuery(random_state=0), BALDQuery(random_state=0), CoreSetQuery()]
)
@pytest.mark.parametrize(("model", "of_rows"), LEARNERS)
def test_loop_of_a_learner_asks_the_model_of_each_round(
    model: Any, of_rows: Any, strategy: BaseQuery
) -> None:
    learner = modal.ActiveLearner(
        clone(model), query_strategy=strategy, X_training=X, y_training=of_rows(X)
    )
    pool = X_POOL
    for n_instances in (1, 4, 2):
        before = learner.estimator
        picks, instances = learner.query(pool, n_instances=n_instances)
        expected = strategy.query(
            learner.estimator, pool, n_instances,
            X_labeled=learner.X_training, y_labeled=learner.y_training,
        )  # fmt: skip
        np.testing.assert_array_equal(picks, expected)
        assert learner.estimator is before
        learner.teach(instances, of_rows(instances))
        pool = np.delete(pool, picks, axis=0)
    assert len(learner.X_training) == len(X) + 7


COMMITTEES = [
    pytest.param([LogisticRegression(C=c) for c in (0.1, 10)], classes_of, id="of probabilities"),
    pytest.param([SVC(C=c) for c in (0.1, 1, 10)], classes_of, id="of labels"),
    pytest.param([LogisticRegression(), SVC()], classes_of, id="of both"),
    pytest.param([Ridge(alpha=a) for a in (0.1, 100)], targets_of, id="of regressors"),
    pytest.param([GaussianProcessRegressor(alpha=a) for a in (0.1, 1)], targets_of, id="processes"),
]


def committee_of(models: list[Any], of_rows: Any, **params: Any) -> Any:
    learners = [
        modal.ActiveLearner(clone(model), X_training=X, y_training=of_rows(X)) for model in models
    ]
    kind = modal.Committee if of_rows is classes_of else modal.CommitteeRegressor
    return kind(learners, **params)


@pytest.mark.parametrize(("models", "of_rows"), COMMITTEES)
def test_every_strategy_picks_for_a_committee_what_it_picks_for_its_models(
    models: list[Any], of_rows: Any
) -> None:
    committee = committee_of(models, of_rows)
    members = [learner.estimator for learner in committee.learner_list]
    for strategy in strategies():
        if not supports(strategy, of_rows):
            with pytest.raises(ValueError, match="supports predictions of kind"):
                strategy(committee, X_POOL, 3)
            continue
        rows = {"X_labeled": X, "y_labeled": of_rows(X)}
        expected = strategy.query(members, X_POOL, 3, **rows)
        np.testing.assert_array_equal(strategy.query(committee, X_POOL, 3), expected)
        committee.query_strategy = strategy
        picks, _ = committee.query(X_POOL, n_instances=3)
        np.testing.assert_array_equal(picks, expected, err_msg=type(strategy).__name__)


@pytest.mark.parametrize(("models", "of_rows"), COMMITTEES)
def test_loop_of_a_committee_asks_the_models_of_each_round(models: list[Any], of_rows: Any) -> None:
    strategy = MaxEntropyQuery()
    committee = committee_of(models, of_rows, query_strategy=strategy)
    for n_instances in (1, 4):
        picks, instances = committee.query(X_POOL, n_instances=n_instances)
        members = [learner.estimator for learner in committee.learner_list]
        expected = strategy.query(members, X_POOL, n_instances)
        np.testing.assert_array_equal(picks, expected)
        committee.teach(instances, of_rows(instances))


def test_committee_of_members_that_know_other_classes() -> None:
    learners = []
    for left_out in (0, 1):
        rows = classes_of(X) != left_out
        learners.append(
            modal.ActiveLearner(
                LogisticRegression(), X_training=X[rows], y_training=classes_of(X)[rows]
            )
        )
    committee = modal.Committee(learners, query_strategy=MarginQuery())
    picks, _ = committee.query(X_POOL, n_instances=4)
    best_two = np.sort(committee.predict_proba(X_POOL), axis=1)[:, -2:]
    np.testing.assert_array_equal(picks, np.argsort(best_two[:, 1] - best_two[:, 0])[:4])


@pytest.mark.parametrize("strategy", [MaxEntropyQuery(), ICALQuery(random_state=0)])
def test_loop_of_a_bayesian_optimizer(strategy: BaseQuery) -> None:
    optimizer = modal.BayesianOptimizer(
        GaussianProcessRegressor(alpha=0.1),
        query_strategy=strategy,
        X_training=X,
        y_training=targets_of(X),
    )
    for n_instances in (1, 3):
        picks, instances = optimizer.query(X_POOL, n_instances=n_instances)
        expected = strategy.query(optimizer.estimator, X_POOL, n_instances)
        np.testing.assert_array_equal(picks, expected)
        optimizer.teach(instances, targets_of(instances))
    spread = optimizer.predict(X_POOL, return_std=True)[1]
    np.testing.assert_array_equal(
        MaxEntropyQuery()(optimizer, X_POOL, 5)[0], np.argsort(-spread)[:5]
    )


def test_sparse_rows_and_frames_are_pools() -> None:
    pandas = pytest.importorskip("pandas")
    y = classes_of(X)
    expected = ICALQuery(random_state=0).query(
        LogisticRegression().fit(X, y), X_POOL, 3, X_labeled=X, y_labeled=y
    )
    for container in (sparse.csr_matrix, pandas.DataFrame):
        learner = modal.ActiveLearner(
            LogisticRegression(),
            query_strategy=ICALQuery(random_state=0),
            X_training=container(X),
            y_training=y,
        )
        picks, _ = learner.query(container(X_POOL), n_instances=3)
        np.testing.assert_array_equal(picks, expected)


def test_bootstrap_of_a_learner_refits_its_model() -> None:
    y = classes_of(X)
    learner = modal.ActiveLearner(SVC(C=10), X_training=X, y_training=y)
    draws = [BootstrapSampler(each).fit(X, y).draw(5, 0) for each in (learner, SVC(C=10))]
    np.testing.assert_array_equal(*(each(X_POOL).values for each in draws))


def test_learner_without_training_rows_is_told_what_to_pass() -> None:
    learner = modal.ActiveLearner(
        SVC().fit(X, classes_of(X)), query_strategy=KernelBatchQuery(random_state=0)
    )
    with pytest.raises(LabeledRowsMissingError, match="X_labeled=X, y_labeled=y"):
        learner.query(X_POOL, n_instances=3)
