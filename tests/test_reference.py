"""The slow reference itself: its ELBO against Monte Carlo, its monotony, Algorithm 1."""

import numpy as np
import pytest

from benchmarks import reference as ref
from partwise import shapes, simulate_constellations

SQUARE, TRIANGLE = (t.normalised().parts for t in (shapes.square(), shapes.triangle()))
TEMPLATES = [SQUARE, TRIANGLE]


def _points(seed: int, count: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, 2))


def _state(points, settings, beta, steps, seed=0):
    state = ref.start(TEMPLATES, points, np.random.default_rng(seed), settings)
    for _ in range(steps):
        state = ref.update(TEMPLATES, points, state, beta, settings)
    return state


@pytest.mark.parametrize("count", [4, 7])
def test_elbo_is_the_expectation_that_it_bounds(count):
    """E_q[log p(X, Y, Z) - log q(Y, Z)], drawn: q(Z) row by row, q(Y) Gaussian."""
    rng = np.random.default_rng(1)
    settings, beta = ref.Settings(precision=30.0), 0.3
    points = _points(2, count)
    state = _state(points, settings, beta, 3)
    n = state.assignment.shape[1]
    rows = state.assignment / state.assignment.sum(1, keepdims=True)
    state = state._replace(assignment=rows)
    draws = 40_000
    poses = np.stack(
        [
            rng.multivariate_normal(mu, np.linalg.inv(lam), draws)
            for mu, lam in zip(state.pose_mean, state.pose_precision, strict=True)
        ],
        1,
    )
    columns = np.stack([rng.choice(n, draws, p=row) for row in rows], 1)
    designs = np.stack([ref.design(p) for t in TEMPLATES for p in t])
    owner = np.repeat([0, 1], [4, 3])
    total = np.zeros(draws)
    for m in range(n):
        z = columns[:, m]
        total += -np.log(n) - np.log(rows[m, z])
        if m < count:
            predicted = np.einsum("sgd,sd->sg", designs[z], poses[np.arange(draws), owner[z]])
            away = ((points[m] - predicted) ** 2).sum(1)
            precision = beta * settings.precision
            total += np.log(precision / (2 * np.pi)) - precision / 2 * away
    for k, (mu, lam) in enumerate(zip(state.pose_mean, state.pose_precision, strict=True)):
        y = poses[:, k]
        total += -0.5 * (y**2).sum(1) - 2 * np.log(2 * np.pi)
        away = y - mu
        inner = np.einsum("si,ij,sj->s", away, lam, away)
        total -= -0.5 * inner - 2 * np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(lam)[1]
    error = total.std() / np.sqrt(draws)
    bound = ref.elbo(TEMPLATES, points, state, beta, settings)
    assert abs(bound - total.mean()) < 5 * error + 1e-9
    assert error < 0.5


@pytest.mark.parametrize("seed", range(5))
def test_gmm_updates_never_lower_the_elbo(seed):
    settings, beta, points = ref.Settings(prior="gmm", precision=1e3), 0.2, _points(seed)
    state = _state(points, settings, beta, 1, seed)
    bound = ref.elbo(TEMPLATES, points, state, beta, settings)
    for _ in range(25):
        state = ref.update(TEMPLATES, points, state, beta, settings)
        after = ref.elbo(TEMPLATES, points, state, beta, settings)
        assert after >= bound - 1e-7 * abs(bound)
        bound = after


def test_poses_maximise_the_elbo():
    settings, beta, points = ref.Settings(precision=100.0), 0.5, _points(3)
    state = _state(points, settings, beta, 4)
    mean, precision = ref.update_poses(
        TEMPLATES, points, state.assignment, np.zeros(4), beta, settings.precision
    )
    best = state._replace(pose_mean=mean, pose_precision=precision)
    bound = ref.elbo(TEMPLATES, points, best, beta, settings)
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = best._replace(
            pose_mean=mean + 0.05 * rng.standard_normal(mean.shape),
            pose_precision=precision * rng.uniform(0.9, 1.1),
        )
        assert ref.elbo(TEMPLATES, points, moved, beta, settings) < bound


def test_sinkhorn_is_doubly_stochastic():
    matrix = np.random.default_rng(0).uniform(0.01, 1, (6, 6))
    done = ref.sinkhorn_knopp(matrix)
    np.testing.assert_allclose(done.sum(0), 1, atol=1e-9)
    np.testing.assert_allclose(done.sum(1), 1, atol=1e-9)
    # It only rescales: cross-ratios stay.
    ratio = matrix[0, 0] * matrix[1, 1] / (matrix[0, 1] * matrix[1, 0])
    assert done[0, 0] * done[1, 1] / (done[0, 1] * done[1, 0]) == pytest.approx(ratio)
    twice = ref.sinkhorn_knopp(matrix, 2)
    np.testing.assert_allclose(twice.sum(0), 1, atol=1e-12)
    assert np.abs(twice.sum(1) - 1).max() > 1e-9


@pytest.mark.parametrize("prior", ["ds", "gmm"])
def test_a_lone_square_is_recognised(prior):
    labelled = simulate_constellations(64, 0.0, 3)
    alone = next(s.parts for s in labelled.scenes if len(s) == 4)
    run = ref.solve([SQUARE], alone, 0, ref.Settings(prior=prior))
    predicted = np.stack([ref.design(p) @ run.pose_mean[0] for p in SQUARE])
    nearest = np.sqrt(((predicted[:, None] - alone) ** 2).sum(2)).min(1)
    assert nearest.max() < 0.01
    assert run.updates >= 5 * 6


def test_sparsity_constraint():
    one_part = np.zeros((3, 7))
    one_part[0, 0], one_part[1, 4], one_part[2, 5] = 1.0, 1.0, 1.0
    assert not ref.is_sparse(TEMPLATES, np.zeros((3, 2)), one_part)
    one_part[0, 0], one_part[0, 6] = 0.0, 1.0
    assert ref.is_sparse(TEMPLATES, np.zeros((3, 2)), one_part)
