"""Time the batch strategies beside their public rivals: BatchBALD, FASS and log determinants.

Run it with ``python examples/benchmarks/baselines_speed.py``. It runs `batch_bald_speed.py`,
`fass_speed.py` and `logdet_speed.py`, each in a process of its own so that peak memories are its
own, and prints what they print. Rivals live in environments of their own::

    python -m venv redux && redux/bin/python -m pip install torch batchbald_redux
    python -m venv apricot && apricot/bin/python -m pip install apricot-select

and are named by ``--redux-python redux/bin/python --apricot-python apricot/bin/python``. Without
one, that part runs what needs none.
"""

import argparse
import subprocess
import sys
from pathlib import Path

PARTS = {
    "batch_bald_speed.py": "redux_python",
    "fass_speed.py": "apricot_python",
    "logdet_speed.py": None,
}


def main() -> None:
    """Run the parts one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redux-python", help="python of an environment with batchbald_redux")
    parser.add_argument("--apricot-python", help="python of an environment with apricot-select")
    args = parser.parse_args()
    for script, rival in PARTS.items():
        print(f"\n== {script}", flush=True)
        python = getattr(args, rival) if rival else None
        command = [sys.executable, str(Path(__file__).with_name(script))]
        subprocess.run([*command, *(["--rival-python", python] if python else [])], check=True)


if __name__ == "__main__":
    main()
