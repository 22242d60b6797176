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

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from partwise._checks import InputError
from partwise.posterior import Explanations
from partwise.scenes import LabelledScenes, SceneBatch

__all__ = [
    "EXPLANATION_SCHEMA",
    "ROWS",
    "count_scenes",
    "explanations_table",
    "iterate_scenes",
    "read_arrays",
    "read_labelled",
    "read_scenes",
    "replacing",
    "write_explanations",
    "write_labelled",
    "write_scenes",
]

Array = np.ndarray

ROWS = 8192
"""How many scenes are read, solved and written together."""

_WIDTHS = (2, 3, 4)
_CSV_COLUMNS = ("scene", "x", "y", "z", "c", "s", "type")

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


# Reading --------------------------------------------------------------------------------------


def read_labelled(path: str | Path) -> LabelledScenes:
    """Labelled scenes from an ``.npz`` file with ``points``, ``present`` and ``object_id``."""
    path = _file(path)
    if _kind(path) != ".npz":
        raise InputError(f"{path}: labelled scenes are .npz files; give one of those.")
    arrays = read_arrays(path, ("points", "present", "object_id"))
    points = _points(path, arrays["points"])
    shape = points.shape[:2]
    present = _present(path, arrays["present"], shape)
    object_id = arrays["object_id"]
    if object_id.dtype.kind not in "iu" or object_id.shape != shape:
        raise InputError(
            f"{path}: 'object_id' must be whole numbers of shape {shape}, one a slot; got "
            f"{object_id.dtype} of shape {object_id.shape}."
        )
    _finite_points(path, points, present)
    return LabelledScenes(points, present, object_id.astype(int))


def read_scenes(path: str | Path) -> SceneBatch:
    """All scenes of a file, of any of the three kinds."""
    path = _file(path)
    kind = _kind(path)
    if kind == ".npz":
        return _read_npz(path)
    if kind == ".csv":
        return _read_csv(path)
    return _joined(path, list(iterate_scenes(path)))


def iterate_scenes(path: str | Path, rows: int = ROWS, skip: int = 0) -> Iterator[SceneBatch]:
    """The scenes of a file, ``rows`` at a time, without the first ``skip`` batches.

    A Parquet file streams: memory does not grow with its length.
    """
    path = _file(path)
    if _kind(path) == ".parquet":
        yield from _stream_parquet(path, rows, skip)
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
    path = _file(path)
    if _kind(path) == ".parquet":
        with _parquet(path) as file:
            return file.metadata.num_rows
    return len(read_scenes(path))


def _file(path: str | Path) -> Path:
    """``path`` if it is a file that can be read and holds something."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path}: this is a folder; give the path of a scene file.")
        if not path.exists():
            raise InputError(f"{path}: there is no such file; check the path.")
        if not path.is_file():
            raise InputError(f"{path}: not a regular file; write the scenes to a file first.")
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty; write it again.")
        if not os.access(path, os.R_OK):
            raise InputError(f"{path}: no permission to read this file; change its permissions.")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path.") from None
    return path


def _kind(path: Path) -> str:
    """``.npz``, ``.csv`` or ``.parquet``."""
    kind = {".pq": ".parquet"}.get(path.suffix.lower(), path.suffix.lower())
    if kind not in (".npz", ".csv", ".parquet"):
        raise InputError(
            f"{path}: scene files end in .npz, .parquet or .csv; convert it to one of these."
        )
    return kind


def _reason(error: BaseException) -> str:
    """The first line of another library's complaint, as part of a sentence."""
    lines = str(error).strip().splitlines()
    return (lines[0][:160] if lines else type(error).__name__).rstrip(" .")


# .npz


def read_arrays(path: Path, names: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Array]:
    """The named arrays of an ``.npz`` file; never its pickles."""
    out = {}
    try:
        # Any failure here is a property of the file: zipfile, zlib, NumPy's header parser and its
        # refusal to unpickle each have exceptions of their own.
        with path.open("rb") as file:
            _check_magic(path, file)
            data = np.load(file, allow_pickle=False)
            missing = [name for name in names if name not in data.files]
            if missing:
                raise InputError(
                    f"{path}: has no array {' and no array '.join(map(repr, missing))} "
                    f"(it has {', '.join(sorted(data.files)) or 'none'}); add what is missing."
                )
            for name in (*names, *(o for o in optional if o in data.files)):
                out[name] = data[name]
    except InputError:
        raise
    except Exception as error:
        if "allow_pickle" in str(error):
            raise InputError(
                f"{path}: holds Python objects (pickle), which are not read; save plain numeric "
                "arrays."
            ) from None
        raise InputError(
            f"{path}: not a readable .npz file ({_reason(error)}); write it again with numpy.savez."
        ) from None
    return out


def _check_magic(path: Path, file: BinaryIO) -> None:
    """``np.load`` takes whatever is no zip for a pickle, and says so; here it is a foreign file."""
    magic = file.read(6)
    file.seek(0)
    if magic == b"\x93NUMPY":
        raise InputError(f"{path}: a single array; save named arrays with numpy.savez.")
    if not magic.startswith(b"PK"):
        raise InputError(
            f"{path}: not an .npz file, whatever its name says; write it with numpy.savez."
        )


def _points(path: Path, points: Array) -> Array:
    if points.dtype.kind not in "fiu":
        raise InputError(f"{path}: 'points' must be numbers; got {points.dtype}.")
    if points.ndim != 3 or points.shape[2] not in _WIDTHS:
        raise InputError(
            f"{path}: 'points' must have shape (scenes, slots, 2 to 4 numbers); got {points.shape}."
        )
    return points.astype(float)


def _present(path: Path, present: Array, shape: tuple[int, ...]) -> Array:
    if present.shape != shape or (
        present.dtype != bool
        and not (present.dtype.kind in "iu" and np.isin(present, (0, 1)).all())
    ):
        raise InputError(
            f"{path}: 'present' must be true or false, of shape {shape}; got {present.dtype} of "
            f"shape {present.shape}."
        )
    return present.astype(bool)


def _finite_points(path: Path, points: Array, present: Array) -> None:
    bad = present & ~np.isfinite(points).all(-1)
    if bad.any():
        scene, slot = np.argwhere(bad)[0]
        raise InputError(
            f"{path}: point {slot} of scene {scene} is NaN or infinite; remove or repair it."
        )


def _read_npz(path: Path) -> SceneBatch:
    arrays = read_arrays(path, ("points",), ("present",))
    points = _points(path, arrays["points"])
    present = np.ones(points.shape[:2], bool)
    if "present" in arrays:
        present = _present(path, arrays["present"], points.shape[:2])
    _finite_points(path, points, present)
    return SceneBatch(points[present], _offsets(present.sum(1)))


def _offsets(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


# .csv


def _read_csv(path: Path) -> SceneBatch:
    numbers = {name: pa.float64() for name in ("x", "y", "z", "c", "s")}
    try:
        table = pacsv.read_csv(
            path,
            convert_options=pacsv.ConvertOptions(
                column_types={**numbers, "scene": pa.string(), "type": pa.string()},
                strings_can_be_null=True,
                null_values=[""],
            ),
        )
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise InputError(
            f"{path}: not a readable CSV of scenes ({_reason(error)}); give columns "
            "scene,x,y[,z][,type] of numbers."
        ) from None
    names = table.column_names
    _check_columns(path, names)
    for name in names:
        if table[name].null_count:
            row = table[name].is_null().combine_chunks().to_numpy(zero_copy_only=False).argmax()
            raise InputError(
                f"{path}: column {name!r} is empty in data row {row + 1}; fill it in or remove it."
            )
    columns = [n for n in ("x", "y", "z", "c", "s") if n in names]
    parts = np.stack([table[n].to_numpy() for n in columns], 1)
    scene = table["scene"].combine_chunks().dictionary_encode()
    code = scene.indices.to_numpy()
    # Rows of one scene need not stand together; within a scene they keep their order.
    order = np.argsort(code, kind="stable")
    counts = np.bincount(code, minlength=len(scene.dictionary))
    _finite_rows(path, parts, "data row")
    types = None
    if "type" in names:
        types = table["type"].take(pa.array(order)).to_pylist()
    return SceneBatch(parts[order], _offsets(counts), types)


def _check_columns(path: Path, names: list[str]) -> None:
    wanted = "give columns scene,x,y[,z][,c,s][,type]"
    missing = [n for n in ("scene", "x", "y") if n not in names]
    if missing:
        raise InputError(f"{path}: has no column {' and '.join(missing)}; {wanted}.")
    unknown = [n for n in names if n not in _CSV_COLUMNS]
    if unknown or len(set(names)) < len(names):
        raise InputError(
            f"{path}: has {'unknown' if unknown else 'repeated'} columns "
            f"{', '.join(unknown or names)}; {wanted}."
        )
    if ("c" in names) != ("s" in names) or ("c" in names and "z" in names):
        raise InputError(
            f"{path}: columns c and s (size and direction) go together, in the plane; {wanted}."
        )


def _finite_rows(path: Path, parts: Array, what: str) -> None:
    bad = ~np.isfinite(parts).all(1)
    if bad.any():
        raise InputError(
            f"{path}: {what} {int(bad.argmax()) + 1} holds NaN or infinity; remove or repair it."
        )


# .parquet


@contextmanager
def _parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """An open Parquet file; what Arrow has to say against it becomes one sentence."""
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield file
    except InputError:
        raise
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise InputError(
            f"{path}: not a readable Parquet file ({_reason(error)}); write it again."
        ) from None


def _stream_parquet(path: Path, rows: int, skip: int) -> Iterator[SceneBatch]:
    with _parquet(path) as file:
        columns = _parquet_columns(path, file.schema_arrow)
        for i, table in enumerate(_tables(file, columns, rows)):
            if i >= skip:
                yield _batch(path, table, i * rows)


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
    return SceneBatch(parts, _offsets(counts), types, appearance)


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
    if len(widths) > 1 or (len(widths) and int(widths[0]) not in _WIDTHS):
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
        _offsets(np.concatenate([b.counts for b in batches])),
        None if batches[0].types is None else [t for b in batches for t in b.types or ()],
        None if batches[0].appearance is None else [a for b in batches for a in b.appearance or ()],
    )


# Writing --------------------------------------------------------------------------------------


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that becomes ``path`` when all went well, at once."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give the path of a file to write.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; create it first.")
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or _reason(error)}); choose another place."
        ) from None
    finally:
        part.unlink(missing_ok=True)


def write_labelled(path: str | Path, labelled: LabelledScenes) -> None:
    """Labelled scenes as ``.npz``; :func:`read_labelled` reads them back."""
    if Path(path).suffix.lower() != ".npz":
        raise InputError(f"{path}: labelled scenes are .npz files; give a name that ends in .npz.")
    points = np.where(labelled.present[..., None], labelled.points, 0.0)
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(
            file,
            points=points.astype(np.float32),
            present=labelled.present,
            object_id=labelled.object_id.astype(np.int32),
        )


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
    per_scene = _offsets(np.bincount(scene, minlength=stop - start))
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
    return _lists(_offsets(sizes), pa.array(matched[real].astype(np.int32)))


def _rows_as_lists(rows: Array) -> pa.ListArray:
    return _lists(np.arange(len(rows) + 1) * rows.shape[1], pa.array(rows.ravel()))
