"""A simulation that kills its own process at a chosen place; the target of that process."""

import os
import pickle
import signal
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from sklearn_ical import BALDQuery
from sklearn_ical.simulation import StablePredictions, simulate


class Fuse:
    """Burns down by one at each place of its kind, and kills the process at the end."""

    place, left = "nowhere", 0

    @classmethod
    def burn(cls, place):
        if place == cls.place:
            cls.left -= 1
            if cls.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Forest(RandomForestClassifier):
    def fit(self, X, y):
        Fuse.burn("fit")
        return super().fit(X, y)


class Query(BALDQuery):
    def query(self, *arguments, **options):
        Fuse.burn("query")
        return super().query(*arguments, **options)


def torn_write(file, data, write=os.write):
    """Write half a line before the fuse; an answer is whole, but not yet synced."""
    half = len(data) if data.startswith(b'{"label"') else len(data) // 2
    written = write(file, data[:half])
    Fuse.burn("write")
    return written


def run(folder, slow=0.0, **changes):
    """Run the simulation with its checkpoint in a folder."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(3, size=120)]
    X = rng.normal(size=(120, 3)) + (y == "a")[:, None] - 2 * (y == "c")[:, None]
    calls = os.open(Path(folder) / "calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def oracle(position):
        time.sleep(slow)
        os.write(calls, f"{position}\n".encode())
        return None if position % 7 == 0 else str(y[position])

    settings = {
        "n_initial": 6,
        "batch_size": 5,
        "n_rounds": 4,
        "random_state": 3,
        "stopping": StablePredictions(0.9999, n_rounds=3),
    }
    return simulate(
        Forest(5), X[:80], None, Query(), oracle=oracle, X_test=X[80:], y_test=y[80:],
        checkpoint=Path(folder) / "checkpoint.jsonl", **(settings | changes),
    )  # fmt: skip


def main(folder, place, count):
    """Run the simulation in a process of its own, which SIGKILL ends at a place.

    `place` is "write", "fit", "query" or "nowhere", and `count` says at which of them. The oracle
    writes each call to ``folder/calls``; a run that ends pickles its result into the folder.
    """
    Fuse.place, Fuse.left = place, count
    real = os.write
    if Fuse.place == "write":
        os.write = torn_write
    result = run(folder, slow=0.03 if Fuse.place == "nowhere" else 0.0)
    os.write = real
    (folder / "result.pickle").write_bytes(pickle.dumps(result))
