"""Time BatchBALDQuery, alone or beside batchbald_redux, and compare what their batches tell.

Run it with ``python examples/benchmarks/batch_bald_speed.py``. The rival lives in an environment
of its own, made by ::

    python -m venv rival
    rival/bin/python -m pip install torch batchbald_redux

and named by ``--rival-python rival/bin/python``. Two problems of 10 000 points, 50 draws and 10
classes are solved: "softmax", draws of a Bayesian softmax model on clustered features, whose rows
differ in how much they tell; and "flat", independent random class probabilities, where all rows
tell nearly the same. For each it prints

- wall times of 10 picks with 10 000 configurations, medians over repetitions in alternation, each
  in a process of its own with the same draws file, threads and dtype, after a small warm-up;
- how many of the first picks are the same;
- the joint information of both batches on one common sample, and whether ours is lower by more
  than two standard errors of the paired difference;
- without the rival, time and peak memory of the process as the pool grows, and of a batch of 200.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def softmax_draws(n_points: int, n_draws: int, n_classes: int) -> np.ndarray:
    """Return class probabilities of weights W0 + 0.5 N(0, 1) for points in 30 clusters."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(30, 8))
    weights = rng.normal(size=(8, n_classes)) + 0.5 * rng.normal(size=(n_draws, 8, n_classes))
    X = centers[rng.integers(30, size=n_points)] + 0.5 * rng.normal(size=(n_points, 8))
    proba = np.empty((n_points, n_draws, n_classes))
    for k in range(n_draws):
        logits = X @ weights[k]
        proba[:, k] = np.exp(logits - logits.max(axis=1, keepdims=True))
    return proba / proba.sum(axis=2, keepdims=True)


def flat_draws(n_points: int, n_draws: int, n_classes: int) -> np.ndarray:
    """Return class probabilities that are uniform on the simplex, independently."""
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(n_classes), size=(n_points, n_draws))


PROBLEMS = {"softmax": softmax_draws, "flat": flat_draws}


def ours(proba: np.ndarray, picks: int, configurations: int) -> list[int]:
    """Return our batch."""
    from sklearn_ical import BatchBALDQuery

    query = BatchBALDQuery(n_configurations=configurations, random_state=0)
    return query.select(proba, picks).tolist()


def theirs(proba: np.ndarray, picks: int, configurations: int) -> list[int]:
    """Return the rival's batch."""
    import torch
    from batchbald_redux.batchbald import get_batchbald_batch

    torch.manual_seed(0)
    log_proba = torch.log(torch.from_numpy(proba))
    batch = get_batchbald_batch(log_proba, picks, configurations, dtype=log_proba.dtype)
    return list(batch.indices)


def work(side: str, path: str, picks: int, configurations: int) -> None:
    """Solve one problem in this process, and print what came of it as JSON."""
    solve = {"ours": ours, "theirs": theirs}[side]
    proba = np.load(path)["proba"]
    solve(proba[:300], 3, 200)
    start = time.perf_counter()
    chosen = solve(proba, picks, configurations)
    seconds = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    packages = ["numpy", "torch", "batchbald_redux"] if side == "theirs" else ["numpy"]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    print(json.dumps({"s": seconds, "picks": chosen, "gb": peak, "versions": versions}))


def run(python: str, side: str, path: Path, picks: int, args: argparse.Namespace) -> Any:
    """Run `work` in a fresh process of some interpreter and return what it prints."""
    command = [python, __file__, "--work", side, str(path), "--picks", str(picks)]
    command += ["--configurations", str(args.configurations)]
    environment = {**os.environ, **dict.fromkeys(THREADS, str(args.threads))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def densities(
    proba: np.ndarray, batches: list[list[int]], n_rows: int = 200_000
) -> list[np.ndarray]:
    """Return log p(y | draw) - log p(y) of each batch's labels on one common sample.

    Its mean is the joint information of the batch. Each draw has as many rows, and a point has
    the same labels in all batches.
    """
    rng = np.random.default_rng(1)
    points = sorted({point for batch in batches for point in batch})
    n_draws = proba.shape[1]
    found: list[list[np.ndarray]] = [[] for _ in batches]
    for _ in range(n_rows // (100 * n_draws)):
        rows = np.repeat(np.arange(n_draws), 100)
        logs = {}
        for point in points:
            edges = np.cumsum(proba[point], axis=1)[rows, :-1]
            labels = np.sum(rng.random((len(rows), 1)) > edges, axis=1)
            logs[point] = np.log(proba[point].astype(float)[:, labels])  # (n_draws, n_rows)
        for i, batch in enumerate(batches):
            total = sum(logs[point] for point in batch)
            given_draw = total[rows, np.arange(len(rows))]
            found[i].append(given_draw - np.logaddexp.reduce(total, axis=0) + np.log(n_draws))
    return [np.concatenate(parts) for parts in found]


def compare(name: str, folder: Path, args: argparse.Namespace) -> None:
    """Solve one problem on both sides and print times, picks and information."""
    proba = PROBLEMS[name](args.points, args.draws, args.classes).astype(args.dtype)
    path = folder / f"{name}.npz"
    np.savez(path, proba=proba)
    sides = {"ours": sys.executable}
    if args.rival_python:
        sides["theirs"] = args.rival_python
    results: dict[str, list[Any]] = {side: [] for side in sides}
    for _ in range(args.repeats):
        for side, python in sides.items():
            results[side].append(run(python, side, path, args.picks, args))
    print(f"\n{name}: {args.points} points, {args.draws} draws, {args.classes} classes")
    medians = {}
    for side, found in results.items():
        times = [result["s"] for result in found]
        medians[side] = statistics.median(times)
        print(
            f"{side:8} {medians[side]:8.2f} s   (from {min(times):.2f} to {max(times):.2f}), peak "
            f"{max(result['gb'] for result in found):.2f} GB, {found[0]['versions']}"
        )
    batches = [found[0]["picks"] for found in results.values()]
    information = densities(proba, batches)
    for side, values in zip(results, information, strict=True):
        error = values.std() / len(values) ** 0.5
        print(f"joint information, {side:8} {values.mean():.4f} nats (standard error {error:.4f})")
    if args.rival_python:
        print(f"ratio of times {medians['theirs'] / medians['ours']:8.1f}")
        pairs = list(zip(*batches, strict=True))
        same = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
        print(f"first {same} picks the same; {len(set(batches[0]) & set(batches[1]))} in common")
        difference = information[0] - information[1]
        error = difference.std() / len(difference) ** 0.5
        lower = difference.mean() < -2 * error
        print(
            f"ours - theirs {difference.mean():+.4f} (standard error {error:.4f}): "
            f"{'LOWER' if lower else 'not lower'} by more than two standard errors"
        )


def grow(folder: Path, args: argparse.Namespace) -> None:
    """Print our times and peak memory for pools of growing size, and for a large batch."""
    print("\nours, softmax, one run each")
    for n_points, picks in ((5_000, 10), (10_000, 10), (20_000, 10), (40_000, 10), (10_000, 200)):
        proba = softmax_draws(n_points, args.draws, args.classes).astype(args.dtype)
        path = folder / "growth.npz"
        np.savez(path, proba=proba)
        found = run(sys.executable, "ours", path, picks, args)
        print(f"{n_points:6} points, {picks:3} picks {found['s']:8.2f} s, {found['gb']:.2f} GB")


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rival-python", help="python of an environment with batchbald_redux")
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--picks", type=int, default=10)
    parser.add_argument("--configurations", type=int, default=10_000)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        side, path = args.work
        work(side, path, args.picks, args.configurations)
        return
    print(
        f"{args.picks} picks, {args.configurations} configurations, {args.dtype} draws, "
        f"{args.threads} threads on each side, medians of {args.repeats}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in args.problems:
            compare(name, Path(folder), args)
        if not args.rival_python:
            grow(Path(folder), args)


if __name__ == "__main__":
    main()
