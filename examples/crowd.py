"""Templates of your own, a crowd of them, what is found in it: ``docs/images/crowd.png``."""

import sys

import matplotlib.pyplot as plt
import numpy as np

import partwise as pw
from partwise.crowds import simulate_crowd

LETTERS = {
    "arrow": [[0, 2], [-0.8, 1], [0.8, 1], [0, 1], [0, 0], [0, -1]],
    "house": [[-1, -1], [1, -1], [1, 0.6], [-1, 0.6], [0, 1.6], [0.3, -1], [0.3, -0.2]],
    "fish": [[-1.6, 0], [-0.8, 0.6], [0.3, 0.5], [1, 0], [1.7, 0.7], [1.7, -0.6], [-0.7, -0.7]],
    "hook": [[0, 1.5], [0, 0.5], [0, -0.6], [0.4, -1.2], [1, -1], [1.1, -0.3]],
    "cart": [[-1, 0], [1, 0], [-1, 0.8], [1, 0.8], [-0.6, -0.4], [0.6, -0.4], [1.8, 1]],
}
"""Five objects; the unit of length is the templates' own."""


def model() -> pw.Model:
    """Up to four of each; noise, hidden parts and clutter as they are expected."""
    templates = [pw.Template(np.array(parts, float), name) for name, parts in LETTERS.items()]
    return pw.Model(
        templates,
        instances=[4] * len(templates),
        noise=pw.Noise(0.02),
        presence=0.35,
        missing=0.15,
        clutter=20.0,
    )


def main(out: str) -> None:
    """Draw the scene as it is given, and what is found in it."""
    scenes = simulate_crowd(model(), 1, 6).scenes
    found = pw.infer(model(), scenes[0], "hashing")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 6.2), layout="constrained")
    left.plot(*scenes[0].parts.T, "o", color="#404040", markersize=4)
    left.set(title=f"{len(scenes[0])} points", aspect="equal", xticks=[], yticks=[])
    left.margins(0.08)
    found.plot(right)
    right.set(title="what is there, and how probable", xticks=[], yticks=[])
    figure.savefig(out, dpi=110)
    for detection in found.objects:
        print(detection)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "crowd.png")
