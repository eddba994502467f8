"""What pytest needs first: one thread for each of several processes, and no torch without torch."""

import os
from importlib.util import find_spec

if "PYTEST_XDIST_WORKER" in os.environ:  # before numpy loads, and for the processes of the tests
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

collect_ignore = [] if find_spec("torch") else ["sklearn_ical/samplers/_torch"]
