"""Charts of an unknown piece of sky, simulated; the truth goes with them, for scoring only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import InputError
from partwise.plane import from_complex, to_complex
from partwise.sky.catalogue import catalogue
from partwise.sky.projection import Camera, axes_at

__all__ = ["Chart", "simulate"]

Array = np.ndarray

FIELDS = (40.0, 80.0)
"""Widths of a chart, in degrees, where none is given."""

UNITS = (0.1, 1000.0)
"""Widths of a chart in its own unit: it may be pixels, or anything."""


@dataclass(frozen=True, eq=False)
class Chart:
    """Points, and what they are.

    ``star[m]`` is the star of the catalogue that point m is, -1 for none. ``inside`` says which
    stars lie in the field, hidden or not; ``width`` is the side of the square chart.
    """

    points: Float[Array, "m 2"]
    star: Int[Array, " m"]
    inside: Bool[Array, " n"]
    camera: Camera
    width: float
    noise: float

    @property
    def field(self) -> float:
        """The full width in degrees."""
        return self.camera.field(self.width)

    def whole(self) -> list[str]:
        """Constellations (abbreviations) that lie wholly in the field."""
        return [f.abbreviation for f in catalogue().figures if self.inside[f.stars].all()]

    def partial(self) -> list[str]:
        """Those of which only a part does."""
        part = [f for f in catalogue().figures if self.inside[f.stars].any()]
        return [f.abbreviation for f in part if not self.inside[f.stars].all()]


def simulate(
    seed: int = 0,
    *,
    field: float | None = None,
    noise: float = 0.002,
    hidden: float = 0.2,
    spurious: float = 0.2,
    mirrored: bool = False,
) -> Chart:
    """A square chart of a random piece of sky.

    The pointing is uniform on the sphere, and the roll on the circle; the full width ``field``, in
    degrees, is uniform from 40 to 80 unless given. The projection is gnomonic about the middle of
    the chart; the origin and the unit of its coordinates are random. Positions get Gaussian noise,
    a fraction ``noise`` of the width. Every star of a figure is hidden with probability ``hidden``;
    of the points that are drawn, a share of ``spurious`` is of no star, and lies anywhere.

    >>> chart = simulate(seed=1, field=60)
    >>> len(chart.points), round(chart.field)
    (39, 60)
    """
    _check(seed, field, noise, hidden, spurious)
    rng = np.random.default_rng(seed)
    angle = np.radians(rng.uniform(*FIELDS) if field is None else field)
    axes = axes_at(rng.uniform(0, 360), np.degrees(np.arcsin(rng.uniform(-1, 1))), 0.0)
    turn = np.exp(2j * np.pi * rng.uniform())
    roll = np.array([[turn.real, -turn.imag, 0], [turn.imag, turn.real, 0], [0, 0, 1.0]])
    width = float(np.exp(rng.uniform(*np.log(UNITS))))
    middle = width * complex(*rng.uniform(-2, 2, 2))
    focal = width / 2 / np.tan(angle / 2)
    camera = Camera(roll @ axes, float(focal), middle, mirrored)
    places, ahead = camera.project(catalogue().vectors)
    away = places - middle
    inside = ahead & (np.maximum(np.abs(np.real(away)), np.abs(np.imag(away))) <= width / 2)
    shown = np.flatnonzero(inside & (rng.uniform(size=len(inside)) >= hidden))
    extra = round(len(shown) * spurious / (1 - spurious))
    stray = middle + width * to_complex(rng.uniform(-0.5, 0.5, (extra, 2)))
    z = np.concatenate([places[shown], stray])
    points = from_complex(z)
    points[: len(shown)] += noise * width * rng.normal(size=(len(shown), 2))
    order = rng.permutation(len(points))
    star = np.concatenate([shown, np.full(extra, -1)])[order]
    return Chart(points[order], star, inside, camera, width, noise)


def _check(seed: int, field: float | None, noise: float, hidden: float, spurious: float) -> None:
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed must be a whole number >= 0; got {seed!r}.")
    if field is not None and not 1 <= field <= 120:
        raise InputError(f"field must be a width of 1 to 120 degrees; got {field!r}.")
    if not 0 <= noise < 0.5:
        raise InputError(f"noise must be a fraction of the width, from 0 to 0.5; got {noise!r}.")
    for name, share in (("hidden", hidden), ("spurious", spurious)):
        if not 0 <= share < 1:
            raise InputError(f"{name} must be a share, from 0 to below 1; got {share!r}.")
