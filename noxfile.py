"""Sessions that run the tests on the oldest, the pinned and the newest dependencies.

``python -m nox -s oldest`` runs one of them in an environment of its own; what follows ``--``
goes to pytest. ``modal`` tests loops of modAL, ``sweep`` tries every strategy on many small
problems, and ``mutants`` measures the tests themselves.
"""

from pathlib import Path

import nox

ROOT = Path(__file__).parent

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["tests"]


def run_tests(session: nox.Session, *requirements: str) -> None:
    """Install the tree with its test dependencies, show what came, and run pytest."""
    session.install(*requirements, "-e", ".[test]")
    session.run("python", "-m", "pip", "list")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests at the versions of constraints.txt."""
    run_tests(session, "-c", "constraints.txt")


@nox.session
def oldest(session: nox.Session) -> None:
    """Run the tests at the oldest supported versions, those of constraints-oldest.txt."""
    run_tests(session, "-c", "constraints-oldest.txt")


@nox.session
def newest(session: nox.Session) -> None:
    """Run the tests at the newest versions there are; of torch, which is large, the pinned one."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    run_tests(session, "--upgrade", *(pin for pin in pins if pin.startswith("torch==")))


@nox.session
def modal(session: nox.Session) -> None:
    """Run the tests with the real modAL, which works up to scikit-learn 1.7."""
    session.install("modAL-python==0.4.2.1", "scikit-learn<1.8", "-e", ".", "pytest>=8.2")
    session.run("python", "-m", "pip", "list")
    session.run("python", "-m", "pytest", *(session.posargs or ["tests/modal"]))


@nox.session
def sweep(session: nox.Session) -> None:
    """Try every strategy and setting on 200 small problems each; takes most of an hour."""
    session.install("-c", "constraints.txt", "-e", ".[test]")
    session.run("python", "-m", "tests.sweep", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Measure how many small faults in the code that selects the tests notice; takes long."""
    session.install("-c", "constraints.txt", "-e", ".[test]", "cosmic-ray>=8.4")
    session.run("python", "-m", "tests.mutants", *session.posargs)
