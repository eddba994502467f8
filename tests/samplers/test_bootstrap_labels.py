"""Labeled rows of BootstrapSampler: in any form, with any classes, or refused before any fit."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_ical import BALDQuery, ICALQuery
from sklearn_ical.samplers import BootstrapSampler
from sklearn_ical.samplers._base import evaluate_in_chunks

X = np.random.default_rng(0).normal(size=(60, 4))
POOL = np.random.default_rng(3).normal(size=(25, 4))
CODES = np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.6, 0.6])
Y = np.array(["b", "a", "c"])[CODES]


def label_forms() -> dict[str, Any]:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    index = np.arange(60)[::-1] // 2
    return {
        "list": Y.tolist(),
        "tuple": tuple(Y.tolist()),
        "object": Y.astype(object),
        "column": Y[:, None],
        "series": pandas.Series(Y, index=index),
        "string series": pandas.Series(Y, index=index, dtype="string"),
        "categorical": pandas.Series(pandas.Categorical(Y, categories=["c", "b", "a", "unused"])),
        "frame": pandas.DataFrame({"y": Y}, index=index),
        "polars": polars.Series("y", Y),
        "polars categorical": polars.Series("y", Y, dtype=polars.Categorical),
        "polars frame": polars.DataFrame({"y": Y}),
        "numbers": CODES,
        "float numbers": CODES.astype(float),
        "number objects": CODES.astype(object),
        "mixed numbers": np.array([1.0 if code == 1 else int(code) for code in CODES], object),
        "nullable": pandas.Series(CODES, dtype="Int64"),
    }


@pytest.mark.parametrize("method", ["weights", "copies"])
@pytest.mark.parametrize("form", label_forms())
def test_labels_come_in_any_form(form: str, method: str) -> None:
    y = label_forms()[form]
    numbers = "num" in form or form == "nullable"
    plain = BootstrapSampler(GaussianNB(), method=method, n_draws=3).fit(X, CODES if numbers else Y)
    other = BootstrapSampler(GaussianNB(), method=method, n_draws=3).fit(X, y)
    expected, samples = (sampler.sample(POOL, random_state=0) for sampler in (plain, other))
    np.testing.assert_array_equal(samples.values, expected.values)
    assert samples.classes.tolist() == expected.classes.tolist()


def test_boolean_labels_are_two_classes() -> None:
    y = X[:, 0] > 0
    for form in (y, y.tolist(), y.astype(object)):
        samples = BootstrapSampler(GaussianNB(), n_draws=3).fit(X, form).sample(POOL)
        assert samples.classes.tolist() == [False, True]


@pytest.mark.parametrize("form", ["coo_array", "csc_matrix", "csr_array", "pandas", "polars"])
@pytest.mark.parametrize(("model", "method"), [(MultinomialNB(), "weights"), (None, "copies")])
def test_rows_come_in_any_form(form: str, model: Any, method: str) -> None:
    counts = np.maximum(X * 3, 0)
    model = model or KNeighborsClassifier(3, algorithm="brute")
    if form in ("pandas", "polars"):
        frame = pytest.importorskip(form).DataFrame(dict(zip("dacb", counts.T, strict=True)))
        frame = frame.set_index(np.arange(60)[::-1] // 2) if form == "pandas" else frame
        fitted = clone(model).fit(frame, Y)
        assert fitted.feature_names_in_.tolist() == ["d", "a", "c", "b"]
    else:
        frame = getattr(sparse, form)(counts)
        fitted = clone(model).fit(frame, Y)
    plain = BootstrapSampler(model, method=method, n_draws=4).fit(counts, Y)
    expected = plain.sample(counts, random_state=0)
    draws = BootstrapSampler(fitted, method=method).fit(frame, Y).draw(4, random_state=0)
    np.testing.assert_allclose(draws(frame).values, expected.values, rtol=0, atol=1e-12)
    parts = [part.values for part in evaluate_in_chunks(draws, frame, 7)]
    np.testing.assert_allclose(np.concatenate(parts), expected.values, rtol=0, atol=1e-12)


def test_texts_are_rows_too() -> None:
    words = ["red ant", "blue bee", "red bee", "blue ant ant", "red red"] * 4
    model = make_pipeline(CountVectorizer(), MultinomialNB()).fit(words, ["r", "b"] * 10)
    picks = ICALQuery(random_state=0).query(
        model, words, 2, X_labeled=words, y_labeled=["r", "b"] * 10
    )
    assert len(set(picks.tolist())) == 2


MISSING = np.array([*Y[:-1], None], dtype=object)
WRONG_LABELS: list[tuple[Any, Any, Any, str]] = [
    (X, None, ValueError, r"come as X_labeled and y_labeled together\. Got y_labeled=None in"),
    (None, Y, ValueError, r"come as X_labeled and y_labeled together\. Got X_labeled=None in"),
    (X, Y[:-1], ValueError, r"one label for each row .* Got 59 labels for 60 rows in"),
    (X[:0], Y[:0], ValueError, r"one label for each row .* Got 0 labels for 0 rows in"),
    (X, "b", TypeError, r"y_labeled must be a collection of rows"),
    (X, 3, TypeError, r"y_labeled must be a collection of rows"),
    (3, Y, TypeError, r"X_labeled must be a collection of rows"),
    (X, MISSING, ValueError, r"no missing labels\. Got None for row 59 in"),
    (
        X,
        np.where(CODES == 1, np.nan, CODES),
        ValueError,
        r"no missing labels\. Got .*nan.* for row",
    ),
    (X, [*Y[:-1].tolist(), np.nan], ValueError, r"no missing labels\. Got nan for row 59"),
    (X, np.column_stack([CODES, CODES]), TypeError, r"shape \(60,\) .* Got shape \(60, 2\) in"),
    (X, CODES[:, None, None] * np.ones(2), TypeError, r"Got shape \(60, 1, 2\) in"),
    (X, [["a"], ["a", "b"]] * 30, ValueError, r"rectangular array\. Got rows of unequal length"),
    (X, [*Y[:-1].tolist(), 3], TypeError, r"type of class label\. Got 'a' in the model and 3 in"),
    (
        X,
        np.array([*Y[:-1], 3], dtype=object),
        TypeError,
        r"type of class label\. Got 'a' in .* and 3 in",
    ),
    (X, CODES, TypeError, r"one type of class label\. Got 'a' in the model and \d in y_labeled"),
]


@pytest.mark.parametrize(("labeled", "y", "error", "message"), WRONG_LABELS)
def test_wrong_labels_are_one_error_before_any_fit(
    labeled: Any, y: Any, error: Any, message: str
) -> None:
    model = GaussianNB().fit(X, Y)
    error_of_fit = AssertionError("a model was fitted")
    with patch.object(GaussianNB, "fit", autospec=True, side_effect=error_of_fit):
        with pytest.raises(error, match=message):
            BootstrapSampler(model).fit(labeled, y)
        if labeled is not None or y is not None:
            with pytest.raises(error, match=message):
                BALDQuery().query(model, POOL, X_labeled=labeled, y_labeled=y)


def test_unfitted_model_is_not_blamed_for_mixed_labels() -> None:
    with pytest.raises(TypeError, match=r"Got 'b' in y_labeled and 3 in y_labeled of"):
        BootstrapSampler(GaussianNB()).fit(X[:3], ["b", 3, "a"])


def test_missing_targets_are_refused_in_any_output() -> None:
    y = X[:, :2].copy()
    y[7, 1] = np.nan
    with pytest.raises(
        ValueError, match=r"no missing labels\. Got .*nan.* for row 7 in .* of Ridge"
    ):
        BootstrapSampler(Ridge()).fit(X, y)


def test_one_class_alone_is_certain_everywhere() -> None:
    y = ["only"] * 60
    for model in (KNeighborsClassifier(3), DecisionTreeClassifier(), GaussianNB()):
        samples = BootstrapSampler(model, n_draws=3).fit(X, y).sample(POOL)
        assert samples.classes.tolist() == ["only"]
        np.testing.assert_array_equal(samples.values, np.ones((25, 3, 1)))


def test_classes_of_the_model_that_have_no_labeled_row_are_columns_of_zeros() -> None:
    model = GaussianNB().fit(X, Y)
    samples = BootstrapSampler(model, n_draws=3).fit(X[Y != "b"], Y[Y != "b"]).sample(POOL)
    assert samples.classes.tolist() == ["a", "b", "c"]
    assert not samples.values[:, :, 1].any()
    np.testing.assert_allclose(samples.values.sum(axis=2), 1, rtol=1e-12)


def test_labels_that_the_model_never_saw_get_columns_too() -> None:
    model = GaussianNB().fit(X[Y != "b"], Y[Y != "b"])
    samples = BootstrapSampler(model, n_draws=3).fit(X, Y).sample(POOL)
    assert samples.classes.tolist() == ["a", "b", "c"]
    assert samples.values[:, :, 1].any()


def test_unfitted_model_is_refitted_on_the_classes_of_the_labels() -> None:
    model = GaussianNB()
    samples = BootstrapSampler(model, n_draws=3).fit(X, Y).sample(POOL)
    assert samples.classes.tolist() == ["a", "b", "c"]
    assert not hasattr(model, "classes_")


def test_clones_without_probabilities_vote() -> None:
    samples = BootstrapSampler(LinearSVC(), n_draws=3).fit(X, Y).sample(POOL)
    assert (samples.kind, samples.values.shape) == ("label", (25, 3))
    assert samples.classes.tolist() == ["a", "b", "c"]
