"""Every way to divide the points of a scene among the objects of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from math import comb, factorial, lgamma, log

import numpy as np
from jaxtyping import Float, Int

from partwise.model import Model
from partwise.poses import Similarity2D
from partwise.problem import slots_of

__all__ = ["Candidates", "Groupings", "candidate_count", "groupings"]

Array = np.ndarray

MOST_POINTS = 40
"""Scenes with more points are never enumerated."""

FORCED = 1e-9
"""The weight of clutter or a missing part where the model allows none, but must."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """All sets of n points that could be n parts of one template.

    ``subsets`` (C, n) are the points; ``parts`` (A, n) the ways to be parts: the j-th point of the
    subset is part ``parts[a, j]``. Ways that a turn of the template carries into each other (a
    square has four) explain any points equally well; one stands for all, and ``log_ways`` (A,)
    counts them. ``log_prior`` is the object's: present, and some parts hidden.
    """

    object: int
    subsets: Int[Array, "C n"]
    parts: Int[Array, "A n"]
    log_ways: Float[Array, " A"]
    log_prior: float


@dataclass(frozen=True, eq=False)
class Groupings:
    """All divisions of M points: row r holds the candidates ``rows[r]`` (-1: none).

    Candidates are numbered through all of ``candidates`` in turn. ``log_prior`` (R,) counts what a
    row leaves over as clutter, and in how many ways its objects can be the model's copies.
    """

    candidates: tuple[Candidates, ...]
    rows: Int[Array, "R K"]
    log_prior: Float[Array, " R"]

    @property
    def count(self) -> int:
        """The number of candidates."""
        return sum(len(c.subsets) for c in self.candidates)


def _distinct(model: Model, template: int, ways: Int[Array, "A n"]):
    """Ways to be parts up to turns of the template, and the log of how many each stands for."""
    shape = model.templates[template]
    turns = isinstance(model.pose, Similarity2D) and model.prior is None
    if not turns or shape.appearance is not None or shape.is_directed:
        return ways, np.zeros(len(ways))
    z = (shape.positions - shape.centre) @ np.array([1, 1j]) / max(shape.radius, 1e-300)
    names = {name: i for i, name in enumerate(model.type_names)}
    kind = np.array([names[t] for t in shape.types]) if shape.types else np.zeros(len(shape))
    # Configurations that differ by a turn have the same products conj(z_i) z_j.
    products = np.conj(z[ways])[:, :, None] * z[ways][:, None, :]
    keys = np.concatenate(
        [products.real.reshape(len(ways), -1), products.imag.reshape(len(ways), -1), kind[ways]], 1
    )
    keys = np.round(keys, 9) + 0.0
    _, first, count = np.unique(keys, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    return ways[first[order]], np.log(count[order])


def sizes_allowed(model: Model, template: int) -> range:
    """How many parts of a template may be seen."""
    whole = len(model.templates[template])
    # As many points as fix a pose fit any pose: they are no evidence for the shape.
    least = whole if model.missing == 0 else model.pose.basis_size(model.part_size) + 1
    return range(min(least, whole), whole + 1)


def candidate_count(model: Model, points: int) -> int:
    """How many matches (subset and order) there are: the cost of scoring them all."""
    return sum(
        comb(points, n) * comb(len(t), n) * factorial(n)
        for k, t in enumerate(model.templates)
        for n in sizes_allowed(model, k)
    )


@lru_cache(maxsize=256)
def groupings(model: Model, points: int, log_clutter: float, limit: int) -> Groupings | None:
    """All groupings of ``points`` points, or None where there are more than ``limit``.

    ``log_clutter`` is the log density of a clutter point. Where no grouping explains every point
    and the model has no clutter, points may be left over all the same, as few as possible.
    """
    if points > MOST_POINTS:
        return None
    slots = slots_of(model)
    alike = representatives(model)
    templates = list(dict.fromkeys(alike[t] for t in slots.template.tolist()))
    candidates, members = [], []
    for t in templates:
        whole = len(model.templates[t])
        for n in sizes_allowed(model, t):
            if n > points:
                continue
            subsets = np.array(list(combinations(range(points), n)), np.int32).reshape(-1, n)
            ways = np.array(list(permutations(range(whole), n)), np.int32).reshape(-1, n)
            odds = log(model.presence) - log(1 - model.presence)
            hidden = log(model.missing) if model.missing else 0.0
            seen = n * log(1 - model.missing)
            first = int(np.flatnonzero(slots.template == t)[0])
            ways, log_ways = _distinct(model, t, ways)
            log_prior = odds + (whole - n) * hidden + seen
            candidates.append(Candidates(first, subsets, ways, log_ways, log_prior))
            members += [(frozenset(s), t) for s in subsets.tolist()]
    assert model.instances is not None
    room = [0] * len(model.templates)
    for t, bound in enumerate(model.instances):
        room[alike[t]] += bound
    left_over = model.clutter > 0
    capacity = sum(n * len(t) for n, t in zip(model.instances, model.templates, strict=True))
    allowed = points if left_over else max(points - capacity, 0)
    rows = _divide(members, room, points, allowed, limit)
    while rows is not None and not rows and allowed < points:
        allowed += 1
        rows = _divide(members, room, points, allowed, limit)
    if rows is None:
        return None
    wide = max(max(map(len, rows), default=0), 1)
    table = np.full((len(rows), wide), -1, np.int32)
    log_prior = np.zeros(len(rows))
    for r, row in enumerate(rows):
        table[r, : len(row)] = row
        used = np.bincount([members[c][1] for c in row], minlength=len(model.templates))
        for bound, n in zip(room, used, strict=True):
            # n objects are n of the bound's copies, in any order.
            log_prior[r] += lgamma(bound + 1) - lgamma(bound - n + 1)
        over = points - sum(len(members[c][0]) for c in row)
        log_prior[r] += over * (log_clutter if left_over else log(FORCED))
    return Groupings(tuple(candidates), table, log_prior)


def representatives(model: Model) -> list[int]:
    """For each template, the first that is the same but for its name."""
    keys = [json.dumps({**t.to_json(), "name": ""}) for t in model.templates]
    return [keys.index(key) for key in keys]


def _divide(
    members: list[tuple[frozenset[int], int]], room: list[int], points: int, spare: int, limit: int
) -> list[list[int]] | None:
    """Rows of disjoint candidates that leave at most ``spare`` points over; None if too many.

    Dead ends count too, so that the search is bounded.
    """
    by_first: dict[int, list[int]] = {m: [] for m in range(points)}
    for c, (subset, _) in enumerate(members):
        by_first[min(subset)].append(c)
    out: list[list[int]] = []
    room, steps = list(room), 5 * limit

    def extend(start: int, taken: frozenset[int], row: list[int], spare: int) -> bool:
        nonlocal steps
        steps -= 1
        while start < points and start in taken:
            start += 1
        if start == points:
            out.append(list(row))
            return len(out) <= limit
        for c in by_first[start]:
            subset, t = members[c]
            if room[t] == 0 or subset & taken:
                continue
            room[t] -= 1
            row.append(c)
            fits = extend(start + 1, taken | subset, row, spare)
            row.pop()
            room[t] += 1
            if not fits:
                return False
        return steps > 0 and (spare == 0 or extend(start + 1, taken, row, spare - 1))

    return out if extend(0, frozenset(), [], spare) else None
