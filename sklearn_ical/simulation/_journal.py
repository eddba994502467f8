"""The checkpoint of a simulation: an append-only file of JSON lines, each on disk before the next.

They are written, read and repaired here; the simulation decides when.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from sklearn_ical.exceptions import CheckpointError
from sklearn_ical.simulation._identity import differences
from sklearn_ical.simulation._result import Round, SimulationResult

FORMAT = 1
# Description of each kind of event.
KEYS = {
    "picks": {"positions", "query_seconds"},
    "label": {"position", "label"},
    "round": {"cost", "scores", "measures", "fit_seconds"},
}
_START = b'{"checkpoint": '  # how the first line of every checkpoint begins


class Journal:
    """A run's events: recorded ones are read first, new ones are appended.

    Without a path nothing is written. `header` describes the run, in JSON values; with
    `seed_is_free` its `random_state` is that of the checkpoint, if there is one.
    """

    def __init__(self, path: Any, header: dict[str, Any], *, seed_is_free: bool) -> None:
        self.path = None if path is None else Path(path)
        self.header = {"checkpoint": FORMAT, **json.loads(json.dumps(header))}
        self._seed_is_free = seed_is_free
        self._recorded: list[dict[str, Any]] = []
        self._next = 0
        self._file = -1
        if self.path is not None:
            self._open(self.path)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._file >= 0:
            os.close(self._file)

    def recorded(self, kind: str) -> Any:
        """Return the content of the next recorded event, None when all of them were read."""
        if self._next == len(self._recorded):
            return None
        event = self._recorded[self._next]
        content = event.get(kind) if isinstance(event, dict) else None
        if not isinstance(content, dict) or not KEYS[kind] <= content.keys():
            held = ", ".join(map(repr, event)) if isinstance(event, dict) else repr(event)
            raise CheckpointError(
                f"{self.path} is not a checkpoint of one simulation: line {self._next + 2} should "
                f"hold {kind!r} and holds {held}. Move it away to start again."
            )
        self._next += 1
        return content

    def append(self, kind: str, content: Any) -> None:
        """Write an event and wait until it is on disk."""
        if self._file >= 0:
            write_line(self._file, {kind: content})

    def _open(self, path: Path) -> None:
        try:
            new = not path.exists()
            if not new and not path.is_file() and not path.is_dir():
                raise CheckpointError(f"checkpoint must be a path of a file. Got {path}.")
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint must be a path of a file in a folder that exists. Got {path}: "
                f"{error.strerror}."
            ) from error
        try:
            _lock(self._file, path)
            data = path.read_bytes()
            header, self._recorded, whole = parse(data, path)
            if whole < len(data):  # an incomplete last line
                os.ftruncate(self._file, whole)
            if header is None:
                write_line(self._file, self.header)
                if new:
                    _sync_folder(path.parent)
            else:
                self._compare(header)
        except BaseException:
            os.close(self._file)
            raise

    def _compare(self, theirs: dict[str, Any]) -> None:
        """Raise if the checkpoint was written by another simulation."""
        if self._seed_is_free:
            self.header["random_state"] = theirs.get("random_state")
        different = differences(theirs, self.header)
        if different:
            more = f", and {len(different) - 3} more" if len(different) > 3 else ""
            raise CheckpointError(
                f"checkpoint {self.path} belongs to another simulation: {'; '.join(different[:3])}"
                f"{more}. Pass what it was made with, or another path. "
                "sklearn_ical.simulation.read_checkpoint returns what it holds."
            )


def read_file(path: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the header and the events of a checkpoint, which may be in use."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise CheckpointError(f"No checkpoint at {path}: {error.strerror}.") from error
    header, events, _ = parse(data, path)
    if header is None:
        raise CheckpointError(f"{path} is an empty checkpoint.")
    return header, events


def write_line(file: int, content: dict[str, Any]) -> None:
    """Append one line in one system call, so that a killed process writes all of it or nothing."""
    data = (json.dumps(content) + "\n").encode()
    while data:  # a full disk or a signal may cut a write short
        data = data[os.write(file, data) :]
    os.fsync(file)


def parse(data: bytes, path: Any) -> tuple[dict[str, Any] | None, list[dict[str, Any]], int]:
    """Return the header (None if there is none), the events, and the bytes that they take.

    An incomplete last line is ignored.
    """
    if not (data.startswith(_START) or _START.startswith(data)):
        raise CheckpointError(
            f"checkpoint must be a path of a new file or of a checkpoint. Got {path}, which is a "
            "file of another kind; it was not changed."
        )
    *lines, incomplete = data.split(b"\n")
    events, whole = [], 0
    for number, line in enumerate(lines, start=1):
        try:
            events.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            if number < len(lines) or incomplete:
                raise CheckpointError(
                    f"{path} is damaged: line {number} is not JSON. Cut it off there, or move it "
                    "away to start again."
                ) from error
            break
        whole += len(line) + 1
    return (events[0], events[1:], whole) if events else (None, [], 0)


def _lock(file: int, path: Path) -> None:
    """Raise if another process is writing the file; the lock ends with this process."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return
    patience = time.monotonic() + 2  # the workers of a comparison that was killed end soon
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if time.monotonic() > patience:
                raise CheckpointError(
                    f"checkpoint {path} is in use by another simulation that is still running. "
                    "Wait for it to end, or pass another path."
                ) from error
            time.sleep(0.05)


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable, where folders can be synced."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_checkpoint(path: str | os.PathLike[str]) -> SimulationResult:
    """Return the result in a checkpoint, without its data or estimator.

    Read more in the :ref:`User Guide <checkpoints>`.

    Parameters
    ----------
    path : path
        A checkpoint of :func:`simulate`, finished or not. It is not changed.

    Returns
    -------
    result : SimulationResult
        With an empty `stopped`. Labels after the last whole round are in `pending`, and in
        `positions` and `labels`.

    Raises
    ------
    CheckpointError
        If the file is not a checkpoint, or is damaged.
    """
    header, events = read_file(path)
    rounds: list[Round] = []
    bought: list[tuple[int, Any]] = []
    refused: list[int] = []
    query_seconds, n_labeled = 0.0, 0
    for event in events:
        if "picks" in event:
            query_seconds, bought, refused = event["picks"]["query_seconds"], [], []
        elif "label" in event:
            row, label = event["label"]["position"], event["label"]["label"]
            if label is None:
                refused.append(row)
            else:
                bought.append((row, label))
        else:
            n_labeled += len(bought)
            rows, labels = zip(*bought, strict=True) if bought else ((), ())
            rounds.append(
                Round(
                    positions=rows,
                    labels=labels,
                    refused=tuple(refused),
                    n_labeled=n_labeled,
                    query_seconds=query_seconds,
                    **event["round"],
                )
            )
            bought = []
    return SimulationResult(tuple(rounds), "", header["random_state"], tuple(bought))
