"""Charts and answers as CSV files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from jaxtyping import Float

from partwise._checks import InputError
from partwise.files._common import finite_rows, readable, reason, replacing
from partwise.sky.catalogue import catalogue
from partwise.sky.found import Found

__all__ = ["read_chart", "write_chart", "write_stars"]

Array = np.ndarray

WANTED = "give columns x and y of numbers, with commas between them, one row a point"


def read_chart(path: str | Path) -> Float[Array, "m 2"]:
    """The columns x and y of a CSV file; other columns are not looked at."""
    path = readable(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (csv.Error, UnicodeError, OSError) as error:
        raise InputError(f"{path}: not a readable CSV file ({reason(error)}); {WANTED}.") from None
    names = [name.strip().lower() for name in rows[0]] if rows else []
    if names.count("x") != 1 or names.count("y") != 1:
        raise InputError(f"{path}: has not one column x and one column y; {WANTED}.")
    columns = [names.index("x"), names.index("y")]
    points = np.empty((len(rows) - 1, 2))
    for number, row in enumerate(rows[1:]):
        try:
            points[number] = [float(row[k]) for k in columns]
        except (ValueError, IndexError):
            raise InputError(
                f"{path}: x or y is no number in data row {number + 1}; fill it in or remove it."
            ) from None
    if len(points):
        finite_rows(path, points, "data row")
    return points


def write_chart(path: str | Path, points: Float[Array, "m 2"]) -> None:
    """The points alone, as :func:`read_chart` takes them."""
    _write(path, [["x", "y"], *points.tolist()])


def write_stars(path: str | Path, found: Found) -> None:
    """Every point, in its order: which star it is, in which constellations, how likely."""
    sky = catalogue()
    rows: list[list] = [["x", "y", "hip", "star", "constellations", "probability"]]
    for point, k, probability in zip(
        found.points.tolist(), found.stars.tolist(), found.star_probability.tolist(), strict=True
    ):
        if k < 0:
            rows.append([*point, "", "", "", ""])
            continue
        within = " ".join(f.abbreviation for f in sky.figures if k in f.stars)
        rows.append([*point, sky.stars[k].hip, sky.stars[k].label, within, round(probability, 6)])
    _write(path, rows)


def _write(path: str | Path, rows: list[list]) -> None:
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
