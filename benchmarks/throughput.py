"""How fast every solver is, beside the plain NumPy transcription, measured in one run.

``python -m benchmarks.throughput [--scenes 4096] [--out FILE]``. Times are of a warm process, the
best of some repetitions; the first call, which compiles, is timed apart. Scenes are constellations
(sec. 7.1.1), sigma 0.1.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import reference
from partwise import LabelledScenes, Model, SceneBatch, constellations, shapes
from partwise.inference import solve
from partwise.problem import problems
from partwise.sampling import simulate_constellations
from partwise.solvers import NAMES, named

__all__ = ["main"]

NOISE = 0.1


def timed(work: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """Seconds of the first call beyond a warm one (compilation), and of the fastest warm call."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return max(times[0] - min(times[1:]), 0.0), min(times[1:])


YARDSTICKS = {
    "ds, 2 sweeps an update": reference.Settings(prior="ds"),
    "ds, Algorithm 1 as printed": reference.Settings(prior="ds", sweeps=None, balance=1e-3),
    "gmm": reference.Settings(prior="gmm"),
}
"""Plain NumPy: with two Sinkhorn sweeps an update, as in the published code, and with as many as it
takes for rows that sum to one within 1e-3."""


def numpy_reference(scenes: SceneBatch, settings: reference.Settings) -> dict[str, float]:
    """Algorithm 2 in plain NumPy with 5 restarts, scene by scene, in the solvers' frame."""
    square, triangle = (t.normalised().parts for t in (shapes.square(), shapes.triangle()))
    normal = [x for p in problems(constellations(), scenes) for x in p.points]
    start, updates = time.perf_counter(), 0
    for i, points in enumerate(normal):
        run = reference.solve([square, triangle, square], points.astype(float), i, settings)
        updates += run.updates
    seconds = time.perf_counter() - start
    return {
        "scenes": len(scenes),
        "scenes_per_second": len(scenes) / seconds,
        "milliseconds_per_update": 1e3 * seconds / updates,
        "updates_per_scene": updates / len(scenes),
    }


def throughput(model: Model, labelled: LabelledScenes, name: str, **options: Any) -> dict:
    """Scenes a second of one solver on a batch, compilation apart."""
    solver, scenes = named(name, **options), labelled.scenes
    jax.clear_caches()  # Solvers share compiled code: each pays for its own here.
    compiling, seconds = timed(lambda: solve(model, scenes, solver, 0))
    return {
        "scenes": len(scenes),
        "scenes_per_second": len(scenes) / seconds,
        "compile_seconds": compiling,
    }


def latency(labelled: LabelledScenes, name: str) -> dict[str, float]:
    """Milliseconds for one scene of 11 points, warm: a fresh scene each time."""
    model, solver = constellations(), named(name)
    full = np.flatnonzero(labelled.present.all(1))[:21]
    batches = [labelled.select([i]).scenes for i in full]
    solve(model, batches[0], solver, 0)
    times = []
    for batch in batches[1:]:
        start = time.perf_counter()
        solve(model, batch, solver, 0)
        times.append(1e3 * (time.perf_counter() - start))
    return {"median_milliseconds": float(np.median(times)), "worst_milliseconds": max(times)}


def growth(scenes: int, seed: int) -> dict[str, list[dict]]:
    """How ``ds`` grows with the scenes, the parts and the restarts."""
    model = constellations()
    labelled = simulate_constellations(scenes, NOISE, seed)
    by_scenes, by_parts, by_restarts = [], [], []
    count = 64
    while count <= scenes:
        batch = labelled.select(slice(0, count))
        by_scenes.append(throughput(model, batch, "ds") | {"value": count})
        count *= 4
    for squares in range(2, 7):
        larger = Model(model.templates, instances=[squares, 1])
        drawn = simulate_constellations(min(scenes, 256), NOISE, seed, larger)
        # The largest scenes only, so that all have one size.
        most = drawn.present.sum(1).max()
        batch = drawn.select(drawn.present.sum(1) == most)
        row = throughput(larger, batch, "ds")
        by_parts.append(row | {"value": drawn.points.shape[1], "points": int(most)})
    for restarts in (1, 2, 5, 10, 20):
        batch = labelled.select(slice(0, min(scenes, 512)))
        by_restarts.append(throughput(model, batch, "ds", restarts=restarts) | {"value": restarts})
    return {"scenes": by_scenes, "parts": by_parts, "restarts": by_restarts}


def _speed_table(result: dict) -> Table:
    table = Table(title=f"Scenes a second (constellations, sigma {NOISE})")
    for column in ("solver", "scenes/s", "times NumPy DS", "compile [s]"):
        table.add_column(column, justify="left" if column == "solver" else "right")
    base = result["numpy"]["ds, 2 sweeps an update"]["scenes_per_second"]
    for name, row in result["numpy"].items():
        rate = row["scenes_per_second"]
        table.add_row(f"NumPy, {name}", f"{rate:.2f}", f"{rate / base:.2f}", "")
    for name, row in result["solvers"].items():
        rate = row["scenes_per_second"]
        compiling = f"{row['compile_seconds']:.1f}"
        table.add_row(name, f"{rate:,.0f}", f"{rate / base:,.0f}", compiling)
    return table


def _growth_table(title: str, rows: list[dict]) -> Table:
    table = Table(title=f"ds against the number of {title}")
    for column in (title, "scenes/s", "relative to the first"):
        table.add_column(column, justify="right")
    for row in rows:
        rate = row["scenes_per_second"]
        share = f"{rate / rows[0]['scenes_per_second']:.2f}"
        table.add_row(str(row["value"]), f"{rate:,.0f}", share)
    return table


def measure(scenes: int, seed: int, numpy_scenes: int) -> dict:
    """Everything, in one run."""
    model = constellations()
    labelled = simulate_constellations(scenes, NOISE, seed)
    few = labelled.select(slice(0, numpy_scenes)).scenes
    result: dict[str, Any] = {
        "cores": os.cpu_count(),
        "numpy": {name: numpy_reference(few, settings) for name, settings in YARDSTICKS.items()},
        "solvers": {name: throughput(model, labelled, name) for name in NAMES},
    }
    result["latency_auto"] = latency(labelled, "auto")
    result["growth_ds"] = growth(scenes, seed)
    return result


def main(
    scenes: Annotated[int, typer.Option(help="Scenes in the large batch.", min=64)] = 4096,
    out: Annotated[Path | None, typer.Option(help="Write the figures here as JSON.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the scenes.")] = 0,
    numpy_scenes: Annotated[int, typer.Option(help="Scenes for plain NumPy.", min=1)] = 36,
) -> None:
    """Measure every solver beside the NumPy transcription of Algorithm 2."""
    result = measure(scenes, seed, numpy_scenes)
    console = Console()
    console.print(_speed_table(result))
    row = result["latency_auto"]
    console.print(
        f"auto, one scene of 11 points: {row['median_milliseconds']:.1f} ms "
        f"(worst of 20: {row['worst_milliseconds']:.1f} ms)"
    )
    for title, rows in result["growth_ds"].items():
        console.print(_growth_table(title, rows))
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
