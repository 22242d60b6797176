"""What all experiments share, on one that counts: kept, resumed, told, written."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import partwise as pw
from partwise.paper import EXPERIMENTS, Entry
from partwise.paper.experiment import Experiment
from partwise.paper.reporting import Report
from partwise.paper.tables import Grid, Measured


@dataclass(frozen=True)
class Square:
    """What a cell depends on."""

    number: int

    @property
    def name(self):
        return f"square-{self.number}"


@dataclass(frozen=True)
class Squares(Experiment[Square]):
    """The squares of some numbers."""

    name = "squares"
    numbers: tuple[int, ...] = (1, 2, 3)
    stop_at: int = 100

    def cells(self) -> Iterator[Square]:
        yield from map(Square, self.numbers)

    def size(self, cell):
        return cell.number

    def depends(self, cell):
        return {"scale": 1.0}

    def compute(self, cell, advance):
        if cell.number == self.stop_at:
            raise KeyboardInterrupt
        done.append(cell.number)
        advance(1)
        return {"square": (cell.number**2,)}

    def report(self, results):
        rows = [{"number": c.number, "square": r["square"][0]} for c, r in results.items()]
        lines = [[str(r["number"]), Measured(r["square"], 0.0, r["square"])] for r in rows]
        grid = Grid("squares", ["number", "square"], lines)
        return Report("The paper says so.", "So do we.", [grid], summary=[grid], rows=rows)


done: list[int] = []


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    done.clear()
    monkeypatch.setitem(EXPERIMENTS, "squares", Entry("Squares", "nowhere.Squares", 1))


def test_cells_are_run_once_and_an_interrupted_run_goes_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        Squares(tmp_path, stop_at=2).run()
    assert done == [1]
    told = []
    tables = Squares(tmp_path).run(lambda count, total=None: told.append((count, total)))
    assert done == [1, 2, 3]
    assert len(tables) == 1
    assert told[0] == (0, 6)
    assert sum(count for count, _ in told) == 6
    before = (tmp_path / "squares.json").read_text()
    Squares(tmp_path).run()
    assert done == [1, 2, 3]
    assert (tmp_path / "squares.json").read_text() == before


def test_what_a_cell_depends_on_redoes_it(tmp_path):
    Squares(tmp_path).run()
    Squares(tmp_path, seed=1).run()
    Squares(tmp_path, seed=1, scenes=5).run()
    assert done == [1, 2, 3] * 3
    path = tmp_path / "squares.cells" / "square-2.json"
    path.write_text(path.read_text()[:-4])
    Squares(tmp_path, seed=1, scenes=5).run()
    assert done[9:] == [2]


def test_what_is_written(tmp_path):
    Squares(tmp_path, seed=7).run()
    written = json.loads((tmp_path / "squares.json").read_text())
    assert written["seed"] == written["page"]["seed"] == 7
    assert written["rows"][1] == {"number": 2, "square": 4}
    assert written["page"]["title"] == "Squares"
    assert written["page"]["seconds"] >= 0
    assert (tmp_path / "squares.csv").read_text().split() == ["number,square", "1,1", "2,4", "3,9"]
    text = (tmp_path / "squares.md").read_text()
    assert text.startswith(
        "# Squares\n\nThe paper says so.\n\nSo do we.\n\n## squares\n\n| number |"
    )


def test_every_entry_names_an_experiment(tmp_path):
    from importlib import import_module

    for name, entry in EXPERIMENTS.items():
        if name == "squares":
            continue
        module, cls = entry.where.split(".")
        assert getattr(import_module(f"partwise.paper.{module}"), cls).name == name


def test_an_extra_that_is_missing_is_one_sentence(tmp_path):
    entry = Entry("Faces", "faces.FacesExperiment", 1, needs=("no_such_module",), extra="faces")
    assert entry.lacking == "Not run: this needs the extra faces, pip install 'partwise[faces]'."
    with pytest.raises(pw.InputError, match=r"partwise\[faces\]"):
        entry.run(tmp_path)
