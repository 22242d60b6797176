"""Several unknown objects in scenes of any of them; and the bound on what can be learned."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise as pw
from partwise import cli
from partwise.evaluation import assess
from partwise.files import write_labelled, write_scenes
from partwise.learning.bound import cramer_rao, simple_bound
from partwise.learning.discovery import discover
from partwise.plane import from_complex, normal, to_complex

SQUARE, TRIANGLE = pw.shapes.square(), pw.shapes.triangle()


@pytest.fixture(scope="module")
def labelled():
    return pw.simulate_constellations(70, 0.05, 3)


@pytest.fixture(scope="module")
def learned(labelled):
    return pw.learn_model(labelled, [3, 4])


def test_square_and_triangle_are_found_in_crowded_scenes(learned):
    assert [len(t) for t in learned.templates] == [4, 3]
    assert learned.templates[0].compare(SQUARE).smse < 1e-3
    assert learned.templates[1].compare(TRIANGLE).smse < 1e-3
    assert learned.model.instances == (2, 1)
    assert learned.model.clutter == 0
    assert learned.model.noise.sigma == pytest.approx(0.05 / 1.33, rel=0.15)
    assert learned.converged


def test_what_was_found_explains_new_scenes(learned):
    scenes = pw.simulate_constellations(150, 0.05, 99)
    true, ours = (
        assess(scenes, pw.infer(m, scenes))["exchangeable"].mean()["scene_accuracy"]
        for m in (pw.constellations(), learned.model)
    )
    assert ours >= true - 0.01


def test_only_points_are_looked_at(labelled, learned):
    rng = np.random.default_rng(0)
    order = np.stack([rng.permutation(11) for _ in range(len(labelled))])
    shuffled = pw.LabelledScenes(
        np.take_along_axis(labelled.points, order[..., None], 1),
        np.take_along_axis(labelled.present, order, 1),
        np.zeros_like(labelled.object_id),
    )
    again = pw.learn_model(shuffled, [4, 3])
    for one, two in zip(learned.templates, again.templates, strict=True):
        assert two.compare(one).smse < 1e-5
    assert again.model.instances == learned.model.instances


def test_an_object_among_clutter(tmp_path, monkeypatch):
    """The number of parts unknown, points that belong to nothing, from the command line."""
    monkeypatch.setattr("partwise.cli.options.cache_compilations", lambda: None)
    kite = pw.Template([[0.0, 2.0], [1.0, 0.0], [0.0, -3.0], [-1.5, 0.5]])
    model = pw.Model([kite], clutter=2.0, presence=0.9, noise=pw.Noise(0.03))
    drawn = model.sample(0, 40).scenes
    path, out = tmp_path / "scenes.parquet", tmp_path / "model.json"
    write_scenes(path, drawn)
    done = CliRunner().invoke(
        cli.app, ["learn", str(path), "--objects", "1", "--json", "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert len(printed["objects"]) == 1
    assert pw.procrustes(np.array(printed["objects"][0]["parts"]), kite).smse < 2e-3
    assert pw.Model.load(out).clutter == pytest.approx(2.0, abs=0.8)


def test_support_is_for_structure_only():
    """Random points speak for nothing; a repeated shape among them is found, whole."""
    rng = np.random.default_rng(0)
    noise = pw.SceneBatch.collect(list(rng.standard_normal((40, 6, 2))))
    found = discover(noise, 4, [set()] * 40, np.random.default_rng(0))
    assert found is None or found.support < 2.5 * np.log(40)
    planted = noise.parts.reshape(40, 6, 2).copy()
    planted[:, 1:5] = SQUARE.parts * rng.uniform(0.3, 2, (40, 1, 1)) + 0.02
    planted[:, 1:5] += 0.02 * rng.standard_normal((40, 4, 2))
    found = discover(pw.SceneBatch.collect(list(planted)), 4, [set()] * 40, rng)
    assert found.support > 100
    assert pw.procrustes(from_complex(found.shape.x), SQUARE).smse < 1e-3
    right = [set(range(6 * i + 1, 6 * i + 5)) for i in range(40)]
    assert sum(set(rows.tolist()) in right for rows in found.explained) > 35


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: pw.learn_model([np.ones((4, 2))], [4]), "at least 2"),
        (lambda s: pw.learn_model(s, [9]), "from 3 to 6"),
        (lambda s: pw.learn_model(s, [4, 3], objects=3), "make them agree"),
        (lambda s: pw.learn_model(s, 4, objects=0), "objects must be"),
        (lambda s: pw.learn_model(s, seed=-1), "seed"),
        (lambda s: pw.learn_model([np.ones((4, 3))] * 2, [4]), "plain points"),
        (lambda s: pw.learn_model([np.eye(2)] * 5, [4]), "nothing of 4 points recurs"),
    ],
)
def test_bad_input_is_one_sentence(labelled, call, says):
    with pytest.raises(pw.InputError, match=says) as caught:
        call(labelled)
    assert "\n" not in str(caught.value)


def test_options_of_one_object_are_refused_for_several(tmp_path, labelled):
    path = tmp_path / "scenes.npz"
    write_labelled(path, labelled)
    done = CliRunner().invoke(cli.app, ["learn", str(path), "--parts", "4,3", "--noise", "scene"])
    assert done.exit_code == 2
    assert "scenes of one object" in done.stderr
    done = CliRunner().invoke(cli.app, ["learn", str(path), "--parts", "four"])
    assert done.exit_code == 2
    assert "--parts" in done.stderr


# The bound ------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", [SQUARE, TRIANGLE])
def test_bound_is_the_simple_one_where_parts_are_identified(template):
    simple = simple_bound(template, 0.1, 64)
    assert cramer_rao(template, 0.1, 64, identified=True) == pytest.approx(simple, rel=0.05)
    assert simple == pytest.approx({4: 7.8e-5, 3: 6.7e-5}[len(template)], rel=0.01)


def test_how_far_the_triangle_is_from_equilateral():
    """What docs/learning.md says of it."""
    z = normal(to_complex(TRIANGLE.parts)) * TRIANGLE.radius
    turned = z[[1, 2, 0]] * np.exp(-1j * np.angle(np.vdot(z, z[[1, 2, 0]])))
    away = np.sqrt((np.abs(turned - z) ** 2).sum())
    assert away / 0.1 == pytest.approx(2.7, abs=0.05)
    assert away / 0.25 == pytest.approx(1.1, abs=0.05)
    equilateral = from_complex(np.exp(2j * np.pi * np.arange(3) / 3))
    error = pw.procrustes(equilateral, TRIANGLE).smse
    bound = cramer_rao(TRIANGLE, 0.25, 64)
    assert bound == pytest.approx(28 * simple_bound(TRIANGLE, 0.25, 64), rel=0.1)
    assert error < bound


def test_bound_where_parts_come_in_any_order():
    assert cramer_rao(SQUARE, 0.1, 64, draws=4000) == np.inf
    triangle = cramer_rao(TRIANGLE, 0.1, 64)
    assert 1.5 < triangle / simple_bound(TRIANGLE, 0.1, 64) < 2.5
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scenes = list(TRIANGLE.parts + 0.1 * rng.standard_normal((256, 3, 2)))
        errors.append(pw.learn(scenes, 3, symmetry=False).compare(TRIANGLE).smse)
    assert 0.5 < np.mean(errors) / (triangle / 4) < 1.9  # maximum likelihood is efficient
    assert cramer_rao(TRIANGLE, 0.0, 64) == 0
    with pytest.raises(pw.InputError, match="at most 5"):
        cramer_rao(pw.Template(np.random.default_rng(0).standard_normal((6, 2))), 0.1, 64)
