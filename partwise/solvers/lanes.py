"""Continuous batching: a fixed number of lanes, each refilled as soon as its job has converged.

Variational inference takes 30 updates on one scene and 800 on the next. A batch that waits for its
slowest member wastes most of its time; here a lane that is done hands its result over and starts
on the next job, inside one compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

__all__ = ["run_lanes"]

Lane = TypeVar("Lane")


def run_lanes(
    load: Callable[[Int[Array, " W"], Int[Array, " W"]], Lane],
    advance: Callable[[Lane], tuple[Lane, Any, Any]],
    harvest: Callable[[Lane], Any],
    jobs: int,
    count: Int[Array, ""] | int,
    width: int,
    attempts: int,
) -> Any:
    """Run jobs 0 to ``count`` - 1 (of at most ``jobs``) through ``width`` lanes.

    ``load(job, attempt)`` makes lanes, ``advance(lanes)`` works on them for a while and says which
    are done and which of those must be drawn afresh; ``harvest(lanes)`` is what is kept. The lanes
    are the last axis of every array; the result has the jobs there.
    """
    width = min(width, jobs)
    job, attempt = jnp.arange(width), jnp.zeros(width, jnp.int32)
    lanes = load(job, attempt)
    kept = jax.tree.map(
        lambda a: jnp.zeros((*a.shape[:-1], jobs), a.dtype), jax.eval_shape(harvest, lanes)
    )

    def busy(carry):
        return (carry[1] < count).any()

    def body(carry):
        lanes, job, attempt, waiting, kept = carry
        lanes, done, wrong = advance(lanes)
        done &= job < count
        again = done & wrong & (attempt + 1 < attempts)
        finished = done & ~again

        def hand_over(carry):
            lanes, job, attempt, waiting, kept = carry
            # Indices past the end are dropped: lanes that are not finished keep nothing.
            place = jnp.where(finished, job, jobs)
            kept = jax.tree.map(
                lambda all_, new: all_.at[..., place].set(new, mode="drop"), kept, harvest(lanes)
            )
            job = jnp.where(finished, waiting + jnp.cumsum(finished) - 1, job)
            attempt = jnp.where(finished, 0, attempt + again)
            fresh = load(jnp.minimum(job, jobs - 1), attempt)
            swap = finished | again
            lanes = jax.tree.map(lambda new, old: jnp.where(swap, new, old), fresh, lanes)
            return lanes, job, attempt, waiting + finished.sum(), kept

        carry = lanes, job, attempt, waiting, kept
        return jax.lax.cond((finished | again).any(), hand_over, lambda c: c, carry)

    start = (lanes, job, attempt, jnp.asarray(width), kept)
    return jax.lax.while_loop(busy, body, start)[-1]
