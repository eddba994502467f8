"""LightGBM: early stopping and categories in refits."""

from typing import Any

import numpy as np
import pytest

from sklearn_ical import BALDQuery, simulate
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler

lightgbm = pytest.importorskip("lightgbm")

X = np.random.default_rng(0).normal(size=(60, 4))
X[:, 2] = np.arange(60) % 4
# The label depends on the parity of a code, which is no threshold.
Y = (X[:, 2] % 2).astype(int)


def model(**params: Any) -> Any:
    quiet = {"n_estimators": 5, "verbose": -1, "n_jobs": 1, "min_child_samples": 2}
    return lightgbm.LGBMClassifier(**{**quiet, **params})


def test_early_stopping_needs_rows_to_validate_on() -> None:
    given = {"eval_X": (X[:20],), "eval_y": (Y[:20],)}
    fitted = model(early_stopping_round=2).fit(X, Y, **given)
    labeled = {"X_labeled": X, "y_labeled": Y}
    message = r"With early_stopping_round=2, fit needs rows.*or set early_stopping_round=None"
    with pytest.raises(UnsupportedModelError, match=message):
        BALDQuery().query(fitted, X, **labeled)
    assert len(BALDQuery().query(fitted, X, 2, fit_params=given, **labeled)) == 2
    result = simulate(model(early_stopping_round=2), X, Y, "bald", n_rounds=1, fit_params=given)
    assert result.n_labeled.tolist() == [10, 11]


def test_categories_given_to_fit_reach_refits() -> None:
    params = {"n_estimators": 1, "max_depth": 1, "min_data_per_group": 1, "cat_smooth": 0}
    means = []
    for given in ({}, {"categorical_feature": [2]}):
        sampler = BootstrapSampler(model(**params), n_draws=3).fit(X, Y, **given)
        means.append(sampler.sample(X, random_state=0).mean()[:, 1])
    # Only a split of categories tells odd codes from even ones at once.
    assert means[1][Y == 1].min() > means[1][Y == 0].max()
    assert means[0][Y == 1].min() <= means[0][Y == 0].max()
