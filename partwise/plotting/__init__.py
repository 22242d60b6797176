"""Pictures. Every function takes an ``ax`` or makes one, and returns it.

``style``: colours, markers, outlines, the same in every picture. Then one file a thing that people
would rather look at than read: ``alignment``, ``explanation``, ``learning``, ``posterior``,
``template``, ``trace``.
"""

from partwise.plotting.alignment import plot_aligned
from partwise.plotting.explanation import plot_explanation
from partwise.plotting.learning import plot_learned, plot_learning
from partwise.plotting.posterior import plot_assignment, plot_poses
from partwise.plotting.style import CLUTTER, MARKERS, PALETTE
from partwise.plotting.template import plot_template
from partwise.plotting.trace import plot_trace

__all__ = [
    "CLUTTER",
    "MARKERS",
    "PALETTE",
    "plot_aligned",
    "plot_assignment",
    "plot_explanation",
    "plot_learned",
    "plot_learning",
    "plot_poses",
    "plot_template",
    "plot_trace",
]
