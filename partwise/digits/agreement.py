"""Do parts turn with the picture? One number, which the paper lacks.

Every pixel of a digit is labelled by its part; the picture is turned and labelled anew; the new
labels are turned back, and compared with the old ones over the digit's pixels. Labels agree by
chance, too, so the number is Cohen's kappa: 1 for parts that turn with the picture, 0 for labels
that have nothing to do with each other.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from partwise._types import Array
from partwise.digits.turning import on_canvas

__all__ = ["INK", "agreement", "kappa", "turned"]

INK = 0.5
"""Pixels of the upright picture that are darker are the digit's."""


def turned(shares: Float[Array, "K S S"], angle: Float[Array, ""]) -> Float[Array, "K S S"]:
    """Maps of parts, turned by ``angle`` radians (clockwise), bilinear."""
    turn = partial(on_canvas, angle=angle, shift=jnp.zeros(2), side=shares.shape[-1])
    return jax.vmap(turn)(shares)


def kappa(
    one: Int[Array, " p"], other: Int[Array, " p"], where: Bool[Array, " p"], labels: int
) -> Float[Array, ""]:
    """Cohen's kappa of two labellings over the pixels ``where``; NaN if all have one label."""
    weight = where / where.sum()
    a, b = jax.nn.one_hot(one, labels), jax.nn.one_hot(other, labels)
    observed = (weight * (one == other)).sum()
    expected = ((weight @ a) * (weight @ b)).sum()
    return (observed - expected) / (1 - expected)


@jax.jit
def agreement(
    upright: Float[Array, "K S S"],
    found: Float[Array, "K S S"],
    angle: Float[Array, ""],
    picture: Float[Array, "S S"],
) -> Float[Array, ""]:
    """The number, for one picture and one angle.

    ``upright`` are the shares of the parts in every pixel of ``picture``, ``found`` those in the
    picture turned by ``angle``; a pixel's label is the part with the largest.
    """
    back = turned(found, -angle)
    where = (picture > INK).ravel()
    one, other = (jnp.argmax(s, 0).ravel() for s in (upright, back))
    return kappa(one, other, where, len(upright))
