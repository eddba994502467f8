"""Joint labels of several points: their entropy, and the posterior given each configuration."""

from typing import Any

import numpy as np

from sklearn_ical._array import Array, to_host
from sklearn_ical._random import CONFIGURATIONS, root_seed, stream_generator
from sklearn_ical._typing import Integer, Seed
from sklearn_ical._validation import check_integer
from sklearn_ical.dependence._entropy import _check_draw_weights, _check_samples

# What stands for a probability of 0, so that 0 log 0 is 0.
TINY = 1e-300


def joint_entropy(
    proba: Array,
    *,
    weights: Array | None = None,
    n_configurations: Integer = 10_000,
    random_state: Seed = None,
) -> float:
    """Compute the entropy of the labels of all points together.

    Given the draw, the labels of different points are independent; they depend on each other
    through the shared draw. The configurations of the labels are enumerated as long as there are no
    more than `n_configurations` of them; from there on configurations are sampled.

    Parameters
    ----------
    proba : array of shape (n_points, n_draws, n_classes)
        Class probabilities of each draw, rows sum to 1. Not modified.
    weights : array of shape (n_draws,), default=None
        Draw weights, non-negative, sum 1; None for equal weights.
    n_configurations : int, default=10_000
        Largest number of configurations, at least 1. Sampled ones are as many for each draw, at
        least one.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the configurations that are sampled; see :term:`random_state`.

    Returns
    -------
    entropy : float
        In nats, from the mean entropy of the labels given the draw to that plus log(n_draws).
        Exact up to rounding where the configurations are enumerated, else an unbiased estimate.

    Raises
    ------
    TypeError
        If `proba` is not a real array, or `n_configurations` no integer.
    ValueError
        If the shape of `proba`, the weights or `n_configurations` do not fit.

    See Also
    --------
    predictive_entropy : The entropy of each point's label alone.

    Notes
    -----
    The entropy given the draw, plus the information of one label after the other about the draw
    given the labels before: ``I(y_t; draw | y_1, ..., y_t-1)``, the mean over their configurations
    of the information under the posterior that follows from each. Posteriors are kept as logs, so
    that no number of points underflows. Cost O(n_points n_draws n_classes n_configurations), on
    the host and in float64.

    References
    ----------
    .. [1] Kirsch, van Amersfoort and Gal, "BatchBALD: Efficient and diverse batch acquisition for
       deep Bayesian active learning", NeurIPS 2019, sections 3.2 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_ical.dependence import joint_entropy
    >>> fair_or_certain = np.array([[0.5, 0.5], [1.0, 0.0]])
    >>> round(joint_entropy(np.stack([fair_or_certain] * 2)), 6)
    1.073543
    """
    proba = _check_samples(proba, "proba", (3,), "joint_entropy")
    weights = _check_draw_weights(weights, proba)
    n_configurations = check_integer(n_configurations, "n_configurations", "joint_entropy")
    generator = stream_generator(root_seed(random_state, "joint_entropy"), CONFIGURATIONS)
    configurations = Configurations(
        proba.shape[1], None if weights is None else to_host(weights), n_configurations, generator
    )
    total = 0.0
    for point in range(proba.shape[0]):
        given = configurations.of_active(to_host(proba[point, ...]))
        total += configurations.information(given)
        total -= float(configurations.weights @ negative_entropy(given))
        if point + 1 < proba.shape[0]:
            configurations.add(given)
    return total


def negative_entropy(proba: np.ndarray) -> np.ndarray:
    """Compute sum p log p over the last axis, a class of probability 0 adding 0."""
    safe = np.maximum(proba, TINY)
    return np.sum(safe * np.log(safe), axis=-1)


class Configurations:
    """The labels of some points: each configuration's mass, and the posterior given it.

    Starts with no points and one empty configuration. As long as it fits, every configuration of
    positive mass is kept; then each draw samples its share from its own class probabilities. Draws
    of weight 0 are ignored.

    Parameters
    ----------
    n_draws : int
    weights : float64 array of shape (n_draws,) or None
        Draw weights, sum 1; None for equal weights.
    n_configurations : int
        Largest number that is kept; at least the number of draws of positive weight.
    generator : numpy.random.Generator
        Source of the random numbers.

    Attributes
    ----------
    active : intp array of shape (n_active,)
        The draws of positive weight.
    weights : float64 array of shape (n_active,)
    posterior : float64 array of shape (n_rows, n_active)
        Probability of each draw given each configuration.
    mass : float64 array of shape (n_rows,)
        Of each configuration, sum 1. Row i of sampled ones comes from active draw i modulo
        n_active, so the first rows are a sample of their own.
    sampled : bool
        Whether the configurations are a sample.
    n_points : int
        How many points have been added.
    """

    def __init__(
        self,
        n_draws: int,
        weights: np.ndarray | None,
        n_configurations: Integer,
        generator: np.random.Generator,
    ) -> None:
        given = np.full(n_draws, 1 / n_draws) if weights is None else weights
        self.active = np.flatnonzero(given > 0)
        self.weights = given[self.active]
        self.limit = max(n_configurations, len(self.active))
        self.per_draw = self.limit // len(self.active)
        self.generator = generator
        self.posterior = self.weights[None, :]
        self.log_posterior = np.log(self.posterior)  # finite also where `posterior` rounds to 0
        self.mass = np.ones(1)
        self.sampled = False
        self.n_points = 0

    def of_active(self, proba: np.ndarray) -> np.ndarray:
        """Return the (n_active, n_classes) float64 probabilities of the active draws."""
        return np.asarray(proba, dtype=np.float64)[self.active]

    def add(self, proba: np.ndarray) -> None:
        """Add one point by its class probabilities (n_active, n_classes)."""
        self.n_points += 1
        if not self.sampled:
            masses = self.mass[:, None] * (self.posterior @ proba)
            if np.count_nonzero(masses) <= self.limit:
                rows, labels = np.nonzero(masses)
                self.mass = masses[rows, labels] / masses.sum()
                self._condition(rows, labels, proba)
                return
            self._sample()
        running = np.cumsum(proba, axis=1)
        running = (running / running[:, -1:])[None, :, :]
        labels = np.sum(running <= self._uniforms()[:, :, None], axis=2).ravel()
        self._condition(slice(None), labels, proba)

    def local_information(self, proba: np.ndarray) -> np.ndarray:
        """Compute each configuration's information of one label about the draw, (n_rows,)."""
        predictive = self.posterior @ proba
        return self.posterior @ negative_entropy(proba) - negative_entropy(predictive)

    def information(self, proba: np.ndarray) -> float:
        """Compute the information of one point's label about the draw, given the labels added."""
        return max(float(self.mass @ self.local_information(proba)), 0.0)

    def standard_error(self, proba: np.ndarray) -> float:
        """Estimate the error of one label's mean entropy over sampled configurations."""
        if not self.sampled:
            return 0.0
        deviation = -negative_entropy(self.posterior @ proba)
        deviation -= self.mass @ deviation
        return float(np.sqrt(np.sum((self.mass * deviation) ** 2)))

    def _condition(self, rows: Any, labels: np.ndarray, proba: np.ndarray) -> None:
        """Multiply posteriors of some rows by the likelihood of the new point's labels."""
        with np.errstate(divide="ignore"):
            log_posterior = self.log_posterior[rows] + np.log(proba).T[labels]
        # The draw that a row comes from gives its labels a probability > 0, so no row is -inf.
        log_posterior -= np.max(log_posterior, axis=1, keepdims=True)
        posterior = np.exp(log_posterior)
        total = np.sum(posterior, axis=1, keepdims=True)
        self.posterior = posterior / total
        self.log_posterior = log_posterior - np.log(total)

    def _sample(self) -> None:
        """Replace all configurations by as many for each draw, sampled as that draw has them."""
        shares = np.cumsum(self.mass[:, None] * self.posterior, axis=0)
        uniforms = self._uniforms()
        rows = [
            np.searchsorted(share / share[-1], u, side="right")
            for share, u in zip(shares.T, uniforms.T, strict=True)
        ]
        # _condition recomputes the posterior from its logs.
        self.log_posterior = self.log_posterior[np.stack(rows, axis=1).ravel()]
        self.mass = np.tile(self.weights / self.per_draw, self.per_draw)
        self.sampled = True

    def _uniforms(self) -> np.ndarray:
        """Draw uniforms (per_draw, n_active), each draw's spread evenly over [0, 1)."""
        shape = (self.per_draw, len(self.active))
        ranks = np.tile(np.arange(self.per_draw)[:, None], (1, shape[1]))
        ranks = self.generator.permuted(ranks, axis=0)
        uniforms = (ranks + self.generator.random(shape)) / self.per_draw
        return np.minimum(uniforms, np.nextafter(1.0, 0.0))  # sums round up to 1
