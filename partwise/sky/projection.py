"""The camera: from directions in the sky to places on a chart, and back.

A chart is a gnomonic projection, as any picture through a simple lens: with c = A v a direction
in the camera's axes (right, up, back), x = f c_1 / -c_3 and y = f c_2 / -c_3, moved by the place
of the centre on the chart. Great circles become straight lines, and lengths grow as 1 / cos^2 of
the distance from the centre, so that a constellation near the edge is no similarity of itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Complex, Float

from partwise.sky.catalogue import direction

__all__ = ["Camera", "axes_at", "rays"]

Array = np.ndarray


def rays(z: Complex[Array, "*#b"], focal: Float[Array, "*#b"] | float) -> Float[Array, "*b 3"]:
    """Unit vectors in the camera's axes of places ``z`` relative to the centre."""
    z = z / focal
    length = np.sqrt(1 + np.abs(z) ** 2)
    return np.stack([np.real(z) / length, np.imag(z) / length, -1 / length], -1)


def axes_at(right_ascension: float, declination: float, roll: float) -> Float[Array, "3 3"]:
    """Axes (right, up, back) of a camera; celestial north is ``roll`` degrees left of its up.

    Seen from inside the celestial sphere: where north is up, east is on the left.
    """
    forward = direction(right_ascension, declination)
    ra = np.radians(right_ascension)
    east = np.array([-np.sin(ra), np.cos(ra), 0.0])
    north = np.cross(forward, east)
    c, s = np.cos(np.radians(roll)), np.sin(np.radians(roll))
    up = c * north - s * east
    return np.stack([np.cross(forward, up), up, -forward])


@dataclass(frozen=True, eq=False)
class Camera:
    """Where a chart looks, and how it is drawn: places on it are complex numbers x + i y.

    ``axes`` has the rows right, up, back; ``focal`` is the length of 45 degrees from the centre, in
    the unit of the chart. A mirrored chart has left and right exchanged, as pictures have whose
    y counts downwards, and globes seen from outside.
    """

    axes: Float[Array, "3 3"]
    focal: float
    centre: complex = 0j
    mirrored: bool = False

    def project(
        self, vectors: Float[Array, "n 3"]
    ) -> tuple[Complex[Array, " n"], Bool[Array, " n"]]:
        """Places on the chart, and which directions are in front of the camera at all."""
        c = vectors @ self.axes.T
        ahead = c[:, 2] < -0.05
        depth = np.where(ahead, -c[:, 2], 1.0)
        z = self.focal * (c[:, 0] + 1j * c[:, 1]) / depth
        return (-z.conj() if self.mirrored else z) + self.centre, ahead

    def directions(self, z: Complex[Array, " n"]) -> Float[Array, "n 3"]:
        """The inverse of :meth:`project`."""
        z = z - self.centre
        return rays(-z.conj() if self.mirrored else z, self.focal) @ self.axes

    @property
    def right_ascension(self) -> float:
        """Of the centre, in degrees from 0 to 360."""
        x, y, _ = -self.axes[2]
        return float(np.degrees(np.arctan2(y, x)) % 360)

    @property
    def declination(self) -> float:
        """Of the centre, in degrees."""
        return float(np.degrees(np.arcsin(np.clip(-self.axes[2, 2], -1, 1))))

    @property
    def roll(self) -> float:
        """How far celestial north is to the left of the chart's up, in degrees.

        To the right in a mirrored chart.
        """
        return float(np.degrees(np.arctan2(-self.axes[0, 2], self.axes[1, 2])))

    def field(self, width: float) -> float:
        """The angle across a length of ``width`` on the chart, around the centre, in degrees."""
        return float(2 * np.degrees(np.arctan(width / 2 / self.focal)))

    def flipped(self) -> Camera:
        """The same camera for a chart whose x counts the other way."""
        return replace(self, centre=-np.conj(self.centre), mirrored=not self.mirrored)

    def within(self, centre: complex, unit: float) -> Camera:
        """The same camera for a chart that was normalised, (z - centre) / unit."""
        moved = centre + unit * self.centre
        return replace(self, focal=self.focal * unit, centre=complex(moved))
