"""Many cameras at once: how well does each put the chart's points on stars? A picture to look up.

The sky is kept as the six faces of a cube, in cells that hold exp(-d^2 / 2 b^2), d the angle to the
nearest star and b a blur that forgives what a camera from three points gets wrong. The log
likelihood ratio of a camera is about

    sum_m log(1 - rho + rho N(d_m; 0, b^2) / lambda),

lambda the density of points on the sphere that this camera implies: one that squeezes the chart
into a small piece of sky finds stars nearby, and is not rewarded for it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex, Float, Int

from partwise.sky.projection import rays
from partwise.sky.triangles import Cameras

__all__ = ["SkyPicture"]

Array = np.ndarray

CELLS = 400
"""Along the edge of a face: cells of about a quarter of a degree."""

RHO = 0.6
BATCH = 1 << 19
"""Lookups at a time."""


class SkyPicture:
    """The sky around ``vectors``, blurred by so many degrees."""

    def __init__(self, vectors: Float[Array, "n 3"], blur: float) -> None:
        self.blur = np.radians(blur)
        cells = np.zeros(6 * CELLS * CELLS, np.float32)
        # Around every star a disc of directions, denser than the cells are.
        reach = int(np.ceil(2.6 * self.blur / (1.2 / CELLS)))
        step = np.arange(-reach, reach + 1) * 2.6 * self.blur / reach
        right, up = (v.ravel() for v in np.meshgrid(step, step))
        near = right**2 + up**2 <= (2.6 * self.blur) ** 2
        right, up = right[near], up[near]
        value = np.exp(-(right**2 + up**2) / (2 * self.blur**2)).astype(np.float32)
        helper = np.where(np.abs(vectors[:, 2:]) < 0.7, [[0, 0, 1.0]], [[1.0, 0, 0]])
        e = np.cross(helper, vectors)
        e /= np.linalg.norm(e, axis=1, keepdims=True)
        n = np.cross(vectors, e)
        around = vectors[:, None] + right[:, None] * e[:, None] + up[:, None] * n[:, None]
        np.maximum.at(
            cells, _cell(around).ravel(), np.broadcast_to(value, around.shape[:2]).ravel()
        )
        self.cells = cells

    def score(self, cameras: Cameras, z: Complex[Array, " m"], area: float) -> Float[Array, " h"]:
        """The log likelihood ratio of every camera for points ``z`` in a window of ``area``."""
        out = np.empty(len(cameras), np.float32)
        batch = max(BATCH // len(z), 1)
        for start in range(0, len(out), batch):
            part = slice(start, start + batch)
            axes, focal = cameras.axes[part], cameras.focal[part]
            there = rays(z, focal[:, None]) @ axes
            solid = _solid_angle(area / focal**2)
            gain = RHO / (1 - RHO) * solid / (len(z) * 2 * np.pi * self.blur**2)
            found = self.cells[_cell(there)]
            out[part] = np.log1p(found * gain[:, None].astype(np.float32)).sum(1)
        return out + len(z) * np.float32(np.log1p(-RHO))


def _solid_angle(area: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """Of a square window of this area at unit distance."""
    half = area / 4
    return 4 * np.arcsin(half / (1 + half))


def _cell(v: Float[Array, "*b 3"]) -> Int[Array, "*b"]:
    """The cell of the cube that a direction passes through."""
    size = np.abs(v)
    axis = size.argmax(-1)
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    major = np.where(axis == 0, x, np.where(axis == 1, y, z))
    first = np.where(axis == 0, y, x)
    second = np.where(axis == 2, y, z)
    face = 2 * axis + (major < 0)
    length = np.abs(major)
    column, row = (
        np.clip(((p / length + 1) * (CELLS / 2)).astype(int), 0, CELLS - 1) for p in (first, second)
    )
    return (face * CELLS + row) * CELLS + column
