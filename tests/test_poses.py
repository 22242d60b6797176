"""Pose families: eq. 2, rigidly attached parts, minimal bases, matrices."""

import numpy as np
import pytest

from partwise.poses import FAMILIES, Affine2D, Similarity2D, Translation

RNG = np.random.default_rng(0)
ALL = list(FAMILIES.items())
DIRECTED = [(n, f) for n, f in ALL if f.template_dim == 2 and f.scene_dim == 2]


def _pose(family, seed=1):
    return np.random.default_rng(seed).normal(size=family.dim)


def test_equation_2():
    theta, phi, size, scale = 0.7, 0.3, 0.5, 2.0
    part = np.array([1.0, 2.0, size * np.cos(phi), size * np.sin(phi)])
    family = Similarity2D()
    pose = family.from_parameters((3.0, -1.0), scale, theta)
    x = family.design(part) @ pose
    c, s = scale * np.cos(theta), scale * np.sin(theta)
    assert x[:2] == pytest.approx([3 + c * 1 + s * 2, -1 + c * 2 - s * 1])
    assert np.hypot(*x[2:]) == pytest.approx(scale * size)
    assert np.arctan2(x[3], x[2]) == pytest.approx(theta + phi)


def test_positions_turn_clockwise():
    family = Similarity2D()
    moved = family.apply(family.from_parameters(angle=np.pi / 2), np.array([[1.0, 0.0]]))
    assert moved[0] == pytest.approx([0.0, -1.0])


@pytest.mark.parametrize(("name", "family"), DIRECTED)
def test_a_part_attached_to_another_moves_with_it(name, family):
    """The direction of a part (its y-axis down) is where its rigidly attached tip points."""
    if name == "translation":
        pytest.skip("a translation leaves directions alone; see the next test")
    base, tip = np.array([0.4, -0.3]), np.array([0.9, 0.5])
    down = np.array([1.0, -1.0])
    part = np.concatenate([base, down * (tip - base)])
    pose = _pose(family)
    moved_tip = family.apply(pose, tip[None])[0]
    moved = family.apply(pose, part[None])[0]
    assert moved[2:] == pytest.approx(down * (moved_tip - moved[:2]))


def test_a_translation_keeps_directions():
    moved = Translation().apply(np.array([5.0, 6.0]), np.array([[1.0, 2.0, 0.3, 0.4]]))
    assert moved[0] == pytest.approx([6.0, 8.0, 0.3, 0.4])


@pytest.mark.parametrize(("name", "family"), ALL)
def test_solve_from_a_minimal_basis(name, family):
    size = family.basis_size(family.scene_dim)
    parts = RNG.normal(size=(size, family.template_dim))
    pose = _pose(family)
    assert family.solve(parts, family.apply(pose, parts)) == pytest.approx(pose)
    assert (size - 1) * family.scene_dim < family.dim <= size * family.scene_dim


def test_one_directed_part_fixes_a_similarity():
    family = Similarity2D()
    part = np.array([[0.2, 0.5, 0.7, -0.1]])
    pose = _pose(family)
    assert family.basis_size(4) == 1
    assert family.solve(part, family.apply(pose, part)) == pytest.approx(pose)


@pytest.mark.parametrize(("name", "family"), ALL)
def test_matrices(name, family):
    poses = RNG.normal(size=(3, 2, family.dim))
    matrix = family.matrix(poses)
    assert matrix.shape == (3, 2, family.scene_dim + 1, family.template_dim + 1)
    np.testing.assert_allclose(family.from_matrix(matrix), poses)
    parts = RNG.normal(size=(5, family.template_dim))
    moved = matrix[1, 1] @ np.concatenate([parts, np.ones((5, 1))], 1).T
    np.testing.assert_allclose(family.apply(poses[1, 1], parts), moved[:-1].T)


def test_composition_of_similarities_is_the_product_of_matrices():
    family = Similarity2D()
    a, b = _pose(family, 1), _pose(family, 2)
    both = family.from_matrix(family.matrix(a) @ family.matrix(b))
    parts = RNG.normal(size=(4, 2))
    expected = family.apply(a, family.apply(b, parts))
    np.testing.assert_allclose(family.apply(both, parts), expected)


def test_scale():
    family = Similarity2D()
    assert family.scale(family.from_parameters(scale=3.0, angle=1.0)) == pytest.approx(3.0)
    stretched = np.array([0, 0, 4.0, 0, 0, 9.0])
    assert Affine2D().scale(stretched) == pytest.approx(6.0)
    assert Translation().scale(np.zeros(2)) == pytest.approx(1.0)


def test_parameters_round_trip():
    family = Similarity2D()
    given = {"translation": (1.0, 2.0), "scale": 1.5, "angle": -0.4}
    found = family.parameters(family.from_parameters(**given))
    assert found["translation"] == pytest.approx([1.0, 2.0])
    assert (found["scale"], found["angle"]) == pytest.approx((1.5, -0.4))
