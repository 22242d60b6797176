"""How well any method could do: the Cramer-Rao bound on the SMSE of a learned template.

Examples are x = pose(p + noise), the pose unknown and without preference. What p can be learned
from is their shapes; so the Fisher information is that of the likelihood with poses integrated
out, along the 2N - 4 directions in which the shape of p changes, the noise level unknown, too. The
bound on the mean squared error is the trace of its inverse over S N, p being scaled to
sum |p_n|^2 = N.

With little noise and the parts identified, all directions are alike, and it is

    (2N - 4) sigma^2 / (S N).

Where parts come in any order, the likelihood is a mixture over the N! ways to list them, and the
bound is higher: infinite for a template that a turn carries into itself, because its asymmetry has
no first-order effect on such examples (``symmetry``). It binds unbiased estimates only: one that
may decide for symmetry can do better.

The derivatives are JAX's, of the evidence that inference uses (``partwise.evidence``): nothing here
is shared with EM.
"""

from __future__ import annotations

from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np

from partwise._checks import InputError
from partwise.evidence import Match, TemplateNoise
from partwise.model import Model
from partwise.plane import from_complex, normal, to_complex
from partwise.problem import slots_of
from partwise.templates import Template

__all__ = ["cramer_rao", "simple_bound"]

SINGULAR = 1e-4
"""Information in one direction, relative to the most in any, that counts as none."""

CHUNK = 4096

MOST_PARTS = 5


def simple_bound(template: Template, sigma: float, examples: int) -> float:
    """(2N - 4) sigma^2 / (S N): parts identified, little noise; sigma in the template's frame."""
    parts = len(template)
    return (2 * parts - 4) * (sigma / template.radius) ** 2 / (examples * parts)


def cramer_rao(
    template: Template,
    sigma: float,
    examples: int,
    *,
    identified: bool = False,
    draws: int = 20_000,
    seed: int = 0,
) -> float:
    """The bound for ``examples`` examples, its expectation taken over so many ``draws``."""
    parts = len(template)
    if parts > MOST_PARTS and not identified:
        raise InputError(
            f"cramer_rao sums over all orders of the parts: at most {MOST_PARTS}, not {parts}."
        )
    if not sigma > 0:
        return 0.0
    p = from_complex(normal(to_complex(template.positions)))
    level = sigma / template.radius
    rng = np.random.default_rng(seed)
    x = (p + level * rng.standard_normal((draws, parts, 2))).astype(np.float32)
    every = [range(parts)] if identified else permutations(range(parts))
    ways = np.array([list(w) for w in every])
    score = _score(Model([Template(p)]), ways)
    theta = np.concatenate([p.ravel(), [np.log(level)]]).astype(np.float32)
    starts = range(0, draws, CHUNK)
    g = np.concatenate([np.asarray(score(theta, x[i : i + CHUNK])) for i in starts]).astype(float)
    # Directions that change the shape: not a shift, a turn or a scale.
    turned = np.stack([-p[:, 1], p[:, 0]], 1)
    shift = np.tile(np.eye(2), (parts, 1)).T
    poses = np.stack([*shift, p.ravel(), turned.ravel()])
    shape = np.linalg.svd(poses)[2][4:]
    g = np.concatenate([g[:, :-1] @ shape.T, g[:, -1:]], 1)
    information = g.T @ g / draws
    values = np.linalg.eigvalsh(information[:-1, :-1])
    if values[0] < SINGULAR * values[-1] or values[-1] < SINGULAR / level**2:
        return float("inf")
    return float(np.trace(np.linalg.inv(information)[:-1, :-1]) / (examples * parts))


def _score(model: Model, ways: np.ndarray):
    """Gradients of each example's log likelihood with respect to parts and log sigma."""
    slots, parts = slots_of(model), ways.shape[1]
    eye = jnp.broadcast_to(jnp.eye(2), (parts, 2, 2))

    def log_likelihood(theta, x):
        p, sigma = theta[:-1].reshape(parts, 2), jnp.exp(theta[-1])
        down = jnp.array([1.0, -1.0])
        design = jnp.concatenate([eye, jnp.stack([p, p[:, ::-1] * down], 1)], 2)  # eq. 2

        def of(way):
            match = Match(design[way], jnp.zeros((parts, 2)), x)
            return TemplateNoise.of(slots, match, 0.0).log_evidence(sigma)

        return jax.scipy.special.logsumexp(jax.vmap(of)(ways))

    return jax.jit(jax.vmap(jax.grad(log_likelihood), (None, 0)))
