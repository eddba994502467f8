"""What one call sees: RowSet, rows with predictions and features, and Pool, the call."""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical import _array
from sklearn_ical._labels import one_column
from sklearn_ical._validation import n_rows, numeric_rows, sliceable, take_rows
from sklearn_ical.pool._range import times
from sklearn_ical.samplers._base import (
    Draws,
    evaluate_in_chunks,
    get_embedding,
)
from sklearn_ical.samplers._pipelines import transform_rows
from sklearn_ical.samplers._probabilities import ProbabilitiesError
from sklearn_ical.samples import PredictionSamples, concatenate

# Rows passed to the model at once, so that its own overhead per call does not matter.
MODEL_BLOCK_ROWS = 20_000


class RowSet:
    """Rows with a model's predictions and features of them, evaluated only when they are read.

    Draws of weight 0 are left out of the predictions.

    Parameters
    ----------
    X, y : object, default=None
        The rows and their labels, as the caller gave them.
    name, caller : str
        Names of `X` and of the call, for messages.
    model : object, default=None
        The caller's model, from which features may be taken.
    samples : PredictionSamples, default=None
        Precomputed predictions.
    features : array-like of shape (n_points, n_features), default=None
        Precomputed features.
    like : RowSet, default=None
        The rows of the pool, for other rows than those: features are then checked to be as many as
        in the pool, and are dense or sparse as there.

    Attributes
    ----------
    n_points : int
        Number of rows.
    n_draws : int
        Number of draws of the predictions.
    kind : {"proba", "label", "value"}
        Kind of the predictions.
    weights : float64 array of shape (n_draws,) or None
        Draw weights of the predictions.
    given_weights : float64 array or None
        Weights of all draws, also of those that are left out.
    """

    n_draws: int
    kind: Any
    weights: Any
    given_weights: Any

    def __init__(
        self,
        X: Any = None,
        y: Any = None,
        *,
        name: str = "X_pool",
        caller: str = "",
        model: Any = None,
        samples: PredictionSamples | None = None,
        features: Any = None,
        like: "RowSet | None" = None,
    ) -> None:
        self.X, self.y, self.name = X, one_column(y), name
        self.caller, self.model = caller, model
        self._precomputed, self._like = features, like
        self._features: dict[Any, tuple[Any, Any]] = {}
        self._samples: Any = None
        self._draws: Any = None
        self._factor = 1.0
        y_name = name.replace("X_", "y_")
        given = {name: X, y_name: y, features_name(name): features, "samples": samples}
        counts = {key: n_rows(part, key) for key, part in given.items() if part is not None}
        if len(set(counts.values())) > 1:
            raise ValueError(
                f"{' and '.join(counts)} must have equally many rows. Got "
                f"{' and '.join(map(str, counts.values()))} in {caller}."
            )
        self.n_points = next(iter(counts.values()))
        if samples is not None:
            self._read_from(samples)

    def __len__(self) -> int:
        return self.n_points

    @property
    def classes(self) -> Any:
        """Labels of the columns of the predictions, None for values."""
        return self._draws.classes if self._samples is None else self._samples.classes

    def with_predictions(self, source: Draws | PredictionSamples) -> "RowSet":
        """Return these rows with predictions: of draws, evaluated where read, or precomputed."""
        return copy.copy(self)._read_from(source)

    def _read_from(self, source: Any) -> "RowSet":
        precomputed = isinstance(source, PredictionSamples)
        self.n_draws, self.kind, self.weights = source.n_draws, source.kind, source.weights
        self.given_weights, self._active, self._factor = source.weights, None, 1.0
        if self.weights is not None and not np.all(self.weights):
            self._active = np.flatnonzero(self.weights)
            weights = np.asarray(self.weights)[self._active]
            self.n_draws, self.weights = len(self._active), weights / weights.sum()
            source = source.take_draws(self._active) if precomputed else source
        self._samples, self._draws = (source, None) if precomputed else (None, source)
        return self

    def times(self, factor: float) -> "RowSet":
        """Return rows whose real predictions are multiplied by a power of two when read."""
        rows = copy.copy(self)
        rows._factor = self._factor * factor
        return rows

    @property
    def has_features(self) -> bool:
        """Whether precomputed features were given."""
        return self._precomputed is not None

    @property
    def is_held(self) -> bool:
        """Whether the predictions are in memory."""
        return self._samples is not None

    def hold(self) -> "RowSet":
        """Return rows with predictions evaluated once, if they fit in `working_memory`."""
        room = _array.working_bytes() // 4
        if self._samples is not None or self.n_points * self._row_bytes() > room:
            return self
        return self.with_predictions(self.take(np.arange(self.n_points)))

    def take(self, positions: np.ndarray) -> PredictionSamples:
        """Return the samples of some rows."""
        return concatenate([samples for _, samples in self.chunks(positions)])

    def map(
        self,
        function: Callable[..., Any],
        positions: np.ndarray | None = None,
        *arrays: np.ndarray,
        row_bytes: int = 0,
    ) -> Any:
        """Compute an array with an entry for each of some rows, in chunks.

        Parameters
        ----------
        function : callable
            ``function(samples, *parts)`` gets the samples of some rows and their entries of
            `arrays`, and returns an array with an entry for each row, or a tuple of such arrays.
            What it returns for a row depends on that row alone.
        positions : int array of shape (n,), default=None
            Which rows; None for all.
        *arrays : arrays of length n
            Further numbers of the rows.
        row_bytes : int, default=0
            The largest temporary of `function`, per row.

        Returns
        -------
        values : array of shape (n, ...), or tuple of such arrays
        """
        return collect(self._apply(function, positions, arrays, row_bytes))

    def reduce(
        self,
        function: Callable[..., Any],
        positions: np.ndarray | None = None,
        *arrays: np.ndarray,
        row_bytes: int = 0,
    ) -> Any:
        """Compute a sum over some rows, in chunks.

        Parameters
        ----------
        function : callable
            ``function(samples, *parts)`` returns the sum over the rows of one chunk: an array or
            number, or a tuple of such.
        positions, *arrays, row_bytes
            As in :meth:`map`.

        Returns
        -------
        total : array, number or tuple of such
        """
        return add_up(self._apply(function, positions, arrays, row_bytes))

    def _apply(
        self, function: Any, positions: np.ndarray | None, arrays: Any, row_bytes: int
    ) -> Iterator[Any]:
        """Yield the results of a function of chunks of rows."""
        positions = np.arange(self.n_points) if positions is None else positions
        for where, samples in self.chunks(positions, row_bytes):
            yield function(samples, *(array[where] for array in arrays))

    def chunks(
        self, positions: np.ndarray, row_bytes: int = 0
    ) -> Iterator[tuple[slice, PredictionSamples]]:
        """Yield slices of `positions` and the samples of those rows, in working chunks.

        `row_bytes` is the largest temporary that the reader needs per row. Use :meth:`map` and
        :meth:`reduce` where they do.
        """
        chunk = _array.chunk_rows(max(row_bytes, self._row_bytes()))
        block = chunk if self._samples is not None else max(chunk, MODEL_BLOCK_ROWS)
        for start in range(0, len(positions), block):
            rows = positions[start : start + block]
            for samples in self._read(rows, chunk):
                samples = samples if self._factor == 1 else times(samples, self._factor)
                yield slice(start, start + samples.n_points), samples
                start += samples.n_points

    def _read(self, rows: np.ndarray, chunk: int) -> Iterator[PredictionSamples]:
        """Yield the samples of `rows`, ascending or not, at most `chunk` of them at once."""
        first, last = int(rows[0]), int(rows[-1]) + 1
        run = last - first == len(rows) and bool((np.diff(rows) == 1).all())
        where: Any = slice(first, last) if run else rows
        if self._samples is not None:
            yield self._samples[where]
        else:
            whole = run and len(rows) == self.n_points
            X = self._sliceable if whole else take_rows(self._sliceable, where)
            try:
                for samples in evaluate_in_chunks(self._draws, X, chunk):
                    yield samples if self._active is None else samples.take_draws(self._active)
            except ProbabilitiesError as err:
                raise err.at(rows, self.name) from err.__cause__

    @cached_property
    def _sliceable(self) -> Any:
        """The rows in a form that can be sliced for the model, made once."""
        return sliceable(self.X)

    def _row_bytes(self) -> int:
        """Return the bytes of one row of predictions in float64."""
        if self._samples is not None:
            per_draw = int(np.prod(self._samples.values.shape[2:]))
        else:
            per_draw = 1 if self.classes is None else len(self.classes)
        return 8 * self.n_draws * per_draw

    def features(self, source: Any = "auto") -> Any:
        """Return the features of the rows, checked to be finite numbers.

        Parameters
        ----------
        source : {"auto"}, object with `transform`, callable or None, default="auto"
            How they are made: "auto" takes the input of the model's last step, or the rows
            themselves where there is no such step; None takes the rows. Features given with the
            call take precedence.

        Returns
        -------
        features : real array of shape (n_points, n_features) or CSR matrix
            On the host; made once for each source.
        """
        key = source if source is None or isinstance(source, str) else id(source)
        if key not in self._features:
            # With the source, so that no other object gets its id as long as it is held here.
            made = self._make_features(source)
            if self._like is not None:
                made = self._matched(made, self._like.features(source))
            self._features[key] = source, made
        return self._features[key][1]

    def _make_features(self, source: Any) -> Any:
        name, X, make = self.name, self.X, source
        if self._precomputed is not None:
            name, X, make = features_name(self.name), self._precomputed, None
        elif isinstance(source, type):
            raise TypeError(
                f"The 'features' parameter must be a fitted transformer or a function. Got the "
                f"class {source.__name__} in {self.caller}; fit an object of it first."
            )
        elif isinstance(source, str):
            make = get_embedding(self.model)
        if make is not None:
            name = f"What features makes of {self.name}"
            X = transform_rows(make, X) if hasattr(make, "transform") else make(X)
            if n_rows(X, name) != self.n_points:
                raise ValueError(
                    f"{name} must have one row for each of the {self.n_points} rows. Got "
                    f"{n_rows(X)} in {self.caller}."
                )
        elif self._precomputed is None and self._like is not None and hasattr(X, "columns"):
            X = self._in_order(X, self._like.X)
        X = _array.to_host(X) if _array.is_array(X) else X
        way_out = "pass features=, a fitted transformer or a function that makes such rows"
        return numeric_rows(X, name, self.caller, way_out)

    def _in_order(self, X: Any, others: Any) -> Any:
        """Return a frame with its columns in the order of those of the pool."""
        names, wanted = list(X.columns), list(getattr(others, "columns", X.columns))
        if sorted(map(str, names)) != sorted(map(str, wanted)):
            raise ValueError(
                f"{self.name} must have the columns of the pool, {wanted}. Got {names} in "
                f"{self.caller}."
            )
        return X if names == wanted else X[wanted]

    def _matched(self, features: Any, others: Any) -> Any:
        """Return features, dense or sparse as those of the rows that these have to match."""
        if self.n_points == 0:
            return others[:0]
        if features.shape[1] != others.shape[1]:
            name = features_name(self.name) if self.has_features else self.name
            raise ValueError(
                f"{name} must give as many features as there are for the rows of the pool, "
                f"{others.shape[1]}. Got {features.shape[1]} in {self.caller}."
            )
        if sparse.issparse(others):
            return sparse.csr_array(features)
        return features.toarray() if sparse.issparse(features) else features


def features_name(name: str) -> str:
    """Return the name of the argument for the features of "X_pool", "X_labeled", ..."""
    return "features" if name == "X_pool" else f"{name.removeprefix('X_')}_features"


def collect(results: Iterable[Any]) -> Any:
    """Join the arrays that a function returned for consecutive rows, or tuples of them."""
    parts = list(results)
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], tuple):
        return tuple(collect(each) for each in zip(*parts, strict=True))
    return _array.namespace(*parts).concat(parts, axis=0)


def add_up(results: Iterable[Any]) -> Any:
    """Add up what a function returned for chunks of rows: arrays, numbers or tuples of them."""
    total: Any = None
    for part in results:
        if total is None:
            total = part
        elif isinstance(part, tuple):
            total = tuple(a + b for a, b in zip(total, part, strict=True))
        else:
            total = total + part
    return total


@dataclass(frozen=True)
class Pool:
    """The checked arguments of one call, as a strategy's `_select` gets them.

    Attributes
    ----------
    caller : str
        Name of the call for messages, such as "ICALQuery.query".
    n_points : int
        Number of pool rows.
    candidates : intp array of shape (n_candidates,)
        Allowed positions, ascending. A slot is an index into them.
    requested, batch_size : int
        Number of picks requested, and of picks to make: at most that of the candidates.
    root : int
        The root seed of this call.
    rows : RowSet
        The rows of the pool.
    reference, labeled : RowSet or None
        The rows to compare with and the labeled rows, if they are given and the strategy uses them.
    reference_positions : object
        The argument `reference` of the call, or None.
    model : object
        As the caller gave it, or None.
    want_utilities : bool
        Whether the rows of utilities are requested.
    costs : float64 array of shape (n_candidates,) or None
        Cost of each candidate; see :class:`~sklearn_ical.selection.Batch`.
    budget : float
        Largest total cost of the picks; infinite if there is no limit.
    """

    caller: str
    n_points: int
    candidates: np.ndarray
    requested: int
    batch_size: int
    root: int
    rows: Any = None
    reference: RowSet | None = None
    labeled: RowSet | None = None
    reference_positions: Any = None
    model: Any = None
    want_utilities: bool = False
    costs: np.ndarray | None = None
    budget: float = np.inf

    @property
    def compared(self) -> Any:
        """The rows to compare with: the reference rows, else those of the pool."""
        return self.rows if self.reference is None else self.reference
