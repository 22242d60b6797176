"""Parts that turn with the picture: ends, junctions and corners of a digit's strokes.

The picture is enlarged (smoothly, so that its grid is forgotten), thinned to lines, and the lines
are read as a graph. A part has a position, a kind, and a direction with a size: an end points along
its stroke, outwards, as far as the stroke goes on inwards. Whatever is measured is a length or a
direction in the picture, so all of it turns with the picture, up to the grid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.ndimage import distance_transform_edt, gaussian_filter, label, zoom

from partwise._checks import InputError

__all__ = ["KINDS", "Strokes", "strokes"]

Array = np.ndarray

KINDS = ("corner", "end", "junction")

FINER = 4
"""Pixels of the enlarged picture for each of the picture's."""

BLUR = 0.8
"""Standard deviation, in pixels of the picture, of the blur before it is thinned."""

INK = 0.35
"""What is darker, of the darkest, is ink."""

SPUR = 1.5
"""Branches with a free end that are shorter than so many half widths of the stroke are its edge."""

BEND = np.deg2rad(50)
"""A line that turns by more has a corner."""


class Strokes(NamedTuple):
    """The parts of one picture, in pixels of it: x to the right, y down."""

    position: Float[Array, "n 2"]
    kind: tuple[str, ...]
    lines: list[Float[Array, "m 2"]]


def strokes(picture: Float[Array, "h w"]) -> Strokes:
    """The ends, junctions and corners of the strokes of a picture, ink 1 on paper 0."""
    from skimage.morphology import skeletonize

    big = gaussian_filter(zoom(picture, FINER, order=1, grid_mode=True, mode="grid-constant"), BLUR * FINER)
    ink = big > INK * big.max()
    labels, count = label(ink)
    if count > 1:
        sizes = np.bincount(labels.ravel())[1:]
        ink = np.isin(labels, 1 + np.flatnonzero(sizes >= 0.1 * sizes.max()))
    width = distance_transform_edt(ink)
    graph = Graph(skeletonize(ink), width)
    graph.prune()
    return graph.parts()
