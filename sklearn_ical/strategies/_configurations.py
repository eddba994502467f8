"""Gains of many candidates given configurations of labels; the configurations live elsewhere."""

import copy
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical._validation import blas_threads
from sklearn_ical.dependence import Configurations
from sklearn_ical.samples import PredictionSamples
from sklearn_ical.selection import merge_ties
from sklearn_ical.strategies._pool import Predictions

# Configurations and classes of candidates are multiplied in tiles that stay in the caches.
TILE_COLUMNS = 2**9
TILE_BYTES = 2**19
# Work on fewer points times configurations than this is over before threads are up.
PARALLEL_SIZE = 2**18


class Gains:
    """What the label of each candidate tells of the draw, given the labels of those chosen.

    The mean over the configurations of the information under each one's posterior. Formed on the
    device of the predictions and in single precision, unless `double`, to make a shortlist; exact
    gains are formed on the host.

    Parameters
    ----------
    predictions : Predictions
        Of the pool, of kind "proba" or "label".
    candidates : intp array of shape (n_candidates,)
    configurations : Configurations
        Of the labels chosen so far.
    double : bool
    """

    def __init__(
        self,
        predictions: Predictions,
        candidates: np.ndarray,
        configurations: Configurations,
        *,
        double: bool,
    ) -> None:
        self.predictions = predictions
        self.candidates = candidates
        self.configurations = configurations
        self.double = double
        self._exact = np.full(len(candidates), np.nan)
        self._n_classes = 1

    def given(self, place: int) -> "Gains":
        """Return the gains of the next step, given the label of one candidate too."""
        configurations = copy.copy(self.configurations)
        configurations.add(self.proba(place))
        after = Gains(self.predictions, self.candidates, configurations, double=self.double)
        after._n_classes = self._n_classes
        return after

    def proba(self, place: int) -> np.ndarray:
        """Return the class probabilities of one candidate, (n_active, n_classes)."""
        samples = self.predictions.take(self.candidates[[place]])
        return _active_proba(samples, self.configurations.active)[0]

    def tolerance(self) -> float:
        """Return four error bounds of one gain at the present precision."""
        return 4 * self._error(np.float64 if self.double else np.float32)

    def screen(
        self, places: np.ndarray, n_rows: int | None = None, less: Array | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute gains and standard errors of some places from the first configurations.

        With `less`, (n_rows,) on the host, each configuration's information is less so much.
        """
        n_rows = len(self.configurations.mass) if n_rows is None else n_rows
        mass = self.configurations.mass[:n_rows]
        mass = mass / mass.sum()
        sums = np.empty((3, len(places)))
        tiles: Any = None
        for where, samples in self._chunks(places):
            if tiles is None:
                tiles = _Tiles(self.configurations, mass, less, samples.values, self.double)
            self._n_classes = max(self._n_classes, samples.n_classes)
            sums[:, where] = tiles.sums(samples)
        mean, first, second = sums
        square = np.sum(mass**2)
        return mean, np.sqrt(np.maximum(second - 2 * mean * first + mean**2 * square, 0.0))

    def exact(self, places: np.ndarray) -> np.ndarray:
        """Compute gains on the host in float64; those that rounding alone sets apart are equal.

        Equal rows get equal bits, also with their classes in another order.
        """
        missing = places[np.isnan(self._exact[places])]
        for where, samples in self._chunks(missing) if len(missing) else ():
            rows = _ordered_classes(_active_proba(samples, self.configurations.active))
            distinct, which = _array.unique_rows(rows.reshape(len(rows), -1))
            columns = distinct.reshape(-1, *rows.shape[1:])
            gains = [self.configurations.information(one.T.copy()) for one in columns]
            self._exact[missing[where]] = np.array(gains)[which]
        return merge_ties(self._exact[places], self._error(np.float64))

    def _chunks(self, places: np.ndarray) -> Any:
        row_bytes = 24 * len(self.configurations.active) * self._n_classes
        return self.predictions.chunks(self.candidates[places], row_bytes)

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
        if large and _array.is_numpy(samples.values):  # others see to it themselves
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
    """Yield as many threads as BLAS has, which has one meanwhile.

    Most time goes into logs, which threads within matrix products would wait for.
    """
    blas = blas_threads()
    n_threads = max((library["num_threads"] for library in blas.info()), default=1)
    with blas.limit(limits=1), ThreadPoolExecutor(n_threads) as pool:
        yield pool


def _active_proba(samples: PredictionSamples, active: np.ndarray) -> np.ndarray:
    """Return host float64 class probabilities of the draws that take part."""
    values = samples.votes() if samples.kind == "label" else samples.values
    return _array.to_host(values).astype(np.float64)[:, active]


def _ordered_classes(proba: np.ndarray) -> np.ndarray:
    """Return (n_points, n_classes, n_draws) with the classes in an order of their own bytes."""
    columns = np.ascontiguousarray(np.swapaxes(proba, 1, 2)) + 0.0  # no -0.0
    packed = columns.view(np.dtype((np.void, columns.itemsize * columns.shape[2])))
    return np.sort(packed, axis=1).view(np.float64).reshape(columns.shape)
