"""Scene files and result files (DESIGN, sec. 4): files are data, no pickle is read or written.

=============  ==================================================================================
``.npz``       ``points`` (S, N, D) and, where slots may be absent, ``present`` (S, N);
               labelled scenes also have ``object_id`` (S, N)
``.parquet``   one row a scene: ``points`` (list of lists of 2 to 4 numbers, or a flat list of
               x, y, x, y, ...), and where there are any ``types`` and ``appearance``
``.csv``       one row a part: ``scene,x,y[,z][,c,s][,type]``; scenes in order of appearance
=============  ==================================================================================

Whatever is wrong with a file is one sentence that names the file: an :class:`InputError`.
"""

from partwise.files._common import replacing
from partwise.files._explanations import (
    EXPLANATION_SCHEMA,
    explanations_table,
    write_explanations,
)
from partwise.files._npz import read_arrays, read_labelled, write_labelled
from partwise.files._parquet import ROWS, write_scenes
from partwise.files._samples import read_sample, write_sample
from partwise.files._scenes import count_scenes, iterate_scenes, read_scenes

__all__ = [
    "EXPLANATION_SCHEMA",
    "ROWS",
    "count_scenes",
    "explanations_table",
    "iterate_scenes",
    "read_arrays",
    "read_labelled",
    "read_sample",
    "read_scenes",
    "replacing",
    "write_explanations",
    "write_labelled",
    "write_sample",
    "write_scenes",
]
