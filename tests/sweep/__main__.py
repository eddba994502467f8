"""Try every strategy and setting on seeded problems; print the mismatches of each property.

``python -m tests.sweep`` tries all settings on 200 problems each; names or parts of names choose
some of them.
"""

import argparse
import sys

from joblib import Parallel, delayed

from tests.sweep.run import Tally, try_setting
from tests.sweep.settings import sweep_settings


def main(arguments: list[str] | None = None) -> int:
    """Print a table and the first mismatch; return 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    parser.add_argument("--problems", type=int, default=200, help="problems for each setting")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; all cores by default")
    parser.add_argument("names", nargs="*", help="parts of names of settings; all without any")
    given = parser.parse_args(arguments)
    settings = [
        setting
        for setting in sweep_settings()
        if not given.names or any(name in setting.name for name in given.names)
    ]
    if not settings:
        parser.error(f"no setting has a name with any of {given.names}")
    width = max(len(setting.name) for setting in settings)
    print(Tally.header(width))
    tallies = []
    tries = (delayed(try_setting)(setting, range(given.problems)) for setting in settings)
    for tally in Parallel(n_jobs=given.jobs, return_as="generator")(tries):
        tallies.append(tally)
        print(tally.line(width), flush=True)
    first = [tally.mismatches[0] for tally in tallies if tally.mismatches]
    print("\n".join(["", *first]) if first else "\nno mismatch")
    return 1 if first else 0


if __name__ == "__main__":
    sys.exit(main())
