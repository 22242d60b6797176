"""From a rough camera to the best one near by: expectation-maximisation over matchings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.spatial.transform import Rotation

from partwise.alignment.matching import Pairs, matchings
from partwise.alignment.refining import HOPELESS
from partwise.alignment.scoring import SIGMAS, log_ratios
from partwise.plane import from_complex
from partwise.sky.projection import Camera
from partwise.sky.scoring import CENTRE, Points, Scored, derivatives, pairs_near, score

__all__ = ["refine"]

Array = np.ndarray

STEPS = 60

FREE = 5
"""From this step on the centre of the projection may leave the middle of the points."""

START = 0.05
"""The noise that is supposed at first, in the unit of the chart: what rough cameras err by."""


def refine(
    camera: Camera,
    vectors: Float[Array, "n 3"],
    points: Points,
    sigma: float = START,
    tolerance: float = 1e-2,
) -> Scored:
    """Climb from ``camera``, which is believed to ``sigma``, and score what is reached.

    What looks like nothing is left early.
    """
    rho, last = 0.6, 0.0
    nothing = Scored(camera, -np.inf, np.nan, 0.0)
    for step in range(STEPS):
        pairs, z = pairs_near(camera, vectors, points, sigma)
        if len(pairs) < 3:
            return nothing
        log_w = log_ratios(pairs, points, sigma) + np.log(rho / (1 - rho))
        log_z, match = matchings(pairs, log_w)
        if step in HOPELESS and log_z + pairs.seen * np.log1p(-rho) < HOPELESS[step]:
            return nothing
        camera = _newton(camera, vectors, points, pairs, match / sigma**2, z, step >= FREE)
        z, total = camera.project(vectors)[0], match.sum()
        away = np.abs(z[pairs.source] - points.y[pairs.target])
        new = np.sqrt((match @ away**2) / (2 * total))
        # The noise falls slowly: what is a match is decided late.
        new = float(np.clip(max(new, 0.75 * sigma), SIGMAS[0], SIGMAS[-1]))
        rho = float(np.clip(total / max(pairs.seen, 1), 0.02, 0.97))
        if step > FREE + 2 and max(abs(new / sigma - 1), abs(last / total - 1)) < tolerance:
            break
        sigma, last = new, total
    return score(camera, vectors, points, sigma)


def _newton(
    camera: Camera,
    vectors: Array,
    points: Points,
    pairs: Pairs,
    weights: Array,
    z: Array,
    free: bool,
) -> Camera:
    """One Gauss-Newton step of weighted least squares, with the prior on the centre."""
    slopes = derivatives(camera, vectors[pairs.source])
    gap = from_complex(points.y[pairs.target] - z[pairs.source])
    hessian = np.einsum("p,pki,pkj->ij", weights, slopes, slopes)
    gradient = np.einsum("p,pki,pk->i", weights, slopes, gap)
    held = (CENTRE * points.width) ** -2 if free else 1e12
    hessian += np.diag([1e-6] * 4 + [held] * 2)
    if free:
        pull = points.middle - camera.centre
        gradient[4:] += held * np.array([pull.real, pull.imag])
    change = np.linalg.solve(hessian, gradient)
    change = np.clip(change, -0.2, 0.2)
    return replace(
        camera,
        axes=Rotation.from_rotvec(change[:3]).as_matrix() @ camera.axes,
        focal=float(camera.focal * np.exp(change[3])),
        centre=camera.centre + complex(*change[4:]),
    )
