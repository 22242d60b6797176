"""Words on a picture that cover neither each other nor what is drawn: greedy, best place first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

__all__ = ["Label", "place_labels"]

Array = np.ndarray

OVERLAP = 40.0
"""What covering another label costs; a point that is covered costs one."""


@dataclass(frozen=True)
class Label:
    """A text, and the places where its middle may be, the dearest first."""

    text: str
    places: Float[Array, "p 2"]
    style: dict[str, Any] = field(default_factory=dict)
    optional: bool = False
    """Left out where there is no free place."""


def place_labels(ax: Any, labels: list[Label], drawn: Float[Array, "n 2"]) -> None:
    """Put every label where it covers fewest of the points ``drawn`` and no other label.

    Call it when the limits of ``ax`` and the size of its figure are final.
    """
    ax.figure.canvas.draw()
    points = ax.transData.transform(drawn)
    frame = ax.get_window_extent()
    taken = np.zeros((0, 4))
    for label in labels:
        style = {"ha": "center", "va": "center", **label.style}
        text = ax.text(*label.places[0], label.text, **style)
        box = text.get_window_extent()
        half = np.array([box.width, box.height]) / 2 + 2.0
        middles = ax.transData.transform(label.places)
        low, high = middles - half, middles + half
        covered = (points > low[:, None]) & (points < high[:, None])
        cost = covered.all(-1).sum(1) + 0.02 * np.arange(len(middles))
        apart = (high[:, None] < taken[:, :2]) | (low[:, None] > taken[:, 2:])
        cost = cost + OVERLAP * (~apart.any(-1)).sum(1)
        outside = (low < [frame.x0, frame.y0]) | (high > [frame.x1, frame.y1])
        cost = cost + 4 * OVERLAP * outside.any(1)
        best = int(cost.argmin())
        if label.optional and cost[best] >= 3:
            text.remove()
            continue
        text.set_position(tuple(label.places[best]))
        taken = np.concatenate([taken, [[*low[best], *high[best]]]])
