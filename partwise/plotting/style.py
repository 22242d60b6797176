"""What all pictures share: an object has one colour and marker in every one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from partwise._checks import InputError
from partwise.model import Model

__all__ = [
    "CLUTTER",
    "MARKERS",
    "PALETTE",
    "UNCLAIMED",
    "UNKNOWN",
    "axes",
    "colour",
    "in_plane",
    "marker",
    "outline",
]

Array = np.ndarray

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
"""Okabe and Ito: for colour-blind people too; objects also differ in marker."""

MARKERS = "osD^vPX"
CLUTTER = "#8A8A8A"
UNKNOWN = "#333333"
"""Of points of which nothing is known yet."""

UNCLAIMED = {
    "linestyle": "none",
    "marker": "o",
    "fillstyle": "none",
    "color": CLUTTER,
    "markersize": 7,
}
"""How ``ax.plot`` draws points that belong to nothing: hollow and grey."""


def axes(ax: Any = None, size: tuple[float, float] = (5.0, 5.0)) -> Any:
    """``ax``, or that of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size)[1]


def colour(index: int) -> str:
    """The colour of object ``index``; they come round again after seven."""
    return PALETTE[index % len(PALETTE)]


def marker(index: int) -> str:
    """The marker of object ``index``."""
    return MARKERS[index % len(MARKERS)]


def in_plane(model: Model) -> None:
    """One clear sentence if the scenes of ``model`` cannot be drawn."""
    if model.pose.scene_dim != 2:
        raise InputError("plot draws scenes in the plane; this one has three dimensions.")


def outline(positions: Float[Array, "N D"]) -> Float[Array, "N1 D"]:
    """The parts of one object as a closed line that does not cross itself: by angle."""
    z = positions[:, :2] - positions[:, :2].mean(0)
    around = positions[np.argsort(np.arctan2(z[:, 1], z[:, 0]), kind="stable")]
    return np.concatenate([around, around[:1]])
