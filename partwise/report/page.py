"""From the files of the experiments to ``index.html``."""

from __future__ import annotations

import base64
import json
import os
import platform
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from partwise._checks import InputError
from partwise.files import replacing
from partwise.paper import EXPERIMENTS, Entry
from partwise.paper.keeping import make_folder
from partwise.paper.tables import VERDICTS

__all__ = ["write_page"]

FILES = (".csv", ".json", ".md")
"""What an experiment writes beside its pictures."""

MARKS = {
    "better": "▲",
    "within noise": "≈",
    "short": "▼",
    "not comparable": "○",
    "holds": "✓",
    "does not hold": "✗",
}


def write_page(out: Path) -> Path:
    """Write ``out/index.html`` from what is in the folder; returns its path.

    Pictures and style are inside; the page needs no network and no script.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    sections = [_section(out, name, entry) for name, entry in EXPERIMENTS.items()]
    summary = [grid for section in sections for grid in section["summary"]]
    # Of the newest, so that a page of the same results is the same page.
    seconds = sum(section.get("seconds", 0.0) for section in sections)
    markdown = MarkdownIt("commonmark", {"html": False})
    environment = Environment(
        loader=PackageLoader("partwise.report", "."),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["spanned"] = _spanned
    environment.filters["markdown"] = lambda text: Markup(markdown.render(text))
    page = environment.get_template("page.html.j2").render(
        sections=sections,
        summary=summary,
        counts=_counts(summary),
        marks=MARKS,
        minutes=seconds / 60,
        machine=_machine(),
        style=Markup((Path(__file__).parent / "style.css").read_text()),
    )
    make_folder(out)
    path = out / "index.html"
    with replacing(path) as part:
        part.write_text(page, encoding="utf-8")
    return path


def _section(out: Path, name: str, entry: Entry) -> dict[str, Any]:
    """One experiment: what it wrote, or why it is not there."""
    bare: dict[str, Any] = {"name": name, "title": entry.title, "summary": [], "missing": ""}
    try:
        page = json.loads((out / f"{name}.json").read_text())["page"]
    except FileNotFoundError:
        left = f"Not run yet: partwise reproduce --only {name}."
        return {**bare, "missing": entry.lacking or left}
    except (OSError, ValueError, KeyError) as error:
        path = out / f"{name}.json"
        raise InputError(f"{path}: this file is damaged ({error}); remove it.") from None
    pictures = [{**p, "source": _embedded(out / p["file"])} for p in page.pop("pictures")]
    files = [name + suffix for suffix in FILES if (out / (name + suffix)).is_file()]
    return {**bare, **page, "pictures": pictures, "files": files}


def _embedded(path: Path) -> str:
    """A picture as a data URL."""
    kind = {".gif": "gif", ".png": "png", ".svg": "svg+xml"}[path.suffix]
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _spanned(rows: Sequence[list[Any]]) -> list[tuple[list[Any], int]]:
    """Rows with how many of them their first cell stands for: 0 where one above does already."""
    out: list[tuple[list[Any], int]] = []
    for _, group in groupby(rows, key=lambda row: row[0]):
        same = list(group)
        out += [(row, 0 if i else len(same)) for i, row in enumerate(same)]
    return out


def _counts(grids: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
    """How often each verdict was given, in the order of ``VERDICTS``."""
    cells = [cell for grid in grids for row in grid["rows"] for cell in row]
    found = Counter(cell["verdict"] for cell in cells if not isinstance(cell, str))
    return [(verdict, found[verdict]) for verdict in VERDICTS if found[verdict]]


def _machine() -> str:
    """Where this was run, in a few words."""
    from importlib.metadata import version

    versions = ", ".join(f"{name} {version(name)}" for name in ("partwise", "jax", "numpy"))
    machine, python = platform.machine(), platform.python_version()
    return f"{os.cpu_count()} cores, {machine}, Python {python}, {versions}"
