"""Points and the objects that they are assigned to: truth, and what methods make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from partwise.plotting.style import (
    MARKERS,
    PALETTE,
    UNCLAIMED,
    UNKNOWN,
    axes,
    colour,
    marker,
    outline,
)

__all__ = ["plot_answer", "plot_answers"]

Array = np.ndarray


def plot_answer(
    points: Float[Array, "M 2"],
    owner: Int[Array, " M"] | None,
    objects: Mapping[int, Float[Array, "N 2"]],
    ax: Any = None,
    names: Mapping[int, str] | None = None,
) -> Any:
    """Points in the colours of the objects that they are assigned to, and the objects' outlines.

    Object k has the colour and marker of k; ``objects[k]`` is where its parts are, ``names[k]`` its
    name in the legend. Points with owner -1 belong to nothing: hollow and grey. Without ``owner``,
    nothing is known of them yet.
    """
    ax = axes(ax)
    points, names = np.asarray(points), names or {}
    for k, parts in objects.items():
        line = outline(np.asarray(parts))
        ax.plot(*line.T, "-+", color=colour(k), linewidth=1.2, markersize=5, alpha=0.7, zorder=1)
    if owner is None:
        ax.plot(*points.T, "o", color=UNKNOWN, markersize=7)
        owner = np.zeros(0, int)
    owner = np.asarray(owner)
    for k in sorted(np.unique(owner), key=lambda k: (k < 0, k)):  # nothing last
        mine = points[owner == k]
        if k < 0:
            ax.plot(*mine.T, **UNCLAIMED, label=names.get(-1), zorder=2)
        else:
            style = {"color": colour(int(k)), "markersize": 8, "label": names.get(int(k))}
            ax.plot(*mine.T, marker(int(k)), **style, zorder=3)
    ax.set_aspect("equal")
    ax.margins(0.08)
    return ax


def plot_answers(
    columns: Sequence[Mapping[str, tuple[Array, Array | None, Mapping[int, Array]]]],
    heads: Sequence[str],
    marks: Sequence[Mapping[str, str]] | None = None,
    size: float = 1.55,
) -> Any:
    """A sheet: a column a scene, a row an answer to it, each ``(points, owner, objects)``.

    ``heads`` stand above the columns; ``marks[column][row]`` is a word below a panel.
    """
    from matplotlib.figure import Figure

    rows = list(columns[0])
    width = size * len(columns) + 0.5
    figure = Figure(figsize=(width, (size + 0.2) * len(rows) + 0.3), layout="constrained")
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    for j, column in enumerate(columns):
        every = np.concatenate([points for points, _, _ in column.values()])
        low, high = every.min(0), every.max(0)
        middle, half = (low + high) / 2, 0.62 * max(float((high - low).max()), 1e-9)
        for i, (row, answer) in enumerate(column.items()):
            ax = plot_answer(*answer, ax=panels[i, j])
            for line in ax.lines:
                if line.get_marker() in (*MARKERS, UNCLAIMED["marker"]):
                    line.set_markersize(5)
            ax.set(xticks=[], yticks=[])
            ax.set(xlim=(middle[0] - half, middle[0] + half))
            ax.set(ylim=(middle[1] - half, middle[1] + half))
            ax.spines[:].set_color("#CCCCCC")
            if marks is not None:
                ax.set_xlabel(marks[j].get(row, ""), fontsize=8, labelpad=2)
                ax.xaxis.label.set_color(PALETTE[1] if marks[j].get(row) == "wrong" else "#555555")
            if j == 0:
                ax.set_ylabel(row, fontsize=10)
        panels[0, j].set_title(heads[j], fontsize=9)
    return figure
