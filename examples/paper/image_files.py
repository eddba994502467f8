"""Images in local npz and IDX files: which file a name means, and how it is read."""

import gzip
import math
import os
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from images import PARTS, ImageData, image_data
from openml_images import OPENML

DATA_VARIABLE = "SKLEARN_ICAL_DATA"
IDX_IMAGES = re.compile(r"(.*?)-?train-images-idx3-ubyte(\.gz)?")
IDX_UINT8 = 8  # the code of unsigned bytes in the header of an IDX file
# Data sets whose IDX files carry no name, so that the name asked for is taken on trust.
NAMELESS_IDX = {"mnist", "fashion_mnist"}
MAX_LISTED = 20
DOWNLOAD = "openml_images.py {} --data-home FOLDER downloads the images"


def load_images(
    name: str | os.PathLike[str], data_home: str | os.PathLike[str] | None = None
) -> ImageData:
    """Load a data set of images from local files; nothing is ever downloaded.

    Parameters
    ----------
    name : str or path
        A name to look up in `data_home`, as "mnist", "fashion_mnist", "emnist", "cifar10" or
        "cifar100"; or the path of an npz file or of a folder. A string is a path where it
        contains a path separator or ends in ".npz"; a `pathlib.Path` always is.
    data_home : str or path, default=None
        The folder to look a name up in. None takes the folder that the environment variable
        ``SKLEARN_ICAL_DATA`` names. Not used for a path.

    Returns
    -------
    data : ImageData
        The images; ``data.name`` tells which file they come from.

    Raises
    ------
    FileNotFoundError
        If there is no such file or folder, or no folder to look in.
    ValueError
        If a name fits several files, or if a file is damaged or holds something else.

    Notes
    -----
    Two formats are read, and nothing is unpickled:

    - ``<name>.npz`` with the arrays ``x_train``, ``y_train``, ``x_test`` and ``y_test``, where
      images are uint8 and labels are integers, and optionally ``classes``, the names of the labels;
    - the IDX files ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``,
      ``t10k-images-idx3-ubyte`` and ``t10k-labels-idx1-ubyte``, each also as ``.gz``; and those of
      EMNIST, as ``emnist-balanced-train-images-idx3-ubyte`` and
      ``emnist-balanced-test-images-idx3-ubyte``, which hold transposed images: they are turned
      upright.

    A name is looked up in this order, and the first that fits is taken:

    1. ``<name>.npz`` in `data_home`, else IDX files of that name ("emnist_balanced" for
       ``emnist-balanced-*``);
    2. the folder ``<name>`` in `data_home`;
    3. a variant ``<name>_*`` of the first kind, if there is only one: "emnist" finds
       ``emnist_bymerge.npz``;
    4. for "mnist" and "fashion_mnist", IDX files without a name in `data_home`.
    """
    if not isinstance(name, str | os.PathLike) or not name:
        raise TypeError(f"name must be a non-empty string or a path. Got {name!r} in load_images.")
    if not isinstance(name, str) or name.endswith(".npz") or os.path.basename(name) != name:
        source = _at_path(Path(name).expanduser())
    else:
        source = _named(name, _home(name, data_home))
    parts = _read_idx(source) if source.path.is_dir() else _read_npz(source.path)
    return image_data(parts, source.name, f"{str(source.path)!r} in load_images")


class _Source(NamedTuple):
    """Images in local files: an npz file, or the IDX files of a folder that share a prefix."""

    name: str
    path: Path
    prefix: str = ""


def _home(name: str, data_home: Any) -> Path:
    """Return the folder that names are looked up in."""
    if data_home is not None and not isinstance(data_home, str | os.PathLike):
        raise TypeError(
            f"data_home must be a string, a path or None. Got {data_home!r} in load_images."
        )
    owner, folder = "data_home", data_home
    if data_home is None:
        owner, folder = f"The environment variable {DATA_VARIABLE}", os.environ.get(DATA_VARIABLE)
    if not folder:
        fetch = f"; {DOWNLOAD.format(name)}" if name in OPENML else ""
        raise FileNotFoundError(
            f"load_images knows no folder to look for {name!r} in. Pass it as data_home or set the "
            f"environment variable {DATA_VARIABLE}, or pass the path of a file instead of a name"
            f"{fetch}."
        )
    home = Path(folder).expanduser()
    if not home.is_dir():
        raise FileNotFoundError(
            f"{owner} must be an existing folder. Got {str(folder)!r} in load_images."
        )
    return home


def _sources(folder: Path) -> dict[str, _Source]:
    """List the images in a folder by name; those in IDX files without a name have the name ""."""
    sources: dict[str, _Source] = {}
    for path in sorted(folder.iterdir()):
        if match := IDX_IMAGES.fullmatch(path.name):
            name = match[1].replace("-", "_")
            sources[name] = _Source(name or folder.resolve().name, folder, match[1])
        elif path.suffix == ".npz":  # sorted after IDX files of its name, so it takes their place
            sources[path.stem] = _Source(path.stem, path)
    return sources


def _at_path(path: Path) -> _Source:
    """Return the images in a file, or the only ones in a folder."""
    if path.is_dir():
        sources = _sources(path)
        if not sources:
            raise FileNotFoundError(
                f"load_images found neither an npz file nor IDX files in {str(path)!r}. "
                f"{_listing(path)}"
            )
        return _only(list(sources.values()), f"{str(path)!r} holds several data sets")
    if not path.is_file():
        there = f" {_listing(path.parent)}" if path.parent.is_dir() else ""
        raise FileNotFoundError(f"load_images found no file or folder {str(path)!r}.{there}")
    return _Source(path.stem, path)


def _named(name: str, home: Path) -> _Source:
    """Return the images of a name in a folder, in the order that `load_images` documents."""
    sources = _sources(home)
    if name in sources:
        return sources[name]
    if (home / name).is_dir():
        return _at_path(home / name)
    variants = [source for key, source in sources.items() if key.startswith(f"{name}_")]
    if variants:
        return _only(variants, f"{name!r} fits several data sets in {str(home)!r}")
    if name in NAMELESS_IDX and "" in sources:
        return sources[""]._replace(name=name)
    fetch = f" {DOWNLOAD.format(name)}." if name in OPENML else ""
    raise FileNotFoundError(
        f"load_images found neither {name}.npz nor IDX files for {name!r} in {str(home)!r}. "
        f"{_listing(home)}{fetch}"
    )


def _only(sources: list[_Source], problem: str) -> _Source:
    """Return the one source there is."""
    if len(sources) > 1:
        names = ", ".join(sorted(repr(source.name) for source in sources))
        raise ValueError(
            f"{problem}: {names}. Ask load_images for one of these names, in that folder."
        )
    return sources[0]


def _listing(folder: Path) -> str:
    """Return a sentence that lists what a folder holds."""
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"The folder holds: {', '.join(names[:MAX_LISTED]) or 'nothing'}{more}."


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an npz file, without unpickling anything."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{str(path)!r} must be a complete npz file in load_images.")
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [part for part in PARTS if part not in file]
            wanted = [part for part in (*PARTS, "classes") if part in file]
            parts = {part: np.asarray(file[part]) for part in wanted}
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error) as err:
        raise ValueError(
            f"load_images cannot read {str(path)!r}: it is damaged, or holds pickled objects, "
            f"which are never loaded ({err})."
        ) from err
    if missing:
        raise ValueError(
            f"An npz file of images must hold the arrays {', '.join(PARTS)}. {', '.join(missing)} "
            f"missing from {str(path)!r} in load_images."
        )
    return parts


def _read_idx(source: _Source) -> dict[str, np.ndarray]:
    """Read the four IDX files of a data set; the images of EMNIST are stored transposed."""
    parts = {}
    for part, stems in (("train", ("train",)), ("test", ("t10k", "test"))):
        images = _idx_array(_idx_path(source, stems, "images-idx3"), n_axes=3)
        if source.prefix.startswith("emnist"):
            images = np.ascontiguousarray(images.swapaxes(1, 2))
        parts[f"x_{part}"] = images
        parts[f"y_{part}"] = _idx_array(_idx_path(source, stems, "labels-idx1"), n_axes=1)
    return parts


def _idx_path(source: _Source, stems: tuple[str, ...], kind: str) -> Path:
    """Return the path of one IDX file under the first of its names that exists."""
    prefix = f"{source.prefix}-" if source.prefix else ""
    names = [f"{prefix}{stem}-{kind}-ubyte" for stem in stems]
    for name in names:
        for path in (source.path / name, source.path / f"{name}.gz"):
            if path.is_file():
                return path
    raise FileNotFoundError(
        f"load_images found no {' or '.join(names)}, as it is or as .gz, in {str(source.path)!r}. "
        f"{_listing(source.path)}"
    )


def _idx_array(path: Path, n_axes: int) -> np.ndarray:
    """Read a file of the IDX format: 0, 0, the type, the axes, their lengths, the bytes."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as err:
        raise ValueError(f"{str(path)!r} is no complete gzip file ({err}).") from err
    header = 4 + 4 * n_axes
    if content[:4] != bytes([0, 0, IDX_UINT8, n_axes]) or len(content) < header:
        raise ValueError(
            f"{str(path)!r} must be an IDX file of unsigned bytes with {n_axes} axes, so start "
            f"with the bytes 0, 0, {IDX_UINT8}, {n_axes} and {n_axes} lengths. Got "
            f"{list(content[:4])} and {max(0, len(content) - 4)} more bytes in load_images."
        )
    shape = tuple(np.frombuffer(content, dtype=">u4", count=n_axes, offset=4).tolist())
    if len(content) - header != math.prod(shape):
        raise ValueError(
            f"{str(path)!r} is damaged: an IDX file of shape {shape} has {math.prod(shape)} bytes "
            f"after its header. Got {len(content) - header} in load_images."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape).copy()
