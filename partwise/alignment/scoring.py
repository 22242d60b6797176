"""The evidence for a map: how much likelier it makes the target than a list of its own would be.

Under a map T each source point is found again in the target with probability rho, displaced by
Gaussian noise of standard deviation sigma; the rest of the target is what it would be anyway,
points of its own local density lambda. What is the same either way cancels, and what is left is a
sum over all one-to-one matchings (``matching.py``),

    LR(T, sigma, rho) = (1 - rho)^n sum_matchings prod_(i, j) w_ij,
    w_ij = rho / (1 - rho) N(y_j; T x_i, sigma^2 I) / lambda(y_j),

whose mean over unrelated lists (Poisson, of intensity lambda) is exactly one, whatever T. Both
things matter: the density is the target's own, in the target's frame, and the matchings are one to
one; otherwise a map that collapses the source onto a dense spot, or two source points that share a
target point, would be rewarded. sigma and rho are averaged over a grid, and the parameters of T are
integrated out around the optimum (Laplace), so that the prior volume of maps, which is what a
search tries, is paid for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Complex, Float
from scipy.spatial import ConvexHull, KDTree, QhullError
from scipy.special import logsumexp

from partwise.alignment.maps import Map
from partwise.alignment.matching import Pairs, matchings
from partwise.plane import from_complex

__all__ = [
    "NOTHING",
    "SCALES",
    "SIGMAS",
    "Scored",
    "Target",
    "log_prior_scale",
    "log_prior_shift",
    "log_ratios",
    "pairs_everywhere",
    "pairs_near",
    "score",
]

Array = np.ndarray

SCALES = (0.25, 4.0)
"""Scales of T between the normalised lists: the extents of two lists are no further apart."""

SIGMAS = np.geomspace(1e-4, 0.06, 17)
"""Noise levels that are averaged over, in the unit of the target: its median radius."""

RHOS = np.array([0.02, 0.04, 0.07, 0.11, 0.16, 0.22, 0.3, 0.4, 0.55, 0.7, 0.85, 0.97])
"""Shares of source points that are found again."""

REACH = 4.0
"""Pairs further apart than so many sigma do not match."""

NEAR_SIGMA = np.log(2.2)
"""So far from the fitted sigma the evidence is summed."""

SCALE_WIDTH = 0.35
SHIFT_WIDTH = 0.7
"""How far apart extents (in log scale) and places (in median radii) of two lists typically are."""

LEAST_KNOWN = 0.4
"""No pair counts for less of its information: far ones would count negatively."""

SHEAR = 0.5
"""Affine maps: the prior over mu = c / a is uniform in the disc of this radius."""


class Target:
    """What the target looks like to a map: its points, their local density, its outline."""

    def __init__(self, y: Complex[Array, " n"]) -> None:
        self.y = y
        self.points = from_complex(y)
        self.tree = KDTree(self.points)

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def hull(self) -> Float[Array, "faces 3"] | None:
        """Half planes n x + d <= 0 of the outline; None for points on a line."""
        try:
            return ConvexHull(self.points).equations
        except (QhullError, ValueError):
            return None

    def inside(self, z: Complex[Array, "*b"]) -> Bool[Array, "*b"]:
        """Which of ``z`` are within the outline: others cannot have been seen."""
        if self.hull is None:
            return np.ones(z.shape, bool)
        nx, ny, d = self.hull.T
        return (np.real(z)[..., None] * nx + np.imag(z)[..., None] * ny + d < 1e-9).all(-1)

    @cached_property
    def log_density(self) -> Float[Array, " n"]:
        """log lambda at every point: neighbours by the area they are in, within the outline."""
        k = min(5 + int(np.sqrt(len(self))), len(self) - 1)
        if k < 1:
            return np.zeros(len(self))
        reach = np.asarray(self.tree.query(self.points, k + 1)[0])[:, -1]
        # Points that coincide have no finite density; no noise level resolves less than this.
        reach = np.maximum(reach, SIGMAS[0])
        share = self.inside(self.y[:, None] + reach[:, None] * _DISC).mean(1)
        share = np.maximum(share, 0.2)
        return np.log(k / (np.pi * reach**2 * share))


_STEPS = np.arange(48)
_DISC = np.sqrt((_STEPS + 0.5) / 48) * np.exp(1j * np.pi * (3 - np.sqrt(5)) * _STEPS)
"""Points spread evenly over the unit disc (a sunflower)."""


@dataclass(frozen=True)
class Scored:
    """A map, the log odds of it against unrelated lists, and the noise and share that go with
    it."""

    map: Map
    log_odds: float
    sigma: float
    rho: float


NOTHING = Scored(Map(1.0, 0.0), -np.inf, np.nan, 0.0)


def pairs_near(map_: Map, x: Complex[Array, " n"], target: Target, sigma: float) -> Pairs:
    """The pairs that noise of sigma can explain, of source points that the target could show."""
    z = map_(x)
    seen = np.flatnonzero(target.inside(z))
    return Pairs.near(z, seen, target.tree, REACH * sigma)


def pairs_everywhere(map_: Map, x: Complex[Array, " n"], target: Target, sigma: float) -> Pairs:
    """The same, noise at the outline included."""
    return Pairs.near(map_(x), np.arange(len(x)), target.tree, REACH * sigma)


def log_ratios(
    pairs: Pairs, target: Target, sigma: Float[Array, "*g 1"] | float
) -> Float[Array, "*g e"]:
    """log N(y; T x, sigma^2 I) / lambda(y) of every pair."""
    density = target.log_density[pairs.target]
    return -0.5 * (pairs.away / sigma) ** 2 - np.log(2 * np.pi * sigma**2) - density


def score(map_: Map, x: Complex[Array, " n"], target: Target, sigma: float, affine: bool) -> Scored:
    """The log odds of ``map_``, the best one for noise of about ``sigma``.

    Only the part of the grid around sigma is summed, which is where the evidence is; its weight is
    that in the whole grid.
    """
    log_prior = _log_prior(map_, affine)
    sigmas = SIGMAS[np.abs(np.log(SIGMAS / np.clip(sigma, SIGMAS[0], SIGMAS[-1]))) < NEAR_SIGMA]
    pairs = pairs_near(map_, x, target, sigmas[-1])
    if not np.isfinite(log_prior) or len(pairs) < 2:
        return NOTHING
    sigmas = sigmas[:, None, None]
    log_w = log_ratios(pairs, target, sigmas) + np.log(RHOS / (1 - RHOS))[:, None]
    log_z, match = matchings(pairs, log_w)
    log_lr = log_z + pairs.seen * np.log1p(-RHOS)
    # The information that is left when it is not known who belongs to whom (Louis 1982).
    missing = (1 - match) * (pairs.away / sigmas) ** 2 / 2
    known = match * np.maximum(1 - missing, LEAST_KNOWN)
    log_volume = _log_volume(known, x[pairs.source], np.log(sigmas[..., 0]), affine)
    # A posterior cannot be wider than the prior.
    log_terms = log_lr + np.minimum(log_prior + log_volume, 0.0)
    log_terms -= np.log(len(SIGMAS) * len(RHOS))
    total = float(np.asarray(logsumexp(log_terms)))
    share = np.exp(log_terms - total)
    mean_sigma = np.exp((share * np.log(sigmas[..., 0])).sum())
    return Scored(map_, total, float(mean_sigma), float((share * RHOS).sum()))


def log_prior_scale(log_scale: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """Of the logarithm of the scale between normalised lists: Cauchy, extents are likely alike."""
    return np.asarray(-np.log(np.pi * SCALE_WIDTH * (1 + (log_scale / SCALE_WIDTH) ** 2)))


def log_prior_shift(b: Complex[Array, "*b"], scale: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """Of where the source's centre is put: Student's t (2 degrees of freedom), lists overlap."""
    width = SHIFT_WIDTH**2 * (1 + scale**2) / 2
    return np.asarray(-np.log(2 * np.pi * width) - 2 * np.log1p(np.abs(b) ** 2 / (2 * width)))


def _log_prior(map_: Map, affine: bool) -> float:
    """Of (a, b, c): all turns are alike; no scale is beyond SCALES, and no map reflects."""
    low, high = SCALES
    scale = map_.scale
    if not low <= scale <= high or abs(map_.c) > SHEAR * abs(map_.a):
        return -np.inf
    log_prior = log_prior_scale(np.array(np.log(scale)))
    log_prior += log_prior_shift(np.array(map_.b), np.array(scale))
    log_prior -= np.log(2 * np.pi * abs(map_.a) ** 2)
    if affine:
        log_prior -= np.log(np.pi * SHEAR**2 * abs(map_.a) ** 2)
    return float(log_prior)


def _log_volume(weights: Array, x: Array, log_sigma: Array, affine: bool) -> Array:
    """log of (2 pi)^(d/2) |H|^(-1/2), H = sum_i w_i J_i^T J_i / sigma^2, in (b, a) or (b, a, c)."""
    count = np.maximum(weights.sum(-1), 1.0)
    mean = weights @ x / count
    square = weights @ np.abs(x) ** 2 - count * np.abs(mean) ** 2
    square = np.maximum(square, 1e-2 * count)
    if not affine:
        return 2 * np.log(2 * np.pi) + 4 * log_sigma - np.log(count * square)
    cross = np.abs(weights @ x**2 - count * mean**2) ** 2
    det = np.maximum(square**2 - cross, 1e-9 * square**2)
    return 3 * np.log(2 * np.pi) + 6 * log_sigma - np.log(count * det)
