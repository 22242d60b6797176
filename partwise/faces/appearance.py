"""How faces look: PPCA for every part, factor analysis over all of them (sec. 7.2.1, eq. 4).

The code of a part is x^a: its PPCA coefficients, scaled to unit variance. The codes of the five
parts, stacked, follow ``x^a = F^a y^a + m^a + noise``: the factor analyser.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from partwise._checks import InputError
from partwise.faces.canvas import BACKGROUND, PARTS, SIZE, points_of
from partwise.model import Model, Noise, PosePrior
from partwise.templates import Appearance, Template

__all__ = ["SIGMA", "FaceModel", "expected_factors"]

Array = np.ndarray

SIGMA = 1e-2
"""The noise of the geometry: the paper's variance of 1e-4, in the frame of the canvas."""

UNSEEN = 0.3
"""How often a part is missing, as a model for occluded scenes says."""


def expected_factors(
    loadings: Float[Array, "c l"],
    offset: Float[Array, " c"],
    variance: Float[Array, " c"],
    codes: Float[Array, "*b c"],
) -> Float[Array, "*b l"]:
    """The posterior mean of a factor analyser: ``(I + F^T D^-1 F)^-1 F^T D^-1 (x - m)``."""
    scaled = loadings / variance[:, None]
    precision = np.eye(loadings.shape[1]) + loadings.T @ scaled
    return (codes - offset) @ np.linalg.solve(precision, scaled.T).T


@dataclass(frozen=True, eq=False)
class FaceModel:
    """Faces as one template with appearance, and what is needed to draw them.

    Pixels are those of the canvas. ``means[n]`` and ``bases[n]`` (code, H, W) draw part n, times
    its weights; ``opacity`` is the face's; ``areas[n]`` is 1 where part n shows most. ``positions``
    are the parts' places in the template. ``looks`` is the factor analyser.
    """

    means: Float[Array, "N H W"]
    bases: tuple[Float[Array, "_c H W"], ...]
    opacity: Float[Array, "H W"]
    areas: Float[Array, "N H W"]
    positions: Float[Array, "N 2"]
    looks: Appearance

    def __post_init__(self):
        for n, (basis, features) in enumerate(zip(self.bases, self.looks.features, strict=True)):
            if len(basis) != features:
                raise InputError(
                    f"face model: part {PARTS[n]!r} has {len(basis)} basis images but codes of "
                    f"{features} numbers; both must agree."
                )
            if not self.areas[n].any():
                raise InputError(f"face model: part {PARTS[n]!r} shows nowhere; check its mask.")
        if not (self.opacity > 0.5).any():
            raise InputError("face model: the face is transparent everywhere; check its opacity.")

    @property
    def stops(self) -> list[int]:
        """Where the codes of the parts end in the stacked code."""
        return np.cumsum(self.looks.features).tolist()

    @property
    def width(self) -> int:
        """The length of the stacked code."""
        return self.stops[-1]

    @property
    def factors(self) -> int:
        """The number of factors."""
        return self.looks.factors

    @cached_property
    def loadings(self) -> Float[Array, "c l"]:
        """F^a of all parts, stacked."""
        return np.concatenate(self.looks.loadings)

    @cached_property
    def offset(self) -> Float[Array, " c"]:
        """m^a of all parts, stacked."""
        return np.concatenate(self.looks.means)

    @cached_property
    def variance(self) -> Float[Array, " c"]:
        """D^a of all parts, stacked."""
        return np.concatenate(self.looks.variances)

    def codes(self, factors: Float[Array, "*b l"]) -> Float[Array, "*b c"]:
        """The expected code of a face with these factors."""
        return np.asarray(factors) @ self.loadings.T + self.offset

    def expected_factors(self, codes: Float[Array, "*b c"]) -> Float[Array, "*b l"]:
        """The mean of y^a given the codes of all parts."""
        return expected_factors(self.loadings, self.offset, self.variance, codes)

    def sample(self, rng: np.random.Generator, count: int) -> Float[Array, "n c"]:
        """Codes of faces drawn from the model."""
        factors = rng.standard_normal((count, self.factors))
        noise = rng.standard_normal((count, self.width)) * np.sqrt(self.variance)
        return self.codes(factors) + noise

    @cached_property
    def _drawing(self) -> list[tuple[Array, Array, Array]]:
        """For every part the pixels it can cover, and their mean and basis images as a matrix."""
        out = []
        for mean, basis in zip(self.means, self.bases, strict=True):
            inside = np.flatnonzero((mean != 0) | (basis != 0).any(0))
            flat = basis.reshape(len(basis), -1)[:, inside]
            out.append((inside, mean.ravel()[inside], np.ascontiguousarray(flat)))
        return out

    def picture(self, code: Float[Array, " c"]) -> Float[Array, "H W"]:
        """The face with this code, times its opacity."""
        out = np.zeros(SIZE * SIZE, np.float32)
        codes = np.split(np.asarray(code, np.float32), self.stops[:-1])
        for mine, (inside, mean, basis) in zip(codes, self._drawing, strict=True):
            out[inside] += mean + mine @ basis
        return np.clip(out.reshape(SIZE, SIZE), 0.0, self.opacity)

    def portrait(self, code: Float[Array, " c"]) -> Float[Array, "H W"]:
        """The face with this code, on the background."""
        return self.picture(code) + (1 - self.opacity) * BACKGROUND

    @cached_property
    def extent(self) -> tuple[Float[Array, " 2"], float]:
        """The middle of the face in the frame, and the radius of a circle around all of it."""
        outline = points_of(self.opacity > 0.5)
        middle = (outline.min(0) + outline.max(0)) / 2
        return middle, float(np.linalg.norm(outline - middle, axis=1).max())

    @cached_property
    def _spots(self) -> list[Float[Array, "n 2"]]:
        """Every seventh pixel of each part's area, in the frame."""
        return [points_of(area)[::7] for area in self.areas]

    @property
    def spots(self) -> Float[Array, "n 2"]:
        """Points all over the parts, part after part, to see how much of each is covered."""
        return np.concatenate(self._spots)

    @property
    def spot_stops(self) -> list[int]:
        """Where the spots of each part begin, and where the last end."""
        return [0, *np.cumsum([len(s) for s in self._spots]).tolist()]

    @cached_property
    def template(self) -> Template:
        """A face: five typed parts. Each is as large as the canvas it is cut from, and upright."""
        ones = np.ones(len(PARTS))
        return Template.directed(
            self.positions, ones, 0 * ones, "face", types=PARTS, appearance=self.looks
        )

    def scene_model(self, faces: int, occluded: bool = False) -> Model:
        """Scenes of ``faces`` faces; if ``occluded``, some of their parts are not seen."""
        return Model(
            [self.template],
            instances=[faces],
            noise=Noise(SIGMA, follows_scale=False),
            presence=0.99,
            missing=UNSEEN if occluded else 0.0,
            prior=PosePrior(np.array([0.0, 0.0, 1.0, 0.0]), np.ones(4)),
        )
