"""Faces found by the solvers, and how that is scored."""

import json
from dataclasses import replace

import numpy as np
import pytest

import partwise as pw
from partwise.faces import draw_scenes, evaluate, face_solver, write_basis
from partwise.faces.combinations import Imagined
from partwise.faces.evaluation import assigned, rebuilding_errors
from partwise.faces.rendering import render_explanation
from partwise.inference import solve
from tests.small_faces import small_model

FACES = Imagined(small_model())
MODEL = FACES.model.scene_model(2)
SCENES = draw_scenes(FACES, 2, 6, seed=1)
NAMES = ("vi", "ransac", "ransac-mean", "ransac-refit")


@pytest.fixture(scope="module")
def found():
    return {name: solve(MODEL, SCENES.scenes, face_solver(name)) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_faces_are_found(found, name):
    assert assigned(SCENES, found[name]).all()
    for i, explanation in enumerate(found[name]):
        for detection in explanation.objects:
            owner = SCENES.object_id[i][detection.points[0]]
            assert np.allclose(detection.pose, SCENES.poses[i, owner], atol=2e-3)


def test_vi_infers_the_exact_posterior_of_the_factors(found):
    """Given the right parts, q(y^a) is that of factor analysis: by hand, from all the codes."""
    model = FACES.model
    precision = np.eye(model.factors) + model.loadings.T / model.variance @ model.loadings
    for i, explanation in enumerate(found["vi"]):
        for detection in explanation.objects:
            code = SCENES.codes[i, SCENES.object_id[i][detection.points[0]]]
            votes = model.loadings.T / model.variance @ (code - model.offset)
            assert np.allclose(detection.appearance, np.linalg.solve(precision, votes), atol=2e-3)


def test_one_part_says_less_than_all(found):
    measured = rebuilding_errors(FACES.model, SCENES, *found.values())
    errors = dict(zip(found, measured, strict=True))
    assert (errors["vi"] < errors["ransac"]).all()
    assert errors["vi"].mean() < errors["ransac-mean"].mean() < errors["ransac"].mean()
    assert np.allclose(errors["ransac-refit"], errors["vi"], rtol=0.01)


def test_neither_order_nor_neighbours_matter(found):
    scene = SCENES.scenes[2]
    order = np.random.default_rng(0).permutation(len(scene))
    shuffled = pw.Scene(
        scene.parts[order], [scene.types[i] for i in order], [scene.appearance[i] for i in order]
    )
    for name in ("vi", "ransac"):
        alone = pw.infer(MODEL, shuffled, solver=face_solver(name))
        one, two = (render_explanation(FACES.model, e) for e in (alone, found[name][2]))
        assert np.abs(one - two).max() < 2e-3


def test_the_score_sees_a_swapped_part_and_a_missing_one(found):
    right = found["vi"]
    parts = right.parts.copy()
    parts[0, [0, 1], 2] = parts[0, [1, 0], 2]  # the mouths of two faces
    parts[1, 0, 3] = -1
    parts[2] = parts[2, ::-1]  # only another name
    scored = assigned(SCENES, replace(right, parts=parts))
    assert scored.tolist() == [False, False, True, True, True, True]


def test_hidden_parts():
    scenes = draw_scenes(FACES, 3, 5, occluded=True, seed=4)
    model = FACES.model.scene_model(3, occluded=True)
    for name in ("vi", "ransac-refit"):
        assert assigned(scenes, solve(model, scenes.scenes, face_solver(name))).all()


def test_a_part_of_the_wrong_length():
    scene = SCENES.scenes[0]
    looks = [np.append(scene.appearance[0], 0.0), *scene.appearance[1:]]
    with pytest.raises(pw.InputError, match="appearance of part 0") as caught:
        pw.infer(MODEL, pw.Scene(scene.parts, scene.types, looks), solver=face_solver("vi"))
    assert scene.types[0] in str(caught.value)


def test_evaluate_reports_what_it_measured():
    result = evaluate(FACES, 2, "ransac-refit", scenes=3, seed=5)
    assert result["assignment_accuracy"] == 1.0
    assert result["scenes"] == 3
    assert result["scenes_per_second"] > 0
    drawn = draw_scenes(FACES, 2, 3, seed=5)
    (errors,) = rebuilding_errors(
        FACES.model, drawn, solve(MODEL, drawn.scenes, face_solver("ransac-refit"), 5)
    )
    assert result["rmse_mean"] == pytest.approx(errors.mean())
    assert result["rmse_std"] == pytest.approx(errors.std())


def test_unknown_solver():
    with pytest.raises(pw.InputError, match="vi-random"):
        face_solver("magic")


# The command line


@pytest.fixture
def run(monkeypatch, tmp_path):
    from typer.testing import CliRunner

    from partwise.cli import app

    monkeypatch.setattr("partwise.cli.options.cache_compilations", lambda: None)
    write_basis(tmp_path / "model.npz", FACES.model)
    return lambda *args: CliRunner().invoke(app, ["faces", *map(str, args)])


def test_evaluate_prints_one_json_object(run, tmp_path):
    args = ("--faces", 2, "--scenes", 3, "--solver", "ransac", "--data", tmp_path / "model.npz")
    out = run("evaluate", *args, "--json")
    assert out.exit_code == 0
    result = json.loads(out.stdout)
    keys = {"assignment_accuracy", "rmse_mean", "rmse_std", "scenes", "scenes_per_second"}
    assert keys <= set(result)
    assert (result["faces"], result["solver"], result["occluded"]) == (2, "ransac", False)
    assert "every part assigned right" in run("evaluate", *args).stdout


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("--faces", 9), "1 to 5"),
        (("--faces", 2, "--solver", "magic"), "solver must be one of"),
        (("--faces", 2, "--data", "none.npz"), "none.npz"),
    ],
)
def test_bad_arguments_are_one_line(run, tmp_path, args, word):
    if "--data" not in args:
        args = (*args, "--data", tmp_path / "model.npz")
    out = run("evaluate", *args)
    assert out.exit_code == 2
    assert word in out.stderr
    assert len(out.stderr.splitlines()) == 1
