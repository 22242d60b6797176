"""Symmetric templates: what order-free examples cannot tell apart, and the hypotheses about it.

Where parts come in any order, the likelihood of a template is that of a mixture over the ways to
list its parts. For a template that a turn nearly carries into itself, such as a square, several of
these components nearly coincide. In the directions that break the symmetry the score of the
likelihood is then zero, the Fisher information is singular, and maximum likelihood mistakes part of
the noise for asymmetry: its squared error falls with 1 / sqrt(S), not 1 / S. The remedy is to ask
whether the examples speak for the asymmetry at all: to fit the template also *with* each symmetry
that it nearly has, which has fewer degrees of freedom, and to weigh the hypotheses by BIC.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy.optimize import linear_sum_assignment

from partwise.learning.geometry import Shape

__all__ = ["Free", "Mirror", "Restriction", "Turn", "nearly"]

Array = np.ndarray

NEARLY = 0.85
"""A template nearly has a symmetry if its symmetric share has this part of its squared size."""

MOST = 8
"""So many symmetries are tried at most, those first that the template comes closest to."""


@dataclass(frozen=True)
class Free:
    """Any shape."""

    name = "none"

    def best(self, vote: Complex[Array, " V"], weight: Float[Array, " V"]) -> Complex[Array, " V"]:
        """The template that minimises sum_n weight_n |p_n|^2 - 2 Re(conj(p_n) vote_n)."""
        return vote / np.maximum(weight, 1e-300)

    def freedom(self, vectors: int) -> int:
        """Degrees of freedom of the shape: without translation, turn and scale."""
        return 2 * vectors - 4


@dataclass(frozen=True, eq=False)
class Turn(Free):
    """A turn by 1 / ``order`` carries part n to where part ``image[n]`` was."""

    image: Int[Array, " N"] = field(default_factory=lambda: np.zeros(0, int))
    order: int = 2

    @property
    def name(self) -> str:
        """In words."""
        return f"turns of 1/{self.order}"

    def best(self, vote, weight):
        """Every part's vote counts for every part of its orbit, turned along."""
        total, mass = np.zeros_like(vote), np.zeros_like(weight)
        at, turned = np.arange(len(vote)), 1.0 + 0.0j
        for _ in range(self.order):
            total, mass = total + vote[at] / turned, mass + weight[at]
            at, turned = self.image[at], turned * np.exp(2j * np.pi / self.order)
        return total / np.maximum(mass, 1e-300)

    def freedom(self, vectors: int) -> int:
        """One point of the plane an orbit; fixed parts stay at the centre; turn and scale go."""
        return 2 * int((_orbits(self.image) > 1).sum()) - 2


@dataclass(frozen=True, eq=False)
class Mirror(Free):
    """A reflection carries part n to where part ``image[n]`` was."""

    image: Int[Array, " N"] = field(default_factory=lambda: np.zeros(0, int))

    name = "a mirror"

    def best(self, vote, weight):
        """The axis is free: the one for which the symmetric template fits best."""
        mass = np.maximum(weight + weight[self.image], 1e-300)
        axis = np.exp(0.5j * np.angle((vote * vote[self.image] / mass).sum()))
        upright = vote / axis
        return (upright + np.conj(upright[self.image])) / mass * axis

    def freedom(self, vectors: int) -> int:
        """A point of the plane a pair, a number a part on the axis; a shift along it and scale go.

        The axis itself is the turn.
        """
        orbits = _orbits(self.image)
        return 2 * int((orbits == 2).sum()) + int((orbits == 1).sum()) - 2


Restriction = Free
"""Any of the classes above."""


def _orbits(image: Int[Array, " N"]) -> Int[Array, " orbits"]:
    """The sizes of the orbits of a permutation."""
    left, sizes = set(range(len(image))), []
    while left:
        start = at = min(left)
        size = 0
        while at in left:
            left.remove(at)
            at, size = int(image[at]), size + 1
        sizes.append(size)
        assert at == start
    return np.array(sizes)


def nearly(shape: Shape, kind: Int[Array, " N"]) -> list[Restriction]:
    """The symmetries that a template nearly has, the closest first; parts keep their type."""
    x = shape.x
    found: dict[tuple, tuple[float, Restriction]] = {}

    def consider(image: Array, made: Restriction) -> None:
        share = float((np.abs(made.best(x, np.ones(len(x)))) ** 2).mean())
        key = (type(made).__name__, getattr(made, "order", 0), *image.tolist())
        if share >= NEARLY * float((np.abs(x) ** 2).mean()):
            found.setdefault(key, (share, made))

    for order in range(2, len(x) + 1):
        image = _onto(x * np.exp(2j * np.pi / order), x, kind)
        sizes = _orbits(image)
        # A turn moves all parts in cycles of its order, but for one at the centre.
        if np.isin(sizes, (1, order)).all() and (sizes == 1).sum() <= 1:
            consider(image, Turn(image, order))
    axes = np.angle(x[:, None] * x[None])[np.triu_indices(len(x))] / 2
    for axis in np.concatenate([axes, axes + np.pi / 2]):
        image = _onto(np.exp(2j * axis) * np.conj(x), x, kind)
        if (_orbits(image) <= 2).all():
            consider(image, Mirror(image))
    return [made for _, made in sorted(found.values(), key=lambda item: -item[0])[:MOST]]


def _onto(moved: Array, x: Array, kind: Array) -> Int[Array, " N"]:
    """Which part each moved part lands on: least squared distance, one to one, types kept."""
    cost = np.abs(moved[:, None] - x[None]) ** 2 + 1e6 * (kind[:, None] != kind[None])
    return linear_sum_assignment(cost)[1]
