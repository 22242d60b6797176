"""``align`` on lists with many unmatched points; astroalign on the same lists, in the same run.

``python -m benchmarks.align [--trials 100] [--rivals] [--only ROWS] [--out FILE]``

Two windows, unit squares, are put down independently, each with its own centre (within a quarter
of the side of a common point) and orientation. The common points lie where the windows overlap,
the unmatched ones anywhere in their own window: no outline gives anything away. The target is then
turned by any angle, scaled by 0.5 to 2 and moved; its points get Gaussian noise (a fraction of the
window's side), and both lists are shuffled. Neither noise nor overlap is given to anybody.

A success is the right map (root mean square error of the common points below three standard
deviations of the noise) at a probability above one half. A confident wrong answer is any other
answer above one half. Slow rows have fewer trials; the table says how many. Settings were chosen
on seeds from 900 to 999; those of this table start at 10,000.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from jaxtyping import Float

import partwise as pw
from partwise.plane import from_complex

__all__ = ["Case", "Lists", "draw", "main"]

Array = np.ndarray

FIRST_SEED = 10_000
SHIFT = 0.25
"""Of a window's centre, in either direction, in sides of the window."""

NOISE_LIMIT = 3.0
"""A map is right if it errs by less than this many standard deviations of the noise."""


@dataclass(frozen=True)
class Case:
    """A row of the table; ``share`` of the trials are made."""

    noise: float
    unmatched: int
    share: float = 1.0
    common: int = 100
    related: bool = True

    @property
    def name(self) -> str:
        """For the table."""
        if not self.related:
            return f"unrelated, {self.common + self.unmatched} points each"
        return f"noise {100 * self.noise:.1f} %, U = {self.unmatched}"


CASES = {
    "a": Case(0.005, 100),
    "b": Case(0.005, 300),
    "c": Case(0.005, 500, 0.3),
    "d": Case(0.005, 1000, 0.06),
    "e": Case(0.001, 100),
    "f": Case(0.001, 300),
    "g": Case(0.001, 1000, 0.2),
    "h": Case(0.005, 100, 0.5, related=False),
    "i": Case(0.005, 300, 0.1, related=False),
    "j": Case(0.005, 0, 1.0, common=20, related=False),
}


LIMIT = 30
"""Seconds after which a rival's search is called a failure: with all points it takes minutes."""


class Lists(NamedTuple):
    """Two lists, and what is true of them; the truth is for scoring only."""

    source: Float[Array, "n 2"]
    target: Float[Array, "n 2"]
    common: Float[Array, "c 2"]
    image: Float[Array, "c 2"]
    """Where the true map puts the common points."""
    sigma: float


def draw(case: Case, seed: int) -> Lists:
    """The lists of one trial."""
    rng = np.random.default_rng(seed)
    windows = [
        (complex(*rng.uniform(-SHIFT, SHIFT, 2)), np.exp(2j * np.pi * rng.uniform()))
        for _ in range(2)
    ]
    if case.related:
        same = _fill(rng, case.common, windows)
        parts = [same, same]
    else:
        parts = [_fill(rng, case.common, [w]) for w in windows]
    lists = [
        np.concatenate([part, _fill(rng, case.unmatched, [w])])
        for part, w in zip(parts, windows, strict=True)
    ]
    scale = np.exp(rng.uniform(np.log(0.5), np.log(2.0)))
    a, b = scale * np.exp(2j * np.pi * rng.uniform()), complex(*rng.normal(0, 3, 2))
    target = from_complex(a * lists[1] + b)
    sigma = case.noise * scale
    target += sigma * rng.normal(size=target.shape)
    source = from_complex(lists[0])
    return Lists(
        rng.permutation(source),
        rng.permutation(target),
        from_complex(parts[0]),
        from_complex(a * parts[0] + b),
        float(sigma),
    )


def _fill(rng: np.random.Generator, count: int, windows: list[tuple[complex, complex]]) -> Array:
    """Uniform points of the plane that are in all of the windows."""
    out = np.zeros(0, complex)
    while len(out) < count:
        reach = 0.5 * np.sqrt(2) + SHIFT
        z = rng.uniform(-reach, reach, 8 * count) + 1j * rng.uniform(-reach, reach, 8 * count)
        own = [(z - centre) / turn for centre, turn in windows]
        inside = np.all([np.maximum(abs(w.real), abs(w.imag)) <= 0.5 for w in own], axis=0)
        out = np.concatenate([out, z[inside]])
    return out[:count]


def _give_up(*_: object) -> None:
    raise TimeoutError


class Trial(NamedTuple):
    """One answer."""

    right: bool
    answered: bool
    seconds: float


def ours(lists: Lists) -> tuple[Array | None, float]:
    """The matrix and its probability."""
    found = pw.align(lists.source, lists.target)
    return (found.transform if found.found else None), found.probability


def astroalign(points: int | None) -> Callable[[Lists], tuple[Array | None, float]]:
    """astroalign with so many control points, or all of them."""

    def run(lists: Lists) -> tuple[Array | None, float]:
        import astroalign as rival

        most = points or len(lists.source)
        # Its tolerance is of two pixels: a picture of 1,000 of them, as from a telescope.
        pixels = 1000.0
        span = np.ptp(lists.target, axis=0).max()
        own = pixels / np.ptp(lists.source, axis=0).max()
        source, target = lists.source * own, lists.target * pixels / span
        signal.signal(signal.SIGALRM, _give_up)
        signal.alarm(LIMIT)
        try:
            found, _ = rival.find_transform(source, target, max_control_points=most)
        except (rival.MaxIterError, ValueError, TypeError, IndexError, TimeoutError):
            return None, 0.0
        finally:
            signal.alarm(0)
        scale = np.diag([own, own, 1.0])
        return np.diag([span / pixels, span / pixels, 1.0]) @ found.params @ scale, 1.0

    return run


METHODS = {
    "align": ours,
    "astroalign, 50 points": astroalign(50),
    "astroalign, all points": astroalign(None),
}


RIVALS = {"astroalign, 50 points": 0.1, "astroalign, all points": 0.02}
"""The share of the trials that rivals make: they take long, and fail."""


def trial(case: Case, method: Callable, seed: int) -> Trial:
    """Run and score once."""
    lists = draw(case, seed)
    start = time.perf_counter()
    matrix, probability = method(lists)
    seconds = time.perf_counter() - start
    if matrix is None or probability <= 0.5:
        return Trial(False, False, seconds)
    error = lists.common @ matrix[:2, :2].T + matrix[:2, 2] - lists.image
    right = np.sqrt((error**2).sum(1).mean()) < NOISE_LIMIT * lists.sigma
    return Trial(bool(right and case.related), True, seconds)


def row(case: Case, name: str, trials: int) -> dict:
    """One row of the table."""
    done = [trial(case, METHODS[name], FIRST_SEED + k) for k in range(trials)]
    success = float(np.mean([t.right for t in done]))
    # Agresti and Coull: with none or all of the trials right, the error is still not zero.
    padded = (success * trials + 2) / (trials + 4)
    return {
        "case": asdict(case),
        "lists": case.name,
        "method": name,
        "trials": trials,
        "success": success if case.related else None,
        "standard_error": float(np.sqrt(padded * (1 - padded) / (trials + 4))),
        "wrong": sum(t.answered and not t.right for t in done),
        "median_seconds": float(np.median([t.seconds for t in done])),
    }


def line(result: dict) -> str:
    """The row as text."""
    success = " " * 16
    if result["success"] is not None:
        success = f"{100 * result['success']:6.1f} ± {100 * result['standard_error']:4.1f} %"
    return (
        f"{result['lists']:30s} {result['method']:24s} {result['trials']:5d} {success:16s}"
        f" {result['wrong']:6d} {result['median_seconds']:9.3f} s"
    )


def main(
    trials: Annotated[int, typer.Option(help="Trials of a quick row.", min=1)] = 200,
    rivals: Annotated[bool, typer.Option(help="astroalign on the same lists.")] = False,
    only: Annotated[str, typer.Option(help="Rows, as letters from a to j.")] = "abcdefghij",
    out: Annotated[Path | None, typer.Option(help="Write the figures here as JSON.")] = None,
) -> None:
    """Success, confident wrong answers and median time on lists with many unmatched points."""
    pw.align(*draw(Case(0.0, 10, common=20), 0)[:2])  # imports are no part of the time
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'lists':30s} {'method':24s} trials success            wrong  median time")
    results = []
    for key in only:
        case = CASES[key]
        for name in METHODS if rivals else ["align"]:
            share = case.share * RIVALS.get(name, 1.0)
            results.append(row(case, name, max(round(trials * share), 1)))
            print(line(results[-1]), flush=True)
    if out is not None:
        out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
