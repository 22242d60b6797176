"""Algorithm 3, its loops and its result ``out`` (lines 4 to 8, 12 and 17): the best hypotheses.

All tuples are tried in blocks; the best of each template are kept, and of those about the same
points only one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from partwise._checks import one_of
from partwise._types import Array
from partwise.problem import Problem
from partwise.solvers.ransac.bases import Bases, Plan, plans, search_order
from partwise.solvers.ransac.matching import hypotheses
from partwise.solvers.ransac.setting import (
    Options,
    Scene,
    Scenes,
    options,
    over_scenes,
    scene,
    tolerance2,
)

__all__ = ["Candidates", "Found", "candidates", "distinct", "point_sets", "search", "take", "widen"]


class Candidates(NamedTuple):
    """Hypotheses that passed SubsetMatch, best first, distinct in (template, set of points).

    ``template`` counts in the order of ``model.templates``; ``parts[b, h, n]`` is the point that is
    part n, -1 where it is missing; ``error`` is the squared residual in the template's frame, of
    the pose that fits them best (``partwise.fitting``).
    """

    template: Int[np.ndarray, "B H"]
    parts: Int[np.ndarray, "B H P"]
    error: Float[np.ndarray, "B H"]
    valid: Bool[np.ndarray, "B H"]


def candidates(problem: Problem, bases: Bases = "all", limit: int = 256) -> Candidates:
    """The ``limit`` best hypotheses of every scene, before any are combined."""
    one_of("ransac: bases", bases, {"fixed", "all"})
    model = problem.model
    search_all = partial(
        _candidates,
        plans(model, problem.size, bases),
        tolerance2(model, None),
        tuple(search_order(model)),
        limit,
        options(model, refit=True),
    )
    return Candidates(*over_scenes(problem, search_all))


class Found(NamedTuple):
    """Hypotheses of one template, batch first; ``basis`` marks the parts that proposed the pose."""

    cost: Float[Array, "B H"]
    error: Float[Array, "B H"]
    significance: Float[Array, "B H"]
    parts: Int[Array, "B H P"]
    basis: Bool[Array, "B H P"]


def take(tree: Any, chosen: Int[Array, "B L"]) -> Any:
    """The rows ``chosen`` of each scene, from a pytree of (B, H, ...) arrays."""

    def rows(a):
        return jnp.take_along_axis(a, chosen.reshape(*chosen.shape, *[1] * (a.ndim - 2)), 1)

    return jax.tree.map(rows, tree)


def search(plan: Plan, scene: Scene, limit: int, opt: Options) -> Found:
    """The ``limit`` best hypotheses of one template in every scene."""
    size, width = plan.tuples.shape[2], plan.tuples.shape[1]
    place = jnp.argsort(plan.order, axis=1)

    def block(tuples) -> Found:
        tried = jax.tree.map(
            lambda a: a.reshape(-1, a.shape[-1]).T, hypotheses(plan, tuples, scene, opt)
        )
        _, chosen = jax.lax.top_k(-tried.cost, min(limit, tried.cost.shape[1]))
        best, own = take(tried, chosen), place[chosen // width]
        parts = jnp.take_along_axis(jnp.stack(best.parts, -1), own, 2)
        return Found(best.cost, best.error, best.significance, parts, own < size)

    if plan.tuples.shape[0] == 1:
        return _settled(block(plan.tuples[0]), plan, scene.x.shape[1])
    found = jax.tree.map(
        lambda a: jnp.moveaxis(a, 0, 1).reshape(a.shape[1], -1, *a.shape[3:]),
        jax.lax.map(block, plan.tuples),
    )
    return _settled(_top(found, limit), plan, scene.x.shape[1])


def _settled(found: Found, plan: Plan, points: int) -> Found:
    """Of labellings that are one and the same (a square, turned), always the same one.

    Their errors differ by rounding only; the one that gives the first points to the first parts
    is chosen instead.
    """
    if plan.turns.shape[0] == 1:
        return found
    named = found.parts[..., plan.turns]
    key = jnp.zeros(named.shape[:-1])
    for n in range(min(named.shape[-1], 3)):
        key = key + (named[..., n] + 1.0) / (points + 1.0) ** n
    turn = plan.turns[key.argmin(-1)]
    parts, basis = (jnp.take_along_axis(a, turn, 2) for a in (found.parts, found.basis))
    return found._replace(parts=parts, basis=basis)


def _top(found: Found, limit: int) -> Found:
    """The ``limit`` of lowest cost."""
    return take(found, jax.lax.top_k(-found.cost, min(limit, found.cost.shape[1]))[1])


def point_sets(parts: Int[Array, "B H P"], points: int) -> Int[Array, "B H words"]:
    """Sets of points as bit words."""
    bits = jnp.where(parts >= 0, jnp.left_shift(1, parts % 31), 0)
    word = jnp.where(parts >= 0, parts // 31, -1)
    return jnp.stack([(bits * (word == w)).sum(-1) for w in range(-(-points // 31))], -1)


def distinct(plans: tuple[Plan, ...], scene: Scene, limit: int, opt: Options) -> list[Found]:
    """For every template, its ``limit`` best hypotheses about different points."""
    points = scene.x.shape[1]
    return [_top(_unrivalled(search(p, scene, 2 * limit, opt), points), limit) for p in plans]


def _unrivalled(found: Found, points: int) -> Found:
    """Of hypotheses about the same points only that of lowest error (others get infinite cost)."""
    words = point_sets(found.parts, points)
    same = jnp.ones((), bool)
    for w in range(words.shape[-1]):
        same = same & (words[:, :, None, w] == words[:, None, :, w])
    error = jnp.where(jnp.isfinite(found.cost), found.error, jnp.inf)
    rank = jnp.arange(error.shape[1])
    better = (error[:, None] < error[:, :, None]) | (
        (error[:, None] == error[:, :, None]) & (rank[None, None] < rank[None, :, None])
    )
    beaten = (same & better).any(2)
    return found._replace(cost=jnp.where(beaten, jnp.inf, found.cost))


def widen(parts: Array, widest: int, fill) -> Array:
    """``parts (B, H, P)`` with as many columns as the largest template has parts."""
    return jnp.pad(parts, ((0, 0), (0, 0), (0, widest - parts.shape[2])), constant_values=fill)


@partial(jax.jit, static_argnames=("ids", "limit", "opt"))
def _candidates(plans, tol2, ids: tuple[int, ...], limit: int, opt: Options, scenes: Scenes):
    """The hypotheses of all templates in one table, best first."""
    found = distinct(plans, scene(scenes, tol2, opt.scene_dim), limit, opt)
    widest = max(f.parts.shape[2] for f in found)
    template = jnp.concatenate(
        [jnp.full(f.cost.shape, t) for t, f in zip(ids, found, strict=True)], 1
    )
    parts = jnp.concatenate([widen(f.parts, widest, -1) for f in found], 1)
    cost, error = (jnp.concatenate([f[i] for f in found], 1) for i in range(2))
    # Errors of templates of different size compare per part.
    key = jnp.where(
        jnp.isfinite(cost), error / (parts >= 0).sum(-1) if opt.whole else cost, jnp.inf
    )
    _, order = jax.lax.top_k(-key, min(limit, key.shape[1]))
    template, parts, error, valid = take((template, parts, error, jnp.isfinite(key)), order)
    return (
        jnp.where(valid, template, -1),
        jnp.where(valid[..., None], parts, -1),
        jnp.where(valid, error, jnp.inf),
        valid,
    )
