"""How CCAE is trained: loss (Kosiorek et al. 2019, sec. 2.1 and 2.4), scenes and schedule."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from partwise._checks import InputError
from partwise.metrics import published_scores
from partwise.neural.ccae import CAPSULES, SMALLEST_SCALE, Ccae, Votes, explain, read
from partwise.neural.sparsity import prior_sparsity
from partwise.neural.storing import save_leaves
from partwise.neural.training import Task
from partwise.sampling import simulate_constellations
from partwise.scenes import LabelledScenes

__all__ = ["accuracy", "export", "loss", "task"]

BATCH = 128

NOISE = 4.0
"""Width of the uniform noise on presence logits."""

TOGETHER = 1.0
"""Capsules a scene should need: as few as explain it. An object shared by two costs one more."""

RATE = 4 / 7
"""How often a capsule should be there: as often as an object is, in scenes that are not empty."""

ENTROPY, DYNAMIC = 10.0, 10.0
"""Weights of the cross-entropy of presence and of the dynamic offsets; those of sparsity are 1."""

LEARNING_RATE, WARM_UP = 4e-4, 200

NAMING_SCENES, NAMING_SEED = 2048, 2**31
"""Scenes that say which capsule is which; batches have smaller seeds."""


def _noisy(votes: Votes, key: PRNGKeyArray) -> Votes:
    """Votes with uniform noise on their presence logits."""
    half = NOISE / 2
    one, two = jax.random.split(key)
    capsule = jax.random.uniform(one, votes.capsule.shape, minval=-half, maxval=half)
    part = jax.random.uniform(two, votes.part.shape, minval=-half, maxval=half)
    return votes._replace(capsule=votes.capsule + capsule, part=votes.part + part)


def loss(
    model: Ccae,
    points: Float[Array, "B M 2"],
    seen: Bool[Array, "B M"],
    key: PRNGKeyArray,
    together: float = TOGETHER,
) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
    """The loss of a batch, and its terms before they are weighed."""
    votes = jax.vmap(_noisy)(jax.vmap(model)(points, seen), jax.random.split(key, len(points)))
    explained = jax.vmap(explain)(votes, points)
    nll = -jnp.where(seen, explained.log_likelihood, 0.0).sum(1).mean()
    # A capsule should say that it is there where it wins more than one point; only capsules that
    # win any are asked.
    owner = explained.votes.max(3).argmax(2)
    wins = ((owner[..., None] == jnp.arange(CAPSULES)) & seen[..., None]).sum(1)
    asked = wins > 0
    entropy = jax.nn.softplus(votes.capsule) - (wins > 1) * votes.capsule
    entropy = (entropy * asked).sum() / jnp.maximum(asked.sum(), 1)
    dynamic = 0.5 * (votes.offset**2).sum((1, 2, 3)).mean()
    within, between = prior_sparsity(jnp.exp(votes.log_weight.max(2)), together, RATE)
    total = nll + ENTROPY * entropy + DYNAMIC * dynamic + within + between
    terms = {"nll": nll, "entropy": entropy, "dynamic": dynamic}
    return total, {**terms, "within": within, "between": between}


def _optimiser(steps: int) -> optax.GradientTransformation:
    """Adam, a cosine down to a hundredth: a small part of the steps that RMSProp would take."""
    rate = optax.warmup_cosine_decay_schedule(
        0.0, LEARNING_RATE, min(WARM_UP, steps // 2), steps, LEARNING_RATE / 100
    )
    return optax.chain(optax.clip_by_global_norm(10.0), optax.adam(rate, b2=0.99))


def task(noise: float, smallest_scale: float = SMALLEST_SCALE, together: float = TOGETHER) -> Task:
    """CCAE on constellations of this noise, drawn afresh for every batch.

    The other two arguments are for trying what they do (``python -m benchmarks.ccae_choices``).
    """
    if not 0 <= noise < np.inf:
        raise InputError(f"noise must be a standard deviation >= 0; got {noise}.")

    def batch(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        drawn = simulate_constellations(BATCH, noise, int(rng.integers(2**31)))
        return drawn.points.astype(np.float32), drawn.present

    options: dict[str, Any] = {
        "network": "ccae",
        "noise": noise,
        "batch": BATCH,
        "smallest_scale": smallest_scale,
        "together": together,
        "learning_rate": LEARNING_RATE,
    }
    initial = partial(Ccae, smallest_scale=smallest_scale)
    return Task(options, initial, batch, partial(loss, together=together), _optimiser)


def export(net: Ccae, options: dict[str, Any], path: Path) -> None:
    """Write the weights for use, capsules in the order of the objects that they stand for.

    In half precision, with the ``options`` of the training beside them. Training is told nothing of
    objects, so which capsule learned which is up to chance. Scenes of the generator, of a seed that
    training does not use, say in which order the capsules segment best.
    """
    drawn = simulate_constellations(NAMING_SCENES, options["noise"], NAMING_SEED)
    order = max(
        permutations(range(CAPSULES)), key=lambda order: accuracy(_reordered(net, order), drawn)
    )
    about = {name: str(value) for name, value in options.items()}
    save_leaves(path, _reordered(net, order), about, half=True)


def _reordered(net: Ccae, order: tuple[int, ...]) -> Ccae:
    """The same network with capsule ``order[k]`` in place k."""
    take = np.array(order)
    capsules = jax.tree.map(lambda a: a[take] if eqx.is_array(a) else a, net.capsules)
    return eqx.tree_at(
        lambda n: (n.encoder.seeds, n.capsules), net, (net.encoder.seeds[take], capsules)
    )


def accuracy(net: Ccae, drawn: LabelledScenes) -> float:
    """The segmentation accuracy, as published, of capsules that stand for objects 0, 1 and 2."""
    points = jnp.asarray(drawn.points, jnp.float32)
    said = _read_all(net, points, drawn.present)
    owner = np.where(drawn.present, said.owner, np.asarray(said.absent)[:, None])
    held = np.where(np.asarray(said.beaten), owner, -1)
    there = (held[..., None] == np.arange(CAPSULES)).any(1)
    instantiated = np.take_along_axis(there, drawn.object_id, 1)
    return float(published_scores(drawn, owner, instantiated).segmentation_accuracy.mean())


_read_all = eqx.filter_jit(jax.vmap(read, (None, 0, 0)))
