"""Inference, watched: the variational distribution after every update of one run of Algorithm 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from partwise._checks import InputError
from partwise.inference import PoseChange, user_order
from partwise.model import Model
from partwise.problem import check, problems
from partwise.scenes import SceneBatch
from partwise.solvers.mean_field import sparse
from partwise.solvers.variational import (
    Setting,
    Variational,
    anneal,
    first_r,
    start_state,
    update,
)

__all__ = ["Trace", "trace"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Trace:
    """One row an update, in the user's frames and order (see :class:`partwise.Posterior`).

    ``elbo`` is comparable among updates at the same ``beta`` only. ``noise`` is the standard
    deviation of the observations under that beta, 1 / sqrt(beta lambda). ``sparse``: whether the
    last R keeps the sparsity constraint of sec. 7.1.1.
    """

    assignment: Float[Array, "T M N"]
    pose_mean: Float[Array, "T K d"]
    pose_precision: Float[Array, "T K d d"]
    beta: Float[Array, " T"]
    elbo: Float[Array, " T"]
    noise: Float[Array, " T"]
    object: Int[Array, " N"]
    sparse: bool = True

    def __len__(self) -> int:
        return len(self.beta)

    def plot(self, ax: Any = None) -> Any:
        """Draw the ELBO and beta. See :func:`partwise.plotting.plot_trace`."""
        from partwise.plotting import plot_trace

        return plot_trace(self, ax)


_update = jax.jit(update, static_argnames=("solver", "prior"))
"""Compiled once for all restarts."""


def trace(
    model: Model,
    scene: Any,
    solver: Variational | None = None,
    seed: int = 0,
    restart: int = 0,
    attempt: int = 0,
) -> Trace:
    """Run one restart of ``solver`` on one scene and keep every update.

    ``attempt``: from which of the restart's first R; the solver takes the next one where the
    solution breaks the sparsity constraint (:attr:`Trace.sparse`).
    """
    solver = solver or Variational()
    batch, _ = SceneBatch.of(scene)
    check(model, batch)
    if len(batch) != 1 or batch.counts[0] == 0:
        raise InputError("trace: give one scene with at least one point.")
    if not 0 <= restart < solver.restarts:
        raise InputError(f"trace: restart must be below {solver.restarts}; got {restart}.")
    if not 0 <= attempt < solver.attempts:
        raise InputError(f"trace: attempt must be below {solver.attempts}; got {attempt}.")
    problem = problems(model, batch)[0]
    prior, slots = solver.match_prior(problem), problem.slots
    seen = jax.tree.map(lambda a: jnp.asarray(a[0]), solver.observed(problem))
    setting = Setting.of(problem)
    first = first_r(solver, setting, slots, seen, solver.starts(problem, seed))
    r = first[:, :, restart * solver.attempts + attempt] * seen.mass[:-1, None]
    state = start_state(slots, prior, r, solver.beta)
    rows: list[tuple[Array, ...]] = []
    while not state.done:
        before = state
        for _ in range(solver.check_every):
            state, poses, _ = _update(solver, prior, slots, seen, state)
            kept = (state.r, poses.mean, poses.precision, state.beta, state.elbo)
            rows.append(tuple(np.asarray(a, float) for a in kept))
        state = anneal(solver, solver.growth, before, state)
    keeps = bool(sparse(slots, state.r, setting.least))
    r, mean, precision, beta, elbo = (np.stack(column) for column in zip(*rows, strict=True))
    objects, columns, owner = user_order(problem)
    back = np.argsort(problem.order[0, : problem.count[0]])
    mean, precision = PoseChange.of(problem).moments(mean, precision)
    noise = float(problem.frames.unit[0]) / np.sqrt(beta * float(seen.precision))
    return Trace(
        r[:, back][:, :, columns],
        mean[:, objects],
        precision[:, objects],
        beta,
        elbo,
        noise,
        owner,
        keeps,
    )
