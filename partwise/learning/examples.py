"""From scenes that show one object to the arrays of learning.

Positions are complex numbers. Every example is centred and scaled to radius one, and its points are
put into an order that depends on the configuration alone, so that nothing learned can depend on
where an example lies, how large it is, or in which order its points were listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from math import perm, prod
from typing import Any

import numpy as np
from jaxtyping import Complex, Float, Int

from partwise._checks import InputError, finite
from partwise.frames import canonical_order
from partwise.plane import to_complex
from partwise.scenes import SceneBatch

__all__ = ["MOST_WAYS", "Examples", "Group", "examples_of"]

Array = np.ndarray

AT_ONCE = 500_000
"""So many matches of a point and a part are looked at together."""

MOST_WAYS = 720
"""Up to so many ways to be parts, an example is summed over all of them."""


@dataclass(frozen=True, eq=False)
class Group:
    """Examples that show parts of the same types, and so can be parts in the same ways.

    ``x`` (B, M) are positions, centred, ``d`` the directions where parts have them, ``looks`` the
    appearance. Point m of an example is part ``ways[a, m]`` in way a; ``ways`` is None where there
    are too many of them. ``kind`` is the type of each point, ``weight`` how much an example counts.
    """

    x: Complex[Array, "B M"]
    d: Complex[Array, "B M"] | None
    looks: Float[Array, "B M f"] | None
    kind: Int[Array, " M"]
    ways: Int[Array, "A M"] | None
    weight: Float[Array, " B"]
    index: Int[Array, " B"]

    def some(self, index: Any) -> Group:
        """Some of the examples."""
        return replace(
            self,
            x=self.x[index],
            d=None if self.d is None else self.d[index],
            looks=None if self.looks is None else self.looks[index],
            weight=self.weight[index],
            index=self.index[index],
        )

    def chunks(self) -> Iterator[Group]:
        """The examples, so many at a time that their ways fit into memory."""
        assert self.ways is not None
        step = max(AT_ONCE // self.ways.size, 1)
        for start in range(0, len(self.weight), step):
            yield self.some(slice(start, start + step))

    @property
    def vectors(self) -> Complex[Array, "B V"]:
        """Positions, then directions."""
        return self.x if self.d is None else np.concatenate([self.x, self.d], 1)


@dataclass(frozen=True, eq=False)
class Examples:
    """All examples of one object with ``parts`` parts; ``kind`` is the type of each part."""

    groups: tuple[Group, ...]
    parts: int
    kind: Int[Array, " N"]
    types: tuple[str, ...] | None
    features: tuple[int, ...] | None

    @property
    def whole(self) -> Group:
        """The examples that show every part."""
        return next(g for g in self.groups if g.x.shape[1] == self.parts)

    @property
    def count(self) -> int:
        """How many examples there are."""
        return sum(len(g.weight) for g in self.groups)

    @property
    def directed(self) -> bool:
        """Whether parts carry size and orientation."""
        return self.groups[0].d is not None


def examples_of(
    batch: SceneBatch,
    parts: int,
    missing: bool = False,
    weight: Sequence[float] | Array | None = None,
) -> Examples:
    """``batch`` as examples of one object, or one clear sentence why they cannot be."""
    _check(batch, parts, missing)
    kinds, types = _types(batch, parts)
    coded = np.zeros(len(batch.parts), int)
    if batch.types is not None:
        code = {name: i for i, name in enumerate(sorted(set(batch.types)))}
        coded = np.array([code[t] for t in batch.types], int)
    sizes = _features(batch, kinds)
    width = max(sizes) if sizes else 0
    weight = np.ones(len(batch)) if weight is None else np.asarray(weight, float)
    groups = []
    for signature, index, rows in _alike(batch, coded):
        x = to_complex(batch.parts[rows])
        x = x - x.mean(1, keepdims=True)
        radius = np.sqrt((np.abs(x) ** 2).mean(1, keepdims=True))
        largest = np.abs(batch.parts[rows, :2]).max((1, 2))
        if (flat := np.flatnonzero(radius[:, 0] <= 1e-12 * largest)).size:
            raise InputError(
                f"examples: the points of example {index[flat[0]]} coincide, so that it has no "
                "shape; leave it out."
            )
        d = None
        if batch.parts.shape[1] == 4:
            # A direction's y-axis points down (partwise.poses): conjugate, it turns like the rest.
            d = np.conj(to_complex(batch.parts[rows, 2:])) / radius
        looks = None
        if sizes is not None and batch.appearance is not None:
            looks = np.zeros((*rows.shape, width))
            for at, row in np.ndenumerate(rows):
                look = batch.appearance[row]
                looks[at][: len(look)] = look
        kind = np.array(signature, int)
        ways = _ways(kind, kinds)
        groups.append(Group(x / radius, d, looks, kind, ways, weight[index], index))
    if not groups or groups[0].x.shape[1] < parts:
        raise InputError(
            f"examples: none of them shows all {parts} parts; learning starts from one that does."
        )
    return Examples(tuple(groups), parts, kinds, types, sizes)


def _alike(batch: SceneBatch, coded: Array) -> Iterator[tuple[tuple[int, ...], Array, Array]]:
    """Examples that show the same types: which they are, and their points in canonical order."""
    for count in sorted(set(batch.counts.tolist()), reverse=True):
        if count < 2:
            continue  # a single part fits any shape
        index = np.flatnonzero(batch.counts == count)
        rows = batch.offsets[index][:, None] + np.arange(count)
        rows = np.take_along_axis(rows, canonical_order(batch.parts[rows], 2), 1)
        rows = np.take_along_axis(rows, np.argsort(coded[rows], axis=1, kind="stable"), 1)
        signatures, which = np.unique(coded[rows], axis=0, return_inverse=True)
        for s, signature in enumerate(signatures.tolist()):
            here = which.ravel() == s
            yield tuple(signature), index[here], rows[here]


def _check(batch: SceneBatch, parts: int, missing: bool) -> None:
    if not isinstance(parts, (int, np.integer)) or parts < 1:
        raise InputError(f"parts must be a whole number, how many the object has; got {parts!r}.")
    finite("examples: points", batch.parts)
    width = batch.parts.shape[1]
    if width == 3:
        raise InputError("examples: points in space; templates are learned in the plane.")
    if parts < (3 if width == 2 else 2):
        raise InputError(
            f"parts is {parts}: any {parts} points have one and the same shape; there is nothing "
            "to learn from fewer than 3."
        )
    if len(batch) < 1:
        raise InputError("examples: there are none; learning needs at least 1.")
    wrong = batch.counts > parts if missing else batch.counts != parts
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"examples: {int(wrong.sum())} of {len(batch)} do not have {parts} points (example {i} "
            f"has {batch.counts[i]}); leave them out, or say that parts may be missing (fewer "
            "points) or how many objects a scene may show (more)."
        )


def _types(batch: SceneBatch, parts: int) -> tuple[Array, tuple[str, ...] | None]:
    """The type of every part: as often as any example shows it."""
    if batch.types is None:
        return np.zeros(parts, int), None
    most: Counter[str] = Counter()
    for i in range(len(batch)):
        most |= Counter(batch.types[batch.offsets[i] : batch.offsets[i + 1]])
    names = sorted(most)
    if sum(most.values()) != parts:
        listed = ", ".join(f"{most[n]} {n}" for n in names)
        raise InputError(
            f"examples: they show up to {listed}, which does not make {parts} parts; give examples "
            "of one object, and the number of its parts."
        )
    kinds = np.repeat(np.arange(len(names)), [most[n] for n in names])
    return kinds, tuple(names[k] for k in kinds)


def _features(batch: SceneBatch, kinds: Array) -> tuple[int, ...] | None:
    """How many appearance features each part has: one number a type."""
    if batch.appearance is None:
        return None
    sizes: dict[int, int] = {}
    names = sorted(set(batch.types)) if batch.types is not None else [""]
    for m, look in enumerate(batch.appearance):
        name = batch.types[m] if batch.types is not None else ""
        kind = names.index(name)
        if sizes.setdefault(kind, len(look)) != len(look):
            raise InputError(
                f"examples: the appearance of part {m} has {len(look)} numbers, that of others "
                f"{f'of type {name} ' if name else ''}{sizes[kind]}; parts of a type must agree."
            )
    return tuple(sizes[k] for k in kinds.tolist())


def _ways(kind: Array, kinds: Array) -> Array | None:
    """Every way in which points of these types can be parts, or None where they are too many."""
    of_type = [(np.flatnonzero(kind == k), np.flatnonzero(kinds == k)) for k in np.unique(kind)]
    if prod(perm(len(there), len(here)) for here, there in of_type) > MOST_WAYS:
        return None
    choices = [list(permutations(there.tolist(), len(here))) for here, there in of_type]
    ways = np.zeros((prod(map(len, choices)), len(kind)), int)
    for a, chosen in enumerate(product(*choices)):
        for (here, _), one in zip(of_type, chosen, strict=True):
            ways[a, here] = one
    return ways
