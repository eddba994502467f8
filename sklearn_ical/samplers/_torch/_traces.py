"""Modes and generators, which nets change when they predict or are trained, and restoring them."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def preserving_net(model: Any) -> Iterator[None]:
    """Restore the modes of a net's modules and all global generators at the end."""
    if isinstance(model, torch.nn.Module):
        held: list[Any] = [model]
    else:
        names = [f"{name}_" for name in (*model._modules, *model._criteria)]
        held = [getattr(model, name, None) for name in names]
    roots = (root for root in held if isinstance(root, torch.nn.Module))
    modes = [(module, module.training) for root in roots for module in root.modules()]
    with same_generators():
        try:
            yield
        finally:
            for module, training in modes:
                module.training = training


@contextmanager
def seeded_generators(seed: int) -> Iterator[None]:
    """Seed all global generators, and restore them at the end."""
    with same_generators():
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        yield


@contextmanager
def same_generators() -> Iterator[None]:
    """Restore all global generators at the end."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002
