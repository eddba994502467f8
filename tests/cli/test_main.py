"""The command as a whole: version, help, exit codes, missing packages, files, the strategies."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest

import sklearn_ical
from sklearn_ical._names import STRATEGIES
from sklearn_ical.cli import PACKAGES

for package in PACKAGES:
    pytest.importorskip(package)

from sklearn_ical.cli import _answer, _files  # noqa: E402
from sklearn_ical.strategies._resolve import build  # noqa: E402

COMMANDS = ("query", "strategies", "compare")
EXIT_CODES = (
    "Exit codes: 0 done; 1 failed, or a file is in the way; 2 wrong usage; 130 interrupted."
)


def test_version_is_printed(call):
    assert call("--version") == (0, f"sklearn-ical {sklearn_ical.__version__}\n", "")


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_every_help_documents_the_exit_codes(call, command):
    code, stdout, _ = call(*command, "--help")
    assert code == 0
    assert EXIT_CODES in " ".join(stdout.split())


def test_help_loads_no_numeric_package():
    heavy = {"numpy", "pandas", "sklearn", "skops", "matplotlib", "pyarrow"}
    code = (
        "import sys; sys.argv = ['sklearn-ical', 'query', '--help']\n"
        "from sklearn_ical.cli import main\n"
        "try:\n    main()\n"
        f"finally:\n    print('loaded:', *sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("package", PACKAGES)
def test_main_without_a_package_says_how_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as ended:
        sklearn_ical.cli.main()
    assert f"needs {package}." in ended.value.code
    assert 'pip install "sklearn-ical[cli]"' in ended.value.code


def test_process_without_a_package_fails_without_traceback():
    code = "import sys; sys.modules['typer'] = None\nfrom sklearn_ical.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 1
    assert done.stderr.startswith("sklearn-ical: the command needs typer.")
    assert "Traceback" not in done.stderr


def test_interrupt_ends_with_130_and_no_traceback(call, monkeypatch, tmp_path):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(_answer, "read_model", interrupted)
    code, stdout, stderr = call("query", tmp_path / "m.skops", tmp_path / "p.csv")
    assert code == 130
    assert stdout == ""
    assert "Traceback" not in stderr


def test_unknown_command_is_wrong_usage(call):
    code, stdout, stderr = call("ask")
    assert code == 2
    assert stdout == ""
    assert "ask" in stderr


def test_write_keeps_the_old_file_when_interrupted(tmp_path, monkeypatch):
    path = tmp_path / "results.csv"
    path.write_text("old")

    def replace(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        _files.write(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_force_spares_what_is_no_regular_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileExistsError, match="not a regular file"):
        _files.check_free(pipe, force=True)


def test_every_public_strategy_has_one_name():
    public = [name for name in sklearn_ical.__all__ if name.endswith("Query")]
    assert sorted(named.class_name for named in STRATEGIES.values()) == sorted(
        set(public) - {"BaseQuery"}
    )


def test_strategies_csv_says_what_the_tags_say(call):
    code, stdout, stderr = call("strategies", "--format", "csv")
    assert (code, stderr) == (0, "")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(stdout))}
    assert list(rows) == list(STRATEGIES)
    for name, row in rows.items():
        strategy = build(name)
        tags = strategy.query_tags()
        assert row["reads"].split() == list(tags.reads)
        assert row["uses"].split() == list(tags.uses)
        assert row["kinds"].split() == list(tags.kinds)
        assert row["min_draws"] == str(tags.min_draws)
        assert row["deterministic"] == str(tags.deterministic)
        assert row["utilities"] == tags.utilities
        assert row["summary"] == strategy.__doc__.splitlines()[0]
    assert rows["bald"]["min_draws"] == "2"
    assert rows["random"]["reads"] == ""
    assert rows["epig"]["uses"] == "reference"


def test_strategies_json_has_the_same_in_types(call):
    code, stdout, _ = call("strategies", "--format", "json")
    assert code == 0
    records = json.loads(stdout)
    assert [record["name"] for record in records] == list(STRATEGIES)
    (ical,) = [record for record in records if record["name"] == "ical"]
    assert ical["reads"] == ["draws"]
    assert ical["uses"] == ["reference"]
    assert ical["kinds"] == ["proba", "label", "value"]
    assert ical["deterministic"] is False
    assert ical["min_draws"] == 2


def test_strategies_table_has_one_line_each(call):
    code, stdout, _ = call("strategies")
    assert code == 0
    lines = [" ".join(line.split()) for line in stdout.splitlines()]
    summary = sklearn_ical.BALDQuery.__doc__.splitlines()[0]
    assert lines.count(f"bald draws proba label value 2 True gain {summary}") == 1
    assert sum(line.split(" ")[0] in STRATEGIES for line in lines) == len(STRATEGIES)
