"""``partwise simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors

__all__ = ["simulate"]


@app.command()
@plain_errors
def simulate(
    out: Annotated[Path, typer.Option("-o", "--out", help="Write the scenes to this .npz file.")],
    scenes: Annotated[int, typer.Option(help="How many; none is empty.", min=1)] = 512,
    noise: Annotated[float, typer.Option(help="Standard deviation of the template noise.")] = 0.0,
    seed: options.SeedOption = 0,
    model: options.ModelOption = None,
) -> None:
    """Draw labelled scenes as the paper does in its section 7.1.1."""
    from partwise.files import write_labelled
    from partwise.model import Model
    from partwise.sampling import simulate_constellations

    loaded = None if model is None else Model.load(model)
    labelled = simulate_constellations(scenes, noise, seed, loaded)
    write_labelled(out, labelled)
    typer.echo(f"{len(labelled)} scenes in {out}", err=True)
