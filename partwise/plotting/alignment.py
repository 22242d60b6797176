"""Two lists of points that were aligned, in the frame of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partwise.plotting.style import CLUTTER, PALETTE, axes

if TYPE_CHECKING:
    from partwise.alignment import Aligned

__all__ = ["plot_aligned"]


def plot_aligned(found: Aligned, ax: Any = None) -> Any:
    """The target's points, and the source's carried over: rings around those that are the same.

    Without a common map only the target is drawn: there is no frame to show the source in.
    """
    ax = axes(ax)
    target = found.target
    ax.plot(*target.T, ".", color=CLUTTER, markersize=4, label=f"target ({len(target)})")
    if found.found:
        moved = found.apply(found.source)
        label = f"source, carried over ({len(moved)})"
        ax.plot(*moved.T, "+", color=PALETTE[1], markersize=5, markeredgewidth=0.8, label=label)
        same = target[found.pairs[:, 1]]
        ring = {"markerfacecolor": "none", "color": PALETTE[0], "markersize": 8}
        ax.plot(*same.T, "o", label=f"the same ({len(same)})", **ring)
    ax.set_aspect("equal")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=3, frameon=False)
    return ax
