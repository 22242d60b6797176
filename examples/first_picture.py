"""The README's first picture: two squares and a triangle, in the points that they left.

python examples/first_picture.py [docs/images/first.png]
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import partwise as pw


def main(path: str = "docs/images/first.png") -> None:
    """Draw what came in beside what was found."""
    model = pw.Model([pw.shapes.square(), pw.shapes.triangle()], instances=[2, 1])
    scenes = pw.simulate_constellations(scenes=60, noise=0.1, key=7)
    scene = next(s for s in scenes.scenes if len(s) == 11)
    found = pw.infer(model, scene)
    figure, (before, after) = plt.subplots(1, 2, figsize=(9, 4.4), sharex=True, sharey=True)
    before.plot(*scene.parts.T, "o", color="#333333", markersize=7)
    before.set(title="11 detected points, in no order", aspect="equal")
    found.plot(after)
    after.set_title("what partwise finds in them")
    figure.savefig(path, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
