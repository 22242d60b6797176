"""Films: their frames show the solver's own run, and the files are films."""

from itertools import islice

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import partwise as pw
from partwise.cli import app
from partwise.faces import load_faces, write_basis
from partwise.movies import inference_frames, thinned, write_movie
from partwise.movies.faces import face_frames
from partwise.movies.film import best_trace
from tests.small_faces import small_model

SOLVER = pw.Variational(restarts=2, attempts=2)


def test_long_runs_are_thinned_from_behind():
    assert thinned(7).tolist() == list(range(7))
    steps = thinned(400, 50)
    assert len(steps) <= 50
    assert steps[:25].tolist() == list(range(25))
    assert steps[-1] == 399
    assert (np.diff(steps) > 0).all()


def test_the_run_is_the_one_that_the_answer_comes_from():
    model = pw.Model([pw.shapes.square(), pw.shapes.triangle()])
    scene = pw.simulate_constellations(1, 0.05, 3, model).scenes[0]
    run = best_trace(model, scene, SOLVER, seed=2)
    found = pw.infer(model, scene, SOLVER, seed=2)
    assert run.elbo[-1] == pytest.approx(found.score, abs=1e-2)
    assert np.allclose(run.assignment[-1], found.posterior.assignment, atol=1e-3)
    assert run.noise[-1] < run.noise[0]  # the uncertainty shrinks as beta grows
    with pytest.raises(pw.InputError, match="attempt"):
        pw.trace(model, scene, SOLVER, attempt=2)


def test_a_gif_of_constellations(tmp_path):
    model = pw.Model([pw.shapes.triangle()])
    scene = pw.shapes.triangle().parts * 2.0
    frames = list(islice(inference_frames(model, scene, SOLVER), 3))
    assert frames[0].shape[2] == 3
    assert frames[0].std() > 0
    assert not np.array_equal(frames[0], frames[2])
    path = tmp_path / "film.gif"
    assert write_movie(path, frames) == 3
    with Image.open(path) as film:
        assert (film.format, film.n_frames) == ("GIF", 3)


def test_frames_of_faces(tmp_path):
    write_basis(tmp_path / "faces.npz", small_model())
    faces = load_faces(tmp_path / "faces.npz")
    frames = list(islice(face_frames(faces, 2, solver="vi"), 2))
    assert len(frames) == 2
    assert frames[0].shape == frames[1].shape
    assert frames[0].std() > 0


def test_wrong_requests_are_one_sentence(tmp_path, monkeypatch):
    def refused(*args, names):
        result = CliRunner().invoke(app, ["movie", *map(str, args)])
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert all(name in result.stderr for name in names)

    refused("-o", tmp_path / "film.avi", names=["film.avi", ".gif"])
    refused("-o", tmp_path / "a.gif", "--faces", 2, "--solver", "gmm", names=["--faces"])
    refused("-o", tmp_path / "a.gif", "--model", tmp_path / "m.json", names=["--model", "SCENES"])
    monkeypatch.setattr("partwise.cli.movie.MOST", 64)
    refused("-o", tmp_path / "a.gif", "--index", 100_000, names=["--index", "below"])
    monkeypatch.setattr("shutil.which", lambda name: None)
    refused("-o", tmp_path / "film.mp4", names=["film.mp4", "ffmpeg", ".gif"])
