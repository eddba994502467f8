"""Every classifier and regressor of scikit-learn, fitted on a few rows, for tests of samplers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import all_estimators

CLASSIFIERS = dict(all_estimators(type_filter="classifier"))
REGRESSORS = dict(all_estimators(type_filter="regressor"))
MULTI_TARGET = {"MultiOutputClassifier", "ClassifierChain", "MultiOutputRegressor"}
MULTI_TARGET |= {"RegressorChain", "CCA", "PLSCanonical"}
# Less work than by default.
FASTER: dict[str, Any] = {
    "n_estimators": 5,
    "n_init": 1,
    "max_subpopulation": 30,
    "hidden_layer_sizes": (4,),
    "cv": 3,
}
INNER = {"classifier": GaussianNB(), "regressor": Ridge()}
PAIRS = {
    "classifier": [("nb", GaussianNB()), ("linear", LogisticRegression())],
    "regressor": [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3))],
}


@dataclass(frozen=True)
class Fitted:
    """A fitted model, the rows that it was fitted on, and others."""

    model: Any
    X_labeled: np.ndarray
    y_labeled: np.ndarray
    X_pool: np.ndarray


def fitted(name: str, **params: Any) -> Fitted:
    """Return the estimator of a name, fitted on rows and labels that it takes."""
    sort = "classifier" if name in CLASSIFIERS else "regressor"
    model = unfitted(name, **params)
    X = np.abs(np.random.default_rng(0).normal(size=(90, 1 if name == "IsotonicRegression" else 4)))
    if name == "CategoricalNB":
        X = np.floor(X)
    y = X[:, 0] + 0.1 * X.sum(axis=1) + 0.1
    if sort == "classifier":
        edges = [0.6] if "Threshold" in name else [0.4, 0.8]
        y = np.array(["a", "b", "c"], dtype=object)[np.searchsorted(np.quantile(y, edges), y)]
    if name in MULTI_TARGET or name.startswith("MultiTask"):
        y = np.stack([y, y[::-1]], axis=1)
    if name == "ClassifierChain":
        y = np.searchsorted(["a", "b", "c"], y)
    return Fitted(model.fit(X[:60], y[:60]), X[:60], y[:60], X[60:])


def unfitted(name: str, **params: Any) -> Any:
    """Return an estimator of a name; those around others get a plain one."""
    sort = "classifier" if name in CLASSIFIERS else "regressor"
    cls = {**CLASSIFIERS, **REGRESSORS}[name]
    known = {"estimator": INNER[sort], "base_estimator": INNER[sort], "estimators": PAIRS[sort]}
    if name.startswith(("Bagging", "AdaBoost", "RANSAC")):
        known.pop("estimator")
    if "estimator" in cls._get_param_names():
        known.pop("base_estimator")  # its old name, deprecated
    known |= FASTER | {"random_state": 0, "regressor": INNER["regressor"]} | params
    return cls(**{key: known[key] for key in cls._get_param_names() if key in known})
