"""Options that commands share, and what they stand for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from partwise.solvers import Solver

ScenesArgument = Annotated[
    Path, typer.Argument(metavar="SCENES", help="Scenes: .npz, .parquet or .csv.")
]
LabelledArgument = Annotated[
    Path, typer.Argument(metavar="SCENES.npz", help="Labelled scenes: points, present, object_id.")
]
SolverOption = Annotated[str, typer.Option(help="auto, ds, gmm, ransac or exact.")]
RestartsOption = Annotated[
    int | None, typer.Option(help="Random starts of ds and gmm.  [default: 5]", min=1)
]
BetaOption = Annotated[
    float | None, typer.Option(help="First beta of ds and gmm.  [default: 0.05]")
]
SeedOption = Annotated[int, typer.Option(help="The seed of everything random.", min=0)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
ModelOption = Annotated[
    Path | None,
    typer.Option("--model", help="The model, as JSON.  [default: two squares, one triangle]"),
]


def solver(name: str, restarts: int | None, beta: float | None) -> Solver:
    """The solver with those options that were given."""
    from partwise.solvers import named

    options = {"restarts": restarts, "beta": beta}
    options = {key: value for key, value in options.items() if value is not None}
    if options and name not in ("ds", "gmm"):
        given = " and ".join(f"--{key}" for key in options)
        typer.echo(f"partwise: {given} without effect: only ds and gmm have restarts.", err=True)
        options = {}
    return named(name, **options)


def cache_compilations() -> None:
    """Keep what JAX compiles between runs, in the user's cache folder; without one, do not."""
    import jax

    try:
        root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        folder = Path(root) / "partwise" / "jax"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return
    if os.access(folder, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
