"""Expectation maximisation for one template, from one starting point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp

from partwise.learning.appearance import AppearanceMoments, Looks
from partwise.learning.examples import Examples
from partwise.learning.geometry import FollowingNoise, GeometryNoise, Moments, Shape
from partwise.learning.meanfield import MeanField, mean_field
from partwise.learning.procrustes import smse
from partwise.learning.symmetry import Free, Restriction

__all__ = ["Run", "Schedule", "State", "expectation", "maximise", "run"]

Array = np.ndarray

SMALLEST = 1e-5
"""The least sigma, relative to the template's radius: noise-free examples have none."""


@dataclass(frozen=True)
class State:
    """A template while it is learned."""

    shape: Shape
    looks: Looks | None = None


@dataclass(frozen=True)
class Schedule:
    """How beta grows, and when to stop.

    ``beta`` is multiplied by ``factor`` after every iteration, up to 1; sigma is re-estimated once
    it is there (and where ``sigma`` says so). It stops when the bound gains less than ``tolerance``
    an example at beta 1, or, where ``smse`` is given, when the template changes by less than that.
    """

    beta: float = 1.0
    factor: float = 2.0
    tolerance: float = 1e-7
    smse: float | None = None
    iterations: int = 2000
    sigma: bool = True


@dataclass(frozen=True)
class Run:
    """What EM found from one start; ``bounds`` and ``betas`` have an entry an iteration."""

    state: State
    bounds: list[float]
    betas: list[float]
    converged: bool
    restriction: Restriction = field(default_factory=Free)

    @property
    def bound(self) -> float:
        """The bound at the end: the log likelihood, where all ways were summed."""
        return self.bounds[-1]

    def then(self, later: Run) -> Run:
        """This run and the one that went on from it, as one."""
        return replace(
            later, bounds=self.bounds + later.bounds[1:], betas=self.betas + later.betas[1:]
        )


@dataclass(frozen=True)
class Expectation:
    """The E-step: the bound, and the moments of geometry and appearance."""

    bound: float
    geometry: Moments
    looks: AppearanceMoments | None
    fields: dict[int, MeanField]


def expectation(
    examples: Examples,
    state: State,
    noise: GeometryNoise,
    beta: float = 1.0,
    fields: dict[int, MeanField] | None = None,
) -> Expectation:
    """The posterior over poses, ways and factors of every example."""
    bound, geometry, looks = 0.0, None, None
    kept: dict[int, MeanField] = {}
    for i, group in enumerate(examples.groups):
        if group.ways is None:
            before = None if fields is None else fields.get(i)
            found = mean_field(
                group, state.shape, examples.kind, beta, None if before is None else before.r
            )
            kept[i] = found
            bound += float(group.weight @ found.bound)
            geometry = found.moments if geometry is None else geometry + found.moments
            continue
        for chunk in group.chunks():
            expected = noise.expect(chunk, state.shape, beta)
            log_evidence = expected.log_evidence
            seen = None
            if state.looks is not None:
                seen = state.looks.expect(chunk, beta)
                log_evidence = log_evidence + seen.log_evidence
            norm = np.asarray(logsumexp(log_evidence, axis=1, keepdims=True))
            r = np.exp(log_evidence - norm) * chunk.weight[:, None]
            bound += float(chunk.weight @ (norm[:, 0] - np.log(len(group.ways))))
            one = expected.moments(r)
            geometry = one if geometry is None else geometry + one
            if seen is not None:
                more = seen.moments(r, examples.parts)
                looks = more if looks is None else looks + more
    assert geometry is not None
    return Expectation(bound, geometry, looks, kept)


def maximise(
    state: State,
    expected: Expectation,
    noise: GeometryNoise,
    restriction: Restriction,
    beta: float,
    estimate_sigma: bool,
) -> State:
    """The M-step: the template, its noise, and how its parts look."""
    moments, shape = expected.geometry, state.shape
    vectors = restriction.best(moments.vote, moments.weight)
    if noise.invariant:
        # Poses have no preferred scale: template and noise may change unit together.
        sigma = shape.sigma
        if estimate_sigma:
            variance = beta * moments.residual(vectors) / moments.numbers
            sigma = np.sqrt(max(variance, 0.0))
        fitted = Shape(vectors, shape.parts, float(sigma)).normalised()
        if not estimate_sigma:
            fitted = fitted._replace(sigma=shape.sigma)
    else:
        # App. B maximises among centred templates with sum |p_n|^2 = N.
        fitted = Shape(vectors, shape.parts, shape.sigma).normalised()._replace(sigma=shape.sigma)
        if estimate_sigma:
            variance = beta * moments.residual(fitted.vectors) / moments.numbers
            fitted = fitted._replace(sigma=float(np.sqrt(max(variance, 0.0))))
    fitted = fitted._replace(sigma=max(fitted.sigma, SMALLEST))
    looks = state.looks
    if looks is not None and expected.looks is not None:
        looks = looks.update(expected.looks, beta)
    return State(fitted, looks)


def run(
    examples: Examples,
    start: State,
    noise: GeometryNoise | None = None,
    schedule: Schedule | None = None,
    restriction: Restriction | None = None,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """EM from ``start``."""
    noise, schedule = noise or FollowingNoise(), schedule or Schedule()
    restriction = restriction or Free()
    state, beta = start, schedule.beta
    bounds: list[float] = []
    betas: list[float] = []
    fields: dict[int, MeanField] | None = None
    converged = False
    for _ in range(schedule.iterations):
        expected = expectation(examples, state, noise, beta, fields)
        fields = expected.fields
        bounds.append(expected.bound)
        betas.append(beta)
        gain = np.inf if len(bounds) < 2 or betas[-2] != beta else bounds[-1] - bounds[-2]
        if schedule.smse is None and gain < schedule.tolerance * examples.count:
            converged = True
            break
        before = state
        state = maximise(state, expected, noise, restriction, beta, schedule.sigma and beta >= 1.0)
        if progress is not None:
            progress(1)
        if schedule.smse is not None and len(bounds) > 1:
            change = smse(state.shape.vectors, before.shape.vectors)
            if change < schedule.smse:
                converged = True
                break
        beta = min(beta * schedule.factor, 1.0)
    return Run(state, bounds, betas, converged, restriction)
