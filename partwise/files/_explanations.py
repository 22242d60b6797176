"""Explanations as Parquet: one row a scene."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from partwise.files._common import offsets_of, replacing
from partwise.files._parquet import ROWS
from partwise.posterior import Explanations

__all__ = ["EXPLANATION_SCHEMA", "explanations_table", "write_explanations"]

Array = np.ndarray

EXPLANATION_SCHEMA = pa.schema(
    [
        ("labels", pa.list_(pa.int32())),
        (
            "objects",
            pa.list_(
                pa.struct(
                    [
                        ("template", pa.string()),
                        ("parts", pa.list_(pa.int32())),
                        ("pose", pa.list_(pa.float64())),
                        ("probability", pa.float64()),
                    ]
                )
            ),
        ),
        ("score", pa.float64()),
        ("converged", pa.bool_()),
    ]
)
"""One row a scene: what :meth:`partwise.Explanation.to_json` says, with the pose as its vector."""


def write_explanations(path: str | Path, explanations: Explanations) -> None:
    """Explanations as Parquet, one row a scene (:data:`EXPLANATION_SCHEMA`)."""
    with replacing(path) as part, pq.ParquetWriter(part, EXPLANATION_SCHEMA) as writer:
        for start in range(0, len(explanations), ROWS):
            writer.write_table(explanations_table(explanations, start, start + ROWS))


def explanations_table(
    explanations: Explanations, start: int = 0, stop: int | None = None
) -> pa.Table:
    """Scenes ``start`` to ``stop`` as a table, straight from the arrays.

    The objects of a scene come in the order of :attr:`partwise.Explanation.objects`, by template
    and then by their first point, and ``labels`` counts in that order.
    """
    stop = len(explanations) if stop is None else min(stop, len(explanations))
    parts = explanations.parts[start:stop]
    scene, k = _objects_in_order(explanations, start, stop)
    per_scene = offsets_of(np.bincount(scene, minlength=stop - start))
    matched = parts[scene, k]
    objects = pa.StructArray.from_arrays(
        [
            _template_names(explanations, k),
            _part_lists(explanations, matched, k),
            _rows_as_lists(explanations.pose[start:stop][scene, k].astype(float)),
            pa.array(explanations.probability[start:stop][scene, k].astype(float)),
        ],
        fields=list(EXPLANATION_SCHEMA.field("objects").type.value_type),
    )
    points = explanations.scenes.offsets[start : stop + 1] - explanations.scenes.offsets[start]
    labels = np.full(points[-1], -1, np.int32)
    rank = np.arange(len(scene)) - per_scene[scene]
    row, n = np.nonzero(matched >= 0)
    labels[points[scene[row]] + matched[row, n]] = rank[row]
    return pa.table(
        [
            _lists(points, pa.array(labels)),
            _lists(per_scene, objects),
            pa.array(explanations.score[start:stop].astype(float)),
            pa.array(explanations.converged[start:stop]),
        ],
        schema=EXPLANATION_SCHEMA,
    )


def _lists(offsets: Array, values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def _objects_in_order(explanations: Explanations, start: int, stop: int) -> tuple[Array, Array]:
    """Scene and possible object of every detection, sorted as an ``Explanation`` sorts them."""
    scene, k = np.nonzero(explanations.found[start:stop])
    template = np.array(explanations.model.copies)[k]
    matched = explanations.parts[start:stop][scene, k]
    far = np.iinfo(matched.dtype).max
    first = np.where(matched >= 0, matched, far).min(1)
    order = np.lexsort((first, template, scene))
    return scene[order], k[order]


def _template_names(explanations: Explanations, k: Array) -> pa.Array:
    names = pa.array([t.name for t in explanations.model.templates], pa.string())
    return names.take(pa.array(np.array(explanations.model.copies, int)[k]))


def _part_lists(explanations: Explanations, matched: Array, k: Array) -> pa.ListArray:
    sizes = np.array([len(explanations.model.templates[t]) for t in explanations.model.copies])[k]
    real = np.arange(matched.shape[1]) < sizes[:, None]
    return _lists(offsets_of(sizes), pa.array(matched[real].astype(np.int32)))


def _rows_as_lists(rows: Array) -> pa.ListArray:
    return _lists(np.arange(len(rows) + 1) * rows.shape[1], pa.array(rows.ravel()))
