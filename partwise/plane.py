"""Points of the plane as complex numbers, and back."""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex, Float

__all__ = ["from_complex", "normal", "radius", "to_complex"]

Array = np.ndarray


def to_complex(points: Float[Array, "*b g"]) -> Complex[Array, "*b"]:
    """x + i y, of the first two numbers of each."""
    return points[..., 0] + 1j * points[..., 1]


def from_complex(z: Complex[Array, "*b"]) -> Float[Array, "*b 2"]:
    """The inverse of :func:`to_complex`."""
    return np.stack([np.real(z), np.imag(z)], -1)


def radius(z: Complex[Array, " N"]) -> float:
    """Root mean square distance from the centre."""
    return float(np.sqrt((np.abs(z - z.mean()) ** 2).mean()))


def normal(z: Complex[Array, " N"]) -> Complex[Array, " N"]:
    """Centred, and scaled so that sum |z_n|^2 = N (App. B)."""
    return (z - z.mean()) / radius(z)
