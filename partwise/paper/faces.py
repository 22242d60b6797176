"""Faces (sec. 7.2): how often parts are assigned right, and how well scenes are rebuilt.

What is run: VI and RANSAC on scenes of 2, 3, 4 and 5 faces and of 3 occluded ones, of the ORL
photographs and, where it is at hand, of the model that was fitted to PhotoFit's parts; the sweep
over the number of factors; and the paper's figure. No solver knows which face a part came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partwise.evaluation import Timing
from partwise.faces import Faces, FaceScenes, draw_scenes, face_solver, fit_of, load_faces
from partwise.faces.evaluation import assigned, rebuilding_errors
from partwise.faces.rendering import render_faces, render_truth, shown_faces
from partwise.inference import solve
from partwise.paper import faces_tables as tables
from partwise.paper.experiment import Advance, Experiment
from partwise.paper.published import FACES_SCENES, PHOTOFIT_BASIS
from partwise.paper.reporting import Report
from partwise.plotting.faces import COLUMNS, KINDS, label_of, write_pictures
from partwise.plotting.saving import Picture

__all__ = ["Cell", "FacesExperiment"]


@dataclass(frozen=True)
class Cell:
    """One kind of scene of one source."""

    source: str
    faces: int
    occluded: bool

    @property
    def kind(self) -> str:
        """The kind of scene, as the tables call it."""
        return "occluded" if self.occluded else str(self.faces)

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.source}-{self.kind}"


@dataclass(frozen=True)
class FacesExperiment(Experiment[Cell]):
    """What is run."""

    name = "faces"

    seed: int = 1
    sources: tuple[str, ...] = ("orl", "photofit")
    kinds: tuple[tuple[int, bool], ...] = KINDS

    @property
    def count(self) -> int:
        """Scenes a cell."""
        return self.scenes or FACES_SCENES

    @property
    def basis(self) -> Path:
        """The model of PhotoFit's parts, if it is at hand."""
        return self.folder / PHOTOFIT_BASIS

    def cells(self) -> Iterator[Cell]:
        """Every kind of scene of every source."""
        for source in self.sources:
            if source == "orl" or self.basis.is_file():
                yield from (Cell(source, *kind) for kind in self.kinds)

    def size(self, cell: Cell) -> int:
        """Scenes."""
        return self.count

    def faces(self, source: str) -> Faces:
        """The faces of a source."""
        return load_faces(None if source == "orl" else self.basis)

    def drawn(self, cell: Cell) -> FaceScenes:
        """The scenes of a cell."""
        faces = self.faces(cell.source)
        return draw_scenes(faces, cell.faces, self.count, cell.occluded, self.seed)

    def depends(self, cell: Cell) -> dict[str, Any]:
        """The scenes."""
        drawn = self.drawn(cell)
        digest = hashlib.sha256(np.ascontiguousarray(drawn.scenes.parts).tobytes())
        digest.update(np.ascontiguousarray(drawn.codes).tobytes())
        return {"draws": digest.hexdigest()}

    def compute(self, cell: Cell, advance: Advance) -> dict[str, Any]:
        """For each solver ``right`` and, of those rebuilt, ``errors``, one a scene; ``speed``.

        ``first``: the poses and factors that are found in the first scene, for the figure.
        """
        model, drawn = self.faces(cell.source).model, self.drawn(cell)
        scenes = model.scene_model(cell.faces, cell.occluded)
        timing = Timing(scenes, face_solver("vi"), self.seed)
        found = {"vi": timing.once(drawn.scenes)[0]}
        speed = timing.steady(drawn.scenes, 0.0)[1]
        for name in (*tables.REBUILT[1:], *tables.ONLY_ASSIGNED):
            found[name] = solve(scenes, drawn.scenes, face_solver(name), self.seed)
        rebuilt = [found[name] for name in tables.REBUILT]
        errors = rebuilding_errors(model, drawn, *rebuilt, progress=advance)
        out: dict[str, Any] = {n: {"right": assigned(drawn, f).tolist()} for n, f in found.items()}
        for name, of_scenes in zip(tables.REBUILT, errors, strict=True):
            out[name]["errors"] = of_scenes.tolist()
        first = {
            name: [
                [pose.tolist(), factors.tolist()] for pose, factors in shown_faces(found[name][0])
            ]
            for name in COLUMNS
        }
        return {**out, "speed": speed, "first": first}

    def report(self, results: dict[Cell, Any]) -> Report:
        """The tables, and the pictures of every source."""
        sources = list(dict.fromkeys(cell.source for cell in results))
        fit = fit_of() if "orl" in sources else None
        pictures: list[Picture] = []
        for source in sources:
            sweep = fit if source == "orl" else None
            prefix = "faces" if source == "orl" else f"faces-{source}"
            rows = {
                label_of(cell.faces, cell.occluded): self._row(cell, result["first"])
                for cell, result in results.items()
                if cell.source == source
            }
            made = write_pictures(self.out, self.faces(source), self.seed, sweep, prefix, rows)
            title = tables.SOURCES[source]
            pictures += [Picture(p.file, f"{title}. {p.caption}") for p in made]
        models = {source: self.faces(source).model for source in sources}
        return tables.report(results, models, pictures, fit)

    def _row(self, cell: Cell, first: dict[str, Any]) -> list[np.ndarray]:
        """A row of the paper's figure: the first scene, and what each method makes of it."""
        model = self.faces(cell.source).model
        truth = render_truth(model, self.drawn(cell), 0)
        return [truth, *(render_faces(model, first[name]) for name in COLUMNS)]
