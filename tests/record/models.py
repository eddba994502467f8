"""Fitted models of the record, made from fixed seeds, and the strategies that ask them."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tests.record import settings
from tests.record.settings import MAIN, N_POINTS, Setting
from tests.record.situations import generator

N_LABELED = 30
REGRESSION = ("regressor", "process")
# Models that an optimizer fits or that predict in float32, so that processors differ in rounding.
ROUGH = ("logistic", "process", "net")


def rows_of(model: str, part: str, n_rows: int) -> np.ndarray:
    """Return rows of features."""
    return generator(f"query-{model}/{part}").normal(size=(n_rows, 3))


def labels_of(model: str) -> np.ndarray:
    """Return the targets of the labeled rows."""
    X = rows_of(model, "labeled", N_LABELED)
    signal = X[:, 0] + X[:, 1] ** 2 + generator(f"query-{model}/noise").normal(size=N_LABELED) / 2
    return signal if model in REGRESSION else np.digitize(signal, [0.3, 1.5])


@cache
def fitted(name: str) -> Any:
    """Return a fitted model, or a list of them."""
    X, y = rows_of(name, "labeled", N_LABELED), labels_of(name)
    if name == "net":
        return _net()
    if name == "trees":
        rows = generator("query-trees/rows").integers(N_LABELED, size=(8, N_LABELED))
        tree = DecisionTreeClassifier
        return [tree(min_samples_leaf=3, random_state=0).fit(X[r], y[r]) for r in rows]
    makers: dict[str, Callable[[], Any]] = {
        "forest": lambda: RandomForestClassifier(8, min_samples_leaf=3, random_state=0),
        "regressor": lambda: RandomForestRegressor(8, min_samples_leaf=3, random_state=0),
        "process": lambda: GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None),
        "logistic": lambda: LogisticRegression(tol=1e-8),
        "pipeline": lambda: make_pipeline(
            StandardScaler(), RandomForestClassifier(8, min_samples_leaf=3, random_state=0)
        ),
    }
    return makers[name]().fit(X, y)


def _net() -> Any:
    """Return a small torch module with dropout, whose weights numpy has drawn."""
    import torch
    from torch import nn

    net = nn.Sequential(
        nn.Linear(3, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3), nn.Softmax(dim=-1)
    )
    rng = generator("query-net/weights")
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(size=tuple(parameter.shape))))
    return net


def query_options(name: str, setting: Setting) -> dict[str, Any]:
    """Return the keyword arguments of `query` in a situation such as "query-forest-costs"."""
    _, model, *words = name.split("-")
    options: dict[str, Any] = {}
    if "labeled" in words or model == "logistic":
        options["X_labeled"] = rows_of(model, "labeled", N_LABELED)
        options["y_labeled"] = labels_of(model)
    if "rows" in words:
        options["X_reference"] = rows_of(model, "reference", 7)
    if "costs" in words:
        options["costs"] = generator(f"{name}/costs").integers(1, 12, size=N_POINTS) / 4
    if "candidates" in words:
        options["candidates"] = generator(f"{name}/candidates").permutation(N_POINTS)[:8]
    return options


def pool_of(name: str) -> np.ndarray:
    """Return the pool of a situation."""
    model = name.split("-")[1]
    pool = rows_of(model, "pool", N_POINTS)
    return pool.astype(np.float32) if model == "net" else pool


def query_situations() -> list[tuple[Setting, str]]:
    """Return which settings are asked about which models."""
    s = settings
    pairs = [(setting, "query-forest") for setting in MAIN]
    pairs += [(setting, "query-regressor") for setting in MAIN if "value" in setting.kinds]
    pairs += [(setting, "query-forest-costs") for setting in (s.MARGIN, s.ICAL, s.BATCH_BALD)]
    pairs += [(setting, "query-logistic") for setting in (s.BALD, s.ICAL, s.MARGIN)]
    compared = (s.EPIG, s.ICAL, s.POINTWISE, s.JOINT, s.SEQUENTIAL, s.MRMR, s.FILTERED)
    pairs += [(setting, "query-trees-rows") for setting in compared]
    pairs += [(setting, "query-trees-candidates") for setting in (s.COVERAGE, s.STOCHASTIC)]
    pairs += [(setting, "query-pipeline") for setting in (s.FASS, s.ICAL)]
    pairs += [(s.LOGDET, "query-process"), (s.ICAL, "query-process"), (s.BALD, "query-process")]
    for method in ("maxdet", "maxdist", "kmeans++", "lcmd", "bait"):
        variant = replace(s.KERNEL, params={"method": method})
        pairs.append((variant, "query-process-labeled"))
    return [*pairs, (s.BALD, "query-net"), (s.ICAL, "query-net")]
