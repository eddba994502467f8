"""Rows of each type, taught to a learner: what is kept, matched and refused."""

import tempfile
from collections import deque
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import (
    SGDClassifier,
)
from sklearn.pipeline import make_pipeline

from sklearn_ical import ActiveLearner, MarginQuery, RandomQuery
from tests.learner.learners import Recorder, nearest, pandas_frame, small_data

TEXTS = ["red apple", "green apple", "blue sky", "grey sky", "red sky", "green tree"]
TEXT_LABELS = ["fruit", "fruit", "air", "air", "air", "fruit"]


def as_is(X: Any) -> Any:
    return X


def polars_frame(X: np.ndarray) -> Any:
    return pytest.importorskip("polars").DataFrame(X, schema=list("abcd"))


def memory_map(X: np.ndarray) -> Any:
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, dtype=X.dtype, shape=X.shape, mode="w+")
    mapped[:] = X
    return mapped


CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": as_is,
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "coo_matrix": sparse.coo_matrix,
    "pandas": pandas_frame,
    "polars": polars_frame,
    "list": np.ndarray.tolist,
    "tuple": lambda X: tuple(X.tolist()),
    "memmap": memory_map,
}


def to_array(rows: Any) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("partial_fit", [False, True])
def test_rows_keep_their_type(name: str, partial_fit: bool) -> None:
    X, y = small_data()
    X = X.astype(np.float32).astype(float)
    first, second = CONTAINERS[name](X[:8]), CONTAINERS[name](X[8:])
    learner = ActiveLearner(SGDClassifier(random_state=0), RandomQuery()).fit(first, y[:8])
    learner.teach(second, [0, 1, np.nan, 1], partial_fit=partial_fit)
    expected = {"memmap": np.ndarray, "tuple": list}.get(name, type(first))
    assert type(learner.X_labeled_) is expected
    np.testing.assert_array_equal(to_array(learner.X_labeled_), np.delete(X, 10, axis=0))
    assert learner.y_labeled_.dtype == y.dtype
    np.testing.assert_array_equal(learner.y_labeled_, np.delete(y, 10))
    by_hand = SGDClassifier(random_state=0)
    if partial_fit:
        by_hand.fit(first, y[:8]).partial_fit(CONTAINERS[name](X[[8, 9, 11]]), y[[8, 9, 11]])
    else:
        by_hand.fit(CONTAINERS[name](np.delete(X, 10, axis=0)), np.delete(y, 10))
    np.testing.assert_allclose(learner.estimator_.coef_, by_hand.coef_, rtol=1e-5)
    if hasattr(first, "dtype"):
        assert learner.X_labeled_.dtype == first.dtype
    if sparse.issparse(first):
        assert learner.X_labeled_.format == first.format


@pytest.mark.parametrize("namespace", ["torch", "array_api_strict"])
def test_arrays_of_other_libraries_keep_their_type(namespace: str) -> None:
    xp = pytest.importorskip(namespace)
    X, y = small_data()
    rows, labels = xp.asarray(X.copy()), xp.asarray(y.copy())
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(rows[:8, :], labels[:8])
    learner.teach(rows[8:, :], labels[8:])
    for kept, whole in ((learner.X_labeled_, X), (learner.y_labeled_, y)):
        assert type(kept) is type(rows)
        np.testing.assert_array_equal(np.asarray(kept), whole)
    with pytest.raises(ValueError, match="4 columns"):
        learner.teach(rows[:, :3], labels)


def test_plain_array_likes_become_arrays() -> None:
    class Rows:
        def __init__(self, values: np.ndarray) -> None:
            self.values = values

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.array(self.values, dtype=dtype)

        def __len__(self) -> int:
            return len(self.values)

    X, y = small_data()
    learner = nearest().fit(Rows(X), Rows(y)).teach(Rows(X), Rows(y))
    assert type(learner.X_labeled_) is np.ndarray
    np.testing.assert_array_equal(learner.y_labeled_, [*y, *y])


@pytest.mark.parametrize("make", [list, np.array, "object", "pandas", "polars"])
def test_texts_go_through_a_pipeline(make: Any) -> None:
    def texts_of(texts: list[str]) -> Any:
        if isinstance(make, str) and make != "object":
            return pytest.importorskip(make).Series("text", texts)
        return np.array(texts, dtype=object) if make == "object" else make(texts)

    if make == "pandas":
        pandas = pytest.importorskip("pandas")

        def texts_of(texts: list[str]) -> Any:
            return pandas.Series(texts, name="text")

    forest = RandomForestClassifier(10, random_state=0)
    pipeline = make_pipeline(TfidfVectorizer(), forest)
    learner = ActiveLearner(pipeline, MarginQuery()).fit(texts_of(TEXTS[:3]), TEXT_LABELS[:3])
    long = "a much longer text about a green tree"
    learner.teach(texts_of([*TEXTS[3:], long]), [*TEXT_LABELS[3:], "fruit"])
    assert type(learner.X_labeled_) is type(texts_of(TEXTS))
    assert list(learner.X_labeled_) == [*TEXTS, long]
    assert learner.y_labeled_ == [*TEXT_LABELS, "fruit"]
    by_hand = clone(pipeline).fit([*TEXTS, long], [*TEXT_LABELS, "fruit"])
    np.testing.assert_array_equal(learner.predict_proba(TEXTS), by_hand.predict_proba(TEXTS))
    assert len(learner.query(texts_of(TEXTS), batch_size=2)) == 2


@pytest.mark.parametrize(("before", "now"), [
    ("array", "pandas"), ("pandas", "array"), ("pandas", "polars"), ("polars", "list"),
    ("list", "array"), ("csr_matrix", "array"), ("csr_matrix", "csr_array"), ("array", "list"),
])  # fmt: skip
def test_other_type_is_refused_with_both_names(before: str, now: str) -> None:
    X, y = small_data()
    first, second = CONTAINERS[before](X), CONTAINERS[now](X)
    learner = nearest().fit(first, y)
    with pytest.raises(TypeError) as caught:
        learner.teach(second, y)
    for rows in (first, second):
        assert type(rows).__name__ in str(caught.value)
    assert "X_new must have the type that was given before" in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": [[0.0], [0.0]]}, "X_new must be a collection of rows"),
        (deque([1, 2]), "X_new can be joined with what was given before if .* Got collections"),
    ],
)
def test_unknown_type_is_refused_when_taught(rows: Any, message: str) -> None:
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(rows, [0, 1])
    with pytest.raises(TypeError, match=message):
        learner.teach(rows, [0, 1])


@pytest.mark.parametrize("sort", [dict, tuple])
def test_rows_of_several_inputs_are_joined_input_by_input(sort: Any) -> None:
    def inputs(first: Any, second: Any) -> Any:
        named = {"a": np.array(first), "b": np.array(second)}
        return named if sort is dict else tuple(named.values())

    learner = ActiveLearner(Recorder(), RandomQuery())
    learner.fit(inputs([[1.0], [2.0]], [3, 4]), [0, 1])
    learner.teach(inputs([[5.0]], [6]), [1])
    joined = learner.X_labeled_
    assert type(joined) is sort
    first, second = joined.values() if sort is dict else joined
    np.testing.assert_array_equal(first, [[1.0], [2.0], [5.0]])
    np.testing.assert_array_equal(second, [3, 4, 6])
    with pytest.raises(ValueError, match="must have 1 column"):
        learner.teach(inputs([[5.0, 7.0]], [6]), [1])
    assert len(learner.query(inputs([[5.0], [7.0]], [6, 7]))) == 1


def test_rows_with_other_inputs_are_refused() -> None:
    learner = ActiveLearner(Recorder(), RandomQuery()).fit({"a": np.zeros((2, 1))}, [0, 1])
    with pytest.raises(ValueError, match=r"X_new must have the inputs of the rows before, \['a'\]"):
        learner.teach({"b": np.zeros((2, 1))}, [0, 1])


@pytest.mark.parametrize("name", ["array", "csr_matrix", "coo_array", "list", "tuple"])
def test_other_number_of_columns_is_refused(name: str) -> None:
    X, y = small_data()
    learner = nearest().fit(CONTAINERS[name](X), y)
    with pytest.raises(ValueError, match=r"X_new must have 4 columns .* Got 3 columns"):
        learner.teach(CONTAINERS[name](X[:, :3]), y)


@pytest.mark.parametrize("name", ["array", "list"])
def test_single_row_is_refused_as_scikit_learn_does(name: str) -> None:
    X, y = small_data()
    learner = nearest().fit(CONTAINERS[name](X), y)
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array .*reshape\(1, -1\)"):
        learner.teach(CONTAINERS[name](X)[0], [0])


@pytest.mark.parametrize("name", [n for n in CONTAINERS if n != "memmap"])
def test_lengths_must_agree_and_rows_must_be(name: str) -> None:
    X, y = small_data()
    rows = CONTAINERS[name](X)
    learner = nearest().fit(rows, y)
    with pytest.raises(ValueError, match=r"Got 11 labels for 12 rows in ActiveLearner.teach"):
        learner.teach(rows, y[:11])
    with pytest.raises(ValueError, match=r"X_new must have at least one row"):
        learner.teach(CONTAINERS[name](X[:0]), y[:0])


# Frames.


def test_pandas_columns_are_matched_by_name_and_indices_kept() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = small_data()
    frame = pandas_frame(X).set_index(np.arange(100, 112))
    learner = nearest().fit(frame[:8], y[:8]).teach(frame.loc[108:, list("dbca")], y[8:])
    pandas.testing.assert_frame_equal(learner.X_labeled_, frame)
    assert learner.predict(frame).tolist() == y.tolist()


def test_polars_columns_are_matched_by_name() -> None:
    polars = pytest.importorskip("polars")
    X, y = small_data()
    frame = polars_frame(X)
    learner = nearest().fit(frame[:8], y[:8]).teach(frame[8:].select(list("dbca")), y[8:])
    assert learner.X_labeled_.equals(frame)
    assert polars.DataFrame(X, schema=list("abcd")).equals(frame)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_other_columns_are_refused_by_name(name: str) -> None:
    X, y = small_data()
    frame = CONTAINERS[name](X)
    learner = nearest().fit(frame, y)
    other = frame.rename({"b": "z"}) if name == "polars" else frame.rename(columns={"b": "z"})
    with pytest.raises(ValueError, match=r"missing \['b'\], unknown \['z'\]"):
        learner.teach(other, y)


def test_pandas_columns_of_one_name_are_matched_by_place_only() -> None:
    X, y = small_data()
    frame = pandas_frame(X).set_axis(list("aabc"), axis=1)
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(frame, y).teach(frame, y)
    np.testing.assert_array_equal(learner.X_labeled_, [*X, *X])
    with pytest.raises(ValueError, match="duplicate"):
        learner.teach(frame.iloc[:, ::-1], y)


def mixed_frame(package: str, colors: Any, sizes: Any, flags: Any) -> Any:
    return pytest.importorskip(package).DataFrame({"color": colors, "size": sizes, "flag": flags})


def test_pandas_dtypes_are_kept() -> None:
    pandas = pytest.importorskip("pandas")
    colors = pandas.Categorical(["red", "blue"], categories=["red", "blue", "grey"])
    frame = mixed_frame("pandas", colors, [1, 2], [True, False]).astype({"size": "int32"})
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(frame, [0, 1])
    learner.teach(frame[1:], [1])
    assert learner.X_labeled_.dtypes.to_dict() == frame.dtypes.to_dict()
    # Texts and other categories join the categories; 64-bit and whole floats go where they fit.
    learner.teach(mixed_frame("pandas", ["grey"], [3.0], [True]), [0])
    assert learner.X_labeled_.dtypes.to_dict() == frame.dtypes.to_dict()
    learner.teach(mixed_frame("pandas", pandas.Categorical(["pink"]), [3.5], [True]), [0])
    kept = learner.X_labeled_
    assert kept["color"].cat.categories.tolist() == ["red", "blue", "grey", "pink"]
    assert kept["color"].tolist() == ["red", "blue", "blue", "grey", "pink"]
    assert kept["size"].tolist() == [1.0, 2.0, 2.0, 3.0, 3.5]
    assert kept["flag"].dtype == bool
    assert frame["color"].cat.categories.tolist() == ["red", "blue", "grey"]


def test_polars_dtypes_are_kept() -> None:
    polars = pytest.importorskip("polars")
    frame = mixed_frame("polars", ["red", "blue"], [1, 2], [True, False])
    frame = frame.cast({"color": polars.Enum(["red", "blue", "grey"]), "size": polars.Int32})
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(frame, [0, 1])
    learner.teach(mixed_frame("polars", ["grey"], [3.0], [True]), [0])
    assert learner.X_labeled_.schema == frame.schema
    assert learner.X_labeled_.rows() == [("red", 1, True), ("blue", 2, False), ("grey", 3, True)]
    learner.teach(mixed_frame("polars", ["grey"], [3.5], [True]), [0])
    assert learner.X_labeled_["size"].to_list() == [1.0, 2.0, 3.0, 3.5]
    with pytest.raises(TypeError, match=r"X_new\['color'\] must hold values like those before"):
        learner.teach(mixed_frame("polars", ["pink"], [3.5], [True]), [0])


@pytest.mark.parametrize("package", ["pandas", "polars"])
@pytest.mark.parametrize(("column", "values"), [
    ("size", ["big"]), ("size", [date(2020, 1, 1)]), ("flag", [2.5]), ("flag", ["yes"]),
    ("color", [3]),
])  # fmt: skip
def test_values_of_another_sort_are_refused_by_column(
    package: str, column: str, values: list[Any]
) -> None:
    if column == "color" and package == "pandas":
        pytest.skip("texts of older pandas are objects, which are of any sort")
    good = {"colors": ["red"], "sizes": [1], "flags": [True]}
    frame = mixed_frame(package, **good)
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(frame, [0])
    wrong = mixed_frame(package, **(good | {f"{column}s": values}))
    with pytest.raises(TypeError, match=rf"X_new\['{column}'\] must hold values like those before"):
        learner.teach(wrong, [0])


def test_pandas_ordered_categories_do_not_grow() -> None:
    pandas = pytest.importorskip("pandas")
    dtype = pandas.CategoricalDtype(["low", "high"], ordered=True)
    learner = ActiveLearner(Recorder(), RandomQuery())
    learner.fit(pandas.DataFrame({"level": ["low", "high"]}, dtype=dtype), [0, 1])
    learner.teach(pandas.DataFrame({"level": ["high"]}), [1])
    assert learner.X_labeled_["level"].dtype == dtype
    with pytest.raises(TypeError, match=r"X_new\['level'\]"):
        learner.teach(pandas.DataFrame({"level": ["middle"]}), [1])


def test_polars_lists_are_not_cut_to_the_earlier_dtype() -> None:
    polars = pytest.importorskip("polars")
    learner = ActiveLearner(Recorder(), RandomQuery()).fit(polars.DataFrame({"a": [[1]]}), [0])
    with pytest.raises(TypeError, match=r"X_new\['a'\] must hold values like those before"):
        learner.teach(polars.DataFrame({"a": [[2.5]]}), [0])
