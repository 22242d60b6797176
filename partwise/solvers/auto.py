"""``auto``: exact where the groupings can be enumerated, hypotheses and packing where not."""

from __future__ import annotations

from dataclasses import dataclass, field

from partwise.problem import Problem, Solution
from partwise.solvers.exact import Exact
from partwise.solvers.packing import Packing

__all__ = ["Auto"]


@dataclass(frozen=True)
class Auto:
    """The default: ``exact`` for scenes small enough for it, ``packing`` for the others."""

    exact: Exact = field(default_factory=Exact)
    packing: Packing = field(default_factory=Packing)

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Explain every scene of ``problem``."""
        if self.exact.feasible(problem.model, int(problem.count[0])):
            return self.exact.solve(problem, seed)
        return self.packing.solve(problem, seed)
