"""Algorithm 1: Sinkhorn and Knopp's scaling to a doubly-stochastic matrix."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from partwise._small import largest, over, total
from partwise._types import Array

__all__ = ["Scaling", "scale", "sinkhorn"]


def sinkhorn(
    matrix: Float[Array, "N N"], tolerance: float = 1e-6, max_sweeps: int = 10_000
) -> Float[Array, "N N"]:
    """Algorithm 1: normalise rows and columns in turn until both sum to one.

    For a positive square matrix. Columns are normalised last; it stops when every row sums to one
    within ``tolerance``.
    """

    def not_done(state):
        m, sweep = state
        return (jnp.abs(m.sum(1) - 1).max() > tolerance) & (sweep < max_sweeps)

    def one(state):
        m, sweep = state
        m = m / m.sum(1, keepdims=True)
        return m / m.sum(0, keepdims=True), sweep + 1

    matrix = jnp.asarray(matrix)
    first = matrix / matrix.sum(0, keepdims=True)
    return jax.lax.while_loop(not_done, one, (first, 0))[0]


class Scaling(NamedTuple):
    """A matrix ``rho`` scaled by rows and columns: ``R_mn = rho_mn exp(-rows_m - columns_n)``."""

    matrix: Float[Array, "M1 N1 *b"]
    rows: Float[Array, "M1 *b"]
    columns: Float[Array, "N1 *b"]


def scale(
    log_rho: Float[Array, "M1 N1 *b"],
    columns: Float[Array, "N1 *b"],
    mass: Float[Array, "M1 *b"],
    free_row: bool,
    free_column: bool,
    sweeps: int,
) -> Scaling:
    """Algorithm 1 inside variational inference, started from the last update's ``columns``.

    The dummy rows of the paper (one for each slot that has no observation) stay equal to each
    other, so that one last row of the given ``mass`` stands for all of them. Where there is
    clutter, the last row and column are slack instead (``free_row``, ``free_column``): they may
    hold any mass and are not normalised. Rows of mass 0 are padding.

    Starting from the potentials of the previous update changes nothing in the limit, and makes a
    few sweeps enough.
    """
    batch = log_rho.ndim - 2
    shifted = log_rho - columns[None]
    top = largest(shifted, 1)
    # Below 1e-30 entries cannot matter, but an all-zero column must not become 0 / 0.
    p = jnp.maximum(jnp.exp(shifted - top[:, None]), 1e-30) * (mass > 0)[:, None]
    last_row = over(jnp.arange(p.shape[0]) == p.shape[0] - 1, batch) & free_row
    last_column = over(jnp.arange(p.shape[1]) == p.shape[1] - 1, batch) & free_column
    slack = jnp.exp(jnp.minimum(top, 80.0))

    def sweep(_, uv):
        _, v = uv
        u = jnp.where(last_row, slack, mass / jnp.maximum(total(p * v[None], 1), 1e-30))
        v = jnp.where(last_column, 1.0, 1.0 / jnp.maximum(total(p * u[:, None], 0), 1e-30))
        return u, v

    # Written out where they are few, so that they fuse with what is around them.
    u, v = jax.lax.fori_loop(
        0, sweeps, sweep, (jnp.ones_like(top), jnp.ones_like(columns)), unroll=sweeps <= 8
    )
    return Scaling(
        p * u[:, None] * v[None],
        top - jnp.log(jnp.maximum(u, 1e-30)),
        columns - jnp.log(v),
    )
