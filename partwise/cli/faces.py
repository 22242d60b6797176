"""``partwise faces``: evaluate, show, fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors
from partwise.cli.output import console, progress_bar

__all__ = ["evaluate", "faces", "fit", "show"]

faces = typer.Typer(
    help="Scenes of faces: parts with appearance (the paper's section 7.2).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(faces, name="faces")

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="A folder of PhotoFit Me part images, or a face model (.npz).  "
        "[default: the ORL photographs]",
    ),
]


@faces.command()
@plain_errors
def evaluate(
    count: Annotated[int, typer.Option("--faces", help="Faces a scene, 1 to 5.")],
    solver: Annotated[
        str, typer.Option(help="vi, vi-random, ransac, ransac-mean or ransac-refit.")
    ] = "vi",
    scenes: Annotated[int, typer.Option(help="How many scenes.", min=1)] = 250,
    occluded: Annotated[
        bool, typer.Option("--occluded", help="Faces may cover each other and leave the canvas.")
    ] = False,
    data: DataOption = None,
    seed: options.SeedOption = 0,
    as_json: options.JsonOption = False,
) -> None:
    """Measure a solver on random scenes of faces.

    How often every part is assigned right, how well the scene is rebuilt, and how fast.

    vi starts from the parts' votes, vi-random at random as in the paper. ransac takes an object's
    appearance from one part: a sample of its posterior (the paper), or its mean; ransac-refit from
    all parts.
    """
    from partwise.faces import evaluate, face_solver, load_faces
    from partwise.faces.scenes import check_numbers

    face_solver(solver)
    check_numbers(count, scenes)
    options.cache_compilations()
    source = load_faces(data)
    with progress_bar("scenes", scenes) as progress:
        result = evaluate(source, count, solver, scenes, occluded, seed, progress)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        console().print(_lines(result), highlight=False)


def _lines(result: dict[str, Any]) -> str:
    kind = " occluded" if result["occluded"] else ""
    accuracy, error = result["assignment_accuracy"], result["assignment_standard_error"]
    return (
        f"{result['solver']} on {result['scenes']} scenes of {result['faces']}{kind} faces\n"
        f"every part assigned right   {accuracy:.3f} ± {error:.3f}\n"
        f"RMSE, mean over scenes      {result['rmse_mean']:.4f} ± "
        f"{result['rmse_standard_error']:.4f} (spread {result['rmse_std']:.4f})\n"
        f"inference                   {result['scenes_per_second']:,.0f} scenes/s warm; "
        f"{result['compile_seconds']:.1f} s to compile"
    )


@faces.command()
@plain_errors
def show(
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder of the pictures.")],
    data: DataOption = None,
    seed: options.SeedOption = 0,
) -> None:
    """Draw scenes, faces and factors.

    Scenes with what VI and RANSAC make of them, faces of the model, and what each factor does.
    """
    from partwise.faces import load_faces
    from partwise.paper.keeping import make_folder
    from partwise.plotting.faces import write_pictures

    options.cache_compilations()
    source = load_faces(data)
    make_folder(out)
    for picture in write_pictures(out, source, seed):
        typer.echo(f"{out / picture.file}: {picture.caption}", err=True)


@faces.command()
@plain_errors
def fit(
    out: Annotated[Path, typer.Option("-o", "--out", help="The face model: one .npz file.")],
    data: DataOption = None,
) -> None:
    """Fit the face model and keep it.

    Its faces are drawn from the model when --data reads the file: photographs are not in it.
    """
    from partwise._checks import InputError
    from partwise.faces import fit_of, write_basis

    if out.suffix.lower() != ".npz":
        raise InputError(f"{out}: face models are .npz files; give a name that ends in .npz.")
    model = fit_of(data).model
    write_basis(out, model)
    codes = ", ".join(map(str, model.looks.features))
    typer.echo(f"codes of {codes} numbers, {model.factors} factors in {out}", err=True)
