"""Algebra over short axes, for arrays with trailing batch axes.

Scenes, objects and poses are small (tens of parts, a handful of numbers), and there are many of
them. XLA's CPU backend turns a reduction over a short axis into a scalar loop: on two cores a
Sinkhorn sweep over 7 x 11 entries costs 0.39 us a scene as ``(R * v).sum(1)`` and 0.012 us when
the sum is written out and the batch is the last axis (``python -m benchmarks.small_axes``). So the
inner loops of the variational solver are written for one scene, axes first, and any further axes
that trail along are the batch: the same text with and without one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Float

from partwise._types import Array

__all__ = ["inverse_and_logdet", "largest", "over", "total"]

_UNROLL = 32
"""Axes longer than this are left to XLA: the program would grow, and the gain is gone."""


def _slices(a: Array, axis: int) -> list[Array]:
    return [jax.lax.index_in_dim(a, i, axis, keepdims=False) for i in range(a.shape[axis])]


def total(a: Array, axis: int | tuple[int, ...]) -> Array:
    """``a.sum(axis)``, written out as a balanced tree."""
    if isinstance(axis, tuple):
        for one in sorted(axis, reverse=True):
            a = total(a, one)
        return a
    if a.shape[axis] == 0 or a.shape[axis] > _UNROLL:
        return a.sum(axis)
    terms = _slices(a, axis)
    while len(terms) > 1:
        pairs = [terms[i] + terms[i + 1] for i in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


def largest(a: Array, axis: int) -> Array:
    """``a.max(axis)``, written out."""
    if a.shape[axis] > _UNROLL:
        return a.max(axis)
    out, *rest = _slices(a, axis)
    for other in rest:
        out = jnp.maximum(out, other)
    return out


def over(a: Array, batch: int) -> Array:
    """``a`` with ``batch`` trailing axes of length 1, to stand beside batched arrays."""
    return jnp.reshape(a, (*a.shape, *(1,) * batch))


def inverse_and_logdet(
    a: Float[Array, "K d d *b"],
) -> tuple[Float[Array, "K d d *b"], Float[Array, "K *b"]]:
    """Inverse and log determinant of positive definite matrices: d sweeps of Gauss-Jordan.

    No pivoting is needed for positive definite matrices, and d is small.
    """
    d, batch = a.shape[1], a.ndim - 3
    eye = jnp.eye(d, dtype=a.dtype)
    logdet = jnp.zeros((a.shape[0], *a.shape[3:]), a.dtype)
    for i in range(d):
        pivot = a[:, i, i]
        logdet = logdet + jnp.log(pivot)
        here, there = over(eye[i][None], batch), over(1 - eye[i][None], batch)
        column = a[:, :, i] * there
        row = column / pivot[:, None]
        rest = a - a[:, :, i][:, :, None] * (a[:, i, :] / pivot[:, None])[:, None, :]
        rest = rest * there[:, :, None] * there[:, None, :]
        cross = here[:, :, None] * row[:, None, :] + row[:, :, None] * here[:, None, :]
        a = rest + cross - here[:, :, None] * here[:, None, :] / pivot[:, None, None]
    return -a, logdet
