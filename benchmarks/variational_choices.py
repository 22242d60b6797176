"""What GCM-DS owes to its settings, on simulated scenes (never on the recorded ones).

python -m benchmarks.variational_choices [--scenes 600]
"""

from __future__ import annotations

import argparse
from unittest.mock import patch

import numpy as np

import partwise as pw
from partwise import frames
from partwise.evaluation import assess, summary
from partwise.inference import solve

NOISE = (0.0, 0.1, 0.25)
SETTINGS: dict[str, dict] = {
    "default": {},
    "tolerance 1e-3 (the paper's)": {"tolerance": 1e-3},
    "tolerance 3e-1": {"tolerance": 0.3},
    "1 sweep an update": {"sweeps": 1},
    "6 sweeps an update": {"sweeps": 6},
    "1 attempt (no sparsity constraint)": {"attempts": 1},
    "3 attempts": {"attempts": 3},
    "noise follows the scale": {"follow_scale": True},
    "scene radius 0.1": {"radius": 0.1},
    "scene radius 0.4": {"radius": 0.4},
}


def accuracy(labelled: pw.LabelledScenes, options: dict) -> tuple[float, float]:
    """Scene accuracy in both protocols."""
    options = dict(options)
    radius = options.pop("radius", frames.SCENE_RADIUS)
    model = pw.constellations()
    with patch.object(frames, "SCENE_RADIUS", radius):
        found = solve(model, labelled.scenes, pw.Variational(**options))
    scores = summary(assess(labelled, found))
    one, two = (scores[p]["scene_accuracy"] for p in ("published", "exchangeable"))
    return one, two


def main() -> None:
    """Print one line a setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=600)
    scenes = parser.parse_args().scenes
    data = [pw.simulate_constellations(scenes, noise, 20_001) for noise in NOISE]
    error = 0.5 / np.sqrt(scenes)
    print(f"scene accuracy, published / exchangeable, standard error up to {error:.3f}")
    for name, options in SETTINGS.items():
        cells = [accuracy(d, options) for d in data]
        text = "   ".join(f"{a:.3f} / {b:.3f}" for a, b in cells)
        print(f"{name:36s} {text}", flush=True)


if __name__ == "__main__":
    main()
