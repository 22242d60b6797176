"""The five parts of an aligned face: which pixels are whose.

Bands and trapezoids around the places to which eyes and mouth are moved, in an egg around the face
that leaves out most of the hair (sec. 7.2.1: highly variable) and the background. Blurred, so that
parts of two people meet without an edge; they still add up to the whole.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.ndimage import gaussian_filter

from partwise.faces.canvas import SIZE

__all__ = ["EYES", "MOUTH", "skin", "weights"]

Array = np.ndarray

EYES = ((88.0, 95.0), (136.0, 95.0))
MOUTH = (112.0, 147.0)
"""Where the landmarks go: columns and rows of the canvas."""

BLEND = 4.0
"""The blur between two parts, in pixels; that of the face's own edge is a third of it."""

_FOREHEAD, _EYES_END, _NOSE_END, _MOUTH_END = 77, 109, 133, 161
_EGG = {"row": 99.0, "half_width": 52.0, "above": 66.0, "below": 77.0}

_rows, _columns = np.mgrid[:SIZE, :SIZE].astype(float)
_aside = np.abs(_columns - MOUTH[0])


def weights() -> Float[Array, "5 H W"]:
    """The weights of the parts, in the order of ``canvas.PARTS``."""
    hair = _rows < _FOREHEAD
    eyes = ~hair & (_rows < _EYES_END)
    nose = (_rows >= _EYES_END) & (_rows < _NOSE_END) & (_aside < 30)
    mouth = (_rows >= _NOSE_END) & (_rows < _MOUTH_END) & (_aside < 34)
    jaw = ~(hair | eyes | nose | mouth)  # and the cheeks
    regions = np.stack([eyes, nose, mouth, jaw, hair]).astype(np.float32)
    soft = np.stack([gaussian_filter(r, BLEND) for r in regions])
    opacity = gaussian_filter(_egg().astype(np.float32), BLEND / 3)
    out = soft / soft.sum(0) * opacity
    return np.where(out > 1e-3, out, 0.0).astype(np.float32)


def _egg() -> Array:
    height = np.where(_rows < _EGG["row"], _EGG["above"], _EGG["below"])
    down = (_rows - _EGG["row"]) / height
    return (_aside / _EGG["half_width"]) ** 2 + down**2 < 1


def skin() -> Array:
    """Pixels that are skin in nearly everybody: the cheeks and the middle of the forehead."""
    cheeks = (np.abs(_aside - 30) < 9) & (_rows > 112) & (_rows < 130)
    forehead = (_aside < 25) & (_rows > 62) & (_rows < 72)
    return cheeks | forehead
