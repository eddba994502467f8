"""All classifiers and regressors of scikit-learn: each gives picks, or says what to do instead."""

import warnings
from typing import Any

import joblib
import pytest
from sklearn.exceptions import NotFittedError

from sklearn_ical import ICALQuery
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers import BootstrapSampler, get_sampler
from tests.fitted_models import CLASSIFIERS, REGRESSORS, Fitted, fitted, unfitted

NAMES = sorted([*CLASSIFIERS, *REGRESSORS])
# Those that cannot be used, and what their message says.
REFUSED: dict[str, str] = {
    "ClassifierChain": "Fit one model per output",
    "MultiOutputClassifier": "Fit one model per output",
    # Rows far from all labeled ones have no prediction at all, as these models are by default.
    "IsotonicRegression": "Predictions must be finite.*remove such rows",
    "RadiusNeighborsClassifier": "cannot predict these rows.*larger radius",
    "RadiusNeighborsRegressor": "Predictions must be finite.*remove such rows",
}
WORKING: dict[str, dict[str, Any]] = {
    "IsotonicRegression": {"out_of_bounds": "clip"},
    "RadiusNeighborsClassifier": {"radius": 10.0},
    "RadiusNeighborsRegressor": {"radius": 10.0},
}
ASKED = [name for name in NAMES if name not in REFUSED]
OWN_DRAWS = {
    "ARDRegression",
    "BaggingClassifier",
    "BaggingRegressor",
    "BayesianRidge",
    "CalibratedClassifierCV",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "VotingClassifier",
    "VotingRegressor",
}


@pytest.fixture(autouse=True)
def few_refits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BootstrapSampler.__init__.__kwdefaults__, "n_draws", 6)


@pytest.mark.parametrize(("name", "params"), [*((name, {}) for name in ASKED), *WORKING.items()])
def test_estimator_gives_distinct_picks(name: str, params: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the fits
        fit = fitted(name, **params)
        before = joblib.hash(fit.model)
        picks = picked(fit, X_labeled=fit.X_labeled, y_labeled=fit.y_labeled)
        assert picks == picked(fit, X_labeled=fit.X_labeled, y_labeled=fit.y_labeled)
        if name in OWN_DRAWS:
            assert picks == picked(fit)
        else:
            refitted = type(get_sampler(fit.model).estimator).__name__
            wanted = rf"{refitted} has no posterior.*X_labeled=X, y_labeled=y"
            with pytest.raises(UnsupportedModelError, match=wanted):
                picked(fit)
        assert joblib.hash(fit.model) == before


@pytest.mark.parametrize("name", REFUSED)
def test_estimator_that_gives_no_samples_is_named_with_the_way_out(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = fitted(name)
        with pytest.raises((TypeError, ValueError), match=f"{name}.*{REFUSED[name]}"):
            picked(fit, X_labeled=fit.X_labeled, y_labeled=fit.y_labeled)


@pytest.mark.parametrize("name", NAMES)
def test_estimator_that_is_not_fitted_is_named(name: str) -> None:
    named = "GaussianNB" if "FixedThreshold" in name else name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = unfitted(name)
    with pytest.raises(NotFittedError, match=rf"{named} is not fitted yet"):
        get_sampler(model).draw()


def picked(fit: Fitted, **labeled: Any) -> list[int]:
    """Return five distinct picks."""
    picks = ICALQuery(n_reference=20, random_state=0).query(fit.model, fit.X_pool, 5, **labeled)
    assert len(set(picks.tolist())) == 5
    assert set(picks.tolist()) <= set(range(len(fit.X_pool)))
    return picks.tolist()
