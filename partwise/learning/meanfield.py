"""The E-step where the ways to be parts are too many to sum over: q(Z) doubly stochastic.

As in sec. 4, q(Y, Z) = q(Y) q(Z), with the relaxation p_DS of permutations and Algorithm 1; here
for one object whose noise follows its scale. Both updates are coordinate ascent on one bound:

    q(w, tau):  ``FollowingNoise``'s posterior, with the parts that the points are in expectation;
    q(Z):       R = Sinkhorn(exp(-E|w x_m - tau - p_n|^2 / (2 sigma^2))).

An object's turn is not known at first, so every example starts from several, and keeps the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment
from scipy.special import xlogy

from partwise.learning.examples import Group
from partwise.learning.geometry import Moments, Shape, log_moment

__all__ = ["MeanField", "mean_field"]

Array = np.ndarray

TURNS = 12
"""Starting turns of an example."""

UPDATES, SCREENING = 5, 3
"""Updates of q(Y) and q(Z) in an E-step, and for each start."""

SWEEPS = 100
"""Sweeps of Algorithm 1 at most."""


@dataclass(frozen=True)
class MeanField:
    """q(Z) as R, and what it gives: the bound of each example, and the M-step's moments."""

    r: Float[Array, "B M N"]
    bound: Float[Array, " B"]
    moments: Moments


class _Pose:
    """q(w, tau) given R."""

    def __init__(self, group: Group, shape: Shape, r: Array, variance: float):
        self.group, self.shape, self.variance = group, shape, variance
        x = group.x
        expected = r @ shape.x
        self.centre = expected.mean(1)
        centred = expected - self.centre[:, None]
        cross = (np.conj(x) * centred).sum(1)
        self.xx = (np.abs(x) ** 2).sum(1)
        if group.d is not None:
            cross = cross + (np.conj(group.d) * (r @ shape.d)).sum(1)
            self.xx = self.xx + (np.abs(group.d) ** 2).sum(1)
        m = group.vectors.shape[1] - 2
        fit = np.abs(cross) ** 2 / self.xx
        log_q = np.log(np.maximum(fit, 1e-300) / (2 * variance))
        self.log_p = log_moment(m, 0, log_q)
        self.mean = cross / self.xx * np.exp(log_moment(m, 1, log_q) - self.log_p)
        log_square = log_moment(m + 1, 0, log_q) - self.log_p
        self.square = 2 * variance / self.xx * np.exp(log_square)
        # Of the expected log joint, what does not depend on w: sum r |p|^2, less what w explains.
        weight = (r.sum(1) * np.abs(shape.x) ** 2).sum(1)
        if group.d is not None:
            weight = weight + (r.sum(1) * np.abs(shape.d) ** 2).sum(1)
        rest = weight - x.shape[1] * np.abs(self.centre) ** 2 - fit
        self.log_evidence = (
            log(pi)
            - log(x.shape[1])
            - (m + 1) * np.log(pi * self.xx)
            + self.log_p
            - rest / (2 * variance)
        )

    def distance(self) -> Float[Array, "B M N"]:
        """E|w x_m - tau - p_n|^2."""
        x, p = self.group.x, self.shape.x
        points = x.shape[1]
        toward = self.mean[:, None] * x + self.centre[:, None]
        out = self.square[:, None, None] * (np.abs(x) ** 2)[..., None]
        out = out + (np.abs(self.centre) ** 2)[:, None, None] + 2 * self.variance / points
        cross = 2 * (np.conj(self.centre)[:, None] * self.mean[:, None] * x).real[..., None]
        out = out + cross - 2 * (np.conj(p) * toward[..., None]).real + np.abs(p) ** 2
        if self.group.d is not None:
            d = self.group.d
            out = out + self.square[:, None, None] * (np.abs(d) ** 2)[..., None]
            turned = self.mean[:, None, None] * d[..., None]
            out = out - 2 * (np.conj(self.shape.d) * turned).real + np.abs(self.shape.d) ** 2
        return out

    def moments(self, r: Array, weight: Array) -> Moments:
        """For the M-step."""
        r = r * weight[:, None, None]
        seen = self.mean[:, None] * self.group.x + self.centre[:, None]
        vote, mass = np.einsum("bmn,bm->n", r, seen), r.sum((0, 1))
        points = self.group.x.shape[1]
        second = self.square * self.xx + 2 * self.variance + points * np.abs(self.centre) ** 2
        if self.group.d is not None:
            turned = self.mean[:, None] * self.group.d
            vote = np.concatenate([vote, np.einsum("bmn,bm->n", r, turned)])
            mass = np.tile(mass, 2)
        numbers = 2.0 * self.group.vectors.shape[1] * weight.sum()
        return Moments(vote, mass, float((weight * second).sum()), numbers)


def mean_field(
    group: Group, shape: Shape, kind: Array, beta: float = 1.0, r: Array | None = None
) -> MeanField:
    """The E-step from ``r``; from several turns of every example where there is none yet."""
    if r is not None:
        return _ascend(group, shape, kind, beta, r)
    turns = np.exp(2j * np.pi * np.arange(TURNS) / TURNS)
    starts = [_start(group, shape, kind, beta, turn) for turn in turns]
    bounds = np.stack([_ascend(group, shape, kind, beta, r, SCREENING).bound for r in starts])
    best = np.stack(starts)[bounds.argmax(0), np.arange(len(group.weight))]
    return _ascend(group, shape, kind, beta, best)


def _start(group: Group, shape: Shape, kind: Array, beta: float, turn: complex) -> Array:
    """R from one turn of every example, at its own scale."""
    distance = np.abs(turn * group.x[..., None] - shape.x) ** 2
    if group.d is not None:
        distance = distance + np.abs(turn * group.d[..., None] - shape.d) ** 2
    return _assign(group, kind, -distance * beta / (2 * shape.sigma**2))[0]


def _ascend(
    group: Group, shape: Shape, kind: Array, beta: float, r: Array, updates: int = UPDATES
) -> MeanField:
    """Coordinate ascent on the bound."""
    variance = shape.sigma**2 / beta
    penalty = np.zeros(len(group.weight))
    for _ in range(updates):
        pose = _Pose(group, shape, r, variance)
        r, penalty = _assign(group, kind, -pose.distance() / (2 * variance))
    pose = _Pose(group, shape, r, variance)
    return MeanField(r, pose.log_evidence - penalty, pose.moments(r, group.weight))


def _assign(group: Group, kind: Array, log_rho: Array) -> tuple[Array, Array]:
    """R by Algorithm 1; and KL(q(Z) || p(Z)) up to a constant.

    The N - M dummy rows stay equal: one row of their mass stands for them.
    """
    log_rho = np.where(group.kind[:, None] == kind, log_rho, -1e6)
    points, parts = log_rho.shape[1:]
    if points < parts:
        log_rho = np.concatenate([log_rho, np.zeros((len(log_rho), 1, parts))], 1)
    mass = np.ones(log_rho.shape[1])
    mass[points:] = parts - points
    # Rows and columns are shifted first, so that each keeps an entry that does not underflow.
    p = log_rho - log_rho.max(2, keepdims=True)
    p = np.maximum(np.exp(p - p.max(1, keepdims=True)), 1e-200)
    columns = np.ones((len(p), 1, parts))
    for _ in range(SWEEPS):
        rows = mass[:, None] / (p * columns).sum(2, keepdims=True)
        before, columns = columns, 1.0 / (p * rows).sum(1, keepdims=True)
        if np.abs(np.log(columns / before)).max() < 1e-9:
            break
    full = p * rows * columns
    # With little noise Algorithm 1 is slow; its limit is then the best permutation.
    unfinished = np.abs(full.sum(2) - mass).max(1) > 1e-6
    for b in np.flatnonzero(unfinished):
        full[b] = _permutation(log_rho[b], points)
    dummies = full[:, points:]
    kl = xlogy(full, full).sum((1, 2)) - xlogy(dummies, mass[-1]).sum((1, 2))
    return full[:, :points], kl


def _permutation(log_rho: Float[Array, "M1 N"], points: int) -> Float[Array, "M1 N"]:
    """The matrix of the best assignment; parts that are left over go to the dummy row."""
    out = np.zeros_like(log_rho)
    row, column = linear_sum_assignment(-log_rho[:points])
    out[row, column] = 1.0
    if points < len(log_rho):
        out[points] = 1.0 - out[:points].sum(0)
    return out
