"""Table 1 (sec. 7.1.2): how well each method explains the constellations, and the tests around it.

What is run: every method at every noise level, on fresh scenes of our generator (``simulated``) and
on the paper's own draws where they are at hand (``recorded``, with CCAE's recorded outputs); the
sweep over the initial beta at sigma 0. Everything is scored under both protocols (DESIGN, sec. 3).
No method is told the noise level, but for CCAE, which as in the paper is a network of its own for
each. ``table1_tables`` makes the tables, and the paired t-tests between all methods at sigma 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from partwise.evaluation import assess, protocols
from partwise.files import read_arrays, read_labelled
from partwise.inference import solve
from partwise.metrics import METRICS, Scores
from partwise.model import constellations
from partwise.paper import table1_tables as tables
from partwise.paper.experiment import Advance, Experiment
from partwise.paper.published import BETAS, SCENES, SIGMAS, TABLE1_BETA, recorded_name
from partwise.paper.reporting import Report
from partwise.sampling import simulate_constellations
from partwise.scenes import LabelledScenes
from partwise.solvers import Solver, named

__all__ = ["METHODS", "RECORDED", "Cell", "Table1", "simulated"]

RECORDED = "ccae-recorded"
"""The answers of the paper's own CCAE, which come with its draws."""

METHODS = (*(["ccae"] if find_spec("equinox") else []), "gmm", "ds", "ransac", "exact", "auto")
"""What is run; CCAE where `partwise[neural]` is installed."""


def simulated(scenes: int, sigma: float, seed: int) -> LabelledScenes:
    """Draws of our generator; every noise level has its own."""
    key = np.random.SeedSequence([seed, round(1000 * sigma)]).generate_state(1)
    return simulate_constellations(scenes, sigma, int(key[0]))


@dataclass(frozen=True)
class Cell:
    """One method on one set of scenes; ``beta`` is None for methods that have none."""

    source: str
    sigma: float
    method: str
    beta: float | None

    @property
    def name(self) -> str:
        """The name of its file."""
        beta = "" if self.beta is None else f"-beta{self.beta:g}"
        return f"{self.source}-sigma{self.sigma:g}-{self.method}{beta}"


@dataclass(frozen=True)
class Table1(Experiment[Cell]):
    """What is run; ``scenes`` is also how many of the recorded ones are used at most."""

    name = "table1"

    sigmas: tuple[float, ...] = SIGMAS
    methods: tuple[str, ...] = METHODS
    betas: tuple[float, ...] = BETAS
    solvers: Callable[..., Solver] = named

    def cells(self) -> Iterator[Cell]:
        """Every cell: first the table, then the rest of the sweep."""
        for source, sigmas in self._sources().items():
            for sigma in sigmas:
                if source == "recorded":
                    yield Cell(source, sigma, RECORDED, None)
                for method in self.methods:
                    beta = TABLE1_BETA if method in ("ds", "gmm") else None
                    yield Cell(source, sigma, method, beta)
        for source, sigmas in self._sources().items():
            for method in self.methods:
                if method in ("ds", "gmm") and 0.0 in sigmas:
                    rest = (beta for beta in self.betas if beta != TABLE1_BETA)
                    yield from (Cell(source, 0.0, method, beta) for beta in rest)

    def _sources(self) -> dict[str, tuple[float, ...]]:
        here = tuple(s for s in self.sigmas if (self.folder / recorded_name(s)).is_file())
        return {"simulated": self.sigmas, **({"recorded": here} if here else {})}

    def depends(self, cell: Cell) -> dict[str, Any]:
        """The scenes, and the solver with its options."""
        labelled, digest = self.labelled(cell), hashlib.sha256()
        for array in (labelled.points, labelled.present, labelled.object_id):
            digest.update(np.ascontiguousarray(array).tobytes())
        solver = "recorded outputs" if cell.method == RECORDED else repr(self._solver(cell))
        return {"draws": digest.hexdigest(), "solver": solver}

    def compute(self, cell: Cell, advance: Advance) -> dict[str, Any]:
        """Every scene's scores, under both protocols."""
        labelled = self.labelled(cell)
        if cell.method == RECORDED:
            scores = self._recorded(cell, labelled)
        else:
            found = solve(constellations(), labelled.scenes, self._solver(cell), self.seed)
            scores = assess(labelled, found)
        names = (*METRICS, "scene")
        return {p: {n: getattr(s, n).tolist() for n in names} for p, s in scores.items()}

    def labelled(self, cell: Cell) -> LabelledScenes:
        """The scenes of a cell."""
        if cell.source == "recorded":
            labelled = read_labelled(self.folder / recorded_name(cell.sigma))
            return labelled.select(self._used(labelled.present))
        return simulated(self.scenes or SCENES, cell.sigma, self.seed)

    def _used(self, present: np.ndarray) -> np.ndarray:
        """Which of the recorded draws are used: the non-empty ones, or the first of these."""
        return np.flatnonzero(present.any(1))[: self.scenes]

    def _solver(self, cell: Cell) -> Solver:
        options = {} if cell.beta is None else {"beta": cell.beta}
        if cell.method == "ccae":
            options = {"noise": cell.sigma}  # as in the paper, a network for each noise level
        return self.solvers(cell.method, **options)

    def _recorded(self, cell: Cell, labelled: LabelledScenes) -> dict[str, Scores]:
        # q(d): whether the capsule is present, repeated over the capsule's slots.
        path = self.folder / recorded_name(cell.sigma)
        recorded = read_arrays(path, ("present", "ccae_object_id", "ccae_object_present"))
        used = self._used(recorded["present"])
        capsules = recorded["ccae_object_present"][used].astype(bool)
        q = np.take_along_axis(capsules, labelled.object_id, 1)
        owner = recorded["ccae_object_id"][used].astype(int)
        return protocols(labelled, owner, q, constellations())

    def report(self, results: dict[Cell, Any]) -> Report:
        """The tables, the sweep and the tests."""
        return tables.report(results)
