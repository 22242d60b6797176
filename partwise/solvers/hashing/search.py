"""Pairs of a scene's points as bases, third points as votes, and what the votes agree on.

Every ordered pair (a, b) of points is taken for a basis; every third point c has an invariant
v = (x_c - x_a) / (x_b - x_a), and the cell of v in the table says which part of which basis it
could be. A basis with enough votes is a hypothesis: its evidence is computed at once, from the
points that voted, and the good ones are refined.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from partwise.solvers.hashing.table import REACH
from partwise.solvers.hashing.weights import LOG_RANGE, log_weight, match_weight

__all__ = ["Pool", "new_pool", "refine", "search"]

Array = np.ndarray

KEEP = -5.0
"""Hypotheses that weigh less than this are forgotten."""

PROMISING = -9.0
"""What the voters of a basis alone must weigh to be refined."""


class Pool(NamedTuple):
    """The hypotheses found in a scene so far: the first ``count[0]`` rows."""

    count: Array
    weight: Array
    template: Array
    match: Array
    keys: Array


def new_pool(widest: int, most: int = 2048) -> Pool:
    """An empty pool for templates of up to ``widest`` parts."""
    return Pool(
        np.zeros(1, np.int64),
        np.zeros(most),
        np.zeros(most, np.int32),
        np.full((most, widest), -1, np.int32),
        np.zeros(4 * most, np.int64),
    )


@njit(cache=True)
def _key(template, match):
    """A hash of a hypothesis: positive, so never 0, which is an empty place."""
    key = np.int64(template + 1)
    for k in range(len(match)):
        key = (key ^ np.int64(match[k] + 2)) * np.int64(1099511628211)
        key ^= (key >> np.int64(29)) & np.int64(0x7FFFFFFFF)
    return (key & np.int64(0x7FFFFFFFFFFFFFFF)) | np.int64(1)


@njit(cache=True)
def _is_new(keys, key):
    """Whether a key was not yet seen; now it is."""
    at = key % len(keys)
    while keys[at] != 0:
        if keys[at] == key:
            return False
        at = (at + 1) % len(keys)
    keys[at] = key
    return True


@njit(cache=True)
def add(pool, template, match, weight):
    """Put a hypothesis into the pool, unless it is there already."""
    if not _is_new(pool.keys, _key(template, match)):
        return
    n = pool.count[0]
    if n == len(pool.weight):
        heavy = np.sort(np.argsort(-pool.weight)[: n // 2])  # full: forget the lighter half
        n = len(heavy)
        pool.keys[:] = 0
        for i in range(n):
            pool.weight[i] = pool.weight[heavy[i]]
            pool.template[i] = pool.template[heavy[i]]
            pool.match[i] = pool.match[heavy[i]]
            _is_new(pool.keys, _key(pool.template[i], pool.match[i]))
    pool.weight[n] = weight
    pool.template[n] = template
    pool.match[n] = match
    pool.count[0] = n + 1


@njit(cache=True)
def _assign(setting, parts, points, kinds, part_kinds, mean_p, mean_x, pose, seen, pp, match):
    """One to one, the nearest pairs first, and then every exchange that brings points nearer."""
    whole = len(parts)
    where = mean_x + pose * (parts - mean_p)
    noise = setting.sigma * setting.sigma * (pose.real * pose.real + pose.imag * pose.imag)
    part, point, ratio = [-1], [-1], [np.inf]
    for k in range(whole):
        p = parts[k] - mean_p
        spread = 1.0 + 1.0 / seen + (p.real * p.real + p.imag * p.imag) / pp
        near = REACH * REACH * noise * spread
        for c in range(len(points)):
            dx, dy = points[c].real - where[k].real, points[c].imag - where[k].imag
            d2 = dx * dx + dy * dy
            if d2 < near and kinds[c] == part_kinds[k]:
                part.append(k)
                point.append(c)
                ratio.append(d2)
    match[:] = -1
    for i in np.argsort(np.array(ratio)):
        k, c = part[i], point[i]
        if k >= 0 and match[k] < 0 and not np.any(match == c):
            match[k] = c
    for k in range(whole):
        for j in range(k):
            if match[k] >= 0 and match[j] >= 0:
                # |x_k - w_k|^2 + |x_j - w_j|^2 against the same crossed over
                gap = (points[match[k]] - points[match[j]]) * np.conj(where[k] - where[j])
                if gap.real < 0:
                    match[k], match[j] = match[j], match[k]


@njit(cache=True)
def refine(setting, parts, points, kinds, part_kinds, match):
    """Fit the pose, gather the points that it predicts, leave out what does not pay; in place."""
    whole = len(parts)
    best = match_weight(setting, parts, points, match)
    trial = match.copy()
    for _ in range(3):
        seen, mean_p, mean_x = 0, 0j, 0j
        for k in range(whole):
            if match[k] >= 0:
                seen += 1
                mean_p += parts[k]
                mean_x += points[match[k]]
        mean_p /= seen
        mean_x /= seen
        pp, cross = 0.0, 0j
        for k in range(whole):
            if match[k] >= 0:
                p = parts[k] - mean_p
                pp += p.real * p.real + p.imag * p.imag
                cross += np.conj(p) * (points[match[k]] - mean_x)
        pose = cross / pp
        _assign(setting, parts, points, kinds, part_kinds, mean_p, mean_x, pose, seen, pp, trial)
        weight = match_weight(setting, parts, points, trial)
        while True:  # leave out the worst part, as long as that helps
            worst, better = -1, weight
            for k in range(whole):
                if trial[k] >= 0:
                    point = trial[k]
                    trial[k] = -1
                    without = match_weight(setting, parts, points, trial)
                    trial[k] = point
                    if without > better:
                        worst, better = k, without
            if worst < 0:
                break
            trial[worst] = -1
            weight = better
        if weight <= best + 1e-9:
            break
        best = weight
        match[:whole] = trial[:whole]
    return best


class Needs(NamedTuple):
    """How many parts must be seen for a hypothesis to be worth its while: by size and scale.

    ``least[n, b]`` is for templates of n parts, and scales from ``exp(low + b * step)``.
    """

    least: Array
    low: float
    step: float


@njit(cache=True)
def needs(setting, widest, wanted):
    """The least number of parts that, fitting perfectly, could weigh as much as ``wanted``."""
    step = 0.2
    low = np.log(setting.largest) - LOG_RANGE
    least = np.zeros((widest + 1, int(LOG_RANGE / step) + 2), np.int64)
    for n in range(widest + 1):
        for b in range(least.shape[1]):
            scale2 = np.exp(2 * (low + b * step))
            least[n, b] = n + 1
            for seen in range(n, 2, -1):
                perfect = log_weight(setting, seen, n, scale2 * seen, seen, scale2 * seen * seen)
                if perfect < wanted:
                    break
                least[n, b] = seen
    return Needs(least, low, step)


@njit(cache=True, nogil=True)
def search(table, templates, points, kinds, free, pairs, needs, setting, low, high, pool):
    """Add to ``pool`` what ``pairs`` of free points propose, at scales in (low, high)."""
    bases = len(table.length)
    head = np.full(bases, -1, np.int64)
    mask = np.zeros(bases, np.uint64)
    touched = np.zeros(bases, np.int64)
    room = 1024
    vote_point, vote_part = np.zeros(room, np.int32), np.zeros(room, np.int32)
    vote_near, vote_next = np.zeros(room), np.zeros(room, np.int64)
    widest = pool.match.shape[1]
    match, near = np.full(widest, -1, np.int32), np.zeros(widest)
    for pair in range(2 * len(pairs)):
        a, b = pairs[pair // 2]
        if pair % 2:
            a, b = b, a
        if not (free[a] and free[b]):
            continue
        base = points[b] - points[a]
        length = abs(base)
        least = np.searchsorted(table.length, length / high)
        most = np.searchsorted(table.length, length / low)
        inverse = 1.0 / base
        votes, met = 0, 0
        for c in range(len(points)):
            if not free[c] or c in (a, b):
                continue
            v = (points[c] - points[a]) * inverse
            i = int(np.floor((v.real - table.low) / table.cell))
            j = int(np.floor((v.imag - table.low) / table.cell))
            if i < 0 or j < 0 or i >= table.side or j >= table.side:
                continue
            cell = i * table.side + j
            begin, end = table.start[cell], table.start[cell + 1]
            above = end
            while begin < above:  # the first entry of a basis that is long enough
                middle = (begin + above) // 2
                if table.basis[middle] < least:
                    begin = middle + 1
                else:
                    above = middle
            for e in range(begin, end):
                basis = table.basis[e]
                if basis >= most:
                    break
                du, dv = table.where[e, 0] - v.real, table.where[e, 1] - v.imag
                ratio = (du * du + dv * dv) / table.where[e, 2]
                if ratio > 1.0:
                    continue
                if votes == room:
                    vote_point = np.concatenate((vote_point, np.zeros(room, np.int32)))
                    vote_part = np.concatenate((vote_part, np.zeros(room, np.int32)))
                    vote_near = np.concatenate((vote_near, np.zeros(room)))
                    vote_next = np.concatenate((vote_next, np.zeros(room, np.int64)))
                    room *= 2
                if head[basis] < 0:
                    touched[met] = basis
                    met += 1
                vote_point[votes], vote_part[votes] = c, table.part[e]
                vote_near[votes], vote_next[votes] = ratio, head[basis]
                head[basis] = votes
                votes += 1
                mask[basis] |= np.uint64(1) << np.uint64(table.part[e])
        for at in range(met):
            basis = touched[at]
            bits, count = mask[basis], 2
            while bits:
                bits &= bits - np.uint64(1)
                count += 1
            t = table.template[basis]
            first, last = templates.first[t], templates.first[t + 1]
            if count > 2:
                bin_ = int((np.log(length / table.length[basis]) - needs.low) / needs.step)
                bin_ = min(max(bin_, 0), needs.least.shape[1] - 1)
                if count >= needs.least[last - first, bin_]:
                    match[:] = -1
                    match[table.pair[basis, 0]] = a
                    match[table.pair[basis, 1]] = b
                    vote = head[basis]
                    while vote >= 0:
                        k = vote_part[vote]
                        if match[k] < 0 or vote_near[vote] < near[k]:
                            match[k] = vote_point[vote]
                            near[k] = vote_near[vote]
                        vote = vote_next[vote]
                    for k in range(last - first):
                        for j in range(k):
                            if match[j] >= 0 and match[j] == match[k]:
                                match[k] = -1
                        if match[k] >= 0 and kinds[match[k]] != templates.kind[first + k]:
                            match[k] = -1
                    parts = templates.parts[first:last]
                    weight = match_weight(setting, parts, points, match)
                    if weight > PROMISING:
                        part_kinds = templates.kind[first:last]
                        weight = refine(setting, parts, points, kinds, part_kinds, match)
                        if weight > KEEP:
                            add(pool, t, match, weight)
            head[basis] = -1
            mask[basis] = 0
