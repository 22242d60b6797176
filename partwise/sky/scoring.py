"""The evidence for a camera: how much likelier it makes the chart than points of its own would be.

As for two lists of points (``alignment/scoring.py``), with the stars of the catalogue as the source
and the chart as the target, and another map between them. Every star that the camera puts in the
window is seen with probability rho, displaced by Gaussian noise of standard deviation sigma; the
rest of the chart is what it would be anyway, points of its own local density. The sum over all
one-to-one matchings is averaged over sigma and rho, and the camera's six parameters are integrated
out around the optimum: turning it (3), its focal length, and where its centre is on the chart (2).

Beforehand, all pointings and rolls are alike, the field is as likely to be in one octave as in
another, and the centre is about the middle of the points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Complex, Float
from scipy.special import logsumexp

from partwise.alignment.maps import Frame
from partwise.alignment.matching import Pairs, matchings
from partwise.alignment.scoring import (
    LEAST_KNOWN,
    NEAR_SIGMA,
    REACH,
    RHOS,
    SIGMAS,
    Target,
    log_ratios,
)
from partwise.sky.projection import Camera

__all__ = ["CENTRE", "FOCALS", "Points", "Scored", "derivatives", "pairs_near", "score"]

Array = np.ndarray

FIELDS = (30.0, 100.0)
"""Widths of charts that are looked for, in degrees."""

FOCALS = tuple(float(0.5 / np.tan(np.radians(field) / 2)) for field in FIELDS[::-1])
"""The focal lengths that go with them, in widths."""

CENTRE = 0.04
"""How far the centre typically is from the middle of the points, in widths, each way."""


class Points(Target):
    """The points of a chart in its normalised frame, and the rectangle that holds them."""

    def __init__(self, y: Complex[Array, " m"], frame: Frame) -> None:
        super().__init__(y)
        self.frame = frame
        self.low = complex(np.real(y).min(), np.imag(y).min())
        self.high = complex(np.real(y).max(), np.imag(y).max())
        size = self.high - self.low
        self.middle = (self.low + self.high) / 2
        self.width = max(size.real, size.imag)
        self.area = size.real * size.imag

    def window(self, z: Complex[Array, " n"]) -> Bool[Array, " n"]:
        """Which places are in the rectangle: stars beyond it may not have been seen."""
        real = (np.real(z) >= self.low.real) & (np.real(z) <= self.high.real)
        return real & (np.imag(z) >= self.low.imag) & (np.imag(z) <= self.high.imag)


@dataclass(frozen=True)
class Scored:
    """A camera (of the normalised chart), its log odds, and the noise and share that go with it."""

    camera: Camera
    log_odds: float
    sigma: float
    rho: float


def pairs_near(
    camera: Camera, vectors: Float[Array, "n 3"], points: Points, sigma: float
) -> tuple[Pairs, Complex[Array, " n"]]:
    """The pairs that noise of sigma can explain, and where all stars are on the chart."""
    z, ahead = camera.project(vectors)
    seen = np.flatnonzero(ahead & points.window(z))
    return Pairs.near(z, seen, points.tree, REACH * sigma), z


def score(camera: Camera, vectors: Float[Array, "n 3"], points: Points, sigma: float) -> Scored:
    """The log odds of ``camera``, the best one for noise of about ``sigma``."""
    log_prior = _log_prior(camera, points)
    sigmas = SIGMAS[np.abs(np.log(SIGMAS / np.clip(sigma, SIGMAS[0], SIGMAS[-1]))) < NEAR_SIGMA]
    pairs, _ = pairs_near(camera, vectors, points, sigmas[-1])
    if not np.isfinite(log_prior) or len(pairs) < 3:
        return Scored(camera, -np.inf, np.nan, 0.0)
    sigmas = sigmas[:, None, None]
    log_w = log_ratios(pairs, points, sigmas) + np.log(RHOS / (1 - RHOS))[:, None]
    log_z, match = matchings(pairs, log_w)
    log_lr = log_z + pairs.seen * np.log1p(-RHOS)
    # The information that is left when it is not known who belongs to whom (Louis 1982).
    missing = (1 - match) * (pairs.away / sigmas) ** 2 / 2
    known = match * np.maximum(1 - missing, LEAST_KNOWN) / sigmas**2
    slopes = derivatives(camera, vectors[pairs.source])
    information = np.einsum("...p,pki,pkj->...ij", known, slopes, slopes)
    information += np.diag([1e-6] * 4 + [(CENTRE * points.width) ** -2] * 2)
    log_volume = 3 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(information)[1]
    # A posterior cannot be wider than the prior.
    log_terms = log_lr + np.minimum(log_prior + log_volume, 0.0)
    log_terms -= np.log(len(SIGMAS) * len(RHOS))
    total = float(np.asarray(logsumexp(log_terms)))
    share = np.exp(log_terms - total)
    mean_sigma = np.exp((share * np.log(sigmas[..., 0])).sum())
    return Scored(camera, total, float(mean_sigma), float((share * RHOS).sum()))


def _log_prior(camera: Camera, points: Points) -> float:
    """Density in the turn (a vector of radians), log focal length, and centre."""
    focal = camera.focal / points.width
    # What was found at an end of the range was found.
    if not 0.9 * FOCALS[0] <= focal <= 1.1 * FOCALS[1]:
        return -np.inf
    width = CENTRE * points.width
    away = abs(camera.centre - points.middle) ** 2 / (2 * width**2)
    turn = -np.log(8 * np.pi**2)
    return float(turn - np.log(np.log(FOCALS[1] / FOCALS[0])) - away - np.log(2 * np.pi * width**2))


def derivatives(camera: Camera, vectors: Float[Array, "p 3"]) -> Float[Array, "p 2 6"]:
    """Of x and y by the turn of the axes (three angles), log focal length, and centre (two)."""
    c = vectors @ camera.axes.T
    x, y = (-camera.focal * c[:, k] / c[:, 2] for k in (0, 1))
    f = camera.focal
    one, none = np.ones_like(x), np.zeros_like(x)
    # A turn by w moves c by w x c; at unit depth, c = (x, y, -f) / f.
    return np.stack(
        [
            np.stack([x * y / f, -f - x**2 / f, -y, x, one, none], -1),
            np.stack([f + y**2 / f, -x * y / f, x, y, none, one], -1),
        ],
        1,
    )
