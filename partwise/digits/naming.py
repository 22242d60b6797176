"""A digit's pixels named by the parts of the template that was found in it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from partwise.digits.matching import Found, Matching
from partwise.poses import Similarity2D

__all__ = ["shares"]

Array = np.ndarray

SPREAD = 3.0
"""Pixels: wide enough that borders between parts are not tied to the grid."""


def shares(found: Found, matching: Matching, side: int) -> Float[Array, "K1 S S"]:
    """How much each part of the template has to do with each pixel: by distance, like a Gaussian.

    So the nearest part has most. The last map is 1 where nothing was found. The template's parts
    stand where its pose puts them, seen or hidden. Parts of all templates count on: a picture that
    is explained by another template has other names.
    """
    sizes = [len(t) for t in matching.templates]
    out = np.zeros((sum(sizes) + 1, side, side), np.float32)
    if found.template < 0:
        out[-1] = 1.0
        return out
    parts = matching.templates[found.template].parts
    where = Similarity2D().apply(found.pose, parts)[:, :2]
    at = np.arange(side) - (side - 1) / 2
    pixels = np.stack(np.meshgrid(at, at), -1)
    square = ((pixels - where[:, None, None]) ** 2).sum(-1)
    first = sum(sizes[: found.template])
    out[first : first + len(parts)] = softmax(-square / (2 * SPREAD**2), axis=0)
    return out
