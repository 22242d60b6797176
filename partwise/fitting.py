"""Poses of given matches by regularised least squares, for many objects at once."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from partwise.problem import Problem

__all__ = ["fit_poses", "normal_equations"]

Array = np.ndarray

RIDGE = 1e-6
"""Keeps the pose of an object with too few parts finite: least squares of minimal norm."""


def fit_poses(
    problem: Problem, objects: Int[Array, " K"], parts: Int[Array, "B K P"]
) -> Float[Array, "B K d"]:
    """The pose of object ``objects[k]`` of the model, given which point is which part.

    Geometry by least squares; appearance factors by their posterior mean, which is least squares
    with prior precision 1 (Williams, Nash and Nazabal 2019). Objects without parts get zeros.
    """
    gram, votes = normal_equations(problem, objects, parts)
    return np.linalg.solve(gram, votes[..., None])[..., 0]


def normal_equations(
    problem: Problem, objects: Int[Array, " K"], parts: Int[Array, "B K P"]
) -> tuple[Float[Array, "B K d d"], Float[Array, "B K d"]]:
    """The two sides, ``gram y = votes``, of the least squares that :func:`fit_poses` solves."""
    slots, g, dim = problem.slots, problem.slots.geometry, problem.slots.pose_dim
    seen = (parts >= 0).astype(float)
    first = np.concatenate([[0], np.cumsum(slots.sizes)])[objects]
    widest = parts.shape[2]
    slot = np.minimum(first[:, None] + np.arange(widest), len(slots.object) - 1)  # K P
    x = np.take_along_axis(
        problem.points[:, None].astype(float), np.maximum(parts, 0)[..., None], 2
    )  # B K P G
    design, mean = slots.design[slot].astype(float), slots.mean[slot].astype(float)
    precision = np.ones(design.shape[:3])  # K P G
    precision[..., g:] = slots.inverse_variance[slot]
    weight = seen[..., None] * precision
    gram = np.einsum("bkpg,kpgi,kpgj->bkij", weight, design, design, optimize=True)
    votes = np.einsum("bkpg,kpgi,bkpg->bki", weight, design, x - mean, optimize=True)
    ridge = np.ones(design.shape[-1])
    ridge[:dim] = RIDGE * 1e-3
    return gram + np.diag(ridge), votes
