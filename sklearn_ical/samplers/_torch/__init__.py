"""Nets of torch, their dropout, and ensembles of them; loaded on use."""
