"""Time `compare_strategies` with two workers against one, and check that the numbers agree.

Run it with ``python examples/benchmarks/compare_workers.py``. Five strategies and ten seeds on
scikit-learn's digits, with one worker and with two in alternation; it prints the seconds of each,
the ratio of one pair after the other, and their median.
"""

import statistics
import time

from joblib.externals.loky import get_reusable_executor
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from sklearn_ical import (
    BALDQuery,
    ICALQuery,
    MarginQuery,
    MaxEntropyQuery,
    RandomQuery,
    compare_strategies,
)
from sklearn_ical.simulation import ComparisonResult

REPEATS = 3
STRATEGIES = [RandomQuery(), MaxEntropyQuery(), MarginQuery(), BALDQuery(), ICALQuery()]


def compare(n_jobs: int) -> tuple[float, ComparisonResult]:
    """Return the seconds that the comparison takes with fresh workers, and what it finds."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    get_reusable_executor().shutdown(wait=True)  # starting the workers counts
    start = time.perf_counter()
    found = compare_strategies(
        RandomForestClassifier(50, min_samples_leaf=2),
        X,
        y,
        STRATEGIES,
        seeds=10,
        n_initial=20,
        batch_size=10,
        n_rounds=10,
        scoring=["accuracy", "neg_log_loss"],
        X_test=X_test,
        y_test=y_test,
        n_jobs=n_jobs,
    )
    return time.perf_counter() - start, found


def main() -> None:
    """Alternate one worker and two, and print the table of the last comparison."""
    ratios = []
    for _ in range(REPEATS):
        (one, alone), (two, together) = compare(1), compare(2)
        ratios.append(one / two)
        same = "the same numbers" if alone == together else "NOT THE SAME NUMBERS"
        print(f"1 worker {one:6.1f} s   2 workers {two:6.1f} s   ratio {one / two:.2f}   {same}")
    print(f"median ratio {statistics.median(ratios):.2f}\n\n{alone}")


if __name__ == "__main__":
    main()
