"""Pose families: how a template moves into the scene (sec. 3 of the paper, eq. 2).

Every family here is linear in its pose vector: a part goes to ``x = F y + o``, where the *design*
matrix ``F`` and the offset ``o`` depend on the template's part only. A new family is a subclass
that gives ``design``, ``matrix`` and ``from_matrix``; every solver then works with it.

A part is ``(position)`` or, where it carries size and orientation, ``(x, y, c, s)`` with
``c = size * cos(phi)`` and ``s = size * sin(phi)``.

Eq. 2 turns positions *clockwise* by theta, and adds theta to a part's own angle phi. Both describe
the same motion only if phi, too, is measured clockwise. We keep eq. 2; ``Similarity2D`` therefore
reads ``(c, s)`` as a direction whose y-axis points down (a test turns a part that is rigidly
attached to another one).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

__all__ = [
    "FAMILIES",
    "Affine2D",
    "Affine3D",
    "AffineCamera",
    "PoseFamily",
    "Similarity2D",
    "Translation",
]

Array = np.ndarray


class PoseFamily(ABC):
    """A family of transforms ``x = F y + o`` from a template's frame to the scene's."""

    name: ClassVar[str]
    template_dim: int
    scene_dim: int
    dim: int
    scales: ClassVar[bool] = True
    """Whether the family can rescale, so that a scene's unit may be chosen freely."""

    @abstractmethod
    def design(self, part: Float[Array, " g"]) -> Float[Array, "h d"]:
        """The matrix F of one template part."""

    def offset(self, part: Float[Array, " g"]) -> Float[Array, " h"]:
        """The constant o of one template part: zero but for families that cannot scale."""
        return np.zeros(len(self.design(part)))

    @abstractmethod
    def matrix(self, pose: Float[Array, "*b d"]) -> Float[Array, "*b i j"]:
        """Pose vectors as homogeneous matrices, template to scene."""

    @abstractmethod
    def from_matrix(self, matrix: Float[Array, "*b i j"]) -> Float[Array, "*b d"]:
        """The inverse of :meth:`matrix`."""

    def basis_size(self, part_size: int) -> int:
        """How many parts of ``part_size`` numbers fix a pose (the minimal basis of RANSAC)."""
        return -(-self.dim // part_size)

    def solve(self, parts: Float[Array, "n g"], points: Float[Array, "n h"]) -> Float[Array, " d"]:
        """The pose that carries template ``parts`` onto scene ``points``, by least squares."""
        design = np.concatenate([self.design(p) for p in parts])
        offset = np.concatenate([self.offset(p) for p in parts])
        return np.linalg.lstsq(design, np.concatenate(list(points)) - offset, rcond=None)[0]

    def apply(self, pose: Float[Array, " d"], parts: Float[Array, "n g"]) -> Float[Array, "n h"]:
        """Template parts moved into the scene by ``pose``."""
        return np.stack([self.design(p) @ pose + self.offset(p) for p in np.asarray(parts, float)])

    def scale(self, pose: Float[Array, "*b d"]) -> Float[Array, "*b"]:
        """The factor by which the pose changes lengths (geometric mean over directions)."""
        linear = self.matrix(pose)[..., :-1, :-1]
        gram = linear @ np.swapaxes(linear, -1, -2)
        return np.asarray(np.abs(np.linalg.det(gram)) ** (0.5 / linear.shape[-2]))

    def parameters(self, pose: Float[Array, " d"]) -> dict[str, object]:
        """A pose in human terms."""
        matrix = self.matrix(pose)
        return {"translation": matrix[:-1, -1], "matrix": matrix[:-1, :-1]}


def _homogeneous(linear: Array, translation: Array) -> Array:
    """Stack ``[[A, t], [0, 1]]`` over leading axes."""
    *batch, rows, columns = linear.shape
    out = np.zeros((*batch, rows + 1, columns + 1))
    out[..., :rows, :columns] = linear
    out[..., :rows, columns] = translation
    out[..., rows, columns] = 1.0
    return out


@dataclass(frozen=True)
class Translation(PoseFamily):
    """Translation only, in two or three dimensions: ``y = t``."""

    template_dim: int = 2
    name: ClassVar[str] = "translation"
    scales: ClassVar[bool] = False

    @property
    def scene_dim(self) -> int:
        return self.template_dim

    @property
    def dim(self) -> int:
        return self.template_dim

    def design(self, part):
        return np.eye(len(part), self.dim)

    def offset(self, part):
        return np.asarray(part, float)

    def matrix(self, pose):
        pose = np.asarray(pose, float)
        eye = np.broadcast_to(np.eye(self.dim), (*pose.shape[:-1], self.dim, self.dim))
        return _homogeneous(eye, pose)

    def from_matrix(self, matrix):
        return matrix[..., :-1, -1]


@dataclass(frozen=True)
class Similarity2D(PoseFamily):
    """Translation, rotation and scale in the plane: ``y = (tx, ty, s cos, s sin)``, eq. 2."""

    name: ClassVar[str] = "similarity"
    template_dim: ClassVar[int] = 2
    scene_dim: ClassVar[int] = 2
    dim: ClassVar[int] = 4

    def design(self, part):
        x, y = part[:2]
        rows = [[1, 0, x, y], [0, 1, y, -x]]
        if len(part) == 4:
            c, s = part[2:]
            rows += [[0, 0, c, -s], [0, 0, s, c]]
        return np.array(rows, float)

    def matrix(self, pose):
        pose = np.asarray(pose, float)
        tx, ty, c, s = np.moveaxis(pose, -1, 0)
        linear = np.stack([np.stack([c, s], -1), np.stack([-s, c], -1)], -2)
        return _homogeneous(linear, np.stack([tx, ty], -1))

    def from_matrix(self, matrix):
        return np.stack(
            [matrix[..., 0, 2], matrix[..., 1, 2], matrix[..., 0, 0], matrix[..., 0, 1]], -1
        )

    def scale(self, pose):
        return np.asarray(np.hypot(pose[..., 2], pose[..., 3]))

    def parameters(self, pose):
        """Translation, scale, and the *clockwise* angle of eq. 2 in radians."""
        return {
            "translation": np.asarray(pose[:2]),
            "scale": float(np.hypot(pose[2], pose[3])),
            "angle": float(np.arctan2(pose[3], pose[2])),
        }

    def from_parameters(self, translation=(0.0, 0.0), scale: float = 1.0, angle: float = 0.0):
        """The pose vector of a translation, a scale and a clockwise angle."""
        return np.array([*translation, scale * np.cos(angle), scale * np.sin(angle)])


@dataclass(frozen=True)
class _Linear(PoseFamily):
    """Families whose pose is a translation and a full matrix, row after row."""

    def design(self, part):
        position, direction = part[: self.template_dim], part[self.template_dim :]
        translate = np.eye(self.scene_dim)
        rows = np.concatenate([translate, np.kron(translate, position)], axis=1)
        if len(direction):
            # A direction with its y-axis down (see the module's docstring), moved by A.
            down = np.diag([1.0, -1.0])
            turn = down @ np.kron(np.eye(2), down @ direction)
            rows = np.concatenate([rows, np.concatenate([np.zeros((2, 2)), turn], axis=1)])
        return rows

    def matrix(self, pose):
        pose = np.asarray(pose, float)
        linear = pose[..., self.scene_dim :]
        linear = linear.reshape(*pose.shape[:-1], self.scene_dim, self.template_dim)
        return _homogeneous(linear, pose[..., : self.scene_dim])

    def from_matrix(self, matrix):
        linear = matrix[..., :-1, :-1]
        flat = linear.reshape(*linear.shape[:-2], -1)
        return np.concatenate([matrix[..., :-1, -1], flat], -1)


@dataclass(frozen=True)
class Affine2D(_Linear):
    """Any affine map of the plane: ``y = (tx, ty, a11, a12, a21, a22)``."""

    name: ClassVar[str] = "affine2d"
    template_dim: ClassVar[int] = 2
    scene_dim: ClassVar[int] = 2
    dim: ClassVar[int] = 6


@dataclass(frozen=True)
class Affine3D(_Linear):
    """Any affine map of space: ``y = (t, A)``, twelve numbers."""

    name: ClassVar[str] = "affine3d"
    template_dim: ClassVar[int] = 3
    scene_dim: ClassVar[int] = 3
    dim: ClassVar[int] = 12


@dataclass(frozen=True)
class AffineCamera(_Linear):
    """A template in space seen by an affine camera: ``y = (t, A)``, eight numbers (Basri 1996)."""

    name: ClassVar[str] = "camera"
    template_dim: ClassVar[int] = 3
    scene_dim: ClassVar[int] = 2
    dim: ClassVar[int] = 8


FAMILIES: dict[str, PoseFamily] = {
    "translation": Translation(),
    "translation3d": Translation(3),
    "similarity": Similarity2D(),
    "affine2d": Affine2D(),
    "affine3d": Affine3D(),
    "camera": AffineCamera(),
}
"""The families by the name they have in a model file."""
