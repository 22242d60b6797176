"""The generator of crowds, their file, and their scores."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise as pw
from partwise import cli
from partwise.crowds import crowd_model, score_crowd, simulate_clutter, simulate_crowd
from partwise.crowds.simulating import WINDOW
from partwise.files import read_labelled, read_sample, read_scenes, write_sample
from partwise.metrics.layouts import layouts_of
from partwise.posterior import Explanations

MODEL = crowd_model(20, key=3)
CROWDS = simulate_crowd(MODEL, 200, 4)


def test_scenes_are_as_documented():
    counts = CROWDS.scenes.counts
    clutter = np.array([(o < 0).mean() for o in CROWDS.object_id])
    objects = np.array([len(p) for p in CROWDS.poses])
    assert 60 < counts.mean() < 80
    assert abs(clutter.mean() - 0.3) < 0.01
    assert set(objects) == set(range(2, 13))
    assert all(6 <= len(t) <= 10 and (np.hypot(*t.parts.T) <= 1).all() for t in MODEL.templates)
    scales = np.array([MODEL.pose.scale(y) for p in CROWDS.poses for y in p.values()])
    assert 1 <= scales.min() < 1.2
    assert 3.8 < scales.max() <= 4
    inside = (CROWDS.scenes.parts >= 0) & (CROWDS.scenes.parts <= WINDOW * MODEL.unit)
    assert inside.all()


def test_hidden_parts_and_noise():
    parts, away = [], []
    for i, poses in enumerate(CROWDS.poses):
        for k, pose in poses.items():
            mine = CROWDS.object_id[i] == k
            template = MODEL.templates[MODEL.copies[k]]
            where = MODEL.pose.apply(pose, template.parts)[CROWDS.part_id[i][mine]]
            away.append((CROWDS.scenes[i].parts[mine] - where) / MODEL.pose.scale(pose))
            parts.append(mine.sum() / len(template))
    assert np.mean(parts) == pytest.approx(0.85, abs=0.015)
    assert np.std(np.concatenate(away)) == pytest.approx(0.02 * MODEL.unit, rel=0.05)


def test_same_key_same_crowd_and_nothing_is_shared():
    again = simulate_crowd(crowd_model(20, key=3), 200, 4)
    np.testing.assert_array_equal(again.scenes.parts, CROWDS.scenes.parts)
    other = simulate_crowd(MODEL, 200, 5)
    assert other.scenes.parts.shape != CROWDS.scenes.parts.shape
    assert (simulate_clutter(MODEL, 3, 9, 0).counts == 9).all()


def test_file_round_trip_and_command(tmp_path):
    path = tmp_path / "crowd.npz"
    out = CliRunner().invoke(
        cli.app, ["simulate", "--crowd", "--templates", "7", "--scenes", "5", "-o", str(path)]
    )
    assert out.exit_code == 0, out.output
    model = pw.Model.load(tmp_path / "crowd.model.json")
    assert len(model.templates) == 7
    sample = read_sample(path)
    write_sample(tmp_path / "again.npz", sample)
    again = read_sample(tmp_path / "again.npz")
    np.testing.assert_allclose(again.scenes.parts, sample.scenes.parts)
    np.testing.assert_array_equal(np.concatenate(again.part_id), np.concatenate(sample.part_id))
    assert [list(p) for p in again.poses] == [list(p) for p in sample.poses]
    np.testing.assert_allclose(read_scenes(path).parts, sample.scenes.parts)
    (tmp_path / "model.json").write_text(json.dumps(model.to_json()))
    args = ["simulate", "--crowd", "--scenes", "2", "-o", str(tmp_path / "b.npz")]
    assert (
        CliRunner().invoke(cli.app, [*args, "--model", str(tmp_path / "model.json")]).exit_code == 0
    )
    np.savez(tmp_path / "bad.npz", **{**dict(np.load(path)), "part_id": np.zeros(3)})
    with pytest.raises(pw.InputError, match="simulate --crowd"):
        read_sample(tmp_path / "bad.npz")


def test_bad_arguments():
    for make in (
        lambda: crowd_model(0),
        lambda: crowd_model(5, 1.0),
        lambda: simulate_crowd(MODEL, 0),
        lambda: simulate_crowd(pw.Model([pw.shapes.square()], pose=pw.poses.Affine2D()), 1),
        lambda: simulate_clutter("model", 1),
        lambda: simulate_clutter(MODEL, 1, -1),
    ):
        with pytest.raises(pw.InputError):
            make()


def test_options_that_do_not_go_together(tmp_path):
    model = tmp_path / "model.json"
    MODEL.save(model)
    for options in (
        ["--crowd", "--noise", "0.1"],
        ["--crowd", "--model", str(model), "--templates", "3"],
        ["--crowd", "--model", str(model), "--clutter", "0.1"],
        ["--templates", "3"],
        ["--clutter", "0.1"],
    ):
        args = ["simulate", "--scenes", "2", "-o", str(tmp_path / "scenes.npz"), *options]
        out = CliRunner().invoke(cli.app, args)
        assert out.exit_code == 2, options
        assert len(out.stderr.splitlines()) == 1
        assert "leave" in out.stderr
        assert not (tmp_path / "scenes.npz").exists()


def test_the_protocols_of_the_paper_say_that_crowds_are_not_for_them(tmp_path):
    path = tmp_path / "crowd.npz"
    write_sample(path, simulate_crowd(MODEL, 2, 1))
    with pytest.raises(pw.InputError, match="score_crowd"):
        list(layouts_of(read_labelled(path), MODEL))


def truth(sample, probability=1.0):
    """The answer of somebody who knows it."""
    copies, model = MODEL.copies, MODEL
    shape = (len(sample.scenes), len(copies))
    parts = np.full((*shape, max(map(len, model.templates))), -1, np.int32)
    pose, sure = np.zeros((*shape, 4)), np.zeros(shape)
    for i, poses in enumerate(sample.poses):
        for k, y in poses.items():
            at = np.flatnonzero(sample.object_id[i] == k)
            parts[i, k, sample.part_id[i][at]] = at
            pose[i, k], sure[i, k] = y, probability
    return Explanations(model, sample.scenes, parts, pose, sure, sure.sum(1), sure.sum(1) > 0)


def test_the_truth_scores_one_and_mistakes_do_not():
    score = score_crowd(CROWDS, truth(CROWDS))
    assert score.f1 == 1
    assert score.right.all()
    assert score.calibration_error == 0
    assert sum(n for _, n in score.recall_by_visible().values()) == len(score.found)
    unsure = score_crowd(CROWDS, truth(CROWDS, 0.4))
    assert unsure.right.all()
    assert not unsure.found.any()
    assert unsure.f1 == 0
    assert unsure.calibration_error == pytest.approx(0.6)
    moved = truth(CROWDS)
    moved.pose[..., 0] += 0.15 * 4 * MODEL.unit
    assert score_crowd(CROWDS, moved).f1 == 0
    robbed = truth(CROWDS)
    robbed.parts[robbed.parts >= 0] = np.where(
        np.random.default_rng(0).random((robbed.parts >= 0).sum()) < 0.3, -1, 1
    )
    assert score_crowd(CROWDS, robbed).f1 < 0.1


def test_two_detections_of_one_object_are_one_right_and_one_wrong():
    found = truth(CROWDS)
    k = next(iter(CROWDS.poses[0]))
    t = MODEL.copies[k]
    twin = next(j for j, u in enumerate(MODEL.copies) if u == t and j not in CROWDS.poses[0])
    found.parts[0, twin], found.pose[0, twin] = found.parts[0, k], found.pose[0, k]
    found.probability[0, twin] = 0.9
    score = score_crowd(CROWDS, found)
    assert (~score.right).sum() == 1
    assert score.found.all()
    assert 0 < score.f1_standard_error < 0.01
