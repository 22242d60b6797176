"""Maps of the plane as complex numbers: y = a x + c conj(x) + b.

With c = 0 this is a similarity (a turns and scales, b moves); any affine map of the plane can be
written so, and |c| < |a| says that it does not reflect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float

__all__ = ["Frame", "Map"]

Array = np.ndarray

WEISZFELD = 30
"""Steps towards the geometric median; it need not be precise, only the same for the same points."""


@dataclass(frozen=True)
class Map:
    """y = a x + c conj(x) + b."""

    a: complex
    b: complex
    c: complex = 0.0

    def __call__(self, x: Complex[Array, " n"]) -> Complex[Array, " n"]:
        """The image of ``x``."""
        if self.c == 0:
            return self.a * x + self.b
        return self.a * x + self.c * x.conj() + self.b

    @property
    def scale(self) -> float:
        """The root of the factor by which areas grow; 0 for a map that reflects."""
        return float(np.sqrt(max(abs(self.a) ** 2 - abs(self.c) ** 2, 0.0)))

    @property
    def shear(self) -> complex:
        """mu = c / a: the map is a similarity of x + mu conj(x)."""
        return self.c / self.a

    def matrix(self) -> Float[Array, "3 3"]:
        """The homogeneous matrix."""
        p, q = self.a + self.c, 1j * (self.a - self.c)  # images of 1 and i
        return np.array(
            [[p.real, q.real, self.b.real], [p.imag, q.imag, self.b.imag], [0.0, 0.0, 1.0]]
        )

    @staticmethod
    def fit(
        x: Complex[Array, " n"],
        y: Complex[Array, " n"],
        weights: Float[Array, " n"],
        affine: bool = False,
        shear: complex = 0.0,
    ) -> Map | None:
        """Weighted least squares; None where the points do not determine a map.

        A similarity of the plane sheared by ``shear``, or any affine map.
        """
        total = weights.sum()
        if not total > 0:
            return None
        mx, my = weights @ x / total, weights @ y / total
        u, v = x - mx, y - my
        if shear and not affine:
            u = u + shear * u.conj()
        spread = float(weights @ np.abs(u) ** 2)
        if not spread > 1e-20 * total:
            return None
        a = (weights * u.conj()) @ v / spread
        c = shear * a
        if affine:
            # Normal equations of v = a u + c u*: S a + R* c = sum u* v, R a + S c = sum u v.
            r = complex((weights * u) @ u)
            det = spread**2 - abs(r) ** 2
            if det > 1e-6 * spread**2:
                p, q = (weights * u.conj()) @ v, (weights * u) @ v
                a, c = (spread * p - r.conjugate() * q) / det, (spread * q - r * p) / det
        a, c = complex(a), complex(c)
        return Map(a, complex(my - a * mx - c * np.conj(mx)), c)


@dataclass(frozen=True)
class Frame:
    """The frame in which a list is worked on: its centre, and its extent as the unit."""

    centre: complex
    unit: float

    @staticmethod
    def of(z: Complex[Array, " n"]) -> Frame:
        """The geometric median, and the median distance from it: stray points change neither."""
        start = z.mean()
        near, spread = z - start, np.abs(z - start).max()  # values near 1e6 are rounded
        middle = near.mean()
        for _ in range(WEISZFELD):
            weights = 1 / np.maximum(np.abs(near - middle), 1e-9 * spread + 1e-300)
            middle = weights @ near / weights.sum()
        centre = complex(start + middle)
        away = np.abs(z - centre)
        rounding = 1e-13 * np.abs(z).max()
        unit = float(np.median(away))
        if unit <= rounding:
            unit = float(away.max())
        return Frame(centre, unit if unit > rounding else 0.0)

    def normalise(self, z: Complex[Array, " n"]) -> Complex[Array, " n"]:
        """``z`` in this frame."""
        return (z - self.centre) / self.unit


def outside(map_: Map, source: Frame, target: Frame) -> Map:
    """The map between two normalised lists as one between the lists that were given."""
    ratio = target.unit / source.unit
    a, c = map_.a * ratio, map_.c * ratio
    b = target.centre + target.unit * map_.b - a * source.centre - c * np.conj(source.centre)
    return Map(a, complex(b), c)
