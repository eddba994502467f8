"""Dependence of predictions, measured by HSIC."""
