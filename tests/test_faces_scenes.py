"""Scenes of faces: where faces are, which parts are seen, and what the scene looks like."""

import numpy as np
import pytest

from partwise import InputError
from partwise.faces import draw_scenes, lay, render_truth
from partwise.faces.canvas import BACKGROUND, PARTS, SIZE
from partwise.faces.combinations import Imagined
from partwise.faces.scenes import FEWEST, SCALES, WHOLE, visible
from partwise.poses import Similarity2D
from tests.small_faces import small_model

FAMILY = Similarity2D()
FACES = Imagined(small_model())


def footprint(model, pose):
    """The pixels that a face covers, by rendering it white on black."""
    white = lay([(pose, model.opacity)], model.opacity)
    return np.abs(white - BACKGROUND) > 0.3


@pytest.mark.parametrize("count", [2, 5])
def test_faces_side_by_side(count):
    drawn = draw_scenes(FACES, count, 12, seed=3)
    assert drawn.poses.shape == (12, count, 4)
    scale = FAMILY.scale(drawn.poses)
    assert (scale >= SCALES[0]).all()
    assert (scale <= SCALES[1]).all()
    whole = (FACES.model.opacity > 0.5).sum()
    for poses in drawn.poses:
        covers = np.stack([footprint(FACES.model, p) for p in poses])
        assert covers.sum(0).max() == 1
        area = covers.sum((1, 2)) / (FAMILY.scale(poses) ** 2 * whole)
        assert (area > 0.9).all()  # nothing of them lies outside


def test_parts_are_observed_as_generated():
    drawn = draw_scenes(FACES, 3, 4, seed=1)
    model = FACES.model
    for i, scene in enumerate(drawn.scenes):
        assert len(scene) == 15
        for m, (k, n) in enumerate(zip(drawn.object_id[i], drawn.part_id[i], strict=True)):
            assert scene.types[m] == PARTS[n]
            moved = FAMILY.apply(drawn.poses[i, k], model.template.parts[n : n + 1])[0]
            assert np.allclose(scene.parts[m], moved)
            start, stop = [0, *model.stops][n], model.stops[n]
            assert np.allclose(scene.appearance[m], drawn.codes[i, k, start:stop])


def test_same_seed_same_scenes():
    one, two, other = (draw_scenes(FACES, 3, 3, seed=s) for s in (4, 4, 5))
    assert np.array_equal(one.scenes.parts, two.scenes.parts)
    assert not np.array_equal(one.scenes.parts, other.scenes.parts)


def test_occluded_scenes_show_what_is_visible():
    drawn = draw_scenes(FACES, 3, 8, occluded=True, seed=2)
    for i, scene in enumerate(drawn.scenes):
        assert len(scene) < 15
        assert (np.bincount(drawn.object_id[i], minlength=3) >= FEWEST).all()
        seen = visible(FACES.model, drawn.poses[i]) >= WHOLE
        pairs = set(zip(drawn.object_id[i].tolist(), drawn.part_id[i].tolist(), strict=True))
        assert pairs == set(zip(*(a.tolist() for a in np.nonzero(seen)), strict=True))


def test_visible_is_what_a_picture_shows():
    model = FACES.model
    poses = draw_scenes(FACES, 3, 1, occluded=True, seed=7).poses[0]
    shown = visible(model, poses)
    fronts = np.stack([footprint(model, p) for p in poses])
    for k, pose in enumerate(poses):
        for n, area in enumerate(model.areas):
            part = np.abs(lay([(pose, area)], area) - BACKGROUND) > 0.3
            free = part & ~fronts[k + 1 :].any(0)
            share = free.sum() / (FAMILY.scale(pose) ** 2 * area.sum())
            assert shown[k, n] == pytest.approx(share, abs=0.12)


def test_a_face_at_rest_is_its_portrait():
    code = FACES.model.sample(np.random.default_rng(0), 1)[0]
    scene = lay([(np.array([0, 0, 1, 0]), FACES.model.picture(code))], FACES.model.opacity)
    assert np.allclose(scene, FACES.model.portrait(code), atol=1e-4)


def test_a_quarter_turn_is_a_turned_picture():
    picture = FACES.model.picture(FACES.model.sample(np.random.default_rng(0), 1)[0])
    scene = lay([(np.array([0, 0, 0, 1]), picture)], FACES.model.opacity)
    rest = lay([(np.array([0, 0, 1, 0]), picture)], FACES.model.opacity)
    assert np.allclose(scene, np.rot90(rest, -1), atol=1e-4)  # eq. 2 turns clockwise


def test_a_half_size_face_is_a_mean_of_pixels():
    picture = np.zeros((SIZE, SIZE), np.float32)
    picture[60:160, 60:160] = 0.8
    scene = lay([(np.array([0, 0, 0.5, 0]), picture)], (picture > 0).astype(np.float32))
    inside = scene[90:130, 90:130]
    assert np.allclose(inside, 0.8, atol=1e-3)
    assert scene[80, 112] == pytest.approx(BACKGROUND, abs=1e-3)


def test_faces_outside_leave_no_trace():
    picture = FACES.model.picture(np.zeros(FACES.model.width))
    away = lay([(np.array([5.0, 5.0, 0.5, 0]), picture)], FACES.model.opacity)
    assert (away == np.float32(BACKGROUND)).all()
    cut = lay([(np.array([0.95, 0.0, 0.5, 0.2]), picture)], FACES.model.opacity)
    assert (cut != np.float32(BACKGROUND)).any()


def test_the_last_face_lies_in_front():
    model, pose = FACES.model, np.array([0, 0, 0.5, 0])
    light, dark = model.opacity * 0.9, model.opacity * 0.1
    assert lay([(pose, light), (pose, dark)], model.opacity)[112, 112] == pytest.approx(0.1, 1e-3)
    assert lay([(pose, dark), (pose, light)], model.opacity)[112, 112] == pytest.approx(0.9, 1e-3)


def test_a_scene_is_laid_of_its_faces():
    drawn = draw_scenes(FACES, 2, 1)
    scene = render_truth(FACES.model, drawn, 0)
    byhand = lay(
        [(drawn.poses[0, k], FACES.model.picture(drawn.codes[0, k])) for k in range(2)],
        FACES.model.opacity,
    )
    assert np.array_equal(scene, byhand)


@pytest.mark.parametrize(("count", "scenes"), [(0, 1), (6, 1), (2, 0)])
def test_bad_numbers(count, scenes):
    with pytest.raises(InputError):
        draw_scenes(FACES, count, scenes)
