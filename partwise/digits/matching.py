"""Which object a picture's parts are, and which part is which: every match, in closed form.

A picture shows one object, some of its parts hidden perhaps, and clutter. The types of parts leave
so few ways to match them that all can be listed; each is weighed by its evidence with the pose
integrated out (``partwise.evidence``). Matches of all lengths and of all pictures are padded to one
table, so that they are one computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import combinations, permutations, product
from math import log, pi
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from partwise.evidence import Match, TemplateNoise
from partwise.learning import Learned
from partwise.poses import Similarity2D
from partwise.scenes import Scene, SceneBatch

__all__ = ["Found", "Matching"]

Array = np.ndarray

AT_ONCE = 8192
"""Matches that are weighed at once."""


class Found(NamedTuple):
    """What one picture shows.

    ``evidence`` is the log density of the picture's parts under each template, over all matches,
    -inf where there is none. ``parts[n]`` is the observed part that is part n of ``template`` in
    the likeliest match of all, -1 where it is hidden; ``pose`` carries that template into the
    picture. Without any match ``template`` is -1.
    """

    evidence: Float[Array, " T"]
    template: int
    parts: Int[Array, " n"]
    pose: Float[Array, " 4"]


class _Table(NamedTuple):
    """Matches, one a row."""

    picture: Any
    template: Any
    ways: Any
    prior: Any


@dataclass(frozen=True, eq=False)
class Matching:
    """Templates with types and directions, which of them to expect how often, and the rest.

    Every part is hidden with probability ``missing``, at most ``hidden`` of them; there are
    ``clutter`` further parts on average, anywhere in a disc of ``radius``, their arms in one of
    radius ``arm``.
    """

    templates: Sequence[Learned]
    weights: Sequence[float]
    radius: float
    arm: float
    missing: float = 0.1
    clutter: float = 0.5
    hidden: int = 1

    @cached_property
    def _size(self) -> int:
        return max(map(len, self.templates))

    @cached_property
    def _designs(self) -> Float[Array, "T P 4 4"]:
        out = np.zeros((len(self.templates), self._size, 4, 4), np.float32)
        for t, template in enumerate(self.templates):
            out[t, : len(template)] = [Similarity2D().design(p) for p in template.parts]
        return out

    def find(self, scenes: Sequence[Scene]) -> list[Found]:
        """What each picture shows, given its parts."""
        table = self._table(scenes)
        evidence = self._weighed(scenes, table)
        total = np.full((len(scenes), len(self.templates)), -np.inf)
        np.logaddexp.at(total, (table.picture, table.template), evidence)
        out = []
        first = np.searchsorted(table.picture, np.arange(len(scenes) + 1))
        for i, scene in enumerate(scenes):
            rows = slice(first[i], first[i + 1])
            if rows.start == rows.stop:
                out.append(Found(total[i], -1, np.zeros(0, int), np.full(4, np.nan)))
                continue
            best = rows.start + int(evidence[rows].argmax())
            t = int(table.template[best])
            way = table.ways[best, : len(self.templates[t])]
            seen = way >= 0
            pose = Similarity2D().solve(self.templates[t].parts[seen], scene.parts[way[seen]])
            out.append(Found(total[i], t, way, pose))
        return out

    def _table(self, scenes: Sequence[Scene]) -> _Table:
        """Every match of every picture, and its log prior."""
        space = log(pi * self.radius**2) + log(pi * self.arm**2)
        pieces: list[tuple] = []
        for i, scene in enumerate(scenes):
            for t, template in enumerate(self.templates):
                ways = _ways(template.types or (), tuple(scene.types or ()), self.hidden)
                if len(ways) == 0:
                    continue
                seen = (ways >= 0).sum(1)
                prior = seen * log(1 - self.missing) + (len(template) - seen) * log(self.missing)
                rest = (len(scene) - seen) * (log(self.clutter) - space) - self.clutter
                padded = np.full((len(ways), self._size), -1)
                padded[:, : len(template)] = ways
                every = np.ones(len(ways), int)
                pieces.append((i * every, t * every, padded, prior + rest + log(self.weights[t])))
        if not pieces:
            nothing = np.zeros(0, int)
            return _Table(nothing, nothing, np.zeros((0, self._size), int), np.zeros(0))
        return _Table(*(np.concatenate(column) for column in zip(*pieces, strict=True)))

    def _weighed(self, scenes: Sequence[Scene], table: _Table) -> Float[Array, " R"]:
        """The log evidence of every match, prior included."""
        batch = SceneBatch.collect(scenes)
        parts = _rounded(batch.parts.astype(np.float32))
        index = np.where(table.ways >= 0, batch.offsets[table.picture][:, None] + table.ways, -1)
        sigma = np.array([t.sigma for t in self.templates], np.float32)
        out = np.zeros(len(index))
        for start in range(0, len(index), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            count = len(index[rows])
            fill = ((0, AT_ONCE - count), (0, 0))
            values = _evidence(
                log(pi * self.radius**2),
                self._designs,
                sigma,
                parts,
                np.pad(table.template[rows], fill[0]),
                np.pad(index[rows], fill, constant_values=-1),
            )
            out[rows] = np.asarray(values)[:count]
        return out + table.prior


def _rounded(parts: Float[Array, "M 4"]) -> Float[Array, "M2 4"]:
    """Padded to a power of two: few lengths to compile for."""
    length = 1 << int(np.ceil(np.log2(max(len(parts), 1024))))
    return np.pad(parts, ((0, length - len(parts)), (0, 0)))


class _Directed(NamedTuple):
    """What of a problem the evidence of a match needs: numbers a part."""

    geometry: int = 4


@partial(jax.jit, static_argnums=0)
def _evidence(log_volume, designs, sigma, parts, template, index):
    """The log evidence of matches, the pose integrated out."""
    seen = (index >= 0).astype(jnp.float32)
    x = parts[jnp.maximum(index, 0)] * seen[..., None]
    design = jnp.moveaxis(designs[template], 0, -1)
    match = Match(design, jnp.zeros(()), jnp.moveaxis(x, 0, -1), seen.T)
    slots: Any = _Directed()
    return TemplateNoise.of(slots, match, log_volume).log_evidence(sigma[template])


@lru_cache(maxsize=4096)
def _ways(template: tuple[str, ...], seen: tuple[str, ...], hidden: int) -> Int[Array, "W n"]:
    """Which observed part each part may be, types respected, at most so many ``hidden``.

    At least two parts are seen: one fits anywhere.
    """
    kinds = sorted(set(template))
    each = []
    for kind in kinds:
        mine = [n for n, k in enumerate(template) if k == kind]
        there = [m for m, k in enumerate(seen) if k == kind]
        least = max(len(mine) - hidden, 0)
        some = [
            dict(zip(chosen, order, strict=True))
            for count in range(least, min(len(mine), len(there)) + 1)
            for chosen in combinations(mine, count)
            for order in permutations(there, count)
        ]
        each.append(some)
    out = []
    for choice in product(*each):
        way = {n: m for one in choice for n, m in one.items()}
        if len(way) >= max(len(template) - hidden, 2):
            out.append([way.get(n, -1) for n in range(len(template))])
    return np.array(out, int).reshape(-1, len(template))
