"""Charts of the sky: the points as they came, and the constellations that were found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from partwise.plane import from_complex
from partwise.plotting.labels import Label, place_labels
from partwise.plotting.style import axes

if TYPE_CHECKING:
    from partwise.sky import Constellation, Found

__all__ = ["plot_chart", "plot_sky", "write_sky"]

Array = np.ndarray

NIGHT, STAR, FRAME = "#0C1330", "#FFFDF2", "#3B4670"
LINE, NAME = "#56B4E9", "#A9DBF8"
FAINT_LINE, FAINT_NAME = "#4C6D9C", "#7E9AC4"
HIDDEN, STRAY = "#E69F00", "#B9BED0"
"""Colours of Okabe and Ito where something is said; brightness and shape say it, too."""

MARGIN = 0.03
NAMED = 1.6
"""Stars that are brighter have their names on the chart."""

DOT = 11.0

GAP = 0.15
"""Inches around panels."""


def plot_chart(points: Float[Array, "m 2"], ax: Any = None) -> Any:
    """Points as they came: all alike."""
    ax = axes(ax, (6.0, 6.0))
    _sheet(ax, points)
    ax.scatter(*points.T, s=DOT, c=STAR, linewidths=0)
    return ax


def plot_sky(found: Found, ax: Any = None) -> Any:
    """The chart with its constellations.

    Stars are as large as they are bright; crosses are stars that are hidden, rings are points that
    are no stars of a figure. Constellations that are only partly in the field are fainter.
    """
    from partwise.sky import catalogue

    ax = axes(ax, (6.0, 6.0))
    _sheet(ax, found.points)
    if found.camera is None:
        ax.scatter(*found.points.T, s=DOT, c=STAR, linewidths=0)
        return ax
    sky = catalogue()
    z, ahead = found.camera.project(sky.vectors)
    places = from_complex(z)
    real = found.stars >= 0
    places[found.stars[real]] = found.points[real]  # as they were drawn, not as they should be
    marked = found.hidden
    drawn = [found.points, places[marked]]
    marked[found.stars[real]] = True
    # The figures that are only partly in the field go below the others.
    for constellation in sorted(found.constellations, key=lambda c: c.is_whole):
        drawn.append(_figure(ax, constellation, places, ahead, marked, found.width))
    magnitude = np.array([sky.stars[k].magnitude for k in found.stars[real]])
    size = np.clip(6.8 - magnitude, 1.5, 7.5) ** 2 * 2.0
    ax.scatter(*found.points[real].T, s=size, c=STAR, linewidths=0.8, edgecolors=NIGHT, zorder=4)
    ax.scatter(
        *found.points[~real].T, s=16, facecolors="none", edgecolors=STRAY, linewidths=0.9, zorder=3
    )
    ax.scatter(*places[found.hidden].T, s=22, c=HIDDEN, marker="x", linewidths=1.2, zorder=3)
    place_labels(ax, [*_names(ax, found, places), *_star_names(found)], np.concatenate(drawn))
    return ax


def write_sky(path: Path, found: Found, beside: bool = False, kind: str | None = None) -> None:
    """A picture of the answer; with ``beside``, the points as they came on its left."""
    from matplotlib.figure import Figure

    count = 2 if beside else 1
    side, below = 6.6, 0.75
    tall = side * float(np.clip(_ratio(found.points), 0.3, 1.5))
    width, height = side * count + GAP * (count + 1), tall + below + GAP
    figure = Figure(figsize=(width, height), facecolor=NIGHT)
    panels = [
        figure.add_axes(
            ((GAP + k * (side + GAP)) / width, below / height, side / width, tall / height)
        )
        for k in range(count)
    ]
    if beside:
        plot_chart(found.points, panels[0])
        _below(panels[0], f"{len(found.points)} points")
    plot_sky(found, panels[-1])
    _below(panels[-1], _title(found))
    if found.found:
        _legend(panels[-1])
    figure.savefig(path, dpi=150, facecolor=NIGHT, format=kind)


def _ratio(points: Float[Array, "m 2"]) -> float:
    """Height by width of the sheet."""
    size = np.ptp(points, axis=0) if len(points) else np.ones(2)
    size = size + 2 * MARGIN * size.max()
    return size[1] / size[0] if size.min() > 0 else 1.0


def _sheet(ax: Any, points: Float[Array, "m 2"]) -> None:
    """The night, as large as the points need it."""
    low, high = (points.min(0), points.max(0)) if len(points) else (np.zeros(2), np.ones(2))
    margin = MARGIN * (max((high - low).max(), 1e-300))
    ax.set_xlim(low[0] - margin, high[0] + margin)
    ax.set_ylim(low[1] - margin, high[1] + margin)
    ax.set_aspect("equal")
    ax.set_facecolor(NIGHT)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color(FRAME)


def _figure(
    ax: Any, constellation: Constellation, places: Array, ahead: Array, marked: Array, width: float
) -> Float[Array, "n 2"]:
    """The lines of a figure, which stop short of stars that are drawn; where they are."""
    lines = constellation.figure.lines
    lines = lines[ahead[lines].all(1)]
    whole = constellation.is_whole
    a, b = places[lines[:, 0]], places[lines[:, 1]]
    length = np.linalg.norm(b - a, axis=1, keepdims=True)
    short = np.minimum(0.011 * width, 0.3 * length) * (b - a) / np.maximum(length, 1e-12)
    style = {"color": LINE, "lw": 1.5} if whole else {"color": FAINT_LINE, "lw": 1.1}
    starts, ends = (end[:, None] * short for end in marked[lines].T)
    for start, end in zip(a + starts, b - ends, strict=True):
        ax.plot(*np.stack([start, end], 1), zorder=2, solid_capstyle="round", **style)
    along = np.linspace(0, 1, 25)[:, None, None]
    return (a + along * (b - a)).reshape(-1, 2)


def _names(ax: Any, found: Found, places: Array) -> list[Label]:
    """Names of constellations, near the middle of what is in the field of them."""
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    labels = []
    for c in found.constellations:
        own = places[c.figure.stars]
        own = own[((own >= low) & (own <= high)).all(1)]
        if len(own) == 0:
            continue
        style = {"color": NAME, "fontsize": 9.5, "zorder": 5}
        if not c.is_whole:
            style |= {"color": FAINT_NAME, "fontsize": 8, "style": "italic"}
        reach = 0.08 * found.width + np.linalg.norm(own - own.mean(0), axis=1).max()
        labels.append(Label(c.name, own.mean(0) + reach * _AROUND, style, not c.is_whole))
    return labels


def _star_names(found: Found) -> list[Label]:
    """Names of bright stars, beside them."""
    labels = []
    for row in np.flatnonzero(found.stars >= 0).tolist():
        star = found.star(row)
        if star is not None and star.name and star.magnitude < NAMED:
            style = {"color": STAR, "fontsize": 7, "alpha": 0.85, "zorder": 5}
            wide = 0.014 + 0.0052 * len(star.name)  # half of the word, and a gap
            places = found.points[row] + found.width * _BESIDE * [wide, 0.021]
            labels.append(Label(star.name, places, style, True))
    return labels


_TURNS = np.linspace(0, 2 * np.pi, 17)[:-1] - np.pi / 2
_AROUND = np.concatenate(
    [np.zeros((1, 2))]
    + [r * np.stack([np.cos(_TURNS), np.sin(_TURNS)], 1) for r in (0.25, 0.5, 0.75, 1.0)]
)
_BESIDE = np.concatenate([r * np.stack([np.cos(_TURNS), np.sin(_TURNS)], 1) for r in (1.0, 1.3)])


def _title(found: Found) -> str:
    if not found.found:
        return "no constellations found"
    ra, dec = found.pointing
    hours, minutes = divmod(round(ra * 4), 60)
    sign = "+" if dec >= 0 else "−"
    whole = sum(c.is_whole for c in found.constellations)
    count = f"{whole} constellations, {len(found.constellations) - whole} more in part"
    middle = f"middle {hours % 24} h {minutes:02d} m, {sign}{abs(dec):.0f}°"
    return f"{count}  ·  {middle}  ·  field {found.field:.0f}°"


def _below(ax: Any, text: str) -> None:
    style = {"ha": "center", "va": "top", "color": STAR, "fontsize": 10.5}
    ax.annotate(text, (0.5, 0), (0, -11), "axes fraction", textcoords="offset points", **style)


def _legend(ax: Any) -> None:
    """What the marks mean, in one row."""
    from matplotlib.lines import Line2D

    mark: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none"}
    entries = [
        Line2D([], [], marker="o", color=STAR, linestyle="none", markersize=5, label="star"),
        Line2D([], [], marker="x", color=HIDDEN, markersize=5, label="hidden star", **mark),
        Line2D([], [], marker="o", color=STRAY, markersize=4.5, label="no star", **mark),
        Line2D([], [], color=LINE, lw=1.5, label="whole"),
        Line2D([], [], color=FAINT_LINE, lw=1.1, label="in part"),
    ]
    ax.legend(
        handles=entries,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        borderaxespad=2.9,
        ncols=5,
        frameon=False,
        labelcolor=NAME,
        fontsize=9,
        handletextpad=0.4,
        columnspacing=1.6,
    )
