"""What ``find`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Complex, Float, Int

from partwise._checks import InputError
from partwise.plane import to_complex
from partwise.sky.catalogue import Figure, Star, catalogue
from partwise.sky.projection import Camera

__all__ = ["Constellation", "Found"]

Array = np.ndarray

NOTHING = "No constellations: these points are not a chart of the sky that could be recognised."


@dataclass(frozen=True, eq=False)
class Constellation:
    """A constellation on the chart.

    ``probability`` is that it is on the chart at all, wholly or in part, and ``whole`` that all of
    its stars are in the field. ``rows[k]`` is the row of the point that is star ``figure.stars[k]``
    of the catalogue, -1 where it is hidden or outside.
    """

    figure: Figure
    probability: float
    whole: float
    rows: Int[Array, " n"]

    @property
    def name(self) -> str:
        """Its Latin name."""
        return self.figure.name

    @property
    def is_whole(self) -> bool:
        """Whether it is more likely than not that it lies wholly in the field."""
        return self.whole > 0.5


@dataclass(frozen=True, eq=False)
class Found:
    """Which points are which stars, which constellations are on the chart, and where it looks.

    ``stars[m]`` is the star of the catalogue that point m is, -1 for none, and
    ``star_probability[m]`` how likely that is. ``probability`` is that of this camera against all
    others that were found, and against points that are no chart of the sky. ``noise`` is the
    estimated standard deviation of each coordinate, in the chart's unit, and ``inside`` the
    probability of every star of the catalogue that it lies in the field.

    Where no camera is more likely than not, ``camera`` is None and there are no constellations.
    """

    points: Float[Array, "m 2"]
    probability: float
    camera: Camera | None
    stars: Int[Array, " m"]
    star_probability: Float[Array, " m"]
    constellations: tuple[Constellation, ...]
    inside: Float[Array, " n"]
    noise: float

    @staticmethod
    def nothing(points: Float[Array, "m 2"], probability: float = 0.0) -> Found:
        """The answer that this is no chart of the sky."""
        none = np.full(len(points), -1)
        inside = np.zeros(len(catalogue().stars))
        return Found(
            points, probability, None, none, np.zeros(len(points)), (), inside, float("nan")
        )

    @property
    def found(self) -> bool:
        """Whether there is an answer."""
        return self.camera is not None

    @property
    def width(self) -> float:
        """The longer side of the rectangle that holds the points."""
        return float(np.ptp(self.points, axis=0).max())

    @property
    def field(self) -> float:
        """The angle across :attr:`width`, in degrees."""
        return self._camera.field(self.width)

    @property
    def mirrored(self) -> bool:
        """Whether left and right are exchanged, as where y counts downwards."""
        return self._camera.mirrored

    @property
    def pointing(self) -> tuple[float, float]:
        """Right ascension and declination of the middle of the chart, in degrees."""
        return _angles(self._camera.directions(self._middle)[0])

    @property
    def roll(self) -> float:
        """How far celestial north is to the left of the chart's up (to the right if mirrored)."""
        here = self._camera.directions(self._middle)[0]
        north = np.array([0, 0, 1.0]) - here[2] * here
        ahead = here + 1e-4 * north / max(float(np.linalg.norm(north)), 1e-12)
        step = self._camera.project(ahead[None])[0][0] - self._middle[0]
        turn = float(np.degrees(np.angle(step / 1j)))
        return -turn if self.mirrored else turn

    def star(self, row: int) -> Star | None:
        """The star that a point is."""
        return catalogue().stars[self.stars[row]] if self.stars[row] >= 0 else None

    @property
    def hidden(self) -> Bool[Array, " n"]:
        """Which stars of the catalogue are in the field, more likely than not, but not seen."""
        seen = np.zeros(len(self.inside), bool)
        seen[self.stars[self.stars >= 0]] = True
        return (self.inside > 0.5) & ~seen

    def plot(self, ax: Any = None) -> Any:
        """The chart with its constellations. See :func:`partwise.plotting.plot_sky`."""
        from partwise.plotting import plot_sky

        return plot_sky(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as what JSON can hold."""
        out: dict[str, Any] = {"found": self.found, "probability": self.probability}
        if not self.found:
            return {**out, "constellations": [], "stars": []}
        ra, dec = self.pointing
        sky = catalogue()
        return {
            **out,
            "right_ascension": ra,
            "declination": dec,
            "roll": self.roll,
            "field": self.field,
            "unit_per_radian": self._camera.focal,
            "mirrored": self.mirrored,
            "noise": self.noise,
            "constellations": [
                {
                    "name": c.name,
                    "abbreviation": c.figure.abbreviation,
                    "probability": c.probability,
                    "whole": c.whole,
                    "stars": {
                        sky.stars[star].label: row
                        for star, row in zip(c.figure.stars.tolist(), c.rows.tolist(), strict=True)
                        if row >= 0
                    },
                }
                for c in self.constellations
            ],
            "stars": [
                {
                    "row": row,
                    "hip": sky.stars[star].hip,
                    "name": sky.stars[star].label,
                    "probability": float(self.star_probability[row]),
                }
                for row, star in enumerate(self.stars.tolist())
                if star >= 0
            ],
        }

    def __repr__(self) -> str:
        if not self.found:
            return f"Found(nothing, probability {self.probability:.3g})"
        whole = sum(c.is_whole for c in self.constellations)
        return (
            f"Found({whole} whole constellations and {len(self.constellations) - whole} in part, "
            f"{(self.stars >= 0).sum()} of {len(self.points)} points are stars, "
            f"probability {self.probability:.3g})"
        )

    @property
    def _camera(self) -> Camera:
        if self.camera is None:
            raise InputError(f"{NOTHING[:-1]}; look at found first.")
        return self.camera

    @property
    def _middle(self) -> Complex[Array, "1"]:
        return to_complex((self.points.min(0) + self.points.max(0))[None] / 2)


def _angles(v: Float[Array, "3"]) -> tuple[float, float]:
    """Right ascension and declination in degrees."""
    ra = np.degrees(np.arctan2(v[1], v[0])) % 360
    return float(ra), float(np.degrees(np.arcsin(np.clip(v[2], -1, 1))))
