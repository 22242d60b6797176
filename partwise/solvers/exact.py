"""Exact inference: the evidence of every grouping, and their posterior.

Which points form which object, and which point is which part, is summed over completely; poses are
integrated out in closed form (``partwise.evidence``); the noise level, where it is not known, is
summed over a grid. What is left of a scene is a table of groupings and their probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from partwise._checks import InputError
from partwise._small import largest, total
from partwise._types import Array
from partwise.batching import in_chunks
from partwise.evidence import (
    MISMATCH,
    Match,
    appearance_evidence,
    log_scene_volume,
    noise_levels,
    noise_model,
)
from partwise.fitting import fit_poses
from partwise.model import Model
from partwise.problem import Problem, Slots, Solution
from partwise.solvers.groupings import Groupings, candidate_count, groupings, representatives

__all__ = ["Exact"]


@dataclass(frozen=True)
class Exact:
    """The grouping of highest posterior probability, and the probability of each of its objects.

    For scenes that have at most ``limit`` groupings, of at most ``matches`` matches to score.
    """

    limit: int = 20_000
    matches: int = 40_000

    def feasible(self, model: Model, points: int) -> bool:
        """Whether scenes of so many points can be enumerated."""
        if candidate_count(model, points) > self.matches:
            return False
        return groupings(model, points, _log_clutter(model, points), self.limit) is not None

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Explain every scene of ``problem``; there is nothing random."""
        del seed
        problem = problem.trimmed()
        if not self.feasible(problem.model, problem.size):
            raise InputError(
                f"solver exact: a scene of {problem.count.max()} points has too many groupings "
                'under this model to enumerate; use solver "auto".'
            )
        model, points = problem.model, problem.size
        table = groupings(model, points, _log_clutter(model, points), self.limit)
        assert table is not None
        enumeration = _Enumeration(table, problem.slots)
        scenes = _Scenes(problem.points, problem.kind, noise_levels(problem))
        run = partial(
            _solve,
            noise_model(model),
            log_scene_volume(model, points),
            enumeration.shape,
            problem.slots,
            enumeration.arrays,
        )
        # Intermediate arrays of this size stay in the cache.
        largest_chunk = next(n for n in (256, 64, 16, 1) if n == 1 or n * enumeration.work < 2.5e5)
        best = in_chunks(run, scenes, largest_chunk)
        return _explain(problem, table, best)


def _log_clutter(model: Model, points: int) -> float:
    if model.clutter == 0:
        return 0.0
    return log(model.clutter) - log_scene_volume(model, points)


class _Scenes(NamedTuple):
    """Scenes, batch first."""

    points: Any
    kind: Any
    sigma: Any


class _Set(NamedTuple):
    """One ``Candidates`` as arrays: points of each subset, parts of each way, slots of those."""

    subsets: Int[Array, "C n"]
    slot: Int[Array, "A n"]
    log_prior: Float[Array, " A"]


class _Enumeration:
    """A table of groupings as arrays for the compiled function."""

    def __init__(self, table: Groupings, slots: Slots):
        sets = []
        for c in table.candidates:
            first = int(slots.rows(c.object)[0])
            sets.append(
                _Set(c.subsets, first + c.parts, (c.log_prior + c.log_ways).astype(np.float32))
            )
        rows = np.where(table.rows < 0, table.count, table.rows).astype(np.int32)
        self.arrays = (tuple(sets), rows, table.log_prior.astype(np.float32))
        self.shape = len(sets)
        self.work = max([len(s.subsets) * len(s.slot) for s in sets] + [len(rows) * 2])


class _Best(NamedTuple):
    """The best grouping of each scene."""

    row: Any
    way: Any
    probability: Any
    log_evidence: Any


@partial(jax.jit, static_argnames=("noise", "log_volume", "sets"))
def _solve(noise, log_volume, sets, slots: Slots, arrays, scenes: _Scenes, count) -> _Best:
    """The posterior over groupings of a chunk of scenes; the batch is the last axis."""
    del sets, count
    scenes = jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), scenes)
    candidates, rows, log_prior = arrays
    evidence, ways = [], []
    for c in candidates:
        value, way = _candidates(noise, log_volume, slots, c, scenes)
        evidence.append(value)
        ways.append(way)
    levels, batch = scenes.sigma.shape
    nothing = jnp.zeros((levels, 1, batch))
    way = jnp.concatenate([*ways, jnp.zeros((1, batch), jnp.int32)])
    # Objects of one scene share its noise level: add their evidence, then average over levels.

    def add(running, level):
        # Running log sum exp: (largest term so far, sum relative to it).
        most, sum_ = running
        term = sum(level[rows[:, k]] for k in range(rows.shape[1]))
        new = jnp.maximum(most, term)
        return (new, sum_ * jnp.exp(most - new) + jnp.exp(term - new)), None

    start = jnp.full((len(rows), batch), -1e30), jnp.zeros((len(rows), batch))
    (most, sum_), _ = jax.lax.scan(add, start, jnp.concatenate([*evidence, nothing], 1))
    weight = log_prior[:, None] + most + jnp.log(sum_) - jnp.log(levels)
    top = weight.max(0)
    mass = jnp.exp(weight - top[None])
    norm = mass.sum(0)
    row = weight.argmax(0)
    chosen = rows[row]  # B K
    holds = [(rows[:, :, None] == chosen[None, None, :, k]).any(1) for k in range(rows.shape[1])]
    probability = jnp.stack([(mass * h).sum(0) for h in holds], 1) / norm[:, None]
    best_way = jnp.take_along_axis(way.T, chosen, 1)
    return _Best(chosen, best_way, probability, top + jnp.log(norm))


def _candidates(
    noise, log_volume: float, slots: Slots, c: _Set, scenes: _Scenes
) -> tuple[Float[Array, "s C b"], Int[Array, "C b"]]:
    """The evidence of each subset of points, summed over the ways to be parts; and the best way."""
    n = c.subsets.shape[1]
    x = jnp.stack([scenes.points[c.subsets[:, j]] for j in range(n)])  # n C G b
    x = jnp.moveaxis(x, 2, 1)[:, :, :, None]  # n G C 1 b
    slot = c.slot.T  # n A
    design = jnp.moveaxis(slots.design[slot], 1, -1)[..., None, :, None]  # n G d 1 A 1
    mean = jnp.moveaxis(slots.mean[slot], 1, -1)[..., None, :, None]
    match = Match(design, mean, x)
    statistics = noise.of(slots, match, log_volume)
    other = jnp.reshape(c.log_prior, (1, -1, 1))
    if slots.inverse_variance.shape[1]:
        inverse = jnp.moveaxis(slots.inverse_variance[slot], 1, -1)[..., None, :, None]
        other = other + appearance_evidence(slots, match, inverse)
    kinds = jnp.stack([scenes.kind[c.subsets[:, j]] for j in range(n)])[:, :, None]  # n C 1 b
    wrong = kinds != slots.kind[slot][:, None, :, None]
    other = other + MISMATCH * total(wrong.astype(jnp.float32), 0)

    def summed(sigma):
        log_factor, factor = statistics.factors(sigma)  # C A b
        log_factor = log_factor + other
        top = largest(log_factor, 1)
        return top + jnp.log(total(factor * jnp.exp(log_factor - top[:, None]), 1))

    levels = scenes.sigma.shape[0]
    way = (statistics.log_evidence(scenes.sigma[levels // 2]) + other).argmax(1)
    return jax.lax.map(summed, scenes.sigma), way.astype(jnp.int32)


def _explain(problem: Problem, table: Groupings, best: _Best) -> Solution:
    """The best grouping as detections, their poses by least squares."""
    slots = problem.slots
    chosen, ways = np.asarray(best.row), np.asarray(best.way)
    widest = max(slots.sizes)
    parts = np.full((len(problem), len(slots.sizes), widest), -1, np.int32)
    probability = np.zeros(parts.shape[:2], np.float32)
    alike = np.array(representatives(problem.model))[slots.template]
    copies = {t: np.flatnonzero(alike == t) for t in set(alike.tolist())}
    used = np.zeros((len(problem), len(slots.sizes)), int)
    start = 0
    for c in table.candidates:
        stop = start + len(c.subsets)
        free = copies[int(alike[c.object])]
        for k in range(chosen.shape[1]):
            scene = np.flatnonzero((chosen[:, k] >= start) & (chosen[:, k] < stop))
            subset = c.subsets[chosen[scene, k] - start]  # S n
            way = c.parts[ways[scene, k]]
            copy = free[used[scene, free[0]]] if len(scene) else np.zeros(0, int)
            used[scene, free[0]] += 1
            parts[scene[:, None], copy[:, None], way] = subset
            probability[scene, copy] = np.asarray(best.probability)[scene, k]
        start = stop
    pose = fit_poses(problem, np.arange(len(slots.sizes)), parts)
    return Solution(
        parts,
        pose,
        np.clip(probability, 0.0, 1.0),
        np.asarray(best.log_evidence, float),
        np.ones(len(problem), bool),
    )
