"""Algorithm 3, lines 9 to 11: the pose of a basis, its prediction, and SubsetMatch.

``B_k y = x_ij`` gives a pose, the pose predicts the other parts, and each of them takes the nearest
free point within the tolerance. The pose is then refitted on all matched parts by least squares,
for its residual to be compared with others' (sec. 5).

Arrays are (bases b, ..., tuples C, scenes B). Poses and predictions are matrix products and the
nearest points a loop over points: XLA fuses neither into what follows, and so computes them once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, log, pi
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from partwise._small import inverse_and_logdet, over, total
from partwise._types import Array
from partwise.solvers.ransac.bases import Plan
from partwise.solvers.ransac.setting import Options, Scene

__all__ = ["Hypotheses", "hypotheses"]

_CHANCE = 0.1
"""How many hypotheses per scene chance alone may give (a contrario RANSAC)."""


class Hypotheses(NamedTuple):
    """One for every basis and tuple: which point is which part (in the order of the basis).

    ``cost`` is what to sort by, infinite where SubsetMatch failed; ``error`` is the squared
    residual in the template's frame.
    """

    cost: Float[Array, "b C B"]
    error: Float[Array, "b C B"]
    significance: Float[Array, "b C B"]
    parts: list[Any]


class _Matches(NamedTuple):
    """For each part its point (-1 for none), whether there is one, and where."""

    index: list[Any]
    weight: list[Any]
    x: Float[Array, "b Pg C B"]


def hypotheses(plan: Plan, tuples: Int[Array, "C B"], scene: Scene, opt: Options) -> Hypotheses:
    """What all bases of one template make of a block of tuples of points."""
    (count, parts, g, d), size = plan.design.shape, tuples.shape[1]
    mean = plan.mean.reshape(count, parts * g)[..., None, None]
    design = plan.design.reshape(count, parts * g, d)
    given = jnp.concatenate([scene.x[:, tuples[:, j]] for j in range(size)])
    # B_k y = x_ij (line 9), and the prediction of the other parts (line 10).
    pose = _times(plan.pose, given[None] - mean[:, : size * g])
    square, valid = _scale2(plan, pose, opt)
    valid = valid & _usable(plan, tuples, scene, opt)
    predicted = _times(design[:, size * g :], pose) + mean[:, size * g :]
    match = _subset_match(plan, tuples, given, predicted, square, scene, opt)
    matched = sum(match.weight)
    valid = valid & (matched >= (parts if opt.whole else min(parts, size + 1)))
    found = match.x - mean
    if opt.refit and parts > size:
        pose = _times(plan.refit, found) if opt.whole else _refit(plan, found, match.weight)
        square, good = _scale2(plan, pose, opt)
        valid = valid & good
    away = (found - _times(design, pose)) ** 2
    residual = sum(match.weight[n] * away[:, n * g + r] for n in range(parts) for r in range(g))
    error = residual / jnp.where(square > 0, square, 1.0)
    significance = _significance(plan, size, matched, error, square, scene, opt.scene_dim)
    cost = jnp.where(valid, error if opt.whole else -significance, jnp.inf)
    return Hypotheses(cost, error, significance, match.index)


def _times(matrix, values):
    """``matrix (b, r, c)`` times ``values (b, c, C, B)``, as a matrix product."""
    return jnp.einsum("brc,bcts->brts", matrix, values)


def _usable(plan: Plan, tuples, scene: Scene, opt: Options) -> Bool[Array, "b C B"]:
    """Whether the points of a tuple are there, free and of the types of the basis."""
    columns = tuples.T
    valid = ((columns[0] >= 0)[:, None] & scene.open[columns].all(0))[None]
    if opt.typed:
        for j, points in enumerate(columns):
            valid = valid & (scene.kind[points][None] == plan.kind[:, j, None, None])
    return valid


def _subset_match(plan: Plan, tuples, given, predicted, square, scene: Scene, opt: Options):
    """SubsetMatch (line 11): each predicted part takes the nearest point that no other part has."""
    (count, parts, g, _), size = plan.design.shape, tuples.shape[1]
    reach = scene.tol2 * jnp.where(square > 0, square, 1.0)
    index = [jnp.broadcast_to(tuples[None, :, j, None], square.shape) for j in range(size)]
    weight = [jnp.ones_like(square)] * size
    found = [jnp.broadcast_to(given[None], (count, *given.shape))]
    for n in range(size, parts):

        def free(m, n=n):
            mine = scene.open[m] & jnp.stack([taken != m for taken in index]).all(0)
            return mine & (scene.kind[m] == plan.kind[:, n, None, None]) if opt.typed else mine

        here = predicted[:, (n - size) * g : (n - size + 1) * g]
        distance, nearest, position = _nearest(scene.x, list(jnp.moveaxis(here, 1, 0)), free)
        near = distance <= reach
        index.append(jnp.where(near, nearest, -1))
        weight.append(near.astype(scene.x.dtype))
        found.append(jnp.stack(position, 1))
    return _Matches(index, weight, jnp.concatenate(found, 1))


def _nearest(x, predicted: list, free: Callable):
    """For each prediction, the nearest free point: its squared distance, index and features."""
    g, points = x.shape[:2]

    def visit(m, best):
        distance, index, position = best
        away = sum((predicted[i] - x[i, m]) ** 2 for i in range(g))
        closer = free(m) & (away < distance)
        return (
            jnp.where(closer, away, distance),
            jnp.where(closer, m, index),
            [jnp.where(closer, x[i, m], position[i]) for i in range(g)],
        )

    zero = jnp.zeros_like(predicted[0])
    none = jnp.full(zero.shape, -1, jnp.int32)
    return jax.lax.fori_loop(0, points, visit, (zero + jnp.inf, none, [zero] * g))


def _refit(plan: Plan, x, weight: list) -> Float[Array, "b d C B"]:
    """The pose that fits the matched parts (those of weight 1) best: normal equations."""
    count, parts, g, d = plan.design.shape
    inner = jnp.einsum("bngi,bngj->bijn", plan.design, plan.design).reshape(count, d * d, parts)
    stacked = plan.design.reshape(count, parts * g, d).swapaxes(1, 2)
    seen = jnp.stack(weight, 1)
    gram = _times(inner, seen).reshape(count, d, d, *x.shape[2:]) + over(1e-6 * jnp.eye(d), 2)
    votes = _times(stacked, x * jnp.repeat(seen, g, 1))
    return total(inverse_and_logdet(gram)[0] * votes[:, None], 2)


def _scale2(plan: Plan, pose, opt: Options) -> tuple[Float[Array, "b C B"], Bool[Array, "b C B"]]:
    """The squared scale of a pose, and whether it is one.

    It may not be a point, nor a flat affine map (eq. 2 cannot reflect).
    """
    _, parts, g, d = plan.design.shape
    square = jnp.ones_like(pose[:, 0])
    if opt.scales:
        terms = (
            plan.spread[i, j] * (1 if i == j else 2) * pose[:, i] * pose[:, j]
            for i in range(d)
            for j in range(i, d)
        )
        square = sum(terms, start=jnp.zeros_like(square))
    good = jnp.isfinite(square)
    if opt.scales and parts * g > d:
        good &= square > 1e-10
    if opt.linear and parts * g > d:
        # 0.2 stands for axes that are stretched one against the other by ten.
        good &= _roundness(pose, opt.scene_dim) > 0.2
    return square, good


def _roundness(pose, rows: int):
    """How far a linear map is from flat: det(A A^T)^(1/r) over the mean of its diagonal, 0 to 1."""
    a = pose[:, rows:].reshape(len(pose), rows, -1, *pose.shape[2:])
    gram = [[total(a[:, i] * a[:, j], 1) for j in range(rows)] for i in range(rows)]
    if rows == 2:
        det = gram[0][0] * gram[1][1] - gram[0][1] ** 2
    else:
        det = (
            gram[0][0] * (gram[1][1] * gram[2][2] - gram[1][2] ** 2)
            - gram[0][1] * (gram[0][1] * gram[2][2] - gram[1][2] * gram[0][2])
            + gram[0][2] * (gram[0][1] * gram[1][2] - gram[1][1] * gram[0][2])
        )
    mean = sum(gram[r][r] for r in range(rows)) / rows
    return jnp.maximum(det, 0.0) ** (1 / rows) / jnp.maximum(mean, 1e-30)


def _significance(plan: Plan, size: int, matched, error, square, scene: Scene, dim: int):
    """Minus log of how many such hypotheses chance alone would give (a contrario RANSAC).

    A point drawn evenly over the scene falls within the hypothesis' own residual radius of a
    prediction with probability p; ``matched - size`` of them did.
    """
    bases, parts, g, d = plan.design.shape
    if parts <= size:  # It cannot be checked: it is taken for what it is.
        return jnp.full_like(error, 1e-3)
    dof = jnp.maximum(matched * g - d, 1)
    radius2 = dim * square * jnp.maximum(error / dof, 1e-4 * scene.tol2)
    ball = {2: pi, 3: 4 / 3 * pi}[dim]
    chance = jnp.minimum(ball * radius2 ** (dim / 2) * scene.density, 1.0)
    tests = log(max(comb(scene.x.shape[1], size), 1)) + log(bases) - log(_CHANCE)
    subsets = sum(
        log(comb(parts - size, n - size)) * (matched == n) for n in range(size + 1, parts)
    )
    return -(matched - size) * jnp.log(chance) - tests - subsets
