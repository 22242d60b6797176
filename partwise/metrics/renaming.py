"""The renaming of identical objects that agrees best with the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import permutations, product
from math import factorial, prod

import numpy as np
from jaxtyping import Bool, Float, Int

from partwise.metrics.layouts import Layout
from partwise.metrics.measures import measures

__all__ = ["Answer", "best_renaming"]

Array = np.ndarray

MOST_RENAMINGS = 720
"""Renamings are tried one by one up to here (six copies of one template)."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Truth and prediction of scenes that share a layout."""

    truth: Int[Array, "s N"]
    present: Bool[Array, "s N"]
    owner: Int[Array, "s N"]
    instantiated: Bool[Array, "s N"]

    def renamed(self, layout: Layout, name: tuple[int, ...]) -> Int[Array, "s N"]:
        """The labels if predicted object k is called ``name[k]`` instead, in c and in q.

        All of c is renamed, so that the slots that shared a label go on sharing it; that includes
        the 0 that c has, by convention, in absent slots.
        """
        new = np.arange(len(name))[list(name)]
        owner = self.owner.copy()
        for k, to in enumerate(new):
            owner[self.owner == layout.object[k]] = layout.object[to]
        instantiated = self.instantiated.copy()
        for k, to in enumerate(new):
            instantiated[:, layout.slots[to][layout.parts[to]]] = self.instantiated[
                :, layout.slots[k][layout.parts[k]]
            ]
        return (owner + 1) * instantiated


def best_renaming(answer: Answer, layout: Layout, groups: list[list[int]]) -> Array:
    """The metrics of each scene under its best renaming."""
    if prod(factorial(len(g)) for g in groups) > MOST_RENAMINGS:
        return _assigned_renaming(answer, layout, groups)
    best = None
    for name in _renamings(groups):
        values = measures(answer.truth, answer.renamed(layout, name))
        best = values if best is None else np.where(_better(values, best), values, best)
    assert best is not None
    return best


def _renamings(groups: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """All permutations of the objects that only mix identical ones; the identity first."""
    size = sum(map(len, groups))
    for choice in product(*(permutations(g) for g in groups)):
        name = list(range(size))
        for group, new in zip(groups, choice, strict=True):
            for k, to in zip(group, new, strict=True):
                name[k] = to
        yield tuple(name)


def _better(a: Float[Array, "3 s"], b: Float[Array, "3 s"]) -> Bool[Array, " s"]:
    """Where a beats b: segmentation accuracy first, then Rand index, then information."""
    tolerance = 1e-9
    gain = (a - b) * np.array([[1.0], [1.0], [-1.0]])
    tie = np.abs(gain) <= tolerance
    return (gain[0] > tolerance) | (
        tie[0] & ((gain[1] > tolerance) | (tie[1] & (gain[2] > tolerance)))
    )


def _assigned_renaming(answer: Answer, layout: Layout, groups: list[list[int]]) -> Array:
    """Too many copies to try every renaming: the one by which most slots agree with the truth.

    The number of agreeing slots is a sum over renamed objects, so it is a linear assignment.
    """
    from scipy.optimize import linear_sum_assignment

    labels = np.zeros_like(answer.truth)
    agree = _agreement(answer, layout)
    for s, table in enumerate(agree):
        name = list(range(len(layout.object)))
        for group in groups:
            rows, columns = linear_sum_assignment(table[np.ix_(group, group)], maximize=True)
            for i, j in zip(rows, columns, strict=True):
                name[group[i]] = group[j]
        one = Answer(*(getattr(answer, f.name)[s : s + 1] for f in fields(answer)))
        labels[s] = one.renamed(layout, tuple(name))[0]
    return measures(answer.truth, labels)


def _agreement(answer: Answer, layout: Layout) -> Int[Array, "s K K"]:
    """``[k, j]``: how many slots of object j are right if predicted object k is called j."""
    count = len(layout.object)
    out = np.zeros((len(answer.truth), count, count), int)
    for k, j in product(range(count), repeat=2):
        if layout.parts[k].sum() != layout.parts[j].sum():
            continue
        here, claimed = layout.slots[j][layout.parts[j]], layout.slots[k][layout.parts[k]]
        q = answer.instantiated[:, claimed]
        ours = answer.owner[:, here] == layout.object[k]
        right = np.where(answer.present[:, here], ours & q, ~q)
        out[:, k, j] = right.sum(1)
    return out
