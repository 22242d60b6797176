"""Pictures. Every function takes an ``ax`` or makes one, and returns it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise._checks import InputError

if TYPE_CHECKING:
    from partwise.posterior import Explanation

__all__ = ["PALETTE", "plot_explanation"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
"""Okabe and Ito: for colour-blind people too; objects also differ in marker."""

MARKERS = "osD^vPX"
CLUTTER = "#8A8A8A"


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(5.0, 5.0))[1]


def plot_explanation(found: Explanation, ax: Any = None) -> Any:
    """A scene in the plane: points coloured by detection, outlines where the poses put the parts.

    Points that belong to nothing are grey crosses.
    """
    points = found.scene.parts[:, :2]
    if found.model.pose.scene_dim != 2:
        raise InputError("plot draws scenes in the plane; this one has three dimensions.")
    ax = _axes(ax)
    for i, detection in enumerate(found.objects):
        colour, marker = PALETTE[i % len(PALETTE)], MARKERS[i % len(MARKERS)]
        outline = detection.predicted[:, :2]
        closed = np.concatenate([outline, outline[:1]])
        ax.plot(*closed.T, color=colour, linewidth=1.2, alpha=0.7, zorder=1)
        mine = points[detection.points]
        label = f"{detection.name} ({detection.probability:.2f})"
        ax.plot(*mine.T, marker, color=colour, markersize=8, label=label, zorder=3)
    rest = points[found.labels < 0]
    if len(rest):
        label = "belongs to nothing" if found.objects else "points"
        ax.plot(*rest.T, "x", color=CLUTTER, markersize=7, label=label, zorder=2)
    ax.set_aspect("equal")
    ax.margins(0.08)
    if len(points):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=3, frameon=False)
    return ax
