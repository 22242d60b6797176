"""A scene and what was found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partwise.plotting.style import CLUTTER, PALETTE, axes, colour, in_plane, marker, outline

if TYPE_CHECKING:
    from partwise.posterior import Explanation

__all__ = ["plot_explanation"]


def plot_explanation(found: Explanation, ax: Any = None, legend: bool = True) -> Any:
    """A scene in the plane: points coloured by detection, outlines where the poses put the parts.

    Points that belong to nothing are grey crosses. In a model of few objects, each has a colour of
    its own, the same in every scene; in one of many, the detections of a scene do.
    """
    in_plane(found.model)
    points = found.scene.parts[:, :2]
    few = len(found.model.copies) <= len(PALETTE)
    ax = axes(ax)
    for i, detection in enumerate(found.objects):
        index = detection.instance if few else i
        line = outline(detection.predicted[:, :2])
        ax.plot(*line.T, color=colour(index), linewidth=1.2, alpha=0.7, zorder=1)
        mine = points[detection.points]
        label = f"{detection.name} ({detection.probability:.2f})"
        style = {"color": colour(index), "markersize": 8, "label": label, "zorder": 3}
        ax.plot(*mine.T, marker(index), **style)
    rest = points[found.labels < 0]
    if len(rest):
        label = "belongs to nothing" if found.objects else "points"
        ax.plot(*rest.T, "x", color=CLUTTER, markersize=7, label=label, zorder=2)
    ax.set_aspect("equal")
    ax.margins(0.08)
    if legend and len(points):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=3, frameon=False)
    return ax
