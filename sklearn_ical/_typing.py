"""Types that several public signatures share; they are for type checkers, and check nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Integer: TypeAlias = int | np.integer[Any]
Real: TypeAlias = float | np.floating[Any] | np.integer[Any]
Seed: TypeAlias = int | np.integer[Any] | np.random.RandomState | np.random.Generator | None


class SupportsArray(Protocol):
    """What numpy can make an array of: arrays, tensors of torch, series of pandas or polars."""

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


# What `query` and `select` return, without utilities and with them.
Indices: TypeAlias = NDArray[np.intp]
Utilities: TypeAlias = NDArray[np.float64]
IndicesAndUtilities: TypeAlias = tuple[Indices, Utilities]

Kind: TypeAlias = Literal["proba", "label", "value"]
NetKind: TypeAlias = Literal["proba", "value"]
Layout: TypeAlias = Literal["NKC", "KNC", "NCK"]
Prediction: TypeAlias = Literal["sampled", "proba", "expected", "argmax"]
Kernel: TypeAlias = (
    Literal["auto", "rq", "rbf", "linear", "delta", "distance"] | Callable[[Any], Any]
)
HSICEstimator: TypeAlias = Literal["biased", "unbiased"]
Need: TypeAlias = Literal["nothing", "mean", "draws", "features", "labeled", "gradients"]
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
    "ical",
    "ical-pointwise",
    "ical-coverage",
    "ical-sequential",
    "ical-joint",
    "mrmr",
    "margin-ical",
]

Scoring: TypeAlias = str | Callable[..., Any] | Iterable[str] | Mapping[str, Any] | None
Initial: TypeAlias = Literal["balanced", "random"] | Positions | None


class Strategy(Protocol):
    """Any object with the method `query`; strategies of this package derive from BaseQuery."""

    @property
    def query(self) -> Callable[..., Any]:
        """The method, called as ``query(model, X_pool, batch_size)``."""


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
        """The mark of an estimator that holds another."""

else:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin  # noqa: F401
