"""The tables and the figure of :mod:`partwise.paper.learning`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.learning import Learned
from partwise.learning.bound import simple_bound
from partwise.metrics import METRICS
from partwise.paper.published import EXAMPLES, LEARNING
from partwise.paper.reporting import Report
from partwise.paper.tables import Claim, Grid, Measured, Row, mean_and_error, unique
from partwise.plotting.saving import Picture, save
from partwise.templates import shapes

if TYPE_CHECKING:
    from partwise.paper.learning import Cell

__all__ = ["report"]

TRUTH = {"square": shapes.square(), "triangle": shapes.triangle()}
COLOURS = {"square": 0, "triangle": 2}
"""Those that the objects have in scenes of two squares and a triangle."""

PERFECT = 1e-6
"""An SMSE of less than this is rounding."""

GIVEN = {"known": "numbers of parts", "unknown": "nothing"}

SAYS = """From 64 scenes that show one object alone, variational EM (Appendix B) learns its
template; the mean squared error after Procrustes alignment (SMSE) is given for one run each
(sec. 7.1.3).
"""

TEXT = """Objects are in any pose and their parts in any order. The SMSE is its mean over fresh
sets of scenes ± standard error.

- `paper`: the paper's algorithm (Appendix B), noise of fixed precision in the scene.
- `free`: poses integrated out, noise that follows the scale and is estimated: maximum likelihood.
- `default`: the same, and the hypotheses that the template is symmetric weighed by BIC;
  *symmetric* is their weight.
- `identified`: the same, but every part has a type of its own, so that its order is known.

*Simple bound*: (2N - 4) sigma^2 / (S N), which is for identified parts and little noise. *Bound*:
Cramer-Rao, from the likelihood of shapes whose parts come in any order (or, in the last case, are
identified). For a square in any order it is infinite: breaking its symmetry has no first-order
effect on such examples. An estimate that may decide for symmetry is biased, and not bound by it.
"""


def report(results: dict[Cell, Any], out: Path) -> Report:
    """What the page and the files show of the cells."""
    rows = list(_smse_rows(results))
    mixed = {cell: result for cell, result in results.items() if cell.kind == "mixed"}
    drawn = {cell: result for cell, result in results.items() if cell.kind == "figure"}
    return Report(
        SAYS,
        TEXT,
        [_smse_grid(rows), *_table1_grids(results), *_mixed_grids(mixed)],
        summary=[_summary(rows), *_claims(rows)],
        pictures=[_picture(drawn, out)] if drawn else [],
        rows=rows,
        data={
            "mixed": [{**asdict(c), **r} for c, r in mixed.items()],
            "figure": [{**asdict(c), **r} for c, r in drawn.items()],
        },
    )


def _picture(drawn: dict[Cell, Any], out: Path) -> Picture:
    """Figure 4: learned against true templates; and the course of learning."""
    from matplotlib.figure import Figure

    from partwise.plotting import plot_learned, plot_learning

    whats, sigmas = unique(c.what for c in drawn), unique(c.sigma for c in drawn)
    figure = Figure(figsize=(3.4 * len(sigmas) + 3.6, 3.2 * len(whats)), layout="constrained")
    axes = figure.subplots(len(whats), len(sigmas) + 1, squeeze=False)
    for cell, result in drawn.items():
        row, column = whats.index(cell.what), sigmas.index(cell.sigma)
        truth = TRUTH[cell.what]
        learned = Learned(
            np.array(result["parts"]),
            cell.what,
            elbo=tuple(result["elbo"]),
            betas=tuple(result["betas"]),
        )
        examples = list(np.array(result["examples"]))
        index = COLOURS[cell.what]
        ax = plot_learned(learned, truth, axes[row, column], index, examples)
        ax.set_title(f"σ = {cell.sigma:g}: {ax.get_title()}", fontsize=10)
        if row == column == 0:
            ax.legend(fontsize=8, loc="center")
        if column == len(sigmas) - 1:
            course = plot_learning(learned, axes[row, -1], index)
            course.set_title(f"{cell.what}, σ = {cell.sigma:g}", fontsize=10)
    caption = (
        f"Figure 4: templates learned from {EXAMPLES} examples by the default method (dashed) over "
        "the true ones, the examples behind them, each turned, scaled and its parts matched to "
        "fit; right: the bound of EM."
    )
    return save(figure, out, "learning", caption)


def _smse_rows(results: dict[Cell, Any]) -> Iterator[Row]:
    """One row a template, noise level and method."""
    for cell, result in results.items():
        if cell.kind != "smse":
            continue
        simple = simple_bound(TRUTH[cell.what], cell.sigma, EXAMPLES)
        bounds = results.get(replace(cell, kind="bound", method="order"), {})
        key = "identified" if cell.method == "identified" else "any order"
        bound = bounds.get(key)
        mean, error = mean_and_error(result["smse"])
        paper = LEARNING[cell.what].get(cell.sigma) if cell.method != "identified" else None
        yield {
            "object": cell.what,
            "sigma": cell.sigma,
            "method": cell.method,
            "runs": len(result["smse"]),
            "smse": mean,
            "standard_error": error,
            "median": float(np.median(result["smse"])),
            "paper": paper,
            "below_paper": None
            if paper is None
            else float(np.mean(np.array(result["smse"]) <= paper)),
            "simple_bound": simple,
            "times_simple_bound": mean / simple if simple else None,
            "bound": bound,
            "times_bound": mean / bound if bound else None,
            "sigma_learned": mean_and_error(result["sigma"])[0],
            "iterations": mean_and_error(result["iterations"])[0],
            "symmetric": result["symmetric"],
            "seconds": result["seconds"],
        }


def _summary(rows: list[Row]) -> Grid:
    """The default method beside the paper's figures."""
    here = [r for r in rows if r["method"] == "default" and r["paper"] is not None]
    sigmas = unique(r["sigma"] for r in here)
    lines = []
    for what in unique(r["object"] for r in here):
        cells = {r["sigma"]: _smse(r) for r in here if r["object"] == what}
        lines.append(["SMSE", what, *(cells.get(s, "") for s in sigmas)])
    title = f"Learned templates, {EXAMPLES} examples, mean of {rows[0]['runs']} runs"
    return Grid(title, ["metric", "object", *(f"σ = {s:g}" for s in sigmas)], lines)


def _smse(row: Row) -> Measured:
    return Measured(row["smse"], row["standard_error"], row["paper"], "paper", False, ".1e")


def _claims(rows: list[Row]) -> Iterator[Grid]:
    """What sec. 7.1.3 says in words."""
    smse = {(r["object"], r["sigma"]): r["smse"] for r in rows if r["method"] == "default"}
    lines = []
    for what in unique(what for what, _ in smse):
        errors = {sigma: e for (name, sigma), e in sorted(smse.items()) if name == what}
        if 0.0 in errors:
            text = f"without noise the learned {what} is perfect"
            lines.append([text, Claim(f"SMSE {errors[0.0]:.0e}", errors[0.0] < PERFECT)])
        if len(errors) > 1:
            rising = all(a < b for a, b in pairwise(errors.values()))
            found = ", ".join(f"{e:.0e} at {sigma:g}" for sigma, e in errors.items())
            lines.append([f"the {what}'s error grows with σ", Claim(f"SMSE {found}", rising)])
    if lines:
        yield Grid("Section 7.1.3, in words", ["the paper says", "measured"], lines)


def _smse_grid(rows: list[Row]) -> Grid:
    lines = []
    for r in rows:
        noisy = r["sigma"] > 0
        lines.append(
            [
                f"{r['object']}, {r['sigma']:g}",
                r["method"],
                _smse(r),
                "" if r["below_paper"] is None else f"{r['below_paper']:.0%}",
                f"{r['times_simple_bound']:.2f} x" if noisy else "",
                ("infinite" if r["bound"] is None else f"{r['times_bound']:.2f} x {r['bound']:.1e}")
                if noisy
                else "",
                f"{r['symmetric']:.2f}" if r["method"] == "default" else "",
                f"{r['seconds']:.3f}",
            ]
        )
    headings = [
        *("object, σ", "method", "SMSE", "runs below the paper's"),
        *("simple bound", "bound", "symmetric", "seconds"),
    ]
    return Grid(f"templates from {EXAMPLES} examples, {rows[0]['runs']} runs", headings, lines)


def _table1_grids(results: dict[Cell, Any]) -> Iterator[Grid]:
    """Table 1 with ``auto``: true and learned templates, and what learning costs."""
    cells = [c for c in results if c.kind == "table1"]
    for what in dict.fromkeys(c.what for c in cells):
        here = [c for c in cells if c.what == what]
        for protocol in ("published", "exchangeable"):
            lines = []
            for cell in here:
                scores = results[cell][protocol]
                true = results[replace(cell, method="true")][protocol]
                away = np.subtract(scores["scene_accuracy"], true["scene_accuracy"])
                gained = f"{away.mean():+.3f} ± {mean_and_error(away)[1]:.3f}"
                means = [Measured(*mean_and_error(scores[m])) for m in METRICS]
                last = "" if cell.method == "true" else gained
                lines.append([f"{cell.sigma:g}", cell.method, *means, last])
            headings = ["sigma", "templates", *(m.replace("_", " ") for m in METRICS), "gained"]
            title = f"Table 1 with learned templates, solver auto, {what} scenes, {protocol}"
            yield Grid(title, headings, lines)


def _mixed_grids(mixed: dict[Cell, Any]) -> Iterator[Grid]:
    """What was found in mixed scenes."""
    lines = []
    for cell, r in mixed.items():
        found = " + ".join(f"{c} x {n}" for n, c in zip(r["parts"], r["instances"], strict=True))
        gained = "not scored"
        ours: Measured | str = ""
        if r["learned"] is not None:
            away = np.subtract(r["learned"], r["true"])
            gained = f"{away.mean():+.4f} ± {mean_and_error(away)[1]:.4f}"
            ours = Measured(*mean_and_error(r["learned"]))
        smse = ["" if r[w] is None else f"{r[w]:.1e}" for w in ("square", "triangle")]
        true = Measured(*mean_and_error(r["true"]))
        seconds = f"{r['seconds']:.0f}"
        lines.append(
            [f"{cell.sigma:g}", GIVEN[cell.method], found, *smse, true, ours, gained, seconds]
        )
    if not lines:
        return
    headings = [
        *("sigma", "given", "found", "square", "triangle"),
        *("accuracy, true", "learned", "gained", "s"),
    ]
    title = "templates from mixed scenes: copies x parts, SMSE, and scene accuracy on new scenes"
    yield Grid(title, headings, lines)
