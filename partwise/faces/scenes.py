"""Scenes of faces (sec. 7.2.1): side by side, or covering each other and cut off by the edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import InputError
from partwise.faces.appearance import FaceModel
from partwise.faces.canvas import PARTS, SIZE, pixels_at
from partwise.faces.combinations import Drawn, Faces
from partwise.poses import Similarity2D
from partwise.scenes import Scene, SceneBatch

__all__ = ["SCALES", "FaceScenes", "check_numbers", "draw_scenes", "visible"]

Array = np.ndarray

SCALES = (0.25, 0.5)
"""Faces are scaled down by at least half; by how much at most, the paper does not say."""

MOST = 5
"""More faces than the paper has do not fit side by side often enough to be drawn at random."""

WHOLE = 0.9
"""A part is observed where this much of it is visible: so much that it can be seen as it is."""

FEWEST = 2
"""The parts that every occluded face shows. One alone fixes a pose, but nothing could check it."""

_FAMILY = Similarity2D()
_TRIES = 10_000


@dataclass(frozen=True, eq=False)
class FaceScenes:
    """Scenes with their truth.

    Part m of scene i is part ``part_id[i][m]`` of face ``object_id[i][m]``. Face k of scene i has
    pose ``poses[i, k]``; ``picture(i, k)`` is what it looks like. Later faces lie in front.
    """

    scenes: SceneBatch
    object_id: list[Int[Array, " _M"]]
    part_id: list[Int[Array, " _M"]]
    poses: Float[Array, "S F 4"]
    codes: Float[Array, "S F c"]
    picture: Callable[[int, int], Float[Array, "H W"]]

    def __len__(self) -> int:
        return len(self.scenes)


def draw_scenes(
    faces: Faces, count: int, scenes: int = 250, occluded: bool = False, seed: int = 0
) -> FaceScenes:
    """Draw scenes of ``count`` faces each. Nothing is rendered here.

    Scale uniform in :data:`SCALES`, any turn, any place: inside the canvas and apart from each
    other, or, if ``occluded``, anywhere with the middle on the canvas, and at least one part of the
    scene hidden. The parts that are seen are seen as generated: their pose and code without noise.
    """
    check_numbers(count, scenes)
    rng = np.random.default_rng([seed, count, int(occluded)])
    model = faces.model
    poses, seen = zip(*(_place(model, count, occluded, rng) for _ in range(scenes)), strict=True)
    drawn = faces.draw(rng, scenes * count)
    made = [
        _scene(model, poses[i], seen[i], drawn.codes[i * count : (i + 1) * count], rng)
        for i in range(scenes)
    ]
    batch, objects, parts = zip(*made, strict=True)
    return FaceScenes(
        SceneBatch.collect(batch),
        list(objects),
        list(parts),
        np.stack(poses),
        drawn.codes.reshape(scenes, count, -1),
        _by_scene(drawn, count),
    )


def check_numbers(count: int, scenes: int) -> None:
    """One clear sentence for scenes that cannot be drawn."""
    if not 1 <= count <= MOST:
        raise InputError(f"faces: a scene holds 1 to {MOST} faces; got {count}.")
    if scenes < 1:
        raise InputError(f"scenes must be at least 1; got {scenes}.")


def _by_scene(drawn: Drawn, count: int) -> Callable[[int, int], Array]:
    return lambda scene, face: drawn.picture(scene * count + face)


def _place(
    model: FaceModel, count: int, occluded: bool, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Poses of one scene, and which parts of which face are seen."""
    middle, radius = model.extent
    for _ in range(_TRIES):
        scale = rng.uniform(*SCALES, count)
        angle = rng.uniform(0, 2 * np.pi, count)
        room = np.ones(count) if occluded else 1.0 - radius * scale
        where = rng.uniform(-1, 1, (count, 2)) * room[:, None]
        poses = np.stack(
            [_FAMILY.from_parameters((0, 0), s, a) for s, a in zip(scale, angle, strict=True)]
        )
        # The middle of the face, not of its canvas, goes there.
        poses[:, :2] = where - np.stack([_FAMILY.apply(p, middle[None])[0] for p in poses])
        if not occluded:
            apart = np.linalg.norm(where[:, None] - where[None], axis=2)
            reach = radius * (scale[:, None] + scale[None])
            if (apart + 2 * np.diag(reach.diagonal()) > reach).all():
                return poses, np.ones((count, len(PARTS)), bool)
            continue
        seen = visible(model, poses) >= WHOLE
        if not seen.all() and (seen.sum(1) >= FEWEST).all():
            return poses, seen
    raise InputError(f"faces: {count} faces of this size cannot be placed in a scene.")


def visible(model: FaceModel, poses: Float[Array, "F 4"]) -> Float[Array, "F N"]:
    """How much of every part is neither outside the canvas nor behind a later face, 0 to 1."""
    solid, spots = model.opacity > 0.5, model.spots
    out = np.zeros((len(poses), len(PARTS)))
    for k, pose in enumerate(poses):
        points = _FAMILY.matrix(pose)[:2] @ np.concatenate([spots.T, np.ones((1, len(spots)))])
        shown: Array = np.abs(points).max(0) <= 1
        for front in poses[k + 1 :]:
            shown &= ~_covered(solid, front, points.T)
        for n, (first, last) in enumerate(pairwise(model.spot_stops)):
            out[k, n] = shown[first:last].mean()
    return out


def _covered(solid: Bool[Array, "H W"], pose: Array, points: Float[Array, "n 2"]) -> Array:
    """Which points a face in that pose covers."""
    back = np.linalg.inv(_FAMILY.matrix(pose))
    columns, rows = np.rint(pixels_at(points @ back[:2, :2].T + back[:2, 2])).astype(int).T
    inside = (columns >= 0) & (columns < SIZE) & (rows >= 0) & (rows < SIZE)
    return inside & solid[np.clip(rows, 0, SIZE - 1), np.clip(columns, 0, SIZE - 1)]


def _scene(model: FaceModel, poses: Array, seen: Array, codes: Array, rng: np.random.Generator):
    """The observed parts of one scene in random order, and the face and part that each is."""
    face, part = np.nonzero(seen)
    order = rng.permutation(len(face))
    face, part = face[order], part[order]
    moved = np.stack([_FAMILY.apply(p, model.template.parts) for p in poses])
    split = [np.split(code, model.stops[:-1]) for code in codes]
    return (
        Scene(
            moved[face, part],
            [PARTS[n] for n in part],
            [split[k][n] for k, n in zip(face, part, strict=True)],
        ),
        face,
        part,
    )
