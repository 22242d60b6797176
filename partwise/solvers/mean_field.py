"""The equations of variational inference (sec. 4 and Appendix A).

Written for one scene. Axes that trail along (``*b`` in the shapes) are scenes in a batch; see
``partwise._small`` for why they come last. M points, N slots, K objects, G features, d numbers a
pose.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, gammaln
from jaxtyping import Float

from partwise._small import inverse_and_logdet, largest, over, total
from partwise._types import Array
from partwise.frames import SCENE_RADIUS
from partwise.problem import Slots
from partwise.sinkhorn import scale

__all__ = [
    "MatchPrior",
    "Matching",
    "Observed",
    "Poses",
    "assign_ds",
    "assign_gmm",
    "by_object",
    "expected_log_likelihood",
    "kl_poses",
    "object_precision",
    "of_slot",
    "update_poses",
]

NEVER = -1e4
"""The log weight of a match between parts of different types."""


class Observed(NamedTuple):
    """A scene, as the equations need it.

    ``same`` is 1 where the types of a point and a slot agree (None: untyped), ``mass`` the row sums
    of R: 1 for points, 0 for padding, and for the last row the number of dummy rows. ``precision``
    is lambda.
    """

    x: Float[Array, "M G *b"]
    same: Float[Array, "M N *b"] | None
    mass: Float[Array, "M1 *b"]
    precision: Float[Array, "*b"]


class MatchPrior(NamedTuple):
    """p(Z): log weights of a match, of a point that is clutter, and of a slot that is not seen.

    Without ``slack`` this is the paper's: all are log a = -log N, and there is no clutter.
    """

    matched: float
    clutter: float | Array
    hidden: float
    slack: bool


class Poses(NamedTuple):
    """q(Y): means, precisions Lambda, covariances, and log |Lambda|."""

    mean: Float[Array, "K d *b"]
    precision: Float[Array, "K d d *b"]
    covariance: Float[Array, "K d d *b"]
    logdet: Float[Array, "K *b"]


class Matching(NamedTuple):
    """q(Z), and its share of the ELBO: E_q[log p(X|Y,Z)] - KL(q(Z) || p(Z)).

    ``columns`` are the log potentials from which the next Sinkhorn scaling starts.
    """

    r: Float[Array, "M N *b"]
    clutter: Float[Array, "M *b"]
    columns: Float[Array, "N1 *b"]
    elbo: Float[Array, "*b"]


def by_object(slots: Slots, a: Float[Array, "N ..."]) -> Float[Array, "K ..."]:
    """Sum over the slots of each object."""
    stops = np.cumsum(slots.sizes)
    return jnp.stack([total(a[j - n : j], 0) for j, n in zip(stops, slots.sizes, strict=True)])


def of_slot(slots: Slots, a: Float[Array, "K ..."]) -> Float[Array, "N ..."]:
    """For each slot, the row of its object."""
    return jnp.concatenate(
        [jnp.broadcast_to(a[k][None], (n, *a.shape[1:])) for k, n in enumerate(slots.sizes)]
    )


def object_precision(
    slots: Slots, seen: Observed, pose: Float[Array, "K d *b"], follow_scale: bool
) -> Float[Array, "K *b"]:
    """Each object's lambda: constant (eq. 3), or falling with the square of its scale.

    Noise that lives in the template's frame grows with the object. lambda is then the precision of
    an object of nominal size. The size is read off the predicted parts, so that it means the same
    in every pose family.
    """
    lam = jnp.broadcast_to(seen.precision, (len(slots.sizes), *seen.precision.shape))
    if not follow_scale:
        return lam
    batch, g = pose.ndim - 2, slots.geometry
    counts = over(jnp.asarray(slots.sizes, jnp.float32), batch)
    parts = total(over(slots.design[:, :g], batch) * of_slot(slots, pose)[:, None], 2)
    centre = by_object(slots, parts) / counts[:, None]
    spread = by_object(slots, total((parts - of_slot(slots, centre)) ** 2, 1))
    nominal = counts * SCENE_RADIUS**2
    return lam * jnp.clip(nominal / jnp.maximum(spread, 1e-12), 1e-4, 1e4)


def _gram(slots: Slots, per_slot: Float[Array, "N *b"]) -> Float[Array, "N d d *b"]:
    """F_n^T D_n^-1 F_n, with ``per_slot`` the geometric precision lambda of each slot."""
    batch = per_slot.ndim - 1
    gram = per_slot[:, None, None] * over(slots.gram, batch)
    if slots.inverse_variance.shape[1]:
        gram = gram + over(slots.gram_appearance, batch)
    return gram


def update_poses(
    slots: Slots,
    seen: Observed,
    r: Float[Array, "M N *b"],
    precision: Float[Array, "K *b"],
    beta: Float[Array, "*b"],
    prior_mean: Float[Array, "d *#b"],
) -> Poses:
    """q(Y): Lambda_k and mu_k (the two equations after eq. 15; D_0 mu_0 there is D_0^-1 mu_0)."""
    batch, g = r.ndim - 2, slots.geometry
    design, lam = over(slots.design, batch), of_slot(slots, precision)
    weight = total(r, 0)
    # sum_m r_mn (x_m - m_n), then F_n^T D_n^-1 of it.
    residual = total(r[:, :, None] * seen.x[:, None], 0) - weight[:, None] * over(slots.mean, batch)
    votes = lam[:, None] * total(design[:, :g] * residual[:, :g, None], 1)
    if slots.inverse_variance.shape[1]:
        inverse = over(slots.inverse_variance, batch)
        votes = votes + total(design[:, g:] * (inverse * residual[:, g:])[:, :, None], 1)
    d0_inverse = over(slots.prior_precision, batch)
    eye = over(jnp.eye(len(slots.prior_precision)), batch)
    precision_matrix = (d0_inverse[:, None] * eye)[None] + beta * by_object(
        slots, weight[:, None, None] * _gram(slots, lam)
    )
    right = (d0_inverse * prior_mean)[None] + beta * by_object(slots, votes)
    covariance, logdet = _inverse(precision_matrix, slots.pose_dim)
    mean = total(covariance * right[:, None], 2)
    return Poses(mean, precision_matrix, covariance, logdet)


def _inverse(
    precision: Float[Array, "K d d *b"], pose: int
) -> tuple[Float[Array, "K d d *b"], Float[Array, "K *b"]]:
    """Lambda_k^-1 and log |Lambda_k|: geometry and appearance do not mix (sec. 3, F_kn)."""
    if pose == precision.shape[1]:
        return inverse_and_logdet(precision)
    geometry, first = inverse_and_logdet(precision[:, :pose, :pose])
    looks, second = inverse_and_logdet(precision[:, pose:, pose:])
    none = [(0, 0)] * (precision.ndim - 3)
    factors = precision.shape[1] - pose
    upper = jnp.pad(geometry, [(0, 0), (0, factors), (0, factors), *none])
    lower = jnp.pad(looks, [(0, 0), (pose, 0), (pose, 0), *none])
    return upper + lower, first + second


def expected_log_likelihood(
    slots: Slots,
    seen: Observed,
    poses: Poses,
    precision: Float[Array, "K *b"],
    beta: Float[Array, "*b"],
) -> Float[Array, "M N *b"]:
    """E_q(y)[log N(x_m | F_kn y_k + m_kn, D_kn / beta)]: log rho_mnk without log a_mnk."""
    batch, g = precision.ndim - 1, slots.geometry
    lam = of_slot(slots, precision)
    predicted = total(over(slots.design, batch) * of_slot(slots, poses.mean)[:, None], 2)
    predicted = predicted + over(slots.mean, batch)
    error = (seen.x[:, None] - predicted[None]) ** 2
    square = lam[None] * total(error[:, :, :g], 2)
    log_det = g * jnp.log(lam * beta / (2 * np.pi))
    if slots.inverse_variance.shape[1]:
        inverse = over(slots.inverse_variance, batch)
        square = square + total(inverse[None] * error[:, :, g:], 2)
        used = slots.inverse_variance > 0
        constant = jnp.log(jnp.where(used, slots.inverse_variance / (2 * np.pi), 1.0)).sum(1)
        log_det = log_det + over(constant, batch) + over(used.sum(1), batch) * jnp.log(beta)
    trace = total(_gram(slots, lam) * of_slot(slots, poses.covariance), (1, 2))
    return 0.5 * log_det[None] - 0.5 * beta * (square + trace[None])


def _log_rho(prior: MatchPrior, seen: Observed, log_likelihood, log_a) -> Float[Array, "M N1 *b"]:
    """Unnormalised log q(Z), with a column for clutter where there may be any."""
    log_rho = log_likelihood + log_a
    if seen.same is not None:
        log_rho = log_rho + NEVER * (1 - seen.same)
    if prior.slack:
        column = jnp.zeros_like(log_rho[:, :1]) + prior.clutter
        log_rho = jnp.concatenate([log_rho, column], 1)
    return log_rho


def assign_ds(
    prior: MatchPrior,
    seen: Observed,
    log_likelihood: Float[Array, "M N *b"],
    columns: Float[Array, "N1 *b"],
    sweeps: int,
) -> Matching:
    """GCM-DS: log rho, its dummy rows, and Algorithm 1.

    With ``R = rho exp(-rows - columns)`` every ``log(rho / R)`` is a sum of two potentials, so both
    terms of the ELBO that hold R come down to row and column sums.
    """
    points, count = log_likelihood.shape[:2]
    log_rho = _log_rho(prior, seen, log_likelihood, prior.matched)
    dummy = jnp.full_like(log_rho[:1], prior.hidden)
    scaling = scale(
        jnp.concatenate([log_rho, dummy]), columns, seen.mass, prior.slack, prior.slack, sweeps
    )
    row_sums, column_sums = total(scaling.matrix, 1), total(scaling.matrix, 0)
    elbo = total(row_sums * scaling.rows, 0) + total(column_sums * scaling.columns, 0)
    if not prior.slack:
        # The last row stands for ``mass`` equal dummy rows.
        elbo = elbo + row_sums[points] * jnp.log(jnp.maximum(seen.mass[points], 1.0))
    r = scaling.matrix[:points]
    clutter = r[:, count] if prior.slack else jnp.zeros_like(r[:, 0])
    return Matching(r[:, :count], clutter, scaling.columns, elbo)


def assign_gmm(
    prior: MatchPrior,
    seen: Observed,
    log_likelihood: Float[Array, "M N *b"],
    r: Float[Array, "M N *b"],
) -> Matching:
    """GCM-GMM: eq. (p_Z), every point by itself, with mixing weights pi ~ Dirichlet(1).

    ``r`` are the responsibilities so far: q(pi) is Dirichlet(1 + sum_m r_mn).
    """
    count = log_likelihood.shape[1]
    alpha = 1.0 + total(r, 0)
    alpha_sum = total(alpha, 0)
    log_pi = digamma(alpha) - digamma(alpha_sum)[None]
    # Here a point is drawn from one of the components: the rate of clutter becomes its share.
    share = prior.clutter - jnp.log(jnp.maximum(total(seen.mass[:-1], 0), 1.0))
    log_rho = _log_rho(prior._replace(clutter=share), seen, log_likelihood, log_pi[None])
    top = largest(log_rho, 1)
    rho = jnp.exp(log_rho - top[:, None])
    norm = total(rho, 1)
    is_point = seen.mass[:-1]
    new = rho / norm[:, None] * is_point[:, None]
    # sum r (log rho - log r) is the log normaliser of each point.
    kl_pi = gammaln(alpha_sum) - total(gammaln(alpha), 0) - gammaln(float(count))
    kl_pi = kl_pi + total((alpha - 1.0) * log_pi, 0)
    elbo = total(is_point * (top + jnp.log(norm)), 0) - kl_pi
    clutter = new[:, count] if prior.slack else jnp.zeros_like(new[:, 0])
    columns = jnp.zeros_like(log_rho[0])
    return Matching(new[:, :count], clutter, columns, elbo)


def kl_poses(slots: Slots, poses: Poses, prior_mean: Float[Array, "d *#b"]) -> Float[Array, "*b"]:
    """KL(q(Y) || p(Y)), Appendix A."""
    batch, d = poses.mean.ndim - 2, len(slots.prior_precision)
    variance = jnp.stack([poses.covariance[:, i, i] for i in range(d)], 1)
    d0_inverse = over(slots.prior_precision, batch)[None]
    inner = total(d0_inverse * (variance + (poses.mean - prior_mean[None]) ** 2), 1)
    log_d0 = -jnp.log(slots.prior_precision).sum()
    return 0.5 * total(inner - d + log_d0 + poses.logdet, 0)


def sparse(slots: Slots, r: Float[Array, "M N *b"], least: int = 2) -> Array:
    """Whether R keeps the sparsity constraint of sec. 7.1.1.

    It does not where some object holds a part with r > 0.9, but fewer than ``least`` parts in all.
    """
    weight = by_object(slots, total(r, 0))
    strongest = largest(r, 0)
    stops = np.cumsum(slots.sizes)
    top = jnp.stack(
        [largest(strongest[j - n : j], 0) for j, n in zip(stops, slots.sizes, strict=True)]
    )
    # A template of one part can hold no more.
    enough = over(jnp.minimum(jnp.asarray(slots.sizes), least) - 1e-2, r.ndim - 2)
    return ~jax.lax.reduce_or((top > 0.9) & (weight < enough), axes=(0,))
