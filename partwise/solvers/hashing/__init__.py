"""Geometric hashing: crowds of many templates, in the plane."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any

import numpy as np

from partwise._checks import InputError
from partwise.evidence import log_scene_volume, noise_levels
from partwise.model import Model
from partwise.poses import Similarity2D
from partwise.problem import Problem, Solution

__all__ = ["Hashing"]

Array = np.ndarray


@dataclass(frozen=True)
class Hashing:
    """Geometric hashing proposes, evidence weighs, set packing chooses."""

    groups: int = 3

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Explain every scene of ``problem``."""
        return self.solve_many([problem], seed)[0]

    def solve_many(self, problems: list[Problem], seed: int = 0) -> list[Solution]:
        """Explain every scene of all problems, on as many threads as there are cores."""
        del seed
        if not problems:
            return []
        model = problems[0].model
        from partwise.solvers.hashing.scene import explain
        from partwise.solvers.hashing.search import new_pool

        sigma = float(noise_levels(problems[0])[0, 0])
        templates, table = _prepared(model, sigma, self.groups)
        widest = int(np.diff(templates.first).max())

        def one(task):
            p, b = task
            problem = problems[p]
            count = int(problem.count[b])
            z = problem.points[b, :count, :2].astype(float) @ [1, 1j]
            kinds = problem.kind[b, :count].astype(np.int32)
            volume = float(np.exp(log_scene_volume(model, count)))
            pool = new_pool(widest)
            if count < 3:
                return np.zeros((0, widest), int), np.zeros(0, int), np.zeros(0), 0.0
            tally = np.zeros((2, 4), np.int64)
            rows, sure, value = explain(
                table, templates, z, kinds, _beliefs(model, sigma), volume, pool, tally
            )
            return pool.match[rows], pool.template[rows], sure, value

        tasks = [(p, b) for p, problem in enumerate(problems) for b in range(len(problem))]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            found = iter(list(threads.map(one, tasks)))
        return [_solution(p, templates, [next(found) for _ in range(len(p))]) for p in problems]


def _beliefs(model: Model, sigma: float):
    from partwise.solvers.hashing.scene import Beliefs

    copies = np.mean(model.instances)
    odds = model.presence / (1 - model.presence)
    return Beliefs(
        sigma,
        float(np.sum(model.instances) * model.presence),
        log(copies * odds),
        log(1 - model.missing),
        log(model.missing) if model.missing else -20.0,
        model.clutter,
        model.scales[1] / model.scales[0],
    )


@lru_cache(maxsize=8)
def _prepared(model: Model, sigma: float, groups: int):
    from partwise.solvers.hashing.table import Templates, table

    parts = [(t.positions - t.centre) / model.unit @ [1, 1j] for t in model.templates]
    sizes = [len(p) for p in parts]
    names = {name: i for i, name in enumerate(model.type_names)}
    kinds = [names[n] for t in model.templates for n in t.types or ()] or [0] * sum(sizes)
    templates = Templates(
        np.concatenate(parts), np.array(kinds, np.int32), np.concatenate([[0], np.cumsum(sizes)])
    )
    return templates, table(templates, sigma, groups)


def _solution(problem: Problem, templates, found) -> Solution:
    slots = problem.slots
    shape = (len(problem), len(slots.sizes))
    parts = np.full((*shape, max(slots.sizes)), -1, np.int32)
    pose, probability = np.zeros((*shape, 4)), np.zeros(shape, np.float32)
    first = np.full(len(problem.model.templates), -1)
    for k in range(len(slots.template) - 1, -1, -1):
        first[slots.template[k]] = k
    for b, (match, template, sure, _) in enumerate(found):
        used: dict[int, int] = {}
        for i in np.argsort(-sure, kind="stable"):
            t = int(template[i])
            at = used.get(t, 0)
            if at >= problem.model.instances[t]:
                continue
            used[t] = at + 1
            k = first[t] + at
            parts[b, k], probability[b, k] = match[i], max(sure[i], 1e-6)
            p = templates.parts[templates.first[t] : templates.first[t + 1]]
            seen = np.flatnonzero(match[i] >= 0)
            x = problem.points[b, match[i][seen], :2].astype(float) @ [1, 1j]
            pc = p[seen] - p[seen].mean()
            a = (np.conj(pc) * (x - x.mean())).sum() / (np.abs(pc) ** 2).sum()
            shift = x.mean() - a * p[seen].mean()
            pose[b, k] = [shift.real, shift.imag, a.real, -a.imag]
    score = np.array([f[3] for f in found])
    return Solution(parts, pose, probability, score, np.ones(len(problem), bool))
