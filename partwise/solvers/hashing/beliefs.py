"""From the model, and from what has been found in a scene so far, to what is believed of it.

A model says how many objects and how much clutter a scene has on average; scenes differ. Both
rates are taken to have a broad Gamma prior with that mean, so that where f other objects were found
one more is expected at a rate of (shape + f) / (1 + shape / mean). The shape for objects is such
that, with 7 of them on average, every second scene has none: where nothing is found for sure, less
is believed. A scene that is full of clutter is believed to be that. The scales of a
scene's objects lie between some u and ``ratio`` u; u is unknown, and the scales already found
narrow it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from partwise.solvers.hashing.weights import LOG_RANGE, Setting

__all__ = ["Beliefs", "scale_of", "setting_of"]

SHAPE_OBJECTS = 0.2
SHAPE_CLUTTER = 0.5
"""Of the priors over rates."""

SLACK = 0.02
"""By this share a scale may be off."""


class Beliefs(NamedTuple):
    """What the model says of every scene, in the solvers' frame."""

    sigma: float
    objects: float
    log_odds: float
    log_seen: float
    log_hidden: float
    clutter: float
    share: float
    """Of clutter among all points."""
    ratio: float


@njit(cache=True)
def setting_of(beliefs, volume, left, objects, low, high, sized):
    """The setting after so many ``objects`` were found and ``left`` points not explained.

    ``low`` and ``high`` are the range of the ``sized`` scales that are certain.
    """
    others = max(objects - 1.0, 0.0)  # than the one that is weighed
    rate = (SHAPE_OBJECTS + others) / (SHAPE_OBJECTS + beliefs.objects)  # relative to the model's
    clutter = (SHAPE_CLUTTER + left) / (1.0 + SHAPE_CLUTTER / max(beliefs.clutter, 1e-9))
    largest = np.sqrt(volume / np.pi)
    ratio = beliefs.ratio
    u0 = largest * np.exp(-LOG_RANGE)
    u1 = max(largest / ratio, u0 * (1.0 + SLACK))
    if sized > 0:
        ratio = max(ratio, high / low)  # they may differ by more than the model says
        u0, u1 = high / ratio * (1.0 - SLACK), low * (1.0 + SLACK)
    return Setting(
        beliefs.sigma,
        beliefs.log_odds + np.log(rate),
        beliefs.log_seen,
        beliefs.log_hidden,
        np.log(clutter / volume),
        np.log(volume),
        largest,
        u0,
        u1,
        ratio,
        float(min(sized, 20)),
    )


@njit(cache=True)
def scale_of(parts, points, match):
    """Of the least squares pose."""
    seen, mean_p, mean_x = 0, 0j, 0j
    for k in range(len(parts)):
        if match[k] >= 0:
            seen += 1
            mean_p += parts[k]
            mean_x += points[match[k]]
    mean_p /= seen
    mean_x /= seen
    pp, cross = 1e-300, 0j
    for k in range(len(parts)):
        if match[k] >= 0:
            p = parts[k] - mean_p
            pp += p.real * p.real + p.imag * p.imag
            cross += np.conj(p) * (points[match[k]] - mean_x)
    return max(abs(cross) / pp, 1e-300)
