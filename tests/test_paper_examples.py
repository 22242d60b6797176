"""The figures of constellations: chosen by a rule, and true to the scenes."""

import json

import numpy as np
import pytest

import partwise as pw
from partwise.paper.examples import Examples, first_of_each
from partwise.paper.published import SIGMAS
from partwise.paper.table1 import simulated


def test_the_first_of_each_kind():
    kinds = np.array([[0, 1], [1, 1], [0, 1], [1, 0], [0, 0], [1, 1], [1, 1]])
    assert first_of_each(kinds, 1) == [1, 3, 0, 4]
    assert first_of_each(kinds, 2) == [1, 5, 3, 0, 2, 4]
    assert first_of_each(kinds, 2, kinds.sum(1) == 1) == [3, 0, 2]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    Examples(folder, scenes=30, figures=(("scenes", 0.0), ("answers", 0.0))).run()
    return folder


def test_every_combination_of_objects_is_shown_once(out):
    scenes = json.loads((out / "examples.json").read_text())["scenes-sigma0"]
    objects = [tuple(sorted("sst"[k] for k in set(scene["truth"]))) for scene in scenes]
    assert len(set(objects)) == len(objects) == 5
    assert (out / "examples-scenes.png").stat().st_size > 10_000


def test_answers_are_those_of_the_solvers(out):
    scenes = json.loads((out / "examples.json").read_text())["answers-sigma0"]
    assert 3 <= len(scenes) <= 8
    labelled = simulated(30, SIGMAS[0], 0)
    for scene in scenes:
        points = np.array(scene["points"])
        assert np.array_equal(
            points, labelled.points[scene["scene"]][labelled.present[scene["scene"]]]
        )
        assert len(set(scene["truth"])) > 1
        answer = scene["answers"]["ransac"]
        # Without noise RANSAC is always right, and its objects go through the points.
        assert answer["right"]
        assert answer["owner"] == scene["truth"]
        for k, parts in answer["objects"].items():
            mine = points[np.array(scene["truth"]) == int(k)]
            away = np.linalg.norm(np.array(parts)[:, None] - mine, axis=2).min(0)
            assert away.max() < 1e-3
        found = pw.infer(pw.constellations(), points, pw.Variational(beta=0.05), seed=0)
        assert len(found.labels) == len(scene["answers"]["ds"]["owner"])


def test_without_ccae_and_again_with_it(tmp_path, monkeypatch):
    """A figure that was made without the extra is made anew once it is there."""

    def page(methods):
        monkeypatch.setattr("partwise.paper.examples.METHODS", methods)
        Examples(tmp_path, scenes=10, figures=(("answers", 0.0),)).run()
        whole = json.loads((tmp_path / "examples.json").read_text())
        return set(whole["answers-sigma0"][0]["answers"]), whole["page"]["pictures"][0]["caption"]

    shown, caption = page(("ds",))
    assert shown == {"ds"}
    assert "CCAE needs the extra" in caption
    assert page(("ds", "ransac"))[0] == {"ds", "ransac"}
