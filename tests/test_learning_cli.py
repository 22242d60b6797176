"""``partwise learn``, and the pictures of learning."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from typer.testing import CliRunner

import partwise as pw
from partwise import cli
from partwise.files import write_labelled
from partwise.plotting import plot_learned, plot_learning


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr("partwise.cli.options.cache_compilations", lambda: None)
    return lambda *args: CliRunner().invoke(cli.app, [str(a) for a in args])


@pytest.fixture
def squares(tmp_path):
    path = tmp_path / "squares.npz"
    model = pw.Model([pw.shapes.square()])
    write_labelled(path, pw.simulate_constellations(40, 0.1, 0, model))
    return path


def test_learn_then_infer(run, squares, tmp_path):
    model = tmp_path / "model.json"
    done = run("learn", squares, "--parts", 4, "-o", model, "--json", "--name", "square")
    assert done.exit_code == 0
    printed = json.loads(done.stdout)
    assert {"objects", "precision", "iterations", "elbo"} <= set(printed)
    parts = np.array(printed["objects"][0]["parts"])
    assert pw.procrustes(parts, pw.shapes.square()).smse < 2e-3
    assert printed["precision"] == pytest.approx(1 / 0.07**2, rel=0.3)  # 0.1 at radius sqrt 2
    assert printed["iterations"] > 2
    assert printed["converged"]
    loaded = pw.Model.load(model)
    np.testing.assert_array_equal(loaded.templates[0].parts, parts)
    answers = run("infer", squares, "--model", model)
    assert answers.exit_code == 0
    assert '"square"' in answers.stdout


def test_learn_for_people_and_as_the_paper_does(run, squares):
    shown = run("learn", squares, "--parts", 4)
    assert shown.exit_code == 0
    assert "40 examples" in shown.stdout
    paper = run("learn", squares, "--parts", 4, "--noise", "scene", "--json")
    assert json.loads(paper.stdout)["iterations"] < 30


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--parts", 3], "do not have 3 points"),
        (["--parts", 4, "--noise", "loud"], "--noise must be one of"),
        (["--parts", 4, "--objects", 1, "--name", "square"], "scenes of one object"),
        (["--parts", 4, "-o", "nowhere/model.json"], "no such folder"),
    ],
)
def test_bad_input_is_one_line(run, squares, options, says):
    done = run("learn", squares, *options)
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_pictures():
    rng = np.random.default_rng(0)
    truth = pw.shapes.triangle()
    scenes = list(truth.parts + 0.1 * rng.standard_normal((20, 3, 2)))
    learned = pw.learn(scenes, 3)
    ax = plot_learned(learned, truth, examples=scenes)
    assert "triangle" in ax.get_title()
    assert {"true", "learned", "examples"} <= {line.get_label() for line in ax.lines}
    course = plot_learning(learned)
    assert len(course.lines[0].get_xdata()) == learned.iterations
    plt.close("all")
