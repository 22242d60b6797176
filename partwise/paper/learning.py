"""Learning templates (sec. 7.1.3), and one step further.

What is run: each template learned from 64 single-object scenes, over and over with fresh scenes, by
the paper's algorithm and by ours, beside the paper's figures and the Cramer-Rao bound; Table 1 with
learned templates beside the true ones; and templates learned from mixed scenes, that show several
unknown objects. Parts come in any order, and no label is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from partwise.evaluation import assess
from partwise.files import read_labelled
from partwise.inference import solve
from partwise.learning import Learned, compose, learn, learn_model
from partwise.learning.bound import cramer_rao
from partwise.metrics import METRICS
from partwise.model import Model, constellations
from partwise.paper import learning_tables as tables
from partwise.paper.experiment import Advance, Experiment
from partwise.paper.published import EXAMPLES, SCENES, SIGMAS, recorded_name
from partwise.paper.reporting import Report
from partwise.sampling import simulate_constellations
from partwise.scenes import LabelledScenes, Scene
from partwise.templates import Template, shapes

__all__ = ["Cell", "Learning"]

SEEDS = 100
MIXED_SCENES, MIXED_SIGMAS = 500, (0.0, 0.1)
TRUTH = {"square": shapes.square, "triangle": shapes.triangle}

METHODS: dict[str, dict[str, Any]] = {
    "paper": {"noise": "scene"},
    "free": {"symmetry": False},
    "default": {},
    "identified": {},
}


@dataclass(frozen=True)
class Cell:
    """One thing to do: ``kind`` is smse, bound, figure, table1 or mixed."""

    kind: str
    sigma: float
    method: str
    what: str

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.kind}-{self.what}-sigma{self.sigma:g}-{self.method}"


@dataclass(frozen=True)
class Learning(Experiment[Cell]):
    """What is run.

    ``scenes`` is how many scenes score a model and how many mixed ones are learned from; the
    number of repetitions shrinks along.
    """

    name = "learning"

    sigmas: tuple[float, ...] = SIGMAS
    mixed_sigmas: tuple[float, ...] = MIXED_SIGMAS

    @property
    def seeds(self) -> int:
        """How often each template is learned."""
        return SEEDS if self.scenes is None else int(np.clip(self.scenes // 5, 2, SEEDS))

    def cells(self) -> Iterator[Cell]:
        """Everything there is to do."""
        for what in TRUTH:
            for sigma in self.sigmas:
                yield from (Cell("smse", sigma, method, what) for method in METHODS)
                if sigma > 0:
                    yield Cell("bound", sigma, "order", what)
                    yield Cell("figure", sigma, "default", what)
        for sigma in self.sigmas:
            for what in ("simulated", "recorded"):
                if what == "simulated" or (self.folder / recorded_name(sigma)).is_file():
                    for method in ("true", "paper", "default"):
                        yield Cell("table1", sigma, method, what)
        for sigma in self.mixed_sigmas:
            yield from (Cell("mixed", sigma, method, "scenes") for method in ("known", "unknown"))

    def depends(self, cell: Cell) -> dict[str, Any]:
        """The paper's draws, where they are used."""
        if cell.what != "recorded":
            return {}
        return {"data": (self.folder / recorded_name(cell.sigma)).stat().st_size}

    def compute(self, cell: Cell, advance: Advance) -> Any:
        """What there is to know of one cell."""
        work = {
            "smse": self._smse,
            "bound": _bound,
            "figure": self._figure,
            "table1": self._table1,
            "mixed": self._mixed,
        }
        return work[cell.kind](cell)

    # Single objects

    def examples(self, what: str, sigma: float, seeds: int, first: int = 0) -> list[LabelledScenes]:
        """Single-object scenes of the paper's generator, ``EXAMPLES`` for each seed."""
        model = Model([TRUTH[what]()])
        out = []
        for seed in range(first, first + seeds):
            key = [self.seed, seed, round(1000 * sigma), len(model.templates[0])]
            drawn = int(np.random.SeedSequence(key).generate_state(1)[0])
            out.append(simulate_constellations(EXAMPLES, sigma, drawn, model))
        return out

    def _learn(self, what: str, method: str, labelled: LabelledScenes, seed: int) -> Learned:
        """A template from scenes in which parts come in a random order, or are identified."""
        parts = len(TRUTH[what]())
        rng = np.random.default_rng(seed)
        types = tuple("abcdef"[:parts])
        scenes = []
        for points in labelled.points:
            order = rng.permutation(parts)
            named = [types[n] for n in order] if method == "identified" else None
            scenes.append(Scene(points[order], named))
        return learn(scenes, parts, name=what, seed=seed, **METHODS[method])

    def _smse(self, cell: Cell) -> dict[str, Any]:
        truth = TRUTH[cell.what]()
        if cell.method == "identified":
            truth = Template(truth.parts, truth.name, tuple("abcdef"[: len(truth)]))
        errors, sigmas, iterations, seconds, symmetric = [], [], [], [], []
        for seed, labelled in enumerate(self.examples(cell.what, cell.sigma, self.seeds)):
            start = perf_counter()
            learned = self._learn(cell.what, cell.method, labelled, seed)
            seconds.append(perf_counter() - start)
            errors.append(learned.compare(truth).smse)
            sigmas.append(learned.sigma * truth.radius)
            iterations.append(learned.iterations)
            symmetric.append(1.0 - dict(learned.symmetry).get("none", 0.0))
        return {
            "smse": errors,
            "sigma": sigmas,
            "iterations": iterations,
            "seconds": float(np.median(seconds)),
            "symmetric": float(np.mean(symmetric)),
        }

    def _figure(self, cell: Cell) -> dict[str, Any]:
        """One template of the paper's figure 4, its examples, and the course of learning."""
        labelled = self.examples(cell.what, cell.sigma, 1, SEEDS)[0]
        learned = self._learn(cell.what, cell.method, labelled, SEEDS)
        return {
            "examples": labelled.points.tolist(),
            "parts": learned.parts.tolist(),
            "smse": learned.compare(TRUTH[cell.what]()).smse,
            "elbo": learned.elbo,
            "betas": learned.betas,
        }

    # Table 1 with learned templates

    def _table1(self, cell: Cell) -> dict[str, Any]:
        """Scores of ``auto`` with the true templates (noise level not given), or learned ones."""
        if cell.method == "true":
            model = constellations()
        else:
            # Seeds that no other cell has, the same for all noise levels.
            learned = {
                what: self._learn(
                    what, cell.method, self.examples(what, cell.sigma, 1, SEEDS)[0], SEEDS
                )
                for what in TRUTH
            }
            model = compose([learned["square"], learned["triangle"]], [2, 1])
        return _scores(model, self._labelled(cell))

    def _labelled(self, cell: Cell) -> LabelledScenes:
        if cell.what == "recorded":
            labelled = read_labelled(self.folder / recorded_name(cell.sigma))
            return labelled.select(np.flatnonzero(labelled.present.any(1))[: self.scenes])
        key = np.random.SeedSequence([self.seed, 7, round(1000 * cell.sigma)]).generate_state(1)
        return simulate_constellations(self.scenes or SCENES, cell.sigma, int(key[0]))

    # Mixed scenes

    def _mixed(self, cell: Cell) -> dict[str, Any]:
        key = np.random.SeedSequence([self.seed, 8, round(1000 * cell.sigma)]).generate_state(2)
        count = self.scenes or MIXED_SCENES
        labelled = simulate_constellations(count, cell.sigma, int(key[0]))
        start = perf_counter()
        learned = learn_model(labelled, [4, 3] if cell.method == "known" else None)
        seconds = perf_counter() - start
        fresh = simulate_constellations(self.scenes or 2000, cell.sigma, int(key[1]))
        found: dict[str, Any] = {"parts": [len(t) for t in learned.templates], "seconds": seconds}
        for what, truth in TRUTH.items():
            same = [t for t in learned.templates if len(t) == len(truth())]
            found[what] = min((t.compare(truth()).smse for t in same), default=None)
        found["instances"] = list(learned.model.instances or ())
        found["clutter"] = learned.model.clutter
        found["true"] = _scores(constellations(), fresh)["exchangeable"]["scene_accuracy"]
        found["learned"] = None
        if sorted(found["parts"]) == [3, 4] and sum(found["instances"]) == 3:
            # The scoring protocol wants the layout of the truth: the square first.
            order = np.argsort([-n for n in found["parts"]])
            model = learned.model.replace(
                templates=[learned.model.templates[t] for t in order],
                instances=[found["instances"][t] for t in order],
            )
            if model.instances == (2, 1):
                found["learned"] = _scores(model, fresh)["exchangeable"]["scene_accuracy"]
        return found

    def report(self, results: dict[Cell, Any]) -> Report:
        """The tables, and the learned templates over the true ones."""
        return tables.report(results, self.out)


def _bound(cell: Cell) -> dict[str, float | None]:
    truth = TRUTH[cell.what]()
    any_order = cramer_rao(truth, cell.sigma, EXAMPLES)
    return {
        "any order": any_order if np.isfinite(any_order) else None,
        "identified": cramer_rao(truth, cell.sigma, EXAMPLES, identified=True),
    }


def _scores(model: Model, labelled: LabelledScenes) -> dict[str, Any]:
    """Every scene's scores under both protocols."""
    scores = assess(labelled, solve(model, labelled.scenes, "auto"))
    return {p: {m: np.asarray(getattr(s, m)).tolist() for m in METRICS} for p, s in scores.items()}
