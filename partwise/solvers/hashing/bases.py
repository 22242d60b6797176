"""Which pairs of a template's parts serve as bases: few, and yet one of them is always visible.

A basis is a pair of parts; an object can only be proposed by a basis of which both parts are seen.
Divide the parts into g groups and take the pairs within groups: of any g + 1 visible parts two are
in one group. By Turan's theorem no smaller set of pairs has this property, if groups are of equal
size. Eight parts and g = 3 need 7 pairs of 28.

Among all such divisions we look for one with long bases. The noise of a basis (i, j) of length d
moves the predicted place of a third part k by

    tau_k^2 = sigma^2 (1 + |1 - u_k|^2 + |u_k|^2),   u_k = (p_k - p_i) / (p_j - p_i),

in the template's frame, and the area in which it may be is where chance has its room.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Complex, Float, Int
from numba import njit

__all__ = ["edges", "invariants"]

Array = np.ndarray

SMALL = 5
"""Templates of up to so many parts use all of their pairs."""

SWAPS = 20
"""Rounds of exchanges between groups, at most; three to five are enough for ten parts."""


def edges(parts: Complex[Array, " N"], groups: int) -> Int[Array, "E 2"]:
    """The pairs (i, j), i < j, of a division of the parts into so many groups."""
    count = len(parts)
    group = np.arange(count) % max(min(groups, count), 1)
    if count <= SMALL:
        group = np.zeros(count, int)
    elif groups < count:
        group = _improve(_room(parts), group)
    i, j = np.triu_indices(count, 1)
    inside = group[i] == group[j]
    return np.stack([i[inside], j[inside]], 1)


def invariants(parts: Complex[Array, " N"], pair: Int[Array, " 2"]) -> Complex[Array, " N"]:
    """u_k of every part for one basis: the same in the template and in any picture of it."""
    i, j = pair
    return (parts - parts[i]) / (parts[j] - parts[i])


def _room(parts: Complex[Array, " N"]) -> Float[Array, "N N"]:
    """For every pair, the area that chance has: sum_k tau_k^2 / sigma^2."""
    squared = np.abs(parts[:, None] - parts[None]) ** 2
    away = squared.sum(0)[:, None] + squared.sum(0)[None] - 2 * squared
    return len(parts) - 2 + away / np.maximum(squared, 1e-12)


@njit(cache=True)
def _improve(room, group):
    """Exchange two parts of different groups while that makes the sum over pairs smaller."""
    count = len(group)
    for _ in range(SWAPS):
        better = False
        for a in range(count):
            for b in range(a):
                if group[a] == group[b]:
                    continue
                change = 0.0
                for k in range(count):
                    if k in (a, b):
                        continue
                    if group[k] == group[a]:
                        change += room[b, k] - room[a, k]
                    elif group[k] == group[b]:
                        change += room[a, k] - room[b, k]
                if change < -1e-9:
                    group[a], group[b] = group[b], group[a]
                    better = True
        if not better:
            break
    return group
