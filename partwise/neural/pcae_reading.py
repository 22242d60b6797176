"""What PCAE makes of pictures: their reconstruction, and the part in every pixel."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from partwise._types import Array
from partwise.digits.agreement import agreement, turned
from partwise.digits.turning import on_canvas
from partwise.neural.pcae import CANVAS, Pcae

__all__ = ["Reading", "compare", "read"]


class Reading(NamedTuple):
    """One picture: its reconstruction, and how much each part has to do with each pixel.

    ``shares`` are the responsibilities; the last is the background's.
    """

    picture: Float[Array, "S S"]
    mean: Float[Array, "S S"]
    shares: Float[Array, "K1 S S"]

    @property
    def mse(self) -> Float[Array, ""]:
        """The mean squared error of the reconstruction."""
        return ((self.mean - self.picture) ** 2).mean()


def _read(model: Pcae, digit: Float[Array, "28 28"], angle: Float[Array, ""]) -> Reading:
    picture = on_canvas(digit, angle, jnp.zeros(2), CANVAS)
    rendered = model(picture)[1]
    shares = rendered.likelihood(picture)
    return Reading(picture, rendered.mean, shares / shares.sum(0))


@eqx.filter_jit
def read(model: Pcae, digit: Float[Array, "28 28"], angles: Float[Array, " n"]) -> Reading:
    """A digit in the middle of the canvas, turned by every angle (radians, clockwise)."""
    return jax.vmap(lambda angle: _read(model, digit, angle))(angles)


@eqx.filter_jit
def compare(
    model: Pcae, digit: Float[Array, "28 28"], angles: Float[Array, " n"]
) -> dict[str, Float[Array, " n"]]:
    """For every angle the error, the agreement with the upright digit, and the most it could be.

    The most: the upright labels turned, and turned back.
    """
    upright = _read(model, digit, jnp.zeros(()))

    def one(angle: Float[Array, ""]) -> dict[str, Float[Array, ""]]:
        found = _read(model, digit, angle)
        there = turned(upright.shares, angle)
        return {
            "mse": found.mse,
            "agreement": agreement(upright.shares, found.shares, angle, upright.picture),
            "ceiling": agreement(upright.shares, there, angle, upright.picture),
        }

    return jax.lax.map(one, angles)
