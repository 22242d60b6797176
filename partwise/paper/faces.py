"""Faces (sec. 7.2): how often parts are assigned right, and how well scenes are rebuilt.

What is run: VI and RANSAC on scenes of 2, 3, 4 and 5 faces and of 3 occluded ones, of the ORL
photographs and, where it is at hand, of the model that was fitted to PhotoFit's parts; the sweep
over the number of factors; and the paper's figure. No solver knows which face a part came from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partwise.evaluation import Timing
from partwise.faces import Faces, FaceScenes, draw_scenes, face_solver, fit_of, load_faces
from partwise.faces.canvas import PARTS
from partwise.faces.evaluation import assigned, rebuilding_errors, summary
from partwise.inference import solve
from partwise.paper.keeping import code_digest, keep
from partwise.paper.published import (
    FACES_ASSIGNMENT,
    FACES_MODEL,
    FACES_RMSE,
    FACES_SCENES,
    PHOTOFIT_BASIS,
    recorded_folder,
)
from partwise.paper.tables import Grid, Measured, Row, write_report
from partwise.plotting.faces import KINDS, write_pictures
from partwise.plotting.saving import Picture

__all__ = ["Cell", "Experiment", "run"]

REBUILT = ("vi", "ransac", "ransac-mean", "ransac-refit")
ONLY_ASSIGNED = ("vi-random",)

TITLES = {
    "vi": "VI",
    "vi-random": "VI, random starts",
    "ransac": "RANSAC",
    "ransac-mean": "RANSAC, mean",
    "ransac-refit": "RANSAC, refit",
}
SOURCES = {"orl": "ORL", "photofit": "PhotoFit"}


def run(
    out: str | Path,
    scenes: int | None = None,
    progress: Callable[..., None] | None = None,
    **options: Any,
) -> list[Any]:
    """Run the experiment, write its files into ``out``, and return tables for Rich."""
    experiment = Experiment(Path(out), scenes or FACES_SCENES, **options)
    cells = list(experiment.cells())
    if progress is not None:
        progress(0, total=len(cells) * experiment.scenes)
    results = {cell: experiment.measured(cell, progress) for cell in cells}
    return experiment.write(results)


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


Result = dict[str, Any]
"""For each solver ``right`` and, where scenes were rebuilt, ``errors``, one a scene; ``speed``."""


@dataclass(frozen=True)
class Experiment:
    """What is run, and where its results are kept.

    A cell that is done is a JSON file in ``out/faces.cells`` with what it depends on; it is redone
    only if that changes.
    """

    out: Path
    scenes: int = FACES_SCENES
    seed: int = 1
    data: Path | None = None
    sources: tuple[str, ...] = tuple(SOURCES)
    kinds: tuple[tuple[int, bool], ...] = KINDS

    @property
    def basis(self) -> Path:
        """The model of PhotoFit's parts, if it is at hand."""
        return (recorded_folder() if self.data is None else self.data) / PHOTOFIT_BASIS

    def cells(self) -> Iterator[Cell]:
        """Every cell."""
        for source in self.sources:
            if source == "orl" or self.basis.is_file():
                yield from (Cell(source, *kind) for kind in self.kinds)

    def faces(self, source: str) -> Faces:
        """The faces of a source."""
        return load_faces(None if source == "orl" else self.basis)

    def measured(self, cell: Cell, progress: Callable[..., None] | None = None) -> Result:
        """The result of a cell, from its file if that is still what would be computed."""
        faces = self.faces(cell.source)
        drawn = draw_scenes(faces, cell.faces, self.scenes, cell.occluded, self.seed)
        digest = hashlib.sha256(np.ascontiguousarray(drawn.scenes.parts).tobytes())
        digest.update(np.ascontiguousarray(drawn.codes).tobytes())
        options = {"code": code_digest(), "scenes": digest.hexdigest(), "seed": self.seed}
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            if progress is not None:
                progress(count)

        path = self.out / "faces.cells" / f"{cell.name}.json"
        result = keep(path, options, lambda: self._measure(cell, faces, drawn, advance))
        advance(self.scenes - done)
        return result

    def _measure(
        self, cell: Cell, faces: Faces, drawn: FaceScenes, progress: Callable[[int], None]
    ) -> Result:
        model = faces.model.scene_model(cell.faces, cell.occluded)
        timing = Timing(model, face_solver("vi"), self.seed)
        found = {"vi": timing.once(drawn.scenes)[0]}
        speed = timing.steady(drawn.scenes, 0.0)[1]
        for name in (*REBUILT[1:], *ONLY_ASSIGNED):
            found[name] = solve(model, drawn.scenes, face_solver(name), self.seed)
        rebuilt = [found[name] for name in REBUILT]
        errors = rebuilding_errors(faces.model, drawn, *rebuilt, progress=progress)
        out: Result = {name: {"right": assigned(drawn, f).tolist()} for name, f in found.items()}
        for name, of_scenes in zip(REBUILT, errors, strict=True):
            out[name]["errors"] = of_scenes.tolist()
        return {**out, "speed": speed}

    def write(self, results: dict[Cell, Result]) -> list[Any]:
        """Write JSON, CSV, Markdown and the pictures; return the tables for Rich."""
        rows = [row for cell, result in results.items() for row in _rows(cell, result)]
        sources = list(dict.fromkeys(cell.source for cell in results))
        fit = fit_of() if "orl" in sources else None
        pictures: list[Picture] = []
        for source in sources:
            sweep = fit if source == "orl" else None
            prefix = "faces" if source == "orl" else f"faces-{source}"
            made = write_pictures(self.out, self.faces(source), self.seed, sweep, prefix)
            pictures += [Picture(p.file, f"{SOURCES[source]}. {p.caption}") for p in made]
        grids = [
            *(_assignment(results, source) for source in sources),
            *(_rebuilding(results, source) for source in sources),
            _comparison(results),
            _speed(results),
            _models({source: self.faces(source) for source in sources}),
        ]
        report: dict[str, Any] = {"seed": self.seed, "rows": rows}
        if fit is not None:
            report["sweep"] = {"factors": list(fit.factors), "rmse": fit.losses.tolist()}
        return write_report(self.out, "faces", report, rows, INTRODUCTION, grids, pictures)


INTRODUCTION = """# Faces: parts with appearance

Percentages are ± standard error. RMSE (grey levels from 0 to 1, input scene against the scene
rebuilt from the inferred poses and factors) is ± spread from scene to scene, as in the paper, whose
faces are of PhotoFit's parts. Ours are put together from the ORL photographs (the input shows the
photographs themselves, so that what PPCA leaves out counts as an error too); the PhotoFit model has
no photographs, its faces are drawn from the model and its hair is flat. How far faces are scaled
down the paper does not say. So figures of RMSE compare among the rows of one source.

*ORL* are the photographs, *PhotoFit* the model of PhotoFit's parts. VI starts from the parts'
votes; "random starts" is the paper's way. RANSAC's appearance, given one
part, is a sample of its posterior as in the paper, or the mean; "refit" takes all parts.

"""


def _rows(cell: Cell, result: Result) -> Iterator[Row]:
    """One row a solver: ours beside the paper's."""
    for name in (*REBUILT, *ONLY_ASSIGNED):
        right = np.array(result[name]["right"], bool)
        errors = np.array(result[name].get("errors", [np.nan] * len(right)))
        figures = {k: None if np.isnan(v) else v for k, v in summary(right, errors).items()}
        base = name.split("-")[0]
        yield {
            "source": cell.source,
            "kind": cell.kind,
            "solver": name,
            **figures,
            "paper_assignment_accuracy": FACES_ASSIGNMENT[base].get(cell.kind),
            "scenes_per_second": result["speed"] if name == "vi" else None,
        }


# Tables to look at ----------------------------------------------------------------------------


def _of(results: dict[Cell, Result], source: str) -> dict[str, Result]:
    return {cell.kind: result for cell, result in results.items() if cell.source == source}


def _heads(kinds: Iterable[str]) -> list[str]:
    return [kind if kind == "occluded" else f"{kind} faces" for kind in kinds]


def _assignment(results: dict[Cell, Result], source: str) -> Grid:
    """Scenes in which every part is assigned right, per cent.

    RANSAC's appearance does not enter its matches: one row stands for all three.
    """
    kinds, lines = _of(results, source), []
    for name in ("vi", *ONLY_ASSIGNED, "ransac"):
        paper = FACES_ASSIGNMENT[name.split("-")[0]]
        cells = []
        for kind, result in kinds.items():
            figures = summary(np.array(result[name]["right"], bool), np.zeros(1))
            share, error = figures["assignment_accuracy"], figures["assignment_standard_error"]
            reference = 100 * paper[kind] if kind in paper else None
            cells.append(Measured(100 * share, 100 * error, reference, spec=".1f"))
        lines.append([TITLES[name], *cells])
    count = len(next(iter(kinds.values()))["vi"]["right"])
    title = f"every part assigned right, % of {count} scenes each, {SOURCES[source]}"
    return Grid(title, ["solver", *_heads(kinds)], lines)


def _rebuilding(results: dict[Cell, Result], source: str) -> Grid:
    """RMSE by kind, and over 2 to 5 faces together as in the paper."""
    kinds, lines = _of(results, source), []
    for name in REBUILT:
        errors = {kind: np.array(result[name]["errors"]) for kind, result in kinds.items()}
        together = np.concatenate([e for kind, e in errors.items() if kind != "occluded"] or [[]])
        both = [together] if len(together) else []
        lines.append([TITLES[name], *map(_spread, [*errors.values(), *both])])
    heads = _heads(kinds)
    if any(kind != "occluded" for kind in kinds):
        heads.append("2 to 5 faces")
        blank = [""] * (len(heads) - 1)
        lines += [
            [f"{TITLES[name]} (paper)", *blank, f"{mean:.3f} ± {spread:.3f}"]
            for name, (mean, spread) in FACES_RMSE.items()
        ]
    return Grid(f"RMSE of rebuilt scenes, {SOURCES[source]}", ["solver", *heads], lines)


def _spread(errors: np.ndarray) -> str:
    return f"{errors.mean():.4f} ± {errors.std():.4f}"


def _comparison(results: dict[Cell, Result]) -> Grid:
    """Scene by scene: VI against RANSAC."""
    lines = []
    for cell, result in results.items():
        vi, sample, mean, refit = (np.array(result[name]["errors"]) for name in REBUILT)
        lines.append(
            [
                SOURCES[cell.source],
                cell.kind,
                f"{(vi < sample).mean():.1%}",
                f"{(vi < mean).mean():.1%}",
                f"{np.abs(refit / vi - 1).max():.3%}",
            ]
        )
    heads = [
        "faces",
        "scenes",
        "VI < RANSAC",
        "VI < RANSAC, mean",
        "RANSAC, refit off VI by at most",
    ]
    return Grid("scene by scene, RMSE", heads, lines)


def _speed(results: dict[Cell, Result]) -> Grid:
    """Warm inference of VI, on the machine that ran it."""
    lines = [
        [SOURCES[source], *(f"{r['speed']:,.0f}" for r in _of(results, source).values())]
        for source in dict.fromkeys(cell.source for cell in results)
    ]
    kinds = dict.fromkeys(cell.kind for cell in results)
    return Grid("VI, scenes a second, warm", ["faces", *_heads(kinds)], lines)


def _models(faces: dict[str, Faces]) -> Grid:
    """The sizes of the models."""
    lines: list[list[str]] = []
    for source, these in faces.items():
        model = these.model
        lines.append([SOURCES[source], *map(str, (*model.looks.features, model.factors))])
    lines.append(["paper", *(str(FACES_MODEL[name]) for name in (*PARTS, "factors"))])
    return Grid("codes of each part, and factors", ["faces", *PARTS, "factors"], lines)
