"""The sum over all one-to-one matchings, and the probability of every pair in it.

    Z = sum_matchings prod_(i, j) w_ij,

the partition function of a monomer-dimer model, by belief propagation: with x_ij the probability
that j is free as far as i can tell,

    x_ij = 1 / (1 + sum_(k != i) w_kj x_jk),   x_ji = 1 / (1 + sum_(k != j) w_ik x_ik),

    log Z ~ sum_i log(1 + sum_j w_ij x_ij) + sum_j log(1 + sum_i w_ij x_ji)
            - sum_ij log(1 + w_ij x_ij x_ji).

It is exact where the candidate pairs form no loops, as the few within reach of the noise hardly do,
and a lower bound otherwise: what it errs by, it errs on the side of "unrelated".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Complex, Float, Int
from scipy.spatial import KDTree

from partwise.plane import from_complex

__all__ = ["Pairs", "matchings"]

Array = np.ndarray

SWEEPS = 8
"""Of belief propagation: chains of pairs are short."""

CANDIDATES = 8
"""Target points per source point, at most."""


@dataclass(frozen=True)
class Pairs:
    """Candidate pairs, sorted by source; how far apart; how many source points could have one."""

    source: Int[Array, " e"]
    target: Int[Array, " e"]
    away: Float[Array, " e"]
    seen: int

    def __len__(self) -> int:
        return len(self.source)

    @staticmethod
    def near(z: Complex[Array, " n"], seen: Int[Array, " s"], tree: KDTree, reach: float) -> Pairs:
        """All pairs of a point of ``z[seen]`` and one in the tree within ``reach``."""
        if len(seen) == 0:
            return Pairs(seen, seen, np.zeros(0), 0)
        k = min(CANDIDATES, tree.n)
        ranks: Any = range(1, k + 1)  # ranks, so that one neighbour is a column too
        found = tree.query(from_complex(z[seen]), ranks, distance_upper_bound=reach)
        away, index = (np.asarray(f) for f in found)
        near = np.isfinite(away)
        row = np.nonzero(near)[0]
        return Pairs(seen[row], index[near], away[near], len(seen))


def matchings(
    pairs: Pairs, log_w: Float[Array, "*g e"]
) -> tuple[Float[Array, "*g"], Float[Array, "*g e"]]:
    """log Z for every row of weights, and the probability that a pair is matched."""
    w = np.exp(np.clip(log_w, -200.0, 200.0))
    by_source = _Groups(pairs.source)
    by_target = _Groups(pairs.target)
    to_source = np.ones_like(w)  # x_ij: j is free, as far as i can tell
    to_target = to_source
    for _ in range(SWEEPS):
        messages = w * to_source
        to_target = 1 / (1 + np.maximum(by_source.spread(messages) - messages, 0.0))
        messages = w * to_target
        to_source = 1 / (1 + np.maximum(by_target.spread(messages) - messages, 0.0))
    both = w * to_source * to_target
    log_z = (
        np.log1p(by_source.sums(w * to_source)).sum(-1)
        + np.log1p(by_target.sums(w * to_target)).sum(-1)
        - np.log1p(both).sum(-1)
    )
    return np.asarray(log_z), both / (1 + both)


class _Groups:
    """Sums over the pairs that share a point."""

    def __init__(self, label: Int[Array, " e"]) -> None:
        self.order = np.argsort(label, kind="stable")
        ordered = label[self.order]
        first = np.ones(len(label), bool)
        first[1:] = ordered[1:] != ordered[:-1]
        self.starts = np.flatnonzero(first)
        self.group = np.empty(len(label), int)
        self.group[self.order] = np.cumsum(first) - 1

    def sums(self, values: Float[Array, "*g e"]) -> Float[Array, "*g n"]:
        """One sum a point."""
        return np.add.reduceat(values[..., self.order], self.starts, axis=-1)

    def spread(self, values: Float[Array, "*g e"]) -> Float[Array, "*g e"]:
        """The sum of its point, for every pair."""
        return self.sums(values)[..., self.group]
