"""Model files: nothing in them runs unless the user says so, and damage is one clear line."""

import os
import pickle
import zipfile

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

pytest.importorskip("typer")
io = pytest.importorskip("skops.io")

from sklearn_ical.cli._errors import CommandError  # noqa: E402
from sklearn_ical.cli._models import read_model  # noqa: E402

X = np.random.default_rng(0).normal(size=(40, 3))
LOGISTIC = LogisticRegression().fit(X, X[:, 0] > 0)
FOREST = RandomForestClassifier(5, random_state=0).fit(X, X[:, 0] > 0)
TREE = "sklearn.tree._tree.Tree"


def read(path, trusted=(), unsafe_pickle=False, arguments=("query",)):
    return read_model(path, trusted=trusted, unsafe_pickle=unsafe_pickle, arguments=arguments)


class Bomb:
    """Make a file when unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_skops_file_of_trusted_types_loads_whatever_its_name(tmp_path):
    for name in ("model.skops", "model.pkl", "model"):
        io.dump(LOGISTIC, tmp_path / name)
        assert (read(tmp_path / name).coef_ == LOGISTIC.coef_).all()


def test_untrusted_type_is_refused_unless_named(tmp_path):
    path = tmp_path / "forest.skops"
    io.dump(FOREST, path)
    with pytest.raises(CommandError, match=TREE):
        read(path, trusted=("some.other.Type",))
    proba = read(path, trusted=("some.other.Type", TREE)).predict_proba(X)
    assert (proba == FOREST.predict_proba(X)).all()


def test_unsafe_pickle_does_not_weaken_skops(tmp_path):
    path = tmp_path / "forest.pkl"
    io.dump(FOREST, path)
    with pytest.raises(CommandError, match=TREE):
        read(path, unsafe_pickle=True)


def test_refusal_puts_the_flags_before_a_double_dash(tmp_path):
    path = tmp_path / "forest.skops"
    io.dump(FOREST, path)
    with pytest.raises(CommandError) as caught:
        read(path, arguments=("query", "-n", "3", "--", "a b.skops", "p.csv"))
    last_line = str(caught.value).splitlines()[-1].strip()
    assert last_line == f"sklearn-ical query -n 3 --trust-type {TREE} -- 'a b.skops' p.csv"


@pytest.mark.parametrize("name", ["m.joblib", "m.pkl", "m.pickle", "m.skops", "m"])
def test_pickle_is_never_loaded_without_the_flag(tmp_path, name):
    made = tmp_path / "made"
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Bomb(made)))
    with pytest.raises(CommandError, match=r"runs the code in it.*skops\.io\.dump.*--unsafe"):
        read(path)
    assert not made.exists()
    read(path, unsafe_pickle=True)
    assert made.is_dir()


def test_pickle_with_a_zip_behind_it_is_never_unpickled(tmp_path):
    made = tmp_path / "made"
    path = tmp_path / "m.skops"
    path.write_bytes(pickle.dumps(Bomb(made)))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(CommandError, match="damaged or not a skops file"):
        read(path, unsafe_pickle=True)
    assert not made.exists()


def test_joblib_file_loads_with_the_flag(tmp_path):
    joblib = pytest.importorskip("joblib")
    path = tmp_path / "forest.joblib"
    joblib.dump(FOREST, path)
    assert (read(path, unsafe_pickle=True).predict_proba(X) == FOREST.predict_proba(X)).all()


def whole(path):
    io.dump(LOGISTIC, path)
    return path.read_bytes()


def other_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "unsafe_pickle", "words"),
    [
        (lambda path: b"", True, "is empty"),
        (lambda path: whole(path)[:-200], True, "is damaged"),
        (lambda path: whole(path).replace(b'"__class__"', b'"__klass__"'), False, "is damaged"),
        (other_zip, True, "not a skops file"),
        (lambda path: b"a,b\n1,2\n", True, "cannot be loaded with joblib"),
        (lambda path: b"a,b\n1,2\n", False, "not a skops file"),
    ],
)
def test_damaged_file_is_one_clear_line(tmp_path, content, unsafe_pickle, words):
    path = tmp_path / "model.skops"
    path.write_bytes(content(path))
    with pytest.raises(CommandError, match=words) as caught:
        read(path, unsafe_pickle=unsafe_pickle)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.skops does not exist"):
        read(tmp_path / "none.skops")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read(tmp_path)
