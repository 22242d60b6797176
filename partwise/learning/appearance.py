"""The appearance of a template's parts, learned: a factor analyser over all parts (eq. 4).

E-step: for each way to be parts, the evidence of what the parts look like and the posterior of the
factors, in closed form. M-step, given these: loadings and means together, by regression on the
factors and a constant; then the variances (Rubin and Thayer 1982, with parts that may be missing).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from partwise.learning.examples import Examples, Group
from partwise.templates import Appearance

__all__ = ["AppearanceExpected", "AppearanceMoments", "Looks"]

Array = np.ndarray

LEAST = 1e-6
"""The least variance of a feature, relative to its variance over all examples."""


class Looks(NamedTuple):
    """A factor analyser, features padded to the widest part; ``used`` says which are real."""

    loadings: Float[Array, "N f l"]
    means: Float[Array, "N f"]
    variances: Float[Array, "N f"]
    used: Float[Array, "N f"]
    floor: Float[Array, "N f"]

    @classmethod
    def start(cls, examples: Examples, factors: int, first: int, rng: np.random.Generator) -> Looks:
        """Each type's means and variances, and small random loadings.

        Parts that share a type start as they look in the ``first`` of the whole examples, which is
        also where the template starts.
        """
        assert examples.features is not None
        width, parts = max(examples.features), examples.parts
        used = (np.arange(width) < np.array(examples.features)[:, None]).astype(float)
        means, variances = np.zeros((parts, width)), np.ones((parts, width))
        for kind in np.unique(examples.kind):
            seen = np.concatenate(
                [
                    g.looks[:, g.kind == kind].reshape(-1, width)
                    for g in examples.groups
                    if g.looks is not None
                ]
            )
            alike = examples.kind == kind
            shown = examples.whole.looks
            assert shown is not None
            means[alike] = seen.mean(0) if alike.sum() == 1 else shown[first][alike]
            variances[alike] = seen.var(0)
        variances = np.where(variances > 0, variances, 1.0)
        loadings = rng.standard_normal((parts, width, factors)) * np.sqrt(variances)[..., None]
        loadings = loadings * used[..., None] / np.sqrt(2 * factors)
        return cls(loadings, means * used, variances / 2, used, LEAST * variances)

    def appearance(self, sizes: tuple[int, ...]) -> Appearance:
        """Without the padding."""
        rows = list(enumerate(sizes))
        return Appearance(
            tuple(self.loadings[n, :f] for n, f in rows),
            tuple(self.means[n, :f] for n, f in rows),
            tuple(self.variances[n, :f] for n, f in rows),
        )

    def expect(self, group: Group, beta: float = 1.0) -> AppearanceExpected:
        """The posterior of the factors for each example and way; variances are D / beta."""
        assert group.looks is not None
        assert group.ways is not None
        factors = self.loadings.shape[2]
        inverse = self.used * beta / self.variances
        gram = np.einsum("nf,nfi,nfj->nij", inverse, self.loadings, self.loadings)
        away = group.looks[:, :, None] - self.means  # B M N f
        votes = np.einsum("nf,nfi,bmnf->bmni", inverse, self.loadings, away, optimize=True)
        square = np.einsum("nf,bmnf->bmn", inverse, away**2)
        logdet = (self.used * np.log(2 * np.pi * self.variances / beta)).sum(1)
        point = np.arange(group.ways.shape[1])
        precision = np.eye(factors) + gram[group.ways].sum(1)  # A l l
        vote = votes[:, point, group.ways].sum(2)  # B A l
        covariance = np.linalg.inv(precision)
        mean = np.einsum("aij,baj->bai", covariance, vote)
        log_evidence = -0.5 * (
            logdet[group.ways].sum(1)
            + np.linalg.slogdet(precision)[1]
            + square[:, point, group.ways].sum(2)
            - (mean * vote).sum(2)
        )
        return AppearanceExpected(log_evidence, group, mean, covariance)

    def update(self, moments: AppearanceMoments, beta: float = 1.0) -> Looks:
        """The M-step; beta is that of the E-step."""
        solved = np.linalg.solve(
            moments.factors + 1e-12 * np.eye(moments.factors.shape[1]),
            np.swapaxes(moments.cross, 1, 2),
        )
        solved = np.swapaxes(solved, 1, 2)  # N f l+1
        explained = (solved * moments.cross).sum(2)
        count = np.maximum(moments.factors[:, -1, -1], 1e-300)
        variances = beta * (moments.square - explained) / count[:, None]
        return self._replace(
            loadings=solved[..., :-1] * self.used[..., None],
            means=solved[..., -1] * self.used,
            variances=np.maximum(variances, self.floor),
        )


class AppearanceMoments(NamedTuple):
    """Sums over examples of x^2, x y^T and y y^T for each part, y with a constant 1 appended."""

    square: Float[Array, "N f"]
    cross: Float[Array, "N f l1"]
    factors: Float[Array, "N l1 l1"]

    def __add__(self, other: object) -> AppearanceMoments:
        assert isinstance(other, AppearanceMoments)
        return AppearanceMoments(*(a + b for a, b in zip(self, other, strict=True)))


class AppearanceExpected(NamedTuple):
    """The E-step's answer."""

    log_evidence: Float[Array, "B A"]
    group: Group
    mean: Float[Array, "B A l"]
    covariance: Float[Array, "A l l"]

    def moments(self, r: Float[Array, "B A"], parts: int) -> AppearanceMoments:
        """Expectations, given the weights of the ways."""
        looks, ways = self.group.looks, self.group.ways
        assert looks is not None
        assert ways is not None
        total = r.sum(0)
        mean = np.concatenate([self.mean, np.ones((*self.mean.shape[:2], 1))], 2)
        second = np.einsum("ba,bai,baj->aij", r, mean, mean)
        second[:, :-1, :-1] += total[:, None, None] * self.covariance
        square = np.zeros((parts, looks.shape[2]))
        cross = np.zeros((*square.shape, mean.shape[2]))
        factors = np.zeros((parts, *second.shape[1:]))
        np.add.at(square, ways, np.einsum("ba,bmf->amf", r, looks**2))
        np.add.at(cross, ways, np.einsum("ba,bmf,bai->amfi", r, looks, mean, optimize=True))
        np.add.at(factors, ways, np.repeat(second[:, None], ways.shape[1], 1))
        return AppearanceMoments(square, cross, factors)
