"""Small-axis algebra and Algorithm 1, beside NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.reference import sinkhorn_knopp
from partwise._small import inverse_and_logdet, largest, total
from partwise.sinkhorn import scale, sinkhorn


@pytest.mark.parametrize("length", [1, 2, 5, 31, 40])
def test_sums_and_maxima_are_numpys(length):
    a = np.random.default_rng(length).normal(size=(3, length, 4)).astype(np.float32)
    np.testing.assert_allclose(total(jnp.asarray(a), 1), a.sum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(largest(jnp.asarray(a), 1), a.max(1))
    both = total(jnp.asarray(a), (0, 1))
    np.testing.assert_allclose(both, a.sum((0, 1)), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("d", [1, 4, 8, 16])
def test_inverse_of_positive_definite_matrices(d):
    rng = np.random.default_rng(d)
    half = rng.normal(size=(3, d, 2 * d, 5))
    a = np.einsum("kinb,kjnb->kijb", half, half)
    inverse, logdet = inverse_and_logdet(jnp.asarray(a, jnp.float32))
    batched = np.moveaxis(a, -1, 0)
    np.testing.assert_allclose(
        np.moveaxis(np.asarray(inverse), -1, 0), np.linalg.inv(batched), rtol=2e-3, atol=1e-4
    )
    expected = np.linalg.slogdet(batched)[1]
    np.testing.assert_allclose(np.asarray(logdet).T, expected, rtol=1e-4, atol=1e-4)


def test_algorithm_1_makes_rows_and_columns_sum_to_one():
    matrix = np.random.default_rng(0).random((9, 9)) ** 4
    result = np.asarray(sinkhorn(jnp.asarray(matrix)))
    np.testing.assert_allclose(result.sum(0), 1, atol=1e-5)
    np.testing.assert_allclose(result.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(result, sinkhorn_knopp(matrix), atol=1e-4)


def test_one_row_stands_for_all_dummy_rows():
    """Equal dummy rows stay equal, so that one row of their total mass scales like all of them."""
    rng = np.random.default_rng(1)
    n, points = 8, 5
    log_rho = rng.normal(size=(points, n)) * 3
    full = np.concatenate([np.exp(log_rho), np.ones((n - points, n))])
    expected = sinkhorn_knopp(full)
    collapsed = jnp.concatenate([log_rho, np.zeros((1, n))])
    mass = jnp.array([1.0] * points + [n - points])
    columns = jnp.zeros(n)
    sweeps = jax.jit(lambda columns: scale(collapsed, columns, mass, False, False, 4))
    for _ in range(50):  # warm starts: 50 times 4 sweeps are 200
        scaling = sweeps(columns)
        columns = scaling.columns
    np.testing.assert_allclose(scaling.matrix[:points], expected[:points], atol=1e-4)
    np.testing.assert_allclose(scaling.matrix[points], expected[points:].sum(0), atol=1e-4)
    rebuilt = np.exp(
        np.asarray(collapsed) - np.asarray(scaling.rows)[:, None] - np.asarray(columns)[None]
    )
    np.testing.assert_allclose(rebuilt, scaling.matrix, rtol=1e-3, atol=1e-5)


def test_a_batch_is_many_single_scenes():
    rng = np.random.default_rng(2)
    log_rho = jnp.asarray(rng.normal(size=(4, 6, 3)), jnp.float32)
    mass = jnp.asarray([1.0, 1.0, 1.0, 3.0])
    batch = scale(log_rho, jnp.zeros((6, 3)), jnp.repeat(mass[:, None], 3, 1), False, False, 3)
    for b in range(3):
        one = scale(log_rho[..., b], jnp.zeros(6), mass, False, False, 3)
        for a, c in zip(jax.tree.leaves(one), jax.tree.leaves(batch), strict=True):
            np.testing.assert_allclose(a, c[..., b], rtol=1e-5, atol=1e-6)
