"""Constellations on simulated charts of the sky: precision, recall, time, calibration.

``python -m benchmarks.sky [--charts 300] [--only ROWS] [--nulls 300] [--out FILE]``

Every chart has a random pointing, roll and unit; ``partwise.sky.simulate`` says how it is made. A
constellation is right if it lies wholly in the field and is said to (with a probability above one
half); "named" is the recall of those that are at least said to be there in part, since the frame
of the chart is not given. Stars are scored apart: the share of points that were given the right
star, or rightly none. Standard errors are of ratios over charts, since the constellations of one
chart are found or missed together. Nulls are uniform points in a rectangle, 5 to 120 of them; a
confident wrong answer is anything that is found there, or a chart put more than three degrees off.

Rows of the real sky show every star down to a magnitude, whether a figure runs through it or not
(``data/bright_stars.csv``, made by ``tools/sky_catalogue.py``), with nothing hidden and nothing
made up: what is spurious and what is missing is what the eye sees and atlases draw.

The search was made on seeds below 3,000; charts of this table start at 100,000.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from jaxtyping import Float

from partwise import sky
from partwise.plane import from_complex, to_complex
from partwise.sky.catalogue import direction

__all__ = ["Case", "main", "ratio", "trial"]

Array = np.ndarray

BRIGHT = Path(__file__).parent / "data" / "bright_stars.csv"

FIRST_SEED = 100_000
FIRST_NULL = 500_000
FAR = 3.0
"""Degrees by which the middle of a chart may be off to be right."""

FIELD_BINS = (40, 50, 60, 70, 80)


class Case(NamedTuple):
    """A row: noise as a fraction of the width, shares, and the share of the charts."""

    noise: float
    hidden: float = 0.2
    spurious: float = 0.2
    mirrored: bool = False
    share: float = 1.0
    faintest: float | None = None
    """Of the real sky: all stars down to this magnitude."""

    @property
    def name(self) -> str:
        """For the table."""
        if self.faintest is not None:
            return f"real sky to magnitude {self.faintest}, noise {self.noise:.1%}"
        more = ", mirrored" if self.mirrored else ""
        if (self.hidden, self.spurious) != (0.2, 0.2):
            more = f", hidden {self.hidden:.0%}, spurious {self.spurious:.0%}"
        return f"noise {self.noise:.1%}{more}"


CASES = (
    Case(0.002),
    Case(0.001, share=1 / 3),
    Case(0.005, share=1 / 3),
    Case(0.01, share=1 / 3),
    Case(0.015, share=1 / 3),
    Case(0.02, share=1 / 3),
    Case(0.002, mirrored=True, share=1 / 3),
    Case(0.002, 0.4, 0.4, share=1 / 3),
    Case(0.002, 0.5, 0.5, share=1 / 3),
    *(Case(0.002, share=1 / 3, faintest=limit) for limit in (3.5, 4.0, 4.5, 5.0)),
)

LETTERS = "abcdefghijklmnop"[: len(CASES)]


class Trial(NamedTuple):
    """What became of one chart."""

    field: float
    true: int
    """Constellations that lie wholly in the field."""
    said: int
    both: int
    named: int
    """Of those, how many are on the chart by the answer, if only in part."""
    stars: float
    found: bool
    wrong: bool
    seconds: float
    claims: list[tuple[float, bool]]
    """Of every constellation that is on the chart at all: P(whole), and whether it is."""


def draw(case: Case, seed: int) -> sky.Chart:
    """The chart of one trial."""
    chart = sky.simulate(
        seed,
        noise=case.noise,
        hidden=case.hidden,
        spurious=case.spurious,
        mirrored=case.mirrored,
    )
    if case.faintest is None:
        return chart
    hip, ra, dec, magnitude = np.loadtxt(BRIGHT, delimiter=",", skiprows=1).T
    z, ahead = chart.camera.project(direction(ra, dec))
    away = from_complex(z - chart.camera.centre)
    shown = ahead & (np.abs(away) <= chart.width / 2).all(1) & (magnitude <= case.faintest)
    index = {star.hip: k for k, star in enumerate(sky.catalogue().stars)}
    noise = np.random.default_rng(seed).normal(size=(int(shown.sum()), 2))
    return replace(
        chart,
        points=from_complex(z[shown]) + case.noise * chart.width * noise,
        star=np.array([index.get(int(h), -1) for h in hip[shown]]),
    )


def trial(case: Case, seed: int) -> Trial:
    """Simulate, find, score."""
    chart = draw(case, seed)
    start = time.perf_counter()
    found = sky.find(chart.points)
    seconds = time.perf_counter() - start
    true = set(chart.whole())
    said = {c.figure.abbreviation for c in found.constellations if c.is_whole}
    claims = [(c.whole, c.figure.abbreviation in true) for c in found.constellations]
    stars = float((found.stars == chart.star).mean())
    return Trial(
        chart.field,
        len(true),
        len(said),
        len(true & said),
        len(true & {c.figure.abbreviation for c in found.constellations}),
        stars,
        found.found,
        _off(chart, found) > FAR,
        seconds,
        claims,
    )


def _off(chart: sky.Chart, found: sky.Found) -> float:
    """How many degrees of sky the middle of the chart was put off; nothing for no answer."""
    if found.camera is None:
        return 0.0
    middle = to_complex(chart.points.mean(0)[None])
    pair = [camera.directions(middle)[0] for camera in (chart.camera, found.camera)]
    return float(np.degrees(np.arccos(np.clip(pair[0] @ pair[1], -1, 1))))


def ratio(hits: Float[Array, " n"], counts: Float[Array, " n"]) -> tuple[float, float]:
    """sum(hits) / sum(counts), and its standard error over charts."""
    total = float(counts.sum())
    if total == 0:
        return float("nan"), float("nan")
    value = float(hits.sum()) / total
    return value, float(np.sqrt(((hits - value * counts) ** 2).sum()) / total)


def calibration(claims: list[tuple[float, bool]], bins: int = 10) -> dict:
    """The expected calibration error, and the claims between 10 and 90 % on their own."""
    if not claims:
        return {"claims": 0}
    said, true = (np.array(v, float) for v in zip(*claims, strict=True))
    which = np.minimum((said * bins).astype(int), bins - 1)
    gaps = [abs((said - true)[which == k].sum()) for k in range(bins)]
    unsure = (said > 0.1) & (said < 0.9)
    return {
        "claims": len(said),
        "expected_calibration_error": float(sum(gaps) / len(said)),
        "unsure": int(unsure.sum()),
        "unsure_said": float(said[unsure].mean()) if unsure.any() else None,
        "unsure_true": float(true[unsure].mean()) if unsure.any() else None,
    }


def summary(name: str, trials: list[Trial]) -> dict:
    """One row of the table."""
    both, said, true = (
        np.array([getattr(t, key) for t in trials], float) for key in ("both", "said", "true")
    )
    (precision, precision_error), (recall, recall_error) = ratio(both, said), ratio(both, true)
    return {
        "charts": len(trials),
        "name": name,
        "constellations": int(true.sum()),
        "precision": precision,
        "precision_standard_error": precision_error,
        "recall": recall,
        "recall_standard_error": recall_error,
        "named": ratio(np.array([t.named for t in trials], float), true)[0],
        "stars_right": float(np.mean([t.stars for t in trials])),
        "answered": sum(t.found for t in trials),
        "wrong": sum(t.wrong for t in trials),
        "median_seconds": float(np.median([t.seconds for t in trials])),
    }


def line(row: dict) -> str:
    """The row as text."""
    return (
        f"{row['name']:38s} {row['charts']:5d} {row['constellations']:6d}"
        f"  {row['precision']:.3f} ± {row['precision_standard_error']:.3f}"
        f"  {row['recall']:.3f} ± {row['recall_standard_error']:.3f}"
        f"  {row['named']:.3f}  {row['stars_right']:.3f} {row['answered']:5d} {row['wrong']:3d}"
        f" {row['median_seconds']:7.2f} s"
    )


def nulls(count: int) -> dict:
    """Points of no sky at all."""
    answers, seconds = 0, []
    for k in range(count):
        rng = np.random.default_rng(FIRST_NULL + k)
        shape = [1.0, rng.uniform(0.5, 1.0)]
        points = rng.uniform(size=(int(rng.integers(5, 121)), 2)) * shape
        start = time.perf_counter()
        answers += sky.find(points).found
        seconds.append(time.perf_counter() - start)
    return {"charts": count, "wrong": answers, "median_seconds": float(np.median(seconds))}


def main(
    charts: Annotated[int, typer.Option(help="Charts of the first row.", min=1)] = 300,
    only: Annotated[str, typer.Option(help="Rows, as letters from a on.")] = LETTERS,
    nulls_: Annotated[int, typer.Option("--nulls", help="Charts of random points.", min=0)] = 300,
    out: Annotated[Path | None, typer.Option(help="Write the figures here as JSON.")] = None,
) -> None:
    """Precision and recall of whole constellations, by noise and by field."""
    start = time.perf_counter()
    sky.find(sky.simulate(0).points)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"first chart of a process {time.perf_counter() - start:.2f} s, imports not counted")
    print(
        f"{'charts':38s} {'count':>5s} {'whole':>6s}  precision      recall         named  stars"
        " found wrong  median"
    )
    results: dict = {"rows": [], "fields": []}
    for case in (CASES[LETTERS.index(letter)] for letter in only):
        trials = [trial(case, FIRST_SEED + k) for k in range(max(round(charts * case.share), 1))]
        results["rows"].append(summary(case.name, trials))
        print(line(results["rows"][-1]), flush=True)
        if case is CASES[0]:
            for low, high in pairwise(FIELD_BINS):
                some = [t for t in trials if low <= t.field < high]
                if some:
                    results["fields"].append(summary(f"  field {low} to {high} degrees", some))
                    print(line(results["fields"][-1]), flush=True)
            results["calibration"] = calibration([c for t in trials for c in t.claims])
    found = results.get("calibration")
    if found and found["claims"]:
        print(
            f"calibration of P(whole), first row: error {found['expected_calibration_error']:.4f} "
            f"over {found['claims']}; of {found['unsure']} between .1 and .9, said "
            f"{found['unsure_said'] or 0:.2f}, true {found['unsure_true'] or 0:.2f}"
        )
    if nulls_:
        results["nulls"] = nulls(nulls_)
        print(
            f"random points: {results['nulls']['wrong']} of {nulls_} were given an answer; "
            f"median {results['nulls']['median_seconds']:.2f} s"
        )
    if out is not None:
        out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
