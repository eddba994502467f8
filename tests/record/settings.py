"""The strategies of the record: each setting, and which situations it takes."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sklearn_ical import (
    BALDQuery,
    BatchBALDQuery,
    BayesianCoresetQuery,
    CoreSetQuery,
    EPIGQuery,
    FarthestFirstQuery,
    FASSQuery,
    FilteredQuery,
    ICALCoverageQuery,
    ICALJointQuery,
    ICALPointwiseQuery,
    ICALQuery,
    ICALSequentialQuery,
    KernelBatchQuery,
    LeastConfidentQuery,
    LogDetQuery,
    MarginQuery,
    MaxEntropyQuery,
    MRMRQuery,
    RandomQuery,
    StochasticQuery,
    TypiClustQuery,
)
from sklearn_ical.strategies import QueryTags, all_strategies

N_POINTS = 12
CLASSIFICATION = ("proba", "label")
# What an option of a call needs: the words of a situation that only some strategies take.
OPTIONAL = {"weights", "costs", "reference", "rows", "marginal", "labeled"}
# The situations of settings other than the main ones.
FEW = ("proba-ties", "label", "value")
REAL = ("proba-ties", "value-ties")
# Those of strategies that read features alone.
ROWS = ("value", "proba-ties", "label-ties-candidates", "value-clipped", "label-costs-budget")
ROWS += ("value-labeled", "label-labeled")


@dataclass(frozen=True)
class Setting:
    """A strategy with values of its parameters, and what it takes.

    `hidden` are parameters that keep the problems small and are left out of the name; `takes` are
    those words of OPTIONAL that the strategy accepts. `situations` None stands for all of them.
    """

    strategy: type
    kinds: tuple[str, ...] = ("proba", "label", "value")
    takes: frozenset[str] = frozenset({"weights", "costs"})
    hidden: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    features: bool = False
    situations: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Return the call that makes the strategy, without hidden parameters."""
        arguments = ", ".join(_argument(*item) for item in self.params.items())
        return f"{self.strategy.__name__}({arguments})"

    @property
    def all_params(self) -> dict[str, Any]:
        """Return the parameters, hidden ones too."""
        return {**self.hidden, **self.params}

    def make(self, seed: int) -> Any:
        """Return a new strategy with a fixed random state."""
        params = {
            name: value.make(seed) if isinstance(value, Setting) else value
            for name, value in self.all_params.items()
        }
        if "random_state" in inspect.signature(self.strategy).parameters:
            params["random_state"] = seed
        return self.strategy(**params)

    def accepts(self, words: list[str]) -> bool:
        """Return whether the strategy takes a situation, as the words of its name."""
        return words[0] in self.kinds and (OPTIONAL & set(words)) <= self.takes

    def varied(self, *, kinds: tuple[str, ...] = (), less: str = "", **params: Any) -> "Setting":
        """Return the setting with other parameters, asked in few situations."""
        return replace(
            self,
            params=params,
            kinds=kinds or self.kinds,
            takes=self.takes - set(less.split()),
            situations=FEW,
        )


def _argument(name: str, value: Any) -> str:
    if isinstance(value, Setting):
        return f"{name}={value.name}"
    if isinstance(value, np.ndarray):
        return f"{name}=array"
    return f"{name}={getattr(value, '__name__', None) or repr(value)}"


def _main(strategy: type, more: str = "", less: str = "", **fields: Any) -> Setting:
    takes = ({"weights", "costs"} | set(more.split())) - set(less.split())
    return Setting(strategy, takes=frozenset(takes), **fields)


def cauchy(squared_distances: Any) -> Any:
    """Return a kernel of squared distances that is not built in."""
    return 1 / (1 + squared_distances)


def double(rows: np.ndarray) -> np.ndarray:
    """Return features of rows, in place of a fitted transformer."""
    return 2 * np.asarray(rows)


class Halves:
    """A transformer that needs no fit, with a name for the names of problems."""

    __name__ = "halves"

    def transform(self, rows: np.ndarray) -> np.ndarray:
        """Return the features of rows."""
        return np.asarray(rows)[:, :2] / 2


ROW_WEIGHTS = np.arange(1, N_POINTS + 1) / 8

RANDOM = _main(RandomQuery)
ENTROPY = _main(MaxEntropyQuery)
MARGIN = _main(MarginQuery, kinds=CLASSIFICATION)
LEAST = _main(LeastConfidentQuery, kinds=CLASSIFICATION)
BALD = _main(BALDQuery)
ICAL = _main(ICALQuery, "reference rows", hidden={"n_reference": 6})
POINTWISE = _main(
    ICALPointwiseQuery, "reference rows marginal", hidden={"n_reference": 6, "n_marginal": 7}
)
COVERAGE = _main(ICALCoverageQuery, "reference rows")
SEQUENTIAL = _main(ICALSequentialQuery, "reference rows")
JOINT = _main(ICALJointQuery, "reference rows")
MRMR = _main(MRMRQuery, "reference rows")
BATCH_BALD = _main(BatchBALDQuery, kinds=CLASSIFICATION)
EPIG = _main(EPIGQuery, "rows", kinds=CLASSIFICATION, hidden={"n_reference": 6})
LOGDET = _main(LogDetQuery)
KERNEL = _main(KernelBatchQuery, "labeled rows")
FASS = _main(FASSQuery, less="costs", kinds=CLASSIFICATION, features=True)
CORESET = _main(BayesianCoresetQuery, less="costs")
CORE_SET = _main(CoreSetQuery, "labeled", features=True, situations=ROWS)
FARTHEST = _main(FarthestFirstQuery, "labeled", features=True, situations=ROWS)
TYPICLUST = _main(TypiClustQuery, "labeled", less="costs", features=True, situations=ROWS)
STOCHASTIC = _main(StochasticQuery, less="costs", params={"strategy": BALD})
FILTERED = _main(
    FilteredQuery,
    "rows",
    less="costs",
    kinds=CLASSIFICATION,
    params={"filter": MARGIN, "strategy": ICAL, "factor": 2},
)
MAIN = [RANDOM, ENTROPY, MARGIN, LEAST, BALD, ICAL, POINTWISE, COVERAGE, SEQUENTIAL, JOINT, MRMR]
MAIN += [BATCH_BALD, EPIG, LOGDET, KERNEL, FASS, CORESET, CORE_SET, FARTHEST, TYPICLUST]
MAIN += [STOCHASTIC, FILTERED]


def _default(strategy: type) -> Setting:
    """Return the setting of default parameters, which takes what the tags say."""
    tags: QueryTags = strategy().query_tags()
    words = {
        "weights": tags.predictions,
        "costs": tags.utilities == "gain",
        "reference rows": "reference" in tags.uses,
        "labeled": "labeled" in tags.uses and tags.predictions,
    }
    takes = frozenset(" ".join(word for word, taken in words.items() if taken).split())
    return Setting(strategy, kinds=tags.kinds, takes=takes, features=tags.features)


_SET = {setting.strategy for setting in MAIN}
MAIN += [_default(strategy) for strategy in all_strategies() if strategy not in _SET]


def _dependence(main: Setting, predictions: tuple[str, ...], outputs: str) -> Iterator[Setting]:
    """Vary the prediction, kernel and estimator of the strategies that compare with HSIC."""
    for prediction in predictions:
        yield replace(main.varied(prediction=prediction), situations=("proba", "proba-ties"))
    for kernel in ("auto", "rq", "rbf", "linear", "distance", cauchy):
        yield replace(main.varied(kernel=kernel, prediction=outputs), situations=REAL)
    yield main.varied(kernel="delta", prediction="sampled", kinds=CLASSIFICATION)
    if main is not JOINT:
        yield main.varied(estimator="unbiased", less="weights")
        yield main.varied(estimator="biased", prediction="expected")


def _ical() -> Iterator[Setting]:
    yield from _dependence(ICAL, ("sampled", "proba", "expected", "argmax"), "proba")
    yield ICAL.varied(step_size=3)
    yield ICAL.varied(resample=False)
    yield ICAL.varied(include_self=False)
    yield ICAL.varied(include_self=False, prediction="proba", estimator="unbiased", less="weights")
    yield ICAL.varied(information_weight=0.5)
    alone = ICAL.varied(information_weight=1.0, prediction="proba", include_self=False)
    yield replace(alone, situations=("proba", "value"))
    yield ICAL.varied(n_reference=200)


def _pointwise() -> Iterator[Setting]:
    yield from _dependence(POINTWISE, ("sampled", "proba", "expected", "argmax"), "proba")
    yield POINTWISE.varied(step_size=3)
    yield POINTWISE.varied(resample=False, prediction="proba")
    yield POINTWISE.varied(marginal=np.array([3, 3, 7, 0]))
    yield POINTWISE.varied(ratio_floor=0.5)
    yield POINTWISE.varied(n_reference=200, n_marginal=200)


def _coverage() -> Iterator[Setting]:
    yield from _dependence(COVERAGE, ("sampled", "proba", "expected", "argmax"), "proba")
    yield COVERAGE.varied(dependence="tau")
    yield COVERAGE.varied(dependence="tau", candidate_weight="margin", kinds=CLASSIFICATION)
    yield COVERAGE.varied(candidate_weight="entropy", kinds=CLASSIFICATION)
    yield COVERAGE.varied(candidate_weight=ROW_WEIGHTS)
    yield COVERAGE.varied(reference_weight="entropy", kinds=CLASSIFICATION)
    yield COVERAGE.varied(reference_weight="margin", objective="concave", kinds=CLASSIFICATION)
    yield COVERAGE.varied(reference_weight=ROW_WEIGHTS, objective="facility-location")
    yield COVERAGE.varied(information_weight=0.3)
    yield COVERAGE.varied(objective="concave", gamma=0.8)
    yield COVERAGE.varied(n_reference=4)


def _joint_information() -> Iterator[Setting]:
    yield SEQUENTIAL.varied(n_reference=5)
    yield from _dependence(JOINT, ("sampled", "proba", "argmax"), "proba")
    yield JOINT.varied(form="grouped", prediction="proba")
    yield JOINT.varied(form="scaled", rate=0.25)
    yield JOINT.varied(normalize=False)
    yield JOINT.varied(n_reference=5, prediction="proba")
    yield from _dependence(MRMR, ("sampled", "proba", "expected", "argmax"), "proba")
    yield MRMR.varied(redundancy_weight=0.3)
    yield MRMR.varied(n_reference=5)
    yield BATCH_BALD.varied(lazy=False)
    yield BATCH_BALD.varied(n_configurations=20)
    yield EPIG.varied(batch="pseudo-label")
    yield EPIG.varied(n_reference=200)


def _variances() -> Iterator[Setting]:
    several = ("proba-ties", "label-weights", "value-costs-budget", "value-targets", "value-noise")
    yield replace(LOGDET.varied(kernel="independent"), situations=several)
    yield LOGDET.varied(noise=0.1)
    yield LOGDET.varied(noise="ledoit-wolf", less="weights")
    yield LOGDET.varied(noise="ledoit-wolf", kernel="independent", less="weights")
    several += ("value-labeled", "label-labeled", "proba-candidates", "value-rows")
    for method in ("maxdist", "kmeans++", "lcmd", "bait"):
        less = "costs rows" if method == "lcmd" else "costs" if method == "bait" else "rows"
        yield replace(KERNEL.varied(method=method, less=less), situations=several)
    yield replace(KERNEL.varied(include_labeled=False), situations=("value-labeled", "label"))
    yield replace(KERNEL.varied(noise=0.1), situations=("value-labeled", "value-noise-labeled"))


def _features() -> Iterator[Setting]:
    norm = CORE_SET.varied(first="norm", features=None)
    yield replace(norm, situations=("value", "proba-ties", "label-costs-budget"))
    alone = CORE_SET.varied(include_labeled=False, features=Halves())
    yield replace(alone, situations=("value-labeled",))
    yield replace(CORE_SET.varied(features=double), situations=("value-labeled",))
    both = FARTHEST.varied(include_labeled=True, features=Halves())
    yield replace(both, situations=("value-labeled", "label"))
    yield replace(FARTHEST.varied(features=double), situations=("value",))
    yield replace(FARTHEST.varied(features=None), situations=("value",))
    few = TYPICLUST.varied(n_neighbors=2, min_cluster_size=2, max_clusters=3, features=None)
    yield replace(few, situations=("value", "proba-ties", "label-labeled"))
    yield replace(TYPICLUST.varied(features=double), situations=("value-labeled",))


def _filters() -> Iterator[Setting]:
    alone = FASS.varied(factor=1)
    yield replace(alone, takes=alone.takes | {"costs"}, situations=(*FEW, "label-costs-budget"))
    yield FASS.varied(factor=2)
    yield FASS.varied(features=double)
    yield FASS.varied(features=None, factor=3)
    yield FASS.varied(features=Halves(), factor=2)
    yield CORESET.varied(n_projections=5, gamma=0.7)
    yield CORESET.varied(floor=0.05, gamma=0)
    yield STOCHASTIC.varied(strategy=MARGIN, kind="softmax", beta=3, kinds=CLASSIFICATION)
    yield STOCHASTIC.varied(strategy=BALD, kind="softrank")
    yield STOCHASTIC.varied(strategy=BALD, kind="power", beta=0)
    yield STOCHASTIC.varied(strategy=COVERAGE, beta=2)
    yield FILTERED.varied(filter=BALD, strategy=LOGDET, factor=2, kinds=("proba", "value"))
    nested = STOCHASTIC.varied(strategy=ENTROPY)
    inner = FASS.varied(factor=2)
    fass = FILTERED.varied(filter=nested, strategy=inner, factor=2, kinds=CLASSIFICATION)
    yield replace(fass, features=True)
    yield FILTERED.varied(filter=ENTROPY, strategy=FILTERED, factor=2, kinds=CLASSIFICATION)


def all_settings() -> list[Setting]:
    """Return every setting of the record, the main one of each strategy first."""
    groups = (_ical, _pointwise, _coverage, _joint_information, _variances, _features, _filters)
    return [*MAIN, *(setting for group in groups for setting in group())]
