"""The 88 constellations: where their stars are, and the lines between them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from jaxtyping import Float, Int

__all__ = ["Catalogue", "Figure", "Star", "catalogue", "direction"]

Array = np.ndarray


@dataclass(frozen=True)
class Star:
    """A star that a figure runs through; angles in degrees, J2000."""

    hip: int
    right_ascension: float
    declination: float
    magnitude: float
    designation: str
    name: str

    @property
    def label(self) -> str:
        """What people call it: a proper name, a designation, or its Hipparcos number."""
        return self.name or self.designation or f"HIP {self.hip}"


@dataclass(frozen=True, eq=False)
class Figure:
    """A constellation: which stars of the catalogue, and the pairs that a line joins."""

    abbreviation: str
    name: str
    stars: Int[Array, " n"]
    lines: Int[Array, "l 2"]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """All stars, as unit vectors too, and all figures, in alphabetical order."""

    stars: tuple[Star, ...]
    vectors: Float[Array, "n 3"]
    figures: tuple[Figure, ...]

    def star(self, label: str) -> int:
        """The index of a star by its name, designation or ``HIP`` number."""
        for index, star in enumerate(self.stars):
            if label in (star.name, star.designation, f"HIP {star.hip}"):
                return index
        raise KeyError(label)

    def figure(self, name: str) -> Figure:
        """A constellation by its name or abbreviation."""
        for figure in self.figures:
            if name in (figure.name, figure.abbreviation):
                return figure
        raise KeyError(name)


def direction(right_ascension: Array | float, declination: Array | float) -> Float[Array, "*b 3"]:
    """Unit vectors, from degrees: x to the vernal equinox, z to the north pole."""
    ra, dec = np.radians(right_ascension), np.radians(declination)
    return np.stack([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)], -1)


@cache
def catalogue() -> Catalogue:
    """The catalogue that comes with the package (``data/README.md`` says from where)."""
    stars = tuple(
        Star(int(hip), float(ra), float(dec), float(magnitude), designation, name)
        for hip, ra, dec, magnitude, designation, name in _rows("stars")
    )
    index = {star.hip: k for k, star in enumerate(stars)}
    lines: dict[str, list[tuple[int, int]]] = {}
    for short, a, b in _rows("lines"):
        lines.setdefault(short, []).append((index[int(a)], index[int(b)]))
    figures = tuple(
        Figure(short, name, np.unique(lines[short]), np.array(lines[short]))
        for short, name in _rows("constellations")
    )
    angles = np.array([(s.right_ascension, s.declination) for s in stars])
    return Catalogue(stars, direction(angles[:, 0], angles[:, 1]), figures)


def _rows(name: str) -> Iterator[list[str]]:
    """The rows of a data file, without its header."""
    text = files("partwise.sky").joinpath("data", f"{name}.csv").read_text("utf-8")
    rows = csv.reader(text.splitlines())
    next(rows)
    return rows
