"""Scenes in Parquet files: one row a scene, read and written in flat memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from partwise._checks import InputError
from partwise.files._common import WIDTHS, offsets_of, reason, replacing
from partwise.scenes import SceneBatch

__all__ = ["ROWS", "open_parquet", "stream_parquet", "write_scenes"]

Array = np.ndarray

ROWS = 8192
"""How many scenes are read, solved and written together."""


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """An open Parquet file; what Arrow has to say against it becomes one sentence."""
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield file
    except InputError:
        raise
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise InputError(
            f"{path}: not a readable Parquet file ({reason(error)}); write it again."
        ) from None


def stream_parquet(path: Path, rows: int, skip: int) -> Iterator[SceneBatch]:
    with open_parquet(path) as file:
        columns = _parquet_columns(path, file.schema_arrow)
        for i, table in enumerate(_tables(file, columns, rows)):
            if i >= skip:
                yield _batch(path, table, i * rows)


def write_scenes(path: str | Path, batch: SceneBatch) -> None:
    """Scenes as Parquet, one row a scene; :func:`read_scenes` reads them back."""
    offsets = pa.array(batch.offsets.astype(np.int32))
    width = batch.parts.shape[1]
    inner_offsets = pa.array(np.arange(len(batch.parts) + 1, dtype=np.int32) * width)
    inner = pa.ListArray.from_arrays(inner_offsets, pa.array(batch.parts.ravel()))
    columns: dict[str, pa.Array] = {"points": pa.ListArray.from_arrays(offsets, inner)}
    if batch.types is not None:
        names = pa.array(list(batch.types), pa.string())
        columns["types"] = pa.ListArray.from_arrays(offsets, names)
    if batch.appearance is not None:
        looks = pa.array(list(batch.appearance), pa.list_(pa.float64()))
        columns["appearance"] = pa.ListArray.from_arrays(offsets, looks)
    with replacing(path) as part:
        pq.write_table(pa.table(columns), part, row_group_size=ROWS)


def _parquet_columns(path: Path, schema: pa.Schema) -> list[str]:
    if "points" not in schema.names:
        raise InputError(
            f"{path}: has no column 'points' (it has {', '.join(schema.names) or 'none'}); give "
            "one list of points a row."
        )
    return [n for n in ("points", "types", "appearance") if n in schema.names]


def _tables(file: pq.ParquetFile, columns: list[str], rows: int) -> Iterator[pa.Table]:
    """Tables of exactly ``rows`` rows (the last may be shorter), whatever the row groups are."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in file.iter_batches(batch_size=rows, columns=columns):
        waiting.append(batch)
        held += batch.num_rows
        while held >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows)
            waiting = table.slice(rows).to_batches()
            held -= rows
    if held:
        yield pa.Table.from_batches(waiting)


def _batch(path: Path, table: pa.Table, first: int) -> SceneBatch:
    """Some rows as scenes; ``first`` is the number of the first, for messages."""
    counts, parts = _parquet_points(path, _column(table, "points"), first)
    bad = ~np.isfinite(parts).all(1)
    if bad.any():
        scene = first + int(np.repeat(np.arange(len(counts)), counts)[bad.argmax()])
        raise InputError(
            f"{path}: a point of scene {scene} is NaN or infinite; remove or repair it."
        )
    types = appearance = None
    if "types" in table.column_names:
        column = _column(table, "types")
        inner = _inner(path, "types", column, counts, first)
        if not pa.types.is_string(inner.type) and not pa.types.is_large_string(inner.type):
            raise InputError(f"{path}: 'types' must hold lists of names; got {column.type}.")
        types = inner.to_pylist()
    if "appearance" in table.column_names:
        column = _column(table, "appearance")
        inner = _inner(path, "appearance", column, counts, first)
        if not _is_list(inner.type) or not _is_number(inner.type.value_type):
            raise InputError(
                f"{path}: 'appearance' must hold one list of numbers a part; got {column.type}."
            )
        lengths = _list_lengths(inner)
        flat = _numbers(path, "appearance", inner.flatten())
        if not np.isfinite(flat).all():
            raise InputError(f"{path}: 'appearance' holds NaN or infinity; remove or repair it.")
        appearance = np.split(flat, np.cumsum(lengths)[:-1]) if len(lengths) else []
    return SceneBatch(parts, offsets_of(counts), types, appearance)


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table[name].combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _parquet_points(path: Path, column: pa.Array, first: int) -> tuple[Array, Array]:
    """Per scene its number of points, and all points (total, D)."""
    inner = column.type.value_type if _is_list(column.type) else None
    if inner is not None and pa.types.is_null(inner):
        # A column of empty lists has no value type.
        return np.zeros(len(column), np.int64), np.zeros((0, 2))
    if inner is None or not (
        _is_number(inner) or (_is_list(inner) and _is_number(inner.value_type))
    ):
        raise InputError(
            f"{path}: 'points' must hold one list of points a row, list<list<double>>; got "
            f"{column.type}."
        )
    counts = _lengths(path, "points", column, first)
    flat = column.flatten()
    if not _is_list(inner):
        if (counts % 2).any():
            scene = first + int((counts % 2).argmax())
            raise InputError(
                f"{path}: the flat list 'points' of scene {scene} has an odd length; it must "
                "alternate x and y."
            )
        return counts // 2, _numbers(path, "points", flat).reshape(-1, 2)
    widths = np.unique(_lengths(path, "points", flat, None))
    if len(widths) > 1 or (len(widths) and int(widths[0]) not in WIDTHS):
        raise InputError(
            f"{path}: points have {', '.join(map(str, widths.tolist()))} numbers; every point "
            "must have the same 2, 3 or 4."
        )
    width = int(widths[0]) if len(widths) else 2
    return counts, _numbers(path, "points", flat.flatten()).reshape(-1, width)


def _lengths(path: Path, name: str, column: pa.Array, first: int | None) -> Array:
    """The length of every list of a column without nulls."""
    if column.null_count:
        row = int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        where = "a point" if first is None else f"scene {first + row}"
        raise InputError(f"{path}: {name!r} of {where} is null; give an empty list, or remove it.")
    return _list_lengths(column)


def _list_lengths(column: pa.Array) -> Array:
    lengths = pc.call_function("list_value_length", [column])
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)


def _numbers(path: Path, name: str, values: pa.Array) -> Array:
    if values.null_count:
        raise InputError(f"{path}: {name!r} holds a null number; remove or repair it.")
    return values.to_numpy(zero_copy_only=False).astype(float)


def _inner(path: Path, name: str, column: pa.Array, counts: Array, first: int) -> pa.Array:
    """The flat values of a list column that has one entry a point."""
    if not _is_list(column.type):
        raise InputError(f"{path}: {name!r} must hold one list a row; got {column.type}.")
    lengths = _lengths(path, name, column, first)
    if (lengths != counts).any():
        scene = int((lengths != counts).argmax())
        raise InputError(
            f"{path}: scene {first + scene} has {lengths[scene]} {name} for {counts[scene]} "
            "points; give one for each."
        )
    flat = column.flatten()
    if pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_decode()
    if pa.types.is_null(flat.type) and len(flat) == 0:
        flat = flat.cast(pa.string() if name == "types" else pa.list_(pa.float64()))
    if flat.null_count:
        raise InputError(f"{path}: {name!r} holds a null; give every point its own.")
    return flat
