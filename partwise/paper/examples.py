"""Scenes, and what methods make of them: figures 1a, 3 and 6 of the paper.

The scenes are Table 1's simulated draws, and which of them are shown is a rule, not a choice: the
first of each kind. For figure 1a the kinds are the combinations of objects; for the reconstructions
(figure 3 without noise, figure 6 at sigma 0.25), of the scenes with two objects or more, whether
CCAE and GCM-DS explain them right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from partwise.inference import solve
from partwise.metrics import exchangeable_scores, predictions
from partwise.metrics.layouts import groups_of
from partwise.model import Model, constellations
from partwise.paper import examples_figures as figures
from partwise.paper.experiment import Advance, Experiment
from partwise.paper.published import FIGURES, SCENES, TABLE1_BETA
from partwise.paper.reporting import Report
from partwise.paper.table1 import simulated
from partwise.posterior import Explanations
from partwise.scenes import LabelledScenes
from partwise.solvers import named

__all__ = ["Cell", "Examples"]

Array = np.ndarray

EACH = 2
"""Scenes of each kind in the figures of reconstructions."""

METHODS = (*(["ccae"] if find_spec("equinox") else []), "ds", "ransac")
JUDGED = ("ccae", "ds")
"""Those whose answers decide what kind a scene is."""


@dataclass(frozen=True)
class Cell:
    """One figure: ``kind`` is scenes or answers."""

    kind: str
    sigma: float

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.kind}-sigma{self.sigma:g}"


@dataclass(frozen=True)
class Examples(Experiment[Cell]):
    """What is drawn; ``scenes`` is from how many the first of each kind are taken."""

    name = "examples"

    figures: tuple[tuple[str, float], ...] = tuple(FIGURES)

    def cells(self) -> Iterator[Cell]:
        """A cell a figure."""
        yield from (Cell(*figure) for figure in self.figures)

    def depends(self, cell: Cell) -> dict[str, Any]:
        """The methods that are at hand: CCAE is there once the extra neural is."""
        return {"methods": list(METHODS)}

    def compute(self, cell: Cell, advance: Advance) -> list[dict[str, Any]]:
        """The scenes of a figure, with the truth and every answer."""
        labelled = simulated(self.scenes or SCENES, cell.sigma, self.seed)
        if cell.kind == "scenes":
            return [_truth(labelled, i) for i in first_of_each(_kinds(labelled), 1)]
        found, right = {}, {}
        for method in METHODS:
            options = {"noise": cell.sigma} if method == "ccae" else {}
            options |= {"beta": TABLE1_BETA} if method == "ds" else {}
            found[method] = solve(
                constellations(), labelled.scenes, named(method, **options), self.seed
            )
            right[method] = _right(found[method], labelled)
        judged = np.stack([right[m] for m in JUDGED if m in right], 1).astype(int)
        several = _there(labelled).sum(1) > 1
        votes = _votes(labelled, cell.sigma) if "ccae" in found else None
        out = []
        for i in first_of_each(judged, EACH, several):
            answers = {m: _answer(e, labelled, i, right[m][i]) for m, e in found.items()}
            if votes is not None:
                answers["ccae"] = _with_votes(answers["ccae"], votes[i])
            out.append({**_truth(labelled, i), "answers": answers})
        return out

    def report(self, results: dict[Cell, Any]) -> Report:
        """The pictures."""
        return figures.report({(c.kind, c.sigma): r for c, r in results.items()}, self.out)


def first_of_each(kinds: Array, count: int, allowed: Array | None = None) -> list[int]:
    """The first ``count`` rows of every kind, kinds of the greatest sum first."""
    allowed = np.ones(len(kinds), bool) if allowed is None else allowed
    different = np.unique(kinds[allowed], axis=0)[::-1]
    out: list[int] = []
    for kind in different[np.argsort(-different.sum(1), kind="stable")]:
        out += np.flatnonzero((kinds == kind).all(1) & allowed)[:count].tolist()
    return out


def _kinds(labelled: LabelledScenes) -> Array:
    """How many objects of each template a scene has."""
    copies, there = np.array(constellations().copies), _there(labelled)
    return np.stack([there[:, copies == t].sum(1) for t in np.unique(copies)], 1)


def _there(labelled: LabelledScenes) -> Array:
    """Which objects each scene has."""
    objects = np.unique(labelled.object_id)
    return np.stack([(labelled.present & (labelled.object_id == k)).any(1) for k in objects], 1)


def _truth(labelled: LabelledScenes, i: int) -> dict[str, Any]:
    seen = labelled.present[i]
    points, owner = labelled.points[i][seen], labelled.object_id[i][seen]
    return {"scene": i, "points": points.tolist(), "truth": owner.tolist()}


def _right(found: Explanations, labelled: LabelledScenes) -> Array:
    """Whether each scene is explained completely right, whatever identical squares are called."""
    scores = exchangeable_scores(labelled, *predictions(found, labelled), found.model)
    return scores.scene_accuracy > 0


def _answer(found: Explanations, labelled: LabelledScenes, i: int, right: bool) -> dict[str, Any]:
    """Which object has which point, and where the objects are.

    Objects are numbered as in the truth: of identical ones, as most points agree.
    """
    owner, _ = predictions(found, labelled)
    seen = labelled.present[i]
    mine = owner[i][seen]
    names = _names(mine, labelled.object_id[i][seen], found.model)
    objects = {}
    for k in np.flatnonzero(found.found[i]):
        template = found.model.templates[found.model.copies[k]]
        objects[str(names[k])] = found.model.pose.apply(found.pose[i, k], template.parts).tolist()
    called = np.append(names, -1)[mine]
    return {
        "owner": called.tolist(),
        "names": names.tolist(),
        "objects": objects,
        "right": bool(right),
    }


def _names(mine: Array, truth: Array, model: Model) -> Array:
    """What each object is called so that most points agree with the truth."""
    count = len(model.copies)
    objects = np.arange(count)
    overlap = ((mine == objects[:, None])[:, None] & (truth == objects[:, None])[None]).sum(2)
    names = objects.copy()
    for group in groups_of(model):
        rows, columns = linear_sum_assignment(overlap[np.ix_(group, group)], maximize=True)
        names[np.array(group)[rows]] = np.array(group)[columns]
    return names


def _votes(labelled: LabelledScenes, sigma: float) -> list[dict[int, Array]]:
    """Per scene and capsule of CCAE, the votes that win a point: what it reconstructs."""
    import equinox as eqx
    import jax

    from partwise.neural.ccae import explain, load
    from partwise.neural.shipped import ccae_weights

    network = load(ccae_weights()[sigma])

    @eqx.filter_jit
    def won(points: Any, seen: Any) -> Any:
        votes = network(points, seen)
        explained = explain(votes, points)
        share = explained.votes.reshape(len(points), -1)
        return votes.position, share.argmax(1), explained.beaten & seen

    position, winner, beaten = map(
        np.asarray, jax.vmap(won)(labelled.points.astype(np.float32), labelled.present)
    )
    out = []
    for i in range(len(labelled)):
        capsule, vote = np.divmod(np.unique(winner[i][beaten[i]]), position.shape[2])
        out.append({int(k): position[i, k, vote[capsule == k]] for k in np.unique(capsule)})
    return out


def _with_votes(answer: dict[str, Any], votes: dict[int, Array]) -> dict[str, Any]:
    """CCAE's objects as its capsules see them; capsule k stands for object k."""
    objects = {str(answer["names"][k]): parts.tolist() for k, parts in votes.items()}
    return {**answer, "objects": objects}
