"""Two lists of points with one unknown map between them: which points are the same?

``aligning.py`` is the search and the answer; ``proposing.py`` and ``picture.py`` say where a map
might be, ``refining.py`` climbs from there, and ``scoring.py`` and ``matching.py`` give the
evidence.
"""

from partwise.alignment.aligning import align
from partwise.alignment.result import Aligned

__all__ = ["Aligned", "align"]
