"""Pictures on a larger canvas, turned about its middle and moved."""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.ndimage import map_coordinates
from jaxtyping import Float

from partwise._types import Array

__all__ = ["on_canvas"]


def on_canvas(
    picture: Float[Array, "s s"],
    angle: Float[Array, ""],
    shift: Float[Array, "2"],
    side: int,
) -> Float[Array, "S S"]:
    """The picture, its middle ``shift`` = (x, y) pixels off that of a canvas of ``side`` pixels.

    It is turned by ``angle`` radians, clockwise as seen (y is down), bilinear, 0 around it.
    """
    at = jnp.arange(side) - (side - 1) / 2
    x, y = at[None, :] - shift[0], at[:, None] - shift[1]
    c, s = jnp.cos(angle), jnp.sin(angle)
    half = (picture.shape[0] - 1) / 2
    rows, columns = c * y - s * x + half, c * x + s * y + half
    return map_coordinates(picture, [rows, columns], order=1, mode="constant")
