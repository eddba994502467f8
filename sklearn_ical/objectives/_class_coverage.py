"""Coverage of rows within their classes by squared distances, dense or sparse; no predictions."""

import math
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_ical import _array
from sklearn_ical.objectives._distances import (
    centered,
    exact_squared_distances,
    products,
    sums_of_runs,
)

PAIR_BYTES = 12  # a column and a distance
MOST_PAIRS = 2**30  # so that they are counted in 32 bits
N_PROBES = 64  # rows from which the number of pairs is estimated


class ClassCoverage:
    """Facility location within classes, on squared distances: an objective of ``maximize``.

    f(S) is the sum over the covered rows i of the largest w(i, s) >= 0 over the s in S of their
    class, 0 for none. w(i, s) = d - |x_i - x_s|^2, and d is the largest squared distance between
    covered rows. A pick changes only the gains of its own class.

    Parameters
    ----------
    features : real array of shape (n_points, n_features) or canonical CSR matrix
        Finite. Not modified.
    positions : intp array of shape (n_rows,)
        The rows of `features` that are covered or may be picked.
    classes : int array of shape (n_rows,)
        Their classes.
    covered : bool array of shape (n_rows,)
        Which of them are covered, at least one.
    slots : intp array of shape (n_candidates,)
        Which of them may be picked, in the order that decides ties.
    """

    submodular = True

    def __init__(
        self,
        features: Any,
        positions: np.ndarray,
        classes: np.ndarray,
        covered: np.ndarray,
        slots: np.ndarray,
    ) -> None:
        order = np.lexsort((~covered, classes))  # by class, and in each the covered rows first
        self._features, self._positions = features, positions[order]
        self._at = np.argsort(order)[slots]
        _, self._starts, self._class = np.unique(
            classes[order], return_index=True, return_inverse=True
        )
        covered = covered[order]
        rows, norms = centered(features[self._positions])
        largest = self._largest_distance(rows, norms, np.flatnonzero(covered))
        room = min(_array.working_bytes() // (4 * PAIR_BYTES), MOST_PAIRS) / len(order)
        self._groups = []
        self.error = 0.0
        for start, end in zip(self._starts, [*self._starts[1:], len(order)], strict=True):
            n_covered = int(covered[start:end].sum())
            near = np.full(n_covered, largest)
            group = _Group(rows[start:end], norms[start:end], near, room * (end - start))
            self._groups.append(group)
            self.error = max(self.error, group.error)
        self._version = np.zeros(len(self._groups), dtype=np.int64)
        self._seen = np.where(covered[self._at], 0, -1)  # the version of each slot's gain
        self._gains = np.full(len(slots), np.inf)
        first = np.concatenate([group.first_gains() for group in self._groups])
        self._gains[self._seen == 0] = first[self._at[self._seen == 0]]
        self._exact = np.empty(len(order))  # of distinct rows
        self._exact_seen = np.full(len(order), -1)

    def gains(self, slots: np.ndarray) -> tuple[np.ndarray, float]:
        """Return what rows would add, computed again where their class has changed.

        The first gains of covered rows are in closed form.
        """
        classes = self._class[self._at[slots]]
        stale = self._seen[slots] != self._version[classes]
        for y in np.unique(classes[stale]).tolist():
            outdated = slots[stale & (classes == y)]
            self._gains[outdated] = self._groups[y].gains(self._at[outdated] - self._starts[y])
            self._seen[outdated] = self._version[y]
        return self._gains[slots], self.error

    def exact(self, slots: np.ndarray) -> np.ndarray:
        """Return gains from explicit differences, the same for copies of a row.

        Each is the sum of distances to the batch less that of distances to the row, rounded once:
        two rows that are equally good because each covers the other tie, as they should.
        """
        copies, first, which = np.unique(
            self._copies[self._at[slots]], return_index=True, return_inverse=True
        )
        if len(copies) == 1:  # nothing to decide
            return np.full(len(slots), self._gains[slots[0]])
        at = self._at[slots[first]]
        classes = self._class[at]
        stale = self._exact_seen[copies] != self._version[classes]
        for y in np.unique(classes[stale]).tolist():
            outdated = stale & (classes == y)
            self._exact[copies[outdated]] = [
                _less(near, distances) for _, near, distances in self._reached(y, at[outdated])
            ]
        self._exact_seen[copies] = self._version[classes]
        return self._exact[copies][which]

    def add(self, slot: int) -> None:
        """Add a row to the batch."""
        y = int(self._class[self._at[slot]])
        [(rows, _, distances)] = self._reached(y, self._at[[slot]])
        if len(rows):
            self._groups[y].near[rows] = distances
            self._groups[y].undecided = True
            self._version[y] += 1

    @cached_property
    def _copies(self) -> np.ndarray:
        """Return which distinct row of its class each row is, (n_rows,)."""
        known: dict[Any, int] = {}
        keys = _contents(self._features, self._positions)
        pairs = zip(self._class.tolist(), keys, strict=True)
        return np.array([known.setdefault(pair, len(known)) for pair in pairs])

    def _reached(self, y: int, at: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield for rows of one class the covered rows that are nearer to each than to the batch.

        And how near those are to the batch and, by explicit differences, to the row.
        """
        group, positions = self._groups[y], self._positions[self._starts[y] :]
        for part in group.chunks(len(at)):
            rows = at[part] - self._starts[y]
            counts, covered = group.reached(rows)
            near = group.near[covered]
            others = np.repeat(positions[rows], counts)
            X = self._features
            distances = exact_squared_distances(X, positions[covered], X, others)
            nearer = distances < near
            ends = np.cumsum(counts)
            for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True):
                kept = nearer[start:end]
                yield covered[start:end][kept], near[start:end][kept], distances[start:end][kept]

    def _largest_distance(self, rows: Any, norms: np.ndarray, covered: np.ndarray) -> float:
        """Return the largest squared distance between covered rows.

        The rows are compared in the order of descending norms, until what is left lies in too
        small a ball to hold a pair farther apart than the farthest found.
        """
        order = covered[np.argsort(-norms[covered])]
        rows, norms = rows[order], norms[order]
        radii = np.sqrt(norms)
        chunk = _array.chunk_rows(8 * max(len(order), rows.shape[1]))
        farthest, pair, start = 0.0, (0, 0), 0
        while start < len(order):
            within = np.searchsorted(-radii, radii[start] - math.sqrt(farthest), side="right")
            block = slice(start, start + chunk)
            if within <= start:
                break
            distances = products(-2 * rows[block], rows[start:within])
            distances += norms[start:within]
            others = np.argmax(distances, axis=1)
            best = distances[np.arange(len(others)), others] + norms[block]
            i = int(np.argmax(best))
            if best[i] > farthest:
                farthest, pair = float(best[i]), (start + i, start + int(others[i]))
            start += chunk
        ends = self._positions[order[list(pair)]]
        X = self._features
        return float(exact_squared_distances(X, ends[:1], X, ends[1:])[0])


class _Group:
    """The rows of one class, the covered ones first, and how near the batch is to those.

    A row adds something only for covered rows that are nearer to it than to the batch. As soon as
    there are few such pairs of rows, they are kept, and other pairs are no longer evaluated.

    Attributes
    ----------
    near : float64 array of shape (n_covered,)
        Squared distance to the nearest row of the batch; the largest distance while it is empty.
    undecided : bool
        Whether `near` has changed since the number of pairs was last estimated.
    error : float
        Error bound of one gain.
    """

    def __init__(self, rows: Any, norms: np.ndarray, near: np.ndarray, room: float) -> None:
        self._rows, self._norms, self.near = rows, norms, near
        n_covered = len(near)
        self._covered = rows[:n_covered]
        self._room = int(room)  # number of pairs
        self._pairs: Any = None  # (n_rows, n_covered) CSR matrix of squared distances
        self.undecided = True
        size = 4 * float(norms.max()) + (float(near[0]) if n_covered else 0.0)
        # Rounding of the products and sums in a distance, and of a sum of distances, for which
        # numpy uses pairwise summation.
        epsilon = sys.float_info.epsilon
        self._distance_error = (rows.shape[1] + 8) * epsilon * size
        self.error = n_covered * (rows.shape[1] + 48) * epsilon * size

    def first_gains(self) -> np.ndarray:
        """Return what each row adds to an empty batch, from sums over the class."""
        n_covered = len(self.near)
        total = _column_sums(self._covered)
        first = self.near.sum() - self._norms[:n_covered].sum()
        return first - n_covered * self._norms + 2 * (self._rows @ total)

    def gains(self, rows: np.ndarray) -> np.ndarray:
        """Return what each of some rows adds, (n_rows,)."""
        if self.undecided and self._pairs is None:
            self._keep_pairs()
        if self._pairs is not None:
            kept = self._pairs[rows]
            return sums_of_runs(np.maximum(self.near[kept.indices] - kept.data, 0.0), kept.indptr)
        out = np.empty(len(rows))
        for part in self.chunks(len(rows)):
            closer = self._closer(rows[part])
            out[part] = np.maximum(closer, 0.0, out=closer).sum(axis=1)
        return out

    def reached(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many covered rows each row may be nearer to than the batch, and which."""
        if self._pairs is None:
            return self._pairs_of(rows)[:2]
        kept = self._pairs[rows]
        still = self.near[kept.indices] - kept.data >= -self._distance_error
        of_row = np.repeat(np.arange(len(rows)), np.diff(kept.indptr))
        return np.bincount(of_row[still], minlength=len(rows)), kept.indices[still]

    def _keep_pairs(self) -> None:
        """Keep the pairs in which a row adds something, if by a sample of rows they fit."""
        self.undecided = False  # until `near` changes
        n_rows, n_covered = self._rows.shape[0], len(self.near)
        few = np.unique(np.linspace(0, n_rows - 1, N_PROBES).astype(np.intp))
        n_seen = sum(len(self._pairs_of(few[part])[1]) for part in self.chunks(len(few)))
        if n_seen * n_rows > self._room * len(few):
            return
        most = min(self._room + self._room // 4, n_rows * n_covered)
        columns, distances = np.empty(most, dtype=np.int32), np.empty(most)
        ends = np.zeros(n_rows + 1, dtype=np.int32)
        stop = 0
        for part in self.chunks(n_rows):
            rows = np.arange(n_rows)[part]
            counts, found, how_far = self._pairs_of(rows)
            start, stop = stop, stop + len(found)
            if stop > most:  # the sample was not representative
                self._room //= 2
                return
            columns[start:stop], distances[start:stop] = found, how_far
            ends[rows + 1] = start + np.cumsum(counts)
        entries = distances[:stop], columns[:stop], ends
        self._pairs = sparse.csr_array(entries, shape=(n_rows, n_covered))

    def _pairs_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return how many pairs each row is in, with which covered rows, and their distances."""
        closer = self._closer(rows)
        flat = np.flatnonzero(closer >= -self._distance_error)
        of_row, column = np.divmod(flat, max(len(self.near), 1))
        counts = np.bincount(of_row, minlength=len(rows))
        return counts, column.astype(np.int32), self.near[column] - closer.reshape(-1)[flat]

    def _closer(self, rows: np.ndarray) -> np.ndarray:
        """Return by how much rows are nearer to the covered ones than the batch is."""
        closer = products(2 * self._rows[rows], self._covered)
        closer += self.near - self._norms[: len(self.near)]
        closer -= self._norms[rows, None]
        return closer

    def chunks(self, n_rows: int) -> list[slice]:
        """Return slices of rows whose distances to the covered ones fit in the working chunk."""
        return _array.row_slices(n_rows, 8 * max(len(self.near), self._rows.shape[1], 1))


def _less(near: np.ndarray, distances: np.ndarray) -> float:
    """Return the difference of both sums, rounded once."""
    return math.fsum([*near.tolist(), *(-distances).tolist()])


def _column_sums(rows: Any) -> np.ndarray:
    """Return the sums of columns by pairwise summation, unlike a sum over an axis."""
    if sparse.issparse(rows):
        columns = rows.tocsc()
        return sums_of_runs(columns.data, columns.indptr)
    return np.array([column.sum() for column in rows.T])


def _contents(features: Any, positions: np.ndarray) -> list[Any]:
    """Return for each row a key that only copies of it share."""
    if not sparse.issparse(features):
        return [features[position].tobytes() for position in positions.tolist()]
    indices, data, ends = features.indices, features.data, features.indptr
    spans = [slice(ends[i], ends[i + 1]) for i in positions.tolist()]
    return [(indices[span].tobytes(), data[span].tobytes()) for span in spans]
