"""Reading model files without running code in them, unless the user allows it."""

import shlex
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from sklearn_ical.cli._errors import CommandError, one_line
from sklearn_ical.cli._files import check_readable


def read_model(
    path: Path, *, trusted: Collection[str], unsafe_pickle: bool, arguments: Sequence[str]
) -> Any:
    """Return the model in a file written by skops or, if allowed, by joblib or pickle.

    The type of a file is determined by its content, never by its name.

    Parameters
    ----------
    path : Path
        The file. Never changed.
    trusted : collection of str
        Types that a skops file may hold beyond those that skops trusts by default.
    unsafe_pickle : bool
        Whether joblib and pickle files may be loaded, which runs the code in them.
    arguments : sequence of str
        The command's arguments, for the command printed with an error.

    Returns
    -------
    model : object
    """
    check_readable(path)
    if zipfile.is_zipfile(path):
        return _read_skops(path, trusted, arguments)
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise CommandError(f"{path} is empty.")
    if start.startswith(b"PK"):
        raise CommandError(f"{path} is damaged: it begins like a skops file but is incomplete.")
    if not unsafe_pickle:
        raise CommandError(
            f"{path} is not a skops file. Loading a joblib or pickle file runs the code in it, so "
            "it is refused. Save the model with skops.io.dump(model, 'model.skops'), or pass "
            "--unsafe-pickle if you trust whoever made the file."
        )
    return _read_pickle(path)


def _read_skops(path: Path, trusted: Collection[str], arguments: Sequence[str]) -> Any:
    import skops.io

    try:
        types = skops.io.get_untrusted_types(file=path)
        refused = [name for name in types if name not in trusted]
        if not refused:
            return skops.io.load(path, trusted=types)
    except Exception as error:  # any error of zip, json, skops and the classes inside
        raise CommandError(f"{path} is damaged or not a skops file: {one_line(error)}") from error
    raise CommandError(
        f"{path} holds types that skops does not trust by default:\n"
        + "".join(f"    {name}\n" for name in refused)
        + "A file made to do harm can misuse them: trust only types of files from people you "
        f"trust. Then run\n    {_trusting(arguments, refused)}"
    )


def _trusting(arguments: Sequence[str], types: Sequence[str]) -> str:
    """Return the command that was run, for a shell, with a flag for each type."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    flags = [word for name in types for word in ("--trust-type", name)]
    return shlex.join(["sklearn-ical", *arguments[:end], *flags, *arguments[end:]])


def _read_pickle(path: Path) -> Any:
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:  # the code in the file may raise anything
        raise CommandError(
            f"{path} cannot be loaded with joblib: {type(error).__name__}: {one_line(error)}"
        ) from error
