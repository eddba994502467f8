"""Types that several public signatures share, and the tags of strategies; nothing is checked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

Integer: TypeAlias = int | np.integer[Any]
Real: TypeAlias = float | np.floating[Any] | np.integer[Any]
Seed: TypeAlias = int | np.integer[Any] | np.random.RandomState | np.random.Generator | None


class SupportsArray(Protocol):
    """Anything that numpy converts to an array: arrays, torch tensors, pandas or polars series."""

    def __array__(self) -> NDArray[Any]:
        """Return the array."""


Numbers: TypeAlias = Sequence[Real] | SupportsArray
Positions: TypeAlias = Sequence[Integer | np.bool] | SupportsArray
PositionSets: TypeAlias = Positions | Sequence[Positions]


class SupportsTransform(Protocol):
    """A fitted transformer of scikit-learn."""

    @property
    def transform(self) -> Callable[..., Any]:
        """The method, called as ``transform(X)``."""


# Sources of the features of rows.
Features: TypeAlias = Literal["auto"] | SupportsTransform | Callable[[Any], Any] | None

# What `query` and `select` return, without utilities and with them.
Indices: TypeAlias = NDArray[np.intp]
Utilities: TypeAlias = NDArray[np.float64]
IndicesAndUtilities: TypeAlias = tuple[Indices, Utilities]

Kind: TypeAlias = Literal["proba", "label", "value"]
NetKind: TypeAlias = Literal["proba", "value"]
DependentRows: TypeAlias = Literal["raise", "allow"]
Layout: TypeAlias = Literal["NKC", "KNC", "NCK"]
Prediction: TypeAlias = Literal["sampled", "proba", "expected", "argmax"]
Kernel: TypeAlias = (
    Literal["auto", "rq", "rbf", "linear", "delta", "distance"] | Callable[[Any], Any]
)
HSICEstimator: TypeAlias = Literal["biased", "unbiased"]
Read: TypeAlias = Literal["draws", "mean", "features", "gradients", "labeled", "refits"]
Use: TypeAlias = Literal["reference", "labeled", "model"]
Uncertainty: TypeAlias = Literal["margin", "entropy"]
# The names of sklearn_ical._names, as type checkers need them.
StrategyName: TypeAlias = Literal[
    "random",
    "entropy",
    "margin",
    "least-confident",
    "bald",
    "batchbald",
    "power-bald",
    "epig",
    "logdet",
    "kernel-batch",
    "fass",
    "bayesian-coreset",
    "core-set",
    "farthest-first",
    "typiclust",
    "ical",
    "ical-pointwise",
    "ical-coverage",
    "ical-sequential",
    "ical-joint",
    "mrmr",
    "margin-ical",
]

Scoring: TypeAlias = str | Callable[..., Any] | Iterable[str] | Mapping[str, Any] | None


class QueryOptions(TypedDict, total=False):
    """Keyword arguments of `query`, for type checkers."""

    candidates: Positions | None
    X_labeled: Any
    y_labeled: Any
    fit_params: Mapping[str, Any] | None
    X_reference: Any
    reference: PositionSets | None
    features: Any
    labeled_features: Any
    reference_features: Any
    costs: Numbers | None
    budget: Real | None


@dataclass(frozen=True)
class QueryTags:
    """What a strategy reads and guarantees, for checks, loops and tools.

    Attributes
    ----------
    deterministic : bool
        Whether the picks depend only on what is read, not on `random_state`.
    utilities : {"gain", "other"}
        "gain": each pick is the first nan-argmax of its row of utilities, and may be chosen by
        utility per cost. Others do not support costs.
    kinds : tuple of {"proba", "label", "value"}
        Supported kinds of prediction samples.
    reads : tuple of {"draws", "mean", "features", "gradients", "labeled", "refits"}
        Required inputs of a query; () if nothing is read. "mean" is the model's own mean
        prediction, such as any classifier's `predict_proba`; "labeled" are the labeled rows. A
        model is needed only for draws, mean, gradients and refits.
    uses : tuple of {"reference", "labeled", "model"}
        Optional inputs, used if given.
    min_draws : int
        Smallest number of draws that makes sense.
    max_pool : int or None
        Largest supported pool; None for no limit.
    """

    deterministic: bool = True
    utilities: Literal["gain", "other"] = "gain"
    kinds: tuple[Kind, ...] = ("proba", "label", "value")
    reads: tuple[Read, ...] = ("draws",)
    uses: tuple[Use, ...] = ()
    min_draws: int = 1
    max_pool: int | None = None

    @property
    def predictions(self) -> bool:
        """Whether predictions of a model are read."""
        return "draws" in self.reads or "mean" in self.reads

    @property
    def features(self) -> bool:
        """Whether features of rows are read."""
        return "features" in self.reads


class Strategy(Protocol):
    """Any object with the method `query`; strategies of this package derive from BaseQuery."""

    @property
    def query(self) -> Callable[..., Any]:
        """The method, called as ``query(model, X_pool, batch_size)``."""


Initial: TypeAlias = Literal["balanced", "random"] | StrategyName | Strategy | Positions | None


if TYPE_CHECKING:
    # scikit-learn ships no types: with its bases, any attribute of a strategy would be accepted.

    class BaseEstimator:
        """The parameters of an estimator, as in scikit-learn."""

        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def __sklearn_clone__(self) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getstate__(self) -> Any: ...
        def __setstate__(self, state: Any) -> None: ...

    class MetaEstimatorMixin:
        """Marker of an estimator that wraps another."""

else:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin  # noqa: F401
