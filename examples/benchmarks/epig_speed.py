"""Time EPIG: the array function, and batches of 10 by EPIGQuery, as the pool grows.

Run it with ``python examples/benchmarks/epig_speed.py``. 50 draws, 10 classes, 200 reference rows;
it prints wall seconds, and the peak of memory above the predictions themselves.
"""

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_info

from sklearn_ical import EPIGQuery, PredictionSamples
from sklearn_ical.dependence import epig

N_DRAWS, N_CLASSES, N_REFERENCE, BATCH = 50, 10, 200, 10


def seconds_and_bytes(task: Callable[[], object]) -> tuple[float, int]:
    """Return the wall time of one call and the peak of the memory that it allocates."""
    tracemalloc.start()
    start = time.perf_counter()
    task()
    seconds = time.perf_counter() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return seconds, peak


def main() -> None:
    """Run the benchmark and print its figures."""
    threads = {info["internal_api"]: info["num_threads"] for info in threadpool_info()}
    print(f"{N_DRAWS} draws, {N_CLASSES} classes, {N_REFERENCE} reference rows, {threads}")
    print(f"{'rows':>6s}  {'epig':>16s}  {'10 of the top':>16s}  {'10 pseudo-labeled':>17s}")
    for n_points in (2500, 5000, 10_000):
        proba = np.random.default_rng(0).dirichlet(np.full(N_CLASSES, 0.3), (n_points, N_DRAWS))
        samples = PredictionSamples(proba)
        tasks = [
            lambda p=proba: epig(p, p[:N_REFERENCE]),
            lambda s=samples: EPIGQuery(N_REFERENCE, random_state=0).select(s, BATCH),
            lambda s=samples: EPIGQuery(N_REFERENCE, batch="pseudo-label", random_state=0).select(
                s, BATCH
            ),
        ]
        figures = [seconds_and_bytes(task) for task in tasks]
        columns = [f"{seconds:7.2f} s {peak / 2**20:4.0f} MB" for seconds, peak in figures]
        print(f"{n_points:6d}  " + "  ".join(f"{column:>16s}" for column in columns), flush=True)


if __name__ == "__main__":
    main()
