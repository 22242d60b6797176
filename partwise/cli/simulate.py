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
    noise: Annotated[
        float | None,
        typer.Option(
            help="Standard deviation of the template noise; not with --crowd.  [default: 0]"
        ),
    ] = None,
    seed: options.SeedOption = 0,
    model: options.ModelOption = None,
    crowd: Annotated[
        bool, typer.Option("--crowd", help="Crowds: missing parts, clutter, many templates.")
    ] = False,
    templates: Annotated[
        int | None,
        typer.Option(
            help="--crowd without --model: how many random templates.  [default: 20]", min=1
        ),
    ] = None,
    clutter: Annotated[
        float | None,
        typer.Option(help="--crowd without --model: share of clutter.  [default: 0.3]"),
    ] = None,
) -> None:
    """Draw labelled scenes as the paper does in its section 7.1.1, or --crowd.

    Without --model, a crowd's templates are random, and their model is written beside the scenes
    (scenes.npz: scenes.model.json).
    """
    from partwise._checks import InputError

    if crowd and noise is not None:
        raise InputError("--noise: a crowd has the noise of its model; leave it out.")
    if not (crowd and model is None) and not (templates is None and clutter is None):
        raise InputError(
            "--templates and --clutter go with --crowd and without --model; leave them out."
        )
    if crowd:
        simulate_crowds(
            out,
            scenes,
            seed,
            model,
            20 if templates is None else templates,
            0.3 if clutter is None else clutter,
        )
        return
    from partwise.files import write_labelled
    from partwise.model import Model
    from partwise.sampling import simulate_constellations

    loaded = None if model is None else Model.load(model)
    labelled = simulate_constellations(scenes, noise or 0.0, seed, loaded)
    write_labelled(out, labelled)
    typer.echo(f"{len(labelled)} scenes in {out}", err=True)


def simulate_crowds(
    out: Path, scenes: int, seed: int, path: Path | None, templates: int, clutter: float
) -> None:
    """``partwise simulate --crowd``."""
    from partwise.crowds import crowd_model, simulate_crowd
    from partwise.files import write_sample
    from partwise.model import Model

    model = crowd_model(templates, clutter, seed) if path is None else Model.load(path)
    # The scenes must not depend on the draws that made the templates.
    write_sample(out, simulate_crowd(model, scenes, (seed, 1)))
    typer.echo(f"{scenes} scenes in {out}", err=True)
    if path is None:
        beside = out.with_suffix(".model.json")
        model.save(beside)
        typer.echo(f"their model in {beside}", err=True)
