"""The command line: parse, call, print. The work is in the modules that the commands import.

Heavy imports happen inside the commands, so that ``partwise --help`` is quick.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

if TYPE_CHECKING:
    from partwise.model import Model
    from partwise.posterior import Explanation
    from partwise.solvers import Solver

__all__ = ["app", "main"]

P = ParamSpec("P")
R = TypeVar("R")

SHOWN = 20
"""``infer`` on a terminal shows the answers to this many scenes."""

app = typer.Typer(
    name="partwise",
    help="Recognise objects from their parts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

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


def main() -> None:
    """The entry point ``partwise``."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(_interrupted())


def _plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """One line instead of a traceback: what is wrong with the input, or that it was interrupted."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        from partwise._checks import InputError

        try:
            return command(*args, **kwargs)
        except InputError as error:
            typer.echo(f"partwise: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            raise typer.Exit(_interrupted()) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            typer.echo(f"partwise: {where}{error.strerror or error}; check the path.", err=True)
            raise typer.Exit(2) from None

    return run


def _interrupted() -> int:
    typer.echo("partwise: interrupted.", err=True)
    return 130


# Commands -------------------------------------------------------------------------------------


@app.command()
@_plain_errors
def infer(
    scenes: ScenesArgument,
    model: Annotated[Path, typer.Option(help="The model, as JSON.")],
    solver: SolverOption = "auto",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write the answers to this Parquet file.")
    ] = None,
    seed: SeedOption = 0,
    restarts: RestartsOption = None,
    beta: BetaOption = None,
) -> None:
    """Find the objects of a model in scenes.

    With -o, a file of any length: what is finished is on disk, and an interrupted run resumes.
    Without, the answers are printed: a table on a terminal, JSON lines into a pipe.
    """
    from partwise.files import count_scenes
    from partwise.model import Model
    from partwise.streaming import infer_file

    _cache_compilations()
    loaded, used = Model.load(model), _solver(solver, restarts, beta)
    if out is None:
        _print_answers(scenes, loaded, used, seed)
        return
    with _progress("scenes", count_scenes(scenes)) as progress:
        if out.exists() and scenes.exists() and out.samefile(scenes):
            from partwise._checks import InputError

            raise InputError(f"{out}: -o would overwrite the scenes; name another file.")
        count = infer_file(scenes, loaded, used, seed, out=out, progress=progress)
    typer.echo(f"{count} scenes explained in {out}", err=True)


@app.command()
@_plain_errors
def evaluate(
    scenes: LabelledArgument,
    solver: SolverOption = "auto",
    model: Annotated[
        Path | None,
        typer.Option(help="The model, as JSON.  [default: two squares, one triangle]"),
    ] = None,
    restarts: RestartsOption = None,
    beta: BetaOption = None,
    seed: SeedOption = 0,
    limit: Annotated[int | None, typer.Option(help="Only the first so many scenes.", min=1)] = None,
    as_json: JsonOption = False,
) -> None:
    """Score and time a solver on labelled scenes, under both protocols."""
    from partwise import evaluation
    from partwise.files import read_labelled
    from partwise.model import Model

    _cache_compilations()
    used = _solver(solver, restarts, beta)
    loaded = None if model is None else Model.load(model)
    labelled = read_labelled(scenes)
    if limit is not None:
        labelled = labelled.select(slice(limit))
    with _progress("scenes", int(labelled.present.any(1).sum())) as progress:
        result = evaluation.evaluate(labelled, used, loaded, seed, name=solver, progress=progress)
    if as_json:
        typer.echo(json.dumps(result))
    else:
        _print_evaluation(result)


@app.command()
@_plain_errors
def simulate(
    out: Annotated[Path, typer.Option("-o", "--out", help="Write the scenes to this .npz file.")],
    scenes: Annotated[int, typer.Option(help="How many; none is empty.", min=1)] = 512,
    noise: Annotated[float, typer.Option(help="Standard deviation of the template noise.")] = 0.0,
    seed: SeedOption = 0,
    model: Annotated[
        Path | None,
        typer.Option(help="The model, as JSON.  [default: two squares, one triangle]"),
    ] = None,
) -> None:
    """Draw labelled scenes as the paper does (sec. 7.1.1)."""
    from partwise.files import write_labelled
    from partwise.model import Model
    from partwise.sampling import simulate_constellations

    loaded = None if model is None else Model.load(model)
    labelled = simulate_constellations(scenes, noise, seed, loaded)
    write_labelled(out, labelled)
    typer.echo(f"{len(labelled)} scenes in {out}", err=True)


@app.command()
@_plain_errors
def reproduce(
    only: Annotated[
        str | None, typer.Option(help="Only these experiments, separated by commas.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the results.")] = Path("report"),
    scenes: Annotated[
        int | None, typer.Option(help="Scenes a cell.  [default: as in the paper]", min=1)
    ] = None,
) -> None:
    """Rerun the paper's experiments: our figures beside its own.

    What is finished is kept in the folder and not redone.
    """
    from partwise.paper import EXPERIMENTS, select

    _cache_compilations()
    for name in select(only):
        with _progress(name, None) as progress:
            report = EXPERIMENTS[name](out, scenes=scenes, progress=progress)
        _console().print(*report, sep="\n")


# Helpers --------------------------------------------------------------------------------------


def _solver(name: str, restarts: int | None, beta: float | None) -> Solver:
    """The solver with those options that were given."""
    from partwise.solvers import named

    options = {"restarts": restarts, "beta": beta}
    options = {key: value for key, value in options.items() if value is not None}
    if options and name not in ("ds", "gmm"):
        given = " and ".join(f"--{key}" for key in options)
        typer.echo(f"partwise: {given} without effect: only ds and gmm have restarts.", err=True)
        options = {}
    return named(name, **options)


def _cache_compilations() -> None:
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


@contextmanager
def _progress(what: str, total: int | None) -> Iterator[Callable[..., None] | None]:
    """A progress bar on stderr where that is a terminal; call it with how much more is done.

    Work that only knows its length later says so: ``progress(0, total=...)``.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)

        def advance(done: int, **changes: Any) -> None:
            bar.update(task, advance=done, **changes)

        yield advance


def _console():
    from rich.console import Console

    return Console()


def _print_answers(path: Path, model: Model, solver: Solver, seed: int) -> None:
    """A table of the first scenes on a terminal; every scene as a JSON line into a pipe."""
    from partwise.files import count_scenes, iterate_scenes
    from partwise.inference import solve

    if sys.stdout.isatty():
        total = count_scenes(path)
        for batch in iterate_scenes(path, SHOWN):
            _print_table(list(solve(model, batch, solver, seed)))
            break
        if total > SHOWN:
            typer.echo(f"... and {total - SHOWN} more scenes; write them all with -o OUT.parquet")
        return
    index = 0
    for batch in iterate_scenes(path):
        for explanation in solve(model, batch, solver, seed):
            typer.echo(json.dumps({"scene": index, **explanation.to_json()}))
            index += 1


def _print_table(explanations: list[Explanation]) -> None:
    import numpy as np
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("scene", "object", "points", "pose", "probability"):
        table.add_column(heading, justify="right" if heading == "probability" else "left")
    for i, explanation in enumerate(explanations):
        for found in explanation.objects:
            pose = ", ".join(
                f"{key} {np.round(value, 3).tolist()}" for key, value in found.parameters.items()
            )
            points = " ".join("-" if p < 0 else str(p) for p in found.parts)
            table.add_row(str(i), found.name, points, pose, f"{found.probability:.3f}")
        rest = np.flatnonzero(explanation.labels < 0)
        if len(rest) or not explanation.objects:
            what = "clutter" if len(rest) else "nothing found"
            table.add_row(str(i), what, " ".join(map(str, rest.tolist())), "", "")
    _console().print(table)


def _print_evaluation(result: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(
        title=f"{result['solver']} on {result['scenes']} scenes", box=None, pad_edge=False
    )
    for heading in ("protocol", *result["published"]):
        table.add_column(heading.replace("_", " "))
    for protocol in ("published", "exchangeable"):
        error = result["standard_error"][protocol]
        figures = (f"{value:.3f} ± {error[key]:.3f}" for key, value in result[protocol].items())
        table.add_row(protocol, *figures)
    console = _console()
    console.print(table)
    console.print(
        f"{result['scenes_per_second']:,.0f} scenes/s warm; "
        f"{result['compile_seconds']:.1f} s to compile",
        highlight=False,
    )


if __name__ == "__main__":
    main()
