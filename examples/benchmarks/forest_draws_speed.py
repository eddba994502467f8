"""Time the draws of a random forest against the forest's own `predict_proba`.

Run it with ``python examples/benchmarks/forest_draws_speed.py``. For several data sets and numbers
of threads it prints the time that the predictions of all trees take over that of `predict_proba`
with the same `n_jobs`, in alternation in one process, medians of several; beside it the plain way,
stacking `predict_proba` of each tree.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
import sklearn
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier

from sklearn_ical.samplers import get_sampler

N_ROWS = 40_000
REPEATS = 7


def seconds(task: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def pools() -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Return names, training data and pools of `N_ROWS` rows."""
    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    rows = rng.integers(len(X), size=N_ROWS)
    found = [("digits, noisy copies", X, y, X[rows] + rng.normal(size=(N_ROWS, X.shape[1])))]
    for n_classes in (2, 10):
        X, y = make_classification(5000, 20, n_classes=n_classes, n_informative=10, random_state=0)
        found.append((f"{n_classes} classes, 20 features", X, y, rng.normal(size=(N_ROWS, 20))))
    return found


def measure(
    forest: RandomForestClassifier, X_pool: np.ndarray
) -> tuple[float, float, float, float]:
    """Return seconds of `predict_proba` and of draws, their ratio, and that of stacked trees."""
    draws = get_sampler(forest).draw()
    own, ours = [], []
    for _ in range(REPEATS):
        own.append(seconds(lambda: forest.predict_proba(X_pool)))
        ours.append(seconds(lambda: draws(X_pool)))
    stacked = [
        seconds(lambda: np.stack([tree.predict_proba(X_pool) for tree in forest], axis=1))
        for _ in range(3)
    ]
    ratio = statistics.median(a / b for a, b in zip(ours, own, strict=True))
    base = statistics.median(own)
    return base, statistics.median(ours), ratio, statistics.median(stacked) / base


def main() -> None:
    """Run the benchmark and print its figures."""
    print(f"{N_ROWS} rows, 100 trees, scikit-learn {sklearn.__version__}, medians of {REPEATS}")
    print(f"{'pool':24s} n_jobs  predict_proba     draws   ratio   stacked trees, ratio")
    for name, X, y, X_pool in pools():
        for n_jobs in (1, 2):
            forest = RandomForestClassifier(100, n_jobs=n_jobs, random_state=0).fit(X, y)
            own, ours, ratio, stacked = measure(forest, X_pool)
            print(
                f"{name:24s} {n_jobs:6d}  {own:11.3f} s {ours:7.3f} s  {ratio:6.2f} {stacked:10.2f}"
            )


if __name__ == "__main__":
    main()
