"""`sklearn-ical compare`, run as a process like a user runs it."""

import csv
import json
import subprocess
import sys
import time

import numpy as np
import pytest

from sklearn_ical._names import STRATEGIES
from sklearn_ical.plotting import COLORS

pytest.importorskip("typer")
pytest.importorskip("rich")
image = pytest.importorskip("matplotlib.image")

TINY = {
    "--rounds": 2,
    "--batch-size": 3,
    "--n-initial": 12,
    "--seeds": 3,
    "--n-estimators": 4,
    "--n-jobs": 1,
}
DEFAULT_STRATEGIES = ["random", "entropy", "margin", "bald", "ical"]
TIMES = ("fit_seconds", "query_seconds")


def flat(options):
    return [str(item) for option in options.items() for item in option]


def rows_of(folder):
    with open(folder / "results.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows, name, **chosen):
    return [float(r[name]) for r in rows if all(r[k] == str(v) for k, v in chosen.items())]


@pytest.fixture(scope="module")
def finished(process, tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "new" / "folder"
    return process("compare", "--out", out, *flat(TINY)), out


def test_compare_ends_well_and_leaves_its_files(finished):
    done, out = finished
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in out.iterdir()) == ["learning_curves.png", "results.csv", "runs"]
    assert len(list((out / "runs").iterdir())) == 15
    last_lines = done.stdout.splitlines()[-2:]
    assert last_lines[0].endswith(f" {out / 'results.csv'}")
    assert last_lines[1].endswith(f" {out / 'learning_curves.png'}")


def test_compare_shows_progress_on_stderr_only(finished):
    done, _ = finished
    for name in DEFAULT_STRATEGIES:
        (line,) = [line for line in done.stderr.splitlines() if line.startswith(name)]
        assert "3/3" in line
    assert "3/3" not in done.stdout


def test_compare_csv_has_one_row_for_each_strategy_seed_and_round(finished):
    rows = rows_of(finished[1])
    assert list(rows[0]) == [
        "strategy", "seed", "round", "n_labeled", "cost", "accuracy", "neg_log_loss", *TIMES,
    ]  # fmt: skip
    assert [(r["strategy"], r["seed"], r["round"], r["n_labeled"]) for r in rows] == [
        (name, str(seed), str(r), str(12 + 3 * r))
        for name in DEFAULT_STRATEGIES
        for seed in range(3)
        for r in range(3)
    ]
    assert all(0 < t for t in column(rows, "fit_seconds"))
    assert column(rows, "query_seconds", round=0) == [0] * 15
    assert all(0 < t for t in column(rows, "query_seconds", round=1))


def test_compare_runs_are_paired(finished):
    rows = rows_of(finished[1])
    for metric in ("accuracy", "neg_log_loss"):
        starts = np.reshape(column(rows, metric, round=0), (5, 3))
        assert (starts == starts[0]).all()
        assert len(set(starts[0])) == 3
    ends = np.reshape(column(rows, "neg_log_loss", round=2), (5, 3))
    assert len(np.unique(ends, axis=0)) > 1


def test_compare_table_follows_from_csv(finished):
    done, out = finished
    rows = rows_of(out)
    for metric in ("accuracy", "neg_log_loss"):
        final, area = {}, {}
        for name in DEFAULT_STRATEGIES:
            curves = np.reshape(column(rows, metric, strategy=name), (3, 3))  # (seeds, rounds)
            final[name] = curves[:, -1]
            area[name] = (curves[:, 0] / 2 + curves[:, 1] + curves[:, 2] / 2) / 2
        for name in DEFAULT_STRATEGIES:
            difference = area[name] - area["random"]
            cells = [(final[name], ""), (area[name], "")]
            cells += [(difference, "+")] if name != "random" else []
            texts = [
                f"{values.mean():{sign}.4f} ± {values.std(ddof=1) / np.sqrt(3):.4f}"
                for values, sign in cells
            ]
            wins, losses = (difference > 0).sum(), (difference < 0).sum()
            counts = f"{wins}/{3 - wins - losses}/{losses}"
            texts += ["-", "-"] if name == "random" else [counts]
            expected = " ".join([metric, name, "3", *texts])
            printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
            assert printed.count(expected) == 1


def test_compare_table_is_plain_and_whole_in_a_pipe(finished):
    done, _ = finished
    assert "\x1b" not in done.stdout
    assert "…" not in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-2])) <= 110


def test_compare_draws_every_strategy(finished):
    picture = image.imread(finished[1] / "learning_curves.png")[..., :3]
    assert picture.shape == (675, 1650, 3)
    pixels = (255 * picture).round().astype(int)
    for half in (pixels[:, :825], pixels[:, 825:]):
        for color in COLORS[:5]:
            rgb = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
            assert (half == rgb).all(axis=-1).sum() > 50


def test_compare_same_numbers_again_with_other_jobs(process, finished, tmp_path):
    done = process("compare", "--out", tmp_path, *flat(TINY | {"--n-jobs": 2}))
    assert done.returncode == 0, done.stderr
    first, second = (
        [{k: v for k, v in row.items() if k not in TIMES} for row in rows_of(out)]
        for out in (finished[1], tmp_path)
    )
    assert first == second


def test_compare_one_seed_of_some_strategies(call, tmp_path):
    names = " margin,least-confident"
    options = TINY | {"--strategies": names, "--seeds": 1, "--rounds": 1}
    code, stdout, _ = call("compare", "--out", tmp_path, *flat(options))
    assert code == 0
    rows = rows_of(tmp_path)
    names = [r["strategy"] for r in rows]
    assert names == ["margin", "margin", "least-confident", "least-confident"]
    nll = column(rows, "neg_log_loss", strategy="least-confident")
    printed = [" ".join(line.split()) for line in stdout.splitlines()]
    margin = column(rows, "neg_log_loss", strategy="margin")
    final, area = f"{nll[1]:.4f} ± -", f"{sum(nll) / 2:.4f} ± -"
    difference = f"{sum(nll) / 2 - sum(margin) / 2:+.4f} ± -"
    expected = f"neg_log_loss least-confident 1 {final} {area} {difference}"
    assert len([line for line in printed if line.startswith(expected)]) == 1


@pytest.mark.parametrize("name", ["results.csv", "learning_curves.png"])
def test_compare_overwrites_nothing_without_force(call, tmp_path, name):
    (tmp_path / name).write_text("precious")
    arguments = ["compare", "--out", tmp_path, *flat(TINY | {"--strategies": "random"})]
    code, stdout, stderr = call(*arguments)
    assert code == 1
    assert f"{tmp_path / name} exists. Pass --force" in stderr
    assert stdout == ""
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "precious"
    code, _, _ = call(*arguments, "--force")
    assert code == 0
    assert len(rows_of(tmp_path)) == 9
    assert (tmp_path / "learning_curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"--strategies": "coreset"}, ["ambiguous", "'bayesian-coreset'", "'core-set'"]),
        ({"--strategies": "random,foo"}, ["--strategies", "'foo'", *STRATEGIES]),
        ({"--strategies": ""}, ["--strategies", "''"]),
        ({"--strategies": "margin,random,margin"}, ["--strategies", "only once"]),
        ({"--estimator": "svm"}, ["--estimator", "'svm'", "'knn'"]),
        ({"--estimator": "knn", "--n-initial": 4}, ["--n-initial", "at least 5", "Got 4"]),
        ({"--scoring": "accuracy,acuracy"}, ["--scoring", "'acuracy'"]),
        ({"--budget": 11}, ["--budget", "12 initial labels", "Got 11"]),
        ({"--initial": "even"}, ["--initial", "'even'"]),
        ({"--patience": 0}, ["--patience"]),
        ({"--cv": 1}, ["--cv"]),
        ({"--test-size": 1}, ["--test-size"]),
        ({"--rounds": 100, "--batch-size": 20}, ["--rounds 100", "--batch-size", "1347", "2012"]),
        ({"--n-initial": 1342}, ["--n-initial 1342", "1347", "1348"]),
        ({"--rounds": 0}, ["--rounds"]),
        ({"--batch-size": "many"}, ["--batch-size"]),
        ({"--seeds": 0}, ["--seeds"]),
        ({"--n-jobs": 0}, ["--n-jobs", "Got 0"]),
        ({"--color": "red"}, ["--color"]),
    ],
)
def test_compare_refuses_wrong_options(call, tmp_path, changed, words):
    code, stdout, stderr = call("compare", "--out", tmp_path, *flat(TINY | changed))
    assert code == 2
    assert stdout == ""
    message = " ".join(stderr.replace("│", " ").split())
    for word in words:
        assert word in message
    assert list(tmp_path.iterdir()) == []


def test_compare_says_when_folder_cannot_be_made(call, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, stderr = call("compare", "--out", tmp_path / "file" / "folder", *flat(TINY))
    assert code == 1
    assert stderr.startswith("sklearn-ical: ")
    assert str(tmp_path / "file") in stderr


def test_compare_help_documents_options_and_columns(call):
    code, stdout, _ = call("compare", "--help")
    assert code == 0
    for option in (*TINY, "--strategies", "--out", "--force"):
        assert f" {option} " in stdout
    text = " ".join(stdout.split())
    assert "strategy, seed, round, n_labeled, cost, the scores" in text


# Data of one's own


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Return a csv with numbers, texts, gaps, costs and a text label."""
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=150)
    lines = ["size,color,minutes,kind"]
    for k in label:
        size = "" if rng.random() < 0.05 else f"{k + rng.normal(scale=0.5):.3f}"
        color = ("red", "green", "blue")[(k + (rng.random() < 0.3)) % 3]
        lines.append(f"{size},{color},{1 + 4 * (k == 2)},{('ant', 'bee', 'wasp')[k]}")
    path = tmp_path_factory.mktemp("data") / "mixed.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


SMALL = {"--rounds": 3, "--batch-size": 4, "--n-initial": 9, "--seeds": 2, "--n-jobs": 1}


@pytest.mark.parametrize("estimator", ["forest", "logistic", "knn"])
def test_compare_takes_mixed_columns_and_text_labels(call, mixed, tmp_path, estimator):
    options = SMALL | {"--data": mixed, "--target": "kind", "--estimator": estimator}
    code, stdout, stderr = call("compare", "--out", tmp_path, *flat(options))
    assert code == 0, stderr
    rows = rows_of(tmp_path)
    names = DEFAULT_STRATEGIES if estimator == "forest" else DEFAULT_STRATEGIES[:3]
    assert [r["strategy"] for r in rows[::8]] == names
    assert min(column(rows, "accuracy", round=3)) > 0.5
    assert "accuracy" in stdout


@pytest.mark.parametrize("estimator", ["logistic", "knn"])
def test_compare_refits_estimators_without_draws(call, mixed, tmp_path, estimator):
    options = SMALL | {"--data": mixed, "--target": "kind", "--estimator": estimator}
    options |= {"--strategies": "random,bald,ical", "--rounds": 1, "--seeds": 1}
    code, _, stderr = call("compare", "--out", tmp_path, *flat(options))
    assert code == 0, stderr
    assert [r["strategy"] for r in rows_of(tmp_path)] == ["random"] * 2 + ["bald"] * 2 + [
        "ical"
    ] * 2
    texts = [path.read_text() for path in (tmp_path / "runs").iterdir()]
    records = [[json.loads(line) for line in text.splitlines()] for text in texts]
    bought = {tuple(r["label"]["position"] for r in run if "label" in r) for run in records}
    assert len(bought) == 3


def test_compare_takes_every_kind_of_file(call, mixed, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(mixed)
    numbers = frame[["size", "minutes"]].fillna(0.0)
    frame.to_parquet(tmp_path / "mixed.parquet")
    np.savez(tmp_path / "mixed.npz", X=numbers.to_numpy(), labels=frame["kind"].to_numpy(str))
    numbers.assign(kind=frame["kind"]).to_parquet(tmp_path / "numbers.parquet")
    found = {}
    for data, target in (
        (mixed, "kind"),
        (tmp_path / "mixed.parquet", "kind"),
        (tmp_path / "mixed.npz", "labels"),
        (tmp_path / "numbers.parquet", "kind"),
    ):
        out = tmp_path / f"out-{data.name}"
        options = SMALL | {"--data": data, "--target": target, "--strategies": "margin"}
        code, _, stderr = call("compare", "--out", out, *flat(options))
        assert code == 0, stderr
        found[data.name] = column(rows_of(out), "neg_log_loss")
    assert found["mixed.csv"] == found["mixed.parquet"]
    assert found["mixed.npz"] == found["numbers.parquet"]


@pytest.mark.parametrize(
    ("options", "measured"),
    [
        ({"--target-score": 0.5}, None),
        ({"--patience": 1}, None),
        ({"--stable-predictions": 0.2}, "StablePredictions"),
        ({"--max-uncertainty": 1.0}, "OverallUncertainty"),
    ],
)
def test_compare_stops_by_rule(call, mixed, tmp_path, options, measured):
    base = {k: v for k, v in SMALL.items() if k != "--rounds"}
    base |= {"--data": mixed, "--target": "kind", "--strategies": "margin"}
    code, _, stderr = call("compare", "--out", tmp_path, *flat(base | options))
    assert code == 0, stderr
    rows = rows_of(tmp_path)
    for seed in range(2):
        n_labeled = column(rows, "n_labeled", seed=seed)
        assert n_labeled[-1] < 112  # of the pool
        scores = column(rows, "accuracy", seed=seed)
        if "--target-score" in options:
            assert [score >= 0.5 for score in scores] == [False] * (len(scores) - 1) + [True]
        if "--patience" in options:
            assert scores[-1] <= max(scores[:-1])
    assert (measured is None) or measured in rows[0]


def test_compare_keeps_to_the_budget_of_costs(call, mixed, tmp_path):
    options = {k: v for k, v in SMALL.items() if k != "--rounds"}
    options |= {"--data": mixed, "--target": "kind", "--cost-column": "minutes", "--budget": 60}
    options |= {"--n-estimators": 5}
    code, _, stderr = call("compare", "--out", tmp_path, *flat(options))
    assert code == 0, stderr
    rows = rows_of(tmp_path)
    for name in DEFAULT_STRATEGIES:
        for seed in range(2):
            cost = column(rows, "cost", strategy=name, seed=seed)
            assert 55 < cost[-1] <= 60
            assert cost[-1] > column(rows, "n_labeled", strategy=name, seed=seed)[-1]
    free = tmp_path / "free"
    del options["--cost-column"]
    code, _, stderr = call("compare", "--out", free, *flat(options | {"--strategies": "margin"}))
    assert code == 0, stderr
    assert column(rows_of(free), "n_labeled", seed=0)[-1] == 60


def test_compare_options_of_scores_and_start(call, mixed, tmp_path):
    options = SMALL | {
        "--data": mixed, "--target": "kind", "--strategies": "random", "--cv": 3,
        "--scoring": "f1_macro", "--initial": "random", "--n-estimators": 5,
    }  # fmt: skip
    code, _, stderr = call("compare", "--out", tmp_path / "cv", *flat(options))
    assert code == 0, stderr
    assert "f1_macro" in rows_of(tmp_path / "cv")[0]
    del options["--cv"]
    for size in (0.1, 0.5):
        out = tmp_path / str(size)
        code, _, stderr = call("compare", "--out", out, *flat(options | {"--test-size": size}))
        assert code == 0, stderr
    assert rows_of(tmp_path / "0.1") != rows_of(tmp_path / "0.5")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"--data": "nowhere.csv", "--target": "kind"}, ["nowhere.csv"]),
        ({"--data": "digit"}, ["digits, iris", "'digit'"]),
        ({"--target": None}, ["--target", "'kind'"]),
        ({"--target": "sort"}, ["--target", "'kind'", "'sort'"]),
        ({"--cost-column": "hours"}, ["--cost-column", "'minutes'", "'hours'"]),
        ({"--cost-column": "color"}, ["--cost-column color", "numbers"]),
        ({"--target": "size"}, ["label in every row"]),
    ],
)
def test_compare_says_what_is_wrong_with_the_data(call, mixed, tmp_path, options, words):
    given = {"--data": mixed, "--target": "kind"} | SMALL | options
    given = {k: v for k, v in given.items() if v is not None}
    code, stdout, stderr = call("compare", "--out", tmp_path / "out", *flat(given))
    assert (code, stdout) == (1, "")
    for word in words:
        assert word in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "out").exists()


def test_compare_keeps_text_labels_and_leaves_columns_out(call, tmp_path):
    rng = np.random.default_rng(0)
    kinds = ("01", "1", "2")
    lines = ["id,size,label"] + [
        f"{i},{kind + rng.normal(scale=0.3):.3f},{kinds[kind]}"
        for i, kind in enumerate(rng.integers(3, size=90))
    ]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    options = SMALL | {
        "--data": tmp_path / "data.csv", "--target": "label", "--strategies": "margin",
    }  # fmt: skip
    out = tmp_path / "out"
    code, _, stderr = call("compare", "--out", out, *flat(options), "--ignore-column", "id")
    assert code == 0, stderr
    (checkpoint,) = (out / "runs").glob("margin-seed0.jsonl")
    header, *events = map(json.loads, checkpoint.read_text().splitlines())
    assert header["X"]["columns"] == ["size"]
    assert {e["label"]["label"] for e in events if "label" in e} == set(kinds)
    other = tmp_path / "other"
    code, _, stderr = call("compare", "--out", other, *flat(options), "--ignore-column", "ID")
    assert code == 1
    assert "--ignore-column must name a column of --data: 'id', 'size'. Got 'ID'." in stderr


def test_compare_refuses_labels_with_fractions(call, tmp_path):
    lines = ["a,b", *(f"{i},{i / 7:.3f}" for i in range(30))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    code, _, stderr = call(
        "compare", "--data", tmp_path / "data.csv", "--target", "b", "--out", tmp_path / "o"
    )
    assert code == 1
    assert "labels must be classes" in stderr


def test_compare_resumes_data_with_gaps(call, mixed, tmp_path):
    options = SMALL | {"--data": mixed, "--target": "kind", "--strategies": "margin"}
    assert call("compare", "--out", tmp_path, *flat(options))[0] == 0
    first = (tmp_path / "results.csv").read_bytes()
    (tmp_path / "results.csv").unlink()
    (tmp_path / "learning_curves.png").unlink()
    code, _, stderr = call("compare", "--out", tmp_path, *flat(options), "--resume")
    assert code == 0, stderr
    assert (tmp_path / "results.csv").read_bytes() == first


def test_compare_says_when_the_budget_does_not_cover_the_start(call, mixed, tmp_path):
    options = {"--data": mixed, "--target": "kind", "--cost-column": "minutes", "--budget": 1}
    code, stdout, stderr = call("compare", "--out", tmp_path / "out", *flat(options))
    assert (code, stdout) == (1, "")
    assert "budget must cover the 20 initial labels" in stderr
    assert "Traceback" not in stderr


# Resuming


def test_compare_killed_resumes_to_the_same_numbers(process, tmp_path):
    options = TINY | {
        "--data": "iris",
        "--strategies": "margin,bald",
        "--rounds": 6,
        "--n-jobs": 2,
    }
    arguments = ["compare", *flat(options)]
    assert process(*arguments, "--out", tmp_path / "whole").returncode == 0
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "sklearn_ical.cli", *arguments, "--out", str(out)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list(out.glob("runs/*.jsonl"))) < 3:
        assert running.poll() is None
        time.sleep(0.01)
    running.kill()
    running.wait()
    assert not (out / "results.csv").exists()
    done = process(*arguments, "--out", out)
    assert done.returncode == 1
    assert "Pass --resume to go on with it, --force to start again" in done.stderr
    done = process(*arguments, "--out", out, "--resume")
    assert done.returncode == 0, done.stderr
    first, second = (
        [{k: v for k, v in row.items() if k not in TIMES} for row in rows_of(folder)]
        for folder in (tmp_path / "whole", out)
    )
    assert first == second


def test_compare_resumes_nothing_else_and_starts_anew_by_force(call, tmp_path):
    options = TINY | {"--data": "iris", "--strategies": "margin", "--n-initial": 6}
    arguments = ("compare", "--out", tmp_path)
    assert call(*arguments, *flat(options))[0] == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    code, _, stderr = call(*arguments, *flat(options), "--resume")
    assert (code, "results.csv exists. Pass --force" in stderr) == (1, True)
    assert "Pass --force beside --resume" in stderr
    changed = options | {"--batch-size": 4}
    code, _, stderr = call(*arguments, *flat(changed), "--resume", "--force")
    assert code == 1
    assert "batch_size is 3 there and 4 here" in stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    longer = options | {"--rounds": 3}
    assert call(*arguments, *flat(longer), "--resume", "--force")[0] == 0
    assert len(rows_of(tmp_path)) == 12
    assert call(*arguments, *flat(changed), "--force")[0] == 0
    assert column(rows_of(tmp_path), "n_labeled", seed=0) == [6, 10, 14]


def test_compare_notes_a_failed_run_and_keeps_the_others(call, tmp_path, monkeypatch):
    def fail(self, *arguments, **options):
        raise FloatingPointError("bad luck")

    monkeypatch.setattr("sklearn_ical.BALDQuery.query", fail)
    options = TINY | {"--data": "iris", "--strategies": "random,bald", "--n-initial": 6}
    code, stdout, stderr = call("compare", "--out", tmp_path, *flat(options))
    assert code == 1
    assert "3 of 6 runs failed" in stderr
    assert "bad luck" in stderr
    assert {row["strategy"] for row in rows_of(tmp_path)} == {"random"}
    assert "random" in stdout
