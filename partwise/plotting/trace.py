"""One run of Algorithm 2: the ELBO and beta after every update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.plotting.style import PALETTE, axes

if TYPE_CHECKING:
    from partwise.solvers.trace import Trace

__all__ = ["plot_trace"]


def plot_trace(trace: Trace, ax: Any = None, upto: int | None = None) -> Any:
    """The ELBO after each update, a piece for each beta, since others do not compare.

    ``upto``: only so many updates are drawn, on the axes of all of them.
    """
    ax = axes(ax, (5.0, 3.0))
    stop = len(trace) if upto is None else upto
    starts = np.flatnonzero(np.diff(trace.beta, prepend=0.0))
    for i, (start, end) in enumerate(zip(starts, [*starts[1:], len(trace)], strict=True)):
        if i % 2:
            ax.axvspan(start, end, color="#000000", alpha=0.05, linewidth=0)
        shown = slice(start, min(end, stop))
        ax.plot(np.arange(end - start)[: max(shown.stop - start, 0)] + start, trace.elbo[shown],
                color=PALETTE[0], linewidth=1.5)  # fmt: skip
        middle, top = 0.5 * (start + end), 1.02
        ax.text(middle, top, f"{trace.beta[start]:.2g}", transform=ax.get_xaxis_transform(),
                ha="center", va="bottom", fontsize=7)  # fmt: skip
    low, high = trace.elbo.min(), trace.elbo.max()
    pad = 0.05 * max(high - low, 1e-9)
    ax.set(xlim=(0, len(trace)), ylim=(low - pad, high + pad), xlabel="updates", ylabel="ELBO")
    ax.set_title("beta", fontsize=8, pad=12)
    return ax
