"""The canvas of the faces (sec. 7.2): 224 x 224 pixels, and the frame that poses are in.

The canvas is [-1, 1] x [-1, 1] with y upwards, so that a face as it is on its own canvas has the
pose (0, 0, 1, 0), which is the mean of the prior.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Real, Shaped

__all__ = ["BACKGROUND", "PARTS", "SIZE", "pixels_at", "points_of", "to_frame"]

SIZE = 224
BACKGROUND = 100 / 255
"""The grey level of the scene where there is no face."""

PARTS = ("eyes", "nose", "mouth", "jaw", "hair")
"""The part types; "hair" is hair and forehead."""

Array = np.ndarray


def to_frame(pixels: Real[Array, "*b 2"]) -> Float[Array, "*b 2"]:
    """Columns and rows of pixels, at their middles, as (x, y) in the frame."""
    half = SIZE / 2
    return (np.asarray(pixels, float) + 0.5 - half) / half * np.array([1.0, -1.0])


def pixels_at(points: Real[Array, "*b 2"]) -> Float[Array, "*b 2"]:
    """The inverse of :func:`to_frame`."""
    half = SIZE / 2
    return np.asarray(points, float) * np.array([1.0, -1.0]) * half + half - 0.5


def points_of(area: Shaped[Array, "H W"]) -> Float[Array, "n 2"]:
    """Where the pixels of an area (those that are not 0) are in the frame."""
    rows, columns = np.nonzero(area)
    return to_frame(np.stack([columns, rows], 1))
