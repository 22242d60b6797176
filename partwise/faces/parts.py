"""Pictures of face parts: what the sources give, whatever they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from partwise.faces.canvas import points_of

__all__ = ["PartImages", "areas_of", "centres_of"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class PartImages:
    """Part n of person i of group g is ``images[n, g, i]``; people of a group may swap parts.

    ``weights[n]`` says how much of each pixel of a face is part n's. They add up to the face's
    opacity: a face is ``sum_n weights[n] * images[n, ...]`` over the background, without a seam
    where the weights are smooth.
    """

    images: Float[Array, "N G I H W"]
    weights: Float[Array, "N H W"]

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.images.shape[1]

    @property
    def people(self) -> int:
        """How many images of every part a group has."""
        return self.images.shape[2]

    @property
    def combinations(self) -> int:
        """How many faces can be put together."""
        return self.groups * self.people ** len(self.images)

    @cached_property
    def weighted(self) -> Float[Array, "N G I H W"]:
        """What each part adds to a face: its picture times its weights."""
        return self.images * self.weights[:, None, None]

    def face(self, group: int, chosen: tuple[int, ...]) -> Float[Array, "H W"]:
        """The face that has part n of person ``chosen[n]``, times its opacity."""
        return np.sum([self.weighted[n, group, i] for n, i in enumerate(chosen)], axis=0)


def areas_of(weights: Float[Array, "N H W"]) -> Float[Array, "N H W"]:
    """The pixels that mostly show each part, 1 or 0."""
    return (weights > 0.5).astype(np.float32)


def centres_of(areas: Float[Array, "N H W"]) -> Float[Array, "N 2"]:
    """The middle of every part, in the frame: its place in the template."""
    return np.stack([points_of(a).mean(0) for a in areas])
