"""Variational inference on a scene of faces, a frame an update: the scene fills with faces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import UInt8

from partwise.faces import Faces, draw_scenes, face_solver
from partwise.faces.canvas import SIZE, pixels_at
from partwise.faces.rendering import render_faces, render_truth
from partwise.movies.film import best_trace, picture, thinned
from partwise.plotting import plot_assignment, plot_trace
from partwise.plotting.style import CLUTTER, colour, marker
from partwise.solvers.trace import Trace
from partwise.solvers.variational import Variational

__all__ = ["face_frames"]

Array = np.ndarray

SURE = 0.5
"""A part is shown as a face's own where more than this of it is."""


def face_frames(
    faces: Faces,
    count: int,
    index: int = 0,
    solver: str = "vi-random",
    seed: int = 0,
    occluded: bool = False,
) -> Iterator[UInt8[Array, "h w 3"]]:
    """The frames of a film of inference on scene ``index`` of ``count`` faces.

    Above the input, its parts in the colours of the faces that they are assigned to, and the scene
    that the poses and factors of the moment predict; below R and the ELBO.
    """
    from matplotlib.figure import Figure

    used = face_solver(solver)
    assert isinstance(used, Variational)
    drawn = draw_scenes(faces, count, index + 1, occluded, seed)
    scene = drawn.scenes[index]
    truth = render_truth(faces.model, drawn, index)
    run = best_trace(faces.model.scene_model(count, occluded), scene, used, seed)
    for step in thinned(len(run)):
        figure = Figure(figsize=(9.6, 7.2), layout="constrained")
        grid = figure.add_gridspec(2, 2, height_ratios=[1.7, 1])
        left, right = (figure.add_subplot(grid[0, i]) for i in range(2))
        _show(left, truth, "parts of the scene")
        _mark_parts(left, scene.parts[:, :2], run, int(step))
        _show(right, _predicted(faces, run, int(step)), "what the model expects")
        _mark_spread(right, run, int(step))
        figure.suptitle(f"update {step + 1} of {len(run)},  beta = {run.beta[step]:.3g}")
        below = plot_assignment(run.assignment[step], run.object, ax=figure.add_subplot(grid[1, 0]))
        below.set_title("R: which part is whose", fontsize=10, pad=8)
        plot_trace(run, figure.add_subplot(grid[1, 1]), upto=int(step) + 1)
        yield picture(figure)


def _show(ax: Any, image: Array, title: str) -> None:
    ax.imshow(image, cmap="gray", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_title(title, fontsize=10)


def _mark_parts(ax: Any, points: Array, run: Trace, step: int) -> None:
    """Every part in the colour of the face that has most of it, hollow where none has enough."""
    held = np.stack(
        [run.assignment[step][:, run.object == k].sum(1) for k in np.unique(run.object)], 1
    )
    at = pixels_at(points)
    for (x, y), share in zip(at, held, strict=True):
        k = int(share.argmax())
        sure = share[k] > SURE
        look = {"color": colour(k)} if sure else {"color": CLUTTER, "fillstyle": "none"}
        ax.plot(x, y, marker(k) if sure else "o", markersize=8, markeredgecolor="white", **look)


def _mark_spread(ax: Any, run: Trace, step: int) -> None:
    """Around every face a circle of two standard deviations: how sure its parts' places are."""
    from matplotlib.patches import Circle

    for k, precision in enumerate(run.pose_precision[step]):
        variance = np.diag(np.linalg.inv(precision))[:2].mean() + run.noise[step] ** 2
        radius = SIZE / 2 * 2 * np.sqrt(variance)
        at = tuple(pixels_at(run.pose_mean[step, k, :2]))
        ax.add_patch(Circle(at, radius, fill=False, color=colour(k), linewidth=1.6, clip_on=True))


def _predicted(faces: Faces, run: Trace, step: int) -> Array:
    """The scene of the expected faces at their expected poses; those that hold most in front."""
    model, mean = faces.model, run.pose_mean[step]
    mass = [run.assignment[step][:, run.object == k].sum() for k in range(len(mean))]
    order = np.argsort(mass, kind="stable")
    return render_faces(model, [(mean[k, :4], mean[k, 4:]) for k in order])
