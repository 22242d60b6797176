"""Scenes drawn from models: their statistics are those the model states."""

import jax
import numpy as np
import pytest

from partwise import InputError, Model, Noise, Template, poses, shapes, simulate_constellations
from partwise.sampling import generator


def test_constellations_follow_the_paper():
    labelled = simulate_constellations(4000, 0.0, 1)
    present, ids = labelled.present, labelled.object_id
    assert present.any(1).all()
    assert len(labelled) == 4000
    for k in range(3):
        own = present[:, ids[0] == k]
        assert (own == own[:, :1]).all()
        # 0.5 before the empty scenes are dropped and others drawn for them.
        assert own[:, 0].mean() == pytest.approx(4 / 7, abs=0.03)
    points = labelled.points[present]
    assert np.abs(points).max() <= 1 + 1e-12
    for i in range(50):
        span = np.ptp(labelled.points[i][present[i]], axis=0)
        assert span.max() == pytest.approx(2)
    assert (labelled.points[~present] == 0).all()


def test_constellation_scales_are_uniform_from_1_to_4():
    labelled = simulate_constellations(4000, 0.0, 2)
    both = labelled.present.all(1)
    squares = labelled.points[both][:, :4], labelled.points[both][:, 4:8]
    sides = [np.linalg.norm(s[:, 0] - s[:, 1], axis=1) for s in squares]
    ratio = np.log(sides[0] / sides[1])
    assert np.abs(ratio).max() <= np.log(4) + 1e-9
    # Of U / V with U, V uniform in (1, 4): P(U > 2V) = 1/9 (the area of a triangle).
    assert (ratio > np.log(2)).mean() == pytest.approx(1 / 9, abs=0.05)


def test_noise_is_measured_in_the_template():
    sigma = 0.1
    labelled = simulate_constellations(4000, sigma, 3)
    squares = labelled.points[labelled.present[:, 0]][:, :4]
    z = squares[..., 0] + 1j * squares[..., 1]
    corners = np.array([-1 - 1j, -1 + 1j, 1 + 1j, 1 - 1j])
    centred = z - z.mean(1, keepdims=True)
    scale = centred @ corners.conj() / 8
    residual = np.abs(centred - scale[:, None] * corners) ** 2 / np.abs(scale[:, None]) ** 2
    # Eight numbers, four of them used up by the pose.
    assert residual.sum(1).mean() / 4 == pytest.approx(sigma**2, rel=0.06)


@pytest.mark.parametrize("draw", [simulate_constellations])
def test_simulation_is_deterministic(draw):
    one, two = draw(50, 0.1, 7), draw(50, 0.1, 7)
    np.testing.assert_array_equal(one.points, two.points)
    assert not np.array_equal(one.present, draw(50, 0.1, 8).present[: len(one)])


@pytest.mark.parametrize(
    ("word", "arguments"),
    [("scenes", (0, 0.0)), ("noise", (5, -1.0)), ("noise", (5, np.nan)), ("key", (5, 0.0, "x"))],
)
def test_simulation_errors(word, arguments):
    with pytest.raises(InputError, match=word):
        simulate_constellations(*arguments)


def test_only_plain_points_are_simulated():
    with pytest.raises(InputError, match="similarities"):
        simulate_constellations(5, model=Model([shapes.square()], pose=poses.Affine2D()))


def test_model_statistics():
    model = Model(
        [shapes.square(), shapes.triangle()],
        noise=Noise(0.05),
        presence=0.4,
        missing=0.25,
        clutter=1.5,
    )
    drawn = model.sample(0, 3000)
    there = np.array([[k in p for k in range(2)] for p in drawn.poses])
    np.testing.assert_allclose(there.mean(0), 0.4, atol=0.03)
    objects = np.concatenate(drawn.object_id)
    assert (objects == -1).sum() / 3000 == pytest.approx(1.5, abs=0.1)
    seen = (objects == 0).sum() / (4 * there[:, 0].sum())
    assert seen == pytest.approx(0.75, abs=0.03)
    errors = []
    for scene, owner, part, here in zip(
        drawn.scenes, drawn.object_id, drawn.part_id, drawn.poses, strict=True
    ):
        for k, pose in here.items():
            predicted = model.pose.apply(pose, model.templates[k].parts)
            mine = owner == k
            away = scene.parts[mine] - predicted[part[mine]]
            errors.append((away / model.pose.scale(pose)).ravel())
    assert np.concatenate(errors).std() == pytest.approx(0.05, rel=0.05)


def test_noise_in_the_scene_does_not_grow_with_the_object():
    model = Model([shapes.square()], noise=Noise(0.05, follows_scale=False), scales=(5.0, 50.0))
    drawn = model.sample(1, 800)
    away = [
        (scene.parts - model.pose.apply(here[0], model.templates[0].parts)[part]).ravel()
        for scene, part, here in zip(drawn.scenes, drawn.part_id, drawn.poses, strict=True)
        if here
    ]
    assert np.concatenate(away).std() == pytest.approx(0.05, rel=0.06)


@pytest.mark.parametrize("make", [lambda i: i, jax.random.key, jax.random.PRNGKey])
def test_same_key_same_scenes(make):
    model = Model([shapes.square()], clutter=1.0)
    one, two, other = (model.sample(make(k), 5).scenes.parts for k in (3, 3, 4))
    np.testing.assert_array_equal(one, two)
    assert one.shape != other.shape or not np.array_equal(one, other)


def test_bad_key():
    with pytest.raises(InputError, match="key"):
        generator("seed")


@pytest.mark.parametrize("name", sorted(poses.FAMILIES))
def test_every_family_can_be_sampled(name):
    family = poses.FAMILIES[name]
    parts = np.random.default_rng(0).normal(size=(6, family.template_dim))
    drawn = Model([Template(parts)], pose=family, presence=0.9).sample(0, 20)
    for scene, part, here in zip(drawn.scenes, drawn.part_id, drawn.poses, strict=True):
        for pose in here.values():
            np.testing.assert_allclose(family.apply(pose, parts)[part], scene.parts)
