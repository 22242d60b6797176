"""Table 1 (sec. 7.1.2): how well each method explains the constellations, and the tests around it.

What is run: every method at every noise level, on fresh scenes of our generator (``simulated``) and
on the paper's own draws where they are at hand (``recorded``, with CCAE's recorded outputs); the
sweep over the initial beta at sigma 0; paired t-tests between all methods at sigma 0. Everything is
scored under both protocols (DESIGN, sec. 3). No method is told the noise level, but for CCAE, which
as in the paper is a network of its own for each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from partwise.evaluation import assess, protocols
from partwise.files import read_arrays, read_labelled
from partwise.inference import solve
from partwise.metrics import METRICS, Scores, paired_t_tests
from partwise.model import constellations
from partwise.paper.keeping import code_digest, keep
from partwise.paper.published import (
    BETAS,
    LIMIT,
    RERUN,
    SCENES,
    SIGMAS,
    T_TESTS,
    TABLE1,
    recorded_folder,
    recorded_name,
)
from partwise.paper.tables import Grid, Measured, Row, write_report
from partwise.sampling import simulate_constellations
from partwise.scenes import LabelledScenes
from partwise.solvers import Solver, named

__all__ = ["Cell", "Experiment", "run"]

PROTOCOLS = ("published", "exchangeable")
BETA = 0.05
RECORDED = "ccae-recorded"
"""The answers of the paper's own CCAE, which come with its draws."""

METHODS = (*(["ccae"] if find_spec("equinox") else []), "gmm", "ds", "ransac", "exact", "auto")
"""What is run; CCAE where `partwise[neural]` is installed."""

TITLES = {
    "ccae": "CCAE, trained here",
    "ccae-recorded": "CCAE, recorded",
    "gmm": "GCM-GMM",
    "ds": "GCM-DS",
    "ransac": "RANSAC",
    "exact": "exact",
    "auto": "auto",
}


def run(
    out: str | Path,
    scenes: int | None = None,
    progress: Callable[..., None] | None = None,
    **options: Any,
) -> list[Any]:
    """Run the experiment, write its three files into ``out``, and return tables for Rich."""
    experiment = Experiment(Path(out), scenes=scenes, **options)
    cells = list(experiment.cells())
    if progress is not None:
        progress(0, total=len(cells))
    results: dict[Cell, dict[str, Scores]] = {}
    for cell in cells:
        results[cell] = experiment.scores(cell)
        if progress is not None:
            progress(1)
    return experiment.write(results)


@dataclass(frozen=True)
class Cell:
    """One method on one set of scenes; ``beta`` is None for methods that have none."""

    source: str
    sigma: float
    method: str
    beta: float | None

    @property
    def name(self) -> str:
        """The name of its file."""
        beta = "" if self.beta is None else f"-beta{self.beta:g}"
        return f"{self.source}-sigma{self.sigma:g}-{self.method}{beta}"


@dataclass(frozen=True)
class Experiment:
    """What is run, and where its results are kept.

    A cell that is done is a JSON file in ``out/table1.cells`` with the options it depends on (and a
    digest of the code); it is redone only if these change. ``scenes`` is how many are drawn, and
    how many of the recorded ones are used at most; None is as many as in the paper, and all.
    """

    out: Path
    scenes: int | None = None
    sigmas: tuple[float, ...] = SIGMAS
    methods: tuple[str, ...] = METHODS
    betas: tuple[float, ...] = BETAS
    seed: int = 0
    solvers: Callable[..., Solver] = named
    data: Path | None = None

    @property
    def folder(self) -> Path:
        """Where the paper's own draws are, if they are at hand."""
        return recorded_folder() if self.data is None else self.data

    # What there is to do

    def cells(self) -> Iterator[Cell]:
        """Every cell: first the table, then the rest of the sweep."""
        for source, sigmas in self._sources().items():
            for sigma in sigmas:
                if source == "recorded":
                    yield Cell(source, sigma, RECORDED, None)
                for method in self.methods:
                    yield Cell(source, sigma, method, BETA if method in ("ds", "gmm") else None)
        for source, sigmas in self._sources().items():
            for method in self.methods:
                if method in ("ds", "gmm") and 0.0 in sigmas:
                    yield from (Cell(source, 0.0, method, b) for b in self.betas if b != BETA)

    def _sources(self) -> dict[str, tuple[float, ...]]:
        here = tuple(s for s in self.sigmas if (self.folder / recorded_name(s)).is_file())
        return {"simulated": self.sigmas, **({"recorded": here} if here else {})}

    # One cell

    def scores(self, cell: Cell) -> dict[str, Scores]:
        """The scores of a cell, from its file if that is still what would be computed."""
        labelled = self._scenes(cell)
        path = self.out / "table1.cells" / f"{cell.name}.json"
        options = self._options(cell, labelled)
        return keep(
            path, options, lambda: self._run(cell, labelled), write=_as_lists, read=_from_lists
        )

    def _scenes(self, cell: Cell) -> LabelledScenes:
        if cell.source == "recorded":
            labelled = read_labelled(self.folder / recorded_name(cell.sigma))
            return labelled.select(self._used(labelled.present))
        # Every noise level has draws of its own.
        seed = np.random.SeedSequence([self.seed, round(1000 * cell.sigma)]).generate_state(1)
        return simulate_constellations(self.scenes or SCENES, cell.sigma, int(seed[0]))

    def _used(self, present: np.ndarray) -> np.ndarray:
        """Which of the recorded draws are used: the non-empty ones, or the first of these."""
        return np.flatnonzero(present.any(1))[: self.scenes]

    def _solver(self, cell: Cell) -> Solver:
        options = {} if cell.beta is None else {"beta": cell.beta}
        if cell.method == "ccae":
            options = {"noise": cell.sigma}  # as in the paper, a network for each noise level
        return self.solvers(cell.method, **options)

    def _options(self, cell: Cell, labelled: LabelledScenes) -> dict[str, Any]:
        """Everything that the scores depend on."""
        digest = hashlib.sha256()
        for array in (labelled.points, labelled.present, labelled.object_id):
            digest.update(np.ascontiguousarray(array).tobytes())
        solver = "recorded outputs" if cell.method == RECORDED else repr(self._solver(cell))
        return {
            "code": code_digest(),
            "cell": asdict(cell),
            "scenes": digest.hexdigest(),
            "solver": solver,
            "seed": self.seed,
        }

    def _run(self, cell: Cell, labelled: LabelledScenes) -> dict[str, Scores]:
        model = constellations()
        if cell.method == RECORDED:
            # q(d): whether the capsule is present, repeated over the capsule's slots.
            path = self.folder / recorded_name(cell.sigma)
            names = ("present", "ccae_object_id", "ccae_object_present")
            recorded = read_arrays(path, names)
            used = self._used(recorded["present"])
            capsules = recorded["ccae_object_present"][used].astype(bool)
            q = np.take_along_axis(capsules, labelled.object_id, 1)
            owner = recorded["ccae_object_id"][used].astype(int)
            return protocols(labelled, owner, q, model)
        found = solve(model, labelled.scenes, self._solver(cell), self.seed)
        return assess(labelled, found)

    # The report

    def write(self, results: dict[Cell, dict[str, Scores]]) -> list[Any]:
        """Write JSON, CSV and Markdown; return the same tables for Rich."""
        rows = [row for cell, scores in results.items() for row in _rows(cell, scores)]
        tests = list(_tests(results))
        grids = [*_main_grids(rows), *_sweep_grids(rows), *_test_grids(tests)]
        report = {"seed": self.seed, "rows": rows, "t_tests": tests}
        return write_report(self.out, "table1", report, rows, INTRODUCTION, grids)


INTRODUCTION = """# Table 1: inference on the constellations

Ours ± standard error; in brackets the reference and how far ours is from it. The reference is the
paper's Table 1; for `exact` and `auto`, which the paper does not have, the exact posterior's limit
(exchangeable). *Published* scores the labels as the paper does; *exchangeable* first renames the
predicted instances of identical templates. The authors' code, run again on the paper's draws, is in
`table1.json` and `table1.csv` as `rerun`. No method is told the noise level, but for CCAE, which as
in the paper is a network of its own for each (docs/ccae.md).

"""


def _as_lists(scores: dict[str, Scores]) -> dict[str, Any]:
    names = (*METRICS, "scene")
    return {p: {n: getattr(s, n).tolist() for n in names} for p, s in scores.items()}


def _from_lists(kept: Any) -> dict[str, Scores]:
    return {
        p: Scores(
            **{n: np.array(kept[p][n], float) for n in METRICS},
            scene=np.array(kept[p]["scene"], int),
        )
        for p in PROTOCOLS
    }


def _rows(cell: Cell, scores: dict[str, Scores]) -> Iterator[Row]:
    """One row a protocol and metric: ours beside the reference."""
    for protocol in PROTOCOLS:
        mean, error = scores[protocol].mean(), scores[protocol].standard_error()
        for m, metric in enumerate(METRICS):
            name, figures = _reference(cell, protocol)
            reference = None if figures is None else figures[m]
            rerun = (
                RERUN.get(cell.method, {}).get(cell.sigma) if cell.beta in (None, BETA) else None
            )
            yield {
                "source": cell.source,
                "sigma": cell.sigma,
                "method": cell.method,
                "beta": cell.beta,
                "protocol": protocol,
                "metric": metric,
                "scenes": len(scores[protocol]),
                "ours": mean[metric],
                "standard_error": error[metric],
                "reference": name,
                "reference_value": reference,
                "difference": None if reference is None else mean[metric] - reference,
                "rerun": None if rerun is None else rerun[m],
            }


def _reference(cell: Cell, protocol: str):
    """The paper's figures for a cell, or the limit; Table 1 has one initial beta only."""
    if cell.beta not in (None, BETA):
        return None, None
    if (method := _reported(cell.method)) in TABLE1:
        return "paper", TABLE1[method].get(cell.sigma)
    if protocol == "exchangeable" and cell.sigma in LIMIT:
        return "limit", LIMIT[cell.sigma]
    return None, None


def _reported(method: str) -> str:
    """The name under which the paper has a method's figures."""
    return "ccae" if method == RECORDED else method


def _tests(results: dict[Cell, dict[str, Scores]]) -> Iterator[Row]:
    """Paired t-tests between all methods at sigma 0 and the initial beta of the table."""
    table = {c: s for c, s in results.items() if c.sigma == 0 and c.beta in (None, BETA)}
    for a, b in combinations(table, 2):
        if a.source != b.source:
            continue
        for protocol in PROTOCOLS:
            for metric, test in paired_t_tests(table[a][protocol], table[b][protocol]).items():
                finite = test if np.isfinite(test["statistic"]) else {**test, "statistic": None}
                yield {
                    "source": a.source,
                    "methods": [a.method, b.method],
                    "protocol": protocol,
                    "metric": metric,
                    **finite,
                    "paper": T_TESTS.get((_reported(a.method), b.method)),
                }


# Tables to look at ----------------------------------------------------------------------------


def _main_grids(rows: list[Row]) -> Iterator[Grid]:
    """As in the paper: metrics and methods down, noise levels across."""
    table = [r for r in rows if r["beta"] in (None, BETA)]
    for source, protocol in _pairs(table):
        here = [r for r in table if (r["source"], r["protocol"]) == (source, protocol)]
        sigmas = _unique(here, "sigma")
        lines = []
        for metric in METRICS:
            for method in _unique(here, "method"):
                cells = {
                    r["sigma"]: _figure(r)
                    for r in here
                    if (r["metric"], r["method"]) == (metric, method)
                }
                texts = [cells.get(s, "") for s in sigmas]
                lines.append([metric.replace("_", " "), _title(method), *texts])
        headings = ["metric", "model", *(f"sigma = {s:g}" for s in sigmas)]
        count = here[0]["scenes"]
        yield Grid(f"{source} scenes ({count} at sigma {sigmas[0]:g}), {protocol}", headings, lines)


def _sweep_grids(rows: list[Row]) -> Iterator[Grid]:
    """The effect of the initial beta at sigma 0 (sec. 7.1.2)."""
    swept = [r for r in rows if r["beta"] is not None and r["sigma"] == 0]
    for source, protocol in _pairs(swept):
        here = [r for r in swept if (r["source"], r["protocol"]) == (source, protocol)]
        betas = sorted(_unique(here, "beta"))
        lines = []
        for metric in METRICS:
            for method in _unique(here, "method"):
                cells = {
                    r["beta"]: Measured(r["ours"], r["standard_error"])
                    for r in here
                    if (r["metric"], r["method"]) == (metric, method)
                }
                texts = [cells.get(b, "") for b in betas]
                lines.append([metric.replace("_", " "), _title(method), *texts])
        headings = ["metric", "model", *(f"beta = {b:g}" for b in betas)]
        yield Grid(f"initial beta, sigma 0, {source} scenes, {protocol}", headings, lines)


def _test_grids(tests: list[Row]) -> Iterator[Grid]:
    for source, protocol in _pairs(tests):
        lines = [
            [
                " - ".join(map(_title, t["methods"])),
                t["metric"].replace("_", " "),
                f"{t['difference']:+.3f}",
                f"{t['p_value']:.1e}",
                t["paper"] or "",
            ]
            for t in tests
            if (t["source"], t["protocol"]) == (source, protocol)
        ]
        headings = ["methods", "metric", "mean difference", "p", "paper"]
        yield Grid(f"paired t-tests, sigma 0, {source} scenes, {protocol}", headings, lines)


def _title(method: str) -> str:
    return TITLES.get(method, method)


def _pairs(rows: list[Row]) -> list[tuple[str, str]]:
    return [(s, p) for s in _unique(rows, "source") for p in PROTOCOLS]


def _unique(rows: list[Row], key: str) -> list[Any]:
    return list(dict.fromkeys(r[key] for r in rows))


def _figure(row: Row) -> Measured:
    more = row["metric"] != "variation_of_information"
    ours, error, name = row["ours"], row["standard_error"], row["reference"] or "paper"
    return Measured(ours, error, row["reference_value"], name, more)
