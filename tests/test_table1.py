"""Table 1 as an experiment, in miniature: what it writes, and that it resumes."""

import csv
import json

import numpy as np
import pytest
from fakes import Counting, InOrder

import partwise as pw
from partwise.metrics import METRICS, published_scores
from partwise.paper import EXPERIMENTS, select
from partwise.paper.published import LIMIT, T_TESTS, TABLE1, recorded_name
from partwise.paper.table1 import Cell, Table1


def counting(name, **options):
    return Counting(**options)


def with_empty_scenes(labelled):
    """As in the paper's files, draws without any object are there too."""
    present = labelled.present.copy()
    present[1::9] = False
    return pw.LabelledScenes(labelled.points, present, labelled.object_id)


@pytest.fixture
def data(tmp_path):
    """A folder of recorded draws: ours, with an answer for CCAE that is nearly the truth."""
    folder = tmp_path / "data"
    folder.mkdir()
    for sigma in (0.0, 0.1):
        labelled = with_empty_scenes(pw.simulate_constellations(30, sigma, 7))
        owner = labelled.object_id.copy()
        owner[::3, 0] = 1
        present = np.stack([labelled.present[:, [0, 4, 7]][:, k] for k in range(3)], 1)
        np.savez(
            folder / recorded_name(sigma),
            points=labelled.points,
            present=labelled.present,
            object_id=labelled.object_id,
            ccae_object_id=owner.astype(np.int8),
            ccae_object_present=present,
        )
    return folder


def small(out, data, progress=None, **options):
    Counting.seen = 0
    fast = {"sigmas": (0.0, 0.1), "betas": (0.05, 0.2), "solvers": counting, "data": data}
    return Table1(out, scenes=25, **{**fast, **options}).run(progress)


def test_what_is_written(tmp_path, data):
    out = tmp_path / "report"
    told = []
    small(out, data, progress=lambda done, total=None: told.append((done, total)))
    report = json.loads((out / "table1.json").read_text())
    rows = report["rows"]
    # 6 methods, and CCAE's recorded outputs, at 2 noise levels; one more beta for ds and gmm.
    cells = {(r["source"], r["sigma"], r["method"], r["beta"]) for r in rows}
    assert len(cells) == 2 * 6 + 2 * 7 + 2 * 2
    assert len(rows) == len(cells) * 2 * len(METRICS)
    assert told[0] == (0, len(cells))
    assert sum(done for done, _ in told) == len(cells)
    for r in rows:
        if r["reference_value"] is not None:
            assert r["difference"] == pytest.approx(r["ours"] - r["reference_value"])
        method = r["method"].removesuffix("-recorded")
        if method in TABLE1 and r["beta"] in (None, 0.05):
            assert r["reference_value"] == TABLE1[method][r["sigma"]][METRICS.index(r["metric"])]
        elif r["method"] in ("exact", "auto") and r["protocol"] == "exchangeable":
            assert r["reference_value"] == LIMIT[r["sigma"]][METRICS.index(r["metric"])]
        else:
            assert r["reference_value"] is None
    with (out / "table1.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    page = (out / "table1.md").read_text()
    assert "published" in page
    assert "exchangeable" in page


def test_ccae_is_scored_from_its_recorded_outputs(tmp_path, data):
    small(tmp_path / "report", data)
    rows = json.loads((tmp_path / "report" / "table1.json").read_text())["rows"]
    with np.load(data / recorded_name(0.0)) as file:
        used = np.flatnonzero(file["present"].any(1))[:25]
        assert used[-1] > 25
        every = pw.LabelledScenes(file["points"], file["present"], file["object_id"])
        q = np.take_along_axis(file["ccae_object_present"], every.object_id, 1)[used]
        owner = file["ccae_object_id"][used]
        wanted = published_scores(every.select(used), owner, q).mean()
    ours = {
        r["metric"]: r["ours"]
        for r in rows
        if (r["method"], r["sigma"], r["protocol"]) == ("ccae-recorded", 0.0, "published")
    }
    assert ours == pytest.approx(wanted)
    assert 0.2 < ours["scene_accuracy"] < 1


def test_t_tests_are_at_sigma_0_between_all_methods(tmp_path, data):
    small(tmp_path / "report", data)
    tests = json.loads((tmp_path / "report" / "table1.json").read_text())["t_tests"]
    pairs = {tuple(t["methods"]) for t in tests if t["source"] == "recorded"}
    assert len(pairs) == 21
    assert set(T_TESTS) <= pairs
    assert {("ccae-recorded", b) for _, b in T_TESTS} <= pairs
    assert all(0 <= t["p_value"] <= 1 for t in tests)
    # The same solver under six names: no difference.
    same = [t for t in tests if "ccae-recorded" not in t["methods"]]
    assert all(t["difference"] == 0 and t["p_value"] == 1 for t in same)


def test_finished_cells_are_not_redone(tmp_path, data):
    out = tmp_path / "report"
    small(out, data)
    everything, before = Counting.seen, (out / "table1.json").read_text()
    assert everything > 0
    small(out, data)
    assert Counting.seen == 0
    assert (out / "table1.json").read_text() == before
    # One that is damaged is redone, alone.
    cell = Cell("simulated", 0.1, "exact", None)
    kept = out / "table1.cells" / f"{cell.name}.json"
    kept.write_text(kept.read_text()[:-5])
    small(out, data)
    scenes = Table1(out, scenes=25, data=data).labelled(cell)
    assert Counting.seen == len(scenes)
    # Other options: everything but the recorded outputs is redone.
    small(out, data, seed=1)
    assert Counting.seen > 0.8 * everything


def test_without_the_papers_draws(tmp_path):
    small(tmp_path / "report", tmp_path / "nowhere", solvers=lambda name, **_: InOrder())
    rows = json.loads((tmp_path / "report" / "table1.json").read_text())["rows"]
    assert {r["source"] for r in rows} == {"simulated"}
    assert "ccae-recorded" not in {r["method"] for r in rows}


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(pw.InputError, match="--out"):
        small(tmp_path / "file" / "report", tmp_path)


def test_the_registry():
    assert select(None) == list(EXPERIMENTS)
    assert select(" table1 ") == ["table1"]
    with pytest.raises(pw.InputError, match="there is no experiment"):
        select("table1,nothing")
