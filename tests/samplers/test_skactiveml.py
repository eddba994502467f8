"""Models of scikit-activeml: wrappers give the draws of what they hold, others are refitted."""

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from sklearn_ical import BALDQuery, BaseQuery, ICALQuery, MarginQuery
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, EnsembleSampler, get_sampler
from sklearn_ical.samplers._base import evaluate_in_chunks
from sklearn_ical.samplers._skactiveml import WrappedSampler

classifiers = pytest.importorskip("skactiveml.classifier")
regressors = pytest.importorskip("skactiveml.regressor")

RNG = np.random.default_rng(0)
X, X_POOL = RNG.normal(size=(40, 3)), RNG.normal(size=(60, 3))
Y = np.array(["ham", "spam"], dtype=object)[(X[:, 0] + 0.3 * RNG.normal(size=40) > 0).astype(int)]
# As scikit-activeml keeps labels: those of a pool, most of them missing, one class never seen.
KNOWN = RNG.random(40) < 0.6
Y_POOL = np.where(KNOWN, Y, None)
TARGET = np.where(KNOWN, X[:, 0], np.nan)
CLASSES = ["eggs", "ham", "spam"]
PARAMS: dict[str, Any] = {"classes": CLASSES, "missing_label": None}


def wrap(estimator: Any, **params: Any) -> Any:
    return classifiers.SklearnClassifier(estimator, **{**PARAMS, **params})


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(n_estimators=8, random_state=0)


MODELS: dict[str, tuple[Callable[[], Any], bool]] = {
    "forest": (lambda: wrap(forest()), True),
    "bagging": (lambda: wrap(BaggingClassifier(GaussianNB(), n_estimators=5)), True),
    "naive Bayes": (lambda: wrap(GaussianNB()), False),
    "Parzen window": (lambda: classifiers.ParzenWindowClassifier(**PARAMS), False),
    "mixture": (
        lambda: classifiers.MixtureModelClassifier(
            mixture_model=GaussianMixture(
                3, covariance_type="spherical", init_params="k-means++", tol=0.1, random_state=0
            ),
            **PARAMS,
        ),
        False,
    ),
    "window of a forest": (
        lambda: classifiers.SlidingWindowClassifier(wrap(forest()), **PARAMS),
        True,
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("strategy", [ICALQuery, BALDQuery, MarginQuery])
def test_strategies_pick_the_same_distinct_rows(name: str, strategy: type[BaseQuery]) -> None:
    make, _ = MODELS[name]
    model = make().fit(X, Y_POOL)
    before = model.predict_proba(X_POOL)

    def pick() -> list[int]:
        query = strategy(random_state=0).query
        labeled = {"X_labeled": X[KNOWN], "y_labeled": Y[KNOWN]}
        return query(model, X_POOL, 4, **labeled).tolist()

    picks = pick()
    assert len(set(picks)) == 4
    assert pick() == picks
    np.testing.assert_array_equal(model.predict_proba(X_POOL), before)


@pytest.mark.parametrize("name", MODELS)
def test_columns_follow_all_classes_that_the_model_knows(name: str) -> None:
    make, has_draws = MODELS[name]
    model = make().fit(X, Y_POOL)
    sampler = get_sampler(model)
    assert type(sampler) is (WrappedSampler if has_draws else BootstrapSampler)
    if has_draws:
        draws = sampler.draw()
        mean = draws(X_POOL).mean()
        assert draws.mean_differs == ""
        np.testing.assert_allclose(mean, model.predict_proba(X_POOL), atol=1e-9)
        assert (mean[:, 0] == 0).all()
    else:
        with pytest.raises(UnsupportedModelError, match=rf"{type(model).__name__} has no .*X_lab"):
            sampler.draw()
        draws = sampler.with_labeled(X[KNOWN], Y[KNOWN]).draw(4, random_state=0)
        seen = draws(X[KNOWN]).mean().argmax(axis=1)
        assert (draws.classes[seen] == Y[KNOWN]).mean() > 0.75
    assert draws.classes.tolist() == CLASSES


@pytest.mark.parametrize("name", MODELS)
def test_models_that_are_not_fitted_are_named(name: str) -> None:
    model = MODELS[name][0]()
    with pytest.raises(NotFittedError, match=rf"^{type(model).__name__} is not fitted yet"):
        ICALQuery().query(model, X_POOL, X_labeled=X, y_labeled=Y)


@pytest.mark.parametrize("inner", [forest(), LogisticRegression()], ids=["forest", "linear"])
def test_wrapper_without_a_fit_inside_is_refused(inner: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wrapper says that it fitted nothing
        model = wrap(inner).fit(X, np.full(40, None))
    message = rf"^SklearnClassifier could not fit its {type(inner).__name__} .* RandomQuery\.$"
    with pytest.raises(NotFittedError, match=message):
        ICALQuery().query(model, X_POOL)


def test_window_classifier_on_no_labels_asks_for_labeled_rows() -> None:
    model = classifiers.ParzenWindowClassifier(**PARAMS).fit(X, np.full(40, None))
    with pytest.raises(UnsupportedModelError, match=r"ParzenWindowClassifier has no .*X_labeled=X"):
        ICALQuery().query(model, X_POOL)
    picks = ICALQuery().query(model, X_POOL, 3, X_labeled=X[KNOWN], y_labeled=Y[KNOWN])
    assert len(set(picks.tolist())) == 3


def test_draws_of_a_wrapper_are_those_of_the_forest_inside() -> None:
    model = wrap(forest()).fit(X, Y_POOL)
    inner = forest().fit(X[KNOWN], Y[KNOWN])
    draws = get_sampler(model).draw(5, random_state=1)
    expected = EnsembleSampler(inner).sample(X_POOL, n_draws=5, random_state=1).values
    np.testing.assert_array_equal(draws(X_POOL).values[:, :, 1:], expected)
    parts = [part.values for part in evaluate_in_chunks(draws, X_POOL, 7)]
    np.testing.assert_array_equal(np.concatenate(parts)[:, :, 1:], expected)
    again = pickle.loads(pickle.dumps(draws))
    np.testing.assert_array_equal(again(X_POOL).values[:, :, 1:], expected)
    model.fit(X, np.where(Y_POOL == "ham", "eggs", Y_POOL))
    np.testing.assert_array_equal(draws(X_POOL).values[:, :, 1:], expected)
    assert get_sampler(model).source == EnsembleSampler(inner).source
    assert get_sampler(model).cost == EnsembleSampler(inner).cost


def test_votes_of_a_wrapper_become_codes_among_all_classes() -> None:
    model = wrap(BaggingClassifier(LinearSVC(), n_estimators=4, random_state=0)).fit(X, Y_POOL)
    samples = get_sampler(model).sample(X_POOL)
    assert (samples.kind, samples.n_classes) == ("label", 3)
    for k, member in enumerate(model.estimator_.estimators_):
        labels = np.array(["ham", "spam"])[member.predict(X_POOL)]  # members speak codes
        np.testing.assert_array_equal(np.array(CLASSES)[samples.values[:, k]], labels)


def test_frames_are_read_as_the_wrapper_reads_them() -> None:
    pandas = pytest.importorskip("pandas")
    columns = ["a", "b", "c"]
    frame, pool = (pandas.DataFrame(rows, columns=columns) for rows in (X, X_POOL))
    model = wrap(forest()).fit(frame, Y_POOL)
    expected = get_sampler(model).sample(X_POOL).values
    np.testing.assert_array_equal(get_sampler(model).sample(pool).values, expected)
    np.testing.assert_allclose(expected.mean(axis=1), model.predict_proba(pool), atol=1e-9)


def test_wrapper_of_a_model_fitted_before_is_as_good_as_fitted() -> None:
    trees, bayes = forest().fit(X[KNOWN], Y[KNOWN]), GaussianNB().fit(X[KNOWN], Y[KNOWN])
    model = classifiers.SklearnClassifier(trees, missing_label=None)
    values = get_sampler(model).sample(X_POOL).values
    np.testing.assert_array_equal(values, EnsembleSampler(trees).sample(X_POOL).values)
    model = classifiers.SklearnClassifier(bayes, missing_label=None)
    picks = ICALQuery().query(model, X_POOL, 3, X_labeled=X[KNOWN], y_labeled=Y[KNOWN])
    assert len(set(picks.tolist())) == 3


@pytest.mark.parametrize(
    ("missing", "labels"),
    [(-1, [3, 7]), (np.nan, [3.0, 7.0]), ("", ["ham", "spam"])],
    ids=["number", "nan", "text"],
)
def test_refits_keep_the_missing_label_and_the_classes(missing: Any, labels: list[Any]) -> None:
    y = np.where(X[:, 0] > 0, *labels[::-1])
    model = classifiers.SklearnClassifier(
        GaussianNB(), classes=labels, missing_label=missing, random_state=0
    )
    model.fit(X, np.where(KNOWN, y, missing))
    sampler = get_sampler(model).with_labeled(X[KNOWN], y[KNOWN])
    first, again, other = (sampler.sample(X_POOL, n_draws=3, random_state=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.values, again.values)
    assert np.abs(first.values - other.values).max() > 0.01
    assert first.classes.tolist() == labels
    hits = np.array(labels)[first.mean().argmax(axis=1)] == np.where(
        X_POOL[:, 0] > 0, *labels[::-1]
    )
    assert hits.mean() > 0.75


def test_regressor_wrapper_gives_the_draws_of_the_forest_inside() -> None:
    model = regressors.SklearnRegressor(RandomForestRegressor(8, random_state=0)).fit(X, TARGET)
    samples = get_sampler(model).sample(X_POOL)
    assert (samples.kind, samples.classes) == ("value", None)
    np.testing.assert_allclose(samples.mean(), model.predict(X_POOL), atol=1e-9)
    inner = RandomForestRegressor(8, random_state=0).fit(X[KNOWN], X[KNOWN, 0])
    np.testing.assert_array_equal(samples.values, EnsembleSampler(inner).sample(X_POOL).values)


def test_regressor_wrapper_gives_the_joint_draws_of_a_gaussian_process() -> None:
    process = GaussianProcessRegressor(alpha=0.1, optimizer=None)
    model = regressors.SklearnNormalRegressor(process).fit(X, TARGET)
    inner = get_sampler(process.fit(X[KNOWN], X[KNOWN, 0]))
    draws = get_sampler(model).draw(random_state=0)
    expected = inner.draw(random_state=0)
    assert draws.joint is expected.joint
    np.testing.assert_allclose(draws(X_POOL).values, expected(X_POOL).values, atol=1e-6)
    query = ICALQuery(random_state=0).query
    picks = query(model, X_POOL, 3, X_reference=X)
    np.testing.assert_array_equal(picks, query(process, X_POOL, 3, X_reference=X))


@pytest.mark.parametrize(
    "make",
    [lambda: regressors.SklearnRegressor(Ridge()), lambda: regressors.NICKernelRegressor()],
    ids=["SklearnRegressor", "NICKernelRegressor"],
)
def test_regressors_without_draws_are_refitted(make: Callable[[], Any], request: Any) -> None:
    name = request.node.callspec.id
    with pytest.raises(NotFittedError, match=rf"^{name} is not fitted yet"):
        get_sampler(make())
    model = make().fit(X, TARGET)
    with pytest.raises(UnsupportedModelError, match=rf"{name} has no .*X_labeled=X"):
        ICALQuery().query(model, X_POOL)
    sampler = get_sampler(model).with_labeled(X[KNOWN], X[KNOWN, 0])
    values = sampler.sample(X_POOL, random_state=0).values
    assert np.ptp(values, axis=1).min() > 0
    assert np.corrcoef(values.mean(axis=1), X_POOL[:, 0])[0, 1] > 0.8
