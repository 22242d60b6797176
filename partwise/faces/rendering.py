"""Scenes as pictures: faces moved to their poses and laid one over the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float, Real
from scipy.ndimage import affine_transform, gaussian_filter

from partwise.faces.appearance import FaceModel
from partwise.faces.canvas import BACKGROUND, SIZE, pixels_at, to_frame
from partwise.faces.scenes import FaceScenes
from partwise.poses import Similarity2D
from partwise.posterior import Explanation

__all__ = ["lay", "render_explanation", "render_faces", "render_truth", "shown_faces"]

Array = np.ndarray

_FAMILY = Similarity2D()


def lay(
    faces: Iterable[tuple[Real[Array, " 4"], Float[Array, "H W"]]], opacity: Float[Array, "H W"]
) -> Float[Array, "H W"]:
    """A scene of faces, each a pose and a picture (times ``opacity``), the last in front."""
    scene = np.full((SIZE, SIZE), BACKGROUND, np.float32)
    for pose, picture in faces:
        window, (moved, cover) = _moved(pose, (picture, opacity))
        scene[window] = scene[window] * (1 - cover) + moved
    return scene


def _moved(pose: Array, pictures: Sequence[Array]) -> tuple[tuple[slice, slice], list[Array]]:
    """Pictures in a pose, and the window of the scene outside of which they are 0."""
    forward = _FAMILY.matrix(pose)
    shown = np.argwhere(pictures[-1] > 0)  # opacity
    (top, left), (bottom, right) = shown.min(0), shown.max(0)
    corners = to_frame(np.array([[x, y] for x in (left, right) for y in (top, bottom)]))
    reach = pixels_at(corners @ forward[:2, :2].T + forward[:2, 2])
    low = np.clip(np.floor(reach.min(0)).astype(int) - 1, 0, SIZE)
    high = np.clip(np.ceil(reach.max(0)).astype(int) + 2, 0, SIZE)
    window = slice(low[1], high[1]), slice(low[0], high[0])
    if (high <= low).any():
        return window, [np.zeros((max(high[1] - low[1], 0), max(high[0] - low[0], 0)))] * 2
    # From rows and columns of the scene to those of the face's canvas: affine, so three points
    # tell all.
    back = np.linalg.inv(forward)
    probes = low[::-1] + np.array([[0, 0], [1, 0], [0, 1]])
    there = pixels_at(to_frame(probes[:, ::-1]) @ back[:2, :2].T + back[:2, 2])[:, ::-1]
    matrix = np.stack([there[1] - there[0], there[2] - there[0]], 1)
    # What is made smaller is blurred first, or it would flicker between pixels.
    blur = 0.4 * np.sqrt(max(float(np.linalg.det(matrix)) - 1.0, 0.0))
    shape = tuple((high - low)[::-1])
    crop = slice(max(top - 8, 0), bottom + 9), slice(max(left - 8, 0), right + 9)
    origin = there[0] - np.array([crop[0].start, crop[1].start])
    out = []
    for picture in pictures:
        smooth = gaussian_filter(picture[crop], blur, mode="constant") if blur else picture[crop]
        out.append(affine_transform(smooth, matrix, origin, shape, order=1, mode="constant"))
    return window, out


def render_truth(model: FaceModel, scenes: FaceScenes, index: int) -> Float[Array, "H W"]:
    """The input picture of a scene."""
    poses = scenes.poses[index]
    return lay(((p, scenes.picture(index, k)) for k, p in enumerate(poses)), model.opacity)


Shown = Sequence[tuple[Sequence[float] | Array, Sequence[float] | Array]]
"""Faces by their poses and factors, the last in front."""


def shown_faces(explanation: Explanation) -> list[tuple[Array, Array]]:
    """The poses and factors of the faces that were found.

    Which face lies in front cannot be told from parts; those that show more of theirs are taken to.
    """
    objects = sorted(explanation.objects, key=lambda o: len(o.points))
    out = []
    for found in objects:
        assert found.appearance is not None
        out.append((found.pose, found.appearance))
    return out


def render_faces(model: FaceModel, shown: Shown) -> Float[Array, "H W"]:
    """The picture of faces with these poses and factors."""
    faces = [(np.asarray(p, float), model.picture(model.codes(np.asarray(f)))) for p, f in shown]
    return lay(faces, model.opacity)


def render_explanation(model: FaceModel, explanation: Explanation) -> Float[Array, "H W"]:
    """The picture that an explanation of a scene predicts."""
    return render_faces(model, shown_faces(explanation))
