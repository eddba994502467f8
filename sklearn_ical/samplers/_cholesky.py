"""The Cholesky factor of a covariance that may be singular by rounding; no model is known here."""

import numpy as np
from scipy import linalg

# Relative to the variances they stand for: none, then from the rounding of one sum upwards.
JITTERS = (0.0, *(10.0 ** np.arange(-12, -3)))


def covariance_factor(covariance: np.ndarray, scale: np.ndarray, owner: str) -> np.ndarray:
    """Return a lower L with L L^T = covariance + jitter * diag(scale), both (n, n).

    The jitter is the first of `JITTERS` that factorizes. `scale`, (n,), holds the variances
    whose rounding the covariance carries. `covariance`, float64, is overwritten.
    """
    # A variance of exactly 0 gets a pivot too, far below any that matters.
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
        f"{JITTERS[-1]:g} makes so in {owner}; fit the model on float64 rows with features of like "
        "scale, and with a positive semi-definite kernel if it has one, or use "
        "BootstrapSampler(model)."
    )
