"""Solvers without any cleverness, for tests of everything around the solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise.problem import Problem, Solution


@dataclass(frozen=True)
class InOrder:
    """Gives the points, in the order in which they come, to the objects that they fill.

    Scenes of equal size get equal answers, but for the score: the sum of |x| and the seed.
    """

    beta: float = 0.05
    noise: float | None = None

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        sizes = problem.slots.sizes
        parts = np.full((len(problem), len(sizes), max(sizes)), -1, np.int32)
        probability = np.zeros(parts.shape[:2], np.float32)
        used = np.zeros(len(problem), int)
        for k, size in enumerate(sizes):
            fits = used + size <= problem.count
            parts[fits, k, :size] = used[fits, None] + np.arange(size)
            probability[fits, k] = 0.5 + 0.1 * k
            used = used + size * fits
        pose = np.tile([0.0, 0.0, 1.0, 0.0], (*probability.shape, 1))
        score = np.abs(problem.points).sum((1, 2)).astype(float) + seed
        return Solution(parts, pose, probability, score, np.ones(len(problem), bool))


class Interrupting:
    """Works like :class:`InOrder` for some calls, then is interrupted by its user."""

    def __init__(self, calls: int):
        self.left = calls

    def __repr__(self) -> str:
        return repr(InOrder())

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return InOrder().solve(problem, seed)


class Counting(InOrder):
    """Counts the scenes it is asked about."""

    seen = 0

    def __repr__(self) -> str:
        return repr(InOrder())

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        type(self).seen += len(problem)
        return super().solve(problem, seed)
