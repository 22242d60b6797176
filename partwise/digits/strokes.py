"""Parts that turn with the picture: ends, corners and junctions of a digit's strokes.

The picture is enlarged and blurred, so that its grid is forgotten, and thinned to lines. Around a
point of the lines, at a given distance *along* them, there are so many further points: one around
an end, three or more around a junction, two else; and where these two do not lie opposite each
other, the point is a corner. Everything is lengths and angles in the picture, so it turns with the
picture, up to what is left of the grid. The distance is a share of the digit's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.ndimage import gaussian_filter, zoom
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from partwise.scenes import Scene

__all__ = ["KINDS", "Strokes", "strokes"]

Array = np.ndarray

KINDS = ("corner", "end", "junction")

FINER = 4
"""Points along a pixel's side in the enlarged picture."""

BLUR = 0.65
"""Standard deviation of the blur, in pixels of the picture."""

INK = 0.4
"""What is darker than this share of the darkest is ink."""

REACH = 0.35
"""How far around a point is looked, as a share of the root mean square radius of the ink."""

AROUND = 1.0
"""A part lies in the mean of the points that qualify, as far as that around the best."""

BEND = np.deg2rad(50)
"""A line that turns by more is a corner."""


class Strokes(NamedTuple):
    """The parts of one picture, in its pixels: x to the right, y down, 0 its middle.

    ``arm`` points from a part to the mean of the points around it: from an end into its stroke,
    from a corner between its legs. It is as long as the part is one-sided.
    """

    position: Float[Array, "n 2"]
    arm: Float[Array, "n 2"]
    kind: tuple[str, ...]

    def scene(self) -> Scene:
        """The parts for inference: positions, sizes and orientations, types."""
        turning = self.arm * (1.0, -1.0)  # orientations run clockwise (partwise.poses)
        return Scene(np.concatenate([self.position, turning], 1), self.kind)


def strokes(picture: Float[Array, "h w"]) -> Strokes:
    """The ends, corners and junctions of the strokes of a picture, ink 1 on paper 0."""
    from skimage.morphology import skeletonize

    big = zoom(picture, FINER, order=1, mode="grid-constant", grid_mode=True)
    big = gaussian_filter(big, BLUR * FINER)
    ink = big > INK * big.max()
    at = np.argwhere(skeletonize(ink))[:, ::-1] / FINER  # x, y
    at = at + (0.5 / FINER - np.array(picture.shape)[::-1] / 2)
    y, x = np.nonzero(ink)
    if len(at) < 2:
        return Strokes(np.zeros((0, 2)), np.zeros((0, 2)), ())
    reach = REACH * np.hypot(x.std(), y.std()) / FINER
    edges = _edges(at)
    graph = _graph(at, edges)
    near = dijkstra(graph, directed=False, limit=2 * reach + 2) <= reach
    # An edge whose ends lie on either side of the distance is where a line passes it.
    crossing = near[:, edges[:, 0]] != near[:, edges[:, 1]]
    ways = crossing.sum(1)
    middle = at[edges].mean(1)
    arm = (crossing @ middle) / np.maximum(ways, 1)[:, None] - at
    turn = _turn(at, middle, crossing, ways)
    degree = np.bincount(edges.ravel(), minlength=len(at))
    # Lines part at knots only; elsewhere a third way is the tip of a spur. Near a knot lines look
    # bent.
    knot = (ways > 2) & (degree > 2)
    found = []
    for kind, here, best in (
        ("corner", (ways == 2) & (turn > BEND) & ~near[:, knot].any(1), turn),
        ("end", (ways == 1) & (degree == 1), np.zeros(len(at))),
        ("junction", knot, -np.hypot(*arm.T)),
    ):
        for some in _gathered(here, best, edges, at, reach):
            w = some * (np.maximum(best - BEND, 1e-9) if kind == "corner" else 1.0)
            found.append((np.average(at, 0, w), np.average(arm, 0, w), kind))
    position, arms, kinds = zip(*found, strict=True) if found else ((), (), ())
    return Strokes(np.reshape(position, (-1, 2)), np.reshape(arms, (-1, 2)), kinds)


def _edges(at: Float[Array, "n 2"]) -> Int[Array, "e 2"]:
    """Neighbours on the lines; diagonal ones only where there is no way around the corner."""
    cell = np.rint((at - at.min(0)) * FINER).astype(int) + 1
    index = np.full(cell.max(0) + 2, -1)
    index[tuple(cell.T)] = np.arange(len(at))
    out = []
    for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1)):
        other = index[cell[:, 0] + dx, cell[:, 1] + dy]
        good = other >= 0
        if dx and dy:
            good &= index[cell[:, 0] + dx, cell[:, 1]] < 0
            good &= index[cell[:, 0], cell[:, 1] + dy] < 0
        out.append(np.stack([np.flatnonzero(good), other[good]], 1))
    return np.concatenate(out)


def _graph(at: Float[Array, "n 2"], edges: Int[Array, "e 2"]) -> csr_array:
    length = np.linalg.norm(at[edges[:, 0]] - at[edges[:, 1]], axis=1)
    return coo_array((length, edges.T), (len(at), len(at))).tocsr()


def _turn(at, middle, crossing, ways) -> Float[Array, " n"]:
    """By how much the line turns at each point around which there are two."""
    turn = np.zeros(len(at))
    two = np.flatnonzero(ways == 2)
    around = middle[np.nonzero(crossing[two])[1].reshape(-1, 2)] - at[two, None]
    one, other = around[:, 0] @ [1, 1j], around[:, 1] @ [1, 1j]
    turn[two] = np.pi - np.abs(np.angle(one * np.conj(other)))
    return turn


def _gathered(here, best, edges, at, reach: float) -> Iterator[Bool[Array, " n"]]:
    """Points ``here``, those around the best one; of such that are connected or close one only."""
    inside = here[edges].all(1)
    parts = connected_components(_graph(at, edges[inside]), directed=False)[1]
    chosen: list[int] = []
    for n in sorted(np.flatnonzero(here), key=lambda n: -best[n]):
        if all(parts[n] != parts[m] and np.hypot(*(at[n] - at[m])) > reach for m in chosen):
            chosen.append(int(n))
            yield here & (np.hypot(*(at - at[n]).T) <= AROUND * reach)
