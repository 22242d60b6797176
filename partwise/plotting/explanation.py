"""A scene and what was found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.plotting.constellations import plot_answer
from partwise.plotting.style import PALETTE, axes, in_plane

if TYPE_CHECKING:
    from partwise.posterior import Explanation

__all__ = ["plot_explanation"]


def plot_explanation(found: Explanation, ax: Any = None, legend: bool = True) -> Any:
    """A scene in the plane: points coloured by detection, outlines where the poses put the parts.

    Points that belong to nothing are hollow and grey. In a model of few objects, each has a colour
    of its own, the same in every scene; in one of many, the detections of a scene do.
    """
    in_plane(found.model)
    points = found.scene.parts[:, :2]
    few = len(found.model.copies) <= len(PALETTE)
    ax = axes(ax)
    number = [d.instance if few else i for i, d in enumerate(found.objects)]
    named = [f"{d.name} ({d.probability:.2f})" for d in found.objects]
    plot_answer(
        points,
        np.append(number, -1).astype(int)[found.labels],
        {k: d.predicted[:, :2] for k, d in zip(number, found.objects, strict=True)},
        ax,
        {**dict(zip(number, named, strict=True)), -1: "belongs to nothing" if named else "points"},
    )
    if legend and len(points):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=3, frameon=False)
    return ax
