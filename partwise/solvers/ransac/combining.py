"""After Algorithm 3: its hypotheses combined into one explanation of the scene (sec. 5).

Either the best set of disjoint hypotheses, or sequential RANSAC: the best one, then again without
its points.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from partwise._types import Array
from partwise.solvers.ransac.candidates import Found, distinct, point_sets, search, take, widen
from partwise.solvers.ransac.setting import Options, Scenes, scene

__all__ = ["Objects", "best_set", "sequential"]

WIDTH = 64
"""How many sets of hypotheses are kept on the way to the best one."""


class Objects(NamedTuple):
    """The objects of each scene, templates in the order of the search; -1 where there is none."""

    parts: Int[Array, "B K P"]
    basis: Bool[Array, "B K P"]
    error: Float[Array, "B K"]


def _objects(found: list[Found], taken: list[Bool[Array, "B H"]], copies: tuple[int, ...]):
    """What was taken of each template's hypotheses, those first that are there."""
    out = []
    widest = max(f.parts.shape[2] for f in found)
    for f, here, count in zip(found, taken, copies, strict=True):
        first = jnp.argsort(~here, axis=1)[:, :count]
        f, here = take((f, here), first)
        parts = jnp.where(here[..., None], f.parts, -1)
        basis = f.basis & here[..., None]
        error = jnp.where(here, f.error, 0.0)
        out.append(Objects(widen(parts, widest, -1), widen(basis, widest, False), error))
    return jax.tree.map(lambda *a: jnp.concatenate(a, 1), *out)


@partial(jax.jit, static_argnames=("copies", "opt", "limit"))
def best_set(
    plans, tol2, copies: tuple[int, ...], opt: Options, scenes: Scenes, *, limit: int
) -> Objects:
    """The best consistent set of hypotheses of every scene, of ``limit`` a template."""
    found = distinct(plans, scene(scenes, tol2, opt.scene_dim), limit, opt)
    points = scenes.points.shape[1]
    gains = [_gain(f, points, tol2, opt) for f in found]
    sets = [point_sets(f.parts, points) for f in found]
    chosen = jax.vmap(partial(_best_rows, copies=copies))(gains, sets)
    picked = [take(f, jnp.maximum(c, 0)) for f, c in zip(found, chosen, strict=True)]
    return _objects(picked, [c >= 0 for c in chosen], copies)


def _gain(found: Found, points: int, tol2, opt: Options) -> Float[Array, "B H"]:
    """What a hypothesis adds to a set.

    Where objects are whole and nothing else is in the scene: first the number of points that it
    explains, then its error. Else its significance, where it has any.
    """
    if not opt.covered:
        return _significance(found, opt)
    gain = (found.parts >= 0).sum(-1) * (points + 1.0) - found.error / tol2
    return jnp.where(jnp.isfinite(found.cost), gain, -jnp.inf)


def _significance(found: Found, opt: Options) -> Float[Array, "B H"]:
    """The significance of those hypotheses that may be taken."""
    good = jnp.isfinite(found.cost) & (opt.covered | (found.significance > 0))
    return jnp.where(good, found.significance, -jnp.inf)


class _State(NamedTuple):
    """Sets of disjoint hypotheses of one scene: the beam of :func:`_best_rows`."""

    gain: Float[Array, " W"]
    used: Int[Array, "W words"]


def _add_object(state: _State, last, gains, sets) -> tuple[_State, Array, Array, Array]:
    """Extend every set by one hypothesis, or by none; keep the best. Where each came from too."""
    count = len(gains)
    clash = ((state.used[:, None] & sets[None]) != 0).any(-1)
    # Copies of one template are interchangeable: take their hypotheses in order.
    clash |= jnp.arange(count)[None] <= last[:, None]
    extended = jnp.where(clash, -jnp.inf, state.gain[:, None] + gains[None])
    pool = jnp.concatenate([state.gain[:, None], extended], 1).ravel()
    gain, chosen = jax.lax.top_k(pool, WIDTH)
    parent, pick = chosen // (count + 1), chosen % (count + 1) - 1
    added = jnp.where((pick >= 0)[:, None], sets[jnp.maximum(pick, 0)], 0)
    last = jnp.where(pick >= 0, pick, last[parent])
    return _State(gain, state.used[parent] | added), last, parent, pick


def _best_rows(gains, sets, copies: tuple[int, ...]) -> list[Int[Array, " copies"]]:
    """The disjoint hypotheses of one scene with the highest total gain (beam search).

    For each template which ones, at most ``copies`` of it; -1 for none.
    """
    state = _State(
        jnp.full(WIDTH, -jnp.inf).at[0].set(0.0), jnp.zeros((WIDTH, sets[0].shape[1]), jnp.int32)
    )
    history: list[Array] = []
    for gain, words, count in zip(gains, sets, copies, strict=True):

        def step(carry, _, gain=gain, words=words):
            state, last = carry
            state, last, parent, pick = _add_object(state, last, gain, words)
            return (state, last), (parent, pick)

        start = (state, jnp.full(WIDTH, -1))
        (state, _), (parents, picks) = jax.lax.scan(step, start, None, length=count)
        chosen = jnp.zeros((WIDTH, 0), jnp.int32)
        for parent, pick in zip(parents, picks, strict=True):
            history = [rows[parent] for rows in history]
            chosen = jnp.concatenate([chosen[parent], pick[:, None]], 1)
        history.append(chosen)
    return [rows[0] for rows in history]


@partial(jax.jit, static_argnames=("copies", "opt"))
def sequential(plans, tol2, copies: tuple[int, ...], opt: Options, scenes: Scenes) -> Objects:
    """Sequential RANSAC: take the best hypothesis, remove its points, search again.

    Best: the least likely to have come about by chance, so that four matched parts beat three.
    """
    batch, points, _ = scenes.points.shape
    order = jnp.arange(points)[:, None]

    def step(carry, _):
        open_, quota = carry
        here = scene(scenes, tol2, opt.scene_dim, open_)
        found = [search(p, here, 1, opt) for p in plans]
        gains = jnp.stack([_significance(f, opt)[:, 0] for f in found])
        gains = jnp.where(quota > 0, gains, -jnp.inf)
        best = gains.argmax(0) == jnp.arange(len(plans))[:, None]
        taken = best & jnp.isfinite(gains.max(0))
        for mine, f in zip(taken, found, strict=True):
            used = (order[..., None] == f.parts[None, :, 0]).any(-1)
            open_ = open_ & ~(used & mine)
        return (open_, quota - taken), (found, list(taken))

    start = (order < scenes.count, jnp.repeat(jnp.array(copies)[:, None], batch, 1))
    _, (found, taken) = jax.lax.scan(step, start, None, length=sum(copies))
    rows = jax.tree.map(lambda a: jnp.swapaxes(a[:, :, 0], 0, 1), found)
    return _objects(rows, [t.T for t in taken], copies)
