"""Time ``import sklearn_ical`` against ``import sklearn``, in fresh processes in alternation.

Run it with ``python examples/benchmarks/import_time.py``.
"""

import statistics
import subprocess
import sys
import time

REPEATS = 15


def seconds(statement: str) -> float:
    """Return the wall time of a fresh interpreter that runs one statement."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main() -> None:
    """Run the benchmark and print its figures."""
    times: dict[str, list[float]] = {"pass": [], "import sklearn": [], "import sklearn_ical": []}
    for statement in times:
        seconds(statement)
    for _ in range(REPEATS):
        for statement, found in times.items():
            found.append(seconds(statement))
    empty = statistics.median(times["pass"])
    theirs = statistics.median(times["import sklearn"]) - empty
    ours = statistics.median(times["import sklearn_ical"]) - empty
    print(f"import sklearn       {theirs:.3f} s, an empty interpreter ({empty:.3f} s) left out")
    print(f"import sklearn_ical  {ours:.3f} s")
    print(f"ratio                {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
