"""Kernels, dependence measures and information measures on posterior draws, as array functions."""

from sklearn_ical.dependence._entropy import (
    bald,
    gaussian_bald,
    predictive_entropy,
    predictive_variance,
)
from sklearn_ical.dependence._features import (
    label_features,
    output_features,
    pair_weights,
    unfold_pairs,
    upper_triangle,
)
from sklearn_ical.dependence._hsic import dhsic, hsic, hsic_dual
from sklearn_ical.dependence._integer import integer_hsic, integer_self_hsic
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
    "bald",
    "delta_kernel",
    "dhsic",
    "distance_kernel",
    "gaussian_bald",
    "hsic",
    "hsic_dual",
    "integer_hsic",
    "integer_self_hsic",
    "label_features",
    "linear_kernel",
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
