"""Part images in the layout of PhotoFit Me, for those who have them.

``<sex>/<race>/<part>/<part>_<i>.png``, 640 x 640 RGBA: each the part in its place on the canvas,
transparent elsewhere. A sex and race is a group, whose parts may be combined (sec. 7.2.1).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from jaxtyping import Float

from partwise._checks import InputError
from partwise.faces.canvas import PARTS, SIZE
from partwise.faces.parts import PartImages
from partwise.faces.pictures import read_picture

__all__ = ["photofit_parts"]

Array = np.ndarray

SIDE = 640


def photofit_parts(folder: str | Path) -> PartImages:
    """The part images in a folder."""
    folder = Path(folder)
    groups = sorted(p for p in folder.glob("*/*") if p.is_dir())
    if not groups:
        raise InputError(f"{folder}: no folders <sex>/<race> with part images in this folder.")
    paths = [[_numbered(group, part) for part in PARTS] for group in groups]
    counts = {len(of_part): of_part for of_group in paths for of_part in of_group}
    if len(counts) > 1:
        fewest = counts[min(counts)][0].parent
        raise InputError(
            f"{fewest}: {min(counts)} images here but {max(counts)} in other folders; every part "
            "of every group needs equally many."
        )
    if min(counts) < 2:
        raise InputError(f"{folder}: one image a part; at least two are needed to combine them.")
    levels, opacities = [], []
    for n in range(len(PARTS)):
        read = [[read_picture(p, (SIDE, SIDE), SIZE) for p in of_group[n]] for of_group in paths]
        levels.append([[level for level, _ in of_group] for of_group in read])
        opacities.append([[alpha for _, alpha in of_group] for of_group in read])
    images, alpha = np.array(levels, np.float32), np.array(opacities, np.float32)
    return PartImages(_filled(images, alpha), _shares(alpha))


def _numbered(group: Path, part: str) -> list[Path]:
    """The files of one part of one group, by their number."""
    named = re.compile(rf"{part}_(\d+)\.png", re.IGNORECASE)
    found = [(int(m[1]), p) for p in (group / part).glob("*") if (m := named.fullmatch(p.name))]
    if not found:
        raise InputError(f"{group}: no images of the part {part!r}; expected {part}/{part}_1.png.")
    return [path for _, path in sorted(found)]


def _shares(alpha: Float[Array, "N G I H W"]) -> Float[Array, "N H W"]:
    """The weights of the parts: their mean opacities, where these overlap in proportion."""
    mean = alpha.mean((1, 2))
    together = mean.sum(0)
    out = mean / np.maximum(together, 1.0)
    for part, weight in zip(PARTS, out, strict=True):
        if not (weight > 0.5).any():
            raise InputError(
                f"part images: {part!r} is covered by other parts, or transparent, everywhere; "
                "check the opacity of its images."
            )
    return np.where(out > 1e-3, out, 0.0).astype(np.float32)


def _filled(images: Array, alpha: Array) -> Array:
    """Where an image is transparent but others of its part are not: the mean of those."""
    seen = alpha > 0.05
    mean = (images * seen).sum((1, 2)) / np.maximum(seen.sum((1, 2)), 1)
    return np.where(seen, images, mean[:, None, None])
