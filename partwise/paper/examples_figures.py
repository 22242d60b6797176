"""The figures of :mod:`partwise.paper.examples`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from partwise.paper.published import FIGURES
from partwise.paper.reporting import Report
from partwise.plotting.constellations import plot_answers
from partwise.plotting.saving import Picture, save

__all__ = ["report"]

TITLES = {"ccae": "CCAE", "ds": "GCM-DS", "ransac": "RANSAC"}

SAYS = """Figure 1a shows scenes and the objects that they are composed of; figures 3 and 6, without
noise and at σ = 0.25, what the methods reconstruct. CCAE often gives points to the right object but
reconstructs it inaccurately; where GCM-DS assigns points right and there is no noise, its
reconstruction is perfect; there are scenes on which both fail (sec. 7.1.2).
"""

TEXT = """No scene was chosen by hand. They are those of Table 1's simulated draws that come first:
for figure 1a of each combination of objects; for the others, of the scenes of two objects or more,
the first two that CCAE and GCM-DS both explain right, that one of them does, and that neither does.
*Right* is what scene accuracy counts in the exchangeable protocol: the points grouped right and no
part claimed that is not there. An object has one colour and one marker in all answers to a scene;
outlines with crosses are where the answer puts the object's parts. For CCAE they are the votes that
win a point, and these are blunt: ours was trained with votes no sharper than 0.4 of half the
scene's width (docs/ccae.md), so that it says which points belong together, not where corners are.
"""


def report(results: dict[tuple[str, float], Any], out: Path) -> Report:
    """Every figure, and how many scenes of each kind there are."""
    pictures = []
    for key, scenes in results.items():
        if scenes:
            draw = _scenes if key[0] == "scenes" else _answers
            pictures.append(draw(scenes, out, *key))
    data = {f"{kind}-sigma{sigma:g}": scenes for (kind, sigma), scenes in results.items()}
    return Report(SAYS, TEXT, [], pictures=pictures, data=data)


def _scenes(scenes: list[dict[str, Any]], out: Path, kind: str, sigma: float) -> Picture:
    """Figure 1a: points above, the objects that they are parts of below."""
    columns, heads = [], []
    for scene in scenes:
        points, truth = _truth(scene)
        bare = (points, None, {})
        columns.append({"points": bare, "objects": (points, truth, _outlines(points, truth))})
        heads.append(f"scene {scene['scene']}")
    caption = (
        f"Figure {FIGURES[kind, sigma]}: scenes (above) and the objects that they are composed of "
        "(below), the first of each combination of two squares and a triangle."
    )
    return save(plot_answers(columns, heads), out, "examples-scenes", caption)


def _answers(scenes: list[dict[str, Any]], out: Path, kind: str, sigma: float) -> Picture:
    """Figures 3 and 6: the truth above, below it the answer of every method."""
    columns, marks = [], []
    for scene in scenes:
        points, truth = _truth(scene)
        answers = {"truth": (points, truth, _outlines(points, truth))}
        for method, answer in scene["answers"].items():
            objects = {int(k): np.array(parts) for k, parts in answer["objects"].items()}
            answers[TITLES[method]] = (points, np.array(answer["owner"]), objects)
        columns.append(answers)
        marks.append(
            {TITLES[m]: "right" if a["right"] else "wrong" for m, a in scene["answers"].items()}
        )
    kinds = "both CCAE and GCM-DS explain right, one of them, and neither."
    if "ccae" not in scenes[0]["answers"]:
        kinds = "GCM-DS explains right, and wrong (CCAE needs the extra neural)."
    figure = f"Figure {FIGURES[kind, sigma]}: reconstructions at σ = {sigma:g}"
    caption = f"{figure}, the first scenes that {kinds}"
    heads = [f"scene {scene['scene']}" for scene in scenes]
    return save(plot_answers(columns, heads, marks), out, f"examples-sigma{sigma:g}", caption)


def _truth(scene: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(scene["points"]), np.array(scene["truth"])


def _outlines(points: np.ndarray, owner: np.ndarray) -> dict[int, np.ndarray]:
    return {int(k): points[owner == k] for k in np.unique(owner)}
