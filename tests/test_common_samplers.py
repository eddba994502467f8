"""The protocol of samplers, checked on what get_sampler finds for fitted models of many kinds."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from sklearn_ical import PredictionSamples
from sklearn_ical.samplers import BootstrapSampler, EnsembleSampler, get_sampler
from sklearn_ical.testing import check_sampler
from sklearn_ical.testing._require import run_checks
from sklearn_ical.testing._sampler import SAMPLER_CHECKS
from sklearn_ical.testing._sampler_case import sampler_case

N_LABELED = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 4))
SIGNAL = X[:, 0] + X[:, 1] ** 2 + RNG.normal(scale=0.3, size=100)
CODES = np.digitize(SIGNAL, [0.3, 1.5])
LABELS = np.array(["bark", "leaf", "root"])[CODES]
TWO = np.where(SIGNAL > 0.8, "yes", "no")
# A class of two rows, which most resamples of a few rows miss.
RARE = np.where(np.isin(np.arange(100), [0, 1]), "aspen", LABELS)
TARGETS = np.stack([SIGNAL, 100 * X[:, 2]], axis=1)
HALF_LABELED = np.where(np.arange(100) % 2, CODES, -1)
POSITIVE = np.exp(SIGNAL)
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
SPARSE = sparse.csr_array(np.random.default_rng(1).poisson(0.3, size=(100, 12)) / 2)
WORDS = np.array(["tree", "leaf", "root", "bark", "twig", "seed"])
COUNTS = RNG.poisson(1 + np.eye(3, 6)[CODES] * 3)
TEXTS = [" ".join(np.repeat(WORDS, row)) for row in COUNTS]
PAIRS = [("nb", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
REGRESSORS = [("ridge", Ridge()), ("knn", KNeighborsRegressor())]
SVC = LinearSVC(random_state=0)


def fit(model: Any, y: Any = LABELS, rows: Any = X) -> Any:
    """Return the model, fitted on the labeled rows."""
    return model.fit(rows[:N_LABELED], y[:N_LABELED])


def parts(model: Callable[[], Any], y: Any = LABELS, n: int = 5) -> list[Any]:
    """Return models fitted on some of the labeled rows each."""
    chosen = [np.random.default_rng(k).integers(N_LABELED, size=40) for k in range(n)]
    return [model().fit(X[some], y[some]) for some in chosen]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Fit on one thread: starting several takes longer than the fit."""
    with threadpool_limits(1):
        yield


def tree() -> Any:
    return DecisionTreeClassifier(max_depth=3, random_state=0)


ENSEMBLES: dict[str, Callable[[], Any]] = {
    "forest": lambda: fit(RandomForestClassifier(8, max_depth=4, random_state=0)),
    "forest of one tree": lambda: fit(RandomForestClassifier(1, random_state=0)),
    "forest of codes": lambda: fit(ExtraTreesClassifier(8, min_samples_leaf=2), CODES),
    "forest of rare class": lambda: fit(RandomForestClassifier(8, random_state=0), RARE),
    "forest fitted on NaN": lambda: fit(RandomForestClassifier(8, random_state=0), rows=GAPS),
    "regression forest": lambda: fit(RandomForestRegressor(8, random_state=0), SIGNAL),
    "extra regression trees": lambda: fit(ExtraTreesRegressor(8, random_state=0), SIGNAL),
    "forest of two targets": lambda: fit(RandomForestRegressor(8, random_state=0), TARGETS),
    "list": lambda: parts(tree),
    "tuple of rare class": lambda: tuple(parts(tree, RARE)),
    "dict": lambda: dict(enumerate(parts(GaussianNB))),
    "list of voters": lambda: parts(lambda: LinearSVC(random_state=0)),
    "list of voters and others": lambda: [*parts(GaussianNB, n=2), *parts(RidgeClassifier, n=2)],
    "list of regressors": lambda: parts(Ridge, SIGNAL),
    "list of regressors of two targets": lambda: parts(Ridge, TARGETS),
    "weighted list": lambda: EnsembleSampler(parts(tree), weights=[1, 2, 3, 4, 5]),
    "weighted dict": lambda: EnsembleSampler({"a": fit(tree()), "b": fit(SVC)}, weights=[1, 3]),
    "weighted forest": lambda: EnsembleSampler(
        fit(RandomForestClassifier(6, random_state=0)), weights=np.arange(6)
    ),
    "bagging": lambda: fit(BaggingClassifier(n_estimators=6, random_state=0)),
    "bagging of some features": lambda: fit(
        BaggingClassifier(tree(), n_estimators=6, max_features=0.5, random_state=0)
    ),
    "bagging of few rows": lambda: fit(
        BaggingClassifier(tree(), n_estimators=6, max_samples=8, random_state=0), RARE
    ),
    "bagging of neighbors": lambda: fit(
        BaggingClassifier(KNeighborsClassifier(), n_estimators=6, max_samples=0.3, random_state=0)
    ),
    "bagging of voters": lambda: fit(BaggingClassifier(SVC, n_estimators=6, random_state=0)),
    "bagging of voters of few rows": lambda: fit(
        BaggingClassifier(SVC, n_estimators=6, max_samples=8, random_state=0), RARE
    ),
    "bagging of two targets": lambda: fit(
        BaggingRegressor(Ridge(), n_estimators=6, max_features=2, random_state=0), TARGETS
    ),
    "bagged regression": lambda: fit(BaggingRegressor(n_estimators=6, random_state=0), SIGNAL),
    "soft voting": lambda: fit(VotingClassifier(PAIRS, voting="soft")),
    "weighted soft voting": lambda: fit(VotingClassifier(PAIRS, voting="soft", weights=[1, 3])),
    "voting with a dropped member": lambda: fit(
        VotingClassifier([*PAIRS, ("no", "drop")], voting="soft", weights=[1, 3, 9])
    ),
    "hard voting": lambda: fit(VotingClassifier([*PAIRS, ("svc", SVC)])),
    "weighted hard voting of voters": lambda: fit(
        VotingClassifier(
            [("svc", SVC), ("ridge", RidgeClassifier()), ("weak", LinearSVC(C=1e-3))],
            weights=[2, 1, 2],
        )
    ),
    "voting of regressors": lambda: fit(VotingRegressor(REGRESSORS, weights=[1, 2]), SIGNAL),
    "calibrated": lambda: fit(CalibratedClassifierCV(GaussianNB(), cv=3)),
    "calibrated of two classes": lambda: fit(CalibratedClassifierCV(SVC, cv=3), TWO),
    "stacking": lambda: EnsembleSampler(fit(StackingClassifier(PAIRS, cv=3))),
    "stacking of regressors": lambda: EnsembleSampler(fit(StackingRegressor(REGRESSORS), SIGNAL)),
    "stacking of frozen members": lambda: EnsembleSampler(
        fit(StackingClassifier([("tree", fit(tree())), ("nb", fit(GaussianNB()))], cv="prefit"))
    ),
    "pipeline": lambda: fit(
        make_pipeline(StandardScaler(), RandomForestClassifier(6, random_state=0))
    ),
    "pipeline of one step": lambda: fit(make_pipeline(ExtraTreesClassifier(6, random_state=0))),
    "list of pipelines": lambda: parts(lambda: make_pipeline(StandardScaler(), GaussianNB())),
    "search": lambda: fit(
        GridSearchCV(RandomForestClassifier(6, random_state=0), {"max_depth": [2, 3]}, cv=3)
    ),
    "search of a pipeline": lambda: fit(
        GridSearchCV(
            make_pipeline(StandardScaler(), BaggingClassifier(n_estimators=5, random_state=0)),
            {"baggingclassifier__max_samples": [0.5]},
            cv=3,
        )
    ),
    "transformed target": lambda: fit(
        TransformedTargetRegressor(
            RandomForestRegressor(6, random_state=0), func=np.log, inverse_func=np.exp
        ),
        POSITIVE,
    ),
    "transformed targets": lambda: fit(
        TransformedTargetRegressor(
            RandomForestRegressor(6, random_state=0), transformer=StandardScaler()
        ),
        TARGETS,
    ),
    "frozen": lambda: FrozenEstimator(fit(RandomForestClassifier(6, random_state=0))),
    "fixed threshold": lambda: fit(
        FixedThresholdClassifier(RandomForestClassifier(6, random_state=0)), TWO
    ),
    "tuned threshold": lambda: fit(
        TunedThresholdClassifierCV(RandomForestClassifier(6, random_state=0), cv=3), TWO
    ),
    "self-training": lambda: fit(
        SelfTrainingClassifier(RandomForestClassifier(6, random_state=0)), HALF_LABELED
    ),
    "Bayesian ridge": lambda: fit(BayesianRidge(), SIGNAL),
    "Bayesian ridge without intercept": lambda: fit(BayesianRidge(fit_intercept=False), SIGNAL),
    "ARD": lambda: fit(ARDRegression(), SIGNAL),
    "Bayesian ridge in a pipeline": lambda: fit(
        make_pipeline(StandardScaler(), BayesianRidge()), SIGNAL
    ),
    "bagged Bayesian ridge": lambda: fit(
        BaggingRegressor(BayesianRidge(), n_estimators=4, random_state=0), SIGNAL
    ),
    "Gaussian process": lambda: fit(
        GaussianProcessRegressor(RBF() + WhiteKernel(0.1), normalize_y=True), SIGNAL
    ),
    "Gaussian process of two targets": lambda: fit(
        GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None), TARGETS
    ),
    "Gaussian process in a pipeline": lambda: fit(
        make_pipeline(StandardScaler(), GaussianProcessRegressor(RBF(), alpha=0.1)), SIGNAL
    ),
    "Gaussian process of a transformed target": lambda: fit(
        TransformedTargetRegressor(
            GaussianProcessRegressor(RBF() + WhiteKernel(0.1)), transformer=StandardScaler()
        ),
        SIGNAL,
    ),
    "Gaussian process classifier": lambda: fit(
        GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None), TWO
    ),
    "Gaussian process classifier of three classes": lambda: fit(
        GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None)
    ),
}


@pytest.mark.parametrize("make", ENSEMBLES.values(), ids=ENSEMBLES)
def test_sampler_of_a_fitted_model_keeps_the_protocol(make: Callable[[], Any]) -> None:
    check_sampler(make(), X[N_LABELED:])


BOOTSTRAPS: dict[str, tuple[Any, Any, Any]] = {
    "logistic regression": (LogisticRegression(), LABELS, X),
    "logistic regression of sparse rows": (LogisticRegression(), LABELS, SPARSE),
    "neighbors": (KNeighborsClassifier(), CODES, X),
    "boosting of rows with NaN": (
        HistGradientBoostingClassifier(max_iter=3, random_state=0),
        LABELS,
        GAPS,
    ),
    "regression boosting": (HistGradientBoostingRegressor(max_iter=3), SIGNAL, X),
    "ridge": (Ridge(), SIGNAL, X),
    "ridge of two targets": (Ridge(), TARGETS, X),
    "linear SVC": (LinearSVC(), LABELS, X),
    "stacking": (StackingClassifier(PAIRS, cv=3), LABELS, X),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), LABELS, X),
    "pipeline of text": (make_pipeline(CountVectorizer(), MultinomialNB()), LABELS, TEXTS),
    "search": (GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3), TWO, X),
    "transformed target": (
        TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp),
        POSITIVE,
        X,
    ),
}


@pytest.mark.parametrize(("model", "y", "rows"), BOOTSTRAPS.values(), ids=BOOTSTRAPS)
def test_bootstrap_of_a_fitted_model_keeps_the_protocol(model: Any, y: Any, rows: Any) -> None:
    fit(model, y, rows)
    sampler = get_sampler(model)
    assert isinstance(sampler, BootstrapSampler)
    check_sampler(
        sampler.set_params(n_draws=5),
        rows[N_LABELED:],
        model=model,
        X_labeled=rows[:N_LABELED],
        y_labeled=y[:N_LABELED],
    )


@pytest.mark.parametrize("method", ["weights", "copies", "bayesian"])
def test_bootstrap_of_every_method_keeps_the_protocol(method: str) -> None:
    model = fit(DecisionTreeRegressor(max_depth=3), SIGNAL)
    sampler = BootstrapSampler(model, n_draws=5, method=method)
    sampler.fit(X[:N_LABELED], SIGNAL[:N_LABELED])
    check_sampler(sampler, X[N_LABELED:], model=model)


def test_bootstrap_of_labeled_rows_in_a_list_keeps_the_protocol() -> None:
    model = fit(GaussianNB())
    labeled = {"X_labeled": X[:N_LABELED].tolist(), "y_labeled": LABELS[:N_LABELED]}
    check_sampler(BootstrapSampler(model, n_draws=4), X[N_LABELED:], model=model, **labeled)


def test_bootstrap_is_found_for_a_model_with_labeled_rows() -> None:
    model, labels = fit(GaussianNB()), LABELS[:N_LABELED]
    case = sampler_case(model, X[N_LABELED:], None, X[:N_LABELED], labels)
    found = {name: SAMPLER_CHECKS[name] for name in ("check_draws", "check_columns", "check_mean")}
    run_checks(found, case, silenced=Warning)


def test_forest_behind_counted_words_keeps_the_protocol() -> None:
    model = make_pipeline(CountVectorizer(), RandomForestClassifier(6, random_state=0))
    check_sampler(fit(model, rows=TEXTS), TEXTS[N_LABELED:])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_forest_behind_encoded_frames_keeps_the_protocol(library: str) -> None:
    frames = pytest.importorskip(library)
    if library == "polars":
        pytest.importorskip("pyarrow")
    color = np.array(["red", "green", None], dtype=object)[CODES - 1]
    columns = {"a": GAPS[:, 0], "b": GAPS[:, 1], "color": color.tolist()}
    frame = frames.DataFrame(columns)
    if library == "pandas":
        frame.index = np.random.default_rng(3).permutation(100) // 2
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["color"]), (SimpleImputer(), ["a", "b"])
    )
    model = make_pipeline(encode, RandomForestClassifier(6, random_state=0))
    model.fit(frame[:N_LABELED], LABELS[:N_LABELED])
    check_sampler(model, frame[N_LABELED:])


@pytest.mark.parametrize("model", [RandomForestClassifier(6), BaggingClassifier(n_estimators=6)])
def test_model_fitted_on_a_frame_keeps_the_protocol(model: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    model.fit(frame[:N_LABELED], LABELS[:N_LABELED])
    check_sampler(model, frame[N_LABELED:])
    check_sampler(model, X[N_LABELED:])


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_models_of_sparse_rows_keep_the_protocol(form: Any) -> None:
    for model in (RandomForestClassifier(6), BaggingClassifier(KNeighborsClassifier(), 6)):
        check_sampler(fit(model, rows=SPARSE), form(SPARSE[N_LABELED:]))


@pytest.mark.parametrize("kind", ["proba", "label", "value"])
@pytest.mark.parametrize("weighted", [False, True])
def test_precomputed_predictions_keep_the_protocol(kind: str, weighted: bool) -> None:
    rng = np.random.default_rng(2)
    values: Any = {
        "proba": rng.dirichlet(np.ones(3), size=(40, 6)),
        "label": rng.integers(3, size=(40, 6)),
        "value": rng.normal(size=(40, 6)),
    }[kind]
    samples = PredictionSamples(
        values,
        kind,
        classes=None if kind == "value" else ["a", "b", "c"],
        weights=np.arange(1, 7) / 21 if weighted else None,
        noise_variance=rng.random((40, 6)) if kind == "value" else None,
    )
    check_sampler(samples, X[N_LABELED:])
    if kind == "proba":
        check_sampler(values, X[N_LABELED:])


def test_check_sampler_without_rows_makes_them() -> None:
    check_sampler(fit(RandomForestClassifier(6, random_state=0)))


@pytest.mark.parametrize(
    ("package", "name", "params", "y"),
    [
        ("catboost", "CatBoostClassifier", {"posterior_sampling": True}, TWO),
        ("catboost", "CatBoostClassifier", {"posterior_sampling": True}, LABELS),
        ("catboost", "CatBoostRegressor", {"posterior_sampling": True}, SIGNAL),
        ("catboost", "CatBoostClassifier", {}, CODES),
        ("xgboost", "XGBRFClassifier", {"n_jobs": 1}, CODES),
        ("xgboost", "XGBRFRegressor", {"n_jobs": 1}, SIGNAL),
        ("xgboost", "XGBClassifier", {"n_jobs": 1}, CODES),
        ("lightgbm", "LGBMClassifier", {"n_jobs": 1, "verbose": -1}, LABELS),
    ],
)
def test_sampler_of_boosted_trees_keeps_the_protocol(
    package: str, name: str, params: dict[str, Any], y: Any
) -> None:
    make = getattr(pytest.importorskip(package), name)
    if package == "catboost":
        params = {**params, "verbose": False, "thread_count": 1, "allow_writing_files": False}
    model = fit(make(n_estimators=20 if package == "catboost" else 5, **params), y)
    sampler = get_sampler(model)
    labeled = {}
    if isinstance(sampler, BootstrapSampler):
        sampler.set_params(n_draws=4)
        labeled = {"X_labeled": X[:N_LABELED], "y_labeled": y[:N_LABELED]}
    check_sampler(sampler, X[N_LABELED:], model=model, **labeled)


@pytest.mark.parametrize("inner", [RandomForestClassifier(6), GaussianNB()])
def test_wrapped_classifier_of_scikit_activeml_keeps_the_protocol(inner: Any) -> None:
    classifier = pytest.importorskip("skactiveml.classifier")
    model = fit(classifier.SklearnClassifier(inner, classes=[0, 1, 2]), CODES)
    sampler = get_sampler(model)
    labeled = {}
    if isinstance(sampler, BootstrapSampler):
        sampler.set_params(n_draws=4)
        labeled = {"X_labeled": X[:N_LABELED], "y_labeled": CODES[:N_LABELED]}
    check_sampler(sampler, X[N_LABELED:], model=model, **labeled)
