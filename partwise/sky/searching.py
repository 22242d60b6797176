"""The search for cameras: triangles propose, a picture of the sky ranks, refinement decides."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Complex

from partwise.sky.catalogue import catalogue
from partwise.sky.picture import SkyPicture
from partwise.sky.projection import Camera
from partwise.sky.refining import refine
from partwise.sky.scoring import FOCALS, Points, Scored
from partwise.sky.triangles import Cameras, TriangleIndex

__all__ = ["LEVELS", "look"]

Array = np.ndarray


LEVELS = (60, 200)
"""Triangles that are looked up at each focal length; the second time for charts of few stars."""

TOLERANCE = 0.02
"""Of their shape, in longest sides. Looser ones, of which there are more, find no more charts."""

STEPS = 16
"""Focal lengths, evenly spaced in their logarithm: a triangle far out changes its shape by 2 %."""

BLUR = 0.7
"""Degrees: what a camera from three points gets wrong elsewhere."""

GLANCE, GLANCED = 12, 2000
"""First all cameras are ranked by so many points, then the best by all of them."""

LOOKED_AT = 8
"""Cameras of a level that are refined."""

APART = np.radians(3.0)
"""Cameras that are turned by less are one: refinement leads to the same place."""


@cache
def _sky() -> tuple[TriangleIndex, SkyPicture]:
    """What the search looks things up in; made once."""
    vectors = catalogue().vectors
    return TriangleIndex(vectors), SkyPicture(vectors, BLUR)


def look(points: Points, triangles: int, rng: np.random.Generator) -> list[Scored]:
    """Cameras of a chart that is not mirrored, from so many triangles at each focal length."""
    index, picture = _sky()
    z = points.y - points.middle
    low, high = np.log(np.array(FOCALS) * points.width)
    step = (high - low) / STEPS
    rough = Cameras.joined(
        [
            index.propose(z, float(focal), 0.6 * step, TOLERANCE, triangles, rng)
            for focal in np.exp(low + (np.arange(STEPS) + 0.5) * step)
        ]
    )
    best = _best(rough, picture, rng.permutation(z), points.area)
    found = [
        refine(
            Camera(rough.axes[k], float(rough.focal[k]), points.middle), catalogue().vectors, points
        )
        for k in best
    ]
    return [scored for scored in found if np.isfinite(scored.log_odds)]


def _best(rough: Cameras, picture: SkyPicture, z: Complex[Array, " m"], area: float) -> list[int]:
    """The cameras that put most points on stars, each unlike the others."""
    glance = picture.score(rough, z[:GLANCE], area)
    few = np.argsort(-glance, kind="stable")[:GLANCED]
    odds = picture.score(rough[few], z, area)
    kept: list[int] = []
    for k in few[np.argsort(-odds, kind="stable")].tolist():
        turn = np.einsum("ij,hij->h", rough.axes[k], rough.axes[kept])
        if np.all(turn < 1 + 2 * np.cos(APART)):
            kept.append(k)
        if len(kept) == LOOKED_AT:
            break
    return kept
