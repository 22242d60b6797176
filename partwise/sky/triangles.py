"""Where a chart might look: triangles of its points, looked up among triangles of stars.

If the focal length were known, the angles between points would be known, too, and three points
could be looked up among all triples of stars by their three mutual angles. It is not; but the shape
of a triangle on the sphere hardly depends on it, so for a few focal lengths every triangle is
looked up by its shape, closely, and its size, roughly. Every match proposes a camera: two of the
star pairs fix it, the focal length included.

No constellation needs to be whole, or in one piece: any three stars that are neither hidden nor
far apart will do, so that every chart has hundreds of chances.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy.spatial import KDTree

from partwise.sky.projection import rays

__all__ = ["Cameras", "TriangleIndex"]

Array = np.ndarray

SIDES = (8.0, 27.0)
"""Degrees of the longest side: small ones are noisy, large ones are many."""

FLAT = 0.25
"""Lower triangles, in units of their longest side, are left out: noise turns them over."""

OTHER_HAND = 10.0
"""How far apart in the index the two orientations are."""


@dataclass(frozen=True)
class Cameras:
    """Cameras that might be, for a chart whose centre is the origin."""

    axes: Float[Array, "h 3 3"]
    focal: Float[Array, " h"]

    def __len__(self) -> int:
        return len(self.focal)

    def __getitem__(self, which: Array) -> Cameras:
        return Cameras(self.axes[which], self.focal[which])

    @staticmethod
    def joined(parts: list[Cameras]) -> Cameras:
        """All of them."""
        return Cameras(
            np.concatenate([np.zeros((0, 3, 3)), *(p.axes for p in parts)]),
            np.concatenate([np.zeros(0), *(p.focal for p in parts)]),
        )


@dataclass(frozen=True)
class _Triangles:
    """Corners a, b, c: a b is the longest side, a c the shortest; and the three angles."""

    corners: Int[Array, "t 3"]
    longest: Float[Array, " t"]
    shortest: Float[Array, " t"]
    other: Float[Array, " t"]
    hand: Float[Array, " t"]

    def features(self, ratio: float) -> Float[Array, "t 4"]:
        """Shape, the logarithm of the size by ``ratio``, and the orientation."""
        return np.stack(
            [
                self.shortest / self.longest,
                self.other / self.longest,
                np.log(self.longest) * ratio,
                self.hand * OTHER_HAND,
            ],
            -1,
        )


def _triangles(vectors: Float[Array, "n 3"], corners: Int[Array, "t 3"]) -> _Triangles:
    """Corners in order, and only triangles of a useful size that are not flat."""
    sides = np.stack([_angle(vectors, corners[:, i], corners[:, j]) for i, j in _OPPOSITE], -1)
    order = np.argsort(sides, axis=1)
    sides = np.take_along_axis(sides, order, 1)
    # Opposite to the shortest side, a c, is b; to the longest, a b, is c; to b c it is a.
    corners = np.take_along_axis(corners, order, 1)[:, [1, 0, 2]]
    low, high = np.radians(SIDES)
    short, other, longest = sides.T
    half = sides.sum(1) / 2
    area = np.sqrt(np.maximum(half * (half - short) * (half - other) * (half - longest), 0))
    keep = (longest >= low) & (longest <= high) & (2 * area > FLAT * longest**2)
    corners = corners[keep]
    volume = np.linalg.det(vectors[corners])
    return _Triangles(corners, longest[keep], short[keep], other[keep], np.sign(volume))


_OPPOSITE = ((1, 2), (0, 2), (0, 1))


def _angle(vectors: Array, i: Array, j: Array) -> Array:
    """The angle between unit vectors, precise for small ones."""
    return 2 * np.arcsin(np.minimum(np.linalg.norm(vectors[i] - vectors[j], axis=-1) / 2, 1.0))


class TriangleIndex:
    """All triangles of a catalogue of stars, by shape and size."""

    def __init__(self, vectors: Float[Array, "n 3"]) -> None:
        self.vectors = vectors

    @cached_property
    def triangles(self) -> _Triangles:
        """Of all stars that are near each other."""
        reach = 2 * np.sin(np.radians(SIDES[1]) / 2)
        near = np.zeros((len(self.vectors),) * 2, bool)
        pairs = KDTree(self.vectors).query_pairs(reach, output_type="ndarray")
        near[pairs[:, 0], pairs[:, 1]] = True  # i < j
        i, j = pairs.T
        row, k = np.nonzero(near[i] & near[j])  # j < k, near both
        return _triangles(self.vectors, np.stack([i[row], j[row], k], -1))

    @cached_property
    def by_shape(self) -> dict[float, KDTree]:
        """Trees that were built, by the ratio of shape to size."""
        return {}

    def propose(
        self,
        z: Complex[Array, " m"],
        focal: float,
        step: float,
        tolerance: float,
        count: int,
        rng: np.random.Generator,
    ) -> Cameras:
        """Cameras of focal length about ``focal`` from ``count`` triangles of points ``z``.

        The focal length is right to about ``step`` (of its logarithm), shapes to ``tolerance``.
        """
        directions = rays(z, focal)
        some = _triangles(directions, _corners(len(z), 20 * count, rng))
        ratio = tolerance / step
        features = some.features(ratio)[:count]
        tree = self.by_shape.get(ratio)
        if tree is None:
            tree = self.by_shape[ratio] = KDTree(self.triangles.features(ratio))
        hits: Any = tree.query_ball_point(features, tolerance)
        own = np.repeat(np.arange(len(features)), [len(h) for h in hits])
        if len(own) == 0:
            return Cameras.joined([])
        found = np.concatenate([np.asarray(h, int) for h in hits])
        corners = some.corners[own]
        return self._cameras(z, corners, found, focal, step)

    def _cameras(
        self, z: Array, corners: Array, found: Array, focal: float, step: float
    ) -> Cameras:
        """From the longest sides: two pairs of a point and a star."""
        star_a, star_b, _ = self.vectors[self.triangles.corners[found]].swapaxes(0, 1)
        wanted = self.triangles.longest[found]
        a, b = z[corners[:, 0]], z[corners[:, 1]]
        log_focal = np.full(len(a), np.log(focal))

        def side(log_focal: Array) -> Array:
            u, v = (rays(p, np.exp(log_focal)) for p in (a, b))
            return 2 * np.arcsin(np.linalg.norm(u - v, axis=-1) / 2)

        for _ in range(2):  # secants; a radial side far out hardly depends on the focal length
            here = np.log(side(log_focal))
            slope = (np.log(side(log_focal + 0.01)) - here) / 0.01
            change = (np.log(wanted) - here) / np.minimum(slope, -0.2)
            log_focal = np.clip(
                log_focal + change, np.log(focal) - 1.5 * step, np.log(focal) + 1.5 * step
            )
        f = np.exp(log_focal)
        own, sky = _triad(rays(a, f), rays(b, f)), _triad(star_a, star_b)
        return Cameras(own.swapaxes(1, 2) @ sky, f)


def _triad(u: Float[Array, "h 3"], v: Float[Array, "h 3"]) -> Float[Array, "h 3 3"]:
    """Orthonormal rows fixed to two directions, symmetric in their errors."""
    middle = u + v
    middle /= np.linalg.norm(middle, axis=-1, keepdims=True)
    normal = np.cross(u, v)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    return np.stack([middle, normal, np.cross(middle, normal)], 1)


def _corners(points: int, most: int, rng: np.random.Generator) -> Int[Array, "t 3"]:
    """Triples of points, all or so many random ones, each once."""
    if points * (points - 1) * (points - 2) // 6 <= most:
        i, j, k = np.indices((points,) * 3).reshape(3, -1)
        keep = (i < j) & (j < k)
        return rng.permutation(np.stack([i, j, k], -1)[keep])
    draws = np.sort(rng.integers(points, size=(2 * most, 3)), axis=1)
    draws = draws[(draws[:, 0] < draws[:, 1]) & (draws[:, 1] < draws[:, 2])]
    code = draws @ [points**2, points, 1]
    first = np.unique(code, return_index=True)[1]
    return draws[np.sort(first)]
