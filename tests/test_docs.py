"""The code of the README, the user guide and the gallery runs and prints what it says."""

import doctest
import os
import re
import runpy
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


def test_readme_code_runs() -> None:
    path = ROOT / "README.md"
    program = fenced_blocks(path.read_text(encoding="utf-8"))
    assert "ICALQuery" in program
    exec(compile(program, path, "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_guide_page_prints_what_it_shows(path: Path) -> None:
    result = doctest.testfile(str(path), module_relative=False, optionflags=OPTIONS)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_guide_page_holds_no_code_that_is_not_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"^\.\. code-block:: (.*)$", text, re.MULTILINE)) <= {"bash", "text"}
    shown = set(re.findall(r"^\.\. literalinclude:: (.*)$", text, re.MULTILINE))
    assert shown <= {script.name for script in SCRIPTS}


@pytest.mark.slow
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


def test_first_batch_example_draws_each_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    names = runpy.run_path(str(ROOT / "examples" / "plot_first_batch.py"))
    try:
        figure, picks = names["figure"], names["picks"]
        assert [ax.get_title().split(":")[0] for ax in figure.axes] == list(picks)
        for ax, indices in zip(figure.axes, picks.values(), strict=True):
            assert len(set(indices.tolist())) == 10
            np.testing.assert_array_equal(
                ax.collections[-1].get_offsets(), names["X_pool"][indices]
            )
        figure.canvas.draw()
    finally:
        pyplot.close("all")
