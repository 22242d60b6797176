"""Templates of digits, learned from the parts of examples in any turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from partwise.digits.strokes import Strokes
from partwise.learning import Learned, learn

__all__ = ["Written", "arm_length", "ways_to_write"]


class Written(NamedTuple):
    """One way to write a digit, and the share of the examples that it stands for."""

    digit: int
    share: float
    template: Learned


def ways_to_write(
    digit: int, examples: Sequence[Strokes], most: int = 5, least: float = 0.05, parts: int = 7
) -> list[Written]:
    """Up to ``most`` templates: examples with the same kinds of parts are one way to write it.

    The commonest ways, each with at least the share ``least`` of the examples and two to ``parts``
    parts, the commonest first; shares are those among them. Other examples differ from these by
    parts that are missing, or clutter.
    """
    groups: dict[tuple[str, ...], list[Strokes]] = {}
    for one in examples:
        groups.setdefault(tuple(sorted(one.kind)), []).append(one)
    usable: Iterable[list[Strokes]] = (
        group
        for kinds, group in groups.items()
        if 2 <= len(kinds) <= parts and len(group) >= max(least * len(examples), 3)
    )
    chosen = sorted(usable, key=len, reverse=True)[:most]
    total = sum(map(len, chosen))
    return [
        Written(
            digit,
            len(group) / total,
            learn([s.scene() for s in group], parts=len(group[0].kind), name=str(digit)),
        )
        for group in chosen
    ]


def arm_length(examples: Iterable[Strokes]) -> float:
    """The longest arm there is: clutter has one in a disc of this radius."""
    return float(max(np.hypot(*s.arm.T).max(initial=0.0) for s in examples))
