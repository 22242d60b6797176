"""Algorithms 1 and 2 of the paper in plain NumPy: one scene at a time, loops over k and n.

This is the yardstick of the benchmarks and the reference of the tests, not part of the library.
It shares no code with it. Poses are 2D similarities (eq. 2); a template is an (N_k, 2) array,
centred, with ``sum |p|^2 = N_k`` (Appendix B). N x N matrices are indexed ``[m, n]`` where n runs
over the parts of all templates, the (k, n) of the paper flattened; rows m >= M are the dummies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import digamma, gammaln

__all__ = [
    "Run",
    "Settings",
    "elbo",
    "expected_log_likelihood",
    "infer",
    "kl_matches",
    "kl_poses",
    "sinkhorn_knopp",
    "solve",
]

Array = np.ndarray


@dataclass(frozen=True)
class Settings:
    """The constants of sec. 7.1.1.

    ``sweeps=None`` runs Algorithm 1, as it is printed, until rows sum to one within ``balance``.
    """

    prior: Literal["ds", "gmm"] = "ds"
    precision: float = 1e4
    beta: float = 0.05
    beta_max: float = 1.0
    factor: float = 2.0
    tolerance: float = 1e-3
    sweeps: int | None = 2
    balance: float = 1e-10
    restarts: int = 5
    attempts: int = 5
    max_updates: int = 5000


class Run(NamedTuple):
    """What one run of Algorithm 2 ends with."""

    assignment: Float[Array, "N N"]
    pose_mean: Float[Array, "K 4"]
    pose_precision: Float[Array, "K 4 4"]
    elbo: float
    updates: int


class State(NamedTuple):
    """The variational distribution: q(Z) by R, q(Y) by mu and Lambda, GMM weights by alpha."""

    assignment: Float[Array, "M N"]
    pose_mean: Float[Array, "K 4"]
    pose_precision: Float[Array, "K 4 4"]
    weights: Float[Array, " N"]


def design(part: Float[Array, " 2"]) -> Float[Array, "2 4"]:
    """F_kn of eq. 2, without its rows for size and orientation."""
    x, y = part
    return np.array([[1.0, 0.0, x, y], [0.0, 1.0, y, -x]])


def prior_mean(points: Float[Array, "M 2"], prior: str) -> Float[Array, " 4"]:
    """mu_0: zero; GCM-GMM takes the mean of the points for the translation."""
    mean = np.zeros(4)
    if prior == "gmm":
        mean[:2] = points.mean(0)
    return mean


def sinkhorn_knopp(
    matrix: Float[Array, "N N"], sweeps: int | None = None, balance: float = 1e-10
) -> Float[Array, "N N"]:
    """Algorithm 1: rows, then columns, ``sweeps`` times or until doubly stochastic."""
    matrix = matrix.copy()
    for _ in range(10_000 if sweeps is None else sweeps):
        matrix = matrix / matrix.sum(1, keepdims=True)
        matrix = matrix / matrix.sum(0, keepdims=True)
        if sweeps is None and np.abs(matrix.sum(1) - 1).max() < balance:
            break
    return matrix


def update_poses(
    templates: list[Array], points: Array, assignment: Array, mean0: Array, beta: float, lam: float
) -> tuple[Float[Array, "K 4"], Float[Array, "K 4 4"]]:
    """Lambda_k and mu_k, eqs. 15 and 16 (with D_0^-1 mu_0, which is printed as D_0 mu_0)."""
    means, precisions = [], []
    column = 0
    for template in templates:
        precision, total = np.eye(4), mean0.copy()
        for part in template:
            f, r = design(part), assignment[: len(points), column]
            # Sums over m: r_mnk is the only thing in eq. 15 that depends on it.
            precision = precision + beta * lam * r.sum() * f.T @ f
            total = total + beta * lam * f.T @ (r @ points)
            column += 1
        means.append(np.linalg.solve(precision, total))
        precisions.append(precision)
    return np.array(means), np.array(precisions)


def log_density(
    templates: list[Array], points: Array, mean: Array, precision: Array, beta: float, lam: float
) -> Float[Array, "M N"]:
    """E_q[log N(x_m | F_kn y_k, D_kn / beta)]: eq. 11 without log a, and with eq. 13."""
    out = np.zeros((len(points), sum(len(t) for t in templates)))
    column = 0
    for k, template in enumerate(templates):
        covariance = np.linalg.inv(precision[k])
        for part in template:
            f = design(part)
            trace = np.trace(f.T @ f @ covariance)
            away = points - f @ mean[k]
            quadratic = lam * ((away**2).sum(1) + trace)
            # d_kn = 2: log |D / beta| = -2 log(beta lambda).
            out[:, column] = np.log(beta * lam) - np.log(2 * np.pi) - beta / 2 * quadratic
            column += 1
    return out


def update_ds(
    density: Float[Array, "M N"], sweeps: int | None, balance: float = 1e-10
) -> Float[Array, "N N"]:
    """R = SinkhornKnopp(rho), eqs. 11 and 12; dummy rows hold a_mnk = 1/N."""
    n = density.shape[1]
    log_rho = np.full((n, n), -np.log(n))
    log_rho[: len(density)] += density
    # A row's factor is undone by its normalisation; 1e-300 keeps far columns from 0/0.
    log_rho -= log_rho.max(1, keepdims=True)
    return sinkhorn_knopp(np.maximum(np.exp(log_rho), 1e-300), sweeps, balance)


def update_gmm(
    density: Float[Array, "M N"], weights: Float[Array, " N"]
) -> tuple[Float[Array, "M N"], Float[Array, " N"]]:
    """Rows of R by eq. 8 with E[log pi], then q(pi) = Dirichlet(1 + sum_m r_mn)."""
    log_rho = density + digamma(weights) - digamma(weights.sum())
    log_rho -= log_rho.max(1, keepdims=True)
    rho = np.exp(log_rho)
    assignment = rho / rho.sum(1, keepdims=True)
    return assignment, 1.0 + assignment.sum(0)


def expected_log_likelihood(assignment: Array, density: Array) -> float:
    """E_q[log p(X | Y, Z)], first term of the ELBO; dummy rows explain nothing."""
    return float((assignment[: len(density)] * density).sum())


def kl_poses(mean: Array, precision: Array, mean0: Array) -> float:
    """KL(q(Y) || p(Y)), second term (Appendix A), with D_0 = I."""
    total = 0.0
    for mu, lam in zip(mean, precision, strict=True):
        away = mu - mean0
        total += np.trace(np.linalg.inv(lam)) - len(mu) + away @ away + np.linalg.slogdet(lam)[1]
    return 0.5 * total


def kl_matches(assignment: Float[Array, "N N"]) -> float:
    """KL(q(Z) || p(Z)), third term (Appendix A), with a_mnk = 1/N."""
    r = assignment[assignment > 0]
    return float((r * (np.log(r) + np.log(assignment.shape[1]))).sum())


def kl_mixture(assignment: Float[Array, "M N"], weights: Float[Array, " N"]) -> float:
    """KL(q(Z) q(pi) || p(Z | pi) p(pi)) for GCM-GMM, with p(pi) = Dirichlet(1)."""
    expected = digamma(weights) - digamma(weights.sum())
    r = np.maximum(assignment, 1e-300)
    matches = (assignment * (np.log(r) - expected)).sum()
    normaliser = gammaln(weights.sum()) - gammaln(weights).sum() - gammaln(len(weights))
    return float(matches + normaliser + ((weights - 1) * expected).sum())


def elbo(
    templates: list[Array], points: Array, state: State, beta: float, settings: Settings
) -> float:
    """The evidence lower bound, eq. 20."""
    mean0 = prior_mean(points, settings.prior)
    density = log_density(
        templates, points, state.pose_mean, state.pose_precision, beta, settings.precision
    )
    if settings.prior == "ds":
        matches = kl_matches(state.assignment)
    else:
        matches = kl_mixture(state.assignment, state.weights)
    fit = expected_log_likelihood(state.assignment, density)
    return fit - kl_poses(state.pose_mean, state.pose_precision, mean0) - matches


def start(
    templates: list[Array], points: Array, rng: np.random.Generator, settings: Settings
) -> State:
    """R ~ U[0, 1], its rows normalised (lines 1 and 2, as the published code has them)."""
    n = sum(len(t) for t in templates)
    rows = n if settings.prior == "ds" else len(points)
    r = rng.uniform(size=(rows, n))
    r /= r.sum(1, keepdims=True)
    mean, precision = np.zeros((len(templates), 4)), np.stack([np.eye(4)] * len(templates))
    return State(r, mean, precision, np.ones(n))


def update(
    templates: list[Array], points: Array, state: State, beta: float, settings: Settings
) -> State:
    """One pass through the loop of Algorithm 2: Lambda, mu, rho, R."""
    mean0 = prior_mean(points, settings.prior)
    mean, precision = update_poses(
        templates, points, state.assignment, mean0, beta, settings.precision
    )
    density = log_density(templates, points, mean, precision, beta, settings.precision)
    if settings.prior == "ds":
        assignment = update_ds(density, settings.sweeps, settings.balance)
        return State(assignment, mean, precision, state.weights)
    assignment, weights = update_gmm(density, state.weights)
    return State(assignment, mean, precision, weights)


def infer(
    templates: list[Array],
    points: Float[Array, "M 2"],
    rng: np.random.Generator,
    settings: Settings = Settings(),
) -> Run:
    """Algorithm 2 from one random start."""
    state, beta = start(templates, points, rng, settings), settings.beta
    bound, updates = -np.inf, 0
    while updates < settings.max_updates:
        updates += 1
        state = update(templates, points, state, beta, settings)
        before, bound = bound, elbo(templates, points, state, beta, settings)
        if abs(bound - before) < settings.tolerance:
            if beta >= settings.beta_max:
                break
            beta = min(beta * settings.factor, settings.beta_max)
    return Run(state.assignment, state.pose_mean, state.pose_precision, bound, updates)


def is_sparse(templates: list[Array], points: Array, assignment: Array) -> bool:
    """Whether no object explains a single part only (the constraint of sec. 7.1.1)."""
    column = 0
    for template in templates:
        own = assignment[: len(points), column : column + len(template)]
        column += len(template)
        if (own > 0.9).any() and own.sum() < 2:
            return False
    return True


def solve(
    templates: list[Array],
    points: Float[Array, "M 2"],
    seed: int = 0,
    settings: Settings = Settings(),
) -> Run:
    """The best ELBO of ``restarts`` runs; a run that breaks the sparsity constraint is redrawn."""
    rng = np.random.default_rng(seed)
    best, spent = None, 0
    for _ in range(settings.restarts):
        run = infer(templates, points, rng, settings)
        spent += run.updates
        for _ in range(settings.attempts - 1):
            if is_sparse(templates, points, run.assignment):
                break
            run = infer(templates, points, rng, settings)
            spent += run.updates
        if best is None or run.elbo > best.elbo:
            best = run
    assert best is not None
    return best._replace(updates=spent)
