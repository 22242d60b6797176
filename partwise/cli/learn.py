"""``partwise learn``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors
from partwise.cli.output import console, progress_bar

if TYPE_CHECKING:
    from partwise.learning import Learned

__all__ = ["learn"]


@app.command()
@plain_errors
def learn(
    scenes: options.ScenesArgument,
    parts: Annotated[int, typer.Option(help="How many parts the object has.", min=1)],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write the model to this JSON file.")
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            help="template: it follows the object's scale, poses integrated out; "
            "scene: the paper's algorithm, of fixed precision."
        ),
    ] = "template",
    symmetry: Annotated[
        bool, typer.Option(help="Weigh the hypotheses that the template is symmetric.")
    ] = True,
    missing: Annotated[
        bool, typer.Option("--missing", help="Parts may be hidden in some of the scenes.")
    ] = False,
    factors: Annotated[
        int | None, typer.Option(help="Factors of the appearance, where scenes have any.", min=1)
    ] = None,
    name: Annotated[str, typer.Option(help="What the object is called.")] = "object",
    seed: options.SeedOption = 0,
    as_json: options.JsonOption = False,
) -> None:
    """Learn a template from scenes that each show one object, in any pose, parts in any order.

    Labels in the file are not looked at. The model that -o writes is what infer takes as --model.
    """
    from partwise import learning
    from partwise._checks import one_of
    from partwise.files import read_scenes

    one_of("--noise", noise, ("template", "scene"))
    batch = read_scenes(scenes)
    with progress_bar("iterations", None) as progress:
        found = learning.learn(
            batch,
            parts,
            noise="scene" if noise == "scene" else "template",
            symmetry=symmetry,
            missing=missing,
            factors=factors,
            name=name,
            seed=seed,
            progress=progress,
        )
    if out is not None:
        found.model().save(out)
        typer.echo(f"the model is in {out}", err=True)
    if as_json:
        typer.echo(json.dumps(summary([found])))
    else:
        print_learned([found])


def summary(found: list[Learned]) -> dict[str, Any]:
    """What --json prints."""
    return {
        "objects": [
            {
                "name": one.name,
                "parts": one.parts.tolist(),
                **({"types": list(one.types)} if one.types else {}),
                "precision": one.precision,
                "sigma": one.sigma,
                "symmetry": dict(one.symmetry),
                "examples": one.examples,
            }
            for one in found
        ],
        "precision": found[0].precision,
        "iterations": found[0].iterations,
        "elbo": found[0].elbo[-1],
        "converged": found[0].converged,
    }


def print_learned(found: list[Learned]) -> None:
    """The parts of every template, and how it was learned."""
    from rich.table import Table

    out = console()
    for one in found:
        table = Table(title=one.name, box=None, pad_edge=False, title_justify="left")
        headings = ("part", "type", "x", "y") if one.types else ("part", "x", "y")
        for heading in headings:
            table.add_column(heading, justify="right")
        for n, position in enumerate(one.positions):
            middle = (one.types[n],) if one.types else ()
            table.add_row(str(n), *middle, *(f"{value:.4f}" for value in position))
        out.print(table)
        symmetry = ", ".join(f"{name} {weight:.2f}" for name, weight in one.symmetry)
        out.print(
            f"sigma {one.sigma:.4f} (the template's radius is 1) from {one.examples} examples; "
            f"{one.iterations} iterations, ELBO {one.elbo[-1]:.2f}; symmetry: {symmetry}",
            highlight=False,
        )
