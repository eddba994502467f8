"""The paper's experiments: table, nets, training, and tiny runs of the command from end to end."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("skorch")

MODULES = ("data", "experiments", "measures", "nets", "report", "run", "training")


@pytest.fixture(scope="module")
def paper() -> Iterator[SimpleNamespace]:
    """Return the scripts as modules."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # faster for nets this small
    try:
        yield SimpleNamespace(**{name: import_module(name) for name in MODULES})
    finally:
        torch.set_num_threads(threads)


def toy_images(n: int, seed: int, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy images with a bright bar whose place tells the class."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.integers(0, 120, size=(n, 28, 28), dtype=np.uint8)
    for image, label in zip(X, y, strict=True):
        image[8 * label : 8 * label + 6] += 120
    return X, y


def write_images(folder: Path, n_train: int = 60, n_test: int = 20) -> None:
    X, y = toy_images(n_train, 0)
    X_test, y_test = toy_images(n_test, 1)
    np.savez(folder / "mnist.npz", x_train=X, y_train=y, x_test=X_test, y_test=y_test)


def tiny(paper: SimpleNamespace, **changes: Any) -> Any:
    """Return the row of MNIST cut down to seconds."""
    sizes: dict[str, Any] = {
        "n_classes": 3,
        "width": 4,
        "n_pool": 30,
        "n_validation": 12,
        "n_test": 15,
        "n_train_file": None,
        "n_test_file": None,
        "n_initial": 6,
        "batch_size": 4,
        "n_rounds": 2,
        "n_draws": 6,
        "max_epochs": 3,
        "n_seeds": 2,
        "epoch_size": 64,
        "strategies": ("random", "ical"),
    }
    return replace(paper.experiments.EXPERIMENTS["mnist"], **sizes | changes)


def classifier(paper: SimpleNamespace, **changes: Any) -> Any:
    """Return the estimator on toy images, unfitted."""
    X, y = toy_images(12, 2)
    settings: dict[str, Any] = {
        "n_draws": 6,
        "epoch_size": 64,
        "max_epochs": 3,
        "random_state": 0,
        "y_validation": y,
    }
    X_validation = paper.data.as_float_images(X)
    return paper.training.DropoutClassifier("mnist-cnn", 3, 4, X_validation, **settings | changes)


def toy_rows(paper: SimpleNamespace, n: int = 18) -> tuple[np.ndarray, np.ndarray]:
    X, y = toy_images(n, 3)
    return paper.data.as_float_images(X), y


@pytest.mark.parametrize(
    ("name", "n_candidates", "n_labels"),
    [
        ("mnist", 58_956, 320),
        ("repeated-mnist", 176_908, 320),
        ("emnist", 93_953, 347),
        ("fashion-mnist", 56_908, 320),
        ("cifar10", 38_976, 40_000),
        ("cifar100", 28_976, 41_000),
    ],
)
def test_table_counts_candidates_and_labels_as_the_paper_does(
    paper: SimpleNamespace, name: str, n_candidates: int, n_labels: int
) -> None:
    row = paper.experiments.EXPERIMENTS[name]
    assert (row.name, row.n_candidates, row.n_labels) == (name, n_candidates, n_labels)
    assert row.n_pool + row.n_validation <= row.n_train_file
    assert set(row.strategies) <= set(paper.run.STRATEGIES)
    assert row.net in paper.nets.NETS


def n_parameters(module: Any) -> int:
    return sum(p.numel() for p in module.parameters())


def test_mnist_net_is_that_of_the_paper(paper: SimpleNamespace) -> None:
    net = paper.nets.MnistCNN(10)
    leaves = [type(m).__name__ for m in net.modules() if not list(m.children())]
    convolution = ["Conv2d", "Dropout2d", "MaxPool2d", "ReLU"]
    dense = ["Linear", "Dropout", "ReLU", "Linear"]
    assert leaves == [*convolution, *convolution, "Flatten", *dense]
    sizes = [26 * 32, (25 * 32 + 1) * 64, (1024 + 1) * 128, (128 + 1) * 10]
    assert n_parameters(net) == sum(sizes)
    assert net(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_emnist_net_is_that_of_the_code(paper: SimpleNamespace) -> None:
    net = paper.nets.EmnistCNN(47)
    leaves = [type(m).__name__ for m in net.modules() if not list(m.children())]
    counts = [leaves.count(name) for name in ("Conv2d", "Dropout2d", "MaxPool2d", "Dropout")]
    assert counts == [3, 3, 2, 1]
    sizes = [10 * 32, (9 * 32 + 1) * 64, (9 * 64 + 1) * 128, (2048 + 1) * 512, (512 + 1) * 47]
    assert n_parameters(net) == sum(sizes)
    assert net(torch.zeros(2, 1, 28, 28)).shape == (2, 47)


def test_resnet_has_its_known_size_and_dropout_in_the_head_alone(paper: SimpleNamespace) -> None:
    net = paper.nets.ResNet18(100)
    # That of ResNet-18 with the stem for CIFAR, 11 173 962, without its last layer for 10 classes.
    assert n_parameters(net.trunk) == 11_173_962 - 513 * 10
    assert n_parameters(net.head) == 513 * 512 + 513 * 256 + 257 * 100
    dropouts = [name for name, m in net.named_modules() if "Dropout" in type(m).__name__]
    assert [name.partition(".")[0] for name in dropouts] == ["head", "head"]
    narrow = paper.nets.ResNet18(10, width=2)
    assert narrow(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize(("n_rows", "seen"), [(18, 64), (80, 80)])
def test_epoch_has_its_size_or_is_one_pass(paper: SimpleNamespace, n_rows: int, seen: int) -> None:
    net = classifier(paper, max_epochs=2).fit(*toy_rows(paper, n_rows)).net_
    sizes = net.history[:, "batches", :, "train_batch_size"]
    assert [sum(epoch) for epoch in sizes] == [seen, seen]


def test_training_keeps_the_weights_of_the_best_epoch(paper: SimpleNamespace) -> None:
    X, y = toy_rows(paper)
    settings = {"width": 16, "epoch_size": 256, "patience": 3}
    stopped = classifier(paper, max_epochs=30).set_params(**settings).fit(X, y)
    accuracies = stopped.net_.history[:, "valid_acc"]
    best = int(np.argmax(accuracies))
    assert best > 0
    assert len(accuracies) == best + 1 + 3
    # A training that ends with the best epoch leads to the same weights.
    short = classifier(paper, max_epochs=best + 1).set_params(**settings).fit(X, y)
    weights = short.net_.module_.state_dict()
    for name, value in stopped.net_.module_.state_dict().items():
        assert torch.equal(value, weights[name])
    found = np.mean(
        stopped.net_.predict(stopped.X_validation) == stopped.y_validation
    )  # without dropout
    assert found == pytest.approx(accuracies[best])


def test_training_follows_from_its_seed_and_leaves_global_generators(
    paper: SimpleNamespace,
) -> None:
    X, y = toy_rows(paper)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = classifier(paper).fit(X, y).predict_proba(X)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    torch.rand(3)
    np.testing.assert_array_equal(classifier(paper).fit(X, y).predict_proba(X), first)
    assert not np.allclose(classifier(paper, random_state=1).fit(X, y).predict_proba(X), first)


@pytest.mark.parametrize(("n_draws", "n_mean"), [(6, 6), (120, 100)])
def test_prediction_is_the_mean_of_at_most_100_draws(
    paper: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, n_draws: int, n_mean: int
) -> None:
    X, y = toy_rows(paper)
    model = classifier(paper, n_draws=n_draws, max_epochs=1).fit(X, y)
    assert model.draw(random_state=0).n_draws == n_draws
    values = model.draw(n_mean, model.seed_)(X).values.numpy()
    assert values.std(axis=1).max() > 0
    monkeypatch.setattr(paper.training, "PREDICT_ROWS", 5)
    np.testing.assert_allclose(model.predict_proba(X), values.mean(axis=1), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), values.mean(axis=1).argmax(axis=1))


def test_interrupted_training_is_not_taken_for_a_finished_one(
    paper: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, calls = paper.nets.MnistCNN.forward, []

    def interrupted(self: Any, X: Any) -> Any:
        calls.append(len(X))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return forward(self, X)

    monkeypatch.setattr(paper.nets.MnistCNN, "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        classifier(paper).fit(*toy_rows(paper))


def test_scores_are_accuracy_and_log_likelihood(paper: SimpleNamespace) -> None:
    proba = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.0, 0.2, 0.8]])
    model = SimpleNamespace(predict_proba=lambda X: proba)
    found = paper.measures.scores(model, None, np.array([0, 0, 2]))
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["neg_log_loss"] == pytest.approx(np.log([0.5, 0.25, 0.8]).mean())
    impossible = paper.measures.scores(model, None, np.array([1, 2, 0]))["neg_log_loss"]
    assert np.log(0.25) * 2 / 3 - 30 < impossible < -20  # finite


def test_split_standardizes_by_the_pool_and_repeats_both_sides(
    paper: SimpleNamespace, tmp_path: Path
) -> None:
    write_images(tmp_path)
    plain = paper.data.load_split(tiny(paper), tmp_path)
    assert plain.X_pool.shape == (30, 1, 28, 28)
    assert (len(plain.X_validation), len(plain.X_test)) == (12, 15)
    assert plain.X_pool.mean() == pytest.approx(0, abs=1e-4)
    assert plain.X_pool.std() == pytest.approx(1, abs=1e-4)
    assert abs(plain.X_test.mean()) > 1e-6  # by the pool's numbers, not by its own
    both = np.concatenate([plain.X_pool, plain.X_validation]).reshape(42, -1)
    assert len(np.unique(both, axis=0)) == 42
    repeated = paper.data.load_split(tiny(paper, n_repeats=3), tmp_path)
    assert (len(repeated.X_pool), len(repeated.X_validation)) == (90, 36)
    noise = repeated.X_pool - np.tile(plain.X_pool, (3, 1, 1, 1))
    assert noise.std() == pytest.approx(0.1, rel=0.02)
    np.testing.assert_array_equal(repeated.y_pool, np.tile(plain.y_pool, 3))


def test_moments_are_those_of_each_channel(paper: SimpleNamespace) -> None:
    X = np.random.default_rng(0).integers(0, 200, size=(5, 4, 4, 3), dtype=np.uint8)
    found = paper.data.moments(X)
    np.testing.assert_allclose(found["mean"], X.mean(axis=(0, 1, 2)) / 255)
    np.testing.assert_allclose(found["std"], X.std(axis=(0, 1, 2)) / 255)


def test_full_size_on_a_subset_names_both_numbers_and_the_small_scale(
    paper: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_images(tmp_path)
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match="2"):
        paper.run.main(["mnist", "--data-home", str(tmp_path), "--out", str(out)])
    error = " ".join(capsys.readouterr().err.split())
    assert "needs the 60000 training and 10000 test images" in error
    assert "Got 60 and 20 in 'mnist'; pass --scale small" in error
    with pytest.raises(SystemExit, match="2"):
        paper.run.main(
            ["mnist", "--data-home", str(tmp_path), "--scale", "small", "--out", str(out)]
        )
    error = " ".join(capsys.readouterr().err.split())
    assert "needs at least 1256 training and 1000 test images. Got 60 and 20" in error
    assert not out.exists()


def test_labels_beyond_the_classes_are_refused(paper: SimpleNamespace, tmp_path: Path) -> None:
    write_images(tmp_path)
    with pytest.raises(ValueError, match=r"labels from 0 to 1\. Got 2"):
        paper.data.load_split(tiny(paper, n_classes=2), tmp_path)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_killed_run_goes_on_to_the_results_of_an_unbroken_one(
    paper: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_images(tmp_path)
    row = tiny(paper, n_repeats=2)
    monkeypatch.setitem(paper.experiments.EXPERIMENTS, "mnist", row)
    command = ["mnist", "--data-home", str(tmp_path), "--out"]
    paper.run.main([*command, str(tmp_path / "whole")])
    assert "NLL by number of labels" in capsys.readouterr().out

    fit, calls = paper.training.DropoutClassifier.fit, []

    def killed(self: Any, X: Any, y: Any) -> Any:
        calls.append(len(X))
        if len(calls) == 9:  # the last but one round of the third of four runs
            raise KeyboardInterrupt
        return fit(self, X, y)

    monkeypatch.setattr(paper.training.DropoutClassifier, "fit", killed)
    with pytest.raises(KeyboardInterrupt):
        paper.run.main([*command, str(tmp_path / "broken")])
    assert not (tmp_path / "broken" / "mnist-full" / "rounds.csv").exists()
    calls.clear()
    monkeypatch.setattr(
        paper.training.DropoutClassifier,
        "fit",
        lambda self, X, y: (calls.append(len(X)), fit(self, X, y))[1],
    )
    paper.run.main([*command, str(tmp_path / "broken")])
    assert len(calls) <= 5  # of 12 in all: the last round of one run, another run, a refit
    for name in ("rounds.csv", "classes.csv"):
        paths = [tmp_path / run / "mnist-full" / name for run in ("whole", "broken")]
        assert paths[0].read_bytes() == paths[1].read_bytes()
    check_results(tmp_path / "whole" / "mnist-full")


def check_results(folder: Path) -> None:
    """Check the files of two strategies, two seeds and two rounds of 4 after 6 labels."""
    rounds = read(folder / "rounds.csv")
    assert len(rounds) == 2 * 2 * 3
    assert [int(line["n_labeled"]) for line in rounds[:3]] == [6, 10, 14]
    for line in rounds:
        assert 0 <= float(line["accuracy"]) <= 1
        assert float(line["nll"]) > 0
        assert 0 < float(line["entropy"]) <= np.log(3) + 1e-6
        assert 1 <= int(line["n_images"]) <= int(line["n_labeled"])
    # Runs of one seed start from the same labels and the same net; those of two seeds do not.
    start = {
        (line["strategy"], line["seed"]): line["nll"] for line in rounds if line["round"] == "0"
    }
    assert start["random", "0"] == start["ical", "0"] != start["random", "1"]
    classes = read(folder / "classes.csv")
    assert len(classes) == 2 * 2 * 3
    for strategy, seed in start:
        counts = [
            int(c["count"]) for c in classes if (c["strategy"], c["seed"]) == (strategy, seed)
        ]
        assert sum(counts) == 8
