"""Many scenes through a compiled function: chunks of a few fixed sizes, on a few threads.

Padding, chunking and threading live here and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

__all__ = ["in_chunks"]

SIZES = (1, 16, 64, 256)
"""Chunk sizes: few, since each is compiled once."""


def _workers() -> int:
    """XLA runs one small program on one core; so as many programs as there are cores, up to 8."""
    affinity = getattr(os, "sched_getaffinity", None)
    return max(1, min(len(affinity(0)) if affinity else os.cpu_count() or 1, 8))


def in_chunks(
    function: Callable[[Any, int], Any],
    arrays: Any,
    largest: int = SIZES[-1],
    smallest: int = SIZES[0],
) -> Any:
    """``function(arrays, count)`` over the leading axis of a pytree of arrays, chunk by chunk.

    ``function`` gets chunks padded (by their first row) to one of ``SIZES`` and the number of rows
    that count, and returns a pytree with the same leading axis. ``smallest`` is for functions that
    are dear to compile and do not mind padding.
    """
    leaves = jax.tree.leaves(arrays)
    rows, workers = len(leaves[0]), _workers()
    share = max(min(-(-rows // workers), largest), 1)
    least = 1 if rows == 1 else share
    size = min(s for s in (*SIZES, largest) if max(least, smallest) <= s <= largest)
    step = min(size, share)

    def one(start: int) -> Any:
        stop = min(start + step, rows)

        def take(a):
            part = a[start:stop]
            if len(part) < size:
                part = np.concatenate([part, np.repeat(part[:1], size - len(part), axis=0)])
            return part

        out = function(jax.tree.map(take, arrays), stop - start)
        return jax.tree.map(lambda a: np.asarray(a)[: stop - start], out)

    starts = range(0, rows, step)
    if len(starts) == 1:
        return one(0)
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(one, starts))
    return jax.tree.map(lambda *a: np.concatenate(a), *parts)
