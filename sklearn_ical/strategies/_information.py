"""Parameter information: summary kernels shifted towards the kernel of the draw itself."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sklearn_ical import _array
from sklearn_ical._array import Array
from sklearn_ical.dependence import hsic_dual
from sklearn_ical.strategies._pool import Pool
from sklearn_ical.strategies._scorer import Scorer


@dataclass(frozen=True)
class Information:
    """Mixes dependence on reference rows with dependence on the posterior draw.

    HSIC is linear in each kernel, so reference kernels S become (1 - weight) S + weight c I, where
    I, the identity, is the delta kernel of the draw's index: dependence on it is what a prediction
    tells about the parameters. The number c makes both parts equally large on average over the
    pool.

    Attributes
    ----------
    weight : float
        From 0 to 1.
    mean_kernel : float64 host array of shape (n_draws, n_draws)
        Of the whole pool, up to an added constant.
    dual : float64 host array of shape (n_draws, n_draws)
        Of the identity.
    """

    weight: float
    mean_kernel: np.ndarray
    dual: np.ndarray

    def amounts(self, duals: Array) -> np.ndarray:
        """Return weight * c for duals of reference kernels, (n_steps, m, m) -> (n_steps,)."""
        mean = _array.like(self.mean_kernel, duals)
        relevance = _array.to_host(_array.namespace(duals).sum(duals * mean, axis=(1, 2)))
        known = float(np.sum(self.dual * self.mean_kernel))
        return self.weight * relevance / known if known > 0 else np.zeros(len(relevance))

    def extent(self, duals: Array, amounts: np.ndarray) -> Array:
        """Return the sum of the magnitudes of what `shifted` adds up."""
        parts = np.abs(amounts)[:, None, None] * np.abs(self.dual)
        return (1 - self.weight) * _array.namespace(duals).abs(duals) + _array.like(parts, duals)

    def shifted(self, duals: Array, amounts: Any) -> Array:
        """Return the duals of shifted kernels: (n_steps, m, m), (n_steps,) or a number."""
        amounts = np.reshape(np.asarray(amounts, dtype=np.float64), (-1, 1, 1))
        added = _array.like(amounts, duals) * _array.like(self.dual, duals)
        return (1 - self.weight) * duals + added


def check_information(query: Any, owner: str) -> None:
    """Refuse an estimator that cannot see what is to be added."""
    if query.information_weight > 0 and query.estimator == "unbiased":
        raise ValueError(
            "information_weight needs estimator='biased': the unbiased estimator leaves out the "
            "diagonals of kernels, and the kernel of the draw is nothing else. Got "
            f"information_weight={query.information_weight!r} and 'unbiased' in {owner}."
        )


def information_of(
    query: Any, pool: Pool, scorer: Scorer, make: Callable[[Pool], tuple[Scorer, float]]
) -> Information | None:
    """Return the shift that a query asks for, None for a weight of 0.

    `scorer` is that of the call's candidates; `make` makes one of others.
    """
    if query.information_weight == 0:
        return None
    if len(pool.candidates) < pool.n_points:
        scorer, _ = make(replace(pool, candidates=np.arange(pool.n_points)))
    dual = hsic_dual(np.eye(scorer.n_draws), weights=scorer.weights)
    return Information(float(query.information_weight), scorer.mean_kernel(), dual)
