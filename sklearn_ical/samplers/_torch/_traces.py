"""What asking or training a net leaves behind, modes and generators, and how it is undone."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Bring back the modes of a net's modules and all global generators at the end."""
    if isinstance(model, torch.nn.Module):
        held: list[Any] = [model]
    else:
        names = [f"{name}_" for name in (*model._modules, *model._criteria)]
        held = [getattr(model, name, None) for name in names]
    parts = (part for m in held if isinstance(m, torch.nn.Module) for part in m.modules())
    modes = [(module, module.training) for module in parts]
    with same_generators():
        try:
            yield
        finally:
            for module, training in modes:
                module.training = training


@contextmanager
def seeded_generators(seed: int) -> Iterator[None]:
    """Seed all global generators, and bring them back at the end."""
    with same_generators():
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        yield


@contextmanager
def same_generators() -> Iterator[None]:
    """Bring back all global generators at the end."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002
