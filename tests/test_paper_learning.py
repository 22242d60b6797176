"""The experiment on learning, in miniature: what it writes, and that it resumes."""

import json

import numpy as np
import pytest

import partwise as pw
from partwise.learning.bound import simple_bound
from partwise.paper import EXPERIMENTS, learning
from partwise.paper.learning import Cell, Learning
from partwise.paper.published import LEARNING


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def tables(out):
    with pytest.MonkeyPatch.context() as patch:
        # The bound and the mixed scenes have tests of their own.
        patch.setattr(
            learning, "cramer_rao", lambda *a, identified=False: [np.inf, 1.0][identified]
        )
        return Learning(out, scenes=10, sigmas=(0.1,), mixed_sigmas=(), data=out).run()


def test_what_is_written(out, tables):
    assert "learning" in EXPERIMENTS
    report = json.loads((out / "learning.json").read_text())
    rows = {(r["object"], r["sigma"], r["method"]): r for r in report["rows"]}
    assert len(rows) == 2 * 4
    row = rows["square", 0.1, "default"]
    assert row["paper"] == LEARNING["square"][0.1]
    assert row["times_simple_bound"] == pytest.approx(
        row["smse"] / simple_bound(pw.shapes.square(), 0.1, 64)
    )
    assert row["bound"] is None  # infinite
    assert rows["square", 0.1, "identified"]["bound"] == 1.0
    assert rows["triangle", 0.1, "identified"]["smse"] < 1e-3
    text = (out / "learning.md").read_text()
    assert "learning.png" in text
    assert "Table 1 with learned templates" in text
    assert (out / "learning.png").stat().st_size > 10_000
    assert (out / "learning.csv").is_file()
    assert len(tables) == 1  # the summary


def test_smse_is_that_of_fresh_scenes(tmp_path):
    """By hand: the same scenes, learned and compared without the experiment."""
    experiment = Learning(tmp_path, scenes=10)
    kept = experiment.kept(Cell("smse", 0.1, "free", "triangle")).result
    scenes = experiment.examples("triangle", 0.1, 2)
    assert not np.array_equal(scenes[0].points, scenes[1].points)
    for seed, labelled in enumerate(scenes):
        learned = pw.learn(labelled, 3, symmetry=False, seed=seed)
        smse = learned.compare(pw.shapes.triangle()).smse
        assert kept["smse"][seed] == pytest.approx(smse, rel=1e-6)


def test_what_is_done_is_not_redone(out, tables, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("learned again")

    monkeypatch.setattr(Learning, "compute", never)
    again = Learning(out, scenes=10, sigmas=(0.1,), mixed_sigmas=(), data=out).run()
    assert len(again) == len(tables)
