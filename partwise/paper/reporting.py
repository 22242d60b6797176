"""What an experiment says, and the files it writes."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from partwise.files import replacing
from partwise.paper.keeping import make_folder
from partwise.paper.tables import Grid, Row
from partwise.plotting.saving import Picture

__all__ = ["Report", "write_report"]


@dataclass(frozen=True)
class Report:
    """Texts are Markdown, of paragraphs and lists.

    ``says`` is what the paper has to say, ``text`` what was run here and how to read it.
    ``summary`` has every figure of the paper beside ours; it stands on the page's first table,
    which all experiments share. ``rows`` are the same figures for machines, ``data`` what else
    there is for them.
    """

    says: str
    text: str
    grids: Sequence[Grid]
    summary: Sequence[Grid] = ()
    pictures: Sequence[Picture] = ()
    rows: Sequence[Row] = ()
    data: dict[str, Any] = field(default_factory=dict)


def write_report(
    out: Path, name: str, title: str, report: Report, seed: int, seconds: float
) -> list[Any]:
    """Write NAME.json, NAME.csv and NAME.md into ``out``; return the summary's tables for Rich.

    What the page of the whole report (``partwise.report``) shows of the experiment is in NAME.json,
    as ``page``; ``seconds`` is how long it took to compute.
    """
    page = {
        "title": title,
        "says": report.says,
        "text": report.text,
        "summary": [g.to_json() for g in report.summary],
        "tables": [g.to_json() for g in report.grids],
        "pictures": [p.to_json() for p in report.pictures],
        "seed": seed,
        "seconds": seconds,
    }
    whole = {"seed": seed, **report.data, "rows": list(report.rows), "page": page}
    make_folder(out)
    with replacing(out / f"{name}.json") as part:
        part.write_text(json.dumps(whole, indent=1, allow_nan=False) + "\n")
    if report.rows:
        with replacing(out / f"{name}.csv") as part, part.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(report.rows[0]))
            writer.writeheader()
            writer.writerows(report.rows)
    with replacing(out / f"{name}.md") as part:
        part.write_text("\n\n".join(_markdown(title, report)) + "\n")
    return [g.rich() for g in report.summary or report.grids]


def _markdown(title: str, report: Report) -> list[str]:
    pictures = [f"![{p.caption}]({p.file})\n\n{p.caption}" for p in report.pictures]
    tables = [grid.markdown() for grid in report.grids]
    return [f"# {title}", report.says.strip(), report.text.strip(), *pictures, *tables]
