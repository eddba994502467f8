"""The table of models in the README and the user guide, made from fitted models and their samplers.

``python -m pytest tests/samplers/test_model_table.py --write-tables`` writes it anew.
"""

import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_ical import ICALQuery
from sklearn_ical.samplers import (
    BootstrapSampler,
    DeepEnsembleSampler,
    EnsembleSampler,
    MCDropoutSampler,
    get_sampler,
)
from tests.fitted_models import CLASSIFIERS, Fitted, fitted
from tests.samplers.test_every_estimator import ASKED

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "user_guide" / "samples_and_models.rst"
NAMES = """
RandomForestClassifier RandomForestRegressor ExtraTreesClassifier ExtraTreesRegressor
BaggingClassifier BaggingRegressor VotingClassifier VotingRegressor CalibratedClassifierCV
BayesianRidge ARDRegression GaussianProcessRegressor GaussianProcessClassifier
LogisticRegression SVC LinearSVC KNeighborsClassifier GaussianNB MLPClassifier
DecisionTreeClassifier GradientBoostingClassifier HistGradientBoostingClassifier
AdaBoostClassifier SGDClassifier RidgeClassifier LinearDiscriminantAnalysis
OneVsRestClassifier StackingClassifier LinearRegression Ridge Lasso SVR KNeighborsRegressor
MLPRegressor DecisionTreeRegressor GradientBoostingRegressor HistGradientBoostingRegressor
StackingRegressor MultiOutputRegressor
""".split()
AROUND: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "`Pipeline` around a forest": (
        "RandomForestClassifier",
        lambda model: make_pipeline(StandardScaler(), model),
    ),
    "`GridSearchCV` over a forest": (
        "RandomForestClassifier",
        lambda model: GridSearchCV(model, {"max_depth": [2, 3]}, cv=2),
    ),
    "`FrozenEstimator` around a forest": ("RandomForestClassifier", FrozenEstimator),
    "`TransformedTargetRegressor` around `BayesianRidge`": (
        "BayesianRidge",
        lambda model: TransformedTargetRegressor(model, transformer=StandardScaler()),
    ),
    "list of models": ("GaussianNB", lambda model: [model, model]),
    "dict of models": ("GaussianNB", lambda model: {"a": model, "b": model}),
}


@cache
def models() -> dict[str, Fitted]:
    """Return the fitted models of the table, by what the table calls them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {f"`{name}`": fitted(name) for name in NAMES}
        for label, (name, wrap) in AROUND.items():
            inner = fitted(name)
            outer = wrap(inner.model)
            if hasattr(outer, "fit"):
                outer.fit(inner.X_labeled, inner.y_labeled)
            found[label] = Fitted(outer, inner.X_labeled, inner.y_labeled, inner.X_pool)
    return found


def rows() -> list[tuple[str, str, str]]:
    """Return models, where their draws come from and the cost; models alike share a row."""
    groups: dict[tuple[str, str], list[str]] = {}
    for label, fit in models().items():
        sampler = get_sampler(fit.model)
        groups.setdefault((sampler.source, sampler.cost), []).append(label)
    stacking = EnsembleSampler(models()["`StackingClassifier`"].model)
    groups[stacking.source, stacking.cost] = ["`EnsembleSampler(stacking)`"]
    # Tested with nets of their own, where torch is installed.
    nets = "skorch nets and torch modules with dropout, also behind a `Pipeline` or in a search"
    groups[MCDropoutSampler.source, MCDropoutSampler.cost] = [nets]
    several = (DeepEnsembleSampler.source, DeepEnsembleSampler.cost)
    groups[several].append("list of nets, `DeepEnsembleSampler(files, template=net)`")
    return [(", ".join(labels), *how) for how, labels in groups.items()]


def markdown() -> str:
    """Return the table for the README."""
    lines = ["| model | where its draws come from | cost of the draws |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows()])


def restructured() -> str:
    """Return the table for the user guide."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 50 30 20", ""]
    for row in [("model", "where its draws come from", "cost of the draws"), *rows()]:
        cells = [cell.replace("`", "``") for cell in row]
        lines += [f"   {mark} {cell}" for mark, cell in zip("*  ", cells, strict=True)]
    table = "\n".join(lines)
    return re.sub(r"^   (\*| ) ", lambda m: f"   {m[1]} - ", table, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("path", "table", "start", "end"),
    [
        (README, markdown, "<!-- table of models -->\n", "\n<!-- end of table -->"),
        (GUIDE, restructured, ".. table of models\n\n", "\n\n.. end of table"),
    ],
    ids=["README", "user guide"],
)
def test_table_is_that_of_the_fitted_models(
    path: Path, table: Callable[[], str], start: str, end: str, request: pytest.FixtureRequest
) -> None:
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(start)
    printed, after = rest.split(end)
    if request.config.getoption("--write-tables"):
        path.write_text(before + start + table() + end + after, encoding="utf-8")
    else:
        assert printed == table()


@pytest.mark.parametrize("label", AROUND)
def test_model_around_others_is_queried(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = models()[label]
    monkeypatch.setitem(BootstrapSampler.__init__.__kwdefaults__, "n_draws", 6)  # of 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        picks = ICALQuery(n_reference=20, random_state=0).query(
            fit.model, fit.X_pool, 5, X_labeled=fit.X_labeled, y_labeled=fit.y_labeled
        )
    assert len(set(picks.tolist())) == 5
    assert set(picks.tolist()) <= set(range(len(fit.X_pool)))


def test_table_names_at_least_thirty_estimators() -> None:
    assert len(NAMES) >= 30
    assert set(NAMES) <= set(ASKED)  # each is queried there
    assert {name for name in NAMES if name in CLASSIFIERS} > {"SVC", "RandomForestClassifier"}


@pytest.mark.parametrize("name", ["LogisticRegression", "KNeighborsRegressor", "LinearSVC"])
def test_cost_of_a_bootstrap_is_the_number_of_its_fits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, calls = models()[f"`{name}`"] if f"`{name}`" in models() else fitted(name), []
    original = type(fit.model).fit

    def counted(self: Any, *args: Any, **params: Any) -> Any:
        calls.append(self)
        return original(self, *args, **params)

    monkeypatch.setattr(type(fit.model), "fit", counted)
    sampler = get_sampler(fit.model)
    assert isinstance(sampler, BootstrapSampler)
    sampler.with_labeled(fit.X_labeled, fit.y_labeled).draw()
    assert sampler.cost == f"{len(calls)} fits"
    assert fit.model not in calls
