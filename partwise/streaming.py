"""Explaining a file of any length: memory stays flat, and finished work is on disk.

Scenes go through in chunks. Every finished chunk is a Parquet file in a folder ``OUT.parts`` beside
the result, with a manifest that says of which work it is a part. Interrupted work resumes: chunks
that are there are not redone. At the end they are joined into OUT and the folder goes away.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from partwise._checks import InputError
from partwise.files import (
    EXPLANATION_SCHEMA,
    ROWS,
    count_scenes,
    iterate_scenes,
    replacing,
    write_explanations,
)
from partwise.inference import solve
from partwise.model import Model
from partwise.solvers import Solver, named

__all__ = ["infer_file", "parts_folder"]

MANIFEST = "manifest.json"


def infer_file(
    scenes_path: str | Path,
    model: Model,
    solver: Solver | str = "auto",
    seed: int = 0,
    *,
    out: str | Path,
    progress: Callable[[int], None] | None = None,
    rows: int = ROWS,
) -> int:
    """Explain every scene of a file into the Parquet file ``out``; returns how many.

    ``progress`` is told, as they are done, how many more scenes are (those of an earlier,
    interrupted run too). ``rows`` is how many scenes are read, solved and written together.
    """
    scenes_path, out = Path(scenes_path), Path(out)
    used = named(solver) if isinstance(solver, str) else solver
    total = count_scenes(scenes_path)
    manifest = _manifest(scenes_path, model, used, seed, rows)
    folder = _prepare(out, manifest)
    finished = _finished(folder)
    if progress is not None and finished:
        progress(min(finished * rows, total))
    for i, batch in enumerate(iterate_scenes(scenes_path, rows, skip=finished), start=finished):
        explanations = solve(model, batch, used, seed, progress)
        if progress is not None and (empty := int((batch.counts == 0).sum())):
            progress(empty)  # Solvers never see these.
        write_explanations(_part(folder, i), explanations)
    _join(folder, out)
    return total


def parts_folder(out: str | Path) -> Path:
    """Where the finished chunks of ``out`` are."""
    out = Path(out)
    return out.with_name(out.name + ".parts")


def _part(folder: Path, i: int) -> Path:
    return folder / f"part-{i:06d}.parquet"


def _manifest(path: Path, model: Model, solver: Solver, seed: int, rows: int) -> dict[str, Any]:
    """What the chunks depend on: other work has another manifest."""
    from partwise import __version__

    status = path.stat()
    with path.open("rb") as file:
        head = file.read(1 << 16)
        file.seek(max(status.st_size - (1 << 16), 0))
        ends = hashlib.sha256(head + file.read()).hexdigest()
    described = json.dumps(model.to_json(), sort_keys=True).encode()
    return {
        "partwise": __version__,
        "input": {"bytes": status.st_size, "modified_ns": status.st_mtime_ns, "ends": ends},
        "model": hashlib.sha256(described).hexdigest(),
        "solver": repr(solver),
        "seed": seed,
        "rows": rows,
    }


def _prepare(out: Path, manifest: dict[str, Any]) -> Path:
    """The folder of chunks: as it was if it belongs to the same work, else empty."""
    if out.is_dir():
        raise InputError(f"{out}: this is a folder; give the path of a file to write.")
    folder = parts_folder(out)
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise InputError(f"{out}: there is no folder {out.parent}; create it first.") from None
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written ({error.strerror}); choose another place."
        ) from None
    if _read_json(folder / MANIFEST) != manifest:
        _clear(folder)
        with replacing(folder / MANIFEST) as part:
            part.write_text(json.dumps(manifest, indent=1) + "\n")
    return folder


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def _clear(folder: Path) -> None:
    """Remove our own files from the folder, and no others."""
    for path in (folder / MANIFEST, *folder.glob("part-*.parquet"), *folder.glob(".*.tmp")):
        path.unlink(missing_ok=True)


def _finished(folder: Path) -> int:
    """How many chunks, from the first on, are complete; files only get their name when they are."""
    i = 0
    while _part(folder, i).is_file():
        i += 1
    return i


def _join(folder: Path, out: Path) -> None:
    """All chunks into one file, row group by row group; then the folder goes away."""
    with replacing(out) as part, pq.ParquetWriter(part, EXPLANATION_SCHEMA) as writer:
        for i in range(_finished(folder)):
            with _open(_part(folder, i)) as chunk:
                for group in range(chunk.num_row_groups):
                    writer.write_table(chunk.read_row_group(group))
    _clear(folder)
    with suppress(OSError):  # Somebody may keep files of their own there.
        folder.rmdir()


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError):
        raise InputError(
            f"{path}: this finished part is damaged; delete it and run again."
        ) from None
