"""Pictures coloured by part, and part sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.colors import to_rgb

from partwise.plotting.style import CLUTTER, PALETTE, colour

__all__ = ["by_part", "draw_picture", "most_used", "part_colours"]

Array = np.ndarray


def most_used(labels: Int[Array, "n S S"], ink: Float[Array, "n S S"], parts: int) -> Array:
    """The parts in order of how much ink they have."""
    return np.argsort(-np.bincount(labels.ravel(), ink.ravel(), parts)[:parts], kind="stable")


def part_colours(order: Sequence[int] | Array, count: int) -> Float[Array, "count 3"]:
    """One colour for each of ``count`` labels: those first in ``order`` have the palette's."""
    out = np.tile(np.array(to_rgb(CLUTTER)), (count, 1))
    for rank, part in enumerate(order[: len(PALETTE)]):
        out[part] = to_rgb(colour(rank))
    return out


def by_part(
    labels: Int[Array, "S S"], grey: Float[Array, "S S"], colours: Float[Array, "c 3"]
) -> Float[Array, "S S 3"]:
    """A picture, ink on white, in the colours of its parts."""
    ink = np.clip(grey, 0.0, 1.0)[..., None]
    return 1 - ink * (1 - colours[labels])


def draw_picture(ax: Any, picture: Array, edge: Any = None) -> None:
    """A picture without ticks; grey ones are ink on white. ``edge`` is the colour of a frame."""
    ax.imshow(picture, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_color("0.85" if edge is None else edge)
        side.set_linewidth(2.5 if edge is not None else 0.8)
