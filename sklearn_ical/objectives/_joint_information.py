"""Information gains of many candidates given configurations of the labels chosen so far."""

import copy
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._validation import blas_threads
from sklearn_ical.dependence import Configurations
from sklearn_ical.pool._pool import RowSet
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection._batch import merge_ties

# Configurations and classes of candidates are multiplied in tiles that stay in the caches.
TILE_COLUMNS = 2**9
TILE_BYTES = 2**19
# Less work than this, in points times configurations, is done before threads have started.
PARALLEL_SIZE = 2**18


class JointInformation:
    """Information of each candidate's label about the draw, given the labels of those chosen.

    The mean over the configurations of the information under each one's posterior. Formed on the
    device of the predictions and in single precision, unless `double`, to make a shortlist; exact
    gains are formed on the host.

    Parameters
    ----------
    rows : RowSet
        The pool, with predictions of kind "proba" or "label".
    candidates : intp array of shape (n_candidates,)
    configurations : Configurations
        Of the labels chosen so far.
    double : bool
    """

    def __init__(
        self,
        rows: RowSet,
        candidates: np.ndarray,
        configurations: Configurations,
        *,
        double: bool,
    ) -> None:
        self.rows = rows
        self.candidates = candidates
        self.configurations = configurations
        self.double = double
        self._exact = np.full(len(candidates), np.nan)
        self._n_classes = 1

    def given(self, slot: int) -> "JointInformation":
        """Return the gains of the next step, given the label of one candidate too."""
        configurations = copy.copy(self.configurations)
        configurations.add(self.proba(slot))
        after = JointInformation(self.rows, self.candidates, configurations, double=self.double)
        after._n_classes = self._n_classes
        return after

    def proba(self, slot: int) -> np.ndarray:
        """Return the class probabilities of one candidate, (n_active, n_classes)."""
        samples = self.rows.take(self.candidates[[slot]])
        return _active_proba(samples, self.configurations.active)[0]

    def tolerance(self) -> float:
        """Return four error bounds of one gain at the present precision."""
        return 4 * self._error(np.float64 if self.double else np.float32)

    def screen(
        self, slots: np.ndarray, n_rows: int | None = None, less: Array | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute gains and standard errors of some slots from the first configurations.

        With `less`, (n_rows,) on the host, each configuration's information is reduced by it.
        """
        n_rows = len(self.configurations.mass) if n_rows is None else n_rows
        mass = self.configurations.mass[:n_rows]
        mass = mass / mass.sum()
        tiles: list[_Tiles] = []

        def sums(samples: PredictionSamples) -> np.ndarray:
            if not tiles:
                tiles.append(_Tiles(self.configurations, mass, less, samples.values, self.double))
            self._n_classes = max(self._n_classes, samples.n_classes)
            return tiles[0].sums(samples).T

        mean, first, second = self._map(sums, slots).T
        square = np.sum(mass**2)
        return mean, np.sqrt(np.maximum(second - 2 * mean * first + mean**2 * square, 0.0))

    def exact(self, slots: np.ndarray) -> np.ndarray:
        """Compute gains on the host in float64, equal where they would differ by rounding alone.

        Equal rows get equal bits, also with their classes in another order.
        """
        missing = slots[np.isnan(self._exact[slots])]
        if len(missing):
            self._exact[missing] = self._map(self._information, missing)
        return merge_ties(self._exact[slots], self._error(np.float64))

    def _information(self, samples: PredictionSamples) -> np.ndarray:
        """Compute gains on the host in float64, once for equal rows."""
        rows = _ordered_classes(_active_proba(samples, self.configurations.active))
        distinct, which = _array.unique_rows(rows.reshape(len(rows), -1))
        columns = distinct.reshape(-1, *rows.shape[1:])
        gains = [self.configurations.information(one.T.copy()) for one in columns]
        return np.array(gains)[which]

    def _map(self, function: Callable[[PredictionSamples], Any], slots: np.ndarray) -> Any:
        row_bytes = 24 * len(self.configurations.active) * self._n_classes
        return self.rows.map(function, self.candidates[slots], row_bytes=row_bytes)

    def _error(self, dtype: Any) -> float:
        """Bound the rounding of one gain: two entropies of sums over draws, added over classes."""
        n_terms = len(self.configurations.active) + 2 * self._n_classes + 16
        n_terms += 4 * self.configurations.n_points
        return float(np.finfo(dtype).eps) * n_terms * (1 + math.log(self._n_classes))


class _Tiles:
    """Configurations beside the samples, and sums over them for blocks of points."""

    def __init__(
        self,
        configurations: Configurations,
        mass: np.ndarray,
        less: np.ndarray | None,
        values: Array,
        double: bool,
    ) -> None:
        xp = _array.namespace(values)
        self.dtype = xp.float64 if double else xp.float32
        self.item, self.tiny = (8, 1e-300) if double else (4, 1e-30)
        self.active = configurations.active
        posterior = configurations.posterior[: len(mass)]
        posterior = np.where(posterior < self.tiny, 0.0, posterior)
        self.posterior = _array.like(posterior, values, self.dtype)
        self.mass = _array.like(np.stack([mass, mass**2]), values, xp.float64)
        self.less = None if less is None else _array.like(less[:, None], values, xp.float64)

    def sums(self, samples: PredictionSamples) -> np.ndarray:
        """Sum mass * d, mass^2 * d and mass^2 * d^2 over the configurations, (3, n_points)."""
        n, step = samples.n_points, max(1, TILE_COLUMNS // samples.n_classes)
        blocks = [samples[i : min(i + step, n)] for i in range(0, n, step)]
        large = n * self.posterior.shape[0] >= PARALLEL_SIZE
        if large and _array.is_numpy(samples.values):  # other backends use threads themselves
            with _threads() as pool:
                parts = list(pool.map(self._block, blocks))
        else:
            parts = [self._block(block) for block in blocks]
        return np.concatenate(parts, axis=1)

    def _block(self, samples: PredictionSamples) -> np.ndarray:
        columns = self._columns(samples)  # (n_active, n_classes, n_points)
        xp = _array.namespace(columns)
        n_active, n_classes, n_points = columns.shape
        given_draw = xp.sum(columns * xp.log(columns), axis=1)  # (n_active, n_points)
        columns = xp.reshape(columns, (n_active, n_classes * n_points))
        n_rows = self.posterior.shape[0]
        height = max(1, TILE_BYTES // (self.item * columns.shape[1]))
        total: Any = 0.0
        for start in range(0, n_rows, height):
            rows = slice(start, min(start + height, n_rows))
            posterior, mass = self.posterior[rows, :], self.mass[:, rows]
            predictive = posterior @ columns
            predictive = xp.reshape(predictive * xp.log(predictive), (-1, n_classes, n_points))
            d = posterior @ given_draw - xp.sum(predictive, axis=1)
            d = xp.astype(d, xp.float64)
            if self.less is not None:
                d = d - self.less[rows, :]
            total = total + xp.concat([mass @ d, mass[1:, :] @ d**2], axis=0)
        return _array.to_host(total)

    def _columns(self, samples: PredictionSamples) -> Array:
        """Return class probabilities with the points last, above 0 so that they have logs."""
        values = samples.values
        xp = _array.namespace(values)
        if samples.kind == "label":
            values = samples.votes()
        if len(self.active) < samples.n_draws:
            values = xp.take(values, _array.like(self.active, values), axis=1)
        values = xp.astype(xp.permute_dims(values, (1, 2, 0)), self.dtype)
        return xp.where(values < self.tiny, xp.full_like(values, self.tiny), values)


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of as many threads as BLAS has, which is limited to one meanwhile.

    Most time is spent on logarithms, during which threads of matrix products would wait.
    """
    blas = blas_threads()
    n_threads = max((library["num_threads"] for library in blas.info()), default=1)
    with blas.limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
        yield pool


def _active_proba(samples: PredictionSamples, active: np.ndarray) -> np.ndarray:
    """Return host float64 class probabilities of the active draws."""
    values = samples.votes() if samples.kind == "label" else samples.values
    return _array.to_host(values).astype(np.float64)[:, active]


def _ordered_classes(proba: np.ndarray) -> np.ndarray:
    """Return (n_points, n_classes, n_draws) with the classes in an order of their own bytes."""
    columns = np.ascontiguousarray(np.swapaxes(proba, 1, 2)) + 0.0  # no -0.0
    packed = columns.view(np.dtype((np.void, columns.itemsize * columns.shape[2])))
    return np.sort(packed, axis=1).view(np.float64).reshape(columns.shape)
