"""Solvers: one a file, each a frozen dataclass of its options with one method, ``solve``."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from partwise._checks import InputError
from partwise.problem import Problem, Solution

__all__ = ["NAMES", "Solver", "named"]

NAMES = ("auto", "ccae", "ds", "exact", "gmm", "hashing", "ransac")
"""The names that ``infer(solver=...)`` and the command line know."""


@runtime_checkable
class Solver(Protocol):
    """What every solver is: options, and ``solve`` for scenes of one size in one frame."""

    def solve(self, problem: Problem, seed: int) -> Solution:
        """Explain every scene of ``problem``."""
        ...


def named(name: str, **options: Any) -> Solver:
    """The solver of that name, with its default options but for those given."""
    if name == "auto":
        from partwise.solvers.auto import Auto

        return Auto(**options)
    if name == "ccae":
        from partwise.solvers.ccae import Ccae

        return Ccae(**options)
    if name in ("ds", "gmm"):
        from partwise.solvers.variational import Variational

        return Variational(prior=name, **options)
    if name == "exact":
        from partwise.solvers.exact import Exact

        return Exact(**options)
    if name == "hashing":
        from partwise.solvers.hashing import Hashing

        return Hashing(**options)
    if name == "ransac":
        from partwise.solvers.ransac import Ransac

        return Ransac(**options)
    raise InputError(f"solver must be one of {', '.join(NAMES)}; got {name!r}.")
