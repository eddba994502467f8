"""Time ICALQuery against the bare matrix product it rests on, and against a literal evaluation.

Run it with ``python examples/benchmarks/ical_speed.py``. It makes label samples of
40 000 points, 50 draws and 10 classes, picks 3 000 points one step at a time and prints

- the time over that of one float32 matrix product (n_points x n_pairs) by (n_pairs x n_picks),
  n_pairs = n_draws (n_draws - 1) / 2, both in this process, in alternation, medians of several;
- the peak memory of this process before the product's own arrays exist;
- the extrapolated time of a literal evaluation, which forms the kernel of each candidate and its
  HSIC with the reference kernel, one candidate and one step after the other.
"""

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from sklearn_ical import ICALQuery, PredictionSamples


def make_labels(n_points: int, n_draws: int, n_classes: int) -> np.ndarray:
    """Draw labels from class probabilities that are peaked for many points, flat for some."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(n_classes, 0.3), n_points)
    uniforms = rng.random((n_points, n_draws, 1))
    labels = np.empty((n_points, n_draws), dtype=np.uint8)
    for rows in np.array_split(np.arange(n_points), 20):
        edges = np.cumsum(proba[rows], axis=1)[:, None, :-1]
        labels[rows] = (uniforms[rows] > edges).sum(axis=2)
    return labels


def seconds(task: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def literal_scores(labels: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Score candidates against one reference set, one by one, in the words of the definition."""
    m = labels.shape[1]
    center = np.eye(m) - 1 / m
    kernels = [(row[:, None] == row[None, :]).astype(float) for row in reference]
    summary = center @ np.mean(kernels, axis=0) @ center
    scores = []
    for row in labels:
        kernel = (row[:, None] == row[None, :]).astype(float)
        scores.append(np.trace(kernel @ summary) / m**2)
    return np.array(scores)


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
    parser.add_argument("--picks", type=int, default=3_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()

    labels = make_labels(args.points, args.draws, args.classes)
    samples = PredictionSamples(labels, kind="label")
    query = ICALQuery(random_state=0)

    def pick() -> np.ndarray:
        return query.select(samples, batch_size=args.picks)

    pick()
    memory = peak_memory_gb()

    n_pairs = args.draws * (args.draws - 1) // 2
    rng = np.random.default_rng(1)
    features = rng.random((args.points, n_pairs), dtype=np.float32)
    weights = rng.random((n_pairs, args.picks), dtype=np.float32)
    ours, bare = [], []
    for _ in range(args.repeats):
        bare.append(seconds(lambda: features @ weights))
        ours.append(seconds(pick))
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]

    few, r = 500, query.n_reference
    literal = seconds(lambda: literal_scores(labels[:few], labels[-r:]))
    extrapolated = literal / few * args.points * args.picks

    print(
        f"{args.points} points, {args.draws} draws, {args.classes} classes, {args.picks} picks, "
        f"numpy {np.__version__}, medians of {args.repeats}"
    )
    print(f"ICALQuery.select             {statistics.median(ours):8.2f} s")
    print(f"bare float32 product         {statistics.median(bare):8.2f} s")
    print(
        f"ratio, pair by pair          {statistics.median(ratios):8.2f}   "
        f"(from {min(ratios):.2f} to {max(ratios):.2f})"
    )
    print(f"peak memory of the process   {memory:8.2f} GB")
    print(
        f"literal evaluation           {extrapolated:8.0f} s, extrapolated from {few} candidates: "
        f"{extrapolated / statistics.median(ours):.0f} times as long"
    )


if __name__ == "__main__":
    main()
