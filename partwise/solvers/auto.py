"""``auto``: exact where the groupings can be enumerated, hypotheses and packing where not."""

from __future__ import annotations

from dataclasses import dataclass, field

from partwise.problem import Problem, Solution
from partwise.solvers.exact import Exact

__all__ = ["Auto"]


@dataclass(frozen=True)
class Auto:
    """The default: the best answer that the scene's size allows."""

    exact: Exact = field(default_factory=Exact)

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Explain every scene of ``problem``."""
        return self.exact.solve(problem, seed)
