"""Pictures of faces: the figure of sec. 7.2.2, faces of the model, its factors, their number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from partwise.faces.appearance import FaceModel
from partwise.faces.canvas import BACKGROUND, PARTS
from partwise.faces.combinations import Faces, HeldOut
from partwise.faces.evaluation import face_solver
from partwise.faces.fitting import Fit, knee
from partwise.faces.rendering import render_explanation, render_truth
from partwise.faces.scenes import draw_scenes
from partwise.inference import solve
from partwise.plotting.saving import Picture, save
from partwise.plotting.style import PALETTE

__all__ = [
    "COLUMNS",
    "KINDS",
    "label_of",
    "plot_factors",
    "plot_knee",
    "plot_model",
    "plot_samples",
    "plot_scenes",
    "solved_scenes",
    "write_pictures",
]

Array = np.ndarray

KINDS = ((2, False), (3, False), (4, False), (5, False), (3, True))
"""The rows of the paper's figure: how many faces, and whether they are occluded."""

PART_LINES = "#FF5A3C"
"""The outlines of parts: as in the paper red, and light enough to be seen on dark grey."""

LABELS_AT = 176
"""The column of the parts' names, right of every face."""

COLUMNS = {"vi": "variational inference", "ransac": "RANSAC", "ransac-refit": "RANSAC, refit"}


def write_pictures(
    out: Path,
    faces: Faces,
    seed: int = 0,
    fit: Fit | None = None,
    prefix: str = "faces",
    scenes: Mapping[str, Sequence[Array]] | None = None,
) -> list[Picture]:
    """All pictures of a source of faces, as PNG files in the folder ``out``.

    ``scenes`` are the rows of the paper's figure; without, scenes are drawn and solved.
    """
    named: list[tuple[str, Figure, str]] = [
        (
            "model",
            plot_model(faces, seed),
            "Figures 1b and 1c: a synthetic face, drawn from the model, with the areas of its five "
            "parts; a scene of three faces.",
        ),
        (
            "scenes",
            plot_scenes(scenes or solved_scenes(faces, seed)),
            "Figure 5: scenes of 2, 3, 4 and 5 faces and of 3 occluded ones, and what each method "
            "makes of their parts.",
        ),
        ("samples", plot_samples(faces, seed), "Faces: given, rebuilt, and drawn from the model."),
        (
            "factors",
            plot_factors(faces.model),
            "What each factor does, from -2 to 2 standard deviations.",
        ),
    ]
    if fit is not None:
        caption = "How well validation faces are rebuilt, by the number of factors."
        named.append(("number", plot_knee(fit), caption))
    return [save(figure, out, f"{prefix}-{name}", caption) for name, figure, caption in named]


def plot_model(faces: Faces, seed: int = 0) -> Figure:
    """A face with the areas of its parts, and a scene of three."""
    model = faces.model
    code = model.sample(np.random.default_rng(seed), 1)[0]
    scene = render_truth(model, draw_scenes(faces, 3, 1, False, seed), 0)
    figure = _sheet([[model.portrait(code), scene]], [""], ["a face and its parts", "a scene"], 3.2)
    ax = figure.axes[0]
    for name, area in zip(PARTS, model.areas, strict=True):
        ax.contour(area, levels=[0.5], colors=[PART_LINES], linewidths=1.4)
        ax.annotate(
            name,
            (LABELS_AT, np.nonzero(area)[0].max() - 8),  # the jaw begins beside the nose
            fontsize=9,
            color=PART_LINES,
            ha="left",
            va="center",
        )
    return figure


def plot_scenes(rows: Mapping[str, Sequence[Float[Array, "H W"]]]) -> Figure:
    """The paper's figure: ground truth, VI and RANSAC, and with refit; a row a kind of scene."""
    heads = ["ground truth", *COLUMNS.values()]
    return _sheet(list(rows.values()), list(rows), heads, 2.2)


def label_of(count: int, occluded: bool) -> str:
    """What a row of the paper's figure is called."""
    return f"{count} faces" + (", occluded" if occluded else "")


def solved_scenes(faces: Faces, seed: int = 0) -> dict[str, list[Float[Array, "H W"]]]:
    """The rows of the paper's figure, of a new scene of every kind."""
    rows = {}
    for count, occluded in KINDS:
        drawn = draw_scenes(faces, count, 1, occluded, seed)
        model = faces.model.scene_model(count, occluded)
        row = [render_truth(faces.model, drawn, 0)]
        for name in COLUMNS:
            found = solve(model, drawn.scenes, face_solver(name), seed)[0]
            row.append(render_explanation(faces.model, found))
        rows[label_of(count, occluded)] = row
    return rows


def plot_samples(faces: Faces, seed: int = 0, count: int = 8) -> Figure:
    """Faces as they are given, as their codes and as their factors draw them; and new ones."""
    model, rng = faces.model, np.random.default_rng(seed)
    drawn = faces.draw(rng, count)
    ground = (1 - model.opacity) * BACKGROUND
    expected = model.codes(model.expected_factors(drawn.codes))
    rows = {
        "codes (PPCA)": _portraits(model, drawn.codes),
        f"{model.factors} factors": _portraits(model, expected),
        "drawn from\nthe model": _portraits(model, model.sample(rng, count)),
    }
    if isinstance(faces, HeldOut):
        rows = {
            "photographs,\nput together": [drawn.picture(i) + ground for i in range(count)]
        } | rows
    return _sheet([[_cut(p) for p in row] for row in rows.values()], list(rows), [], 1.1)


def plot_factors(model: FaceModel, steps: Sequence[float] = (-2, -1, 0, 1, 2)) -> Figure:
    """A face for every factor (two factors a row) and every step along it, in deviations."""
    rows, labels = [], []
    for k in range(0, model.factors, 2):
        pair = [f for f in (k, k + 1) if f < model.factors]
        row = []
        for factor in pair:
            along = np.zeros((len(steps), model.factors))
            along[:, factor] = steps
            row += [_cut(p) for p in _portraits(model, model.codes(along))]
        rows.append(row)
        labels.append("factors " + ", ".join(str(f + 1) for f in pair))
    heads = [f"{s:+g}" if s else "0" for s in steps] * 2
    return _sheet(rows, labels, heads[: max(map(len, rows))], 0.95)


def plot_knee(fit: Fit) -> Figure:
    """The sweep over the number of factors, and the knee that was chosen."""
    figure = Figure(figsize=(5.5, 3.6))
    ax = figure.subplots()
    x, y = np.array(fit.factors), fit.losses
    chosen = knee(fit.factors, fit.losses)
    ax.plot(x, y, "o-", color=PALETTE[0], markersize=4)
    ax.plot(x[[0, -1]], y[[0, -1]], ":", color="#8A8A8A", label="from end to end")
    ax.plot(x[chosen], y[chosen], "D", color=PALETTE[1], label=f"the knee: {x[chosen]} factors")
    ax.set(xlabel="factors", ylabel="RMSE of validation faces, grey levels")
    ax.legend(frameon=False)
    return figure


def _portraits(model: FaceModel, codes: Float[Array, "n c"]) -> list[Array]:
    return [model.portrait(code) for code in codes]


def _cut(portrait: Float[Array, "H W"]) -> Array:
    """The middle of the canvas, where the face is."""
    return portrait[5:195, 40:184]


def _sheet(
    rows: Sequence[Iterable[Any]], labels: Sequence[str], heads: Sequence[str], size: float
) -> Figure:
    """Grey pictures in rows, with labels at the left and headings above."""
    table = [list(row) for row in rows]
    widest = max(map(len, table))
    tall = table[0][0].shape[0] / table[0][0].shape[1]
    figure = Figure(figsize=(size * widest, size * tall * len(table)))
    axes = figure.subplots(
        len(table), widest, squeeze=False, gridspec_kw={"wspace": 0.04, "hspace": 0.04}
    )
    for i, row in enumerate(table):
        for j in range(widest):
            ax = axes[i, j]
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if j < len(row):
                ax.imshow(row[j], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes[i, 0].set_ylabel(labels[i], fontsize=8)
    for j, head in enumerate(heads):
        axes[0, j].set_title(head, fontsize=9)
    return figure
