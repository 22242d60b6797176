"""``partwise reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors
from partwise.cli.output import console, progress_bar

__all__ = ["reproduce"]


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
    """Rerun the paper's experiments: our figures beside its own.

    What is finished is kept in the folder and not redone.
    """
    from partwise.paper import EXPERIMENTS, select

    options.cache_compilations()
    for name in select(only):
        with progress_bar(name, None) as progress:
            report = EXPERIMENTS[name](out, scenes=scenes, progress=progress)
        console().print(*report, sep="\n")
