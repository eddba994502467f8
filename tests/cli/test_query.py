"""`sklearn-ical query`: from a model file and a pool file to the rows that the library picks."""

import csv
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_ical import (
    BALDQuery,
    ICALQuery,
    LeastConfidentQuery,
    MarginQuery,
    MaxEntropyQuery,
    RandomQuery,
)

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
skops_io = pytest.importorskip("skops.io")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + X[:, 1] > 0, "cat", "dog")
POOL = RNG.normal(size=(40, 3))
FRAME = pd.DataFrame(POOL, columns=["a", "b", "c"])
COLORS = np.array(["red", "green"])
TREE = ("--trust-type", "sklearn.tree._tree.Tree")
FOREST = RandomForestClassifier(15, min_samples_leaf=3, random_state=0).fit(X, Y)
NAMED = LogisticRegression().fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
UNNAMED = LogisticRegression().fit(X, Y)


def mixed(rows):
    return pd.DataFrame(
        {"size": rows[:, 0], "color": COLORS[(rows[:, 1] > 0).astype(int)], "age": rows[:, 2]}
    )


PIPELINE = make_pipeline(
    make_column_transformer((StandardScaler(), ["size", "age"]), (OneHotEncoder(), ["color"])),
    LogisticRegression(),
).fit(mixed(X), Y)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder of models and pools; it is only read."""
    folder = tmp_path_factory.mktemp("files")
    skops_io.dump(FOREST, folder / "forest.skops")
    skops_io.dump(NAMED, folder / "named.skops")
    skops_io.dump(UNNAMED, folder / "unnamed.skops")
    skops_io.dump(PIPELINE, folder / "pipeline.skops")
    joblib.dump(FOREST, folder / "forest.joblib")
    np.save(folder / "pool.npy", POOL)
    np.savez(folder / "pool.npz", X=POOL, half=POOL[:20])
    FRAME.to_parquet(folder / "pool.parquet")
    FRAME.to_csv(folder / "pool.csv", index=False)
    full = FRAME[["c", "a", "b"]].assign(
        label="", id=[f"{i:03}" for i in range(40)], cost=np.arange(1, 41)
    )
    full.to_csv(folder / "full.csv", index=False)
    return folder


def lines(positions):
    return "".join(f"{position}\n" for position in positions)


def said(stderr):
    """Return the messages on stderr, without the lines of progress."""
    return [line for line in stderr.splitlines() if line.startswith("sklearn-ical: ")]


def test_forest_is_refused_with_a_command_that_works(process, tmp_path):
    folder = tmp_path / "the user's files"
    folder.mkdir()
    model, pool = folder / "my forest.skops", folder / "pool.csv"
    skops_io.dump(FOREST, model)
    FRAME.assign(**{"the id": [f"{i:03}" for i in range(40)]}).to_csv(pool, index=False)
    options = ("-n", 4, "--strategy", "ical", "--id-column", "the id", "--seed", 7)
    refused = process("query", model, pool, *options)
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert "Traceback" not in refused.stderr
    assert "\n    sklearn.tree._tree.Tree\n" in refused.stderr
    assert "people you trust" in " ".join(refused.stderr.split())
    (command,) = [
        line for line in refused.stderr.splitlines() if line.startswith("    sklearn-ical query ")
    ]
    name, *arguments = shlex.split(command)
    assert name == "sklearn-ical"
    assert arguments == ["query", str(model), str(pool), *map(str, options), *TREE]
    done = process(*arguments)
    assert done.returncode == 0, done.stderr
    # The forest has no column names: the csv without its IDs are its columns.
    expected = ICALQuery(random_state=7).query(FOREST, POOL, batch_size=4)
    assert done.stdout == "".join(f"{i}\t{i:03}\n" for i in expected)


def test_mixed_csv_through_a_pipe_to_a_pipeline(process, files):
    pool = mixed(POOL)[["color", "age", "size"]].assign(name="x", label="")
    # Which types skops trusts depends on its version.
    types = skops_io.get_untrusted_types(file=files / "pipeline.skops")
    done = process(
        "query", files / "pipeline.skops", "-", "-n", 5, "--strategy", "margin",
        *(word for name in types for word in ("--trust-type", name)),
        input=pool.to_csv(index=False),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == lines(MarginQuery().query(PIPELINE, mixed(POOL), batch_size=5))
    (message,) = said(done.stderr)
    assert message.endswith("does not use these columns of stdin: 'name', 'label'.")


def test_model_without_draws_is_refitted_on_the_labeled_rows(call, files, tmp_path):
    labeled = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=Y, id="x")
    blank = FRAME.assign(label=None, id="y")
    pd.concat([labeled, blank]).to_csv(tmp_path / "data.csv", index=False)
    named = ("--labeled", tmp_path / "data.csv", "--target", "label", "--id-column", "id")
    code, stdout, stderr = call(
        "query", files / "named.skops", files / "full.csv", "--strategy", "bald", "-n", 5, *named
    )
    assert code == 0, stderr
    given = {"X_labeled": labeled[["a", "b", "c"]], "y_labeled": Y}
    expected = BALDQuery(random_state=0).query(NAMED, FRAME, batch_size=5, **given)
    assert stdout == "".join(f"{i}\t{i:03}\n" for i in expected)


def test_labels_that_the_model_does_not_know_are_noted(call, files, tmp_path):
    labeled = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=np.where(Y == "cat", "cow", Y))
    labeled.to_csv(tmp_path / "data.csv", index=False)
    named = ("--labeled", tmp_path / "data.csv", "--target", "label", "--strategy", "bald")
    code, _, stderr = call("query", files / "named.skops", files / "pool.csv", *named)
    assert code == 0, stderr
    (message,) = said(stderr)
    assert message.endswith(f"does not know these labels of {tmp_path / 'data.csv'}: 'cow'.")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "label"), "--target needs --labeled"),
        (("--labeled", "{files}/full.csv"), "--target must name the column"),
        (("--labeled", "{files}/full.csv", "--target", "label"), "must have a label in one row"),
        (("--labeled", "{files}/none.csv", "--target", "label"), "none.csv does not exist"),
        (("--labeled", "{files}/pool.csv", "--target", "a"), "Missing: 'a'"),
    ],
)
def test_labeled_rows_that_cannot_be_used_are_named(call, files, options, words):
    options = [option.format(files=files) for option in options]
    code, stdout, stderr = call(
        "query", files / "named.skops", files / "pool.csv", "--strategy", "bald", *options
    )
    assert code in (1, 2)
    assert stdout == ""
    assert words in " ".join(stderr.replace("│", " ").split())


def test_progress_is_on_stderr_alone(process, files):
    done = process(
        "query", files / "named.skops", files / "pool.parquet", "--strategy", "entropy", "-n", 3
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == lines(MaxEntropyQuery().query(NAMED, FRAME, batch_size=3))
    for step in ("Reading the model", "Reading the pool", "Choosing rows"):
        assert step in done.stderr
    assert said(done.stderr) == []


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("random", RandomQuery),
        ("entropy", MaxEntropyQuery),
        ("margin", MarginQuery),
        ("least-confident", LeastConfidentQuery),
        ("bald", BALDQuery),
        ("ical", ICALQuery),
    ],
)
def test_csv_and_json_have_the_utilities_in_full(call, files, name, strategy):
    positions, rows = strategy(random_state=3).query(
        FOREST, POOL, batch_size=6, return_utilities=True
    )
    expected = [(int(p), float(rows[t, p])) for t, p in enumerate(positions)]
    options = ("-n", 6, "--strategy", name, "--seed", 3, *TREE)
    arguments = ("query", files / "forest.skops", files / "pool.npy", *options)
    code, stdout, _ = call(*arguments, "--format", "csv")
    assert code == 0
    header, *found = csv.reader(io.StringIO(stdout))
    assert header == ["position", "utility"]
    assert [(int(p), float(u)) for p, u in found] == expected
    assert [u for _, u in found] == [repr(u) for _, u in expected]
    code, stdout, _ = call(*arguments, "--format", "json")
    assert code == 0
    assert json.loads(stdout) == [{"position": p, "utility": u} for p, u in expected]


def test_ids_are_beside_the_positions_in_each_format(call, files, tmp_path):
    ids = ["007", "NA", 'a "b", c', "é", "", *(str(i) for i in range(35))]
    pool = tmp_path / "pool.csv"
    FRAME.assign(id=ids).to_csv(pool, index=False)
    arguments = ("query", files / "named.skops", pool, "--strategy", "random", "-n", 40)
    positions = RandomQuery(random_state=0).query(None, POOL, batch_size=40)
    expected = [(int(p), ids[p]) for p in positions]
    _, stdout, _ = call(*arguments, "--id-column", "id")
    assert [tuple(line.split("\t")) for line in stdout.splitlines()] == [
        (str(p), i) for p, i in expected
    ]
    _, stdout, _ = call(*arguments, "--id-column", "id", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(stdout)))
    assert [(int(row["position"]), row["id"]) for row in rows] == expected
    _, stdout, _ = call(*arguments, "--id-column", "id", "--format", "json")
    assert [(r["position"], r["id"]) for r in json.loads(stdout)] == expected


def test_id_of_two_lines_needs_another_format(call, files, tmp_path):
    pool = tmp_path / "pool.csv"
    FRAME.assign(id=["a\nb", *"c" * 39]).to_csv(pool, index=False)
    arguments = ("query", files / "named.skops", pool, "--id-column", "id", "--strategy", "margin")
    code, stdout, stderr = call(*arguments)
    assert (code, stdout) == (1, "")
    assert r"needs --format csv or json. Got 'a\nb' at position 0" in said(stderr)[0]
    code, stdout, _ = call(*arguments, "--format", "json", "-n", 40)
    assert code == 0
    assert "a\nb" in [record["id"] for record in json.loads(stdout)]


def test_id_column_that_is_a_feature_stays_one(call, files):
    arguments = ("query", files / "named.skops", files / "pool.csv", "--strategy", "margin")
    code, stdout, stderr = call(*arguments, "-n", 2, "--id-column", "a")
    assert (code, said(stderr)) == (0, [])
    texts = (files / "pool.csv").read_text().splitlines()[1:]
    expected = MarginQuery().query(NAMED, FRAME, batch_size=2)
    assert stdout == "".join(f"{p}\t{texts[p].split(',')[0]}\n" for p in expected)


def test_columns_are_matched_by_name_and_others_noted(call, files):
    code, stdout, stderr = call(
        "query", files / "named.skops", files / "full.csv", "--strategy", "margin"
    )
    assert code == 0
    assert stdout == lines(MarginQuery().query(NAMED, FRAME, batch_size=10))
    (message,) = said(stderr)
    assert message.startswith("sklearn-ical: note: ")
    assert message.endswith("full.csv: 'label', 'id', 'cost'.")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_missing_columns_are_all_named(call, files, tmp_path, suffix):
    pool = tmp_path / f"pool.{suffix}"
    partial = FRAME[["b"]]
    partial.to_csv(pool, index=False) if suffix == "csv" else partial.to_parquet(pool)
    code, stdout, stderr = call("query", files / "named.skops", pool)
    assert (code, stdout) == (1, "")
    (message,) = said(stderr)
    assert message.endswith("Missing: 'a', 'c'.")


@pytest.mark.parametrize("pool", ["pool.csv", "pool.parquet"])
def test_model_without_names_takes_all_columns_in_order(call, files, pool):
    code, stdout, stderr = call(
        "query", files / "unnamed.skops", files / pool, "--strategy", "margin"
    )
    assert (code, said(stderr)) == (0, [])
    assert stdout == lines(MarginQuery().query(UNNAMED, POOL, batch_size=10))


def test_model_without_names_refuses_other_numbers_of_columns(call, files):
    code, stdout, stderr = call("query", files / "unnamed.skops", files / "full.csv")
    assert (code, stdout) == (1, "")
    assert "exactly its 3 columns" in said(stderr)[0]
    assert "Got 6: 'c', 'a', 'b', 'label', 'id', 'cost'." in said(stderr)[0]


def test_model_with_names_takes_an_array_in_their_order(call, files):
    code, stdout, stderr = call(
        "query", files / "named.skops", files / "pool.npy", "--strategy", "margin"
    )
    assert code == 0
    assert stdout == lines(MarginQuery().query(NAMED, FRAME, batch_size=10))
    (message,) = said(stderr)
    assert "have no names; they are taken in the order of" in message


@pytest.mark.parametrize("model", ["named.skops", "unnamed.skops"])
def test_array_of_another_width_is_refused(call, files, tmp_path, model):
    for shape in ((10, 2), (10,)):
        np.save(tmp_path / "pool.npy", np.zeros(shape))
        code, stdout, stderr = call("query", files / model, tmp_path / "pool.npy")
        assert (code, stdout) == (1, "")
        assert f"must have the 3 columns that {files / model}" in said(stderr)[0]
        assert said(stderr)[0].endswith(f"Got an array of shape {shape}.")


def test_npz_key_names_the_pool(call, files):
    arguments = ("query", files / "unnamed.skops", files / "pool.npz", "--strategy", "margin")
    assert call(*arguments)[1] == lines(MarginQuery().query(UNNAMED, POOL, batch_size=10))
    half = lines(MarginQuery().query(UNNAMED, POOL[:20], batch_size=10))
    assert call(*arguments, "--key", "half")[1] == half
    code, _, stderr = call(*arguments, "--key", "all")
    assert code == 1
    assert said(stderr)[0].endswith(": 'X', 'half'. Got 'all'.")


def test_models_in_a_list_are_a_committee(call, files, tmp_path):
    other = LogisticRegression(C=0.01).fit(FRAME, np.resize(["cat", "dog"], 40))
    skops_io.dump([NAMED, other], tmp_path / "two.skops")
    code, stdout, _ = call(
        "query", tmp_path / "two.skops", files / "full.csv", "--strategy", "bald"
    )
    assert code == 0
    assert stdout == lines(BALDQuery().query([NAMED, other], FRAME, batch_size=10))


def test_more_rows_than_there_are_gives_all_with_a_note(call, files):
    code, stdout, stderr = call(
        "query", files / "named.skops", files / "pool.csv", "-n", 50, "--strategy", "margin"
    )
    assert code == 0
    assert sorted(map(int, stdout.split())) == list(range(40))
    (message,) = said(stderr)
    assert message.startswith("sklearn-ical: note: batch_size=50 is more than the 40 candidates")
    assert "Warning" not in stderr
    assert ".py" not in stderr


def test_equal_utilities_are_one_note(call, files, tmp_path):
    FRAME.loc[[0] * 5].to_csv(tmp_path / "pool.csv", index=False)
    code, stdout, stderr = call(
        "query", files / "named.skops", tmp_path / "pool.csv", "-n", 2, "--strategy", "margin"
    )
    assert (code, stdout) == (0, "0\n1\n")
    (message,) = said(stderr)
    assert message.startswith("sklearn-ical: note: All candidates left have equal utilities")


def test_costs_and_budget_reach_the_strategy(call, files):
    costs = np.arange(1, 41)
    arguments = ("query", files / "named.skops", files / "full.csv", "--strategy", "entropy")
    with_costs = ("--cost-column", "cost")
    code, stdout, stderr = call(*arguments, *with_costs)
    assert code == 0
    strategy = MaxEntropyQuery()
    assert stdout == lines(strategy.query(NAMED, FRAME, 10, costs=costs))
    assert said(stderr)[0].endswith(": 'label', 'id'.")
    code, stdout, _ = call(*arguments, *with_costs, "--budget", 12, "--format", "csv")
    assert code == 0
    frame = pd.read_csv(files / "full.csv")[["a", "b", "c"]]
    positions, rows = strategy.query(
        NAMED, frame, 10, costs=costs, budget=12.0, return_utilities=True
    )
    assert 0 < len(positions) < 10
    expected = [f"{p},{float(rows[t, p])!r}" for t, p in enumerate(positions)]
    assert stdout.splitlines() == ["position,utility", *expected]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("label", "--cost-column must hold numbers only"),
        ("price", "--cost-column must name a column of"),
        ("negative", "Got -1.0 for row 3"),
        ("gap", "Got nan for row 3"),
    ],
)
def test_costs_that_are_none_are_refused(call, files, tmp_path, column, words):
    costs = np.ones(40)
    gap, negative = costs.copy(), costs.copy()
    gap[3], negative[3] = np.nan, -1
    frame = FRAME.assign(label="x", gap=gap, negative=negative)
    frame.to_csv(tmp_path / "pool.csv", index=False)
    code, stdout, stderr = call(
        "query", files / "named.skops", tmp_path / "pool.csv", "--strategy", "margin",
        "--cost-column", column,
    )  # fmt: skip
    assert (code, stdout) == (1, "")
    assert words in said(stderr)[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("m.skops", "pool.csv", "--strategy", "best"), ["--strategy", "'best'", "ical"]),
        (("m.skops", "pool.txt"), ["POOL must end with", ".parquet", "'pool.txt'"]),
        (("m.skops", "pool.csv", "--key", "X"), ["--key", "npz", "pool.csv"]),
        (("m.skops", "pool.npy", "--id-column", "id"), ["--id-column", "csv or parquet"]),
        (("m.skops", "pool.npz", "--cost-column", "c"), ["--cost-column", "csv or parquet"]),
        (("m.skops", "pool.csv", "--budget", "3"), ["--budget needs --cost-column"]),
        (
            ("m.skops", "pool.csv", "--budget", "-1", "--cost-column", "c"),
            ["--budget must be a positive number", "-1.0"],
        ),
        (("m.skops", "pool.csv", "-n", "0"), ["--batch-size"]),
        (("m.skops", "pool.csv", "--format", "xml"), ["--format", "xml"]),
        (("m.skops", "pool.csv", "--seed", "-1"), ["--seed"]),
        (("m.skops",), ["POOL"]),
    ],
)
def test_wrong_usage_ends_with_2_before_any_file_is_read(call, arguments, words):
    code, stdout, stderr = call("query", *arguments)
    assert (code, stdout) == (2, "")
    message = " ".join(stderr.replace("│", " ").split())
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("model", "strategy", "words"),
    [
        ("none.skops", "ical", "none.skops does not exist."),
        ("folder", "ical", "folder is a folder"),
        ("forest.joblib", "ical", "--unsafe-pickle"),
        ("named.skops", "ical", "refitted for them. Add --labeled FILE --target COLUMN"),
        ("unfitted.skops", "margin", "not fitted"),
        ("number.skops", "margin", "int"),
    ],
)
def test_unusable_model_is_one_clear_line(call, files, tmp_path, model, strategy, words):
    skops_io.dump(LogisticRegression(), tmp_path / "unfitted.skops")
    skops_io.dump(3, tmp_path / "number.skops")
    (tmp_path / "folder").mkdir()
    path = files / model if (files / model).exists() else tmp_path / model
    code, stdout, stderr = call("query", path, files / "pool.csv", "--strategy", strategy)
    assert (code, stdout) == (1, "")
    (message,) = said(stderr)
    assert words in message
    assert str(path) in message
    assert "Traceback" not in stderr
    assert stderr.splitlines()[-1] == message


def test_rows_that_the_model_cannot_take_are_one_clear_line(call, files, tmp_path):
    FRAME.assign(b="blue").to_csv(tmp_path / "pool.csv", index=False)
    code, stdout, stderr = call(
        "query", files / "named.skops", tmp_path / "pool.csv", "--strategy", "margin",
        "--column-type", "b=text",
    )  # fmt: skip
    assert (code, stdout) == (1, "")
    (message,) = said(stderr)
    assert message.startswith("sklearn-ical: MarginQuery cannot choose from ")
    assert "'blue'" in message


def test_missing_pool_is_one_clear_line(call, files, tmp_path):
    code, stdout, stderr = call("query", files / "named.skops", tmp_path / "none.csv")
    assert (code, stdout) == (1, "")
    assert said(stderr) == [f"sklearn-ical: {tmp_path / 'none.csv'} does not exist."]


def test_unsafe_pickle_loads_joblib_files(call, files):
    code, stdout, _ = call(
        "query", files / "forest.joblib", files / "pool.npy", "--unsafe-pickle", "-n", 3
    )
    assert code == 0
    assert stdout == lines(ICALQuery(random_state=0).query(FOREST, POOL, batch_size=3))


def test_out_gets_the_same_bytes_and_is_not_overwritten(call, files, tmp_path):
    out = tmp_path / "next.csv"
    arguments = ("query", files / "named.skops", files / "pool.csv", "--strategy", "margin")
    answer = call(*arguments, "--format", "csv")[1]
    code, stdout, _ = call(*arguments, "--format", "csv", "--out", out)
    assert (code, stdout) == (0, "")
    assert out.read_bytes() == answer.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["next.csv"]
    code, _, stderr = call(*arguments, "--out", out)
    assert code == 1
    assert said(stderr) == [
        f"sklearn-ical: {out} exists. Pass --force to overwrite it, or another --out."
    ]
    assert out.read_bytes() == answer.encode()
    assert call(*arguments, "--out", out, "--force")[0] == 0
    assert out.read_text() == lines(MarginQuery().query(NAMED, FRAME, batch_size=10))


@pytest.mark.parametrize("place", ["model.skops", "pool.csv", "folder", "none/next.csv"])
def test_out_spares_what_is_read_and_needs_a_folder(call, files, tmp_path, place):
    model, pool = tmp_path / "model.skops", tmp_path / "pool.csv"
    model.write_bytes((files / "named.skops").read_bytes())
    pool.write_bytes((files / "pool.csv").read_bytes())
    (tmp_path / "folder").mkdir()
    before = {path: path.read_bytes() for path in (model, pool)}
    code, stdout, stderr = call("query", model, pool, "--out", tmp_path / place, "--force")
    assert (code, stdout) == (1, "")
    assert str(tmp_path / place) in said(stderr)[0]
    assert "Reading" not in stderr
    assert {path: path.read_bytes() for path in (model, pool)} == before
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_reader_that_leaves_early_sees_no_traceback(files, tmp_path, unbuffered):
    np.save(tmp_path / "pool.npy", np.zeros((60_000, 3)))
    command = [sys.executable, "-m", "sklearn_ical.cli", "query", str(files / "unnamed.skops")]
    options = [str(tmp_path / "pool.npy"), "-n", "60000", "--strategy", "random"]
    with subprocess.Popen(
        [*command, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    ) as running:
        first = [running.stdout.readline() for _ in range(3)]
        running.stdout.close()
        stderr = running.stderr.read().decode()
    expected = RandomQuery(random_state=0).query(None, np.zeros((60_000, 3)), batch_size=3)
    assert first == [f"{position}\n".encode() for position in expected]
    assert running.returncode == 1
    assert "Traceback" not in stderr
    assert "Exception" not in stderr


def test_closed_stdout_is_one_clear_line(files):
    command = [sys.executable, "-m", "sklearn_ical.cli", "query"]
    arguments = [str(files / "named.skops"), str(files / "pool.csv"), "--strategy", "margin"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command, *arguments],
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 1
    assert said(done.stderr) == ["sklearn-ical: stdout is closed, so the answer has nowhere to go."]
    assert "Traceback" not in done.stderr


def test_json_utilities_that_are_no_numbers_are_null():
    from sklearn_ical.cli._answer import Pick, _json

    picks = [Pick(0, float("nan")), Pick(1, float("-inf"), "é"), Pick(2, 0.5)]
    assert json.loads(_json(picks)) == [
        {"position": 0, "utility": None},
        {"position": 1, "utility": None, "id": "é"},
        {"position": 2, "utility": 0.5},
    ]


def test_files_are_left_as_they_were(call, files):
    before = {path: path.read_bytes() for path in Path(files).iterdir()}
    for pool in ("pool.csv", "pool.npy", "pool.npz", "pool.parquet"):
        code, _, _ = call("query", files / "named.skops", files / pool, "--strategy", "margin")
        assert code == 0
    assert {path: path.read_bytes() for path in Path(files).iterdir()} == before
