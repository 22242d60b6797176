"""``partwise movie``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors
from partwise.cli.output import progress_bar

if TYPE_CHECKING:
    from partwise.scenes import Scene

__all__ = ["movie"]

SIMULATED = 0.1
"""The noise of the scene that is drawn where none is given."""


@app.command()
@plain_errors
def movie(
    out: Annotated[Path, typer.Option("-o", "--out", help="The film: .gif or .mp4.")],
    scenes: Annotated[
        Path | None,
        typer.Argument(metavar="[SCENES]", help="Scenes; without, a simulated one of 11 points."),
    ] = None,
    index: Annotated[int, typer.Option(help="Which of the scenes, from 0.", min=0)] = 0,
    model: options.ModelOption = None,
    solver: Annotated[str, typer.Option(help="ds or gmm.")] = "ds",
    faces: Annotated[
        int | None, typer.Option(help="Instead a scene of so many faces.", min=1, max=5)
    ] = None,
    seed: options.SeedOption = 0,
) -> None:
    """A film of variational inference on one scene, a frame an update.

    Points take the colours of the objects they are assigned to; outlines are the templates at their
    expected poses, with ellipses of two standard deviations that shrink as beta grows; beside them
    the assignment matrix R and the ELBO. With --faces, the scene that the model expects beside it.
    """
    from partwise._checks import InputError, one_of
    from partwise.movies import write_movie
    from partwise.movies.writing import check_movie_path

    one_of("--solver", solver, ("ds", "gmm"))
    check_movie_path(out)
    options.cache_compilations()
    if faces is not None:
        if scenes is not None or model is not None or solver != "ds":
            raise InputError("--faces draws its own scene: leave SCENES, --model, --solver out.")
        frames = _faces(faces, index, seed)
    else:
        frames = _constellation(scenes, index, model, solver, seed)
    with progress_bar("frames", None) as progress:
        count = write_movie(out, frames, progress=progress)
    typer.echo(f"{count} frames in {out}", err=True)


def _faces(count: int, index: int, seed: int) -> Iterator[Any]:
    from partwise.faces import load_faces
    from partwise.movies.faces import face_frames

    return face_frames(load_faces(), count, index, seed=seed)


def _constellation(
    scenes: Path | None, index: int, model: Path | None, solver: str, seed: int
) -> Iterator[Any]:
    from partwise.model import Model, constellations
    from partwise.movies import inference_frames
    from partwise.solvers.variational import Variational

    loaded = constellations() if model is None else Model.load(model)
    scene = _scene(scenes, index, seed)
    used = Variational(prior="gmm" if solver == "gmm" else "ds")
    return inference_frames(loaded, scene, used, seed)


def _scene(scenes: Path | None, index: int, seed: int) -> Scene:
    """Scene ``index`` of a file, or of simulated scenes in which every object is there."""
    from partwise._checks import InputError
    from partwise.files import ROWS, iterate_scenes
    from partwise.sampling import simulate_constellations

    if scenes is None:
        drawn = simulate_constellations(64 * (index + 1), SIMULATED, seed)
        whole = drawn.select(drawn.present.all(1)).scenes
        return whole[min(index, len(whole) - 1)]
    for batch in iterate_scenes(scenes, ROWS, skip=index // ROWS):
        if index % ROWS < len(batch):
            return batch[index % ROWS]
        break
    raise InputError(f"--index: {scenes} has no scene {index}; scenes are counted from 0.")
