"""One scene, from its points to detections; compiled, and without the interpreter's lock.

1. Short pairs of points first (``search.py``): they fit few templates. What is found for sure is
   explained away: its points propose nothing any more, and it tells how large objects are here.
2. A second search, among the points that are left, for what is only possible.
3. Hypotheses that dispute a point or two are offered without these, too.
4. Set packing, and the probability of every hypothesis (``choosing.py``).
5. Number of objects, amount of clutter and range of scales are estimated anew; 4. twice more.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from partwise.solvers.hashing.beliefs import scale_of, setting_of
from partwise.solvers.hashing.choosing import choose, overlaps
from partwise.solvers.hashing.search import KEEP, add, needs, search
from partwise.solvers.hashing.weights import LOG_RANGE, match_weight

__all__ = ["explain"]

SURE = 10.0
"""Hypotheses that weigh more than this are taken for granted while the search goes on."""

POSSIBLE = -5.0
"""Hypotheses that could not weigh this much, fitting perfectly, are not looked at."""

CHUNK = 1.3
"""Pairs up to so many times as long are searched before the sure ones are explained away."""

LEFT_OUT = 2
"""So many points of a hypothesis may be left to others."""

CONSIDERED = 600
"""At most so many hypotheses are packed."""

SAME = 0.8
"""A detection is there where a hypothesis is true that has this share of its points from it."""


@njit(cache=True)
def _pairs(points):
    """All pairs of points, the shortest first, and their lengths."""
    count = len(points)
    total = count * (count - 1) // 2
    pairs, lengths = np.zeros((total, 2), np.int64), np.zeros(total)
    n = 0
    for i in range(count):
        for j in range(i):
            pairs[n, 0], pairs[n, 1] = j, i
            lengths[n] = abs(points[i] - points[j])
            n += 1
    order = np.argsort(lengths, kind="mergesort")
    return pairs[order], lengths[order]


@njit(cache=True)
def _explain_away(pool, templates, points, free):
    """Points of sure hypotheses are no longer free. How many, and the range of their scales."""
    n = pool.count[0]
    objects, low, high = 0, 0.0, 0.0
    free[:] = True
    for h in np.argsort(-pool.weight[:n], kind="mergesort"):
        if pool.weight[h] < SURE:
            break
        mine = pool.match[h][pool.match[h] >= 0]
        if not np.all(free[mine]):
            continue
        t = pool.template[h]
        parts = templates.parts[templates.first[t] : templates.first[t + 1]]
        scale = scale_of(parts, points, pool.match[h])
        low = scale if objects == 0 else min(low, scale)
        high = max(high, scale)
        objects += 1
        free[mine] = False
    return objects, low, high


@njit(cache=True)
def _hopeful(beliefs, volume, left, objects, low, high, sized):
    """While the search goes on there may be as many objects as usual."""
    usual = max(objects, beliefs.objects) + 1.0
    return setting_of(beliefs, volume, left, usual, low, high, sized)


@njit(cache=True)
def _look(table, templates, points, kinds, beliefs, volume, pool):
    """Fill ``pool`` with hypotheses, and return the setting at the end."""
    widest = pool.match.shape[1]
    free = np.ones(len(points), np.bool_)
    pairs, lengths = _pairs(points)
    shortest, longest = table.length[0], table.length[-1]
    objects, low, high = 0, 0.0, 0.0
    setting = _hopeful(beliefs, volume, float(len(points)), 0.0, 0.0, 0.0, 0)
    for wanted in (SURE, POSSIBLE):
        if wanted == POSSIBLE:
            left = min(float(np.sum(free)), beliefs.share * len(points))
            setting = _hopeful(beliefs, volume, left, float(objects), low, high, objects)
        need = needs(setting, widest, wanted)
        start = 0
        while start < len(pairs):
            least, most = setting.largest * np.exp(-LOG_RANGE), setting.largest
            if objects:
                least, most = setting.u0, setting.u1 * setting.ratio
            if lengths[start] > most * longest:
                break
            limit = max(lengths[start] * CHUNK, least * shortest)
            stop = np.searchsorted(lengths, limit, side="right")
            if lengths[start] > 0 and lengths[stop - 1] >= least * shortest:
                before = pool.count[0]
                search(
                    table, templates, points, kinds, free, pairs[start:stop], need, setting,
                    least, most, pool,
                )  # fmt: skip
                if wanted == SURE and pool.count[0] > before:
                    objects, low, high = _explain_away(pool, templates, points, free)
                    left = float(np.sum(free))
                    setting = _hopeful(beliefs, volume, left, float(objects), low, high, objects)
                    need = needs(setting, widest, wanted)
            start = max(stop, start + 1)
    return setting


@njit(cache=True)
def _reweigh(pool, templates, points, setting, least):
    """Weigh all hypotheses anew; those that weigh more than ``least``, the heaviest first."""
    n = pool.count[0]
    for h in range(n):
        t = pool.template[h]
        parts = templates.parts[templates.first[t] : templates.first[t + 1]]
        pool.weight[h] = match_weight(setting, parts, points, pool.match[h])
    order = np.argsort(-pool.weight[:n], kind="mergesort")
    return order[: min(np.sum(pool.weight[:n] > least), CONSIDERED)]


@njit(cache=True)
def _lend(pool, templates, points, setting):
    """Where two hypotheses share a point or two, offer each of them without these, too."""
    order = _reweigh(pool, templates, points, setting, 0.0)
    match = pool.match[order]
    conflict = overlaps(match, len(points))
    for i in range(len(order)):
        for j in range(len(order)):
            if i == j or not conflict[i, j]:
                continue
            less, shared = match[i].copy(), 0
            for k in range(len(less)):
                if less[k] >= 0 and np.any(match[j] == less[k]):
                    less[k] = -1
                    shared += 1
            if shared <= LEFT_OUT and np.sum(less >= 0) >= 3:
                t = pool.template[order[i]]
                parts = templates.parts[templates.first[t] : templates.first[t + 1]]
                weight = match_weight(setting, parts, points, less)
                if weight > KEEP:
                    add(pool, t, less, weight)


@njit(cache=True)
def _detection_probability(pool, templates, order, rows, share):
    """Of each row of ``rows``: the probabilities of all hypotheses that make it right, summed."""
    sure = np.zeros(len(rows))
    for i in range(len(rows)):
        mine, kin = pool.match[rows[i]], templates.kin[pool.template[rows[i]]]
        for j in range(len(order)):
            if share[j] > 0 and templates.kin[pool.template[order[j]]] == kin:
                seen, same = 0, 0
                for point in pool.match[order[j]]:
                    if point >= 0:
                        seen += 1
                        same += np.any(mine == point)
                if same >= SAME * seen:
                    sure[i] += share[j]
        sure[i] = min(sure[i], 1.0)
    return sure


@njit(cache=True)
def _learn(pool, templates, points, beliefs, volume, rows, sure):
    """The setting in the light of the detections."""
    objects, left, low, high, sized = 0.0, float(len(points)), 0.0, 0.0, 0
    for i in range(len(rows)):
        objects += sure[i]
        left -= sure[i] * np.sum(pool.match[rows[i]] >= 0)
        if pool.weight[rows[i]] > SURE:  # no detection may speak for itself
            t = pool.template[rows[i]]
            parts = templates.parts[templates.first[t] : templates.first[t + 1]]
            scale = scale_of(parts, points, pool.match[rows[i]])
            low = scale if sized == 0 else min(low, scale)
            high = max(high, scale)
            sized += 1
    return setting_of(beliefs, volume, left, objects, low, high, sized)


@njit(cache=True, nogil=True)
def explain(table, templates, points, kinds, beliefs, volume, pool):
    """The detections of a scene: rows of the pool, and their probabilities; the total gain."""
    setting = _look(table, templates, points, kinds, beliefs, volume, pool)
    _lend(pool, templates, points, setting)
    rows, sure, value = np.zeros(0, np.int64), np.zeros(0), 0.0
    for again in (True, True, False):
        order = _reweigh(pool, templates, points, setting, KEEP)
        conflict = overlaps(pool.match[order], len(points))
        best, share, value = choose(pool.weight[order], conflict)
        rows = order[best]
        sure = _detection_probability(pool, templates, order, rows, share)
        if again:
            setting = _learn(pool, templates, points, beliefs, volume, rows, sure)
    return rows, sure, value
