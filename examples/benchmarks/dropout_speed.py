"""Time of Monte Carlo dropout draws over one deterministic pass of the same net.

Three ways to predict a pool under 50 dropout masks, in one run and in alternation: the draws of
MCDropoutSampler, one whole pass for each mask (the plain way), and the passes with masks of their
own for every row that a net in train mode gives. The last one is no posterior draw at all (its
rows share no function) and only says what others pay. The first net has a trunk in the style of
ResNet-18 and dropout in its head; the second is the paper's net for MNIST, which drops channels
right after its first convolution.

Run ``python examples/benchmarks/dropout_speed.py``; needs torch. Uses a GPU where there is one.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

from sklearn_ical.samplers import MCDropoutSampler


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.around = nn.Sequential()
        if stride > 1 or n_in != n_out:
            self.around = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.around(x))


def residual_net(width: int, n_classes: int = 10) -> nn.Sequential:
    """Return a residual net of four stages with dropout before its last two layers."""
    stages: list[nn.Module] = []
    n_in = width
    for stage, n_out in enumerate((width, 2 * width, 4 * width, 8 * width)):
        stages += [Block(n_in, n_out, 1 if stage == 0 else 2), Block(n_out, n_out, 1)]
        n_in = n_out
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 1, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        *stages,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(n_in, n_in // 2),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(n_in // 2, n_classes),
        nn.Softmax(dim=-1),
    )


def paper_net(n_classes: int = 10) -> nn.Sequential:
    """Return the paper's net for MNIST."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5),
        nn.Dropout2d(),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 5),
        nn.Dropout2d(),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 128),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(128, n_classes),
        nn.Softmax(dim=-1),
    )


class FixedMask(nn.Module):
    """A mask for all rows, drawn anew when it is told to."""

    def __init__(self, dropout: nn.Module) -> None:
        super().__init__()
        self.p = dropout.p
        self.channels = isinstance(dropout, nn.Dropout2d)
        self.mask: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mask is None:
            shape = (x.shape[1], 1, 1) if self.channels else x.shape[1:]
            self.mask = (torch.rand(shape, device=x.device) >= self.p) / (1 - self.p)
        return x * self.mask


def with_fixed_masks(net: nn.Sequential) -> nn.Sequential:
    """Return the net with the dropout layers replaced."""
    dropout = (nn.Dropout, nn.Dropout2d)
    return nn.Sequential(*(FixedMask(m) if isinstance(m, dropout) else m for m in net)).eval()


def seconds(run: Callable[[], Any], device: torch.device) -> float:
    """Return the wall time of one run."""
    start = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


@torch.no_grad()
def predict(net: nn.Module, X: torch.Tensor, batch_size: int) -> torch.Tensor:
    """Return one deterministic pass over all rows."""
    return torch.cat([net(X[i : i + batch_size]) for i in range(0, len(X), batch_size)])


def compare(name: str, net: nn.Sequential, X: torch.Tensor, args: argparse.Namespace) -> float:
    """Print the times of all ways over that of one pass, and return that of the draws."""
    net = net.to(X.device).eval()
    sampler = MCDropoutSampler(net, batch_size=args.batch_size)
    draws: Any = sampler.draw(args.draws, 0)
    draws.prepare(X)

    masked = with_fixed_masks(net)

    def plain() -> None:
        for _ in range(args.plain_draws):
            for module in masked:
                if isinstance(module, FixedMask):
                    module.mask = None
            predict(masked, X, args.batch_size)

    def in_train_mode() -> None:
        for module in net:
            module.training = isinstance(module, nn.Dropout | nn.Dropout2d)
        for _ in range(args.plain_draws):
            predict(net, X, args.batch_size)
        net.eval()

    ways = {
        "MCDropoutSampler": (lambda: draws(X), 1.0),
        "one pass for each draw": (plain, args.draws / args.plain_draws),
        "train mode, masks per row": (in_train_mode, args.draws / args.plain_draws),
    }
    ratios: dict[str, list[float]] = {way: [] for way in ways}
    passes = []
    predict(net, X, args.batch_size)
    for _ in range(args.repeats):
        before = seconds(lambda: predict(net, X, args.batch_size), X.device)
        times = {way: seconds(run, X.device) * scale for way, (run, scale) in ways.items()}
        after = seconds(lambda: predict(net, X, args.batch_size), X.device)
        passes.append((before + after) / 2)
        for way, taken in times.items():
            ratios[way].append(taken / passes[-1])
    how = draws.fallback or "rows become rows x draws at the first dropout"
    print(f"\n{name}: {len(X)} rows, {args.draws} draws, {how}")
    print(f"  {'one deterministic pass':28s} {median(passes):8.3f} s")
    for way in ways:
        found = sorted(ratios[way])
        print(f"  {way:28s} {median(found):8.2f} passes  ({found[0]:.2f} to {found[-1]:.2f})")
    return median(ratios["MCDropoutSampler"])


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--plain-draws", type=int, default=5, help="of the plain ways, scaled up")
    parser.add_argument("--width", type=int, default=16, help="channels of the first stage")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    where = torch.cuda.get_device_name() if device.type == "cuda" else "host"
    print(f"torch {torch.__version__} on {where}, {torch.get_num_threads()} threads")
    rng = np.random.default_rng(0)
    color = torch.from_numpy(rng.normal(size=(args.rows, 3, 32, 32)).astype(np.float32)).to(device)
    gray = torch.from_numpy(rng.normal(size=(args.rows, 1, 28, 28)).astype(np.float32)).to(device)
    ratio = compare("dropout in the head of a residual net", residual_net(args.width), color, args)
    compare("the paper's net for MNIST", paper_net(), gray, args)
    print(f"\nhead dropout: {ratio:.2f} times one deterministic pass (bound 1.5)")


if __name__ == "__main__":
    main()
