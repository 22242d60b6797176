"""Algorithm 2: GCM-DS and GCM-GMM. Equations are in ``mean_field``, scheduling in ``lanes``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import gamma, pi
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from partwise._checks import InputError, one_of
from partwise._small import over
from partwise._types import Array
from partwise.batching import in_chunks
from partwise.frames import object_radius, scene_radius
from partwise.problem import MeanField, Problem, Slots, Solution, fewest_at_once
from partwise.solvers.lanes import run_lanes
from partwise.solvers.mean_field import (
    Matching,
    MatchPrior,
    Observed,
    Poses,
    assign_ds,
    assign_gmm,
    expected_log_likelihood,
    kl_poses,
    object_precision,
    sparse,
    update_poses,
)
from partwise.solvers.starting import random_starts, vote_starts

__all__ = ["State", "Variational", "update"]

LAMBDA = 1e4
"""The paper's precision of the geometric noise, in the solvers' frame."""

FORCED_CLUTTER = 1e-3
"""The rate of clutter where a model allows none, but a scene has more points than slots."""


LEGS = 1
"""How often convergence is looked at before lanes are refilled."""


class State(NamedTuple):
    """The variational distribution, and where the annealing stands."""

    r: Float[Array, "M N *b"]
    columns: Float[Array, "N1 *b"]
    pose: Float[Array, "K d *b"]
    beta: Float[Array, "*b"]
    elbo: Float[Array, "*b"]
    updates: Float[Array, "*b"]
    done: Float[Array, "*b"]


@dataclass(frozen=True)
class Variational:
    """GCM-DS (``prior="ds"``) or GCM-GMM (``"gmm"``), Algorithm 2.

    From each of ``restarts`` first R, beta goes from ``beta`` to 1, times ``growth`` each time the
    ELBO changes by less than ``tolerance`` an update (looked at every ``check_every`` updates); the
    best ELBO wins. A solution that breaks the sparsity constraint of sec. 7.1.1 is drawn afresh, at
    most ``attempts`` times.

    ``init``: each first R is random, or follows from the votes of the parts, where one part fixes
    a pose (``solvers/starting.py``); a low ``beta`` would melt it down again.

    ``precision`` is lambda in the solvers' frame. None takes it from the model's noise where that
    is known, else the paper's 1e4. ``follow_scale`` lets it fall with the square of each object's
    scale; the paper keeps it fixed.

    ``sweeps`` of Sinkhorn's algorithm are made in each update, starting from the last potentials;
    ``Posterior.balanced`` runs it to the end.
    """

    prior: Literal["ds", "gmm"] = "ds"
    restarts: int = 5
    beta: float = 0.05
    growth: float = 2.0
    init: Literal["random", "votes"] = "random"
    precision: float | None = None
    follow_scale: bool = False
    tolerance: float = 3e-2
    sweeps: int = 2
    check_every: int = 2
    max_updates: int = 2000
    attempts: int = 8
    lanes: int = 16

    def __post_init__(self):
        one_of("prior", self.prior, {"ds", "gmm"})
        one_of("init", self.init, {"random", "votes"})
        for name in ("restarts", "sweeps", "check_every", "max_updates", "attempts", "lanes"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; got {getattr(self, name)}.")
        if not 0 < self.beta <= 1:
            raise InputError(f"beta must lie in (0, 1]; got {self.beta}.")
        if not 1 < self.growth < np.inf:
            raise InputError(f"growth must be a number above 1; got {self.growth}.")
        if not self.tolerance > 0:
            raise InputError(f"tolerance must be positive; got {self.tolerance}.")
        if self.precision is not None and not self.precision > 0:
            raise InputError(f"precision must be positive; got {self.precision}.")

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Explain every scene of ``problem``."""
        prior = self.match_prior(problem)
        slots, setting = problem.slots, Setting.of(problem)
        starts, first = self.starts(problem, seed), replace(self, beta=1.0, growth=2.0)
        # The schedule is an argument, not an option of the compiled program: a sweep over it, and
        # over where R starts, compiles once.
        schedule = np.float32(self.beta), np.float32(self.growth)
        fixed, smallest = replace(first, init="random"), fewest_at_once(problem.model)
        # Random R is the same for every scene, and one copy is enough (of crowded scenes, many take
        # gigabytes); but with appearance it comes as votes do, to share their program.
        shared = self.init == "random" and smallest == 1

        def run(seen: Observed, count: int) -> Solved:
            r = starts if shared else _first_r(first, setting, slots, seen, starts)
            return _solve(fixed, prior, setting, slots, r, schedule, seen, count)

        solved = in_chunks(run, self.observed(problem), smallest=smallest)
        return explain(problem, solved, prior.slack)

    def observed(self, problem: Problem) -> Observed:
        """The scenes as the equations want them, batch first."""
        slots = problem.slots
        rows = np.arange(problem.size) < problem.count[:, None]
        dummies = np.maximum(len(slots.object) - problem.count, 0)[:, None]
        same = None
        if slots.kind.max(initial=0) > 0:
            same = (problem.kind[:, :, None] == slots.kind).astype(np.float32)
        mass = np.concatenate([rows, dummies], 1).astype(np.float32)
        return Observed(problem.points, same, mass, self._precision(problem).astype(np.float32))

    def match_prior(self, problem: Problem) -> MatchPrior:
        """p(Z): the paper's, unless there is clutter or there are more points than slots."""
        model, columns = problem.model, len(problem.slots.object)
        if model.clutter == 0 and problem.count.max() <= columns:
            log_a = -float(np.log(columns))  # a_mnk = 1 / N
            return MatchPrior(log_a, log_a, log_a, False)
        # Clutter is uniform over a ball whose points spread like the scene's.
        dim = model.pose.scene_dim
        squared_radius = (dim + 2) / dim * scene_radius(model, int(problem.count[0])) ** 2
        volume = pi ** (dim / 2) / gamma(dim / 2 + 1) * squared_radius ** (dim / 2)
        rate = max(model.clutter, FORCED_CLUTTER)
        seen = model.presence * (1 - model.missing)
        log = np.log
        return MatchPrior(float(log(seen)), float(log(rate / volume)), float(log(1 - seen)), True)

    def _precision(self, problem: Problem) -> np.ndarray:
        noise = problem.model.noise
        if self.precision is not None or noise.sigma is None:
            return np.full(len(problem), self.precision or LAMBDA)
        if noise.follows_scale:
            nominal = object_radius(problem.model) / problem.model.unit
            sigma = np.full(len(problem), noise.sigma * nominal)
        else:
            sigma = noise.sigma / problem.frames.unit
        return 1.0 / np.maximum(sigma**2, 1.0 / LAMBDA)

    def starts(self, problem: Problem, seed: int) -> np.ndarray:
        """What is random in the first R of every restart and attempt (the last axis).

        The same for every scene, so that a scene's answer does not depend on its neighbours.
        ``init="random"``: R itself, (M, N, starts). ``"votes"``: a number for each object,
        (K, starts), that draws its vote.
        """
        rng = np.random.default_rng([seed, problem.size])
        count = self.restarts * self.attempts
        if self.init == "random":
            return random_starts((count, problem.size, len(problem.slots.object)), rng)
        if problem.model.pose.basis_size(problem.model.part_size) > 1:
            raise InputError(
                'init="votes" needs parts that fix a pose each: give parts size and orientation, '
                'or use init="random".'
            )
        return rng.random((len(problem.slots.sizes), count), np.float32)


class Setting(NamedTuple):
    """What the compiled code knows of a model.

    ``templates``: that of each object. ``least``: how many parts an object must hold in the
    sparsity constraint.
    """

    templates: tuple[int, ...]
    least: int

    @classmethod
    def of(cls, problem: Problem) -> Setting:
        """The setting of a problem: as in the paper an object holds two parts at the least.

        But where parts may be missing and one fixes a pose, it may well show one only.
        """
        model = problem.model
        basis = model.pose.basis_size(model.part_size)
        least = min(2, basis) if model.missing else 2
        return cls(tuple(problem.slots.template.tolist()), least)


def first_r(
    solver: Variational, setting: Setting, slots: Slots, seen: Observed, starts: Array
) -> Float[Array, "M N A *b"]:
    """The first R of every restart and attempt, for every scene."""
    if solver.init == "random":
        batch = seen.precision.shape
        return jnp.broadcast_to(over(jnp.asarray(starts), len(batch)), (*starts.shape, *batch))
    votes = partial(vote_starts, setting.templates)
    for _ in range(seen.precision.ndim):
        votes = jax.vmap(votes, (None, -1, None), -1)
    return votes(slots, seen, starts)


def update(
    solver: Variational,
    prior: MatchPrior,
    slots: Slots,
    seen: Observed,
    state: State,
) -> tuple[State, Poses, Matching]:
    """One pass through the loop of Algorithm 2: Lambda_k, mu_k, rho, R, and the ELBO.

    mu_0 of GCM-GMM is the mean of the points in the published code; in the solvers' frame that is
    the origin, as in GCM-DS.
    """
    mean0 = over(slots.prior_mean, state.beta.ndim)
    precision = object_precision(slots, seen, state.pose, solver.follow_scale)
    poses = update_poses(slots, seen, state.r, precision, state.beta, mean0)
    log_likelihood = expected_log_likelihood(slots, seen, poses, precision, state.beta)
    if solver.prior == "ds":
        q = assign_ds(prior, seen, log_likelihood, state.columns, solver.sweeps)
    else:
        q = assign_gmm(prior, seen, log_likelihood, state.r)
    elbo = q.elbo - kl_poses(slots, poses, mean0)
    new = state._replace(
        r=q.r, columns=q.columns, pose=poses.mean, elbo=elbo, updates=state.updates + 1
    )
    return new, poses, q


def anneal(solver: Variational, growth: Array | float, before: State, now: State) -> State:
    """The end of the loop of Algorithm 2: has the ELBO converged, and what then."""
    settled = jnp.abs(now.elbo - before.elbo) < solver.tolerance * solver.check_every
    done = (settled & (before.beta >= 1.0)) | (now.updates >= solver.max_updates)
    return now._replace(
        beta=jnp.where(settled, jnp.minimum(growth * before.beta, 1.0), before.beta),
        # The ELBO at another beta is no reference.
        elbo=jnp.where(settled & ~done, -jnp.inf, now.elbo),
        done=done.astype(jnp.float32),
    )


def start_state(slots: Slots, prior: MatchPrior, r: Float[Array, "M N *b"], beta: Array | float):
    """The state before the first update."""
    batch = r.shape[2:]
    columns = jnp.zeros((r.shape[1] + prior.slack, *batch))
    pose = jnp.zeros((len(slots.sizes), len(slots.prior_precision), *batch))
    zero = jnp.zeros(batch)
    return State(r, columns, pose, zero + beta, zero - jnp.inf, zero, zero)


@partial(jax.jit, static_argnames=("solver", "setting"))
def _first_r(solver: Variational, setting: Setting, slots: Slots, seen: Observed, starts: Array):
    """:func:`first_r` for scenes that come batch first."""
    seen = jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), seen)
    return first_r(solver, setting, slots, seen, starts)


class Solved(NamedTuple):
    """The best restart of each scene, batch first."""

    r: Any
    poses: Any
    precision: Any
    elbo: Any
    beta: Any
    converged: Any


@partial(jax.jit, static_argnames=("solver", "prior", "setting"))
def _solve(
    solver: Variational,
    prior: MatchPrior,
    setting: Setting,
    slots: Slots,
    first: Float[Array, "M N A *S"],
    schedule: tuple[Float[Array, ""], Float[Array, ""]],
    seen: Observed,
    count: int,
) -> Solved:
    """All restarts of ``count`` scenes, through lanes; then the best of each.

    ``first`` are the first R of every restart and attempt, for each scene or the same for all;
    ``schedule`` is the first beta, and what it is multiplied by.
    """
    seen = jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), seen)
    scenes = seen.precision.shape[0]
    beta, growth = schedule

    def load(job, attempt):
        scene, restart = job // solver.restarts, job % solver.restarts
        here = jax.tree.map(lambda a: jnp.take(a, scene, axis=-1), seen)
        chosen = restart * solver.attempts + attempt
        r = first[:, :, chosen, scene] if first.ndim == 4 else first[:, :, chosen]
        return here, start_state(slots, prior, r * here.mass[:-1, None], beta)

    def advance(lane):
        here, state = lane

        def leg(_, before):
            def one(_, now):
                return update(solver, prior, slots, here, now)[0]

            return anneal(
                solver, growth, before, jax.lax.fori_loop(0, solver.check_every, one, before)
            )

        state = jax.lax.fori_loop(0, LEGS, leg, state)
        done = state.done > 0
        return (here, state), done, ~sparse(slots, state.r, setting.least)

    def harvest(lane):
        _, state = lane
        return state._replace(done=sparse(slots, state.r, setting.least).astype(jnp.float32))

    kept = run_lanes(
        load,
        advance,
        harvest,
        scenes * solver.restarts,
        count * solver.restarts,
        solver.lanes,
        solver.attempts,
    )

    def best(a):
        return jnp.take(a, pick, axis=-1)

    # A solution that keeps the constraint before one that does not; then the ELBO.
    finished = kept.updates < solver.max_updates
    value = kept.elbo - 1e6 * (1 - kept.done) - 1e6 * (~finished)
    value = jnp.where(jnp.isfinite(value), value, -jnp.inf).reshape(scenes, solver.restarts)
    pick = jnp.arange(scenes) * solver.restarts + value.argmax(1)
    state = jax.tree.map(best, kept)
    mean0 = over(slots.prior_mean, 1)
    precision = object_precision(slots, seen, state.pose, solver.follow_scale)
    poses = update_poses(slots, seen, state.r, precision, state.beta, mean0)
    solved = Solved(state.r, poses.mean, poses.precision, state.elbo, state.beta, best(finished))
    return jax.tree.map(lambda a: jnp.moveaxis(a, -1, 0), solved)


def explain(problem: Problem, solved: Solved, slack: bool) -> Solution:
    """From R to detections: each point to its most probable slot.

    An object is there where it holds enough points to fix its pose; its probability is the mean
    responsibility of its parts.
    """
    slots, model, r = problem.slots, problem.model, solved.r
    is_point = np.arange(problem.size) < problem.count[:, None]
    clutter = is_point * np.clip(1.0 - r.sum(2), 0.0, 1.0) if slack else np.zeros(r.shape[:2])
    scene, point = np.nonzero(is_point & (r.max(2) >= clutter))
    slot = r[scene, point].argmax(1)
    # A slot that two points want goes to the one that wants it more: the last to be written.
    order = np.argsort(r[scene, point, slot], kind="stable")
    scene, point, slot = scene[order], point[order], slot[order]
    parts = np.full((len(problem), len(slots.sizes), max(slots.sizes)), -1, np.int32)
    weight = np.zeros(parts.shape, np.float32)
    where = (scene, slots.object[slot], slots.part[slot])
    parts[where], weight[where] = point, r[scene, point, slot]
    held = (parts >= 0).sum(2)
    needed = np.minimum(model.pose.basis_size(model.part_size), np.array(slots.sizes))
    found = held >= needed
    parts[~found] = -1
    sure = np.where(found, weight.sum(2) / np.maximum(held, 1), 0.0)
    mean_field = MeanField(r, clutter, solved.poses, solved.precision, solved.beta)
    return Solution(
        parts,
        np.asarray(solved.poses),
        np.clip(sure, 0.0, 1.0),
        np.asarray(solved.elbo, float),
        np.asarray(solved.converged, bool),
        mean_field,
    )
