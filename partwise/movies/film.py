"""Algorithm 2 on one scene, a frame an update: points, uncertain poses, R and the ELBO."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from partwise.model import Model
from partwise.plotting import plot_assignment, plot_poses, plot_trace
from partwise.scenes import Scene, SceneBatch
from partwise.solvers.trace import Trace, trace
from partwise.solvers.variational import Variational

__all__ = ["best_trace", "inference_frames", "picture", "thinned"]

Array = np.ndarray

MOST_FRAMES = 80
"""A run of more updates is thinned: every update at first, fewer and fewer later."""


def best_trace(model: Model, scene: Any, solver: Variational | None = None, seed: int = 0) -> Trace:
    """The run that the solver's answer comes from, update by update.

    Of every restart the first attempt that keeps the sparsity constraint; of these the best ELBO.
    """
    solver = solver or Variational()

    def settled(restart: int) -> Trace:
        run = trace(model, scene, solver, seed, restart)
        for attempt in range(1, solver.attempts):
            if run.sparse:
                break
            run = trace(model, scene, solver, seed, restart, attempt)
        return run

    runs = [settled(restart) for restart in range(solver.restarts)]
    return max(runs, key=lambda run: (run.sparse, float(run.elbo[-1])))


def thinned(updates: int, most: int = MOST_FRAMES) -> Int[Array, " F"]:
    """Which updates are shown: all of the first, for then most happens, and always the last."""
    if updates <= most:
        return np.arange(updates)
    # Steps that grow: half of the frames one by one, the others further and further apart.
    half = most // 2
    later = np.geomspace(half, updates - 1, most - half).round().astype(int)
    return np.unique(np.concatenate([np.arange(half), later]))


def inference_frames(
    model: Model, scene: Any, solver: Variational | None = None, seed: int = 0
) -> Iterator[UInt8[Array, "h w 3"]]:
    """The frames of a film of inference on one scene in the plane."""
    from matplotlib.figure import Figure

    batch, _ = SceneBatch.of(scene)
    run, one = best_trace(model, scene, solver, seed), batch[0]
    low, high = _window(one)
    for step in thinned(len(run)):
        figure = Figure(figsize=(9.6, 5.4), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=[1.35, 1], height_ratios=[1.6, 1])
        left = figure.add_subplot(grid[:, 0])
        plot_poses(
            model,
            one,
            run.assignment[step],
            run.object,
            run.pose_mean[step],
            run.pose_precision[step],
            float(run.noise[step]),
            left,
        )
        left.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
        left.set_title(f"update {step + 1} of {len(run)},  beta = {run.beta[step]:.3g}")
        right = figure.add_subplot(grid[0, 1])
        plot_assignment(run.assignment[step], run.object, ax=right)
        right.set_title("R: which point is which part", fontsize=10)
        plot_trace(run, figure.add_subplot(grid[1, 1]), upto=int(step) + 1)
        yield picture(figure)


def picture(figure: Any, dpi: int = 80) -> UInt8[Array, "h w 3"]:
    """A figure as an array of pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _window(scene: Scene) -> tuple[Array, Array]:
    """The box that all frames show: the points, with room for templates that have yet to settle."""
    points = scene.parts[:, :2]
    low, high = points.min(0), points.max(0)
    room = 0.25 * max(float((high - low).max()), 1e-9)
    return low - room, high + room
