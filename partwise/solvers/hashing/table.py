"""The hash table: for every basis of every template, where its other parts are.

Invariants u of three points lie in the plane. The plane is a grid; each entry stands in all cells
that the disc of its tolerance meets, so that one look into one cell finds every entry that a pair
and a third point of a scene could be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int
from numba import njit

from partwise.solvers.hashing.bases import edges, invariants

__all__ = ["REACH", "Table", "Templates", "table"]

Array = np.ndarray

REACH = 3.0
"""Matches further off than so many standard deviations (of a coordinate) are not looked at."""

FARTHEST = 3.0
"""Third parts further away than so many lengths of the basis tell little, and are left out."""

CELL = 0.6
"""The side of a cell, in typical reaches."""

LONGEST = 62
"""Third parts with a higher number do not vote (a vote is a bit of a word)."""


class Templates(NamedTuple):
    """All templates: the parts of template t are ``parts[first[t]:first[t + 1]]``, centred.

    ``kin[t]`` is the first template with the same parts.
    """

    parts: Complex[Array, " N"]
    kind: Int[Array, " N"]
    first: Int[Array, " T1"]
    kin: Int[Array, " T"]


class Table(NamedTuple):
    """Bases, and the cells with their entries.

    Basis b is the parts ``pair[b]`` of ``template[b]``, ``length[b]`` apart. Cell c holds the
    entries ``start[c]:start[c + 1]``: invariant, squared tolerance, basis and part.
    """

    template: Int[Array, " B"]
    pair: Int[Array, "B 2"]
    length: Float[Array, " B"]
    start: Int[Array, " C1"]
    where: Float[Array, "E 3"]
    basis: Int[Array, " E"]
    part: Int[Array, " E"]
    low: float
    cell: float
    side: int


def table(templates: Templates, sigma: float, groups: int) -> Table:
    """The table for noise of ``sigma``, in the template's frame."""
    found = []
    for t in range(len(templates.first) - 1):
        parts = templates.parts[templates.first[t] : templates.first[t + 1]]
        for i, j in edges(parts, groups):
            d = abs(parts[j] - parts[i])
            if d < 1e-6 or (len(parts) > 2 and d < 2 * REACH * sigma and d < 0.5):
                continue  # nothing can be told from a basis as short as the noise
            found.append((d, t, i, j))
    found.sort()  # so that the bases in question for a pair of points follow one another
    rows = []
    for b, (d, t, i, j) in enumerate(found):
        parts = templates.parts[templates.first[t] : templates.first[t + 1]]
        u = invariants(parts, np.array([i, j]))
        for k in range(min(len(parts), LONGEST)):
            if k in (i, j) or abs(u[k]) > FARTHEST or abs(1 - u[k]) > FARTHEST:
                continue
            tau = sigma / d * np.sqrt(1 + abs(1 - u[k]) ** 2 + abs(u[k]) ** 2)
            rows.append((u[k].real, u[k].imag, REACH * tau, b, k))
    length, template, pair = [f[0] for f in found], [f[1] for f in found], [f[2:] for f in found]
    entries = np.array(rows, float).reshape(-1, 5)
    # Cells about as large as the discs keep both the copies and the vain looks few.
    typical = float(np.median(entries[:, 2])) if len(entries) else 1.0
    cell = float(np.clip(CELL * typical, 0.01, 0.25))
    low = -(FARTHEST + 0.5)
    side = int(np.ceil((1 - 2 * low) / cell))
    start, index = _fill(entries[:, :3], low, cell, side)
    squared = entries[index, :3] * [1, 1, 0] + entries[index, 2:3] ** 2 * [0, 0, 1]
    return Table(
        np.array(template, np.int32),
        np.array(pair, np.int32).reshape(-1, 2),
        np.array(length, float),
        start,
        squared.astype(np.float32),
        entries[index, 3].astype(np.int32),
        entries[index, 4].astype(np.int32),
        low,
        cell,
        side,
    )


@njit(cache=True)
def _fill(entries, low, cell, side):
    """Cells in compressed rows: where each begins, and which entries it holds."""
    start = np.zeros(side * side + 1, np.int64)
    index = np.zeros(0, np.int64)
    for fill in (False, True):
        if fill:
            start = np.concatenate((np.zeros(1, np.int64), np.cumsum(start)[:-1]))
            index = np.zeros(start[-1], np.int64)
            at = start.copy()
        for e in range(len(entries)):
            u, v, reach = entries[e]
            left = max(int((u - reach - low) / cell), 0)
            right = min(int((u + reach - low) / cell), side - 1)
            down = max(int((v - reach - low) / cell), 0)
            up = min(int((v + reach - low) / cell), side - 1)
            for i in range(left, right + 1):
                for j in range(down, up + 1):
                    du = max(max(low + i * cell - u, u - low - (i + 1) * cell), 0.0)
                    dv = max(max(low + j * cell - v, v - low - (j + 1) * cell), 0.0)
                    if du * du + dv * dv <= reach * reach:
                        if fill:
                            index[at[i * side + j]] = e
                            at[i * side + j] += 1
                        else:
                            start[i * side + j] += 1
    return start, index
