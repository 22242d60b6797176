"""Learned templates beside the true ones, and the course of learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise._checks import InputError
from partwise.plotting.style import CLUTTER, axes, colour, marker, outline

if TYPE_CHECKING:
    from partwise.learning import Learned
    from partwise.templates import Template

__all__ = ["plot_learned", "plot_learning"]


def plot_learned(
    learned: Template, truth: Template, ax: Any = None, index: int = 0, examples: Any = None
) -> Any:
    """A learned template, aligned with the true one (turn, scale, order of parts), over it.

    ``examples``, arrays of positions, are drawn behind it, each aligned like the template.
    """
    from partwise.learning import procrustes

    ax = axes(ax, (3.5, 3.5))
    aligned = procrustes(learned, truth)
    for n, example in enumerate(() if examples is None else examples):
        p = procrustes(example, truth).parts
        label = "examples" if n == 0 else None
        ax.plot(*p.T, ".", color=CLUTTER, markersize=3, alpha=0.5, label=label, zorder=1)
    true = outline(truth.positions)
    ax.plot(*true.T, "-", color="black", linewidth=1, label="true", zorder=2)
    ax.plot(*truth.positions.T, "o", color="black", markersize=9, fillstyle="none", zorder=2)
    ours = outline(aligned.parts)
    style = {"color": colour(index), "marker": marker(index), "markersize": 5}
    ax.plot(*ours.T, "--", linewidth=1.2, label="learned", zorder=3, **style)
    ax.set(aspect="equal", title=f"{truth.name}, SMSE {aligned.smse:.1e}")
    ax.margins(0.15)
    return ax


def plot_learning(learned: Learned, ax: Any = None, index: int = 0) -> Any:
    """The bound after every iteration, and where beta rose."""
    if not learned.elbo:
        raise InputError("plot: this template was not learned; there is no course to draw.")
    ax = axes(ax, (5.0, 3.0))
    steps = np.arange(1, len(learned.elbo) + 1)
    ax.plot(steps, learned.elbo, color=colour(index), marker=".", linewidth=1.2)
    for step in steps[1:][np.diff(learned.betas) > 0]:
        ax.axvline(step - 0.5, color=CLUTTER, linewidth=0.6, linestyle=":")
    ax.set(xlabel="iteration", ylabel="ELBO, all examples", title=f"learning {learned.name}")
    ax.locator_params(axis="x", integer=True)
    return ax
