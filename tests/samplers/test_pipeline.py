"""Pipelines and searches: rows are transformed once, the model inside is sampled."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from sklearn_ical import BALDQuery, CoreSetQuery, FASSQuery, MarginQuery, PredictionSamples
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, Draws, get_sampler
from sklearn_ical.samplers._base import evaluate_in_chunks
from sklearn_ical.samplers._containers import PipelineSampler


class Counter(TransformerMixin, BaseEstimator):
    """Doubles the rows and notes how many it was given in each call."""

    def fit(self, X: Any, y: Any = None) -> "Counter":
        self.n_rows_ = []
        return self

    def transform(self, X: Any) -> Any:
        self.n_rows_.append(X.shape[0])
        return 2 * X


class Sums:
    """A model with draws of its own: draw k is certain of class 1 where the row sum exceeds k."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any = None) -> "Sums":
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def draw(self, n_draws: int | None = None, random_state: Any = None) -> Any:
        return SumDraws(n_draws or 3)


class SumDraws:
    kind = "proba"
    classes = np.array([0, 1])
    weights = None
    joint = False

    def __init__(self, n_draws: int) -> None:
        self.n_draws = n_draws

    def __call__(self, X: Any) -> PredictionSamples:
        above = np.asarray(X.sum(axis=1)).reshape(-1, 1) > np.arange(self.n_draws)
        return PredictionSamples(np.stack([1.0 - above, above], axis=2))


def rows(n: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 4))


def labels(X: np.ndarray) -> np.ndarray:
    return np.array(["no", "yes"])[(X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)]


def forest(n_trees: int = 5) -> RandomForestClassifier:
    return RandomForestClassifier(n_trees, min_samples_leaf=2, random_state=0)


def scaled_forest() -> Pipeline:
    return make_pipeline(StandardScaler(), forest()).fit(rows(), labels(rows()))


def tree_outputs(model: Any, X: Any) -> np.ndarray:
    method = "predict_proba" if hasattr(model, "classes_") else "predict"
    return np.stack([getattr(tree, method)(X) for tree in model.estimators_], axis=1)


def test_last_step_is_sampled_on_transformed_rows() -> None:
    pipeline, pool = scaled_forest(), rows(20, seed=3)
    samples = get_sampler(pipeline).sample(pool)
    expected = tree_outputs(pipeline[-1], pipeline[0].transform(pool))
    np.testing.assert_array_equal(samples.values, expected)
    np.testing.assert_allclose(samples.mean(), pipeline.predict_proba(pool), rtol=0, atol=1e-12)
    assert samples.classes.tolist() == ["no", "yes"]


def test_regressor_behind_a_transformer_averages_to_predict() -> None:
    X = rows()
    model = ExtraTreesRegressor(5, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, X[:, :2])
    samples = get_sampler(pipeline).sample(X)
    assert (samples.kind, samples.values.shape) == ("value", (60, 5, 2))
    np.testing.assert_allclose(samples.mean(), pipeline.predict(X), rtol=1e-12, atol=1e-12)


def test_pipeline_of_one_step_is_its_model() -> None:
    X = rows()
    pipeline = Pipeline([("model", forest())]).fit(X, labels(X))
    samples = get_sampler(pipeline).sample(X)
    np.testing.assert_array_equal(samples.values, tree_outputs(pipeline[-1], X))


def test_nested_pipelines_are_unwrapped() -> None:
    X = rows()
    inner = make_pipeline(FunctionTransformer(np.square), forest())
    outer = make_pipeline("passthrough", StandardScaler(), inner).fit(X, labels(X))
    expected = tree_outputs(inner[-1], np.square(outer[1].transform(X)))
    np.testing.assert_array_equal(get_sampler(outer).sample(X).values, expected)


@pytest.mark.parametrize("size", [1, 7, 60, 100])
@pytest.mark.parametrize("model", [forest(), Sums()], ids=["forest", "own draws"])
def test_chunks_transform_all_rows_once(model: Any, size: int) -> None:
    X = rows()
    pipeline = make_pipeline(Counter(), model).fit(X, labels(X))
    draws = get_sampler(pipeline).draw()
    whole = draws(X).values
    pipeline[0].n_rows_.clear()
    parts = [part.values for part in evaluate_in_chunks(draws, X, size)]
    assert pipeline[0].n_rows_ == [60]
    assert [len(part) for part in parts] == [min(size, 60 - a) for a in range(0, 60, size)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_query_transforms_each_row_of_the_pool_once() -> None:
    X = rows()
    pipeline = make_pipeline(Counter(), forest()).fit(X, labels(X))
    pipeline[0].n_rows_.clear()
    BALDQuery().query(pipeline, X, 3)
    assert pipeline[0].n_rows_[0] == 60
    assert sum(pipeline[0].n_rows_) < 120  # ties may be scored again


def test_transformer_that_gives_unsliceable_sparse_rows_passes() -> None:
    X = np.where(rows() > 0.3, 1.0, 0.0)
    pipeline = make_pipeline(FunctionTransformer(sparse.coo_matrix), Sums()).fit(X)
    draws = get_sampler(pipeline).draw()
    parts = [part.values for part in evaluate_in_chunks(draws, X, 7)]
    expected = (X.sum(axis=1)[:, None] > np.arange(3)).astype(float)
    np.testing.assert_array_equal(np.concatenate(parts)[:, :, 1], expected)


def test_mixed_frames_pass_through_a_column_transformer() -> None:
    pandas = pytest.importorskip("pandas")
    X = rows()
    frame = pandas.DataFrame(
        {"size": X[:, 0], "color": np.where(X[:, 1] > 0, "red", "blue"), "age": X[:, 2]},
        index=np.arange(60)[::-1],
    )
    columns = ColumnTransformer(
        [("number", StandardScaler(), ["size", "age"]), ("word", OneHotEncoder(), ["color"])]
    )
    pipeline = make_pipeline(columns, forest()).fit(frame, labels(X))
    draws = get_sampler(pipeline).draw()
    expected = tree_outputs(pipeline[-1], pipeline[0].transform(frame))
    np.testing.assert_array_equal(draws(frame).values, expected)
    parts = [part.values for part in evaluate_in_chunks(draws, frame, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_text_passes_through_a_vectorizer() -> None:
    words = ["red ant", "blue bee", "red bee", "blue ant ant", "red red"] * 4
    union = FeatureUnion(
        [("words", TfidfVectorizer()), ("letters", TfidfVectorizer(analyzer="char"))]
    )
    pipeline = make_pipeline(union, forest()).fit(words, ["r", "b", "r", "b", "r"] * 4)
    draws = get_sampler(pipeline).draw()
    np.testing.assert_allclose(draws(words).mean(), pipeline.predict_proba(words), atol=1e-12)
    parts = [part.values for part in evaluate_in_chunks(draws, words, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), draws(words).values)


def test_draws_carry_what_the_model_inside_says() -> None:
    draws = get_sampler(scaled_forest()).draw(3, random_state=0)
    assert isinstance(draws, Draws)
    assert (draws.n_draws, draws.kind, draws.weights, draws.joint) == (3, "proba", None, False)
    assert draws.classes.tolist() == ["no", "yes"]
    copy = pickle.loads(pickle.dumps(draws))
    np.testing.assert_array_equal(copy(rows(9)).values, draws(rows(9)).values)


def test_fewer_draws_are_those_of_the_model_inside() -> None:
    pipeline, pool = scaled_forest(), rows(20, seed=3)
    inner = get_sampler(pipeline[-1]).sample(pipeline[0].transform(pool), n_draws=2, random_state=4)
    outer = get_sampler(pipeline).sample(pool, n_draws=2, random_state=4)
    np.testing.assert_array_equal(outer.values, inner.values)


@pytest.mark.parametrize(
    ("steps", "got"),
    [
        ([("scale", StandardScaler()), ("model", "passthrough")], "'passthrough'"),
        ([("scale", StandardScaler()), ("model", None)], "None"),
        ([], "None"),
    ],
)
def test_pipeline_without_a_model_is_refused(steps: Any, got: str) -> None:
    with pytest.raises(UnsupportedModelError, match=f"Pipeline must end in .* Got {got} as its"):
        get_sampler(Pipeline(steps)).draw()


@pytest.mark.parametrize("model", [GaussianNB(), SVC()])
def test_pipeline_around_a_model_without_draws_has_its_last_step_refitted(model: Any) -> None:
    X, pool = rows(), rows(20, seed=3)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, labels(X))
    sampler = get_sampler(pipeline)
    assert isinstance(sampler, BootstrapSampler)
    assert [type(part) for part in sampler.estimator] == [StandardScaler, type(model)]
    message = (
        rf"^Pipeline\(\.\.\., {type(model).__name__}\) has no .* Got no labeled rows; call query"
    )
    with pytest.raises(UnsupportedModelError, match=message):
        sampler.draw()
    drawn = sampler.with_labeled(X, labels(X)).draw(4, random_state=0)(pool).values
    scaled = pipeline[0].transform
    last = BootstrapSampler(model).fit(scaled(X), labels(X)).draw(4, random_state=0)
    np.testing.assert_array_equal(drawn, last(scaled(pool)).values)
    assert len({column.tobytes() for column in np.moveaxis(drawn, 1, 0)}) == 4


def test_pipeline_that_is_not_fitted_is_refitted_as_a_whole() -> None:
    X = rows()
    sampler = BootstrapSampler(make_pipeline(StandardScaler(), GaussianNB())).fit(X, labels(X))
    clones = sampler.draw(4, random_state=0).members.models
    assert len({model[0].mean_.tobytes() for model in clones}) == 4  # each has its own scaler


def test_refits_keep_the_categories_that_a_resample_lacks() -> None:
    pandas = pytest.importorskip("pandas")
    colors = np.array(["red", "blue"] * 20, dtype=object)
    frame = pandas.DataFrame({"color": colors, "size": rows(40)[:, 0]})
    frame.loc[[0, 35], "color"] = "rare"
    encode = ColumnTransformer([("color", OneHotEncoder(), ["color"])], remainder="passthrough")
    pipeline = make_pipeline(encode, LogisticRegression()).fit(frame[:30], labels(rows(30)))
    picks = BALDQuery(random_state=0).query(
        pipeline, frame[30:], 3, X_labeled=frame[:30], y_labeled=labels(rows(30))
    )
    assert len(set(picks.tolist())) == 3


@pytest.mark.parametrize("wrap", [lambda pipeline: pipeline, lambda pipeline: [pipeline, pipeline]])
def test_draws_stay_as_they_are_when_the_pipeline_is_fitted_again(wrap: Any) -> None:
    X = rows()
    union = FeatureUnion([("scaled", StandardScaler()), ("same", FunctionTransformer())])
    forest = RandomForestClassifier(4, random_state=0)
    pipeline = make_pipeline(StandardScaler(), union, forest).fit(X, labels(X))
    draws = get_sampler(wrap(pipeline)).draw()
    before = draws(X).values
    pipeline.fit(100 * X + 7, labels(X)[::-1])
    np.testing.assert_array_equal(draws(X).values, before)


def test_pipeline_that_ends_in_a_transformer_names_it() -> None:
    pipeline = make_pipeline(FunctionTransformer(), StandardScaler()).fit(rows())
    with pytest.raises(
        UnsupportedModelError, match=r"^StandardScaler transforms rows and predicts"
    ):
        get_sampler(pipeline)


def test_refits_of_a_pipeline_take_the_model_that_its_search_chose() -> None:
    X = rows()
    search = GridSearchCV(SVC(), {"C": [0.5, 2.0]}, cv=2)
    pipeline = make_pipeline(StandardScaler(), search).fit(X, labels(X))
    sampler = get_sampler(pipeline)
    assert isinstance(sampler.estimator[-1], SVC)
    assert sampler.estimator[-1].C == search.best_params_["C"]
    assert pipeline[-1] is search


def test_unfitted_pipeline_is_refused() -> None:
    with pytest.raises(NotFittedError, match="RandomForestClassifier is not fitted yet"):
        get_sampler(make_pipeline(StandardScaler(), forest())).draw()


def test_pipeline_is_unchanged_and_rows_too() -> None:
    pipeline, pool = scaled_forest(), rows(20, seed=3)
    before = pickle.dumps(pipeline)
    pool.flags.writeable = False
    get_sampler(pipeline).sample(pool)
    assert pickle.dumps(pipeline) == before


def searches(model: Any, name: str, **options: Any) -> list[Any]:
    grid = {name: [2, 3]}
    return [
        GridSearchCV(model, grid, cv=2, **options),
        RandomizedSearchCV(model, grid, n_iter=2, cv=2, random_state=0, **options),
    ]


@pytest.mark.parametrize("search", searches(forest(), "max_depth"))
def test_search_around_a_forest_samples_its_best_model(search: Any) -> None:
    X = rows()
    search.fit(X, labels(X))
    samples = get_sampler(search).sample(X)
    np.testing.assert_array_equal(samples.values, tree_outputs(search.best_estimator_, X))
    np.testing.assert_allclose(samples.mean(), search.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "search",
    searches(
        make_pipeline(StandardScaler(), RandomForestRegressor(4, random_state=0)),
        "randomforestregressor__max_depth",
    ),
)
def test_search_around_a_pipeline_samples_its_best_model(search: Any) -> None:
    X = rows()
    search.fit(X, X[:, 0])
    samples = get_sampler(search).sample(X)
    assert samples.values.shape == (60, 4)
    np.testing.assert_allclose(samples.mean(), search.predict(X), rtol=1e-12, atol=1e-12)


def test_pipeline_around_a_search_samples_its_best_model() -> None:
    X = rows()
    search = GridSearchCV(forest(), {"max_depth": [2, 3]}, cv=2)
    pipeline = make_pipeline(StandardScaler(), search).fit(X, labels(X))
    samples = get_sampler(pipeline).sample(X)
    np.testing.assert_allclose(samples.mean(), pipeline.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("search", searches(forest(), "max_depth"))
def test_unfitted_search_is_refused_by_name(search: Any) -> None:
    with pytest.raises(NotFittedError, match=f"{type(search).__name__} is not fitted yet"):
        get_sampler(search)


@pytest.mark.parametrize("search", searches(forest(), "max_depth", refit=False))
@pytest.mark.parametrize("fit", [False, True])
def test_search_without_refit_is_refused_by_name(search: Any, fit: bool) -> None:
    if fit:
        search.fit(rows(), labels(rows()))
    with pytest.raises(UnsupportedModelError, match=f"{type(search).__name__} has refit=False"):
        get_sampler(search)


def test_search_around_a_model_without_draws_refits_that_model() -> None:
    search = GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2).fit(rows(), labels(rows()))
    sampler = get_sampler(search)
    assert isinstance(sampler, BootstrapSampler)
    assert sampler.estimator is search.best_estimator_
    with pytest.raises(UnsupportedModelError, match=r"^SVC has no posterior draws of its own"):
        sampler.draw()


def test_model_with_search_like_parameters_is_no_search() -> None:
    with pytest.raises(NotFittedError, match=r"^LogisticRegressionCV is not fitted yet"):
        get_sampler(LogisticRegressionCV())
    model = TunedThresholdClassifierCV(forest()).fit(rows(), labels(rows()))
    assert get_sampler(model).ensemble is model.estimator_
    assert BootstrapSampler(model).fit(rows(), labels(rows())).estimator is model


def test_sampler_of_a_pipeline_is_the_one_registered() -> None:
    assert isinstance(get_sampler(scaled_forest()), PipelineSampler)


@pytest.mark.parametrize("last", [RandomForestClassifier(5, random_state=0), LogisticRegression()])
def test_steps_that_work_in_place_change_neither_rows_nor_picks(last: Any) -> None:
    rng = np.random.default_rng(0)
    X, X_pool = rng.normal(3, 1, (40, 3)), rng.normal(3, 1, (30, 3))
    y = (X[:, 0] > 3).astype(int)
    for strategy in (MarginQuery(), BALDQuery(random_state=0), FASSQuery(), CoreSetQuery()):
        picks = []
        for copy in (True, False):
            model, other = (
                make_pipeline(StandardScaler(copy=copy), each).fit(X.copy(), y)
                for each in (last, GaussianNB())
            )
            for wrapped in (model, [model, other], FrozenEstimator(model)):
                pool, labeled = X_pool.copy(), X.copy()
                rows = {"X_labeled": labeled, "y_labeled": y}
                picks.append(strategy.query(wrapped, pool, 5, **rows).tolist())
                np.testing.assert_array_equal(pool, X_pool)
                np.testing.assert_array_equal(labeled, X)
        assert picks[:3] == picks[3:]
