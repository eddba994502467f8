"""The table of the paper's experiments as data, at full and at small scale; it runs nothing.

Numbers of images count different images: with `n_repeats`, the pool and the validation rows are
that many times as large.
"""

from dataclasses import dataclass, replace

ALL_BUT_BATCHBALD = ("bald", "fass", "bayes-coreset", "max-entropy", "random", "ical")
COMPARED = ("batchbald", *ALL_BUT_BATCHBALD)


@dataclass(frozen=True)
class Experiment:
    """One row of the table.

    Attributes
    ----------
    name : str
    images : str
        Name of the data set for `image_files.load_images`.
    net : str
        Name in `nets.NETS`.
    n_classes, width : int
        Outputs of the net, and the size that its layers are multiples of.
    n_pool, n_validation, n_test : int
        Different images to query from, to stop the training by, and to score on.
    n_train_file, n_test_file : int or None
        What the files must hold; None for any number that is enough.
    n_initial, batch_size, n_rounds : int
        Labels at the start, labels a round, and rounds.
    n_draws : int
        Draws that a strategy sees; predictions are means over as many, but at most 100.
    max_epochs, patience : int
        Training ends after `max_epochs`, or `patience` epochs without a better accuracy on the
        validation images.
    n_seeds : int
    strategies : tuple of str
        Names in `run.STRATEGIES`, those that the paper compares.
    n_repeats : int
        How often each image of pool and validation is there, each time with noise of its own.
    standardized : bool
        Whether pixels get mean 0 and standard deviation 1 over the pool.
    epoch_size : int
        Images in an epoch, drawn with repetition; labeled rows that are more make one pass.
    """

    name: str
    images: str
    net: str
    n_classes: int
    width: int
    n_pool: int
    n_validation: int
    n_test: int
    n_train_file: int | None
    n_test_file: int | None
    n_initial: int
    batch_size: int
    n_rounds: int
    n_draws: int
    max_epochs: int
    patience: int
    n_seeds: int
    strategies: tuple[str, ...] = COMPARED
    n_repeats: int = 1
    standardized: bool = True
    epoch_size: int = 5056

    @property
    def n_candidates(self) -> int:
        """Rows that the first query chooses from."""
        return self.n_repeats * self.n_pool - self.n_initial

    @property
    def n_labels(self) -> int:
        """Labels after the last round."""
        return self.n_initial + self.n_rounds * self.batch_size


MNIST = Experiment(
    name="mnist",
    images="mnist",
    net="mnist-cnn",
    n_classes=10,
    width=32,
    n_pool=58_976,
    n_validation=1024,
    n_test=10_000,
    n_train_file=60_000,
    n_test_file=10_000,
    n_initial=20,
    batch_size=10,
    n_rounds=30,
    n_draws=50,
    max_epochs=30,
    patience=3,
    n_seeds=6,
)
FASHION_MNIST = replace(
    MNIST,
    name="fashion-mnist",
    images="fashion_mnist",
    n_pool=56_928,
    n_validation=3072,
    n_draws=100,
    max_epochs=40,
    standardized=False,
)
EMNIST = Experiment(
    name="emnist",
    images="emnist",
    net="emnist-cnn",
    n_classes=47,
    width=32,
    n_pool=94_000,
    n_validation=16_384,  # of 18 800 that are no part of the pool
    n_test=18_800,
    n_train_file=112_800,
    n_test_file=18_800,
    n_initial=47,
    batch_size=5,
    n_rounds=60,
    n_draws=50,
    max_epochs=40,
    patience=3,
    n_seeds=6,
)
CIFAR10 = Experiment(
    name="cifar10",
    images="cifar10",
    net="resnet-18",
    n_classes=10,
    width=64,
    n_pool=48_976,
    n_validation=1024,
    n_test=10_000,
    n_train_file=50_000,
    n_test_file=10_000,
    n_initial=10_000,
    batch_size=3000,
    n_rounds=10,
    n_draws=50,  # not stated in the paper
    max_epochs=60,
    patience=6,
    n_seeds=8,
    strategies=ALL_BUT_BATCHBALD,  # which ran out of memory
)
CIFAR100 = replace(
    CIFAR10, name="cifar100", images="cifar100", n_classes=100, n_initial=20_000, n_rounds=7
)
EXPERIMENTS = {
    row.name: row
    for row in (
        MNIST,
        replace(MNIST, name="repeated-mnist", n_repeats=3, max_epochs=40),
        EMNIST,
        FASHION_MNIST,
        CIFAR10,
        CIFAR100,
    )
}


def small(row: Experiment) -> Experiment:
    """Return a smaller row, for minutes on one core: fewer images, narrower nets, short epochs."""
    few = replace(
        row,
        width=row.width // 2,
        n_pool=-(-1000 // row.n_repeats),
        n_validation=-(-256 // row.n_repeats),
        n_test=1000,
        n_train_file=None,
        n_test_file=None,
        batch_size=10,
        n_rounds=10,
        n_draws=20,
        max_epochs=20,
        patience=6,  # of epochs that are a tenth as long
        n_seeds=3,
        epoch_size=512,
    )
    if row.net == "mnist-cnn":
        return few
    few = replace(few, n_test=500, n_rounds=3, n_seeds=1)
    if row.net == "emnist-cnn":
        return few
    return replace(few, width=8, n_initial=400, batch_size=100)


def at_scale(name: str, scale: str) -> Experiment:
    """Return a row of the table by its name, at the scale "full" or "small"."""
    return EXPERIMENTS[name] if scale == "full" else small(EXPERIMENTS[name])
