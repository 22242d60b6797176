"""How well faces are found: part assignment, and the picture rebuilt (sec. 7.2.1)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from partwise._checks import one_of
from partwise.evaluation import Timing
from partwise.faces.appearance import FaceModel
from partwise.faces.combinations import Faces
from partwise.faces.rendering import render_explanation, render_truth
from partwise.faces.scenes import FaceScenes, draw_scenes
from partwise.posterior import Explanations
from partwise.solvers import Solver
from partwise.solvers.ransac import Ransac
from partwise.solvers.variational import Variational

__all__ = ["SOLVERS", "assigned", "evaluate", "face_solver", "rebuilding_errors", "summary"]

Array = np.ndarray

SOLVERS: dict[str, Solver] = {
    "vi": Variational(beta=0.1, growth=10.0, init="votes"),
    "vi-random": Variational(beta=1e-4, growth=10.0),
    "ransac": Ransac(refit=False, appearance="basis-sample"),
    "ransac-mean": Ransac(refit=False, appearance="basis-mean"),
    "ransac-refit": Ransac(),
}
"""``vi``: from votes. ``vi-random``: the paper's schedule, from random R. RANSAC's appearance given
one part is a sample of its posterior (the paper), the mean; or it is fitted to all parts."""


def face_solver(name: str) -> Solver:
    """The solver of that name, with the options it has for faces."""
    one_of("solver", name, SOLVERS)
    return SOLVERS[name]


def evaluate(
    faces: Faces,
    count: int,
    solver: str = "vi",
    scenes: int = 250,
    occluded: bool = False,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Draw scenes, explain them, and measure: what ``partwise faces evaluate`` prints.

    ``scenes_per_second`` is inference only, warm.
    """
    used = face_solver(solver)
    drawn = draw_scenes(faces, count, scenes, occluded, seed)
    timing = Timing(faces.model.scene_model(count, occluded), used, seed)
    found, first = timing.once(drawn.scenes)
    compiling, speed = timing.steady(drawn.scenes, first)
    (errors,) = rebuilding_errors(faces.model, drawn, found, progress=progress)
    return {
        "solver": solver,
        "faces": count,
        "occluded": occluded,
        **summary(assigned(drawn, found), errors),
        "scenes_per_second": speed,
        "compile_seconds": compiling,
    }


def summary(right: Bool[Array, " S"], errors: Float[Array, " S"]) -> dict[str, Any]:
    """Means, their standard errors, and the spread of the RMSE from scene to scene."""
    share = float(right.mean())
    return {
        "scenes": len(right),
        "assignment_accuracy": share,
        "assignment_standard_error": float(np.sqrt(share * (1 - share) / len(right))),
        "rmse_mean": float(errors.mean()),
        "rmse_std": float(errors.std()),
        "rmse_standard_error": float(errors.std() / np.sqrt(len(errors))),
    }


def assigned(scenes: FaceScenes, found: Explanations) -> Bool[Array, " S"]:
    """Whether every observed part of a scene is the right part of the right face.

    Faces are instances of one template, so that only which parts belong together is right or wrong.
    """
    right = np.zeros(len(scenes), bool)
    for i, (owner, part) in enumerate(zip(scenes.object_id, scenes.part_id, strict=True)):
        truth = {frozenset(zip(*_members(owner == k, part), strict=True)) for k in np.unique(owner)}
        guess = set()
        for slots in found.parts[i][found.found[i]]:
            held = np.flatnonzero(slots >= 0)
            guess.add(frozenset(zip(slots[held].tolist(), held.tolist(), strict=True)))
        right[i] = guess == truth
    return right


def _members(mine: Bool[Array, " M"], part: Array) -> tuple[list[int], list[int]]:
    """The observations of one face, and which parts they are."""
    return np.flatnonzero(mine).tolist(), part[mine].tolist()


def rebuilding_errors(
    model: FaceModel,
    scenes: FaceScenes,
    *answers: Explanations,
    progress: Callable[[int], None] | None = None,
) -> list[Float[Array, " S"]]:
    """For each set of explanations, the RMSE between every input picture and the one predicted."""

    def one(i: int) -> list[float]:
        truth = render_truth(model, scenes, i)
        rebuilt = (render_explanation(model, found[i]) for found in answers)
        return [float(np.sqrt(((picture - truth) ** 2).mean())) for picture in rebuilt]

    errors = []
    with ThreadPoolExecutor(max_workers=2) as pool:  # SciPy's warps work outside Python's lock
        for row in pool.map(one, range(len(scenes))):
            errors.append(row)
            if progress is not None:
                progress(1)
    return [np.array(column) for column in zip(*errors, strict=True)]
