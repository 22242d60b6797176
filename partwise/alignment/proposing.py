"""Where a map might be: one matched pair as the origin, the rest by correlation.

Suppose that source point i and target point j are the same. What is left of a similarity, seen from
there, is a turn and a scale, which shift the angle and the logarithm of the distance of every other
point. So the best turn and scale for the pair is the highest place of a correlation of two log-
polar pictures, and the FFT gives it for all of them at once: of the source, how many points lie
where; of the target, the log odds of a match, log(1 - rho + rho N / lambda), so that the
correlation *is* about the log-likelihood ratio of ``scoring.py``, comparable over pairs. No
neighbourhood needs to be free of unmatched points, as asterisms need: the evidence is that of the
whole list.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
import scipy.fft
from jaxtyping import Complex, Float, Int

from partwise.alignment.picture import Picture
from partwise.alignment.scoring import SCALES, Target, log_prior_scale, log_prior_shift

__all__ = ["Grid", "Proposer", "Rough"]

Array = np.ndarray

BATCH = 32
"""Correlations at a time: they stay in the cache."""

SHARPENED, POLISHED = 320, 48
"""Proposals of one origin that are looked at more closely, and very closely."""

FINER = np.array([-0.4, 0.0, 0.4])
"""Turns and scales within a cell."""

NEAR, FAR = 0.25, 2.5
"""Distances from the origin that count, in the unit of the source: nearer ones say little."""


@dataclass(frozen=True)
class Grid:
    """A log-polar grid of so many angles, cells as wide as high; ``blur`` of the target's
    picture."""

    angles: int
    blur: float

    @property
    def step(self) -> float:
        """The side of a cell: radians, and log distance."""
        return 2 * np.pi / self.angles

    @property
    def rings(self) -> int:
        """Distances of the source, and shifts, without wrapping round."""
        return int(np.ceil(np.log(FAR / NEAR) / self.step))

    @property
    def shifts(self) -> int:
        """Scales."""
        return int(np.ceil(np.log(SCALES[1] / SCALES[0]) / self.step))

    @property
    def shape(self) -> tuple[int, int]:
        """Rings of the target, and angles."""
        return int(scipy.fft.next_fast_len(self.rings + self.shifts, True) or 0), self.angles


@dataclass(frozen=True)
class Rough:
    """Similarities y = a x + b that might be, best first, and their log odds in the picture."""

    a: Complex[Array, " h"]
    b: Complex[Array, " h"]
    odds: Float[Array, " h"]

    def first(self, count: int) -> Rough:
        """The ``count`` best."""
        order = np.argsort(-self.odds, kind="stable")[:count]
        return Rough(self.a[order], self.b[order], self.odds[order])


class Proposer:
    """Proposals on one grid, for a source and those points of a target that may be partners."""

    def __init__(
        self, x: Complex[Array, " n"], target: Target, grid: Grid, partners: Int[Array, " p"]
    ) -> None:
        self.x, self.grid = x, grid
        self.partners = target.y[partners]
        # Both points of the origin are noisy: seen from there, all others are sqrt(2) times as
        # noisy.
        self.seen, self.odds = (Picture.of(target, grid.blur / f) for f in (1.0, np.sqrt(2)))
        self.spectra = self._spectra(self.seen)

    def of(self, x: Complex[Array, " n"]) -> Proposer:
        """The same target for another source."""
        other = copy(self)
        other.x = x
        return other

    def propose(self, i: int) -> Rough:
        """For source point i and every partner: the best turn and scale."""
        rings, angles = self.grid.shape
        own = np.conj(np.asarray(scipy.fft.rfft2(self._source(i))))
        log_scale = np.log(SCALES[0]) + self.grid.step * np.arange(self.grid.shifts)
        prior = log_prior_scale(log_scale).astype(np.float32)[:, None]
        best, place = np.empty(len(self.partners)), np.empty(len(self.partners), int)
        for start in range(0, len(best), BATCH):
            part = slice(start, start + BATCH)
            both = self.spectra[part] * own
            found = np.asarray(scipy.fft.irfft2(both, s=(rings, angles), axes=(1, 2), workers=2))
            found = (found[:, : self.grid.shifts] + prior).reshape(len(found), -1)
            place[part] = found.argmax(1)
            best[part] = np.take_along_axis(found, place[part][:, None], 1)[:, 0]
        shift, turn = np.divmod(place, angles)
        a = np.exp(log_scale[shift] + 1j * self.grid.step * turn)
        b = self.partners - a * self.x[i]
        return Rough(a, b, best + log_prior_shift(b, np.abs(a))).first(SHARPENED)

    def sharpen(self, i: int, rough: Rough) -> Rough:
        """The best place within a cell: with the same origin, and points where they are."""
        away = self.x - self.x[i]
        away = away[(np.abs(away) >= NEAR) & (np.abs(away) < FAR)]
        partner = (rough.a * self.x[i] + rough.b)[:, None]
        turns = np.exp(self.grid.step * (FINER[:, None] + 1j * FINER)).ravel()
        sums = np.stack(
            [self.seen.at((t * rough.a)[:, None] * away + partner).sum(1) for t in turns]
        )
        a = rough.a * turns[sums.argmax(0)]
        b = partner[:, 0] - a * self.x[i]
        return Rough(a, b, sums.max(0) + _log_prior(a, b)).first(POLISHED)

    def polish(self, rough: Rough) -> Rough:
        """The highest place near by, in a sharper picture, and without an origin."""
        step = self.odds.side
        a, b, odds = rough.a, rough.b, rough.odds
        turns = np.exp(step * (np.arange(-2, 3)[:, None] + 1j * np.arange(-2, 3))).ravel()
        for reach in (3, 1):
            shift, odds = self.odds.best_shift(a[:, None] * self.x + b[:, None], reach)
            b = b + shift
            # Turned and scaled about the centre of the source, which is where x = 0.
            sums = np.stack(
                [self.odds.at((t * a)[:, None] * self.x + b[:, None]).sum(1) for t in turns]
            )
            a, odds = a * turns[sums.argmax(0)], sums.max(0)
        return Rough(a, b, odds + _log_prior(a, b)).first(len(a))

    def _spectra(self, picture: Picture) -> Complex[Array, "p rings half"]:
        """The log odds of a match, seen from every partner, transformed."""
        rings, angles = self.grid.shape
        r = NEAR * SCALES[0] * np.exp(self.grid.step * (np.arange(rings) + 0.5))
        t = self.grid.step * (np.arange(angles) + 0.5)
        polar = (r[:, None] * np.exp(1j * t)).astype(np.complex64)
        out = np.empty((len(self.partners), rings, angles // 2 + 1), np.complex64)
        for start in range(0, len(out), BATCH):
            part = slice(start, start + BATCH)
            views = picture.at(polar + self.partners[part, None, None].astype(np.complex64))
            out[part] = np.asarray(scipy.fft.rfft2(views, axes=(1, 2), workers=2))
        return out

    def _source(self, i: int) -> Float[Array, "rings angles"]:
        """How many source points lie where, seen from point i."""
        z = np.delete(self.x, i) - self.x[i]
        r = np.abs(z)
        use = (r >= NEAR) & (r < FAR)
        ring = (np.log(r[use] / NEAR) / self.grid.step).astype(int)
        angle = (np.mod(np.angle(z[use]), 2 * np.pi) / self.grid.step).astype(int)
        rings, angles = self.grid.shape
        flat = ring * angles + np.minimum(angle, angles - 1)
        counts = np.bincount(flat, minlength=rings * angles)
        return counts.reshape(rings, angles).astype(np.float32)


def _log_prior(a: Complex[Array, " h"], b: Complex[Array, " h"]) -> Float[Array, " h"]:
    """What of the prior differs between rough maps."""
    scale = np.abs(a)
    return log_prior_scale(np.log(scale)) + log_prior_shift(b, scale)
