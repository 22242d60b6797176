"""The log of trainings, drawn: ``python -m benchmarks.training_log DIR... -o PICTURE.png``."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from partwise.plotting.saving import save
from partwise.plotting.style import colour

SHOWN = ("loss", "mse", "presence")


def main() -> None:
    from matplotlib.figure import Figure

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args()
    figure = Figure(figsize=(10, 2.8))
    axes = figure.subplots(1, len(SHOWN))
    for k, folder in enumerate(args.folders):
        with (folder / "log.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        steps = [int(r["step"]) for r in rows]
        for ax, name in zip(axes, SHOWN, strict=True):
            ax.plot(steps, [float(r[name]) for r in rows], color=colour(k), label=folder.name)
    for ax, name in zip(axes, SHOWN, strict=True):
        ax.set(title=name, xlabel="batches")
        ax.spines[["top", "right"]].set_visible(False)
    axes[1].set(yscale="log")
    axes[-1].set(ylim=(0, None))
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    save(figure, args.out.parent, args.out.stem, "")


if __name__ == "__main__":
    main()
