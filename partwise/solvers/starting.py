"""Where Algorithm 2 starts: R at random, or from the votes of the parts.

A part that carries size and orientation fixes a pose by itself: it *votes* for one (sec. 4.1, and
RANSAC's basis of one part). The parts of one object vote alike, so that an R in which votes agree
is near the answer, while a random one is near nothing.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from partwise._types import Array
from partwise.problem import Slots
from partwise.solvers.mean_field import Observed

__all__ = ["random_starts", "vote_starts"]

WIDTH = 0.25
"""Votes agree within some sigma / sqrt(WIDTH): a part's vote may be a little off at the others."""

FLOOR = 1e-3
"""What a match that no vote supports keeps of R, so that it may still come about."""

ALONE = 0.01
"""What a vote counts with which no other part agrees, where each that does counts 1."""


def random_starts(shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
    """R ~ U[0,1], rows normalised (Algorithm 2, line 1): (starts, M, N) with the starts last."""
    r = rng.random(shape, np.float32)
    return np.moveaxis(r / r.sum(2, keepdims=True), 0, -1)


class _Votes(NamedTuple):
    """C votes: the pose, whose it is, whether it may be one, and which points it explains."""

    pose: Float[Array, "C d"]
    point: Float[np.ndarray, " C"]
    valid: Float[Array, " C"]
    explains: Float[Array, "C M"]
    template: Float[np.ndarray, " C"]


def vote_starts(
    templates: tuple[int, ...], slots: Slots, seen: Observed, uniform: Float[Array, "K A"]
) -> Float[Array, "M N A"]:
    """One R for each column of ``uniform`` (numbers in [0, 1)), for one scene.

    ``templates`` is ``slots.template``, known when this is compiled.

    Object after object takes a vote, drawn with a probability proportional to the square of the
    number of other parts that agree with it and that no object before explained; R follows from
    how well each object's vote predicts each part.
    """
    votes = _votes(templates, slots, seen)
    start = partial(_start, templates, slots, seen, votes)
    return jax.vmap(start, in_axes=-1, out_axes=-1)(uniform)


def _closeness(seen: Observed, away) -> Array:
    """exp of minus half the squared distance, in the widened noise: 1 where a vote agrees."""
    return jnp.exp(-0.5 * WIDTH * seen.precision * (away**2).sum(-1))


def _votes(templates: tuple[int, ...], slots: Slots, seen: Observed) -> _Votes:
    """The votes of all points as all parts, each template once."""
    g, d = slots.geometry, slots.pose_dim
    once = [(t, templates.index(t)) for t in dict.fromkeys(templates)]
    rows = np.concatenate([slots.rows(k) for _, k in once])
    owner = np.concatenate([np.full(slots.sizes[k], t) for t, k in once])
    design, offset = slots.design[rows, :g, :d], slots.mean[rows, :g]
    x = seen.x[:, :g]
    same = jnp.ones((len(x), len(rows))) if seen.same is None else seen.same[:, rows]
    same = same * seen.mass[: len(x), None]
    pose = jnp.einsum("ndg,mng->mnd", jnp.linalg.pinv(design), x[:, None] - offset)
    pose = pose.reshape(-1, d)
    predicted = jnp.einsum("ngd,cd->cng", design, pose) + offset
    match = _closeness(seen, x[None, :, None] - predicted[:, None]) * same[None]  # C M n
    alike = np.tile(owner, len(x))[:, None] == owner  # a vote moves its own template only
    explains = (match * alike[:, None]).max(2)
    point = np.repeat(np.arange(len(x)), len(rows))
    return _Votes(pose, point, same.ravel(), explains, np.tile(owner, len(x)))


def _start(
    templates: tuple[int, ...],
    slots: Slots,
    seen: Observed,
    votes: _Votes,
    uniform: Float[Array, " K"],
) -> Float[Array, "M N"]:
    """R from one draw of a vote for each object."""
    g, d, points = slots.geometry, slots.pose_dim, votes.explains.shape[1]
    left, columns = jnp.ones(points), []
    for k, template in enumerate(templates):
        agree = votes.explains @ left - (1 - ALONE) * left[votes.point]
        weight = votes.valid * (votes.template == template) * jnp.maximum(agree, 0.0) ** 2
        total = weight.cumsum()
        pick = jnp.searchsorted(total, uniform[k] * total[-1], side="right")
        pick = jnp.minimum(pick, len(total) - 1)
        rows = slots.rows(k)
        predicted = slots.design[rows, :g, :d] @ votes.pose[pick] + slots.mean[rows, :g]
        taken = total[-1] > ALONE**2 / 2  # where nothing is left to explain, the object stays empty
        columns.append(taken * _closeness(seen, seen.x[:, None, :g] - predicted[None]))
        left = left * (1.0 - taken * votes.explains[pick])
    r = FLOOR + jnp.concatenate(columns, 1)
    r = r if seen.same is None else r * seen.same
    return r / jnp.maximum(r.sum(1, keepdims=True), 1e-12)
