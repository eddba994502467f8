"""Kernels, dependence measures and information measures on posterior draws, as array functions."""

from sklearn_ical.dependence._covariance import covariance_features, ledoit_wolf_shrinkage
from sklearn_ical.dependence._entropy import (
    bald,
    gaussian_bald,
    least_confidence,
    margin,
    predictive_entropy,
    predictive_variance,
)
from sklearn_ical.dependence._epig import epig
from sklearn_ical.dependence._hsic import dhsic, hsic, hsic_dual
from sklearn_ical.dependence._joint import Configurations, joint_entropy
from sklearn_ical.dependence._kernels import (
    delta_kernel,
    distance_kernel,
    linear_kernel,
    radial_profile,
    rbf_kernel,
    rq_kernel,
    squared_distances,
)

__all__ = [
    "Configurations",
    "bald",
    "covariance_features",
    "delta_kernel",
    "dhsic",
    "distance_kernel",
    "epig",
    "gaussian_bald",
    "hsic",
    "hsic_dual",
    "joint_entropy",
    "least_confidence",
    "ledoit_wolf_shrinkage",
    "linear_kernel",
    "margin",
    "predictive_entropy",
    "predictive_variance",
    "radial_profile",
    "rbf_kernel",
    "rq_kernel",
    "squared_distances",
]
