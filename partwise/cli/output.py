"""What commands print: progress on stderr, tables on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["console", "progress_bar", "progress_bars"]


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int | None], Callable[..., None] | None]]:
    """Progress bars on stderr where that is a terminal: ``add(what, total)`` makes one.

    What it returns is called with how much more is done. Work that only knows its length later says
    so: ``progress(0, total=...)``; what else there is to say stands beside the bar:
    ``progress(0, note="loss 1.234")``.
    """
    if not sys.stderr.isatty():
        yield lambda what, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:

        def add(what: str, total: int | None) -> Callable[..., None]:
            task = bars.add_task(what, total=total)

            def advance(done: float, note: str | None = None, **changes: Any) -> None:
                if note is not None:
                    changes["description"] = f"{what}, {note}"
                bars.update(task, advance=done, **changes)

            return advance

        yield add


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[..., None] | None]:
    """One progress bar, as of :func:`progress_bars`."""
    with progress_bars() as add:
        yield add(what, total)


def console() -> Any:
    """Where tables for people go."""
    from rich.console import Console

    return Console()
