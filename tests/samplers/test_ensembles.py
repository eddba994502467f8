"""Bagging, voting, stacking and calibrated models: their members as draws, in the outer classes."""

import pickle
from functools import cache
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sklearn_ical import ICALQuery, PredictionSamples
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, Draws, EnsembleSampler, get_sampler
from sklearn_ical.samplers._base import evaluate_in_chunks

# Codes and labels overlap in most of these, which tells reading one for the other.
LABELS = {
    "texts": np.array(["b", "a", "c"]),
    "codes": np.array([0, 1, 2]),
    "one to three": np.array([1, 2, 3]),
    "reversed": np.array([2, 1, 0]),
    "around zero": np.array([-1, 0, 1]),
    "tens": np.array([10, 20, 0]),
    "floats": np.array([1.0, 3.0, 0.0]),
    "objects": np.array(["b", "a", "c"], dtype=object),
    "two": np.array([-1, 1, 1]),
    "two shifted": np.array([1, 2, 2]),
    "booleans": np.array([True, False, True]),
}
each_label = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


def rows(n: int = 80, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 5))


def codes(X: np.ndarray) -> np.ndarray:
    return np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.6, 0.6])


POOL = rows(25, seed=3)


def bagged_by_hand(bagging: Any, X: np.ndarray) -> np.ndarray:
    """Ask each member about its own columns; put code k into column k of the outer classes."""
    n_classes = len(bagging.classes_)
    values = np.zeros((len(X), len(bagging.estimators_), n_classes))
    pairs = zip(bagging.estimators_, bagging.estimators_features_, strict=True)
    for k, (member, features) in enumerate(pairs):
        proba = member.predict_proba(X[:, features])
        for column, code in enumerate(member.classes_):
            values[:, k, int(code)] = proba[:, column]
    return values


@each_label
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_features": 0.5},
        {"max_features": 3, "bootstrap_features": True},
        {"max_samples": 8},
        {"bootstrap": False, "max_samples": 32, "bootstrap_features": True},
    ],
    ids=str,
)
def test_bagged_classifiers_are_the_draws(labels: np.ndarray, options: dict[str, Any]) -> None:
    X = rows()
    model = BaggingClassifier(DecisionTreeClassifier(max_depth=2), 8, random_state=0, **options)
    model.fit(X, labels[codes(X)])
    samples = get_sampler(model).sample(POOL)
    assert (samples.kind, samples.weights) == ("proba", None)
    np.testing.assert_array_equal(samples.classes, np.unique(labels))
    np.testing.assert_allclose(samples.values, bagged_by_hand(model, POOL), rtol=0, atol=1e-15)
    np.testing.assert_allclose(samples.mean(), model.predict_proba(POOL), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("options", [{}, {"max_features": 0.5, "bootstrap_features": True}])
def test_bagged_regressors_are_the_draws(n_targets: int, options: dict[str, Any]) -> None:
    X = rows()
    y = X[:, 0] if n_targets == 1 else X[:, :2] ** 2
    model = BaggingRegressor(KNeighborsRegressor(3), 6, random_state=0, **options).fit(X, y)
    samples = get_sampler(model).sample(POOL)
    shape = (25, 6) if n_targets == 1 else (25, 6, 2)
    assert (samples.kind, samples.values.shape) == ("value", shape)
    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    for k, (member, features) in enumerate(pairs):
        expected = member.predict(POOL[:, features])
        np.testing.assert_allclose(samples.values[:, k], expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(samples.mean(), model.predict(POOL), rtol=0, atol=1e-12)


@each_label
def test_bagged_members_without_probabilities_vote(labels: np.ndarray) -> None:
    X = rows()
    model = BaggingClassifier(LinearSVC(), 7, max_samples=16, max_features=0.6, random_state=1)
    model.fit(X, labels[codes(X)])
    samples = get_sampler(model).sample(POOL)
    assert (samples.kind, samples.values.shape) == ("label", (25, 7))
    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    votes = [np.unique(labels)[member.predict(POOL[:, some])] for member, some in pairs]
    np.testing.assert_array_equal(samples.classes[samples.values], np.stack(votes, axis=1))
    shares = (samples.values[:, :, None] == np.arange(len(samples.classes))).mean(axis=1)
    np.testing.assert_allclose(shares, model.predict_proba(POOL), rtol=0, atol=1e-12)


@cache
def bagging(form: str = "") -> Any:
    """Return a bagged tree ensemble fitted on some columns of rows in one form."""
    X = in_form(rows(), form)
    tree = DecisionTreeClassifier(max_depth=3)
    model = BaggingClassifier(tree, 5, max_features=0.6, random_state=0)
    return model.fit(X, LABELS["texts"][codes(rows())])


def in_form(X: np.ndarray, form: str) -> Any:
    names = ["e", "b", "a", "d", "c"]
    if form == "pandas":
        pandas = pytest.importorskip("pandas")
        return pandas.DataFrame(X, columns=names, index=np.arange(len(X))[::-1] // 2)
    if form == "polars":
        return pytest.importorskip("polars").DataFrame(X, schema=names)
    if form == "list":
        return X.tolist()
    return getattr(sparse, form)(X) if form else X


@pytest.mark.parametrize("form", ["pandas", "polars", "list"])
def test_bagging_reads_forms_of_the_rows_as_in_its_fit(form: str) -> None:
    draws, pool = get_sampler(bagging(form)).draw(), in_form(POOL, form)
    expected = bagged_by_hand(bagging(form), POOL)
    np.testing.assert_array_equal(draws(pool).values, expected)
    parts = [part.values for part in evaluate_in_chunks(draws, pool, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_bagging_refuses_frames_with_other_names_as_the_model_does() -> None:
    frame = in_form(POOL, "pandas")
    draws = get_sampler(bagging("pandas")).draw()
    for ask in (bagging("pandas").predict_proba, draws):
        with pytest.raises(ValueError, match="feature names should match"):
            ask(frame[sorted(frame.columns)])


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_matrix", "coo_array"])
@pytest.mark.parametrize("whole", [False, True])
def test_bagging_reads_sparse_rows(form: str, whole: bool) -> None:
    X, pool = np.where(rows() > 0, rows(), 0), np.where(POOL > 0, POOL, 0)
    options = {"max_features": 1.0 if whole else 0.6, "random_state": 0}
    model = BaggingClassifier(LogisticRegression(), 4, **options)
    model.fit(getattr(sparse, form)(X), codes(X))
    draws = get_sampler(model).draw()
    expected = bagged_by_hand(model, pool)
    sparse_pool = getattr(sparse, form)(pool)
    np.testing.assert_allclose(draws(sparse_pool).values, expected, rtol=0, atol=1e-12)
    parts = [part.values for part in evaluate_in_chunks(draws, sparse_pool, 7)]
    np.testing.assert_allclose(np.concatenate(parts), expected, rtol=0, atol=1e-12)


def test_bagged_trees_take_missing_values() -> None:
    X, pool = rows(), POOL.copy()
    X[::4, 1] = pool[::3, 1] = np.nan
    model = BaggingClassifier(DecisionTreeClassifier(max_depth=3), 5, random_state=0)
    model.fit(X, codes(rows()))
    samples = get_sampler(model).sample(pool)
    np.testing.assert_array_equal(samples.values, bagged_by_hand(model, pool))


def test_bagged_pipelines_and_ensembles_are_members() -> None:
    X = rows()
    for inner in (make_pipeline(StandardScaler(), GaussianNB()), RandomForestClassifier(3)):
        model = BaggingClassifier(inner, 3, random_state=0).fit(X, LABELS["tens"][codes(X)])
        samples = get_sampler(model).sample(POOL)
        np.testing.assert_allclose(samples.values, bagged_by_hand(model, POOL), atol=1e-15)


def test_draws_outlive_a_new_fit_of_the_ensemble() -> None:
    X = rows()
    model = BaggingClassifier(GaussianNB(), 4, random_state=0).fit(X, codes(X))
    draws = get_sampler(model).draw()
    before = draws(POOL).values
    model.set_params(n_estimators=2).fit(X[:, :2], codes(X))
    np.testing.assert_array_equal(draws(POOL).values, before)


def weighted_mean(samples: PredictionSamples) -> np.ndarray:
    """Return the mean of the draws, of votes by one-hot rows."""
    values = samples.values
    if samples.kind == "label":
        values = np.eye(len(samples.classes))[values]
    return np.average(values, axis=1, weights=samples.weights)


def voters() -> list[tuple[str, Any]]:
    return [
        ("nb", GaussianNB()),
        ("near", KNeighborsClassifier(4, algorithm="brute")),
        ("gone", "drop"),
        ("tree", DecisionTreeClassifier(max_depth=2, random_state=0)),
    ]


@each_label
@pytest.mark.parametrize("weights", [None, [1, 2, 9, 5]])
def test_members_of_a_soft_vote_are_the_draws(labels: np.ndarray, weights: Any) -> None:
    X = rows()
    model = VotingClassifier(voters(), voting="soft", weights=weights).fit(X, labels[codes(X)])
    samples = get_sampler(model).sample(POOL)
    np.testing.assert_array_equal(samples.classes, np.unique(labels))
    for k, member in enumerate(model.estimators_):
        np.testing.assert_allclose(samples.values[:, k], member.predict_proba(POOL), atol=1e-15)
    expected = None if weights is None else np.array([1, 2, 5]) / 8
    np.testing.assert_array_equal(samples.weights, expected)
    np.testing.assert_allclose(weighted_mean(samples), model.predict_proba(POOL), atol=1e-12)


@each_label
@pytest.mark.parametrize("weights", [None, [1.5, 2, 9, 5]])
def test_hard_votes_of_models_that_only_vote_are_the_draws(
    labels: np.ndarray, weights: Any
) -> None:
    X = rows()
    members = [(f"svc{k}", LinearSVC(C=10.0 ** (k - 3))) for k in range(3)]
    members.insert(2, ("gone", "drop"))
    model = VotingClassifier(members, weights=weights).fit(X, labels[codes(X)])
    draws = get_sampler(model).draw()
    samples = draws(POOL)
    assert (samples.kind, draws.mean_differs) == ("label", "")
    votes = [np.unique(labels)[member.predict(POOL)] for member in model.estimators_]
    np.testing.assert_array_equal(samples.classes[samples.values], np.stack(votes, axis=1))
    winners = samples.classes[weighted_mean(samples).argmax(axis=1)]
    np.testing.assert_array_equal(winners, model.predict(POOL))


def test_hard_vote_keeps_the_probabilities_of_members_that_have_them() -> None:
    X = rows()
    members = [("nb", GaussianNB()), ("svc", LinearSVC())]
    model = VotingClassifier(members).fit(X, LABELS["texts"][codes(X)])
    draws = get_sampler(model).draw()
    assert "hard voting counts labels" in draws.mean_differs
    samples = draws(POOL)
    nb, svc = model.estimators_
    np.testing.assert_allclose(samples.values[:, 0], nb.predict_proba(POOL), atol=1e-15)
    np.testing.assert_array_equal(samples.values[:, 1], np.eye(3)[svc.predict(POOL)])


@each_label
def test_frozen_members_keep_their_own_labels(labels: np.ndarray) -> None:
    X = rows()
    y = labels[codes(X)]
    first, last = np.unique(y)[[0, -1]]
    some = (y == first) | (y == last)
    known = [
        FrozenEstimator(GaussianNB().fit(X, y)),
        make_pipeline(FrozenEstimator(StandardScaler().fit(X)), FrozenEstimator(GaussianNB())),
    ]
    known[1].steps[-1] = ("last", FrozenEstimator(GaussianNB().fit(X[some], y[some])))
    members = [
        ("all", known[0]),
        ("some", known[1]),
        ("fresh", KNeighborsClassifier(4, algorithm="brute")),
    ]
    model = VotingClassifier(members, voting="soft").fit(X, y)
    samples = get_sampler(model).sample(POOL)
    outer = np.unique(labels)
    np.testing.assert_allclose(samples.values[:, 0], known[0].predict_proba(POOL), atol=1e-15)
    proba = known[1].predict_proba(POOL)
    np.testing.assert_allclose(samples.values[:, 1, 0], proba[:, 0], atol=1e-15)
    np.testing.assert_allclose(samples.values[:, 1, len(outer) - 1], proba[:, 1], atol=1e-15)
    assert not samples.values[:, 1, 1:-1].any()
    fresh = model.estimators_[2].predict_proba(POOL)
    np.testing.assert_allclose(samples.values[:, 2], fresh, atol=1e-15)


def test_frozen_member_that_knows_other_classes_is_refused_by_name() -> None:
    X = rows()
    old = FrozenEstimator(GaussianNB().fit(X, LABELS["texts"][codes(X)]))
    model = VotingClassifier([("old", old)]).fit(X, np.where(codes(X) > 0, "a", "b"))
    message = (
        r"Member 'old' \(FrozenEstimator\) of VotingClassifier must know only classes of .*, "
        r"\['a', 'b'\]\. Got \['a', 'b', 'c'\]"
    )
    with pytest.raises(UnsupportedModelError, match=message):
        get_sampler(model).draw()


class Nameless(ClassifierMixin, BaseEstimator):
    """A classifier that keeps no classes_, which a soft vote gets along with."""

    def fit(self, X: Any, y: Any) -> "Nameless":
        self.inner_ = GaussianNB().fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.inner_.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.inner_.predict_proba(X)


def test_voter_without_classes_gives_a_column_to_each() -> None:
    X = rows()
    model = VotingClassifier([("x", Nameless())], voting="soft").fit(X, LABELS["texts"][codes(X)])
    samples = get_sampler(model).sample(POOL)
    np.testing.assert_allclose(samples.values[:, 0], model.predict_proba(POOL), atol=1e-15)


@pytest.mark.parametrize("weights", [None, [3, 9, 1]])
def test_members_of_a_voting_regressor_are_the_draws(weights: Any) -> None:
    X = rows()
    members = [("line", Ridge()), ("gone", "drop"), ("near", KNeighborsRegressor(3))]
    model = VotingRegressor(members, weights=weights).fit(X, X[:, 0] ** 2)
    samples = get_sampler(model).sample(POOL)
    for k, member in enumerate(model.estimators_):
        np.testing.assert_allclose(samples.values[:, k], member.predict(POOL), atol=1e-15)
    np.testing.assert_allclose(weighted_mean(samples), model.predict(POOL), atol=1e-12)


def test_weights_given_to_the_sampler_win_over_those_of_the_vote() -> None:
    X = rows()
    model = VotingRegressor([("a", Ridge()), ("b", KNeighborsRegressor())], weights=[1, 1])
    sampler = EnsembleSampler(model.fit(X, X[:, 0]), weights=[1, 3])
    assert sampler.draw().weights.tolist() == [0.25, 0.75]
    part = sampler.draw(1, random_state=0)
    assert part.weights.tolist() == [1.0]


def stack(X: np.ndarray, y: np.ndarray, prefit: bool) -> StackingClassifier:
    """Return a fitted stack of two members, the third dropped."""
    members = [
        ("nb", GaussianNB()),
        ("gone", "drop"),
        ("near", KNeighborsClassifier(4, algorithm="brute")),
    ]
    if prefit:
        members = [(key, part if part == "drop" else part.fit(X, y)) for key, part in members]
    return StackingClassifier(members, cv="prefit" if prefit else 2).fit(X, y)


@each_label
@pytest.mark.parametrize("prefit", [False, True])
def test_first_layer_of_a_stack_is_drawn_on_request(labels: np.ndarray, prefit: bool) -> None:
    X = rows()
    y = labels[codes(X)]
    model = stack(X, y, prefit)
    sampler = get_sampler(model)
    assert isinstance(sampler, BootstrapSampler)
    draws = EnsembleSampler(model).draw()
    samples = draws(POOL)
    np.testing.assert_array_equal(samples.classes, np.unique(labels))
    assert "final estimator" in draws.mean_differs
    for k, member in enumerate(model.estimators_):
        np.testing.assert_allclose(samples.values[:, k], member.predict_proba(POOL), atol=1e-15)


@pytest.mark.parametrize("prefit", [False, True])
def test_stack_is_refitted_as_a_whole_and_prefit_members_stay(prefit: bool) -> None:
    X = rows()
    y = LABELS["one to three"][codes(X)]
    model = stack(X, y, prefit)
    before = joblib.hash(model)
    draws = get_sampler(model).with_labeled(X, y).draw(3, random_state=0)
    layers = [clone.estimators_[0].theta_ for clone in draws.members.models]
    for theta in layers:
        assert (theta == model.estimators_[0].theta_).all() == prefit
    coefs = {clone.final_estimator_.coef_.tobytes() for clone in draws.members.models}
    assert len(coefs) == 3
    assert draws(POOL).classes.tolist() == [1, 2, 3]
    assert joblib.hash(model) == before


def test_first_layer_of_a_stacking_regressor_is_drawn_on_request() -> None:
    X = rows()
    model = StackingRegressor([("line", Ridge()), ("near", KNeighborsRegressor())], cv=2)
    samples = EnsembleSampler(model.fit(X, X[:, 0])).sample(POOL)
    for k, member in enumerate(model.estimators_):
        np.testing.assert_array_equal(samples.values[:, k], member.predict(POOL))


@each_label
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated_folds_are_the_draws(labels: np.ndarray, method: str) -> None:
    X = rows()
    model = CalibratedClassifierCV(LinearSVC(), method=method, cv=3).fit(X, labels[codes(X)])
    sampler = get_sampler(model)
    assert isinstance(sampler, EnsembleSampler)
    samples = sampler.sample(POOL)
    assert (samples.kind, samples.n_draws) == ("proba", 3)
    np.testing.assert_array_equal(samples.classes, np.unique(labels))
    for k, fold in enumerate(model.calibrated_classifiers_):
        np.testing.assert_allclose(samples.values[:, k], fold.predict_proba(POOL), atol=1e-15)
    np.testing.assert_allclose(samples.mean(), model.predict_proba(POOL), rtol=0, atol=1e-12)


def test_calibrated_model_of_a_single_fold_is_refitted() -> None:
    X = rows()
    for model in (
        CalibratedClassifierCV(GaussianNB(), cv=3, ensemble=False),
        CalibratedClassifierCV(FrozenEstimator(GaussianNB().fit(X, codes(X)))),
    ):
        model.fit(X, codes(X))
        sampler = get_sampler(model)
        assert isinstance(sampler, BootstrapSampler)
        values = sampler.with_labeled(X, codes(X)).sample(POOL, n_draws=3, random_state=0).values
        assert not np.array_equal(values[:, 0], values[:, 1])


@cache
def all_kinds() -> dict[str, Any]:
    X = rows()
    y = LABELS["texts"][codes(X)]
    members = [("nb", GaussianNB()), ("near", KNeighborsClassifier(algorithm="brute"))]
    return {
        "bagging": bagging(),
        "bagging regressor": BaggingRegressor(DecisionTreeRegressor(), 5).fit(X, X[:, 0]),
        "voting": VotingClassifier(members, voting="soft", weights=[1, 2]).fit(X, y),
        "hard voting": VotingClassifier([("svc", LinearSVC())]).fit(X, y),
        "voting regressor": VotingRegressor([("line", LinearRegression())]).fit(X, X[:, 0]),
        "stacking": StackingClassifier(members, cv=2).fit(X, y),
        "calibrated": CalibratedClassifierCV(GaussianNB(), cv=3).fit(X, y),
    }


@pytest.mark.parametrize("name", all_kinds())
def test_ensembles_are_unchanged_and_their_draws_pickle(name: str) -> None:
    model, pool = all_kinds()[name], POOL.copy()
    before = joblib.hash(model)
    pool.flags.writeable = False
    draws = EnsembleSampler(model).draw()
    assert isinstance(draws, Draws)
    copy = pickle.loads(pickle.dumps(draws))
    whole = draws(pool).values
    np.testing.assert_array_equal(copy(pool).values, whole)
    for size in (1, 7, 25):
        parts = [part.values for part in evaluate_in_chunks(draws, pool, size)]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-12)
    fewer = EnsembleSampler(model).sample(pool, n_draws=1, random_state=0).values
    assert any(np.array_equal(fewer[:, 0], whole[:, k]) for k in range(whole.shape[1]))
    with pytest.raises(ValueError, match=r"n_draws must be at most the number of members, \d\. "):
        EnsembleSampler(model).draw(99)
    assert joblib.hash(model) == before
    np.testing.assert_array_equal(pool, POOL)


@pytest.mark.parametrize("name", all_kinds())
def test_query_asks_ensembles_without_labeled_rows(name: str) -> None:
    model = all_kinds()[name]
    sampler = EnsembleSampler(model) if name == "stacking" else model
    if name in ("hard voting", "voting regressor"):
        with pytest.raises(ValueError, match=r"needs at least 2 draws\. Got 1"):
            ICALQuery(random_state=0).query(sampler, POOL, 3)
    else:
        assert len(set(ICALQuery(random_state=0).query(sampler, POOL, 3).tolist())) == 3


@pytest.mark.parametrize("name", all_kinds())
def test_unfitted_ensembles_are_refused_by_name(name: str) -> None:
    model = all_kinds()[name]
    unfitted = type(model)(**model.get_params(deep=False))
    for ask in (lambda: get_sampler(unfitted).draw(), EnsembleSampler(unfitted).draw):
        with pytest.raises(NotFittedError, match=f"{type(model).__name__} is not fitted yet"):
            ask()


def test_ensembles_of_several_outputs_are_refused_by_name() -> None:
    X = rows()
    y = (X[:, :2] > 0).astype(int)
    members = [("near", KNeighborsClassifier()), ("tree", DecisionTreeClassifier())]
    model = StackingClassifier(members, KNeighborsClassifier(), cv=2).fit(X, y)
    message = r"StackingClassifier was fitted on 2 class outputs; .* with y of shape \(n_samples,\)"
    for ask in (lambda: get_sampler(model), EnsembleSampler(model).draw):
        with pytest.raises(UnsupportedModelError, match=message):
            ask()
