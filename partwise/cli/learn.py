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
    from partwise.learning import Learned, LearnedModel

__all__ = ["learn"]


@app.command()
@plain_errors
def learn(
    scenes: options.ScenesArgument,
    parts: Annotated[
        str | None,
        typer.Option(
            help="How many parts the object has; with several objects, one number for all or one "
            "each, as in 4,3.  [default, with several objects: to be found out]"
        ),
    ] = None,
    objects: Annotated[
        int | None,
        typer.Option(
            help="How many objects there are, where scenes show any of them, several times or not "
            "at all.  [default: every scene shows the one object]",
            min=1,
        ),
    ] = None,
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
    """Learn templates from scenes: of one object alone, or of several unknown ones.

    Objects may be in any pose and parts in any order; labels in the file are not looked at. The
    model that -o writes is what infer takes as --model.
    """
    from partwise import learning
    from partwise._checks import InputError, one_of
    from partwise.files import read_scenes

    one_of("--noise", noise, ("template", "scene"))
    sizes = _numbers(parts)
    several = objects is not None or len(sizes) != 1
    one_only = missing or factors is not None or not symmetry or name != "object"
    if several and (noise == "scene" or one_only):
        raise InputError(
            "--noise, --missing, --factors, --name and --no-symmetry are for scenes of one object; "
            "leave them out where there are several."
        )
    if out is not None and not out.absolute().parent.is_dir():
        raise InputError(f"{out}: there is no such folder; make it first.")
    options.cache_compilations()
    batch = read_scenes(scenes)
    with progress_bar("iterations", None) as progress:
        if several:
            given: Any = sizes if len(sizes) > 1 else sizes[0] if sizes else None
            found = learning.learn_model(batch, given, objects, seed=seed, progress=progress)
            templates, model = found.templates, found.model
        else:
            found = learning.learn(
                batch,
                sizes[0],
                noise="scene" if noise == "scene" else "template",
                symmetry=symmetry,
                missing=missing,
                factors=factors,
                name=name,
                seed=seed,
                progress=progress,
            )
            templates, model = (found,), found.model()
    if out is not None:
        model.save(out)
        typer.echo(f"the model is in {out}", err=True)
    if as_json:
        typer.echo(json.dumps(_summary(found, templates)))
    else:
        _print(found, templates)


def _numbers(text: str | None) -> list[int]:
    """``--parts``: numbers, separated by commas."""
    from partwise._checks import InputError

    try:
        return [] if text is None else [int(number) for number in text.split(",")]
    except ValueError:
        raise InputError(
            f"--parts must be a whole number, or several separated by commas; got {text!r}."
        ) from None


def _elbo(found: Learned | LearnedModel) -> tuple[float, ...]:
    from partwise.learning import Learned

    return found.elbo if isinstance(found, Learned) else found.evidence


def _summary(found: Learned | LearnedModel, templates: tuple[Learned, ...]) -> dict[str, Any]:
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
            for one in templates
        ],
        "precision": found.precision,
        "iterations": found.iterations,
        "elbo": _elbo(found)[-1],
        "converged": found.converged,
    }


def _print(found: Learned | LearnedModel, templates: tuple[Learned, ...]) -> None:
    """The parts of every template, and how it was learned."""
    from rich.table import Table

    out = console()
    for one in templates:
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
            f"symmetry: {symmetry}\n",
            highlight=False,
        )
    out.print(f"{found.iterations} iterations, ELBO {_elbo(found)[-1]:.2f}", highlight=False)
    if not found.converged:
        out.print("not converged", highlight=False)
