"""``partwise train``: the networks of the paper's comparisons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.app import app, plain_errors
from partwise.cli.output import progress_bar

__all__ = ["ccae", "pcae"]

train = typer.Typer(
    help="Train a network. What is done is on disk; the same call goes on where it stopped.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(train, name="train")

OutOption = Annotated[Path, typer.Option("-o", "--out", help="The folder of this training run.")]


@train.command()
@plain_errors
def ccae(
    out: OutOption,
    noise: Annotated[float, typer.Option(help="Noise of the scenes it is trained on.", min=0)],
    steps: Annotated[int, typer.Option(help="Batches of 128 scenes.", min=1)] = 6_000,
    seed: options.SeedOption = 0,
) -> None:
    """The constellation capsule autoencoder of section 4.1, on freshly drawn constellations.

    The folder gets weights.safetensors (give it to `partwise evaluate --solver ccae --weights`),
    log.csv, and the checkpoint from which an interrupted run goes on.
    """
    from partwise.neural.ccae_training import export, task

    _train(f"ccae, noise {noise:g}", task(noise), export, steps, seed, out)


@train.command()
@plain_errors
def pcae(
    out: OutOption,
    steps: Annotated[int, typer.Option(help="Batches of 32 pictures.", min=1)] = 12_000,
    seed: options.SeedOption = 0,
) -> None:
    """The part capsule autoencoder of appendix D, on MNIST's fours, turned and moved afresh.

    The folder gets weights.safetensors, log.csv, and the checkpoint from which an interrupted run
    goes on.
    """
    from partwise.neural.pcae_training import export, task

    _train("pcae", task(), export, steps, seed, out)


def _train(
    title: str, task: Any, export: Callable[..., None], steps: int, seed: int, out: Path
) -> None:
    """Train, under a progress bar, and write the weights."""
    from partwise.neural.training import train as run

    options.cache_compilations()
    with progress_bar(title, steps) as progress:
        trained = run(task, steps, seed, out, progress)
    weights = out / "weights.safetensors"
    done = {"steps": steps, "seed": seed, "seconds": round(trained.seconds)}
    export(trained.model, {**task.options, **done}, weights)
    typer.echo(f"{steps} steps in {trained.seconds / 60:.1f} min; weights in {weights}", err=True)
