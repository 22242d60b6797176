"""Figures beside the paper's, and tables of them: as Markdown, for Rich, and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["VERDICTS", "Claim", "Grid", "Measured", "Row", "mean_and_error", "unique"]

Row = dict[str, Any]

VERDICTS = ("better", "within noise", "short", "not comparable", "holds", "does not hold")
"""What a figure, or a claim, may be found to be."""

NOISE = 2.0
"""Two figures this many standard errors apart, or fewer, differ by no more than noise."""


@dataclass(frozen=True)
class Measured:
    """A figure of ours, its standard error, and the figure that it is compared with.

    ``more`` says whether more of it is better; ``spec`` is how its numbers are written.
    ``reference_error`` is the standard error of the other figure, where it comes from other scenes
    than ours; a figure that is not ``comparable`` is shown and not judged.
    """

    value: float
    error: float | None = None
    reference: float | None = None
    name: str = "paper"
    more: bool = True
    spec: str = ".3f"
    reference_error: float | None = None
    comparable: bool = True

    def __str__(self) -> str:
        text = format(self.value, self.spec)
        if self.error is not None:
            text += f" ± {self.error:{self.spec}}"
        if self.reference is None:
            return text
        reference = format(self.reference, self.spec)
        return f"{text} ({self.name} {reference}, {self.value - self.reference:+{self.spec}})"

    @property
    def verdict(self) -> str | None:
        """How ours compares: one of ``VERDICTS``; None with nothing to compare."""
        if self.reference is None:
            return None
        if not self.comparable:
            return "not comparable"
        difference = self.value - self.reference
        if abs(difference) <= NOISE * np.hypot(self.error or 0.0, self.reference_error or 0.0):
            return "within noise"
        return "better" if (difference > 0) == self.more else "short"

    def to_json(self) -> dict[str, Any]:
        """The parts that a page sets in type, as strings."""
        out = {"ours": format(self.value, self.spec), "verdict": self.verdict}
        if self.error is not None:
            out["error"] = format(self.error, self.spec)
        if self.reference is not None:
            out["name"] = self.name
            out["reference"] = format(self.reference, self.spec)
            out["difference"] = f"{self.value - self.reference:+{self.spec}}"
        return out


@dataclass(frozen=True)
class Claim:
    """What was found of something that the paper says in words."""

    ours: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.ours} ({self.verdict})"

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``."""
        return "holds" if self.holds else "does not hold"

    def to_json(self) -> dict[str, Any]:
        """The parts that a page sets in type."""
        return {"ours": self.ours, "verdict": self.verdict, "claim": True}


@dataclass(frozen=True)
class Grid:
    """A table of texts and figures; ``note`` is a sentence about it."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str | Measured | Claim]]
    note: str = ""

    def markdown(self) -> str:
        """The table as a section of a Markdown page."""
        texts = [[str(cell) for cell in row] for row in self.rows]
        lines = [list(self.headings), ["---"] * len(self.headings), *texts]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        note = f"{self.note}\n\n" if self.note else ""
        return f"## {self.title}\n\n{note}{body}"

    def rich(self) -> Any:
        """The table for a terminal."""
        from rich.table import Table

        table = Table(*self.headings, title=self.title, title_justify="left", caption=self.note)
        for row in self.rows:
            table.add_row(*(str(cell) for cell in row))
        return table

    def to_json(self) -> dict[str, Any]:
        """The table for a page."""
        rows = [[c if isinstance(c, str) else c.to_json() for c in row] for row in self.rows]
        headings = list(self.headings)
        return {"title": self.title, "note": self.note, "headings": headings, "rows": rows}


def mean_and_error(values: Any) -> tuple[float, float]:
    """The mean of independent values, and its standard error."""
    values = np.asarray(values, float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def unique(values: Iterable[Any]) -> list[Any]:
    """Each value once, in order of appearance."""
    return list(dict.fromkeys(values))
