"""The tables of :mod:`partwise.paper.faces`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.faces import FaceModel
from partwise.faces.canvas import PARTS
from partwise.faces.evaluation import summary
from partwise.faces.fitting import Fit, knee
from partwise.paper.published import FACES_ASSIGNMENT, FACES_MODEL, FACES_RMSE
from partwise.paper.reporting import Report
from partwise.paper.tables import Claim, Grid, Measured, Row, mean_and_error
from partwise.plotting.saving import Picture

if TYPE_CHECKING:
    from partwise.paper.faces import Cell

__all__ = ["ONLY_ASSIGNED", "REBUILT", "SOURCES", "report"]

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

SAME = 0.01
"""Two RMSEs that differ by a smaller share are the same."""

Result = dict[str, Any]

SAYS = """Scenes of 2 to 5 faces, 250 of each, each face five parts with a position and a look.
VI explains all scenes of 2 and 3 faces and of occluded ones right and a few of the larger ones
wrong; RANSAC explains all of them, but rebuilds them less well (sec. 7.2.2).
"""

TEXT = """Percentages are ± standard error. RMSE (grey levels from 0 to 1, input scene against the
scene rebuilt from the inferred poses and factors) is ± spread from scene to scene, as in the paper,
whose faces are of PhotoFit's parts. Ours are put together from the ORL photographs (the input shows
the photographs themselves, so that what PPCA leaves out counts as an error too); the PhotoFit model
has no photographs, its faces are drawn from the model and its hair is flat. How far faces are
scaled down the paper does not say. So figures of RMSE compare among the rows of one source.

*ORL* are the photographs, *PhotoFit* the model of PhotoFit's parts. VI starts from the parts'
votes; "random starts" is the paper's way. RANSAC's appearance, given one part, is a sample of its
posterior as in the paper, or the mean; "refit" takes all parts.
"""


def report(
    results: dict[Cell, Result],
    models: dict[str, FaceModel],
    pictures: Sequence[Picture],
    fit: Fit | None,
) -> Report:
    """What the page and the files show of the cells."""
    data: dict[str, Any] = {"first": {c.name: r["first"] for c, r in results.items()}}
    if fit is not None:
        data["sweep"] = {"factors": list(fit.factors), "rmse": fit.losses.tolist()}
    return Report(
        SAYS,
        TEXT,
        [
            *(_assignment(results, source) for source in models),
            *(_rebuilding(results, source) for source in models),
            _comparison(results),
            _speed(results),
            _models(models),
        ],
        summary=[_summary(results), *_rmse_summary(results), _claims(results, fit)],
        pictures=pictures,
        rows=[row for cell, result in results.items() for row in _rows(cell, result)],
        data=data,
    )


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


def _share(result: Result, name: str, kind: str) -> Measured:
    """Scenes in which every part is assigned right, per cent, beside the paper's."""
    right = np.array(result[name]["right"], bool)
    figures = summary(right, np.zeros(len(right)))
    share, error = figures["assignment_accuracy"], figures["assignment_standard_error"]
    paper = FACES_ASSIGNMENT[name.split("-")[0]].get(kind)
    # The paper's share is of as many scenes, so that its own error is known.
    count, others = len(result[name]["right"]), None
    if paper is not None:
        others = 100 * float(np.sqrt(paper * (1 - paper) / count))
        paper *= 100
    return Measured(100 * share, 100 * error, paper, spec=".1f", reference_error=others)


def _assignment(results: dict[Cell, Result], source: str) -> Grid:
    """Scenes in which every part is assigned right, per cent.

    RANSAC's appearance does not enter its matches: one row stands for all three.
    """
    kinds, lines = _of(results, source), []
    for name in ("vi", *ONLY_ASSIGNED, "ransac"):
        lines.append([TITLES[name], *(_share(r, name, kind) for kind, r in kinds.items())])
    count = len(next(iter(kinds.values()))["vi"]["right"])
    title = f"every part assigned right, % of {count} scenes each, {SOURCES[source]}"
    return Grid(title, ["solver", *_heads(kinds)], lines)


def _first(results: dict[Cell, Result]) -> str:
    """The source of the summary: photographs where there are any."""
    return next(iter(results)).source


def _summary(results: dict[Cell, Result]) -> Grid:
    kinds = _of(results, _first(results))
    lines = [
        ["all assigned right, %", TITLES[name], *(_share(r, name, k) for k, r in kinds.items())]
        for name in ("vi", "ransac")
    ]
    count = len(next(iter(kinds.values()))["vi"]["right"])
    title = f"Faces, {count} scenes each, {SOURCES[_first(results)]}"
    return Grid(title, ["metric", "solver", *_heads(kinds)], lines)


def _together(results: dict[Cell, Result], name: str) -> np.ndarray:
    """The RMSE of all scenes of 2 to 5 faces, as in the paper."""
    kinds = _of(results, _first(results))
    return np.concatenate(
        [r[name]["errors"] for kind, r in kinds.items() if kind != "occluded"] or [[]]
    )


def _rmse_summary(results: dict[Cell, Result]) -> Iterator[Grid]:
    """RMSE beside the paper's, whose faces are others."""
    lines = []
    for name, (paper, _) in FACES_RMSE.items():
        errors = _together(results, name)
        if len(errors):
            ours = Measured(
                *mean_and_error(errors), paper, more=False, spec=".4f", comparable=False
            )
            lines.append(["RMSE", TITLES[name], ours])
    if lines:
        yield Grid(
            "Rebuilt scenes, other faces than the paper's",
            ["metric", "solver", "2 to 5 faces"],
            lines,
        )


def _claims(results: dict[Cell, Result], fit: Fit | None) -> Grid:
    """What sec. 7.2 says in words."""
    vi, ransac, refit = (_together(results, name) for name in ("vi", "ransac", "ransac-refit"))
    lines = []
    if len(vi):
        below, off = vi < ransac, float(np.abs(refit / vi - 1).max())
        text = "RANSAC's RMSE is higher than VI's in all scenes"
        lines.append([text, Claim(f"in {below.sum():,} of {len(below):,}", bool(below.all()))])
        text = "with appearance inferred from all parts, RANSAC's RMSE is that of VI"
        lines.append([text, Claim(f"off by at most {off:.2%} in any scene", off < SAME)])
    if fit is not None:
        chosen, paper = fit.factors[knee(fit.factors, fit.losses)], FACES_MODEL["factors"]
        text = f"the knee of the validation error is at {paper} factors"
        lines.append([text, Claim(f"at {chosen}", chosen == paper)])
    return Grid("Section 7.2, in words", ["the paper says", "measured"], lines)


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


def _models(models: dict[str, FaceModel]) -> Grid:
    """The sizes of the models."""
    lines: list[list[str]] = []
    for source, model in models.items():
        lines.append([SOURCES[source], *map(str, (*model.looks.features, model.factors))])
    lines.append(["paper", *(str(FACES_MODEL[name]) for name in (*PARTS, "factors"))])
    return Grid("codes of each part, and factors", ["faces", *PARTS, "factors"], lines)
