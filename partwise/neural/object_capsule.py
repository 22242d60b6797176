"""The one object capsule above the part capsules (Kosiorek et al. 2019, sec. 2.3).

A Set Transformer reads the parts; the capsule makes of what it says a pose and predicts from it the
pose of every part: the votes, each as sure as its scale says. A part is explained by the mixture of
all votes, as in CCAE. Written for one picture; K parts, as many votes.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from partwise._types import Array
from partwise.neural.set_transformer import SetTransformer

__all__ = ["ObjectCapsule", "PartVotes"]

LAYERS, HEADS, WIDTH = 3, 1, 16
FEATURES, HIDDEN = 32, 128

SMALLEST_SCALE = 0.1
"""The least standard deviation of a vote."""


class PartVotes(NamedTuple):
    """What the capsule says of the parts: pose, its deviation, presence logit, dynamic offset.

    ``capsule`` is the presence logit of the object.
    """

    pose: Float[Array, "K 6"]
    scale: Float[Array, " K"]
    part: Float[Array, " K"]
    offset: Float[Array, "K 6"]
    capsule: Float[Array, ""]

    def log_likelihood(
        self, pose: Float[Array, "K 6"], presence: Float[Array, " K"]
    ) -> Float[Array, ""]:
        """The parts' poses under the mixture of votes, each counted as much as it is present."""
        weight = jax.nn.log_softmax(jax.nn.log_sigmoid(self.part))
        square = ((pose[:, None] - self.pose) ** 2).sum(-1) / self.scale**2
        log_normal = -0.5 * square - 6 * (jnp.log(self.scale) + 0.5 * np.log(2 * np.pi))
        return (presence * jax.nn.logsumexp(weight + log_normal, 1)).sum()


class ObjectCapsule(eqx.Module):
    """Set Transformer, and the capsule's own network."""

    encoder: SetTransformer
    mlp: eqx.nn.MLP
    relation: Float[Array, "K 6"]

    def __init__(self, parts: int, inputs: int, key: PRNGKeyArray):
        one, two, three = jax.random.split(key, 3)
        self.encoder = SetTransformer(
            inputs, 1, FEATURES, layers=LAYERS, heads=HEADS, width=WIDTH, key=one
        )
        self.mlp = eqx.nn.MLP(FEATURES, 6 + 1 + 8 * parts, HIDDEN, depth=1, key=two)
        self.relation = 0.1 * jax.random.normal(three, (parts, 6))

    def __call__(self, parts: Float[Array, "K i"]) -> PartVotes:
        """The votes, from what is known of the parts."""
        features = self.encoder(parts, jnp.ones(len(parts), bool))[0]
        said = self.mlp(features)
        pose, capsule, each = said[:6], said[6], said[7:].reshape(-1, 8)
        relation = self.relation + each[:, 2:]
        # Object to canvas, after part to object: two affine maps.
        turn, shift = pose[:4].reshape(2, 2), pose[4:]
        inner = relation[:, :4].reshape(-1, 2, 2)
        vote = jnp.concatenate([(turn @ inner).reshape(-1, 4), relation[:, 4:] @ turn.T + shift], 1)
        scale = SMALLEST_SCALE + jax.nn.softplus(each[:, 1])
        return PartVotes(vote, scale, each[:, 0], each[:, 2:], capsule)
