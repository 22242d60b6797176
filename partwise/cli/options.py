"""Options that commands share, and what they stand for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from partwise.solvers import Solver

ScenesArgument = Annotated[
    Path, typer.Argument(metavar="SCENES", help="Scenes: .npz, .parquet or .csv.")
]
LabelledArgument = Annotated[
    Path, typer.Argument(metavar="SCENES.npz", help="Labelled scenes: points, present, object_id.")
]
SolverOption = Annotated[str, typer.Option(help="auto, ds, gmm, ransac, hashing, exact or ccae.")]
RestartsOption = Annotated[
    int | None, typer.Option(help="Random starts of ds and gmm.  [default: 5]", min=1)
]
BetaOption = Annotated[
    float | None, typer.Option(help="First beta of ds and gmm.  [default: 0.05]")
]
WeightsOption = Annotated[
    Path | None,
    typer.Option(help="Weights for ccae, of `partwise train ccae`.  [default: shipped ones]"),
]
SeedOption = Annotated[int, typer.Option(help="The seed of everything random.", min=0)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
ModelOption = Annotated[
    Path | None,
    typer.Option("--model", help="The model, as JSON.  [default: two squares, one triangle]"),
]


OWN_OPTIONS = {"restarts": ("ds", "gmm"), "beta": ("ds", "gmm"), "weights": ("ccae",)}
"""The solvers that an option is for."""


def solver(name: str, **given: Any) -> Solver:
    """The solver with those options that were given, and that it has."""
    from partwise.solvers import named

    given = {option: value for option, value in given.items() if value is not None}
    idle = [f"--{option}" for option in given if name not in OWN_OPTIONS[option]]
    if idle:
        typer.echo(f"partwise: {' and '.join(idle)} without effect on solver {name}.", err=True)
    used = {option: value for option, value in given.items() if name in OWN_OPTIONS[option]}
    return named(name, **used)


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
