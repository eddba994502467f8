"""Time LogDetQuery against a plain pivoted Cholesky of the same kernel with a column per pick.

Run it with ``python examples/benchmarks/logdet_speed.py``. It makes probabilities of 40 000
points, 50 draws and 10 classes, of a random posterior over softmax models, picks 1 000 points and
prints

- the time of both kernels of LogDetQuery, and the peak memory of this process so far;
- the time of a pivoted Cholesky decomposition in numpy of the trace kernel, which keeps an
  n_points x n_picks matrix, in the same process and on the same features, without the making of
  these, and its peak memory;
- the ratio of the times, and whether the picks are the same.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import threadpoolctl

from sklearn_ical import LogDetQuery, PredictionSamples


def make_proba(n_points: int, n_draws: int, n_classes: int) -> np.ndarray:
    """Return class probabilities of softmax models that agree on their mean weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_points, 20))
    mean = rng.normal(size=(20, n_classes))
    weights = mean + rng.normal(size=(n_draws, 20, n_classes)) / 2
    proba = np.empty((n_points, n_draws, n_classes), dtype=np.float32)
    for rows in np.array_split(np.arange(n_points), 50):
        scores = np.exp(np.einsum("nd,kdc->nkc", X[rows], weights))
        proba[rows] = scores / scores.sum(axis=2, keepdims=True)
    return proba


def plain_cholesky(features: np.ndarray, noise: float, n_picks: int) -> list[int]:
    """Pick by residual diagonals of the kernel, with a column of all points for each pick."""
    diagonal = np.einsum("nd,nd->n", features, features)
    left = diagonal.copy()
    columns = np.empty((n_picks, len(features)))
    picks: list[int] = []
    for t in range(n_picks):
        picks.append(int(np.argmax(left)))
        column = features @ features[picks[t]] - columns[:t, picks[t]] @ columns[:t]
        columns[t] = column / np.sqrt(column[picks[t]] + noise)
        left -= columns[t] ** 2
        left[picks] = -np.inf
    return picks


def timed(name: str, task: Callable[[], Any]) -> tuple[Any, float]:
    """Return the answer of one call and its wall time in seconds; print its times and memory."""
    start, cpu = time.perf_counter(), time.process_time()
    answer = task()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"{name}: {seconds:.1f} s, {cpu:.1f} s of CPU, peak memory {peak_memory_gb():.2f} GB")
    return answer, seconds


def peak_memory_gb() -> float:
    """Return the largest resident size of this process so far, in GB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=40_000)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--picks", type=int, default=1_000)
    args = parser.parse_args()

    threads = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    print(
        f"{args.points} points, {args.draws} draws, {args.classes} classes, {args.picks} picks, "
        f"numpy {np.__version__}, {max(threads)} threads, features in float64"
    )
    proba = make_proba(args.points, args.draws, args.classes)
    print(f"float32 samples alone: peak memory {peak_memory_gb():.2f} GB")
    samples = PredictionSamples(proba)
    answers = {}
    for kernel in ("trace", "independent"):
        query = LogDetQuery(kernel)
        answers[kernel] = timed(
            f"LogDetQuery({kernel!r})", lambda query=query: query.select(samples, args.picks)
        )
    features = (proba - proba.mean(axis=1, keepdims=True, dtype=np.float64)).reshape(len(proba), -1)
    features /= np.sqrt(args.draws)
    noise = LogDetQuery().noise * np.einsum("nd,nd->n", features, features).mean()
    plain, plain_time = timed(
        "plain pivoted Cholesky", lambda: plain_cholesky(features, noise, args.picks)
    )
    picks, ours = answers["trace"]
    print(f"plain / ours: {plain_time / ours:.1f}; same picks: {picks.tolist() == plain}")


if __name__ == "__main__":
    main()
