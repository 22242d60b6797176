"""Crowds: F1, recall by visible parts, calibration and speed of ``hashing``, and its rivals.

``python -m benchmarks.crowds [--templates 20,100,1000] [--hard] [--scenes 300] [--baselines]``

The generator is that of ``partwise simulate --crowd`` (``partwise/crowds/simulating.py`` says what
it does), a third of the scenes from each of three draws of templates. What counts as right is in
``partwise/crowds/scoring.py``. Seeds here start at 20,000; settings were chosen on seeds from
1,000. The model is given: templates, noise, how often parts are hidden, how many objects and
clutter points there are on average. Times are of a second pass over the same scenes; what is
compiled and hashed in the first one is its extra time.

``--baselines`` adds, on the first few of the same scenes: sequential RANSAC made of scikit-image's
``ransac`` (for every template, all pairs of a part and a point as possible matches; the template
with most inliers is taken, its points are removed, and again), and the paper's RANSAC
(``pw.Ransac``), as many scenes as finish within ``--patience`` seconds.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import partwise as pw
from partwise.crowds import (
    CrowdScore,
    crowd_model,
    score_crowd,
    simulate_clutter,
    simulate_crowd,
)
from partwise.inference import solve
from partwise.posterior import Explanations
from partwise.sampling import Sample

__all__ = ["main"]

FIRST_SEED = 20_000
DRAWS = 3
CLUTTER = {False: 0.3, True: 0.6}
EMPTY_POINTS = (20, 70)
"""Scenes of nothing but clutter have as many points as a crowd has of clutter, or in all."""


def crowds(templates: int, hard: bool, scenes: int) -> list[tuple[pw.Model, Sample]]:
    """The benchmark's scenes: a model and its crowd for each draw of templates."""
    share = CLUTTER[hard]
    return [
        (
            model := crowd_model(templates, share, (FIRST_SEED + draw, templates)),
            simulate_crowd(model, -(-scenes // DRAWS), (FIRST_SEED + draw, templates, 1)),
        )
        for draw in range(DRAWS)
    ]


def run(templates: int, hard: bool, scenes: int) -> tuple[dict[str, Any], CrowdScore]:
    """One row of the table, and the scores behind it."""
    scores, strict, first, again, total = [], [], 0.0, 0.0, 0
    for model, sample in crowds(templates, hard, scenes):
        start = time.perf_counter()
        solve(model, sample.scenes, "hashing")
        middle = time.perf_counter()
        found = solve(model, sample.scenes, "hashing")
        first, again = first + middle - start, again + time.perf_counter() - middle
        total += len(sample.scenes)
        scores.append(score_crowd(sample, found))
        strict.append(score_crowd(sample, found, labels=True))
    score = CrowdScore.join(scores)
    row = {
        "templates": templates,
        "clutter": CLUTTER[hard],
        "scenes": total,
        **score.summary(),
        "f1_with_labels": CrowdScore.join(strict).f1,
        "recall_from_5": score.recall_from(5),
        "recall_by_visible": {str(k): v for k, v in score.recall_by_visible().items()},
        "scenes_per_second": total / again,
        "first_pass_seconds": first - again,
    }
    return row, score


def empty(templates: int, scenes: int) -> dict[str, float]:
    """The share of scenes of pure clutter with a detection of probability one half or more."""
    out = {}
    model = crowd_model(templates, CLUTTER[False], (FIRST_SEED, templates))
    for points in EMPTY_POINTS:
        batch = simulate_clutter(model, scenes, points, (FIRST_SEED, points))
        found = solve(model, batch, "hashing")
        out[str(points)] = float((found.probability >= 0.5).any(1).mean())
    return out


def skimage_ransac(model: pw.Model, batch: pw.SceneBatch, trials: int = 1000) -> Explanations:
    """Sequential RANSAC by scikit-image; four matched parts at least make an object."""
    from skimage.measure import ransac
    from skimage.transform import SimilarityTransform

    copies = np.array(model.copies)
    widest = max(map(len, model.templates))
    parts = np.full((len(batch), len(copies), widest), -1, np.int32)
    pose, sure = np.zeros((len(batch), len(copies), 4)), np.zeros((len(batch), len(copies)))
    reach = 3 * (model.noise.sigma or 0.05) * float(np.mean(model.scales))
    low, high = model.scales

    def plausible(transform, *_: Any) -> bool:
        return low <= transform.scale <= high

    for i, scene in enumerate(batch):
        free = np.arange(len(scene))
        while len(free) >= 4:
            best: tuple = (3, None, None, None)
            for t, template in enumerate(model.templates):
                part, point = np.indices((len(template), len(free))).reshape(2, -1)
                data = (template.parts[part], scene.parts[free][point])
                found, inliers = ransac(
                    data, SimilarityTransform, 2, reach, max_trials=trials,
                    is_model_valid=plausible, rng=0,
                )  # fmt: skip
                if inliers is None:
                    continue
                match = np.full(len(template), -1)
                match[part[inliers]] = free[point[inliers]]
                seen = np.unique(match[match >= 0])
                if len(seen) > best[0] and len(seen) == (match >= 0).sum():
                    best = (len(seen), t, found, match)
            if best[1] is None:
                break
            _, t, found, match = best
            places = np.flatnonzero((copies == t) & (sure[i] == 0))
            if not len(places):
                break
            parts[i, places[0], : len(match)], sure[i, places[0]] = match, 1.0
            pose[i, places[0]] = model.pose.from_matrix(found.params)
            free = np.setdiff1d(free, match)
    return Explanations(model, batch, parts, pose, sure, sure.sum(1), sure.sum(1) >= 0)


def baselines(templates: int, hard: bool, scenes: int, patience: float) -> list[dict[str, Any]]:
    """The rivals, scene by scene, until patience is at its end."""
    model, sample = crowds(templates, hard, scenes)[0]
    rows = []
    rivals = {
        "scikit-image ransac": skimage_ransac,
        "pw.Ransac": lambda m, b: solve(m, b, pw.Ransac()),
        "hashing": lambda m, b: solve(m, b, "hashing"),
    }
    for name, rival in rivals.items():
        start, scores = time.perf_counter(), []
        while len(scores) < len(sample.scenes) and time.perf_counter() - start < patience:
            one = sample.only(len(scores))
            scores.append(score_crowd(one, rival(model, one.scenes)))
        seconds = (time.perf_counter() - start) / len(scores)
        score = CrowdScore.join(scores)
        rows.append({"method": name, "templates": templates, "scenes": len(scores),
                     **score.summary(), "seconds_per_scene": seconds})  # fmt: skip
    return rows


def picture(scores: dict[str, CrowdScore], path: Path) -> None:
    """The reliability diagram: in ten bins, how probable and how often right."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from partwise.plotting.style import colour, marker

    figure, (ax, below) = plt.subplots(
        2, 1, figsize=(5.4, 6.2), height_ratios=(3, 1), sharex=True, layout="constrained"
    )
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    width = 0.8 / len(scores)
    for n, (name, score) in enumerate(scores.items()):
        sure, right, count = score.reliability()
        some = count > 0
        error = np.sqrt((right * count + 1) * ((1 - right) * count + 1) / (count + 2) ** 3)
        label = f"{name}: error {score.calibration_error:.3f}"
        ax.errorbar(sure[some], right[some], error[some], fmt=marker(n) + "-", ms=5, lw=1,
                    color=colour(n), label=label)  # fmt: skip
        place = (np.arange(len(count)) + 0.1 + width * (n + 0.5)) / len(count)
        below.bar(place, count, width / len(count), color=colour(n))
    ax.set(ylabel="share that is right", xlim=(0, 1), ylim=(-0.03, 1.03))
    ax.legend(frameon=False, loc="upper left", fontsize=9)
    below.set(yscale="log", xlabel="probability of the detection", ylabel="detections")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
        below.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(
    templates: Annotated[str, typer.Option(help="Numbers of templates.")] = "20,100,1000",
    hard: Annotated[bool, typer.Option("--hard", help="60 % clutter instead of 30 %.")] = False,
    scenes: Annotated[int, typer.Option(help="A third from each draw.", min=3)] = 300,
    empties: Annotated[int, typer.Option(help="Scenes of pure clutter, each size.")] = 200,
    compare: Annotated[bool, typer.Option("--baselines", help="The rivals, too.")] = False,
    patience: Annotated[float, typer.Option(help="Seconds for each rival.")] = 120.0,
    reliability: Annotated[Path, typer.Option(help="The diagram.")] = Path("reliability.png"),
    out: Annotated[Path | None, typer.Option(help="Write the figures here as JSON.")] = None,
) -> None:
    """F1, recall by visible parts, calibration and speed on crowds."""
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    rows, scores = [], {}
    for count in map(int, templates.split(",")):
        row, scores[f"{count:,} templates"] = run(count, hard, scenes)
        if empties:
            row["pure_clutter"] = empty(count, empties)
        rows.append(row)
        print(
            f"{count} templates, {row['clutter']:.0%} clutter, {row['scenes']} scenes: "
            f"F1 {row['f1']:.4f} +- {row['f1_standard_error']:.4f} (with part labels "
            f"{row['f1_with_labels']:.4f}), precision {row['precision']:.4f}, recall "
            f"{row['recall']:.4f}, calibration error {row['calibration_error']:.4f}, "
            f"{row['scenes_per_second']:.0f} scenes/s, first pass "
            f"+ {row['first_pass_seconds']:.1f} s"
        )
        seen = ", ".join(
            f"{v}: {share:.3f} of {n}" for v, (share, n) in row["recall_by_visible"].items()
        )
        print(f"  recall by visible parts: {seen}; five or more {row['recall_from_5']:.4f}")
        if empties:
            print(f"  pure clutter with a detection: {row['pure_clutter']}", flush=True)
    picture(scores, reliability)
    if compare:
        for count in map(int, templates.split(",")):
            for row in baselines(count, hard, scenes, patience):
                rows.append(row)
                print(
                    f"{row['method']:20s} {count:5d} templates {row['scenes']:4d} scenes: F1 "
                    f"{row['f1']:.3f} +- {row['f1_standard_error']:.3f}, "
                    f"{row['seconds_per_scene']:.2f} s a scene",
                    flush=True,
                )
    if out is not None:
        out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
