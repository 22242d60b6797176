"""``auto``: exact where the groupings can be enumerated, hypotheses and packing where not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from partwise.model import Model
from partwise.problem import Problem, Solution
from partwise.solvers.exact import Exact
from partwise.solvers.hashing import Hashing
from partwise.solvers.packing import Packing

__all__ = ["Auto"]

NOISY = 0.1
"""Where the noise is more than this part of the templates' radius, there is little to hash."""


@dataclass(frozen=True)
class Auto:
    """The default: ``exact`` for scenes small enough for it; for others ``hashing`` or ``packing``.

    ``hashing`` where the model is one that it is for and says how small the noise is.
    """

    exact: Exact = field(default_factory=Exact)
    packing: Packing = field(default_factory=Packing)
    hashing: Hashing = field(default_factory=Hashing)

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Explain every scene of ``problem``."""
        return next(self.solve_many([problem], seed))

    def solve_many(self, problems: list[Problem], seed: int = 0) -> Iterator[Solution]:
        """Explain the scenes of all problems (of one model)."""
        small = [self.exact.feasible(p.model, int(p.count[0])) for p in problems]
        large = [p for p, fits in zip(problems, small, strict=True) if not fits]
        hashes = bool(large) and self.hashes(large[0].model)
        hashed = self.hashing.solve_many(large if hashes else [], seed)
        for problem, fits in zip(problems, small, strict=True):
            if fits:
                yield self.exact.solve(problem, seed)
            elif hashes:
                yield next(hashed)
            else:
                yield self.packing.solve(problem, seed)

    def hashes(self, model: Model) -> bool:
        """Whether the larger scenes of ``model`` are for ``hashing``."""
        sigma = model.noise.sigma
        return sigma is not None and sigma <= NOISY * model.unit and self.hashing.feasible(model)
