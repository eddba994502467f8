"""Twins of nets with dropout inside fused layers: the same by plain layers and dropout calls."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402


class Unrolled(nn.Module):
    """One recurrent layer of `net.memory` after the other, dropout in between."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        memory, size = net.memory, net.memory.input_size
        self.p = memory.dropout
        self.layers = nn.ModuleList()
        for i in range(memory.num_layers):
            layer = type(memory)(
                size, memory.hidden_size, batch_first=True, bidirectional=memory.bidirectional
            )
            names = dict(layer.named_parameters())
            own = {name: getattr(memory, name.replace("_l0", f"_l{i}")) for name in names}
            layer.load_state_dict(own)
            self.layers.append(layer)
            size = net.head.in_features
        self.drop, self.head = net.drop, net.head

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(F.dropout(x, self.p) if i else x)[0]
        return self.head(self.drop(x[:, -1]))


def attended(attend: nn.MultiheadAttention, x: Tensor) -> Tensor:
    """Return what attention gives for x (n, length, size), by its formula."""
    n, length, size = x.shape
    q, k, v = (
        part.reshape(n, length, attend.num_heads, -1).transpose(1, 2)
        for part in F.linear(x, attend.in_proj_weight, attend.in_proj_bias).chunk(3, dim=-1)
    )
    weights = torch.softmax(q @ k.transpose(2, 3) / (size // attend.num_heads) ** 0.5, dim=-1)
    weights = F.dropout(weights, attend.dropout)
    return attend.out_proj((weights @ v).transpose(1, 2).reshape(n, length, size))


class Twin(nn.Module):
    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net


class AttentionTwin(Twin):
    """By the formula of attention."""

    def forward(self, x: Tensor) -> Tensor:
        return self.net.head(attended(self.net.attend, x).mean(dim=1))


class TransformerTwin(Twin):
    """By the formula of one layer that normalizes last."""

    def forward(self, x: Tensor) -> Tensor:
        x, layer = self.net.embed(x), self.net.layer
        x = layer.norm1(x + layer.dropout1(attended(layer.self_attn, x)))
        inner = layer.dropout(torch.relu(layer.linear1(x)))
        x = layer.norm2(x + layer.dropout2(layer.linear2(inner)))
        return self.net.head(x.mean(dim=1))
