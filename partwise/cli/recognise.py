"""``partwise infer`` and ``partwise evaluate``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors
from partwise.cli.output import console, progress_bar

if TYPE_CHECKING:
    from partwise.model import Model
    from partwise.posterior import Explanation
    from partwise.solvers import Solver

__all__ = ["evaluate", "infer"]

SHOWN = 20
"""``infer`` on a terminal shows the answers to this many scenes."""


@app.command()
@plain_errors
def infer(
    scenes: options.ScenesArgument,
    model: Annotated[Path, typer.Option(help="The model, as JSON.")],
    solver: options.SolverOption = "auto",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write the answers to this Parquet file.")
    ] = None,
    seed: options.SeedOption = 0,
    restarts: options.RestartsOption = None,
    beta: options.BetaOption = None,
) -> None:
    """Find the objects of a model in scenes.

    With -o, a file of any length: what is finished is on disk, and an interrupted run resumes.
    Without, the answers are printed: a table on a terminal, JSON lines into a pipe.
    """
    from partwise.files import count_scenes
    from partwise.model import Model
    from partwise.streaming import infer_file

    options.cache_compilations()
    loaded, used = Model.load(model), options.solver(solver, restarts=restarts, beta=beta)
    if out is None:
        print_answers(scenes, loaded, used, seed)
        return
    with progress_bar("scenes", count_scenes(scenes)) as progress:
        if out.exists() and scenes.exists() and out.samefile(scenes):
            from partwise._checks import InputError

            raise InputError(f"{out}: -o would overwrite the scenes; name another file.")
        count = infer_file(scenes, loaded, used, seed, out=out, progress=progress)
    typer.echo(f"{count} scenes explained in {out}", err=True)


@app.command()
@plain_errors
def evaluate(
    scenes: options.LabelledArgument,
    solver: options.SolverOption = "auto",
    model: options.ModelOption = None,
    restarts: options.RestartsOption = None,
    beta: options.BetaOption = None,
    weights: options.WeightsOption = None,
    seed: options.SeedOption = 0,
    limit: Annotated[int | None, typer.Option(help="Only the first so many scenes.", min=1)] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Score and time a solver on labelled scenes, under both protocols."""
    from partwise import evaluation
    from partwise.files import read_labelled
    from partwise.model import Model

    options.cache_compilations()
    used = options.solver(solver, restarts=restarts, beta=beta, weights=weights)
    loaded = None if model is None else Model.load(model)
    labelled = read_labelled(scenes)
    if limit is not None:
        labelled = labelled.select(slice(limit))
    with progress_bar("scenes", int(labelled.present.any(1).sum())) as progress:
        result = evaluation.evaluate(labelled, used, loaded, seed, name=solver, progress=progress)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        print_evaluation(result)


def print_answers(path: Path, model: Model, solver: Solver, seed: int) -> None:
    """A table of the first scenes on a terminal; every scene as a JSON line into a pipe."""
    from partwise.files import count_scenes, iterate_scenes
    from partwise.inference import solve

    if sys.stdout.isatty():
        total = count_scenes(path)
        for batch in iterate_scenes(path, SHOWN):
            _print_table(list(solve(model, batch, solver, seed)))
            break
        if total > SHOWN:
            typer.echo(f"... and {total - SHOWN} more scenes; write them all with -o OUT.parquet")
        return
    index = 0
    for batch in iterate_scenes(path):
        for explanation in solve(model, batch, solver, seed):
            typer.echo(json.dumps({"scene": index, **explanation.to_json()}))
            index += 1


def _print_table(explanations: list[Explanation]) -> None:
    import numpy as np
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("scene", "object", "points", "pose", "probability"):
        table.add_column(heading, justify="right" if heading == "probability" else "left")
    for i, explanation in enumerate(explanations):
        for found in explanation.objects:
            pose = ", ".join(
                f"{key} {np.round(value, 3).tolist()}" for key, value in found.parameters.items()
            )
            points = " ".join("-" if p < 0 else str(p) for p in found.parts)
            table.add_row(str(i), found.name, points, pose, f"{found.probability:.3f}")
        rest = np.flatnonzero(explanation.labels < 0)
        if len(rest) or not explanation.objects:
            what = "clutter" if len(rest) else "nothing found"
            table.add_row(str(i), what, " ".join(map(str, rest.tolist())), "", "")
    console().print(table)


def print_evaluation(result: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(
        title=f"{result['solver']} on {result['scenes']} scenes", box=None, pad_edge=False
    )
    for heading in ("protocol", *result["published"]):
        table.add_column(heading.replace("_", " "))
    for protocol in ("published", "exchangeable"):
        error = result["standard_error"][protocol]
        figures = (f"{value:.3f} ± {error[key]:.3f}" for key, value in result[protocol].items())
        table.add_row(protocol, *figures)
    out = console()
    out.print(table)
    out.print(
        f"{result['scenes_per_second']:,.0f} scenes/s warm; "
        f"{result['compile_seconds']:.1f} s to compile",
        highlight=False,
    )
