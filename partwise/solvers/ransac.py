"""RANSAC (sec. 5, Algorithm 3): a minimal basis of parts predicts the object; the scene checks it.

Hypothesis: an ordered tuple of observed points is an ordered basis of template parts. The pose
solves ``B_k y = x_ij`` (with the precomputed inverse of the stacked design matrices), predicts all
other parts, and each of them takes the nearest free point within the tolerance (SubsetMatch). The
pose is then refitted on all matched parts by least squares.

Arrays end in the axes of the tuples and the scenes. Poses and predictions are matrix products, the
nearest points a loop over points: XLA fuses neither into what follows, and so computes them once.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations, permutations
from math import comb, log, perm
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from partwise._checks import InputError, one_of
from partwise.model import Model
from partwise.problem import Problem, Slots, Solution, slots_of

__all__ = ["Candidates", "Ransac", "appearance", "candidates"]

Bases = Literal["fixed", "all"]

TOLERANCE = 1.3
"""The tolerance where objects are whole and alone, in template radii (see ``_tolerance2``)."""

_CAUTIOUS = 0.3
_SIGMAS = 7.0
_CHANCE = 0.1
"""How many hypotheses per scene chance alone may give (a contrario RANSAC)."""

TRIALS = 100_000
"""The most hypotheses per template and scene; beyond, a random sample of point tuples is tried."""

MOST_BASES = 64
"""The most ordered bases of one template, the best conditioned first."""

_BIG_SCENE = 16
"""Scenes with more points are searched in blocks and loops instead of unrolled code."""


class Candidates(NamedTuple):
    """Hypotheses that passed SubsetMatch, best first, distinct in (template, set of points).

    ``template`` counts in the order of ``model.templates``; ``parts[b, h, n]`` is the point that is
    part n, -1 where it is missing; ``pose`` is geometric; ``error`` is the squared residual in
    the template's frame. ``basis`` marks the parts whose points proposed the pose.
    """

    template: Int[np.ndarray, "B H"]
    parts: Int[np.ndarray, "B H P"]
    pose: Float[np.ndarray, "B H d"]
    error: Float[np.ndarray, "B H"]
    valid: Bool[np.ndarray, "B H"]
    significance: Float[np.ndarray, "B H"]
    basis: Bool[np.ndarray, "B H P"]


class _Plan(NamedTuple):
    """One template's bases as arrays; in row i the basis parts come first (``order[i]``)."""

    order: Int[Array, "b P"]
    kind: Int[Array, "b P"]
    design: Float[Array, "b P g d"]
    mean: Float[Array, "b P g"]
    pose: Float[Array, "b d Bg"]
    refit: Float[Array, "b d Pg"]
    spread: Float[Array, "d d"]
    turns: Int[Array, "s P"]
    turn_poses: Float[Array, "s d d"]
    tuples: Int[Array, "blocks C B"]


class _Options(NamedTuple):
    """What the compiled code is specialised to."""

    whole: bool
    covered: bool
    refit: bool
    scales: bool
    typed: bool
    scene_dim: int
    linear: bool


class _Chunk(NamedTuple):
    """A chunk of scenes as it enters the compiled code; ``one`` is 1 (see :func:`_once`)."""

    x: Float[Array, "g M B"]
    count: Int[Array, " B"]
    kind: Int[Array, "M B"]
    tol2: Float[Array, ""]
    one: Int[Array, ""]


class _Scene(NamedTuple):
    """A chunk of scenes: points (g, M, B), which of them are free, their types, their density."""

    x: Float[Array, "g M B"]
    open: Bool[Array, "M B"]
    kind: Int[Array, "M B"]
    tol2: Float[Array, ""]
    density: Float[Array, " B"]
    one: Int[Array, ""]


class _Found(NamedTuple):
    """Hypotheses of one template: (B, H) arrays."""

    cost: Float[Array, "B H"]
    error: Float[Array, "B H"]
    significance: Float[Array, "B H"]
    parts: Int[Array, "B H P"]
    pose: Float[Array, "B H d"]
    basis: Bool[Array, "B H P"]


# --- bases: on the host, once per model and size of scene ---------------------------------------


def _geometry(slots: Slots, k: int, g: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Design matrices, offsets and types of the parts of object k, geometry only."""
    rows = slots.rows(k)
    return (
        slots.design[rows, :g, :d].astype(float),
        slots.mean[rows, :g].astype(float),
        slots.kind[rows],
    )


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


@lru_cache(maxsize=64)
def _template_arrays(model: Model, template: int, bases: Bases) -> dict[str, np.ndarray]:
    """All fields of :class:`_Plan` but the tuples of points."""
    slots, g, d = slots_of(model), model.part_size, model.pose.dim
    k = int(np.flatnonzero(slots.template == template)[0])
    design, mean, kind = _geometry(slots, k, g, d)
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
    ordered = ordered[:MOST_BASES]
    order = np.array([[*b, *(n for n in range(parts) if n not in b)] for b in ordered], np.int32)
    flat = design[order]
    stacked = flat.reshape(len(order), parts * g, d)
    # Scale: how far the predicted parts spread, against the template's own spread.
    own = _own_parts(model, template)
    centred = design.copy()
    dim = model.pose.scene_dim
    centred[:, :dim] -= centred[:, :dim].mean(0)
    total = (own**2).sum()
    spread = np.einsum("ngi,ngj->ij", centred, centred) / (total if total > 0 else 1.0)
    return {
        "order": order,
        "kind": kind[order].astype(np.int32),
        "design": flat.astype(np.float32),
        "mean": mean[order].astype(np.float32),
        "pose": np.linalg.pinv(stacked[:, : size * g]).astype(np.float32),
        "refit": np.linalg.pinv(stacked).astype(np.float32),
        "spread": spread.astype(np.float32),
        "turns": turns.astype(np.int32),
        "turn_poses": _turn_poses(design, turns).astype(np.float32),
    }


def _turn_poses(design: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """The matrices T of :func:`_symmetries`, ``F_pi(n) = F_n T``; the first is the identity."""
    inverse = np.linalg.pinv(np.concatenate(design))
    out = np.stack([inverse @ np.concatenate(design[pi]) for pi in turns])
    out[0] = np.eye(design.shape[2])
    return out


def _own_parts(model: Model, template: int) -> np.ndarray:
    """The template's parts, centred, in the solvers' unit."""
    own = model.templates[template]
    parts = own.parts.copy()
    parts[:, : own.centre.size] -= own.centre
    return parts if model.prior is not None else parts / model.unit


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


def _search_order(model: Model) -> list[int]:
    """Templates with many parts first: chance imitates them least. Ties in canonical order."""
    return sorted(model.canonical_order.tolist(), key=lambda t: -len(model.templates[t]))


def _plans(model: Model, points: int, bases: Bases) -> tuple[_Plan, ...]:
    """One plan a template, in the order of the search, for scenes of ``points`` points."""
    size = model.pose.basis_size(model.part_size)
    out = []
    for t in _search_order(model):
        arrays = _template_arrays(model, t, bases)
        parts, count = arrays["order"].shape[1], len(arrays["order"])
        block = 1024 if points <= _BIG_SCENE else 4096
        tuples = _tuples(points, min(size, parts), count, block)
        out.append(_Plan(**arrays, tuples=tuples))  # pyright: ignore[reportArgumentType]
    return tuple(out)


# --- the search: compiled ----------------------------------------------------------------------


def _times(matrix, values):
    """``matrix (b, r, c)`` times ``values (b, c, C, B)``, as a matrix product."""
    return jnp.einsum("brc,bcts->brts", matrix, values)


def _once(compute: Callable, one):
    """``compute()``, as a loop of ``one`` step: a wall that XLA's fusion does not cross.

    Without walls, XLA computes an intermediate value again wherever it is used (and it drops
    optimisation barriers before it fuses).
    """
    empty = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(compute))
    return jax.lax.fori_loop(0, one, lambda *_: compute(), empty)


def _spread(spread, pose):
    """The squared scale of a pose ``(b, d, C, B)``: ``y^T S y``."""
    d = pose.shape[1]
    return sum(
        spread[i, j] * (1 if i == j else 2) * pose[:, i] * pose[:, j]
        for i in range(d)
        for j in range(i, d)
    )


def _nearest(x, predicted: list, free: Callable):
    """For each prediction, the nearest free point: its squared distance, index and features."""
    g, points = x.shape[:2]

    def visit(m, best):
        distance, index, position = best
        away = sum((predicted[i] - x[i, m]) ** 2 for i in range(g))
        closer = free(m) & (away < distance)
        return (
            jnp.where(closer, away, distance),
            jnp.where(closer, m, index),
            [jnp.where(closer, x[i, m], position[i]) for i in range(g)],
        )

    zero = jnp.zeros_like(predicted[0])
    none = jnp.full(zero.shape, -1, jnp.int32)
    return jax.lax.fori_loop(0, points, visit, (zero + jnp.inf, none, [zero] * g))


def _cholesky_solve(a: list[list], b: list) -> list:
    """Solve the symmetric ``a y = b`` for arrays of small systems, written out (LDL^T)."""
    n = len(b)
    lower: list[list[Any]] = [[None] * n for _ in range(n)]
    diagonal: list = []
    for j in range(n):
        diagonal.append(a[j][j] - sum(lower[j][k] ** 2 * diagonal[k] for k in range(j)))
        for i in range(j + 1, n):
            rest = sum(lower[i][k] * lower[j][k] * diagonal[k] for k in range(j))
            lower[i][j] = (a[i][j] - rest) / diagonal[j]
    y: list = []
    for i in range(n):
        y.append(b[i] - sum(lower[i][k] * y[k] for k in range(i)))
    y = [v / d for v, d in zip(y, diagonal, strict=True)]
    for i in reversed(range(n)):
        y[i] = y[i] - sum(lower[k][i] * y[k] for k in range(i + 1, n))
    return y


def _least_squares(plan: _Plan, x, weight: list, one):
    """The pose that fits the matched parts (those of weight 1) best: normal equations."""
    parts, g, d = plan.design.shape[1:]
    inner = jnp.einsum("bngi,bngj->bijn", plan.design, plan.design).reshape(-1, d * d, parts)
    stacked = plan.design.reshape(-1, parts * g, d).swapaxes(1, 2)
    a = _times(inner, jnp.stack(weight, 1))
    b = _times(stacked, x * jnp.repeat(jnp.stack(weight, 1), g, 1))

    def solve():
        rows = [[a[:, i * d + j] + 1e-6 * (i == j) for j in range(d)] for i in range(d)]
        return jnp.stack(_cholesky_solve(rows, [b[:, i] for i in range(d)]), 1)

    return _once(solve, one)


def _roundness(pose, options: _Options):
    """How far a linear map is from flat: det(A A^T)^(1/r) over the mean of its diagonal, 0 to 1."""
    rows = options.scene_dim
    columns = pose.shape[1] // rows - 1
    linear = pose[:, rows:].reshape(len(pose), rows, columns, *pose.shape[2:])
    a = [[linear[:, r, c] for c in range(columns)] for r in range(rows)]
    gram = [[sum(p * q for p, q in zip(u, v, strict=True)) for v in a] for u in a]
    if rows == 2:
        det = gram[0][0] * gram[1][1] - gram[0][1] ** 2
    else:
        det = (
            gram[0][0] * (gram[1][1] * gram[2][2] - gram[1][2] ** 2)
            - gram[0][1] * (gram[0][1] * gram[2][2] - gram[1][2] * gram[0][2])
            + gram[0][2] * (gram[0][1] * gram[1][2] - gram[1][1] * gram[0][2])
        )
    mean = sum(gram[r][r] for r in range(rows)) / rows
    return jnp.maximum(det, 0.0) ** (1 / rows) / jnp.maximum(mean, 1e-30)


def _sensible(plan: _Plan, pose, square, options: _Options):
    """Whether a pose is one: not a point, and no flat affine map (eq. 2 cannot reflect)."""
    parts, g, d = plan.design.shape[1:]
    good = jnp.isfinite(square)
    if options.scales and parts * g > d:
        good &= square > 1e-10
    if options.linear and parts * g > d:
        # 0.2 stands for axes that are stretched one against the other by ten.
        good &= _roundness(pose, options) > 0.2
    return good


def _significance(matched, parts: int, size: int, error, square, scene: _Scene, plan, opt):
    """Minus log of how many such hypotheses chance alone would give (a contrario RANSAC).

    A point drawn evenly over the scene falls within the hypothesis' own residual radius of a
    prediction with probability p; ``matched - size`` of them did.
    """
    dim = opt.scene_dim
    _, _, g, d = plan.design.shape
    dof = jnp.maximum(matched * g - d, 1)
    radius2 = dim * square * jnp.maximum(error / dof, 1e-4 * scene.tol2)
    ball = {2: np.pi, 3: 4 / 3 * np.pi}[dim]
    chance = jnp.minimum(ball * radius2 ** (dim / 2) * scene.density, 1.0)
    tests = log(max(comb(scene.x.shape[1], size), 1)) + log(len(plan.order)) - log(_CHANCE)
    subsets = sum(
        log(comb(parts - size, n - size)) * (matched == n) for n in range(size + 1, parts)
    )
    gain = -(matched - size) * jnp.log(chance) - tests - subsets
    # A template of no more parts than its basis cannot be checked: it is taken for what it is.
    return gain if parts > size else jnp.zeros_like(gain) + 1e-3


def _hypotheses(plan: _Plan, tuples, scene: _Scene, opt: _Options):
    """Algorithm 3 for one template and one block of tuples of points: (b, C, B) arrays."""
    count, parts, g, _ = plan.design.shape
    size = tuples.shape[1]
    x, open_, kind, tol2 = scene.x, scene.open, scene.kind, scene.tol2
    mean = plan.mean.reshape(count, parts * g)[..., None, None]
    design = plan.design.reshape(count, parts * g, -1)
    given = jnp.concatenate([x[:, tuples[:, j]] for j in range(size)])
    valid = (tuples[:, :1] >= 0) & jnp.stack([open_[tuples[:, j]] for j in range(size)]).all(0)
    valid = valid[None]
    if opt.typed:
        for j in range(size):
            valid = valid & (kind[tuples[:, j]][None] == plan.kind[:, j, None, None])
    # B_k y = x_ij (line 8), then the prediction of the other parts (line 9).
    pose = _times(plan.pose, given[None] - mean[:, : size * g])
    square = _spread(plan.spread, pose) if opt.scales else jnp.ones_like(pose[:, 0])
    valid = valid & _sensible(plan, pose, square, opt)
    predicted = _times(design[:, size * g :], pose) + mean[:, size * g :]
    reach = tol2 * jnp.where(square > 0, square, 1.0)
    one = jnp.ones_like(pose[:, 0])
    index = [jnp.broadcast_to(tuples[None, :, j, None], one.shape) for j in range(size)]
    found, weight = [jnp.broadcast_to(given[None], (count, *given.shape))], [one] * size
    for n in range(size, parts):

        def free(m, n=n):
            mine = open_[m] & jnp.stack([taken != m for taken in index]).all(0)
            return mine & (kind[m] == plan.kind[:, n, None, None]) if opt.typed else mine

        rows = slice((n - size) * g, (n - size + 1) * g)
        here = list(jnp.moveaxis(predicted[:, rows], 1, 0))
        distance, nearest, position = _nearest(x, here, free)
        near = distance <= reach
        weight.append(near.astype(x.dtype))
        index.append(jnp.where(near, nearest, -1))
        found.append(jnp.stack(position, 1))
    matched = sum(weight)
    valid = valid & (matched >= (parts if opt.whole else min(parts, size + 1)))
    found = jnp.concatenate(found, 1) - mean
    if opt.refit and parts > size:
        whole = opt.whole
        pose = (
            _times(plan.refit, found) if whole else _least_squares(plan, found, weight, scene.one)
        )
        square = _spread(plan.spread, pose) if opt.scales else square
        valid = valid & _sensible(plan, pose, square, opt)
    away = (found - _times(design, pose)) ** 2
    residual = sum(weight[n] * away[:, n * g + r] for n in range(parts) for r in range(g))
    error = residual / jnp.where(square > 0, square, 1.0)
    gain = _significance(matched, parts, size, error, square, scene, plan, opt)
    cost = error if opt.whole else -gain
    return jnp.where(valid, cost, jnp.inf), error, gain, jnp.stack(index), pose


def _take(values, chosen):
    """``values (n, H, B)`` at ``chosen (B, L)``, as (B, L, n)."""
    return jnp.stack([jnp.take_along_axis(v.T, chosen, 1) for v in values], -1)


def _scene(chunk: _Chunk, open_, dim: int) -> _Scene:
    """What the search needs to know of a chunk of scenes."""
    x = chunk.x
    mass = jnp.maximum(open_.sum(0), 1)
    here = x[:dim] * open_
    centre = here.sum(1) / mass
    spread = ((here - centre[:, None]) ** 2 * open_).sum((0, 1)) / mass
    # A uniform cloud of that spread fills a box of this side.
    side = jnp.maximum(jnp.sqrt(12 / dim * spread), 1e-6)
    return _Scene(x, open_, chunk.kind, chunk.tol2, mass / side**dim, chunk.one)


def _search(plan: _Plan, scene: _Scene, limit: int, opt: _Options) -> _Found:
    """The ``limit`` best hypotheses of one template in every scene."""
    parts, size = plan.order.shape[1], plan.tuples.shape[2]
    inverse = jnp.argsort(plan.order, axis=1)

    def block(tuples) -> _Found:
        cost, error, gain, index, pose = _hypotheses(plan, tuples, scene, opt)
        flat = cost.reshape(-1, cost.shape[-1])
        best, chosen = jax.lax.top_k(-flat.T, min(limit, len(flat)))
        own = inverse[chosen // tuples.shape[0]]
        return _Found(
            -best,
            _take(error.reshape(1, *flat.shape), chosen)[..., 0],
            _take(gain.reshape(1, *flat.shape), chosen)[..., 0],
            jnp.take_along_axis(_take(index.reshape(parts, *flat.shape), chosen), own, 2),
            _take(jnp.moveaxis(pose, 1, 0).reshape(-1, *flat.shape), chosen),
            own < size,
        )

    if plan.tuples.shape[0] == 1:
        return _settled(block(plan.tuples[0]), plan, scene.x.shape[1])
    found = jax.lax.map(block, plan.tuples)
    merged = jax.tree.map(
        lambda a: jnp.moveaxis(a, 0, 1).reshape(a.shape[1], -1, *a.shape[3:]), found
    )
    return _settled(_top(merged, limit), plan, scene.x.shape[1])


def _settled(found: _Found, plan: _Plan, points: int) -> _Found:
    """Of labellings that are one and the same (a square, turned), always the same one.

    Their errors differ by rounding only; the one that gives the first points to the first parts
    is chosen instead.
    """
    if plan.turns.shape[0] == 1:
        return found
    named = found.parts[..., plan.turns]
    key = jnp.zeros(named.shape[:-1])
    for n in range(min(named.shape[-1], 3)):
        key = key + (named[..., n] + 1.0) / (points + 1.0) ** n
    turn = key.argmin(-1)
    parts = jnp.take_along_axis(named, turn[..., None, None], 2)[:, :, 0]
    basis = jnp.take_along_axis(found.basis[..., plan.turns], turn[..., None, None], 2)[:, :, 0]
    pose = (plan.turn_poses[turn] * found.pose[..., None, :]).sum(-1)
    return found._replace(parts=parts, basis=basis, pose=pose)


def _top(found: _Found, limit: int) -> _Found:
    """The ``limit`` of lowest cost."""
    _, chosen = jax.lax.top_k(-found.cost, min(limit, found.cost.shape[1]))
    return jax.tree.map(
        lambda a: jnp.take_along_axis(a, chosen.reshape(*chosen.shape, *[1] * (a.ndim - 2)), 1),
        found,
    )


def _words(parts, points: int):
    """Sets of points as bit words: (B, H, words)."""
    bits = jnp.where(parts >= 0, jnp.left_shift(1, parts % 31), 0)
    word = jnp.where(parts >= 0, parts // 31, -1)
    return jnp.stack(
        [
            sum(jnp.where(word[..., n] == w, bits[..., n], 0) for n in range(parts.shape[-1]))
            for w in range(-(-points // 31))
        ],
        -1,
    )


def _distinct(found: _Found, points: int) -> _Found:
    """Of hypotheses about the same points only that of lowest error (others get infinite cost)."""
    words = _words(found.parts, points)
    same = jnp.ones((), bool)
    for w in range(words.shape[-1]):
        same = same & (words[:, :, None, w] == words[:, None, :, w])
    error = jnp.where(jnp.isfinite(found.cost), found.error, jnp.inf)
    rank = jnp.arange(error.shape[1])
    better = (error[:, None] < error[:, :, None]) | (
        (error[:, None] == error[:, :, None]) & (rank[None, None] < rank[None, :, None])
    )
    beaten = (same & better).any(2)
    return found._replace(cost=jnp.where(beaten, jnp.inf, found.cost))


@partial(jax.jit, static_argnames=("limit", "opt"))
def _distinct_hypotheses(plans, chunk: _Chunk, limit: int, opt: _Options) -> list[_Found]:
    """For every template, its best distinct hypotheses; ``limit`` of them."""
    points = chunk.x.shape[1]
    open_ = jnp.arange(points)[:, None] < chunk.count
    scene = _scene(chunk, open_, opt.scene_dim)
    return [_top(_distinct(_search(p, scene, 2 * limit, opt), points), limit) for p in plans]


# --- combination -------------------------------------------------------------------------------


class _State(NamedTuple):
    """Sets of disjoint hypotheses of one scene: the beam of :func:`_best_set`."""

    gain: Float[Array, " W"]
    used: Int[Array, "W words"]


def _add_object(state: _State, last, gains, words) -> tuple[_State, Array, Array, Array]:
    """Extend every set by one hypothesis, or by none; keep the best. Where each came from too."""
    width, count = len(state.gain), len(gains)
    clash = ((state.used[:, None] & words[None]) != 0).any(-1)
    # Copies of one template are interchangeable: take their hypotheses in order.
    clash |= jnp.arange(count)[None] <= last[:, None]
    extended = jnp.where(clash, -jnp.inf, state.gain[:, None] + gains[None])
    pool = jnp.concatenate([state.gain[:, None], extended], 1).ravel()
    gain, chosen = jax.lax.top_k(pool, width)
    parent, pick = chosen // (count + 1), chosen % (count + 1) - 1
    added = jnp.where((pick >= 0)[:, None], words[jnp.maximum(pick, 0)], 0)
    last = jnp.where(pick >= 0, pick, last[parent])
    return _State(gain, state.used[parent] | added), last, parent, pick


def _best_set(gains, words, instances: tuple[int, ...], width: int):
    """The set of disjoint hypotheses of one scene with the highest total gain (beam search).

    Up to ``instances[t]`` hypotheses of template t; returns which, (objects,), -1 for none.
    """
    state = _State(
        jnp.full(width, -jnp.inf).at[0].set(0.0), jnp.zeros((width, words[0].shape[1]), jnp.int32)
    )
    history = jnp.zeros((width, 0), jnp.int32)
    for gain, word, copies in zip(gains, words, instances, strict=True):

        def step(carry, _, gain=gain, word=word):
            state, last = carry
            state, last, parent, pick = _add_object(state, last, gain, word)
            return (state, last), (parent, pick)

        start = (state, jnp.full(width, -1))
        (state, _), (parents, picks) = jax.lax.scan(step, start, None, length=copies)
        for c in range(copies):
            history = jnp.concatenate([history[parents[c]], picks[c][:, None]], 1)
    return history[0]


@partial(jax.jit, static_argnames=("limit", "opt", "instances", "width"))
def _best(plans, chunk: _Chunk, limit: int, opt: _Options, instances, width: int):
    """The best consistent set of hypotheses of every scene, one row an object."""
    found = _distinct_hypotheses(plans, chunk, limit, opt)
    points = chunk.x.shape[1]
    gains = [_gain(f, points, chunk.tol2, opt) for f in found]
    words = [_words(f.parts, points) for f in found]
    chosen = jax.vmap(lambda g, w: _best_set(g, w, instances, width))(gains, words)
    out, start = [], 0
    for f, copies in zip(found, instances, strict=True):
        pick = chosen[:, start : start + copies]
        start += copies
        taken = jax.tree.map(
            lambda a, pick=pick: jnp.take_along_axis(
                a, jnp.maximum(pick, 0).reshape(*pick.shape, *[1] * (a.ndim - 2)), 1
            ),
            f,
        )
        out.append((taken, pick >= 0))
    return out


def _gain(found: _Found, points: int, tol2, opt: _Options):
    """What a hypothesis adds to a set.

    Where objects are whole and nothing else is in the scene: first the number of points that it
    explains, then its error. Else its significance, where it has any.
    """
    if opt.covered:
        matched = (found.parts >= 0).sum(-1)
        gain = matched * (points + 1.0) - found.error / tol2
        return jnp.where(jnp.isfinite(found.cost), gain, -jnp.inf)
    good = jnp.isfinite(found.cost) & (found.significance > 0)
    return jnp.where(good, found.significance, -jnp.inf)


@partial(jax.jit, static_argnames=("opt", "instances"))
def _sequential(plans, chunk: _Chunk, opt: _Options, instances: tuple[int, ...]):
    """Sequential RANSAC: take the best hypothesis, remove its points, search again.

    Best: the least likely to have come about by chance, so that four matched parts beat three.
    """
    points, scenes = chunk.x.shape[1:]
    quota = jnp.repeat(jnp.array(instances)[:, None], scenes, 1)

    def step(carry, _):
        open_, quota = carry
        scene = _scene(chunk, open_, opt.scene_dim)
        found = [_search(p, scene, 1, opt) for p in plans]
        gains = jnp.stack([_first_gain(f, opt) for f in found])
        gains = jnp.where(quota > 0, gains, -jnp.inf)
        template = gains.argmax(0)
        taken = jnp.isfinite(gains.max(0))
        quota = quota - (taken & (jnp.arange(len(plans))[:, None] == template))
        for t, f in enumerate(found):
            mine = taken & (template == t)
            for n in range(f.parts.shape[2]):
                used = jnp.arange(points)[:, None] == f.parts[None, :, 0, n]
                open_ = open_ & ~(used & mine)
        return (open_, quota), (found, template, taken)

    open_ = jnp.arange(points)[:, None] < chunk.count
    _, (found, template, taken) = jax.lax.scan(step, (open_, quota), None, length=sum(instances))
    out = []
    for t, f in enumerate(found):
        here = jax.tree.map(lambda a: jnp.swapaxes(a[:, :, 0], 0, 1), f)
        out.append((here, (taken & (template == t)).T))
    return out


def _first_gain(found: _Found, opt: _Options):
    """The significance of the best hypothesis of a template (B,)."""
    good = jnp.isfinite(found.cost[:, 0])
    if not opt.covered:
        good &= found.significance[:, 0] > 0
    return jnp.where(good, found.significance[:, 0], -jnp.inf)


# --- from a problem and back -------------------------------------------------------------------


def _options(problem: Problem, refit: bool) -> _Options:
    model = problem.model
    dims = model.pose.template_dim, model.pose.scene_dim
    return _Options(
        model.missing == 0,
        model.missing == 0 and model.clutter == 0,
        refit,
        model.pose.scales,
        bool(model.type_names),
        dims[1],
        model.pose.dim == dims[1] * (dims[0] + 1),
    )


def _tolerance2(model: Model, tolerance: float | None) -> np.float32:
    """The squared tolerance in the solvers' unit (absolute frames have none of their own).

    The paper's 0.1 is a length in a scene that fills [-1, 1]; ours is relative to the object. By
    default, where every point belongs to a whole object, wide: a prediction from two noisy points
    is off by up to four sigma a coordinate, and the errors decide (measured on our generator,
    sigma 0.25, three seeds: scene accuracy .793, .850, .854, .854 at 0.6, 0.8, 1.0 and 1.3).

    Where parts may be missing or clutter stands in for them, it follows the noise, else it is 0.3.
    That is a rough choice: of 0.1, 0.2, 0.3, 0.5 and 0.8, on 100 scenes of one seed, 0.1 (6 sigma)
    was best at sigma 0.02 and 0.8 (10 sigma, little better than 0.5) at 0.1. The 7 itself was not
    among them.
    """
    if tolerance is None:
        sigma = model.noise.sigma
        if model.missing == 0 and model.clutter == 0:
            tolerance = TOLERANCE
        elif sigma is not None and model.noise.follows_scale:
            tolerance = float(np.clip(_SIGMAS * sigma / model.unit, 0.02, TOLERANCE))
        else:
            tolerance = _CAUTIOUS
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise InputError(f"ransac: tolerance must be a positive number, or None; got {tolerance}.")
    return np.float32((tolerance * (model.unit if model.prior is not None else 1.0)) ** 2)


def _chunks(problem: Problem, tolerance: float | None) -> Iterator[tuple[slice, _Chunk]]:
    """Fixed-size pieces of a problem, so that one compilation serves them all."""
    most = 256 if problem.size <= _BIG_SCENE else 16
    size = 8 if len(problem) <= 8 else most
    g, tol2 = problem.model.part_size, _tolerance2(problem.model, tolerance)
    for start in range(0, len(problem), size):
        rows = slice(start, min(start + size, len(problem)))
        pad = size - (rows.stop - start)
        points = np.pad(problem.points[rows, :, :g], ((0, pad), (0, 0), (0, 0)))
        chunk = _Chunk(
            jnp.asarray(points.transpose(2, 1, 0)),
            jnp.asarray(np.pad(problem.count[rows], (0, pad))),
            jnp.asarray(np.pad(problem.kind[rows], ((0, pad), (0, 0))).T),
            jnp.asarray(tol2),
            jnp.int32(1),
        )
        yield rows, chunk


def _first_rows(found: _Found, taken, scenes: int, objects: int) -> tuple[_Found, np.ndarray]:
    """What was taken, moved to the first rows, for the first ``scenes`` scenes."""
    here = np.asarray(taken)[:scenes]
    order = np.argsort(~here, axis=1, kind="stable")[:, :objects]
    row = np.arange(scenes)[:, None]
    table = jax.tree.map(lambda a: np.asarray(a)[:scenes][row, order], found)
    return table, here[row, order]


def candidates(
    problem: Problem,
    bases: Bases = "all",
    tolerance: float | None = None,
    limit: int = 256,
    refit: bool = True,
) -> Candidates:
    """The ``limit`` best hypotheses of every scene, before any are combined."""
    one_of("ransac: bases", bases, {"fixed", "all"})
    model = problem.model
    opt = _options(problem, refit)
    plans = _plans(model, problem.size, bases)
    pieces = []
    for rows, chunk in _chunks(problem, tolerance):
        found = _distinct_hypotheses(plans, chunk, limit, opt)
        found = jax.tree.map(lambda a, n=rows.stop - rows.start: np.asarray(a)[:n], found)
        pieces.append(_collected(found, model, limit, opt.whole))
    return Candidates(*(np.concatenate(field) for field in zip(*pieces, strict=True)))


def _collected(found: list[_Found], model: Model, limit: int, whole: bool) -> Candidates:
    """The hypotheses of all templates in one table, best first."""
    widest = max(len(t) for t in model.templates)
    ids = _search_order(model)
    template = np.concatenate([np.full(f.cost.shape, ids[t]) for t, f in enumerate(found)], 1)
    fields = {}
    for name in _Found._fields:
        values = [np.asarray(getattr(f, name)) for f in found]
        if name in ("parts", "basis"):
            fill = -1 if name == "parts" else False
            values = [
                np.pad(v, ((0, 0), (0, 0), (0, widest - v.shape[2])), constant_values=fill)
                for v in values
            ]
        fields[name] = np.concatenate(values, 1)
    # Errors of templates of different size compare per part.
    per_part = fields["error"] / (fields["parts"] >= 0).sum(-1)
    key = np.where(np.isfinite(fields["cost"]), per_part if whole else fields["cost"], np.inf)
    order = np.argsort(key, axis=1, kind="stable")[:, :limit]
    row = np.arange(len(order))[:, None]
    valid = np.isfinite(key[row, order])
    return Candidates(
        np.where(valid, template[row, order], -1),
        np.where(valid[..., None], fields["parts"][row, order], -1),
        fields["pose"][row, order],
        np.where(valid, fields["error"][row, order], np.inf),
        valid,
        np.where(valid, fields["significance"][row, order], -np.inf),
        fields["basis"][row, order] & valid[..., None],
    )


def appearance(
    problem: Problem, parts: Int[np.ndarray, "B K P"], noise: np.ndarray | float = 0.0
) -> Float[np.ndarray, "B K l"]:
    """The factors of each object given its matched parts: the posterior of factor analysis.

    ``y = (I + sum F^T D^-1 F)^-1 sum F^T D^-1 (x - m)``, over the parts that are there (sec. 5,
    Williams et al. 2019); plus ``noise`` (standard normal) in the posterior's covariance.
    """
    slots, g, d = problem.slots, problem.model.part_size, problem.model.pose.dim
    factors = slots.design.shape[2] - d
    out = np.zeros((*parts.shape[:2], factors))
    noise = np.broadcast_to(noise, out.shape)
    scene = np.arange(len(parts))[:, None]
    for k in range(parts.shape[1]):
        rows = slots.rows(k)
        load = slots.design[rows, g:, d:].astype(float)
        weighted = load * slots.inverse_variance[rows, :, None]
        here = parts[:, k, : len(rows)]
        looks = problem.points[scene, np.maximum(here, 0), g:] - slots.mean[rows, g:]
        seen = (here >= 0).astype(float)
        inner = np.einsum("nfl,nfm->nlm", load, weighted)
        precision = np.eye(factors) + np.einsum("bn,nlm->blm", seen, inner)
        total = np.einsum("bn,nfl,bnf->bl", seen, weighted, looks)
        mean = np.linalg.solve(precision, total[..., None])[..., 0]
        root = np.linalg.cholesky(np.linalg.inv(precision))
        out[:, k] = mean + np.einsum("blm,bm->bl", root, noise[:, k])
    return out


@dataclass(frozen=True)
class Ransac:
    """RANSAC inference (sec. 5): every tuple of points proposes, the other points check.

    ``bases``: one basis of parts per template, or all. ``tolerance``: how far a point may lie from
    its predicted part, in units of the templates' mean radius, at the hypothesis' scale (None: by
    the model, see ``_tolerance2``).
    ``combine``: ``"best"``, the disjoint hypotheses that explain most with the least error, or
    ``"sequential"``: the best one, then again without its points. ``refit``: fit the pose to all
    matched parts. ``appearance``: the factors from all parts, or the mean or a sample of their
    posterior given the basis only (sec. 7.2). ``limit``: the most hypotheses per template that are
    combined; ``width``: the most combinations that are kept on the way.
    """

    bases: Bases = "all"
    tolerance: float | None = None
    combine: Literal["sequential", "best"] = "best"
    refit: bool = True
    appearance: Literal["refit", "basis-mean", "basis-sample"] = "refit"
    limit: int = 128
    width: int = 64

    def __post_init__(self):
        one_of("ransac: bases", self.bases, {"fixed", "all"})
        one_of("ransac: combine", self.combine, {"sequential", "best"})
        one_of("ransac: appearance", self.appearance, {"refit", "basis-mean", "basis-sample"})
        for name in ("limit", "width"):
            if getattr(self, name) < 1:
                raise InputError(f"ransac: {name} must be at least 1; got {getattr(self, name)}.")

    def solve(self, problem: Problem, seed: int) -> Solution:
        """Explain every scene of ``problem``; ``seed`` matters for ``"basis-sample"`` only."""
        model, slots = problem.model, problem.slots
        shape = (len(problem), len(slots.template))
        widest = max(len(t) for t in model.templates)
        parts = np.full((*shape, widest), -1, np.int32)
        basis = np.zeros((*shape, widest), bool)
        pose = np.zeros((*shape, slots.design.shape[2]), np.float32)
        error = np.zeros(shape, np.float32)
        found = np.zeros(shape, bool)
        ids = _search_order(model)
        for rows, chosen in self._search(problem):
            for t, (hypotheses, taken) in enumerate(chosen):
                objects = np.flatnonzero(slots.template == ids[t])
                table, here = _first_rows(hypotheses, taken, rows.stop - rows.start, len(objects))
                size, dim = table.parts.shape[2], table.pose.shape[2]
                index = (np.arange(rows.start, rows.stop)[:, None], objects[None, : here.shape[1]])
                found[index] = here
                error[index] = np.where(here, table.error, 0.0)
                parts[*index, :size] = np.where(here[..., None], table.parts, -1)
                basis[*index, :size] = table.basis & here[..., None]
                pose[*index, :dim] = np.where(here[..., None], table.pose, 0.0)
        if pose.shape[2] > model.pose.dim:
            looks = self._appearance(problem, parts, basis, seed)
            pose[..., model.pose.dim :] = np.where(found[..., None], looks, 0.0)
        return Solution(
            parts,
            pose,
            found.astype(np.float32),
            -error.sum(1).astype(float),
            np.ones(len(problem), bool),
        )

    def _search(self, problem: Problem) -> Iterator[tuple[slice, list[tuple[_Found, Array]]]]:
        """What was found in each chunk of scenes: per template, its objects and which are there."""
        model = problem.model
        opt = _options(problem, self.refit)
        plans = _plans(model, problem.size, self.bases)
        assert model.instances is not None
        # No more copies than there are points for.
        instances = tuple(min(int(model.instances[t]), problem.size) for t in _search_order(model))
        for rows, chunk in _chunks(problem, self.tolerance):
            if self.combine == "best":
                chosen = _best(plans, chunk, self.limit, opt, instances, self.width)
            else:
                chosen = _sequential(plans, chunk, opt, instances)
            yield rows, chosen

    def _appearance(self, problem: Problem, parts, basis, seed: int) -> np.ndarray:
        """The appearance factors, by the option of that name."""
        if self.appearance == "refit":
            return appearance(problem, parts)
        given = np.where(basis, parts, -1)
        if self.appearance == "basis-mean":
            return appearance(problem, given)
        shape = (*parts.shape[:2], problem.slots.design.shape[2] - problem.model.pose.dim)
        noise = np.zeros(shape)
        for b, points in enumerate(problem.points):
            # A scene's sample depends on the scene, not on its place in the batch.
            code = zlib.crc32(np.round(points, 3).tobytes())
            noise[b] = np.random.default_rng([seed, code]).standard_normal(shape[1:])
        return appearance(problem, given, noise)
