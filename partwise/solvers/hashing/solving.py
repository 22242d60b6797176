"""Between the arrays of a problem and the compiled search of one scene."""

from __future__ import annotations

from functools import lru_cache
from math import exp, log
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy.spatial import ConvexHull, QhullError

from partwise.evidence import log_scene_volume
from partwise.fitting import RIDGE
from partwise.model import Model
from partwise.plane import from_complex
from partwise.problem import Problem, Solution
from partwise.solvers.hashing.beliefs import Beliefs
from partwise.solvers.hashing.scene import explain
from partwise.solvers.hashing.search import new_pool
from partwise.solvers.hashing.table import Table, Templates, table

__all__ = ["Answer", "prepare", "scene_answer", "solution_of"]

Array = np.ndarray

FEW = 20
"""Of fewer points the hull says little."""

UNLIKELY = -20.0
"""The log probability of a hidden part where the model hides none."""


class Answer(NamedTuple):
    """The detections of one scene: template, matched points, pose, probability; the gain."""

    template: Int[Array, " D"]
    match: Int[Array, "D P"]
    pose: Float[Array, "D 4"]
    probability: Float[Array, " D"]
    value: float


@lru_cache(maxsize=8)
def templates_of(model: Model) -> Templates:
    """The templates as arrays, centred, in their common unit."""
    parts = [(t.positions - t.centre) / model.unit @ [1, 1j] for t in model.templates]
    names = {name: i for i, name in enumerate(model.type_names)}
    kinds = [[names[n] for n in t.types or ()] or [0] * len(t) for t in model.templates]
    first = np.concatenate([[0], np.cumsum([len(p) for p in parts])])
    seen: dict[bytes, int] = {}
    keys = [p.tobytes() + bytes(str(k), "ascii") for p, k in zip(parts, kinds, strict=True)]
    kin = np.array([seen.setdefault(key, t) for t, key in enumerate(keys)])
    return Templates(np.concatenate(parts), np.concatenate(kinds).astype(np.int32), first, kin)


@lru_cache(maxsize=32)
def prepare(model: Model, sigma: float, groups: int) -> Table:
    """The hash table of a model (kept: models are immutable)."""
    return table(templates_of(model), sigma, groups)


def _beliefs(model: Model, sigma: float) -> Beliefs:
    odds = model.presence / (1 - model.presence)
    copies = float(np.mean(model.instances or (1,)))
    parts = np.repeat([len(t) for t in model.templates], model.instances or 1).sum()
    points = float(parts) * model.presence * (1 - model.missing)
    return Beliefs(
        sigma,
        float(sum(model.instances or (1,))) * model.presence,
        log(copies * odds),
        log(1 - model.missing),
        log(model.missing) if model.missing else UNLIKELY,
        float(model.clutter),
        float(model.clutter / max(model.clutter + points, 1e-9)),
        max(model.scales[1] / model.scales[0], 1.02),
    )


def scene_answer(problem: Problem, b: int, levels: list[float], groups: int) -> Answer:
    """What is in scene b, at that of the noise levels that explains it best.

    Levels rise. One that is too low explains nothing, one that is too high explains less: after
    the best comes nothing better.
    """
    best = None
    for sigma in levels:
        new = _at_level(problem, b, sigma, groups)
        if best is not None and new.value < best.value:
            break
        best = new
    assert best is not None
    return best


def _at_level(problem: Problem, b: int, sigma: float, groups: int) -> Answer:
    model, count = problem.model, int(problem.count[b])
    templates, hashed = templates_of(model), prepare(model, sigma, groups)
    widest = int(np.diff(templates.first).max())
    if count < 2 or not len(hashed.length):
        none = np.zeros(0, int)
        return Answer(none, np.zeros((0, widest), int), np.zeros((0, 4)), np.zeros(0), 0.0)
    points = problem.points[b, :count, :2].astype(float) @ np.array([1, 1j])
    kinds = problem.kind[b, :count].astype(np.int32)
    volume, pool = _area(model, points), new_pool(widest)
    rows, sure, value = explain(
        hashed, templates, points, kinds, _beliefs(model, sigma), volume, pool
    )
    match, template = pool.match[rows], pool.template[rows]
    pose = [
        _pose(templates.parts[templates.first[t] : templates.first[t + 1]], points, m)
        for t, m in zip(template, match, strict=True)
    ]
    return Answer(template, match, np.array(pose).reshape(-1, 4), sure, value)


def _area(model: Model, points: Complex[Array, " M"]) -> float:
    """Of the window that the scene was seen in: where clutter is spread and objects lie.

    From the hull of the points; that of M points spread evenly over a square of area 1 is
    1 - (8 / 3) log(M) / M on average (Renyi and Sulanke 1963). From the spread where they are few.
    """
    count = len(points)
    spread = exp(log_scene_volume(model, count))
    if count < FEW:
        return spread
    try:
        hull = ConvexHull(from_complex(points)).volume
    except QhullError:  # on a line
        return spread
    return max(hull / (1 - 8 / 3 * log(count) / count), 0.1 * spread)


def _pose(parts, points, match) -> tuple[float, ...]:
    """Least squares: (tx, ty, s cos, s sin) of eq. 2, which turns clockwise."""
    seen = match[: len(parts)] >= 0
    p, x = parts[seen], points[match[: len(parts)][seen]]
    pc = p - p.mean()
    a = (np.conj(pc) * (x - x.mean())).sum() / ((np.abs(pc) ** 2).sum() + RIDGE * 1e-3)
    shift = x.mean() - a * p.mean()
    return shift.real, shift.imag, a.real, -a.imag


def solution_of(problem: Problem, answers: list[Answer]) -> Solution:
    """Detections put into the places that the model has for them, the surest first."""
    slots, model = problem.slots, problem.model
    kin = templates_of(model).kin
    places = {t: np.flatnonzero(kin[slots.template] == t).tolist() for t in set(kin.tolist())}
    shape = (len(problem), len(slots.sizes))
    parts = np.full((*shape, max(slots.sizes)), -1, np.int32)
    pose, probability = np.zeros((*shape, 4)), np.zeros(shape, np.float32)
    for b, found in enumerate(answers):
        used = dict.fromkeys(places, 0)
        for i in np.argsort(-found.probability, kind="stable"):
            t = int(kin[found.template[i]])
            if used[t] < len(places[t]):
                k = places[t][used[t]]
                used[t] += 1
                parts[b, k], pose[b, k] = found.match[i], found.pose[i]
                probability[b, k] = max(found.probability[i], 1e-6)
    score = np.array([a.value for a in answers])
    return Solution(parts, pose, probability, score, np.ones(len(problem), bool))
