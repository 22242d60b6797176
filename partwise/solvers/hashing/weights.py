"""What one hypothesis adds to the log probability of a scene, in closed form, as compiled code.

A hypothesis says which points are which parts of one object. Against the same points being clutter
it gains

    log rate + n log((1 - missing) / lambda) + (N - n) log missing + log p(points | match, sigma),

n of the N parts being seen, lambda the density of clutter, and the evidence that of
``evidence.TemplateNoise``: translation, turn and scale integrated out. One thing is sharper here:
the objects of a scene do not differ in scale by more than the model says, so that those already
found narrow the prior over scales (:func:`scale_prior`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["NOTHING", "Setting", "log_weight", "match_weight", "scale_prior"]

Array = np.ndarray

NOTHING = -1e30

ANYWHERE = 0.02
"""The probability that an object's scale is not in line with those of the others."""

LOG_RANGE = np.log(100.0)
"""Of the scales that objects may have at all: as in ``evidence.SCALE_RANGE``."""


class Setting(NamedTuple):
    """What is believed of a scene while it is searched; all lengths in the solvers' frame."""

    sigma: float
    log_rate: float
    log_seen: float
    log_hidden: float
    log_density: float
    log_volume: float
    largest: float
    u0: float
    u1: float
    ratio: float
    sized: float


@njit(cache=True)
def scale_prior(setting, scale):
    """The density of log scale.

    Scales are uniform between some u and ``ratio`` u; the ``sized`` ones that were found leave
    u between u0 and u1, with a density of u^-(sized + 1). And a little is left for any scale.
    """
    off = abs(np.log(setting.largest / scale) - 0.5 * LOG_RANGE)
    rest = 1.0 / LOG_RANGE if off <= 0.5 * LOG_RANGE else 1e-12
    low = max(setting.u0, scale / setting.ratio) / setting.u0
    high = min(setting.u1, scale) / setting.u0
    inside = 0.0
    if low < high:
        m, end = setting.sized, setting.u1 / setting.u0
        norm = (1.0 - end**-m) / m if m > 0 else np.log(end)
        inside = (low ** -(m + 1.0) - high ** -(m + 1.0)) / ((m + 1.0) * norm)
        inside *= scale / setting.u0 / (setting.ratio - 1.0)
    return (1.0 - ANYWHERE) * inside + ANYWHERE * rest


@njit(cache=True)
def log_weight(setting, seen, whole, xx, pp, xp):
    """Of a match with |xc|^2 = xx, |pc|^2 = pp and |sum conj(xc) pc|^2 = xp, centred."""
    if seen < 2 or xx < 1e-20 or xp < 1e-30:
        return NOTHING
    variance = setting.sigma * setting.sigma
    q = xp / (xx * 2.0 * variance)
    m = seen - 2
    # E|w|^(2m) / (2 tau^2)^m = q^m sum_j C(m, j)^2 j! q^-j
    term, total = 1.0, 1.0
    for j in range(m):
        term *= (m - j) * (m - j) / ((j + 1.0) * q)
        total += term
    moment = m * np.log(q) + np.log(total)
    scale = xx / np.sqrt(xp)
    evidence = (
        moment
        - max(pp - xp / xx, 0.0) / (2.0 * variance)
        - setting.log_volume
        - np.log(2.0 * np.pi)
        + np.log(scale_prior(setting, scale))
        - np.log(seen)
        - np.log(xx)
        - m * (np.log(xx) + np.log(np.pi))
    )
    prior = setting.log_rate + (whole - seen) * setting.log_hidden
    return prior + seen * (setting.log_seen - setting.log_density) + evidence


@njit(cache=True)
def match_weight(setting, parts, points, match):
    """``match[k]`` is the point of part k, -1 for none."""
    whole, seen = len(parts), 0
    mean_p, mean_x = 0j, 0j
    for k in range(whole):
        if match[k] >= 0:
            seen += 1
            mean_p += parts[k]
            mean_x += points[match[k]]
    if seen < 2:
        return NOTHING
    mean_p /= seen
    mean_x /= seen
    xx, pp, cross = 0.0, 0.0, 0j
    for k in range(whole):
        if match[k] >= 0:
            p, x = parts[k] - mean_p, points[match[k]] - mean_x
            xx += x.real * x.real + x.imag * x.imag
            pp += p.real * p.real + p.imag * p.imag
            cross += np.conj(x) * p
    return log_weight(setting, seen, whole, xx, pp, abs(cross) ** 2)
