"""The loaders of images: files made here in every format, and a stand-in for OpenML."""

import gzip
import re
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import openml_images
import pytest
from image_files import load_images
from images import ImageData
from openml_images import fetch_images

GRAY, COLOR = (4, 5), (4, 5, 3)
MNIST_FILES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


@pytest.fixture(autouse=True)
def _no_data_folder_and_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**arguments: Any) -> Any:
        raise AssertionError(f"download of {arguments}")

    monkeypatch.delenv("SKLEARN_ICAL_DATA", raising=False)
    monkeypatch.setattr(openml_images, "fetch_openml", refuse)


def made_parts(seed: int = 0, shape: tuple[int, ...] = GRAY) -> dict[str, np.ndarray]:
    """Make seven training and three test images; height and width differ, so axes show."""
    rng = np.random.default_rng(seed)
    return {
        "x_train": rng.integers(256, size=(7, *shape), dtype=np.uint8),
        "y_train": rng.integers(10, size=7, dtype=np.uint8),
        "x_test": rng.integers(256, size=(3, *shape), dtype=np.uint8),
        "y_test": rng.integers(10, size=3, dtype=np.uint8),
    }


def idx_bytes(array: np.ndarray) -> bytes:
    """Return an array in the IDX format."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_idx(folder: Path, parts: dict[str, np.ndarray], prefix: str = "") -> None:
    """Write MNIST's four files, or with a prefix EMNIST's, whose test files are named test."""
    for part, name in MNIST_FILES.items():
        name = f"{prefix}-{name.replace('t10k', 'test')}" if prefix else name
        (folder / name).write_bytes(idx_bytes(parts[part]))


def assert_holds(data: ImageData, parts: dict[str, np.ndarray]) -> None:
    for part, array in parts.items():
        found = getattr(data, part.replace("x_", "X_"))
        np.testing.assert_array_equal(found, array)
        assert found.dtype == (np.uint8 if part.startswith("x_") else np.int64)


# Names, paths and folders


@pytest.mark.parametrize("shape", [GRAY, COLOR])
def test_load_images_reads_an_npz_file_by_name_and_by_path(
    shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = made_parts(shape=shape)
    file = tmp_path / "cifar10.npz"
    np.savez_compressed(file, **parts)
    for name in (file, str(file), tmp_path):
        assert_holds(load_images(name), parts)
    assert_holds(load_images("cifar10", tmp_path), parts)
    assert_holds(load_images("cifar10", data_home=str(tmp_path)), parts)
    monkeypatch.setenv("SKLEARN_ICAL_DATA", str(tmp_path))
    data = load_images("cifar10")
    assert_holds(data, parts)
    assert data.classes is None
    assert repr(data) == f"ImageData(name='cifar10', n_train=7, n_test=3, shape={shape})"
    monkeypatch.chdir(tmp_path)
    assert_holds(load_images("cifar10.npz"), parts)


def test_load_images_prefers_data_home_to_the_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, home in enumerate(("of_variable", "of_parameter")):
        (tmp_path / home).mkdir()
        np.savez(tmp_path / home / "mnist.npz", **made_parts(seed))
    monkeypatch.setenv("SKLEARN_ICAL_DATA", str(tmp_path / "of_variable"))
    assert_holds(load_images("mnist"), made_parts(0))
    assert_holds(load_images("mnist", tmp_path / "of_parameter"), made_parts(1))


def test_load_images_names_the_labels(tmp_path: Path) -> None:
    parts = made_parts()
    classes = np.array([f"class {label}" for label in range(10)])
    np.savez(tmp_path / "mnist.npz", **parts, classes=classes)
    data = load_images("mnist", tmp_path)
    assert data.classes is not None
    expected = [f"class {label}" for label in parts["y_train"]]
    assert data.classes[data.y_train].tolist() == expected


def test_load_images_takes_the_only_variant_and_tells_its_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "cifar100.npz", **made_parts(0))
    np.savez(tmp_path / "cifar10_subset.npz", **made_parts(1))
    data = load_images("cifar10", tmp_path)
    assert data.name == "cifar10_subset"
    assert_holds(data, made_parts(1))
    assert_holds(load_images("cifar10_subset", tmp_path), made_parts(1))
    np.savez(tmp_path / "cifar10.npz", **made_parts(2))
    assert_holds(load_images("cifar10", tmp_path), made_parts(2))


def test_load_images_refuses_to_choose_between_variants(tmp_path: Path) -> None:
    np.savez(tmp_path / "emnist_bymerge.npz", **made_parts(0))
    write_idx(tmp_path, made_parts(1), prefix="emnist-letters")
    names = "'emnist_bymerge', 'emnist_letters'. Ask load_images for one of these names"
    with pytest.raises(ValueError, match=f"'emnist' fits several data sets in '.*': {names}"):
        load_images("emnist", tmp_path)
    with pytest.raises(ValueError, match=f"'.*' holds several data sets: {names}"):
        load_images(tmp_path)
    assert load_images("emnist_bymerge", tmp_path).name == "emnist_bymerge"


@pytest.mark.parametrize("zipped", [False, True])
def test_load_images_reads_idx_files_of_a_folder(tmp_path: Path, zipped: bool) -> None:
    parts = made_parts()
    folder = tmp_path / "fashion_mnist"
    folder.mkdir()
    write_idx(folder, parts)
    if zipped:
        for path in list(folder.iterdir()):
            Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    for data in (load_images("fashion_mnist", tmp_path), load_images(folder)):
        assert_holds(data, parts)
        assert data.name == "fashion_mnist"
        assert data.X_train.flags.writeable


def test_load_images_trusts_idx_files_without_a_name_for_the_mnists_only(tmp_path: Path) -> None:
    write_idx(tmp_path, made_parts())
    data = load_images("mnist", tmp_path)
    assert data.name == "mnist"
    assert_holds(data, made_parts())
    with pytest.raises(FileNotFoundError, match=r"nor IDX files for 'cifar10'"):
        load_images("cifar10", tmp_path)


def test_load_images_turns_emnist_upright(tmp_path: Path) -> None:
    parts = made_parts()
    stored = {
        part: array.swapaxes(1, 2) if array.ndim == 3 else array for part, array in parts.items()
    }
    write_idx(tmp_path, stored, prefix="emnist-balanced")
    for name in ("emnist", "emnist_balanced"):
        data = load_images(name, tmp_path)
        assert_holds(data, parts)
        assert data.name == "emnist_balanced"
        assert data.X_train.flags.c_contiguous


def test_load_images_prefers_an_npz_file_to_idx_files_to_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "emnist_balanced"
    folder.mkdir()
    write_idx(folder, made_parts(0))
    assert_holds(load_images("emnist_balanced", tmp_path), made_parts(0))
    write_idx(tmp_path, made_parts(1), prefix="emnist-balanced")
    labels = load_images("emnist_balanced", tmp_path).y_train
    np.testing.assert_array_equal(labels, made_parts(1)["y_train"])
    np.savez(tmp_path / "emnist_balanced.npz", **made_parts(2))
    assert_holds(load_images("emnist_balanced", tmp_path), made_parts(2))


# Nothing to load


def test_load_images_without_a_folder_names_all_ways_out() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load_images("mnist")
    message = str(caught.value)
    for way_out in ("data_home", "SKLEARN_ICAL_DATA", "path of a file", "openml_images.py mnist"):
        assert way_out in message
    with pytest.raises(FileNotFoundError) as caught:
        load_images("svhn")
    assert "openml_images" not in str(caught.value)


def test_load_images_names_the_folder_that_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = str(tmp_path / "gone")
    with pytest.raises(
        FileNotFoundError, match=rf"^data_home must be .* Got {re.escape(repr(gone))}"
    ):
        load_images("mnist", gone)
    monkeypatch.setenv("SKLEARN_ICAL_DATA", gone)
    with pytest.raises(
        FileNotFoundError, match=r"^The environment variable SKLEARN_ICAL_DATA must"
    ):
        load_images("mnist")


@pytest.mark.parametrize("name", [None, 3, b"mnist", ""])
def test_load_images_refuses_what_is_no_name(name: Any) -> None:
    with pytest.raises(TypeError, match=f"name must be a non-empty string or a path. Got {name!r}"):
        load_images(name)


def test_load_images_refuses_a_data_home_that_is_no_path() -> None:
    with pytest.raises(TypeError, match=r"data_home must be a string, a path or None\. Got 3"):
        load_images("mnist", 3)  # type: ignore[arg-type]


def test_load_images_lists_what_is_there_instead(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"found neither an npz file nor IDX .*nothing"):
        load_images(tmp_path)
    (tmp_path / "notes.txt").touch()
    np.savez(tmp_path / "cifar100.npz", **made_parts())
    held = re.escape("The folder holds: cifar100.npz, notes.txt.")
    with pytest.raises(FileNotFoundError, match=rf"{held} openml_images.py cifar10 .* downloads"):
        load_images("cifar10", tmp_path)
    with pytest.raises(FileNotFoundError, match=f"found neither svhn.npz nor .* {held}$"):
        load_images("svhn", tmp_path)
    with pytest.raises(FileNotFoundError, match=f"found no file or folder '.*x.npz'. {held}"):
        load_images(tmp_path / "x.npz")
    for number in range(30):
        (tmp_path / f"a{number:02}").touch()
    with pytest.raises(FileNotFoundError, match=r"a18, a19 and 12 more\."):
        load_images("svhn", tmp_path)


# Damaged files


def replaced(part: str, array: Any) -> dict[str, Any]:
    return {**made_parts(), part: array}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"x_train": np.zeros((1, 2, 2), np.uint8), "y": [0]},
            "must hold the arrays .*, y_test. y_train, x_test, y_test missing from",
        ),
        (replaced("y_train", np.zeros(6, int)), "x_train and y_train .* 7 images and 6 labels"),
        (replaced("y_test", np.zeros(4, int)), "x_test and y_test .* 3 images and 4 labels"),
        (
            replaced("x_test", np.zeros((3, *GRAY))),
            r"x_test must be uint8 of shape .* Got dtype float64 and shape \(3, 4, 5\)",
        ),
        (
            replaced("x_train", np.zeros((7, 3, 4, 5), np.uint8)),
            r"x_train must be uint8 of shape .* Got dtype uint8 and shape \(7, 3, 4, 5\)",
        ),
        (replaced("x_train", np.zeros((7, 20), np.uint8)), r"x_train must be .* \(7, 20\)"),
        (replaced("y_train", np.zeros(7)), "y_train must be integers .* Got dtype float64"),
        (replaced("y_test", np.zeros((3, 1), int)), r"y_test must be integers .* shape \(3, 1\)"),
        (
            replaced("x_test", np.zeros((3, 5, 4), np.uint8)),
            r"must have one shape. Got \(4, 5\) and \(5, 4\)",
        ),
        (replaced("classes", np.arange(10)), "classes must be strings .* Got dtype int64"),
        (
            {**replaced("classes", np.array(["a", "b"])), "y_train": np.arange(7)},
            "classes must name every label from 0 on. Got 2 names and the label 2",
        ),
        (
            {**replaced("classes", np.array(["a", "b"])), "y_train": np.full(7, -1)},
            "Got 2 names and the label -1",
        ),
        (replaced("y_test", np.array([0, 1, None])), "holds pickled objects, which are never"),
    ],
)
def test_load_images_refuses_an_npz_file(
    parts: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "mnist.npz"
    np.savez(file, **parts)
    with pytest.raises(ValueError, match=message) as caught:
        load_images("mnist", tmp_path)
    assert str(file) in str(caught.value)
    assert "load_images" in str(caught.value)


def test_load_images_refuses_a_truncated_or_corrupted_npz_file(tmp_path: Path) -> None:
    file = tmp_path / "mnist.npz"
    np.savez_compressed(file, **made_parts())
    content = file.read_bytes()
    for damaged in (b"", content[: len(content) // 2], b"\x93NUMPY" + content[:9]):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"mnist.npz' must be a complete npz file"):
            load_images(file)
    # The same bytes with some of the compressed ones flipped: the directory is intact.
    start = content.index(b"x_train.npy") + 40
    flipped = bytes(255 - byte for byte in content[start : start + 20])
    file.write_bytes(content[:start] + flipped + content[start + 20 :])
    with pytest.raises(ValueError, match=r"load_images cannot read '.*mnist.npz': it is damaged"):
        load_images(file)


IMAGES = idx_bytes(made_parts()["x_train"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"must be an IDX file of unsigned bytes with 3 axes.* Got \[\] and 0 more bytes"),
        (IMAGES[:9], r"Got \[0, 0, 8, 3\] and 5 more bytes in load_images"),
        (b"\x1f\x8b" + IMAGES[2:], r"Got \[31, 139, 8, 3\] and"),
        (b"\0\0\x0d" + IMAGES[3:], r"start with the bytes 0, 0, 8, 3 .* Got \[0, 0, 13, 3\]"),
        (idx_bytes(np.zeros(9, np.uint8)), r"with 3 axes.* Got \[0, 0, 8, 1\]"),
        (IMAGES[:-1], r"is damaged: .* shape \(7, 4, 5\) has 140 bytes .* Got 139 in load_images"),
        (IMAGES + b"\0", "is damaged: .* 140 bytes .* Got 141"),
    ],
)
def test_load_images_refuses_an_idx_file(content: bytes, message: str, tmp_path: Path) -> None:
    write_idx(tmp_path, made_parts())
    (tmp_path / MNIST_FILES["x_train"]).write_bytes(content)
    with pytest.raises(ValueError, match=f"train-images-idx3-ubyte' .*{message}"):
        load_images(tmp_path)


def test_load_images_refuses_a_damaged_gzip_file(tmp_path: Path) -> None:
    write_idx(tmp_path, made_parts())
    path = tmp_path / MNIST_FILES["y_test"]
    packed = gzip.compress(path.read_bytes())
    path.unlink()
    for damaged in (packed[:-9], b"no gzip", packed[:12] + b"\xff" * 4 + packed[16:]):
        path.with_name(f"{path.name}.gz").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"t10k-labels-idx1-ubyte.gz' is no complete gzip"):
            load_images(tmp_path)


def test_load_images_names_the_idx_file_that_is_missing(tmp_path: Path) -> None:
    write_idx(tmp_path, made_parts())
    (tmp_path / MNIST_FILES["x_test"]).unlink()
    rule = "no t10k-images-idx3-ubyte or test-images-idx3-ubyte, as it is or as .gz, in"
    with pytest.raises(FileNotFoundError, match=f"{rule} .* The folder holds: t10k-labels-idx1"):
        load_images(tmp_path)


def test_load_images_refuses_idx_files_of_unequal_length(tmp_path: Path) -> None:
    write_idx(tmp_path, replaced("y_train", np.zeros(5, np.uint8)))
    with pytest.raises(ValueError, match="7 images and 5 labels"):
        load_images(tmp_path)


# OpenML


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Let fetch_openml answer with given rows, and every data set be small; return its calls."""

    def install(data: Any, target: Any, **known: Any) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def fetch_openml(**arguments: Any) -> SimpleNamespace:
            calls.append(arguments)
            return SimpleNamespace(data=data, target=target)

        small = {name: entry._replace(**known) for name, entry in openml_images.OPENML.items()}
        monkeypatch.setattr(openml_images, "OPENML", small)
        monkeypatch.setattr(openml_images, "fetch_openml", fetch_openml)
        return calls

    return install


SMALL = {"n_train": 4, "test_counts": (2, 1)}
TARGET = np.array(["0", "1", "1", "1", "0", "1", "0"], dtype=object)


@pytest.mark.parametrize(
    ("name", "data_id"),
    [
        ("mnist", 554),
        ("fashion_mnist", 40996),
        ("emnist", 41039),
        ("cifar10", 40927),
        ("cifar100", 41983),
    ],
)
def test_fetch_images_returns_upright_images_in_their_parts(
    name: str, data_id: int, stand_in: Callable[..., list[dict[str, Any]]]
) -> None:
    color = name.startswith("cifar")
    images = np.random.default_rng(0).integers(
        256, size=(7, 32, 32, 3) if color else (7, 28, 28), dtype=np.uint8
    )
    # As stored: CIFAR's colors come one after the other, EMNIST's images column by column.
    stored = np.moveaxis(images, 3, 1) if color else images
    stored = images.swapaxes(1, 2) if name == "emnist" else stored
    calls = stand_in(stored.reshape(7, -1).astype(np.float64), TARGET, **SMALL)
    data = fetch_images(name)
    (call,) = calls
    assert (call["data_id"], call["as_frame"]) == (data_id, False)
    parts = {
        "x_train": images[:4],
        "y_train": np.array([0, 1, 1, 1]),
        "x_test": images[4:],
        "y_test": np.array([0, 1, 0]),
    }
    assert_holds(data, parts)
    assert data.classes is None
    assert data.name == f"{name} (OpenML {data_id})"


@pytest.mark.parametrize(
    ("name", "n_train", "n_test", "n_classes"),
    [
        ("mnist", 60_000, 10_000, 10),
        ("fashion_mnist", 60_000, 10_000, 10),
        ("emnist", 112_800, 18_800, 47),
        ("cifar10", 50_000, 10_000, 10),
        ("cifar100", 50_000, 10_000, 100),
    ],
)
def test_fetch_images_splits_at_the_standard_sizes(
    name: str, n_train: int, n_test: int, n_classes: int
) -> None:
    known = openml_images.OPENML[name]
    assert (known.n_train, sum(known.test_counts)) == (n_train, n_test)
    assert len(known.test_counts) == n_classes


def test_download_is_written_where_load_images_finds_it(
    stand_in: Callable[..., list[dict[str, Any]]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pixels = np.arange(7 * 784).reshape(7, 784) % 256
    stand_in(pixels, TARGET, **SMALL)
    openml_images.main(["mnist", "--data-home", str(tmp_path / "new")])
    assert "n_train=4, n_test=3, shape=(28, 28)) written to" in capsys.readouterr().out
    parts = {
        "x_train": pixels[:4].reshape(4, 28, 28),
        "y_train": np.array([0, 1, 1, 1]),
        "x_test": pixels[4:].reshape(3, 28, 28),
        "y_test": np.array([0, 1, 0]),
    }
    assert_holds(load_images("mnist", tmp_path / "new"), parts)


BLANK = np.zeros((7, 784))


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        (BLANK[:6], TARGET[:6], r"Expected shape \(7, 784\), got \(6, 784\) from data set 554"),
        (BLANK[:, 1:], TARGET, r"Expected shape \(7, 784\), got \(7, 783\)"),
        (BLANK + 0.5, TARGET, "Expected whole numbers from 0 to 255 as pixels"),
        (BLANK + 256, TARGET, "Expected whole numbers from 0 to 255 as pixels"),
        (BLANK + np.nan, TARGET, "Expected whole numbers from 0 to 255 as pixels"),
        (BLANK, np.array(list("abcdefg"), dtype=object), "Expected whole numbers as labels from"),
        (BLANK, TARGET[::-1], r"The last 3 rows must .* occur \[1, 2\] times instead of \[2, 1\]"),
    ],
)
def test_fetch_images_refuses_an_unexpected_answer(
    data: Any, target: Any, message: str, stand_in: Callable[..., list[dict[str, Any]]]
) -> None:
    stand_in(data, target, **SMALL)
    with pytest.raises(ValueError, match=message) as caught:
        fetch_images("mnist")
    assert "data set 554 of OpenML in fetch_images('mnist')" in str(caught.value)


def test_download_lists_the_names_it_knows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        openml_images.main(["mnist_784", "--data-home", "."])
    error = capsys.readouterr().err
    assert all(name in error for name in ("mnist_784", *openml_images.OPENML))
