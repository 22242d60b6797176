"""Tables of figures, for a page and for a terminal, and the files that an experiment writes."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.files import replacing
from partwise.paper.keeping import make_folder

__all__ = ["Grid", "Row", "write_report"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """A table of strings, as Markdown and for Rich."""

    title: str
    headings: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table as a section of a Markdown page."""
        lines = [self.headings, ["---"] * len(self.headings), *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"## {self.title}\n\n{body}\n"

    def rich(self) -> Any:
        """The table for a terminal."""
        from rich.table import Table

        table = Table(*self.headings, title=self.title, title_justify="left")
        for row in self.rows:
            table.add_row(*row)
        return table


def write_report(
    out: Path,
    name: str,
    report: dict[str, Any],
    rows: Sequence[Row],
    introduction: str,
    grids: Sequence[Grid],
) -> list[Any]:
    """Write NAME.json, NAME.csv and NAME.md into ``out``; return the tables for Rich."""
    make_folder(out)
    with replacing(out / f"{name}.json") as part:
        part.write_text(json.dumps(report, indent=1, allow_nan=False) + "\n")
    with replacing(out / f"{name}.csv") as part, part.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with replacing(out / f"{name}.md") as part:
        part.write_text(introduction + "\n".join(g.markdown() for g in grids))
    return [g.rich() for g in grids]
