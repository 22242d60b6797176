"""The experiment on faces: its files, its figures, and that finished cells are not redone."""

import csv
import json

import numpy as np
import pytest

from partwise.faces import write_basis
from partwise.paper import faces as experiment
from partwise.paper.faces import Cell, FacesExperiment
from partwise.paper.faces_tables import ONLY_ASSIGNED, REBUILT
from partwise.paper.published import FACES_ASSIGNMENT, PHOTOFIT_BASIS
from tests.small_faces import small_model


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The experiment on the small model, two kinds of scenes, its figures and files."""
    folder = tmp_path_factory.mktemp("faces")
    write_basis(folder / PHOTOFIT_BASIS, small_model())
    options = {"data": folder, "sources": ("photofit",), "kinds": ((2, False),), "seed": 3}
    told = []
    patch = pytest.MonkeyPatch()
    patch.setattr(experiment, "write_pictures", lambda *args: [])
    FacesExperiment(folder, scenes=4, **options).run(
        lambda done, total=None: told.append((done, total))
    )
    yield folder, options, told
    patch.undo()


def test_files_and_figures(report):
    folder, _, told = report
    rows = json.loads((folder / "faces.json").read_text())["rows"]
    assert [r["solver"] for r in rows] == [*REBUILT, *ONLY_ASSIGNED]
    for row in rows:
        assert row["scenes"] == 4
        assert (
            row["paper_assignment_accuracy"] == FACES_ASSIGNMENT[row["solver"].split("-")[0]]["2"]
        )
        assert (row["rmse_mean"] is None) == (row["solver"] == "vi-random")
    with (folder / "faces.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    assert told[0] == (0, 4)
    assert sum(done for done, _ in told) == 4


def test_the_tables_show_what_was_measured(report):
    folder, options, _ = report
    cell = Cell("photofit", 2, False)
    kept = json.loads((folder / "faces.cells" / f"{cell.name}.json").read_text())["result"]
    page = (folder / "faces.md").read_text()
    errors = np.array(kept["ransac"]["errors"])
    assert f"{errors.mean():.4f} ± {errors.std():.4f}" in page
    below = (np.array(kept["vi"]["errors"]) < errors).mean()
    assert f"| PhotoFit | 2 | {below:.1%} |" in page
    assert FacesExperiment(folder, 4, **options).kept(cell).result == kept


def test_finished_cells_are_not_redone(report, monkeypatch):
    folder, options, _ = report
    before = (folder / "faces.json").read_text()
    monkeypatch.setattr(FacesExperiment, "compute", lambda *args: pytest.fail("done again"))
    FacesExperiment(folder, scenes=4, **options).run()
    assert (folder / "faces.json").read_text() == before
    with pytest.raises(pytest.fail.Exception):
        FacesExperiment(folder, scenes=4, **{**options, "seed": 4}).run()


def test_without_the_photofit_model(tmp_path):
    assert {c.source for c in FacesExperiment(tmp_path, data=tmp_path).cells()} == {"orl"}
