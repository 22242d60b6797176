"""The data files of ``partwise.sky``, from the npm package d3-celestial (BSD).

npm pack d3-celestial@0.7.35 && tar xzf d3-celestial-0.7.35.tgz
python tools/sky_catalogue.py package/data partwise/sky/data benchmarks/data
"""

import csv
import json
import sys
from itertools import pairwise
from pathlib import Path

FAINTEST = 5.0
"""For the benchmark: all stars that the naked eye sees well, in figures or not."""


def main(source: Path, out: Path, benchmarks: Path) -> None:
    """Keep the stars that a figure runs through, the figures, and apart from them bright stars."""
    stars = {}  # position -> row: the lines name positions, and those of stars are the same numbers
    names = json.loads((source / "starnames.json").read_text())
    for feature in json.loads((source / "stars.8.json").read_text())["features"]:
        hip, magnitude = feature["id"], feature["properties"]["mag"]
        ra, dec = feature["geometry"]["coordinates"]
        name = names.get(str(hip), {})
        label = f"{name['desig']} {name.get('c', '')}".strip() if name.get("desig") else ""
        row = (hip, round(ra % 360, 4), dec, magnitude, label, name.get("name", ""))
        # Components of a double star at one place: the brighter one.
        if (ra, dec) not in stars or magnitude < stars[ra, dec][3]:
            stars[ra, dec] = row
    bright = sorted(row[:4] for row in stars.values() if row[3] <= FAINTEST)
    _write(benchmarks / "bright_stars.csv", "hip,ra,dec,magnitude", bright)
    titles = json.loads((source / "constellations.json").read_text())["features"]
    # Serpens is one constellation in two places.
    called = {f["id"]: _plain(f["properties"]["name"]) for f in titles[::-1]}
    lines: dict[str, list[tuple[int, int]]] = {short: [] for short in sorted(called)}
    used = set()
    for feature in json.loads((source / "constellations.lines.json").read_text())["features"]:
        for line in feature["geometry"]["coordinates"]:
            rows = [stars[tuple(position[:2])] for position in line]
            used |= set(rows)
            lines[feature["id"]] += [(a[0], b[0]) for a, b in pairwise(rows)]
    _write(out / "stars.csv", "hip,ra,dec,magnitude,designation,name", sorted(used))
    _write(out / "constellations.csv", "abbreviation,name", sorted(called.items()))
    _write(
        out / "lines.csv",
        "constellation,from,to",
        [(short, *pair) for short, pairs in lines.items() for pair in dict.fromkeys(pairs)],
    )


def _plain(name: str) -> str:
    """The name of the IAU: plain spaces, no part of Serpens."""
    name = " ".join(name.split()).removesuffix(" Caput").removesuffix(" Cauda")
    return "Corona Australis" if name == "Corona Austrina" else name


def _write(path: Path, header: str, rows: list) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header.split(","))
        writer.writerows(rows)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
