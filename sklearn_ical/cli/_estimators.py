"""The estimators of `sklearn-ical compare`, with the preprocessing that mixed columns need."""

from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_ical.cli._errors import CommandError

DRAWN = ("forest",)  # those with posterior draws of their own; others are refitted for them


def build_estimator(name: str, X: Any, n_estimators: int) -> Any:
    """Return "forest", "logistic" or "knn", after preprocessing of the columns if needed."""
    model: Any
    if name == "forest":
        # Fully grown trees predict each row with certainty, so BALD would be the same as entropy.
        model = RandomForestClassifier(n_estimators, min_samples_leaf=2)
    elif name == "logistic":
        model = LogisticRegression(max_iter=1000)
    else:
        model = KNeighborsClassifier()
    numeric = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    if isinstance(X, np.ndarray):
        if X.dtype.kind not in "biuf":
            raise CommandError(f"The data must be numbers. Got an array of dtype {X.dtype}.")
        return model if name == "forest" else make_pipeline(numeric, model)
    numbers, texts = _columns(X)
    if name == "forest" and not texts:
        return model
    categories = OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(make_column_transformer((numeric, numbers), (categories, texts)), model)


def _columns(frame: Any) -> tuple[list[str], list[str]]:
    """Return the names of the numeric and of the text columns."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    numbers = [c for c in frame.columns if is_numeric_dtype(frame[c]) or is_bool_dtype(frame[c])]
    return numbers, [c for c in frame.columns if c not in numbers]
