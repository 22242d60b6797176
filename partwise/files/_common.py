"""What the readers and writers of all kinds of files share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from partwise._checks import InputError

__all__ = ["WIDTHS", "finite_rows", "kind_of", "offsets_of", "readable", "reason", "replacing"]

Array = np.ndarray

WIDTHS = (2, 3, 4)
"""How many numbers a part may have."""


def readable(path: str | Path) -> Path:
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


def kind_of(path: Path) -> str:
    """``.npz``, ``.csv`` or ``.parquet``."""
    kind = {".pq": ".parquet"}.get(path.suffix.lower(), path.suffix.lower())
    if kind not in (".npz", ".csv", ".parquet"):
        raise InputError(
            f"{path}: scene files end in .npz, .parquet or .csv; convert it to one of these."
        )
    return kind


def reason(error: BaseException) -> str:
    """The first line of another library's complaint, as part of a sentence."""
    lines = str(error).strip().splitlines()
    return (lines[0][:160] if lines else type(error).__name__).rstrip(" .")


def offsets_of(counts: Array) -> Array:
    """Where each scene begins in a flat list, from the number of rows of each."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def finite_rows(path: Path, parts: Array, what: str) -> None:
    """One sentence for the first row that is not finite."""
    bad = ~np.isfinite(parts).all(1)
    if bad.any():
        raise InputError(
            f"{path}: {what} {int(bad.argmax()) + 1} holds NaN or infinity; remove or repair it."
        )


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
            f"{path}: cannot be written ({error.strerror or reason(error)}); choose another place."
        ) from None
    finally:
        part.unlink(missing_ok=True)
