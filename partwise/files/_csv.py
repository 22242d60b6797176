"""Scenes in ``.csv`` files: one row a part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from partwise._checks import InputError
from partwise.files._common import finite_rows, offsets_of, reason
from partwise.scenes import SceneBatch

__all__ = ["read_csv"]

Array = np.ndarray

COLUMNS = ("scene", "x", "y", "z", "c", "s", "type")


def read_csv(path: Path) -> SceneBatch:
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
            f"{path}: not a readable CSV of scenes ({reason(error)}); give columns "
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
    finite_rows(path, parts, "data row")
    types = None
    if "type" in names:
        types = table["type"].take(pa.array(order)).to_pylist()
    return SceneBatch(parts[order], offsets_of(counts), types)


def _check_columns(path: Path, names: list[str]) -> None:
    wanted = "give columns scene,x,y[,z][,c,s][,type]"
    missing = [n for n in ("scene", "x", "y") if n not in names]
    if missing:
        raise InputError(f"{path}: has no column {' and '.join(missing)}; {wanted}.")
    unknown = [n for n in names if n not in COLUMNS]
    if unknown or len(set(names)) < len(names):
        raise InputError(
            f"{path}: has {'unknown' if unknown else 'repeated'} columns "
            f"{', '.join(unknown or names)}; {wanted}."
        )
    if ("c" in names) != ("s" in names) or ("c" in names and "z" in names):
        raise InputError(
            f"{path}: columns c and s (size and direction) go together, in the plane; {wanted}."
        )
