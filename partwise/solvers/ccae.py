"""CCAE as a solver: a trained network says which capsule has which point.

The network (``partwise.neural.ccae``) knows two squares and a triangle, and only those. Its answer
depends on how a scene is turned, as that of no other solver does: nothing in it is equivariant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from pathlib import Path
from typing import Any

import jax
import numpy as np

from partwise._checks import InputError, readable
from partwise.batching import in_chunks
from partwise.fitting import fit_poses
from partwise.model import Model, constellations
from partwise.neural.ccae import Reading, load, normalise, read
from partwise.neural.shipped import ccae_weights
from partwise.poses import Similarity2D
from partwise.problem import Claims, Problem, Solution
from partwise.solvers.exact import Exact

__all__ = ["LARGEST_SCENE", "Ccae"]

Array = np.ndarray

LARGEST_SCENE = 11
"""The most points that a scene had in training."""


@dataclass(frozen=True)
class Ccae:
    """The constellation capsule autoencoder (sec. 4.1), trained.

    ``noise``: the noise level of the scenes it was trained on, one of those shipped; None takes,
    scene by scene, the one nearest to what the residuals of the exact solver look like.
    ``weights``: a file of ``partwise train ccae`` instead.
    """

    noise: float | None = None
    weights: str | Path | None = None

    def __post_init__(self):
        if self.noise is not None and self.weights is not None:
            raise InputError("solver ccae: noise picks among the shipped weights; leave one out.")
        if not isinstance(self.noise, int | float | None):
            raise InputError(f"solver ccae: noise must be a number; got {self.noise!r}.")

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Explain every scene of ``problem``; there is nothing random."""
        del seed
        capsules = _capsule_of(problem)
        problem = problem.trimmed()
        if problem.size > LARGEST_SCENE:
            raise InputError(
                f"solver ccae: its network has seen scenes of at most {LARGEST_SCENE} points; one "
                f'of these has {problem.size}. Use solver "auto".'
            )
        networks = self._networks()
        readings = [_read(path, problem.points[..., :2]) for path in networks.values()]
        scene, best = np.arange(len(problem)), np.zeros(len(problem), int)
        if len(networks) > 1:
            best = np.abs(residual_noise(problem) - np.array(list(networks))[:, None]).argmin(0)
        found = Reading(*(np.stack(a)[best, scene] for a in zip(*readings, strict=True)))
        # From capsules to the objects of the problem.
        owner, absent = (np.argsort(capsules)[a] for a in (found.owner, found.absent))
        sure = found.presence[:, capsules]
        held = np.where(found.beaten, owner, -1)
        there = (held[..., None] == np.arange(len(capsules))).any(1)
        parts = _parts(problem, held, np.asarray(found.strength))
        pose = fit_poses(problem, np.arange(len(capsules)), parts)
        return Solution(
            parts,
            np.where(there[..., None], pose, 0.0).astype(np.float32),
            np.where(there & (parts >= 0).any(2), sure, 0.0).astype(np.float32),
            np.asarray(found.score, float),
            np.ones(len(problem), bool),
            claims=Claims(owner, there, absent),
        )

    def _networks(self) -> dict[float, Path]:
        """The files of weights, by noise level."""
        if self.weights is not None:
            return {0.0: Path(self.weights)}
        shipped = ccae_weights()
        if self.noise is None:
            return shipped
        if self.noise not in shipped:
            levels = ", ".join(f"{s:g}" for s in shipped)
            raise InputError(
                f"solver ccae: there are no weights for noise {self.noise:g}, only for {levels}; "
                "train your own with `partwise train ccae`, or leave noise out."
            )
        return {self.noise: shipped[self.noise]}


def residual_noise(problem: Problem) -> Array:
    """Per scene, the noise in the templates' frame by what the exact solver leaves unexplained."""
    found, slots = Exact().solve(problem), problem.slots
    squares, freedom = np.zeros(len(problem)), np.zeros(len(problem))
    for k in range(len(slots.sizes)):
        rows, pose = slots.rows(k), found.pose[:, k].astype(float)
        parts = found.parts[:, k, : len(rows)]
        seen = (parts >= 0) & (found.probability[:, k] > 0)[:, None]
        x = np.take_along_axis(problem.points, np.maximum(parts, 0)[..., None], 1)[..., :2]
        error = x - np.einsum("ngd,bd->bng", slots.design[rows, :2], pose)
        scale2 = np.maximum((pose[:, 2:4] ** 2).sum(1), 1e-12)
        squares += (error**2).sum(2, where=seen[..., None]).sum(1) / scale2
        # A similarity takes up four of the numbers that an object's points are.
        freedom += np.maximum(2 * seen.sum(1) - 4, 0)
    return problem.model.unit * np.sqrt(squares / np.maximum(freedom, 1))


def _capsule_of(problem: Problem) -> Array:
    """For each object of the problem, the capsule that stands for it."""
    model, known = problem.model, constellations()
    names = []
    for t in problem.slots.template:
        names += [k.name for k in known.templates if _same_shape(model, int(t), k.parts)]
    # Capsule k is object k of the model that drew the scenes of the training.
    capsules: dict[str, list[int]] = {}
    for k, t in enumerate(known.copies):
        capsules.setdefault(known.templates[t].name, []).append(k)
    if sorted(names) != sorted(known.templates[t].name for t in known.copies):
        raise InputError(
            "solver ccae: its network knows two squares and one triangle, and no other model; use "
            'solver "auto".'
        )
    free = {name: iter(numbers) for name, numbers in capsules.items()}
    return np.array([next(free[name]) for name in names])


def _same_shape(model: Model, t: int, parts: Array) -> bool:
    template = model.templates[t]
    if (
        not isinstance(model.pose, Similarity2D)
        or model.clutter
        or model.missing
        or model.part_size != 2
        or template.types is not None
    ):
        return False
    return template.parts.shape == parts.shape and np.allclose(template.parts, parts)


def _parts(problem: Problem, held: Array, strength: Array) -> Array:
    """Which held point is which part: the match of least squared error, object by object.

    An object that holds more points than it has parts keeps those that its votes explain best.
    """
    sizes = problem.slots.sizes
    out = np.full((len(problem), len(sizes), max(sizes)), -1, np.int32)
    x = problem.points[..., 0] + 1j * problem.points[..., 1]
    for k, size in enumerate(sizes):
        rows = problem.slots.rows(k)
        template = problem.slots.design[rows]
        p = template[:, 0, 2] + 1j * template[:, 1, 2]  # eq. 2: F holds p_x and p_y there
        mine = held == k
        ranked = np.argsort(np.where(mine, -strength, np.inf), axis=1, kind="stable")
        count = np.minimum(mine.sum(1), size)
        for n in np.unique(count[count > 0]).tolist():
            scene = np.flatnonzero(count == n)
            ways = np.array(list(permutations(range(size), n)))
            points = ranked[scene, :n]
            best = ways[_error(x[scene[:, None], points], p[ways]).argmin(1)]
            out[scene[:, None], k, best] = points
    return out


def _error(x: Array, p: Array) -> Array:
    """The squared error of points x (S, n) on parts p (W, n), best similarity; complex numbers.

    Eq. 2 turns clockwise: x = t + s exp(-i theta) p, which is still x = t + w p.
    """
    x, p = x - x.mean(1, keepdims=True), p - p.mean(1, keepdims=True)
    size = np.maximum((np.abs(p) ** 2).sum(1), 1e-12)
    return (np.abs(x) ** 2).sum(1)[:, None] - np.abs(x @ p.conj().T) ** 2 / size


@lru_cache(maxsize=8)
def _network(path: Path, changed: float) -> Any:
    """The network of a file as a compiled function of scenes; read again when the file changed."""
    del changed
    net = load(path)
    return jax.jit(lambda arrays: jax.vmap(read, (None, 0, 0))(net, *arrays))


def _read(path: Path, points: Array) -> Reading:
    """What the network of a file says of scenes (B, M, 2)."""
    run = _network(path, readable(path).stat().st_mtime)
    count = points.shape[1]
    padded = np.zeros((len(points), LARGEST_SCENE, 2), np.float32)
    padded[:, :count] = normalise(points)
    seen = np.broadcast_to(np.arange(LARGEST_SCENE) < count, padded.shape[:2])
    said = in_chunks(lambda arrays, _: run(arrays), (padded, seen))
    return said.of_points(count)
