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
from sklearn_ical.dependence._features import (
    label_features,
    output_features,
    pair_weights,
    unfold_pairs,
    upper_triangle,
)
from sklearn_ical.dependence._hsic import dhsic, hsic, hsic_dual, integer_hsic, integer_self_hsic
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
    "integer_hsic",
    "integer_self_hsic",
    "joint_entropy",
    "label_features",
    "least_confidence",
    "ledoit_wolf_shrinkage",
    "linear_kernel",
    "margin",
    "output_features",
    "pair_weights",
    "predictive_entropy",
    "predictive_variance",
    "radial_profile",
    "rbf_kernel",
    "rq_kernel",
    "squared_distances",
    "unfold_pairs",
    "upper_triangle",
]
