"""The best consistent set of hypotheses: set packing, for scenes too large to enumerate.

Hypotheses (from RANSAC) are weighed by their closed-form evidence against the same points being
clutter. Which of them are true together is a weighted set packing: no point in two objects, no
template more often than its bound. HiGHS solves it (``scipy.optimize.milp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import log
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import Bounds, milp
from scipy.sparse import csr_array

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
from partwise.problem import Problem, Slots, Solution
from partwise.solvers.ransac import Candidates, candidates

__all__ = ["Packing", "pack"]

Array = np.ndarray

UNEXPLAINED = -20.0
"""The log weight of leaving a point over where the model allows no clutter."""


@dataclass(frozen=True)
class Packing:
    """RANSAC's hypotheses, weighed by evidence, packed without contradiction.

    At most ``hypotheses`` of each scene are kept. The noise level, where it is not known, is the
    one under which a greedy packing explains the scene best.
    """

    hypotheses: int = 400
    bases: Literal["fixed", "all"] = "all"

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Explain every scene of ``problem``."""
        del seed
        found = candidates(problem, bases=self.bases, limit=self.hypotheses)
        gain = self.gains(problem, found)  # B H s
        slots, widest = problem.slots, max(problem.slots.sizes)
        parts = np.full((len(problem), len(slots.sizes), widest), -1, np.int32)
        probability = np.zeros(parts.shape[:2], np.float32)
        score = np.zeros(len(problem))
        rooms = np.array(problem.model.instances)
        copies = {t: np.flatnonzero(slots.template == t) for t in set(slots.template.tolist())}
        for b in range(len(problem)):
            usable = np.flatnonzero(found.valid[b])
            members = _members(found.parts[b, usable], problem.size)
            best = _explain(gain[b, usable], members, found.template[b, usable], rooms)
            score[b] = best.value
            for h, sure in zip(usable[best.chosen], best.certainty, strict=True):
                free = next(k for k in copies[found.template[b, h]] if probability[b, k] == 0)
                parts[b, free] = found.parts[b, h, :widest]
                probability[b, free] = max(sure, 1e-6)
        pose = fit_poses(problem, np.arange(len(slots.sizes)), parts)
        return Solution(parts, pose, probability, score, np.ones(len(problem), bool))

    def gains(self, problem: Problem, found: Candidates) -> Float[Array, "B H s"]:
        """What each hypothesis adds to the scene's log probability, at each noise level."""
        model, points = problem.model, int(problem.count[0])
        log_volume = log_scene_volume(model, points)
        clutter = log(model.clutter) - log_volume if model.clutter else UNEXPLAINED
        run = partial(_gains, noise_model(model), log_volume, problem.slots, _first_rows(problem))
        hypotheses = _Hypotheses(
            problem.points, problem.kind, found.template, found.parts, noise_levels(problem)
        )
        evidence = np.asarray(in_chunks(run, hypotheses, 16))
        seen = (found.parts >= 0).sum(2)
        whole = np.array([len(t) for t in model.templates])[found.template]
        odds = log(model.presence) - log(1 - model.presence)
        # A part that the model cannot hide may still be out of RANSAC's reach.
        hidden = log(model.missing) if model.missing else UNEXPLAINED
        prior = odds + seen * (log(1 - model.missing) - clutter) + (whole - seen) * hidden
        return evidence + prior[..., None]


class _Packed(NamedTuple):
    """The hypotheses that were chosen, how sure they are, and what they gain together."""

    chosen: Int[Array, " C"]
    certainty: Float[Array, " C"]
    value: float


def _explain(gain: Float[Array, "H s"], members, template, rooms) -> _Packed:
    """One scene: the noise level under which a greedy packing gains most, packed at its best."""
    if not len(gain):
        return _Packed(np.zeros(0, int), np.zeros(0), 0.0)
    values = [greedy(weight, members, template, rooms)[1] for weight in gain.T]
    weight = gain[:, int(np.argmax(values))]
    chosen, value = pack(weight, members, template, rooms)
    certainty = _certainty(weight, members, template, rooms, chosen)
    return _Packed(np.array(chosen, int), certainty, value)


class _Hypotheses(NamedTuple):
    """Scenes and their hypotheses, batch first."""

    points: Any
    kind: Any
    template: Any
    parts: Any
    sigma: Any


def _first_rows(problem: Problem) -> Int[Array, "T P"]:
    """For each template, the slots of its first copy (the last repeated, to fill up)."""
    slots = problem.slots
    widest = max(slots.sizes)
    out = np.zeros((len(problem.model.templates), widest), np.int32)
    for t in range(len(out)):
        rows = slots.rows(int(np.flatnonzero(slots.template == t)[0]))
        out[t] = np.concatenate([rows, np.repeat(rows[-1:], widest - len(rows))])
    return out


@partial(jax.jit, static_argnames=("noise", "log_volume"))
def _gains(noise, log_volume, slots: Slots, first, scenes: _Hypotheses, count):
    """The log evidence of every hypothesis at every noise level."""
    del count

    def one(points, kind, template, parts, sigma):
        slot = first[template]  # H P
        seen = (parts >= 0).astype(points.dtype).T  # P H
        at = jnp.maximum(parts, 0)
        x = jnp.moveaxis(points[at], 0, -1)  # P G H
        design, mean = (
            jnp.moveaxis(slots.design[slot], 0, -1),
            jnp.moveaxis(slots.mean[slot], 0, -1),
        )
        match = Match(design, mean, x, seen)
        statistics = noise.of(slots, match, log_volume)
        wrong = (kind[at] != slots.kind[slot]).T * seen
        other = MISMATCH * wrong.sum(0)
        if slots.inverse_variance.shape[1]:
            inverse = jnp.moveaxis(slots.inverse_variance[slot], 0, -1)
            other = other + appearance_evidence(slots, match, inverse)
        return jnp.stack([statistics.log_evidence(sigma[s]) + other for s in range(len(sigma))], -1)

    return jax.vmap(one)(*scenes)


def _members(parts: Int[Array, "H P"], points: int) -> Bool[Array, "H M"]:
    """Which points each hypothesis uses."""
    out = np.zeros((len(parts), points + 1), bool)
    np.put_along_axis(out, np.where(parts < 0, points, parts).astype(int), True, axis=1)
    return out[:, :points]


def greedy(weight, members, template, rooms) -> tuple[list[int], float]:
    """The best hypothesis first, then the best that still fits, while any adds something."""
    taken, room = np.zeros(members.shape[1], bool), rooms.copy()
    chosen, value = [], 0.0
    for h in np.argsort(-weight):
        if weight[h] <= 0:
            break
        if room[template[h]] and not (taken & members[h]).any():
            taken |= members[h]
            room[template[h]] -= 1
            chosen.append(int(h))
            value += float(weight[h])
    return chosen, value


def pack(
    weight: Float[Array, " H"],
    members: Bool[Array, "H M"],
    template: Int[Array, " H"],
    rooms: Int[Array, " T"],
) -> tuple[list[int], float]:
    """The set of hypotheses of greatest weight in which no point and no copy is used twice."""
    good = np.flatnonzero(weight > 0)
    if len(good) == 0:
        return [], 0.0
    points = members[good].T.astype(float)
    kinds = (template[good][None] == np.arange(len(rooms))[:, None]).astype(float)
    limits = np.concatenate([np.ones(len(points)), rooms])
    result = milp(
        -weight[good],
        constraints=(csr_array(np.concatenate([points, kinds])), -np.inf, limits),
        integrality=np.ones(len(good)),
        bounds=Bounds(0, 1),
    )
    if result.x is None:  # out of time or memory: the greedy packing is still consistent
        return greedy(weight, members, template, rooms)
    chosen = good[result.x > 0.5]
    return chosen.tolist(), float(weight[chosen].sum())


def _certainty(weight, members, template, rooms, chosen: list[int]) -> Float[Array, " C"]:
    """The probability of each chosen hypothesis, the others of the packing given.

    Against it stand that its points are clutter, and every hypothesis that could take its place.
    """
    owner = np.full(members.shape[1], -1)
    for i, h in enumerate(chosen):
        owner[members[h]] = i
    out = np.ones(len(chosen))
    used = np.bincount(template[chosen], minlength=len(rooms))
    for i, h in enumerate(chosen):
        rival = (members & members[h]).any(1)
        rival &= ~(members & ((owner >= 0) & (owner != i))).any(1)
        rival &= (used < rooms)[template] | (template == template[h])
        rival[h] = False
        against = np.append(weight[rival], 0.0) - weight[h]
        out[i] = 1.0 / (1.0 + np.exp(np.clip(against, -700, 50)).sum())
    return out
