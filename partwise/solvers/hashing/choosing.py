"""Which hypotheses are true together: set packing by direct search, and how sure that is.

No point belongs to two objects, so hypotheses that share a point exclude each other. The conflict
graph falls into small components. In each, hypotheses are put into cliques (at most one of a clique
is true), and a branch and bound through the cliques visits every consistent set whose log
probability is within ``DEPTH`` of the best one: the best is the answer, and the sum over all of
them the normaliser of the posterior. A hypothesis' probability is the share of the sets it is in.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["choose", "overlaps"]

Array = np.ndarray

DEPTH = (0.0, 3.0, 6.0, 10.0)
"""The sets that are summed: deeper and deeper, until ``BUDGET`` is spent."""

BUDGET = 100_000
"""Steps of the search for one component and depth, at most."""


@njit(cache=True)
def overlaps(match, points):
    """Which hypotheses share a point (each with itself)."""
    count = len(match)
    words = points // 63 + 1
    bits = np.zeros((count, words), np.int64)
    for h in range(count):
        for k in range(match.shape[1]):
            if match[h, k] >= 0:
                bits[h, match[h, k] // 63] |= np.int64(1) << (match[h, k] % 63)
    out = np.zeros((count, count), np.bool_)
    for h in range(count):
        for g in range(h + 1):
            for w in range(words):
                if bits[h, w] & bits[g, w]:
                    out[h, g] = True
                    out[g, h] = True
                    break
    return out


@njit(cache=True)
def _component(conflict, seen, first):
    """The hypotheses that are connected with ``first``."""
    found = [first]
    seen[first] = True
    at = 0
    while at < len(found):
        for g in range(len(conflict)):
            if conflict[found[at], g] and not seen[g]:
                seen[g] = True
                found.append(g)
        at += 1
    return np.array(found)


@njit(cache=True)
def _cliques(weight, conflict, members):
    """The clique of each member, the heaviest hypotheses first; members in that order."""
    order = members[np.argsort(-weight[members])]
    clique = np.full(len(order), -1)
    count = 0
    for i in range(len(order)):
        if clique[i] >= 0:
            continue
        clique[i] = count
        for j in range(i + 1, len(order)):
            if clique[j] >= 0:
                continue
            fits = True
            for m in range(i, j):
                if clique[m] == count and not conflict[order[m], order[j]]:
                    fits = False
                    break
            if fits:
                clique[j] = count
        count += 1
    by = np.argsort(clique, kind="mergesort")
    return order[by], clique[by], count


@njit(cache=True)
def _visit(weight, conflict, order, clique, count, depth, best, chosen, share):
    """Visit all consistent sets within ``depth`` of the best: depth first, a clique a level.

    Returns the best value, the log of the sum over all visited sets and whether all of them were;
    fills ``chosen`` (the best set) and ``share`` (the probability of each member).
    """
    start = np.searchsorted(clique, np.arange(count + 1))
    rest = np.zeros(count + 1)
    for c in range(count - 1, -1, -1):
        rest[c] = rest[c + 1] + max(weight[order[start[c]]], 0.0)
    share[:] = 0.0
    chosen[:] = False
    top, total, nodes = best, 0.0, 0
    pick = np.full(count + 1, -2)  # per level: -2 untouched, then members, then -1 for none
    value = np.zeros(count + 1)
    level = 0
    while level >= 0:
        nodes += 1
        if nodes > BUDGET:
            return top, total, False
        if level == count:
            probability = np.exp(min(value[level] - best, 600.0))
            total += probability
            for c in range(count):
                if pick[c] >= 0:
                    share[pick[c]] += probability
            if value[level] > top + 1e-12 or (not chosen.any() and value[level] >= top - 1e-9):
                top = max(top, value[level])
                chosen[:] = False
                for c in range(count):
                    if pick[c] >= 0:
                        chosen[pick[c]] = True
            level -= 1
            continue
        if pick[level] == -1:  # all done here
            pick[level] = -2
            level -= 1
            continue
        i = start[level] if pick[level] == -2 else pick[level] + 1
        while i < start[level + 1]:
            h = order[i]
            # Members are sorted: the lighter ones fail, too.
            if value[level] + weight[h] + rest[level + 1] < top - depth - 1e-9:
                i = start[level + 1]
                break
            free = True
            for c in range(level):
                if pick[c] >= 0 and conflict[order[pick[c]], h]:
                    free = False
                    break
            if free:
                break
            i += 1
        if i < start[level + 1]:
            pick[level] = i
            value[level + 1] = value[level] + weight[order[i]]
            level += 1
            if level < count:
                pick[level] = -2
            continue
        pick[level] = -1
        if value[level] + rest[level + 1] < top - depth - 1e-9:
            pick[level] = -2
            level -= 1
            continue
        value[level + 1] = value[level]
        level += 1
        if level < count:
            pick[level] = -2
    return top, total, True


@njit(cache=True)
def _given_the_rest(weight, conflict, order, chosen):
    """Where the sets are too many: each chosen one against what could stand in its place."""
    share = np.zeros(len(order))
    for i in range(len(order)):
        if not chosen[i]:
            continue
        against = np.exp(-min(weight[order[i]], 600.0))
        for j in range(len(order)):
            if j == i or not conflict[order[i], order[j]]:
                continue
            free = True
            for k in range(len(order)):
                if k != i and chosen[k] and conflict[order[k], order[j]]:
                    free = False
                    break
            if free:
                against += np.exp(weight[order[j]] - weight[order[i]])
        share[i] = 1.0 / (1.0 + against)
    return share


@njit(cache=True)
def choose(weight, conflict):
    """The best consistent set, and the probability of every hypothesis."""
    count = len(weight)
    best = np.zeros(count, np.bool_)
    probability = np.zeros(count)
    value = 0.0
    seen = np.zeros(count, np.bool_)
    for first in range(count):
        if seen[first]:
            continue
        order, clique, levels = _cliques(weight, conflict, _component(conflict, seen, first))
        chosen, share = np.zeros(len(order), np.bool_), np.zeros(len(order))
        # A greedy set to begin with; it stands where the search does not come to an end.
        top = 0.0
        for i in np.argsort(-weight[order]):
            h = order[i]
            if weight[h] <= 0:
                break
            free = True
            for j in range(len(order)):
                if chosen[j] and conflict[order[j], h]:
                    free = False
            if free:
                chosen[i] = True
                top += weight[h]
        complete = False
        for depth in DEPTH:
            trial, part = np.zeros(len(order), np.bool_), np.zeros(len(order))
            new, total, whole = _visit(
                weight, conflict, order, clique, levels, depth, top, trial, part
            )
            if not whole:
                if new > top + 1e-9:
                    top, chosen = new, trial
                break
            complete = True
            top, chosen, share = new, trial, part / total
        if not complete:
            share = _given_the_rest(weight, conflict, order, chosen)
        for i in range(len(order)):
            best[order[i]] = chosen[i]
            probability[order[i]] = min(share[i], 1.0)
        value += top
    return best, probability, value
