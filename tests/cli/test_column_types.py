"""Columns of a pool are read as the types that the model was fitted on, whatever they look like."""

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from sklearn_ical import ActiveLearner, MarginQuery  # noqa: E402
from sklearn_ical.cli._compare import Comparison  # noqa: E402
from sklearn_ical.cli._curves import _read  # noqa: E402
from sklearn_ical.cli._errors import CommandError  # noqa: E402

RNG = np.random.default_rng(0)
N = 80
SIZE = RNG.normal(size=N)
CODE = RNG.integers(1, 5, size=N)
Y = np.where((CODE % 2 == 0) ^ (RNG.random(N) < 0.1), "cat", "dog")
FITTED = pd.DataFrame({"size": SIZE, "code": CODE})
POOL = FITTED.iloc[:20].reset_index(drop=True)


def encoded(*steps, last=None):
    """Return a pipeline of the number "size" and the encoded column "code"."""
    encoder = make_pipeline(*steps, OneHotEncoder(handle_unknown="ignore"))
    columns = make_column_transformer((StandardScaler(), ["size"]), (encoder, ["code"]))
    return make_pipeline(columns, last or LogisticRegression(C=10))


@pytest.fixture
def ask(call, tmp_path):
    """Return a function that asks for all rows: exit code, positions and utilities, stderr."""

    def run(model, pool, *options, suffix="csv"):
        joblib.dump(model, tmp_path / "model.joblib")
        path = tmp_path / f"pool.{suffix}"
        pool.to_csv(path, index=False) if suffix == "csv" else pool.to_parquet(path)
        code, stdout, stderr = call(
            "query", tmp_path / "model.joblib", path, "--unsafe-pickle", "--strategy", "margin",
            "-n", len(pool), "--format", "csv", *options,
        )  # fmt: skip
        rows = [line.split(",") for line in stdout.splitlines()[1:]]
        return code, [(int(position), float(utility)) for position, utility in rows], stderr

    return run


def expected(model, pool):
    positions, rows = MarginQuery().query(model, pool, len(pool), return_utilities=True)
    return [(int(p), float(rows[t, p])) for t, p in enumerate(positions)]


def check_same(answer, model, typed):
    code, picks, stderr = answer
    assert code == 0, stderr
    assert picks == expected(model, typed)
    assert len({utility for _, utility in picks}) > 1


def as_text(codes):
    return np.array(["", "one", "two", "three", "four"], dtype=object)[codes]


# What the model is fitted on, as a function of the codes 1 to 4; what the pool's file says; and the
# values that this means. The file's rows go around these.
READINGS = {
    "integers with a gap": (lambda codes: codes, ["1", "", "3", "4"], [1, np.nan, 3, 4]),
    "integers as floats": (lambda codes: codes, ["1.0", "2.0", "3.0", "9.0"], [1, 2, 3, 9]),
    "floats as integers": (lambda codes: codes / 1.0, ["1", "2", "3", "4"], [1.0, 2.0, 3.0, 4.0]),
    "integer objects": (lambda codes: codes.astype(object), ["1", "2", "", "4"], [1, 2, np.nan, 4]),
    "texts of integers": (lambda codes: codes.astype(str), ["1", "2", "3", "7"], list("1237")),
    "texts with zeros": (
        lambda codes: np.char.add("00", codes.astype(str)),
        ["001", "002", "003", "004"],
        ["001", "002", "003", "004"],
    ),
    "texts of booleans": (
        lambda codes: np.where(codes % 2 == 0, "True", "False"),
        ["True", "False", "True", "True"],
        ["True", "False", "True", "True"],
    ),
    "booleans": (lambda codes: codes % 2 == 0, ["True", "False", "false", "1"], [1, 0, 0, 1]),
    "booleans with a gap": (
        lambda codes: np.where(codes > 3, np.nan, (codes % 2 == 0).astype(object)),
        ["True", "False", "", "True"],
        [True, False, np.nan, True],
    ),
    "words for missing": (
        lambda codes: np.array(["None", "NA", "null", "x"], dtype=object)[codes - 1],
        ["None", "NA", "null", "nan"],
        ["None", "NA", "null", np.nan],
    ),
    "None for missing": (
        lambda codes: np.array([None, "a", "b", "c"], dtype=object)[codes - 1],
        ["", "a", "b", "c"],
        [None, "a", "b", "c"],
    ),
    "nothing": (as_text, ["", "", "", ""], [np.nan] * 4),
}


@pytest.mark.parametrize("name", READINGS)
def test_codes_are_of_the_type_of_the_encoder(ask, name):
    of_codes, written, meant = READINGS[name]
    codes = of_codes(CODE)
    fitted = FITTED.assign(code=pd.Series(codes, dtype=object if codes.dtype == object else None))
    model = encoded().fit(fitted, Y)
    categories = fitted["code"].dtype
    rows = np.arange(len(POOL)) % len(written)
    typed = pd.Series(np.array(meant, dtype=object)[rows], dtype=object)
    if name == "booleans":
        typed = typed.astype(bool)
    elif categories.kind in "if":
        typed = typed.astype(float)
    check_same(
        ask(model, POOL.assign(code=np.array(written)[rows])), model, POOL.assign(code=typed)
    )


def test_what_cannot_be_read_is_an_error_that_names_it(ask, tmp_path):
    model = encoded().fit(FITTED, Y)
    pool = POOL.astype({"code": object})
    pool.loc[17, "code"] = "?"
    code, picks, stderr = ask(model, pool)
    assert (code, picks) == (1, [])
    message = stderr.splitlines()[-1]
    assert message.startswith(f"sklearn-ical: {tmp_path / 'pool.csv'}, row 17 (counted from 0), ")
    assert "column 'code', value '?': must be a number" in message
    assert "leave the cell empty if it is missing; --column-type 'code=text'" in message
    pool.loc[17, "code"] = np.nan
    check_same(ask(model, pool), model, pool.astype({"code": float}))


@pytest.mark.parametrize(
    ("column", "words"),
    [("size", "value 'tall': must be a number"), ("yes", "value 'tall': must be True or False")],
)
def test_texts_for_numbers_and_booleans_are_refused(ask, column, words):
    fitted = FITTED.assign(yes=SIZE > 0)
    columns = make_column_transformer(
        ("passthrough", ["size"]), (OneHotEncoder(), ["yes"]), (OrdinalEncoder(), ["code"])
    )
    model = make_pipeline(columns, LogisticRegression()).fit(fitted, Y)
    pool = POOL.assign(yes=True).astype({column: object})
    pool.loc[3, column] = "tall"
    code, _, stderr = ask(model, pool)
    assert code == 1
    assert f"row 3 (counted from 0), column {column!r}, {words}" in stderr


@pytest.mark.parametrize("written", [["1", "02"], ["True", "False"], ["", ""], ["NA", "1e3"]])
def test_documents_are_read_as_they_are_written(ask, written):
    texts = np.array(["1 02 na", "True word 1e3", "False 1", "na"])[CODE - 1]
    fitted = FITTED.assign(code=texts)
    words = TfidfVectorizer(token_pattern=r"\w+")
    columns = make_column_transformer((StandardScaler(), ["size"]), (words, "code"))
    model = make_pipeline(columns, LogisticRegression(C=10)).fit(fitted, Y)
    pool = POOL.assign(code=np.resize(np.array(written, dtype=object), len(POOL)))
    check_same(ask(model, pool), model, pool)


class Around(ClassifierMixin, BaseEstimator):
    """A user's own classifier around a pipeline."""

    def fit(self, X, y):
        self.itself_, self.model_ = self, encoded().fit(X, y)
        self.classes_, self.feature_names_in_ = self.model_.classes_, np.array(X.columns)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


TEXTS = FITTED.assign(code=CODE.astype(str))
NESTED = {
    "search": lambda: GridSearchCV(encoded(), {"logisticregression__C": [1.0]}, cv=2),
    "calibrated": lambda: CalibratedClassifierCV(encoded(), cv=2),
    "learner": lambda: ActiveLearner(encoded(), strategy=MarginQuery()),
    "voting": lambda: VotingClassifier([("a", encoded())], voting="soft"),
    "pipelines": lambda: make_pipeline(FunctionTransformer(), make_pipeline(encoded())),
    "imputed": lambda: encoded(SimpleImputer(strategy="most_frequent")),
    "imputed before": lambda: make_pipeline(
        ColumnTransformer(
            [("fill", SimpleImputer(strategy="most_frequent"), ["code"])],
            remainder="passthrough",
            verbose_feature_names_out=False,
        ),
        make_column_transformer((OneHotEncoder(), [0]), ("passthrough", [1])),
        LogisticRegression(C=10),
    ),
    "function": lambda: encoded(FunctionTransformer(lambda codes: codes.map(str.strip))),
    "targets": lambda: make_pipeline(
        ColumnTransformer(
            [("code", TargetEncoder(), slice("code", "code"))], remainder="passthrough"
        ),
        LogisticRegression(C=10),
    ),
    "own class": Around,
    "boosting": lambda: HistGradientBoostingClassifier(
        categorical_features=["code"], max_iter=5, min_samples_leaf=2
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_encoders_are_found_inside_models(ask, name, monkeypatch):
    model = NESTED[name]().fit(TEXTS, Y)
    if name == "function":  # which cannot be pickled
        monkeypatch.setattr(joblib, "load", lambda path: model)
        monkeypatch.setattr(joblib, "dump", lambda model, path: path.write_bytes(b"model"))
    check_same(ask(model, TEXTS.iloc[:20]), model, TEXTS.iloc[:20])


class Broken(Around):
    """An encoder that raises where its categories are read."""

    @property
    def categories_(self):
        raise ValueError("no categories")


def test_model_whose_types_cannot_be_read_leaves_a_note(ask):
    model = Around().fit(FITTED, Y)
    model.encoder_ = Broken().fit(FITTED, Y)
    answer = ask(model, POOL)
    check_same(answer, model, POOL)
    assert "note: columns have the type that they look like" in answer[2]


def test_frozen_models_and_lists_of_models_are_read_alike(ask):
    model = encoded().fit(TEXTS, Y)
    frozen = FrozenEstimator(model)
    check_same(ask(frozen, TEXTS.iloc[:20]), frozen, TEXTS.iloc[:20])
    both = [model, encoded().fit(TEXTS[::-1], Y)]
    check_same(ask(both, TEXTS.iloc[:20]), both, TEXTS.iloc[:20])


def test_model_that_was_fitted_on_an_array_has_types_by_position(ask):
    columns = make_column_transformer((StandardScaler(), [0]), (OneHotEncoder(), [1]))
    model = make_pipeline(columns, LogisticRegression(C=10)).fit(TEXTS.to_numpy(dtype=object), Y)
    pool = TEXTS.iloc[:20].assign(id=range(20))[["id", "size", "code"]]
    joined = pool[["size", "code"]].to_numpy(dtype=object)
    code, _, stderr = ask(model, pool)
    assert code == 1
    assert "must have exactly its 2 columns" in stderr
    code, picks, stderr = ask(model, pool.drop(columns="id"))
    assert code == 0, stderr
    assert picks == expected(model, joined)


def test_parquet_columns_are_converted_where_they_mean_the_same(ask):
    of_texts, of_integers = encoded().fit(TEXTS, Y), encoded().fit(FITTED, Y)
    texts, integers = TEXTS.iloc[:20], FITTED.iloc[:20]
    for pool in (texts, integers, integers.astype({"code": "category"})):
        check_same(ask(of_texts, pool, suffix="parquet"), of_texts, texts)
        check_same(ask(of_integers, pool, suffix="parquet"), of_integers, integers)
    with_gap = integers.astype({"code": float})
    with_gap.loc[4, "code"] = np.nan
    meant = texts.astype(object)
    meant.loc[4, "code"] = np.nan
    check_same(ask(of_texts, with_gap, suffix="parquet"), of_texts, meant)
    code, _, stderr = ask(of_integers, texts.replace({"code": "3"}, "?"), suffix="parquet")
    assert code == 1
    assert "column 'code', value '?': must be a number" in stderr


def test_types_of_the_user_are_used_instead(ask):
    model = make_pipeline(
        FunctionTransformer(), Keeper(), encoded()
    ).fit(TEXTS, Y)  # fmt: skip
    pool = TEXTS.iloc[:20]
    check_same(ask(model, pool, "--column-type", "code=text"), model, pool)
    code, _, stderr = ask(model, pool.replace({"code": "2"}, "b"), "--column-type", "code=number")
    assert code == 1
    assert "value 'b': must be a number, as asked for by --column-type" in stderr
    code, _, stderr = ask(model, pool, "--column-type", "cod=text")
    assert code == 1
    assert "--column-type must name a column of" in stderr


class Keeper(BaseEstimator):
    """A user's own step, which changes nothing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["code"], "--column-type must be NAME=TYPE with a type of text, number, category"),
        (["code=date"], "Got 'code=date'"),
        (["=text"], "Got '=text'"),
        (["a=text", "a=number"], "must give each column one type. Got 'text' and 'number'"),
    ],
)
@pytest.mark.parametrize("command", ["query", "compare"])
def test_types_that_are_none_are_wrong_usage(call, command, options, words):
    files = ("m.skops", "p.csv") if command == "query" else ()
    given = [word for option in options for word in ("--column-type", option)]
    code, stdout, stderr = call(command, *files, *given)
    assert (code, stdout) == (2, "")
    assert words in " ".join(stderr.replace("│", " ").split())


def test_labels_are_of_the_type_of_the_classes(call, tmp_path):
    labels = np.where(Y == "cat", "01", "1")
    model = encoded().fit(FITTED, labels)
    joblib.dump(model, tmp_path / "model.joblib")
    FITTED.assign(label=labels).to_csv(tmp_path / "labeled.csv", index=False)
    POOL.to_csv(tmp_path / "pool.csv", index=False)
    code, stdout, stderr = call(
        "query", tmp_path / "model.joblib", tmp_path / "pool.csv", "--unsafe-pickle",
        "--labeled", tmp_path / "labeled.csv", "--target", "label", "--strategy", "margin",
    )  # fmt: skip
    assert code == 0, stderr
    assert "does not know these labels" not in stderr
    assert stdout == "".join(f"{i}\n" for i in MarginQuery().query(model, POOL, 10))


CATEGORIES = FITTED.assign(
    code=pd.Categorical(as_text(CODE), categories=["two", "four", "one", "three"]),
    other=pd.Categorical(RNG.integers(5, 8, size=N), categories=[7, 5, 6]),
    flag=RNG.random(N) < 0.5,
)
# Rows with some of the categories only, as text in a file.
FEW = CATEGORIES[CATEGORIES["code"].isin(["four", "three"]) & (CATEGORIES["other"] != 7)]


def boosted(name):
    if name == "lightgbm":
        package = pytest.importorskip("lightgbm")
        return package.LGBMClassifier(n_estimators=8, n_jobs=1, min_child_samples=2, verbose=-1)
    package = pytest.importorskip("xgboost", minversion="3.1")
    return package.XGBClassifier(n_estimators=8, n_jobs=1, enable_categorical=True)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("form", ["alone", "pipeline"])
def test_categories_are_those_of_the_fitted_model(ask, name, form, monkeypatch):
    y = (Y == "cat").astype(int)
    model = boosted(name)
    if form == "pipeline":
        scaled = make_column_transformer(
            (StandardScaler(), ["size"]), remainder="passthrough", verbose_feature_names_out=False
        )
        model = make_pipeline(scaled.set_output(transform="pandas"), model)
    model.fit(CATEGORIES, y)
    for pool in (CATEGORIES, FEW):
        check_same(ask(model, pool), model, pool)
    coded_otherwise = FEW.assign(code=FEW["code"].astype(str).astype("category"))
    check_same(ask(model, coded_otherwise, suffix="parquet"), model, FEW)
    whole = expected(model, FEW)
    monkeypatch.setattr("sklearn_ical.pool._pool.MODEL_BLOCK_ROWS", 7)
    with config_context(working_memory=1e-6):
        assert expected(model, FEW) == whole


def test_values_that_are_no_categories_are_left_to_the_model(ask):
    odd = FEW.astype({"code": object, "other": object}).reset_index(drop=True)
    odd.loc[0, "code"], odd.loc[1, "other"] = "five", 9
    model = boosted("lightgbm").fit(CATEGORIES, Y)
    meant = odd.copy()
    for column in ("code", "other"):
        categories = CATEGORIES[column].cat.categories
        known = odd[column].where(odd[column].isin(categories))
        meant[column] = pd.Categorical(known, categories=categories)
    check_same(ask(model, odd), model, meant)
    model = boosted("xgboost").fit(CATEGORIES, Y == "cat")
    code, _, stderr = ask(model, odd)
    assert code == 1
    assert "Found a category not in the training set" in stderr
    assert "Stack trace" not in stderr
    odd.loc[1, "other"] = "nine"
    code, _, stderr = ask(model, odd)
    assert code == 1
    assert "row 1 (counted from 0), column 'other', value 'nine': must be a number" in stderr


def test_blanks_in_names_are_those_of_the_file(ask):
    names = {"size": "the size", "code": "my code"}
    fitted, pool = CATEGORIES.rename(columns=names), FEW.rename(columns=names)
    model = boosted("lightgbm").fit(fitted, Y)
    check_same(ask(model, pool), model, pool)
    code, _, stderr = ask(model, pool.drop(columns="the size"))
    assert code == 1
    assert "Missing: 'the_size'." in stderr


def test_categories_are_in_skops_files_too(call, tmp_path):
    skops_io = pytest.importorskip("skops.io")
    model = boosted("lightgbm").fit(CATEGORIES, Y)
    skops_io.dump(model, tmp_path / "model.skops")
    FEW.to_csv(tmp_path / "pool.csv", index=False)
    types = skops_io.get_untrusted_types(file=tmp_path / "model.skops")
    code, stdout, stderr = call(
        "query", tmp_path / "model.skops", tmp_path / "pool.csv", "--strategy", "margin",
        *(word for name in types for word in ("--trust-type", name)),
    )  # fmt: skip
    assert code == 0, stderr
    assert stdout == "".join(f"{i}\n" for i in MarginQuery().query(model, FEW, 10))


def test_categories_chosen_by_hand_can_be_named(ask):
    model = boosted("lightgbm").fit(CATEGORIES, Y, categorical_feature=["code"])
    named = [word for c in ("code", "other") for word in ("--column-type", f"{c}=category")]
    check_same(ask(model, FEW, *named), model, FEW)


def test_categories_of_catboost_are_texts_matched_by_name(ask):
    catboost = pytest.importorskip("catboost")
    fitted = FITTED.assign(code=[f"0{i}" for i in CODE], other=CODE)
    model = catboost.CatBoostClassifier(
        iterations=5, cat_features=["code", "other"], verbose=0, allow_writing_files=False
    ).fit(fitted, Y)
    pool = fitted.iloc[:20]
    check_same(ask(model, pool[["other", "code", "size"]]), model, pool)
    gap = pool.astype({"code": object})
    gap.loc[4, "code"] = np.nan
    code, _, stderr = ask(model, gap)
    assert code == 1
    assert "row 4 (counted from 0), column 'code', value '': must be a text" in stderr
    check_same(ask(model, gap, "--column-type", "code=text"), model, gap.fillna({"code": ""}))


def test_columns_of_a_saved_catboost_model_without_names(ask):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False)
    model.fit(FITTED.to_numpy(), Y)
    code, picks, stderr = ask(model, POOL)
    assert code == 0, stderr
    assert picks == expected(model, POOL.to_numpy())


@pytest.mark.parametrize("wrapped", [False, True])
def test_rows_of_a_model_of_texts_are_texts(ask, wrapped):
    texts = np.array(["1 02", "True 1", "02", "na"])[CODE - 1]
    model = make_pipeline(TfidfVectorizer(token_pattern=r"\w+"), LogisticRegression())
    model = CalibratedClassifierCV(model, cv=2) if wrapped else model
    model.fit(texts, Y)
    pool = ["1", "02", "", "2"]
    check_same(ask(model, pd.DataFrame({"text": pool})), model, pool)
    code, _, stderr = ask(model, pd.DataFrame({"id": [1], "text": ["1"]}))
    assert code == 1
    assert "Got 2: 'id', 'text'" in stderr


def test_types_of_a_comparison_are_those_of_the_whole_file_or_asked_for(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("a,b,c,y\n1,1,x,1\n02,?,x,0\n,3,y,01\n")
    options = ["a=text", "c=category", "y=text"]
    data = _read(Comparison(data=str(file), target="y", column_type=options))
    assert data.X["a"].tolist() == ["1", "02", data.X["a"][2]]
    assert np.isnan(data.X["a"][2])
    assert data.X["b"].tolist() == ["1", "?", "3"]
    assert data.X["c"].dtype == "category"
    assert data.y.tolist() == ["1", "0", "01"]
    with pytest.raises(CommandError, match=r"row 1 .* column 'b', value '\?': must be a number"):
        _read(Comparison(data=str(file), target="y", column_type=["b=number"]))
    with pytest.raises(CommandError, match=r"--column-type must name a column .* Got 'd'"):
        _read(Comparison(data=str(file), target="y", column_type=["d=number"]))
    with pytest.raises(CommandError, match=r"--column-type needs --data with names of columns"):
        _read(Comparison(column_type=["a=text"]))
