"""Pictures. Every function takes an ``ax`` or makes one, and returns it.

``style``: colours, markers, outlines, the same in every picture. Then one file a thing that people
would rather look at than read, and ``saving``: figures as files.
"""

from partwise.plotting.alignment import plot_aligned
from partwise.plotting.constellations import plot_answer, plot_answers
from partwise.plotting.explanation import plot_explanation
from partwise.plotting.learning import plot_learned, plot_learning
from partwise.plotting.posterior import plot_assignment, plot_poses
from partwise.plotting.sky import plot_chart, plot_sky
from partwise.plotting.style import CLUTTER, MARKERS, PALETTE, UNCLAIMED
from partwise.plotting.template import plot_template
from partwise.plotting.trace import plot_trace

__all__ = [
    "CLUTTER",
    "MARKERS",
    "PALETTE",
    "UNCLAIMED",
    "plot_aligned",
    "plot_answer",
    "plot_answers",
    "plot_assignment",
    "plot_chart",
    "plot_explanation",
    "plot_learned",
    "plot_learning",
    "plot_poses",
    "plot_sky",
    "plot_template",
    "plot_trace",
]
