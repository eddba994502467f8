"""What the built wheel holds: the typed package and its command, no tests."""

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

import pytest

import sklearn_ical
from sklearn_ical.cli import PACKAGES

ROOT = Path(__file__).resolve().parents[1]
INPUTS = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE", "sklearn_ical", "tests")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("build") is None, reason="needs the package build"
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy what a build reads, so that it leaves nothing behind."""
    tree = tmp_path_factory.mktemp("tree")
    for name in INPUTS:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(source, tree / name, ignore=ignored)
        else:
            shutil.copy(source, tree / name)
    return tree


@pytest.fixture(scope="module")
def wheel(tree: Path) -> Iterator[zipfile.ZipFile]:
    result = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "out", "."],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    (path,) = (tree / "out").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def info(wheel: zipfile.ZipFile, name: str) -> bytes:
    """Read one file of the wheel's metadata folder."""
    return wheel.read(f"sklearn_ical-{sklearn_ical.__version__}.dist-info/{name}")


def test_wheel_holds_every_source_file_and_the_typing_marker(wheel: zipfile.ZipFile) -> None:
    sources = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("sklearn_ical/**/*.py")}
    packaged = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packaged == {*sources, "sklearn_ical/py.typed"}


def test_wheel_metadata_has_the_version_and_license(wheel: zipfile.ZipFile) -> None:
    metadata = message_from_bytes(info(wheel, "METADATA"))
    assert metadata["Name"] == "sklearn-ical"
    assert metadata["Version"] == sklearn_ical.__version__
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Requires-Python"] == ">=3.11"
    assert {"torch", "plot", "cli", "all", "test", "docs"} == set(
        metadata.get_all("Provides-Extra")
    )
    assert info(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


def test_wheel_metadata_requires_optional_packages_in_extras_only(wheel: zipfile.ZipFile) -> None:
    metadata = message_from_bytes(info(wheel, "METADATA"))
    core = {line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert {line.split(">")[0] for line in core} == {
        "array-api-compat",
        "joblib",
        "numpy",
        "scikit-learn",
        "scipy",
    }


def test_wheel_extra_of_the_command_has_all_that_it_looks_for(wheel: zipfile.ZipFile) -> None:
    metadata = message_from_bytes(info(wheel, "METADATA"))
    extra = {line for line in metadata.get_all("Requires-Dist") if 'extra == "cli"' in line}
    assert {line.split(">")[0] for line in extra} == set(PACKAGES)


def test_wheel_installs_the_command(wheel: zipfile.ZipFile) -> None:
    assert b"sklearn-ical = sklearn_ical.cli:main" in info(wheel, "entry_points.txt")


def test_editable_install_is_a_folder_that_type_checkers_follow(tree: Path) -> None:
    build = "from setuptools.build_meta import build_editable; build_editable('editable')"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", build],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    (path,) = (tree / "editable").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        (name,) = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert name.endswith(".pth")  # and no module with an import hook
        assert archive.read(name).decode().split() == [str(tree.resolve())]
