"""What lies in the field? Where the points end is known; where the chart ends has to be guessed.

The chart is a rectangle with sides along x and y, and holds all points. How far it goes on beyond
the last one, by a gap G, is weighed by how likely it is that nothing was seen there,

    p(G) ~ exp(-clutter * strip * G) * prod (1 - rho) over the stars in the strip,

each side on its own.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Complex, Float

from partwise.sky.scoring import Points

__all__ = ["gaps", "share_inside"]

Array = np.ndarray

SIDES = 4


def gaps(points: Points, z: Complex[Array, " n"]) -> Float[Array, "n 4"]:
    """How far places are beyond the points: left, right, below, above; 0 where they are not."""
    low, high = points.low, points.high
    beyond = [
        low.real - np.real(z),
        np.real(z) - high.real,
        low.imag - np.imag(z),
        np.imag(z) - high.imag,
    ]
    return np.maximum(np.stack(beyond, -1), 0.0)


def share_inside(
    points: Points,
    gap: Float[Array, "n 4"],
    unseen: Bool[Array, " n"],
    clutter: float,
    rho: float,
    wanted: Float[Array, "w 4"],
) -> Float[Array, " w"]:
    """The probability that the chart goes on for ``wanted`` gaps on its four sides.

    ``gap`` is how far stars are out, ``unseen`` which of them are on the chart for sure not to be
    seen; ``clutter`` is the number of points of no star per area, ``rho`` the share of stars seen.
    """
    size = points.high - points.low
    total = np.ones(len(wanted))
    for side in range(SIDES):
        strip = size.imag if side < 2 else size.real
        others = np.delete(gap, side, axis=1).max(1) <= 0
        stars = np.sort(gap[unseen & others & (gap[:, side] > 0), side])
        total *= _survival(stars, clutter * strip, max(1 - rho, 0.02), wanted[:, side])
    return total


def _survival(
    stars: Float[Array, " s"], rate: float, hidden: float, wanted: Float[Array, " w"]
) -> Float[Array, " w"]:
    """P(G >= wanted): between two stars the density falls as exp(-rate G), at a star by hidden."""
    starts = np.concatenate([[0.0], stars])
    ends = np.concatenate([stars, [np.inf]])
    level = hidden ** np.arange(len(starts))

    def beyond(g: Array) -> Array:
        low = np.maximum(starts, g[:, None])
        part = np.exp(-rate * low) - np.exp(-rate * np.maximum(ends, low))
        return (level * part).sum(1)

    return beyond(wanted) / beyond(np.zeros(1))
