"""The part capsule autoencoder (App. D; Kosiorek et al. 2019, sec. 2.2).

Four convolutions read a picture; every part capsule looks at the result with an attention mask of
its own and says whether its part is there, its affine pose, and features that give its intensity.
A part is a learned template with an alpha channel. A pixel is explained by a mixture of the moved
templates and an empty background. Written for one picture; K parts, S x S pixels.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from partwise._types import Array
from partwise.neural.object_capsule import ObjectCapsule

__all__ = ["CANVAS", "PARTS", "TEMPLATE", "Pcae", "Rendered", "Seen", "mixture", "pixels"]

CANVAS, TEMPLATE, PARTS = 40, 11, 24
CHANNELS, STRIDES = 128, (2, 2, 1, 1)
FEATURES, HIDDEN = 16, 32

SMALLEST = 0.05
"""The least half side of a part, where the canvas is [-1, 1]."""

DEVIATION = 0.4
"""The standard deviation of a pixel's grey level, ink 1 on paper 0."""


GAIN = 10.0
"""Templates learn so much faster than the encoder: they are these numbers times what is learned."""

DOT = 0.35
"""The radius of the blurred dots with which templates start."""


class Seen(NamedTuple):
    """What the encoder says of a picture: pose, presence logit and features of every part.

    ``turn`` @ u + ``shift`` is where the point u of the template, in [-1, 1] x [-1, 1], is on the
    canvas, which is as large; x to the right, y down.
    """

    turn: Float[Array, "K 2 2"]
    shift: Float[Array, "K 2"]
    presence: Float[Array, " K"]
    features: Float[Array, "K f"]


class Convolution(eqx.Module):
    """A 3 x 3 convolution without padding, channels last, and what is over zero of it."""

    weight: Float[Array, "3 3 i o"]
    bias: Float[Array, " o"]
    stride: int = eqx.field(static=True)

    def __init__(self, inputs: int, outputs: int, stride: int, key: PRNGKeyArray):
        self.weight = jax.nn.initializers.he_normal()(key, (3, 3, inputs, outputs))
        self.bias = jnp.zeros(outputs)
        self.stride = stride

    def __call__(self, x: Float[Array, "h w i"]) -> Float[Array, "h2 w2 o"]:
        # The nine neighbours side by side and one product: on a CPU faster than a convolution.
        stride, side = self.stride, (x.shape[0] - 3) // self.stride + 1
        stop = stride * (side - 1) + 1
        near = [x[i : i + stop : stride, j : j + stop : stride] for i in range(3) for j in range(3)]
        weight = self.weight.reshape(-1, self.weight.shape[-1])
        return jax.nn.relu(jnp.concatenate(near, -1) @ weight + self.bias)


class Encoder(eqx.Module):
    """Convolutions, then for every part capsule a mean under its own attention mask."""

    layers: tuple[Convolution, ...]
    place: Float[Array, "h w c"]
    head: eqx.nn.Linear
    features: int = eqx.field(static=True)

    def __init__(self, parts: int, key: PRNGKeyArray):
        head, place, *keys = jax.random.split(key, 2 + len(STRIDES))
        inputs = (1, *(CHANNELS,) * (len(STRIDES) - 1))
        self.layers = tuple(
            Convolution(i, CHANNELS, s, k) for i, s, k in zip(inputs, STRIDES, keys, strict=True)
        )
        side = CANVAS
        for stride in STRIDES:
            side = (side - 3) // stride + 1
        self.place = jax.random.normal(place, (side, side, CHANNELS))
        self.features = FEATURES
        self.head = eqx.nn.Linear(CHANNELS, parts * (6 + 1 + FEATURES + 1), key=head)

    def __call__(self, picture: Float[Array, "S S"]) -> Seen:
        """Pose, presence and features of every part."""
        x = picture[..., None]
        for layer in self.layers:
            x = layer(x)
        x = (x + self.place).reshape(-1, CHANNELS)
        # Linear: the mean of what it says everywhere, under the mask, is what it says of the mean.
        said = jax.vmap(self.head)(jnp.asarray(x))
        said = said.reshape(len(x), -1, 6 + 1 + self.features + 1)
        mask = jax.nn.softmax(said[..., -1], 0)
        said = (mask[..., None] * said[..., :-1]).sum(0)
        pose, presence, features = jnp.split(said, (6, 7), -1)
        return Seen(*_affine(pose), presence[:, 0], features)


def _affine(pose: Float[Array, "K 6"]) -> tuple[Float[Array, "K 2 2"], Float[Array, "K 2"]]:
    """Six numbers of any size as an affine map that is no smaller than it may be."""
    size = jax.nn.sigmoid(pose[:, :2] - 1) + SMALLEST
    shear = jnp.tanh(pose[:, 2])
    c, s = jnp.cos(2 * np.pi * pose[:, 3]), jnp.sin(2 * np.pi * pose[:, 3])
    a, d = size[:, 0], size[:, 1]
    turn = jnp.stack([c * a, c * a * shear - s * d, s * a, s * a * shear + c * d], -1)
    return turn.reshape(-1, 2, 2), jnp.tanh(pose[:, 4:])


class Rendered(NamedTuple):
    """The moved templates at some pixels: mixing weight and grey level of every part there.

    ``background`` is the weight of the background; its grey level is 0.
    """

    weight: Float[Array, "K h w"]
    grey: Float[Array, "K h w"]
    background: Float[Array, ""]

    def likelihood(self, picture: Float[Array, "h w"]) -> Float[Array, "K1 h w"]:
        """How well each part explains each pixel, weight and grey level; last the background."""
        # Grey levels differ by at most 1, so nothing vanishes that would need a log-sum-exp.
        near = self.weight * jnp.exp(-0.5 * ((picture - self.grey) / DEVIATION) ** 2)
        empty = self.background * jnp.exp(-0.5 * (picture / DEVIATION) ** 2)
        return jnp.concatenate([near, empty[None]])

    @property
    def mean(self) -> Float[Array, "h w"]:
        """The picture that is expected, the reconstruction."""
        total = self.weight.sum(0) + self.background
        return (self.weight * self.grey).sum(0) / total


class Decoder(eqx.Module):
    """The templates, and what colours them."""

    template: Float[Array, "K t t"]
    alpha: Float[Array, "K t t"]
    background: Float[Array, ""]
    intensity: eqx.nn.MLP

    def __init__(self, parts: int, key: PRNGKeyArray):
        one, two, three = jax.random.split(key, 3)
        # Blurred dots, each a little different.
        at = np.linspace(-1, 1, TEMPLATE) ** 2
        dot = np.exp(-(at[:, None] + at[None]) / (2 * DOT**2))
        shape = (parts, TEMPLATE, TEMPLATE)
        self.template = (4 * dot - 1.5 + 0.5 * jax.random.normal(one, shape)) / GAIN
        self.alpha = (5 * dot - 2.5 + 0.5 * jax.random.normal(two, shape)) / GAIN
        self.background = jnp.zeros(())
        self.intensity = eqx.nn.MLP(FEATURES, 1, HIDDEN, depth=1, key=three)

    @property
    def ink(self) -> Float[Array, "K t t"]:
        """The templates' grey levels."""
        return jax.nn.sigmoid(GAIN * self.template)

    @property
    def opacity(self) -> Float[Array, "K t t"]:
        """The templates' mixing weights, the alpha channel."""
        return jnp.exp(GAIN * self.alpha)

    def __call__(self, seen: Seen, x: Float[Array, " w"], y: Float[Array, " h"]) -> Rendered:
        """The parts at the pixels of columns ``x`` and rows ``y``."""
        a, b, c, d = (seen.turn[:, i, j, None, None] for i in (0, 1) for j in (0, 1))
        x0 = x[None, None, :] - seen.shift[:, 0, None, None]
        y0 = y[None, :, None] - seen.shift[:, 1, None, None]
        det = a * d - b * c
        u, v = (d * x0 - b * y0) / det, (a * y0 - c * x0) / det
        grey = _bilinear(self.ink, u, v)
        weight = _bilinear(self.opacity, u, v)
        strength = jax.nn.sigmoid(jax.vmap(self.intensity)(jnp.asarray(seen.features))[:, 0] + 2)
        there = jax.nn.sigmoid(seen.presence)
        return Rendered(
            weight * there[:, None, None],
            grey * strength[:, None, None],
            jax.nn.softplus(self.background),
        )


def _bilinear(
    picture: Float[Array, "K t t"], u: Float[Array, "K h w"], v: Float[Array, "K h w"]
) -> Float[Array, "K h w"]:
    """Each picture, which fills [-1, 1] x [-1, 1] and is 0 around it, at its points (u, v)."""
    side = picture.shape[-1]
    u, v = (jnp.clip((at + 1) * side / 2 + 0.5, 0, side + 1 - 1e-4) for at in (u, v))
    left, top = jnp.floor(u), jnp.floor(v)
    right, bottom = u - left, v - top
    flat = jnp.pad(picture, ((0, 0), (1, 1), (1, 1))).reshape(-1)
    row = side + 2
    first = row * row * jnp.arange(len(picture))[:, None, None]
    first += row * top.astype(int) + left.astype(int)
    above = (1 - right) * flat[first] + right * flat[first + 1]
    below = (1 - right) * flat[first + row] + right * flat[first + row + 1]
    return (1 - bottom) * above + bottom * below


def mixture(rendered: Rendered, picture: Float[Array, "h w"]) -> Float[Array, "h w"]:
    """The log density of every pixel under the mixture of parts and background."""
    total = rendered.weight.sum(0) + rendered.background
    norm = np.log(DEVIATION) + 0.5 * np.log(2 * np.pi)
    return jnp.log(rendered.likelihood(picture).sum(0)) - jnp.log(total) - norm


def pixels() -> Float[np.ndarray, " S"]:
    """Where the pixels of a row, or a column, are."""
    return ((np.arange(CANVAS) + 0.5) / CANVAS * 2 - 1).astype(np.float32)


class Pcae(eqx.Module):
    """The part capsule autoencoder, and the object capsule above it."""

    encoder: Encoder
    decoder: Decoder
    object: ObjectCapsule

    def __init__(self, key: PRNGKeyArray, parts: int = PARTS):
        one, two, three = jax.random.split(key, 3)
        self.encoder = Encoder(parts, one)
        self.decoder = Decoder(parts, two)
        self.object = ObjectCapsule(parts, 6 + 1 + FEATURES + TEMPLATE**2, three)

    def __call__(self, picture: Float[Array, "S S"]) -> tuple[Seen, Rendered]:
        """What the encoder says, and the parts at all pixels."""
        seen = self.encoder(picture)
        return seen, self.decoder(seen, pixels(), pixels())
