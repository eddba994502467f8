"""Time FASSQuery at full size, and facility location against others on a smaller problem.

Run it with ``python examples/benchmarks/fass_speed.py``. It makes features and class probabilities
of 40 000 points, picks 1 000 of the 30 000 most uncertain, with predicted classes of 10 sorts and
with one class for all, and prints times and the peak memory of this process.

Then a smaller problem, one class and no filter, is put to FASSQuery (features), to
`facility_location` (the similarity matrix), to a literal greedy in numpy and, with
``--rival-python PATH``, to apricot-select in the environment of that interpreter: the same
float64 features, similarities and number of picks; each twice, of which the second run counts.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sklearn_ical import FASSQuery
from sklearn_ical.strategies import facility_location

RIVAL = """
import json, sys, time
import apricot, numba, numpy as np
from apricot import FacilityLocationSelection
n_points, n_features, n_picks = map(int, sys.argv[1:])
X = np.random.default_rng(1).normal(size=(n_points, n_features))
norms = (X**2).sum(axis=1)
for _ in range(2):
    start = time.perf_counter()
    distances = norms[:, None] + norms - 2 * (X @ X.T)
    similarity = distances.max() - np.maximum(distances, 0)
    made = time.perf_counter()
    selection = FacilityLocationSelection(n_picks, metric="precomputed", optimizer="lazy")
    selection.fit(similarity)
    done = time.perf_counter()
print(json.dumps({
    "version": apricot.__version__, "numpy": np.__version__, "threads": numba.get_num_threads(),
    "dtype": str(similarity.dtype), "matrix": made - start, "picking": done - made,
    "picks": selection.ranking.tolist(),
}))
"""


def seconds(task: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def peak_memory_gb() -> float:
    """Return the largest resident size of this process so far, in GB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def make_proba(n_points: int, n_classes: int, *, one_class: bool) -> np.ndarray:
    """Return class probabilities (n_points, 1, n_classes), the likeliest class one or any."""
    proba = np.random.default_rng(0).dirichlet(np.ones(n_classes), size=n_points)
    if one_class:
        proba[:, 0] += 1.0
        proba /= proba.sum(axis=1, keepdims=True)
    return proba[:, None]


def literal_greedy(similarity: np.ndarray, n_picks: int) -> list[int]:
    """Evaluate every candidate in every step."""
    cover = np.zeros(len(similarity))
    picks: list[int] = []
    for _ in range(n_picks):
        gains = np.maximum(similarity - cover, 0).sum(axis=1)  # the matrix is symmetric
        gains[picks] = -1.0
        picks.append(int(gains.argmax()))
        cover = np.maximum(cover, similarity[picks[-1]])
    return picks


def run_full_size(args: argparse.Namespace) -> None:
    """Print times and peak memory of the full size."""
    before = peak_memory_gb()
    X = np.random.default_rng(1).normal(size=(args.points, args.features))
    for name, one_class in ((f"{args.classes} classes", False), ("all in one class", True)):
        proba = make_proba(args.points, args.classes, one_class=one_class)
        query = FASSQuery(factor=args.factor)
        times = [
            seconds(partial(query.select, proba, args.picks, X_pool=X)) for _ in range(args.repeats)
        ]
        print(
            f"{name:<20} {min(times):8.1f} s, at most {max(times):.1f} s of {args.repeats}; peak "
            f"memory {peak_memory_gb():.2f} GB, {before:.2f} GB of it before the data"
        )


def run_small(args: argparse.Namespace) -> None:
    """Print times of the smaller problem, in ratio to ours."""
    X = np.random.default_rng(1).normal(size=(args.small, args.features))
    norms = (X**2).sum(axis=1)
    distances = norms[:, None] + norms - 2 * (X @ X.T)
    similarity = distances.max() - np.maximum(distances, 0)
    proba = np.full((args.small, 1, 2), 0.5)
    factor = -(-args.small // args.small_picks)
    tasks: dict[str, Callable[[], Any]] = {
        "FASSQuery": lambda: FASSQuery(factor=factor).select(proba, args.small_picks, X_pool=X),
        "facility_location": lambda: facility_location(similarity, args.small_picks)[0],
        "literal greedy": lambda: literal_greedy(similarity, args.small_picks),
    }
    found = {name: list(task()) for name, task in tasks.items()}
    times = {name: seconds(task) for name, task in tasks.items()}
    if args.rival_python:
        sizes = [str(size) for size in (args.small, args.features, args.small_picks)]
        answer = subprocess.run(
            [args.rival_python, "-c", RIVAL, *sizes], capture_output=True, text=True, check=True
        )
        rival = json.loads(answer.stdout)
        print(
            f"apricot-select {rival['version']}, numpy {rival['numpy']}, {rival['threads']} "
            f"threads, {rival['dtype']}, optimizer 'lazy'; its matrix takes {rival['matrix']:.2f} s"
        )
        times["apricot-select"], found["apricot-select"] = rival["picking"], rival["picks"]
        times["its matrix too"], found["its matrix too"] = (
            rival["matrix"] + rival["picking"],
            rival["picks"],
        )
    for name, duration in times.items():
        same = found[name] == found["FASSQuery"]
        print(
            f"{name:<20} {duration:8.3f} s, {duration / times['FASSQuery']:6.1f} times FASSQuery, "
            f"{duration / times['facility_location']:6.1f} times facility_location; "
            f"{'same' if same else 'OTHER'} picks"
        )


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=40_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--picks", type=int, default=1_000)
    parser.add_argument("--factor", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--small", type=int, default=4_000)
    parser.add_argument("--small-picks", type=int, default=100)
    parser.add_argument("--rival-python", help="interpreter that has apricot-select")
    args = parser.parse_args()
    print(
        f"{args.points} points, {args.features} features, {args.picks} picks of "
        f"{min(args.points, args.factor * args.picks)} rows, float64, numpy {np.__version__}, "
        f"{os.cpu_count()} cores"
    )
    run_full_size(args)
    print(f"{args.small} points, {args.features} features, {args.small_picks} picks, one class")
    run_small(args)


if __name__ == "__main__":
    main()
