"""Training in legs: what is done is on disk, and a run that was stopped goes on from there.

Batch and noise of a step depend on the seed and the step's number alone. So a run that was stopped,
killed even, and went on ends with the same weights as one that was not.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from partwise._checks import InputError
from partwise.files import replacing
from partwise.neural.storing import load_leaves, save_leaves

__all__ = ["LEG", "Task", "Trained", "train"]

LEG = 200
"""Steps between checkpoints, and between rows of the log."""

FILES = ("checkpoint.safetensors", "log.csv", "weights.safetensors")
"""What the folder of a run holds beside its options; another's is not written over."""

Progress = Callable[..., None]


@dataclass(frozen=True, eq=False)
class Task:
    """What is trained, and how.

    ``options`` is everything that the result depends on beside seed and steps, ready for JSON.
    ``batch(rng)`` draws the arrays of one step; ``loss(model, *batch, key)`` returns the loss and
    its terms by name; ``optimiser(steps)`` may plan ahead.
    """

    options: dict[str, Any]
    initial: Callable[[jax.Array], Any]
    batch: Callable[[np.random.Generator], tuple[np.ndarray, ...]]
    loss: Callable[..., tuple[jax.Array, dict[str, jax.Array]]]
    optimiser: Callable[[int], optax.GradientTransformation]


class Trained(NamedTuple):
    """A trained network, and how long it took, all runs together."""

    model: Any
    seconds: float


def train(
    task: Task, steps: int, seed: int, out: Path, progress: Progress | None = None, leg: int = LEG
) -> Trained:
    """Train for ``steps`` steps in the folder ``out``, or for what is left of them.

    The folder holds ``training.json`` (the options), ``checkpoint.safetensors`` and ``log.csv``
    (loss and its terms, means over ``leg`` steps each; seconds since the start, all runs). After
    Ctrl-C, and after a kill, the same call goes on from the last checkpoint. ``progress`` is told
    the steps done, and by ``note=`` the loss and the speed.
    """
    if not 0 <= seed < 2**63:
        raise InputError(f"seed must be a whole number from 0 to 2^63 - 1; got {seed}.")
    _same_options(task, steps, seed, out)
    root = jax.random.key(seed)
    model = task.initial(jax.random.fold_in(root, 0))
    optimiser = task.optimiser(steps)
    state = (model, optimiser.init(eqx.filter(model, eqx.is_array)))
    kept = out / "checkpoint.safetensors"
    done, seconds = 0, 0.0
    if kept.exists():
        state, about = load_leaves(kept, state)
        try:
            done, seconds = int(about["step"]), float(about["seconds"])
        except (KeyError, ValueError):
            raise InputError(f"{kept}: no checkpoint of a run; remove it to begin anew.") from None
    noise = jax.random.fold_in(root, 1)

    @eqx.filter_jit(donate="all-except-first")
    def update(batch, state, key):
        model, inner = state
        (loss, terms), gradient = eqx.filter_value_and_grad(task.loss, has_aux=True)(
            model, *batch, key
        )
        change, inner = optimiser.update(gradient, inner, eqx.filter(model, eqx.is_array))
        return (eqx.apply_updates(model, change), inner), {"loss": loss, **terms}

    if progress is not None:
        progress(done, total=steps)
    while done < steps:
        start, sums = perf_counter(), None
        first, stop = done, min(done + leg, steps)
        for step in range(first, stop):
            batch = task.batch(np.random.default_rng([seed, step]))
            state, terms = update(batch, state, jax.random.fold_in(noise, step))
            sums = terms if sums is None else jax.tree.map(jnp.add, sums, terms)
            if progress is not None:
                progress(1)
        assert sums is not None
        means = {name: float(value) / (stop - first) for name, value in sums.items()}
        if not np.isfinite(means["loss"]):
            raise InputError(
                f"training: the loss is {means['loss']} after {stop} steps; choose another --seed."
            )
        done, seconds = stop, seconds + perf_counter() - start
        _log(out / "log.csv", {"step": done, "seconds": round(seconds, 1), **means})
        save_leaves(kept, state, {"step": str(done), "seconds": str(seconds)})
        if progress is not None:
            speed = (stop - first) / (perf_counter() - start)
            progress(0, note=f"loss {means['loss']:.3f}, {speed:.1f} steps/s")
    return Trained(state[0], seconds)


def _same_options(task: Task, steps: int, seed: int, out: Path) -> None:
    """Write the options, or compare them with those of the run that the folder holds."""
    options = {**task.options, "steps": steps, "seed": seed}
    path = out / "training.json"
    out.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        for name in FILES:
            if (out / name).exists():
                raise InputError(
                    f"{out / name}: not of a run that can go on (no {path.name} beside it); train "
                    "into another folder."
                )
        with replacing(path) as part:
            part.write_text(json.dumps(options, indent=1) + "\n")
        return
    try:
        kept = json.loads(path.read_text())
        if not isinstance(kept, dict):
            raise ValueError
    except ValueError:
        raise InputError(f"{path}: not the options of a run; train into another folder.") from None
    differ = sorted(k for k in {*kept, *options} if kept.get(k) != options.get(k))
    if differ:
        name = differ[0]
        raise InputError(
            f"{out}: this folder holds a run with {name} {kept.get(name)!r}, not "
            f"{options.get(name)!r}; train into another folder, or go on with the same options."
        )


def _log(path: Path, row: dict[str, Any]) -> None:
    """Append a row; rows of a leg that was killed before its checkpoint are replaced."""
    rows: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="") as file:
            rows = [r for r in csv.DictReader(file) if int(r["step"]) < row["step"]]
    with replacing(path) as part, part.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerows([*rows, row])
