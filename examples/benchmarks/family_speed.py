"""Time large batches of the ICAL family, and what their formulations save.

Run it with ``python examples/benchmarks/family_speed.py``. Part one picks 3 000 of 40 000 rows from
50 draws of 10 classes, pointwise (steps of 200) and by coverage of 5 000 reference rows, each in a
process of its own, and prints wall seconds and the peak of that process's memory, imports and
predictions included. Part two, at 2 000 rows, runs literal alternatives beside them (each
candidate's ratios from kernels; all gains at each pick), in alternation, and prints medians and
ratios.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_ical import ICALCoverageQuery, ICALPointwiseQuery, PredictionSamples
from sklearn_ical.dependence import hsic

N_DRAWS, N_CLASSES = 50, 10
LARGE, N_PICKS = 40_000, 3000
SMALL, BATCH, REPEATS = 2000, 50, 3
STRATEGIES = {
    "pointwise": ICALPointwiseQuery(step_size=200, random_state=0),
    "pointwise proba": ICALPointwiseQuery(step_size=200, prediction="proba", random_state=0),
    "coverage": ICALCoverageQuery(n_reference=5000, random_state=0),
    "coverage tau": ICALCoverageQuery(n_reference=5000, dependence="tau", random_state=0),
    "coverage sampled": ICALCoverageQuery(
        n_reference=5000, prediction="sampled", candidate_weight="margin", random_state=0
    ),
}


def predictions(n_points: int) -> PredictionSamples:
    """Return predictions of a made-up posterior: a linear softmax model with random weights."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_points, 8))
    weights = rng.normal(size=(8, N_CLASSES)) + rng.normal(size=(N_DRAWS, 8, N_CLASSES))
    logits = np.einsum("nf,kfc->nkc", rows, weights)
    proba = np.exp(logits - logits.max(axis=2, keepdims=True))
    return PredictionSamples((proba / proba.sum(axis=2, keepdims=True)).astype(np.float32))


def seconds(task: Callable[[], Any]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def run_one(name: str) -> None:
    """Pick once at full size, and print seconds and the peak memory of this process."""
    samples = predictions(LARGE)
    wall = seconds(lambda: STRATEGIES[name].select(samples, N_PICKS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name:18s} {wall:6.1f} s  {peak:5.2f} GB", flush=True)


def literal_pointwise(samples: PredictionSamples, reference: np.ndarray, rows: np.ndarray) -> None:
    """Score every candidate of the second pick from kernels, as the definition says."""
    kernels = np.matmul(samples.values, np.swapaxes(samples.values, 1, 2)).astype(np.float64)
    relevance = kernels[reference].mean(axis=0)
    batch = kernels[0]
    before = np.array([hsic(kernels[i], batch) for i in rows])
    for x in range(len(kernels)):
        mean = (batch + kernels[x]) / 2
        after = hsic(kernels[rows], np.broadcast_to(mean, kernels[rows].shape))
        hsic(relevance, mean) * (np.maximum(after / before, 1).mean() - 1)


def plain_coverage(samples: PredictionSamples, reference: np.ndarray) -> list[int]:
    """Pick by facility location with all gains at each pick, from features of the kernels."""
    centered = samples.values - samples.values.mean(axis=1, keepdims=True)
    grams = np.matmul(centered, np.swapaxes(centered, 1, 2), dtype=np.float64)
    features = grams.reshape(len(grams), -1) / N_DRAWS
    gains = features[reference] @ features.T
    cover, chosen = np.zeros(len(reference)), []
    for _ in range(BATCH):
        added = np.clip(gains - cover[:, None], 0, None).sum(axis=0)
        added[chosen] = -1
        chosen.append(int(added.argmax()))
        cover = np.maximum(cover, gains[:, chosen[-1]])
    return chosen


def compare() -> None:
    """Run literal formulations in alternation with ours, and print ratios of medians."""
    samples = predictions(SMALL)
    rng = np.random.default_rng(1)
    reference, rows = rng.choice(SMALL, (2, 200))
    pointwise = ICALPointwiseQuery(prediction="proba", marginal=rows, random_state=0)
    coverage = ICALCoverageQuery(random_state=0)
    everything = np.arange(SMALL)
    same = coverage.select(samples, BATCH, reference=everything).tolist()
    print(f"equal batches by coverage: {same == plain_coverage(samples, everything)}")
    pairs = {
        "pointwise, 2 picks": (
            lambda: literal_pointwise(samples, reference, rows),
            lambda: pointwise.select(samples, 2, reference=np.tile(reference, (2, 1))),
        ),
        f"coverage, {BATCH} picks": (
            lambda: plain_coverage(samples, everything),
            lambda: coverage.select(samples, BATCH, reference=everything),
        ),
    }
    for name, (literal, ours) in pairs.items():
        times = [(seconds(literal), seconds(ours)) for _ in range(REPEATS)]
        slow, fast = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name:24s} literal {slow:7.2f} s   ours {fast:6.3f} s   ratio {slow / fast:6.1f}")


def main() -> None:
    """Run each strategy in a process of its own, then the comparison."""
    if len(sys.argv) > 1:
        run_one(sys.argv[1])
        return
    print(f"{N_PICKS} of {LARGE} rows, {N_DRAWS} draws, {N_CLASSES} classes")
    for name in STRATEGIES:
        subprocess.run([sys.executable, __file__, name], check=True)
    print(f"{SMALL} rows")
    compare()


if __name__ == "__main__":
    main()
