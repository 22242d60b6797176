"""RANSAC (sec. 5, Algorithm 3): a minimal basis of parts predicts the object; the scene checks it.

``bases``: which parts and which points (lines 1 to 7). ``matching``: pose, prediction, SubsetMatch
(lines 9 to 11). ``candidates``: the loops and what they give (lines 4 to 8, 12 and 17). After the
algorithm: ``combining`` hypotheses into an explanation, and the ``appearance`` of its objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from partwise._checks import InputError, one_of
from partwise.fitting import fit_poses
from partwise.problem import Problem, Solution
from partwise.solvers.ransac.appearance import appearance, noise_of
from partwise.solvers.ransac.bases import Bases, plans, search_order
from partwise.solvers.ransac.candidates import Candidates, candidates
from partwise.solvers.ransac.combining import Objects, best_set, sequential
from partwise.solvers.ransac.setting import options, over_scenes, tolerance2

__all__ = ["Candidates", "Ransac", "appearance", "candidates"]


@dataclass(frozen=True)
class Ransac:
    """RANSAC inference (sec. 5): every tuple of points proposes, the other points check.

    ``bases``: one basis of parts per template, or all. ``tolerance``: how far a point may lie from
    its predicted part, in units of the templates' mean radius, at the hypothesis' scale (None: by
    the model, see ``setting.tolerance2``).
    ``combine``: ``"best"``, the disjoint hypotheses that explain most with the least error, or
    ``"sequential"``: the best one, then again without its points. ``refit``: fit the pose to all
    matched parts. ``appearance``: the factors from all parts, or the mean or a sample of their
    posterior given the basis only (sec. 7.2). ``limit``: the most hypotheses per template that are
    combined.
    """

    bases: Bases = "all"
    tolerance: float | None = None
    combine: Literal["sequential", "best"] = "best"
    refit: bool = True
    appearance: Literal["refit", "basis-mean", "basis-sample"] = "refit"
    limit: int = 128

    def __post_init__(self):
        one_of("ransac: bases", self.bases, {"fixed", "all"})
        one_of("ransac: combine", self.combine, {"sequential", "best"})
        one_of("ransac: appearance", self.appearance, {"refit", "basis-mean", "basis-sample"})
        if self.limit < 1:
            raise InputError(f"ransac: limit must be at least 1; got {self.limit}.")

    def solve(self, problem: Problem, seed: int) -> Solution:
        """Explain every scene of ``problem``; ``seed`` matters for ``"basis-sample"`` only."""
        parts, basis, error = self._search(problem)
        given = np.where(basis, parts, -1)
        pose = fit_poses(problem, np.arange(parts.shape[1]), parts if self.refit else given)
        if pose.shape[2] > problem.slots.pose_dim:
            looks = parts if self.appearance == "refit" else given
            noise = noise_of(problem, seed) if self.appearance == "basis-sample" else 0.0
            pose[..., problem.slots.pose_dim :] = appearance(problem, looks, noise)
        there = parts.max(2) >= 0
        return Solution(
            parts,
            np.where(there[..., None], pose, 0.0).astype(np.float32),
            there.astype(np.float32),
            -error.sum(1).astype(float),
            np.ones(len(problem), bool),
        )

    def _search(self, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The parts, bases and errors of what was found, in the order of the problem's slots."""
        model, template = problem.model, problem.slots.template
        assert model.instances is not None
        order = search_order(model)
        # No more copies than there are points for.
        copies = tuple(min(int(model.instances[t]), problem.size) for t in order)
        combine = sequential
        if self.combine == "best":
            combine = partial(best_set, limit=self.limit)
        found: Objects = over_scenes(
            problem,
            partial(
                combine,
                plans(model, problem.size, self.bases),
                tolerance2(model, self.tolerance),
                copies,
                options(model, self.refit),
            ),
        )
        rows = [np.flatnonzero(template == t)[:n] for t, n in zip(order, copies, strict=True)]
        shape = (len(problem), len(template), found.parts.shape[2])
        out = np.full(shape, -1, np.int32), np.zeros(shape, bool), np.zeros(shape[:2])
        for into, values in zip(out, found, strict=True):
            into[:, np.concatenate(rows)] = values
        return out
