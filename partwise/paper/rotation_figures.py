"""The figures and tables of :mod:`partwise.paper.rotation`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from partwise.paper.reporting import Report
from partwise.paper.tables import Claim, Grid, Measured, Row, mean_and_error
from partwise.plotting.parts import by_part, draw_picture, most_used, part_colours
from partwise.plotting.saving import Picture, save
from partwise.plotting.style import CLUTTER, colour

__all__ = ["report"]

Array = np.ndarray

REACH = 0.05
"""By how much the agreement of parts that turn may fall, at most."""

CLOSE = 15
"""Degrees by which a turn may be off to count as found."""

SHOWN = 7
"""Parts of a part set in the figure: those with most ink."""

SAYS = """Appendix D and figure 2: the parts that the part capsule autoencoder (PCAE) finds in a
four do not turn with it. Part sets were trained on MNIST's fours, rotated by up to 360 degrees and
moved by up to 6 pixels; for rotations by multiples of 45 degrees the parts are assigned
inconsistently to the regions of the digit. The paper shows this for two part sets, and gives no
number.
"""

TEXT = """Agreement: a test digit is turned, every pixel gets the part with the largest
responsibility, the labels are turned back and compared with those at 0 degrees over the digit's
pixels, by Cohen's kappa: 1 is equivariant, 0 is chance. The ceiling is what the upright labels give
when they are turned and turned back; *sectors of the canvas* is a labelling that does not turn at
all. Parts of strokes are ends, corners and junctions, found in the thinned picture; a pixel's label
is the nearest part of the learned template, where the pose that was found puts it. Recognition is
by templates of all ten digits, learned from parts of training pictures in any turn; a picture is a
four or not, both as likely, and the decision is by the evidence, no threshold being tuned. Standard
errors are over test digits. Of the test pictures nothing was used in training, learning or tuning.
"""


def report(results: dict[str, Any], angles: Array, out: Path) -> Report:
    """Tables, figures and claims."""
    curves = {
        **{f"PCAE, seed {_seed(n)}": r for n, r in results.items() if n.startswith("pcae")},
        **({"parts of strokes": results["strokes"]} if "strokes" in results else {}),
    }
    grid, rows = _curves_grid(curves, angles)
    grids, pictures = [grid], [_figure2(results, out), _plot_curves(curves, results, angles, out)]
    summary = [_summary(curves, results, angles)]
    if "recognition" in results:
        grids.append(_recognition_grid(results["recognition"]))
    return Report(SAYS, TEXT, grids, summary=summary, pictures=pictures, rows=rows)


def _seed(name: str) -> str:
    return name.removeprefix("pcae-seed")


def _values(result: dict[str, Any], name: str) -> Array:
    """Digits by angles; labels that are all the same tell nothing, and count as chance."""
    return np.nan_to_num(np.array(result[name], float))


def _curves_grid(curves: dict[str, Any], angles: Array) -> tuple[Grid, list[Row]]:
    every = [i for i, angle in enumerate(angles) if angle % 45 == 0]
    lines, rows = [], []
    for title, result in curves.items():
        values = _values(result, "agreement")
        for what in ("agreement", "ceiling"):
            measured = [Measured(*mean_and_error(v)) for v in _values(result, what).T]
            if what == "agreement":
                lines.append([title, *(measured[i] for i in every)])
            for angle, one in zip(angles, measured, strict=True):
                row = {"parts": title, "what": what, "degrees": int(angle)}
                rows.append({**row, "mean": one.value, "error": one.error, "digits": len(values)})
    heads = ["parts", *(f"{angles[i]}°" for i in every)]
    return Grid("Agreement with the upright digit (kappa)", heads, lines), rows


def _summary(curves: dict[str, Any], results: dict[str, Any], angles: Array) -> Grid:
    """The paper's claim, and what was to be reached."""
    lines: list[list[Any]] = []
    for title, result in curves.items():
        mean = _values(result, "agreement").mean(0)
        turned = mean[1:]
        text = f"{turned.min():.3f} to {turned.max():.3f}, mean {turned.mean():.3f}"
        if "mse" in result:
            mse = _values(result, "mse").mean(1)
            claim = Claim(text, bool(turned.max() < 1 - 2 * REACH))
            lines += [
                [f"{title}: parts do not turn with the digit", claim],
                [f"{title}: test MSE", Measured(*mean_and_error(mse), spec=".5f")],
            ]
        else:
            claim = Claim(text, bool(turned.min() >= mean[0] - REACH))
            lines += [
                [f"{title}: agreement within {REACH:g} of that at 0°", claim],
                [f"{title}: the turn that is found", _turns_found(np.array(result["off"], float))],
            ]
    if "recognition" in results:
        right = _right(results["recognition"])
        text = f"balanced accuracy {right.mean(1).min():.3f} to {right.mean(1).max():.3f}"
        lines.append(["a four is recognised at any angle", text])
    return Grid("Rotation", ["", "measured"], lines)


def _turns_found(off: Array) -> str:
    """By how many degrees turns are found wrong, 0° left out; NaN: no template was found."""
    off = off[:, 1:]
    near = (off <= CLOSE).mean()
    return f"off by {np.nanmedian(off):.1f}° (median), {100 * near:.0f} % within {CLOSE}°"


def _right(result: dict[str, Any]) -> Array:
    """Angles by pictures, each class counting half: the mean is the balanced accuracy."""
    odds, truth = np.array(result["odds"]), np.array(result["truth"], bool)
    right = (odds > 0) == truth
    share = np.where(truth, 0.5 / truth.mean(), 0.5 / (~truth).mean())
    return right * share


def _recognition_grid(result: dict[str, Any]) -> Grid:
    odds, truth = np.array(result["odds"]), np.array(result["truth"], bool)
    lines = []
    for title, which in (("fours, found", truth), ("other digits, rejected", ~truth)):
        right = ((odds > 0) == truth)[:, which]
        lines.append([title, *(Measured(*mean_and_error(r)) for r in right)])
    lines.append(["balanced accuracy", *(Measured(r.mean(), _error(r)) for r in _right(result))])
    heads = [f"{len(truth)} test pictures", *(f"{a}°" for a in result["angles"])]
    note = f"{result['templates']} templates of ten digits."
    return Grid("Is there a four? Parts of strokes", heads, lines, note)


def _error(values: Array) -> float:
    return mean_and_error(values)[1]


def _figure2(results: dict[str, Any], out: Path) -> Picture:
    """Figure 2: reconstructions by part; below, the part sets; between, the parts of strokes."""
    from matplotlib.figure import Figure

    networks = {n: r for n, r in results.items() if n.startswith("pcae")}
    strokes = results.get("strokes")
    rows = len(networks) * 2 + (2 if strokes else 0)
    figure = Figure(figsize=(10.5, 1.3 * rows + 0.6))
    axes = figure.subplots(rows, 8, squeeze=False)
    row = 0
    if strokes:
        for i, picture in enumerate(strokes["pictures"]):
            draw_picture(axes[0, i], np.array(picture))
        axes[0, 0].set_ylabel("picture")
        row = 1
    lower = row + len(networks) + (1 if strokes else 0)
    for k, result in enumerate(networks.values()):
        labels, mean = np.array(result["labels"]), np.array(result["mean"])
        parts = len(result["templates"])
        order = most_used(labels, mean, parts)
        colours = part_colours(order, parts + 1)
        for i in range(8):
            draw_picture(axes[row + k, i], by_part(labels[i], mean[i], colours))
        axes[row + k, 0].set_ylabel(f"PCAE, {chr(97 + k)}")
        for i in range(8):
            ax = axes[lower + k, i]
            if i >= SHOWN:
                ax.axis("off")
                continue
            draw_picture(ax, np.array(result["templates"])[order[i]], colours[order[i]])
        axes[lower + k, 0].set_ylabel(f"part set {chr(97 + k)}")
    if strokes:
        _stroke_row(axes[row + len(networks)], strokes)
    for i, ax in enumerate(axes[0]):
        ax.set_title(f"{45 * i}°")
    figure.subplots_adjust(wspace=0.06, hspace=0.08)
    caption = (
        "Figure 2: a test four turned by multiples of 45 degrees, PCAE's reconstruction coloured "
        f"by part, a row a part set, and the {SHOWN} parts of each set with most ink, framed in "
        "their colour (grey: other parts). The row “strokes” has the parts of the strokes "
        "(circles: ends, triangles: corners, squares: junctions) and the names that the learned "
        "four gives to the pixels around them."
    )
    return save(figure, out, "rotation-parts", caption)


def _stroke_row(axes: Any, strokes: dict[str, Any]) -> None:
    count = len(strokes["template"][0]) + 1
    colours = part_colours(np.arange(count - 1), count)
    markers = {"end": "o", "corner": "^", "junction": "s"}
    for ax, labels, picture, (position, kinds) in zip(
        axes, strokes["labels"], strokes["pictures"], strokes["parts"], strict=True
    ):
        draw_picture(ax, by_part(np.array(labels), np.array(picture), colours))
        middle = (len(picture) - 1) / 2
        for (x, y), kind in zip(position, kinds, strict=True):
            ax.plot(x + middle, y + middle, markers[kind], color="k", ms=4, mfc="w")
    axes[0].set_ylabel("strokes")


def _plot_curves(
    curves: dict[str, Any], results: dict[str, Any], angles: Array, out: Path
) -> Picture:
    """Agreement over angles, and recognition beside it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4))
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    for k, (title, result) in enumerate(curves.items()):
        values = _values(result, "agreement")
        shade = colour(2 if title == "parts of strokes" else k if k < 2 else k + 1)
        _band(left, angles, values, shade, title)
        left.plot(angles, _values(result, "ceiling").mean(0), ":", color=shade, lw=1.2)
    left.plot([], [], ":", color="k", lw=1.2, label="ceilings: labels turned, and back")
    if "strokes" in results:
        canvas = _values(results["strokes"], "canvas").mean(0)
        left.plot(angles, canvas, "--", color=CLUTTER, label="sectors of the canvas")
    left.axhline(0, color="0.85", lw=0.8, zorder=0)
    left.set(ylabel="agreement (kappa)", title="do the parts turn with the digit?")
    left.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
    if "recognition" in results:
        recognition = results["recognition"]
        shares = _right(recognition)
        _band(right, np.array(recognition["angles"]), shares.T, colour(2), "parts of strokes")
        right.axhline(0.5, color=CLUTTER, ls="--", label="chance")
        right.set(ylim=(0.4, 1.02), ylabel="balanced accuracy", title="is there a four?")
        right.legend(fontsize=8, loc="lower right", frameon=False)
    for ax in (left, right):
        ax.set(xlabel="turned by (degrees)", xticks=np.arange(0, 361, 45), xlim=(0, 345))
        ax.spines[["top", "right"]].set_visible(False)
    caption = (
        "Left: agreement of the parts in a turned test digit with those in the upright one, means "
        "over test digits with two standard errors. Right: how often test pictures, half of the "
        "weight on fours and half on other digits, are told apart by the parts of their strokes."
    )
    return save(figure, out, "rotation-curves", caption)


def _band(ax: Any, angles: Array, values: Array, shade: str, title: str) -> None:
    """The mean over digits, and two standard errors around it."""
    mean = values.mean(0)
    error = 2 * values.std(0, ddof=1) / np.sqrt(len(values))
    ax.plot(angles, mean, "-o", color=shade, ms=3, label=title)
    ax.fill_between(angles, mean - error, mean + error, color=shade, alpha=0.2, lw=0)
