"""Normalise inside, report outside: the frame and the order in which a scene is solved.

A solver never sees the scene as it came. It sees it centred, in a unit that makes one object about
as large as in the paper's scenes, in single precision, and with its points in an order that
depends on nothing but the configuration. So moving, turning, scaling or shuffling a scene cannot
change the answer, for any solver. Only a model with an absolute prior over poses (``PosePrior``) is
solved where its scenes lie, and poses that cannot scale keep the unit of their templates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from partwise.model import Model

__all__ = [
    "SCENE_RADIUS",
    "Frames",
    "canonical_order",
    "object_radius",
    "scene_frames",
    "scene_radius",
    "template_frames",
]

Array = np.ndarray

SCENE_RADIUS = 0.2
"""The root mean square radius of a scene of up to three objects, in the frame of the solvers.

The paper's prior over poses N(0, I), its precision of 1e4 and its first beta of 0.05 presuppose a
size of scene, and variational inference depends on it: of 0.1, 0.2 and 0.4, 0.2 was best overall on
simulated constellations (docs/variational.md). A scene of n > 3 objects is made sqrt(n / 3) times
as large, objects side by side.
"""


def scene_radius(model: Model, points: int) -> float:
    """The radius of a scene of so many points in the frame of the solvers.

    Where the frame is not the scene's to choose, a scene is objects side by side.
    """
    objects = points / float(np.mean([len(t) for t in model.templates]))
    if not model.pose.scales or model.prior is not None:
        return 2.0 * object_radius(model) * max(objects, 1.0) ** 0.5
    return SCENE_RADIUS * max(objects / 3.0, 1.0) ** 0.5


def object_radius(model: Model) -> float:
    """About the radius of one object in the frame of the solvers."""
    if model.prior is not None:
        typical = model.prior.mean**2 + model.prior.variance
        return model.unit * float(model.pose.scale(np.sqrt(typical)) or 1.0)
    return SCENE_RADIUS if model.pose.scales else 1.0


@dataclass(frozen=True)
class Frames:
    """Frames ``x = origin + unit * x'`` for B scenes, or for the templates of a model."""

    origin: Float[Array, "B D"]
    unit: Float[Array, " B"]

    def matrix(self) -> Float[Array, "B i j"]:
        """Homogeneous matrices, from the normalised to the outer frame."""
        count, dim = self.origin.shape
        out = np.zeros((count, dim + 1, dim + 1))
        out[:, range(dim), range(dim)] = self.unit[:, None]
        out[:, :dim, dim] = self.origin
        out[:, dim, dim] = 1.0
        return out

    def of(self, index: int) -> Frames:
        """One of the frames."""
        return Frames(self.origin[index : index + 1], self.unit[index : index + 1])

    def normalise(self, parts: Float[Array, "B M g"]) -> Float[Array, "B M g"]:
        """Parts in the normalised frame; sizes only change unit."""
        dim = self.origin.shape[1]
        moved = parts - np.pad(self.origin, ((0, 0), (0, parts.shape[2] - dim)))[:, None]
        return moved / self.unit[:, None, None]


def template_frames(model: Model) -> Frames:
    """Centre every template and measure all in the model's unit (unless poses are absolute)."""
    dim = model.pose.template_dim
    if model.prior is not None:
        return Frames(np.zeros((len(model.templates), dim)), np.ones(len(model.templates)))
    return Frames(
        np.stack([t.centre for t in model.templates]), np.full(len(model.templates), model.unit)
    )


def scene_frames(model: Model, parts: Float[Array, "B M g"]) -> Frames:
    """Centre every scene and choose its unit."""
    count, points = parts.shape[:2]
    dim = model.pose.scene_dim
    if model.prior is not None:
        return Frames(np.zeros((count, dim)), np.ones(count))
    # The mean of values around 1e6 is itself rounded; a second pass removes what is left.
    origin = parts[..., :dim].mean(1)
    origin = origin + (parts[..., :dim] - origin[:, None]).mean(1)
    if not model.pose.scales:
        return Frames(origin, np.full(count, model.unit))
    away = parts[..., :dim] - origin[:, None]
    reach = np.abs(away).max((1, 2), initial=1e-300)[:, None, None]  # squares must not underflow
    spread = np.sqrt(((away / reach) ** 2).sum(-1).mean(1)) * reach[:, 0, 0]
    # Points that coincide up to rounding have no spread.
    spread = np.where(spread > 1e-12 * np.abs(origin).max(1), spread, 0.0)
    unit = spread / scene_radius(model, points)
    return Frames(origin, np.where(unit > 0, unit, 1.0))


def canonical_order(parts: Float[Array, "B M g"], dim: int) -> Int[Array, "B M"]:
    """An order of each scene's points that motion, scale and shuffling leave alone.

    By distance from the centroid; among equals (a square around its centre) by the angle from a
    direction that turns with the scene: that of the first moment ``sum z^k |z|`` which is not zero.
    """
    positions = parts[..., :dim]
    positions = positions - positions.mean(1, keepdims=True)
    distance = np.sqrt((positions**2).sum(-1))
    spread = np.sqrt((distance**2).mean(1, keepdims=True))
    distance = distance / np.where(spread > 0, spread, 1.0)
    rounded = np.round(distance, 6)
    if dim != 2:
        return np.argsort(rounded, axis=1, kind="stable")
    z = (positions[..., 0] + 1j * positions[..., 1]) / np.where(spread > 0, spread, 1.0)
    reference = np.zeros(len(z))
    open_ = np.ones(len(z), bool)
    for k in (1, 2, 3, 4):
        moment = (z**k * np.abs(z)).mean(1)
        take = open_ & (np.abs(moment) > 1e-3)
        reference[take] = np.angle(moment[take]) / k
        open_ &= ~take
    turned = np.mod(np.angle(z) - reference[:, None] + 1e-6, 2 * np.pi)
    return np.lexsort((turned, rounded), axis=1)
