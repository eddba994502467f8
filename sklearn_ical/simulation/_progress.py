"""Progress bars on stderr, by rich, which is loaded only if they are requested."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def rounds_bar(verbose: Any, total: float, name: str) -> Iterator[Callable[[], None]]:
    """Yield a function that advances one bar of `total` steps, inf if that is not known."""
    with bars(verbose, {name: total}) as advance:
        yield lambda: advance(name)


@contextmanager
def bars(verbose: Any, totals: Mapping[str, float]) -> Iterator[Callable[[str], None]]:
    """Yield a function that advances the bar of a name by one step; silent if `verbose` is 0."""
    if not verbose:
        yield lambda name: None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )
    except ImportError as error:
        raise ImportError('verbose=1 requires rich. Install it with "pip install rich".') from error
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        tasks = {
            name: progress.add_task(name, total=int(total) if math.isfinite(total) else None)
            for name, total in totals.items()
        }
        yield lambda name: progress.advance(tasks[name])
