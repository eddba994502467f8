"""BayesianLinearSampler: coefficient vectors of Bayesian linear regression as posterior draws."""

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.utils.validation import validate_data

from sklearn_ical._random import root_seed
from sklearn_ical._typing import Integer, Seed
from sklearn_ical.exceptions import UnsupportedModelError
from sklearn_ical.samplers._base import BaseSampler, Draws, number_of_draws
from sklearn_ical.samplers._models import frozen_copy, name_of, not_fitted
from sklearn_ical.samples import PredictionSamples

# Relative to the variances on the diagonal: none, then from the rounding of one sum upwards.
JITTERS = (0.0, *(10.0 ** np.arange(-12, -3)))


class BayesianLinearSampler(BaseSampler):
    """Draws the coefficients of a Bayesian linear regression from their normal posterior.

    Read more in the :ref:`User Guide <bayesian_linear>`.

    Parameters
    ----------
    model : BayesianRidge or ARDRegression
        Fitted. Not modified.

    Raises
    ------
    UnsupportedModelError
        From `draw`, if `model` is something else.
    NotFittedError
        From `draw`, if `model` is not fitted.

    Notes
    -----
    Coefficients are drawn from ``N(coef_, sigma_)`` [1]_; those of features that ARDRegression
    pruned are 0 in each draw [2]_. The models are fitted on centered features, so the intercept of
    a draw is the one with which its plane goes through the means of the fitted rows, ``X_offset_``.
    The samples have ``1 / alpha_`` as their noise variance: the variance over draws plus noise is
    the square of the standard deviation that the model predicts (before scikit-learn 1.9, which did
    not center there, of models without intercept only). Where rounding has left ``sigma_``
    singular, a jitter from 1e-12 of each variance upwards lets it factorize. Draw k depends on
    `random_state` and k alone; fewer draws are the first of many. Cost O(n_features^3) once and
    O(n_points * n_features * n_draws) for the predictions.

    References
    ----------
    .. [1] Bishop, "Pattern Recognition and Machine Learning", 2006, equations 3.49 and 3.58.
    .. [2] Tipping, "Sparse Bayesian learning and the relevance vector machine", JMLR 2001,
       equations 12 and 13.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from sklearn_ical.samplers import BayesianLinearSampler
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> model = BayesianRidge().fit(X, X[:, 0] + np.cos(X[:, 1]))
    >>> samples = BayesianLinearSampler(model).sample(X, random_state=0)
    >>> samples.values.shape
    (10, 50)
    >>> bool(samples.noise_variance == 1 / model.alpha_)
    True
    """

    source = "posterior of the coefficients"
    cost = "one matrix product"

    def __init__(self, model: Any) -> None:
        self.model = model

    def draw(self, n_draws: Integer | None = None, random_state: Seed = None) -> Draws:
        """Fix coefficient vectors as draws.

        Parameters
        ----------
        n_draws : int, default=None
            Number of draws; None for 50.
        random_state : int, RandomState, Generator or None, default=None
            See :term:`random_state`.

        Returns
        -------
        draws : Draws
            Immutable; call it on rows to get `PredictionSamples` of ``kind="value"``.
        """
        caller = "BayesianLinearSampler"
        if not isinstance(self.model, BayesianRidge | ARDRegression):
            raise UnsupportedModelError(
                "model must be a fitted BayesianRidge or ARDRegression. Got "
                f"{name_of(self.model)} in {caller}; get_sampler finds the sampler of other models."
            )
        if not hasattr(self.model, "sigma_"):
            raise not_fitted(self.model)
        n_draws = number_of_draws(n_draws, caller)
        generator = np.random.default_rng(root_seed(random_state, caller))
        factor = coefficient_factor(self.model)
        normal = generator.standard_normal((n_draws, factor.shape[1]))
        return _LinearDraws(self.model, normal @ factor.T)


def coefficient_factor(model: Any) -> np.ndarray:
    """Return L with L L^T the covariance of all coefficients, (n_features, n_used)."""
    used = np.ones(len(model.coef_), dtype=bool)
    if isinstance(model, ARDRegression):
        used = model.lambda_ < model.threshold_lambda
    covariance = np.array(model.sigma_, dtype=np.float64)
    factor = np.zeros((len(used), len(covariance)))
    scale = np.abs(np.diagonal(covariance))
    factor[used] = covariance_factor(covariance, scale, "BayesianLinearSampler")
    return factor


class _LinearDraws:
    """Planes through the means of the fitted rows."""

    kind = "value"
    classes = None
    weights = None
    joint = False

    def __init__(self, model: Any, deviations: np.ndarray) -> None:
        self.model = frozen_copy(model)  # for its checks of rows
        self.n_draws = len(deviations)
        self.coefficients = model.coef_ + deviations  # (n_draws, n_features)
        self.intercepts = model.intercept_ - deviations @ model.X_offset_  # (n_draws,)
        self.noise_variance = 1 / float(model.alpha_)

    def __call__(self, X: Any) -> PredictionSamples:
        X = validate_data(self.model, X, accept_sparse=["csr", "csc", "coo"], reset=False)
        values = X @ self.coefficients.T + self.intercepts
        return PredictionSamples(values, "value", noise_variance=self.noise_variance)


def covariance_factor(covariance: np.ndarray, scale: np.ndarray, caller: str) -> np.ndarray:
    """Return a lower L with L L^T = covariance + jitter * diag(scale), both (n, n).

    The jitter is the first of `JITTERS` that factorizes. `scale`, (n,), holds the variances whose
    rounding is in the covariance. `covariance`, float64, is overwritten.
    """
    # A variance of exactly 0 gets a pivot, too, far below any that matters.
    floor = max(np.finfo(np.float64).eps * np.max(scale, initial=0), np.finfo(np.float64).tiny)
    scale = np.maximum(scale, floor)
    variances = np.diagonal(covariance).copy()
    for jitter in JITTERS:
        np.fill_diagonal(covariance, variances + jitter * scale)
        try:
            return linalg.cholesky(covariance, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
    raise ValueError(
        "The posterior covariance must be positive semi-definite. Got one that no jitter up to "
        f"{JITTERS[-1]:g} makes so in {caller}; fit the model on float64 rows with features of "
        "similar scale, and with a positive semi-definite kernel if it has one, or use "
        "BootstrapSampler(model)."
    )
