"""The code of the README, the user guide and the gallery runs and prints what it says."""

import doctest
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs" / "user_guide"
PAGES = sorted(GUIDE.glob("*.rst"))
SCRIPTS = sorted(GUIDE.glob("*.py"))
FENCED = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def fenced_blocks(markdown: str) -> str:
    """Return the python blocks of a Markdown text as one program, at their own line numbers."""
    program = ""
    for block in FENCED.finditer(markdown):
        line = markdown.count("\n", 0, block.start(1))
        program += "\n" * (line - program.count("\n")) + block[1]
    return program


def test_fenced_blocks_keeps_order_and_line_numbers() -> None:
    text = "a\n```python\nx = 1\n```\n\n```bash\nno\n```\n```python\ny = x\n```\n"
    assert fenced_blocks(text) == "\n\nx = 1\n\n\n\n\n\n\ny = x\n"


@pytest.fixture
def data_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with the file that the README speaks of: IDs, text, gaps in the labels."""
    rng = np.random.default_rng(0)
    lines = ["id,size,color,label"]
    for i, kind in enumerate(rng.integers(3, size=200)):
        color = ("red", "green", "blue")[rng.integers(3)]
        label = ("ant", "bee", "wasp")[kind] if i < 60 else ""
        lines.append(f"{i:04d},{kind + rng.normal(scale=0.7):.3f},{color},{label}")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_readme_code_runs(data_csv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for package in ("pandas", "skops", "torch", "skorch"):
        pytest.importorskip(package)
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    program = fenced_blocks(text)
    assert "ICALQuery" in program
    exec(compile(program, path, "exec"), {"__name__": "readme"})
    assert "n_rounds: 5 rounds are done" in capsys.readouterr().out
    # The command that follows is refused with the one to run instead, which answers.
    (command,) = re.findall(r"^\.venv/bin/sklearn-ical (query .*)$", text, re.MULTILINE)

    def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sklearn_ical.cli", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    refused = run(shlex.split(command))
    assert (refused.returncode, refused.stdout) == (1, "")
    printed = shlex.split(refused.stderr.splitlines()[-1])
    assert printed[0] == "sklearn-ical"
    answered = run(printed[1:])
    assert answered.returncode == 0, answered.stderr
    rows = [line.split("\t") for line in answered.stdout.splitlines()]
    assert len(rows) == len({position for position, _ in rows}) == 20
    assert all(name == f"{60 + int(position):04d}" for position, name in rows)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_guide_page_prints_what_it_shows(path: Path) -> None:
    if ">>> import torch" in path.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    result = doctest.testfile(str(path), module_relative=False, optionflags=OPTIONS)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_guide_page_holds_no_code_that_is_not_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"^\.\. code-block:: (.*)$", text, re.MULTILINE)) <= {"bash", "text"}
    shown = set(re.findall(r"^\.\. literalinclude:: (.*)$", text, re.MULTILINE))
    assert shown <= {script.name for script in SCRIPTS}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_guide_script_runs(path: Path) -> None:
    # In a process of its own: classes are pickled as a user's are, what is registered is forgotten.
    result = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "name", ["plot_first_batch.py", "plot_batch_strategies.py", "plot_ical_family.py"]
)
def test_gallery_example_draws_the_picks_of_each_strategy(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    names = runpy.run_path(str(ROOT / "examples" / name))
    try:
        figure, picks = names["figure"], names["picks"]
        axes = figure.axes[-len(picks) :]
        assert [ax.get_title().split(":")[0] for ax in axes] == list(picks)
        for ax, indices in zip(axes, picks.values(), strict=True):
            assert len(set(indices.tolist())) == 10
            np.testing.assert_array_equal(
                ax.collections[-1].get_offsets(), names["X_pool"][indices]
            )
        figure.canvas.draw()
    finally:
        pyplot.close("all")


def test_simulator_tells_a_good_strategy_from_chance(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = ROOT / "examples" / "benchmarks" / "simulator.py"
    options = ["--seeds", "2", "--truths", "30", "--only", "Random", "LogDet", "--rst"]
    monkeypatch.setattr(sys, "argv", [str(script), *options])
    runpy.run_path(str(script), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    table = dict(re.findall(r'"(\w+)", (\d\.\d+) ± ', line)[0] for line in lines if "±" in line)
    assert float(table["LogDet"]) < 0.7 * float(table["Random"])
