"""``align``: the map between two lists of points of which many are in one list only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from jaxtyping import Complex
from scipy.special import expit, logsumexp

from partwise._checks import InputError, one_of, points_array
from partwise.alignment.maps import Frame, Map, outside
from partwise.alignment.matching import matchings
from partwise.alignment.proposing import Grid, Proposer
from partwise.alignment.refining import refine
from partwise.alignment.result import Aligned
from partwise.alignment.scoring import SHEAR, SIGMAS, Scored, Target, log_ratios, pairs_everywhere
from partwise.frames import canonical_order

__all__ = ["align"]

Array = np.ndarray

_ROUGH, _MIDDLE = Grid(96, 0.03), Grid(192, 0.02)
_NOISY, _PRECISE = Grid(256, 0.016), Grid(320, 0.008)

LEVELS = ((_ROUGH, 8), (_MIDDLE, 8), (_NOISY, 16), (_PRECISE, 32), (_NOISY, 32))
"""Grids, cheap ones first, and how many source points are the origin on each.

The rough one suffices where half of the points are common. The last two are for lists of which one
point in ten is, precise or noisy: of 32 origins, all are unmatched in one case of 20.
"""

SHEARED = (Grid(96, 0.045), 4)
"""For every shear of an affine map."""

SHEAR_STEP = 0.09
"""Between shears that are tried: twice what the grid's blur forgives."""

LOOKED_AT = 4
"""Proposals of an origin that are refined."""

ALTERNATIVES = 12
"""The same, once a map is found: others may explain the lists as well."""

FAR_BEHIND = 15.0
"""Alternatives to what was found whose rough log odds are so much lower are not looked at."""

SURE = 6.0
"""Log odds at which the search ends."""

MOST = 1200
"""Points of each list that take part in the search; all take part in the decision."""


def align(
    source: Any,
    target: Any,
    *,
    transform: Literal["similarity", "affine"] = "similarity",
    effort: float = 1.0,
    seed: int = 0,
) -> Aligned:
    """Find the map that carries some of the ``source`` points onto some of the ``target`` points.

    Both are lists of points in the plane, in any order; how many they have in common, and how
    precise they are, need not be known. The map is a similarity (or an affine map), without
    reflection. What is found is more likely than not that the lists do have it in common; otherwise
    there are no pairs.

    ``effort`` scales how long to search; a search that succeeds ends early. Same seed, same answer.

    >>> import numpy as np, partwise as pw
    >>> stars = np.random.default_rng(0).uniform(size=(40, 2))
    >>> turned = stars[:30] @ [[0.0, 2.0], [-2.0, 0.0]] + 5.0
    >>> found = pw.align(stars, turned)
    >>> len(found.pairs), round(found.scale, 6), found.probability > 0.99
    (30, 2.0, True)
    """
    source, target = (points_array(n, v, (2,)) for n, v in (("source", source), ("target", target)))
    one_of("transform", transform, ("similarity", "affine"))
    if not isinstance(effort, (int, float, np.number)) or not 0 < effort < np.inf:
        raise InputError(f"effort must be a number above 0; got {effort!r}.")
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed must be a whole number >= 0; got {seed!r}.")
    # Two points of each are always alike: they are no evidence of anything.
    if min(len(source), len(target)) < 3:
        return Aligned.nothing(source, target)
    orders = [canonical_order(p[None], 2)[0] for p in (source, target)]
    x, y = (p[o] @ np.array([1, 1j]) for p, o in zip((source, target), orders, strict=True))
    frames = Frame.of(x), Frame.of(y)
    if min(f.unit for f in frames) <= 0:  # all points of a list coincide
        return Aligned.nothing(source, target)
    x, seen = frames[0].normalise(x), Target(frames[1].normalise(y))
    maps = _search(x, seen, transform == "affine", float(effort), seed)
    best, common, probability = _weigh(maps, x)
    # Of several maps that explain the lists alike, the best may have a small share.
    if best is None or common < 0.5:
        return Aligned.nothing(source, target, probability)
    best = refine(best.map, x, seen, best.sigma, transform == "affine", tolerance=1e-7)
    pairs, sure = _pairs(best, x, seen)
    pairs = np.column_stack([orders[0][pairs[:, 0]], orders[1][pairs[:, 1]]])
    order = np.argsort(pairs[:, 0], kind="stable")
    return Aligned(
        source,
        target,
        pairs[order],
        sure[order],
        outside(best.map, *frames).matrix(),
        probability,
        best.sigma * frames[1].unit,
    )


def _search(
    x: Complex[Array, " n"], target: Target, affine: bool, effort: float, seed: int
) -> list[Scored]:
    """Maps that were looked at closely, in the order of the search, which ends when one is sure."""
    rng = np.random.default_rng(seed)
    found: list[Scored] = []
    for proposer, shear, origin in _origins(x, target, affine, effort, rng):
        rough = proposer.polish(proposer.sharpen(origin, proposer.propose(origin)))
        hit = False
        for k, (a, b) in enumerate(zip(rough.a, rough.b, strict=True)):
            if k >= (ALTERNATIVES if hit else LOOKED_AT):
                break
            if hit and rough.odds[k] < rough.odds[0] - FAR_BEHIND:
                break
            start = Map(complex(a), complex(b), complex(a * shear))
            scored = refine(start, x, target, 0.8 * proposer.grid.blur, affine)
            if np.isfinite(scored.log_odds):
                found.append(scored)
                hit = hit or scored.log_odds > 0
        if found and max(s.log_odds for s in found) > SURE:
            break
    return found


def _origins(
    x: Complex[Array, " n"], target: Target, affine: bool, effort: float, rng: np.random.Generator
) -> Iterator[tuple[Proposer, complex, int]]:
    """What to try, cheap things first: a proposer, the shear of its source, the origin."""
    own = np.sort(rng.permutation(len(x))[:MOST])
    partners = np.sort(rng.permutation(len(target))[:MOST])
    few = x[own]

    def some(count: int) -> list[int]:
        return rng.permutation(len(few))[: max(int(np.ceil(count * effort)), 1)].tolist()

    for grid, count in LEVELS[:1] if affine else LEVELS:
        proposer = Proposer(few, target, grid, partners)
        for origin in some(count):
            yield proposer, 0j, origin
    if affine:
        grid, count = SHEARED
        proposer = Proposer(few, target, grid, partners)
        for shear in _shears():
            sheared = proposer.of(few + shear * few.conj())
            for origin in some(count):
                yield sheared, shear, origin


def _shears() -> list[complex]:
    """A hexagonal grid over the disc of shears, the small ones first."""
    count = int(SHEAR / SHEAR_STEP) + 2
    i, j = np.meshgrid(*[np.arange(-2 * count, 2 * count + 1)] * 2)
    grid = (SHEAR_STEP * (i + j * np.exp(1j * np.pi / 3))).ravel()
    grid = grid[np.abs(grid) < SHEAR]
    return grid[np.lexsort((np.angle(grid), np.round(np.abs(grid), 6)))].tolist()


def _weigh(maps: list[Scored], x: Complex[Array, " n"]) -> tuple[Scored | None, float, float]:
    """The best map, the probability that there is one, and that of the best one.

    A map that was found twice counts once. Lists are as likely related as not beforehand.
    """
    distinct: list[Scored] = []
    for s in sorted(maps, key=lambda s: -s.log_odds):
        apart = [np.sqrt((np.abs(s.map(x) - t.map(x)) ** 2).mean()) for t in distinct]
        if all(d > 3 * max(s.sigma, t.sigma) for d, t in zip(apart, distinct, strict=True)):
            distinct.append(s)
    if not distinct:
        return None, 0.0, 0.0
    odds = np.array([s.log_odds for s in distinct])
    total = float(np.asarray(logsumexp(odds)))
    real = float(expit(total))
    return distinct[0], real, real * float(np.exp(odds[0] - total))


def _pairs(best: Scored, x: Complex[Array, " n"], target: Target) -> tuple[Array, Array]:
    """Pairs that are more likely than not, which makes them one to one, and their probabilities."""
    sigma = float(np.clip(best.sigma, SIGMAS[0], SIGMAS[-1]))
    pairs = pairs_everywhere(best.map, x, target, sigma)
    log_w = log_ratios(pairs, target, sigma) + np.log(best.rho / (1 - best.rho))
    match = matchings(pairs, log_w)[1]
    sure = match > 0.5
    return np.column_stack([pairs.source[sure], pairs.target[sure]]), match[sure]
