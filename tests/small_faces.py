"""A small model of faces, and a small folder in PhotoFit's layout, for tests."""

from __future__ import annotations

import numpy as np

from partwise.faces.appearance import FaceModel
from partwise.faces.canvas import PARTS, SIZE
from partwise.faces.parts import areas_of, centres_of
from partwise.templates import Appearance

BANDS = {"hair": (40, 80), "eyes": (80, 105), "nose": (105, 130), "mouth": (130, 155)}
BANDS["jaw"] = (155, 180)
FEATURES = (3, 2, 2, 2, 3)


def weights():
    """Five bands across the middle of the canvas."""
    out = np.zeros((len(PARTS), SIZE, SIZE), np.float32)
    for n, part in enumerate(PARTS):
        top, bottom = BANDS[part]
        out[n, top:bottom, 70:154] = 1.0
    return out


def small_model(seed=0):
    """Faces of five bands, two factors, and a code or two or three a part."""
    rng = np.random.default_rng(seed)
    w = weights()
    bases = tuple(
        (0.08 * rng.uniform(-1, 1, (f, SIZE, SIZE)) * w[n]).astype(np.float32)
        for n, f in enumerate(FEATURES)
    )
    looks = Appearance(
        tuple(rng.normal(size=(f, 2)) for f in FEATURES),
        tuple(0.1 * rng.normal(size=f) for f in FEATURES),
        tuple(rng.uniform(0.1, 0.3, f) for f in FEATURES),
    )
    areas = areas_of(w)
    return FaceModel(0.6 * w, bases, w.sum(0), areas, centres_of(areas), looks)


def write_photofit(folder, images=3, groups=(("female", "asian"), ("male", "black")), seed=0):
    """Part images as ``<sex>/<race>/<part>/<part>_<i>.png``: noisy bands on transparent ground."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    for g, (sex, race) in enumerate(groups):
        for part in PARTS:
            place = folder / sex / race / part
            place.mkdir(parents=True)
            top, bottom = (round(v * 640 / SIZE) for v in BANDS[part])
            for i in range(1, images + 1):
                pixels = np.zeros((640, 640, 4), np.uint8)
                grey = 100 + 60 * g + 8 * i + rng.integers(-5, 6, (bottom - top, 240, 1))
                pixels[top:bottom, 200:440, :3] = grey
                pixels[top:bottom, 200:440, 3] = 255
                Image.fromarray(pixels).save(place / f"{part}_{i}.png")
    return folder
