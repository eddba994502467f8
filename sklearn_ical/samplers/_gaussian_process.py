"""GaussianProcessSampler: joint draws of the latent functions of Gaussian processes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_expit, softmax
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.validation import validate_data

from sklearn_ical._random import root_seed
from sklearn_ical._typing import Integer, Kind, Seed
from sklearn_ical._validation import check_integer, target_location_and_scale
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import BaseSampler, Draws, number_of_draws
from sklearn_ical.samplers._bayesian_linear import covariance_factor
from sklearn_ical.samplers._bootstrap import BootstrapSampler
from sklearn_ical.samplers._models import frozen_copy, name_of, not_fitted
from sklearn_ical.samples import PredictionSamples

# Number of n x n matrices that exist at once, including those inside a composite kernel.
MATRICES = 4
# Relative difference of two ways to compute a kernel's diagonal if there is no noise in it.
NO_NOISE = 1e-12


class GaussianProcessSampler(BaseSampler):
    """Draws the latent function of a Gaussian process, jointly at all rows of a call.

    Read more in the :ref:`User Guide <gaussian_process>`.

    Parameters
    ----------
    model : GaussianProcessRegressor or GaussianProcessClassifier
        Fitted. Of one or several targets; a classifier of more than two classes with
        ``multi_class="one_vs_rest"``. Not modified.
    max_rows : int, default=5000
        Largest number of distinct rows that are evaluated at once.

    Raises
    ------
    UnsupportedModelError
        From `draw`, if `model` is something else, or a classifier "one_vs_one".
    NotFittedError
        From `draw`, if `model` is not fitted.
    ValueError
        From the draws, before any work, if there are more than `max_rows` distinct rows.

    Notes
    -----
    Values at the distinct rows are mean + L z, with L the Cholesky factor of their posterior
    covariance [1]_ and z standard normal, so equal rows have equal values and the order of the
    rows does not matter. Where rounding has left the covariance singular, a jitter on its diagonal
    grows from 1e-12 of the prior variance until it factorizes. Such a draw is one function on the
    rows of one call alone: the draws are `joint`, and their method ``together(X, X_reference)``
    evaluates two sets of rows in one call. Fewer draws of the same seed are the first of many.

    Regression: the samples are values of the noise-free function, in the unit of the targets. A
    WhiteKernel inside the kernel is their noise variance, so that the variance over draws plus
    noise is the square of the standard deviation that the model predicts. As in that, the model's
    `alpha` is not part of it, as it is a jitter of the fitted rows; noise that should count belongs
    in the kernel. There is no noise variance without a WhiteKernel, nor where the targets of
    ``normalize_y=True`` have different ones.

    Classification: the samples are the logistic function of latent draws from the Laplace
    approximation [2]_, those of each class against the rest divided by their sum. A WhiteKernel
    belongs to the latent function there. For two classes their mean is what the model predicts up
    to the error of its own approximate integral, less than 0.001 unless the process varies by
    more than 100.

    Cost O(n^3) and memory O(n^2) for n distinct rows, plus O(n^2 * n_draws) for the draws.

    References
    ----------
    .. [1] Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press 2006,
       algorithm 2.1.
    .. [2] The same, algorithms 3.1 and 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn_ical.samplers import GaussianProcessSampler
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = GaussianProcessRegressor(random_state=0).fit(X[::5], np.sin(X[::5, 0]))
    >>> samples = GaussianProcessSampler(model).sample(X, random_state=0)
    >>> samples.values.shape
    (30, 50)
    >>> bool(samples.values[::5].std(axis=1).max() < 1e-3)
    True
    """

    source = "joint posterior of the process"

    def __init__(self, model: Any, *, max_rows: Integer = 5000) -> None:
        self.model = model
        self.max_rows = max_rows

    @property
    def cost(self) -> str:  # type: ignore[override]
        """Cost of the draws, in a few words."""
        return f"a Cholesky factor of all rows together, at most max_rows = {self.max_rows}"

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix functions of the posterior as draws.

        Parameters
        ----------
        n_draws : int, default=None
            Number of draws; None for 50.
        random_state : int, RandomState, Generator or None, default=None
            See :term:`random_state`.

        Returns
        -------
        draws : Draws
            Immutable and `joint`; call it on all rows at once to get `PredictionSamples` of
            ``kind="value"``, or "proba" of a classifier.
        """
        caller = "GaussianProcessSampler"
        max_rows = check_integer(self.max_rows, "max_rows", caller)
        n_draws = number_of_draws(n_draws, caller)
        make: type[_RegressionDraws | _ClassificationDraws] = _RegressionDraws
        if isinstance(self.model, GaussianProcessClassifier):
            make = _ClassificationDraws
        elif not isinstance(self.model, GaussianProcessRegressor):
            raise UnsupportedModelError(
                "model must be a fitted GaussianProcessRegressor or GaussianProcessClassifier. Got "
                f"{name_of(self.model)} in {caller}; get_sampler finds the sampler of other models."
            )
        return make(self.model, n_draws, root_seed(random_state, caller), max_rows)


@dataclass(frozen=True)
class _Posterior:
    """A process given its fitted rows, in the notation of algorithms 2.1 and 3.2."""

    kernel: Any
    X_train: Any
    dual: np.ndarray  # (n_train[, n_targets]); the mean is K(X, X_train) @ dual
    root: np.ndarray  # (n_train, 1), square roots of the weights W of algorithm 3.2
    L: np.ndarray  # (n_train, n_train)

    def at(self, X: Any) -> "_Latent":
        """Return the latent function at rows, n of them."""
        # A WhiteKernel is 0 between two sets of rows, so this is without it.
        prior = np.asarray(self.kernel(X, X), dtype=np.float64)
        signal = np.diagonal(prior).copy()
        noise = self.kernel.diag(X) - signal
        noise = np.where(noise > NO_NOISE * signal, noise, 0)
        cross = self.kernel(X, self.X_train)  # (n, n_train)
        half = solve_triangular(self.L, self.root * cross.T, lower=True, check_finite=False)
        explained = half.T @ half
        covariance = np.subtract(prior, explained, out=explained)
        return _Latent(cross @ self.dual, covariance, signal, noise)


@dataclass(frozen=True)
class _Latent:
    """A latent function at n rows."""

    mean: np.ndarray  # (n[, n_targets])
    covariance: np.ndarray  # (n, n), without the noise of the kernel; overwritten by `factor`
    signal: np.ndarray  # (n,), prior variances
    noise: np.ndarray  # (n,), variances of the noise of the kernel

    def factor(self) -> np.ndarray:
        """Return a lower factor of the covariance."""
        return covariance_factor(self.covariance, self.signal, "GaussianProcessSampler")


class _ProcessDraws:
    """Functions of a process on the distinct rows of one call; a subclass evaluates them."""

    kind: Kind
    classes: Any = None
    weights = None
    joint = True
    mean_differs = ""

    def __init__(
        self, model: Any, posteriors: list[_Posterior], n_draws: int, root: int, max_rows: Integer
    ) -> None:
        self.model = frozen_copy(model)  # for its checks of rows
        self.posteriors = posteriors
        self.n_draws = n_draws
        self.root = root
        self.max_rows = max_rows

    def __call__(self, X: Any) -> PredictionSamples:
        return self._sample(self._rows(X))

    def together(self, X: Any, X_reference: Any) -> tuple[PredictionSamples, PredictionSamples]:
        """Return the samples of two sets of rows, of the same functions, in one evaluation.

        Parameters
        ----------
        X, X_reference : object
            Rows that the model accepts, n_points and n_reference of them.

        Returns
        -------
        samples, reference_samples : PredictionSamples
        """
        first = self._rows(X)
        samples = self._sample(np.concatenate([first, self._rows(X_reference)]))
        return samples[: len(first)], samples[len(first) :]

    def _rows(self, X: Any) -> np.ndarray:
        """Return rows after the model's own checks, numbers in float64."""
        if not self.posteriors[0].kernel.requires_vector_input:
            return validate_data(self.model, X, ensure_2d=False, dtype=None, reset=False)
        return validate_data(self.model, X, dtype=np.float64, reset=False)

    def _sample(self, X: np.ndarray) -> PredictionSamples:
        """Evaluate the distinct rows of `X`, and copy the values to equal rows."""
        try:
            distinct, inverse = np.unique(X, axis=0, return_inverse=True)
        except TypeError:  # objects, which only the kernel can compare
            distinct, inverse = X, np.arange(len(X))
        self._check_size(len(distinct))
        return self._evaluate(distinct)[inverse.reshape(-1)]

    def _check_size(self, n: int) -> None:
        if n > self.max_rows:
            raise ValueError(
                f"The distinct rows must be at most max_rows={self.max_rows}, as they are "
                f"evaluated all at once. Got {n} distinct rows in GaussianProcessSampler of "
                f"{name_of(self.model)}, which need about {_memory(MATRICES * 8 * n * n)}; pass a "
                f"subsample of the pool, GaussianProcessSampler(model, max_rows={n}) or "
                "BootstrapSampler(model)."
            )

    def _evaluate(self, X: np.ndarray) -> PredictionSamples:
        """Return the samples of distinct rows."""
        raise NotImplementedError

    def _normal(self, *shape: int) -> np.ndarray:
        """Return standard normal numbers (n_draws, *shape); fewer draws get the first of many."""
        return np.random.default_rng(self.root).standard_normal((self.n_draws, *shape))


class _RegressionDraws(_ProcessDraws):
    """Noise-free functions of a regressor, in the unit of its targets."""

    kind = "value"

    def __init__(self, model: Any, n_draws: int, root: int, max_rows: Integer) -> None:
        if not hasattr(model, "X_train_"):
            raise not_fitted(model)
        ones = np.ones((len(model.X_train_), 1))
        posterior = _Posterior(model.kernel_, model.X_train_, model.alpha_, ones, model.L_)
        super().__init__(model, [posterior], n_draws, root, max_rows)

    def _evaluate(self, X: np.ndarray) -> PredictionSamples:
        location, scale = target_location_and_scale(self.model)  # (n_targets,)
        latent = self.posteriors[0].at(X)
        normal = self._normal(len(scale), len(X)).reshape(-1, len(X))
        deviations = (latent.factor() @ normal.T).reshape(len(X), self.n_draws, len(scale))
        values = location + scale * (latent.mean.reshape(len(X), 1, -1) + deviations)
        if len(scale) == 1:
            values = values[:, :, 0]
        known = latent.noise.any() and (scale == scale[0]).all()
        noise = latent.noise * scale[0] ** 2 if known else None
        return PredictionSamples(values, "value", noise_variance=noise)


class _ClassificationDraws(_ProcessDraws):
    """Class probabilities of latent functions of a classifier, one per class for more than two."""

    kind = "proba"

    def __init__(self, model: Any, n_draws: int, root: int, max_rows: Integer) -> None:
        if not hasattr(model, "base_estimator_"):
            raise not_fitted(model)
        posteriors = _laplace(model)
        if not posteriors:
            raise UnsupportedModelError(
                f"{name_of(model)} must have one latent function for two classes, or one per "
                f"class. Got multi_class={model.multi_class!r} in GaussianProcessSampler; set "
                "multi_class='one_vs_rest', or use BootstrapSampler."
            )
        super().__init__(model, posteriors, n_draws, root, max_rows)
        self.classes = np.array(model.classes_)
        self.classes.flags.writeable = False
        if len(posteriors) > 1:
            self.mean_differs = "classes are normalized draw by draw"

    def _evaluate(self, X: np.ndarray) -> PredictionSamples:
        normal = self._normal(len(self.posteriors), len(X))
        latent = np.empty((len(X), self.n_draws, len(self.posteriors)))
        for k, posterior in enumerate(self.posteriors):
            latent[:, :, k] = _with_noise(posterior.at(X), normal[:, k])
        if len(self.posteriors) == 1:
            latent = np.concatenate([-latent, latent], axis=2)
        # One against the rest: the probabilities of a draw over their sum. For two, it is 1.
        values = softmax(log_expit(latent), axis=2)
        return PredictionSamples(values, "proba", classes=self.classes)


def _with_noise(latent: _Latent, normal: np.ndarray) -> np.ndarray:
    """Return functions (n, n_draws) with the noise of the kernel; the rows are distinct."""
    latent.covariance[np.diag_indices(len(latent.noise))] += latent.noise
    return latent.mean[:, None] + latent.factor() @ normal.T


def _laplace(model: Any) -> list[_Posterior]:
    """Return the posteriors of a classifier: one for two classes, one per class for more, or []."""
    base = model.base_estimator_
    # One against one has estimators of pairs of classes, which do not give probabilities.
    binary = base.estimators_ if isinstance(base, OneVsRestClassifier) else [base]
    attributes = ("kernel_", "X_train_", "y_train_", "pi_", "W_sr_", "L_")
    if not all(hasattr(process, name) for process in binary for name in attributes):
        return []
    return [
        _Posterior(b.kernel_, b.X_train_, b.y_train_ - b.pi_, b.W_sr_[:, None], b.L_)
        for b in binary
    ]


def _memory(n_bytes: int) -> str:
    """Return a number of bytes in MiB or GiB."""
    if n_bytes < 2**30:
        return f"{n_bytes / 2**20:.1f} MiB"
    return f"{n_bytes / 2**30:.1f} GiB"


def process_classifier_sampler(model: Any) -> Any:
    """Return the sampler of a classifier; the bootstrap if there is no latent function."""
    if not hasattr(model, "base_estimator_"):
        raise not_fitted(model)
    return GaussianProcessSampler(model) if _laplace(model) else BootstrapSampler(model)
