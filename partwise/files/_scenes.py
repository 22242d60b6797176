"""Scenes from a file of any kind, all at once or some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from partwise._checks import InputError
from partwise.files._common import kind_of, offsets_of, readable
from partwise.files._csv import read_csv
from partwise.files._npz import read_npz
from partwise.files._parquet import ROWS, open_parquet, stream_parquet
from partwise.scenes import SceneBatch

__all__ = ["count_scenes", "iterate_scenes", "read_scenes"]

Array = np.ndarray


def read_scenes(path: str | Path) -> SceneBatch:
    """All scenes of a file, of any of the three kinds."""
    path = readable(path)
    kind = kind_of(path)
    if kind == ".npz":
        return read_npz(path)
    if kind == ".csv":
        return read_csv(path)
    return _joined(path, list(iterate_scenes(path)))


def iterate_scenes(path: str | Path, rows: int = ROWS, skip: int = 0) -> Iterator[SceneBatch]:
    """The scenes of a file, ``rows`` at a time, without the first ``skip`` batches.

    A Parquet file streams: memory does not grow with its length.
    """
    path = readable(path)
    if kind_of(path) == ".parquet":
        yield from stream_parquet(path, rows, skip)
        return
    batch = read_scenes(path)
    for start in range(skip * rows, len(batch), rows):
        yield _slice(batch, start, start + rows)


def _slice(batch: SceneBatch, start: int, stop: int) -> SceneBatch:
    some = batch[start:stop]
    assert isinstance(some, SceneBatch)
    return some


def count_scenes(path: str | Path) -> int:
    """How many scenes a file holds; a Parquet file says so without being read."""
    path = readable(path)
    if kind_of(path) == ".parquet":
        with open_parquet(path) as file:
            return file.metadata.num_rows
    return len(read_scenes(path))


def _joined(path: Path, batches: list[SceneBatch]) -> SceneBatch:
    """Batches one after another."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return SceneBatch(np.zeros((0, 2)), np.zeros(1, np.int64))
    widths = {b.parts.shape[1] for b in batches if len(b.parts)} or {2}
    if len(widths) > 1:
        raise InputError(
            f"{path}: points have {sorted(widths)} numbers; every point must have as many."
        )
    width = widths.pop()
    parts = [b.parts if len(b.parts) else np.zeros((0, width)) for b in batches]
    return SceneBatch(
        np.concatenate(parts),
        offsets_of(np.concatenate([b.counts for b in batches])),
        None if batches[0].types is None else [t for b in batches for t in b.types or ()],
        None if batches[0].appearance is None else [a for b in batches for a in b.appearance or ()],
    )
