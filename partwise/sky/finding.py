"""``find``: what is on a chart of an unknown piece of sky?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy.special import expit, logsumexp

from partwise._checks import InputError, points_array
from partwise.alignment.maps import Frame
from partwise.alignment.matching import Pairs, matchings
from partwise.alignment.scoring import REACH, SIGMAS, log_ratios
from partwise.frames import canonical_order
from partwise.plane import to_complex
from partwise.sky.catalogue import catalogue
from partwise.sky.found import Constellation, Found
from partwise.sky.refining import refine
from partwise.sky.scoring import Points, Scored
from partwise.sky.searching import LEVELS, look
from partwise.sky.window import gaps, share_inside

__all__ = ["find"]

Array = np.ndarray

FEWEST = 5
"""Points of a chart: three stars are always somewhere."""

SURE = 10.0
"""Log odds at which the search ends."""


def find(points: Any, *, mirrored: bool | None = None, seed: int = 0) -> Found:
    """Find the stars and constellations of a chart of an unknown piece of sky.

    ``points`` are places on a gnomonic projection (a picture through a simple lens) whose field is
    30 to 100 degrees wide, in any order, unit and orientation; where it looks, how precise it is,
    and how many points are stars at all need not be known. ``mirrored=False`` is the sky as seen
    from inside, ``True`` has left and right exchanged (or up and down), None is either.

    What is found is more likely than not; otherwise there are no constellations. Same seed, same
    answer.

    >>> import partwise as pw
    >>> chart = pw.sky.simulate(seed=3, field=50)
    >>> found = pw.sky.find(chart.points)
    >>> [c.name for c in found.constellations if c.is_whole]
    []
    """
    points = points_array("points", points, (2,))
    if mirrored not in (None, False, True):
        raise InputError(f"mirrored must be True, False or None (not known); got {mirrored!r}.")
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"seed must be a whole number >= 0; got {seed!r}.")
    # Rows that repeat a point are left out: it could not be said which of them is the star.
    once = np.sort(np.unique(points, axis=0, return_index=True)[1])
    if len(once) < FEWEST:
        return Found.nothing(points)
    order = once[canonical_order(points[once][None], 2)[0]]
    z = to_complex(np.ascontiguousarray(points[order]))
    frame = Frame.of(z)
    if frame.unit <= 0:  # all points coincide
        return Found.nothing(points)
    seen = Points(frame.normalise(z), frame)
    if seen.area <= 0:  # or are on a line
        return Found.nothing(points)
    hands = (False, True) if mirrored is None else (bool(mirrored),)
    best, probability = _search(seen, hands, seed)
    if best is None or probability < 0.5:
        return Found.nothing(points, probability)
    return _explain(points, order, seen, best, probability)


def _search(points: Points, hands: tuple[bool, ...], seed: int) -> tuple[Scored | None, float]:
    """The best camera and its probability; a chart is as likely of the sky as not beforehand."""
    rng = np.random.default_rng(seed)
    flipped = Points(-points.y.conj(), points.frame)
    found: list[Scored] = []
    for triangles in LEVELS:
        for hand in hands:
            for scored in look(flipped if hand else points, triangles, rng):
                camera = scored.camera.flipped() if hand else scored.camera
                odds = scored.log_odds - np.log(len(hands))
                found.append(replace(scored, camera=camera, log_odds=odds))
            if any(scored.log_odds > SURE for scored in found):
                break
        else:
            continue
        break
    distinct: list[tuple[Scored, Array]] = []
    for scored in sorted(found, key=lambda s: -s.log_odds):
        sky = scored.camera.directions(points.y)
        apart = [np.sqrt(((sky - other) ** 2).sum(1).mean()) for _, other in distinct]
        if all(a * scored.camera.focal > 3 * scored.sigma for a in apart):
            distinct.append((scored, sky))
    if not distinct:
        return None, 0.0
    odds = np.array([scored.log_odds for scored, _ in distinct])
    total = float(np.asarray(logsumexp(odds)))
    return distinct[0][0], float(expit(total) * np.exp(odds[0] - total))


def _explain(
    points: Float[Array, "m 2"],
    order: Int[Array, " o"],
    seen: Points,
    best: Scored,
    probability: float,
) -> Found:
    """Stars and constellations under the best camera; ``order``: the rows of ``seen``'s points."""
    sky = catalogue()
    hand = best.camera.mirrored
    used = Points(-seen.y.conj(), seen.frame) if hand else seen
    start = best.camera.flipped() if hand else best.camera
    refined = refine(start, sky.vectors, used, 1.3 * best.sigma, tolerance=1e-7)
    best = refined if np.isfinite(refined.log_odds) else replace(best, camera=start)
    camera = best.camera
    z, ahead = camera.project(sky.vectors)
    star, sure = _stars(z, np.flatnonzero(ahead), used, best)
    inside, chances = _inside(used, z, ahead, star, best.rho)
    rows = np.full(len(sky.stars), -1)
    rows[star[star >= 0]] = order[star >= 0]
    constellations = []
    for figure, (whole, part) in zip(sky.figures, chances, strict=True):
        if part > 0.5:
            known = rows[figure.stars]
            constellations.append(
                Constellation(figure, probability * part, probability * whole, known)
            )
    constellations.sort(key=lambda c: (-c.whole, -c.probability, c.name))
    stars, share = np.full(len(points), -1), np.zeros(len(points))
    stars[order], share[order] = star, sure * probability
    camera = camera.flipped() if hand else camera
    return Found(
        points,
        probability,
        camera.within(seen.frame.centre, seen.frame.unit),
        stars,
        share,
        tuple(constellations),
        inside * probability,
        best.sigma * seen.frame.unit,
    )


def _stars(
    z: Complex[Array, " n"], ahead: Int[Array, " a"], points: Points, best: Scored
) -> tuple[Int[Array, " m"], Float[Array, " m"]]:
    """The star of every point, -1 for none: pairs that are more likely than not, one to one."""
    sigma = float(np.clip(best.sigma, SIGMAS[0], SIGMAS[-1]))
    pairs = Pairs.near(z, ahead, points.tree, REACH * sigma)
    log_w = log_ratios(pairs, points, sigma) + np.log(best.rho / (1 - best.rho))
    match = matchings(pairs, log_w)[1]
    star, sure = np.full(len(points), -1), np.zeros(len(points))
    likely = match > 0.5
    star[pairs.target[likely]] = pairs.source[likely]
    sure[pairs.target[likely]] = match[likely]
    return star, sure


def _inside(
    points: Points, z: Complex[Array, " n"], ahead: Array, star: Array, rho: float
) -> tuple[Float[Array, " n"], list[tuple[float, float]]]:
    """The probability that a star is in the field; of every figure, wholly, and at all."""
    far = 1e3 * points.width
    gap = np.where(ahead[:, None], gaps(points, z), far)
    seen = np.zeros(len(z), bool)
    seen[star[star >= 0]] = True
    gap[seen] = 0.0  # noise at the edge
    clutter = (float((star < 0).sum()) + 0.5) / points.area
    figures = catalogue().figures
    worst = np.stack([gap[f.stars].max(0) for f in figures])
    share = share_inside(points, gap, ~seen, clutter, rho, np.concatenate([gap, worst]))
    inside, whole = share[: len(z)], share[len(z) :]
    return inside, [
        (float(w), float(inside[f.stars].max())) for f, w in zip(figures, whole, strict=True)
    ]
