"""The command as a process of its own and inside the tests' process."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from sklearn_ical import cli


@pytest.fixture(scope="session")
def process() -> Callable[..., Any]:
    """Return a function that runs the command as a process, without a terminal."""
    forced = ("COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS")
    environment = {name: value for name, value in os.environ.items() if name not in forced}

    def run(*arguments: Any, **options: Any) -> Any:
        return subprocess.run(
            [sys.executable, "-m", "sklearn_ical.cli", *map(str, arguments)],
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            env=environment | {"PYTHONIOENCODING": "utf-8"},
            **options,
        )

    return run


@pytest.fixture
def call(monkeypatch: Any, capsys: Any) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the command here: exit code, stdout and stderr."""

    def run(*arguments: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sklearn-ical", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return run
