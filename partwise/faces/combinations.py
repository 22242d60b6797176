"""Faces put together from the parts of a group, and which of them are held out (sec. 7.2.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int

from partwise.faces.appearance import FaceModel
from partwise.faces.parts import PartImages

__all__ = ["CodedParts", "Drawn", "Faces", "HeldOut", "Imagined", "Split"]

Array = np.ndarray

TRAINING, TEST = 18_000 / 100_842, 7_614 / 100_842
"""The paper's shares of all faces. How many were for validation is not said: as for the test."""

_SPLIT_SEED = 7_2


class Split(NamedTuple):
    """Faces by their number; equally many of every group in each set."""

    train: Int[Array, " n"]
    validation: Int[Array, " n"]
    test: Int[Array, " n"]


class Drawn(NamedTuple):
    """Faces: their codes, and what makes the picture of the i-th one (times its opacity)."""

    codes: Float[Array, "n c"]
    picture: Callable[[int], Float[Array, "H W"]]


class Faces(Protocol):
    """What scenes are made of."""

    @property
    def model(self) -> FaceModel:
        """The model of the faces."""
        ...

    def draw(self, rng: np.random.Generator, count: int) -> Drawn:
        """Faces, at random."""
        ...


@dataclass(frozen=True, eq=False)
class CodedParts:
    """Part images and their codes. The digits of a face's number are a group and five people."""

    parts: PartImages
    codes: tuple[Float[Array, "G I _"], ...]

    def chosen(self, faces: Int[Array, " n"]) -> Int[Array, "n N1"]:
        """The group of every face, and the person of each of its parts."""
        people, count = self.parts.people, len(self.codes)
        shape = (self.parts.groups, *[people] * count)
        return np.stack(np.unravel_index(faces, shape), 1)

    def stacked(self, faces: Int[Array, " n"]) -> Float[Array, "n c"]:
        """The stacked codes of faces."""
        group, *people = self.chosen(faces).T
        codes = [c[group, i] for c, i in zip(self.codes, people, strict=True)]
        return np.concatenate(codes, 1)

    def picture(self, face: int) -> Float[Array, "H W"]:
        """The photographs of a face's parts, put together; times its opacity."""
        group, *people = self.chosen(np.array([face]))[0].tolist()
        return self.parts.face(group, tuple(people))

    @cached_property
    def split(self) -> Split:
        """Disjoint sets of faces for training, validation and testing."""
        each = self.parts.combinations // self.parts.groups
        test, train = max(int(each * TEST), 1), max(int(each * TRAINING), 1)
        rng = np.random.default_rng(_SPLIT_SEED)
        shuffled = [g * each + rng.permutation(each) for g in range(self.parts.groups)]
        stops = np.cumsum([train, test, test])
        sets = zip(*(np.split(s[: stops[-1]], stops[:-1]) for s in shuffled), strict=True)
        return Split(*(np.concatenate(s) for s in sets))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The test faces: their pictures are the photographs, their codes what PPCA makes of them."""

    model: FaceModel
    parts: CodedParts

    def draw(self, rng: np.random.Generator, count: int) -> Drawn:
        """Test faces, at random."""
        faces = rng.choice(self.parts.split.test, count)
        return Drawn(self.parts.stacked(faces), lambda i: self.parts.picture(int(faces[i])))


@dataclass(frozen=True, eq=False)
class Imagined:
    """Faces drawn from the model itself, where there are no parts to put together."""

    model: FaceModel

    def draw(self, rng: np.random.Generator, count: int) -> Drawn:
        """Faces of the model."""
        codes = self.model.sample(rng, count)
        return Drawn(codes, lambda i: self.model.picture(codes[i]))
