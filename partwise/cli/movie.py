"""``partwise movie``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors
from partwise.cli.output import progress_bar

if TYPE_CHECKING:
    from partwise.scenes import Scene
    from partwise.solvers.variational import Variational

__all__ = ["movie"]

SIMULATED = 0.1
"""The noise of the scene that is drawn where none is given."""

MOST = 4096
"""Scenes that are drawn at most in search of it."""


@app.command()
@plain_errors
def movie(
    out: Annotated[Path, typer.Option("-o", "--out", help="The film: .gif or .mp4.")],
    scenes: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SCENES]", help="Scenes; without, a simulated one that is explained right."
        ),
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
    from partwise._checks import InputError
    from partwise.model import Model, constellations
    from partwise.movies import inference_frames
    from partwise.solvers.variational import Variational

    if scenes is None and model is not None:
        raise InputError("--model needs SCENES; without them the scene is one of the paper's.")
    loaded = constellations() if model is None else Model.load(model)
    used = Variational(prior="gmm" if solver == "gmm" else "ds")
    scene = _simulated(used, index, seed) if scenes is None else _scene(scenes, index)
    return inference_frames(loaded, scene, used, seed)


def _simulated(solver: Variational, index: int, seed: int) -> Scene:
    """Of simulated scenes with every object, number ``index`` of those that it explains right."""
    from partwise._checks import InputError
    from partwise.inference import solve
    from partwise.metrics import exchangeable_scores, predictions
    from partwise.model import constellations
    from partwise.sampling import simulate_constellations

    drawn = simulate_constellations(min(64 * (index + 1), MOST), SIMULATED, seed)
    whole = drawn.select(drawn.present.all(1))
    found = solve(constellations(), whole.scenes, solver, seed)
    scores = exchangeable_scores(whole, *predictions(found, whole), constellations())
    right = np.flatnonzero(scores.scene_accuracy)
    if index >= len(right):
        raise InputError(f"--index: take one below {len(right)}, or give SCENES of your own.")
    return whole.scenes[int(right[index])]


def _scene(scenes: Path, index: int) -> Scene:
    """Scene ``index`` of a file."""
    from partwise._checks import InputError
    from partwise.files import ROWS, iterate_scenes

    for batch in iterate_scenes(scenes, ROWS, skip=index // ROWS):
        if index % ROWS < len(batch):
            return batch[index % ROWS]
        break
    raise InputError(f"--index: {scenes} has no scene {index}; scenes are counted from 0.")
