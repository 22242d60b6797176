"""How sure it is: the assignment matrix R, and the poses with their uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from partwise.plotting.style import CLUTTER, axes, colour, in_plane, outline

if TYPE_CHECKING:
    from partwise.model import Model
    from partwise.scenes import Scene

__all__ = ["plot_assignment", "plot_poses"]

Array = np.ndarray

PRESENT = 0.05
"""Objects that hold less than this share of their parts are not drawn."""


def plot_assignment(
    assignment: Float[Array, "M N"],
    owner: Int[Array, " N"],
    clutter: Float[Array, " M"] | None = None,
    ax: Any = None,
) -> Any:
    """R as a table: a row a point, a column a part, darker the surer; last, clutter if any.

    ``owner[n]`` is the object of column n; objects are told apart by the bars on top.
    """
    table, owner = np.asarray(assignment, float), np.asarray(owner)
    if clutter is not None and np.any(clutter):
        table = np.concatenate([table, np.asarray(clutter, float)[:, None]], 1)
        owner = np.append(owner, -1)
    ax = axes(ax, (0.4 * table.shape[1] + 1.2, 0.4 * table.shape[0] + 1.2))
    ax.imshow(table, cmap="Greys", vmin=0.0, vmax=1.0, aspect="equal")
    for n, k in enumerate(owner):
        shade = CLUTTER if k < 0 else colour(int(k))
        ax.plot([n - 0.42, n + 0.42], [-0.8, -0.8], color=shade, linewidth=4, clip_on=False)
    for edge in np.flatnonzero(np.diff(owner)) + 0.5:
        ax.axvline(edge, color="#BBBBBB", linewidth=0.8)
    ax.set(xlabel="parts, by object", ylabel="points", xticks=[], yticks=range(len(table)))
    ax.set_xlim(-0.5, table.shape[1] - 0.5)
    ax.set_ylim(len(table) - 0.5, -1.2)
    ax.tick_params(length=0, labelsize=7)
    for side in ax.spines.values():
        side.set_visible(False)
    return ax


def plot_poses(
    model: Model,
    scene: Scene,
    assignment: Float[Array, "M N"],
    owner: Int[Array, " N"],
    pose_mean: Float[Array, "K d"],
    pose_precision: Float[Array, "K d d"],
    noise: float = 0.0,
    ax: Any = None,
) -> Any:
    """Every object where q(Y) puts it: its parts at their means, with ellipses of two deviations.

    Points are coloured by the objects that they are assigned to, mixed by responsibility; what no
    object claims is grey. An object is drawn as strongly as it holds its parts. ``noise`` is the
    deviation of the observations in the scene, under the beta of the moment.
    """
    in_plane(model)
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Ellipse

    ax = axes(ax)
    dim = model.pose.dim
    objects = range(len(model.copies))
    held = np.stack([assignment[:, owner == k].sum(1) for k in objects], 1)  # M K
    for k, t in enumerate(model.copies):
        template = model.templates[t]
        strength = float(np.clip(held[:, k].sum() / len(template), 0.0, 1.0))
        if strength < PRESENT:
            continue
        mean = model.pose.apply(pose_mean[k, :dim], template.parts)[:, :2]
        covariance = np.linalg.inv(pose_precision[k])[:dim, :dim]
        ax.plot(*outline(mean).T, color=colour(k), linewidth=1.5, alpha=0.2 + 0.7 * strength)
        for part, at in zip(template.parts, mean, strict=True):
            f = model.pose.design(part)[:2]
            values, vectors = np.linalg.eigh(f @ covariance @ f.T + noise**2 * np.eye(2))
            width, height = 4.0 * np.sqrt(np.maximum(values, 0.0))  # two deviations each way
            angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
            look = {"facecolor": colour(k), "edgecolor": "none", "alpha": 0.18 * strength}
            ax.add_patch(Ellipse(tuple(at), width, height, angle=angle, **look))
    shades = np.array([to_rgb(colour(k)) for k in objects])
    rest = np.clip(1.0 - held.sum(1, keepdims=True), 0.0, 1.0)
    mixed = (held @ shades + rest * np.array(to_rgb(CLUTTER))) / (held.sum(1, keepdims=True) + rest)
    points = scene.parts[:, :2]
    ax.scatter(*points.T, s=60, c=np.clip(mixed, 0, 1), edgecolors="#333333", zorder=3)
    ax.set_aspect("equal")
    return ax
