"""Figures beside the paper's, tables of them, and the files an experiment writes."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.files import replacing
from partwise.paper.keeping import make_folder
from partwise.plotting.saving import Picture

__all__ = ["Grid", "Measured", "Row", "write_report"]

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
        return f"## {self.title}\n\n{body}\n"

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


def write_report(
    out: Path,
    name: str,
    report: dict[str, Any],
    rows: Sequence[Row],
    introduction: str,
    grids: Sequence[Grid],
    pictures: Sequence[Picture] = (),
) -> list[Any]:
    """Write NAME.json, NAME.csv and NAME.md into ``out``; return the tables for Rich.

    ``introduction`` is Markdown, a heading first. What the page of the whole report shows of the
    experiment (``partwise.report``) is in NAME.json, as ``page``.
    """
    page = {
        "introduction": introduction,
        "tables": [g.to_json() for g in grids],
        "pictures": [p.to_json() for p in pictures],
    }
    make_folder(out)
    with replacing(out / f"{name}.json") as part:
        part.write_text(json.dumps({**report, "page": page}, indent=1, allow_nan=False) + "\n")
    if rows:
        with replacing(out / f"{name}.csv") as part, part.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    shown = "".join(f"![{p.caption}]({p.file})\n\n{p.caption}\n\n" for p in pictures)
    with replacing(out / f"{name}.md") as part:
        part.write_text(introduction + shown + "\n".join(g.markdown() for g in grids))
    return [g.rich() for g in grids]
