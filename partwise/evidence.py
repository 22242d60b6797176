"""The evidence of one match, in closed form: the pose is integrated out, nothing is iterated.

A *match* says that some points are some parts of one object. Its evidence p(points | match, sigma)
is the integral over all poses. Axes that trail along (``*h``) are many matches at once; they
broadcast. n parts, g geometric features, d pose numbers.

Two kinds of noise:

``TemplateNoise``
    Similarity poses and noise in the template's frame (sec. 7.1.1: the template is corrupted, then
    transformed). With positions as complex numbers the inverse transform ``w (x - t)``, where
    ``w = exp(i theta) / s``, must give the template's part up to noise. That is linear in w:

        p(x | w) ~ |w|^(2 (n - 1)) exp(-|w xc - pc|^2 / (2 sigma^2)) / n,

    xc and pc centred, after integration over a uniform translation. Turn uniform and log scale
    uniform is a density ~ |w|^-2 over w. What is left is a moment of even order of a Gaussian in
    the plane: a polynomial.

``SceneNoise``
    Any linear pose, noise of constant size in the scene (eq. 3), and a Gaussian prior over poses: a
    linear Gaussian model.

The appearance, where there is any, is a factor analyser (eq. 4) and so again linear and Gaussian.
"""

from __future__ import annotations

from math import comb, factorial, gamma, log, pi
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from partwise._small import inverse_and_logdet, largest, total
from partwise._types import Array
from partwise.frames import object_radius, scene_radius
from partwise.model import Model
from partwise.poses import Similarity2D
from partwise.problem import Problem, Slots

__all__ = [
    "Match",
    "SceneNoise",
    "TemplateNoise",
    "appearance_evidence",
    "log_scene_volume",
    "noise_levels",
    "noise_model",
]

SIGMAS = np.geomspace(1e-3, 0.4, 14)
"""Noise levels to average over where the noise is not known, in units of the templates' radius."""

SCALE_RANGE = log(100.0)
"""The width of the uniform prior over log scale: the largest object against the smallest."""

MISMATCH = -1e4
"""The log evidence of matching parts of different types."""


class Match(NamedTuple):
    """Parts of a template, the points they are matched with, and which of them are seen at all.

    ``design`` and ``mean`` are the rows of ``Slots``; ``seen`` is 1 or 0, or None for all.
    """

    design: Float[Array, "n G d *h"]
    mean: Float[Array, "n G *h"]
    x: Float[Array, "n G *h"]
    seen: Float[Array, "n *h"] | None = None


def noise_model(model: Model):
    """How the model's noise enters the evidence."""
    follows = model.noise.follows_scale and model.prior is None
    return TemplateNoise if follows and isinstance(model.pose, Similarity2D) else SceneNoise


def noise_levels(problem: Problem) -> Float[np.ndarray, "B s"]:
    """The noise levels to average over, scene by scene, in the solvers' frame.

    Where noise follows the scale of a pose that is not a similarity, objects count as nominal size.
    """
    model, count = problem.model, len(problem)
    template = noise_model(model) is TemplateNoise
    nominal = 1.0 if template else object_radius(model)
    if model.noise.sigma is None:
        # Below 1e-3 of the scene's unit a general linear pose is lost in single precision.
        levels = SIGMAS if template else np.geomspace(5e-3, SIGMAS[-1], len(SIGMAS))
        return np.tile(levels * nominal, (count, 1)).astype(np.float32)
    if model.noise.follows_scale and model.prior is None:
        unit = np.full(count, model.unit / nominal)
    else:
        unit = problem.frames.unit
    least = SIGMAS[0] / 10 if template else 5e-3 * nominal
    return np.maximum(model.noise.sigma / unit, least)[:, None].astype(np.float32)


def log_scene_volume(model: Model, points: int) -> float:
    """The log volume of a ball whose points spread like the scene's, in the solvers' frame."""
    dim = model.pose.scene_dim
    squared = (dim + 2) / dim * scene_radius(model, points) ** 2
    return log(pi ** (dim / 2) / gamma(dim / 2 + 1)) + dim / 2 * log(squared)


def _directions(a: Float[Array, "n g *h"]) -> Float[Array, "n 2 *h"]:
    """Size and orientation as vectors that turn like positions do (eq. 2: y-axis down)."""
    return jnp.stack([a[:, 2], -a[:, 3]], 1)


class TemplateNoise(NamedTuple):
    """Statistics of a match: everything but sigma. ``vectors`` counts positions and directions."""

    vectors: Float[Array, "*h"] | int
    parts: Float[Array, "*h"] | int
    xx: Float[Array, "*h"]
    pp: Float[Array, "*h"]
    xp: Float[Array, "*h"]
    log_volume: float
    log_smallest: float
    most: int

    @classmethod
    def of(cls, slots: Slots, match: Match, log_volume: float) -> TemplateNoise:
        """Centred squared lengths |x|^2 and |p|^2, and |sum conj(x) p|^2."""
        n, g = match.x.shape[0], slots.geometry
        p, x = match.design[:, 0, 2:4], match.x[:, :2]
        if match.seen is None:
            parts = n
            p_mean, x_mean = total(p, 0) / n, total(x, 0) / n
            pc, xc = p - p_mean[None], x - x_mean[None]
        else:
            seen = match.seen[:, None]
            parts = total(match.seen, 0)
            safe = jnp.maximum(parts, 1.0)
            pc = (p - (total(p * seen, 0) / safe)[None]) * seen
            xc = (x - (total(x * seen, 0) / safe)[None]) * seen
        if g == 4:
            pd = _directions(jnp.stack([match.design[:, i, 2] for i in (0, 1, 2, 3)], 1))
            xd = _directions(match.x[:, :g])
            if match.seen is not None:
                pd, xd = pd * match.seen[:, None], xd * match.seen[:, None]
            pc, xc = jnp.concatenate([pc, pd]), jnp.concatenate([xc, xd])
        dot = total(total(pc * xc, 1), 0)
        cross = total(pc[:, 0] * xc[:, 1] - pc[:, 1] * xc[:, 0], 0)
        per_part = 2 if g == 4 else 1
        return cls(
            parts * per_part,
            parts,
            jnp.maximum(total(total(xc * xc, 1), 0), 1e-20),
            total(total(pc * pc, 1), 0),
            dot * dot + cross * cross,
            log_volume,
            # The largest scale there may be is the radius of a disc of the scene's volume.
            0.5 * (log_volume - log(pi)) - SCALE_RANGE,
            n * per_part,
        )

    @property
    def misfit(self) -> Float[Array, "*h"]:
        """The least |w xc - pc|^2: the squared residual in the template's frame."""
        return jnp.maximum(self.pp - self.xp / self.xx, 0.0)

    def factors(self, sigma: Float[Array, "*#h"] | np.floating) -> tuple[Array, Array | float]:
        """p(points | match, sigma) as (log of one factor, another factor)."""
        variance = sigma**2
        high = jnp.maximum(self.vectors - 2, 0)
        log_rest = (
            -self.log_volume
            - log(2 * pi * SCALE_RANGE)
            - jnp.log(jnp.maximum(self.parts, 1.0))
            - jnp.log(self.xx)
            - high * (jnp.log(self.xx) + log(pi))
        )
        log_moment, moment = self._moment(self.xp / (self.xx * 2 * variance))
        log_factor = log_rest + log_moment - self.misfit / (2 * variance)
        # The prior over scales has an end: the object's scale is about |xc|^2 / |sum conj(xc) pc|.
        log_scale = jnp.log(self.xx) - 0.5 * jnp.log(jnp.maximum(self.xp, 1e-30))
        log_factor = log_factor - 1e3 * jnp.maximum(self.log_smallest - log_scale, 0.0)
        # One position fits anywhere, at any scale.
        return jnp.where(self.vectors < 2, -self.log_volume - jnp.log(moment), log_factor), moment

    def log_evidence(self, sigma: Float[Array, "*#h"] | np.floating) -> Float[Array, "*h"]:
        """log p(points | match, sigma)."""
        log_factor, factor = self.factors(sigma)
        return log_factor + jnp.log(factor)

    def _moment(self, q: Float[Array, "*h"]) -> tuple[Array | float, Array | float]:
        """E|w|^(2 m) / (2 tau^2)^m, m = vectors - 2, for w ~ N(w0, tau^2 I) in the plane.

        E|w|^(2 m) = sum_j C(m, j)^2 j! (2 tau^2)^j |w0|^(2 (m - j)), with tau^2 = sigma^2 / |x|^2
        and q = |w0|^2 / (2 tau^2). Returned as (log of one factor, another factor).
        """
        if isinstance(self.vectors, int) and self.vectors - 2 <= 4:
            return 0.0, _horner(max(self.vectors - 2, 0), q)
        if isinstance(self.vectors, int):
            return _log_polynomial(self.vectors - 2, q), 1.0
        out = jnp.zeros_like(q)
        for m in range(1, max(self.most - 2, 0) + 1):
            out = jnp.where(self.vectors - 2 >= m - 0.5, _log_polynomial(m, q), out)
        return out, 1.0


def _coefficients(m: int) -> list[float]:
    """Of the polynomial sum_j C(m, j)^2 j! q^(m - j), from the highest power of q down."""
    return [float(comb(m, j)) ** 2 * factorial(j) for j in range(m + 1)]


def _horner(m: int, q: Float[Array, "*h"]) -> Float[Array, "*h"]:
    out = jnp.ones_like(q)
    for c in _coefficients(m)[1:]:
        out = out * q + c
    return out


def _log_polynomial(m: int, q: Float[Array, "*h"]) -> Float[Array, "*h"]:
    """For m above 4 the powers overflow single precision: summed in logs."""
    if m <= 4:
        return jnp.log(_horner(m, q))
    log_q = jnp.log(jnp.maximum(q, 1e-30))
    logs = jnp.stack([log(c) + (m - j) * log_q for j, c in enumerate(_coefficients(m))])
    top = largest(logs, 0)
    return top + jnp.log(total(jnp.exp(logs - top[None]), 0))


class SceneNoise(NamedTuple):
    """Statistics of a match under a linear Gaussian model: everything but sigma."""

    count: Float[Array, "*h"] | int
    design: Float[Array, "n g d *h"]
    x: Float[Array, "n g *h"]
    votes: Float[Array, "d *h"]
    gram: Float[Array, "d d *h"]
    prior_precision: Float[Array, " d"]

    @classmethod
    def of(cls, slots: Slots, match: Match, log_volume: float) -> SceneNoise:
        """sum |x - F mu_0 - o|^2, sum F^T (x - F mu_0 - o), sum F^T F."""
        del log_volume  # the prior over poses says where objects are
        g, d = slots.geometry, slots.pose_dim
        f = match.design[:, :g, :d]
        batch = match.x.ndim - 2
        mu0 = jnp.reshape(slots.prior_mean[:d], (d, *(1,) * batch))
        x = match.x[:, :g] - match.mean[:, :g] - total(f * mu0[None, None], 2)
        count: Array | int = match.x.shape[0] * g
        if match.seen is not None:
            f, x = f * match.seen[:, None, None], x * match.seen[:, None]
            count = total(match.seen, 0) * g
        votes = total(total(f * x[:, :, None], 1), 0)
        gram = total(total(f[:, :, :, None] * f[:, :, None], 1), 0)
        return cls(count, f, x, votes, gram, slots.prior_precision[:d])

    def log_evidence(self, sigma: Float[Array, "*#h"] | np.floating) -> Float[Array, "*h"]:
        """log N(x; F mu_0 + o, F D_0 F^T + sigma^2 I)."""
        precision = 1 / sigma**2
        inverse, logdet = _posterior(self.votes, self.gram, self.prior_precision, precision)
        # By the residual: x^T x minus what is explained would cancel in single precision.
        pose = precision * total(inverse * self.votes[None], 1)
        away = self.x - total(self.design * pose[None, None], 2)
        prior = jnp.reshape(self.prior_precision, (-1, *(1,) * (pose.ndim - 1)))
        square = precision * total(total(away * away, 1), 0) + total(prior * pose * pose, 0)
        log_prior = jnp.log(self.prior_precision).sum()
        return 0.5 * (self.count * jnp.log(precision / (2 * pi)) + log_prior - logdet - square)

    def factors(self, sigma: Float[Array, "*#h"] | np.floating) -> tuple[Array, Array | float]:
        """p(points | match, sigma) as (log of one factor, another factor)."""
        return self.log_evidence(sigma), 1.0


def _posterior(votes, gram, prior_precision, precision):
    """Covariance of z, and log |precision|, for x = F z + noise, z ~ N(0, 1 / prior_precision)."""
    d, batch = len(prior_precision), votes.ndim - 1
    eye = jnp.reshape(jnp.eye(d), (d, d, *(1,) * batch))
    prior = jnp.reshape(prior_precision, (d, 1, *(1,) * batch))
    inverse, logdet = inverse_and_logdet((prior * eye + precision * gram)[None])
    return inverse[0], logdet[0]


def appearance_evidence(
    slots: Slots, match: Match, inverse_variance: Float[Array, "n f *#h"]
) -> Float[Array, "*h"]:
    """log N(x^a; m, F^a F^a^T + D^a) of the matched parts, the factors shared by all of them."""
    g, d = slots.geometry, slots.pose_dim
    f, x = match.design[:, g:, d:], match.x[:, g:] - match.mean[:, g:]
    inverse = inverse_variance
    if match.seen is not None:
        inverse = inverse * match.seen[:, None]
    used = inverse > 0
    half_log_det = 0.5 * total(
        total(jnp.where(used, jnp.log(jnp.where(used, inverse, 1.0) / (2 * pi)), 0.0), 1), 0
    )
    weighted = f * inverse[:, :, None]
    votes = total(total(weighted * x[:, :, None], 1), 0)
    gram = total(total(weighted[:, :, :, None] * f[:, :, None], 1), 0)
    xx = total(total(inverse * x * x, 1), 0)
    inverse_, logdet = _posterior(votes, gram, slots.prior_precision[d:], 1.0)
    explained = total(votes * total(inverse_ * votes[None], 1), 0)
    log_prior = jnp.log(slots.prior_precision[d:]).sum()
    return half_log_det + 0.5 * (log_prior - logdet - xx + explained)
