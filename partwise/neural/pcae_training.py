"""How PCAE is trained: loss, pictures and schedule."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Int, PRNGKeyArray

from partwise._types import Array
from partwise.digits.mnist import load_digits
from partwise.digits.turning import on_canvas
from partwise.neural.pcae import CANVAS, DEVIATION, PARTS, Pcae, Seen, mixture, pixels
from partwise.neural.sparsity import prior_sparsity
from partwise.neural.storing import load_leaves, save_leaves
from partwise.neural.training import Task

__all__ = ["export", "load", "loss", "task"]

BATCH = 32

SHIFT = 6.0
"""Pixels by which pictures are moved, at most, along each axis."""

EVERY = 2
"""Of the pixels every second of every second row counts in a step, from a random one on."""

NOISE = 4.0
"""Width of the uniform noise on presence logits."""

DYNAMIC = 10.0
"""Weight of the dynamic offsets; those of the likelihoods and of sparsity are 1."""

LEARNING_RATE, WARM_UP = 1e-3, 200


def loss(
    model: Pcae,
    digit: Float[Array, "B 28 28"],
    angle: Float[Array, " B"],
    shift: Float[Array, "B 2"],
    key: PRNGKeyArray,
) -> tuple[Float[jax.Array, ""], dict[str, Float[jax.Array, ""]]]:
    """The loss of a batch, and its terms before they are weighed."""
    keys = jax.random.split(key, len(digit))
    terms: Any
    terms, there = jax.vmap(partial(_terms, model))(digit, angle, shift, keys)
    terms = jax.tree.map(jnp.mean, terms)
    within, between = prior_sparsity(there[:, None], 1.0, 1.0)
    total = terms["nll"] + terms["object"] + DYNAMIC * terms["dynamic"] + within + between
    return total, {**terms, "within": within, "between": between}


def _terms(
    model: Pcae,
    digit: Float[Array, "28 28"],
    angle: Float[Array, ""],
    shift: Float[Array, "2"],
    key: PRNGKeyArray,
) -> tuple[dict[str, Float[Array, ""]], Float[Array, ""]]:
    """The terms of one picture, and how sure it is that the object is there."""
    picture = on_canvas(digit, angle, shift, CANVAS)
    one, two, three = jax.random.split(key, 3)
    seen = model.encoder(picture)
    noise = jax.random.uniform(one, seen.presence.shape, minval=-NOISE / 2, maxval=NOISE / 2)
    seen = seen._replace(presence=seen.presence + noise)
    # A grid of a quarter of the pixels, another one every time: a quarter of the work.
    row, column = jax.random.randint(two, (2,), 0, EVERY)
    x, y = _every(jnp.asarray(pixels()), column), _every(jnp.asarray(pixels()), row)
    some = _every(_every(picture, row).T, column).T
    rendered = model.decoder(seen, x, y)
    error = (rendered.mean - some) ** 2
    votes = model.object(_parts(model, seen))
    capsule = votes.capsule + jax.random.uniform(three, minval=-NOISE / 2, maxval=NOISE / 2)
    pose, presence = jax.lax.stop_gradient((_pose(seen), jax.nn.sigmoid(seen.presence)))
    terms = {
        "nll": -(EVERY**2) * mixture(rendered, some).sum(),
        "mse": error.mean(),
        "object": -votes.log_likelihood(pose, presence),
        "dynamic": 0.5 * (votes.offset**2).sum(),
        "presence": jax.nn.sigmoid(seen.presence).mean(),
    }
    return terms, jax.nn.sigmoid(capsule)


def _every(rows: Float[Array, "n *r"], first: Int[Array, ""]) -> Float[Array, "m *r"]:
    """Every second row from ``first`` on."""
    return rows.reshape(-1, EVERY, *rows.shape[1:])[:, first]


def _pose(seen: Seen) -> Float[Array, "K 6"]:
    """The six numbers of every affine map."""
    return jnp.concatenate([seen.turn.reshape(-1, 4), seen.shift], 1)


def _parts(model: Pcae, seen: Seen) -> Float[Array, "K i"]:
    """What the object capsule is told of the parts.

    Of these only the features learn from it: parts are there to explain pixels.
    """
    absent = jax.nn.sigmoid(-seen.presence)[:, None]
    template = model.decoder.ink.reshape(len(absent), -1)
    fixed = jax.lax.stop_gradient((_pose(seen), absent, template))
    return jnp.concatenate([*fixed, seen.features], 1)


def _optimiser(steps: int) -> optax.GradientTransformation:
    """Adam, a cosine down to a hundredth: a small part of the steps that RMSProp would take."""
    rate = optax.warmup_cosine_decay_schedule(
        0.0, LEARNING_RATE, min(WARM_UP, steps // 2), steps, LEARNING_RATE / 100
    )
    return optax.chain(optax.clip_by_global_norm(100.0), optax.adam(rate, b2=0.99))


def task() -> Task:
    """PCAE on the training pictures of a 4, turned and moved afresh for every batch."""
    digits = load_digits(4).train

    def batch(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        chosen = digits[rng.integers(len(digits), size=BATCH)]
        angle = rng.uniform(0, 2 * np.pi, BATCH).astype(np.float32)
        shift = rng.uniform(-SHIFT, SHIFT, (BATCH, 2)).astype(np.float32)
        return chosen, angle, shift

    options: dict[str, Any] = {
        "network": "pcae",
        "parts": PARTS,
        "batch": BATCH,
        "deviation": DEVIATION,
        "learning_rate": LEARNING_RATE,
    }
    return Task(options, Pcae, batch, loss, _optimiser)


def export(net: Pcae, options: dict[str, Any], path: Path) -> None:
    """Write the weights for use, in half precision, the ``options`` of the training beside them."""
    save_leaves(path, net, {name: str(value) for name, value in options.items()}, half=True)


def load(path: Path) -> Pcae:
    """The network of a file of weights."""
    return load_leaves(path, Pcae(jax.random.key(0)))[0]
