"""What a point says that a map puts somewhere in the plane of the target: a picture to look up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float
from scipy.ndimage import gaussian_filter

from partwise.alignment.scoring import Target

__all__ = ["Picture"]

Array = np.ndarray

RHO = 0.2
"""The share of matches that is supposed."""

CELLS = 1.5
"""Cells to a standard deviation of the noise."""

COARSE, BROAD = 0.06, 0.25
"""Local density: cells, and the standard deviation over which it is averaged."""

EDGE = 5.0
"""The picture ends here, in the unit of the target, even if stray points are further away."""


@dataclass(frozen=True)
class Picture:
    """log(1 - rho + rho N / lambda) at every place; zero where there is nothing of the target.

    N is the density of noise around the target's points, lambda their local density. The outermost
    cells stand for all beyond.
    """

    cells: Float[Array, "h w"]
    corner: complex
    side: float

    @staticmethod
    def of(target: Target, blur: float) -> Picture:
        """The picture for noise of ``blur``."""
        side = blur / CELLS
        low = np.maximum(target.points.min(0), -EDGE) - 4 * blur
        high = np.minimum(target.points.max(0), EDGE) + 4 * blur
        near = gaussian_filter(_counts(target, low, high, side), CELLS, mode="constant") / side**2
        # The density varies slowly, and is averaged over what is inside the outline.
        rough = _counts(target, low, high, COARSE)
        row, column = np.indices(rough.shape)
        middles = complex(*low) + COARSE * (column + 0.5 + 1j * (row + 0.5))
        window = target.inside(np.asarray(middles)).astype(np.float32)
        density, share = (
            gaussian_filter(v, BROAD / COARSE, mode="constant", truncate=3) for v in (rough, window)
        )
        density = density / np.maximum(share, 0.05) / COARSE**2
        density = np.maximum(density, 0.1 * density.max())
        rows, columns = (
            np.minimum(((np.arange(n) + 0.5) * side / COARSE).astype(int), m - 1)
            for n, m in zip(near.shape, rough.shape, strict=True)
        )
        at = np.ix_(rows, columns)
        odds = np.log((1 - RHO) + RHO * near / density[at]) * window[at]
        odds[[0, -1]] = odds[:, [0, -1]] = 0.0
        return Picture(odds.astype(np.float32), complex(*low), side)

    def at(self, z: Complex[Array, "*b"]) -> Float[Array, "*b"]:
        """The log odds at ``z``."""
        row, column = self._place(z)
        return self.cells[row, column]

    def _place(self, z: Complex[Array, "*b"]) -> tuple[Array, Array]:
        height, width = self.cells.shape
        column = ((np.real(z) - self.corner.real) * (1 / self.side)).astype(np.int32)
        row = ((np.imag(z) - self.corner.imag) * (1 / self.side)).astype(np.int32)
        return np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)

    def best_shift(
        self, z: Complex[Array, "h n"], reach: int
    ) -> tuple[Complex[Array, " h"], Float[Array, " h"]]:
        """For every row: the shift, of up to ``reach`` cells each way, with the highest sum."""
        # What lies outside stays in the margin, which is zero, wherever it is shifted to.
        padded = np.pad(self.cells, reach)
        row, column = self._place(z)
        width = padded.shape[1]
        flat = (row + reach) * width + (column + reach)
        cells = padded.ravel()
        best, shift = np.full(len(z), -np.inf), np.zeros(len(z), complex)
        for up in range(-reach, reach + 1):
            for right in range(-reach, reach + 1):
                value = cells[flat + (up * width + right)].sum(1)
                shift = np.where(value > best, self.side * (right + 1j * up), shift)
                best = np.maximum(best, value)
        return shift, best


def _counts(target: Target, low: Array, high: Array, side: float) -> Float[Array, "h w"]:
    """How many points are in every cell."""
    width, height = (np.ceil((high - low) / side).astype(int) + 1).tolist()
    at = np.floor((target.points - low) / side).astype(int)
    at = at[((at >= 0) & (at < [width, height])).all(1)]
    counts = np.bincount(at[:, 1] * width + at[:, 0], minlength=width * height)
    return counts.reshape(height, width).astype(np.float32)
