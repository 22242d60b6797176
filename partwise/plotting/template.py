"""The parts of one template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise._checks import InputError
from partwise.plotting.style import axes, colour, outline

if TYPE_CHECKING:
    from partwise.templates import Template

__all__ = ["plot_template"]


def plot_template(template: Template, ax: Any = None, index: int = 0) -> Any:
    """The parts of a template in the plane, with their types or numbers, and their directions.

    ``index`` is the colour.
    """
    if template.positions.shape[1] != 2:
        raise InputError("plot draws templates in the plane; this one has three dimensions.")
    ax = axes(ax, (3.5, 3.5))
    p = template.positions
    ax.plot(*outline(p).T, color=colour(index), linewidth=1.2, alpha=0.7)
    ax.plot(*p.T, "o", color=colour(index), markersize=8)
    if template.is_directed:
        # phi is measured clockwise (eq. 2), so that its sine points down.
        arrow = template.parts[:, 2:] * np.array([1.0, -1.0])
        style = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.006}
        ax.quiver(*p.T, *arrow.T, color=colour(index), **style)
    names = template.types or [str(n) for n in range(len(p))]
    for name, position in zip(names, p, strict=True):
        ax.annotate(name, position, xytext=(6, 6), textcoords="offset points", fontsize=9)
    ax.set(aspect="equal", title=template.name)
    ax.margins(0.15)
    return ax
