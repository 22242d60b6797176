"""What commands print: progress on stderr, tables on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["console", "progress_bar"]


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[..., None] | None]:
    """A progress bar on stderr where that is a terminal; call it with how much more is done.

    Work that only knows its length later says so: ``progress(0, total=...)``; what else there is to
    say stands beside the bar: ``progress(0, note="loss 1.234")``.
    """
    if not sys.stderr.isatty():
        yield None
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
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)

        def advance(done: int, note: str | None = None, **changes: Any) -> None:
            if note is not None:
                changes["description"] = f"{what}, {note}"
            bar.update(task, advance=done, **changes)

        yield advance


def console() -> Any:
    """Where tables for people go."""
    from rich.console import Console

    return Console()
