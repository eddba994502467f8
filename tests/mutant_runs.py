"""Runs of pytest in forked processes, on copies of a tree that mutants are put into."""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

TIMED_OUT = 124
TOO_SLOW = "too slow to run against mutants"


@dataclass(frozen=True)
class Mutant:
    """One fault: its place, how it is made, and the key that says whether it is in the sample."""

    key: str
    path: str
    line: int
    operator: str
    occurrence: int
    function: int | None

    def source(self, tree: Path) -> str:
        """Return the mutated text of the file."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        text = (tree / self.path).read_text(encoding="utf-8")
        return mutate_code(text, get_operator(self.operator)(), self.occurrence)

    def change(self, tree: Path) -> str:
        """Return the changed lines as ``before -> after``."""
        before = (tree / self.path).read_text(encoding="utf-8").splitlines()
        after = self.source(tree).splitlines()
        while before and after and before[0] == after[0]:
            del before[0], after[0]
        while before and after and before[-1] == after[-1]:
            del before[-1], after[-1]
        return " -> ".join(" ".join(" ".join(lines).split()) for lines in (before, after))


class Recorder:
    """Pytest plugin: note the seconds of every test and the functions that it executes."""

    def __init__(self, tree: Path, out: Path, limit: float) -> None:
        self.tree, self.out, self.limit = f"{tree}{os.sep}", out, limit
        self.tests: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run one test, or skip it when it takes too long."""
        run: set[tuple[str, int]] = set()
        package = self.tree + "sklearn_ical"

        def profile(frame: FrameType, event: str, _: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(package):
                run.add((code.co_filename.removeprefix(self.tree), code.co_firstlineno))

        signal.signal(signal.SIGALRM, lambda *_: pytest.skip(TOO_SLOW))
        signal.setitimer(signal.ITIMER_REAL, self.limit)
        begin = time.perf_counter()
        sys.setprofile(profile)
        yield
        sys.setprofile(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        seconds = time.perf_counter() - begin
        self.tests[item.nodeid] = {"seconds": seconds, "run": sorted(run)}

    def pytest_sessionfinish(self) -> None:
        """Write what was noted."""
        self.out.write_text(json.dumps(self.tests), encoding="utf-8")


class Chosen:
    """Pytest plugin: run the given tests in their order, each within a limit of its own."""

    def __init__(self, plan: dict[str, float]) -> None:
        self.plan = plan

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the other tests out."""
        order = {nodeid: i for i, nodeid in enumerate(self.plan)}
        chosen = [item for item in items if item.nodeid in order]
        items[:] = sorted(chosen, key=lambda item: order[item.nodeid])

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run one test, or end the process when it takes much longer than on the intact tree."""
        signal.signal(signal.SIGALRM, lambda *_: os._exit(TIMED_OUT))
        signal.setitimer(signal.ITIMER_REAL, 10 + 5 * self.plan[item.nodeid])
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)


@dataclass
class Job:
    """One run of pytest, on an intact tree or with one mutant."""

    files: list[str]
    plugin: Any
    seconds: float
    log: Path
    mutant: Mutant | None = None


def start(job: Job, place: Path) -> int:
    """Fork a process that runs pytest on a copy of the tree, and return its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 3
    try:
        os.setsid()
        output = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(place)
        sys.path[:] = [str(place), *(path for path in sys.path if path)]
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]  # those of the copy are meant
        os.environ["PYTHONPATH"] = str(place)
        if job.mutant is not None:
            sys.dont_write_bytecode = True
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        arguments = ["-x", "-q", "--no-header", "-p", "no:cacheprovider"]
        arguments += ["-k", "not torch and not strict", *job.files]
        code = int(pytest.main(arguments, plugins=[job.plugin]))
    finally:
        sys.stdout.flush()
        os._exit(code)


def put_in(mutant: Mutant, base: Path, place: Path) -> None:
    """Write the mutated file into a copy, and remove its compiled form."""
    path = place / mutant.path
    for stale in path.parent.glob(f"__pycache__/{path.stem}.*"):
        stale.unlink()
    path.write_text(mutant.source(base), encoding="utf-8")


def run(
    jobs: list[Job], base: Path, places: list[Path], done: Callable[[Job, int, float], None]
) -> None:
    """Run the jobs, one at a time at every place, and hand each exit status to a function."""
    running: dict[int, tuple[Job, Path, float]] = {}
    free, waiting = list(places), jobs[::-1]
    while waiting or running:
        while free and waiting:
            job, place = waiting.pop(), free.pop()
            if job.mutant is not None:
                put_in(job.mutant, base, place)
            running[start(job, place)] = job, place, time.monotonic()
        time.sleep(0.02)
        for pid, (job, place, begin) in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            seconds = time.monotonic() - begin
            if not ended and seconds < job.seconds:
                continue
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            code = os.waitstatus_to_exitcode(status) if ended else TIMED_OUT
            if not ended:
                os.waitpid(pid, 0)
            del running[pid]
            free.append(place)
            if job.mutant is not None:
                shutil.copy2(base / job.mutant.path, place / job.mutant.path)
            done(job, code, seconds)
