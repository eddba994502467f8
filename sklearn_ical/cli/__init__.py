"""The entry point of the sklearn-ical command; options, reading and writing are in its files."""

import sys
from importlib.util import find_spec

PACKAGES = ("typer", "rich", "pandas", "pyarrow", "skops", "matplotlib")


def main() -> None:
    """Run the command; explain how to install its optional packages if they are missing."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        sys.exit(
            f"sklearn-ical: the command needs {', '.join(missing)}. Install everything it needs "
            'with\n    pip install "sklearn-ical[cli]"'
        )
    try:
        from sklearn_ical.cli._app import app

        app(prog_name="sklearn-ical")
    except KeyboardInterrupt:
        sys.exit(130)
