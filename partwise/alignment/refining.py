"""From a rough map to the best one near by: expectation-maximisation over matchings, sigma and
rho."""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex

from partwise.alignment.maps import Map
from partwise.alignment.matching import matchings
from partwise.alignment.scoring import (
    NOTHING,
    SIGMAS,
    Scored,
    Target,
    log_ratios,
    pairs_near,
    score,
)

__all__ = ["refine"]

Array = np.ndarray

STEPS = 60

FREE = 4
"""From this step on an affine map may shear as it likes."""

HOPELESS = {3: 8.0, 6: 13.0}
"""After so many steps the log likelihood ratio must be so high: the volume will cost about 20."""


def refine(
    map_: Map,
    x: Complex[Array, " n"],
    target: Target,
    sigma: float,
    affine: bool = False,
    tolerance: float = 1e-2,
) -> Scored:
    """Climb from ``map_``, which is believed to about ``sigma``, and score what is reached.

    What does not look like anything on the way is left early.
    """
    rho, last, shear = 0.3, 0.0, map_.shear
    for step in range(STEPS):
        pairs = pairs_near(map_, x, target, sigma)
        if len(pairs) < 2:
            return NOTHING
        log_w = log_ratios(pairs, target, sigma) + np.log(rho / (1 - rho))
        log_z, match = matchings(pairs, log_w)
        if step in HOPELESS and log_z + pairs.seen * np.log1p(-rho) < HOPELESS[step]:
            return NOTHING
        u, v = x[pairs.source], target.y[pairs.target]
        # An affine map has two parameters more to go astray: first the shear stays as it is.
        fitted = Map.fit(u, v, match, affine and step >= FREE, shear)
        if fitted is None:
            return NOTHING
        map_, total = fitted, match.sum()
        new = np.sqrt((match @ np.abs(map_(u) - v) ** 2) / (2 * total))
        # The noise falls slowly: what is a match is decided late.
        new = float(np.clip(max(new, 0.75 * sigma), SIGMAS[0], SIGMAS[-1]))
        rho = float(np.clip(total / pairs.seen, 0.02, 0.97))
        if step > 6 and max(abs(new / sigma - 1), abs(last / total - 1)) < tolerance:
            break
        sigma, last = new, total
    return score(map_, x, target, sigma, affine)
