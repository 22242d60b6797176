"""What CCAE's two unusual choices do, on simulated scenes: ``python -m benchmarks.ccae_choices``.

Trains a network a row for a few steps at noise 0 and scores it as it goes, exchangeable protocol.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import partwise as pw
from partwise.neural.ccae_training import export, task
from partwise.neural.training import train

CHOICES = {
    "as shipped": {},
    "smallest scale 0.01": {"smallest_scale": 0.01},
    "smallest scale 0.2": {"smallest_scale": 0.2},
    "12 / 7 capsules a scene": {"together": 12 / 7},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--scenes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    drawn = pw.simulate_constellations(args.scenes, 0.0, 20_000 + args.seed)
    print(f"{args.steps} steps, {args.scenes} scenes of noise 0; exchangeable protocol")
    print(f"{'':26}{'segmentation':>16}{'scene accuracy':>18}{'nll':>9}")
    for name, options in CHOICES.items():
        with TemporaryDirectory() as folder:
            weights = Path(folder) / "weights.safetensors"
            made = task(0.0, **options)
            trained = train(made, args.steps, args.seed, Path(folder) / "run", leg=args.steps // 5)
            export(trained.model, made.options, weights)
            scored = pw.evaluate(drawn, pw.Ccae(weights=weights))
            log = np.genfromtxt(Path(folder) / "run" / "log.csv", delimiter=",", names=True)
        mean, error = scored["exchangeable"], scored["standard_error"]["exchangeable"]
        figures = [
            f"{mean[key]:.3f} +- {error[key]:.3f}"
            for key in ("segmentation_accuracy", "scene_accuracy")
        ]
        print(f"{name:26}{figures[0]:>16}{figures[1]:>18}{log['nll'][-1]:9.2f}", flush=True)


if __name__ == "__main__":
    main()
