"""The three nets of the paper as torch modules; how they are trained is in training.py.

All return logits, have dropout of probability 1/2 and take a `width`, of which the paper's sizes
are multiples, so that there are small ones to try.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import relu


def conv_block(n_in: int, n_out: int, size: int, *, pool: bool = True) -> nn.Sequential:
    """Return a convolution with dropout of whole channels, max pooling over 2 x 2, and ReLU."""
    layers: list[nn.Module] = [nn.Conv2d(n_in, n_out, size), nn.Dropout2d()]
    if pool:
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.ReLU())


def dense_block(n_in: int, n_out: int) -> nn.Sequential:
    """Return a dense layer with dropout and ReLU."""
    return nn.Sequential(nn.Linear(n_in, n_out), nn.Dropout(), nn.ReLU())


class MnistCNN(nn.Module):
    """The net for MNIST and Fashion-MNIST: two convolutions of 5 x 5, one dense layer.

    Parameters
    ----------
    n_classes : int
    width : int, default=32
        Channels of the first convolution.
    """

    def __init__(self, n_classes: int, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            conv_block(1, width, 5),
            conv_block(width, 2 * width, 5),
            nn.Flatten(),
            dense_block(2 * width * 4 * 4, 4 * width),
            nn.Linear(4 * width, n_classes),
        )

    def forward(self, X: Any) -> Any:
        """Return logits (n, n_classes) of images (n, 1, 28, 28)."""
        return self.layers(X)


class EmnistCNN(nn.Module):
    """The net for EMNIST: three convolutions of 3 x 3, one dense layer.

    The paper's text pools after each convolution; this is the net of its code, which does not pool
    after the second.

    Parameters
    ----------
    n_classes : int
    width : int, default=32
        Channels of the first convolution.
    """

    def __init__(self, n_classes: int, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            conv_block(1, width, 3),
            conv_block(width, 2 * width, 3, pool=False),
            conv_block(2 * width, 4 * width, 3),
            nn.Flatten(),
            dense_block(4 * width * 4 * 4, 16 * width),
            nn.Linear(16 * width, n_classes),
        )

    def forward(self, X: Any) -> Any:
        """Return logits (n, n_classes) of images (n, 1, 28, 28)."""
        return self.layers(X)


class ResidualBlock(nn.Module):
    """Two convolutions of 3 x 3 with batch normalization, and a skip connection."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.around = nn.Sequential()
        if n_in != n_out:
            self.around = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, X: Any) -> Any:
        """Return channels (n, n_out, height / stride, width / stride)."""
        return relu(self.inner(X) + self.around(X))


class ResNet18(nn.Module):
    """The net for CIFAR: a ResNet-18 whose stem keeps the size, and a head with dropout.

    There is no dropout before the head, so Monte Carlo dropout runs the trunk once for each image.

    Parameters
    ----------
    n_classes : int
    width : int, default=64
        Channels of the stem.
    """

    def __init__(self, n_classes: int, width: int = 64) -> None:
        super().__init__()
        blocks = []
        n_in = width
        for stage in range(4):
            n_out = width * 2**stage
            blocks += [
                ResidualBlock(n_in, n_out, stride=1 if stage == 0 else 2),
                ResidualBlock(n_out, n_out, stride=1),
            ]
            n_in = n_out
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            *blocks,
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Sequential(
            dense_block(8 * width, 8 * width),
            dense_block(8 * width, 4 * width),
            nn.Linear(4 * width, n_classes),
        )

    def forward(self, X: Any) -> Any:
        """Return logits (n, n_classes) of images (n, 3, 32, 32)."""
        return self.head(self.trunk(X))


NETS: dict[str, type[torch.nn.Module]] = {
    "mnist-cnn": MnistCNN,
    "emnist-cnn": EmnistCNN,
    "resnet-18": ResNet18,
}
