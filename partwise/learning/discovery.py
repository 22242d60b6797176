"""Unknown objects in scenes of several: shapes that recur more often than chance explains.

A scene's sub-configurations of n points are candidates. Under a template p, the density of the
*shape* of n points, against that of points without any structure (the template whose parts all
coincide, whose noise is everything), is in closed form (``geometry.FollowingNoise``):

    LR = mean over ways of  P_m(q) / m!  exp(-misfit / (2 sigma^2)),    m = n - 2,

and does not depend on place, turn or scale. A scene of C sub-configurations, in which ``RATE``
copies are expected, speaks for the template by log(1 + RATE / C sum LR) - log(1 + RATE). The
candidate with the most support in all scenes is refined by EM, the points that it explains are
taken away, and the search goes on in what is left. Whole objects come before their fragments,
because a match of more points is more surprising: three corners of a square are a right-angled
triangle, but the square explains the fourth, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy.special import logsumexp
from sklearn.neighbors import NearestNeighbors

from partwise.learning.em import Schedule, State, run
from partwise.learning.examples import Examples, examples_of
from partwise.learning.geometry import FollowingNoise, Shape
from partwise.learning.procrustes import match_parts, smse
from partwise.plane import from_complex, to_complex
from partwise.scenes import SceneBatch

__all__ = ["Found", "discover"]

Array = np.ndarray

RATE = 0.5
"""How many copies of an object are expected in a scene, before anything is known."""

CANDIDATES = 40
"""So many sub-configurations are tried as templates."""

JUDGED, REFINED = 40_000, 200_000
"""How many matches (sub-configuration and way) judge the candidates, and refine the best."""

MOST_SUBSETS = 500
"""A scene with more sub-configurations gives those of close points only."""

NEIGHBOURS = 7
"""Close points are so many."""

DIFFERENT = 0.02
"""Candidates of a smaller SMSE are the same shape."""

LEVELS = (0.02, 0.08, 0.25)
"""Noise levels at which a candidate, which is noisy itself, is judged."""

ROUNDS = 12
"""Of EM, four iterations each."""

LIKELY = 0.2
"""Less likely copies are not taken away. Below a half: rivals that share points share it."""


@dataclass(frozen=True)
class Found:
    """A template, how much the scenes speak for it (in nats), and the points it explains."""

    shape: Shape
    support: float
    explained: list[Int[Array, " n"]]


@dataclass(frozen=True)
class _Pool:
    """Sub-configurations of many scenes, as examples; ``scene`` says whose they are."""

    examples: Examples
    rows: Int[Array, "T n"]
    scene: Int[Array, " T"]
    share: Float[Array, " T"]

    def log_ratio(self, shape: Shape) -> Float[Array, " T"]:
        """log LR of every sub-configuration."""
        noise, nothing = FollowingNoise(), shape._replace(vectors=np.zeros_like(shape.vectors))
        out = []
        for group in self.examples.whole.chunks():
            assert group.ways is not None
            under = noise.expect(group, shape).log_evidence
            one_way = replace(group, ways=group.ways[:1])
            null = noise.expect(one_way, nothing).log_evidence[:, 0]
            out.append(np.asarray(logsumexp(under, axis=1)) - np.log(len(group.ways)) - null)
        return np.concatenate(out)

    def posterior(self, shape: Shape) -> tuple[Float[Array, " T"], float]:
        """The probability that each is a copy, and the support of all scenes."""
        log_odds = np.log(RATE * self.share) + self.log_ratio(shape)
        scenes = int(self.scene.max()) + 1
        top = np.zeros(scenes)
        np.maximum.at(top, self.scene, log_odds)
        total = np.exp(-top)
        np.add.at(total, self.scene, np.exp(log_odds - top[self.scene]))
        norm = top + np.log(total)
        seen = np.bincount(self.scene, minlength=scenes) > 0
        support = (norm[seen] - np.log(1 + RATE)).sum()
        return np.exp(log_odds - norm[self.scene]), float(support)

    def some(self, index: Int[Array, " k"], weight: Array | None = None) -> _Pool:
        """Some of them."""
        chosen = self.examples.whole.some(index)
        chosen = replace(chosen, weight=np.ones(len(index)) if weight is None else weight)
        return _Pool(
            replace(self.examples, groups=(chosen,)),
            self.rows[index],
            self.scene[index],
            self.share[index],
        )

    def sample(self, matches: int, rng: np.random.Generator) -> _Pool:
        """Those of random scenes, so that there are about so many ``matches`` to compute."""
        ways = self.examples.whole.ways
        assert ways is not None
        sizes = np.bincount(self.scene)
        scenes = rng.permutation(np.flatnonzero(sizes))
        total = np.cumsum(sizes[scenes]) * len(ways)
        taken = scenes[: max(int((total <= matches).sum()), 1)]
        return self.some(np.flatnonzero(np.isin(self.scene, taken)))


def discover(
    batch: SceneBatch, parts: int, used: Sequence[set[int]], rng: np.random.Generator
) -> Found | None:
    """The shape of ``parts`` points with the most support; ``used`` points are taken already."""
    pool = _pool(batch, parts, used)
    if pool is None:
        return None
    # Scenes with few sub-configurations say most clearly what an object may look like.
    clear = pool.share / pool.share.sum()
    some = min(CANDIDATES, len(clear))
    chosen = rng.choice(len(clear), some, replace=False, p=clear)
    judges = pool.sample(JUDGED, rng)
    x = pool.examples.whole.x
    tried = []
    for c in chosen:
        for sigma in LEVELS:
            shape = Shape(x[c], parts, sigma).normalised()
            tried.append((judges.posterior(shape)[1], shape))
    tried.sort(key=lambda item: -item[0])
    many = pool.sample(REFINED, rng)
    refined = [_refine(many, shape) for _, shape in _different(tried)]
    shape = max(refined, key=lambda item: item[0])[1]
    probability, support = pool.posterior(shape)
    return Found(shape, support, _apart(pool, probability))


def _pool(batch: SceneBatch, parts: int, used: Sequence[set[int]]) -> _Pool | None:
    rows, scene, share = [], [], []
    for i in range(len(batch)):
        lo, hi = int(batch.offsets[i]), int(batch.offsets[i + 1])
        free = np.array([m for m in range(lo, hi) if m not in used[i]], int)
        if len(free) < parts:
            continue
        found = _subsets(to_complex(batch.parts[free]), parts)
        rows.append(free[found])
        scene.append(np.full(len(found), i))
        share.append(np.full(len(found), 1.0 / len(found)))
    if not rows:
        return None
    stacked, owner = np.concatenate(rows), np.concatenate(scene)
    weight = np.concatenate(share)
    z = batch.parts[stacked]
    spread = np.abs(z - z.mean(1, keepdims=True)).max((1, 2))
    whole = spread > 1e-9 * np.abs(z).max((1, 2))  # points that coincide have no shape
    if not whole.any():
        return None
    stacked, owner, weight = stacked[whole], owner[whole], weight[whole]
    flat = SceneBatch(z[whole].reshape(-1, 2), parts * np.arange(int(whole.sum()) + 1))
    examples = examples_of(flat, parts)
    return _Pool(examples, stacked, owner, weight)


def _subsets(z: Complex[Array, " M"], n: int) -> Int[Array, "C n"]:
    """All sub-configurations of n points; those of close points where there are too many."""
    if comb(len(z), n) <= MOST_SUBSETS:
        return np.array(list(combinations(range(len(z)), n)))
    near = min(max(NEIGHBOURS, n), len(z))
    around = NearestNeighbors(n_neighbors=near).fit(from_complex(z)).kneighbors()[1]
    around = np.concatenate([np.arange(len(z))[:, None], around[:, : near - 1]], 1)
    found = {
        tuple(sorted((int(a[0]), *other)))
        for a in around
        for other in combinations(a[1:].tolist(), n - 1)
    }
    return np.array(sorted(found))


def _different(tried: list[tuple[float, Shape]], most: int = 3) -> list[tuple[float, Shape]]:
    """The best few that are different shapes."""
    out: list[tuple[float, Shape]] = []
    for support, shape in tried:
        if all(apart(shape.x, s.x) > DIFFERENT for _, s in out):
            out.append((support, shape))
        if len(out) == most:
            break
    return out


def apart(p: Complex[Array, " N"], q: Complex[Array, " N"]) -> float:
    """The SMSE of two normalised templates, parts matched."""
    return smse(p[match_parts(p, q, np.zeros(len(p), int))], q)


def _refine(pool: _Pool, shape: Shape) -> tuple[float, Shape]:
    """EM over all sub-configurations: which are copies, and what the template is."""
    probability, support = pool.posterior(shape)
    for _ in range(ROUNDS):
        index = np.flatnonzero(probability > 1e-3)
        if probability.sum() < 2:
            break
        some = pool.some(index, probability[index])
        new = run(some.examples, State(shape), schedule=Schedule(iterations=4)).state.shape
        before, (probability, support) = support, pool.posterior(new)
        shape = new
        if abs(support - before) < 1e-3 * max(abs(support), 1.0):
            break
    return support, shape


def _apart(pool: _Pool, probability: Float[Array, " T"]) -> list[Int[Array, " n"]]:
    """Copies, the likeliest first, that share no point."""
    out, taken = [], set()
    for t in np.argsort(-probability, kind="stable"):
        if probability[t] < LIKELY:
            break
        if taken.isdisjoint(rows := pool.rows[t].tolist()):
            out.append(pool.rows[t])
            taken |= set(rows)
    return out
