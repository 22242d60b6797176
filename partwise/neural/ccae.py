"""The constellation capsule autoencoder (sec. 4.1; Kosiorek et al. 2019, sec. 2.1).

A Set Transformer reads the points of a scene and gives every object capsule its features. The
capsule's own network makes of these a pose, and moves its learned template by it: the votes. The
points are explained by the mixture of all votes, eq. for p(x_1:M). Written for one scene; K
capsules, n votes each.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from partwise._types import Array
from partwise.neural.set_transformer import SetTransformer
from partwise.neural.storing import load_leaves

__all__ = [
    "CAPSULES",
    "Ccae",
    "Explained",
    "Reading",
    "Votes",
    "explain",
    "load",
    "normalise",
    "read",
]

CAPSULES, VOTES = 3, 4
FEATURES, HIDDEN = 32, 128
LAYERS, HEADS, WIDTH = 4, 4, 128

DUMMY = float(np.log(1e-2))
"""Log weight and log density of the component for points that no vote explains."""

SMALLEST_SCALE = 0.4
"""The least standard deviation of a vote, in scenes that fill [-1, 1].

With sharper votes training soon finds that any two points fit a capsule exactly, and capsules share
objects between them (docs/ccae.md).
"""


class Votes(NamedTuple):
    """What the capsules say of a scene, or of many: where parts are, and which are there.

    ``capsule`` and ``part`` are presence logits, of a_k and a_kn; ``scale`` is the standard
    deviation of a vote; ``offset`` the dynamic part of the object-part transform.
    """

    position: Float[Array, "*b K n 2"]
    scale: Float[Array, "*b K n"]
    capsule: Float[Array, "*b K"]
    part: Float[Array, "*b K n"]
    offset: Float[Array, "*b K n 2"]

    @property
    def log_weight(self) -> Float[Array, "*b K n"]:
        """log a_k a_kn."""
        return jax.nn.log_sigmoid(self.capsule)[..., None] + jax.nn.log_sigmoid(self.part)


class Capsule(eqx.Module):
    """h_k^part: the votes of one capsule, from its features."""

    mlp: eqx.nn.MLP
    template: Float[Array, "n 2"]

    def __init__(self, key: PRNGKeyArray):
        one, two = jax.random.split(key)
        self.mlp = eqx.nn.MLP(FEATURES, 4 + 1 + 4 * VOTES, HIDDEN, depth=1, key=one)
        self.template = jax.random.normal(two, (VOTES, 2))

    def __call__(self, features: Float[jax.Array, " f"]):
        """Position, scale, presence logits and offsets of this capsule's votes."""
        pose, capsule, part, scale, offset = jnp.split(
            self.mlp(features), np.cumsum([4, 1, VOTES, VOTES])
        )
        offset = offset.reshape(VOTES, 2)
        p = self.template + offset
        # x = F y, eq. 2, for points: t + (s cos, s sin) on (p_x, p_y) and (p_y, -p_x).
        turned = jnp.stack([p[:, 1], -p[:, 0]], 1)
        # A scale of at most 1, so that no small template makes offsets cheap.
        size = jnp.sqrt(pose[2] ** 2 + pose[3] ** 2 + 1e-6)
        position = pose[:2] + jnp.tanh(size) / size * (pose[2] * p + pose[3] * turned)
        return position, jax.nn.softplus(scale), capsule[0], part, offset


class Ccae(eqx.Module):
    """The network: h^caps, and one h_k^part a capsule."""

    encoder: SetTransformer
    capsules: Capsule
    smallest_scale: float = eqx.field(static=True)

    def __init__(self, key: PRNGKeyArray, smallest_scale: float = SMALLEST_SCALE):
        one, two = jax.random.split(key)
        self.smallest_scale = smallest_scale
        self.encoder = SetTransformer(
            2, CAPSULES, FEATURES, layers=LAYERS, heads=HEADS, width=WIDTH, key=one
        )
        self.capsules = eqx.filter_vmap(Capsule)(jax.random.split(two, CAPSULES))

    def __call__(self, points: Float[Array, "M 2"], seen: Bool[Array, " M"]) -> Votes:
        """The votes for one scene, of which only the points that are ``seen`` count."""
        features = self.encoder(jnp.asarray(points), jnp.asarray(seen))
        votes = Votes(*eqx.filter_vmap(lambda capsule, f: capsule(f))(self.capsules, features))
        return votes._replace(scale=votes.scale + self.smallest_scale)


class Explained(NamedTuple):
    """Every point under the mixture: its log likelihood, and the log share of each component."""

    log_likelihood: Float[Array, " M"]
    votes: Float[Array, "M K n"]
    dummy: Float[Array, " M"]

    @property
    def owner(self) -> Int[Array, " M"]:
        """The capsule of a point's winning vote."""
        return self.votes.max(2).argmax(1)

    @property
    def beaten(self) -> Bool[Array, " M"]:
        """Whether a point's winning vote beats the dummy component."""
        return self.votes.max((1, 2)) > self.dummy


def explain(votes: Votes, points: Float[Array, "M 2"]) -> Explained:
    """The mixture of all votes and the dummy, eq. for p(x_1:M)."""
    weight = votes.log_weight
    norm = jnp.logaddexp(jax.nn.logsumexp(weight), DUMMY)
    square = ((points[:, None, None] - votes.position) ** 2).sum(-1) / votes.scale**2
    log_normal = -0.5 * square - 2 * jnp.log(votes.scale) - np.log(2 * np.pi)
    joint = weight - norm + log_normal
    dummy = jnp.broadcast_to(2 * DUMMY - norm, len(points))
    total = jnp.logaddexp(jax.nn.logsumexp(joint, (1, 2)), dummy)
    return Explained(total, joint - total[:, None, None], dummy - total)


class Reading(NamedTuple):
    """What the network says of a scene: per point its capsule, per capsule whether it is there.

    ``strength`` is the log share of a point's winning vote, ``beaten`` whether that is more than
    the dummy's; ``score`` the log likelihood of the scene. ``absent`` is the capsule that would win
    a point at the origin, where data files have the points that are not there.
    """

    owner: Int[Array, " M"]
    strength: Float[Array, " M"]
    beaten: Bool[Array, " M"]
    presence: Float[Array, " K"]
    score: Float[Array, ""]
    absent: Int[Array, ""]

    def of_points(self, count: int) -> Reading:
        """The same, batch first, of scenes that were padded to more than ``count`` points."""
        cut = {name: getattr(self, name)[:, :count] for name in ("owner", "strength", "beaten")}
        return self._replace(**cut)


def read(model: Ccae, points: Float[Array, "M 2"], seen: Bool[Array, " M"]) -> Reading:
    """One scene, without noise."""
    votes = model(points, seen)
    explained = explain(votes, points)
    return Reading(
        explained.owner,
        explained.votes.max((1, 2)),
        explained.beaten & seen,
        jax.nn.sigmoid(votes.capsule),
        jnp.where(seen, explained.log_likelihood, 0.0).sum(),
        explain(votes, jnp.zeros((1, 2))).owner[0],
    )


def normalise(points: Float[np.ndarray, "B M 2"]) -> Float[np.ndarray, "B M 2"]:
    """Scenes of equally many points, each centred and scaled to fill [-1, 1] (sec. 7.1.1)."""
    high, low = points.max(1, keepdims=True), points.min(1, keepdims=True)
    half = (high - low).max(2, keepdims=True) / 2
    return (points - (high + low) / 2) / np.where(half > 0, half, 1.0)


def load(path: Path) -> Ccae:
    """The network of a file of weights."""
    key = jax.random.key(0)
    net, about = load_leaves(path, Ccae(key))
    scale = float(about.get("smallest_scale", SMALLEST_SCALE))
    return net if scale == net.smallest_scale else load_leaves(path, Ccae(key, scale))[0]
