"""Figures beside the paper's, and tables of them: as Markdown, for Rich, and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Grid", "Measured", "Row", "mean_and_error", "unique"]

Row = dict[str, Any]

NOISE = 2.0
"""Two figures this many standard errors apart, or fewer, differ by no more than noise."""


@dataclass(frozen=True)
class Measured:
    """A figure of ours, its standard error, and the figure that it is compared with.

    ``more`` says whether more of it is better; ``spec`` is how its numbers are written.
    """

    value: float
    error: float | None = None
    reference: float | None = None
    name: str = "paper"
    more: bool = True
    spec: str = ".3f"

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
        """How ours compares: "better", "worse", "within noise"; None with nothing to compare."""
        if self.reference is None:
            return None
        difference = self.value - self.reference
        if abs(difference) <= NOISE * (self.error or 0.0):
            return "within noise"
        return "better" if (difference > 0) == self.more else "worse"

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
class Grid:
    """A table of texts and figures, as Markdown, for Rich, and for a page."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str | Measured]]

    def markdown(self) -> str:
        """The table as a section of a Markdown page."""
        texts = [[str(cell) for cell in row] for row in self.rows]
        lines = [list(self.headings), ["---"] * len(self.headings), *texts]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"## {self.title}\n\n{body}"

    def rich(self) -> Any:
        """The table for a terminal."""
        from rich.table import Table

        table = Table(*self.headings, title=self.title, title_justify="left")
        for row in self.rows:
            table.add_row(*(str(cell) for cell in row))
        return table

    def to_json(self) -> dict[str, Any]:
        """The table for a page."""
        rows = [[c.to_json() if isinstance(c, Measured) else c for c in row] for row in self.rows]
        return {"title": self.title, "headings": list(self.headings), "rows": rows}


def mean_and_error(values: Any) -> tuple[float, float]:
    """The mean of independent values, and its standard error."""
    values = np.asarray(values, float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def unique(values: Iterable[Any]) -> list[Any]:
    """Each value once, in order of appearance."""
    return list(dict.fromkeys(values))
