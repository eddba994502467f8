"""Time the bootstrap of a model against scikit-learn's bagging of the same model.

Run it with ``python examples/benchmarks/bootstrap_speed.py``. Both fit 50 clones on resamples of
the same rows and predict a pool, in alternation in one process. Printed are the medians of several
ratios: fits of `BootstrapSampler` over those of `BaggingClassifier`, draws of its clones over the
stacked `predict_proba` of the bagged members, and fits by weights over fits of copied rows.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.utils.validation import has_fit_parameter

from sklearn_ical.samplers import BootstrapSampler

N_CLONES = 50
N_LABELED = 300
N_POOL = 5_000
REPEATS = 5
MODELS = [
    LogisticRegression(max_iter=200),
    GaussianNB(),
    KNeighborsClassifier(),
    SVC(),
    HistGradientBoostingClassifier(max_iter=10),
]


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    """Return the wall time of one call and its answer."""
    start = time.perf_counter()
    answer = task()
    return time.perf_counter() - start, answer


def stack(members: list[Any], X: np.ndarray) -> np.ndarray:
    """Return the probabilities, or else the labels, that members predict."""
    method = "predict_proba" if hasattr(members[0], "predict_proba") else "predict"
    return np.stack([getattr(member, method)(X) for member in members], axis=1)


def measure(model: Any, X: np.ndarray, y: np.ndarray, X_pool: np.ndarray) -> list[float]:
    """Return medians: seconds of the bootstrap's fits, and ratios of fits, draws and weights."""
    bagging = BaggingClassifier(model, N_CLONES, random_state=0)
    sampler = BootstrapSampler(model, n_draws=N_CLONES).fit(X, y)
    copies = BootstrapSampler(model, n_draws=N_CLONES, method="copies").fit(X, y)
    seconds, fits, draws, weights = [], [], [], []
    for _ in range(REPEATS):
        theirs, bagged = timed(lambda: bagging.fit(X, y))
        ours, drawn = timed(lambda: sampler.draw(random_state=0))
        seconds.append(ours)
        fits.append(ours / theirs)
        theirs, _ = timed(partial(stack, bagged.estimators_, X_pool))
        draws.append(timed(partial(drawn, X_pool))[0] / theirs)
        if has_fit_parameter(model, "sample_weight"):
            weights.append(ours / timed(lambda: copies.draw(random_state=0))[0])
    found = [seconds, fits, draws, weights]
    return [statistics.median(values) if values else float("nan") for values in found]


def main() -> None:
    """Run the benchmark and print its figures."""
    warnings.simplefilter("ignore")  # of fits that do not converge, here and there
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).integers(N_LABELED, len(X), size=N_POOL)
    print(
        f"{N_CLONES} clones, {N_LABELED} labeled rows, pool of {N_POOL}, scikit-learn "
        f"{sklearn.__version__}, medians of {REPEATS}"
    )
    print(f"{'model':32s}  {'fits':>9s}  {'/ bagging':>9s}  {'draws /':>9s}  {'weights /':>9s}")
    print(f"{'':32s}  {'':9s}  {'':9s}  {'members':>9s}  {'copies':>9s}")
    for model in MODELS:
        own, fits, draws, weights = measure(model, X[:N_LABELED], y[:N_LABELED], X[rows])
        print(
            f"{type(model).__name__:32s}  {own:7.3f} s  {fits:9.2f}  {draws:9.2f}  {weights:9.2f}"
        )


if __name__ == "__main__":
    main()
