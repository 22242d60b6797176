"""How good and how fast a solver is on labelled scenes: what ``partwise evaluate`` prints."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from partwise._checks import InputError
from partwise.inference import solve
from partwise.metrics import Scores, exchangeable_scores, predictions, published_scores
from partwise.model import Model, constellations
from partwise.posterior import Explanations
from partwise.scenes import LabelledScenes, SceneBatch
from partwise.solvers import Solver, named

__all__ = ["Timing", "assess", "evaluate", "protocols", "summary"]

TIMED_SCENES = 2048
"""A smaller set of scenes is repeated to at least this many for the timing."""

_SECONDS, _PASSES = 1.0, 3


def protocols(
    labelled: LabelledScenes, owner: np.ndarray, instantiated: np.ndarray, model: Model
) -> dict[str, Scores]:
    """The scores of one answer under both protocols (DESIGN, sec. 3)."""
    return {
        "published": published_scores(labelled, owner, instantiated),
        "exchangeable": exchangeable_scores(labelled, owner, instantiated, model),
    }


def assess(labelled: LabelledScenes, explanations: Explanations) -> dict[str, Scores]:
    """The scores of a solver's explanations of ``labelled.scenes`` under both protocols."""
    owner, instantiated = predictions(explanations, labelled)
    return protocols(labelled, owner, instantiated, explanations.model)


def summary(scores: dict[str, Scores]) -> dict[str, Any]:
    """Means and, in a sibling key, standard errors, ready for JSON."""
    return {
        "scenes": len(scores["published"]),
        **{name: s.mean() for name, s in scores.items()},
        "standard_error": {name: s.standard_error() for name, s in scores.items()},
    }


def evaluate(
    labelled: LabelledScenes,
    solver: Solver | str = "auto",
    model: Model | None = None,
    seed: int = 0,
    *,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Solve ``labelled.scenes``, score the answer under both protocols, and time the solver.

    Empty scenes are not scored. ``name`` is what the result calls a solver that is not given by
    its name; ``progress`` is told how many scenes the first pass has done.

    ``scenes_per_second`` is the steady state: the median over repeated passes (3, or fewer once a
    second has gone by), after a pass that compiles. Few scenes are repeated until there are 2,048,
    unless one pass over them is slow already. ``compile_seconds`` is how much longer the first pass
    over the scenes takes than the next.
    """
    model = constellations() if model is None else model
    used = named(solver) if isinstance(solver, str) else solver
    kept = labelled.select(labelled.present.any(1))
    if not len(kept):
        raise InputError("labelled scenes: every scene is empty; there is nothing to evaluate.")
    timing = Timing(model, used, seed)
    explanations, first = timing.once(kept.scenes, progress)
    scores = assess(kept, explanations)
    compile_seconds, per_second = timing.steady(kept.scenes, first)
    default = solver if isinstance(solver, str) else type(solver).__name__.lower()
    return {
        "solver": name or default,
        **summary(scores),
        "scenes_per_second": per_second,
        "compile_seconds": compile_seconds,
    }


class Timing:
    """Times one solver on one model."""

    def __init__(self, model: Model, solver: Solver, seed: int):
        self.model, self.solver, self.seed = model, solver, seed

    def once(
        self, batch: SceneBatch, progress: Callable[[int], None] | None = None
    ) -> tuple[Explanations, float]:
        """One pass, and how long it took. Explanations are NumPy arrays: nothing runs on."""
        start = perf_counter()
        explanations = solve(self.model, batch, self.solver, self.seed, progress)
        return explanations, perf_counter() - start

    def steady(self, batch: SceneBatch, first: float) -> tuple[float, float]:
        """Seconds that the first pass spent on compiling, and scenes per second from then on."""
        _, again = self.once(batch)
        compiling = max(first - again, 0.0)
        seconds = [again]
        if len(batch) < TIMED_SCENES and again < _SECONDS:
            batch = _repeated(batch, -(-TIMED_SCENES // len(batch)))
            self.once(batch)  # Larger batches may compile anew.
            seconds = []
        while len(seconds) < _PASSES and sum(seconds) < _SECONDS:
            seconds.append(self.once(batch)[1])
        return compiling, len(batch) / median(seconds)


def _repeated(batch: SceneBatch, times: int) -> SceneBatch:
    """The scenes of ``batch``, ``times`` times over."""
    return SceneBatch(
        np.tile(batch.parts, (times, 1)),
        np.concatenate([[0], np.cumsum(np.tile(batch.counts, times))]).astype(np.int64),
        None if batch.types is None else list(batch.types) * times,
        None if batch.appearance is None else list(batch.appearance) * times,
    )
