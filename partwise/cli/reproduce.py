"""``partwise reproduce``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors
from partwise.cli.output import console, progress_bars

__all__ = ["reproduce"]

Advance = Callable[..., None]


@app.command()
@plain_errors
def reproduce(
    only: Annotated[
        str | None, typer.Option(help="Only these experiments, separated by commas.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the results.")] = Path("report"),
    scenes: Annotated[
        int | None, typer.Option(help="Scenes a cell.  [default: as in the paper]", min=1)
    ] = None,
) -> None:
    """Rerun the paper's experiments: our figures beside its own, on one page, index.html.

    What is finished is kept in the folder and not redone; the page shows what is there.
    """
    from partwise._checks import InputError
    from partwise.paper import EXPERIMENTS, select
    from partwise.report import write_page

    options.cache_compilations()
    chosen = {name: EXPERIMENTS[name] for name in select(only)}
    if all(entry.lacking for entry in chosen.values()):
        raise InputError(" ".join(f"{name}: {entry.lacking}" for name, entry in chosen.items()))
    weight = sum(entry.seconds for entry in chosen.values())
    tables: list[Any] = []
    with progress_bars() as add:
        whole = add("all", 100)
        for name, entry in chosen.items():
            if entry.lacking:
                typer.echo(f"{name}: {entry.lacking}", err=True)
                _both(whole, None, 100 * entry.seconds / weight)(1, total=1)
                continue
            progress = _both(whole, add(name, None), 100 * entry.seconds / weight)
            tables += entry.run(out, scenes=scenes, progress=progress)
            write_page(out)  # after each: what is done can be looked at
    console().print(*tables, sep="\n")
    typer.echo(f"The page: {write_page(out)}", err=True)


def _both(whole: Advance | None, part: Advance | None, share: float) -> Advance:
    """Progress of a part that is also ``share`` of the whole."""
    length = 1.0

    def advance(done: float, total: float | None = None, **changes: Any) -> None:
        nonlocal length
        if total is not None:
            length, changes["total"] = max(total, 1.0), total
        if part is not None:
            part(done, **changes)
        if whole is not None:
            whole(share * done / length)

    return advance
