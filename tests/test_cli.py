"""Tests of the sklearn-ical command, run as a process like a user runs it."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest

from sklearn_ical import __version__, cli
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


def process(*arguments):
    """Run the command as a process of its own, without a terminal."""
    forced = ("COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS")
    environment = {name: value for name, value in os.environ.items() if name not in forced}
    return subprocess.run(
        [sys.executable, "-m", "sklearn_ical.cli", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        env=environment | {"PYTHONIOENCODING": "utf-8"},
    )


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the command in this process; return exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["sklearn-ical", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return run


def rows_of(folder):
    with open(folder / "results.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows, name, **chosen):
    return [float(r[name]) for r in rows if all(r[k] == str(v) for k, v in chosen.items())]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "new" / "folder"
    return process("compare", "--out", out, *flat(TINY)), out


def test_compare_ends_well_and_leaves_two_files(finished):
    done, out = finished
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in out.iterdir()) == ["learning_curves.png", "results.csv"]
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
        "strategy", "seed", "round", "n_labeled", "accuracy", "nll", *TIMES,
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
    for metric in ("accuracy", "nll"):
        starts = np.reshape(column(rows, metric, round=0), (5, 3))
        assert (starts == starts[0]).all()
        assert len(set(starts[0])) == 3
    ends = np.reshape(column(rows, "nll", round=2), (5, 3))
    assert len(np.unique(ends, axis=0)) > 1


def test_compare_table_follows_from_csv(finished):
    done, out = finished
    rows = rows_of(out)
    for metric, title in (("accuracy", "accuracy"), ("nll", "NLL (nats)")):
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
            texts += ["-"] if name == "random" else []
            expected = " ".join([title, name, *texts])
            printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
            assert printed.count(expected) == 1


def test_compare_table_is_plain_and_whole_in_a_pipe(finished):
    done, _ = finished
    assert "\x1b" not in done.stdout
    assert "…" not in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-2])) <= 80


def test_compare_draws_every_strategy(finished):
    picture = image.imread(finished[1] / "learning_curves.png")[..., :3]
    assert picture.shape == (675, 1650, 3)
    pixels = (255 * picture).round().astype(int)
    for half in (pixels[:, :825], pixels[:, 825:]):
        for color in COLORS[:5]:
            rgb = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
            assert (half == rgb).all(axis=-1).sum() > 50


def test_compare_same_numbers_again_with_other_jobs(finished, tmp_path):
    done = process("compare", "--out", tmp_path, *flat(TINY | {"--n-jobs": 2}))
    assert done.returncode == 0, done.stderr
    first, second = (
        [{k: v for k, v in row.items() if k not in TIMES} for row in rows_of(out)]
        for out in (finished[1], tmp_path)
    )
    assert first == second


def test_compare_one_seed_of_some_strategies(call, tmp_path):
    names = " margin,least-confident, margin"
    options = TINY | {"--strategies": names, "--seeds": 1, "--rounds": 1}
    code, stdout, _ = call("compare", "--out", tmp_path, *flat(options))
    assert code == 0
    rows = rows_of(tmp_path)
    names = [r["strategy"] for r in rows]
    assert names == ["margin", "margin", "least-confident", "least-confident"]
    nll = column(rows, "nll", strategy="least-confident")
    printed = [" ".join(line.split()) for line in stdout.splitlines()]
    expected = f"NLL (nats) least-confident {nll[1]:.4f} ± - {sum(nll) / 2:.4f} ± - -"
    assert printed.count(expected) == 1


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
        ({"--strategies": "random,foo"}, ["--strategies", "'foo'", *cli.STRATEGIES]),
        ({"--strategies": ""}, ["--strategies", "''"]),
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


def test_compare_accepts_exactly_the_whole_pool():
    assert cli.Sizes(10, 100, 347, 1, 2, 1).n_initial == 347
    with pytest.raises(ValueError, match=r"1347 rows of the pool\. Got 1348"):
        cli.Sizes(10, 100, 348, 1, 2, 1)


def test_compare_says_when_folder_cannot_be_made(call, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, stderr = call("compare", "--out", tmp_path / "file" / "folder", *flat(TINY))
    assert code == 1
    assert stderr.startswith("sklearn-ical: ")
    assert str(tmp_path / "file") in stderr


def test_write_keeps_the_old_file_when_interrupted(tmp_path, monkeypatch):
    path = tmp_path / "results.csv"
    path.write_text("old")

    def replace(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        cli._write(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_version_is_printed(call):
    assert call("--version") == (0, f"sklearn-ical {__version__}\n", "")


def test_help_documents_options_and_exit_codes(call):
    code, stdout, _ = call("compare", "--help")
    assert code == 0
    for option in (*TINY, "--strategies", "--out", "--force"):
        assert f" {option} " in stdout
    text = " ".join(stdout.split())
    assert "Exit codes: 0 done; 1 failed, or a file is in the way; 2 wrong usage." in text
    assert "strategy, seed, round, n_labeled, accuracy, nll in nats, fit_seconds" in text


@pytest.mark.parametrize("package", ["typer", "rich", "matplotlib"])
def test_main_without_a_package_says_how_to_install(package):
    code = f"import sys; sys.modules[{package!r}] = None\nfrom sklearn_ical.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 1
    assert package in done.stderr
    assert 'pip install "sklearn-ical[cli]"' in done.stderr
    assert "Traceback" not in done.stderr
