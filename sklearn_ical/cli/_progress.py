"""Progress of a command on stderr; results never go through here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Yield a function that starts a step by its title, and so ends the step before."""
    columns = (SpinnerColumn(finished_text=" "), TextColumn("{task.description}"))
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:

        def begin(title: str) -> None:
            finish()
            progress.add_task(title, total=1)

        def finish() -> None:
            for task in progress.task_ids:
                progress.update(task, completed=1)

        yield begin
        finish()
