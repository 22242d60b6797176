"""After Algorithm 3: what an object looks like, given some of its parts (sec. 5, faces)."""

from __future__ import annotations

import zlib

import numpy as np
from jaxtyping import Float, Int

from partwise.fitting import normal_equations
from partwise.problem import Problem

__all__ = ["appearance", "noise_of"]


def appearance(
    problem: Problem,
    parts: Int[np.ndarray, "B K P"],
    noise: Float[np.ndarray, "B K l"] | float = 0.0,
) -> Float[np.ndarray, "B K l"]:
    """The factors of each object given its matched parts: the posterior of factor analysis.

    ``y = (I + sum F^T D^-1 F)^-1 sum F^T D^-1 (x - m)``, over the parts that are there (sec. 5,
    Williams et al. 2019); plus ``noise`` (standard normal) in the posterior's covariance.
    """
    dim = problem.slots.pose_dim
    gram, votes = normal_equations(problem, np.arange(parts.shape[1]), parts)
    covariance = np.linalg.inv(gram[..., dim:, dim:])
    noise = np.broadcast_to(noise, (*parts.shape[:2], covariance.shape[-1]))
    sample = np.linalg.cholesky(covariance) @ noise[..., None]
    return (covariance @ votes[..., dim:, None] + sample)[..., 0]


def noise_of(problem: Problem, seed: int) -> Float[np.ndarray, "B K l"]:
    """Standard normal noise that depends on the scene, not on its place in the batch."""
    slots = problem.slots
    shape = len(slots.sizes), slots.design.shape[2] - slots.pose_dim
    out = np.zeros((len(problem), *shape))
    for b, points in enumerate(problem.points):
        code = zlib.crc32(np.round(points, 3).tobytes())
        out[b] = np.random.default_rng([seed, code]).standard_normal(shape)
    return out
