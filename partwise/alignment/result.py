"""What ``align`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from partwise._checks import InputError, points_array

__all__ = ["Aligned"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Aligned:
    """Which points of two lists are the same, and the map that carries one list into the other.

    ``pairs[k]`` are the indices of a source point and of the target point that it is, and
    ``pair_probability[k]`` how likely that is, given the map. ``transform`` is a homogeneous
    matrix, source to target. ``probability`` is that of this map against all others that were
    found, and against the two lists having nothing to do with each other. ``noise`` is the
    estimated standard deviation of each coordinate, in the frame of the target.

    Where no map is more likely than not, ``pairs`` is empty and ``transform`` holds NaN, so that
    nothing that is computed with it looks like a result.
    """

    source: Float[Array, "n 2"]
    target: Float[Array, "m 2"]
    pairs: Int[Array, "p 2"]
    pair_probability: Float[Array, " p"]
    transform: Float[Array, "3 3"]
    probability: float
    noise: float

    @staticmethod
    def nothing(source: Array, target: Array, probability: float = 0.0) -> Aligned:
        """The answer that the lists have nothing to do with each other."""
        none = np.zeros((0, 2), int)
        nan = np.full((3, 3), np.nan)
        return Aligned(source, target, none, np.zeros(0), nan, probability, np.nan)

    @property
    def found(self) -> bool:
        """Whether there is a map."""
        return bool(np.isfinite(self.transform[0, 0]))

    @property
    def scale(self) -> float:
        """The factor by which lengths grow (the root of that of areas)."""
        return float(np.sqrt(np.linalg.det(self.transform[:2, :2])))

    @property
    def angle(self) -> float:
        """The turn, in radians, counter-clockwise."""
        (p, q), (r, s) = self.transform[:2, :2]
        return float(np.arctan2(r - q, p + s))

    def apply(self, points: Any) -> Float[Array, "n 2"]:
        """``points`` of the source's frame in that of the target."""
        if not self.found:
            raise InputError("apply: no common map was found; look at found first.")
        points = points_array("points", points, (2,))
        return points @ self.transform[:2, :2].T + self.transform[:2, 2]

    def plot(self, ax: Any = None) -> Any:
        """Both lists in the target's frame. See :func:`partwise.plotting.plot_aligned`."""
        from partwise.plotting import plot_aligned

        return plot_aligned(self, ax)

    def __repr__(self) -> str:
        if not self.found:
            return f"Aligned(nothing in common, probability {self.probability:.3g})"
        return (
            f"Aligned({len(self.pairs)} pairs of {len(self.source)} and {len(self.target)} points, "
            f"scale {self.scale:.4g}, angle {self.angle:.4g}, probability {self.probability:.3g})"
        )
