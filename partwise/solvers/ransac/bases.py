"""Algorithm 3, lines 1 to 7: templates, their base matrices B_k, and the tuples of points x_ij.

All of it is worked out on the host, once per model and size of scene.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, permutations
from math import comb, perm
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from partwise._types import Array
from partwise.frames import template_frames
from partwise.model import Model
from partwise.problem import slots_of

__all__ = ["BIG_SCENE", "Bases", "Plan", "plans", "search_order"]

Bases = Literal["fixed", "all"]

TRIALS = 100_000
"""The most hypotheses per template and scene; beyond, a random sample of point tuples is tried."""

MOST_BASES = 64
"""The most ordered bases of one template, the best conditioned first."""

BIG_SCENE = 16
"""Scenes with more points than this are searched in larger blocks, and fewer at a time."""


class Plan(NamedTuple):
    """One template's b ordered bases, and the tuples of points to try them on.

    In row i the parts of the basis come first (``order[i]``). ``pose`` is the inverse of B_k,
    ``refit`` that of all parts; ``spread`` gives the squared scale of a pose, ``y^T S y``; a row of
    ``turns`` relabels the parts in a way that a pose can undo.
    """

    order: Int[Array, "b P"]
    kind: Int[Array, "b P"]
    design: Float[Array, "b P g d"]
    mean: Float[Array, "b P g"]
    pose: Float[Array, "b d Bg"]
    refit: Float[Array, "b d Pg"]
    spread: Float[Array, "d d"]
    turns: Int[Array, "s P"]
    tuples: Int[Array, "blocks C B"]


def search_order(model: Model) -> list[int]:
    """Templates with many parts first: chance imitates them least. Ties in canonical order."""
    return sorted(model.canonical_order.tolist(), key=lambda t: -len(model.templates[t]))


def plans(model: Model, points: int, bases: Bases) -> tuple[Plan, ...]:
    """One plan a template, in the order of the search, for scenes of ``points`` points."""
    out = []
    for t in search_order(model):
        plan = _template_plan(model, t, bases)
        count, parts = plan.order.shape
        size = min(model.pose.basis_size(model.part_size), parts)
        block = 1024 if points <= BIG_SCENE else 4096
        out.append(plan._replace(tuples=_tuples(points, size, count, block)))
    return tuple(out)


@lru_cache(maxsize=64)
def _template_plan(model: Model, template: int, bases: Bases) -> Plan:
    """The plan of one template, without any tuples."""
    slots, g, d = slots_of(model), model.part_size, model.pose.dim
    rows = slots.rows(int(np.flatnonzero(slots.template == template)[0]))
    design, mean = slots.design[rows, :g, :d].astype(float), slots.mean[rows, :g].astype(float)
    kind = slots.kind[rows]
    parts, size = len(design), min(model.pose.basis_size(g), len(design))
    turns = np.arange(parts)[None]
    if model.templates[0].appearance is None:  # Parts that move alike may still look different.
        turns = _symmetries(design, mean, kind, size)
    ordered: list[tuple[int, ...]] = []
    seen: set[tuple[int, ...]] = set()
    for chosen in _best_bases(design, size, 1 if bases == "fixed" else MOST_BASES):
        for basis in permutations(chosen):
            if basis not in seen:
                ordered.append(basis)
                seen |= {tuple(pi[list(basis)].tolist()) for pi in turns} | {basis}
    order = np.array(
        [[*b, *(n for n in range(parts) if n not in b)] for b in ordered[:MOST_BASES]], np.int32
    )
    flat = design[order]
    stacked = flat.reshape(len(order), parts * g, d)
    return Plan(
        order,
        kind[order].astype(np.int32),
        flat.astype(np.float32),
        mean[order].astype(np.float32),
        np.linalg.pinv(stacked[:, : size * g]).astype(np.float32),
        np.linalg.pinv(stacked).astype(np.float32),
        _spread(model, template, design).astype(np.float32),
        turns.astype(np.int32),
        np.zeros((0, 0, size), np.int32),
    )


def _spread(model: Model, template: int, design: np.ndarray) -> np.ndarray:
    """S with ``y^T S y`` the spread of the parts in pose y, against the template's own spread."""
    own = template_frames(model).of(template).normalise(model.templates[template].parts[None])[0]
    moved, away = design.copy(), own.copy()
    moved[:, : model.pose.scene_dim] -= moved[:, : model.pose.scene_dim].mean(0)
    away[:, : model.pose.template_dim] -= away[:, : model.pose.template_dim].mean(0)
    return np.einsum("ngi,ngj->ij", moved, moved) / ((away**2).sum() or 1.0)


def _symmetries(design: np.ndarray, mean: np.ndarray, kind: np.ndarray, size: int) -> np.ndarray:
    """The relabellings of parts that a pose can undo, e.g. the quarter turns of a square.

    ``F_pi(n) = F_n T`` for all n and one T: a basis and its image under pi predict the same object.
    """
    parts = len(design)
    identity = np.arange(parts)[None]
    if parts < size or perm(parts, size) > 2000:
        return identity
    basis = _best_bases(design, size, 1)[0]
    inverse = np.linalg.pinv(np.concatenate(design[list(basis)]))
    found = []
    for image in permutations(range(parts), size):
        turn = inverse @ np.concatenate(design[list(image)])
        away = np.abs((design @ turn)[:, None] - design[None]).max((2, 3))
        pi = away.argmin(1)
        same = len(set(pi.tolist())) == parts and away.min(1).max() < 1e-4
        if same and (kind[pi] == kind).all() and np.abs(mean[pi] - mean).max() < 1e-4:
            found.append(pi)
    return np.unique(np.array(found), axis=0) if found else identity


def _best_bases(design: np.ndarray, size: int, limit: int) -> list[tuple[int, ...]]:
    """Sets of parts that fix a pose, best conditioned first (the farthest apart)."""
    sets = list(combinations(range(len(design)), size))
    if len(sets) > 5000:
        sets = [sets[i] for i in np.linspace(0, len(sets) - 1, 5000).astype(int)]
    stacked = design[np.array(sets)].reshape(len(sets), -1, design.shape[2])
    smallest = np.linalg.svd(stacked, compute_uv=False)[:, -1]
    best = np.argsort(-np.round(smallest, 6), kind="stable")
    usable = [i for i in best if smallest[i] > 1e-3 * smallest[best[0]]]
    return [sets[i] for i in usable[:limit]]


@lru_cache(maxsize=256)
def _tuples(points: int, size: int, bases: int, block: int) -> np.ndarray:
    """Unordered tuples of points in blocks (-1 pads); a random sample where there are too many."""
    most = max(TRIALS // bases, 1)
    if comb(points, size) <= most:
        chosen = np.array(list(combinations(range(points), size)), np.int32).reshape(-1, size)
    else:
        rng = np.random.default_rng(0)
        drawn = np.argsort(rng.random((2 * most, points)), axis=1)[:, :size]
        chosen = np.unique(np.sort(drawn, 1), axis=0)
        chosen = rng.permutation(chosen)[:most].astype(np.int32)
    if len(chosen) == 0:
        return np.full((1, 1, size), -1, np.int32)
    width = min(max(block // bases, 1), len(chosen))
    blocks = -(-len(chosen) // width)
    padded = np.full((blocks * width, size), -1, np.int32)
    padded[: len(chosen)] = chosen
    return padded.reshape(blocks, width, size)
