"""Geometric hashing: crowds of many templates, with clutter and missing parts, in the plane."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from partwise._checks import InputError
from partwise.evidence import SIGMAS
from partwise.model import Model
from partwise.poses import Similarity2D
from partwise.problem import Problem, Solution

__all__ = ["Hashing"]

LARGEST_SIGMA = 0.1
"""Where the noise is not known, levels up to this are tried (in radii of a template)."""

FEWEST = 3
"""Parts of a template: two points fit any two parts, and there is no third to vote."""


@dataclass(frozen=True)
class Hashing:
    """Geometric hashing proposes, evidence weighs, set packing chooses.

    For plain or typed points in the plane, moved by similarities, with noise that follows their
    scale: any number of templates, objects and clutter points. The noise level, where it is not
    known, is for every scene the one that explains it best. Of any ``groups`` + 1 visible parts of
    an object, two are a basis by which it can be found.
    """

    groups: int = 3

    def __post_init__(self):
        if not isinstance(self.groups, (int, np.integer)) or self.groups < 1:
            raise InputError(f"hashing: groups must be a whole number >= 1; got {self.groups!r}.")

    def feasible(self, model: Model) -> bool:
        """Whether objects of ``model`` are what this solver is for."""
        plain = model.part_size == 2 and model.templates[0].appearance is None
        turns = isinstance(model.pose, Similarity2D) and model.prior is None
        enough = min(map(len, model.templates)) >= FEWEST
        return plain and turns and enough and model.noise.follows_scale

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Explain every scene of ``problem``."""
        return next(self.solve_many([problem], seed))

    def solve_many(self, problems: list[Problem], seed: int = 0) -> Iterator[Solution]:
        """Explain the scenes of all problems (of one model), on as many threads as cores."""
        del seed  # nothing here is random
        if not problems:
            return
        model = problems[0].model
        if not self.feasible(model):
            raise InputError(
                f"hashing: objects must be {FEWEST} or more points in the plane, moved by "
                "similarities, with noise that follows their scale, and no prior over poses; "
                'use solver "auto".'
            )
        forget_stale()
        from partwise.solvers.hashing.solving import prepare, scene_answer, solution_of

        levels = [float(s) for s in SIGMAS if s <= LARGEST_SIGMA]
        if model.noise.sigma is not None:
            levels = [max(model.noise.sigma / model.unit, SIGMAS[0] / 10)]
        prepare(model, levels[0], self.groups)  # once, and not by every thread
        threads = ThreadPoolExecutor(_cores())
        try:
            tasks = [
                [threads.submit(scene_answer, p, b, levels, self.groups) for b in range(len(p))]
                for p in problems
            ]
            for problem, answers in zip(problems, tasks, strict=True):
                yield solution_of(problem, [a.result() for a in answers])
        finally:  # who stops waiting, stops the work
            threads.shutdown(cancel_futures=True)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def forget_stale() -> None:
    """Remove compiled code that is older than the newest source beside it.

    Numba keeps what it compiled as long as a function's own file is as it was; the functions that
    it calls may have changed since.
    """
    folder = Path(__file__).parent
    newest = max(f.stat().st_mtime for f in folder.glob("*.py"))
    for kept in (folder / "__pycache__").glob("*.nb[ic]"):
        try:
            if kept.stat().st_mtime < newest:
                kept.unlink()
        except OSError:  # somebody else removed it, or it is not ours to remove
            continue
