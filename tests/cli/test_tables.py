"""Data files as tables: what is read, as which types, and what is refused in which words."""

import gzip
import io
import os
import threading

import numpy as np
import pytest
from sklearn.datasets import load_wine

pytest.importorskip("typer")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from sklearn_ical.cli._errors import CommandError  # noqa: E402
from sklearn_ical.cli._tables import read_dataset, read_table  # noqa: E402


@pytest.fixture
def csv(tmp_path):
    """Return a function that makes a csv file of some text."""

    def make(content, name="pool.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return make


def test_csv_columns_have_their_types_and_ids_their_texts(csv):
    path = csv('id,x,t\n007,1.5,red\nNA,2,"a, b"\n,,\n')
    table = read_table(path, id_column="id")
    assert table.ids == ["007", "NA", ""]
    assert list(table.rows.columns) == ["id", "x", "t"]
    assert table.rows["x"].tolist()[:2] == [1.5, 2.0]
    assert np.isnan(table.rows["x"][2])
    assert table.rows["t"].tolist()[:2] == ["red", "a, b"]
    assert table.has_columns


def test_csv_numbers_are_those_a_model_was_fitted_on(csv):
    numbers = np.random.default_rng(0).random(2000)
    path = csv("x\n" + "".join(f"{x!r}\n" for x in numbers.tolist()))
    read = read_table(path).rows["x"].to_numpy()
    assert (read == pd.read_csv(path)["x"].to_numpy()).all()
    np.testing.assert_allclose(read, numbers, rtol=1e-12)


@pytest.mark.parametrize(
    "content",
    [
        "id,x\r\n1,2\r\n3,4\r\n",
        "\ufeffid,x\n1,2\n3,4",
        "\n\nid,x\n\n1,2\n   \n3,4\n\n",
        '"id","x"\n"1","2"\n"3","4"\n',
    ],
    ids=["windows", "bom", "blank-lines", "quotes"],
)
def test_csv_dialects_give_the_same_rows(csv, content):
    table = read_table(csv(content), id_column="id")
    assert table.ids == ["1", "3"]
    assert table.rows.to_dict("list") == {"id": [1, 3], "x": [2, 4]}


def test_csv_quotes_hold_line_breaks_and_long_texts(csv):
    long = "word " * 40_000
    table = read_table(csv(f'id,t\n"a\nb","{long}"\nc,d\n'), id_column="id")
    assert table.ids == ["a\nb", "c"]
    assert table.rows["t"].tolist() == [long, "d"]


def test_csv_column_without_a_name_can_be_the_ids(csv):
    frame = pd.DataFrame({"x": [1, 2]}, index=["007", "008"])
    assert read_table(csv(frame.to_csv()), id_column="Unnamed: 0").ids == ["007", "008"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("a,b,a\n1,2,3\n", r"distinct column names\. Got twice: 'a'"),
        ("a,b\n1,2\n3\n", r"line 3: every line must have the 2 fields of the header\. Got 1"),
        ("a,b\n1,2,3\n", r"line 2: .* Got 3"),
        ('a,b\n1,2\n3,"4\n', "damaged or not a csv file"),
        ("a,b\n1,é\n".encode("latin-1"), "must be text in UTF-8"),
    ],
)
def test_csv_problems_are_one_clear_line(csv, content, words):
    path = csv(content)
    with pytest.raises(CommandError, match=words) as caught:
        read_table(path)
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


def test_missing_id_column_lists_the_columns(csv):
    with pytest.raises(CommandError, match=r"--id-column .*: 'a', 'b'\. Got 'id'"):
        read_table(csv("a,b\n1,2\n"), id_column="id")


def test_gzipped_csv_is_read_and_damage_reported(csv):
    content = gzip.compress(b"x\n" + b"1234567\n" * 1000)
    assert len(read_table(csv(content, "pool.csv.gz")).rows) == 1000
    for damaged in (content[:-20], b"x\n1\n"):
        with pytest.raises((CommandError, OSError), match=r"damaged|[Nn]ot a gzip"):
            read_table(csv(damaged, "pool.csv.gz"))


def test_stdin_is_csv(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"id,x\n007,1\n")))
    table = read_table("-", id_column="id")
    assert (table.name, table.ids, table.rows["x"].tolist()) == ("stdin", ["007"], [1])


def test_named_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("id,x\n007,1\n",))
    writer.start()
    table = read_table(str(path), id_column="id")
    writer.join()
    assert (table.ids, table.rows["x"].tolist()) == (["007"], [1])


def test_parquet_ids_are_exact_where_a_frame_would_have_floats(tmp_path):
    path = tmp_path / "pool.parquet"
    frame = pd.DataFrame({"id": pd.array([2**60 + 1, None], "Int64"), "x": [0.1, 0.2]})
    frame.to_parquet(path)
    table = read_table(str(path), id_column="id")
    assert table.ids == [str(2**60 + 1), ""]
    assert table.rows["x"].tolist() == [0.1, 0.2]


def test_parquet_problems_are_one_clear_line(tmp_path):
    damaged, empty = tmp_path / "damaged.parquet", tmp_path / "empty.parquet"
    damaged.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(CommandError, match="damaged or not a parquet file"):
        read_table(str(damaged))
    pd.DataFrame({"x": []}).to_parquet(empty)
    with pytest.raises(CommandError, match="has no rows"):
        read_table(str(empty))
    with pytest.raises(CommandError, match=r"--id-column .*: 'x'\. Got 'id'"):
        read_table(str(empty), id_column="id")


def test_npy_is_mapped_to_memory(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    table = read_table(str(tmp_path / "x.npy"))
    assert isinstance(table.rows, np.memmap)
    assert not table.rows.flags.writeable
    assert not table.has_columns


def test_npz_takes_the_key_the_only_array_or_x(tmp_path):
    one, two, other = (str(tmp_path / f"{name}.npz") for name in "abc")
    np.savez(one, rows=np.ones((2, 2)))
    np.savez(two, X=np.zeros((3, 2)), rows=np.ones((2, 2)))
    np.savez(other, left=np.zeros((3, 2)), right=np.ones((2, 2)))
    assert read_table(one).rows.shape == (2, 2)
    assert read_table(two).rows.shape == (3, 2)
    assert read_table(two, key="rows").rows.shape == (2, 2)
    for path, key in ((other, None), (one, "X")):
        with pytest.raises(CommandError, match=r"--key must name an array of .*Got"):
            read_table(path, key=key)
    with pytest.raises(CommandError, match="'left', 'right'"):
        read_table(other)


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_arrays_of_objects_are_refused(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    save = np.save if suffix == "npy" else np.savez
    save(path, np.array([{}, {}], dtype=object))
    with pytest.raises(CommandError, match=r"damaged or not a file of plain numpy|unreadable"):
        read_table(str(path))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("damaged.npy", "damaged or not a file of plain numpy"),
        ("empty.npy", "damaged or not a file of plain numpy"),
        ("rows.npy", "has no rows"),
        ("scalar.npy", "has no rows"),
        ("archive.npy", r"must end with \.npy for one array"),
        ("notes.txt", r"must end with one of \.csv"),
    ],
)
def test_array_problems_are_one_clear_line(tmp_path, name, words):
    path = tmp_path / name
    path.write_bytes({"damaged.npy": b"\x93NUMPY..."}.get(name, b""))
    arrays = {"rows.npy": np.empty((0, 2)), "scalar.npy": np.array(1.0)}
    if name in arrays:
        np.save(path, arrays[name])
    if name == "archive.npy":
        with path.open("wb") as file:
            np.savez(file, np.eye(2))
    with pytest.raises(CommandError, match=words):
        read_table(str(path))


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "npy", "npz"])
def test_missing_file_and_folder_are_named(tmp_path, suffix):
    path = tmp_path / f"x.{suffix}"
    with pytest.raises(FileNotFoundError, match=f"{suffix} does not exist"):
        read_table(str(path))
    path.mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_table(str(path))


def test_dataset_of_scikit_learn_has_its_names():
    dataset = read_dataset("wine", None)
    wine = load_wine()
    assert (dataset.X == wine.data).all()
    assert (dataset.y == wine.target).all()
    assert dataset.columns == tuple(wine.feature_names)
    with pytest.raises(CommandError, match=r"leave out --target\. Got 'class'"):
        read_dataset("wine", "class")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_dataset_of_a_frame_splits_off_its_labels(tmp_path, suffix):
    path = str(tmp_path / f"data.{suffix}")
    frame = pd.DataFrame({"a": [1, 2], "kind": ["cat", "dog"], "b": ["x", "y"]})
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    dataset = read_dataset(path, "kind")
    assert dataset.columns == ("a", "b")
    assert dataset.X.to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}
    assert dataset.y.tolist() == ["cat", "dog"]
    assert isinstance(dataset.y, np.ndarray)
    with pytest.raises(CommandError, match="with the labels: 'a', 'kind', 'b'"):
        read_dataset(path, None)
    with pytest.raises(CommandError, match=r"--target .*: 'a', 'kind', 'b'\. Got 'label'"):
        read_dataset(path, "label")


def test_dataset_keeps_labels_that_are_numbers(csv):
    assert read_dataset(csv("a,y\n1,0\n2,1\n"), "y").y.dtype.kind == "i"


def test_dataset_refuses_missing_labels(csv):
    with pytest.raises(CommandError, match=r"Got 2 missing, the first at position 1"):
        read_dataset(csv("a,y\n1,cat\n2,\n3,dog\n4,NA\n"), "y")
    with pytest.raises(CommandError, match="no column besides"):
        read_dataset(csv("y\n1\n"), "y")


def test_dataset_of_arrays_takes_y_or_the_target(tmp_path):
    path = str(tmp_path / "data.npz")
    rows, y, z = np.eye(3), np.arange(3), np.array(["a", "b", "c"])
    np.savez(path, X=rows, y=y, z=z)
    assert (read_dataset(path, None).y == y).all()
    dataset = read_dataset(path, "z")
    assert (dataset.X == rows).all()
    assert (dataset.y == z).all()
    assert dataset.columns is None
    with pytest.raises(CommandError, match=r"--target .*: 'X', 'y', 'z'\. Got 'w'"):
        read_dataset(path, "w")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"rows": np.eye(2), "y": np.arange(2)}, None),
        ({"X": np.eye(3), "y": np.arange(2)}, r"one label for each of its 3 rows.*\(2,\)"),
        ({"X": np.eye(3), "y": np.eye(3)}, r"one label for each of its 3 rows.*\(3, 3\)"),
        ({"y": np.arange(2)}, r"besides 'y'\. Got no other"),
        ({"X": np.ones(3), "y": np.arange(3)}, r"rows and columns\. Got rows of shape \(3,\)"),
        ({"X": np.eye(2), "y": np.array([1, np.nan])}, "Got 1 missing, the first at position 1"),
        (
            {"a": np.eye(2), "b": np.eye(2), "y": np.arange(2)},
            r"rows as X or as the only .* 'y'\. Got 'a', 'b'",
        ),
    ],
)
def test_dataset_of_arrays_is_checked(tmp_path, arrays, words):
    path = str(tmp_path / "data.npz")
    np.savez(path, **arrays)
    if words is None:
        assert read_dataset(path, None).X.shape == (2, 2)
        return
    with pytest.raises(CommandError, match=words):
        read_dataset(path, None)


@pytest.mark.parametrize("source", ["digit", "x.npy", "x.txt", "-"])
def test_dataset_of_unknown_name_lists_names_and_types(source):
    with pytest.raises(CommandError, match=r"digits, iris, wine, breast_cancer.*\.csv.*\.npz"):
        read_dataset(source, "y")
