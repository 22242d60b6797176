"""The Set Transformer: a set of vectors in, a fixed number of vectors out, in whatever order.

Self-attention blocks let the elements of the set see each other; at last every output asks the set
with a learned seed of its own. Written for one set.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from partwise import _types

__all__ = ["AttentionBlock", "SetTransformer"]


class AttentionBlock(eqx.Module):
    """Attention to a set, then one layer, each added to what came in and normalised."""

    attention: eqx.nn.MultiheadAttention
    layer: eqx.nn.Linear
    first: eqx.nn.LayerNorm
    second: eqx.nn.LayerNorm

    def __init__(self, width: int, heads: int, key: PRNGKeyArray):
        one, two = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(heads, width, key=one)
        self.layer = eqx.nn.Linear(width, width, key=two)
        self.first, self.second = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)

    def __call__(
        self,
        asks: Float[Array, "Q w"],
        answers: Float[Array, "M w"],
        seen: Bool[_types.Array, " M"],
    ) -> Float[Array, "Q w"]:
        """Every row of ``asks`` attends to those rows of ``answers`` that are ``seen``."""
        mask = jnp.broadcast_to(seen, (len(asks), len(seen)))
        asks = jax.vmap(self.first)(asks + self.attention(asks, answers, answers, mask))
        return jax.vmap(self.second)(asks + jax.nn.relu(jax.vmap(self.layer)(asks)))


class SetTransformer(eqx.Module):
    """``outputs`` vectors of ``features`` numbers from a set of vectors of ``inputs`` numbers."""

    embed: eqx.nn.Linear
    blocks: tuple[AttentionBlock, ...]
    seeds: Float[Array, "O w"]
    pool: AttentionBlock
    read: eqx.nn.Linear

    def __init__(
        self,
        inputs: int,
        outputs: int,
        features: int,
        *,
        layers: int,
        heads: int,
        width: int,
        key: PRNGKeyArray,
    ):
        embed, seeds, pool, read, *blocks = jax.random.split(key, 4 + layers)
        self.embed = eqx.nn.Linear(inputs, width, key=embed)
        self.blocks = tuple(AttentionBlock(width, heads, k) for k in blocks)
        self.seeds = jax.random.normal(seeds, (outputs, width))
        self.pool = AttentionBlock(width, heads, pool)
        self.read = eqx.nn.Linear(width, features, key=read)

    def __call__(
        self, elements: Float[_types.Array, "M i"], seen: Bool[_types.Array, " M"]
    ) -> Float[Array, "O f"]:
        """The outputs for one set, of which only the elements that are ``seen`` count."""
        rows = jax.vmap(self.embed)(jnp.asarray(elements))
        for block in self.blocks:
            rows = block(rows, rows, seen)
        return jax.vmap(self.read)(self.pool(self.seeds, rows, seen))
