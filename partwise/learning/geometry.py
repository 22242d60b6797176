"""E-steps and M-step of a template's geometry: the pose of every example is integrated out.

Two models of noise. The expectations that each hands to the M-step have one form: the template
minimises

    sum_n  weight_n |p_n|^2 - 2 Re(conj(p_n) vote_n)  +  second,

and what is left there, over ``numbers``, is the variance 1 / lambda. Vectors are the positions of
the parts and, where parts have them, their directions.

``FollowingNoise``
    Noise in the template's frame (sec. 7.1.1, and ``partwise.evidence``). With ``w`` the inverse
    turn and scale, ``w x_m - tau = p_n + noise``, and the pose has no preferred place, turn or
    scale. The posterior of w given a way to be parts is a Gaussian in the plane times
    ``|w|^(2 m)``, m = vectors - 2: its moments are polynomials. Summed over all ways, this is
    maximum likelihood for the *shape* of the examples, which is consistent; aligning the examples
    and averaging, as Procrustes analysis does, is not (Kent and Mardia 1997).

``SceneNoise``
    The paper's: noise of precision lambda in the scene, poses ~ N(0, I) (Appendix B).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb, lgamma, log, pi
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from jaxtyping import Complex, Float
from scipy.special import logsumexp

from partwise.learning.examples import Group

__all__ = [
    "Expected",
    "FollowingNoise",
    "GeometryNoise",
    "Moments",
    "SceneNoise",
    "Shape",
    "log_moment",
]

Array = np.ndarray


class Shape(NamedTuple):
    """A template: positions, then directions; and the noise's standard deviation."""

    vectors: Complex[Array, " V"]
    parts: int
    sigma: float

    @property
    def x(self) -> Complex[Array, " N"]:
        """The positions."""
        return self.vectors[: self.parts]

    @property
    def d(self) -> Complex[Array, " N"]:
        """The directions; empty where parts have none."""
        return self.vectors[self.parts :]

    def normalised(self) -> Shape:
        """Centred, and scaled so that sum |p_n|^2 = N; the noise scales along."""
        x = self.x - self.x.mean()
        radius = float(np.sqrt((np.abs(x) ** 2).mean())) or 1.0
        return Shape(np.concatenate([x, self.d]) / radius, self.parts, self.sigma / radius)


class Moments(NamedTuple):
    """What the M-step needs of all examples."""

    vote: Complex[Array, " V"]
    weight: Float[Array, " V"]
    second: float
    numbers: float

    def __add__(self, other: object) -> Moments:
        assert isinstance(other, Moments)
        return Moments(
            self.vote + other.vote,
            self.weight + other.weight,
            self.second + other.second,
            self.numbers + other.numbers,
        )

    def residual(self, vectors: Complex[Array, " V"]) -> float:
        """The expected squared distance between template and examples."""
        cross = float(np.real(np.vdot(vectors, self.vote)))
        return self.second - 2 * cross + float((self.weight * np.abs(vectors) ** 2).sum())


class Expected(Protocol):
    """The posterior of the pose for each example and way."""

    @property
    def log_evidence(self) -> Float[Array, "B A"]:
        """log p(example | way), poses integrated out."""
        ...

    def moments(self, r: Float[Array, "B A"]) -> Moments:
        """Expectations, given the weights of the ways."""
        ...


class GeometryNoise(Protocol):
    """A model of noise; ``invariant`` where poses have no preferred place, turn or scale."""

    invariant: ClassVar[bool]

    def expect(self, group: Group, shape: Shape, beta: float) -> Expected:
        """The E-step over poses at inverse temperature ``beta``: variances are sigma^2 / beta."""
        ...


_HORNER = 20
"""Up to this degree powers of q, which is below 1e12, stay in range."""


@lru_cache(maxsize=256)
def _log_coefficients(m: int, k: int) -> Array:
    """Of q^m, q^(m-1), ..., 1 in E[w^(m+k) conj(w)^m] / (w0^k v^m), for w ~ N(w0, v) complex."""
    return np.array([log(comb(m + k, j) * comb(m, j)) + lgamma(j + 1) for j in range(m + 1)])


def log_moment(m: int, k: int, log_q: Array) -> Array:
    """The log of that polynomial in q = |w0|^2 / v."""
    if m <= _HORNER:
        return np.log(np.polyval(np.exp(_log_coefficients(m, k)), np.exp(log_q)))
    powers = m - np.arange(m + 1)
    return np.asarray(logsumexp(_log_coefficients(m, k) + powers * log_q[..., None], axis=-1))


def _matched(group: Group, shape: Shape) -> tuple[Array, Array]:
    """The parts that the points are, way by way, positions centred; and the centres."""
    assert group.ways is not None
    p = shape.x[group.ways]
    centre = p.mean(1)
    p = p - centre[:, None]
    return (p if group.d is None else np.concatenate([p, shape.d[group.ways]], 1)), centre


@dataclass(frozen=True)
class FollowingNoise:
    """Noise in the template's frame; poses without preference."""

    invariant: ClassVar[bool] = True

    def expect(self, group: Group, shape: Shape, beta: float = 1.0) -> Expected:
        """Closed-form moments of w for every example and way."""
        x = group.vectors
        variance = shape.sigma**2 / beta
        p, centre = _matched(group, shape)
        xx = (np.abs(x) ** 2).sum(1)[:, None]
        cross = np.conj(x) @ p.T  # sum conj(x) p
        w0, v = cross / xx, 2 * variance / xx
        fit = np.abs(cross) ** 2 / xx
        m = x.shape[1] - 2
        log_q = np.log(np.maximum(fit, 1e-300) / (2 * variance))
        log_p = log_moment(m, 0, log_q)
        # By the residual: |p|^2 - |cross|^2 / |x|^2 would cancel where there is hardly any noise.
        away = w0[..., None] * x[:, None] - p
        misfit = (away.real**2 + away.imag**2).sum(2) / (2 * variance)
        constant = log(pi) - log(group.x.shape[1]) - (m + 1) * np.log(pi * xx)
        mean = w0 * np.exp(log_moment(m, 1, log_q) - log_p)
        square = v * np.exp(log_moment(m + 1, 0, log_q) - log_p)
        return _Following(
            constant + log_p - misfit, group, shape, mean, square, xx, centre, variance
        )


class _Following(NamedTuple):
    log_evidence: Array
    group: Group
    shape: Shape
    mean: Array
    square: Array
    xx: Array
    centre: Array
    variance: float

    def moments(self, r: Array) -> Moments:
        ways, parts = self.group.ways, self.shape.parts
        assert ways is not None
        points = ways.shape[1]
        # w x_m - tau has mean E[w] x_m + (the centre of the parts seen), x centred.
        seen = np.einsum("ba,bv->av", r * self.mean, self.group.vectors)
        total = r.sum(0)
        seen[:, :points] += (total * self.centre)[:, None]
        vote = np.zeros(len(self.shape.vectors), complex)
        weight = np.zeros(len(vote))
        np.add.at(vote, ways, seen[:, :points])
        np.add.at(weight, ways, np.repeat(total[:, None], points, 1))
        if self.group.d is not None:
            np.add.at(vote, ways + parts, seen[:, points:])
            np.add.at(weight, ways + parts, np.repeat(total[:, None], points, 1))
        second = (r * (self.square * self.xx + 2 * self.variance)).sum()
        second += points * (total * np.abs(self.centre) ** 2).sum()
        return Moments(vote, weight, float(second), 2.0 * self.group.vectors.shape[1] * r.sum())


@dataclass(frozen=True)
class SceneNoise:
    """Noise of one precision in the scene, poses ~ N(0, I / alpha): Appendix B.

    For examples that show every part of a centred template with sum |p_n|^2 = N, so that Lambda
    is (alpha + lambda N) I. A pose (s cos, s sin) is the complex number u = s cos - i s sin, which
    turns clockwise as eq. 2 does.
    """

    alpha: float = 1.0
    invariant: ClassVar[bool] = False

    def expect(self, group: Group, shape: Shape, beta: float = 1.0) -> Expected:
        """q(y) of every example and way; ways are weighted by their exact evidence."""
        x, count = group.x, group.x.shape[1]
        lam = beta / shape.sigma**2
        precision = self.alpha + lam * count
        assert group.ways is not None
        votes = x @ np.conj(shape.x[group.ways]).T  # sum conj(p) x
        mean = lam * votes / precision
        square = (np.abs(x) ** 2).sum(1)[:, None]
        log_evidence = (
            count * log(lam / (2 * pi))
            + 2 * log(self.alpha / precision)
            - lam / 2 * (square - lam * np.abs(votes) ** 2 / precision)
        )
        return _InScene(log_evidence, group, mean, square, 2 / precision)


class _InScene(NamedTuple):
    log_evidence: Array
    group: Group
    mean: Array
    square: Array
    spread: float

    def moments(self, r: Array) -> Moments:
        """Sums of T^T x, of s^2 and of |x - t|^2; the translation's mean is zero, x centred."""
        ways = self.group.ways
        assert ways is not None
        count = ways.shape[1]
        vote = np.zeros(count, complex)
        np.add.at(vote, ways, np.einsum("ba,bm->am", r * np.conj(self.mean), self.group.x))
        weight = (r * (np.abs(self.mean) ** 2 + self.spread)).sum()
        second = (r * (self.square + count * self.spread)).sum()
        return Moments(vote, np.full(count, weight), float(second), 2.0 * count * r.sum())
