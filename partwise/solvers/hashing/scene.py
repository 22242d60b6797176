"""The search of one scene: short pairs first, and what is found for sure is explained away."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from partwise.solvers.hashing.choosing import choose, overlaps
from partwise.solvers.hashing.search import KEEP, add, needs, new_pool, search
from partwise.solvers.hashing.weights import LOG_RANGE, Setting, match_weight

SURE = 10.0
"""Hypotheses that weigh more than this, and have no rival near, are taken for granted."""

MARGIN = 5.0
POSSIBLE = -2.0
CHUNK = 1.3
ROUNDS = 2
LEFT_OUT = 2
CONSIDERED = 600
SAME = 0.8


class Beliefs(NamedTuple):
    """What the model says, for every scene: prior odds and such, in the solvers' frame."""

    sigma: float
    expected: float
    log_odds: float
    log_seen: float
    log_hidden: float
    clutter: float
    ratio: float


@njit(cache=True, nogil=True)
def setting_of(beliefs, volume, points_left, objects, low, high):
    """The beliefs with what was found: objects, clutter, and the range of scales."""
    rate = (1.0 + objects) / (1.0 / beliefs.expected + 1.0) / beliefs.expected
    clutter = (1.0 + points_left) / (1.0 / max(beliefs.clutter, 1e-9) + 1.0)
    largest = np.sqrt(volume / np.pi)
    top = np.log(largest)
    bottom = top - LOG_RANGE
    ratio = np.log(beliefs.ratio)
    if high <= 0:  # nothing is known of scales: the unit is anywhere
        u0, u1 = bottom, max(top - ratio, bottom + 0.01)
    else:
        u0, u1 = np.log(high) - ratio - 0.02, np.log(low) + 0.02
        if u1 < u0 + 0.02:
            middle = 0.5 * (u0 + u1)
            u0, u1 = middle - 0.01, middle + 0.01
            ratio = max(ratio, np.log(high / low) + 0.02)
    flat = 1.0 / max(ratio, u1 - u0)
    s1, s2 = min(u1, u0 + ratio), max(u1, u0 + ratio)
    return Setting(
        beliefs.sigma,
        beliefs.log_odds + np.log(rate),
        beliefs.log_seen,
        beliefs.log_hidden,
        np.log(clutter / volume),
        np.log(volume),
        largest,
        flat,
        u0,
        s1,
        s2,
        u1 + ratio,
    )


@njit(cache=True)
def scale_of(parts, points, match):
    """Of the least squares pose."""
    n, mp, mx = 0, 0j, 0j
    for k in range(len(parts)):
        if match[k] >= 0:
            n += 1
            mp += parts[k]
            mx += points[match[k]]
    mp /= n
    mx /= n
    pp, cross = 0.0, 0j
    for k in range(len(parts)):
        if match[k] >= 0:
            p = parts[k] - mp
            pp += p.real * p.real + p.imag * p.imag
            cross += np.conj(p) * (points[match[k]] - mx)
    return abs(cross) / pp


@njit(cache=True, nogil=True)
def explain_away(pool, templates, points, free):
    """Points of sure hypotheses are no longer free. How many, and the range of their scales."""
    n = pool.count[0]
    order = np.argsort(-pool.weight[:n])
    owner = np.zeros(len(points))
    objects, low, high = 0, 0.0, 0.0
    free[:] = True
    for h in order:
        if pool.weight[h] < SURE:
            break
        clash = 0.0
        for k in range(pool.match.shape[1]):
            if pool.match[h, k] >= 0:
                clash = max(clash, owner[pool.match[h, k]])
        if clash == 0.0:
            t = pool.template[h]
            parts = templates.parts[templates.first[t] : templates.first[t + 1]]
            scale = scale_of(parts, points, pool.match[h])
            low = scale if objects == 0 else min(low, scale)
            high = max(high, scale)
            objects += 1
            for k in range(pool.match.shape[1]):
                if pool.match[h, k] >= 0:
                    owner[pool.match[h, k]] = pool.weight[h]
                    free[pool.match[h, k]] = False
    return objects, low, high


@njit(cache=True, nogil=True)
def look(table, templates, points, kinds, beliefs, volume, pool, tally):
    """Fill ``pool`` with hypotheses for a scene, and return the last setting."""
    count = len(points)
    widest = pool.match.shape[1]
    free = np.ones(count, np.bool_)
    total = count * (count - 1) // 2
    pairs = np.zeros((total, 2), np.int64)
    lengths = np.zeros(total)
    n = 0
    for i in range(count):
        for j in range(i):
            pairs[n, 0], pairs[n, 1] = j, i
            lengths[n] = abs(points[i] - points[j])
            n += 1
    order = np.argsort(lengths)
    pairs, lengths = pairs[order], lengths[order]
    shortest, longest = np.min(table.length), np.max(table.length)
    objects, low, high = 0, 0.0, 0.0
    setting = setting_of(beliefs, volume, count, 0, 0.0, 0.0)
    for phase in range(2):
        start = 0
        while start < total:
            least, most = setting.largest * np.exp(-LOG_RANGE), setting.largest
            if objects:
                least, most = np.exp(setting.s0), np.exp(setting.s3)
            if lengths[start] > most * longest:
                break
            limit = max(lengths[start] * CHUNK, least * shortest)
            stop = np.searchsorted(lengths, limit, side="right")
            if lengths[stop - 1] >= least * shortest and lengths[start] > 0:
                wanted = SURE if phase == 0 else POSSIBLE
                need = needs(setting, widest, wanted)
                search(
                    table, templates, points, kinds, free, pairs[start:stop], need, setting,
                    least, most, pool, tally[phase],
                )  # fmt: skip
                if phase == 0:
                    objects, low, high = explain_away(pool, templates, points, free)
                    if objects:
                        left = np.sum(free)
                        setting = setting_of(beliefs, volume, left, objects, low, high)
            start = max(stop, start + 1)
    return setting


@njit(cache=True)
def reweigh(pool, templates, points, setting):
    """What the hypotheses weigh in the light of what was found; the heavy ones, in order."""
    n = pool.count[0]
    for h in range(n):
        t = pool.template[h]
        parts = templates.parts[templates.first[t] : templates.first[t + 1]]
        pool.weight[h] = match_weight(setting, parts, points, pool.match[h])
    order = np.argsort(-pool.weight[:n])
    return order[: min(np.sum(pool.weight[:n] > KEEP), CONSIDERED)]


@njit(cache=True)
def lend(pool, templates, points, setting):
    """Where two hypotheses share a point or two, offer each of them without these, too."""
    order = reweigh(pool, templates, points, setting)
    match = pool.match[order]
    conflict = overlaps(match, len(order), len(points))
    for i in range(len(order)):
        for j in range(len(order)):
            if i == j or not conflict[i, j]:
                continue
            less, shared, left = match[i].copy(), 0, 0
            for k in range(len(less)):
                if less[k] >= 0:
                    left += 1
                    for other in match[j]:
                        if other == match[i, k]:
                            less[k] = -1
                            shared += 1
            if shared > LEFT_OUT or left - shared < 3:
                continue
            t = pool.template[order[i]]
            parts = templates.parts[templates.first[t] : templates.first[t + 1]]
            weight = match_weight(setting, parts, points, less)
            if weight > KEEP:
                add(pool, t, less, weight)


@njit(cache=True, nogil=True)
def explain(table, templates, points, kinds, beliefs, volume, pool, tally):
    """The detections of a scene: rows of the pool, and their probabilities; the total gain."""
    setting = look(table, templates, points, kinds, beliefs, volume, pool, tally)
    lend(pool, templates, points, setting)
    for last in range(ROUNDS):
        order = reweigh(pool, templates, points, setting)
        weight = pool.weight[order]
        conflict = overlaps(pool.match[order], len(order), len(points))
        best, share, value = choose(weight, conflict)
        rows = order[best]
        sure = np.zeros(len(rows))
        for i in range(len(rows)):
            mine = pool.match[rows[i]]
            for j in range(len(order)):
                if pool.template[order[j]] == pool.template[rows[i]] and share[j] > 0:
                    other = pool.match[order[j]]
                    seen, same = 0, 0
                    for k in range(len(other)):
                        if other[k] >= 0:
                            seen += 1
                            same += other[k] == mine[k]
                    if same >= SAME * seen:
                        sure[i] += share[j]
            sure[i] = min(sure[i], 1.0)
        if last == ROUNDS - 1:
            break
        objects, left, low, high = 0.0, float(len(points)), 0.0, 0.0
        for i in range(len(rows)):
            objects += sure[i]
            left -= sure[i] * np.sum(pool.match[rows[i]] >= 0)
            if sure[i] > 0.9:
                t = pool.template[rows[i]]
                parts = templates.parts[templates.first[t] : templates.first[t + 1]]
                scale = scale_of(parts, points, pool.match[rows[i]])
                low = scale if low == 0 else min(low, scale)
                high = max(high, scale)
        setting = setting_of(beliefs, volume, left, objects, low, high)
    return rows, sure, value
