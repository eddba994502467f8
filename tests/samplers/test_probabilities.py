"""What models return from predict_proba: frames, lists, sparse rows, and improper rows."""

import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from sklearn_ical import BALDQuery, EPIGQuery, MarginQuery, MaxEntropyQuery, simulate
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.pool import RowSet
from sklearn_ical.samplers import BootstrapSampler, get_sampler
from sklearn_ical.samplers._base import get_mean
from sklearn_ical.samplers._probabilities import class_probabilities
from sklearn_ical.simulation import OverallUncertainty

RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(60, 3)), RNG.normal(size=(30, 3))
Y = np.array(["bee", "ant", "cow"])[np.argmax(X, axis=1)]


class Answering(ClassifierMixin, BaseEstimator):
    """A logistic regression whose probabilities come in another form."""

    def __init__(self, form: Any = None) -> None:
        self.form = form

    def fit(self, X: Any, y: Any) -> "Answering":
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        proba = self.model_.predict_proba(X)
        return proba if self.form is None else self.form(proba, self.classes_)


def pandas_frame(proba: Any, classes: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(proba, columns=classes, index=np.arange(len(proba))[::-1] + 7)
    return frame[classes[[2, 0, 1][: len(classes)]]]


def pandas_frame_of_text(proba: Any, classes: Any) -> Any:
    frame = pandas_frame(proba, classes)
    return frame.rename(columns=str)


def unnamed_frame(proba: Any, classes: Any) -> Any:
    return pytest.importorskip("pandas").DataFrame(proba)


def polars_frame(proba: Any, classes: Any) -> Any:
    polars = pytest.importorskip("polars")
    names = [str(label) for label in classes]
    return polars.DataFrame(proba, schema=names, orient="row").select(names[::-1])


def unnamed_polars_frame(proba: Any, classes: Any) -> Any:
    return pytest.importorskip("polars").DataFrame(proba, orient="row")


def arrow_table(proba: Any, classes: Any) -> Any:
    arrow = pytest.importorskip("pyarrow")
    return arrow.table({str(classes[k]): proba[:, k] for k in range(len(classes))[::-1]})


def tensor(proba: Any, classes: Any) -> Any:
    return pytest.importorskip("torch").tensor(proba, requires_grad=True)


def sparse_tensor(proba: Any, classes: Any) -> Any:
    return tensor(proba, classes).detach().to_sparse()


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "pandas": pandas_frame,
    "pandas, text": pandas_frame_of_text,
    "pandas, unnamed": unnamed_frame,
    "polars": polars_frame,
    "polars, unnamed": unnamed_polars_frame,
    "pyarrow": arrow_table,
    "lists": lambda proba, classes: proba.tolist(),
    "list of rows": lambda proba, classes: list(proba),
    "tuple": lambda proba, classes: tuple(map(tuple, proba)),
    "objects": lambda proba, classes: proba.astype(object),
    "matrix": lambda proba, classes: sparse.csr_matrix(proba).todense(),
    "sparse": lambda proba, classes: sparse.csr_matrix(proba),
    "sparse array": lambda proba, classes: sparse.coo_array(proba),
    "tensor": tensor,
    "sparse tensor": sparse_tensor,
}


@pytest.mark.parametrize("labels", ["text", "numbers"])
@pytest.mark.parametrize("form", FORMS)
def test_probabilities_of_any_form_are_read_by_class(form: str, labels: str) -> None:
    y = Y if labels == "text" else np.array([10, 20, 30])[np.argmax(X, axis=1)]
    plain = LogisticRegression().fit(X, y)
    model, expected = Answering(FORMS[form]).fit(X, y), plain.predict_proba(POOL)
    for samples in (get_mean(model)(POOL), get_sampler([model]).sample(POOL)):
        np.testing.assert_allclose(samples.values[:, 0], expected, rtol=1e-12)
        assert samples.classes.tolist() == plain.classes_.tolist()
    np.testing.assert_allclose(class_probabilities(model, POOL), expected, rtol=1e-12)
    members = [model, plain]  # columns in another order would change the mean
    got = MaxEntropyQuery().query(members, POOL, 5)
    assert got.tolist() == MaxEntropyQuery().query([plain, plain], POOL, 5).tolist()


@pytest.mark.parametrize("form", ["pandas", "polars", "lists"])
def test_models_around_such_a_model_work(form: str) -> None:
    model = Answering(FORMS[form]).fit(X, Y)
    expected = MarginQuery().query(LogisticRegression().fit(X, Y), POOL, 3).tolist()
    for around in (make_pipeline(FunctionTransformer(), model), FrozenEstimator(model)):
        assert MarginQuery().query(around, POOL, 3).tolist() == expected
    refits = BootstrapSampler(model, n_draws=3).fit(X, Y).sample(POOL, random_state=0)
    plain = BootstrapSampler(Answering(), n_draws=3).fit(X, Y)
    np.testing.assert_allclose(refits.values, plain.sample(POOL, random_state=0).values)


def test_loop_reads_frames_by_class() -> None:
    results = [
        simulate(
            model, X, Y, MarginQuery(), n_initial=12, n_rounds=1, X_test=POOL, y_test=Y[:30],
            scoring="neg_log_loss", stopping=OverallUncertainty(0.0), random_state=0,
        )
        for model in (Answering(pandas_frame), LogisticRegression())
    ]  # fmt: skip
    for ours, plain in zip(*(result.rounds for result in results), strict=True):
        assert ours.scores == pytest.approx(plain.scores)
        assert ours.measures == pytest.approx(plain.measures)


class Predictor:
    """A predictor without scikit-learn's attributes, whose frames name the classes."""

    def predict_proba(self, X: Any) -> Any:
        return pytest.importorskip("pandas").DataFrame(
            {"b": np.full(len(X), 0.25), "a": np.full(len(X), 0.75)}
        )


def test_columns_name_the_classes_of_a_model_without_any() -> None:
    samples = get_mean(Predictor())(POOL)
    assert samples.classes.tolist() == ["b", "a"]
    assert samples.values[0, 0].tolist() == [0.25, 0.75]


class LabeledPredictor(Predictor):
    """The same, with the labels of its classes in the manner of AutoGluon."""

    class_labels: ClassVar = ["a", "b"]

    def predict(self, X: Any) -> Any:
        return np.full(len(X), "a")


def test_predictors_with_labels_of_their_classes_are_members() -> None:
    samples = get_sampler([LabeledPredictor(), LabeledPredictor()]).sample(POOL)
    assert samples.classes.tolist() == ["a", "b"]
    assert samples.values[0, 1].tolist() == [0.75, 0.25]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (
            lambda proba, classes: pandas_frame(proba, classes).add_prefix("p_"),
            r"name the columns of its frame by class, \['ant', 'bee', 'cow'\]\. Got columns "
            r"\['p_cow', 'p_ant', 'p_bee'\]; rename them, or return an array\.$",
        ),
        (lambda proba, classes: [proba, proba], r"Got a list of 2 arrays; a model of several outp"),
        (lambda proba, classes: proba[:, 0], r"one \(n_points, n_classes\) array\. Got shape \(30"),
        (lambda proba, classes: None, r"one \(n_points, n_classes\) array\. Got a NoneType"),
        (lambda proba, classes: [[0.5, 0.5], [1.0]], r"Got a list; a model of several outputs"),
        (lambda proba, classes: proba.astype(str), r"gives no usable output\. .* Got dtype <U"),
    ],
    ids=["other names", "several outputs", "one column", "nothing", "ragged", "text"],
)
def test_other_answers_are_refused(form: Any, message: str) -> None:
    model = Answering(form).fit(X, Y)
    for given, owner in ((model, "Answering"), ([model], r"member 0 \(Answering\) of Ensemble")):
        with pytest.raises(UnsupportedModelError, match=rf"^predict_proba of {owner}.*{message}"):
            MarginQuery().query(given, POOL)


class Improper(ClassifierMixin, BaseEstimator):
    """Gives certain probabilities for the rows whose first number is 17."""

    def __init__(self, proba: Any) -> None:
        self.proba = proba
        self.classes_ = np.arange(3)

    def fit(self, X: Any, y: Any) -> "Improper":
        return self

    def predict_proba(self, X: Any) -> Any:
        proba = np.tile([0.5, 0.25, 0.25], (len(X), 1))
        proba[np.asarray(X)[:, 0] == 17] = self.proba
        return proba


ROWS = {
    "gives no class a positive probability for row 17 of X_pool; .*CalibratedClassifierCV": [0] * 3,
    "gives NaN or infinity for row 17 of X_pool; leave out": [0.5, np.nan, 0.5],
    r"gives a negative probability, -0\.5, for row 17 of X_pool; .*logits": [1, 0.5, -0.5],
    r"gives probabilities that sum to 1\.5, not 1, for row 17 of X_pool; normalize": [0.5] * 3,
}


@pytest.mark.parametrize("message", ROWS)
def test_improper_rows_are_named_with_the_reason(message: str) -> None:
    model, pool = Improper(ROWS[message]), np.arange(40.0)[:, None]
    proper = Improper([1, 0, 0])
    voting = VotingClassifier([("a", FrozenEstimator(proper)), ("b", FrozenEstimator(model))])
    voting.fit(pool[:3], [0, 1, 2])
    for strategy, given, owner in (
        (MarginQuery(), model, "Improper"),
        (MarginQuery(), make_pipeline(FunctionTransformer(), model), r"Pipeline\(\.\.\., Improper"),
        (BALDQuery(), [proper, proper, proper, model], r"member 3 \(Improper\) of EnsembleSampler"),
        (BALDQuery(), voting, r"member 'b' \(FrozenEstimator\) of EnsembleSampler of Voting"),
    ):
        with pytest.raises(UnsupportedModelError, match=rf"^predict_proba of {owner}.* {message}"):
            strategy.query(given, pool)
        with pytest.raises(ValueError, match=message):  # named by its position in the pool
            strategy.query(given, pool, candidates=np.arange(11, 30))


def test_improper_rows_are_named_in_any_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sklearn_ical._array.CHUNK_BYTES", 24 * 5)
    monkeypatch.setattr("sklearn_ical.pool._pool.MODEL_BLOCK_ROWS", 10)
    model, pool = Improper([0, 0, 0]), np.arange(40.0)[:, None]
    for given in (model, make_pipeline(FunctionTransformer(), model)):
        with pytest.raises(ValueError, match="for row 17 of X_pool;"):
            MarginQuery().query(given, pool)
        with pytest.raises(ValueError, match="for row 1 of X_reference;"):
            EPIGQuery().query([given, given], pool[:9], X_reference=pool[16:])
    rows = RowSet(pool, name="X_labeled").with_predictions(get_mean(model))
    with pytest.raises(ValueError, match="for row 17 of X_labeled;") as caught:
        rows.take(np.array([30, 17, 2]))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # of old versions
def test_one_classifier_per_class_may_reject_all_classes() -> None:
    model = OneVsRestClassifier(DecisionTreeClassifier(random_state=0)).fit(X, Y)
    pool = RNG.normal(size=(300, 3))
    rejected = np.flatnonzero(~np.any([tree.predict(pool) for tree in model.estimators_], axis=0))
    problem = "gives (no class a positive probability|NaN or infinity)"
    for given, owner in (
        (model, "OneVsRestClassifier"),
        ([model, model], r"member 0 \(OneVsRestClassifier\) of EnsembleSampler"),
    ):
        message = rf"^predict_proba of {owner} {problem} for row {rejected[0]} of X_pool;"
        with pytest.raises(ValueError, match=message):
            MarginQuery().query(given, pool)
    message = rf"^predict_proba of member 0 \(OneVsRestClassifier\) of BootstrapSampler {problem}"
    with pytest.raises(ValueError, match=message):
        BALDQuery(random_state=0).query(
            BootstrapSampler(model, n_draws=2), pool, X_labeled=X, y_labeled=Y
        )
