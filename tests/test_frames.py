"""Frames: what a solver sees does not change when the scene is moved, turned, scaled, shuffled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partwise import Model, PosePrior, SceneBatch, Template, constellations, poses, shapes
from partwise.frames import canonical_order, scene_frames, scene_radius, template_frames
from partwise.problem import problems

MODEL = constellations()


def _seen(points: np.ndarray, model=MODEL) -> np.ndarray:
    return problems(model, SceneBatch.collect([points]))[0].points[0]


def _turned(points: np.ndarray, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return points @ np.array([[c, s], [-s, c]])


def _scene(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 2))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(3, 20),
    st.floats(-np.pi, np.pi),
    st.floats(-6, 6),
    st.floats(-1e3, 1e3),
)
def test_the_order_of_points_follows_the_configuration(seed, count, angle, power, offset):
    points = _scene(seed, count)
    shuffle = np.random.default_rng(seed + 1).permutation(count)
    moved = (10**power * _turned(points, angle) + offset * 10**power)[shuffle]
    order = canonical_order(points[None], 2)[0]
    moved_order = canonical_order(moved[None], 2)[0]
    np.testing.assert_array_equal(order, shuffle[moved_order])


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_a_solver_sees_the_same_scene(scale, offset):
    points = _scene(4, 9)
    moved = scale * (points + offset)
    np.testing.assert_allclose(_seen(moved), _seen(points), atol=1e-6)


def test_an_offset_much_larger_than_the_scene():
    points = _scene(5, 7)
    np.testing.assert_allclose(_seen(points + 1e6), _seen(points), atol=1e-6)


def test_a_square_turns_into_the_same_order():
    """Equal distances: the angle decides, and it turns with the scene."""
    points = np.concatenate([shapes.square().parts, [[3.0, 1.0]]])
    for angle in (0.3, 1.2, 2.9, -2.0):
        turned = _turned(points, angle)
        np.testing.assert_array_equal(
            canonical_order(turned[None], 2), canonical_order(points[None], 2)
        )


def test_scenes_have_the_radius_that_is_stated():
    for count in (4, 9, 40):
        seen = _seen(_scene(7, count))[:count]
        radius = np.sqrt((seen**2).sum(1).mean())
        assert radius == pytest.approx(scene_radius(MODEL, count), rel=1e-3)
    assert scene_radius(MODEL, 40) > scene_radius(MODEL, 9)


@pytest.mark.parametrize("points", [np.zeros((1, 2)), np.full((4, 2), 1e6), np.zeros((3, 2))])
def test_points_without_extent(points):
    seen = _seen(points)
    assert np.isfinite(seen).all()
    np.testing.assert_allclose(seen, 0, atol=1e-6)


def test_frames_and_their_matrices_agree():
    parts = np.random.default_rng(0).normal(5, 3, (2, 6, 2))
    frames = scene_frames(MODEL, parts)
    normal = frames.normalise(parts)
    lifted = np.concatenate([normal, np.ones((2, 6, 1))], 2)
    back = np.einsum("bij,bmj->bmi", frames.matrix(), lifted)[..., :2]
    np.testing.assert_allclose(back, parts)
    np.testing.assert_allclose(normal.mean(1), 0, atol=1e-12)


def test_a_prior_fixes_the_frame():
    model = Model([shapes.square()], prior=PosePrior(np.zeros(4), np.ones(4)))
    points = _scene(1, 4)
    frames = scene_frames(model, points[None])
    np.testing.assert_array_equal(frames.normalise(points[None])[0], points)
    np.testing.assert_array_equal(template_frames(model).unit, [1.0])


def test_a_translation_keeps_the_unit_of_the_templates():
    model = Model([Template([[0, 0], [4, 0], [0, 4]])], pose=poses.Translation())
    points = _scene(2, 5)
    frames = scene_frames(model, points[None])
    assert frames.unit[0] == pytest.approx(model.unit)


def test_sizes_only_change_unit():
    model = Model([Template.directed([[0, 0], [1, 0], [0, 1]], [1, 1, 1], [0, 1, 2])])
    parts = np.random.default_rng(3).normal(size=(1, 5, 4)) + np.array([7, 7, 0, 0])
    frames = scene_frames(model, parts)
    np.testing.assert_allclose(frames.normalise(parts)[..., 2:] * frames.unit, parts[..., 2:])
